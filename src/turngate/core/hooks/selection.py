"""Decides which rules run for an event: match, skip, remove duplicates, keep the order."""

from collections.abc import Callable, Iterable

from turngate._frozen_dataclass import frozen
from turngate.core.answers.report_types import HookFailed, Skipped
from turngate.core.constants import EVENTS, MANAGED
from turngate.core.events.events import Event, StopEvent, ToolEvent
from turngate.core.hooks.kinds import identity
from turngate.core.hooks.matcher import InvalidMatcher, read_matcher
from turngate.core.settings import Rule, Settings
from turngate.core.text import truncate

MAX_MATCHER_CHARS = 200  # of a matcher, or of what it did not match, in a message


@frozen
class Plan:
    """The rules to run, and the rules of the event that do not run, each with the reason."""

    ask: tuple[Rule, ...] = ()
    skip: tuple[tuple[Rule, Skipped | HookFailed], ...] = ()


EMPTY_PLAN = Plan()
Locate = Callable[[str], str]  # as in `path_rule`


def plan(settings: Settings, event: Event, locate: Locate | None = None) -> Plan:
    """Return which rules run for an event. `locate` resolves links in the paths of tool calls and conditions."""
    of_event = [rule for rule in settings.rules if rule.event == event.name]
    of_event = [rule for rule in of_event if rule.agent_type in (None, _agent_type(event))]
    if not of_event:
        return EMPTY_PLAN
    matching = [rule for rule in of_event if matches(rule.matcher, event)]
    off = [rule for rule in matching if _switched_off(rule, settings)]
    on = [rule for rule in matching if not _switched_off(rule, settings)]
    ask: list[Rule] = []
    skip: list[tuple[Rule, Skipped | HookFailed]] = [
        (rule, reason)
        for rule in without_duplicates(off, settings)
        if (reason := _switched_off(rule, settings))
    ]
    pending = [rule for rule in on if rule.pending]
    candidates = without_duplicates((rule for rule in on if not rule.pending), settings)
    for rule in (*candidates, *pending):
        why = _why_skipped(rule, event, settings, locate)
        if why is None:
            ask.append(rule)
        else:
            skip.append((rule, why))
    if len(matching) < len(of_event):
        ids = {id(rule) for rule in matching}
        skip += [(rule, _no_match(rule, event, settings, locate)) for rule in of_event if id(rule) not in ids]
    return Plan(tuple(ask), tuple(skip))


def _agent_type(event: Event) -> str | None:
    if isinstance(event, StopEvent):
        return event.subagent.type if event.subagent else None
    return event.agent_type or None


def _no_match(rule: Rule, event: Event, settings: Settings, locate: Locate | None) -> Skipped | HookFailed:
    """An invalid matcher is a failure, so that a hook whose failure blocks does. Claude Code: "bad regex -> never matches (debug line)"."""
    matcher, shown = read_matcher(rule.matcher or ""), f"its matcher {_describe(rule.matcher)}"
    if not isinstance(matcher, InvalidMatcher):
        return Skipped(f"{shown} does not match {_describe(event.subject)}", on_purpose=True)
    if why := _switched_off(rule, settings) or _why_skipped(rule, event, settings, locate):
        return why
    invalid = HookFailed if settings.dialect.failure_may_block else Skipped
    return invalid(f"{shown} {matcher.why}")


def _describe(text: str | None) -> str:
    return truncate(repr(text), MAX_MATCHER_CHARS)


def _switched_off(rule: Rule, settings: Settings) -> Skipped | None:
    setting = switched_off_by(rule, settings) if rule.hook.enabled else None
    return Skipped(f"{setting} switches it off", is_change=True) if setting else None


def switched_off_by(rule: Rule, settings: Settings) -> str | None:
    """Return the setting, and its file, that switches the hooks of this rule's family or level off."""
    is_managed = rule.source == MANAGED
    if file := settings.switched_off.get(MANAGED if is_managed else rule.family or "python"):
        return f"disableAllHooks in {file}"
    if settings.managed_only and not is_managed and rule.family is not None:
        return f"allowManagedHooksOnly in {settings.managed_only}"
    return None


def _why_skipped(
    rule: Rule, event: Event, settings: Settings, locate: Locate | None
) -> Skipped | HookFailed | None:
    hook = rule.hook
    if not hook.enabled:
        return Skipped("it is switched off by its own `enabled`", on_purpose=True)
    if hook.condition is not None and (why := _why_condition_skips(hook.condition, event, settings, locate)):
        return why
    if isinstance(event, StopEvent) and event.subagent and event.subagent.outcome not in hook.outcomes:
        return Skipped(f"it does not run when a subagent ends with {event.subagent.outcome}", on_purpose=True)
    if rule.pending:
        return Skipped(rule.pending, on_purpose=rule.rejected, is_change=True)
    return None


def _why_condition_skips(
    condition: str, event: Event, settings: Settings, locate: Locate | None
) -> Skipped | HookFailed | None:
    """A condition is about a tool call; at other events it is ignored, or as in Claude Code the hook never runs. One that is not a rule is a failure."""
    if not isinstance(event, ToolEvent):
        if settings.dialect.condition_skips_stop:
            return Skipped(f"a hook with `if` never runs on {event.name} in this dialect")
        return None
    # lazy: few hooks have a condition
    from turngate.core.permissions.rule import read_rule, rule_matches  # noqa: PLC0415

    rule = read_rule(condition)
    if rule is None:
        return HookFailed(f"its `if` {_describe(condition)} is not a permission rule such as 'Bash(git *)'")
    if rule_matches(rule, event.tool_name, event.tool_input, event.cwd, locate):
        return None
    shown = f"its `if` {_describe(condition)}"
    return Skipped(f"{shown} does not match this call of {event.tool_name}", on_purpose=True)


def matches(matcher: str | None, event: Event) -> bool:
    """Return whether the matcher matches the event's subject. Events without a subject ignore it."""
    if matcher is None or matcher in ("", "*") or EVENTS[event.name] is None:
        return True
    subject = event.subject or ""
    names: Iterable[str] = (subject,)
    if isinstance(event, ToolEvent):
        from turngate.core.conversation.tools import tool_names  # noqa: PLC0415 # lazy: a stop has no tool

        names = tool_names(subject)
    return any(map(read_matcher(matcher or "").matches, names))


def without_duplicates(rules: Iterable[Rule], settings: Settings) -> tuple[Rule, ...]:
    """Keep one of equal hooks from files, at the first position and with the last definition (X-14), unless the first one `stays`."""
    by_identity: dict[object, Rule] = {}
    for rule in rules:
        key = identity(rule.hook) if rule.source != "python" else object()
        earlier = by_identity.get(key)
        if earlier is None or not stays(earlier, rule, settings):
            by_identity[key] = rule
    return tuple(by_identity.values())


def stays(earlier: Rule, rule: Rule, settings: Settings) -> bool:
    """Return whether an earlier definition of a hook counts although there is this later one."""
    if rule.trust >= earlier.trust:
        return False
    return earlier.source == MANAGED or (_is_gate(earlier, settings) and not _is_gate(rule, settings))


def _is_gate(rule: Rule, settings: Settings) -> bool:
    return rule.hook.enabled and not rule.hook.detached and settings.mode_of(rule) == "gate"
