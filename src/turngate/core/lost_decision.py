"""Find the decision in an output that cannot be read as an answer, so that a lost block is not taken for consent.

Ordinary output must never be mistaken for a decision: logs in JSON, test reports, the tests of a hook.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from turngate.core.text import describe_json

BLANKS = "\ufeff \t\r\n"
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
CHANGES = ("updatedInput", "updatedToolOutput")  # lost, the original command runs or a secret is shown
ONLY_JSON = "print only the JSON on stdout, and everything else on stderr"


# Text


def lost_in_text(text: str) -> str | None:
    """Return why the decision in a text was not read, or None if there is none."""
    if "\0" in text:
        lost = lost_in_text(text.replace("\0", "").lstrip("\ufffd"))
        return lost and "its decision was not read, because its output is UTF-16: print UTF-8"
    body = text.strip(BLANKS)
    if body.startswith("{"):
        return _lost_after_brace(body)
    if not any(key in body for key in _KEYS):
        return None
    if body[0] in '["' and _is_json(body):
        return _lost_in_value(json.loads(body))
    if _has_answer(body):
        return f"its decision was not read, because there is text before its JSON: {ONLY_JSON}"
    if _has_invalid_decision(body):
        return 'its decision was not read, because it is not JSON: print {"decision": "block", "reason": "…"}'
    return None


_KEYS = ("decision", "Decision", '"ok"', '"continue"', *(f'"{key}"' for key in CHANGES))
_DECODER = json.JSONDecoder(strict=False)
_MAX_PLACES = 20  # of each key that are examined, from the end


def _is_json(body: str) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _lost_in_value(value: object) -> str | None:
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if isinstance(value, list) and any(isinstance(each, dict) and wants_to_block(each) for each in value):
        return "its decision was not read, because it is inside a list: print the object alone"
    if isinstance(value, str) and value.lstrip(BLANKS).startswith("{") and _is_answer(value, value.find("{")):
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
        if _KEY.search(body[:_MAX_CHARS]) or _KEY.search(body[-_MAX_CHARS:]) or _has_answer(body):
            return f"its decision was not read, because its output is not valid JSON ({problem})"
        return None
    is_record = next(iter(value), None) != "decision" or body[end:].lstrip(BLANKS).startswith("{")
    if wants_to_block(value) or (not is_record and _is_block(value["decision"])) or _has_answer(body):
        return f"its decision was not read, because there is text after its JSON: {ONLY_JSON}"
    return None


def json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return "nested too deeply"


def is_truncated(body: str, error: Exception) -> bool:
    """Return whether the JSON is valid up to the end of the text."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.pos >= len(body) or error.msg.startswith("Unterminated string")


def _begins_like_answer(body: str) -> bool:
    """`{"reason": "two te` may have been a block; `{"name": "parser",` is a file that was printed."""
    first = re.match(r'\{\s*"(\w*)("?)', body)
    if first is None:
        return False
    key, is_complete = first[1], bool(first[2])
    return key in ANSWER_KEYS if is_complete else any(name.startswith(key) for name in ANSWER_KEYS)


def _has_answer(body: str) -> bool:
    return any(_is_answer(body, place) for place in set(_brace_places(body)))


def _brace_places(body: str) -> Iterator[int]:
    """Yield where an object with a decision may begin: near the last places of each key."""
    for key in _KEYS:
        place = len(body)
        for _ in range(_MAX_PLACES):
            place = body.rfind(key, 0, place)
            if place < 0:
                break
            near = max(0, place - _MAX_OBJECT_CHARS)
            line = body.rfind("\n", near, place) + 1
            yield from (body.find("{", line, place), body.rfind("{", near, place))
            yield body.rfind("\n{", near, place) + 1


_MAX_OBJECT_CHARS = 200_000  # between the beginning of an object and its decision


def _is_answer(body: str, place: int) -> bool:
    """Return whether an object that blocks begins at this place, on its own.

    It begins a line, or it ends the output, or it is complete and the only object in its line: a reported test is
    safer than a lost block.
    """
    if place < 0 or body[place : place + 1] != "{":
        return False
    try:
        value, end = _DECODER.raw_decode(body, place)
    except (ValueError, RecursionError):
        return False
    if not wants_to_block(value) or _begins_line(body, place):
        return wants_to_block(value)
    if not body[end:].strip(BLANKS + "\"'`"):
        return set(value) != {"ok"}  # the reply of a health check
    return ("reason" in value or "hookSpecificOutput" in value) and _is_first_in_line(body, place)


def _begins_line(body: str, place: int) -> bool:
    before = body[max(0, place - _MAX_LINE_CHARS) : place].rstrip(" \t\ufeff")
    return before.endswith(("\n", "\r")) or (not before and place <= _MAX_LINE_CHARS)


def _is_first_in_line(body: str, place: int) -> bool:
    """Return whether no object begins before this one, and it is neither a member nor the name of a test."""
    line = re.split(r"[\r\n]", body[max(0, place - _MAX_LINE_CHARS) : place])[-1]
    return "{" not in line and not re.search(r'(?:\w\[|"[ \t]*:[ \t]*)$', line)


