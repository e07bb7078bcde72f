"""Combine the runs of all hooks into a verdict: Stop or Continue."""

from collections.abc import Iterable
from dataclasses import field
from typing import Literal, assert_never

from turngate._frozen_dataclass import frozen
from turngate.core.answers.report_types import TimedOut
from turngate.core.constants import OBSERVED_EVENTS, STOP_EVENTS
from turngate.core.dialect import Dialect
from turngate.core.hooks.kinds import label
from turngate.core.settings import Rule
from turngate.core.text import quote_name
from turngate.core.verdict.decisions import UNCHANGED_RESULT, Advise, Allow, Block, Fault, Halt
from turngate.core.verdict.hints import run_hint
from turngate.core.verdict.hook_run import HookOutput, HookRun, outputs


class _Verdict:
    runs: tuple[HookRun, ...]

    @property
    def hook_outputs(self) -> tuple[HookOutput, ...]:
        """What each hook said, in configured order."""
        return outputs(self.runs)


@frozen
class Stop(_Verdict):
    """The agent may stop."""

    runs: tuple[HookRun, ...] = ()
    halted: bool = False
    stop_reason: str | None = None  # for the user
    waits: bool = False  # halted because the agent waits for the user's approval
    unenforced: tuple[HookOutput, ...] = field(default=(), kw_only=True, repr=False, compare=False)
    """The gates that gave no decision although they should have: they failed, timed out, were skipped or wait."""

    @property
    def ended_by(self) -> Literal["allowed", "halted", "checkpoint"]:
        """How the turn ends."""
        return "checkpoint" if self.waits else "halted" if self.halted else "allowed"


@frozen
class Continue(_Verdict):
    """The agent continues with this prompt."""

    runs: tuple[HookRun, ...]
    prompt: str
    advice_only: bool = False
    messages: tuple[str, ...] = ()  # the parts of the prompt that are sent one by one; empty: all at once
    unenforced: tuple[HookOutput, ...] = field(default=(), kw_only=True, repr=False, compare=False)


Verdict = Stop | Continue


def conclude(runs: tuple[HookRun, ...], dialect: Dialect) -> Verdict:
    if all(type(run.decision) is Allow for run in runs):
        return Stop(runs)  # the common case
    not_enforced = outputs(unenforced(runs, dialect))
    enforced = [run for run in runs if run.mode == "gate"]
    halts = [run.decision for run in enforced if isinstance(run.decision, Halt)]
    if halts:  # `continue: false` beats every block of every hook (C-06)
        waiting = [halt for halt in halts if halt.waits]
        reason = next((halt.reason for halt in (*waiting, *halts) if halt.reason), None)
        return Stop(runs, halted=True, stop_reason=reason, waits=bool(waiting), unenforced=not_enforced)
    event = runs[0].rule.event if runs else ""
    blocking = [run for run in enforced if is_blocking(run, dialect)]
    if blocking:
        messages = _messages(blocking, enforced, dialect)
        sent_apart = messages if len(messages) > 1 else ()
        return Continue(runs, "\n\n".join(messages), messages=sent_apart, unenforced=not_enforced)
    if event in STOP_EVENTS and any(_advice(run) for run in enforced):
        prompt = "\n\n".join(_messages([], enforced, dialect))
        return Continue(runs, prompt, advice_only=True, unenforced=not_enforced)
    return Stop(runs, unenforced=not_enforced)


def is_blocking(run: HookRun, dialect: Dialect) -> bool:
    """An explicit block always counts; a failure only where the hook is `blocking` (C-10)."""
    if run.rule.event in OBSERVED_EVENTS:
        return False
    match run.decision:
        case Block():
            return True
        case Fault(may_block=may_block, kind=kind):
            on_failure = kind != "skipped" and honors_on_failure(run.rule, dialect)
            return may_block and run.mode == "gate" and (on_failure or honors_blocking(run.rule, dialect))
        case Allow() | Advise() | Halt():
            return False
        case _:
            assert_never(run.decision)


def honors_blocking(rule: Rule, dialect: Dialect) -> bool:
    """Return whether the hook has `"blocking": true`, and it counts."""
    return dialect.failure_may_block and rule.hook.blocking


def honors_on_failure(rule: Rule, dialect: Dialect) -> bool:
    """Return whether the hook has `"onFailure": "block"`, and it counts. Claude Code ignores it at a stop."""
    counts = dialect.failure_may_block or rule.event not in STOP_EVENTS
    return counts and getattr(rule.hook, "on_failure", None) == "block"


def stops_sequence(run: HookRun, dialect: Dialect) -> bool:
    """Return whether `first_block` skips the hooks after this one."""
    return isinstance(run.decision, Halt) or is_blocking(run, dialect)


def block_signature(verdict: Continue, dialect: Dialect) -> tuple[tuple[str, str], ...]:
    """Return which hooks block and why, in a form that can be compared with the next block."""
    blocks = ((label(run.rule.hook), _reason(run)) for run in _blocking_gates(verdict, dialect))
    return tuple(sorted((hook, reason.removesuffix(f"\n\n{UNCHANGED_RESULT}")) for hook, reason in blocks))


def blocking_hooks(verdict: Verdict, dialect: Dialect) -> list[str]:
    """Return the names of the hooks because of which the agent continues, in configured order."""
    if isinstance(verdict, Stop):
        return []
    return [label(run.rule.hook) for run in _blocking_gates(verdict, dialect)]


