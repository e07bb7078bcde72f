"""Read a conversation back from its transcript, so that a session can resume.

The messages before the last compaction are not needed, and parsing them takes most of the time. They are searched for
the few records that still count.
"""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from turngate.core.conversation.checkpoints import (
    Waiting,
    Workflow,
    update_waiting,
    waiting_of,
    workflow_of,
)
from turngate.core.conversation.messages import Message, Reply, ToolResult, ToolResults, UserMessage
from turngate.core.events.stream_events import MISSED_GATES, MissedGates, merge_missed, missed_gates_of
from turngate.errors import UsageError
from turngate.state.files import open_regular_file, os_errors_as_usage_errors
from turngate.transcript.format_detection import lines_backwards, read_span
from turngate.transcript.reader import MAX_LINE_BYTES, message_of, parse_record, records_in

_RESTARTS = (b'"summary"', b'"cleared"')
_PROMPTS = (b'"user"',)
_COPY = b'{"type":"tool_call",'  # of a call that the message after it has too
# Inside a text the quotes would be escaped, so few lines contain these by chance.
_KEYS = (b'"key"',)
_TURN_ENDS = (b'"turn_end"', b'"cleared"')
_MISSED = (f'"{MISSED_GATES}"'.encode(),)


def read_needed_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the records from which the conversation and its state follow, in the order of the file.

    These are all records since the last compaction or `cleared`, and since the last message of the user before it: this
    message decides what is counted and asked. Of the earlier ones, these are the keys that were delivered and the gates
    that the turn has missed.
    """
    try:
        with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
            start = _find_start(file.fileno())
            for span in reversed([*_find_kept(file.fileno(), start)]):
                if (record := parse_record(read_span(file.fileno(), *span))) is not None:
                    yield record
            file.seek(start)
            yield from records_in(file, without=_COPY)
    except FileNotFoundError:
        return


def _find_start(file: int) -> int:
    """Return the offset of the earlier one of the last restart and the last message of the user, or 0."""
    size = os.fstat(file).st_size
    restart = _find_last(file, _RESTARTS, size, _is_restart)
    return min(restart, _find_last(file, _PROMPTS, size, _is_prompt)) if restart else 0


def _find_kept(file: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the lines before `end` are that may hold a key, or a missed gate since the end of a turn."""
    ends = ("turn_end", "cleared")
    turn_end = _find_last(file, _TURN_ENDS, end, lambda line: (parse_record(line) or {}).get("type") in ends)
    lines = chain(_lines(file, _KEYS + _MISSED, turn_end, end), _lines(file, _KEYS, 0, turn_end))
    for offset, line in lines:
        yield offset, offset + len(line)


def _find_last(file: int, needles: tuple[bytes, ...], end: int, matches: Callable[[bytes], bool]) -> int:
    """Return the offset of the last line before `end` that has a needle and matches, or 0."""
    return next((offset for offset, line in _lines(file, needles, 0, end) if matches(line)), 0)


def _lines(file: int, needles: tuple[bytes, ...], start: int, end: int) -> Iterator[tuple[int, bytes]]:
    return lines_backwards(file, needles, start=start, end=end, max_line=MAX_LINE_BYTES)


def _is_restart(line: bytes) -> bool:
    record = parse_record(line) or {}
    message = message_of(record)
    is_summary = isinstance(message, UserMessage) and message.origin == "summary"
    return is_summary or record.get("type") == "cleared"


def _is_prompt(line: bytes) -> bool:
    """Return whether it is a message of the user with an id, so that no earlier record changes the state after it."""
    record = {} if b'"tool_result"' in line else parse_record(line) or {}
    message = message_of(record)
    is_prompt = isinstance(message, UserMessage) and message.origin == "user"
    return is_prompt and isinstance(record.get("uuid"), str)


MAX_RESUMED_BYTES = 4 * 1024**3
MAX_CONTINUATIONS = 1_000_000  # larger counts in a transcript are treated as corrupt


