"""What the settings files say: rules in layers, and how the layers become one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from turngate.core.constants import EVENTS, LEVELS
from turngate.core.dialect import TURNGATE, Dialect
from turngate.core.hooks import Hook, Mode

Order = Literal["parallel", "sequential", "first_block"]
Payload = Literal["full", "strict"]
WhenPending = Literal["defer", "run"]  # are gates asked while a message waits for an answer?
Severity = Literal["error", "warning", "note"]

RETENTION_DAYS = 30.0
SESSION_END_TIMEOUT = 1.5  # seconds, for every kind of hook: nobody waits for a good-bye

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong with one settings file, and what to do about it."""

    file: str
    message: str  # what is wrong and what was expected
    severity: Severity = "error"  # error: something configured will not run
    event: str | None = None
    index: str | None = None  # place in the event's list: "[0].hooks[1]"
    field: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = ".".join(part for part in (f"{self.event or ''}{self.index or ''}", self.field) if part)
        return ": ".join(part for part in (self.file, place, self.message) if part)


@dataclass(frozen=True)
class Rule:
    """One hook on one event, and where it was written."""

    event: str
    hook: Hook
    matcher: str | None = None
    source: str = "python"  # user | project | local | script | python
    file: str | None = None
    family: str | None = None
    index: str | None = None  # place in the event's list: "[0].hooks[1]"


@dataclass(frozen=True)
class AllowedUrls:
    """The addresses that one settings file allows: prefixes (`https://host/path/`) and hosts (`*.example.com`)."""

    patterns: tuple[str, ...]
    level: str = "python"


@dataclass(frozen=True, kw_only=True)
class ScalarSettings:
    """The single values of a settings file; None: this file does not say."""

    limit: int | None = None
    hard_limit: int | None = None
    child_limit: int | None = None
    children_at_once: int | None = None
    children_depth: int | None = None
    child_seconds: float | None = None
    no_revise_after_side_effects: bool | None = None
    when_user_pending: WhenPending | None = None
    announce_children: bool | None = None
    order: Mapping[str, Order] | None = None  # by event; "*" for all
    mode: Mapping[str, Mode] | None = None
    payload: Payload | None = None
    timeouts: Mapping[tuple[str, str], float] | None = None  # by (event, kind); "*" for all
    stop_budget: float | None = None
    model: str | None = None
    judge: str | None = None
    retention_days: float | None = None
    plugins: tuple[str, ...] | None = None
    plugin_dirs: tuple[str, ...] | None = None
    allowed_urls: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Layer:
    """What one file (or one script) says."""

    file: str
    level: str
    family: str
    rules: tuple[Rule, ...] = ()
    disable_all: bool | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    scalars: ScalarSettings = field(default_factory=ScalarSettings)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that is configured for one session."""

    rules: tuple[Rule, ...] = ()
    switched_off: Mapping[str, str] = field(default_factory=dict)  # family: the file that says so
    dialect: Dialect = TURNGATE
    limit: int | None = None  # None: the dialect's
    hard_limit: int | None = None
    child_limit: int | None = None
    children_at_once: int | None = None  # of one session; None: as the supervisor says
    children_depth: int | None = None
    child_seconds: float | None = None
    no_revise_after_side_effects: bool = False  # a child that has changed something is not sent on
    when_user_pending: WhenPending | None = None  # None: as the dialect has it
    announce_children: bool = True  # a child that worked in the background reports to its parent
    order: Mapping[str, Order] = field(default_factory=dict)
    mode: Mapping[str, Mode] = field(default_factory=dict)
    payload: Payload = "full"
    timeouts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    stop_budget: float | None = None
    model: str | None = None
    judge: str | None = None
    retention_days: float = RETENTION_DAYS
    plugins: tuple[str, ...] = ()
    plugin_dirs: tuple[str, ...] = ()
    allowed_urls: tuple[AllowedUrls, ...] = ()  # an http hook must be in each of them
    env: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def with_rules(self, *rules: Rule) -> "Settings":
        """These settings and rules of your own."""
        return replace(self, rules=self.rules + rules)

    @property
    def defers_to_user(self) -> bool:
        """Does a message that waits come before the gates?"""
        said = self.when_user_pending
        return self.dialect.defers_to_user if said is None else said == "defer"

    def order_of(self, event: str) -> Order:
        return self.order.get(event) or self.order.get("*") or "parallel"

    def mode_of(self, rule: Rule) -> Mode:
        return rule.hook.mode or self.mode.get(rule.event) or self.mode.get("*") or "gate"

    def timeout_of(self, rule: Rule) -> float:
        """Seconds for one run: the hook's own word, then the settings', then the dialect's."""
        if rule.hook.timeout is not None:
            return rule.hook.timeout
        which = rule.hook.kind
        if self.timeouts:
            for key in ((rule.event, which), (rule.event, "*"), ("*", which), ("*", "*")):
                if key in self.timeouts:
                    return self.timeouts[key]
        return SESSION_END_TIMEOUT if rule.event == "SessionEnd" else self.dialect.timeouts[which]

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def not_loaded(self) -> tuple[Problem, ...]:
        """Why something that is configured will never run: what is wrong, and hooks of events that nobody knows."""
        return tuple(
            problem
            for problem in self.problems
            if problem.severity == "error"
            or (problem.severity == "warning" and problem.event not in (None, *EVENTS))
        )


