"""What a gate reads of the conversation of the agent that stops: tool calls, the user's messages, usage, open waits.

A transcript may have 100 MB, or be anything else. Lines are searched for bytes, backwards from the end, and only those
that matter are parsed. Other hosts write other records: `TranscriptFormat` says what to search for, and converts them.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Any, BinaryIO

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import run_in_thread
from turngate.core.conversation.messages import Usage
from turngate.core.events.events import StopEvent
from turngate.gates.gate import GateContext
from turngate.state.files import open_regular_file
from turngate.transcript.format_detection import CLAUDE, lines_backwards, recognize_format, tool_call_position
from turngate.transcript.host_records import FORMATS, TranscriptFormat
from turngate.transcript.reader import blocks, parse_record, result_text, time_of

MAX_SEARCH_COST = 60_000_000  # of a whole transcript, in the units of `find_lines`: some seconds
MAX_KEEP_CHARS = 2000  # of the end of an answer, in which the agent says what it keeps
QUESTION_BYTES = 1024 * 1024  # of the end, searched for an open question

EDIT_TOOLS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
QUESTION_TOOLS = ("AskUser", "AskUserQuestion", "ExitPlanMode")

WAIT_LIMIT_S = 3600.0  # for a subagent: one that never ends must not disable a gate forever


# Set while stops of one transcript are judged one after another: the records of its lines, by where they begin and end.
known_records: ContextVar[dict[tuple[int, int], Sequence[Mapping[str, Any]]] | None] = ContextVar(
    "known_records", default=None
)


class TranscriptUnreadable(Exception):
    """The conversation cannot be read; the text says why."""


@frozen(kw_only=True)
class ToolCall:
    name: str
    input: Mapping[str, Any]
    id: str = ""
    result: str | None = None  # None: it has no result
    is_error: bool = False

    def text(self, key: str) -> str:
        """Return a text of the input; a model may give anything."""
        value = self.input.get(key)
        return value if isinstance(value, str) else ""

    @property
    def edited_file(self) -> str | None:
        """Return the path of the file that the call changed."""
        if self.name not in EDIT_TOOLS or self.is_error:
            return None
        return self.text("file_path") or self.text("notebook_path") or None


@frozen
class UserPrompt:
    """A message that the user wrote, and not a hook or the host."""

    offset: int  # in the transcript: no other message has it
    time: float | None  # seconds since the epoch
    text: str = field(default="", compare=False)


@frozen
class UsedTokens:
    tokens: int
    replies: int


# Tool calls


def read_calls(event: StopEvent, since: int = 0) -> tuple[ToolCall, ...]:
    """Return the latest tool calls after an offset with their results, in their order. Raises TranscriptUnreadable."""
    return _read_calls(event, (b'"tool_use"',), since=since)


def read_calls_of(event: StopEvent, names: Sequence[str]) -> tuple[ToolCall, ...]:
    """Return all calls of these tools with their results, also in a long transcript. Raises TranscriptUnreadable."""
    needles = tuple(f'"{name}"'.encode() for name in names)
    return tuple(call for call in _read_calls(event, needles, MAX_SEARCH_COST) if call.name in names)


def _read_calls(
    event: StopEvent, needles: Sequence[bytes], max_cost: int | None = None, since: int = 0
) -> tuple[ToolCall, ...]:
    """Read the calls in the lines with a needle; other hosts have other names of tools, so all calls are read there."""
    from turngate.transcript.record_search import MAX_COST  # noqa: PLC0415 # lazy: only if there is a transcript

    calls: list[ToolCall] = []
    places: dict[str, int] = {}  # of the latest call with an id
    with _open(event) as (file, form):
        own = form is FORMATS[CLAUDE]
        needles = (*(needles if own else form.calls), *form.results, b'"cleared"')
        for record in _records_since(since, file, form, needles, max_cost or MAX_COST):
            if record.get("type") == "cleared" and own:
                calls, places = [], {}
            for block in blocks_of(record, event):
                if block.get("type") == "tool_use" and is_reply(record):
                    _add_call(calls, places, block)
                elif block.get("type") == "tool_result" and not is_reply(record):
                    _add_result(calls, places, block)
    return tuple(calls)


def _add_call(calls: list[ToolCall], places: dict[str, int], block: Mapping[str, Any]) -> None:
    name, identity, args = block.get("name"), block.get("id"), block.get("input")
    if isinstance(name, str):
        if isinstance(identity, str):
            places[identity] = len(calls)
        args, identity = args if isinstance(args, dict) else {}, identity if isinstance(identity, str) else ""
        calls.append(ToolCall(name=name, input=args, id=identity))


def _add_result(calls: list[ToolCall], places: Mapping[str, int], block: Mapping[str, Any]) -> None:
    identity = block.get("tool_use_id")
    place = places.get(identity, -1) if isinstance(identity, str) else -1
    # Some models use an id again. Several calls in a row with one id are a patch of several files.
    while place >= 0 and calls[place].id == identity and calls[place].result is None:
        result, is_error = result_text(block.get("content")), block.get("is_error") is True
        calls[place] = replace(calls[place], result=result, is_error=is_error)
        place -= 1


# The user's messages, the last answer, times


def find_prompt(event: StopEvent) -> UserPrompt | None:
    """Return the user's last message, or None if there is none that can be read."""
    return next(read_prompts(event), None)


