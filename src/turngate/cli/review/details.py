"""Everything about one hook under review: definition, scripts, approval, last runs, and what has changed as a diff."""

import difflib
import hashlib
import os
from collections.abc import Iterator
from typing import Any

from turngate._frozen import frozen
from turngate.cli.console.ui import TextStyle
from turngate.cli.console.visible import make_visible
from turngate.cli.review.entries import (
    HookEntry,
    Line,
    entry_json,
    format_entry,
    format_past_run,
    format_time,
    format_trust,
    shown_key,
)
from turngate.core.settings import Settings
from turngate.core.text import one_line, truncate
from turngate.errors import UsageError
from turngate.project.content_hash import MAX_HASHED_BYTES, content_id, has_id
from turngate.project.files import Files
from turngate.project.safe_paths import is_inside
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.trust.review import ReviewedHook

MAX_COMPARED_LINES = 5_000  # of both sides; more would take minutes
SHA256 = "sha256:"  # the ids of files whose content is compared begin with it
# Of programs of the system and of patterns: a reader sees them in the command or script.
IMPLIED = ("path:", "names:")


@frozen
class _Version:
    """One version of a definition or of a script; `text` is None where only `what` is known of it."""

    what: str
    text: str | None


def format_changes(hook: ReviewedHook, project: str, files: Files) -> Iterator[Line]:
    """Format a hook as a person has to see it before it is approved: whole if it is new, otherwise what has changed.

    Raises UsageError if a file is not as it was reviewed.
    """
    yield f"{shown_key(hook.key)}: {format_trust(hook)}", "user"
    before = hook.approval.fingerprint if hook.approval else None
    yield from _diff(
        "definition",
        _Version("", f"{before.definition}\n") if before else None,
        _Version("", f"{hook.fingerprint.definition}\n"),
        approved_at=hook.approval.time if hook.approval else None,
    )
    now = hook.fingerprint.files  # what only the approved version ran no longer counts
    for path in dict.fromkeys((*(path for path in (before.files if before else ()) if path in now), *now)):
        approved, current = _approved(hook, path), _current(hook, path, files)
        is_implied = (hook.fingerprint.files.get(path) or "").startswith(IMPLIED)
        if approved or not is_implied:
            yield from _diff(relative_path(path, project), approved, current, approved_at=None)
    for name in _changed_variables(hook):
        yield f"${make_visible(name)} has another value than when it was approved", "notice"


def relative_path(path: str, project: str) -> str:
    return os.path.relpath(path, project) if is_inside(path, project) else path


def _changed_variables(hook: ReviewedHook) -> Iterator[str]:
    if hook.approval is None:
        return
    before, now = hook.approval.fingerprint.variables, hook.fingerprint.variables
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            yield name


# Versions


def _approved(hook: ReviewedHook, path: str) -> _Version | None:
    recorded = hook.approval.fingerprint.files.get(path) if hook.approval else None
    if hook.approval is None or recorded is None:
        return None
    text = hook.approval.text_of(path) if recorded.startswith(SHA256) else None
    return _Version(_describe(recorded), None if text is None or "\0" in text else text)


def _current(hook: ReviewedHook, path: str, files: Files) -> _Version | None:
    """Return the file as it is now, if that is how it was reviewed."""
    recorded = hook.fingerprint.files.get(path)
    if recorded is None:
        if content_id(files, path) is not None:
            raise _changed_meanwhile(hook, path)
        return None
    if not recorded.startswith(SHA256):
        if not has_id(files, path, recorded):
            raise _changed_meanwhile(hook, path)
        return _Version(_describe(recorded), None)
    try:
        data = read_bytes(path, MAX_HASHED_BYTES, files)
    except (OSError, NotARegularFile, FileTooLarge):
        raise _changed_meanwhile(hook, path) from None
    if f"{SHA256}{hashlib.sha256(data).hexdigest()}" != recorded:
        raise _changed_meanwhile(hook, path)
    return _Version(_describe(recorded), None if b"\0" in data else data.decode("utf-8", "replace"))


def _describe(recorded: str) -> str:
    """Return what is known of a file whose content is not shown, from its id."""
    kind, _, rest = recorded.partition(":")
    return make_visible(f"{_KINDS[kind]}{rest}")


_KINDS = {
    "sha256": "a binary file, sha256 ",
    "path": "a program that the system has installed: ",
    "names": "the names of the files that match, sha256 ",
    "stat": "a large file, compared by its size and times: ",
}


def _changed_meanwhile(hook: ReviewedHook, path: str) -> UsageError:
    return UsageError(
        f"{path} has changed while {hook.key} was reviewed; nothing was approved, review it again"
    )


# Diff


def _diff(
    name: str, before: _Version | None, now: _Version | None, *, approved_at: float | None
) -> Iterator[Line]:
    if before == now or (before and now and before.text is not None and before.text == now.text):
        return
    when = f", approved {format_time(approved_at)}" if approved_at else ", approved"
    name = make_visible(name)
    yield f"--- {name + when if before else '/dev/null'}", "user"
    yield f"+++ {name + ', now' if now else '/dev/null'}", "user"
    if any(version and version.text is None for version in (before, now)):
        yield from ((f"-{before.what}", "bad"),) if before else ()
        yield from ((f"+{now.what}", "good"),) if now else ()
        return
    old, new = (diff_lines(version.text or "") if version else [] for version in (before, now))
    if len(old) + len(new) > MAX_COMPARED_LINES:
        yield f"@@ too long to compare: all {len(new):,} lines as they are now @@", "notice"
        yield from ((f"+{line}", "good") for line in new)
        return
    for line in list(difflib.unified_diff(old, new, lineterm=""))[2:]:
        yield line, DIFF_STYLES.get(line[:1], "plain")


DIFF_STYLES: dict[str, TextStyle] = {"+": "good", "-": "bad", "@": "notice"}


def diff_lines(text: str) -> list[str]:
    r"""Return the lines, which end with \n only: \r and the like are made visible."""
    lines = make_visible(text).split("\n")
    if lines[-1]:
        return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]
    return lines[:-1]


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
