"""Read a conversation back from its transcript, so that a session can resume.

The messages before the last compaction are not needed, and parsing them takes most of the time. They are searched for
the few records that still count.
"""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, BinaryIO

from turngate._frozen import frozen
from turngate.core.conversation.messages import Message, Reply, ToolResult, ToolResults, UserMessage
from turngate.core.conversation.workflow import (
    Waiting,
    Workflow,
    update_waiting,
    waiting_of,
    workflow_of,
)
from turngate.core.verdict.unenforced import RECORD_TYPE, MissedGates, merge_missed, missed_gates_of
from turngate.errors import UsageError
from turngate.state.files import open_regular_file, os_errors_as_usage_errors
from turngate.transcript.line_search import lines_with, pieces_backwards, read_span
from turngate.transcript.reader import MAX_LINE_BYTES, message_of, parse_record, records_in

_RESTARTS = (b'"summary"', b'"cleared"')
_PROMPTS = (b'"user"',)
_COPY = b'{"type":"tool_call",'  # of a call that the message after it has too
# Inside a text the quotes would be escaped, so few lines contain these by chance.
_KEYS = (b'"key"',)
_TURN_ENDS = (b'"turn_end"', b'"cleared"')
_MISSED = (f'"{RECORD_TYPE}"'.encode(),)


def read_needed_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the records from which the conversation and its state follow, in the order of the file.

    These are all records since the last compaction or `cleared`, and since the last message of the user before it: this
    message decides what is counted and asked. Of the earlier ones, these are the keys that were delivered and the gates
    that the turn has missed.
    """
    try:
        with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
            start = _find_start(file)
            for span in reversed([*_find_kept(file, start)]):
                if (record := parse_record(_read(file, span))) is not None:
                    yield record
            file.seek(start)
            yield from records_in(file, without=_COPY)
    except FileNotFoundError:
        return


def _find_start(file: BinaryIO) -> int:
    """Return the offset of the earlier one of the last restart and the last message of the user, or 0."""
    size = os.fstat(file.fileno()).st_size
    restart = _find_last(file, _RESTARTS, size, _is_restart)
    return min(restart, _find_last(file, _PROMPTS, size, _is_prompt)) if restart else 0


def _find_kept(file: BinaryIO, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the lines before `end` are that may hold a key, or a missed gate since the end of a turn."""
    turn_end = _find_last(file, _TURN_ENDS, end, _is_turn_end)
    yield from _find_spans(file, _KEYS + _MISSED, turn_end, end)
    yield from _find_spans(file, _KEYS, 0, turn_end)


def _find_last(file: BinaryIO, needles: tuple[bytes, ...], end: int, matches: Callable[[bytes], bool]) -> int:
    """Return the offset of the last line before `end` that has a needle and matches, or 0."""
    spans = (span for span in _find_spans(file, needles, 0, end) if matches(_read(file, span)))
    return next(spans, (0, 0))[0]


def _find_spans(
    file: BinaryIO, needles: tuple[bytes, ...], start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield where the lines with a needle begin and end, from the end backwards."""
    for offset, data in pieces_backwards(file.fileno(), start, end, MAX_LINE_BYTES):
        for first, last in lines_with(needles, data):
            if last - first < MAX_LINE_BYTES:
                yield offset + first, offset + last


def _read(file: BinaryIO, span: tuple[int, int]) -> bytes:
    return read_span(file.fileno(), *span)


def _is_restart(line: bytes) -> bool:
    record = parse_record(line) or {}
    message = message_of(record)
    is_summary = isinstance(message, UserMessage) and message.origin == "summary"
    return is_summary or record.get("type") == "cleared"


def _is_turn_end(line: bytes) -> bool:
    return (parse_record(line) or {}).get("type") in ("turn_end", "cleared")


def _is_prompt(line: bytes) -> bool:
    """Return whether it is a message of the user with an id, so that no earlier record changes the state after it."""
    record = {} if b'"tool_result"' in line else parse_record(line) or {}
    message = message_of(record)
    is_prompt = isinstance(message, UserMessage) and message.origin == "user"
    return is_prompt and isinstance(record.get("uuid"), str)


MAX_RESUMED_BYTES = 4 * 1024**3
MAX_CONTINUATIONS = 1_000_000  # larger counts in a transcript are treated as corrupt


@frozen
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
    keys: frozenset[str] = frozenset()  # of messages that must be delivered only once
    missed: MissedGates = field(default_factory=MissedGates)  # since the last turn that ended


def read_conversation(path: str) -> StoredConversation:
    """Read the conversation up to its last complete message. Tool calls without a result get an error result.

    The collector of cycles is paused: while a long conversation is built, it would search all of it again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return conversation_of(_records(path))
    finally:
        if was_enabled:
            gc.enable()


def conversation_of(records: Iterable[Mapping[str, Any]]) -> StoredConversation:
    """Return the conversation that these records describe."""
    messages: list[Message] = []
    continuations, unfinished = 0, False
    question = checkpoint = last = None
    hook_waits = False
    workflow: Workflow | None = None
    waiting: Waiting = ()
    keys: set[str] = set()
    missed: list[MissedGates] = []
    for record in records:
        kind = record.get("type")
        if kind == "cleared":
            messages, continuations, missed = [], 0, []
            question = checkpoint = workflow = None
            waiting = ()
        elif kind == "turn_end":
            unfinished, missed = False, []
            checkpoint = record["checkpoint"] if isinstance(record.get("checkpoint"), str) else None
            hook_waits = record.get("hook_waits") is True
        elif kind == RECORD_TYPE:
            missed.append(missed_gates_of(record))
        message = message_of(record)
        if message is None:
            continue
        if isinstance(record.get("key"), str):
            keys.add(record["key"])
        last = record["uuid"] if isinstance(record.get("uuid"), str) else last
        if isinstance(message, UserMessage):
            if message.origin == "summary":
                messages = []
            if message.origin in ("user", "stop_hook"):
                question, unfinished = None, True
            if message.origin == "user":
                checkpoint, waiting, workflow = None, (), workflow_of(record.get("workflow"))
            if message.origin == "user" or "continuation" in record:  # a report starts no new count
                count = record.get("continuation")
                continuations = count if type(count) is int and 0 <= count <= MAX_CONTINUATIONS else 0
        elif isinstance(message, Reply):
            unfinished = True
        elif isinstance(record.get("question"), str):
            question = record["question"]
        if "waiting" in record:
            waiting = update_waiting(waiting, waiting_of(record["waiting"]))
        messages.append(message)
    return StoredConversation(
        tuple(_with_results(messages)),
        continuations,
        unfinished,
        question,
        checkpoint,
        hook_waits,
        workflow,
        waiting,
        last,
        frozenset(keys),
        merge_missed(missed),
    )


def _records(path: str) -> Iterator[dict[str, Any]]:
    with os_errors_as_usage_errors(path):
        if os.path.exists(path) and os.path.getsize(path) > MAX_RESUMED_BYTES:
            limit = f"{MAX_RESUMED_BYTES // 1024**3} GiB"
            raise UsageError(f"{path} is larger than {limit}, so it cannot be resumed; start another session")
        yield from read_needed_records(path)


def _with_results(messages: list[Message]) -> Iterator[Message]:
    """Put one result right after every tool call, because providers reject any other conversation.

    Everything between two replies belongs to the first of them: the results of its calls, in any number of
    records, then the user messages.
    """
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
