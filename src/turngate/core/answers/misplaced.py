"""Check an object for a decision that is not where, or not how, the JSON contract has it: a lost block is not consent."""

from collections.abc import Iterator, Mapping
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
        "notEnforced",
        "waits",
        "continuations",
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
    if isinstance(specific, Mapping) and (_blocks(specific) or _denies(specific) or _changes(specific)):
        return True
    return _blocks(value)


def _blocks(value: Mapping[str, Any]) -> bool:
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
    if problem := _misplaced_change(value, specific, event):
        return problem
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
    return _unknown_key(value, event) or _unknown_key(specific, event)


def _misplaced_change(value: Mapping[str, Any], specific: Mapping[str, Any], event: str) -> str | None:
    """Return the message about a changed input or output that has no effect where it is, or as it is spelled."""
    expected = _CHANGED_AT.get(event)
    request = specific.get("decision")
    holders = [value, specific]
    place = "`hookSpecificOutput`"
    if event == "PermissionRequest":
        holders.append(request if isinstance(request, Mapping) else {})
        place = f"`decision` of {place}"
    for holder in holders if expected else ():
        for key in holder:
            if holder[key] is None or str(key).replace("_", "").lower() != str(expected).lower():
                continue
            if key != expected:
                return f"`{describe_json(str(key))[1:-1]}` is unknown: did you mean `{expected}`?"
            if holder is not holders[-1]:
                return f"`{expected}` belongs into {place}"
    return None


_CHANGED_AT = {
    "PreToolUse": "updatedInput",
    "PermissionRequest": "updatedInput",
    "PostToolUse": "updatedToolOutput",
}


def is_event_name(name: object, event: str) -> bool:
    return isinstance(name, str) and name.strip().lower() == event.lower()


def _unknown_key(value: Mapping[str, Any], event: str) -> str | None:
    """Return the message about an unknown key with a decision in it, also inside of lists and other objects."""
    budget = iter(range(_MAX_PARTS))
    for key, member in value.items():
        if key in ANSWER_KEYS:
            continue
        for name, part in parts_of(key, member, budget):
            if _may_block(name, part, event):
                return f"`{describe_json(str(key))[1:-1]}` is unknown: {_hint(key, member, event)}"
    return _TOO_LARGE if next(budget, None) is None and event in PERMISSION_EVENTS else None


_MAX_PARTS = 200_000
_TOO_LARGE = "its answer is too large to be searched for a decision"


def parts_of(key: str, member: object, budget: Iterator[int]) -> Iterator[tuple[str, object]]:
    """Yield a member of an object and all that is inside of it, each with its key."""
    rest: list[tuple[str, object]] = [(key, member)]
    for _ in budget:
        name, part = rest.pop()
        yield name, part
        if isinstance(part, Mapping):
            rest += part.items()
        elif isinstance(part, list | tuple):
            rest += ((name, each) for each in part)
        if not rest:
            return


def _may_block(key: str, part: object, event: str) -> bool:
    """Return whether an unknown key holds a block. About a tool call, every denial may be one."""
    guards_tool = event in PERMISSION_EVENTS
    if isinstance(part, Mapping):
        decision = part.get("decision")
        is_known = not isinstance(decision, str) or is_block(decision)
        return (is_known and wants_to_block(part)) or (guards_tool and _restricting_flag(part) is not None)
    if not isinstance(part, str) or len(part) > _MAX_WORD_CHARS:
        return False
    is_denial = part.strip().lower() in (*DENIALS, "ask", "defer")
    if guards_tool and is_denial:
        return True
    return (is_denial or is_block(part)) and closest_word(str(key), _DECISIONS) is not None


_MAX_WORD_CHARS = 40
_DECISIONS = ("decision", "permissionDecision")


def _hint(key: str, member: object, event: str) -> str:
    known = ("hookSpecificOutput",) if isinstance(member, Mapping) else _DECISIONS
    if meant := closest_word(str(key), known):
        return f"did you mean `{meant}`?"
    if event in PERMISSION_EVENTS:
        return "a denial is `permissionDecision` or `decision`"
    return 'a block is {"decision": "block", "reason": "…"}'
