"""Check an object for a decision that is not where, or not how, the JSON contract has it: a lost block is not consent."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from turngate.core.constants import PERMISSION_EVENTS
from turngate.core.text import describe_json

ANSWER_KEYS = frozenset(
    {
        "decision",
        "reason",
        "continue",
        "stopReason",
        "systemMessage",
        "suppressOutput",
        "terminalSequence",
        "hookSpecificOutput",
        "hookEventName",
        "additionalContext",
        "permissionDecision",
        "permissionDecisionReason",
        "updatedInput",
        "updatedToolOutput",
        "initialUserMessage",
        "ok",
        "impossible",
    }
)
BLOCKS = ("block", "deny")
ALLOWS = ("approve", "allow")
# Words that are not those of the contract, but mean a block to everyone.
DENIALS = frozenset(
    {*BLOCKS, "blocked", "denied", "reject", "rejected", "refuse", "refused", "forbid", "forbidden"}
)
# Keys that are not those of the contract, but say a decision with true or false.
FLAGS = {"block": True, "blocked": True, "deny": True, "denied": True, "reject": True, "rejected": True}
FLAGS |= {"approve": False, "approved": False, "allow": False, "allowed": False}
CHANGES = ("updatedInput", "updatedToolOutput")  # lost, the original command runs or a secret is shown


def wants_to_block(value: object) -> bool:
    """Return whether an object inside other output is an answer that blocks, halts, denies, asks or changes."""
    if not isinstance(value, Mapping):
        return False
    specific = value.get("hookSpecificOutput")
    if isinstance(specific, Mapping) and (
        wants_to_block(specific) or _denies(specific) or _changes(specific)
    ):
        return True
    if value.keys() <= ANSWER_KEYS:
        halts = _is_false(value.get("ok")) or _is_false(value.get("continue"))
        return halts or _restricts(value.get("decision")) or _denies(value)
    if value.keys() <= _REQUEST_KEYS and _restricts(value.get("behavior")):
        return True
    if value.keys() <= ANSWER_KEYS | FLAGS.keys() and "reason" in value and _restricting_flag(value):
        return True
    return is_block(value.get("decision")) and "reason" in value  # a record in a log may have a decision too


def _denies(value: Mapping[str, Any]) -> bool:
    request = value.get("decision")
    behavior = request.get("behavior") if isinstance(request, Mapping) else None
    return _restricts(behavior) or _restricts(value.get("permissionDecision"))


_REQUEST_KEYS = frozenset({"behavior", "message", "interrupt", "updatedInput"})


def _restricts(word: object) -> bool:
    """Return whether a decision is there and is not an approval; what is not understood may be a block."""
    if isinstance(word, Mapping):
        return _restricts(word.get("behavior"))
    return word is not None and not (isinstance(word, str) and word.strip().lower() in ALLOWS)


def _changes(value: Mapping[str, Any]) -> bool:
    return any(value.get(key) is not None for key in CHANGES)


def _is_false(value: object) -> bool:
    return value is False or (isinstance(value, str) and value.strip().lower() == "false")


def _restricting_flag(value: Mapping[str, Any]) -> str | None:
    """Return the key of `{"block": true}` or `{"approve": false}`."""
    flags = (
        (key, value[key], str(FLAGS[key]).lower()) for key in FLAGS if isinstance(value.get(key), bool | str)
    )
    return next((key for key, flag, word in flags if str(flag).strip().lower() == word), None)


def is_block(word: object) -> bool:
    return isinstance(word, str) and (
        word.strip().lower() in DENIALS or closest_word(word, BLOCKS) is not None
    )


@lru_cache(maxsize=4096)
def closest_word(word: str, known: tuple[str, ...]) -> str | None:
    """Return the known word that this one is probably meant to be."""
    from difflib import get_close_matches  # noqa: PLC0415 # lazy: few hooks misspell their decision

    return next(iter(get_close_matches(word.strip().lower()[:40], known, 1, 0.7)), None)


def lost_in_object(value: Mapping[str, Any], event: str) -> str | None:
    """Return why an object without a readable decision may still have been meant as a block, or None."""
    specific = value.get("hookSpecificOutput")
    specific = specific if isinstance(specific, Mapping) else {}
    if _is_false(value.get("ok")):
        return '`ok` is the answer of a prompt hook: print {"decision": "block", "reason": "…"} instead'
    if key := _restricting_flag(value):
        return f'`{key}` is unknown: a block is {{"decision": "block", "reason": "…"}}'
    if _restricts(value.get("permissionDecision")):
        return "`permissionDecision` belongs into `hookSpecificOutput`"
    behaviors = (value.get("behavior"), specific.get("behavior"))
    if event in PERMISSION_EVENTS and any(map(_restricts, behaviors)):
        return "`behavior` belongs into `decision` of `hookSpecificOutput`"
    if event == "PostToolUse" and value.get("updatedToolOutput") is not None:
        return "`updatedToolOutput` belongs into `hookSpecificOutput`"
    name = specific.get("hookEventName", event)
    if not is_event_name(name, event) and (_denies(specific) or _changes(specific)):
        return f'`hookEventName` is {describe_json(name)}, expected "{event}"'
    inner = specific.get("decision")
    if event != "PermissionRequest" and inner not in (None, "approve", "allow"):
        return "`decision` is inside `hookSpecificOutput`: move it to the top level"
    if _is_false(specific.get("continue")):
        return "`continue` is inside `hookSpecificOutput`: move it to the top level"
    if event != "PreToolUse" and _restricts(specific.get("permissionDecision")):
        return f'`permissionDecision` has no effect at {event}: write "decision": "block" at the top level'
    return _misspelled_key(value, event) or _misspelled_key(specific, event)


def is_event_name(name: object, event: str) -> bool:
    return isinstance(name, str) and name.strip().lower() == event.lower()


def _misspelled_key(value: Mapping[str, Any], event: str) -> str | None:
    """Return the message about an unknown key that may hold a decision; about a tool call every denial may be one."""
    for key, word in value.items():
        is_answer = isinstance(word, Mapping) and (wants_to_block(word) or _misspelled_key(word, event))
        known: tuple[str, ...] = ("hookSpecificOutput",) if is_answer else ("decision", "permissionDecision")
        if key in ANSWER_KEYS or not (is_answer or is_block(word) or word in ("ask", "defer")):
            continue
        meant = closest_word(str(key), known)
        if meant or event in PERMISSION_EVENTS:
            hint = f"did you mean `{meant}`?" if meant else "a denial is `permissionDecision` or `decision`"
            return f"`{describe_json(str(key))[1:-1]}` is unknown: {hint}"
    return None
