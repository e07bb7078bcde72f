"""Secrets of the environment that a command hook prints: nowhere shown, recorded or sent to a model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, settings, stop_event
from tests.support.sessions import scripted_session
from turngate.core.answers.report_types import HookFailed
from turngate.core.dialect import TURNGATE, Dialect
from turngate.core.hooks.kinds import CallbackHook, CommandHook
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.engine import ask_hooks
from turngate.ports import World
from turngate.shells.local import LocalShell

TOKEN = 'gh_"0123456789abcdef/+'
ENVIRON = {"PATH": "/usr/bin:/bin", "GH_TOKEN": TOKEN}


def answer(**fields: Any) -> str:
    """Return a command that prints JSON, with the token where `TOKEN` is."""
    program = (
        "import json,os,sys;print(sys.argv[1].replace('TOKEN', json.dumps(os.environ['GH_TOKEN'])[1:-1]))"
    )
    return f"""python3 -c "{program}" '{json.dumps(fields)}'"""


def decide(project: Path, command: str, *, event: str = "Stop", dialect: Dialect = TURNGATE) -> Any:
    world = World(LocalShell(), str(project), environ=ENVIRON)
    asked = settings(CommandHook(command, timeout=120), event=event, dialect=dialect)
    [run] = asyncio.run(ask_hooks(stop_event(), asked, world)).runs
    assert TOKEN not in repr(run)
    return run


CONTEXT = {"hookEventName": "Stop", "additionalContext": "use TOKEN"}
TAIL = "x" * 280


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ('echo "rejected: $GH_TOKEN" >&2; exit 2', Block("rejected: …")),
        ('echo "rejected: $GH_TOKEN" >&2; exit 1', Fault("exit code 1: rejected: …")),
        (
            'echo "rejected: $GH_TOKEN"; exit 1',
            Fault("exit code 1, nothing on stderr; on stdout: rejected: …"),
        ),
        (answer(decision="block", reason="bad TOKEN"), Block("bad …")),
        (answer(decision="block", reason="bad", systemMessage="TOKEN"), Block("bad", notice="…")),
        (answer(**{"continue": False}, stopReason="TOKEN"), Halt("…")),
        (answer(hookSpecificOutput=CONTEXT), Advise("use …")),
        (answer(decision="TOKEN"), Fault('`decision` is "…", expected "block" or "approve"')),
        # The token begins 12 characters before the place where the text is truncated.
        (
            f'echo "{"y" * 88}${{GH_TOKEN}}{TAIL}" >&2; exit 1',
            Fault(f"exit code 1: {'y' * 88} … {TAIL[:200]}"),
        ),
    ],
)
def test_a_secret_is_hidden_and_the_decision_stays(command: str, decision: Decision, project: Path) -> None:
    assert decide(project, command).decision == decision


def test_a_secret_that_is_a_word_of_the_contract_does_not_change_the_decision(project: Path) -> None:
    world = World(
        LocalShell(), str(project), environ={**ENVIRON, "A_SECRET": "decision", "B_KEY": "continue"}
    )
    command = """echo '{"decision": "block", "reason": "no decision"}'"""
    [run] = asyncio.run(ask_hooks(stop_event(), settings(command), world)).runs
    assert run.decision == Block("no …")


def test_the_variables_of_settings_and_hooks_count_too(project: Path) -> None:
    hook = CommandHook('echo "$A_TOKEN $B_TOKEN" >&2; exit 2', env={"B_TOKEN": "of-the-hook"})
    asked = settings(hook, env={"A_TOKEN": "of-the-settings"})
    world = World(LocalShell(), str(project), environ={"PATH": "/usr/bin:/bin"})
    [run] = asyncio.run(ask_hooks(stop_event(), asked, world)).runs
    assert run.decision == Block("… …")


@pytest.mark.parametrize("answer", [{"decision": "block", "reason": f"bad {TOKEN}"}, Block(f"bad {TOKEN}")])
def test_the_answer_of_a_callback_is_redacted_too(answer: Any, project: Path) -> None:
    world = World(LocalShell(), str(project), environ=ENVIRON)
    [run] = asyncio.run(ask_hooks(stop_event(), settings(CallbackHook(lambda _: answer)), world)).runs
    assert run.decision == Block("bad …")


def test_an_exception_of_a_callback_is_redacted(project: Path) -> None:
    def fail(_: object) -> None:
        raise ValueError(f"bad {TOKEN}")

    world = World(LocalShell(), str(project), environ=ENVIRON)
    [run] = asyncio.run(ask_hooks(stop_event(), settings(CallbackHook(fail)), world)).runs
    assert (run.decision, run.report) == (Fault("ValueError: bad …"), HookFailed("ValueError: bad …"))


def test_a_run_that_shows_no_secret_is_as_before(project: Path) -> None:
    run = decide(project, "echo 'all … well'")
    assert (run.report.stdout, run.decision) == ("all … well\n", Allow())


def test_the_output_of_a_hook_that_timed_out_is_redacted(project: Path) -> None:
    world = World(LocalShell(), str(project), environ=ENVIRON)
    hook = CommandHook('echo "$GH_TOKEN"; echo "$GH_TOKEN" >&2; exec sleep 3600', timeout=1)
    [run] = asyncio.run(ask_hooks(stop_event(), settings(hook), world)).runs
    assert TOKEN not in repr(run.report)


def test_nothing_that_a_session_writes_shows_or_sends_has_the_secret(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    show = 'echo "it is $GH_TOKEN"'
    rules = [
        rule(show, "SessionStart"),
        rule(show, "UserPromptSubmit"),
        rule(f"{show} >&2; exit 2", "PostToolUse"),
        rule(f"{show} >&2; exit 2", "Stop"),
        rule(answer(systemMessage="TOKEN"), "Stop"),
        rule(f"{show} >&2; exit 3", "Stop"),
        rule(CommandHook(f"{show}; {show} >&2", detached=True), "Stop"),
    ]
    shown: list[str] = []
    agent = scripted_session(
        project,
        {"tool": "Bash", "input": {"command": "true"}},
        "done",
        rules=rules,
        listen=lambda event, _: shown.append(repr(event)),
    )
    result = agent.play()
    written = {path: path.read_text() for path in state.rglob("*.jsonl")}
    assert {path.name for path in written} >= {"chat.jsonl", "journal.jsonl"}
    everything = [*shown, *written.values(), repr(result), repr(agent.model.requests)]
    forms = (TOKEN, json.dumps(TOKEN)[1:-1], json.dumps(json.dumps(TOKEN))[2:-2], "0123456789abcdef")
    assert [text for text in everything if any(form in text for form in forms)] == []
    assert sum("it is …" in text for text in written.values()) == len(written)
    assert "it is …" in repr(agent.model.requests)
