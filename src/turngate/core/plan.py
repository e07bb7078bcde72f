"""Which hooks run for an event: match, leave out, de-duplicate, keep the order."""

from collections.abc import Iterable
from dataclasses import dataclass

from turngate.core.constants import EVENTS, STOP_EVENTS
from turngate.core.events import Event, StopEvent
from turngate.core.hooks import identity
from turngate.core.matcher import InvalidMatcher, read_matcher
from turngate.core.reports import Skipped
from turngate.core.settings import Rule, Settings
from turngate.core.text import truncate

MAX_MATCHER_CHARS = 200  # of a matcher, or of what it did not match, in a message


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
    asked: list[Rule] = []
    left_out: list[tuple[Rule, Skipped]] = []
    off = settings.switched_off
    if off:
        switched = without_duplicates(rule for rule in fitting if _switched_off(rule, settings))
        left_out = [(rule, why) for rule in switched if (why := _switched_off(rule, settings))]
    switched_on = [rule for rule in fitting if not _switched_off(rule, settings)] if off else fitting
    for rule in without_duplicates(switched_on) if len(switched_on) > 1 else switched_on:
        why = _why_not(rule, event, settings)
        if why is None:
            asked.append(rule)
        else:
            left_out.append((rule, why))
    if len(fitting) < len(concerned):
        fits = {id(rule) for rule in fitting}
        left_out += [(rule, _misfit(rule, event)) for rule in concerned if id(rule) not in fits]
    return Plan(tuple(asked), tuple(left_out))


def _misfit(rule: Rule, event: Event) -> Skipped:
    """A matcher that can never fit is a mistake, and its hook a gate that nobody stands behind."""
    meaning = read_matcher(rule.matcher or "")
    if isinstance(meaning, InvalidMatcher):
        return Skipped(f"its matcher {_describe(rule.matcher)} {meaning.why}")
    return Skipped(
        f"its matcher {_describe(rule.matcher)} does not fit {_describe(event.subject)}", on_purpose=True
    )


def _describe(text: str | None) -> str:
    return truncate(repr(text), MAX_MATCHER_CHARS)


def _switched_off(rule: Rule, settings: Settings) -> Skipped | None:
    switch = settings.switched_off.get(rule.family or "python") if rule.hook.enabled else None
    return Skipped(f"disableAllHooks in {switch} switches it off") if switch else None


def _why_not(rule: Rule, event: Event, settings: Settings) -> Skipped | None:
    hook = rule.hook
    if not hook.enabled:
        return Skipped("it is switched off by its own `enabled`", on_purpose=True)
    if hook.condition is not None and rule.event in STOP_EVENTS and settings.dialect.condition_skips_stop:
        return Skipped("a hook with `if` never runs on a stop in this dialect")
    if isinstance(event, StopEvent) and event.subagent and event.subagent.outcome not in hook.outcomes:
        return Skipped(f"it is not asked when a child ends with {event.subagent.outcome}", on_purpose=True)
    return None


def matches(matcher: str | None, event: Event) -> bool:
    """On Stop a matcher is ignored; on the others it is held against the event's subject."""
    return _is_for_all(matcher, event) or read_matcher(matcher or "").fits(event.subject or "")


def _is_for_all(matcher: str | None, event: Event) -> bool:
    return matcher is None or matcher in ("", "*") or EVENTS[event.name] is None


def without_duplicates(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The same hook in several files runs once: it keeps its first place, and its last definition counts (X-14).

    What a program lists is asked as it is listed.
    """
    kept: dict[object, Rule] = {}
    for rule in rules:
        kept[identity(rule.hook) if rule.source != "python" else object()] = rule
    return tuple(kept.values())
