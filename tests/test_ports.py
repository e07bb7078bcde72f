"""The Shell port: the engine runs commands, and takes slots for them, only through the shell it is given."""

import asyncio
import errno
import inspect
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, settings, stop_event
from tests.support.prefixed_files import PrefixedFiles
from tests.support.servers.anthropic import serve_script
from tests.support.servers.http import serve_answers
from turngate.agent.session import Session
from turngate.core.answers.report_types import Exited
from turngate.core.events.events import SessionStart
from turngate.core.hooks.kinds import CallbackHook, CommandHook, GateHook, HttpHook, PromptHook
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.core.verdict.hook_run import outcome
from turngate.engine import ask_hooks
from turngate.models.scripted import ScriptedModel
from turngate.ports import ConnectionLost, HookRunContext, NotStarted, RemoteMachine, Shell, World
from turngate.project.files import LOCAL
from turngate.shells.local import LocalShell
from turngate.state.journal import Journal
from turngate.trust.covered_files import CoveredFiles


class OneAtATime:
    """A shell on a machine that is not this one: it starts no process, and has one slot of each sort."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self._free = {False: asyncio.Semaphore(1), True: asyncio.Semaphore(1)}

    @asynccontextmanager
    async def slot(self, *, background: bool = False) -> AsyncIterator[None]:
        async with self._free[background]:
            yield

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: HookRunContext
    ) -> Exited:
        del cwd, env, stdin, live
        self.steps.append(f"{hook.command} starts")
        await asyncio.sleep(0.01)
        self.steps.append(f"{hook.command} ends")
        return Exited(2, stderr="no") if hook.command == "blocks" else Exited(0)


def test_the_engine_takes_slots_only_from_the_shell() -> None:
    async def stop() -> tuple[list[str], list[str]]:
        shell = OneAtATime()
        hooks = (CommandHook("passes"), CommandHook("blocks"), CallbackHook(lambda _: None))
        verdict = await ask_hooks(stop_event(), settings(*hooks), World(shell, "/p"))
        return [outcome(run) for run in verdict.runs], shell.steps

    assert asyncio.run(stop()) == (
        ["allow", "block", "allow"],
        ["passes starts", "passes ends", "blocks starts", "blocks ends"],
    )


def test_a_hook_in_the_background_takes_a_background_slot() -> None:
    async def stop() -> list[str]:
        shell = OneAtATime()
        world = World(shell, "/p")
        async with shell.slot():  # the foreground is full
            await ask_hooks(stop_event(), settings(CommandHook("late", detached=True)), world)
            await world.close(grace=60)
        return shell.steps

    assert asyncio.run(stop()) == ["late starts", "late ends"]


def test_local_shells_share_the_slots_of_their_process() -> None:
    async def same() -> list[bool]:
        one, other = LocalShell(), LocalShell()
        return [one.slot(background=late) is other.slot(background=late) for late in (False, True)]

    assert asyncio.run(same()) == [True, True]


def test_a_session_runs_its_hooks_in_the_shell_it_is_given(project: Path) -> None:
    async def turn() -> tuple[str, list[str]]:
        shell = OneAtATime()
        model = ScriptedModel({"main": ["done"]})
        hooks = settings(CommandHook("passes"))
        async with Session(str(project), model, hooks, shell=shell) as session:
            return (await session.send("go")).outcome, shell.steps

    assert asyncio.run(turn()) == ("completed", ["passes starts", "passes ends"])


class FailingSlot:
    def slot(self, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        raise OSError(f"no connection for {background=}")

    async def run(self, hook: CommandHook, **_: Any) -> Exited:
        raise AssertionError(hook)


@pytest.mark.parametrize(
    ("shell", "error"),
    [
        (FailingSlot, "the shell gave it no slot: OSError: no connection for background=False"),
    ],
)
def test_a_shell_that_fails_is_a_hook_that_failed(shell: type[Shell], error: str) -> None:
    async def stop() -> list[Decision]:
        hooks = settings(CommandHook("passes"), CommandHook("blocks"))
        return [run.decision for run in (await ask_hooks(stop_event(), hooks, World(shell(), "/p"))).runs]

    assert asyncio.run(stop()) == [Fault(error), Fault(error)]


@pytest.mark.parametrize(
    ("shell", "error"),
    [
        (FailingSlot, "the shell gave it no slot: OSError: no connection for background=True"),
    ],
)
def test_a_shell_that_fails_in_the_background_is_recorded(
    shell: type[Shell], error: str, state: Path
) -> None:
    async def stop() -> None:
        journal = Journal(str(state))
        world = World(shell(), "/p", journal)
        await ask_hooks(stop_event(), settings(CommandHook("late", detached=True)), world)
        await world.close(grace=60)
        journal.close()

    asyncio.run(stop())
    lines = map(json.loads, (state / "sessions" / "s-1" / "journal.jsonl").read_text().splitlines())
    assert [line["reason"] for line in lines if line["kind"] == "background"] == [error]


SHELLS: tuple[type[Shell], ...] = (LocalShell, OneAtATime)  # for the type checker: both are Shells


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_the_methods_of_the_port(shell: type[Shell]) -> None:
    assert {name: callable(getattr(shell, name, None)) for name in ("run", "slot")} == {
        "run": True,
        "slot": True,
    }
    assert not inspect.iscoroutinefunction(shell.slot)


# What runs on this machine although the project is on another one


def elsewhere(project: Path, **environ: str) -> World:
    """Return the World of a project on a machine with this environment."""
    there = {"PATH": os.defpath, **environ}
    files = PrefixedFiles("/", str(project), there)
    return World(LocalShell(), str(project), environ=there, remote=RemoteMachine(files))


@pytest.mark.req("S0-105")
def test_a_command_has_the_environment_of_its_own_machine(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "here")
    verdict = asyncio.run(ask_hooks(stop_event(), settings("echo $PLACE"), elsewhere(project, PLACE="there")))
    assert verdict.runs[0].report == Exited(0, "there\n")


@pytest.mark.req("S0-105")
def test_what_a_gate_remembers_is_kept_on_this_machine(project: Path, state: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    gate = GateHook(command="echo no; exit 1")
    asyncio.run(ask_hooks(stop_event(), settings(gate), elsewhere(project, TURNGATE_STATE=str(there))))
    assert ((state / "gates").is_dir(), there.exists()) == (True, False)


NOT_COMPARED = (
    "its files could not be compared once more after it ran, so they may have been changed meanwhile: "
    "the connection to build was lost"
)
LOST = "the connection to box was lost while it ran"
NO_SERVER = "could not be started: ssh box: no SSH server listens on box"


class Unreachable(LocalShell):
    """A shell whose machine cannot be reached, or is lost while a command runs."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    async def run(self, hook: CommandHook, **_: Any) -> Exited:  # noqa: ARG002
        raise self.error


