import pytest

from turngate.agent.agent_config import PermissionMode, stricter_mode


@pytest.mark.parametrize(
    ("mode", "other", "stricter"),
    [
        ("plan", "bypassPermissions", "plan"),
        ("bypassPermissions", "plan", "plan"),
        ("default", "acceptEdits", "default"),
        ("bypassPermissions", "acceptEdits", "acceptEdits"),
        ("acceptEdits", "acceptEdits", "acceptEdits"),
        ("bypassPermissions", "dontAsk", "default"),
        ("acceptEdits", None, "default"),
        ("plan", 5, "plan"),
    ],
)
def test_the_stricter_of_two_permission_modes(
    mode: PermissionMode, other: object, stricter: PermissionMode
) -> None:
    assert stricter_mode(mode, other) == stricter
