"""What hooks may do at events other than a stop: add context, decide a permission, change a tool's input."""

from collections.abc import Iterable, Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.answers.answer_json import DENIED, Answer, Behavior
from turngate.core.answers.report_types import Exited
from turngate.core.constants import STOP_EVENTS
from turngate.core.dialect import Dialect
from turngate.core.text import BLANKS
from turngate.core.verdict.decisions import Advise, Block, Fault
from turngate.core.verdict.hook_run import HookRun, run_message
from turngate.core.verdict.verdict import context_reminder


@frozen(kw_only=True)
class Permission:
    """The combined answer of the hooks of a tool event: deny, defer, ask, allow in this order; None without one."""

    behavior: Behavior | None = None
    reason: str = ""
    updated_input: Mapping[str, Any] | None = None
    context: str = ""
    interrupt: bool = False
    user_only: bool = False  # an answer was not understood, so only the user can permit the call


# Here plain stdout is context too.
PLAIN_CONTEXT_EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact")


def context_of(event: str, runs: Iterable[HookRun]) -> str:
    """Return what hooks add to the conversation at an event other than a stop, where advice is part of the prompt."""
    return "" if event in STOP_EVENTS else added_context(runs, plain=event in PLAIN_CONTEXT_EVENTS)


def permission_of(event: str, runs: Iterable[HookRun]) -> Permission | None:
    """Return the answer of the hooks of a tool event; None for other events."""
    if event == "PreToolUse":
        return permission_before_tool(runs)
    return permission_for_user(runs) if event == "PermissionRequest" else None


def block_reasons(runs: Iterable[HookRun]) -> str | None:
    blocking = [run for run in runs if run.mode == "gate" and isinstance(run.decision, Block)]
    return "\n\n".join(run_message(run) or "" for run in blocking) if blocking else None


def added_context(runs: Iterable[HookRun], *, plain: bool) -> str:
    """Return what hooks add to the conversation: `additionalContext`, and with `plain` also plain stdout."""
    return "\n\n".join(text for run in runs if (text := _context(run, plain=plain)))


def late_context(run: HookRun, dialect: Dialect) -> str:
    """Return what a hook that ran in the background adds to the conversation: its `additionalContext`, never text."""
    advice = "" if dialect.advice == "never" else added_context((run,), plain=False)
    if not advice:
        return ""
    event = run.rule.event
    return context_reminder(event, advice) if dialect.prefix_each else f"Feedback of a {event} hook: {advice}"


def wake_message(run: HookRun) -> str:
    """Return the message with which a hook that ran in the background wakes the agent; empty if it does not.

    Claude Code: "exit 2 starts a new turn (`Stop hook blocking error from command "Stop": <stderr>`)" (measured).
    """
    is_block = run.mode == "gate" and isinstance(run.decision, Block)
    if not (run.rule.hook.rewake and is_block and isinstance(run.report, Exited) and run.report.code == 2):
        return ""
    event, stderr = run.rule.event, run.report.stderr.strip() or "No stderr output"
    return f'{event} hook blocking error from command "{event}": {stderr}'


def _context(run: HookRun, *, plain: bool) -> str:
    if run.answer:
        return (run.answer.advice or "").strip() if _counts(run) else ""
    if isinstance(run.decision, Advise) and run.mode == "gate":  # the return value of a callback
        return run.decision.advice.strip()
    if not plain or run.mode != "gate" or not isinstance(run.report, Exited) or run.report.code != 0:
        return ""
    # Text is context even where a decision inside it was lost; JSON that could not be read is not.
    text = run.report.stdout.strip()
    return "" if isinstance(run.decision, Fault) and text.lstrip(BLANKS).startswith("{") else text


def permission_before_tool(runs: Iterable[HookRun]) -> Permission:
    """Combine the answers to a PreToolUse event. Exit 2 and `decision: block` deny with their reason."""
    runs = tuple(runs)
    answers = _answers(runs)
    context = added_context(runs, plain=False)
    updated_input = _last("updated_input", answers)
    blocked = block_reasons(runs)
    if blocked is not None:
        return Permission(behavior="deny", reason=blocked, updated_input=updated_input, context=context)
    order: tuple[Behavior, ...] = ("defer", "ask", "allow")
    not_understood = _not_understood(runs)
    permits: list[tuple[Behavior | None, str]] = [("ask", why) for why in not_understood]
    decided = (answer for answer in answers if answer.permission in order)
    permits += [(answer.permission, answer.permission_reason) for answer in decided]
    behaviors = {behavior for behavior, _ in permits}
    return Permission(
        behavior=next((behavior for behavior in order if behavior in behaviors), None),
        reason="\n\n".join(reason for _, reason in permits if reason),
        updated_input=updated_input,
        context=context,
        user_only=bool(not_understood),
    )


def permission_for_user(runs: Iterable[HookRun]) -> Permission:
    """Combine the answers to a PermissionRequest event. Exit 2 alone changes nothing."""
    runs = tuple(runs)
    answers = _answers(runs)
    denied = [answer for answer in answers if answer.permission == "deny"]
    allowed = [answer for answer in answers if answer.permission == "allow"]
    if denied:
        reason = denied[0].permission_reason if denied[0].permission_reason.strip() else DENIED
        interrupt = any(answer.interrupt for answer in denied)
        return Permission(behavior="deny", reason=reason, interrupt=interrupt)
    blocked = block_reasons(runs)
    if blocked is not None:  # `decision: block`, as at other events
        return Permission(behavior="deny", reason=blocked)
    if why := _not_understood(runs):  # it may have been a denial
        return Permission(behavior="ask", reason="\n\n".join(why))
    if allowed:
        return Permission(behavior="allow", updated_input=_last("updated_input", allowed))
    return Permission()


def updated_output(runs: Iterable[HookRun]) -> Any:
    """Return what the last PostToolUse hook that says so puts in place of the tool's output; None if none does."""
    return _last("updated_output", _answers(runs))


def first_messages(runs: Iterable[HookRun]) -> list[str]:
    messages = (answer.first_message for answer in _answers(runs))
    return [message for message in messages if message and message.strip()]


def _answers(runs: Iterable[HookRun]) -> list[Answer]:
    return [run.answer for run in runs if run.answer and _counts(run)]


def _not_understood(runs: Iterable[HookRun]) -> list[str]:
    """Return why answers about a tool call cannot be understood, where the user decides then."""
    faults = (run.decision for run in runs if run.mode == "gate" and isinstance(run.decision, Fault))
    return [fault.error for fault in faults if fault.asks_user]


def _counts(run: HookRun) -> bool:
    return run.mode == "gate" and not isinstance(run.decision, Fault)


def _last(field: str, answers: Iterable[Answer]) -> Any:
    values = [value for answer in answers if (value := getattr(answer, field)) is not None]
    return values[-1] if values else None
