"""Gate hooks: a ready-made gate, run in this process; it reaches the project only through the shell."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import assert_never

from turngate.core.answers.interpret import interpret
from turngate.core.answers.report_types import HookFailed, Report, Returned
from turngate.core.constants import GATES_BASE
from turngate.core.events.events import Event, StopEvent, Subagent
from turngate.core.events.hook_input import UNNAMED_SESSION
from turngate.core.hooks.kinds import CommandHook, GateHook, PromptHook, command_of
from turngate.core.settings import Rule, Settings
from turngate.core.text import describe_exception
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.gates.arguments import GateCall, read_gate_hook
from turngate.gates.gate import GateContext
from turngate.gates.run_commands import ProjectUnreachable
from turngate.gates.run_gate import held_pass, make_context, record_start, run_gate
from turngate.gates.session_goal import GOAL_SOURCE
from turngate.ports import HookRunContext, World
from turngate.runners.command import environ_and_level, prepare_command, with_copies, with_own_bytecode
from turngate.state.paths import state_folder

MAX_MARGIN_S = 5.0  # between the limit of the gate itself and the timeout of the hook
MARGIN_FRACTION = 0.2
# Nothing is kept for them: their stops have nothing to do with each other.
_NO_SESSIONS = ("", UNNAMED_SESSION)


async def run_gate_hook(
    rule: Rule, hook: GateHook, event: Event, settings: Settings, world: World, live: HookRunContext
) -> Report:
    """Run the gate at a stop; at a start, let it record what is there."""
    call = _read_goal(hook) if rule.source == GOAL_SOURCE else read_gate_hook(hook)
    if not isinstance(call, GateCall):
        return HookFailed("; ".join(map(str, call)))
    command = with_own_bytecode(call.command or CommandHook("", env=hook.env), rule.files, settings, world)
    try:
        seen = await with_copies(event, world) if call.command else event
    except OSError as error:
        return HookFailed(str(error))
    pass_env = settings.passed_variables(rule)
    prepared = await prepare_command(command, seen, settings, world, live, pass_env=pass_env)
    if isinstance(prepared, HookFailed):
        return prepared
    ready, env = prepared
    environ, level = environ_and_level(rule.source, world)
    context = make_context(
        call.gate,
        _stop_of(event),
        world.shell,
        world.project,
        options=call.options,
        command=call.command and ready,
        timeout=_own_limit(live),
        limit=live.limit,
        state_folder=state_folder(world.own_environ) if event.session_id not in _NO_SESSIONS else None,
        env=env,
        redactor=live.redactor,
        live=live,
        reviewed=rule.files,
        base=world.own_environ.get(GATES_BASE),
        environ=environ,
    )
    if not isinstance(event, StopEvent):
        return Returned(await _record(call, context))
    judge = judge_for(event, settings, world, live)
    context.ask_judge = lambda question: judge(_as_seen_by(rule, question, settings))
    context.url_problem = partial(_url_problem, settings, level)
    decision = await run_gate(call.gate, context, strict=hook.strict)
    if passed := held_pass(context, decision):
        world.held.append((rule, passed))
    return Returned(decision)


def _read_goal(hook: GateHook) -> GateCall:
    from turngate.gates.library.goal import GOAL  # noqa: PLC0415 # lazy: few sessions have a goal

    return GateCall(GOAL, hook.options, command_of(hook))


def _url_problem(settings: Settings, level: str, url: str, name: str) -> str | None:
    from turngate.core.hooks.http_policy import url_problem  # noqa: PLC0415 # lazy: few gates send anything

    return url_problem(url, level, settings.allowed_urls, settings.http_hook_urls, name=name)


def recording_rules(rules: Iterable[Rule], start: str) -> tuple[Rule, ...]:
    """Return the rules of gates that record something, for the start of the agent at whose stop they run."""
    return tuple(
        replace(rule, event=start, matcher=rule.matcher if start == "SubagentStart" else None)
        for rule in rules
        if isinstance(rule.hook, GateHook) and not rule.hook.detached and _records(rule.hook)
    )


def _records(hook: GateHook) -> bool:
    call = read_gate_hook(hook)
    return isinstance(call, GateCall) and call.gate.record is not None


def _own_limit(live: HookRunContext) -> float | None:
    """Return the seconds after which the gate ends by itself, with the output so far, before the hook is cancelled."""
    if live.deadline is None:
        return None
    left = live.deadline - asyncio.get_running_loop().time()
    return max(left - min(MAX_MARGIN_S, left * MARGIN_FRACTION), 0.0)


def _stop_of(event: Event) -> StopEvent:
    """Return the stop of the agent that an event is about, with the fields that identify the agent."""
    if isinstance(event, StopEvent):
        return event
    named = Subagent(id=event.agent_id or "", type=event.agent_type, transcript_path="")
    agent, session, path = named if event.agent_id else None, event.session_id, event.transcript_path
    return StopEvent(session_id=session, transcript_path=path, cwd=event.cwd, subagent=agent)


async def _record(call: GateCall, context: GateContext) -> Decision:
    """A start is never blocked: without a record, the gate says so at the stop."""
    try:
        await record_start(call.gate, context)
    except ProjectUnreachable as error:
        return Allow(warnings=(f"the state at the start is not recorded: {error}",))
    except Exception as error:  # noqa: BLE001 - a fault of our own must not fail the start
        return Allow(warnings=(f"the state at the start is not recorded: {describe_exception(error)}",))
    return Allow()


def _as_seen_by(rule: Rule, question: PromptHook, settings: Settings) -> PromptHook:
    """Return the question with the judge that the gate's own level names: a project does not choose the user's."""
    seen, _ = settings.as_seen_by(replace(rule, hook=question))
    return replace(question, model=getattr(seen.hook, "model", None))


def judge_for(
    event: StopEvent, settings: Settings, world: World, live: HookRunContext
) -> Callable[[PromptHook], Awaitable[Decision]]:
    async def ask(hook: PromptHook) -> Decision:
        # lazy: it reads transcripts, which few gates need
        from turngate.runners.prompt import run_prompt  # noqa: PLC0415

        report = await run_prompt(hook, event, settings, world, live)
        return _without_notes(interpret(report, Rule(event.name, hook), settings.dialect).decision)

    return ask


def _without_notes(decision: Decision) -> Decision:
    match decision:
        case Allow(reason):
            return Allow(reason)
        case Block(text) | Advise(text):
            return Block(text)
        case Halt(reason):
            return Halt(reason or "the judge ended the turn")
        case Fault(error):
            return Fault(error)
        case _:
            assert_never(decision)