def halting_hooks(verdict: Verdict) -> list[str]:
    """Return the names of the hooks that end the turn, in configured order."""
    halts = (run for run in verdict.runs if run.mode == "gate" and isinstance(run.decision, Halt))
    return [label(run.rule.hook) for run in halts]


def requested_continuations(verdict: Continue, dialect: Dialect) -> tuple[int, str] | None:
    """Return the most continuations that a blocking gate asks for, and the gate's name."""
    requests = (
        (run.decision.continuations, label(run.rule.hook))
        for run in _blocking_gates(verdict, dialect)
        if isinstance(run.decision, Block) and run.decision.continuations is not None
    )
    return max(requests, key=lambda request: request[0], default=None)


def _blocking_gates(verdict: Continue, dialect: Dialect) -> list[HookRun]:
    return [run for run in verdict.runs if run.mode == "gate" and is_blocking(run, dialect)]


# The prompt


def _messages(blocking: list[HookRun], enforced: list[HookRun], dialect: Dialect) -> tuple[str, ...]:
    event = enforced[0].rule.event
    if event not in STOP_EVENTS:
        return ("\n\n".join(_reason(run) for run in blocking),)
    prefix = dialect.subagent_prefix if event == "SubagentStop" else dialect.prefix
    if dialect.prefix_each:
        return _feedback_and_context(prefix, blocking, enforced)
    several = len(blocking) > 1
    parts = [f"{label(run.rule.hook)}: {_reason(run)}" if several else _reason(run) for run in blocking]
    parts += [_advice(run) for run in enforced if _advice(run)]
    return (prefix + "\n\n".join(parts),)


def _feedback_and_context(prefix: str, blocking: list[HookRun], enforced: list[HookRun]) -> tuple[str, ...]:
    """Claude Code: one prefix per hook, in the order in which the hooks ended.

    "`additionalContext` beside a block travels as a message of its own".
    """
    event = enforced[0].rule.event
    by_end = sorted(enforced, key=lambda run: run.finished)
    feedback = [prefix + _reason(run) for run in by_end if run in blocking]
    context = [context_reminder(event, _advice(run)) for run in by_end if _advice(run)]
    return tuple("\n\n".join(parts) for parts in (feedback, context) if parts)


def context_reminder(event: str, advice: str) -> str:
    """Return the message in which Claude Code gives a hook's context to the model."""
    return f"<system-reminder>\n{event} hook additional context: {advice}\n</system-reminder>"


def _reason(run: HookRun) -> str:
    match run.decision:
        case Block(reason):
            return reason
        case Fault(error) if run.rule.event in STOP_EVENTS:
            return f"this check failed and must pass before you may stop: {error}"
        case Fault(error):
            return f"this check failed and must pass first: {error}"
        case _:
            return ""


def _advice(run: HookRun) -> str:
    match run.decision:
        case Block(advice=str(advice)) | Advise(advice=advice):
            return advice
        case _:
            return ""


def unenforced(runs: Iterable[HookRun], dialect: Dialect) -> tuple[HookRun, ...]:
    """Return the gates that failed, timed out, were skipped against their author's intent or wait, and do not block because of that."""
    faults = (run for run in runs if run.mode == "gate" and isinstance(run.decision, Fault))
    return tuple(run for run in faults if not is_blocking(run, dialect))


def warnings(runs: Iterable[HookRun], dialect: Dialect) -> tuple[str, ...]:
    """Return the warnings of these runs for the hooks' authors, each with its hook's name."""
    return tuple(text for text, _ in warnings_with_hints(runs, dialect))


def warnings_with_hints(runs: Iterable[HookRun], dialect: Dialect) -> tuple[tuple[str, str | None], ...]:
    """Return the warnings of these runs, each with what to do about it, if that is known."""
    runs = tuple(runs)
    not_enforced = unenforced(runs, dialect)
    found: list[tuple[str, str | None]] = []
    for run in runs:
        name = f"hook {quote_name(label(run.rule.hook))}"
        if isinstance(run.decision, Fault):
            is_enforced = run not in not_enforced
            text = f"{name} {_fault_warning(run, run.decision, is_enforced=is_enforced)}"
            found.append((text, None if is_enforced else run_hint(run)))
        found += [(f"{name}: {warning}", None) for warning in run.decision.warnings]
    return tuple(found)


def unenforced_warnings(runs: Iterable[HookRun], dialect: Dialect) -> tuple[str, ...]:
    """Return one warning per gate that was not enforced, also where the dialect records it in silence."""
    return tuple(
        f"hook {quote_name(label(run.rule.hook))} {_fault_warning(run, run.decision, is_enforced=False)}"
        for run in unenforced(runs, dialect)
        if isinstance(run.decision, Fault)
    )


def _fault_warning(run: HookRun, fault: Fault, *, is_enforced: bool) -> str:
    if isinstance(run.report, TimedOut):  # the error says how long
        return fault.error if is_enforced else f"{fault.error} and was NOT enforced"
    happened, then = _FAULTS[fault.kind]
    return f"{happened if is_enforced else f'{happened} and {then}'}: {fault.error}"


_FAULTS = {
    "failed": ("failed", "was NOT enforced"),
    "timeout": ("timed out", "was NOT enforced"),
    "skipped": ("was skipped", "NOT enforced"),
    "waiting": ("waits", "was NOT enforced"),
}


def notices(runs: Iterable[HookRun]) -> tuple[str, ...]:
    return tuple(run.decision.notice for run in runs if run.decision.notice)