_MAX_LINE_CHARS = 1000  # before an object that are examined


# `{'decision': 'block'}` of Python, `{decision:block}` of a shell that removed the quotes, on one line or with a key
# on each line; without braces only where the output has nothing else.
_BLOCK = (
    r"""decision["']?\s*:\s*["']?(?:block|deny)\b|permissionDecision["']?\s*:\s*["']?(?:deny|ask|defer)\b"""
)
_OBJECT = re.compile(
    r"""^[ \t]*(\{)(?:(?:.*["'{, \t])?|.*\n(?:[ \t]*["']?\w+["']?[ \t]*:.*\n)*?[ \t]*)["']?(?:"""
    + _BLOCK
    + ")",
    re.MULTILINE,
)
_KEY = re.compile(_BLOCK, re.IGNORECASE)
_TRUNCATED = re.compile(r""""decision"\s*:?\s*(?:"(?:b|bl|blo|bloc|d|de|den)?)?$""")
_YAML_LINE = re.compile(
    r"""["']?(?:decision|reason|continue|stopReason|systemMessage)["']?[ \t]*:|[ \t]|---|$"""
)
_MAX_CHARS = 20_000  # of a text that are searched for a decision that is not JSON


def _has_invalid_decision(body: str) -> bool:
    """Return whether an object is meant as a block and is not JSON; `_is_answer` has judged those that are."""
    text = body[-_MAX_CHARS:].replace("\r", "\n")
    if any(not _begins_json(text, found.start(1)) for found in islice(_OBJECT.finditer(text), _MAX_PLACES)):
        return True
    lines = text.split("\n")
    has_block = any(_KEY.match(line.lstrip("\"'")) for line in lines)
    return has_block and len(body) <= _MAX_CHARS and all(_YAML_LINE.match(line) for line in lines)


def _begins_json(text: str, place: int) -> bool:
    try:
        _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError):
        return False
    return True


# Objects


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
        return halts or _is_block(value.get("decision")) or _denies(value)
    return _is_block(value.get("decision")) and "reason" in value  # a record in a log may have a decision too


def _denies(value: Mapping[str, Any]) -> bool:
    request = value.get("decision")
    behavior = request.get("behavior") if isinstance(request, Mapping) else None
    return _is_block(behavior) or _restricts(value.get("permissionDecision"))


def _restricts(permission: object) -> bool:
    return isinstance(permission, str) and permission.strip().lower() != "allow"


def _changes(value: Mapping[str, Any]) -> bool:
    return any(value.get(key) is not None for key in CHANGES)


def _is_false(value: object) -> bool:
    return value is False or (isinstance(value, str) and value.strip().lower() == "false")


def _is_block(word: object) -> bool:
    return isinstance(word, str) and (
        word.strip().lower() in BLOCKS or closest_word(word, BLOCKS) is not None
    )


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
    if "permissionDecision" in value and value["permissionDecision"] != "allow":
        return "`permissionDecision` belongs into `hookSpecificOutput`"
    if event == "PermissionRequest" and "deny" in (value.get("behavior"), specific.get("behavior")):
        return "`behavior` belongs into `decision` of `hookSpecificOutput`"
    if event == "PostToolUse" and value.get("updatedToolOutput") is not None:
        return "`updatedToolOutput` belongs into `hookSpecificOutput`"
    name = specific.get("hookEventName", event)
    if name != event and (_denies(specific) or _changes(specific)):
        return f'`hookEventName` is {describe_json(name)}, expected "{event}"'
    inner = specific.get("decision")
    if event != "PermissionRequest" and inner not in (None, "approve", "allow"):
        return "`decision` is inside `hookSpecificOutput`: move it to the top level"
    if _is_false(specific.get("continue")):
        return "`continue` is inside `hookSpecificOutput`: move it to the top level"
    if event != "PreToolUse" and _restricts(specific.get("permissionDecision")):
        return f'`permissionDecision` has no effect at {event}: write "decision": "block" at the top level'
    return _misspelled_key(value) or _misspelled_key(specific)


def _misspelled_key(value: Mapping[str, Any]) -> str | None:
    for key, word in value.items():
        if key in ANSWER_KEYS or not (_is_block(word) or word in ("ask", "defer")):
            continue
        if meant := closest_word(str(key), ("decision", "permissionDecision")):
            return f"`{describe_json(str(key))[1:-1]}` is unknown: did you mean `{meant}`?"
    return None


def unknown_word(key: str, word: object, *expected: str) -> str:
    """Return the message about a word of the contract that is not one."""
    words = " or ".join(f'"{each}"' for each in expected)
    message = f"`{key}` is {describe_json(word)}, expected {words}"
    meant = closest_word(word, expected) if isinstance(word, str) else None
    return f'{message}; did you mean "{meant}"?' if meant else message
