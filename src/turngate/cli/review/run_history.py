"""What the journals know of a project's hooks: their last runs and how long they take."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.hooks.kinds import KINDS, hook_text
from turngate.core.settings import Rule
from turngate.core.verdict.json_output import recorded_gate
from turngate.state.files import open_regular_file
from turngate.state.journal import JOURNAL_FILE, OLDER_JOURNAL_FILE

MAX_READ_BYTES = 16 * 1024 * 1024  # of all journals, the newest first
MAX_LAST_RUNS = 5  # of one hook, that are kept
_TEXT_KEYS = tuple(dict.fromkeys(("name", *(kind.body for kind in KINDS.values()))))

HookName = tuple[str, str | None, str]  # event, file, and the id or else the text


@frozen
class PastRun:
    time: float
    session_id: str
    outcome: str
    reason: str | None
    seconds: float


@dataclass
class History:
    """The runs of one hook. Those that were skipped or interrupted count neither for `count` nor for the mean."""

    last: list[PastRun]  # the newest first
    passed: float | None = None  # when it last did
    count: int = 0
    seconds: float = 0.0

    @property
    def mean(self) -> float | None:
        return self.seconds / self.count if self.count else None

    def add(self, run: PastRun) -> None:
        self.last = sorted((*self.last, run), key=lambda each: each.time, reverse=True)[:MAX_LAST_RUNS]
        if run.outcome == "allow":
            self.passed = max(self.passed or 0.0, run.time)
        if run.outcome not in ("skipped", "interrupted"):
            self.count += 1
            self.seconds += run.seconds


class Histories:
    """The histories of all hooks that have run in a project."""

    def __init__(self, project: str, state: str) -> None:
        self._by_name: dict[tuple[HookName, bool], History] = {}
        # The last block in one, and what is known of it.
        self.unknown_program: tuple[float, str] | None = None
        for record in _records(project, state):
            with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):  # a damaged line
                if record["kind"] == "notice":
                    unknown = float(record["time"]), str(record["unknown_program"])
                    self.unknown_program = max(self.unknown_program or unknown, unknown)
                    continue
                key = _name_of_record(record), record["kind"] == "background"
                reason = record.get("reason")
                run = PastRun(
                    float(record["time"]),
                    str(record["session_id"]),
                    str(record["outcome"]),
                    reason if isinstance(reason, str) else None,
                    float(record["seconds"]),
                )
                self._by_name.setdefault(key, History([])).add(run)

    def of(self, rule: Rule) -> History:
        """Return the history of a hook; that of one in the background has the ends of its runs, not their starts."""
        hook = rule.hook
        name = (rule.event, rule.file, hook.id or hook_text(hook))
        return self._by_name.get((name, hook.detached), History([]))


def _name_of_record(record: Mapping[str, Any]) -> HookName:
    hook = record["hook"]
    is_gate = hook.get("type") == "gate"
    texts = (hook[key] for key in _TEXT_KEYS if hook.get(key))
    text = recorded_gate(hook) if is_gate else " ".join((*texts, *hook.get("args", ())))
    return record["event"], record.get("file"), hook.get("id") or text


# The journals


def _records(project: str, state: str) -> Iterator[Mapping[str, Any]]:
    """Yield the runs of hooks in a project, and the notices about it."""
    field = f'"project":{json.dumps(project, ensure_ascii=False)}'.encode("utf-8", "replace")
    for line in _lines(state):
        if field not in line or b'"kind":"verdict"' in line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        is_known = isinstance(record, dict) and record.get("kind") in ("hook", "background", "notice")
        if is_known and record.get("project") == project:
            yield record


def _lines(state: str) -> Iterator[bytes]:
    """Yield the lines of all journals, the newest journal first, until enough was read."""
    sessions, found, left = os.path.join(state, "sessions"), list[tuple[float, str]](), MAX_READ_BYTES
    with contextlib.suppress(OSError):  # no session yet
        for name in os.listdir(sessions):
            for file in (JOURNAL_FILE, OLDER_JOURNAL_FILE):
                path = os.path.join(sessions, name, file)
                with contextlib.suppress(OSError):
                    found.append((os.path.getmtime(path), path))
    for _, path in sorted(found, reverse=True):
        if left <= 0:
            return
        with (
            contextlib.suppress(OSError),
            open(open_regular_file(path, os.O_RDONLY), "rb") as journal,
        ):
            journal.seek(max(0, os.fstat(journal.fileno()).st_size - left))
            data = journal.read(left)
            left -= len(data)
            yield from data.splitlines()
