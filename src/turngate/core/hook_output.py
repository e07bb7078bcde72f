"""What hooks say back: the JSON contract, read leniently or strictly as the dialect wants."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from turngate.core.dialect import Dialect
from turngate.core.text import describe_json, replace_surrogates


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A JSON object that keeps the contract."""

    decision: Literal["block", "allow"] | None = None
    reason: str | None = None
    go_on: bool | None = None  # `continue`
    stop_reason: str | None = None
    notice: str | None = None  # `systemMessage`
    advice: str | None = None  # `additionalContext`
    quiet: bool = False  # `suppressOutput`
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlainText:
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class InvalidAnswer:
    """It tried to answer and broke the contract."""

    error: str


def read_answer(text: str, event: str, dialect: Dialect) -> Answer | PlainText | InvalidAnswer:
    """Claude Code: leading blanks, a byte-order mark and pretty print are fine; text before the JSON is not."""
    body = text.strip("\ufeff \t\r\n")
    if not body.startswith("{"):
        return PlainText(_buried_block(body))
    try:
        value = parsed(body)
    except (json.JSONDecodeError, RecursionError) as error:
        return _broken(body, error, dialect)
    return read_object(value, event, dialect)


def parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except json.JSONDecodeError:
        raise
    except ValueError:  # a number with more digits than Python likes: no reason to lose a decision
        return json.loads(body, parse_int=float)


def _buried_block(body: str) -> tuple[str, ...]:
    last = body[-20_000:].rpartition("\n")[2].strip()
    if last.startswith("{") and '"block"' in last and last != body:
        return (
            "its last line is JSON that blocks, but other text stands before it, so it was not read as an answer",
        )
    return ()


def _broken(body: str, error: Exception, dialect: Dialect) -> PlainText | InvalidAnswer:
    # Claude Code: "starts with { and ends with } but is not JSON" is an error, otherwise plain text.
    said = f"its output looks like a JSON object but is not valid JSON ({_shortly(error)})"
    if dialect.strict_json:
        return InvalidAnswer(said) if body.endswith("}") else PlainText()
    return PlainText((said + ", so it was taken as plain text",))


def _shortly(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return "nested too deeply"


def read_object(value: Mapping[str, Any], event: str, dialect: Dialect) -> Answer | InvalidAnswer:
    if dialect.strict_json:
        return _read_strictly(value, event)
    return _read_leniently(value, event, dialect)


# Fields whose wrong type voids the whole answer in Claude Code (measured).
_STRICT_TYPES: Mapping[str, tuple[type, str]] = {
    "reason": (str, "a string"),
    "continue": (bool, "true or false"),
    "stopReason": (str, "a string"),
    "suppressOutput": (bool, "true or false"),
    "systemMessage": (str, "a string"),
    "hookSpecificOutput": (dict, "an object"),
}


def _read_strictly(value: Mapping[str, Any], event: str) -> Answer | InvalidAnswer:
    if value.get("async") is True:
        return Answer()
    for key, (wanted, words) in _STRICT_TYPES.items():
        if key in value and not isinstance(value[key], wanted):
            return InvalidAnswer(f"its JSON is void: `{key}` must be {words}")
    if "decision" in value and value["decision"] not in ("approve", "block"):
        return InvalidAnswer('its JSON is void: `decision` must be "approve" or "block"')
    specific = value.get("hookSpecificOutput", {"hookEventName": event})
    if not isinstance(specific.get("hookEventName"), str):
        return InvalidAnswer("its JSON is void: `hookSpecificOutput` needs a `hookEventName`")
    if specific["hookEventName"] != event:
        return InvalidAnswer(f"its `hookEventName` is {specific['hookEventName']!r}, expected {event!r}")
    advice = specific.get("additionalContext")
    if advice is not None and not isinstance(advice, str):
        return InvalidAnswer("its JSON is void: `additionalContext` must be a string")
    decision: Literal["block", "allow"] | None = None
    if "decision" in value:
        decision = "block" if value["decision"] == "block" else "allow"
    decision, reason = _permission(event, specific, decision, _text(value.get("reason")))
    return Answer(
        decision=decision,
        reason=reason,
        go_on=value.get("continue"),
        stop_reason=_text(value.get("stopReason")),
        notice=_text(value.get("systemMessage")) or None,
        advice=_text(advice) or None,
    )


def _read_leniently(value: Mapping[str, Any], event: str, dialect: Dialect) -> Answer:
    warnings: list[str] = []
    decision: Literal["block", "allow"] | None = None
    match value.get("decision"):
        case None:
            pass
        case str(word) if word in dialect.block_words:
            decision = "block"
        case str(word) if word in dialect.allow_words:
            decision = "allow"
        case other:
            warnings.append(f'`decision` is {describe_json(other)}, expected "block" or "approve": ignored')
    go_on = value.get("continue")
    if not isinstance(go_on, bool | None):
        warnings.append(f"`continue` is {describe_json(go_on)}, expected true or false: ignored")
        go_on = None
    warnings += [
        f"`{key}` is {describe_json(value[key])}, expected a string: ignored"
        for key in ("reason", "stopReason", "systemMessage")
        if not isinstance(value.get(key), str | None)
    ]
    specific = value.get("hookSpecificOutput")
    if not isinstance(specific, dict):
        if specific is not None:
            warnings.append(f"`hookSpecificOutput` is {describe_json(specific)}, expected an object: ignored")
        specific = {}
    elif specific.get("hookEventName", event) != event:
        warnings.append(
            f'`hookEventName` is {describe_json(specific["hookEventName"])}, expected "{event}": ignored'
        )
        specific = {}
    if value.get("ok") is False and "decision" not in value:
        warnings.append(
            '`ok` is the answer of prompt hooks and means nothing here: write `"decision": "block"`'
        )
    if "additionalContext" in value:
        warnings.append("`additionalContext` belongs into `hookSpecificOutput`: ignored at the top level")
    decision, reason = _permission(event, specific, decision, _text(value.get("reason")))
    return Answer(
        decision=decision,
        reason=reason,
        go_on=go_on,
        stop_reason=_text(value.get("stopReason")),
        notice=_text(value.get("systemMessage")) or None,
        advice=_text(specific.get("additionalContext")) or None,
        quiet=value.get("suppressOutput") is True,
        warnings=tuple(warnings),
    )


def _permission(
    event: str, specific: Mapping[str, Any], decision: Literal["block", "allow"] | None, reason: str | None
) -> tuple[Literal["block", "allow"] | None, str | None]:
    """The tool events say no in their own words."""
    asked = specific.get("decision")
    if event == "PreToolUse" and specific.get("permissionDecision") == "deny":
        return "block", _text(specific.get("permissionDecisionReason")) or reason or "denied by a hook"
    if event == "PermissionRequest" and isinstance(asked, dict) and asked.get("behavior") == "deny":
        return "block", _text(asked.get("message")) or reason or "denied by a hook"
    return decision, reason


def _text(value: object) -> str | None:
    return replace_surrogates(value) if isinstance(value, str) else None
