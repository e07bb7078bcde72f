"""What hooks of the other events may do: add context, answer for the user, change a tool's input."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from turngate.core.decisions import Block, Fault
from turngate.core.reports import Exited, Replied, Returned
from turngate.core.verdict import HookRun, said

Behavior = Literal["allow", "deny", "ask"]


@dataclass(frozen=True, kw_only=True)
class Permission:
    """What the hooks of a tool event say together: deny before ask before allow; None: they say nothing."""

    behavior: Behavior | None = None
    reason: str = ""
    updated_input: Mapping[str, Any] | None = None
    context: str = ""
    interrupt: bool = False


def block_reasons(runs: Iterable[HookRun]) -> str | None:
    """The reasons of the hooks that refuse, or None."""
    reasons = [said(run) or "" for run in runs if run.mode == "gate" and isinstance(run.decision, Block)]
    return "\n\n".join(reasons) if reasons else None


def added_context(runs: Iterable[HookRun], *, plain: bool) -> str:
    """What hooks add to the conversation: `additionalContext`, and plain stdout where the event takes it."""
    return "\n\n".join(text for run in runs if (text := _context(run, plain=plain)))


def _context(run: HookRun, *, plain: bool) -> str:
    if not _counts(run):
        return ""
    if _answer(run):
        context = _specific(run).get("additionalContext")
        return context.strip() if isinstance(context, str) else ""
    if plain and isinstance(run.report, Exited) and run.report.code == 0:
        return run.report.stdout.strip()
    return ""


def permission_before_tool(runs: Iterable[HookRun]) -> Permission:
    """PreToolUse. Exit 2 and `decision: block` deny with the reason."""
    runs = tuple(runs)
    found = [_specific(run) for run in runs]
    words = [answer.get("permissionDecision") for answer in found]
    reasons = [
        str(a.get("permissionDecisionReason", ""))
        for a in found
        if a.get("permissionDecision") in ("ask", "allow")
    ]
    refused = block_reasons(runs)
    behavior: Behavior | None = None
    if refused is not None:
        behavior = "deny"
    elif "ask" in words:
        behavior = "ask"
    elif "allow" in words:
        behavior = "allow"
    return Permission(
        behavior=behavior,
        reason=refused if refused is not None else "\n\n".join(filter(None, reasons)),
        updated_input=_last_mapping(_specific(_as_it_came(run)).get("updatedInput") for run in runs),
        context=added_context(runs, plain=False),
    )


def permission_for_user(runs: Iterable[HookRun]) -> Permission:
    """PermissionRequest: a hook answers the dialog. Exit 2 alone changes nothing."""
    gates = [run for run in runs if run.mode == "gate"]
    told = [answer for run in gates if isinstance(answer := _specific(run).get("decision"), dict)]
    denied = [answer for answer in told if answer.get("behavior") == "deny"]
    allowed = [answer for answer in told if answer.get("behavior") == "allow"]
    if denied:
        reason = str(denied[0].get("message") or "denied by a hook")
        return Permission(
            behavior="deny",
            reason=reason,
            interrupt=any(answer.get("interrupt") is True for answer in denied),
        )
    if allowed:
        whole = (_specific(_as_it_came(run)).get("decision") for run in gates)
        given = [answer for answer in whole if isinstance(answer, dict) and answer.get("behavior") == "allow"]
        return Permission(
            behavior="allow", updated_input=_last_mapping(answer.get("updatedInput") for answer in given)
        )
    return Permission()


def _as_it_came(run: HookRun) -> HookRun:
    """What a tool is given is no text for anybody, so nothing is hidden in it."""
    if isinstance(run.report, Replied) and run.report.whole:
        return replace(run, report=Replied(run.report.whole))
    return run


def _answer(run: HookRun) -> Mapping[str, Any]:
    """The JSON object that a hook gave, or an empty one; what only observes, or is broken, says nothing."""
    if not _counts(run):
        return {}
    match run.report:
        case Returned(value=dict() as value):
            return value
        case Exited(code, said) if code != 2:
            return _object(said)
        case Replied(said):
            return _object(said)
        case _:
            return {}


def _object(said: str) -> Mapping[str, Any]:
    body = said.strip("\ufeff \t\r\n")
    if not body.startswith("{"):
        return {}
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _counts(run: HookRun) -> bool:
    return run.mode == "gate" and not isinstance(run.decision, Fault)


def _specific(run: HookRun) -> Mapping[str, Any]:
    """The part of its answer that is about this event."""
    specific = _answer(run).get("hookSpecificOutput")
    if not isinstance(specific, dict) or specific.get("hookEventName", run.rule.event) != run.rule.event:
        return {}
    return specific


def _last_mapping(values: Iterable[Any]) -> Mapping[str, Any] | None:
    mappings = [value for value in values if isinstance(value, dict)]
    return mappings[-1] if mappings else None
