"""The JSON contract: what a hook prints, replies or returns, read once, leniently or strictly by dialect."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.constants import OBSERVED_EVENTS, PERMISSION_EVENTS
from turngate.core.dialect import Dialect
from turngate.core.text import BLANKS, closest_word, describe_json, json_problem, replace_surrogates
from turngate.core.verdict.decisions import EXPECTED_CONTINUATIONS, is_continuations

ANSWER_KEYS = frozenset(
    "decision reason continue stopReason systemMessage suppressOutput terminalSequence "
    "hookSpecificOutput hookEventName additionalContext permissionDecision permissionDecisionReason "
    "updatedInput updatedToolOutput initialUserMessage notEnforced waits continuations ok impossible".split()
)


def gate_problem(value: Mapping[str, Any]) -> str | None:
    """Return why `notEnforced` cannot be read. Such an answer is not consent, whatever was meant."""
    why = value.get("notEnforced")
    if why is None or (isinstance(why, str) and why.strip()):
        return None
    return f"`notEnforced` is {describe_json(why)}, expected a string that says why"


def _gate_fields(value: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    """Return the fields of an `Answer` that the keys of gates set; a value that is not valid sets none, and is a warning."""
    fields: dict[str, Any] = {}
    why, waits, continuations = map(value.get, ("notEnforced", "waits", "continuations"))
    if isinstance(why, str) and why.strip():
        fields["not_enforced"] = replace_surrogates(why)
    if not isinstance(waits, bool | None):
        warnings.append(f"`waits` is {describe_json(waits)}, expected true or false: ignored")
    elif waits and (value.get("continue") is False or why):
        fields["waits"] = True
    elif waits:
        warnings.append("`waits` has an effect only with `continue: false` or `notEnforced`: ignored")
    if is_continuations(continuations):
        fields["continuations"] = continuations
    elif continuations is not None:
        shown = describe_json(continuations)
        warnings.append(f"`continuations` is {shown}, expected {EXPECTED_CONTINUATIONS}: ignored")
    return fields


Behavior = Literal["allow", "deny", "ask", "defer"]
BlockOrAllow = Literal["block", "allow"]
# The words of `permissionDecision` and `behavior`. A block is a denial; other words are not understood, also those
# that resemble a permission. The words of `decision` are in the dialect.
PERMISSIONS: tuple[Behavior, ...] = ("allow", "deny", "ask", "defer")
BEHAVIORS: tuple[Behavior, ...] = ("allow", "deny")
SYNONYMS = {"block": "deny"}


@frozen(kw_only=True)
class Answer:
    decision: BlockOrAllow | None = None
    reason: str | None = None
    continue_turn: bool | None = None  # `continue`
    stop_reason: str | None = None
    notice: str | None = None  # `systemMessage`
    advice: str | None = None  # `additionalContext`
    quiet: bool = False  # `suppressOutput`
    not_enforced: str | None = None  # `notEnforced`: why the gate could not check anything
    # With `continue: false`: the agent waits for the user; with `notEnforced`: for its work.
    waits: bool = False
    continuations: int | None = None  # that a block needs
    lost: str | None = None  # why a decision that it seems to hold cannot be read
    warnings: tuple[str, ...] = ()
    # Of the tool events: PreToolUse and PermissionRequest.
    permission: Behavior | None = None
    permission_reason: str = ""
    updated_input: Mapping[str, Any] | None = None
    interrupt: bool = False
    updated_output: Any = None  # PostToolUse: what the model gets instead of the tool's output
    first_message: str | None = None  # SessionStart, `initialUserMessage`


@frozen
class PlainText:
    lost: str | None = None  # why a decision that it seems to hold was not read
    warnings: tuple[str, ...] = ()


@frozen
class InvalidAnswer:
    error: str


def read_answer(text: str, event: str, dialect: Dialect) -> Answer | PlainText | InvalidAnswer:
    """Claude Code: leading blanks, a byte-order mark and pretty print are fine; text before the JSON is not."""
    body = text.strip(BLANKS)
    if not body.startswith("{"):
        return PlainText(_lost(body, event)) if body else PlainText()
    try:
        value = parse_json(body)
    except (json.JSONDecodeError, RecursionError) as error:
        return _read_invalid_json(body, error, event, dialect)
    answer = read_object(value, event, dialect)
    if event in OBSERVED_EVENTS or not (key := _repeated_key(body)):
        return answer
    problem = f"`{key}` is there twice, with different values"
    if dialect.strict_json:  # Claude Code takes the last one
        return replace(answer, lost=answer.lost or problem) if isinstance(answer, Answer) else answer
    return InvalidAnswer(problem)


def _lost(body: str, event: str) -> str | None:
    """Where a block has no effect, none can be lost. About a tool call, what is too long may hold a denial."""
    if event in OBSERVED_EVENTS:
        return None
    from turngate.core.answers import misplaced  # noqa: PLC0415 # lazy: most hooks print an answer, or nothing

    lost = misplaced.lost_in_text(body)
    if lost is None and event in PERMISSION_EVENTS and len(body) > misplaced.MAX_SEARCHED_CHARS:
        return f"its output is not JSON and too long to be searched for a decision: {misplaced.ONLY_JSON}"
    return lost


def parse_json(body: str) -> Any:
    try:
        return json.loads(body)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer with more digits than Python converts must not make the decision invalid
        return json.loads(body, parse_int=_read_number)


def _read_number(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


_DECISIVE = ("ok", "decision", "permissionDecision", "behavior", "continue", "hookSpecificOutput")


def _repeated_key(body: str) -> str | None:
    """Return a decisive key that an object has twice with different values: a block may be the one that is lost."""
    if all(body.count(f'"{key}"') < 2 for key in _DECISIVE):
        return None
    repeated: list[str] = []
    noting_decoder(repeated).decode(body)
    return next(iter(repeated), None)


def noting_decoder(repeated: list[str], *, strict: bool = True) -> json.JSONDecoder:
    """Return a decoder that notes decisive keys with two different values. Unless it is strict, it accepts line breaks in a string."""
    names = {key.lower() for key in _DECISIVE}

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            repeated.extend(key for key, each in pairs if key.lower() in names and each != value[key])
        return value

    return json.JSONDecoder(parse_int=float, strict=strict, object_pairs_hook=note)


def _read_invalid_json(
    body: str, error: Exception, event: str, dialect: Dialect
) -> PlainText | InvalidAnswer:
    # Claude Code: "starts with { and ends with } but is not JSON" is an error, otherwise plain text.
    problem = f"its output looks like a JSON object but is not valid JSON ({json_problem(error)})"
    if dialect.strict_json and body.endswith("}"):
        return InvalidAnswer(problem)
    if lost := _lost(body, event):
        return PlainText(lost)
    return PlainText(None, () if dialect.strict_json else (f"{problem}, so it was taken as plain text",))


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
    "terminalSequence": (str, "a string"),
    "hookSpecificOutput": (dict, "an object"),
}


def _read_strictly(value: Mapping[str, Any], event: str) -> Answer | InvalidAnswer:
    if value.get("async") is True:
        return Answer()
    specific = value.get("hookSpecificOutput", {"hookEventName": event})
    if problem := _strict_problem(value) or _strict_specific_problem(specific, event):
        return InvalidAnswer(problem)
    decision: BlockOrAllow | None = None
    if "decision" in value:
        decision = "block" if value["decision"] == "block" else "allow"
    answer = _make_answer(value, specific, event, decision)
    is_lost = answer.decision != "block" and event not in OBSERVED_EVENTS
    return replace(answer, lost=_lost_in_object(value, event)) if is_lost else answer


def _make_answer(
    value: Mapping[str, Any], specific: Mapping[str, Any], event: str, decision: BlockOrAllow | None
) -> Answer:
    """Return the answer with the fields that all dialects read in the same way."""
    decision, reason = _block_of_tool_event(event, specific, decision, _text(value.get("reason")))
    return Answer(
        decision=decision,
        reason=reason,
        continue_turn=value["continue"] if isinstance(value.get("continue"), bool) else None,
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
        return "its JSON is ignored: " + unknown_word("decision", value["decision"], "block", "approve")
    return None


def _strict_specific_problem(specific: Mapping[str, Any], event: str) -> str | None:
    if not isinstance(specific.get("hookEventName"), str):
        return "its JSON is ignored: `hookSpecificOutput` needs a `hookEventName`"
    if specific["hookEventName"] != event:
        return f"its `hookEventName` is {specific['hookEventName']!r}, expected {event!r}"
    for key in ("additionalContext", *(("initialUserMessage",) if event == "SessionStart" else ())):
        if not isinstance(specific.get(key), str | None):
            return f"its JSON is ignored: `{key}` must be a string"
    problem = _permission_problem(event, specific) or _input_problem(event, specific)
    return f"its JSON is ignored: {problem}" if problem else None


# Lenient: the other dialects


def _read_leniently(value: Mapping[str, Any], event: str, dialect: Dialect) -> Answer:
    warnings = [
        f"`{key}` is {describe_json(value[key])}, expected a string: ignored"
        for key in ("reason", "stopReason", "systemMessage")
        if not isinstance(value.get(key), str | None)
    ]
    specific = _lenient_specific(value.get("hookSpecificOutput"), event, warnings)
    warnings += _misplaced_keys(value)
    message, problem = specific.get("initialUserMessage"), _input_problem(event, specific)
    if event == "SessionStart" and not isinstance(message, str | None):
        warnings.append(f"`initialUserMessage` is {describe_json(message)}, expected a string: ignored")
    asks = _tool_fields(event, specific).get("permission") in ("ask", "defer")
    if problem and asks:
        warnings.append(f"{problem}: ignored")
    gate_fields = _gate_fields(value, warnings)
    word = value.get("decision")
    word = word.strip().lower() if isinstance(word, str) else None
    known: BlockOrAllow | None = "allow" if word in dialect.allow_words else None
    known = "block" if word in dialect.block_words else known
    answer = _make_answer(value, specific, event, known)
    lost = _lenient_problem(value, known)
    if answer.decision != "block":  # permission for the changed input is not permission for the original one
        changed = None if asks else problem
        lost = lost or _permission_problem(event, specific) or changed or _lost_in_object(value, event)
    if lost and event in OBSERVED_EVENTS:
        lost, warnings = None, [*warnings, f"{lost}: ignored"]
    quiet = value.get("suppressOutput") is True
    return replace(answer, quiet=quiet, lost=lost, warnings=tuple(warnings), **gate_fields)


def _lenient_problem(value: Mapping[str, Any], decision: BlockOrAllow | None) -> str | None:
    if decision is None and value.get("decision") is not None:
        return unknown_word("decision", value["decision"], "block", "approve")
    if not isinstance(value.get("continue"), bool | None):
        return f"`continue` is {describe_json(value['continue'])}, expected true or false"
    if not isinstance(value.get("hookSpecificOutput"), dict | None):
        return f"`hookSpecificOutput` is {describe_json(value['hookSpecificOutput'])}, expected an object"
    return gate_problem(value)


def unknown_word(key: str, word: object, *expected: str) -> str:
    *others, last = (f'"{each}"' for each in expected)
    words = f"{', '.join(others)} or {last}"
    message = f"`{key}` is {describe_json(word)}, expected {words}"
    meant = closest_word(word, expected) if isinstance(word, str) else None
    return f'{message}; did you mean "{meant}"?' if meant else message


def _lost_in_object(value: Mapping[str, Any], event: str) -> str | None:
    from turngate.core.answers.misplaced import lost_in_object  # noqa: PLC0415 # lazy: most hooks print nothing

    return lost_in_object(value, event)


def is_event_name(name: object, event: str) -> bool:
    return isinstance(name, str) and name.strip().lower() == event.lower()


def _lenient_specific(specific: Any, event: str, warnings: list[str]) -> Mapping[str, Any]:
    if not isinstance(specific, dict):
        return {}
    name = specific.get("hookEventName", event)
    if not is_event_name(name, event):
        warnings.append(f'`hookEventName` is {describe_json(name)}, expected "{event}": ignored')
        return {}
    known = dict(specific)  # with the words of a permission as the contract spells them
    if word := _known_word(specific.get("permissionDecision"), PERMISSIONS):
        known["permissionDecision"] = word
    request = specific.get("decision")
    if isinstance(request, dict) and (word := _known_word(request.get("behavior"), BEHAVIORS)):
        known["decision"] = {**request, "behavior": word}
    return known


def _known_word(word: object, words: tuple[Behavior, ...]) -> Behavior | None:
    """Return what a word means: in any case, with blanks around it, or as a synonym."""
    folded = word.strip().lower() if isinstance(word, str) else ""
    return next((known for known in words if known == SYNONYMS.get(folded, folded)), None)


def _misplaced_keys(value: Mapping[str, Any]) -> list[str]:
    warnings = []
    specific = value.get("hookSpecificOutput")
    if isinstance(specific, dict) and "reason" in specific and "reason" not in value:
        warnings.append("`reason` is inside `hookSpecificOutput`: move it to the top level")
    if "additionalContext" in value:
        warnings.append("`additionalContext` belongs in `hookSpecificOutput`: ignored at the top level")
    return warnings


# Tool events


def _block_of_tool_event(
    event: str, specific: Mapping[str, Any], decision: BlockOrAllow | None, reason: str | None
) -> tuple[BlockOrAllow | None, str | None]:
    """PreToolUse and PermissionRequest have a block of their own, with its own reason."""
    request = specific.get("decision")
    if event == "PreToolUse" and specific.get("permissionDecision") == "deny":
        own = _text(specific.get("permissionDecisionReason"))
    elif event == "PermissionRequest" and isinstance(request, dict) and request.get("behavior") == "deny":
        own = _text(request.get("message"))
    else:
        return decision, reason
    return "block", next((text for text in (own, reason) if text and text.strip()), DENIED)


DENIED = "denied by a hook"


def _permission_problem(event: str, specific: Mapping[str, Any]) -> str | None:
    request = specific.get("decision")
    if event == "PreToolUse" and specific.get("permissionDecision") not in (*PERMISSIONS, None):
        return unknown_word("permissionDecision", specific["permissionDecision"], *PERMISSIONS)
    if event == "PermissionRequest" and request is not None:
        if not isinstance(request, dict):
            return f"`decision` of `hookSpecificOutput` is {describe_json(request)}, expected an object"
        if request.get("behavior") not in BEHAVIORS:
            return unknown_word("behavior", request.get("behavior"), *BEHAVIORS)
    return None


def _input_problem(event: str, specific: Mapping[str, Any]) -> str | None:
    holder = specific.get("decision") if event == "PermissionRequest" else specific
    changed = holder.get("updatedInput") if isinstance(holder, Mapping) else None
    if event not in ("PreToolUse", "PermissionRequest") or isinstance(changed, dict | None):
        return None
    return f"`updatedInput` is {describe_json(changed)}, expected an object"


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
        "permission": word if word in PERMISSIONS else None,
        "permission_reason": _text(reason) or "",
        "updated_input": updated_input if isinstance(updated_input, dict) else None,
        "interrupt": interrupt,
    }


def _text(value: object) -> str | None:
    return replace_surrogates(value) if isinstance(value, str) else None
