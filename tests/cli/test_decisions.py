import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from turngate.cli.review import approve_shown, check_person, find_hooks, pending_hooks
from turngate.errors import UsageError
from turngate.hosts.all_hosts import AGENT_MARKERS
from turngate.project.files import LOCAL
from turngate.trust.review import Review, review_project


@pytest.fixture
def review(project: Path) -> Callable[[], Review]:
    write_settings(project, "turngate", stop_hooks("sh gate.sh", "true"))
    script(project / "gate.sh", "exit 0\n")
    return partial(review_project, str(project), dialect="turngate", files=LOCAL)


def statuses(review: Review) -> list[str]:
    return [hook.status for hook in review.hooks]


@pytest.mark.req("S3-16")
def test_hooks_are_approved_as_they_were_shown(review: Callable[[], Review]) -> None:
    before = review()
    approve_shown(pending_hooks(before), review)
    assert (statuses(before), statuses(review())) == (["new", "new"], ["approved", "approved"])


@pytest.mark.req("S3-16")
@pytest.mark.parametrize("change", ["script", "definition", "removal"])
def test_a_hook_that_changes_after_it_was_shown_is_not_approved(
    review: Callable[[], Review], project: Path, change: str
) -> None:
    shown = pending_hooks(review())
    if change == "script":
        script(project / "gate.sh", "rm -rf /\n")
    else:
        others = ("sh gate.sh", "false") if change == "definition" else ("sh gate.sh",)
        write_settings(project, "turngate", stop_hooks(*others))
    with pytest.raises(UsageError) as raised:
        approve_shown(shown, review)
    key = "Stop:1" if change == "script" else "Stop:2"
    assert (str(raised.value), set(statuses(review()))) == (
        f"{key} has changed after it was shown; nothing was approved, review it again: `turngate hooks diff`",
        {"new"},
    )


@pytest.mark.req("S3-16")
def test_a_person_is_where_no_marker_is_set() -> None:
    check_person(os.environ)
    refused = []
    for marker in AGENT_MARKERS:
        with pytest.raises(UsageError):
            check_person({**os.environ, marker: ""})
        refused.append(marker)
    assert refused == [
        "TURNGATE_IN_HOOK",
        "TURNGATE_IN_TOOL",
        "TURNGATE_IN_ACP",
        "CLAUDECODE",
        "CODEX_THREAD_ID",
        "GEMINI_CLI",
        "QWEN_CODE",
        "COPILOT_CLI",
        "OPENCODE",
        "CURSOR_AGENT",
    ]


def test_a_key_that_is_given_twice_is_one_hook(review: Callable[[], Review]) -> None:
    assert [hook.key for hook in find_hooks(review(), ["Stop:2", "Stop:1", "Stop:2"])] == ["Stop:2", "Stop:1"]
