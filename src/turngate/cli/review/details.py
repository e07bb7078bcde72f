"""Everything about one hook under review: definition, scripts, approval, last runs, and what has changed as a diff."""

import difflib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.cli.console.conversation_text import format_time
from turngate.cli.console.ui import TextStyle
from turngate.cli.review.entries import (
    HookEntry,
    Line,
    entry_json,
    format_entry,
    format_not_covered,
    format_past_run,
    format_trust,
    make_visible,
    shown_key,
)
from turngate.core.hooks.kinds import GateHook
from turngate.core.settings import Settings
from turngate.core.text import one_line, truncate
from turngate.errors import UsageError
from turngate.gates.toolchains import PROJECT_CHECKS
from turngate.project.files import Files
from turngate.trust.covered_files import MAX_BYTES
from turngate.trust.file_kinds import CODE
from turngate.trust.review import ReviewedHook

MAX_COMPARED_LINES = 5_000  # of both sides; more would take minutes
MAX_SHOWN_BYTES = 8 * 1024 * 1024  # of a file that a person reads
SHA256 = "sha256:"  # the ids of files begin with it; others are of what is not read
_NATIVE = (b"\x7fELF\x01\x01\x01", b"\x7fELF\x02\x01\x01", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


@frozen
class _Version:
    """One version of a definition or of a file; `text` is None where only `what` is known of it."""

    what: str
    text: str | None


class HookChanges:
    """Formats hooks as a person has to see them before they are approved. What several hooks cover is shown once.

    Raises UsageError if a file is not as it was reviewed.
    """

    def __init__(self, project: str, files: Files, *, full: bool = False) -> None:
        """`full`: the texts of all files of a new hook, not only of those that its command names."""
        self._files, self._project, self._full = files, files.realpath(project), full
        self._shown: set[tuple[object, ...]] = set()

    def format(self, hook: ReviewedHook) -> Iterator[Line]:
        """Format a hook: whole if it is new, otherwise what has changed."""
        yield f"{shown_key(hook.key)}: {format_trust(hook)}", "user"
        approval = hook.approval
        before = approval.fingerprint if approval else None
        yield from _diff(
            "definition",
            _Version("", f"{before.definition}\n") if before else None,
            _Version("", f"{hook.fingerprint.definition}\n"),
            approved_at=approval.time if approval else None,
        )
        yield from self._format_files(hook)
        variables = hook.fingerprint.variables
        known = before.variables if before else variables
        for name in sorted({*known, *variables}):
            if known.get(name) != variables.get(name):
                yield f"${make_visible(name)} has another value than when it was approved", "notice"
        yield from format_not_covered(hook)
        yield from self._format_check(hook)

    def _format_check(self, hook: ReviewedHook) -> Iterator[Line]:
        """Name the commands that a gate such as `tests` finds in the project."""
        gate = hook.rule.hook
        if self._files.machine or not isinstance(gate, GateHook):
            return
        if gate.command or gate.gate not in PROJECT_CHECKS:
            return
        # lazy: few hooks need them
        from turngate.gates.find_checks import chosen_commands, find_check_commands  # noqa: PLC0415
        from turngate.gates.project_files import read_project_files  # noqa: PLC0415

        for each in chosen_commands(find_check_commands(read_project_files(self._project)), gate.gate):
            place = make_visible(each.found_in)
            yield f"runs `{make_visible(each.command)}`, which is found in {place}", "plain"

    def _format_files(self, hook: ReviewedHook) -> Iterator[Line]:
        """Format the files that are not as approved. Of a new hook, those that its command does not name are listed."""
        before = hook.approval.fingerprint.files if hook.approval else {}
        now, named = hook.fingerprint.files, hook.command_files.named
        names = dict.fromkeys((*(name for name in named if name in now), *before, *now))
        changed = [name for name in names if before.get(name) != now.get(name) and not name.endswith("/")]
        listed: list[Line] = []
        for name in changed:
            is_listed = not before and not self._full and name not in named
            if not self._is_first(name, before.get(name), now.get(name), is_listed=is_listed):
                continue
            version = self._current(hook, name)
            if is_listed and version:
                listed.append((f"  {make_visible(name)}  {version.what}", "plain"))
            else:
                yield from _diff(name, _approved(hook, name), version, approved_at=None)
        if listed:
            what = "1 more file is" if len(listed) == 1 else f"{len(listed)} more files are"
            yield f"{what} covered; `turngate hooks diff --full` prints the text:", "user"
            yield from listed

    def _is_first(self, *change: str | None, is_listed: bool) -> bool:
        """Return whether a change was not printed yet; what was only listed is still to be shown."""
        is_first = self._shown.isdisjoint([(*change, False), (*change, is_listed)])
        self._shown.add((*change, is_listed))
        return is_first

    def _current(self, hook: ReviewedHook, name: str) -> _Version | None:
        """Return the file as it is now, if that is how it was reviewed."""
        recorded = hook.fingerprint.files.get(name)
        if recorded is None:
            return None
        if not recorded.startswith(SHA256):
            return _Version(_describe(recorded), None)
        try:
            data = self._files.read(os.path.join(self._project, name), MAX_BYTES)
        except (OSError, ValueError):
            data = None
        if data is None or f"{SHA256}{hashlib.sha256(data).hexdigest()}" != recorded:
            raise UsageError(
                f"{name} has changed while {hook.key} was reviewed; nothing was approved, review it again"
            )
        is_named = name in hook.command_files.named
        if is_named and len(data) > MAX_SHOWN_BYTES and not data.startswith(_NATIVE):
            raise UsageError(
                f"{name} has {len(data):,} bytes, too much for a person to read, so {hook.key} cannot be reviewed; "
                "let it run a smaller script"
            )
        return _version(name, data, is_named=is_named)


def _approved(hook: ReviewedHook, name: str) -> _Version | None:
    recorded = hook.approval.fingerprint.files.get(name) if hook.approval else None
    if hook.approval is None or recorded is None:
        return None
    data = hook.approval.content_of(name) if recorded.startswith(SHA256) else None
    return _Version(_describe(recorded), None) if data is None else _version(name, data, is_named=True)


def _version(name: str, data: bytes, *, is_named: bool) -> _Version:
    """A script is shown as a text, also if it has bytes that make it look like something else."""
    size = f"{len(data):,} byte{'s' * (len(data) != 1)}"
    if data.startswith(_NATIVE):
        return _Version(f"{size}, a program whose code cannot be shown", None)
    suffix = os.path.splitext(name)[1].lower()
    is_script = is_named or not suffix or suffix in CODE or data.startswith(b"#!")
    if len(data) > MAX_SHOWN_BYTES or (b"\0" in data and not is_script):
        return _Version(f"{size}, not a text", None)
    return _Version(size, data.decode("utf-8", "backslashreplace"))


def _describe(recorded: str) -> str:
    """Return what is known of a file whose content is not shown, from its id."""
    kind, _, digest = recorded.partition(":")
    return f"{_KINDS[kind]} {digest[:16]}".strip()


_KINDS = {
    "sha256": "a file whose content was not kept, sha256",
    "names": "a folder of installed packages, of which only the names count:",
    "unreadable": "a file that cannot be read",
}


# Diff


def _diff(
    name: str, before: _Version | None, now: _Version | None, *, approved_at: float | None
) -> Iterator[Line]:
    if before == now or (before and now and before.text is not None and before.text == now.text):
        return
    when = f", approved {format_time(approved_at)}" if approved_at else ", approved"
    name = make_visible(name)
    if any(version and version.text is None for version in (before, now)):
        yield from _headings(name + when if before else None, f"{name}, now" if now else None)
        yield from ((f"-{before.what}", "bad"),) if before else ()
        yield from ((f"+{now.what}", "good"),) if now else ()
    else:
        yield from format_file_diff(
            name + when, before.text if before else None, f"{name}, now", now.text if now else None
        )


def _headings(old: str | None, new: str | None) -> Iterator[Line]:
    yield f"--- {old or '/dev/null'}", "user"
    yield f"+++ {new or '/dev/null'}", "user"


def format_file_diff(old_name: str, before: str | None, new_name: str, after: str | None) -> Iterator[Line]:
    """Yield the difference of a file under these names; None stands for no file."""
    yield from _headings(None if before is None else old_name, None if after is None else new_name)
    old, new = diff_lines(before or ""), diff_lines(after or "")
    if len(old) + len(new) > MAX_COMPARED_LINES:
        yield f"@@ too long to compare: all {len(new):,} lines as they are now @@", "notice"
        yield from ((f"+{line}", "good") for line in new)
        return
    for line in list(difflib.unified_diff(old, new, lineterm=""))[2:]:
        yield line, _DIFF_STYLES.get(line[:1], "plain")


_DIFF_STYLES: dict[str, TextStyle] = {"+": "good", "-": "bad", "@": "notice"}


def diff_lines(text: str) -> list[str]:
    r"""Return the lines, which end with \n only: \r and the like are made visible."""
    lines = make_visible(text).split("\n")
    if lines[-1]:
        return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]
    return lines[:-1]


