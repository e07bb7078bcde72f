"""`turngate runs`: children that work in one process, looked at, steered, killed and recovered from another."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import PROGRESS, start_turngate, turngate, turngate_with_progress
from tests.support.left_behind import STUCK, asked, left_behind, listed, scripted, session, task, until
from tests.support.sessions import SAVE_INPUT, block_first, hang, saved_inputs, wait_for_file_sync
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import Program
from turngate.cli.commands.runs.summary import SubagentSummary, format_details, format_table
from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.registry import Registry

NOON = time.mktime((2026, 11, 15, 12, 0, 0, 0, 0, -1))
NO_SUBAGENTS = "there are no subagents; a session starts one with the Task tool"


def result(process: Program) -> dict[str, Any]:
    out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    assert (process.returncode, err) == (0, "")
    said = json.loads(out)
    assert isinstance(said, dict)
    return said


def conversation(path: str | Path) -> list[str]:
    """What was said, one text for each message that has one."""
    found = []
    for line in Path(path).read_text().splitlines():
        message = json.loads(line).get("message", {})
        content = message.get("content", "")
        blocks = [{"text": content}] if isinstance(content, str) else content
        found += [block["text"] for block in blocks if block.get("text")]
    return found


def run(identity: str = "3fa9c0de" * 4, **fields: Any) -> SubagentRun:
    known = {
        "chain": identity,
        "agent_id": "a-1",
        "agent_type": "Explore",
        "parent": "5e55104a-0000",
        "label": "count files",
        "task": "Count the files.",
        "prompt": "Count the files.",
        "state": "running",
        "owner": "gone",
        "created": NOON,
        "started": NOON,
        "max_steers": 3,
    }
    return SubagentRun(id=identity, **{**known, **fields})


def written(state: Path, *runs: SubagentRun) -> None:
    registry = Registry(str(state))
    for number, each in enumerate(runs, 1):
        registry.register(replace(each, agent_id=f"a-{number}"), may_run=True, max_running=100)
    registry.close()


# Nothing there


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        ((), 0, f"{NO_SUBAGENTS}\n", ""),
        (("list", "--all"), 0, f"{NO_SUBAGENTS}\n", ""),
        (("--json",), 0, "[]\n", ""),
        (("show", "3fa9"), 64, "", f"turngate: {NO_SUBAGENTS}\n"),
        (("steer", "3fa9", "go"), 64, "", f"turngate: {NO_SUBAGENTS}\n"),
        (("kill", "3fa9"), 64, "", f"turngate: {NO_SUBAGENTS}\n"),
        (("kill", "--all"), 64, "", f"turngate: {NO_SUBAGENTS}\n"),
        (("recover", "--project", "/"), 0, "no subagent was left behind in /\n", ""),
    ],
)
def test_where_there_is_no_registry_it_is_reported_and_none_is_made(
    state: Path, words: tuple[str, ...], code: int, out: str, err: str
) -> None:
    assert (*turngate("runs", *words), state.exists()) == (code, out, err, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nonsense",), "argument ACTION: invalid choice: 'nonsense'"),
        (
            ("show",),
            "the following arguments are required: ID; see `turngate runs show --help`",
        ),
        (("steer", "3fa9"), "the following arguments are required: PROMPT"),
        (("kill",), "which run? `turngate runs kill ID`, or --all for every one; `turngate runs` lists them"),
        (
            ("recover", "--project", "/nowhere"),
            "there is no folder /nowhere; give the project's folder with --project",
        ),
    ],
)
def test_wrong_usage_is_64_and_a_sentence(words: tuple[str, ...], said: str) -> None:
    code, out, err = turngate("runs", *words)
    assert (code, out, said in err, err.count("\n")) == (64, "", True, 1)


@pytest.mark.parametrize("action", [(), ("list",), ("show",), ("steer",), ("kill",), ("recover",)])
def test_help_names_the_exit_codes_and_never_2(action: tuple[str, ...]) -> None:
    code, out, err = turngate("runs", *action, "--help")
    codes = re.findall(r"\b\d+\b", out[out.index("Exit codes:") :])
    assert (code, err, {"0", "64", "70", "130"} <= set(codes), "2" in codes) == (0, "", True, False)


def test_a_registry_that_cannot_be_opened_is_64(state: Path) -> None:
    (state / "registry.db").mkdir(parents=True)
    code, out, err = turngate("runs")
    assert (code, out, "set TURNGATE_STATE to another folder" in err) == (64, "", True)


def test_a_registry_that_is_damaged_is_set_aside_and_reported(state: Path) -> None:
    state.mkdir()
    (state / "registry.db").write_bytes(b"no register at all" * 1000)
    code, out, err = turngate("runs")
    assert (code, out, err.startswith("! the registry "), "set aside" in err) == (
        0,
        f"{NO_SUBAGENTS}\n",
        True,
        True,
    )


# The table


def test_the_table_says_what_since_when_how_often_redirected_and_why() -> None:
    found = [
        SubagentSummary(
            (
                run(
                    "0a" * 16,
                    state="done",
                    outcome="ok",
                    ended=NOON - 86400 + 62,
                    created=NOON - 86400,
                    agent_type="general-purpose",
                ),
            )
        ),
        SubagentSummary(
            (
                run(
                    "0b" * 16,
                    state="done",
                    outcome="error",
                    error="the model\nfailed",
                    ended=NOON + 8,
                    label="",
                    parent_agent="a-9",
                ),
            )
        ),
        SubagentSummary(
            (
                run("0c" * 16, state="replaced", ended=NOON + 1),
                run(
                    "0d" * 16,
                    chain="0c" * 16,
                    created=NOON + 1,
                    steer_count=1,
                    replaces="0c" * 16,
                    by_hook=True,
                    steer_why="[Stop hook requested continuation]\nName the files.",
                    prompt="Name the\nfiles.",
                ),
            )
        ),
        SubagentSummary((run("0e" * 16, steer_why="steered by hand"),), left=True),
        SubagentSummary(
            (run("0f" * 16, state="done", outcome="ok", ended=NOON + 1, announcement="x", announced=NOON),)
        ),
    ]
    assert list(format_table(found, NOON + 3725, with_runs=False)) == [
        "  ID        SUBAGENT                        STATE          STARTED   TIME        REDIRECTS  SESSION",
        "  0a0a0a0a  count files (general-purpose)   done           Nov 14    1 min       -          5e55104a",
        "  0b0b0b0b  Explore                         failed         12:00:00  8.0 s       -          5e55104a",
        "            started by subagent a-9",
        "            failed: the model failed",
        "* 0c0c0c0c  count files (Explore)           running        12:00:00  1 h 2 min   1 of 3     5e55104a",
        "            redirected: Name the files.",
        "* 0e0e0e0e  count files (Explore)           left behind    12:00:00  1 h 2 min   -          5e55104a",
        "            steered by hand",
        "            its process died; `turngate runs recover` continues it",
        "  0f0f0f0f  count files (Explore)           done           12:00:00  1.0 s       -          5e55104a",
        "            its report waits until that session is resumed",
        "",
        "2 open (*), 1 of them left by a process that died, 3 finished; details: `turngate runs show ID`",
    ]
    assert list(format_table(found[2:3], NOON + 50, with_runs=True))[1:5] == [
        "* 0c0c0c0c  count files (Explore)           running        12:00:00  50 s        1 of 3     5e55104a",
        "            redirected: Name the files.",
        "            run 1: redirected after 1.0 s: Count the files.",
        "            run 2: running: Name the files.",
    ]


def test_whatever_is_in_it_the_table_keeps_to_its_columns() -> None:
    long = run(
        "0a" * 16,
        label="count\x1b[31m all\n" * 20,
        agent_type="k" * 200,
        parent="p" * 90,
        steer_why="w\x07" * 300,
    )
    found = [SubagentSummary((long,)), SubagentSummary((replace(long, id="b", chain="0a0a0a0a" + "b" * 24),))]
    lines = list(format_table(found, NOON + 9e6, with_runs=True))
    assert (
        [line for line in lines if len(line) > 100],
        [c for line in lines for c in line if not c.isprintable()],
    ) == (
        [],
        [],
    )
    assert [line.split()[1] for line in lines if line.startswith("*")] == ["0a0a0a0a0a0a", "0a0a0a0abbbb"]


class TerminalStream(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_what_is_finished_is_dim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", TerminalStream())
    found = [
        SubagentSummary((run(),)),
        SubagentSummary((run("0a" * 16, state="done", outcome="ok", ended=NOON),)),
    ]
    lines = list(format_table(found, NOON, with_runs=False))
    assert [(line.startswith("\033[2m"), line.endswith("\033[0m")) for line in lines[1:3]] == [
        (False, False),
        (True, True),
    ]


def test_what_a_model_wrote_cannot_command_the_terminal() -> None:
    bad = "a\x1b]0;owned\x07b\nc"
    shown = run(label=bad, task=bad, prompt=bad + "2", result=bad, error=bad, steer_why=bad, outcome="error")
    lines = "\n".join(format_details(SubagentSummary((shown,)), NOON)).split("\n")
    assert [letter for line in lines for letter in line if not letter.isprintable()] == []


def test_a_subagent_at_work_is_one_line_without_escape_codes(project: Path, state: Path) -> None:
    with session(project, [task("count files"), "all done"], [STUCK]):
        [child] = asked(state)
        code, out, err = turngate("runs")
    steady = re.sub(r"\d\d:\d\d:\d\d  \d+(\.\d)? s +", "12:00:00  1.0 s       ", out)
    assert (code, err, steady) == (
        0,
        "",
        (
            "  ID        SUBAGENT                        STATE          STARTED   TIME        REDIRECTS  SESSION\n"
            f"* {child['id'][:8]}  count files (general-purpose)   running        12:00:00  1.0 s       -          s-1\n"
            "\n1 open (*), 0 finished; details: `turngate runs show ID`\n"
        ),
    )


# One of them


def test_the_story_has_the_task_every_run_and_the_result() -> None:
    first = run(
        "0a" * 16,
        state="replaced",
        outcome="ok",
        reason="complete",
        ended=NOON + 2,
        usage=Usage(input_tokens=11, output_tokens=2),
    )
    last = run(
        "0b" * 16,
        chain="0a" * 16,
        state="done",
        outcome="ok",
        reason="complete",
        created=NOON + 2,
        started=NOON + 2,
        ended=NOON + 70,
        replaces="0a" * 16,
        by_hook=True,
        prompt="Name the files.",
        steer_count=1,
        usage=Usage(input_tokens=20, output_tokens=3),
        steer_why="Name the files.",
        tools=("Read", "Glob"),
        result="a.py\nb.py",
        transcript="/t/a-1.jsonl",
        launch={"project": "/p", "model": "scripted:s.json"},
        announcement="x",
        announced=NOON + 70,
    )
    assert "\n".join(format_details(SubagentSummary((first, last)), NOON + 100)) == (
        """\
