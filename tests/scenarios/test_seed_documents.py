"""The sample hooks of the documents 000 and 003, word for word, installed as they say and asked for real.

Where a sample does less than its document promises, the test shows what it really does.
"""

import asyncio
import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.builders import script, stop_event, stop_hooks, world, write_settings
from tests.support.executor_cases import EXECUTOR_CASES, ExecutorCase
from tests.support.machines import Machine, ThisMachine, workspace_on
from tests.support.paths import SEEDS
from tests.support.timeouts import TIMEOUT_SCALES
from turngate.core.answers.report_types import Exited, Report, TimedOut
from turngate.core.dialect import DIALECTS, MUX, TURNGATE
from turngate.core.events.events import Event, SessionStart, StopHookInput, Subagent
from turngate.core.hooks.kinds import CommandHook, label
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import quote_name
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.core.verdict.hook_run import HookRun, outcome
from turngate.core.verdict.verdict import Continue, Stop, Verdict, unenforced, warnings
from turngate.engine import ask_hooks
from turngate.stop_hooks import StopHooksResult, run_stop_hooks
from turngate.trust.load import load_settings

PREFIX = "[Stop hook requested continuation]\n"
APPROVED = '{"decision": "approve"}\n'
TEST_CALL = {"type": "tool_call", "tool_name": "bash", "script": "make test"}
CHAIN = "npm run lint && npm run typecheck && npm run test"

Way = Literal["script", "settings"]

needs_jq = pytest.mark.skipif(
    shutil.which("jq") is None, reason="jq is not installed, and the hook reads its input with it"
)


