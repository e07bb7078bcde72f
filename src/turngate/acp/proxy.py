"""Passes every line between an editor and an agent, and asks the gates when a turn of a session ends."""

import asyncio
import contextlib
import io
import json
import os
import uuid
from asyncio import StreamReader, Task
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from turngate.acp import say
from turngate.acp.session import Json, OwnLine, Session
from turngate.core.constants import IN_ACP
from turngate.errors import UsageError
from turngate.shells.process_tree import TERM, VARIABLE, add_marker, kill_tree, new_run_marker, signal_tree
from turngate.state.paths import session_folder, state_folder
from turngate.transcript.host_records import as_mapping

READ_BYTES = 1024 * 1024
MAX_UNREAD_BYTES = 2 * READ_BYTES  # of lines that no stop has needed yet; the pipe waits while they are read
EXIT_GRACE_S = 3.0  # of an agent whose stdin is closed, and after TERM
POLL_S = 0.05
SHOW_AFTER_S = 0.5  # a stop that takes no longer has no card while it is checked
# What an outcome is called on the card; every other one is named by itself.
TITLES = {
    "allowed": "passed",
    "": "nothing to check",
    "capped": "still blocked at the limit of continuations",
    "stalled": "still blocked, and the agent has done nothing more",
    "checkpoint": "waiting for you",
}
# By version of the protocol: the update that ends a turn, or None where the answer to its prompt does; and the update
# that shows a card for the first time.
VERSIONS: dict[int, tuple[Json | None, str]] = {
    1: (None, "tool_call"),
    2: ({"sessionUpdate": "state_update", "state": "idle"}, "tool_call_update"),
}
ENABLED_VERSIONS = (1,)  # 2 is a draft
MARKS = (b'"id"', b'"state_update"')  # one of them is in each line of the agent that is looked at


class Writer(Protocol):
    def write(self, data: bytes, /) -> None: ...
    async def drain(self) -> None: ...


async def connect(
    command: Sequence[str], reader: StreamReader, editor: Writer, host: str, own_line: OwnLine
) -> int:
    """Run the agent until it ends, or until the editor has left; return its exit code. Raises UsageError.

    `host`: whose hooks the agent runs, or "".
    """
    marker, pipe, others = new_run_marker(), asyncio.subprocess.PIPE, asyncio.all_tasks()
    env = {**os.environ, VARIABLE: add_marker(os.environ, marker), IN_ACP: host}
    try:
        agent = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, env=env, limit=READ_BYTES, pipesize=READ_BYTES
        )
    except OSError as error:
        raise UsageError(f"the agent {command[0]} cannot be started: {error.strerror}") from None
    assert agent.stdin and agent.stdout  # noqa: S101, PT018 # for mypy
    proxy = Proxy(editor, agent.stdin, own_line)
    from_editor = asyncio.create_task(
        pass_on(reader, agent.stdin, lambda lines: passed(proxy.from_editor, lines))
    )
    from_agent = asyncio.create_task(pass_on(agent.stdout, editor, proxy.lines_of_agent))
    exited = asyncio.create_task(_wait_for_exit(agent))
    try:
        await asyncio.wait({from_editor, from_agent, exited}, return_when=asyncio.FIRST_COMPLETED)
        agent.stdin.close()  # if the editor has left, the agent ends now
        # A process that the agent has started may keep its stdout open; and an agent may take a moment to exit.
        await asyncio.wait({from_agent, exited}, timeout=EXIT_GRACE_S)
    finally:
        code = agent.returncode
        ended = "does not answer" if code is None else f"ended with exit code {code}"
        internal_error = {"code": -32603, "message": f"the agent {ended}"}  # of JSON-RPC
        for request in proxy.requests.values():
            editor.write(_line({"id": request.message["id"], "error": internal_error}))
        tasks = {from_editor, from_agent, *asyncio.all_tasks()} - {exited, *others}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not exited.done():
            members = signal_tree(agent.pid, marker, TERM)
            await asyncio.wait({exited}, timeout=EXIT_GRACE_S)
            kill_tree(agent.pid, marker, members)
            await exited
    with contextlib.suppress(ConnectionError):
        await editor.drain()
    code = agent.returncode or 0
    return 128 - code if code < 0 else code


async def _wait_for_exit(process: asyncio.subprocess.Process) -> None:
    """Return when the process has exited; its own `wait` can also wait for the end of its output."""
    while process.returncode is None:
        await asyncio.sleep(POLL_S)


async def pass_on(reader: StreamReader, writer: Writer, look: Callable[[bytes], bytes]) -> None:
    """Pass what comes on, as many complete lines at once as there are; `look` returns those that are passed on."""
    parts: list[bytes] = []  # of a line
    while data := await reader.read(READ_BYTES):
        lines, newline, rest = data.rpartition(b"\n")
        if newline:
            writer.write(look(b"".join((*parts, lines, newline))))
            await writer.drain()
            parts.clear()
        parts.append(rest)
    writer.write(b"".join(parts))