@pytest.mark.req("S0-105")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ConnectionLost(LOST), LOST),
        (NotStarted(errno.EHOSTUNREACH, "no SSH server listens on box", "ssh box"), NO_SERVER),
    ],
    ids=["lost", "never opened"],
)
@pytest.mark.parametrize(
    "gate", [GateHook(command="exit 1"), GateHook("clean"), GateHook("plan", options={"files": ["PLAN.md"]})]
)
def test_a_gate_whose_machine_cannot_be_reached_could_not_run(
    project: Path, gate: GateHook, error: OSError, why: str, strict: bool
) -> None:
    hook = replace(gate, strict=strict)
    world = World(Unreachable(error), str(project))
    (run,) = asyncio.run(ask_hooks(stop_event(), settings(hook), world)).runs
    name = gate.gate or "command"
    blocked = Block(f'gate "{name}" could not run: {why}')
    assert run.decision == (blocked if strict else Fault(why))


def test_a_start_is_not_recorded_on_a_machine_that_cannot_be_reached(project: Path) -> None:
    world = World(Unreachable(ConnectionLost(LOST)), str(project))
    event = SessionStart(session_id="s-1", transcript_path="", cwd=str(project), source="startup")
    (run,) = asyncio.run(
        ask_hooks(event, settings(GateHook("touched", options={"if": ["*"], "then": ["*"]})), world)
    ).runs
    assert run.decision == Allow(warnings=(f"the state at the start is not recorded: {LOST}",))


class LostAfterward(LocalShell):
    """A shell whose machine answers no more when a command has ended."""

    def __init__(self, files: PrefixedFiles) -> None:
        super().__init__()
        self.files = files

    async def run(self, hook: CommandHook, **options: Any) -> Exited:
        report = await super().run(hook, **options)
        self.files.limit = 0
        return report


