"""Document 000's hooks at the stop of a real child: its sample scripts, word for word, and what it says of the Task tool."""

import json
import shutil
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, script
from tests.support.paths import SEEDS
from tests.support.sessions import (
    BLOCK_COMMAND,
    SAVE_INPUT,
    ScriptedSession,
    block_first,
    configured_session,
    records,
    saved_inputs,
)
from tests.support.subagents import PROMPT, Parent, bash, parent, task
from turngate.core.dialect import MUX
from turngate.core.events.stream_events import (
    Continuation,
    HookFinished,
    HookStarted,
    Notice,
    SubagentFinished,
    SubagentStarted,
    ToolFinished,
    ToolStarted,
)
from turngate.core.hooks.kinds import CommandHook
from turngate.trust.load import load_settings

NO_TOOLS = "Subagent should use tools to complete the task"
NO_TESTS = "Please run tests before stopping"


@pytest.fixture(autouse=True)
def _no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests are in no git repository."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


def guarded(project: Path, sample: str, *sub: Any, main: tuple[Any, ...] = (), **options: Any) -> Parent:
    """A parent whose children are under a sample of the document, as `.mux/subagent_stop`."""
    script(project / ".mux" / "subagent_stop", (SEEDS / sample).read_bytes().decode())
    rules = load_settings(str(project), dialect="mux").rules
    return parent(project, *sub, main=main, rules=rules, dialect=MUX, allow=["Bash"], **options)


def handed(scene: Parent) -> str:
    """What the Task tool gave to the parent."""
    return scene.heard("main")[-1]


# The samples


@pytest.mark.req("S0-59", "S0-52")
def test_a_subagent_without_tool_calls_is_redirected_although_its_parent_made_some(project: Path) -> None:
    main = (bash("true"), task(), "home")
    scene = guarded(project, "000_subagent_check.sh", "I think it is 3", bash("echo 4"), "it is 4", main=main)
    scene.play()
    assert '"tool_name":"bash"' in scene.transcript
    assert scene.heard("sub") == [PROMPT, "agent: I think it is 3", NO_TOOLS, "agent: Bash", "tool: 4"]
    assert handed(scene) == "tool: it is 4"


@pytest.mark.req("S0-59")
def test_a_subagent_with_a_tool_call_of_its_own_may_stop_at_once(project: Path) -> None:
    scene = guarded(project, "000_subagent_check.sh", bash("echo 4"), "it is 4")
    scene.play()
    assert scene.heard("sub") == [PROMPT, "agent: Bash", "tool: 4"]
    assert handed(scene) == "tool: it is 4"


@pytest.mark.req("S0-54")
def test_the_stop_sample_blocks_a_subagent_once_and_lets_it_go_after_that(project: Path) -> None:
    scene = guarded(project, "000_stop.sh", "answer {n}")
    scene.play()
    assert scene.heard("sub") == [PROMPT, "agent: answer 1", NO_TESTS]
    assert handed(scene) == "tool: answer 2"


def stopping(project: Path, sample: str, *replies: Any) -> ScriptedSession:
    """A session under a sample of the document, as `.mux/stop`."""
    script(project / ".mux" / "stop", (SEEDS / sample).read_bytes().decode())
    return configured_session(project, *replies, allow=["Bash"])


HEADING = "[Stop hook requested continuation]\n"


@pytest.mark.req("S0-54", "S0-55", "T-4")
@pytest.mark.parametrize("tested", [True, False])
def test_the_stop_sample_reads_the_transcript_that_a_session_writes(project: Path, tested: bool) -> None:
    agent = stopping(project, "000_stop.sh", bash("true make test" if tested else "true"), "answer {n}")
    result = agent.play()
    sent_on = [] if tested else ["agent: answer 2", f"{HEADING}{NO_TESTS}"]
    assert agent.heard() == ["go", "agent: Bash", "tool: (no output)", *sent_on]
    assert (result.ended_by, result.continuations) == ("allowed", 0 if tested else 1)


@pytest.mark.req("S0-56", "T-2")
@pytest.mark.parametrize("verified", [True, False])
def test_the_words_of_a_good_test_run_are_looked_for_in_the_transcript_of_a_session(
    project: Path, verified: bool
) -> None:
    """The trap: the block itself satisfies the grep. Its record is marked, so a better pattern can leave it out."""
    said = "12 tests passed" if verified else "12 files"
    (project / "output").write_text(said)  # the call itself does not have the words
    agent = stopping(project, "000_test_verification.sh", bash("cat output"), "answer {n}")
    result = agent.play()
    asked = "Run and verify tests pass before stopping"
    sent_on = [] if verified else ["agent: answer 2", f"{HEADING}{asked}"]
    assert agent.heard() == ["go", "agent: Bash", f"tool: {said}", *sent_on]
    marked = [each["message"]["content"] for each in records(result.transcript_path) if each.get("isMeta")]
    assert marked == ([] if verified else [f"{HEADING}{asked}"])


