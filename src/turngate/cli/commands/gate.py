"""`turngate gate`: check one ready-made gate, as a hook command or for a person."""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Literal, assert_never

from turngate.cli.console.signals import run_to_end
from turngate.cli.hook_input import EXIT_NOT_PASSED
from turngate.cli.project import project_folder
from turngate.cli.stop_cache import GATE_PROJECT_VARIABLES, settings_state, write_stamp
from turngate.core.constants import GATES_BASE, HOOK_TIMEOUT, IN_HOOK, STOP_EVENTS
from turngate.core.events.events import StopEvent, Subagent
from turngate.core.events.hook_input import read_stop
from turngate.core.hooks.kinds import MAX_TIMEOUT_S, PromptHook
from turngate.core.redaction import make_redactor, secret_values
from turngate.core.text import quote_name
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.errors import UsageError
from turngate.gates.arguments import COMMON, GateArguments, parse_gate_words
from turngate.gates.gate import Gate, GateOption
from turngate.gates.library import GATES
from turngate.gates.run_gate import (
    answer_json,
    describe_fault,
    held_pass,
    make_context,
    record_start,
    run_gate,
)
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import HostAnswer
from turngate.hosts.input_fields import recognize
from turngate.ports import HeldPass, HookRunContext, World
from turngate.shells.local import LocalShell
from turngate.state.paths import state_folder

EXIT_PASSED, EXIT_BLOCK = 0, 2  # 2: only for a block, and only with --exit-code
DEFAULT_TIMEOUT_S = 60.0  # that most agent programs give a hook
OWN_SHARE = 0.9  # of the time of the hook
STARTS = ("SessionStart", "SubagentStart")  # a gate records what is there


def print_help(words: list[str]) -> int:
    """Print the usage. Without words it is a mistake: on stdout with exit code 0, it would look passed to a host."""
    if words:
        gate = next((GATES[word] for word in words if word in GATES), None)
        print(_help_of(gate) if gate else _help())
        sys.exit()
    problem = "neither a gate nor a command is given; see `turngate gate --help`"
    print(f"turngate gate: {problem}\n{_help()}", file=sys.stderr)
    return EXIT_NOT_PASSED


def check_gate(words: list[str], fields: dict[str, Any] | None, stamp: str | None) -> int:
    """Run a gate and print its answer. `fields`: the hook's input. `stamp`: the file of its answer. Raises UsageError."""
    arguments = parse_gate_words(words)
    project = _project(arguments.project, fields)
    settings = settings_state(project) if stamp else None
    work = _run(arguments, fields, project)
    decision, passed = run_to_end(work, " before an answer", for_host=fields is not None)
    if fields is None:
        return _answer_in_words(arguments.gate.name, decision)
    code, text = _answer(arguments, decision, fields)
    if stamp:
        write_stamp(stamp, settings, passed, project, text)
    print(text, end="\n" if text else "")
    return code


def _project(given: str | None, fields: dict[str, Any] | None) -> str:
    """Return the project's folder: the given one, that of the agent program, or that of the current folder."""
    if given is not None:
        return project_folder(given)
    if fields is not None:
        for folder in (*map(os.environ.get, GATE_PROJECT_VARIABLES), fields.get("cwd")):
            if isinstance(folder, str) and os.path.isdir(folder):
                return os.path.abspath(folder)
    return project_folder(None)


async def _run(
    arguments: GateArguments, fields: dict[str, Any] | None, project: str
) -> tuple[Decision, HeldPass | None]:
    """Return the decision, and that for which it is a pass that holds."""
    name = (fields or {}).get("hook_event_name") or "Stop"
    if name not in (*STOP_EVENTS, *STARTS):
        return Fault(f"it answers at {', '.join(STOP_EVENTS)}, not at {name}"), None
    event = _read_stop(name, fields or {}, project)
    has_session = bool(fields and fields.get("session_id"))
    own = None if fields is None else _time_limit(fields)
    context = make_context(
        arguments.gate,
        event,
        LocalShell(),
        project,
        options=arguments.options,
        command=arguments.command,
        timeout=arguments.timeout or own,
        limit=arguments.timeout or (own and own / OWN_SHARE),
        state_folder=state_folder() if has_session else None,
        redactor=make_redactor(secret_values(os.environ), ignores_case=False),
        base=os.environ.get(GATES_BASE),
    )
    if arguments.gate.asks_model:
        context.ask_judge = _judge_for(event, project)
    if name in STARTS:
        await record_start(arguments.gate, context)
        return Allow(), None
    decision = await run_gate(arguments.gate, context, strict=arguments.strict and fields is not None)
    return decision, held_pass(context, decision)


def _time_limit(fields: dict[str, Any]) -> float:
    """Return the gate's own limit, below that of the hook: its end is then an answer.

    A host does not say how long it waits, so its default counts.
    """
    host = recognize(fields)
    default = HOSTS[host].default_timeout_s if host else None
    try:
        seconds = float(os.environ.get(HOOK_TIMEOUT) or default or DEFAULT_TIMEOUT_S)
    except ValueError:
        seconds = DEFAULT_TIMEOUT_S
    return (seconds if 0 < seconds < MAX_TIMEOUT_S else DEFAULT_TIMEOUT_S) * OWN_SHARE


def _judge_for(event: StopEvent, project: str) -> Callable[[PromptHook], Awaitable[Decision]]:
    """Return a function that asks a model, by default the judge of the settings."""
    # lazy: only one gate asks a model
    from turngate.runners.gate import judge_for  # noqa: PLC0415
    from turngate.trust.load import load_settings  # noqa: PLC0415

    return judge_for(event, load_settings(project), World(LocalShell(), project), HookRunContext())


