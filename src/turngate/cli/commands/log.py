"""`turngate log`: the journal, for people."""

import argparse
import contextlib
import json
import os
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

from turngate.cli.streams import stdout_error
from turngate.core.text import one_line
from turngate.errors import UsageError
from turngate.state.files import is_same_file, open_regular_file, os_errors_as_usage_errors
from turngate.state.journal import JOURNAL_FILE, OLDER_JOURNAL_FILE
from turngate.state.paths import session_folder, state_folder


def run(options: argparse.Namespace) -> int:
    folder = _folder(options.session)
    with contextlib.closing(Tail(folder)) as tail:
        said = False
        while True:
            for line in tail.news():
                said = True
                _print(line)
            if not said and not options.follow:
                print(
                    f"no hook was asked in session {os.path.basename(folder)}; `turngate check` says what is configured"
                )
            if stdout_error() or not options.follow:
                return 0
            time.sleep(0.2)


class Tail:
    """A journal as it grows: every whole line once, also when it is put aside and a new one begun."""

    def __init__(self, folder: str) -> None:
        self._older, self._newest = (
            os.path.join(folder, name) for name in (OLDER_JOURNAL_FILE, JOURNAL_FILE)
        )
        self._file: BinaryIO | None = None
        self._half = b""

    def news(self) -> Iterator[dict[str, Any]]:
        """What has come since it was asked last."""
        while self._file or self._go_on():
            done = self._is_aside()  # looked at before the rest is read: nothing is added to it afterwards
            yield from self._rest()
            if not done or not self._go_on():
                return

    def _is_aside(self) -> bool:
        return os.path.exists(self._newest) and not self._is_open(self._newest)

    def _rest(self) -> Iterator[dict[str, Any]]:
        *lines, self._half = (self._half + (self._file.read() if self._file else b"")).split(b"\n")
        for line in lines:
            try:
                read = json.loads(line)
            except (ValueError, RecursionError):  # half a line of a process that was killed
                continue
            if isinstance(read, dict):
                yield read

    def _go_on(self) -> bool:
        """Opens the file that follows: the older one, unless it is the one that was just read, or the newest."""
        for path in (self._older, self._newest):
            with contextlib.suppress(OSError):
                if not self._is_open(path):
                    opened = open(open_regular_file(path, os.O_RDONLY), "rb")  # noqa: SIM115 - read on and on
                    self.close()
                    self._file, self._half = opened, b""
                    return True
        return False

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _is_open(self, path: str) -> bool:
        return self._file is not None and is_same_file(path, self._file.fileno())


def _folder(session: str | None) -> str:
    if session:
        folder = session_folder(state_folder(), session)
        if not os.path.isdir(folder):
            raise UsageError(f"nothing is known of session {session}; `turngate log` shows the newest")
        return folder
    sessions = os.path.join(state_folder(), "sessions")
    with os_errors_as_usage_errors(sessions):
        known = os.listdir(sessions) if os.path.isdir(sessions) else []
    written = []
    for name in known:
        with contextlib.suppress(OSError):  # it has no journal, or was removed meanwhile
            written.append((os.path.getmtime(os.path.join(sessions, name, JOURNAL_FILE)), name))
    if not written:
        raise UsageError("no hook has run yet; `turngate fire Stop` asks the project's hooks once")
    return os.path.join(sessions, max(written)[1])


def _print(line: dict[str, Any]) -> None:
    when = time.strftime("%H:%M:%S", time.localtime(line.get("time", 0)))
    if line.get("kind") == "verdict":
        said = (line.get("prompt") or line.get("stop_reason") or "").strip().splitlines()
        print(f"{when}  {line.get('event')}: {line.get('verdict')}" + (f"  {said[-1]}" if said else ""))
        return
    hook = line.get("hook", {})
    name = next(
        (hook[key] for key in ("id", "command", "name", "url", "prompt", "type") if hook.get(key)), ""
    )
    why = (line.get("reason") or "").strip().splitlines()
    print(
        f"{when}    {line.get('outcome', ''):<11} {line.get('seconds', 0):6.2f} s  {one_line(name, 80)}"
        + (f"  {why[0]}" if why else "")
        + (_cost(line["evaluation"]) if "evaluation" in line and hook.get("type") == "prompt" else "")
    )


def _cost(spent: dict[str, Any]) -> str:
    """What a judge took; an agent's look has a line of its own that says it."""
    tokens = spent.get("input_tokens", 0) + spent.get("output_tokens", 0)
    price = spent.get("cost_usd")
    return f"  ({tokens:,} tokens{f', ${price:.4f}' if price is not None else ''})"
