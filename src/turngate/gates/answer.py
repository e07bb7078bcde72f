"""Gate result → the answer in the JSON contract of hooks, and in words."""

from typing import Any, assert_never

from turngate.core.text import quote_name
from turngate.gates.gate import (
    CouldNotRun,
    Failed,
    GateResult,
    InternalError,
    LimitReached,
    Passed,
    WaitForUser,
)


def answer_json(name: str, result: GateResult, *, strict: bool, for_turngate: bool = False) -> dict[str, Any]:
    """Return what a hook with this result prints. `for_turngate`: with the keys that only our engine reads."""
    answer: dict[str, Any]
    extra: dict[str, Any]
    match result:
        case Passed(note):
            return {"systemMessage": f"gate {quote_name(name)}: {note}"} if note else {}
        case Failed(reason, continuations):
            answer, extra = {"decision": "block", "reason": reason}, {"continuations": continuations}
        case CouldNotRun() if strict and not isinstance(result, InternalError):
            answer, extra = {"decision": "block", "reason": strict_reason(name, result)}, {}
        case CouldNotRun(why):
            text = f"{describe_could_not_run(name, why)}; it was NOT enforced"
            answer, extra = {"systemMessage": text}, {"notEnforced": why}
        case LimitReached(reason):
            return {"continue": False, "stopReason": reason}
        case WaitForUser(reason) if for_turngate:
            return {"continue": False, "stopReason": reason, "waits": True}
        case WaitForUser(reason):
            return {"systemMessage": reason}
        case _:
            assert_never(result)
    return {**answer, **{key: value for key, value in extra.items() if for_turngate and value is not None}}


def describe_could_not_run(name: str, why: str) -> str:
    return f"gate {quote_name(name)} could not run: {why}"


def strict_reason(name: str, result: CouldNotRun) -> str:
    """Return the reason of a gate that blocks because it could not run."""
    reason = describe_could_not_run(name, result.why)
    return f"{reason}\n\n{result.repetition}" if result.repetition else reason
