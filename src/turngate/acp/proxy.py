"""Passes every line between an editor and an agent, and asks the gates when a prompt of a session ends."""

import asyncio
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from turngate.acp import log, say
from turngate.acp.session_transcript import SessionTranscript
from turngate.aio.threads import run_in_thread
from turngate.hosts.host import HostAnswer
from turngate.ports import HookRunContext
from turngate.shells.local import run_process
from turngate.state.paths import session_folder
from turngate.transcript.reader import MAX_LINE_BYTES

PROTOCOL_VERSION = 1
READ_BYTES = 1024 * 1024
# `-P`: a module in the current folder, which may be the project's, must not take the place of ours.
HOOK = (sys.executable, "-P", "-m", "turngate", "hook", "--host", "acp")
SHOW_AFTER_S = 0.5  # a stop that takes no longer has no card while it is checked
MAX_SHOWN_CHARS = 200
REPLAYED = "user_message_chunk"  # an update of a session that is loaded; in a turn, the prompt is known
QUESTION = "may the agent stop?"
# What an outcome is called on the card; every other one is named by itself.
TITLES = {
    "allowed": "passed",
    "": "nothing to check",
    "capped": "still blocked at the limit of continuations",
    "stalled": "still blocked, and the agent has done nothing more",
    "checkpoint": "waiting for you",
}

Json = dict[str, Any]
OwnLine = Callable[[str], str]  # why the agent's own hook line holds in a folder, or ""


class Writer(Protocol):
    """The part of `asyncio.StreamWriter` that the proxy uses."""

    def write(self, data: bytes, /) -> None: ...
    async def drain(self) -> None: ...


@dataclass(eq=False)
class Session:
    id: str
    cwd: str
    transcript: SessionTranscript
    start: asyncio.Task[None] | None = None  # its gates are recorded: a prompt waits for it
    is_asked: bool = True  # False: the agent's own hook line holds

    async def ask(self, name: str, **fields: Any) -> HostAnswer:
        """Return the answer of `turngate hook`, as for any other host. A cancellation ends it with its gates."""
        place = {"session_id": self.id, "cwd": self.cwd, "transcript_path": self.transcript.path}
        event = json.dumps({"hook_event_name": name, **place, **fields}).encode()
        try:
            exited = await run_process(
                HOOK, cwd=os.getcwd(), env=os.environ, stdin=event, live=HookRunContext()
            )
            log(exited.stderr)
            if not exited.code:
                return HostAnswer(**{"decision": "allow", **json.loads(exited.stdout or "{}")})
            why = f"exit code {exited.code}"
        except (OSError, ValueError, TypeError) as error:
            why = str(error)
        notice = f"this stop was not checked, because `turngate hook` failed: {why}"
        return HostAnswer(decision="allow", outcome="not enforced", notices=(notice,))


@dataclass(eq=False)
class Turn:
    """An open prompt of the editor."""

    id: Any
    session: Session
    prompt: str = field(default_factory=lambda: uuid.uuid4().hex)
    task: asyncio.Task[None] | None = None  # the agent waits: its prompt is held, or the gates are asked
    answer: bytes = b""  # of the agent, the last one
    continuations: int = 0
    is_cancelled: bool = False
    timer: asyncio.TimerHandle | None = None  # when the card of a stop is shown,
    is_shown: bool = False  # and is in progress


