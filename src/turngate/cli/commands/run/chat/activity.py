"""For the status line: what runs now, and what the conversation has used."""

import time
from collections import Counter
from typing import NamedTuple

from turngate.cli.console import conversation_text as fmt
from turngate.cli.console.ui import Activity
from turngate.core.conversation.messages import Usage
from turngate.core.events.stream_events import HookStarted, TurnResult
from turngate.core.hooks.kinds import label
from turngate.core.settings import Settings
from turngate.core.text import quote_name, strip_controls

MODEL_REQUEST = "waiting for the model"
MODEL_REPLY = "the model is answering"


class _RunningHook(NamedTuple):
    started: HookStarted
    since: float  # time.monotonic()


class ActivityTracker:
    def __init__(self) -> None:
        self._step: Activity | None = None  # the model, a tool, or a command of the user
        self._hooks: list[_RunningHook] = []
        self.subagents: dict[str, str] = {}  # running subagents and their labels

    @property
    def current(self) -> Activity | None:
        """Return what to show: running hooks before the step that they belong to."""
        if not self._hooks:
            return self._step
        timeouts = [hook.started.timeout for hook in self._hooks if hook.started.timeout is not None]
        limit = fmt.format_limit(max(timeouts, default=None))
        label, since = f"waiting for {self._hook_names}", self._hooks[0].since
        return Activity(label, since, limit=limit, output=self._output)

    @property
    def _hook_names(self) -> str:
        names = ", ".join(strip_controls(quote_name(hook.started.hook)) for hook in self._hooks)
        return f"hook{'s' * (len(self._hooks) > 1)} {names}"

    @property
    def interruptible(self) -> str | None:
        """Return the tool or hook that an interrupt would end, or None if it is the model."""
        if self._hooks:
            return self._hook_names
        label = self._step.label if self._step else None
        return None if label in (MODEL_REQUEST, MODEL_REPLY) else label

    def start(self, label: str) -> None:
        """Set the step; one that already runs keeps its start."""
        if self._step is None or self._step.label != label:
            self.restart(label)

    def restart(self, label: str) -> None:
        self._step = Activity(label, time.monotonic())

    def clear(self) -> None:
        self._step, self._hooks = None, []

    def start_hook(self, started: HookStarted) -> None:
        self._hooks.append(_RunningHook(started, time.monotonic()))

    def end_hook(self, hook: str) -> None:
        self._hooks = [running for running in self._hooks if running.started.hook != hook]

    def _output(self) -> list[str]:
        """Return the last line that each running hook has printed; of several hooks with names and times."""
        lines = [each.started.last_line() for each in self._hooks]
        if len(lines) < 2:
            return list(filter(None, lines))
        now = time.monotonic()
        names = [f"{quote_name(each.started.hook)} {now - each.since:.0f} s" for each in self._hooks]
        return [f"{name}: {line}" if line else name for name, line in zip(names, lines, strict=True)]

    def wait_for_subagents(self) -> None:
        """Show that the turn lasts until its background subagents have ended."""
        if self.subagents:
            self.start(f"waiting for {', '.join(map(strip_controls, self.subagents.values()))}")


class Totals:
    """What the status line says of the conversation: tokens, cost, and the gates at the last stop."""

    def __init__(self) -> None:
        self._usage = Usage()
        self._cost: float | None = 0.0  # None: the price of a turn is not known
        self.gates: dict[str, str] = {}  # hooks of the last stop, and their outcomes

    def add(self, result: TurnResult) -> None:
        self._usage += result.usage
        if result.usage.total:
            self._cost = None if self._cost is None or result.cost is None else self._cost + result.cost

    def format(self, settings: Settings) -> str:
        """Format the figures: `1,238 tokens · $0.0041 · 3 gates: 2 passed, 1 blocked`."""
        gates = [each for each in settings.rules if each.event == "Stop" and settings.mode_of(each) == "gate"]
        names = {label(rule.hook) for rule in gates}
        outcomes = Counter(
            fmt.outcome_label(outcome) for name, outcome in self.gates.items() if name in names
        )
        parts = [f"{self._usage.total:,} tokens"] if self._usage.total else []
        parts += [fmt.format_dollars(self._cost)] if self._cost else []
        if gates:
            results = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
            parts.append(fmt.counted(len(gates), "gate") + (f": {results}" if results else ""))
        return " · ".join(parts)
