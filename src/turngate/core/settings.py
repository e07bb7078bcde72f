"""Settings: rules and single values. `merge` combines the layers that were read from files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any, Literal, TypeVar, assert_never

from turngate._frozen_dataclass import frozen
from turngate.core.constants import COMMAND_LINE, EVENTS, FOREIGN_EVENTS, LEVELS, MANAGED
from turngate.core.dialect import MUX, TURNGATE, Dialect
from turngate.core.hooks.kinds import AgentHook, CommandHook, GateHook, Hook, Mode, PromptHook
from turngate.core.text import describe_name

Order = Literal["parallel", "sequential", "first_block"]
Payload = Literal["full", "strict"]
WhenPending = Literal["defer", "run"]  # a pending user message: answer it first, or run the hooks first
Severity = Literal["error", "warning", "note"]

_OWNERS = ("user", COMMAND_LINE, MANAGED)  # that no project sets, each trusted more than the one before
# Fields of `Settings` with which a file could disarm a gate: they do not loosen hooks that are trusted more than it.
GUARDED = frozenset({"mode", "timeouts", "stop_budget", "payload", "judge", "pass_env"})

RETENTION_DAYS = 30.0
SESSION_END_TIMEOUT_S = 1.5  # for every hook kind: closing a session must not take long

K = TypeVar("K")
V = TypeVar("V")


@frozen(kw_only=True)
class Problem:
    """One mistake in one settings file, and how to correct it."""

    file: str
    message: str  # what is wrong, the value, and what was expected
    severity: Severity = "error"  # error: something that is configured will not run
    event: str | None = None
    index: str | None = None  # position in the event's list: "[0].hooks[1]"
    field: str | None = None
    hint: str | None = None
    hook: str | None = None  # the hook's id

    @property
    def position(self) -> str:
        """Where in the file: "Stop[0].hooks[1].command", and in parentheses the hook's id."""
        place = ".".join(part for part in (f"{self.event or ''}{self.index or ''}", self.field) if part)
        return f"{place} ({describe_name(self.hook)})" if self.hook else place

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.position, self.message) if part)


@frozen
class Rule:
    """One hook on one event, and where it is configured."""

    event: str
    hook: Hook
    matcher: str | None = None
    # user | project | local | command line | managed | script | plugin | python
    source: str = "python"
    file: str | None = None
    family: str | None = None
    index: str | None = None  # position in the event's list: "[0].hooks[1]"
    agent_type: str | None = None  # runs only for subagents of this type
    level: str | None = field(
        default=None, compare=False
    )  # the level of the file, if `source` does not give it
    pending: str | None = field(default=None, compare=False)  # why it does not run until it is approved
    rejected: bool = field(default=False, compare=False)  # it is pending because a person rejected it
    # The files that it runs, each with an id of the content that was approved; None: there was no such file.
    files: Mapping[str, str | None] = field(default_factory=dict, compare=False, repr=False)
    definition: str = field(default="", compare=False, repr=False)  # what was approved, as compact JSON
    held: bool = field(default=False, compare=False)  # a gate of the session: if it was changed, it blocks

    @property
    def trust(self) -> int:
        """How far the hook is trusted: that of a project 0, then the user's, `--settings`, managed settings."""
        level = self.level or ("user" if self.source == "python" else self.source)
        return _OWNERS.index(level) + 1 if level in _OWNERS else 0


@frozen
class AllowedUrls:
    """The URLs that one settings file allows: prefixes (`https://host/path/`) and hosts (`*.example.com`)."""

    patterns: tuple[str, ...]
    level: str = "python"


@frozen(kw_only=True)
class Layer:
    """The content of one settings file or of one script hook."""

    file: str
    level: str
    family: str
    rules: tuple[Rule, ...] = ()
    disable_all: bool | None = None
    managed_only: bool = False  # `allowManagedHooksOnly`, which counts only in managed settings
    env: Mapping[str, str] = field(default_factory=dict)
    # By field of `Settings`; only what the file sets.
    scalars: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


