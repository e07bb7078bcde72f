"""Passes every line between an editor and an agent, and asks the gates when a turn of a session ends."""

import asyncio
import contextlib
import io
import json
import os
import sys
import uuid
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.acp import say
from turngate.acp.session_transcript import Json, SessionTranscript
from turngate.aio.threads import run_in_thread
from turngate.core.constants import IN_ACP
from turngate.errors import UsageError
from turngate.hosts.host import HostAnswer
from turngate.ports import HookRunContext
from turngate.shells.local import run_process
from turngate.shells.process_tree import TERM, VARIABLE, add_marker, kill_tree, new_run_marker, signal_tree
from turngate.state.paths import session_folder
from turngate.transcript.host_records import as_mapping
from turngate.transcript.reader import MAX_LINE_BYTES

Editor = tuple[StreamReader, StreamWriter]
OwnLine = Callable[[str], str]  # why the agent's own hook line holds in a folder, or ""

READ_BYTES = 1024 * 1024
MAX_UNREAD_BYTES = (
    2 * READ_BYTES
)  # of updates that no stop has needed yet; the pipe waits while they are read
PARSED_BYTES = 64 * 1024  # at once; of more, the objects would cost time of the garbage collector
EXIT_GRACE_S = 3.0  # of an agent whose stdin is closed
TERM_GRACE_S = 2.0
POLL_S = 0.05
# `-P`: a module in the current folder, which may be the project's, must not take the place of ours.
HOOK = (sys.executable, "-P", "-m", "turngate", "hook", "--host", "acp")
SHOW_AFTER_S = 0.5  # a stop that takes no longer has no card while it is checked
# What an outcome is called on the card; every other one is named by itself.
TITLES = {
    "allowed": "passed",
    "": "nothing to check",
    "capped": "still blocked at the limit of continuations",
    "stalled": "still blocked, and the agent has done nothing more",
    "checkpoint": "waiting for you",
}


