"""One stop of an agent of a host: ask the hooks under the loop guard that is kept on disk, and answer the host."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from turngate.core.constants import STOP_EVENTS, STOPS_OF_START, TEAM_EVENTS
from turngate.core.events.events import Event, StopEvent
from turngate.core.events.hook_input import read_event, read_stop
from turngate.core.hooks.kinds import label
from turngate.core.settings import Settings
from turngate.core.text import quote_name
from turngate.core.verdict.decisions import Allow
from turngate.core.verdict.hook_run import HookRun, outcome
from turngate.core.verdict.json_output import agent_json
from turngate.core.verdict.loop_guard import ContinueTurn, EndTurn, LoopGuard, describe_last_reason, new_guard
from turngate.core.verdict.verdict import Stop, Verdict, conclude, notices, warnings_with_hints
from turngate.engine import ask_hooks
from turngate.errors import UsageError
from turngate.gates.goal_rule import clear_met
from turngate.gates.stored_state import digest
from turngate.hosts.host import HEADING, Host, HostAnswer
from turngate.hosts.stop_count import forget_count, locked_count, read_count, write_count
from turngate.ports import HeldPass, World
from turngate.settings.load import has_unloaded_hooks
from turngate.state.paths import state_folder
from turngate.transcript.format_detection import tool_call_position

# A host may take an empty reason for no block at all.
NO_REASON = "A hook blocked the stop without a reason."
NO_STOP_REASON = "no reason given"


def answer_for(step: ContinueTurn | EndTurn, notices: Sequence[str] = ()) -> HostAnswer:
    """Return the answer for the next step of a turn; `notices` are what else the user has to know."""
    last = describe_last_reason(step) if isinstance(step, EndTurn) else None
    texts = tuple(text for text in (step.notice, last, *notices) if text)
    if isinstance(step, ContinueTurn):
        return HostAnswer(decision="block", reason=step.prompt.strip() or NO_REASON, notices=texts)
    reason = (step.stop_reason or "").strip() or NO_STOP_REASON
    match step.ended_by:
        case "halted":
            return HostAnswer(decision="halt", reason=reason, notices=texts)
        case "checkpoint":
            return HostAnswer(decision="halt", reason=f"waiting for the user: {reason}", notices=texts)
        case _:
            return HostAnswer(decision="allow", notices=texts)


ACCEPT = "to accept it: turngate gates accept {} --why …"
NOT_COUNTED = "the agent stops although a hook blocks, because the number of continuations cannot be stored in the state folder"


class HostStop(NamedTuple):
    """What the host is told, and the verdict behind it."""

    answer: HostAnswer
    verdict: Verdict


_Fields = Mapping[str, Any]
AskOthers = Callable[[Event], Awaitable[tuple[HookRun, ...]]]


async def answer_host_event(
    host: Host,
    fields: _Fields,
    known: _Fields,
    settings: Settings,
    world: World,
    path: str,
    ask_others: AskOthers | None = None,
) -> HostStop | None:
    """Return the answer to a stop; None at a start, where gates only record what is there. Raises UsageError.

    `known`: the normalized fields. `path`: the file of the count for this agent. `ask_others`: asks the hooks of
    the projects inside of this one.
    """
    name = known["hook_event_name"]
    if name not in STOP_EVENTS:
        start = read_event(name, {**known}, cwd=world.project)
        await ask_hooks(start, rules_at(start, settings), world)
        if ask_others:
            await ask_others(start)
        return None
    try:
        event = replace(read_stop(name, {**known}, cwd=world.project), host_fields=dict(fields))
    except ValueError as error:
        raise UsageError(f"the event on stdin: {error}") from None
    prompt = _prompt(event)
    is_active = event.stop_hook_active
    # The transcript in which the tool calls of the stopping agent are, or "" if it is not known.
    transcript = event.stopping_transcript
    is_shared = event.subagent is not None and transcript == event.transcript_path
    transcript = "" if is_shared and not host.subagents_in_transcript else transcript
    calls = tool_call_position(transcript) if event.tool_calls is None else event.tool_calls
    # Whether the host says that no hook has continued this turn. It is asked only where there is nothing better, and
    # where its own limit ends a loop if that is not true.
    is_first = event.name not in TEAM_EVENTS and not prompt and host.limit is not None and not is_active
    stored = None if is_first else read_count(path, prompt, is_active=is_active)
    if stored and stored.get("has_ended"):
        # Another hook of the host has continued the turn that the limit has ended for ours.
        return HostStop(_still_blocked(stored), Stop())
    guard = _guard(event, settings, world, stored, calls)
    event = replace(event, stop_hook_active=guard.active, continuation_count=guard.continuations)
    event = replace(event, limit=guard.limit)
    verdict = await ask_hooks(event, settings, world, guard)
    if ask_others and (others := await ask_others(event)):
        verdict = conclude((*verdict.runs, *others), settings.dialect)
    with locked_count(path):  # several stops of one agent may run at once; each counts
        latest = None if is_first else read_count(path, prompt, is_active=is_active)
        if latest and latest.get("has_ended"):
            return HostStop(_still_blocked(latest), verdict)
        guard = guard if latest == stored else _guard(event, settings, world, latest, calls)
        hint = "" if event.subagent else ACCEPT.format(event.session_id)
        step = _store_count(path, prompt, guard.after(verdict), calls, hint)
    if world.store is not None and isinstance(step, EndTurn) and step.ended_by != "allowed":
        # An end that no verdict names, such as the limit.
        end = {"kind": "turn_end", "event": event.name, **agent_json(event), "ended_by": step.ended_by}
        reason = step.notice or step.stop_reason or describe_last_reason(step)
        world.store.record(event.session_id, {**end, "continuations": guard.continuations, "reason": reason})
    accept = [hint] if is_at_limit(step) and hint else []
    met = clear_met(verdict.runs, state_folder(world.own_environ)) if isinstance(step, EndTurn) else ()
    answer = answer_for(step, (*accept, *_notices(event, verdict, settings), *met))
    if answer.decision == "block" and not host.adds_heading:
        answer = replace(answer, reason=f"{HEADING}\n{answer.reason}")
    if isinstance(step, EndTurn):
        is_enforced = step.ended_by != "allowed" or not verdict.unenforced
        answer = replace(answer, outcome=step.ended_by if is_enforced else "not enforced")
    return HostStop(answer, verdict)


def is_at_limit(step: ContinueTurn | EndTurn) -> bool:
    """Return whether the turn ends although a hook blocks."""
    return isinstance(step, EndTurn) and step.ended_by in ("capped", "stalled")


def rules_at(event: Event, settings: Settings) -> Settings:
    """Return the settings with what is asked at an event: at a start, only the gates of its stop record something."""
    stops = STOPS_OF_START.get(event.name)
    rules = tuple(rule for rule in settings.rules if stops is None or rule.event in stops)
    return replace(settings, rules=rules)


def held_pass(stop: HostStop, settings: Settings, world: World) -> HeldPass | None:
    """Return that for which the stop passes again; None if more than gates was asked."""
    verdict = stop.verdict
    if not isinstance(verdict, Stop) or verdict.halted or stop.answer.notices or settings.plugin_dirs:
        return None
    rules = [rule for rule, _ in world.held]
    if not rules or not all(isinstance(run.decision, Allow) and run.rule in rules for run in verdict.runs):
        return None
    trees, files, variables = zip(*(passed for _, passed in world.held), strict=True)
    return (trees[0], sum(files, ()), sum(variables, ())) if len(set(trees)) == 1 else None


def _store_count(
    path: str, prompt: str, step: ContinueTurn | EndTurn, calls: int | None, hint: str
) -> ContinueTurn | EndTurn:
    """Store where the turn stands, and return the step; without a count, the turn ends. `hint`: what to do at the limit."""
    match step:
        case ContinueTurn(guard=guard):
            if not write_count(path, prompt, {"guard": guard.to_json(), "calls": calls}):
                return EndTurn("capped", notice=NOT_COUNTED, last_reason=step.prompt)
        case EndTurn() if is_at_limit(step):
            texts = filter(None, (step.notice, describe_last_reason(step), hint))
            write_count(path, prompt, {"has_ended": True, "notices": list(texts)})
        case EndTurn():
            forget_count(path)
    return step


def _still_blocked(stored: Mapping[str, Any]) -> HostAnswer:
    """Let the agent stop in a turn that the limit has ended, and say so once more."""
    notices = stored.get("notices")
    texts = tuple(map(str, notices)) if isinstance(notices, list) else ()
    return HostAnswer(decision="allow", notices=texts, outcome="capped")


def _prompt(event: StopEvent) -> str:
    """Return what is the same at every stop that belongs to one prompt of the user, or "" if the host does not say it.

    Gemini CLI has no id for a prompt, but names its text. A task, and the time of a teammate, may have several prompts.
    """
    if event.name in TEAM_EVENTS:
        return ""
    text = (event.host_fields or {}).get("prompt")
    return event.prompt_id or (digest(text) if isinstance(text, str) else "")


def _guard(
    event: StopEvent, settings: Settings, world: World, stored: Mapping[str, Any] | None, calls: int | None
) -> LoopGuard:
    """Return the guard as the last stop has left it. A tool call since then ends a stall."""
    guard = new_guard(settings, world.own_environ, child=event.subagent is not None)
    if stored is None:
        return guard
    try:
        guard = LoopGuard.from_json(stored["guard"], guard)
    except (KeyError, TypeError, ValueError, OverflowError):  # of another version, or damaged
        return guard
    if guard.requested:
        guard = guard.extended(guard.requested)
    is_idle = calls is not None and calls == stored.get("calls")
    return guard if is_idle else guard.after_tool_call()


def _notices(event: StopEvent, verdict: Verdict, settings: Settings) -> tuple[str, ...]:
    """Return what the user is to know besides the decision."""
    warnings = warnings_with_hints(verdict.runs, settings.dialect)
    found = [f"{text} ({hint})" if hint else text for text, hint in warnings]
    if has_unloaded_hooks(settings, event.name):
        problem = next((str(each) for each in settings.not_loaded), "")
        found.append(f"settings are NOT fully loaded: {problem}; see `turngate check`")
    if settings.show_pass and not found and isinstance(verdict, Stop) and verdict.runs:
        outcomes = ((run, outcome(run)) for run in verdict.runs)
        passes = (
            f"{quote_name(label(run.rule.hook))} {'passed' if ended == 'allow' else ended} ({run.seconds:.1f} s)"
            for run, ended in outcomes
        )
        found.append(f"Turngate: {', '.join(passes)}")
    return (*notices(verdict.runs), *found)
