"""Runs the cases of a gate: as a process, as an agent program would, and in this process with another shell."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.cli import turngate
from tests.support.machines import Machine, ThisMachine
from turngate.core.answers.report_types import Exited
from turngate.core.events.events import StopEvent
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.kinds import CommandHook
from turngate.gates.arguments import parse_gate_words
from turngate.gates.gate import GateContext
from turngate.gates.run_gate import KEEP, answer_json, make_context, record_start, run_gate
from turngate.ports import HookRunContext, Shell
from turngate.shells.local import LocalShell

TIMEOUT_S = 60.0
THIS_MACHINE = ThisMachine()


class GateCase(NamedTuple):
    """One call of a gate. `setup` makes the project, and may write a transcript; it returns further fields."""

    name: str
    words: tuple[str, ...]  # after `turngate gate`
    setup: Callable[[Path], Mapping[str, Any] | None]
    answer: Mapping[str, Any]  # the whole answer
    start: Callable[[Path], object] | None = (
        None  # makes the project of a session whose start the gate records
    )


class OtherShell:
    """A shell that is not the local one: the project is where only its commands are, under another path."""

    def __init__(self, project: Path, shell: Shell | None = None) -> None:
        self.project = project
        self._shell = shell or LocalShell()

    def slot(self, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        return self._shell.slot(background=background)

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: HookRunContext
    ) -> Exited:
        assert cwd == ELSEWHERE
        return await self._shell.run(hook, cwd=str(self.project), env=env, stdin=stdin, live=live)


ELSEWHERE = "/remote/project"


def claude_input(project: Path, **fields: Any) -> dict[str, Any]:
    """Return the input of a Stop hook with the fields and the order of Claude Code."""
    return {
        "session_id": "5b0a5c0e-0000-4000-8000-000000000001",
        "transcript_path": str(project.parent / "transcript.jsonl"),
        "cwd": str(project),
        "permission_mode": "default",
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "last_assistant_message": "Done.",
        "background_tasks": [],
        "session_crons": [],
        **fields,
    }


def blocked(reason: str, keep: str | None = None) -> dict[str, Any]:
    """Return a block; `keep`: the name of a gate that says how to disagree."""
    return {"decision": "block", "reason": f"{reason}\n{KEEP.format(keep)}" if keep else reason}


def answer_to(case: GateCase) -> dict[str, Any]:
    """Return the whole answer to a case; a soft gate that has found something says how to disagree."""
    answer = dict(case.answer)
    call = parse_gate_words(case.words)
    is_soft = call.options.get("firm") is False and not call.gate.is_cached
    has_found = "decision" in answer and " could not run: " not in answer["reason"]
    return blocked(answer["reason"], case.words[0]) if has_found and is_soft else answer


def could_not_run(gate: str, why: str) -> dict[str, Any]:
    return {"systemMessage": f'gate "{gate}" could not run: {why}; it was NOT enforced'}


def answer_of_process(words: tuple[str, ...], fields: Mapping[str, Any]) -> tuple[int, dict[str, Any], str]:
    """Return exit code, answer and stderr of `turngate gate`, with the input of a hook."""
    code, out, err = turngate("gate", *words, stdin=json.dumps(fields))
    return code, json.loads(out) if out else {}, err


def run_case_as_process(case: GateCase, project: Path) -> tuple[int, dict[str, Any], str]:
    """Return exit code, answer and stderr of `turngate gate` for a case."""
    if case.start:
        case.start(project)
        answer = answer_of_process(case.words, claude_input(project, hook_event_name="SessionStart"))
        assert answer == (0, {}, "")
    return answer_of_process(case.words, claude_input(project, **(case.setup(project) or {})))


def run_case_with_shell(case: GateCase, project: Path, machine: Machine) -> dict[str, Any]:
    """Return the answer for a case in this process, for a project on a machine."""
    if case.start:
        case.start(project)
        record_with_shell(case.words, claude_input(project), project, machine)
    fields = claude_input(project, **(case.setup(project) or {}))
    return answer_with_shell(case.words, fields, project, machine)


def record_with_shell(
    words: tuple[str, ...], fields: Mapping[str, Any], project: Path, machine: Machine = THIS_MACHINE
) -> None:
    """Let a gate record the start of a session, in this process, with a shell that is not the local one."""

    async def record() -> None:
        await record_start(parse_gate_words(words).gate, _make_context(words, fields, project, machine))

    machine.run(record())


def answer_with_shell(
    words: tuple[str, ...], fields: Mapping[str, Any], project: Path, machine: Machine = THIS_MACHINE
) -> dict[str, Any]:
    """Return the answer of the same gate in this process, with a shell that is not the local one."""
    arguments = parse_gate_words(words)

    async def answer() -> dict[str, Any]:
        context = _make_context(words, fields, project, machine)
        return answer_json(
            arguments.gate.name, await run_gate(arguments.gate, context, strict=arguments.strict)
        )

    return machine.run(answer())


def _make_context(
    words: tuple[str, ...], fields: Mapping[str, Any], project: Path, machine: Machine
) -> GateContext:
    arguments = parse_gate_words(words)
    event = read_event(fields["hook_event_name"], dict(fields), cwd=ELSEWHERE)
    assert isinstance(event, StopEvent)
    return make_context(
        arguments.gate,
        event,
        OtherShell(project, machine.shell),
        ELSEWHERE,
        options=arguments.options,
        command=arguments.command,
        timeout=arguments.timeout or TIMEOUT_S,
        state_folder=os.environ["TURNGATE_STATE"],
        env=machine.environ,
    )