MAX_REASON_CHARS = 200


def format_details(entry: HookEntry, settings: Settings) -> Iterator[Line]:
    hook = entry.hook
    yield entry.rule.event, "user"
    yield from format_entry(entry, settings)
    if hook.approval:
        yield f"    approved on {format_time(hook.approval.time)}", "dim"
    yield "Definition", "user"
    for line in make_visible(hook.fingerprint.definition).splitlines():
        yield f"  {line}", "plain"
    if files := _files(entry):
        yield "Scripts", "user"
        for name, state in files.items():
            yield f"  {make_visible(name)}: {state}", "plain" if state == "as approved" else "notice"
    if entry.history.last:
        yield "Last runs", "user"
    for run in entry.history.last:
        reason = f": {truncate(one_line(make_visible(run.reason)), MAX_REASON_CHARS)}" if run.reason else ""
        yield f"  {format_past_run(run)}{reason}", "plain"


def _files(entry: HookEntry) -> dict[str, str]:
    """Return the files that the approval covers, and how each compares with the last approval."""
    now = entry.hook.fingerprint.files
    before = entry.hook.approval.fingerprint.files if entry.hook.approval else {}
    names = dict.fromkeys((*entry.hook.command_files.named, *before, *now))
    return {
        name: _compare(before.get(name), now.get(name))
        for name in names
        if not name.endswith("/") and (name in before or name in now)
    }


def _compare(before: str | None, now: str | None) -> str:
    if before == now:
        return "as approved"
    if before is None:
        return "not approved"
    return "changed since it was approved" if now else "gone since it was approved"


def details_json(entry: HookEntry, settings: Settings) -> dict[str, Any]:
    return {
        **entry_json(entry, settings),
        "definition": entry.hook.fingerprint.definition,
        "scripts": _files(entry),
        "last_runs": [asdict(run) for run in entry.history.last],
    }