@dataclass(eq=False)
class Request:
    """A request of the editor, until its answer. A prompt in a session that is known is a turn of it."""

    key: str  # its id as JSON: 1 and true and 1.0 are three ids
    message: Json
    session: Session | None = None
    prompt: str = field(default_factory=lambda: uuid.uuid4().hex)
    task: Task[None] | None = None  # the agent waits: the prompt is held, or the gates are asked
    end: Json = field(default_factory=dict)  # the message of the agent that the gates are asked about,
    outcome: Json = field(default_factory=dict)  # and what it says
    continuations: int = 0
    is_accepted: bool = False  # in version 2, the answer to a prompt does not end its turn
    is_cancelled: bool = False
    is_shown: bool = False  # a card is in progress


class Proxy:
    def __init__(self, editor: Writer, agent: Writer, own_line: OwnLine) -> None:
        self.editor, self.agent, self.own_line = editor, agent, own_line
        self.idle, self.new_card = VERSIONS[1]
        self.requests: dict[str, Request] = {}
        self.sessions: dict[str, Session] = {}
        self.unread = bytearray()  # lines of the agent

    def lines_of_agent(self, lines: bytes) -> bytes:
        """Updates, which are most of the lines, are passed on unread, and read when a stop needs them."""
        self.unread += lines
        if len(self.unread) > MAX_UNREAD_BYTES:
            self._read_updates()
        return passed(self.from_agent, lines) if any(mark in lines for mark in MARKS) else lines

    def _turns(self, session: object) -> list[Request]:
        return [each for each in self.requests.values() if each.session and each.session.id == session]

    # What the editor sends; each returns whether the agent gets the line

    def from_editor(self, message: Json, line: bytes) -> bool:
        method, params, key = message.get("method"), message.get("params", {}), json.dumps(message.get("id"))
        if method and "id" in message:
            self.requests[key] = Request(key, message)
        session = self.sessions.get(params.get("sessionId"))
        match method:
            case "session/load" | "session/resume":
                self._open(message, params["sessionId"])
            case "session/prompt" if session:
                return self._begin(self.requests[key], session, line)
            case "session/prompt":
                say(f"session {params['sessionId']} was not opened here, so its stops are not checked")
            case "session/cancel":
                return self._cancel(self._turns(params["sessionId"]))
            case "$/cancel_request":
                named = self.requests.get(json.dumps(params["requestId"]))
                return self._cancel([named] if named else [])
            case _:
                pass
        return True

    def _begin(self, turn: Request, session: Session, line: bytes) -> bool:
        for earlier in self._turns(session.id):
            if earlier.task and earlier.outcome:
                self._show(earlier, "not asked, because of another prompt", "completed")
                self._end(earlier)
        turn.session, turn.end = session, {"id": turn.message["id"], "result": turn.outcome}
        texts = (str(each["text"]) for each in turn.message["params"]["prompt"] if "text" in each)
        self._read_updates()
        session.add_prompt("\n".join(texts))
        if not session.start.done():
            turn.task = asyncio.create_task(self._send_after(session.start, turn, line))
        return turn.task is None

    async def _send_after(self, start: Task[None], turn: Request, prompt: bytes) -> None:
        await asyncio.wait({start})
        turn.task = None
        self.agent.write(prompt)

    def _cancel(self, turns: Sequence[Request]) -> bool:
        """End the turns in which the agent has nothing to do. If there is another one, the agent has to know."""
        for turn in turns:
            turn.is_cancelled = True
            if turn.task:
                turn.outcome["stopReason"] = "cancelled"
                if turn.is_shown:
                    self._show(turn, "cancelled", "failed")
                self._end(turn)
        return not (turns and all(turn.task for turn in turns))

    # What the agent sends; each returns whether the editor gets the line

    def from_agent(self, message: Json, line: bytes) -> bool:
        key, result = json.dumps(message.get("id")), as_mapping(message.get("result"))
        request = self.requests.get(key)
        if "method" in message:
            params = as_mapping(message.get("params"))
            update, turns = as_mapping(params.get("update")), self._turns(params.get("sessionId"))
            if not (self.idle and turns and "stopReason" in update and self.idle.items() <= update.items()):
                return True
            for earlier in turns[:-1]:  # prompts that became a part of this turn
                del self.requests[earlier.key]
            return self._ended(turns[-1], message, update, line)
        if request and request.session:
            if not self.idle or ("error" in message and not request.is_accepted):
                return self._ended(request, message, result, line)
            is_ours, request.is_accepted = request.is_accepted, True
            if "error" in message:
                self._end(request)
            return not is_ours
        if request:
            del self.requests[key]
            match request.message["method"], result:
                case "session/new" | "session/fork", {"sessionId": identity}:
                    self._open(request.message, identity)
                case "initialize", {"protocolVersion": version} if version in ENABLED_VERSIONS:
                    self.idle, self.new_card = VERSIONS[version]
                case "initialize", {"protocolVersion": version}:
                    say(f"editor and agent speak version {version} of the protocol, so stops are not checked")
                case _:
                    pass
        return True

    def _open(self, message: Json, identity: str) -> None:
        method, cwd = message["method"], message["params"]["cwd"]
        path = f"{session_folder(state_folder(), identity)}/acp.jsonl"
        session = Session(path, identity, cwd, is_new=method != "session/resume")
        source = "startup" if method in ("session/new", "session/fork") else "resume"
        session.start = asyncio.create_task(session.record_gates(self.own_line, source))
        self.sessions[identity] = session

    def _ended(self, turn: Request, message: Json, outcome: Json, line: bytes) -> bool:
        session = turn.session
        if turn.task or not session:  # an agent may say it twice
            return False
        self._read_updates()
        session.end_turn(outcome)
        is_stop = outcome.get("stopReason") == "end_turn" and not turn.is_cancelled and session.is_asked
        if is_stop and turn is self._turns(session.id)[-1]:
            turn.end, turn.outcome = message, outcome
            turn.task = asyncio.create_task(self._ask(turn, session, line))
            return False
        self.requests.pop(turn.key, None)
        return True

    def _read_updates(self) -> None:
        """Give the sessions what the agent has told since the last time."""
        lines, self.unread = self.unread, bytearray()
        passed(self._read_update, bytes(lines))

    def _read_update(self, message: Json, _line: bytes) -> bool:
        if message.get("method") == "session/update" and message["params"]["sessionId"] in self.sessions:
            self.sessions[message["params"]["sessionId"]].add(message["params"]["update"])
        return False

    # The stop

    async def _ask(self, turn: Request, session: Session, line: bytes) -> None:
        loop, question = asyncio.get_running_loop(), "may the agent stop?"
        timer = loop.call_later(SHOW_AFTER_S, self._show, turn, question, "in_progress")
        try:
            fields = {"stop_hook_active": turn.continuations > 0, "prompt_id": turn.prompt}
            answer = await session.ask("Stop", last_assistant_message=session.last_text, **fields)
        finally:
            timer.cancel()
        if answer.decision == "block":
            self._show(turn, f"blocked ({turn.continuations + 1})", "failed", answer.reason)
            turn.task = None
            turn.continuations += 1  # the next stop has another card
            session.add_prompt(answer.reason, "stop_hook")
            params = {"sessionId": session.id, "prompt": [{"type": "text", "text": answer.reason}]}
            # The id of the editor's request is free again, and a cancellation names it.
            self.agent.write(_line({**turn.message, "params": params}))
            return
        if answer.outcome or turn.is_shown:
            title = TITLES.get(answer.outcome, answer.outcome)
            status = "completed" if answer.outcome in ("", "allowed") else "failed"
            self._show(turn, title, status, answer.reason, *answer.notices)
        if answer.outcome or turn.continuations:
            verdict = {"outcome": answer.outcome or "allowed", "continuations": turn.continuations}
            verdict |= {"reason": answer.reason, "notices": answer.notices}
            turn.outcome["_meta"] = {**(turn.outcome.get("_meta") or {}), "turngate": verdict}
            line = _line(turn.end)
        self._end(turn, line)

    def _end(self, turn: Request, line: bytes = b"") -> None:
        self.requests.pop(turn.key, None)
        if turn.task:
            turn.task.cancel()
        self.editor.write(line or _line(turn.end))

    def _show(self, turn: Request, title: str, status: str, *texts: str) -> None:
        """Show the card of a stop, or change it if it is in progress."""
        card = {
            "sessionUpdate": "tool_call_update" if turn.is_shown else self.new_card,
            "toolCallId": f"turngate:{turn.prompt}:{turn.continuations}",
            "title": f"Turngate: {title}",
            "kind": "other",
            "status": status,
            "content": [
                {"type": "content", "content": {"type": "text", "text": text}} for text in texts if text
            ],
        }
        turn.is_shown = status == "in_progress"
        params = {"sessionId": turn.message["params"]["sessionId"], "update": card}
        self.editor.write(_line({"method": "session/update", "params": params}))


def passed(look: Callable[[Json, bytes], bool], lines: bytes) -> bytes:
    """Return the lines for which `look` says that they are passed on. Anything may be in them."""
    kept = []
    for line in io.BytesIO(lines):
        try:
            if look(parse(line), line):
                kept.append(line)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            say(f"a message was passed on unread: {type(error).__name__}: {error!s:.200}")
            kept.append(line)
    return b"".join(kept)


def parse(line: bytes) -> Json:
    """Return a message; an empty one for what is not an object."""
    with contextlib.suppress(ValueError, RecursionError):
        return as_mapping(json.loads(line))
    return {}


def _line(message: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