def merge(layers: Iterable[Layer], dialect: Dialect = TURNGATE) -> Settings:
    """Later layers win: hooks are added up, single values are overridden (C-09)."""
    ordered = sorted(layers, key=lambda layer: _rank(layer, dialect))
    said = [layer.scalars for layer in ordered]
    hard_limit, refused = _hard_limit(ordered, dialect)
    return Settings(
        rules=_replace_same_id(rule for layer in ordered for rule in layer.rules),
        switched_off=_switched_off(ordered, dialect),
        dialect=dialect,
        limit=_last(scalars.limit for scalars in said),
        hard_limit=hard_limit,
        child_limit=_last(scalars.child_limit for scalars in said),
        children_at_once=_last(scalars.children_at_once for scalars in said),
        children_depth=_last(scalars.children_depth for scalars in said),
        child_seconds=_last(scalars.child_seconds for scalars in said),
        no_revise_after_side_effects=any(scalars.no_revise_after_side_effects for scalars in said),
        when_user_pending=_last(scalars.when_user_pending for scalars in said),
        announce_children=_last(scalars.announce_children for scalars in said) is not False,
        order=_union(scalars.order for scalars in said),
        mode=_union(scalars.mode for scalars in said),
        payload=_last(scalars.payload for scalars in said) or "full",
        timeouts=_union(scalars.timeouts for scalars in said),
        stop_budget=_last(scalars.stop_budget for scalars in said),
        model=_last(scalars.model for scalars in said),
        judge=_last(scalars.judge for scalars in said),
        retention_days=_last(scalars.retention_days for scalars in said) or RETENTION_DAYS,
        plugins=_last(scalars.plugins for scalars in said) or (),
        plugin_dirs=_last(scalars.plugin_dirs for scalars in said) or (),
        allowed_urls=_url_lists(ordered),
        env=_union(layer.env for layer in ordered),
        problems=tuple(p for layer in ordered for p in layer.problems) + refused,
    )


def _rank(layer: Layer, dialect: Dialect) -> tuple[int, int]:
    """user < project < local, and within a level the dialect's families in order (C-08)."""
    return LEVELS.index(layer.level), dialect.families.index(layer.family)


def _replace_same_id(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """An entry with an id takes the place of an earlier one with the same id on the same event."""
    kept: dict[object, Rule] = {}
    for place, rule in enumerate(rules):
        kept[(rule.event, rule.hook.id) if rule.hook.id else place] = rule
    return tuple(kept.values())


def _switched_off(layers: Iterable[Layer], dialect: Dialect) -> dict[str, str]:
    """The families whose hooks do not run, each with the file that says so."""
    word: dict[str, Layer] = {}
    for layer in layers:
        if layer.disable_all is not None:
            word["*" if dialect.disable_reaches == "all" else layer.family] = layer
    off = {family: layer.file for family, layer in word.items() if layer.disable_all}
    everything = off.pop("*", None) or off.get("turngate")
    return dict.fromkeys((*dialect.families, "python"), everything) if everything else off


def _hard_limit(layers: Sequence[Layer], dialect: Dialect) -> tuple[int | None, tuple[Problem, ...]]:
    """Only the user's own settings may raise the hard limit; a project may lower it (C-18)."""
    ceiling = dialect.hard_limit
    problems: list[Problem] = []
    for layer in layers:
        asked = layer.scalars.hard_limit
        if asked is None or ceiling is None:
            continue
        if layer.level == "user" or asked <= ceiling:
            ceiling = asked
        else:
            message = f"{asked} is above {ceiling}, which only your user settings may raise: {ceiling} holds"
            problems.append(
                Problem(file=layer.file, field="turngate.hardLimit", message=message, severity="warning")
            )
    asking = [layer for layer in layers if layer.scalars.limit is not None]
    limit = asking[-1].scalars.limit if asking else None
    if limit is not None and ceiling is not None and limit > ceiling:
        message = f"{limit} is above the hard limit of {ceiling}: {ceiling} holds"
        problems.append(
            Problem(file=asking[-1].file, field="turngate.limit", message=message, severity="warning")
        )
    return ceiling, tuple(problems)


def _url_lists(layers: Iterable[Layer]) -> tuple[AllowedUrls, ...]:
    """Every file's list counts, so that a later one can only narrow."""
    said = ((layer.scalars.allowed_urls, layer.level) for layer in layers)
    return tuple(AllowedUrls(patterns, level) for patterns, level in said if patterns is not None)


def _last(values: Iterable[T | None]) -> T | None:
    found: T | None = None
    for value in values:
        found = found if value is None else value
    return found


def _union(mappings: Iterable[Mapping[K, V] | None]) -> dict[K, V]:
    return {key: value for mapping in mappings for key, value in (mapping or {}).items()}
