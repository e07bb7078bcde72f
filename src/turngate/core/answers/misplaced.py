"""Finds a decision that is not where, or not how, the JSON contract has it: a lost block is not consent.

Ordinary output must never be mistaken for a decision: logs in JSON, test reports, the tests of a hook.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from turngate.core.answers.answer_json import ANSWER_KEYS, is_event_name
from turngate.core.constants import PERMISSION_EVENTS
from turngate.core.text import BLANKS, closest_word, describe_json, is_truncated, json_problem

BLOCKS = ("block", "deny")
ALLOWS = ("approve", "allow")
# Words that are not those of the contract, but mean a block to everyone.
DENIALS = frozenset((*BLOCKS, *"blocked denied reject rejected refuse refused forbid forbidden".split()))
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
    flags = (key for key in FLAGS if isinstance(value.get(key), bool | str))
    return next((key for key in flags if str(value[key]).strip().lower() == str(FLAGS[key]).lower()), None)


def is_block(word: object) -> bool:
    if not isinstance(word, str):
        return False
    return word.strip().lower() in DENIALS or closest_word(word, BLOCKS) is not None


def lost_in_object(value: Mapping[str, Any], event: str) -> str | None:
    """Return why an object without a readable decision may still have been meant as a block, or None."""
    specific = value.get("hookSpecificOutput")
    specific = specific if isinstance(specific, Mapping) else {}
    if _is_false(value.get("ok")):
        return '`ok` is the answer of a prompt hook: print {"decision": "block", "reason": "…"} instead'
    if key := _restricting_flag(value):
        return f'`{key}` is unknown: a block is {{"decision": "block", "reason": "…"}}'
    if _restricts(value.get("permissionDecision")):
        return "`permissionDecision` belongs in `hookSpecificOutput`"
    behaviors = (value.get("behavior"), specific.get("behavior"))
    if event in PERMISSION_EVENTS and any(map(_restricts, behaviors)):
        return "`behavior` belongs in `decision` of `hookSpecificOutput`"
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
                return f"`{expected}` belongs in {place}"
    return None


_CHANGED_AT = {**dict.fromkeys(PERMISSION_EVENTS, "updatedInput"), "PostToolUse": "updatedToolOutput"}


def _unknown_key(value: Mapping[str, Any], event: str) -> str | None:
    """Return the message about an unknown key with a decision in it, also inside of lists and other objects."""
    for key, member in value.items():
        if key not in ANSWER_KEYS and any(_may_block(*part, event) for part in parts_of(key, member)):
            return f"`{describe_json(str(key))[1:-1]}` is unknown: {_hint(key, member, event)}"
    return None


def parts_of(key: str, member: object) -> Iterator[tuple[str, object]]:
    """Yield a member of an object and all that is inside of it, each with its key."""
    rest: list[tuple[str, object]] = [(key, member)]
    for _ in range(MAX_PARTS):  # what a callback returns may contain itself
        if not rest:
            return
        name, part = rest.pop()
        yield name, part
        if isinstance(part, Mapping):
            rest += part.items()
        elif isinstance(part, list | tuple):
            rest += ((name, each) for each in part)


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
MAX_PARTS = 200_000  # of an answer, that are searched
_DECISIONS = ("decision", "permissionDecision")


def _hint(key: str, member: object, event: str) -> str:
    known = ("hookSpecificOutput",) if isinstance(member, Mapping) else _DECISIONS
    if meant := closest_word(str(key), known):
        return f"did you mean `{meant}`?"
    if event in PERMISSION_EVENTS:
        return "a denial is `permissionDecision` or `decision`"
    return 'a block is {"decision": "block", "reason": "…"}'


ONLY_JSON = "print only the JSON on stdout, and everything else on stderr"


def lost_in_text(text: str) -> str | None:
    """Return why the decision in a text was not read, or None if there is none."""
    if "\0" in text:
        lost = lost_in_text(text.replace("\0", "").lstrip("\ufffd"))
        return lost and "its decision was not read, because its output is UTF-16: print UTF-8"
    body = text.strip(BLANKS)
    if body.startswith("{"):
        return _lost_after_brace(body)
    if _WORD.fullmatch(body[:_MAX_LINE_CHARS]):
        return NOT_JSON
    if body[:1] in ("[", '"') and (value := _parse(body)) is not None:
        return _lost_in_value(value)
    body = _shorten(body)
    folded = body.lower()
    if not any(key in folded for key in _KEYS):
        return None
    objects = list(find_objects(body))
    if _has_answer(body, objects):
        return f"its decision was not read, because there is text before its JSON: {ONLY_JSON}"
    return NOT_JSON if _has_invalid_decision(body, objects) else None


def _shorten(body: str) -> str:
    """Keep both ends of a long text, so that the time of a search is bounded."""
    is_long = len(body) > MAX_SEARCHED_CHARS
    return f"{body[: MAX_SEARCHED_CHARS // 2]}\n{body[-MAX_SEARCHED_CHARS // 2 :]}" if is_long else body


MAX_SEARCHED_CHARS = 2_000_000


NOT_JSON = 'its decision was not read, because it is not JSON: print {"decision": "block", "reason": "…"}'
_KEYS = ("decision", "behavior", *(f'"{key.lower()}"' for key in ("ok", "continue", *CHANGES, *FLAGS)))
# An output that is one word, or begins with it: `deny`, `Block: no tests`.
_WORD = re.compile(
    r"""["'`*]*(?:(?:block(?:ed)?|den(?:y|ied))\b(?:["'`*.!]*|[ \t]*:.*)|ask|defer)""", re.IGNORECASE
)
_DECODER = json.JSONDecoder(strict=False, parse_int=float)