class Proxy:
    def __init__(self, editor: Writer, agent: Writer, state: str, own_line: OwnLine) -> None:
        self.editor, self.agent, self.state, self.own_line = editor, agent, state, own_line
        self.requests: dict[str, Json] = {}  # of the editor, without an answer yet
        self.sessions: dict[str, Session] = {}
        self.turns: dict[str, Turn] = {}  # of those requests that are prompts
        self.tasks: set[asyncio.Task[None]] = set()

    async def pump(
        self, reader: asyncio.StreamReader, writer: Writer, look: Callable[[Json, bytes], bool]
    ) -> None:
        """Pass lines on, byte for byte, except those for which `look` returns False."""
        is_rest = False  # of a line that is too long to be read
        async for block in _blocks(reader):
            lines = block.split(b"\n")
            messages = parse(lines)
            if is_rest:
                messages[0] = None
            is_rest = lines[-1] != b""
            pairs = zip(messages, lines, strict=True)
            passed = [line for message, line in pairs if not message or _look(look, message, line)]
            writer.write(block if len(passed) == len(lines) else b"\n".join(passed))
            await writer.drain()

    # What the editor sends

    def from_editor(self, message: Json, line: bytes) -> bool:
        """Return whether the agent gets the message."""
        method, params, key = message.get("method"), message.get("params"), _key(message)
        if key and method:
            self.requests[key] = message
        if not isinstance(params, dict):
            return True
        session = self.sessions.get(str(params.get("sessionId")))
        match method:
            case "session/load" | "session/resume":
                self._open(method, params, params)
            case "session/prompt" if session and key:
                return self._prompt(session, key, message, line)
            case "session/prompt":
                say(f"session {params.get('sessionId')} was not opened here, so its stops are not checked")
            case "session/cancel":
                return self._cancel(self._turns_of(session))
            case "$/cancel_request":
                key = json.dumps(params.get("requestId"))
                return self._cancel([self.turns[key]] if key in self.turns else [])
            case _:
                pass
        return True

    def _prompt(self, session: Session, key: str, message: Json, line: bytes) -> bool:
        for other in self._turns_of(session):
            if other.task and other.answer:
                self._show(other, "not asked, because of another prompt", "completed")
                self._end(other, other.answer)
        turn = self.turns[key] = Turn(message["id"], session)
        texts = (str(each["text"]) for each in message["params"]["prompt"] if "text" in each)
        session.transcript.add_prompt("\n".join(texts))
        if session.start is None or session.start.done():
            return True
        turn.task = self._run(self._send_after(session.start, turn, line + b"\n"))
        return False

    async def _send_after(self, start: "asyncio.Task[None]", turn: Turn, prompt: bytes) -> None:
        await asyncio.wait({start})
        turn.task = None
        self.agent.write(prompt)

    def _turns_of(self, session: Session | None) -> list[Turn]:
        return [turn for turn in self.turns.values() if turn.session is session]

    def _cancel(self, turns: list[Turn]) -> bool:
        """End the turns in which the agent has nothing to do; return whether the agent has to know."""
        for turn in turns:
            turn.is_cancelled = True
            if turn.task:
                if turn.is_shown:
                    self._show(turn, "cancelled", "failed")
                self._end(turn, _line({"id": turn.id, "result": {"stopReason": "cancelled"}}))
        return not turns or any(turn.task is None for turn in turns)

    # What the agent sends

    def from_agent(self, message: Json, line: bytes) -> bool:
        """Return whether the editor gets the message."""
        if "method" in message:
            if message["method"] == "session/update":
                params = message["params"]
                session, update = self.sessions.get(params["sessionId"]), params["update"]
                if session and (update["sessionUpdate"] != REPLAYED or not self._turns_of(session)):
                    session.transcript.add(update)
            return True
        key, result = _key(message), message.get("result")
        if turn := self.turns.get(key):
            return turn.task is None and self._answered(turn, message, line)  # an agent may answer twice
        request = self.requests.pop(key, None)
        if request and isinstance(result, dict):
            self._opened(request["method"], request.get("params") or {}, result)
        return True

    def _opened(self, method: str, params: Json, result: Json) -> None:
        version = result.get("protocolVersion")
        if method == "initialize" and version != PROTOCOL_VERSION:
            say(f"editor and agent speak version {version} of the protocol, so stops are not checked")
        elif method in ("session/new", "session/fork"):
            self._open(method, params, result)

    def _open(self, method: str, params: Json, source: Json) -> None:
        identity, cwd = str(source["sessionId"]), str(params["cwd"])
        path = f"{session_folder(self.state, identity)}/acp.jsonl"
        transcript = SessionTranscript(path, identity, cwd, is_new=method != "session/resume")
        session = self.sessions[identity] = Session(identity, cwd, transcript)
        is_known = method in ("session/load", "session/resume")
        session.start = self._run(self._start(session, "resume" if is_known else "startup"))

    async def _start(self, session: Session, source: str) -> None:
        """Record the gates of the session, unless the agent's own hook line does."""
        if why := await run_in_thread(self.own_line, session.cwd):
            session.is_asked = False
            say(f"{why}, so the stops of session {session.id} are left to it")
        else:
            await session.ask("SessionStart", source=source)

    def _answered(self, turn: Turn, message: Json, line: bytes) -> bool:
        session, result = turn.session, message.get("result")
        result = result if isinstance(result, dict) else {}
        session.transcript.end_turn(result)
        is_stop = result.get("stopReason") == "end_turn" and not turn.is_cancelled and session.is_asked
        if not is_stop or self._turns_of(session) != [turn]:
            self._forget(turn)
            return True
        turn.answer = line + b"\n"
        turn.task = self._run(self._ask(turn))
        return False

    # The stop

    async def _ask(self, turn: Turn) -> None:
        loop, text = asyncio.get_running_loop(), turn.session.transcript.last_text
        turn.timer = loop.call_later(SHOW_AFTER_S, self._show, turn, QUESTION, "in_progress")
        fields = {"stop_hook_active": turn.continuations > 0, "last_assistant_message": text}
        answer = await turn.session.ask("Stop", prompt_id=turn.prompt, **fields)
        turn.timer.cancel()
        if answer.decision == "block":
            self._continue(turn, answer.reason)
            return
        if answer.outcome or turn.is_shown:
            title = TITLES.get(answer.outcome, answer.outcome)
            status = "completed" if answer.outcome in ("", "allowed") else "failed"
            self._show(turn, title, status, answer.reason, *answer.notices)
        self._end(turn, _with_verdict(turn, answer))

    def _continue(self, turn: Turn, reason: str) -> None:
        """Send the agent back to work. The id of the editor's request is free again, and a cancellation names it."""
        session, turn.task = turn.session, None
        self._show(turn, f"blocked ({turn.continuations + 1})", "failed", reason)
        turn.continuations += 1  # the next stop has another card
        session.transcript.add_prompt(reason, "stop_hook")
        params = {"sessionId": session.id, "prompt": [{"type": "text", "text": reason}]}
        self.agent.write(_line({"id": turn.id, "method": "session/prompt", "params": params}))

    def _end(self, turn: Turn, answer: bytes) -> None:
        self._forget(turn)
        if turn.timer:
            turn.timer.cancel()
        if turn.task and turn.task is not asyncio.current_task():
            turn.task.cancel()
        self.editor.write(answer)

    def _forget(self, turn: Turn) -> None:
        self.turns.pop(json.dumps(turn.id), None)
        self.requests.pop(json.dumps(turn.id), None)

    def _show(self, turn: Turn, title: str, status: str, *texts: str) -> None:
        """Show the card of a stop, or change it if it is in progress."""
        content = [{"type": "content", "content": {"type": "text", "text": text}} for text in texts if text]
        update = {
            "sessionUpdate": "tool_call_update" if turn.is_shown else "tool_call",
            "toolCallId": f"turngate:{turn.prompt}:{turn.continuations}",
            "title": f"Turngate: {title}",
            "kind": "other",
            "status": status,
            "content": content,
        }
        turn.is_shown = status == "in_progress"
        params = {"sessionId": turn.session.id, "update": update}
        self.editor.write(_line({"method": "session/update", "params": params}))

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