def _read_stop(name: str, fields: dict[str, Any], project: str) -> StopEvent:
    """Return the stop that the fields describe; at a start, that of the agent that starts."""
    if name in STARTS:
        keys = ("session_id", "transcript_path", "agent_id", "agent_type")
        session, transcript, agent, kind = (str(fields.get(key) or "") for key in keys)
        subagent = Subagent(id=agent, type=kind, transcript_path="") if name == "SubagentStart" else None
        return StopEvent(session_id=session, transcript_path=transcript, cwd=project, subagent=subagent)
    try:
        return read_stop(name, {**fields, "hook_event_name": name}, cwd=project)
    except ValueError as error:
        raise UsageError(f"the hook's input on stdin: {error}") from None


def _answer(arguments: GateArguments, decision: Decision, fields: dict[str, Any]) -> tuple[int, str]:
    """Return the exit code and what is printed to stdout for an agent program."""
    name = arguments.gate.name
    if isinstance(decision, Fault) and not decision.may_block and decision.kind != "waiting":
        print(f"turngate gate: {describe_fault(name, decision)}", file=sys.stderr)
        return EXIT_NOT_PASSED, ""
    answer = answer_json(name, decision, for_turngate=IN_HOOK in os.environ)
    if not arguments.exit_code or "continue" in answer:  # no exit code ends a turn
        host = None if IN_HOOK in os.environ else recognize(fields)
        return EXIT_PASSED, json.dumps(answer) if host in (None, "claude") else _answer_host(host, answer)
    text = answer.get("reason") or answer.get("systemMessage")
    if text:
        print(text, file=sys.stderr)
    if "decision" in answer:
        return EXIT_BLOCK, ""
    return EXIT_NOT_PASSED if isinstance(decision, Fault) else EXIT_PASSED, ""


def _answer_host(host: str, answer: dict[str, Any]) -> str:
    """Return the answer so that the host understands it; `answer` is that for Claude Code."""
    decision: Literal["allow", "block", "halt"]
    decision = "block" if "decision" in answer else "halt" if "continue" in answer else "allow"
    notices = (answer["systemMessage"],) if "systemMessage" in answer else ()
    reason = answer.get("reason") or answer.get("stopReason") or ""
    return HOSTS[host].write_answer(HostAnswer(decision=decision, reason=reason, notices=notices)).stdout


def _answer_in_words(name: str, decision: Decision) -> int:
    """Answer a person, or a script that reads the exit code."""
    label = f"gate {quote_name(name)}"
    match decision:
        case Allow() | Advise():
            note = (decision.notice or "").removeprefix(f"{label}: ")
            print(f"{label}: passed" + (f" ({note})" if note else ""))
            return EXIT_PASSED
        case Block(reason):
            print(f"{label}: failed\n{reason}")
        case Fault(may_block=False):
            print(f"turngate gate: {describe_fault(name, decision)}", file=sys.stderr)
        case Fault():
            print(describe_fault(name, decision))
        case Halt(reason, waits=True):
            print(f"{label}: waits for you: {reason}")
        case Halt(reason):
            print(f"{label}: the limit is reached: {reason}")
        case _:
            assert_never(decision)
    return EXIT_NOT_PASSED


# Help


def _help() -> str:
    rows = "\n".join(f"  {gate.name:<14} {gate.summary}" for gate in GATES.values())
    return f"""\
usage: turngate gate NAME [options] [operands] [-- COMMAND…]
       turngate gate -- COMMAND…

Check one gate. As a hook command, it blocks an agent's stop until its condition is met: it reads the hook's
JSON on stdin and answers with JSON. Without that input, it answers in plain text.

Gates (`turngate gate NAME --help` explains one):
{rows}

Options of every gate:
{_option_rows(COMMON)}

Examples:
  turngate gate -- pytest -q                         block the stop until the command passes
  turngate gate -- 'npm test && npm run lint'        one argument with spaces is a command line for sh
  turngate gate command --timeout 300 -- make test   the same, with a time limit

Exit codes:
  0   with a hook's JSON on stdin: the answer is the JSON on stdout; without it: passed
  1   wrong usage or internal error; without a hook's JSON, also: failed, or could not run
  2   only with --exit-code: a block, with its reason on stderr
  64  the event on stdin came from a command that the agent ran in that session, so nothing was checked"""


def _help_of(gate: Gate) -> str:
    operands = f" {gate.operands.metavar or 'TEXT'}" if gate.operands else ""
    command = {"never": "", "optional": " [-- COMMAND…]", "required": " -- COMMAND…"}[gate.command]
    own = f"\n\nOptions:\n{_option_rows(gate.options)}" if gate.options else ""
    about = f"\n\n{gate.operands.metavar}: {gate.operands.help}" if gate.operands else ""
    purpose = f"Blocks the stop until: {gate.summary}."
    if gate.is_observer:
        text = gate.summary.strip("()")
        purpose = f"{text[0].upper()}{text[1:]}. It never blocks."
    return f"""\
usage: turngate gate {gate.name} [options]{operands}{command}

{purpose}{about}{own}

Options of every gate:
{_option_rows(tuple(option for option in COMMON if option.name != "strict" or not gate.is_observer))}"""


def _option_rows(options: tuple[GateOption, ...]) -> str:
    rows = []
    for option in options:
        value = {"flag": "", "texts": f" {option.metavar}…"}.get(option.kind, f" {option.metavar}")
        rows.append(f"  {f'--{option.name}{value}':<26} {option.help}")
    return "\n".join(rows)