def _parse(body: str) -> object:
    try:
        return _DECODER.decode(body)
    except (ValueError, RecursionError):
        return None


def _lost_in_value(value: object) -> str | None:
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if isinstance(value, list) and any(isinstance(each, dict) and wants_to_block(each) for each in value):
        return "its decision was not read, because it is inside a list: print the object alone"
    if isinstance(value, str) and value.lstrip(BLANKS).startswith("{") and _has_decision(value):
        return "its decision was not read, because its JSON is a string: print the object, not a quoted copy"
    return None


def _lost_after_brace(body: str) -> str | None:
    """The text begins like an answer and is not one: it is truncated, invalid, or something follows it."""
    try:
        value, end = _DECODER.raw_decode(body)
    except (ValueError, RecursionError) as error:
        problem = json_problem(error)
        if is_truncated(body, error) and (_begins_like_answer(body) or _TRUNCATED.search(body[-100:])):
            return f"its decision was not read, because its JSON is truncated ({problem})"
        if _KEY.search(_shorten(body)) or _has_decision(body):
            return f"its decision was not read, because its output is not valid JSON ({problem})"
        return None
    is_record = next(iter(value), None) != "decision" or body[end:].lstrip(BLANKS).startswith("{")
    if wants_to_block(value) or (not is_record and is_block(value["decision"])) or _has_decision(body):
        return f"its decision was not read, because there is text after its JSON: {ONLY_JSON}"
    return None


def _begins_like_answer(body: str) -> bool:
    """`{"reason": "two te` may have been a block; `{"name": "parser",` is a file that was printed."""
    first = re.match(r'\{\s*"(\w*)("?)', body)
    if first is None or first[2]:
        return first is not None and first[1] in ANSWER_KEYS
    return any(name.startswith(first[1]) for name in ANSWER_KEYS)


def _has_decision(body: str) -> bool:
    body = _shorten(body)
    objects = list(find_objects(body))
    return _has_answer(body, objects) or _has_invalid_decision(body, objects)


class FoundObject(NamedTuple):
    """A JSON object in a text; where the search was given up, the rest of the text, and None."""

    start: int
    end: int
    value: Mapping[str, Any] | None


