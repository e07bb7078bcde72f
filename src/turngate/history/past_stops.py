"""Where agents stopped in earlier transcripts, of Turngate and of other programs, and what gates decide there without the files."""

import asyncio
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any, BinaryIO, Literal, NamedTuple, NoReturn, cast

from turngate._frozen_dataclass import frozen
from turngate.core.events.events import StopEvent
from turngate.core.hooks.kinds import CommandHook, GateHook, Hook, label
from turngate.core.verdict.decisions import Block, Decision, Fault, Halt
from turngate.gates.arguments import GateCall, read_gate_hook
from turngate.gates.conversation import blocks_of, is_prompt, is_reply, known_records
from turngate.gates.run_commands import ProjectUnreachable
from turngate.gates.run_gate import make_context, run_gate
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
_FOLDER_KEYS = ("cwd", "gitRoot")
_MAX_FOLDER_DEPTH = 3  # of records in which the folder of the session is searched


class PastDecision(NamedTuple):
    """What a gate would have decided. `reason`: of a block, or why nothing can be said."""

    gate: str
    outcome: Literal["would block", "would pass", "cannot say"]
    reason: str = ""


@frozen
class PastStop:
    """A stop of an agent in a transcript. `end`: the bytes of the transcript at that time; `reply`: what the user said next."""

    end: int
    answer: str
    time: float | None
    reply: str = ""
    decisions: tuple[PastDecision, ...] = ()


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
    texts = [text for block in found if isinstance(text := block.get("text"), str) and text.strip()]
    if any(block.get("type") in ("tool_use", "tool_result") for block in found):
        return "work", ""
    if is_prompt(record, agent):
        return "prompt", result_text(record["message"].get("content"))
    if not (found and texts) or not is_reply(record):
        return ("feedback", "") if found and not is_reply(record) else ("", "")
    return "answer", "\n".join(texts)


def _folder_of(record: Mapping[str, Any], depth: int = 0) -> str:
    """Return the folder that a record names as that of its session."""
    for key in _FOLDER_KEYS:
        if isinstance(value := record.get(key), str) and os.path.isabs(value):
            return value
    inner: Iterator[str] = (
        _folder_of(value, depth + 1)
        for value in record.values()
        if isinstance(value, dict) and depth < _MAX_FOLDER_DEPTH
    )
    return next(filter(None, inner), "")


# What gates decide

NO_TREE = "it needs the files of that stop, which are not known"
NO_MODEL = "it asks a model"
NOT_READY_MADE = "only ready-made gates can be asked about the past"
WITH_EFFECTS = ("notify", "archive", "log")  # observers, which would act again
MAX_KNOWN_BYTES = 16 * 1024 * 1024  # of a transcript whose records are kept in memory
FOLDER = "/"  # in place of the project: no command runs there


class NoFiles:
    """A shell without a machine: the files of that time are not known."""

    async def run(self, *_: Any, **__: Any) -> NoReturn:
        raise ProjectUnreachable(NO_TREE)

    def slot(self, **_: Any) -> AbstractAsyncContextManager[None]:
        return nullcontext()


def why_unknown(hook: Hook) -> str:
    """Return why a transcript is not enough to ask this hook; "": it is."""
    call = read_gate_hook(hook) if isinstance(hook, GateHook) else None
    if isinstance(hook, CommandHook):
        return NO_TREE
    if not isinstance(call, GateCall) or call.gate.name in WITH_EFFECTS:
        return NO_MODEL if hook.asks == "model" else NOT_READY_MADE
    return NO_MODEL if call.gate.asks_model else NO_TREE if call.gate.is_cached else ""


def judge_transcript(
    path: str, host: str, hooks: Sequence[Hook], project: str | None, since: float
) -> PastSession:
    """Ask the hooks at each stop of a transcript, if it is of this project; None: of any."""
    past = read_past_session(path, host)
    stops = [stop for stop in past.stops if stop.time is None or stop.time >= since]
    if not stops or (project is not None and not f"{past.folder}/".startswith(f"{project.rstrip('/')}/")):
        return replace(past, stops=())
    with tempfile.TemporaryDirectory(prefix="turngate-") as folder:
        copy = shutil.copyfile(path, os.path.join(folder, "transcript.jsonl"))
        judged = asyncio.run(_judge_stops(stops, copy, past.folder, hooks))
    return replace(past, stops=tuple(judged))


async def _judge_stops(
    stops: Sequence[PastStop], copy: str, folder: str, hooks: Sequence[Hook]
) -> list[PastStop]:
    """Cut the copy at each stop, from the last to the first, and ask the hooks."""
    judged = []
    known_records.set({} if stops[-1].end <= MAX_KNOWN_BYTES else None)
    for stop in reversed(stops):
        os.truncate(copy, stop.end)
        event, decisions = past_event(stop, copy, folder), []
        for hook in hooks:
            decision = PastDecision(label(hook), "cannot say", why := why_unknown(hook))
            if not why and isinstance(call := read_gate_hook(cast("GateHook", hook)), GateCall):
                context = make_context(
                    call.gate, event, NoFiles(), FOLDER, options=call.options, env={}, environ={}
                )
                decision = as_past(label(hook), await run_gate(call.gate, context))
            decisions.append(decision)
        judged.append(replace(stop, decisions=tuple(decisions)))
    return judged[::-1]


def past_event(stop: PastStop, transcript: str, folder: str) -> StopEvent:
    return StopEvent(
        session_id="", transcript_path=transcript, cwd=folder, last_assistant_message=stop.answer
    )


def as_past(name: str, decision: Decision) -> PastDecision:
    match decision:
        case Block(reason) | Halt(reason):
            return PastDecision(name, "would block", reason or "")
        case Fault(error, kind=kind):
            return PastDecision(name, "would pass" if kind == "waiting" else "cannot say", error)
        case _:
            return PastDecision(name, "would pass")
