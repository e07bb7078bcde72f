from typing import Any

import pytest

from tests.support.builders import stop_event
from turngate.core.events.events import PreToolUse, Subagent


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"transcript_path": None}, "StopEvent.transcript_path must be a string, not NoneType"),
        ({"session_id": 1}, "StopEvent.session_id must be a string, not int"),
        ({"cwd": b"/"}, "StopEvent.cwd must be a string, not bytes"),
        ({"permission_mode": ()}, "StopEvent.permission_mode must be a string, not tuple"),
        ({"stop_hook_active": "yes"}, "StopEvent.stop_hook_active must be true or false, not str"),
        ({"subagent": "child"}, "StopEvent.subagent must be a Subagent, not str"),
        (
            {"last_assistant_message": [1]},
            "StopEvent.last_assistant_message must be a string or a list of strings",
        ),
        (
            {"last_assistant_message": b"done"},
            "StopEvent.last_assistant_message must be a string or a list of strings",
        ),
    ],
)
def test_an_event_of_the_wrong_types_is_rejected_where_it_is_made(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError) as error:
        stop_event(**fields)
    assert str(error.value) == said


def test_the_other_events_are_checked_as_well() -> None:
    with pytest.raises(TypeError) as error:
        PreToolUse(session_id=None)  # type: ignore[arg-type]
    assert str(error.value) == "PreToolUse.session_id must be a string, not NoneType"


def test_an_unknown_outcome_of_a_subagent_is_rejected_because_no_hook_would_be_asked() -> None:
    with pytest.raises(
        ValueError, match=r"^Subagent.outcome must be one of ok, error, timeout.*, not 'failed'$"
    ):
        Subagent(id="a", outcome="failed")  # type: ignore[arg-type]
