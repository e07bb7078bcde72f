"""What a Python program configures: hooks by event, and how they are asked.

Everything is checked when `Options` is made, and all that is wrong is said at once, before any agent starts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from importlib import import_module
from typing import Any

from turngate.core.dialect import DIALECTS, Dialect
from turngate.core.hooks import Hook, Mode
from turngate.core.settings import Order, Problem, Rule, Settings
from turngate.errors import UsageError
from turngate.options.config_forms import Config, HookCallbackMatcher, HookGroup, hook_of
from turngate.options.parse import OWN, copy_plain, parse_options
from turngate.options.sdk_callbacks import adapt_sdk_callback
from turngate.options.serialize import options_json, told_in

__all__ = ["HookCallbackMatcher", "HookGroup", "InvalidOptions", "Options"]


class InvalidOptions(UsageError, ValueError):
    """Every problem of some options, before anything is started."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = (f"{problem} ({problem.hint})" if problem.hint else str(problem) for problem in self.problems)
        super().__init__("\n  ".join((f"{count} in the options", *lines)))


@dataclass(frozen=True)
class Options:
    """The hooks of each event, in order; a list may mix kinds, and the JSON form of a config is understood too.

    Raises InvalidOptions, a ValueError, which lists everything that is wrong. What it was given is copied.
    """

    hooks: Mapping[str, Sequence[Config]] = field(default_factory=dict)
    _: KW_ONLY
    timeout_ms: int | None = None  # for hooks that name none; None: what the settings or the dialect say
    mode: Mode | Mapping[str, Mode] | None = None  # of these hooks; "observe": refusals are only recorded
    order: Order | Mapping[str, Order] | None = None  # None: "sequential", unless the settings say otherwise
    dialect: str | None = None  # None: the settings', or "turngate"
    limit: int | None = None  # continuations in one turn
    model: str | None = None
    judge: str | None = None  # the model of prompt and agent hooks

    def __post_init__(self) -> None:
        own = self._own()
        hooks, problems = parse_options(self.hooks, own)
        if problems:
            raise InvalidOptions(problems)
        for name, value in (("hooks", hooks), *own.items()):
            object.__setattr__(self, name, value)

    def _own(self) -> dict[str, Any]:
        """Everything but the hooks, as copies."""
        return {name: copy_plain(getattr(self, name)) for name in OWN}

    def settings(self, base: Settings | None = None) -> Settings:
        """These options on top of settings that were read from files, or of none."""
        base = base or Settings()
        dialect = base.dialect if self.dialect is None else DIALECTS[self.dialect]
        return replace(
            base,
            rules=(*base.rules, *self.rules(dialect)),
            dialect=dialect,
            order=self._order(base.order),
            limit=base.limit if self.limit is None else self.limit,
            model=self.model or base.model,
            judge=self.judge or base.judge,
        )

    def _order(self, before: Mapping[str, Order]) -> dict[str, Order]:
        match self.order:
            case None:
                return {"*": "sequential", **before}
            case str(order):
                return {"*": order}
            case by_event:
                return {"*": "sequential", **before, **by_event}

    def rules(self, dialect: Dialect) -> tuple[Rule, ...]:
        """One rule for each hook, in the order in which they are asked."""
        written = self.rules_as_written()
        return tuple(replace(rule, hook=adapt_sdk_callback(rule.hook, dialect)) for rule in written)

    def _each(self) -> Iterator[tuple[str, str | None, str, Hook]]:
        """Event, matcher, place and hook of each."""
        for event, configs in self.hooks.items():
            for number, config in enumerate(configs):
                if isinstance(config, HookGroup):
                    for inner, hook in enumerate(config.hooks):
                        yield event, config.matcher, f"[{number}].hooks[{inner}]", hook_of(hook)
                else:
                    yield event, None, f"[{number}]", hook_of(config)

    def _completed(self, hook: Hook, event: str) -> Hook:
        """A hook that says nothing about its mode and its time gets what is said here."""
        mode = self.mode if isinstance(self.mode, str | None) else self.mode.get(event)
        limit = None if self.timeout_ms is None else self.timeout_ms / 1000
        own_limit = hook.timeout if hook.timeout is not None else limit
        return replace(hook, mode=hook.mode or mode, timeout=own_limit)

    # As JSON

    def to_json(self) -> dict[str, Any]:
        """Limits are in whole milliseconds (C-01), rounded; what is unset is left out.

        A function is never written, nor is the `name` of its hook (S2-06); `from_json` brings all else back.
        """
        return options_json(self.hooks, self._own())

    @classmethod
    def from_json(
        cls, value: Mapping[str, Any] | str, callbacks: Iterable[Callable[..., Any]] = ()
    ) -> "Options":
        """What `to_json` gave; the functions of its callback hooks are handed out in order.

        Raises InvalidOptions, also where the text is no JSON.
        """
        hooks, own, problems = told_in(value, callbacks)
        try:
            options = cls(hooks, **own)
        except InvalidOptions as invalid:
            raise InvalidOptions([*problems, *invalid.problems]) from None
        if problems:
            raise InvalidOptions(problems)
        return options

    # For another program

    def for_claude(self, base: Any = None) -> Any:
        """The options of Claude's Agent SDK, a `ClaudeAgentOptions`; with `base` these hooks are added to it.

        Commands, prompts, agents and endpoints travel in its settings, and Claude Code runs them; functions are
        called here. No model is called by us.

        Raises InvalidOptions, which lists what Claude Code can not be told.
        """
        try:
            adapter = import_module("turngate.adapters.claude_sdk")  # its SDK takes 0.6 s to import
        except ModuleNotFoundError as missing:
            if missing.name != "claude_agent_sdk":
                raise
            wanted = "for_claude needs Claude's Agent SDK: pip install 'turngate[claude]' brings it"
            raise UsageError(wanted) from None
        return adapter.claude_options(self, base)

    def rules_as_written(self) -> tuple[Rule, ...]:
        """The same rules with the very functions that were given, for a program that calls them its own way."""
        return tuple(
            Rule(event, self._completed(hook, event), matcher, index=index)
            for event, matcher, index, hook in self._each()
        )
