"""The hooks and settings that a Python program configures.

`Options` is checked when it is created, and every problem is reported at once, before an agent starts.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, field, replace
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.dialect import DIALECTS, Dialect
from turngate.core.hooks.kinds import Mode
from turngate.core.settings import Order, Problem, Rule, Settings
from turngate.errors import UsageError
from turngate.options.check_options import (
    OWN,
    copy_plain,
    options_json,
    parse_options,
    parse_options_json,
)
from turngate.options.hook_forms import Config, HookGroup, adapt_sdk_callback, hook_of


class InvalidOptions(UsageError, ValueError):
    """Raised with every problem of the options."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = (f"{problem} ({problem.hint})" if problem.hint else str(problem) for problem in self.problems)
        super().__init__("\n  ".join((f"{count} in the options", *lines)))


@frozen
class Options:
    """The hooks of each event, in order. A list may mix hook kinds, groups and their JSON forms.

    Raises InvalidOptions, a ValueError that lists every problem. Lists and dicts are copied.
    """

    hooks: Mapping[str, Sequence[Config]] = field(default_factory=dict)
    _: KW_ONLY
    timeout_ms: int | None = None  # for hooks without a timeout; None: the settings' or the dialect's default
    mode: Mode | Mapping[str, Mode] | None = None  # for these hooks; "observe": blocks are only recorded
    order: Order | Mapping[str, Order] | None = None  # None: the settings', or "sequential"
    dialect: str | None = None  # None: the settings', or "turngate"
    limit: int | None = None  # continuations in one turn; None: the settings' or the dialect's
    model: str | None = None
    judge: str | None = None  # the model of prompt and agent hooks

    def __post_init__(self) -> None:
        own = self._own()
        hooks, problems, deprecated = parse_options(self.hooks, own)
        for text in deprecated:
            warnings.warn(text, DeprecationWarning, stacklevel=3)
        if problems:
            raise InvalidOptions(problems)
        for name, value in (("hooks", hooks), *own.items()):
            object.__setattr__(self, name, value)

    def _own(self) -> dict[str, Any]:
        """Return copies of all fields but the hooks."""
        return {name: copy_plain(getattr(self, name)) for name in OWN}

    def settings(self, base: Settings | None = None) -> Settings:
        """Return these options on top of `base`, settings that were read from files."""
        base = base or Settings()
        dialect = base.dialect if self.dialect is None else DIALECTS[self.dialect]
        kept = {
            trust: {name: value for name, value in values.items() if name != "judge"}
            for trust, values in base.guarded.items()
        }
        order: Mapping[str, Order]
        if isinstance(self.order, str):
            order = {"*": self.order}
        else:
            order = {"*": "sequential", **base.order, **(self.order or {})}
        return replace(
            base,
            rules=(*base.rules, *self.rules(dialect)),
            dialect=dialect,
            order=order,
            limit=base.limit if self.limit is None else self.limit,
            model=self.model or base.model,
            judge=self.judge or base.judge,
            guarded=base.guarded if self.judge is None else kept,  # the program sets the judge for every hook
        )

    def rules(self, dialect: Dialect) -> tuple[Rule, ...]:
        """Return one rule per hook, in order, with callbacks that take an event."""
        rules = self.rules_as_written()
        return tuple(replace(rule, hook=adapt_sdk_callback(rule.hook, dialect)) for rule in rules)

    # As JSON

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON, timeouts rounded to whole milliseconds (C-01), unset fields left out.

        The function and the `name` of a callback hook are not written (S2-06). `from_json` restores the rest.
        """
        return options_json(self.hooks, self._own())

    @classmethod
    def from_json(
        cls, value: Mapping[str, Any] | str, callbacks: Iterable[Callable[..., Any]] = ()
    ) -> "Options":
        """Return options from the output of `to_json`; its callback hooks get `callbacks` in order.

        Raises InvalidOptions, including for text that is not JSON.
        """
        hooks, own, problems = parse_options_json(value, callbacks)
        try:
            options = cls(hooks, **own)
        except InvalidOptions as invalid:
            raise InvalidOptions([*problems, *invalid.problems]) from None
        if problems:
            raise InvalidOptions(problems)
        return options

    # For another program

    def for_claude(self, base: Any = None) -> Any:
        """Return a `ClaudeAgentOptions` for Claude's Agent SDK, with these hooks added to those of `base`.

        Command, prompt, agent and http hooks are passed in its settings, and Claude Code runs them. Callbacks run in
        this process. Turngate calls no model.

        Raises InvalidOptions, which lists what Claude Code does not support.
        """
        try:
            from turngate.adapters.claude_sdk import claude_options  # noqa: PLC0415 - lazy: its SDK loads in 0.6 s
        except ModuleNotFoundError as missing:
            if missing.name != "claude_agent_sdk":
                raise
            from turngate.extra_install import install_command  # noqa: PLC0415 - lazy: not needed where the SDK is installed

            message = f"for_claude needs Claude's Agent SDK: {install_command('claude')}"
            raise UsageError(message) from None
        return claude_options(self, base)

    def rules_as_written(self) -> tuple[Rule, ...]:
        """Return the rules with the callbacks as they were passed in, for a program that calls them itself."""
        rules = []
        default = None if self.timeout_ms is None else self.timeout_ms / 1000
        for event, configs in self.hooks.items():
            mode = self.mode if isinstance(self.mode, str | None) else self.mode.get(event)
            for number, config in enumerate(configs):
                group = config if isinstance(config, HookGroup) else None
                for inner, each in enumerate(group.hooks if group else (config,)):
                    index = f"[{number}]" + (f".hooks[{inner}]" if group else "")
                    hook = hook_of(each)
                    timeout = default if hook.timeout is None else hook.timeout
                    hook = replace(hook, mode=hook.mode or mode, timeout=timeout)
                    rules.append(Rule(event, hook, group.matcher if group else None, index=index))
        return tuple(rules)