def read_prompts(event: StopEvent) -> Iterator[UserPrompt]:
    """Yield the user's messages that can be read, the last one first."""
    with suppress(TranscriptUnreadable), _open(event) as (file, form):
        for offset, line in lines_backwards(file.fileno(), form.prompts):
            for record in () if b'"tool_result"' in line else _parse(line, form):
                if is_prompt(record, event):
                    text = result_text(record["message"].get("content"))
                    yield UserPrompt(offset, time_of(record), text)


def is_mentioned(event: StopEvent, name: str) -> bool:
    """Return whether the user or a tool call of the agent has named a file. Raises TranscriptUnreadable."""
    with _open(event) as (file, form):
        for record in _records_since(0, file, form, (name.encode(),), MAX_SEARCH_COST):
            calls = [block for block in blocks_of(record, event) if block.get("type") == "tool_use"]
            if is_prompt(record, event) or (
                is_reply(record) and any(name in str(call.get("input")) for call in calls)
            ):
                return True
    return False


def last_answer(event: StopEvent) -> str:
    """Return the last answer, from the transcript if the event has none; what the host wrote is not an answer."""
    if event.last_assistant_message is not None:
        return event.last_text
    with suppress(TranscriptUnreadable), _open(event) as (file, form):
        for _, line in lines_backwards(file.fileno(), form.replies):
            replies = [record for record in _parse(line, form) if is_reply(record)]
            found = [block for record in replies for block in blocks_of(record, event)]
            texts = [text for block in found if isinstance(text := block.get("text"), str) and text.strip()]
            if texts:
                return "\n".join(texts)
    return ""


def read_usage(event: StopEvent, since: int = 0) -> UsedTokens:
    """Return the tokens of the replies after an offset. Several lines of one message count once. Raises TranscriptUnreadable."""
    counts: dict[object, int] = {}
    with _open(event) as (file, form):
        for number, record in enumerate(_records_since(since, file, form, form.usage, MAX_SEARCH_COST)):
            if not is_reply(record) or not _is_own(record, event):
                continue
            message = record["message"]
            identity = message.get("id")
            key = identity if isinstance(identity, str) and identity else number
            # The lines of a message are written while it arrives: the last ones know all of its tokens.
            counts[key] = max(counts.get(key, 0), _tokens(message.get("usage")))
    return UsedTokens(sum(counts.values()), len(counts))


_CLAUSE_END = r"[.!?,;]\s|\n"
_NEGATION = r"(?i)\b(?:no|not|never|without|cannot)\b|n't\b"


def read_wishes(event: StopEvent) -> tuple[str, ...]:
    """Return the clauses of the user's messages, without those that say what is not wanted; nothing without a conversation."""
    with suppress(TranscriptUnreadable), _open(event) as (file, form):
        records = _records_since(0, file, form, form.prompts, MAX_SEARCH_COST)
        texts = [result_text(each["message"].get("content")) for each in records if is_prompt(each, event)]
        clauses = (clause for text in texts for clause in re.split(_CLAUSE_END, text))
        return tuple(clause for clause in clauses if not re.search(_NEGATION, clause))
    return ()


def _tokens(usage: object) -> int:
    counts = usage if isinstance(usage, dict) else {}
    values = (counts.get(name) for name in Usage.__dataclass_fields__)
    return sum(value for value in values if type(value) is int and value > 0)


# Waiting


