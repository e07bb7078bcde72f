"""Resuming a long conversation, compared with parsing its file and with starting a new one."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bench.measure import Row, interleaved
from turngate.core.conversation.messages import (
    Reply,
    Text,
    ToolResult,
    ToolResults,
    ToolUse,
    UserMessage,
)
from turngate.transcript.resume import read_conversation
from turngate.transcript.writer import Transcript

MEGABYTES = 100


def resumed_conversation() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        whole = _write_conversation(os.path.join(folder, "whole.jsonl"), compact_after=MEGABYTES)
        compacted = _write_conversation(os.path.join(folder, "compacted.jsonl"), compact_after=MEGABYTES - 2)
        return [
            _reading("2 MB after its compaction", compacted, max_ratio=0.5),
            _reading("no compaction", whole, max_ratio=2.5),
            _first_hook(folder, compacted),
        ]


def _reading(which: str, path: str, *, max_ratio: float) -> Row:
    ours, floor = interleaved(lambda: read_conversation(path), lambda: _parse_lines(path), rounds=5)
    what = f"reading a conversation of {MEGABYTES} MB, {which} / json.loads of all its lines"
    return Row(what, ours, floor, max_ratio=max_ratio)


def _first_hook(folder: str, transcript: str) -> Row:
    """From the start of `turngate run` to the first instruction of the hook, with and without the conversation."""
    times: dict[str, list[float]] = {"resumed": [], "new": []}
    for _ in range(5):
        for session, durations in times.items():
            durations.append(_run(folder, session, transcript if session == "resumed" else None))
    what = f"start to the first hook, resuming {MEGABYTES} MB, 2 MB after its compaction / a new conversation"
    return Row(what, statistics.median(times["resumed"]), statistics.median(times["new"]), max_ratio=2)


def _run(folder: str, session: str, transcript: str | None) -> float:
    script, stamp = os.path.join(folder, "script.json"), os.path.join(folder, "stamp")
    hook = {"type": "command", "command": f"date +%s.%N > {stamp}"}
    settings = {"hooks": {"Stop": [{"hooks": [hook]}]}}
    os.makedirs(os.path.join(folder, ".turngate"), exist_ok=True)
    for path, value in ((script, {"main": ["done"]}), (f"{folder}/.turngate/settings.json", settings)):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
    state = os.path.join(folder, "sessions", session)
    shutil.rmtree(state, ignore_errors=True)
    os.makedirs(state)
    if transcript:
        shutil.copy(transcript, os.path.join(state, "chat.jsonl"))
    turngate = os.path.join(os.path.dirname(sys.executable), "turngate")
    command = [turngate, "run", "-p", "go", "--session", session, "--model", f"scripted:{script}"]
    env = {**os.environ, "HOME": folder, "TURNGATE_STATE": folder}
    started = time.time()
    subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)
    with open(stamp, encoding="ascii") as file:
        return float(file.read()) - started


def _parse_lines(path: str) -> None:
    with open(path, "rb") as file:
        for line in file:
            json.loads(line)


def _write_conversation(path: str, *, compact_after: int) -> str:
    """Write turns with eight tool calls each, 4 KB a call."""
    transcript, turn, is_compacted = Transcript(path, "s", "/p"), 0, False
    while (size := os.path.getsize(path)) < MEGABYTES * 1_000_000:
        if size > compact_after * 1_000_000 and not is_compacted:
            transcript.write_message(UserMessage("a summary " * 300, "summary"))
            is_compacted = True
        transcript.write_message(UserMessage("do this, " * 30), continuation=0)
        for call in range(8):
            use = ToolUse(f"{turn}-{call}", "Bash", {"command": "make check " * 20})
            transcript.write_message(Reply((Text("because " * 110), use), "tool_use"))
            transcript.write_message(ToolResults((ToolResult(use.id, "a line of output\n" * 170),)))
        transcript.write_message(Reply((Text("done, " * 100),)))
        transcript.write_record({"type": "turn_end", "ended_by": "allowed", "notice": None})
        turn += 1
    transcript.close()
    return path
