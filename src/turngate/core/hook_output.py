"""The JSON contract: what a hook prints, replies or returns, read once, leniently or strictly by dialect."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from turngate.core.dialect import Dialect
from turngate.core.text import describe_json, replace_surrogates

Behavior = Literal["allow", "deny", "ask", "defer"]
BlockOrAllow = Literal["block", "allow"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A valid JSON answer."""

    decision: BlockOrAllow | None = None
    reason: str | None = None
    continue_turn: bool | None = None  # `continue`
    stop_reason: str | None = None
    notice: str | None = None  # `systemMessage`
    advice: str | None = None  # `additionalContext`
    quiet: bool = False  # `suppressOutput`
    warnings: tuple[str, ...] = ()
    # Of the tool events: PreToolUse and PermissionRequest.
    permission: Behavior | None = None
    permission_reason: str = ""
    updated_input: Mapping[str, Any] | None = None
    interrupt: bool = False
    updated_output: Any = None  # PostToolUse: what the model gets instead of the tool's output
    first_message: str | None = None  # SessionStart, `initialUserMessage`


@dataclass(frozen=True)
class PlainText:
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class InvalidAnswer:
    """A JSON answer that is not valid."""

    error: str


def read_answer(text: str, event: str, dialect: Dialect) -> Answer | PlainText | InvalidAnswer:
    """Claude Code: leading blanks, a byte-order mark and pretty print are fine; text before the JSON is not."""
    body = text.strip("\ufeff \t\r\n")
    if not body.startswith("{"):
        return PlainText(_buried_block(body))
    try:
        value = parse_json(body)
    except (json.JSONDecodeError, RecursionError) as error:
        return _read_invalid_json(body, error, dialect)
    return read_object(value, event, dialect)


def parse_json(body: str) -> Any:
    try:
        return json.loads(body)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer with more digits than Python converts must not make the decision invalid
        return json.loads(body, parse_int=float)


def _buried_block(body: str) -> tuple[str, ...]:
    last_line = body[-20_000:].rpartition("\n")[2].strip()
    if last_line.startswith("{") and '"block"' in last_line and last_line != body:
        return ("its last line is JSON that blocks, but the text before it makes the output plain text",)
    return ()


def _read_invalid_json(body: str, error: Exception, dialect: Dialect) -> PlainText | InvalidAnswer:
    # Claude Code: "starts with { and ends with } but is not JSON" is an error, otherwise plain text.
    problem = f"its output looks like a JSON object but is not valid JSON ({_json_problem(error)})"
    if dialect.strict_json:
        return InvalidAnswer(problem) if body.endswith("}") else PlainText()
    return PlainText((problem + ", so it was taken as plain text",))


def _json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return "nested too deeply"


def read_object(value: Mapping[str, Any], event: str, dialect: Dialect) -> Answer | InvalidAnswer:
    if dialect.strict_json:
        return _read_strictly(value, event)
    return _read_leniently(value, event, dialect)


# Strict: the claude dialect

# Claude Code ignores the whole answer if one of these fields has a wrong type (measured).
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
    specific = value.get("hookSpecificOutput", {"hookEventName": event})
    problem = _strict_problem(value) or _strict_specific_problem(specific, event)
    if problem:
        return InvalidAnswer(problem)
    decision: BlockOrAllow | None = None
    if "decision" in value:
        decision = "block" if value["decision"] == "block" else "allow"
    decision, reason = _block_of_tool_event(event, specific, decision, _text(value.get("reason")))
    return Answer(
        decision=decision,
        reason=reason,
        continue_turn=value.get("continue"),
        stop_reason=_text(value.get("stopReason")),
        notice=_text(value.get("systemMessage")) or None,
        advice=_text(specific.get("additionalContext")) or None,
        **_tool_fields(event, specific),
    )


def _strict_problem(value: Mapping[str, Any]) -> str | None:
    for key, (expected, words) in _STRICT_TYPES.items():
        if key in value and not isinstance(value[key], expected):
            return f"its JSON is ignored: `{key}` must be {words}"
    if "decision" in value and value["decision"] not in ("approve", "block"):
        return 'its JSON is ignored: `decision` must be "approve" or "block"'
    return None


def _strict_specific_problem(specific: Mapping[str, Any], event: str) -> str | None:
    if not isinstance(specific.get("hookEventName"), str):
        return "its JSON is ignored: `hookSpecificOutput` needs a `hookEventName`"
    if specific["hookEventName"] != event:
        return f"its `hookEventName` is {specific['hookEventName']!r}, expected {event!r}"
    if not isinstance(specific.get("additionalContext"), str | None):
        return "its JSON is ignored: `additionalContext` must be a string"
    return None