@frozen(kw_only=True)
class Settings:
    """The configuration of one session.

    Fields with `child` or `children` in their name are about subagents.
    """

    # Every scalar field has a row in `settings/key_table.py`.

    rules: tuple[Rule, ...] = ()
    switched_off: Mapping[str, str] = field(default_factory=dict)  # family: the file that disables it
    managed_only: str | None = None  # the file that switches off all hooks except managed ones
    dialect: Dialect = TURNGATE
    limit: int | None = None  # continuations in one turn; None: the dialect's
    hard_limit: int | None = None
    child_limit: int | None = None  # redirects of one subagent; None: `limit`
    children_at_once: int | None = None  # subagents of one session; None: the default of SubagentLimits
    children_depth: int | None = None
    child_seconds: float | None = None
    no_revise_after_side_effects: bool = False  # do not redirect a subagent that changed something
    when_user_pending: WhenPending | None = None  # None: the dialect's
    show_pass: bool = False  # tell the user about a stop that passes, in a host
    record_trees: bool = False  # keep the files of each stop in the project's repository
    registry: str | None = None  # the URL of the registry of subagents; None: a file in the state folder
    announce_children: bool = True  # deliver results of background subagents to the parent
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
    allowed_urls: tuple[AllowedUrls, ...] = ()  # the URL of an http hook must be allowed by each of them
    http_hook_urls: tuple[str, ...] | None = None  # patterns for URLs of http hooks; None: no restriction
    http_hook_variables: tuple[str, ...] | None = None  # for headers of http hooks; None: no restriction
    # Set: command hooks have a clean environment, with these variables besides the usual ones.
    pass_env: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    user_env: Mapping[str, str] = field(default_factory=dict)  # the part of `env` that no project sets
    # By `Rule.trust`: the values of GUARDED fields without those of files that are trusted less, where they differ.
    guarded: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def environ_of_models(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return where models find keys and addresses. A project could send the user's keys to another address."""
        return {**environ, **self.user_env}

    def with_rules(self, *rules: Rule, problems: tuple[Problem, ...] = ()) -> "Settings":
        """Return these settings with additional rules, and with the problems of their files."""
        return replace(self, rules=self.rules + rules, problems=self.problems + problems)

    @property
    def defers_to_user(self) -> bool:
        """Whether a pending user message is answered before the hooks run."""
        if self.when_user_pending is None:
            return self.dialect.defers_to_user
        return self.when_user_pending == "defer"

    def order_of(self, event: str) -> Order:
        return self.order.get(event) or self.order.get("*") or "parallel"

    def mode_of(self, rule: Rule) -> Mode:
        if rule.hook.mode:
            return rule.hook.mode
        modes = [modes.get(rule.event) or modes.get("*") for modes in self._values("mode", rule)]
        return "observe" if all(mode == "observe" for mode in modes) else "gate"

    def timeout_of(self, rule: Rule) -> float:
        """Return the seconds for one run: the hook's own timeout, else the settings', else that of its family or dialect."""
        if rule.hook.timeout is not None:
            return rule.hook.timeout
        return max(self._default_timeout(rule, timeouts) for timeouts in self._values("timeouts", rule))

    def _default_timeout(self, rule: Rule, timeouts: Mapping[tuple[str, str], float]) -> float:
        kind = rule.hook.kind
        if timeouts:
            for key in ((rule.event, kind), (rule.event, "*"), ("*", kind), ("*", "*")):
                if key in timeouts:
                    return timeouts[key]
        if rule.event == "SessionEnd":
            return SESSION_END_TIMEOUT_S
        # Document 000 says of the files that it describes: "10 second hook timeout".
        return (MUX if rule.family == "mux" else self.dialect).timeouts[kind]

    def stop_budget_of(self, rule: Rule) -> float | None:
        budgets = self._values("stop_budget", rule)
        return None if None in budgets else max(budgets)

    def passed_variables(self, rule: Rule) -> tuple[str, ...] | None:
        """Return the variables that a command hook gets besides the usual ones, which a project's hook cannot extend; None: not a clean environment."""
        of_all = self.guarded_for(rule).get("pass_env", self.pass_env)
        own = rule.hook.pass_env if isinstance(rule.hook, CommandHook | GateHook) else None
        if own is None or of_all is None:
            return of_all if own is None else own
        is_limited = rule.trust == 0 and "pass_env" not in self.guarded.get(1, {})
        return of_all if is_limited else (*of_all, *own)

    def guarded_for(self, rule: Rule) -> Mapping[str, Any]:
        """Return the values of this hook that files which are trusted less would change."""
        return self.guarded.get(rule.trust, {}) if self.guarded else {}

    def _values(self, name: str, rule: Rule) -> tuple[Any, ...]:
        """Return the value of all files and, if it differs, the one without files that are trusted less than the hook: the stricter one counts."""
        own = self.guarded_for(rule)
        return (getattr(self, name), own[name]) if name in own else (getattr(self, name),)

    def as_seen_by(self, rule: Rule) -> tuple[Rule, "Settings"]:
        """Return the hook with its judge, and the settings with its payload."""
        own, hook = self.guarded_for(rule), rule.hook
        if "judge" in own and isinstance(hook, PromptHook | AgentHook) and hook.model is None:
            rule = replace(rule, hook=replace(hook, model=own["judge"] or ""))  # "": no judge is configured
        is_strict = all(payload == "strict" for payload in self._values("payload", rule))
        return rule, replace(self, payload="strict" if is_strict else "full")

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def not_loaded(self) -> tuple[Problem, ...]:
        """The problems because of which a configured hook never runs: errors, and hooks of unknown events."""
        return tuple(
            problem
            for problem in self.problems
            if problem.severity == "error"
            or (problem.severity == "warning" and problem.event not in (None, *EVENTS, *FOREIGN_EVENTS))
        )


# How the values of several files become one: the last file's value; one mapping, later files override keys; true if
# any file says true; one list of all; one list of the files that no project sets, or else of all; every file's value,
# each with its level; the hard limit (see `_hard_limit`); the last value of the files that no project sets.
MergeRule = Literal["last", "union", "any", "concat", "owners", "each", "ceiling", "user"]


def merge(
    layers: Iterable[Layer], merge_rules: Mapping[str, MergeRule], dialect: Dialect = TURNGATE
) -> Settings:
    """Return the settings of all layers, of which later ones win (C-09). `merge_rules` names the scalar fields of `Settings`."""
    levels, families = (*LEVELS, COMMAND_LINE, MANAGED), dialect.families  # weakest first (C-08)
    ordered = sorted(layers, key=lambda layer: (levels.index(layer.level), families.index(layer.family)))
    scalars = {name: _merge_scalar(name, rule, ordered, dialect) for name, rule in merge_rules.items()}
    return Settings(
        rules=_replace_same_id(chain.from_iterable(layer.rules for layer in ordered)),
        switched_off=_switched_off(ordered, dialect),
        managed_only=next((layer.file for layer in ordered if layer.managed_only), None),
        dialect=dialect,
        env=_union(layer.env for layer in ordered),
        user_env=_union(layer.env for layer in ordered if layer.level in _OWNERS),
        guarded=_guarded(ordered, scalars, merge_rules, dialect),
        problems=(*(p for layer in ordered for p in layer.problems), *_ineffective(ordered, dialect)),
        **{name: value for name, value in scalars.items() if value is not None},
    )


def _merge_scalar(name: str, rule: MergeRule, layers: Sequence[Layer], dialect: Dialect) -> Any:
    """Return the merged value, or None where no layer sets it and the default of `Settings` applies."""
    setting = [layer for layer in layers if name in layer.scalars]
    values = [layer.scalars[name] for layer in setting]
    match rule:
        case "last":
            return values[-1] if values else None
        case "union":
            return _union(values)
        case "any":
            return any(values)
        case "concat":
            return tuple(dict.fromkeys(chain.from_iterable(values))) if values else None
        case "owners":
            owned = [layer for layer in setting if layer.level in _OWNERS]
            return _merge_scalar(name, "concat", owned or setting, dialect)
        case "each":
            return tuple(AllowedUrls(layer.scalars[name], layer.level) for layer in setting)
        case "ceiling":
            return _hard_limit(layers, dialect)
        case "user":
            return next((layer.scalars[name] for layer in reversed(setting) if layer.level in _OWNERS), None)
        case _:
            assert_never(rule)


_Scalars = Mapping[str, Any]


def _guarded(
    layers: Sequence[Layer], scalars: _Scalars, merge_rules: Mapping[str, MergeRule], dialect: Dialect
) -> dict[int, dict[str, Any]]:
    """Return, for hooks of each level above a project, the values that less trusted files would change."""
    names = GUARDED.intersection(merge_rules, chain.from_iterable(layer.scalars for layer in layers))
    found: dict[int, dict[str, Any]] = {}
    for number in range(len(_OWNERS)) if names else ():
        trusted = [layer for layer in layers if layer.level in _OWNERS[number:]]
        values = {name: _merge_scalar(name, merge_rules[name], trusted, dialect) for name in names}
        if different := {name: value for name, value in values.items() if value != scalars[name]}:
            found[number + 1] = different
    return found


def _replace_same_id(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Let a rule with an id replace an earlier one with the same id on the same event, unless it is pending: it does not run."""
    by_key: dict[object, Rule] = {}
    for position, rule in enumerate(rules):
        by_key[(rule.event, rule.hook.id) if rule.hook.id and not rule.pending else position] = rule
    return tuple(by_key.values())


def _switched_off(layers: Iterable[Layer], dialect: Dialect) -> dict[str, str]:
    """Return the families whose hooks do not run, each with the file that says so. Only managed settings reach managed hooks, and every family."""
    deciding: dict[str, Layer] = {}
    for layer in layers:
        if layer.disable_all is not None:
            reaches_all = dialect.disable_reaches == "all" or layer.level == MANAGED
            deciding["*" if reaches_all else layer.family] = layer
    off = {family: layer for family, layer in deciding.items() if layer.disable_all}
    everything = off.pop("*", None) or off.get("turngate")
    if everything is None:
        return {family: layer.file for family, layer in off.items()}
    managed = [MANAGED] if everything.level == MANAGED else []
    return dict.fromkeys((*dialect.families, "python", *managed), everything.file)


def _hard_limit(layers: Iterable[Layer], dialect: Dialect) -> int | None:
    """Only user settings can raise the hard limit; a project can lower it, or set one where there is none (C-18)."""
    ceiling = dialect.hard_limit
    for layer in layers:
        value = layer.scalars.get("hard_limit")
        if value is not None and (layer.level in _OWNERS or ceiling is None or value <= ceiling):
            ceiling = value
    return ceiling


def _ineffective(layers: Sequence[Layer], dialect: Dialect) -> Iterator[Problem]:
    """Warn about limits that do not take effect because the hard limit is lower, and about what a project cannot set."""
    for number, layer in enumerate(layers):
        for name, key in (("record_trees", "recordTrees"), ("registry", "registry")):
            if name in layer.scalars and layer.level not in _OWNERS:
                message = "has no effect in a project: only user settings can set it"
                yield Problem(file=layer.file, field=f"turngate.{key}", message=message, severity="warning")
        value, ceiling = layer.scalars.get("hard_limit"), _hard_limit(layers[:number], dialect)
        if layer.level not in _OWNERS and value is not None and ceiling is not None and value > ceiling:
            message = f"is {value}, above {ceiling}, which only user settings can raise: {ceiling} is used"
            yield Problem(file=layer.file, field="turngate.hardLimit", message=message, severity="warning")
    setting = [layer for layer in layers if "limit" in layer.scalars]
    hard_limit = _hard_limit(layers, dialect)
    if setting and hard_limit is not None and setting[-1].scalars["limit"] > hard_limit:
        limit, file = setting[-1].scalars["limit"], setting[-1].file
        message = f"is {limit}, above the hard limit of {hard_limit}: {hard_limit} is used"
        yield Problem(file=file, field="turngate.limit", message=message, severity="warning")


def _union(mappings: Iterable[Mapping[K, V]]) -> dict[K, V]:
    return {key: value for mapping in mappings for key, value in mapping.items()}
