"""Explains the fields of a JSON answer: what each one means at an event, in a dialect."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from turngate._frozen import frozen
from turngate.core.answers.contract import Answer
from turngate.core.constants import STOP_EVENTS
from turngate.core.dialect import Dialect
from turngate.core.text import truncate
from turngate.core.verdict.decisions import Block, Fault, Halt
from turngate.core.verdict.hook_run import HookRun

MAX_VALUE_CHARS = 100


@frozen
class FieldNote:
    """One thing that a hook gave, and what it means."""

    field: str  # "exit code", "stdout", "decision", "hookSpecificOutput.additionalContext" …
    value: str
    meaning: str
    is_ignored: bool = False


def ignored(field: str, value: str, why: str) -> FieldNote:
    return FieldNote(field, value, why, is_ignored=True)


def explain_object(value: Mapping[str, Any], run: HookRun, dialect: Dialect) -> Iterator[FieldNote]:
    """Yield a note for each key of the answer."""
    for key, each in value.items():
        if key == "hookSpecificOutput" and isinstance(each, dict):
            yield from _explain_specific(each, run, dialect)
        elif key in _TOP:
            yield _note(key, each, _TOP[key](run))
        else:
            hint = (
                "it belongs into `hookSpecificOutput`"
                if key in (*_SPECIFIC, "additionalContext")
                else "it is not a key of an answer"
            )
            yield _note(key, each, (False, hint))


Meaning = tuple[bool, str]  # whether it counts, and what it means or why it does not count


def _note(key: str, value: Any, meaning: Meaning) -> FieldNote:
    counts, text = meaning
    return FieldNote(key, truncate(json.dumps(value, ensure_ascii=False), MAX_VALUE_CHARS), text, not counts)


def _answer(run: HookRun) -> Answer:
    return run.answer or Answer()


def _decision(run: HookRun) -> Meaning:
    event = run.rule.event
    match run.decision:
        case Halt():
            return False, "`continue: false` overrides it"
        case Block():
            return True, "blocks"
        case Fault(error):
            return False, error
        case _ if _answer(run).decision == "block":
            return False, f"a hook cannot block at {event}"
        case _ if _answer(run).decision == "allow":
            return True, "does not block; it cannot cancel the block of another hook"
        case _:
            words = '"block" or "approve"'
            return False, f"it is not understood: expected {words}"


def _reason(run: HookRun) -> Meaning:
    if isinstance(run.decision, Block):
        at_stop = run.rule.event in STOP_EVENTS
        return True, "the next prompt of the agent" if at_stop else "why it blocks, for the agent"
    return False, "it belongs to a block"


def _continue(run: HookRun) -> Meaning:
    if isinstance(run.decision, Halt):
        return True, "false: the turn ends now, whatever other hooks decide"
    return False, "only false has an effect: it ends the turn"


def _stop_reason(run: HookRun) -> Meaning:
    if isinstance(run.decision, Halt):
        return True, "shown to the user"
    return False, "it belongs to `continue: false`"


def _waits(run: HookRun) -> Meaning:
    if isinstance(run.decision, Halt) and run.decision.waits:
        return True, "the turn ends as waiting for the user's approval"
    return False, "only true with `continue: false` has an effect, and not in the claude dialect"


def _not_enforced(run: HookRun) -> Meaning:
    if isinstance(run.decision, Fault):
        return True, "the gate could not check anything: it is NOT enforced, and the user sees why"
    return False, "the answer has a decision, or the dialect does not read it"


def _continuations(run: HookRun) -> Meaning:
    if isinstance(run.decision, Block) and run.decision.continuations is not None:
        return True, "the limit of continuations is raised to this, at most to the hard limit"
    return False, "a whole number with a block has an effect, and not in the claude dialect"


def _notice(run: HookRun) -> Meaning:
    if run.decision.notice:
        return True, "shown to the user, and not sent to the agent"
    if _answer(run).notice:
        return False, "the warning about `notEnforced` says the same"
    return False, "it is empty, or not a string"


def _quiet(run: HookRun) -> Meaning:
    if run.decision.quiet:
        return True, "stdout is not written to the transcript"
    return False, "only true has an effect"


_TOP: Mapping[str, Callable[[HookRun], Meaning]] = {
    "decision": _decision,
    "reason": _reason,
    "continue": _continue,
    "stopReason": _stop_reason,
    "waits": _waits,
    "notEnforced": _not_enforced,
    "continuations": _continuations,
    "systemMessage": _notice,
    "suppressOutput": _quiet,
    "hookSpecificOutput": lambda _run: (False, "expected an object"),
}


# hookSpecificOutput


def _explain_specific(value: Mapping[str, Any], run: HookRun, dialect: Dialect) -> Iterator[FieldNote]:
    event = run.rule.event
    named = value.get("hookEventName", event)
    is_ours = isinstance(named, str) and named.replace("_", "").lower() == event.lower()
    for key, each in value.items():
        name = f"hookSpecificOutput.{key}"
        if key == "hookEventName":
            yield _note(name, each, (is_ours, "the event" if is_ours else f"expected {event}"))
        elif not is_ours:
            yield _note(name, each, (False, f"`hookEventName` is not {event}"))
        elif key == "additionalContext":
            yield _note(name, each, _context(run, dialect))
        elif key not in _SPECIFIC:
            yield _note(name, each, (False, "it is not a key of an answer"))
        elif event not in _SPECIFIC[key][0]:
            yield _note(name, each, (False, f"it has no effect at {event}"))
        else:
            yield _note(name, each, _SPECIFIC[key][1](run))


def _context(run: HookRun, dialect: Dialect) -> Meaning:
    if isinstance(run.decision, Fault | Halt):
        return False, "the hook gave no decision" if isinstance(run.decision, Fault) else "the turn ends"
    if run.rule.event in _NO_CONTEXT_EVENTS:
        return False, f"it has no effect at {run.rule.event}"
    if run.rule.event == "PreCompact":
        return True, "added to the request for a summary"
    if run.rule.event not in STOP_EVENTS:
        return True, "added to the conversation"
    if dialect.advice == "never":
        return False, f"at a stop, the {dialect.name} dialect does not use it"
    if isinstance(run.decision, Block):
        return True, "sent to the agent after the reason"
    return True, "advice: it continues the turn once"


def _permission(run: HookRun) -> Meaning:
    meanings = {
        "allow": "the tool call is permitted without a question",
        "deny": "the tool call is denied",
        "ask": "the user is asked",
        "defer": "the decision is left to the user",
    }
    permission = _answer(run).permission
    if isinstance(run.decision, Fault) or permission is None:
        return False, "it is not understood: expected " + ", ".join(f'"{word}"' for word in meanings)
    return True, meanings[permission]


def _permission_reason(run: HookRun) -> Meaning:
    if _answer(run).permission is None:
        return False, "it belongs to `permissionDecision`"
    return True, "the reason of the permission"


def _updated_input(run: HookRun) -> Meaning:
    counts = _answer(run).updated_input is not None and not isinstance(run.decision, Fault)
    return counts, "the tool gets this input instead" if counts else "expected an object"


def _updated_output(_run: HookRun) -> Meaning:
    return True, "the agent gets this instead of the tool's result"


def _first_message(_run: HookRun) -> Meaning:
    return True, "the session begins with this message"


_NO_CONTEXT_EVENTS = ("PermissionRequest", "StopFailure", "SessionEnd")
_SPECIFIC: Mapping[str, tuple[tuple[str, ...], Callable[[HookRun], Meaning]]] = {
    "permissionDecision": (("PreToolUse",), _permission),
    "permissionDecisionReason": (("PreToolUse",), _permission_reason),
    "updatedInput": (("PreToolUse",), _updated_input),
    "decision": (("PermissionRequest",), _permission),
    "updatedToolOutput": (("PostToolUse",), _updated_output),
    "initialUserMessage": (("SessionStart",), _first_message),
}