async def _blocks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield as many complete lines as were read at once, and parts of one that is too long or has no end."""
    parts: list[bytes] = []
    size = 0
    while data := await reader.read(READ_BYTES):
        end = data.rfind(b"\n") + 1
        size += len(data)
        if not end and size > MAX_LINE_BYTES:
            say(f"a line of more than {MAX_LINE_BYTES // 1024**2} MB is passed on unread")
            end = len(data)
        if end:
            yield b"".join((*parts, data[:end]))
            parts, size = [], len(data) - end
        parts.append(data[end:])
    if any(parts):
        yield b"".join(parts)


def parse(lines: list[bytes]) -> list[Json | None]:
    """Parse lines, at once, which takes half of the time; one that is not an object is None."""
    try:
        messages = json.loads(b"[%b]" % b",".join(line or b"0" for line in lines))
    except (ValueError, RecursionError):
        messages = []
    if len(messages) == len(lines):
        return [message if isinstance(message, dict) else None for message in messages]
    return [message for line in lines for message in parse([line])] if len(lines) > 1 else [None]


def _look(look: Callable[[Json, bytes], bool], message: Json, line: bytes) -> bool:
    """Return whether a line is passed on. Anything may be in it."""
    try:
        return look(message, line)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        say(f"a message was passed on unread: {type(error).__name__}: {str(error)[:MAX_SHOWN_CHARS]}")
        return True


def _key(message: Json) -> str:
    """Return the id of a message as a key: 1 and true and 1.0 are three ids; "" for a notification."""
    return json.dumps(message["id"]) if "id" in message else ""


def _line(message: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def _with_verdict(turn: Turn, answer: HostAnswer) -> bytes:
    """Return the agent's answer with what Turngate says; byte for byte if it has nothing to say."""
    if not answer.outcome and not turn.continuations:
        return turn.answer
    verdict = {"outcome": answer.outcome or "allowed", "continuations": turn.continuations}
    verdict |= {"reason": answer.reason, "notices": answer.notices}
    message = json.loads(turn.answer)
    meta = message["result"].get("_meta")
    message["result"]["_meta"] = {**(meta if isinstance(meta, dict) else {}), "turngate": verdict}
    return _line(message)