@pytest.mark.req("S0-55")
@pytest.mark.parametrize("who", ["child", "parent"])
def test_the_stop_sample_looks_for_a_test_call_in_what_the_subagent_itself_did(
    project: Path, who: str
) -> None:
    check = bash("true make test")
    if who == "child":
        scene = guarded(project, "000_stop.sh", check, "answer {n}")
        heard, answer = [PROMPT, "agent: Bash", "tool: (no output)"], "answer 2"
    else:
        scene = guarded(project, "000_stop.sh", "answer {n}", main=(check, task(), "home"))
        heard, answer = [PROMPT, "agent: answer 1", NO_TESTS], "answer 2"
    scene.play()
    assert (scene.heard("sub"), handed(scene)) == (heard, f"tool: {answer}")


@pytest.mark.req("S0-56")
@pytest.mark.parametrize("verified", [True, False])
def test_the_words_of_a_good_test_run_are_looked_for_in_the_subagents_transcript(
    project: Path, verified: bool
) -> None:
    said = "12 tests passed" if verified else "12 files"
    (project / "output").write_text(said)
    scene = guarded(project, "000_test_verification.sh", bash("cat output"), "answer {n}")
    scene.play()
    sent_on = [] if verified else ["agent: answer 2", "Run and verify tests pass before stopping"]
    assert scene.heard("sub") == [PROMPT, "agent: Bash", f"tool: {said}", *sent_on]
    assert handed(scene) == f"tool: answer {2 if verified else 3}"


@pytest.mark.req("S0-57")
def test_a_subagent_is_redirected_while_the_linter_finds_errors(project: Path) -> None:
    (project / "Makefile").write_text("lint:\n\t@echo 'a.c:1: error: no semicolon'; exit 1\n")
    repair = bash("printf 'lint:\\n\\t@echo clean\\n' > Makefile")
    scene = guarded(project, "000_lint_check.sh", "done", repair, "repaired")
    scene.play()
    assert scene.heard("sub") == [
        PROMPT,
        "agent: done",
        "Fix lint errors before stopping",
        "agent: Bash",
        "tool: (no output)",
    ]
    assert handed(scene) == "tool: repaired"