@pytest.mark.req("S0-105")
@pytest.mark.parametrize(
    ("code", "decision"),
    [(2, Block("not yet", warnings=(NOT_COMPARED,))), (0, Allow(warnings=(NOT_COMPARED,)))],
)
def test_the_answer_of_a_hook_counts_although_its_machine_is_lost_afterward(
    project: Path, code: int, decision: Decision
) -> None:
    path = script(project / "check.sh", f"#!/bin/sh\necho not yet >&2; exit {code}\n")
    world = elsewhere(project)
    assert isinstance(world.files, PrefixedFiles)
    world.shell = LostAfterward(world.files)
    content = CoveredFiles(LOCAL, str(project)).file_id(str(path))
    rules = Settings(rules=(Rule("Stop", CommandHook(str(path)), files={str(path): content}),))
    (run,) = asyncio.run(ask_hooks(stop_event(), rules, world)).runs
    assert run.decision == decision


@pytest.mark.req("S0-105")
def test_a_judge_has_the_key_of_this_machine(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "mine")
    hook = PromptHook("Is it done?", model="anthropic:claude-haiku-5-5")
    with serve_script({"main": ['{"ok": false, "reason": "no"}']}) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        where = elsewhere(project, ANTHROPIC_BASE_URL="http://127.0.0.1:1", ANTHROPIC_API_KEY="theirs")
        (run,) = asyncio.run(ask_hooks(stop_event(), settings(hook), where)).runs
    assert run.decision == Block("no")


@pytest.mark.req("S0-105")
@pytest.mark.parametrize(
    ("source", "sent"),
    [
        ("python", "mine, "),
        ("command line", "mine, "),
        ("user", "theirs, "),
        ("managed", "theirs, "),
        ("project", "theirs, "),
        ("plugin", "theirs, "),
    ],
)
def test_an_http_hook_sends_the_variables_of_the_machine_on_which_it_is_configured(
    project: Path, monkeypatch: pytest.MonkeyPatch, source: str, sent: str
) -> None:
    monkeypatch.setenv("TOKEN", "mine")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret" if sent.startswith("theirs") else "")
    with serve_answers() as endpoint:
        names = ("TOKEN", "ANTHROPIC_API_KEY")
        hook = HttpHook(endpoint.url, headers={"X-A": "$TOKEN, $ANTHROPIC_API_KEY."}, allowed_env_vars=names)
        rules = Settings(rules=(Rule("Stop", hook, source=source),))
        asyncio.run(ask_hooks(stop_event(), rules, elsewhere(project, TOKEN="theirs")))
    assert endpoint.headers[0]["x-a"] == f"{sent}."


def test_an_http_hook_of_the_home_folder_elsewhere_does_not_send_the_event_unencrypted(project: Path) -> None:
    rules = Settings(rules=(Rule("Stop", HttpHook("http://build.example/"), source="user"),))
    (run,) = asyncio.run(ask_hooks(stop_event(), rules, elsewhere(project))).runs
    assert run.decision == Fault(
        "http://build.example/ is not encrypted: use https, or allow it in `turngate.allowedUrls` of your user settings"
    )


@pytest.mark.req("S0-105")
def test_a_webhook_of_the_home_folder_elsewhere_is_not_that_of_a_variable_here(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = GateHook("notify", options={"webhookEnv": "CHAT_URL"})
    rules = Settings(rules=(Rule("Stop", hook, source="user"),))
    with serve_answers() as here, serve_answers() as there:
        monkeypatch.setenv("CHAT_URL", here.url)
        asyncio.run(ask_hooks(stop_event(), rules, elsewhere(project, CHAT_URL=f"{there.url}/x")))
        (run,) = asyncio.run(
            ask_hooks(stop_event(), rules, elsewhere(project, CHAT_URL="http://chat.example/x"))
        ).runs
    assert (here.paths, there.paths) == ([], ["/x"])
    assert run.decision == Allow(
        notice='gate "notify": the webhook was not called: chat.example is not encrypted: '
        "use https, or allow it in `turngate.allowedUrls` of your user settings"
    )


@pytest.mark.req("S0-105")
def test_a_program_that_a_hook_starts_here_runs_no_hooks_elsewhere(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
    assert elsewhere(project).in_hook