def describe_wait(context: GateContext) -> str | None:
    """Return why the agent waits, or None (X-17). A command in the background is nothing to wait for: it may never end."""
    event = context.event
    if event.permission_mode == "plan":
        return "the agent is in plan mode"
    if running := _count_awaited_subagents(context):
        return (
            f"{running} subagents work in the background"
            if running > 1
            else "a subagent works in the background"
        )
    if has_open_question(event):
        return "a question to the user is open"
    return None


_KEEPS = r"(?im)^\W*turngate: keep (\S+?):[ \t]*(\S.*?)\W*$"


def kept_reason(context: GateContext, found: Sequence[str]) -> str | None:
    """Return why the agent keeps what the gate has `found`: once per prompt, and then that or less as long as that prompt is worked on."""
    event, data = context.event, context.state.data
    prompt = find_prompt(event)
    here = event.prompt_id or (prompt.offset if prompt else -1)
    kept = data.get("kept")
    if isinstance(kept, dict) and kept.get("prompt") == here:
        return None if Counter(found) - Counter(kept["found"]) else str(kept["why"])
    ends = last_answer(event)[-MAX_KEEP_CHARS:]
    why = next((match[2] for match in re.finditer(_KEEPS, ends) if match[1] == context.name), None)
    if why is not None:
        data["kept"] = {"prompt": here, "found": [*found], "why": why}
        context.state.save()
    return why


def has_open_question(event: StopEvent) -> bool:
    """Return whether the agent's last act was to ask the user, without an answer yet."""
    answered: set[object] = set()
    with suppress(TranscriptUnreadable), _open(event) as (file, form):
        lines = lines_backwards(file.fileno(), form.messages, QUESTION_BYTES)
        for record in (record for _, line in lines for record in reversed(_parse(line, form))):
            if is_prompt(record, event):
                return False
            found = blocks_of(record, event)
            answered.update(str(block.get("tool_use_id")) for block in found if "tool_use_id" in block)
            calls = [block for block in found if block.get("type") == "tool_use"]
            if any(call.get("name") in QUESTION_TOOLS and call.get("id") not in answered for call in calls):
                return True
            if found and not calls and is_reply(record):  # it went on to talk
                return False
    return False


def _count_awaited_subagents(context: GateContext) -> int:
    """Count the subagents of the main agent that have not worked for too long since this gate saw them first."""
    if context.event.subagent is not None:  # those that a host lists then are not its own
        return 0
    tasks: Iterable[object] = context.event.background_tasks
    running = {
        str(task.get("id"))
        for task in tasks
        if isinstance(task, Mapping)  # a host may send anything
        and (task.get("type"), task.get("status", "running")) == ("subagent", "running")
    }
    state = context.state
    seen = {identity: state.waits.get(identity, context.now) for identity in running}
    if seen != state.waits:
        state.waits = seen
        state.save()
    return sum(context.now - since < WAIT_LIMIT_S for since in seen.values())


def measure_activity(event: StopEvent) -> str | None:
    """Return a value that changes with every tool call and every prompt of the user; None: it is not known."""
    call = tool_call_position(event.stopping_transcript)
    if call is None:
        return None
    prompt = find_prompt(event)
    return f"{call} {prompt.offset if prompt else -1}"


# Records


@contextmanager
def _open(event: StopEvent) -> Iterator[tuple[BinaryIO, TranscriptFormat]]:
    path = event.stopping_transcript
    if not path:
        raise TranscriptUnreadable("the event names no transcript")
    try:
        fd = open_regular_file(path, os.O_RDONLY)
    except OSError as error:
        raise TranscriptUnreadable(f"the transcript cannot be read: {error.strerror}") from None
    with open(fd, "rb", buffering=0) as file:
        form = recognize_format(fd)
        if form is None:
            known = " in a format that Turngate knows" if os.fstat(fd).st_size else ""
            raise TranscriptUnreadable(f"the transcript has no messages{known}")
        yield file, FORMATS[form]


def _records_since(
    offset: int, file: BinaryIO, form: TranscriptFormat, needles: Iterable[bytes], max_cost: int
) -> Iterator[Mapping[str, Any]]:
    from turngate.transcript.record_search import find_lines, parse_spans  # noqa: PLC0415 # lazy: as above

    fd, known = file.fileno(), known_records.get()
    lines = find_lines(fd, offset, os.fstat(fd).st_size, needles, max_cost)
    if known is None:
        for record in parse_spans(fd, lines):
            if record is not None:
                yield from form.convert(record)
        return
    for span in lines.spans:
        if span not in known:
            records = parse_spans(fd, replace(lines, spans=[span]))
            known[span] = [each for record in records if record is not None for each in form.convert(record)]
        yield from known[span]