# Lenient: the other dialects


def _read_leniently(value: Mapping[str, Any], event: str, dialect: Dialect) -> Answer:
    warnings: list[str] = []
    decision = _lenient_decision(value.get("decision"), dialect, warnings)
    continue_turn = value.get("continue")
    if not isinstance(continue_turn, bool | None):
        warnings.append(f"`continue` is {describe_json(continue_turn)}, expected true or false: ignored")
        continue_turn = None
    warnings += [
        f"`{key}` is {describe_json(value[key])}, expected a string: ignored"
        for key in ("reason", "stopReason", "systemMessage")
        if not isinstance(value.get(key), str | None)
    ]
    specific = _lenient_specific(value.get("hookSpecificOutput"), event, warnings)
    warnings += _misplaced_keys(value)
    decision, reason = _block_of_tool_event(event, specific, decision, _text(value.get("reason")))
    return Answer(
        decision=decision,
        reason=reason,
        continue_turn=continue_turn,
        stop_reason=_text(value.get("stopReason")),
        notice=_text(value.get("systemMessage")) or None,
        advice=_text(specific.get("additionalContext")) or None,
        quiet=value.get("suppressOutput") is True,
        warnings=tuple(warnings),
        **_tool_fields(event, specific),
    )


def _lenient_decision(word: object, dialect: Dialect, warnings: list[str]) -> BlockOrAllow | None:
    if isinstance(word, str) and word in dialect.block_words:
        return "block"
    if isinstance(word, str) and word in dialect.allow_words:
        return "allow"
    if word is not None:
        warnings.append(f'`decision` is {describe_json(word)}, expected "block" or "approve": ignored')
    return None


def _lenient_specific(specific: Any, event: str, warnings: list[str]) -> Mapping[str, Any]:
    if specific is None:
        return {}
    if not isinstance(specific, dict):
        warnings.append(f"`hookSpecificOutput` is {describe_json(specific)}, expected an object: ignored")
        return {}
    name = specific.get("hookEventName", event)
    if name != event:
        warnings.append(f'`hookEventName` is {describe_json(name)}, expected "{event}": ignored')
        return {}
    return specific


def _misplaced_keys(value: Mapping[str, Any]) -> list[str]:
    warnings = []
    if value.get("ok") is False and "decision" not in value:
        warnings.append('`ok` is the answer of prompt hooks: write `"decision": "block"` instead')
    if "additionalContext" in value:
        warnings.append("`additionalContext` belongs into `hookSpecificOutput`: ignored at the top level")
    return warnings


# Tool events


def _block_of_tool_event(
    event: str, specific: Mapping[str, Any], decision: BlockOrAllow | None, reason: str | None
) -> tuple[BlockOrAllow | None, str | None]:
    """PreToolUse and PermissionRequest have a block of their own, with its own reason."""
    request = specific.get("decision")
    if event == "PreToolUse" and specific.get("permissionDecision") == "deny":
        return "block", _text(specific.get("permissionDecisionReason")) or reason or "denied by a hook"
    if event == "PermissionRequest" and isinstance(request, dict) and request.get("behavior") == "deny":
        return "block", _text(request.get("message")) or reason or "denied by a hook"
    return decision, reason


def _tool_fields(event: str, specific: Mapping[str, Any]) -> dict[str, Any]:
    request = specific.get("decision")
    if event == "PostToolUse":
        return {"updated_output": specific.get("updatedToolOutput")}
    if event == "SessionStart":
        return {"first_message": _text(specific.get("initialUserMessage"))}
    if event == "PreToolUse":
        word, reason = specific.get("permissionDecision"), specific.get("permissionDecisionReason")
        updated_input, interrupt = specific.get("updatedInput"), False
    elif event == "PermissionRequest" and isinstance(request, dict):
        word, reason = request.get("behavior"), request.get("message")
        updated_input, interrupt = request.get("updatedInput"), request.get("interrupt") is True
    else:
        return {}
    return {
        "permission": word if word in get_args(Behavior) else None,
        "permission_reason": _text(reason) or "",
        "updated_input": updated_input if isinstance(updated_input, dict) else None,
        "interrupt": interrupt,
    }


def _text(value: object) -> str | None:
    return replace_surrogates(value) if isinstance(value, str) else None
