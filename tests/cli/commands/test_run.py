"""`turngate run -p`, as a person and as a program would call it."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.live_models import block_real_providers, run_arguments, serve_model
from tests.support.scripted_run import as_json, running, scripted, turngate
from tests.support.sessions import (
    BLOCK_COMMAND,
    SAVE_INPUT,
    block_first,
    hang,
    lines,
    saved_inputs,
    say,
    survives,
    wait_for_file_sync,
)
from tests.support.terminal import Terminal
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import run as warm_run
from turngate.cli.main import main
from turngate.core.text import quote_name

TOLD = "[Stop hook requested continuation]\nrun the tests"
HALT = say({"continue": False, "stopReason": "enough"})
QUESTION = {"tool": "AskUser", "input": {"question": "red or blue?"}}


# What is printed


def test_as_text_the_answer_is_on_stdout_and_nothing_else(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(block_first(1)))
    assert turngate(capfd, project, "go") == (0, "answer 2\n", "")


def test_as_text_notices_are_on_stderr(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(say({"systemMessage": "well done"}), "exit 1"))
    assert turngate(capfd, project, "go") == (
        0,
        "answer 1\n",
        (
            '! well done\n! hook "exit 1" failed and was NOT enforced: exit code 1, nothing on stderr\n'
            "  → to block, a hook exits with code 2 and prints the reason on stderr\n"
        ),
    )


def test_as_text_the_last_reason_at_the_limit_is_shown_and_bounded(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("seq 12 >&2; exit 2", id="tests"))
    numbers = "\n".join(f"    {number}" for number in range(2, 11))
    assert turngate(capfd, project, "go", "--limit", "0") == (
        10,
        "answer 1\n",
        (
            '! Turn ended after 0 continuations (the limit). Still blocked by: "tests".\n'
            f"  → the last reason: 1\n{numbers}\n    … 2 more lines; `turngate log -v` shows all of it\n"
        ),
    )


def test_as_text_a_question_is_printed(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert turngate(capfd, project, "go", replies=(QUESTION,)) == (12, "red or blue?\n", "")


@pytest.mark.req("U-10")
def test_as_json_it_is_one_object_with_exactly_these_fields(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = f"echo looked; {block_first(1)}"
    write_settings(project, "turngate", stop_hooks(command))
    call = {"tool": "Bash", "input": {"command": "true"}}
    result = as_json(
        capfd, project, "go", "--session", "s-1", "--allow", "Bash", replies=(call, "one", "two")
    )
    assert isinstance(result.pop("duration_ms"), int)
    usage = result.pop("usage")
    assert usage.keys() == {"input_tokens", "output_tokens"}
    assert all(isinstance(tokens, int) and tokens > 0 for tokens in usage.values())
    for run in result["hook_runs"]:
        assert isinstance(run.pop("seconds"), float)
    hook = {"type": "command", "command": command, "timeout": 60.0}
    common = {
        "hook": hook,
        "source": "project",
        "file": ".turngate/settings.json",
        "stdout": "looked\n",
        "notice": None,
    }
    assert result == {
        "type": "result",
        "outcome": "completed",
        "ended_by": "allowed",
        "stop_reason": None,
        "result": "two",
        "session_id": "s-1",
        "project": str(project),
        "transcript_path": f"{state}/sessions/s-1/chat.jsonl",
        "continuations": 1,
        "model_requests": 3,
        "tool_calls": 1,
        "cost_usd": None,
        "hook_runs": [
            {
                **common,
                "outcome": "block",
                "reason": "run the tests",
                "exit_code": 2,
                "stderr": "run the tests\n",
            },
            {**common, "outcome": "allow", "reason": None, "exit_code": 0, "stderr": ""},
        ],
        "unenforced": [],
        "notices": [],
        "subagents": [],
        "blocked_subagents": [],
    }


def test_as_json_the_fields_come_in_the_documented_order(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert list(as_json(capfd, project, "go")) == [
        "type",
        "outcome",
        "ended_by",
        "stop_reason",
        "result",
        "session_id",
        "project",
        "transcript_path",
        "continuations",
        "model_requests",
        "tool_calls",
        "usage",
        "cost_usd",
        "duration_ms",
        "hook_runs",
        "unenforced",
        "notices",
        "subagents",
        "blocked_subagents",
    ]


OUTCOMES: list[tuple[str, tuple[Any, ...], list[str], dict[str, Any]]] = [
    ("true", ("a",), [], {"outcome": "completed", "ended_by": "allowed", "stop_reason": None, "result": "a"}),
    (BLOCK_COMMAND, ("a",), ["--limit", "1"], {"outcome": "capped", "ended_by": "capped", "result": "a"}),
    (BLOCK_COMMAND, ("a",), ["--limit", "9"], {"outcome": "capped", "ended_by": "stalled", "result": "a"}),
    (HALT, ("a",), [], {"outcome": "halted", "ended_by": "halted", "stop_reason": "enough", "result": "a"}),
    (
        "true",
        ({**QUESTION, "text": "hm"},),
        [],
        {"outcome": "waiting", "ended_by": "question", "result": "hm"},
    ),
    (
        BLOCK_COMMAND,
        ("a",),
        ["--max-turns", "1"],
        {"outcome": "error", "ended_by": "max_turns", "result": "a"},
    ),
    (block_first(1), ("a", {"error": "auth"}), [], {"outcome": "error", "ended_by": "error", "result": "a"}),
]


@pytest.mark.parametrize(("hook", "replies", "words", "fields"), OUTCOMES)
def test_each_outcome_is_named_and_keeps_the_last_answer(
    project: Path,
    capfd: pytest.CaptureFixture[str],
    hook: str,
    replies: tuple[Any, ...],
    words: list[str],
    fields: dict[str, Any],
) -> None:
    write_settings(project, "turngate", stop_hooks(hook))
    result = as_json(capfd, project, "go", *words, replies=replies)
    assert {key: result[key] for key in fields} == fields


def test_what_was_not_enforced_stands_in_the_result(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("exit 3"))
    result = as_json(capfd, project, "go")
    why = "exit code 3, nothing on stderr"
    assert (result["unenforced"], result["notices"]) == (
        [{"hook": "exit 3", "outcome": "failed", "why": why}],
        [f'hook "exit 3" failed and was NOT enforced: {why}'],
    )


def test_as_stream_json_each_event_is_a_line_and_the_result_is_the_last(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(block_first(1)))
    call = {"text": "see", "tool": "Bash", "input": {"command": "echo hi"}}
    words = ("go", "--output-format", "stream-json", "--allow", "Bash")
    code, out, err = turngate(capfd, project, *words, replies=(call, "one", "two"))
    events = [json.loads(line) for line in out.splitlines()]
    seconds = [event.pop("seconds") for event in events if "seconds" in event]
    hook = {"event": "Stop", "hook": block_first(1)}
    for event in events:
        if "hook" in event:
            event["hook"] = block_first(1)  # shown shortened
    assert events[:-1] == [
        {"type": "text_delta", "text": "see"},
        {"type": "tool_started", "id": "tool-1", "name": "Bash", "input": {"command": "echo hi"}},
        {"type": "tool_finished", "id": "tool-1", "name": "Bash", "content": "hi", "is_error": False},
        {"type": "text_delta", "text": "one"},
        {"type": "stream_end", "text": "one", "stop_hook_active": False},
        {"type": "hook_started", **hook, "timeout": 60},
        {"type": "hook_finished", **hook, "outcome": "block", "said": "run the tests"},
        {"type": "continuation", "prompt": TOLD, "count": 1, "limit": 3},
        {"type": "text_delta", "text": "two"},
        {"type": "stream_end", "text": "two", "stop_hook_active": True},
        {"type": "hook_started", **hook, "timeout": 60},
        {"type": "hook_finished", **hook, "outcome": "allow", "said": None},
        {"type": "turn_end", "outcome": "completed", "ended_by": "allowed"},
    ]
    assert (events[-1]["type"], events[-1]["result"], code, err, len(seconds)) == ("result", "two", 0, "", 3)


def test_as_stream_json_the_answer_is_out_before_its_hook_ends(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(hang()))
    with running(project, "--output-format", "stream-json", replies=("done",)) as process:
        wait_for_file_sync(project / "pid")
        assert process.stdout is not None
        kinds = [json.loads(process.stdout.readline())["type"] for _ in range(3)]
        process.send_signal(signal.SIGINT)
        process.wait(timeout=HANG_TIMEOUT_S)
    assert kinds == ["text_delta", "stream_end", "hook_started"]


# Exit codes


CODES: list[tuple[str, tuple[Any, ...], list[str], int]] = [
    ("true", ("a",), [], 0),
    (block_first(1), ("a",), [], 0),
    (BLOCK_COMMAND, ("a",), [], 10),
    (BLOCK_COMMAND, ("a",), ["--limit", "9"], 10),
    (BLOCK_COMMAND, ("a",), ["--limit", "0"], 10),
    (HALT, ("a",), [], 11),
    ("true", (QUESTION,), [], 12),
    ("exit 1", ("a",), [], 0),
    ("exit 1", ("a",), ["--strict"], 13),
    ("/no/such/program", ("a",), ["--strict"], 13),
    ("true", ("a",), ["--strict"], 0),
    (BLOCK_COMMAND, ("a",), ["--strict"], 10),
    ("true", ({"error": "auth"},), [], 20),
    ("true", ({"tool": "Read", "input": {"file_path": "x"}},), ["--max-turns", "2"], 20),
    ("true", (), [], 20),
    (BLOCK_COMMAND, ("a",), ["--no-hooks"], 0),
]


@pytest.mark.parametrize(("hook", "replies", "words", "code"), CODES)
def test_the_exit_code_tells_how_it_ended(
    project: Path,
    capfd: pytest.CaptureFixture[str],
    hook: str,
    replies: tuple[Any, ...],
    words: list[str],
    code: int,
) -> None:
    write_settings(project, "turngate", stop_hooks(hook))
    assert turngate(capfd, project, "go", *words, replies=replies)[0] == code


def test_a_prompt_that_a_hook_blocks_is_a_halt(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("echo no secrets >&2; exit 2", event="UserPromptSubmit"))
    assert turngate(capfd, project, "go") == (11, "", "! a hook blocked the prompt: no secrets\n")


def test_why_a_turn_ended_is_reported(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    halt = """echo '{"continue": false, "stopReason": "enough"}'"""
    write_settings(project, "turngate", stop_hooks(halt))
    assert turngate(capfd, project, "go")[2] == "! turn ended (halted): enough\n"
    assert turngate(capfd, project, "go", "--max-turns", "0")[1:] == (
        "",
        "! turn ended (max_turns): the limit of 0 model requests is reached\n",
    )


def test_a_turn_that_ends_because_a_call_is_deferred_says_so(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = {"permissionDecision": "defer", "permissionDecisionReason": "later"}
    output = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **answer}})
    write_settings(project, "turngate", stop_hooks(f"echo {shlex.quote(output)}", event="PreToolUse"))
    replies = ({"tool": "Bash", "input": {"command": "true"}}, "done")
    assert turngate(capfd, project, "go", "--allow", "Bash", replies=replies) == (
        12,
        "",
        "! turn ended (tool_deferred): a hook deferred Bash: later\n",
    )


def test_a_session_of_another_dialect_is_not_resumed(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    turngate(capfd, project, "go", "--session", "one")
    code, _, said = turngate(capfd, project, "go", "--resume", "--dialect", "mux")
    assert (code, f"there is no session of {project} to resume" in said) == (64, True)


USAGE = [
    (["run", "-p"], "-p needs a prompt"),
    (["run", "-p", "  "], "-p needs a prompt"),
    (["run", "-p", "go", "--output-format", "xml"], "invalid choice: 'xml'"),
    (["run", "-p", "go", "--limit", "-1"], "argument --limit"),
    (["run", "-p", "go", "--permission-mode", "yolo"], "invalid choice: 'yolo'"),
    (["run", "-p", "go", "--project", "/no/such/folder"], "there is no folder /no/such/folder"),
    (["run", "-p", "go", "--model", "scripted:/no/such/file"], "the script /no/such/file cannot be read"),
    (["run", "-p", "go", "--model", "nobody:x"], "unknown provider 'nobody'"),
    (
        ["run", "-p", "go", "--resume", "--model", "scripted:/dev/null"],
        "the script /dev/null cannot be read: it is not a regular file",
    ),
    (["sessions", "show"], "which session?"),
    (["sessions", "show", "absent"], "there is no session absent"),
    (["sessions", "burn"], "invalid choice: 'burn'"),
    (["log", "--session", "absent"], "there is no session absent"),
    (["log"], "no hook has run yet"),
]


@pytest.mark.parametrize(("words", "said"), USAGE)
def test_wrong_usage_is_one_sentence_and_64(
    capfd: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    code = main(words)
    out, err = capfd.readouterr()
    assert (code, out, err.count("\n"), said in err) == (64, "", 1, True)


def test_without_a_model_one_clear_sentence_says_how_to_give_one(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = main(["run", "-p", "go", "--project", str(project)])
    out, err = capfd.readouterr()
    assert (code, out, err) == (
        64,
        "",
        "turngate: no model given: pass --model PROVIDER:NAME or --model scripted:FILE, or set ANTHROPIC_API_KEY or OPENAI_API_KEY\n",
    )


def test_a_prompt_on_stdin_has_a_limit(project: Path) -> None:
    words = ["run", "-p", "-", "--project", str(project), "--model", scripted(project, "done")]
    with open("/dev/zero", "rb") as zeros:
        done = subprocess.run(
            [sys.executable, "-m", "turngate", *words],
            stdin=zeros,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        64,
        "turngate: the prompt on stdin has over 10,000,000 characters; write it to a file, and name that\n",
    )


def test_the_settings_may_name_a_script_as_the_model(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", {"turngate": {"model": scripted(project, "from the settings")}})
    code = main(["run", "-p", "go", "--project", str(project)])
    assert (code, capfd.readouterr().out) == (0, "from the settings\n")


# What is given


@pytest.mark.parametrize("given", ["fix it\nand test it\n", "café ☕"])
def test_a_dash_reads_the_prompt_from_stdin(project: Path, given: str) -> None:
    write_settings(project, "turngate", stop_hooks(SAVE_INPUT, event="UserPromptSubmit"))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "turngate",
            "run",
            "-p",
            "-",
            "--project",
            str(project),
            "--model",
            scripted(project, "done"),
        ],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr, saved_inputs(project, "prompt")) == (
        0,
        "done\n",
        "",
        [given],
    )


def test_the_dialect_decides_which_settings_are_read_and_what_the_agent_gets(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "claude", stop_hooks(block_first(1)))
    prompts = [
        [json.loads(line)["prompt"] for line in out.splitlines() if '"continuation"' in line]
        for dialect in ("mux", "claude")
        for out in (
            turngate(capfd, project, "go", "--dialect", dialect, "--output-format", "stream-json")[1],
        )
    ]
    assert prompts == [[], [f"Stop hook feedback:\n[{block_first(1)}]: run the tests\n"]]


@pytest.mark.req("U-08")
def test_options_reach_the_session(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(SAVE_INPUT))
    write = {"tool": "Write", "input": {"file_path": "a.txt", "content": "x"}}
    words = ("--permission-mode", "acceptEdits", "--limit", "7", "--session", "mine")
    turngate(capfd, project, "go", *words, replies=(write, "done"))
    assert saved_inputs(project, "permission_mode", "max_continuations", "session_id") == [
        ("acceptEdits", 7, "mine")
    ]
    assert (project / "a.txt").exists()


@pytest.mark.parametrize("words", [["--session", "s-1"], ["--resume"], ["--resume", "--session", "s-1"]])
def test_a_session_continues_with_its_conversation(
    project: Path, capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    turngate(capfd, project, "first", "--session", "s-1")
    result = as_json(capfd, project, "second", *words)
    asked = [
        record["message"]["content"]
        for record in map(json.loads, lines(Path(result["transcript_path"])))
        if record["type"] == "user"
    ]
    assert (result["session_id"], asked) == ("s-1", ["first", "second"])


def test_a_session_of_the_mux_dialect_is_found_again(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    turngate(capfd, project, "first", "--dialect", "mux", "--session", "s-1")
    result = as_json(capfd, project, "second", "--dialect", "mux", "--resume")
    main(["sessions"])
    assert (result["session_id"], " s-1 " in capfd.readouterr().out) == ("s-1", True)
    assert main(["sessions", "show", "s-1"]) == 0


def test_only_a_session_of_this_project_is_resumed(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").mkdir()
    turngate(capfd, project, "mine", "--session", "s-1")
    turngate(capfd, tmp_path / "other", "somebody else's", "--session", "s-2")
    assert as_json(capfd, project, "go on", "--resume")["session_id"] == "s-1"


def test_with_nothing_to_resume_it_says_so(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = turngate(capfd, project, "go", "--resume")
    said = f"turngate: there is no session of {project} to resume; `turngate sessions` lists all of them\n"
    assert (code, out, err) == (64, "", said)


def test_a_settings_file_that_cannot_be_read_is_a_visible_notice(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", '{"hooks": {"Stop": [,]}}')
    code, out, err = turngate(capfd, project, "go")
    assert (code, out, ".turngate/settings.json" in err) == (0, "answer 1\n", True)


def installed(folder: Path, name: str, code: str) -> None:
    """Install a package that provides a plugin."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[turngate.plugins]\n{name} = {name}:Plugin\n")


