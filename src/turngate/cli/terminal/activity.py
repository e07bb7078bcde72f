"""Keep track of what runs: the model, a tool, hooks or subagents."""

import time

from turngate.cli.terminal.format import strip_controls
from turngate.cli.terminal.ui import Activity

MODEL_REQUEST = "waiting for the model"
MODEL_REPLY = "the model is answering"


class ActivityTracker:
    def __init__(self) -> None:
        self._step: Activity | None = None  # the model, a tool, or a command of the user
        self._hooks: list[tuple[str, float]] = []  # running hooks and their start
        self._subagents: dict[str, str] = {}  # running subagents and their labels

    @property
    def current(self) -> Activity | None:
        """Return what to show: running hooks before the step that they belong to."""
        if not self._hooks:
            return self._step
        names = ", ".join(strip_controls(hook) for hook, _ in self._hooks)
        return Activity(f"hook{'s' * (len(self._hooks) > 1)} {names}", self._hooks[0][1])

    @property
    def interruptible(self) -> str | None:
        """Return the tool or hook that an interrupt would end, or None if it is the model."""
        current = self.current
        return current.label if current and current.label not in (MODEL_REQUEST, MODEL_REPLY) else None

    def start(self, label: str) -> None:
        """Set the step; one that already runs keeps its start."""
        if self._step is None or self._step.label != label:
            self._step = Activity(label, time.monotonic())

    def restart(self, label: str) -> None:
        self._step = Activity(label, time.monotonic())

    def clear(self) -> None:
        self._step, self._hooks = None, []

    def start_hook(self, hook: str) -> None:
        self._hooks.append((hook, time.monotonic()))

    def end_hook(self, hook: str) -> None:
        self._hooks = [running for running in self._hooks if running[0] != hook]

    def start_subagent(self, agent_id: str, label: str) -> None:
        self._subagents[agent_id] = label

    def end_subagent(self, agent_id: str) -> None:
        self._subagents.pop(agent_id, None)

    def wait_for_subagents(self) -> None:
        """Show that the turn lasts until its background subagents have ended."""
        if self._subagents:
            self.start(f"waiting for {', '.join(map(strip_controls, self._subagents.values()))}")
