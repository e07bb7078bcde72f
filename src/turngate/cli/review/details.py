"""Everything about one hook: its status, its definition, its scripts, its last approval and its last runs."""

from collections.abc import Iterator
from typing import Any

from turngate.cli.console.visible import make_visible
from turngate.cli.review.changes import relative_path
from turngate.cli.review.entries import (
    HookEntry,
    Line,
    entry_json,
    format_entry,
    format_past_run,
    format_time,
)
from turngate.core.settings import Settings
from turngate.core.text import one_line, truncate

MAX_REASON_CHARS = 200


def format_details(entry: HookEntry, settings: Settings, project: str) -> Iterator[Line]:
    hook = entry.hook
    yield entry.rule.event, "user"
    yield from format_entry(entry, settings)
    if hook.approval:
        yield f"    approved on {format_time(hook.approval.time)}", "dim"
    yield "Definition", "user"
    for line in make_visible(hook.fingerprint.definition).splitlines():
        yield f"  {line}", "plain"
    if files := _files(entry, project):
        yield "Scripts", "user"
        for name, state in files.items():
            yield f"  {make_visible(name)}: {state}", "plain" if state == "as approved" else "notice"
    if entry.history.last:
        yield "Last runs", "user"
    for run in entry.history.last:
        reason = f": {truncate(one_line(make_visible(run.reason)), MAX_REASON_CHARS)}" if run.reason else ""
        yield f"  {format_past_run(run)}{reason}", "plain"


def _files(entry: HookEntry, project: str) -> dict[str, str]:
    """Return the files that the approval covers, and how each compares with the last approval."""
    now = entry.hook.fingerprint.files
    before = entry.hook.approval.fingerprint.files if entry.hook.approval else {}
    return {
        relative_path(path, project): _compare(before.get(path), now.get(path))
        for path in dict.fromkeys((*before, *now))
        if before.get(path) or now.get(path)
    }


def _compare(before: str | None, now: str | None) -> str:
    if before == now:
        return "as approved"
    if before is None:
        return "not approved"
    return "changed since it was approved" if now else "gone since it was approved"


def details_json(entry: HookEntry, settings: Settings, project: str) -> dict[str, Any]:
    return {
        **entry_json(entry, settings),
        "definition": entry.hook.fingerprint.definition,
        "scripts": _files(entry, project),
        "last_runs": [
            {
                "time": run.time,
                "session_id": run.session,
                "outcome": run.outcome,
                "reason": run.reason,
                "seconds": run.seconds,
            }
            for run in entry.history.last
        ],
    }
