"""`turngate log`: the journal, for people."""

import argparse
import json
import os
import time
from collections.abc import Iterator
from typing import Any

from turngate.errors import UsageError
from turngate.journal import JOURNAL, OLDER, session_folder, state_folder


def run(options: argparse.Namespace) -> int:
    folder = _folder(options.session)
    for line in _lines(os.path.join(folder, OLDER)):
        _print(line)
    path = os.path.join(folder, JOURNAL)
    position = 0
    while True:
        for line in _lines(path, position):
            _print(line)
        position = os.path.getsize(path) if os.path.exists(path) else 0
        if not options.follow:
            return 0
        while not os.path.exists(path) or os.path.getsize(path) == position:
            time.sleep(0.2)
        position = min(position, os.path.getsize(path))  # it was put aside, and a new one begun


def _folder(session: str | None) -> str:
    if session:
        folder = session_folder(state_folder(), session)
        if not os.path.isdir(folder):
            raise UsageError(f"nothing is known of session {session}; `turngate log` shows the newest")
        return folder
    sessions = os.path.join(state_folder(), "sessions")
    known = [os.path.join(sessions, name) for name in os.listdir(sessions)] if os.path.isdir(sessions) else []
    written = [path for path in known if os.path.exists(os.path.join(path, JOURNAL))]
    if not written:
        raise UsageError("no hook has run yet; `turngate fire Stop` asks the project's hooks once")
    return max(written, key=lambda path: os.path.getmtime(os.path.join(path, JOURNAL)))


def _lines(path: str, position: int = 0) -> Iterator[dict[str, Any]]:
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        file.seek(position)
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:  # half a line of a process that was killed
                continue


def _print(line: dict[str, Any]) -> None:
    when = time.strftime("%H:%M:%S", time.localtime(line.get("time", 0)))
    if line.get("kind") == "verdict":
        said = (line.get("prompt") or line.get("stop_reason") or "").strip().splitlines()
        print(f"{when}  {line['event']}: {line['verdict']}" + (f"  {said[-1]}" if said else ""))
        return
    hook = line.get("hook", {})
    name = hook.get("id") or hook.get("command") or hook.get("name") or hook.get("type")
    why = (line.get("reason") or "").strip().splitlines()
    print(
        f"{when}    {line.get('outcome', ''):<11} {line.get('seconds', 0):6.2f} s  {name}"
        + (f"  {why[0]}" if why else ""),
        flush=True,
    )