@dataclass
class StoredConversation:
    """The state of a conversation as its transcript records it."""

    messages: tuple[Message, ...] = ()
    continuations: int = 0  # since the user's last message
    is_unfinished: bool = False  # the last turn did not end
    question: str | None = None  # of the agent, which the user has not answered
    checkpoint: str | None = None  # at which the user has not answered
    hook_waits: bool = False  # the checkpoint is one of a hook
    workflow: Workflow | None = None  # with a checkpoint ahead
    waiting: Waiting = ()  # the subagents that the user has to approve
    last: str | None = field(default=None, compare=False)  # id of the last message
    keys: set[str] = field(default_factory=set)  # of messages that must be delivered only once
    missed: MissedGates = field(default_factory=MissedGates)  # since the last turn that ended


def read_conversation(path: str) -> StoredConversation:
    """Read the conversation up to its last complete message; without the collector of cycles, which would search it again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return conversation_of(_records(path))
    finally:
        if was_enabled:
            gc.enable()


def conversation_of(records: Iterable[Mapping[str, Any]]) -> StoredConversation:
    stored, messages, missed = StoredConversation(), list[Message](), list[MissedGates]()
    for record in records:
        kind, message = record.get("type"), message_of(record)
        if kind == "cleared":
            messages, missed, stored.continuations = [], [], 0
            stored.question = stored.checkpoint = stored.workflow = None
            stored.waiting = ()
        elif kind == "turn_end":
            stored.is_unfinished, missed = False, []
            stored.checkpoint = _text(record, "checkpoint")
            stored.hook_waits = record.get("hook_waits") is True
        elif kind == MISSED_GATES:
            missed.append(missed_gates_of(record))
        if message is None:
            continue
        if (key := _text(record, "key")) is not None:
            stored.keys.add(key)
        stored.last = _text(record, "uuid") or stored.last
        if isinstance(message, UserMessage):
            messages = [] if message.origin == "summary" else messages
            _apply_prompt(stored, message, record)
        elif isinstance(message, Reply):
            stored.is_unfinished = True
        elif (question := _text(record, "question")) is not None:
            stored.question = question
        if "waiting" in record:
            stored.waiting = update_waiting(stored.waiting, waiting_of(record["waiting"]))
        messages.append(message)
    stored.messages, stored.missed = tuple(_with_results(messages)), merge_missed(missed)
    return stored


def _apply_prompt(stored: StoredConversation, message: UserMessage, record: Mapping[str, Any]) -> None:
    if message.origin in ("user", "stop_hook"):
        stored.question, stored.is_unfinished = None, True
    if message.origin == "user":
        stored.checkpoint, stored.waiting = None, ()
        stored.workflow = workflow_of(record.get("workflow"))
    if message.origin == "user" or "continuation" in record:  # a report starts no new count
        count = record.get("continuation")
        stored.continuations = count if type(count) is int and 0 <= count <= MAX_CONTINUATIONS else 0


def _text(record: Mapping[str, Any], name: str) -> str | None:
    return value if isinstance(value := record.get(name), str) else None


def _records(path: str) -> Iterator[dict[str, Any]]:
    with os_errors_as_usage_errors(path):
        if os.path.exists(path) and os.path.getsize(path) > MAX_RESUMED_BYTES:
            limit = f"{MAX_RESUMED_BYTES // 1024**3} GiB"
            raise UsageError(f"{path} is larger than {limit}, so it cannot be resumed; start another session")
        yield from read_needed_records(path)


def _with_results(messages: list[Message]) -> Iterator[Message]:
    """Put one result right after every tool call, because providers reject any other conversation, then the messages up to the next reply."""
    for reply, rest in _by_reply(messages):
        if reply is not None:
            yield reply
        if reply is not None and reply.tool_uses:
            results: dict[str, ToolResult] = {}
            for message in rest:
                for result in message.results if isinstance(message, ToolResults) else ():
                    results.setdefault(result.tool_use_id, result)
            lost = "the session ended before this tool did"
            for use in reply.tool_uses:
                results.setdefault(use.id, ToolResult(use.id, lost, is_error=True))
            yield ToolResults(tuple(results[use.id] for use in reply.tool_uses))
        yield from (message for message in rest if isinstance(message, UserMessage))


def _by_reply(messages: list[Message]) -> Iterator[tuple[Reply | None, list[Message]]]:
    """Yield each reply with the messages up to the next one; messages before the first reply come with None."""
    reply: Reply | None = None
    rest: list[Message] = []
    for message in messages:
        if isinstance(message, Reply):
            yield reply, rest
            reply, rest = message, []
        else:
            rest.append(message)
    yield reply, rest
