"""Which hooks run for an event: match, leave out, de-duplicate, keep the order."""

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from turngate.core.events import Event, StopEvent
from turngate.core.hooks import identity
from turngate.core.names import EVENTS, STOP_EVENTS
from turngate.core.reports import Skipped
from turngate.core.settings import Rule, Settings


@dataclass(frozen=True)
class Plan:
    ask: tuple[Rule, ...] = ()
    skip: tuple[tuple[Rule, Skipped], ...] = ()


NOTHING = Plan()


def plan(settings: Settings, event: Event) -> Plan:
    concerned = [rule for rule in settings.rules if rule.event == event.name]
    if not concerned:
        return NOTHING
    fitting = [rule for rule in concerned if matches(rule.matcher, event)]
    judged = [
        (rule, _why_not(rule, event, settings))
        for rule in (without_duplicates(fitting) if len(fitting) > 1 else fitting)
    ]
    others = (
        [
            (rule, Skipped(f"its matcher {rule.matcher!r} does not fit {event.subject!r}", on_purpose=True))
            for rule in concerned
            if rule not in fitting
        ]
        if len(fitting) < len(concerned)
        else []
    )
    return Plan(
        ask=tuple(rule for rule, why in judged if why is None),
        skip=(*((rule, why) for rule, why in judged if why is not None), *others),
    )


def _why_not(rule: Rule, event: Event, settings: Settings) -> Skipped | None:
    hook = rule.hook
    if not hook.enabled:
        return Skipped("it is switched off by its own `enabled`", on_purpose=True)
    switch = settings.switched_off.get(rule.family or "python") if settings.switched_off else None
    if switch:
        return Skipped(f"disableAllHooks in {switch} switches it off")
    if hook.condition is not None and rule.event in STOP_EVENTS and settings.dialect.condition_skips_stop:
        return Skipped("a hook with `if` never runs on a stop in this dialect")
    if isinstance(event, StopEvent) and event.subagent and event.subagent.outcome not in hook.outcomes:
        return Skipped(f"it is not asked when a child ends with {event.subagent.outcome}", on_purpose=True)
    return None


def matches(matcher: str | None, event: Event) -> bool:
    """On Stop a matcher is ignored; on the others it is held against the event's subject."""
    if EVENTS[event.name] is None or matcher is None or matcher in ("", "*"):
        return True
    expression = compiled(matcher)
    if isinstance(expression, tuple):
        return (event.subject or "") in expression
    return expression is not None and expression.search(event.subject or "") is not None


# Claude Code: "only [A-Za-z0-9_ ,|-] -> exact or list; otherwise unanchored regex" (measured).
_NAMES_ONLY = re.compile(r"[A-Za-z0-9_\- ,|]+")


@lru_cache(maxsize=512)
def compiled(matcher: str) -> tuple[str, ...] | re.Pattern[str] | None:
    """A list of exact names, a regular expression, or None for one that is bad and never matches."""
    if _NAMES_ONLY.fullmatch(matcher):
        return tuple(name.strip() for name in re.split(r"[,|]", matcher) if name.strip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd is not wrong
            return re.compile(matcher)
    except (re.error, RecursionError, OverflowError):
        return None


def without_duplicates(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The same hook runs once: it keeps its first place, and its last definition counts (X-14)."""
    kept: dict[tuple[object, ...], Rule] = {}
    for rule in rules:
        kept[identity(rule.hook)] = rule
    return tuple(kept.values())