def _parse(line: bytes, form: TranscriptFormat) -> Sequence[Mapping[str, Any]]:
    """Parse one line that is not too large to be parsed."""
    from turngate.transcript.record_search import MAX_RECORD_BYTES, MAX_SEPARATORS  # noqa: PLC0415 # lazy: as above

    too_large = len(line) > MAX_RECORD_BYTES or sum(map(line.count, (b",", b"[", b"{"))) > MAX_SEPARATORS
    record = None if too_large else parse_record(line)
    return () if record is None else form.convert(record)


def _is_own(record: Mapping[str, Any], event: StopEvent) -> bool:
    """Return whether a record is the stopping agent's: some hosts write subagents into the main transcript."""
    if "agent" in record and record["agent"] != (event.subagent.id if event.subagent else None):
        return False
    return event.subagent is not None or record.get("isSidechain") is not True


def is_reply(record: Mapping[str, Any]) -> bool:
    """Return whether the model wrote it. Hosts write messages in the name of the model when a request failed."""
    message = record.get("message")
    return (
        isinstance(message, dict)
        and message.get("role") == "assistant"
        and message.get("model") != "<synthetic>"
        and record.get("isMeta") is not True
    )


def blocks_of(record: Mapping[str, Any], event: StopEvent) -> list[dict[str, Any]]:
    message = record.get("message")
    if not isinstance(message, dict) or not _is_own(record, event):
        return []
    return [block for block in blocks(message.get("content")) if isinstance(block, dict)]


# How hosts begin what they write in the user's name without marking it.
_NOT_PROMPTS = (
    *("Stop hook feedback:", "<hook_prompt ", "[Request interrupted"),
    *("<task-notification>", "<system-reminder>", "<local-command-", "<bash-stdout>", "<bash-stderr>"),
)


def is_prompt(record: Mapping[str, Any], event: StopEvent) -> bool:
    message, origin = record.get("message"), record.get("origin")
    if not isinstance(message, dict) or message.get("role") != "user" or not _is_own(record, event):
        return False
    if record.get("isMeta") is True or record.get("isCompactSummary") is True:
        return False
    if isinstance(origin, dict) and origin.get("kind", "human") != "human":
        return False
    if isinstance(origin, str) and origin != "user":
        return False
    found = blocks(message.get("content"))
    if any(isinstance(block, dict) and block.get("type") == "tool_result" for block in found):
        return False
    text = result_text(message.get("content")).strip()
    return bool(text) and not text.startswith(_NOT_PROMPTS)


# Commands that write files, roughly: `sed -i`, `perl -pi`, `tee`, `mv`, `cp`, a redirection.
_WRITES = r"\bsed\s+(?:-\S+\s+)*-\w*i|\bperl\s+-\w*i|\b(?:tee|mv|cp|truncate)\s|>>?\s*[^\s&>|]"


async def was_touched(context: GateContext, name: str) -> bool:
    """Return what `if-touched` asks; without a session, whether the file has changed since the base. Raises TranscriptUnreadable, FilesUnreadable."""
    if context.base is None:
        return await was_edited(context, name)
    from turngate.gates.session_changes import changed_files  # noqa: PLC0415 # lazy: few gates compare with a start

    return not context.base or name.removeprefix("./") in await changed_files(context, ("**",))


async def was_edited(context: GateContext, name: str) -> bool:
    """Return whether the agent has edited a file of the project. Raises TranscriptUnreadable."""
    return await run_in_thread(_was_edited, context.event, context.project, name)


def _was_edited(event: StopEvent, project: str, name: str) -> bool:
    paths = {os.path.normpath(os.path.join(folder, name)) for folder in (project, event.cwd)}
    base = os.path.basename(name)
    for call in read_calls_of(event, (*EDIT_TOOLS, "Bash")):
        edited = call.edited_file
        if edited and os.path.normpath(os.path.join(event.cwd, edited)) in paths:
            return True
        command = call.text("command")
        if base and base in command and re.search(_WRITES, command):
            return True
    return False
