"""Keep track of what runs: the model, a tool, hooks or subagents."""

import time
from typing import NamedTuple

from turngate.cli.console.format import format_limit
from turngate.cli.console.ui import Activity
from turngate.core.text import quote_name, strip_controls

MODEL_REQUEST = "waiting for the model"
MODEL_REPLY = "the model is answering"
SLOW_S = 1.0  # what usually takes less is shown after this time


class _RunningHook(NamedTuple):
    name: str
    since: float  # time.monotonic()
    timeout: float | None


class ActivityTracker:
    def __init__(self) -> None:
        self._step: Activity | None = None  # the model, a tool, or a command of the user
        self._hooks: list[_RunningHook] = []
        self._subagents: dict[str, str] = {}  # running subagents and their labels

    @property
    def current(self) -> Activity | None:
        """Return what to show: running hooks before the step that they belong to."""
        if not self._hooks:
            return self._step
        timeouts = [hook.timeout for hook in self._hooks if hook.timeout is not None]
        limit = format_limit(max(timeouts, default=None))
        return Activity(f"waiting for {self._hook_names}", self._hooks[0].since, limit=limit)

    @property
    def _hook_names(self) -> str:
        names = ", ".join(strip_controls(quote_name(hook.name)) for hook in self._hooks)
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
            self._step = Activity(label, time.monotonic())

    def restart(self, label: str) -> None:
        self._step = Activity(label, time.monotonic())

    def clear(self) -> None:
        self._step, self._hooks = None, []

    def start_hook(self, hook: str, timeout: float | None) -> None:
        self._hooks.append(_RunningHook(hook, time.monotonic(), timeout))

    def end_hook(self, hook: str) -> None:
        self._hooks = [running for running in self._hooks if running.name != hook]

    def start_subagent(self, agent_id: str, label: str) -> None:
        self._subagents[agent_id] = label

    def end_subagent(self, agent_id: str) -> None:
        self._subagents.pop(agent_id, None)

    def wait_for_subagents(self) -> None:
        """Show that the turn lasts until its background subagents have ended."""
        if self._subagents:
            self.start(f"waiting for {', '.join(map(strip_controls, self._subagents.values()))}")