@pytest.mark.req("S0-58")
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_subagent_is_reminded_of_its_uncommitted_changes(project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    commit = bash("git add -A && git -c user.name=Ada -c user.email=ada@example.org commit -q -m all")
    scene = guarded(project, "000_commit_reminder.sh", "done", commit, "committed")
    scene.play()
    assert scene.heard("sub") == [
        PROMPT,
        "agent: done",
        "You have uncommitted changes. Please commit or stash.",
        "agent: Bash",
        "tool: (no output)",
    ]
    assert handed(scene) == "tool: committed"


# The Task tool


def in_mux(project: Path, *sub: Any, hook: str, **options: Any) -> Parent:
    return parent(project, *sub, rules=[rule(hook, "SubagentStop")], dialect=MUX, **options)


@pytest.mark.req("S0-22", "S0-74")
def test_the_hook_has_ended_before_the_parent_gets_the_result(project: Path) -> None:
    scene = in_mux(project, hook="sleep 0.3; date +%s.%N > ended")
    scene.play()
    kinds = (ToolStarted, SubagentStarted, HookStarted, HookFinished, ToolFinished)
    assert [type(event) for event in scene.events if isinstance(event, kinds)] == list(kinds)
    [result] = [each for each in scene.spoken() if "tool_result" in json.dumps(each["message"])]
    kept = datetime.fromisoformat(result["timestamp"]).timestamp()
    assert float((project / "ended").read_text()) < kept + 0.001  # our clock tells milliseconds


@pytest.mark.req("S0-74")
def test_a_hook_that_hangs_keeps_the_result_from_the_parent_until_its_time_is_over(project: Path) -> None:
    hangs = rule(CommandHook("sleep 3600", timeout=0.5), "SubagentStop")
    scene = parent(project, rules=[hangs], dialect=MUX)
    started = time.monotonic()
    scene.play()
    assert (handed(scene), time.monotonic() - started >= 0.5) == ("tool: done", True)


@pytest.mark.req("S0-75", "C-14", "C-21")
@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
def test_a_hook_gets_the_task_and_its_own_transcript_and_the_default_mode(project: Path, mode: Any) -> None:
    scene = in_mux(project, "counted", hook=SAVE_INPUT, permission_mode=mode)
    scene.play()
    [run] = scene.registered
    [told] = saved_inputs(project)
    assert list(told)[:6] == [
        "session_id",
        "transcript_path",
        "cwd",
        "permission_mode",
        "hook_event_name",
        "stop_hook_active",
    ]
    varies = {key: told.pop(key) for key in ("prompt_id", "duration_ms", "usage")}
    assert told == {
        "session_id": run.agent_id,
        "transcript_path": run.transcript,
        "cwd": str(project),
        "permission_mode": "default",
        "hook_event_name": "SubagentStop",
        "stop_hook_active": False,
        "last_assistant_message": "counted",
        "continuation_count": 0,
        "max_continuations": 3,
        "agent_id": run.agent_id,
        "agent_type": "general-purpose",
        "agent_transcript_path": run.transcript,
        "parent_session_id": scene.session.id,
        "parent_transcript_path": scene.session.transcript_path,
        "outcome": "ok",
        "tool_calls": 0,
    }
    assert {key: type(value) for key, value in varies.items()} == {
        "prompt_id": str,
        "duration_ms": int,
        "usage": dict,
    }
    assert [record["message"]["content"] for record in spoken(run.transcript)] == [
        PROMPT,
        [{"type": "text", "text": "counted"}],
    ]


@pytest.mark.req("S0-76", "C-17")
def test_a_blocked_subagent_gets_the_reason_itself_and_continues_with_its_whole_history(
    project: Path,
) -> None:
    scene = in_mux(
        project, bash("echo 3"), "it is 3", "it is 4", hook=block_first(1, "count again"), allow=["Bash"]
    )
    scene.play()
    assert [scene.heard("sub", number) for number in range(3)] == [
        [PROMPT],
        [PROMPT, "agent: Bash", "tool: 3"],
        [PROMPT, "agent: Bash", "tool: 3", "agent: it is 3", "count again"],
    ]
    assert len({run.agent_id for run in scene.runs()}) == len(scene.of(SubagentStarted)) == 1


@pytest.mark.req("S0-76")
def test_the_reason_is_marked_in_the_subagents_transcript_and_the_next_hook_sees_the_flag(
    project: Path,
) -> None:
    scene = in_mux(project, "answer {n}", hook=f"tee -a seen > /dev/null; {block_first(1, 'count again')}")
    scene.play()
    assert saved_inputs(project, "stop_hook_active", "continuation_count") == [(False, 0), (True, 1)]
    [told] = [each for each in spoken(scene.registered[0].transcript) if each.get("origin") == "stop_hook"]
    marks = {mark: told.get(mark) for mark in ("isMeta", "isSidechain", "stopHookActive")}
    assert (marks, told["message"]["content"]) == (
        {"isMeta": True, "isSidechain": True, "stopHookActive": True},
        "count again",
    )


@pytest.mark.req("S0-77")
def test_a_hook_that_always_blocks_a_subagent_redirects_it_three_times(project: Path) -> None:
    scene = in_mux(project, "answer {n}", hook=f"tee -a seen > /dev/null; {BLOCK_COMMAND}")
    result = scene.play()
    assert saved_inputs(project, "stop_hook_active") == [False, True, True, True]
    assert (handed(scene), result.outcome, result.result) == ("tool: answer 4", "completed", "home")
    assert scene.of(Continuation) == []  # its parent was not sent on
    assert [(each.outcome, each.redirects) for each in scene.of(SubagentFinished)] == [("ok", 3)]
    hook = "tee -a seen > /dev/null; echo 'run the tests' >&2; exit 2"
    limit = "Turn ended after 3 continuations (the limit). Still blocked by:"
    notice = Notice(f'subagent general-purpose: {limit} "{hook}".', "the last reason: run the tests")
    assert scene.of(Notice) == [notice]


@pytest.mark.req("S0-78", "X-20")
def test_the_parent_sees_neither_the_blocked_answer_nor_the_reason(project: Path) -> None:
    scene = in_mux(project, "the wrong answer", "the right answer", hook=block_first(1, "count again"))
    scene.play()
    assert scene.heard("main") == ["go", "agent: Task", "tool: the right answer"]
    assert [word for word in ("wrong answer", "count again") if word in scene.transcript] == []
    assert scene.transcript.count("the right answer") == 1


# Parts


def spoken(transcript: str) -> list[dict[str, Any]]:
    return [record for record in records(transcript) if "message" in record]