def find_objects(text: str, decoder: json.JSONDecoder = _DECODER) -> Iterator[FoundObject]:
    """Yield the JSON objects in a text, from left to right, without those inside another one."""
    work, place = 0, text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            work += error.pos - place + _FAILED_PARSE
            end = place + 1
        except RecursionError:
            work = _MAX_WORK
        else:
            yield FoundObject(place, end, value)
        if work >= _MAX_WORK:
            yield FoundObject(place, len(text), None)
            return
        place = text.find("{", end)


_MAX_WORK = 5_000_000  # characters that are parsed without a result
_FAILED_PARSE = 5_000  # the cost of a brace that does not begin an object: the lines before it are counted


def text_outside(text: str, objects: Iterable[FoundObject]) -> str:
    """Return the text around these objects, with a line break in place of each."""
    pieces, place = [], 0
    for found in objects:
        pieces.append(text[place : found.start])
        place = found.end
    return "\n".join([*pieces, text[place:]])


def _has_answer(body: str, objects: Iterable[FoundObject]) -> bool:
    """Return whether an object in a text is an answer that blocks; what could not be parsed counts by its key."""
    return any(
        _KEY.search(body, start) if value is None else _is_answer(body, start, end, value)
        for start, end, value in objects
    )


def _is_answer(body: str, place: int, end: int, value: Mapping[str, Any]) -> bool:
    """Return whether an object blocks and stands on its own; inside of other output a reported test is safer than a lost block."""
    before = body[max(0, place - _MAX_LINE_CHARS) : place].rstrip(" \t\ufeff")
    if not wants_to_block(value) or before.endswith(("\n", "\r")):
        return wants_to_block(value)
    if not body[end : end + _MAX_LINE_CHARS].strip(BLANKS + "\"'`"):
        return set(value) != {"ok"}  # the reply of a health check
    return ("reason" in value or "hookSpecificOutput" in value) and not _is_inside(body, place)


def _is_inside(body: str, place: int) -> bool:
    """Return whether an object is part of another one in its line, a member, or in the name of a test."""
    line = re.split(r"[\r\n]", body[max(0, place - _MAX_LINE_CHARS) : place])[-1]
    return line.count("{") > line.count("}") or bool(re.search(r'(?:\w\[|"[ \t]*:[ \t]*)$', line))


_MAX_LINE_CHARS = 1000  # before an object that are examined


_DECISION = (
    r"""(?:permission)?(?:decision|behavior)["']?\s*:\s*["']?(?:block(?:ed)?|den(?:y|ied)|ask|defer)\b"""
)
_KEY = re.compile(_DECISION, re.IGNORECASE)
_TRUNCATED = re.compile(r""""decision"\s*:?\s*(?:"(?:b|bl|blo|bloc|d|de|den)?)?$""")
# `{'decision': 'block'}` of Python, `{decision:block}` of a shell that removed the quotes, on one line or with a key
# on each line; without braces only where the output has nothing else.
_IN_BRACES = re.compile(
    rf"""^[ \t]*\{{ (?: .*? | .*\n (?:[ \t]*["']?\w+["']?[ \t]*:.*\n)*? [ \t"']* ) {_DECISION}""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_YAML_LINE = re.compile(
    r"""["']?(?:decision|reason|continue|stopReason|systemMessage|hookSpecificOutput|hookEventName"""
    r"""|permissionDecision|permissionDecisionReason|behavior|message)["']?[ \t]*:|[ \t]|---|$""",
    re.IGNORECASE,
)


def _has_invalid_decision(body: str, objects: Iterable[FoundObject]) -> bool:
    """Return whether an object is meant as a block and is not JSON; `_is_answer` has judged those that are."""
    text = text_outside(body, objects).replace("\r", "\n")
    if _IN_BRACES.search(text):
        return True
    lines = text.split("\n")
    has_block = any(_KEY.match(line.lstrip("\"'")) for line in lines)
    return has_block and all(_YAML_LINE.match(line) for line in lines)