count files (Explore): done
  id            0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a
  subagent      a-1
  session       5e55104a-0000
  project       /p
  model         scripted:s.json
  started       2026-11-15 12:00:00
  time          1 min
  redirects     1 of 3
  last reason   Name the files.
  transcript    /t/a-1.jsonl
Task:
  Count the files.

Run 1 (0a0a0a0a): redirected after 2.0 s
  outcome       ok
  reason        complete
  tokens        11 in, 2 out

Run 2 (0b0b0b0b, redirected by a hook): done after 1 min
  outcome       ok
  reason        complete
  tokens        20 in, 3 out
  tools         Read, Glob
  Prompt:
    Name the files.

Result:
  a.py
  b.py

Its report waits until that session is resumed."""
    )


def test_the_beginning_of_any_id_of_a_subagent_is_enough(project: Path, state: Path) -> None:
    write_settings(project, "turngate", stop_hooks(block_first(1), event="SubagentStop"))
    with session(project, [task("count files"), "all done"], ["three", "three files"]) as process:
        said = result(process)
    [child] = listed()
    [first, second] = json.loads(turngate("runs", "show", child["id"], "--json")[1])["runs"]
    shown = [
        turngate("runs", "show", start)
        for start in (first["id"][:6], second["id"][:6], child["agent_id"][:6])
    ]
    assert (child["id"], shown[1:], shown[0][0], shown[0][2]) == (first["id"], [shown[0], shown[0]], 0, "")
    assert {
        name: child[name]
        for name in ("label", "state", "open", "outcome", "redirects", "limit", "why", "result")
    } == {
        "label": "count files",
        "state": "done",
        "open": False,
        "outcome": "ok",
        "redirects": 1,
        "limit": 3,
        "why": "run the tests",
        "result": "three files",
    }
    assert [
        (each["prompt"], each["by_hook"], each["outcome"], each["result"]) for each in (first, second)
    ] == [
        ("Count the files.", False, "ok", "three"),
        ("run the tests", True, "ok", "three files"),
    ]
    [told] = said["subagents"]
    assert {**told, "seconds": told["seconds"] > 0} == {
        "agent_id": child["agent_id"],
        "label": "count files",
        "outcome": "ok",
        "redirects": 1,
        "seconds": True,
        "agent_type": "general-purpose",
        "reason": "complete",
        "blocked_by": [],
        "run_id": first["id"],
        "unenforced": [],
    }


@pytest.mark.parametrize("action", [("show", "0a"), ("steer", "0a", "go"), ("kill", "0a")])
def test_an_id_that_could_be_two_is_64_with_both(state: Path, action: tuple[str, ...]) -> None:
    written(state, run("0a1" + "0" * 29), run("0a2" + "0" * 29), run("0b"))
    assert turngate("runs", *action) == (
        64,
        "",
        (
            "turngate: 0a matches 2 ids; there are\n"
            "  0a100000  count files (Explore)\n  0a200000  count files (Explore)\n"
        ),
    )


def test_an_unknown_id_is_64_with_the_known_ids(state: Path) -> None:
    written(state, run("0a1" + "0" * 29))
    assert turngate("runs", "show", "ff") == (
        64,
        "",
        "turngate: there is no run 'ff'; there is\n  0a100000  count files (Explore)\n",
    )


# Steering


@pytest.mark.req("X-31")
def test_a_steer_from_another_process_is_heard_at_once(project: Path, state: Path) -> None:
    with session(project, [task("count files"), "all done"], [STUCK, "only two"]) as process:
        [child] = asked(state)
        said = turngate("runs", "steer", child["id"][:8], "-", stdin="Only in src.\n")
        until(lambda: "only two" in conversation(child["transcript_path"]))
        ended = result(process)
    assert said == (
        0,
        (
            f"steered  {child['id'][:8]}  count files (general-purpose)\n"
            "It drops its current work and continues with the new prompt. Hooks run as before.\n"
        ),
        "",
    )
    assert (ended["result"], [each["redirects"] for each in ended["subagents"]]) == ("all done", [0])
    assert conversation(child["transcript_path"]) == ["Count the files.", "Only in src.\n", "only two"]


@pytest.mark.req("X-31")
@pytest.mark.parametrize(
    ("fields", "prompt", "said"),
    [
        ({}, " ", "a steer needs a prompt"),
        ({}, "x" * 4001, "the prompt has 4001 characters; a steer may have 4000"),
        ({"outcome": "killed"}, "go", "run 0a is already finished: killed"),
        ({"next_prompt": "go"}, "go", "run 0a is already being restarted; wait until it runs again"),
    ],
)
def test_a_steer_has_guard_rails(state: Path, fields: dict[str, Any], prompt: str, said: str) -> None:
    registry = Registry(str(state))
    working = registry.register(run("0a", **fields), may_run=True, max_running=100)
    if "outcome" in fields:
        registry.kill("0a", "enough")
    if "next_prompt" in fields:
        registry.steer(working, "go")
    registry.close()
    code, out, err = turngate("runs", "steer", "0a", prompt)
    assert (code, out, err) == (64, "", f"turngate: {said}\n")


# Killing


def test_a_kill_from_another_process_ends_a_subagent_and_its_parent_continues(
    project: Path, state: Path
) -> None:
    with session(project, [task("count files"), "all done"], [STUCK]) as process:
        [child] = asked(state)
        said = turngate("runs", "kill", child["agent_id"])
        ended = result(process)
    assert said == (0, f"killed  {child['id'][:8]}  count files (general-purpose)\n", "")
    assert (ended["result"], [each["outcome"] for each in ended["subagents"]]) == ("all done", ["killed"])
    [now] = listed()
    assert (now["state"], now["outcome"], now["reason"]) == ("done", "killed", "killed by hand")
    assert turngate("runs", "kill", child["id"]) == (
        64,
        "",
        f"turngate: run {child['id']} is already finished: killed\n",
    )


def test_a_kill_goes_down_to_the_subagents_of_a_subagent(project: Path, state: Path) -> None:
    sub = [task("count tests", "Count the tests."), STUCK]
    with session(project, [task("count files"), "all done"], sub) as process:
        asked(state, 2)
        outer, inner = until(lambda: len(found := listed()) == 2 and tuple(found)) or ({}, {})
        said = turngate("runs", "kill", outer["id"])
        ended = result(process)
    assert said == (
        0,
        (
            f"killed  {outer['id'][:8]}  count files (general-purpose)\n"
            f"killed  {inner['id'][:8]}  count tests (general-purpose)\n"
        ),
        "",
    )
    assert (inner["parent_agent"], sorted(each["outcome"] for each in ended["subagents"])) == (
        outer["agent_id"],
        ["killed", "killed"],
    )


def test_all_can_be_killed_of_one_session_or_of_everybody(state: Path) -> None:
    written(state, *(run(f"0{n}" * 16, agent_id=f"a-{n}", parent=f"s-{n}", label=f"n {n}") for n in range(3)))
    gone = "The process of {} of them died; plugins are notified by `turngate runs recover`.\n"
    assert [
        turngate("runs", "kill", *words)
        for words in (("--all", "s-1"), ("--all", "s-"), ("--all",), ("--all",))
    ] == [
        (0, f"killed  01010101  n 1 (Explore)\n{gone.format(1)}", ""),
        (64, "", "turngate: s- matches 2 sessions; there are\n  s-0\n  s-2\n"),
        (0, f"killed  00000000  n 0 (Explore)\nkilled  02020202  n 2 (Explore)\n{gone.format(2)}", ""),
        (64, "", "turngate: no subagent is running\n"),
    ]


# Recovering


def test_what_a_killed_session_left_is_recovered_and_reported_when_it_is_resumed(
    project: Path, state: Path
) -> None:
    child = left_behind(project, state)
    model = scripted(project, ["thank you"], ["three files"], "second")
    words = ("--project", str(project), "--model", model)
    assert (child["left"], child["state"]) == (True, "running")
    assert turngate("runs", "recover", *words) == (
        0,
        (
            f"done            {child['id'][:8]}  count files (general-purpose)\n"
            "1 report waits for the parent session: turngate run --resume --session s-1\n"
        ),
        "",
    )
    assert listed()[0]["report"] == "unread"
    code, out, _ = turngate("run", "-p", "go on", *words, "--resume", "--session", "s-1")
    told = [
        text
        for text in conversation(state / "sessions" / "s-1" / "chat.jsonl")
        if "[Subagent result]" in text
    ]
    assert (code, out, len(told), told[0].endswith("\n\nthree files"), listed()[0]["report"]) == (
        0,
        "thank you\n",
        1,
        True,
        "read",
    )
    assert turngate("runs", "recover", *words) == (
        0,
        f"no subagent was left behind in {project}\n",
        "",
    )


def test_hooks_and_progress_are_reported_while_it_recovers(project: Path, state: Path) -> None:
    child = left_behind(project, state)
    write_settings(project, "turngate", stop_hooks(block_first(1), event="SubagentStop"))
    model = scripted(project, [], [{"text": "three", "delay": 1.5}, "three files"], "second")
    words = "runs", "recover", "--project", str(project), "--model", model
    code, out, err = turngate_with_progress(*words)
    assert (code, out, PROGRESS.sub("", err)) == (
        0,
        (
            f"done            {child['id'][:8]}  count files (general-purpose)\n"
            "1 report waits for the parent session: turngate run --resume --session s-1\n"
        ),
        "subagent count files redirected (1 of 3): run the tests\n",
    )
    assert err.startswith("waiting for count files (general-purpose) …\n")
    [now] = listed()
    assert (now["redirects"], now["why"], now["result"]) == (1, "run the tests", "three files")


def test_the_hooks_of_the_plugins_of_the_session_run_when_it_recovers(
    project: Path, state: Path, tmp_path: Path
) -> None:
    hooks = tmp_path / "gate" / "hooks" / "hooks.json"
    hooks.parent.mkdir(parents=True)
    hooks.write_text(json.dumps(stop_hooks(SAVE_INPUT, event="SubagentStop")))
    words = ("--plugin-dir", str(tmp_path / "gate"))
    with session(project, [task("count files"), "all done"], [STUCK], *words) as process:
        asked(state)
        process.send_signal(signal.SIGKILL)
        process.wait()
    model = scripted(project, [], ["three files"], "second")
    assert turngate("runs", "recover", "--project", str(project), "--model", model)[0] == 0
    assert [each["last_assistant_message"] for each in saved_inputs(project)] == ["three files"]


def test_a_plugin_that_is_gone_is_named_when_it_recovers(project: Path, state: Path, tmp_path: Path) -> None:
    hooks = tmp_path / "gate" / "hooks" / "hooks.json"
    hooks.parent.mkdir(parents=True)
    hooks.write_text("{}")
    words = ("--plugin-dir", str(tmp_path / "gate"))
    with session(project, [task("count files"), "all done"], [STUCK], *words) as process:
        asked(state)
        process.send_signal(signal.SIGKILL)
        process.wait()
    shutil.rmtree(tmp_path / "gate")
    model = scripted(project, [], ["three files"], "second")
    code, _, err = turngate("runs", "recover", "--project", str(project), "--model", model)
    assert (code, err) == (0, f"! {tmp_path}/gate: does not exist, expected the folder of a plugin\n")


def test_a_subagent_whose_hooks_were_being_asked_is_asked_about_again(project: Path, state: Path) -> None:
    write_settings(project, "turngate", stop_hooks(". ./gate", event="SubagentStop"))
    (project / "gate").write_text(hang())
    with session(project, [task("count files"), "all done"], ["three files"]) as process:
        wait_for_file_sync(project / "pid")
        [child] = listed()
        process.send_signal(signal.SIGKILL)
        process.wait()
    (project / "gate").write_text(SAVE_INPUT)
    said = turngate("runs", "recover", "--project", str(project))
    assert (child["state"], said[0], said[1].splitlines()[0]) == (
        "ended",
        0,
        f"done            {child['id'][:8]}  count files (general-purpose)",
    )
    assert [each["last_assistant_message"] for each in saved_inputs(project)] == ["three files"]
    assert conversation(child["transcript_path"]) == ["Count the files.", "three files"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_recovery_that_is_interrupted_leaves_everything_for_the_next(
    project: Path, state: Path, number: int, code: int
) -> None:
    child = left_behind(project, state)
    with start_turngate("runs", "recover", "--project", str(project)) as process:
        assert process.stderr is not None
        process.stderr.readline()  # it says who is at work
        process.send_signal(number)
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    assert (process.returncode, out, err) == (
        code,
        f"left behind     {child['id'][:8]}  count files (general-purpose)\n",
        "",
    )
    model = scripted(project, [], ["three files"], "second")
    assert turngate("runs", "recover", "--project", str(project), "--model", model)[0] == 0
    assert [(each["state"], each["result"]) for each in listed()] == [("done", "three files")]


def test_a_steer_of_what_was_left_behind_counts_when_it_is_recovered(project: Path, state: Path) -> None:
    child = left_behind(project, state)
    said = turngate("runs", "steer", child["id"], "Only in src.")
    model = scripted(project, [], ["only two"], "second")
    recovered = turngate("runs", "recover", "--project", str(project), "--model", model)
    assert said == (
        0,
        (
            f"steered  {child['id'][:8]}  count files (general-purpose)\n"
            "Its process died. It continues with the new prompt once it is recovered:\n"
            f"  turngate runs recover --project {project}\n"
        ),
        "",
    )
    assert (recovered[0], recovered[2], conversation(child["transcript_path"])) == (
        0,
        "",
        ["Count the files.", "Only in src.", "only two"],
    )


def test_a_model_that_is_not_there_is_64_before_anything_is_taken_over(project: Path, state: Path) -> None:
    child = left_behind(project, state)
    script = project.parent / "script.json"
    os.unlink(script)
    assert turngate("runs", "recover", "--project", str(project)) == (
        64,
        "",
        f"turngate: the script {script} cannot be read: No such file or directory; choose another model with --model\n",
    )
    assert [(each["id"], each["left"]) for each in listed()] == [(child["id"], True)]


def test_below_a_hook_nothing_is_recovered_since_no_gate_would_be_asked(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = left_behind(project, state)
    monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
    said = "turngate: subagents cannot be recovered inside a hook, where no hooks run for them\n"
    assert turngate("runs", "recover", "--project", str(project)) == (64, "", said)
    assert [(each["id"], each["left"]) for each in listed()] == [(child["id"], True)]


def test_what_was_left_in_another_project_is_left_there_and_reported(
    project: Path, state: Path, tmp_path: Path
) -> None:
    left_behind(project, state)
    (tmp_path / "other").mkdir()
    assert turngate("runs", "recover", "--project", str(tmp_path / "other")) == (
        0,
        (
            f"no subagent was left behind in {tmp_path / 'other'}\n"
            f"1 subagent of another project: turngate runs recover --project {project}\n"
        ),
        "",
    )
    assert [each["left"] for each in listed()] == [True]


def test_a_run_with_a_living_owner_is_not_recovered(project: Path, state: Path) -> None:
    with session(project, [task("count files"), "all done"], [STUCK]) as process:
        [child] = asked(state)
        said = turngate("runs", "recover", "--project", str(project))
        turngate("runs", "kill", child["id"])
        ended = result(process)
    assert (child["left"], said, ended["result"]) == (
        False,
        (0, f"no subagent was left behind in {project}\n", ""),
        "all done",
    )


@pytest.mark.parametrize("created", [-5.0, -1e300, 1e300, float("inf"), 0.0], ids=str)
def test_times_that_are_none_are_shown_as_unknown(state: Path, created: float) -> None:
    written(state, run("0a" * 16), run(created=created, started=created, ended=-created))
    code, out, err = turngate("runs", "--all")
    assert (code, err, re.findall(r"3fa9c0de .* left behind +(\S+)", out)) == (0, "", ["?"])
    odd = next(
        each
        for each in json.loads(turngate("runs", "--json")[1], parse_constant=str)
        if each["id"] == run().id
    )
    assert odd["created"] == (None if created == float("inf") else created)
    code, out, err = turngate("runs", "show", "3fa9c0de")
    assert (code, err, re.findall(r"started +(.*)", out)) == (0, "", ["?"])


def test_a_clock_that_was_set_back_does_not_prevent_a_steer(state: Path) -> None:
    written(state, run(created=time.time() + 3600, replaces="0b" * 16))
    code, out, err = turngate("runs", "steer", "3fa9c0de", "Name the files.")
    assert (code, err, out.splitlines()[0]) == (0, "", "steered  3fa9c0de  count files (Explore)")


def damaged(state: Path, **columns: str) -> None:
    """Store a run, then write these columns as another program might."""
    written(state, run())
    with contextlib.closing(sqlite3.connect(state / "registry.db")) as db:
        for name, value in columns.items():
            db.execute(f"UPDATE runs SET {name} = ?", (value,))
        db.commit()


def test_a_column_that_is_nested_too_deeply_is_damage(state: Path) -> None:
    damaged(state, launch="[" * 200_000)
    said = f"the registry {state}/registry.db is damaged: launch is nested too deeply"
    advice = "repair it, or set TURNGATE_STATE to another folder"
    assert turngate("runs") == (64, "", f"turngate: {said}; {advice}\n")


def test_tools_and_counts_of_other_types_are_left_out(state: Path) -> None:
    damaged(state, tools='["Read", 1, [], "Bash"]', usage='{"input_tokens": "x", "output_tokens": 5}')
    code, out, err = turngate("runs", "show", "3fa9c0de")
    assert (code, err, re.findall(r"tools +(.*)", out)) == (0, "", ["Read, Bash"])
    assert re.findall(r"tokens +(.*)", out) == ["0 in, 5 out"]


@pytest.mark.parametrize("owner", ["a\0b", "../../kept", "{state}/kept", "a-²-1", "x" * 5000, "."])
def test_an_owner_that_no_process_has_is_a_dead_one_and_no_path(
    project: Path, state: Path, owner: str
) -> None:
    damaged(state, owner=owner.format(state=state))
    (state / "owners" / "deeper").mkdir(parents=True)
    kept = [state / "kept", state.parent / "kept"]
    for path in kept:
        path.touch()
    [listed] = json.loads(turngate("runs", "--json")[1])
    registry = Registry(str(state))
    [adopted] = registry.take_over("me", None)
    registry.close()
    assert (listed["left"], adopted.owner, adopted.recoveries) == (True, "me", 1)
    assert [path.exists() for path in kept] == [True, True]


def test_ids_with_a_long_common_beginning_leave_room_for_the_other_columns() -> None:
    found = [SubagentSummary((run(f"{'c' * 60}{number}"),)) for number in (1, 2)]
    first, row, *_ = format_table(found, NOON + 9, with_runs=False)
    assert (first.split()[:2], row) == (
        ["ID", "SUBAG…"],
        f"* {'c' * 32}  count…  running        12:00:00  9.0 s       -          5e55104a",
    )