@pytest.mark.parametrize(("named", "told"), [(["telemetry_a"], ["allowed 1"]), ([], [])])
@pytest.mark.req("S1-01", "S1-02")
def test_an_installed_plugin_is_notified_only_if_the_settings_name_it(
    project: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    named: list[str],
    told: list[str],
) -> None:
    code = (
        "from pathlib import Path\n"
        "class Plugin:\n"
        "    def stop(self, told):\n"
        f"        Path({str(project / 'told')!r}).write_text(f'{{told.ended_by}} {{told.turns_count}}')\n"
    )
    installed(project.parent, "telemetry_a", code)
    monkeypatch.syspath_prepend(str(project.parent))
    write_settings(project, "turngate", {"turngate": {"plugins": named}})
    assert turngate(capfd, project, "go")[0] == 0
    assert lines(project / "told") == told


def test_a_plugin_that_is_not_installed_is_one_sentence(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", {"turngate": {"plugins": ["absent"]}})
    said = "turngate: the settings enable the plugin 'absent', which is not installed; installed: none\n"
    assert turngate(capfd, project, "go") == (64, "", said)


@pytest.mark.req("X-01")
def test_a_plugin_that_cannot_be_loaded_is_named(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(project.parent, "telemetry_b", "raise ValueError('broken')\n")
    monkeypatch.syspath_prepend(str(project.parent))
    write_settings(project, "turngate", {"turngate": {"plugins": ["telemetry_b"]}})
    code, _, err = turngate(capfd, project, "go")
    assert ("telemetry_b" in err, "internal error" in err, code == 70) == (True, False, False)


@pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
def test_a_hook_that_takes_long_is_named_on_stderr(project: Path, event: str) -> None:
    command = "until [ -s err ]; do sleep 0.05; done"
    write_settings(project, "turngate", stop_hooks(command, event=event, id="slow", timeout=60))
    words = [sys.executable, "-m", "turngate", "run", "-p", "go", "--model", scripted(project, "done")]
    with (project / "err").open("w") as err:
        done = subprocess.run(
            words, cwd=project, stdout=subprocess.PIPE, stderr=err, check=False, timeout=HANG_TIMEOUT_S
        )
    assert (done.stdout, (project / "err").read_text()) == (
        b"done\n",
        'waiting for hook "slow" (at most 60 s) …\n',
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            '{"hooks": {"Stopp": []}}',
            'Stopp: is not a known event, so its hooks never run\n  → did you mean "Stop"?',
        ),
        (
            "{",
            "not JSON at line 1, column 2: expecting property name enclosed in double quotes; none of its hooks run",
        ),
    ],
)
def test_hooks_that_could_not_be_read_are_reported_and_strict_fails(
    content: str, said: str, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", content)
    assert [
        turngate(capfd, project, "go", *more) for more in ([], ["--strict"], ["--strict", "--no-hooks"])
    ] == [(code, "answer 1\n", f"! .turngate/settings.json: {said}\n") for code in (0, 13, 0)]


# Signals


PHASES: list[tuple[str, dict[str, str], Any]] = [
    ("model", {"UserPromptSubmit": "echo $$ > pid"}, {"text": "x", "delay": 60}),
    ("tool", {}, {"tool": "Bash", "input": {"command": hang()}}),
    ("hook", {"Stop": hang()}, "done"),
    ("start", {"SessionStart": hang()}, "done"),
]


@pytest.mark.req("S0-99", "S0-102", "S3-14", "S3-17")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(("phase", "hooks", "reply"), PHASES, ids=[phase[0] for phase in PHASES])
def test_a_signal_ends_the_run_in_every_phase(
    project: Path, number: int, code: int, phase: str, hooks: dict[str, str], reply: Any
) -> None:
    rules = {"SessionEnd": SAVE_INPUT, **hooks}
    write_settings(
        project,
        "turngate",
        {"hooks": {e: [{"hooks": [{"type": "command", "command": c}]}] for e, c in rules.items()}},
    )
    with running(project, "--allow", "Bash", "--output-format", "json", replies=(reply, "late")) as process:
        pid = wait_for_file_sync(project / "pid")
        time.sleep(0.2 if phase == "model" else 0)
        process.send_signal(number)
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    result = json.loads(out)
    assert (process.returncode, err, result["outcome"], result["ended_by"]) == (
        code,
        "",
        "interrupted",
        "interrupt",
    )
    assert (result["model_requests"] <= 1, survives(pid)) == (True, False)
    assert saved_inputs(project, "hook_event_name", "reason") == [("SessionEnd", "other")]


def test_hooks_in_the_background_are_ended_with_the_run(project: Path) -> None:
    detached: dict[str, Any] = {"async": True}
    write_settings(project, "claude", stop_hooks(hang(), **detached))
    with running(project, "--dialect", "claude", replies=({"text": "done", "delay": 0.2},)) as process:
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    assert (process.returncode, out, err) == (
        0,
        "done\n",
        f"! background hooks killed because they were still running: {quote_name(hang())}\n",
    )
    assert not (project / "pid").exists() or not survives((project / "pid").read_text().strip())


# Tokens and cost


def test_the_result_has_the_price_of_a_known_model(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block_real_providers(monkeypatch)
    used = {"usage": {"input_tokens": 1000, "output_tokens": 100}}
    call = {"tool": "Bash", "input": {"command": "true"}, **used}
    with serve_model(monkeypatch, call, {"text": "done", **used}):
        done = warm_run(run_arguments(project, "go", "--output-format", "json"))
    result = json.loads(done.stdout)
    assert result["usage"] == {"input_tokens": 2000, "output_tokens": 200}
    assert 0.001 < result["cost_usd"] < 0.1  # what the table of prices says today


def test_without_a_known_price_the_cost_is_null(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = as_json(capfd, project, "go")
    assert (result["usage"]["output_tokens"] > 0, result["cost_usd"]) == (True, None)


def test_the_totals_are_printed_on_stderr_only_at_a_terminal(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert turngate(capfd, project, "go") == (0, "answer 1\n", "")
    with Terminal("run", "-p", "go", "--model", scripted(project, "fine"), cwd=project) as terminal:
        terminal.expect("fine\n")
        terminal.expect("  1 model request, ")
        terminal.expect(" s\n")
        assert terminal.end() == 0