@pytest.fixture(autouse=True)
def _own_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for fake programs comes first, and the tests are in no git repository."""
    path = (str(tmp_path / "bin"), os.path.dirname(sys.executable), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def npm(tmp_path: Path) -> Callable[[str], Path]:
    """Puts an npm on the PATH that does this."""
    return lambda body: script(tmp_path / "bin" / "npm", f"#!/bin/sh\n{body}\n")


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    return transcript(tmp_path / "chat.jsonl", said("user", "Repair the parser."))


# Document 000: what the agent is told


@pytest.mark.req("S0-49", "S0-39")
def test_the_agent_sees_the_words_of_the_exit_2_example(project: Path) -> None:
    verdict = seed_script(project, "000_exit_2.sh").ask()
    assert isinstance(verdict, Continue)
    assert verdict.prompt == (
        "[Stop hook requested continuation]\nError: Tests not run. Please run make test before stopping"
    )


@pytest.mark.req("S0-49", "S0-54")
def test_the_agent_sees_the_words_of_the_stop_sample(project: Path, chat: Path) -> None:
    verdict = seed_script(project, "000_stop.sh").ask(transcript_path=str(chat))
    assert isinstance(verdict, Continue)
    assert verdict.prompt == "[Stop hook requested continuation]\nPlease run tests before stopping"


@pytest.mark.req("S0-49", "S0-50")
def test_three_lines_of_stderr_arrive_whole_without_the_last_newline(project: Path) -> None:
    hook = install(project, "script", "printf 'one\\n\\n  three\\n' >&2; exit 2")
    assert hook.ask() == hook.refuses(Exited(2, stderr="one\n\n  three\n"), "one\n\n  three")


# Document 000: a file that is a hook


@pytest.mark.req("S0-51", "S0-52")
@pytest.mark.parametrize(("name", "event"), [("stop", "Stop"), ("subagent_stop", "SubagentStop")])
def test_an_executable_file_with_the_right_name_is_a_hook_by_itself(
    project: Path, name: str, event: str
) -> None:
    path = script(project / ".mux" / name, "#!/bin/sh\n")
    rule = Rule(
        event,
        CommandHook(str(path), args=(), id=f".mux/{name}"),
        source="script",
        file=f".mux/{name}",
        family="mux",
    )
    assert load_settings(str(project), dialect="mux") == Settings(rules=(rule,), dialect=MUX, hard_limit=10)


@pytest.mark.req("S0-51")
def test_a_file_that_is_not_executable_is_no_hook_and_a_problem(project: Path) -> None:
    script(project / ".mux" / "stop", seed("000_stop.sh"), mode=0o644)
    problem = Problem(
        file=".mux/stop",
        event="Stop",
        message=".mux/stop is not executable, so it never runs",
        hint="chmod +x .mux/stop",
    )
    found = load_settings(str(project), dialect="mux")
    assert found == Settings(dialect=MUX, hard_limit=10, problems=(problem,))


@pytest.mark.req("S0-53", "S0-24", "S0-31", "S0-32", "S0-33", "S0-34", "S0-35")
@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("way", ["script", "settings"])
def test_a_script_gets_the_same_input_as_a_command_of_the_settings(
    project: Path, chat: Path, way: Way, active: bool
) -> None:
    shown = (
        "MUX_PROJECT_DIR",
        "CLAUDE_PROJECT_DIR",
        "MUX_STOP_HOOK_ACTIVE",
        "MUX_STOP_HOOK_COUNT",
        "MUX_TRANSCRIPT_PATH",
    )
    hook = install(project, way, f"cat > stdin; pwd -P > cwd; printenv {' '.join(shown)} > env")
    assert hook.ask(transcript_path=str(chat), stop_hook_active=active) == hook.allows(Exited(0))
    assert {
        "stdin": json.loads((project / "stdin").read_text()),
        "cwd": (project / "cwd").read_text(),
        "env": dict(zip(shown, (project / "env").read_text().splitlines(), strict=True)),
    } == {
        "stdin": {
            "session_id": "s-1",
            "transcript_path": str(chat),
            "cwd": str(project),
            "permission_mode": "default",
            "hook_event_name": "Stop",
            "stop_hook_active": active,
            "continuation_count": 0,
        },
        "cwd": f"{project.resolve()}\n",
        "env": {
            "MUX_PROJECT_DIR": str(project),
            "CLAUDE_PROJECT_DIR": str(project),
            "MUX_STOP_HOOK_ACTIVE": "true" if active else "false",
            "MUX_STOP_HOOK_COUNT": "0",
            "MUX_TRANSCRIPT_PATH": str(chat),
        },
    }


@pytest.mark.req("S0-53", "S0-101")
def test_a_script_has_the_ten_seconds_of_its_document_unless_the_settings_say_else(project: Path) -> None:
    hook = install(project, "script", "echo so far; exec sleep 3600")
    for dialect in ("mux", "turngate"):
        settings = load_settings(str(project), dialect=dialect)
        assert [settings.timeout_of(rule) for rule in settings.rules] == [10.0]
    assert any(_times_out(project, hook, 0.5 * scale) for scale in TIMEOUT_SCALES)


def _times_out(project: Path, hook: "Installed", limit: float) -> bool:
    """Return whether the hook was ended after its first words."""
    write_settings(project, "mux", {"turngate": {"defaults": {"command": limit}}})
    fault = Fault(f"timed out after {limit:g} s", "timeout")
    return hook.ask() == Stop((HookRun(hook.rule, TimedOut(limit, "so far\n"), fault, timeout=limit),))


# Document 000: the sample `.mux/stop`


@pytest.mark.req("S0-54")
def test_the_stop_sample_blocks_once_and_allows_the_stop_that_follows(project: Path, chat: Path) -> None:
    hook = seed_script(project, "000_stop.sh")
    first = hook.ask(transcript_path=str(chat))
    second = hook.ask(transcript_path=str(chat), stop_hook_active=True)
    refused = hook.refuses(
        Exited(2, stderr="Please run tests before stopping\n"), "Please run tests before stopping"
    )
    assert (first, second) == (refused, hook.allows(Exited(0)))


@pytest.mark.req("S0-55")
def test_the_stop_sample_finds_a_test_call_in_a_compact_transcript(project: Path, chat: Path) -> None:
    transcript(chat, said("user", "Repair the parser."), TEST_CALL, said("assistant", "Done."))
    hook = seed_script(project, "000_stop.sh")
    assert hook.ask(transcript_path=str(chat)) == hook.allows(Exited(0))


@pytest.mark.req("T-4", "S0-55")
@pytest.mark.parametrize(
    "line",
    [
        json.dumps(TEST_CALL),
        json.dumps(dict(reversed(TEST_CALL.items())), separators=(",", ":")),
    ],
    ids=["blanks after : and ,", "script before tool_name"],
)
def test_the_stop_sample_does_not_find_a_test_call_that_is_written_in_another_way(
    project: Path, chat: Path, line: str
) -> None:
    chat.write_text(line + "\n")
    hook = seed_script(project, "000_stop.sh")
    assert hook.ask(transcript_path=str(chat)) == hook.refuses(
        Exited(2, stderr="Please run tests before stopping\n"), "Please run tests before stopping"
    )


@pytest.mark.req("S0-54")
def test_the_stop_sample_blocks_when_there_is_no_transcript(project: Path, tmp_path: Path) -> None:
    hook = seed_script(project, "000_stop.sh")
    assert hook.ask(transcript_path=str(tmp_path / "nowhere.jsonl")) == hook.refuses(
        Exited(2, stderr="Please run tests before stopping\n"), "Please run tests before stopping"
    )


@pytest.mark.req("S0-51", "S0-54")
@pytest.mark.parametrize("family", ["mux", "turngate"])
def test_the_stop_sample_works_in_both_folders_of_the_turngate_dialect(
    project: Path, chat: Path, family: str
) -> None:
    hook = seed_script(project, "000_stop.sh", family=family, dialect="turngate")
    first = hook.ask(transcript_path=str(chat))
    second = hook.ask(transcript_path=str(chat), stop_hook_active=True)
    refused = hook.refuses(
        Exited(2, stderr="Please run tests before stopping\n"), "Please run tests before stopping"
    )
    assert (first, second) == (refused, hook.allows(Exited(0)))


@pytest.mark.req("S0-51")
def test_each_dialect_runs_the_scripts_of_its_own_folders(project: Path) -> None:
    for family in ("claude", "mux", "turngate"):
        script(project / f".{family}" / "stop", "#!/bin/sh\n")
    found = {
        name: [rule.file for rule in load_settings(str(project), dialect=name).rules] for name in DIALECTS
    }
    assert found == {"turngate": [".mux/stop", ".turngate/stop"], "mux": [".mux/stop"], "claude": []}


# Document 000: the four use cases, none of which has a shebang line


@pytest.mark.req("S0-56")
def test_test_verification_wants_the_words_in_the_transcript(project: Path, chat: Path) -> None:
    hook = seed_script(project, "000_test_verification.sh")
    before = hook.ask(transcript_path=str(chat))
    transcript(chat, TEST_CALL, said("assistant", "12 tests passed."))
    after = hook.ask(transcript_path=str(chat))
    reason = "Run and verify tests pass before stopping"
    assert (before, after) == (
        hook.refuses(Exited(2, stderr=reason + "\n"), reason),
        hook.allows(Exited(0)),
    )


@pytest.mark.req("T-2", "S0-56")
def test_test_verification_is_content_with_its_own_block(project: Path, chat: Path) -> None:
    hook = seed_script(project, "000_test_verification.sh")
    refused = hook.ask(transcript_path=str(chat))
    assert isinstance(refused, Continue)
    transcript(chat, said("user", "Repair the parser."), said("user", refused.prompt))
    assert hook.ask(transcript_path=str(chat), stop_hook_active=True) == hook.allows(Exited(0))


CLEAN, ERROR = "@echo all clean", "@echo 'a.c:1: error: no semicolon'; exit 1"


@pytest.mark.req("S0-57")
@pytest.mark.parametrize(
    ("recipe", "blocks"),
    [
        pytest.param(ERROR, True, id="a linter that finds an error and fails"),
        pytest.param(f"{ERROR} >&2", True, id="one that says so on stderr"),
        pytest.param(CLEAN, False, id="a clean one"),
        pytest.param("@echo '0 errors'", True, id="a clean one that counts its errors"),
        pytest.param("@exit 1", False, id="a silent failure: make says Error, not error"),
        pytest.param(None, False, id="no Makefile"),
    ],
)
def test_lint_check_goes_by_the_word_error(project: Path, recipe: str | None, blocks: bool) -> None:
    if recipe is not None:
        (project / "Makefile").write_text(f"lint:\n\t{recipe}\n")
    hook = seed_script(project, "000_lint_check.sh")
    reason = "Fix lint errors before stopping"
    refused = hook.refuses(Exited(2, stderr=reason + "\n"), reason)
    assert hook.ask() == (refused if blocks else hook.allows(Exited(0)))


@pytest.mark.req("S0-58", "S0-31")
def test_the_commit_reminder_wants_a_clean_tree_and_counts_itself(project: Path) -> None:
    git(project, "init", "-q")
    hook = seed_script(project, "000_commit_reminder.sh")
    not_yet_committed = hook.ask()
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "all")
    clean = hook.ask()
    (project / "new.txt").write_text("new\n")
    dirty = hook.ask()
    reason = "You have uncommitted changes. Please commit or stash."
    refused = hook.refuses(Exited(2, stderr=reason + "\n"), reason)
    assert (not_yet_committed, clean, dirty) == (refused, hook.allows(Exited(0)), refused)


@pytest.mark.req("S0-58")
def test_the_commit_reminder_has_no_objection_where_there_is_no_repository(project: Path) -> None:
    hook = seed_script(project, "000_commit_reminder.sh")
    complaint = told(project, "git", "status", "--porcelain")
    assert hook.ask() == hook.allows(Exited(0, stderr=complaint.stderr))


@pytest.mark.req("S0-59", "S0-52")
@pytest.mark.parametrize("dialect", ["mux", "turngate"])
@pytest.mark.parametrize("child_works", [True, False])
def test_the_subagent_check_looks_at_the_subagent_and_not_at_its_parent(
    project: Path, tmp_path: Path, dialect: str, child_works: bool
) -> None:
    lazy, busy = [said("assistant", "Done.")], [TEST_CALL, said("assistant", "Done.")]
    parent = transcript(tmp_path / "parent.jsonl", *(lazy if child_works else busy))
    child = transcript(tmp_path / "child.jsonl", *(busy if child_works else lazy))
    hook = seed_script(project, "000_subagent_check.sh", name="subagent_stop", dialect=dialect)
    verdict = hook.ask(
        transcript_path=str(parent),
        subagent=Subagent(id="task-1", type="coder", transcript_path=str(child)),
    )
    reason = "Subagent should use tools to complete the task"
    refused = hook.refuses(Exited(2, stderr=reason + "\n"), reason)
    assert verdict == (hook.allows(Exited(0)) if child_works else refused)


# Document 000: its own list of tests for the executor


@pytest.mark.parametrize("way", ["script", "settings"])
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{requirement}: {case.body}", marks=pytest.mark.req(requirement, "S0-53"))
        for requirement, cases in EXECUTOR_CASES.items()
        for case in cases
    ],
)
def test_the_executor_does_what_its_document_tests(
    project: Path, case: ExecutorCase, way: Way, machine: Machine
) -> None:
    hook = install(project, way, case.body, timeout=case.timeout)
    named = [
        warning.replace('"HOOK"', quote_name(label(hook.rule.hook))) for warning in case.expected.warnings
    ]
    assert run(project, machine) == replace(case.expected, warnings=named)


@pytest.mark.req("S0-85", "S0-46")
def test_continue_false_of_one_hook_wins_over_the_block_of_another(project: Path) -> None:
    write_settings(project, "mux", stop_hooks("echo go on >&2; exit 2", """echo '{"continue": false}'"""))
    assert run(project) == StopHooksResult(should_stop=True)


@pytest.mark.req("S0-87", "S0-40")
def test_the_warning_about_a_failing_hook_is_logged(project: Path, state: Path) -> None:
    write_settings(project, "mux", stop_hooks("exit 1"))
    run(project)
    logged = json.loads((state / "sessions" / "s-1" / "journal.jsonl").read_text().splitlines()[-1])
    del logged["time"]
    why = "exit code 1, nothing on stderr"
    assert logged == {
        "session_id": "s-1",
        "project": str(project),
        "kind": "verdict",
        "event": "Stop",
        "verdict": "stop",
        "ended_by": "allowed",
        "prompt": None,
        "stop_reason": None,
        "runs": 1,
        "unenforced": [{"hook": "exit 1", "outcome": "failed", "why": why}],
        "warnings": [f'hook "exit 1" failed and was NOT enforced: {why}'],
    }


@pytest.mark.req("S0-61")
def test_the_result_has_the_names_of_the_document_too_and_they_cannot_be_set() -> None:
    result = StopHooksResult(should_stop=False, continue_reason="go on")
    assert (result.shouldStop, result.continueReason, result.warnings) == (False, "go on", [])
    with pytest.raises(AttributeError):
        result.shouldStop = True  # type: ignore[misc]


@pytest.mark.req("S0-65", "S0-61")
def test_the_warnings_of_all_hooks_are_returned_in_configured_order(project: Path) -> None:
    write_settings(project, "mux", stop_hooks("sleep 0.1; exit 3", "echo bad >&2; exit 1", "exit 0"))
    assert run(project) == StopHooksResult(
        should_stop=True,
        continue_reason=None,
        warnings=[
            'hook "sleep 0.1; exit 3" failed and was NOT enforced: exit code 3, nothing on stderr',
            'hook "echo bad >&2; exit 1" failed and was NOT enforced: exit code 1: bad',
        ],
    )


@pytest.mark.req("S0-61", "S0-65")
def test_a_block_comes_with_the_warnings_of_the_others(project: Path) -> None:
    write_settings(project, "mux", stop_hooks("exit 1", "echo go on >&2; exit 2"))
    assert run(project) == StopHooksResult(
        should_stop=False,
        continue_reason="go on",
        warnings=['hook "exit 1" failed and was NOT enforced: exit code 1, nothing on stderr'],
    )


@pytest.mark.req("S0-60")
def test_the_input_has_six_fields_and_two_events() -> None:
    assert [field.name for field in fields(StopHookInput)] == [
        "session_id",
        "transcript_path",
        "cwd",
        "permission_mode",
        "hook_event_name",
        "stop_hook_active",
    ]
    for name in ("Stop", "SubagentStop"):
        assert hook_input(hook_event_name=name).event().name == name


@pytest.mark.req("S0-60")
@pytest.mark.parametrize(
    ("field", "error"),
    [
        ({"hook_event_name": "Halt"}, 'hook_event_name must be "Stop" or "SubagentStop", not \'Halt\''),
        ({"session_id": None}, "session_id must be a string, not None"),
        ({"stop_hook_active": "true"}, "stop_hook_active must be true or false, not 'true'"),
    ],
)
def test_an_input_with_a_wrong_value_cannot_be_made(field: dict[str, Any], error: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        hook_input(**field)
    assert str(raised.value) == error


@pytest.mark.req("S0-63")
def test_run_stop_hooks_is_called_as_the_document_writes_it() -> None:
    called_by_place = {
        name: parameter
        for name, parameter in inspect.signature(run_stop_hooks).parameters.items()
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    }
    assert list(called_by_place) == ["runtime", "project_dir", "input"]
    assert inspect.signature(run_stop_hooks).parameters["abort"].default is None
    assert inspect.iscoroutinefunction(run_stop_hooks)


@pytest.mark.req("S0-63", "S0-62")
def test_run_stop_hooks_without_any_hook_lets_the_agent_stop(project: Path) -> None:
    assert run(project) == StopHooksResult(should_stop=True, continue_reason=None, warnings=[])


@needs_jq
@pytest.mark.req("S0-63")
def test_run_stop_hooks_asks_the_hooks_of_the_event_that_it_is_given(project: Path) -> None:
    both = {
        "hooks": {
            **stop_hooks("echo main >&2; exit 2")["hooks"],
            **stop_hooks("jq -r .session_id >&2; exit 2", event="SubagentStop")["hooks"],
        }
    }
    write_settings(project, "mux", both)
    assert [run(project), run(project, hook_event_name="SubagentStop", session_id="task-1")] == [
        StopHooksResult(should_stop=False, continue_reason="main"),
        StopHooksResult(should_stop=False, continue_reason="task-1"),
    ]


# Document 000: its own list of tests for the settings


@pytest.mark.req("S0-90", "S0-91", "S0-13", "S0-18")
def test_the_settings_of_the_document_hold_one_hook_for_each_stop(project: Path) -> None:
    write_settings(project, "mux", seed("000_settings.json"))
    stop = CommandHook("$MUX_PROJECT_DIR/.mux/hooks/stop-check.sh", timeout=30.0)
    child = CommandHook("/path/to/subagent-stop-hook.py")
    place: dict[str, Any] = {
        "source": "project",
        "file": ".mux/settings.json",
        "family": "mux",
        "index": "[0].hooks[0]",
    }
    assert load_settings(str(project), dialect="mux") == Settings(
        rules=(Rule("Stop", stop, **place), Rule("SubagentStop", child, **place)),
        dialect=MUX,
        hard_limit=10,
    )


@pytest.mark.req("S0-90", "S0-15")
def test_the_commands_of_the_documents_settings_are_run_by_a_shell(project: Path) -> None:
    write_settings(project, "mux", seed("000_settings.json"))
    script(project / ".mux" / "hooks" / "stop-check.sh", seed("000_exit_2.sh"))
    child = "/path/to/subagent-stop-hook.py"
    missing = told(project, "/bin/sh", "-c", child)
    assert missing.returncode == 127
    assert [run(project), run(project, hook_event_name="SubagentStop")] == [
        StopHooksResult(False, "Error: Tests not run. Please run make test before stopping"),
        StopHooksResult(
            should_stop=True,
            warnings=[f'hook "{child}" failed and was NOT enforced: exit code 127: {missing.stderr.strip()}'],
        ),
    ]


@pytest.mark.req("S0-15")
@pytest.mark.parametrize("quoted", [False, True])
def test_a_blank_in_the_projects_path_breaks_the_documents_command_unless_it_is_quoted(
    tmp_path: Path, quoted: bool
) -> None:
    project = tmp_path / "my project"
    words = "$MUX_PROJECT_DIR/.mux/hooks/stop-check.sh"
    as_written = seed("000_settings.json")
    corrected = as_written.replace(words, '\\"$MUX_PROJECT_DIR\\"/.mux/hooks/stop-check.sh')
    write_settings(project, "mux", corrected if quoted else as_written)
    script(project / ".mux" / "hooks" / "stop-check.sh", seed("000_exit_2.sh"))
    complaint = told(project, "/bin/sh", "-c", f"{tmp_path}/my").stderr.strip()
    works = StopHooksResult(False, "Error: Tests not run. Please run make test before stopping")
    fails = StopHooksResult(
        should_stop=True, warnings=[f'hook "{words}" failed and was NOT enforced: exit code 127: {complaint}']
    )
    assert run(project) == (works if quoted else fails)


@pytest.mark.parametrize(
    ("family", "dialect"),
    [
        pytest.param("mux", "mux", marks=pytest.mark.req("S0-92", "S0-09", "S0-10", "S0-12")),
        pytest.param("claude", "turngate", marks=pytest.mark.req("S3-15")),
    ],
)
def test_user_project_and_local_settings_become_one(
    project: Path, home: Path, family: str, dialect: str
) -> None:
    user = {**stop_hooks("user", "everywhere", timeout=5), "turngate": {"limit": 1}}
    common = {**stop_hooks("project", event="SubagentStop"), "turngate": {"limit": 2}}
    local = {**stop_hooks("local", "everywhere"), "turngate": {"limit": 5}}
    write_settings(home, family, user)
    write_settings(project, family, common)
    write_settings(project, family, local, name="settings.local.json")

    def written(level: str, number: int, command: str, event: str = "Stop", **options: Any) -> Rule:
        where = {"user": "~/.{}/settings.json", "local": ".{}/settings.local.json"}
        file = where.get(level, ".{}/settings.json").format(family)
        return Rule(
            event,
            CommandHook(command, **options),
            source=level,
            file=file,
            family=family,
            index=f"[0].hooks[{number}]",
        )

    assert load_settings(str(project), dialect=dialect) == Settings(
        rules=(
            written("user", 0, "user", timeout=5.0),
            written("user", 1, "everywhere", timeout=5.0),
            written("project", 0, "project", event="SubagentStop"),
            written("local", 0, "local"),
            written("local", 1, "everywhere"),
        ),
        dialect=DIALECTS[dialect],
        limit=5,
        hard_limit=10,
    )


@pytest.mark.req("S0-92")
def test_a_command_that_stands_in_all_three_files_runs_once(project: Path, home: Path) -> None:
    same = stop_hooks("echo asked >> log")
    write_settings(home, "mux", same)
    write_settings(project, "mux", same)
    write_settings(project, "mux", same, name="settings.local.json")
    assert run(project) == StopHooksResult(should_stop=True)
    assert (project / "log").read_text() == "asked\n"


# Document 003: the bash script that prevents loops

BURIED = (
    "its decision was not read, because there is text before its JSON: "
    "print only the JSON on stdout, and everything else on stderr"
)
FAILED = '{"decision": "block", "reason": "Tests failed. Please fix them."}\n'


@needs_jq
@pytest.mark.req("S3-27", "S3-23", "S3-24")
def test_the_loop_prevention_script_blocks_once_when_a_silent_npm_fails(
    project: Path, npm: Callable[[str], Path]
) -> None:
    npm("exit 1")
    hook = seed_command(project, "003_loop_prevention.sh")
    first, second = hook.ask(), hook.ask(stop_hook_active=True)
    refused = hook.refuses(Exited(0, FAILED), "Tests failed. Please fix them.")
    assert (first, second) == (refused, hook.allows(Exited(0, APPROVED)))


@needs_jq
@pytest.mark.req("S3-27")
def test_the_loop_prevention_script_blocks_when_npm_talks_on_stderr_alone(
    project: Path, npm: Callable[[str], Path]
) -> None:
    npm("echo 1 failing >&2; exit 1")
    hook = seed_command(project, "003_loop_prevention.sh")
    report = Exited(0, FAILED, "1 failing\n")
    assert hook.ask() == hook.refuses(report, "Tests failed. Please fix them.")


@needs_jq
@pytest.mark.req("S3-27")
def test_the_loop_prevention_script_is_reported_as_not_enforced_when_npm_prints_before_its_json(
    project: Path, npm: Callable[[str], Path]
) -> None:
    npm("echo '> parser@1.0.0 test'; exit 1")
    hook = seed_command(project, "003_loop_prevention.sh")
    verdict = hook.ask()
    assert verdict == hook.allows(Exited(0, "> parser@1.0.0 test\n" + FAILED), Fault(BURIED))
    name = label(hook.rule.hook)
    assert warnings(verdict.runs, TURNGATE) == (
        f"hook {quote_name(name)} failed and was NOT enforced: {BURIED}",
    )
    assert [(each.hook, each.outcome, each.said) for each in verdict.unenforced] == [(name, "failed", BURIED)]


@needs_jq
@pytest.mark.req("S3-27")
@pytest.mark.parametrize("printed", ["", "> parser@1.0.0 test\n"], ids=["silent", "chatty"])
def test_the_loop_prevention_script_allows_when_npm_succeeds(
    project: Path, npm: Callable[[str], Path], printed: str
) -> None:
    npm(f"printf '{printed}'")
    hook = seed_command(project, "003_loop_prevention.sh")
    assert hook.ask() == hook.allows(Exited(0, printed + APPROVED))


@needs_jq
@pytest.mark.req("T-5", "S0-24", "S3-18")
@pytest.mark.parametrize("payload", ["full", "strict"])
@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("child", [None, Subagent(id="a-1", type="coder", transcript_path="/t/a-1.jsonl")])
@pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
def test_jq_finds_each_of_the_six_fields(
    project: Path, dialect: str, child: Subagent | None, active: bool, payload: str
) -> None:
    six = "session_id,transcript_path,cwd,permission_mode,hook_event_name,stop_hook_active"
    command = (
        f"input=$(cat); echo \"$input\" | jq -r '.stop_hook_active'; echo \"$input\" | jq -c '{{{six}}}'"
    )
    family = "mux" if dialect == "mux" else "claude"
    event = stop_event(cwd=str(project), stop_hook_active=active, subagent=child)
    settings = {**stop_hooks(command, event=event.name), "turngate": {"payload": payload}}
    write_settings(project, family, settings)
    ended = ask(project, event, dialect).runs[0].report
    assert isinstance(ended, Exited)
    flag, found = ended.stdout.splitlines()
    own = child is not None and dialect != "claude"
    assert (flag, json.loads(found)) == (
        "true" if active else "false",
        {
            "session_id": "a-1" if child and dialect == "mux" else "s-1",
            "transcript_path": "/t/a-1.jsonl" if own else "/t/chat.jsonl",
            "cwd": str(project),
            "permission_mode": "default",
            "hook_event_name": "SubagentStop" if child else "Stop",
            "stop_hook_active": active,
        },
    )


# Document 003: pattern 1, the quality gate


@pytest.mark.req("T-1")
def test_the_quality_gate_of_the_document_is_read_as_it_stands(
    project: Path, npm: Callable[[str], Path]
) -> None:
    npm('echo "$@"')
    hook = quality_gate(project)
    assert load_settings(str(project)) == Settings(rules=(hook.rule,), hard_limit=10)
    assert hook.ask() == hook.allows(Exited(0, "run lint\nrun typecheck\nrun test\n"))


@pytest.mark.req("T-1", "S3-21", "S3-28")
def test_the_quality_gate_does_not_hold_when_npm_fails_with_exit_1(
    project: Path, npm: Callable[[str], Path]
) -> None:
    npm('echo "$@"; echo 3 problems >&2; exit 1')
    hook = quality_gate(project)
    verdict = hook.ask()
    assert verdict == hook.allows(Exited(1, "run lint\n", "3 problems\n"), Fault("exit code 1: 3 problems"))
    assert [outcome(each) for each in verdict.runs] == ["failed"]
    assert unenforced(verdict.runs, TURNGATE) == verdict.runs
    assert warnings(verdict.runs, TURNGATE) == (
        f'hook "{CHAIN}" failed and was NOT enforced: exit code 1: 3 problems',
    )


@pytest.mark.req("S3-28")
def test_the_quality_gate_holds_when_its_failure_is_made_to_block(
    project: Path, npm: Callable[[str], Path]
) -> None:
    npm('[ "$2" != typecheck ] || { echo 3 problems >&2; exit 1; }')
    changed = json.loads(seed("003_quality_gate.json"))
    changed["hooks"]["Stop"][0]["hooks"][0]["blocking"] = True
    write_settings(project, "claude", changed)
    verdict = ask(project, stop_event(cwd=str(project)), "turngate")
    assert isinstance(verdict, Continue)
    assert verdict.prompt == (
        f"{PREFIX}this check failed and must pass before you may stop: exit code 1: 3 problems"
    )


@pytest.mark.req("T-1", "S3-20")
def test_the_quality_gate_holds_when_npm_fails_with_exit_2_and_says_why_on_stderr(
    project: Path, npm: Callable[[str], Path]
) -> None:
    npm("echo 3 problems >&2; exit 2")
    hook = quality_gate(project)
    assert hook.ask() == hook.refuses(Exited(2, stderr="3 problems\n"), "3 problems")


@pytest.mark.req("T-1")
def test_the_quality_gate_does_not_hold_when_npm_fails_with_exit_2_and_says_why_on_stdout(
    project: Path, npm: Callable[[str], Path]
) -> None:
    npm("echo 3 problems; exit 2")
    hook = quality_gate(project)
    assert hook.ask() == hook.allows(
        Exited(2, "3 problems\n"),
        Fault("it exited with 2 but gave no reason on stderr, so it does not block", may_block=False),
    )


@pytest.mark.req("T-1")
def test_a_failing_make_blocks_by_accident(project: Path) -> None:
    (project / "Makefile").write_text("test:\n\t@echo 3 failed; exit 1\n")
    made = told(project, "make", "test")
    hook = command(project, "make test")
    assert made.returncode == 2
    assert hook.ask() == hook.refuses(Exited(2, "3 failed\n", made.stderr), made.stderr.rstrip("\n"))


# Document 003: pattern 2, the checklist

LIST = "- [x] read\n- [ ] write\n- [ ] test"


def incomplete(number: int) -> str:
    return f"Found {number} incomplete tasks. Please complete all tasks before finishing."


@pytest.mark.req("S3-40")
def test_the_checklist_blocks_while_boxes_are_open_and_the_agent_was_not_continued_already(
    project: Path, chat: Path
) -> None:
    hook = seed_command(project, "003_checklist.py.txt")
    transcript(chat, said("assistant", LIST))
    first = hook.ask(transcript_path=str(chat))
    second = hook.ask(transcript_path=str(chat), stop_hook_active=True)
    transcript(chat, said("assistant", LIST.replace("[ ]", "[x]")))
    done = hook.ask(transcript_path=str(chat))
    block = json.dumps({"decision": "block", "reason": incomplete(2)}) + "\n"
    allowed = hook.allows(Exited(0, APPROVED))
    assert (first, second, done) == (hook.refuses(Exited(0, block), incomplete(2)), allowed, allowed)


@pytest.mark.req("T-6", "S3-40")
def test_the_checklist_counts_every_open_box_in_the_transcript_also_old_and_quoted_ones(
    project: Path, chat: Path
) -> None:
    hook = seed_command(project, "003_checklist.py.txt")
    transcript(
        chat,
        said("user", "Write `- [ ]` for an open task."),
        said("assistant", LIST),
        {"type": "tool_result", "content": "README.md: - [ ] an example of another project"},
        said("assistant", LIST.replace("[ ]", "[x]")),
    )
    block = json.dumps({"decision": "block", "reason": incomplete(4)}) + "\n"
    assert hook.ask(transcript_path=str(chat)) == hook.refuses(Exited(0, block), incomplete(4))


@pytest.mark.req("S3-40", "S3-21")
def test_the_checklist_without_a_transcript_is_a_broken_hook_and_no_block(project: Path) -> None:
    hook = seed_command(project, "003_checklist.py.txt")
    verdict = hook.ask(transcript_path="")
    assert isinstance(verdict, Stop)
    assert [outcome(each) for each in unenforced(verdict.runs, TURNGATE)] == ["failed"]


# Document 003: best practices


@pytest.mark.req("T-3", "S3-20")
@pytest.mark.parametrize(
    ("redirection", "agent_is_told"),
    [
        pytest.param("2>&1 >&2", "Tests failed. Please fix:", id="as the document writes it"),
        pytest.param(">&2 2>&1", "Tests failed. Please fix:\n1 failing\nnpm ERR!", id="corrected"),
    ],
)
def test_the_exit_2_practice_tells_the_output_only_with_its_redirections_turned_round(
    project: Path, tmp_path: Path, npm: Callable[[str], Path], redirection: str, agent_is_told: str
) -> None:
    # The condition's own run is silent here, so that only the redirected one is seen.
    npm(
        f'[ -e {tmp_path}/again ] && {{ echo 1 failing; echo "npm ERR!" >&2; }}; : > {tmp_path}/again; exit 1'
    )
    body = seed("003_exit_2.sh").replace("2>&1 >&2", redirection)
    hook = command(project, body)
    on_stdout = "" if "1 failing" in agent_is_told else "1 failing\nnpm ERR!\n"
    assert hook.ask() == hook.refuses(Exited(2, on_stdout, agent_is_told + "\n"), agent_is_told)


@pytest.mark.req("T-3")
def test_the_exit_2_practice_tells_what_npm_says_on_stderr_while_the_condition_runs(
    project: Path, npm: Callable[[str], Path]
) -> None:
    npm('echo 1 failing; echo "npm ERR!" >&2; exit 1')
    hook = command(project, seed("003_exit_2.sh"))
    reason = "npm ERR!\nTests failed. Please fix:"
    assert hook.ask() == hook.refuses(Exited(2, "1 failing\n1 failing\nnpm ERR!\n", reason + "\n"), reason)


@pytest.mark.req("S0-37")
def test_the_exit_2_practice_allows_when_npm_succeeds(project: Path, npm: Callable[[str], Path]) -> None:
    npm("echo 12 passing")
    hook = command(project, seed("003_exit_2.sh"))
    assert hook.ask() == hook.allows(Exited(0, "12 passing\n"))


@pytest.mark.req("S3-27")
def test_the_practice_of_checking_the_flag_approves_the_second_stop(project: Path) -> None:
    before = "import json, sys\ninput_data = json.load(sys.stdin)\n"
    after = """print('{"decision": "block", "reason": "not yet"}')\n"""
    body = before + seed("003_check_active.py.txt") + after
    script(project / ".claude" / "hooks" / "stop.py", body)
    hook = command(project, 'python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/stop.py')
    first, second = hook.ask(), hook.ask(stop_hook_active=True)
    block = '{"decision": "block", "reason": "not yet"}\n'
    assert (first, second) == (
        hook.refuses(Exited(0, block), "not yet"),
        hook.allows(Exited(0, APPROVED)),
    )


# Document 003: pattern 4, memory at the start of a session


@pytest.mark.req("T-7", "S3-43")
@pytest.mark.parametrize(
    ("memories", "printed"),
    [
        pytest.param({}, "No active plans\n", id="no plan"),
        pytest.param({"a": "alpha\n", "b": "beta\n"}, "alpha\nbeta\n", id="two plans"),
        pytest.param({"a": ""}, "", id="an empty one: cat succeeds and prints nothing"),
        pytest.param({"a": "alpha\n", "b": None}, "alpha\nNo active plans\n", id="one that cat cannot read"),
    ],
)
def test_context_injection_prints_the_plans_or_that_cat_failed(
    project: Path, memories: dict[str, str | None], printed: str
) -> None:
    write_plans(project, memories)
    hook = session_start(
        project,
        "003_context_injection.json",
        "cat docs/plans/*/MEMORY.md 2>/dev/null || echo 'No active plans'",
    )
    assert hook.ask_at_start() == hook.allows(Exited(0, printed))


@pytest.mark.req("T-7", "S3-54")
@pytest.mark.parametrize(
    ("memories", "printed"),
    [
        pytest.param({}, "", id="no plan: head succeeds, whatever cat says"),
        pytest.param({"a": "alpha\n"}, "alpha\n", id="one plan"),
        pytest.param({"a": "line\n" * 300}, "line\n" * 100, id="a long one"),
    ],
)
def test_memory_loading_prints_a_hundred_lines_or_nothing_at_all(
    project: Path, memories: dict[str, str | None], printed: str
) -> None:
    write_plans(project, memories)
    hook = session_start(
        project, "003_memory_loading.json", "cat docs/plans/*/MEMORY.md 2>/dev/null | head -100"
    )
    assert hook.ask_at_start() == hook.allows(Exited(0, printed))


@pytest.mark.req("S3-43")
def test_what_the_stop_hook_in_the_home_folder_writes_is_there_at_the_next_start(
    project: Path, home: Path
) -> None:
    write_plans(project, {"a": "alpha\n"})
    update = "open('docs/plans/a/MEMORY.md', 'a').write('stopped\\n')\n"
    script(home / ".claude" / "hooks" / "update_memory.py", update, mode=0o644)
    start = session_start(
        project,
        "003_context_injection.json",
        "cat docs/plans/*/MEMORY.md 2>/dev/null || echo 'No active plans'",
    )
    stop = replace(
        start,
        rule=replace(start.rule, event="Stop", hook=CommandHook("python3 ~/.claude/hooks/update_memory.py")),
    )
    assert stop.ask() == stop.allows(Exited(0))
    assert start.ask_at_start() == start.allows(Exited(0, "alpha\nstopped\n"))


@pytest.mark.req("S3-43", "S0-104")
@pytest.mark.parametrize("dialect", ["turngate", "claude"])
def test_a_stop_hook_whose_python_file_is_missing_has_failed(project: Path, home: Path, dialect: str) -> None:
    write_settings(project, "claude", seed("003_context_injection.json"))
    missing = told(project, "python3", f"{home}/.claude/hooks/update_memory.py")
    verdict = ask(project, stop_event(cwd=str(project)), dialect)
    why = f"exit code 2: {missing.stderr.rstrip()}"
    assert [each.decision for each in verdict.runs] == [
        Fault(f"its script appears to be missing, so it does not block: {why}")
    ]


# How hooks are installed and asked


@dataclass(frozen=True)
class Installed:
    """A hook in a project, and what the verdicts on it look like."""

    project: Path
    rule: Rule
    dialect: str

    def ask(self, **about: Any) -> Verdict:
        return ask(self.project, stop_event(**{"cwd": str(self.project), **about}), self.dialect)

    def ask_at_start(self) -> Verdict:
        event = SessionStart(session_id="s-1", cwd=str(self.project))
        return ask(self.project, event, self.dialect)

    def allows(self, report: Report, decision: Decision | None = None) -> Stop:
        return Stop((self._run(report, decision or Allow()),))

    def refuses(self, report: Report, reason: str) -> Continue:
        prefix = PREFIX if self.rule.event == "Stop" else ""
        return Continue((self._run(report, Block(reason)),), prefix + reason)

    def _run(self, report: Report, decision: Decision) -> HookRun:
        dialect = "mux" if self.rule.family == "mux" else self.dialect
        limit = self.rule.hook.timeout or DIALECTS[dialect].timeouts["command"]
        return HookRun(self.rule, report, decision, timeout=limit)


def ask(project: Path, event: Event, dialect: str) -> Verdict:
    """The verdict, without the seconds that it took."""
    settings = load_settings(str(project), dialect=dialect)
    verdict = asyncio.run(ask_hooks(event, settings, world(project)))
    return replace(verdict, runs=tuple(replace(each, seconds=0.0) for each in verdict.runs))


def run(project: Path, machine: Machine | None = None, **about: Any) -> StopHooksResult:
    given = hook_input(cwd=str(project), **about)
    machine = machine or ThisMachine()
    place = workspace_on(machine, project)
    return machine.run(run_stop_hooks(place, str(project), given, dialect="mux"))


def hook_input(**about: Any) -> StopHookInput:
    usual: dict[str, Any] = {
        "session_id": "s-1",
        "transcript_path": "/t/chat.jsonl",
        "cwd": "/p",
        "permission_mode": "default",
        "hook_event_name": "Stop",
        "stop_hook_active": False,
    }
    return StopHookInput(**{**usual, **about})


def install(project: Path, way: Way, body: str, timeout: float | None = None) -> Installed:
    """The same Stop hook as `.mux/stop` or as a command in `.mux/settings.json`."""
    limits = {"turngate": {"defaults": {"command": timeout}}} if timeout else {}
    if way == "settings":
        write_settings(project, "mux", {**stop_hooks(body), **limits})
        return Installed(project, _written(CommandHook(body), family="mux"), "mux")
    if limits:
        write_settings(project, "mux", limits)
    return _script(project, f"#!/bin/sh\n{body}\n")


def seed_script(
    project: Path, sample: str, *, name: str = "stop", family: str = "mux", dialect: str = "mux"
) -> Installed:
    return _script(project, seed(sample), name=name, family=family, dialect=dialect)


def _script(
    project: Path, body: str, *, name: str = "stop", family: str = "mux", dialect: str = "mux"
) -> Installed:
    path = script(project / f".{family}" / name, body)
    event = {"stop": "Stop", "subagent_stop": "SubagentStop"}[name]
    hook = CommandHook(str(path), args=(), id=f".{family}/{name}")
    rule = Rule(event, hook, source="script", file=f".{family}/{name}", family=family)
    return Installed(project, rule, dialect)


def seed_command(project: Path, sample: str) -> Installed:
    """A sample with a shebang line, as an executable that the settings name."""
    name = sample.removesuffix(".txt")
    script(project / ".claude" / "hooks" / name, seed(sample))
    return command(project, f'"$CLAUDE_PROJECT_DIR"/.claude/hooks/{name}')


def command(project: Path, words: str) -> Installed:
    write_settings(project, "claude", stop_hooks(words))
    return Installed(project, _written(CommandHook(words)), "turngate")


def quality_gate(project: Path) -> Installed:
    write_settings(project, "claude", seed("003_quality_gate.json"))
    return Installed(project, _written(CommandHook(CHAIN, timeout=120.0), matcher=""), "turngate")


def session_start(project: Path, sample: str, words: str) -> Installed:
    write_settings(project, "claude", seed(sample))
    rule = _written(CommandHook(words), event="SessionStart", matcher="")
    return Installed(project, rule, "turngate")


def _written(
    hook: CommandHook, *, event: str = "Stop", family: str = "claude", matcher: str | None = None
) -> Rule:
    return Rule(event, hook, matcher, "project", f".{family}/settings.json", family, "[0].hooks[0]")


def seed(name: str) -> str:
    return (SEEDS / name).read_bytes().decode()


def transcript(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return path


def said(role: str, words: str) -> dict[str, Any]:
    content: Any = words if role == "user" else [{"type": "text", "text": words}]
    return {"type": role, "message": {"role": role, "content": content}}


def write_plans(project: Path, memories: dict[str, str | None]) -> None:
    """One MEMORY.md per plan; None: a folder of that name, which cat cannot print."""
    for plan, text in memories.items():
        path = project / "docs" / "plans" / plan / "MEMORY.md"
        path.parent.mkdir(parents=True)
        if text is None:
            path.mkdir()
        else:
            path.write_text(text)


def git(project: Path, *words: str) -> None:
    me = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *me, *words], cwd=project, check=True, capture_output=True)


def told(project: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """What a program says by itself, without any hook around it."""
    return subprocess.run(words, cwd=project, check=False, capture_output=True, text=True)