async def connect(command: Sequence[str], editor: Editor, state: str, host: str, own_line: OwnLine) -> int:
    """Run the agent until it ends, or until the editor has left; return its exit code. Raises UsageError.

    `host`: whose hooks the agent runs, or "".
    """
    marker, pipe = new_run_marker(), asyncio.subprocess.PIPE
    env = {**os.environ, VARIABLE: add_marker(os.environ, marker), IN_ACP: host}
    try:
        agent = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, env=env, limit=READ_BYTES, pipesize=READ_BYTES
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"the agent {command[0]} cannot be started: {why}") from None
    assert agent.stdin and agent.stdout  # noqa: S101, PT018 # for mypy
    proxy = Proxy(editor[1], agent.stdin, state, own_line)
    passing = (proxy.pass_from_editor(editor[0]), proxy.pass_from_agent(agent.stdout))
    tasks = [asyncio.create_task(work) for work in (*passing, _wait_for_exit(agent))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        agent.stdin.close()  # if the editor has left, the agent ends now
        # A process that the agent has started may keep its stdout open; and an agent may take a moment to exit.
        await asyncio.wait(tasks[1:], timeout=EXIT_GRACE_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        ended = f"ended with exit code {agent.returncode}"
        await proxy.close(f"the agent {'does not answer' if agent.returncode is None else ended}")
        if agent.returncode is None:
            members = signal_tree(agent.pid, marker, TERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(_wait_for_exit(agent), TERM_GRACE_S)
            kill_tree(agent.pid, marker, members)
            await _wait_for_exit(agent)
    with contextlib.suppress(ConnectionError):
        await editor[1].drain()
    code = agent.returncode or 0
    return 128 - code if code < 0 else code


async def _wait_for_exit(process: asyncio.subprocess.Process) -> None:
    """Return when the process has exited; its own `wait` can also wait for the end of its output."""
    while process.returncode is None:
        await asyncio.sleep(POLL_S)


@frozen
class Version:
    """What differs between versions of the protocol."""

    marks: tuple[bytes, ...]  # one of them is in each line of the agent that is looked at
    new_card: str  # the update that shows a card for the first time
    # The update that ends a turn, without its reason; the answer to a prompt accepts it only. None: the answer ends it.
    idle: Json | None = None


_IDLE = {"sessionUpdate": "state_update", "state": "idle"}
VERSIONS = {
    1: Version((b'"id"',), "tool_call"),
    2: Version((b'"id"', b'"state_update"'), "tool_call_update", _IDLE),
}
ENABLED_VERSIONS = (1,)  # 2 is a draft


@dataclass(eq=False)
class Turn:
    """The last prompt of the editor, until its end."""

    id: Any = None  # of the request
    is_open: bool = False
    prompt: str = field(default_factory=lambda: uuid.uuid4().hex)
    task: asyncio.Task[None] | None = None  # the agent waits: its prompt is held, or the gates are asked
    end: bytes = b""  # the line of the agent that the gates are asked about,
    outcome: Mapping[str, Any] = field(default_factory=dict)  # and what it says
    continuations: int = 0
    is_cancelled: bool = False
    is_shown: bool = False  # a card is in progress


@dataclass(eq=False)
class Session:
    id: str
    cwd: str
    transcript: SessionTranscript
    start: asyncio.Task[None] | None = None  # its gates are recorded: a prompt waits for it
    is_asked: bool = True  # False: the agent's own hook line holds
    turn: Turn = field(default_factory=Turn)

    async def ask(self, name: str, **fields: Any) -> HostAnswer:
        """Return the answer of `turngate hook`, as for any other host. A cancellation ends it with its gates."""
        place = {"session_id": self.id, "cwd": self.cwd, "transcript_path": self.transcript.path}
        event = json.dumps({"hook_event_name": name, **place, **fields}).encode()
        live = HookRunContext()
        try:
            exited = await run_process(HOOK, cwd=os.getcwd(), env=os.environ, stdin=event, live=live)
            print(exited.stderr, end="", file=sys.stderr, flush=True)
            if not exited.code:
                return HostAnswer(**{"decision": "allow", **json.loads(exited.stdout or "{}")})
            why = f"exit code {exited.code}"
        except (OSError, ValueError, TypeError) as error:
            why = str(error)
        notice = f"this stop was not checked, because `turngate hook` failed: {why}"
        return HostAnswer(decision="allow", outcome="not enforced", notices=(notice,))


class Proxy:
    def __init__(self, editor: StreamWriter, agent: StreamWriter, state: str, own_line: OwnLine) -> None:
        self.editor, self.agent, self.state, self.own_line = editor, agent, state, own_line
        self.version = VERSIONS[1]
        self.requests: dict[str, Json] = {}  # of the editor, without an answer yet
        self.sessions: dict[str, Session] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.unread: list[bytes] = []  # blocks of lines of the agent
        self.unread_bytes = 0

    async def pass_from_editor(self, reader: StreamReader) -> None:
        async for part, lines in _blocks(reader):
            self.agent.write(part + _passed(self.from_editor, lines))
            await self.agent.drain()

    async def pass_from_agent(self, reader: StreamReader) -> None:
        """Pass blocks of lines on. Updates, which are most of them, are read when a stop needs them."""
        async for part, lines in _blocks(reader):
            self.unread.append(lines)
            self.unread_bytes += len(lines)
            is_looked_at = any(mark in lines for mark in self.version.marks)
            self.editor.write(part + (_passed(self.from_agent, lines) if is_looked_at else lines))
            await self.editor.drain()
            if self.unread_bytes > MAX_UNREAD_BYTES:
                self._read_updates()

    # What the editor sends

    def from_editor(self, message: Json, line: bytes) -> bool:
        """Return whether the agent gets the line."""
        method, params = message.get("method"), message.get("params", {})
        if method and "id" in message:
            self.requests[json.dumps(message["id"])] = message
        match method:
            case "session/load" | "session/resume":
                self._open(method, params, params["sessionId"])
            case "session/prompt" if params["sessionId"] in self.sessions:
                return self._start_turn(self.sessions[params["sessionId"]], message, line)
            case "session/prompt":
                say(f"session {params['sessionId']} was not opened here, so its stops are not checked")
            case "session/cancel":
                return self._cancel(self.sessions.get(params["sessionId"]))
            case "$/cancel_request":
                return self._cancel(self._session_of_prompt(params["requestId"]))
            case _:
                pass
        return True

    def _start_turn(self, session: Session, message: Json, line: bytes) -> bool:
        if session.turn.is_open and session.turn.task and session.turn.end:
            self._show(session, "not asked, because of another prompt", "completed")
            self._end(session, session.turn.end)
        turn = session.turn = Turn(message["id"], is_open=True)
        texts = (str(each["text"]) for each in message["params"]["prompt"] if "text" in each)
        self._read_updates()
        session.transcript.add_prompt("\n".join(texts))
        if session.start is None or session.start.done():
            return True
        turn.task = self._run(self._send_after(session.start, turn, line))
        return False

    async def _send_after(self, start: "asyncio.Task[None]", turn: Turn, prompt: bytes) -> None:
        await asyncio.wait({start})
        turn.task = None
        self.agent.write(prompt)

    def _session_of_prompt(self, identity: object) -> Session | None:
        """Return the session whose turn this request has opened. 1 and true and 1.0 are three ids."""
        key = json.dumps(identity)
        turns = ((each, each.turn) for each in self.sessions.values())
        return next((each for each, turn in turns if turn.is_open and json.dumps(turn.id) == key), None)

    def _cancel(self, session: Session | None) -> bool:
        """End a turn in which the agent has nothing to do; return whether the agent has to know."""
        if session is None or not session.turn.is_open:
            return True
        session.turn.is_cancelled = True
        if session.turn.task is None:
            return True
        if session.turn.is_shown:
            self._show(session, "cancelled", "failed")
        self._end(session, self._line_of_end(session, {"stopReason": "cancelled"}))
        return False

    # What the agent sends

    def from_agent(self, message: Json, line: bytes) -> bool:
        """Return whether the editor gets the line."""
        idle, identity = self.version.idle, message.get("id")
        if "method" in message:
            params = message["params"]
            session, update = self.sessions.get(params.get("sessionId")), params.get("update", {})
            is_end = idle and idle.items() <= update.items() and "stopReason" in update
            return not (session and is_end) or self._ended(session, update, line)
        session, result = self._session_of_prompt(identity), as_mapping(message.get("result"))
        if session and not idle:
            return self._ended(session, result, line)
        request = self.requests.pop(json.dumps(identity), None)
        if session:
            if "error" in message:  # the prompt is not accepted
                self._end(session, session.turn.end)
            return request is not None  # the editor does not know of our prompts
        if request and result:
            self._answered(request["method"], request.get("params", {}), result)
        return True

    def _answered(self, method: str, params: Json, result: Mapping[str, Any]) -> None:
        version = result.get("protocolVersion")
        if method in ("session/new", "session/fork"):
            self._open(method, params, result["sessionId"])
        elif method == "initialize" and version in ENABLED_VERSIONS:
            self.version = VERSIONS[version]
        elif method == "initialize":
            say(f"editor and agent speak version {version} of the protocol, so stops are not checked")

    def _open(self, method: str, params: Json, identity: str) -> None:
        path = f"{session_folder(self.state, identity)}/acp.jsonl"
        transcript = SessionTranscript(path, identity, params["cwd"], is_new=method != "session/resume")
        session = self.sessions[identity] = Session(identity, params["cwd"], transcript)
        is_known = method in ("session/load", "session/resume")
        session.start = self._run(self._start(session, "resume" if is_known else "startup"))

    async def _start(self, session: Session, source: str) -> None:
        """Record the gates of the session, unless the agent's own hook line does."""
        if why := await run_in_thread(self.own_line, session.cwd):
            session.is_asked = False
            say(f"{why}, so the stops of session {session.id} are left to it")
        else:
            await session.ask("SessionStart", source=source)

    def _ended(self, session: Session, outcome: Mapping[str, Any], line: bytes) -> bool:
        """Return whether the editor gets the end of a turn now, and not after the gates."""
        turn = session.turn
        if turn.task or not turn.is_open:  # an agent may say it twice
            return not turn.is_open
        is_stop = outcome.get("stopReason") == "end_turn" and not turn.is_cancelled and session.is_asked
        # The line is passed on first.
        asyncio.get_running_loop().call_soon(self._record_end, session, outcome)
        if is_stop:
            turn.end, turn.outcome = line, outcome
            turn.task = self._run(self._ask(session, turn))
        else:
            self._forget(turn)
        return not is_stop

    def _record_end(self, session: Session, outcome: Mapping[str, Any]) -> None:
        self._read_updates()
        session.transcript.end_turn(outcome)

    def _read_updates(self) -> None:
        """Write what the agent has told since the last time to the transcripts of its sessions."""
        unread = io.BytesIO(b"".join(self.unread))
        self.unread, self.unread_bytes = [], 0
        while lines := unread.readlines(PARSED_BYTES):
            try:  # at once: each alone takes twice as long
                messages = json.loads(b"[%b]" % b",".join(lines))
            except (ValueError, RecursionError):
                messages = map(parse, lines)
            for message in messages:
                if isinstance(message, dict):
                    _try(self._read_update, message)

    def _read_update(self, message: Json) -> bool:
        if message.get("method") == "session/update" and message["params"]["sessionId"] in self.sessions:
            self.sessions[message["params"]["sessionId"]].transcript.add(message["params"]["update"])
        return False

    # The stop

    async def _ask(self, session: Session, turn: Turn) -> None:
        loop, question = asyncio.get_running_loop(), "may the agent stop?"
        timer = loop.call_later(SHOW_AFTER_S, self._show, session, question, "in_progress")
        try:
            fields = {"stop_hook_active": turn.continuations > 0, "prompt_id": turn.prompt}
            text = session.transcript.last_text
            answer = await session.ask("Stop", last_assistant_message=text, **fields)
        finally:
            timer.cancel()
        if answer.decision == "block":
            self._continue(session, turn, answer.reason)
            return
        if answer.outcome or turn.is_shown:
            title = TITLES.get(answer.outcome, answer.outcome)
            status = "completed" if answer.outcome in ("", "allowed") else "failed"
            self._show(session, title, status, answer.reason, *answer.notices)
        if not answer.outcome and not turn.continuations:
            self._end(session, turn.end)
            return
        verdict = {"outcome": answer.outcome or "allowed", "continuations": turn.continuations}
        verdict |= {"reason": answer.reason, "notices": answer.notices}
        meta = {**(turn.outcome.get("_meta") or {}), "turngate": verdict}
        self._end(session, self._line_of_end(session, {**turn.outcome, "_meta": meta}))

    def _continue(self, session: Session, turn: Turn, reason: str) -> None:
        """Send the agent back to work. The id of the editor's request is free again, and a cancellation names it."""
        self._show(session, f"blocked ({turn.continuations + 1})", "failed", reason)
        turn.task = None
        turn.continuations += 1  # the next stop has another card
        session.transcript.add_prompt(reason, "stop_hook")
        params = {"sessionId": session.id, "prompt": [{"type": "text", "text": reason}]}
        self.agent.write(_line({"id": turn.id, "method": "session/prompt", "params": params}))

    def _line_of_end(self, session: Session, outcome: Json) -> bytes:
        if self.version.idle is None:
            return _line({"id": session.turn.id, "result": outcome})
        return _update(session, {**self.version.idle, **outcome})

    def _end(self, session: Session, end: bytes) -> None:
        self._forget(session.turn)
        if session.turn.task:
            session.turn.task.cancel()
        self.editor.write(end)

    def _forget(self, turn: Turn) -> None:
        turn.is_open = False
        self.requests.pop(json.dumps(turn.id), None)

    def _show(self, session: Session, title: str, status: str, *texts: str) -> None:
        """Show the card of a stop, or change it if it is in progress."""
        turn = session.turn
        card = {
            "sessionUpdate": "tool_call_update" if turn.is_shown else self.version.new_card,
            "toolCallId": f"turngate:{turn.prompt}:{turn.continuations}",
            "title": f"Turngate: {title}",
            "kind": "other",
            "status": status,
            "content": [
                {"type": "content", "content": {"type": "text", "text": text}} for text in texts if text
            ],
        }
        turn.is_shown = status == "in_progress"
        self.editor.write(_update(session, card))

    def _run(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def close(self, why: str) -> None:
        """Answer what is open with an error, and end what runs for the sessions."""
        for request in self.requests.values():
            error = {"code": -32603, "message": why}  # the internal error of JSON-RPC
            self.editor.write(_line({"id": request["id"], "error": error}))
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def _blocks(reader: StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    """Yield what comes, in two: a part of a line that is too long or has no end, and complete lines."""
    parts: list[bytes] = []  # of a line
    is_long = False
    while data := await reader.read(READ_BYTES):
        end = data.rfind(b"\n") + 1
        if not is_long and not end and sum(map(len, (*parts, data))) > MAX_LINE_BYTES:
            say(f"a line of more than {MAX_LINE_BYTES // 1024**2} MB is passed on unread")
            is_long = True
        if is_long:
            start = data.find(b"\n") + 1 or len(data)
            yield b"".join((*parts, data[:start])), data[start:end]
            parts, is_long = [data[max(start, end) :]], not end
        elif end:
            yield b"", b"".join((*parts, data[:end]))
            parts = [data[end:]] if data[end:] else []
        else:
            parts.append(data)
    yield b"".join(parts), b""


def _passed(look: Callable[[Json, bytes], bool], lines: bytes) -> bytes:
    """Return the lines that are passed on."""
    return b"".join(line for line in io.BytesIO(lines) if _try(look, parse(line), line))


def _try(look: Callable[..., bool], *message: object) -> bool:
    """Return whether a message is passed on. Anything may be in it."""
    try:
        return look(*message)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        say(f"a message was passed on unread: {type(error).__name__}: {error!s:.200}")
        return True


def parse(line: bytes) -> Json:
    """Return a message; an empty one for what is not an object."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _line(message: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def _update(session: Session, update: Json) -> bytes:
    return _line({"method": "session/update", "params": {"sessionId": session.id, "update": update}})
