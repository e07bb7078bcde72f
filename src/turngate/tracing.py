"""Spans in the user's own trace, where the program has loaded OpenTelemetry, and the names that all spans of Turngate use."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from turngate.core.verdict.hook_run import HookOutcome

HOOK_SPAN = "turngate.gate"  # with the name of the hook
TURN = {"gen_ai.operation.name": "invoke_agent"}  # of the span of a turn, as in the GenAI conventions
LABELS: Mapping[str, str] = {  # of a `HookOutcome`, as the value of `turngate.outcome`
    "allow": "passed",
    "advise": "passed",
    "block": "blocked",
    "halt": "halted",
    "would_block": "would_block",
    "failed": "not_enforced",
    "timeout": "not_enforced",
    "waiting": "not_enforced",
    "skipped": "skipped",
}


@contextmanager
def open_span(name: str, session: str, attributes: Mapping[str, str]) -> Iterator[Any]:
    """Yield a span below the current one; None if the program has not loaded OpenTelemetry."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield None
        return
    about = {"gen_ai.conversation.id": session, **attributes}
    with trace.get_tracer("turngate").start_as_current_span(name, attributes=about) as span:
        yield span


@contextmanager
def open_hook_span(event: str, session: str, hook: str) -> Iterator[Callable[[HookOutcome], None]]:
    """Run a hook in a span, if there is a trace; yield what is told the outcome."""
    about = {"turngate.event": event, "turngate.hook": hook}
    with open_span(f"{HOOK_SPAN} {hook}", session, about) as span:
        yield lambda outcome: span and span.set_attribute("turngate.outcome", LABELS[outcome])
