"""Builds values with defaults: a test names only what matters to it."""

import json
from pathlib import Path
from typing import Any

from turngate.core.answers.report_types import Exited, Report
from turngate.core.dialect import TURNGATE, Dialect
from turngate.core.events.events import StopEvent, Subagent
from turngate.core.hooks.kinds import CommandHook, Hook
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.decisions import Decision
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.verdict import Verdict
from turngate.engine import ask_hooks
from turngate.ports import Store, World
from turngate.shells.local import LocalShell


def stop_event(**fields: Any) -> StopEvent:
    return StopEvent(**{"session_id": "s-1", "transcript_path": "/t/chat.jsonl", "cwd": "/p", **fields})


def subagent_stop(kind: str = "general-purpose", **fields: Any) -> StopEvent:
    subagent = Subagent(id="a-1", type=kind, transcript_path="/t/a-1.jsonl", **fields)
    return stop_event(subagent=subagent)


def rule(hook: Hook | str = "check", event: str = "Stop", **fields: Any) -> Rule:
    return Rule(event, CommandHook(hook) if isinstance(hook, str) else hook, **fields)


def run(
    decision: Decision, hook: Hook | str = "check", report: Report | None = None, **fields: Any
) -> HookRun:
    event = fields.pop("event", "Stop")
    return HookRun(rule(hook, event), report or Exited(0), decision, **fields)


def settings(*hooks: Hook | str, event: str = "Stop", dialect: Dialect = TURNGATE, **fields: Any) -> Settings:
    return Settings(rules=tuple(rule(hook, event) for hook in hooks), dialect=dialect, **fields)


def world(project: Path, store: Store | None = None) -> World:
    return World(LocalShell(), str(project), store)


async def ask(project: Path, *hooks: Hook | str, dialect: Dialect = TURNGATE, **fields: Any) -> Verdict:
    """Run these hooks for one Stop, with real processes in the project's folder."""
    event = stop_event(cwd=str(project), **fields)
    return await ask_hooks(event, settings(*hooks, dialect=dialect), world(project))


def write_settings(folder: Path, family: str, content: Any, name: str = "settings.json") -> Path:
    """Write `.FAMILY/settings.json` below the folder; content that is not a string is written as JSON."""
    path = folder / f".{family}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def stop_hooks(*commands: str, event: str = "Stop", **fields: Any) -> dict[str, Any]:
    """Return the content of a settings file with these command hooks in one group."""
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": c, **fields} for c in commands]}]}}


def script(path: Path, body: str, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body)
    path.chmod(mode)
    return path
