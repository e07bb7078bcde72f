"""Where agents stopped in earlier transcripts, of Turngate and of other programs."""

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.events.events import StopEvent
from turngate.gates.conversation import blocks_of, is_prompt, is_reply
from turngate.state.files import open_regular_file
from turngate.transcript.format_detection import recognize_format
from turngate.transcript.host_records import FORMATS
from turngate.transcript.reader import parse_record, result_text, time_of

# Below the home folder; `*` stands for a project, a session or a day.
PLACES = {
    "claude": ".claude/projects/*/*.jsonl",
    "codex": ".codex/sessions/*/*/*/*.jsonl",
    "gemini": ".gemini/tmp/*/chats/*.jsonl",
    "qwen": ".qwen/projects/*/chats/*.jsonl",
    "copilot": ".copilot/session-state/*/events.jsonl",
}
OWN = "turngate"  # the host of our own transcripts


@frozen
class PastDecision:
    """What a gate would have decided. `reason`: of a block, or why nothing can be said."""

    gate: str
    outcome: Literal["would block", "would pass", "cannot say"]
    reason: str = ""


Decisions = tuple[PastDecision, ...]


@frozen
class PastStop:
    """A stop of an agent in a transcript. `end`: the bytes of the transcript at that time; `reply`: what the user said next."""

    end: int
    answer: str
    time: float | None
    reply: str = ""
    decisions: Decisions = ()
    against: Decisions = ()  # of the settings with which they are compared


@frozen
class PastSession:
    """The stops of one transcript, oldest first. `folder`: where the agent worked, if the transcript says so."""

    path: str
    host: str
    folder: str = ""
    stops: tuple[PastStop, ...] = ()
    error: str = ""  # why it could not be read


def find_transcripts(home: str, state: str, hosts: Sequence[str], since: float) -> list[tuple[str, str]]:
    """Return the path and the host of each transcript that was written to after `since`, oldest first."""
    places = {name: os.path.join(home, pattern) for name, pattern in PLACES.items()}
    places[OWN] = os.path.join(state, "sessions", "*", "chat.jsonl")
    changed = [
        (when, path, host)
        for host, pattern in places.items()
        if host in hosts or not hosts
        for path in glob.iglob(pattern)
        if (when := changed_at(path)) >= since
    ]
    return [(path, host) for _, path, host in sorted(changed)]


def changed_at(path: str) -> float:
    """Return when a file was changed; 0: there is none."""
    try:
        return os.stat(path).st_mtime
    except (OSError, ValueError):
        return 0.0


def read_past_session(path: str, host: str = "") -> PastSession:
    """Return the stops of a transcript."""
    try:
        with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
            name = recognize_format(file.fileno())
            if name:
                return _read(file, path, name, host)
            return PastSession(path, host, error="the format is not known")
    except OSError as error:
        return PastSession(path, host, error=error.strerror or str(error))


def _read(file: BinaryIO, path: str, name: str, host: str) -> PastSession:
    form, folder, stops = FORMATS[name], "", list[PastStop]()
    agent = StopEvent(session_id="", transcript_path=path)
    answer, message = None, object()  # the last answer, unless the agent went on, and the id of its message
    for line in file:
        record = parse_record(line)
        if record is None:
            continue
        folder = folder or _folder_of(record)
        for each in form.convert(record):
            kind, text = _kind(each, agent)
            # After an answer, only a hook can have asked for another one.
            identity = each["message"].get("id") or object() if kind == "answer" else None
            if answer and kind in ("prompt", "feedback", "answer") and identity != message:
                stops.append(answer)
            if kind == "prompt" and stops and not stops[-1].reply:
                stops[-1] = replace(stops[-1], reply=text)
            if kind == "answer":
                answer, message = PastStop(file.tell(), text, time_of(each) or time_of(record)), identity
            elif kind:
                answer = None
    return PastSession(path, host or name, folder, (*stops, *([answer] if answer else [])))


def _kind(record: Mapping[str, Any], agent: StopEvent) -> tuple[str, str]:
    """Return what a record is, with its text: `answer` (without a tool call), `work`, `prompt`, `feedback` or "".

    A message in the user's name that the user did not write is `feedback` of a hook, if it follows an answer.
    """
    found = blocks_of(record, agent)
    if any(block.get("type") in ("tool_use", "tool_result") for block in found):
        return "work", ""
    if is_prompt(record, agent):
        return "prompt", result_text(record["message"].get("content"))
    if not is_reply(record):
        return "feedback" if found else "", ""
    texts = [text for block in found if isinstance(text := block.get("text"), str) and text.strip()]
    return "answer" if texts else "", "\n".join(texts)


def _folder_of(record: Mapping[str, Any], depth: int = 3) -> str:
    """Return the folder that a record, or an object in it, names as that of its session."""
    own = (record.get(key) for key in ("cwd", "gitRoot"))
    inner = (_folder_of(each, depth - 1) for each in record.values() if isinstance(each, dict) and depth)
    folders = (each for each in chain(own, inner) if isinstance(each, str) and os.path.isabs(each))
    return next(folders, "")
