"""`turngate log`: show the hook runs and verdicts in the journal of a session."""

import argparse
import contextlib
import json
import os
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

from turngate.cli.streams import stdout_error
from turngate.cli.terminal.format import LABEL_WIDTH, outcome_label
from turngate.core.hooks import KINDS
from turngate.core.text import one_line
from turngate.errors import UsageError
from turngate.state.files import is_same_file, open_regular_file, os_errors_as_usage_errors
from turngate.state.journal import JOURNAL_FILE, OLDER_JOURNAL_FILE
from turngate.state.paths import session_folder, state_folder

FOLLOW_INTERVAL_S = 0.2
MAX_HOOK_NAME_CHARS = 80
# The first of these keys that a record has is the name of its hook; `name` is that of a callback.
_NAME_KEYS = ("id", "name", *(hook.body for hook in KINDS.values()), "type")


def run(options: argparse.Namespace) -> int:
    folder = _journal_folder(options.session)
    with contextlib.closing(JournalTail(folder)) as tail:
        is_empty = True
        while True:
            for record in tail.new_records():
                is_empty = False
                print(_format(record))
            if is_empty and not options.follow:
                session = os.path.basename(folder)
                print(f"no hook ran in session {session}; `turngate check` reports what is configured")
            if stdout_error() or not options.follow:
                return 0
            time.sleep(FOLLOW_INTERVAL_S)


def _journal_folder(session: str | None) -> str:
    """Return the folder of this session, or of the one whose journal changed last."""
    if session:
        folder = session_folder(state_folder(), session)
        if not os.path.isdir(folder):
            raise UsageError(f"there is no session {session}; `turngate log` shows the newest")
        return folder
    sessions = os.path.join(state_folder(), "sessions")
    with os_errors_as_usage_errors(sessions):
        names = os.listdir(sessions) if os.path.isdir(sessions) else []
    journals = []
    for name in names:
        with contextlib.suppress(OSError):  # a session without a journal, or just removed
            journals.append((os.path.getmtime(os.path.join(sessions, name, JOURNAL_FILE)), name))
    if not journals:
        raise UsageError("no hook has run yet; `turngate fire Stop` runs the project's hooks once")
    return os.path.join(sessions, max(journals)[1])


class JournalTail:
    """Read a journal as it grows: every complete line once, across rotations of the file."""

    def __init__(self, folder: str) -> None:
        self._older, self._newest = (
            os.path.join(folder, name) for name in (OLDER_JOURNAL_FILE, JOURNAL_FILE)
        )
        self._file: BinaryIO | None = None
        self._partial = b""

    def new_records(self) -> Iterator[dict[str, Any]]:
        """Yield the records that were written since the last call."""
        while self._file or self._open_next():
            # Before reading: nothing is appended after the rotation, so the read below gets the rest.
            is_rotated = self._is_rotated()
            yield from self._read_records()
            if not is_rotated or not self._open_next():
                return

    def _is_rotated(self) -> bool:
        return os.path.exists(self._newest) and not self._is_open(self._newest)

    def _read_records(self) -> Iterator[dict[str, Any]]:
        *lines, self._partial = (self._partial + (self._file.read() if self._file else b"")).split(b"\n")
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):  # the partial line of a process that was killed
                continue
            if isinstance(record, dict):
                yield record

    def _open_next(self) -> bool:
        """Open the older file unless it is the one that is open, otherwise the newest."""
        for path in (self._older, self._newest):
            with contextlib.suppress(OSError):
                if not self._is_open(path):
                    file = open(open_regular_file(path, os.O_RDONLY), "rb")  # noqa: SIM115 # stays open
                    self.close()
                    self._file, self._partial = file, b""
                    return True
        return False

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _is_open(self, path: str) -> bool:
        return self._file is not None and is_same_file(path, self._file.fileno())


def _format(record: dict[str, Any]) -> str:
    when = time.strftime("%H:%M:%S", time.localtime(record.get("time", 0)))
    if record.get("kind") == "verdict":
        return f"{when}  {record.get('event')}: {_format_verdict(record)}"
    return f"{when}    {_format_run(record)}"


def _format_verdict(record: dict[str, Any]) -> str:
    """Name the verdict as `fire` does, with the last line of the prompt or of the reason."""
    if record.get("verdict") == "continue":
        verdict = "blocked"
    else:
        verdict = "halted by a hook" if record.get("ended_by") == "halted" else "allowed"
    if failed := ", ".join(str(run.get("hook")) for run in record.get("unenforced", ())):
        verdict += f" (not enforced: {failed})"
    lines = (record.get("prompt") or record.get("stop_reason") or "").strip().splitlines()
    return f"{verdict}: {lines[-1]}" if lines else verdict


def _format_run(record: dict[str, Any]) -> str:
    hook = record.get("hook", {})
    name = next((hook[key] for key in _NAME_KEYS if hook.get(key)), "")
    # The record of the verdict says which failures were not enforced.
    label = outcome_label(record.get("outcome", ""), blocking=True)
    reason = (record.get("reason") or "").strip().splitlines()
    return (
        f"{label:<{LABEL_WIDTH}} {record.get('seconds', 0):6.2f} s  {one_line(name, MAX_HOOK_NAME_CHARS)}"
        + (f"  {reason[0]}" if reason else "")
        + (
            _format_cost(record["evaluation"])
            if "evaluation" in record and hook.get("type") != "agent"
            else ""
        )
    )


def _format_cost(evaluation: dict[str, Any]) -> str:
    """Format the tokens and the price of a model; those of a hook agent are in a record of its own."""
    tokens = evaluation.get("input_tokens", 0) + evaluation.get("output_tokens", 0)
    price = evaluation.get("cost_usd")
    return f"  ({tokens:,} tokens{f', ${price:.4f}' if price is not None else ''})"
