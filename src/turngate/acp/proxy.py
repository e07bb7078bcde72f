"""Passes every line between an editor and an agent, and asks the gates when a prompt of a session ends."""

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from turngate.acp.gate_process import ask_gates, ending
from turngate.acp.session_transcript import SessionTranscript
from turngate.aio.threads import run_in_thread
from turngate.errors import UsageError
from turngate.hosts.host import HostAnswer
from turngate.state.paths import session_folder

PROTOCOL_VERSION = 1
READ_BYTES = 1024 * 1024
SHOW_AFTER_S = 0.5  # a stop that takes no longer has no card while it is checked
MAX_SHOWN_CHARS = 200
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
OwnLine = Callable[[str], str | None]  # why the agent's own hook line holds in a folder, or None


class Writer(Protocol):
    """The part of `asyncio.StreamWriter` that the proxy uses."""

    def write(self, data: bytes, /) -> None: ...
    async def drain(self) -> None: ...


@dataclass(eq=False)
class Session:
    id: str
    cwd: str
    transcript: SessionTranscript | None
    start: asyncio.Task[None] | None = None  # its gates are recorded: a prompt waits for it
    is_replayed: bool = False  # the agent repeats an earlier conversation
    is_asked: bool = True  # False: the agent's own hook line holds

    def event(self, name: str, **fields: Any) -> Json:
        path = self.transcript.path if self.transcript else ""
        return {
            "hook_event_name": name,
            "session_id": self.id,
            "cwd": self.cwd,
            "transcript_path": path,
            **fields,
        }

    def write(self, write: Callable[[SessionTranscript], None]) -> None:
        try:
            if self.transcript:
                write(self.transcript)
        except (OSError, UsageError) as error:  # what is there is not all of it: no gate may rely on it
            say(f"the transcript of session {self.id} cannot be written: {error}")
            self.transcript = None


@dataclass(eq=False)
class Turn:
    """An open prompt of the editor."""

    id: Any
    session: Session
    prompt: str = field(default_factory=lambda: uuid.uuid4().hex)
    task: asyncio.Task[None] | None = None  # the agent waits: its prompt is held, or the gates are asked
    answer: Json = field(default_factory=dict)  # of the agent, the last one,
    line: bytes = b""  # and as it was sent
    continuations: int = 0
    is_cancelled: bool = False
    card: str = ""  # the id of one that is in progress


class Proxy:
    def __init__(self, editor: Writer, agent: Writer, state: str, own_line: OwnLine) -> None:
        self.editor, self.agent, self.state, self.own_line = editor, agent, state, own_line
        self.requests: dict[str, Json] = {}  # of the editor, without an answer yet
        self.sessions: dict[str, Session] = {}
        self.turns: dict[str, Turn] = {}

    async def pump(
        self, reader: asyncio.StreamReader, writer: Writer, look: Callable[[Json, bytes], bool]
    ) -> None:
        """Pass lines on, byte for byte, except those for which `look` returns False."""
        async for block in _blocks(reader):
            lines = block.split(b"\n")
            pairs = zip(parse(lines), lines, strict=True)
            passed = [line for message, line in pairs if _look(look, message, line)]
            writer.write(block if len(passed) == len(lines) else b"\n".join(passed))
            await writer.drain()

    # What the editor sends

    def from_editor(self, message: Json, _line: bytes) -> bool:
        """Return whether the agent gets the message."""
        method, params, key = message.get("method"), message.get("params"), _key(message)
        if key and method:
            self.requests[key] = message
        if not isinstance(params, dict):
            return True
        session = self.sessions.get(str(params.get("sessionId")))
        match method:
            case "session/load" | "session/resume":
                self._open(str(params["sessionId"]), params, is_new=method == "session/load", source="resume")
            case "session/prompt" if session and key:
                return self._prompt(session, key, message)
            case "session/prompt":
                say(f"session {params.get('sessionId')} was not opened here, so its stops are not checked")
            case "session/cancel":
                return self._cancel([turn for turn in self.turns.values() if turn.session is session])
            case "$/cancel_request":
                key = json.dumps(params.get("requestId"))
                return self._cancel([self.turns[key]] if key in self.turns else [])
            case _:
                pass
        return True

    def _prompt(self, session: Session, key: str, message: Json) -> bool:
        for other in [
            each for each in self.turns.values() if each.session is session and each.task and each.line
        ]:
            self._show(other, "not asked, because of another prompt", "completed")
            self._end(other, other.line)
        turn = self.turns[key] = Turn(message["id"], session)
        text = "\n".join(str(each["text"]) for each in message["params"]["prompt"] if "text" in each)
        session.write(lambda transcript: transcript.add_prompt(text))
        if session.start is None or session.start.done():
            return True
        turn.task = asyncio.create_task(self._send_after(session.start, turn, message))
        return False

    async def _send_after(self, start: "asyncio.Task[None]", turn: Turn, message: Json) -> None:
        await asyncio.wait({start})
        turn.task = None
        self.agent.write(_line(message))

    def _cancel(self, turns: list[Turn]) -> bool:
        """End the turns in which the agent has nothing to do; return whether the agent has to know."""
        for turn in turns:
            turn.is_cancelled = True
            if turn.task:
                if turn.card:
                    self._show(turn, "cancelled", "failed")
                result = {"stopReason": "cancelled"}
                self._end(turn, _line({"jsonrpc": "2.0", "id": turn.id, "result": result}))
        return not turns or any(turn.task is None for turn in turns)

    # What the agent sends

    def from_agent(self, message: Json, line: bytes) -> bool:
        """Return whether the editor gets the message."""
        params, result = message.get("params"), message.get("result")
        if "method" in message:
            session = self.sessions.get(str(params.get("sessionId"))) if isinstance(params, dict) else None
            if session and params and message["method"] == "session/update":
                update, is_replay = params["update"], session.is_replayed
                session.write(lambda transcript: transcript.add(update, is_replay=is_replay))
            return True
        request, turn = self.requests.pop(_key(message), None), self.turns.get(_key(message))
        if turn:
            return turn.task is None and self._answered(turn, message, line)  # an agent may answer twice
        if request and isinstance(result, dict):
            self._opened(request["method"], request.get("params") or {}, result)
        return True

    def _opened(self, method: str, params: Json, result: Json) -> None:
        version = result.get("protocolVersion")
        if method == "initialize" and version != PROTOCOL_VERSION:
            say(f"editor and agent speak version {version} of the protocol, so stops are not checked")
        elif method in ("session/new", "session/fork"):
            self._open(str(result["sessionId"]), params, is_new=True, source="startup")
        elif method == "session/load":
            self.sessions[str(params["sessionId"])].is_replayed = False

    def _open(self, identity: str, params: Json, *, is_new: bool, source: str) -> None:
        cwd, path = str(params["cwd"]), f"{session_folder(self.state, identity)}/acp.jsonl"
        session = Session(identity, cwd, SessionTranscript(path, identity, cwd, is_new=is_new))
        session.is_replayed = source == "resume" and is_new
        session.start = asyncio.create_task(self._start(session, source))
        self.sessions[identity] = session

    async def _start(self, session: Session, source: str) -> None:
        """Record the gates of the session, unless the agent's own hook line does."""
        try:
            why = await run_in_thread(self.own_line, session.cwd)
        except Exception as error:  # noqa: BLE001 - of its settings; the gates are asked then
            why = None
            say(f"whether the agent runs Turngate itself is not known: {error}")
        if why:
            session.is_asked = False
            say(f"{why}, so the stops of session {session.id} are left to it")
        else:
            await ask_gates(session.event("SessionStart", source=source))

    def _answered(self, turn: Turn, message: Json, line: bytes) -> bool:
        session, result = turn.session, message.get("result")
        result = result if isinstance(result, dict) else {}
        session.write(lambda transcript: transcript.end_turn(result))
        is_stop = result.get("stopReason") == "end_turn" and not turn.is_cancelled and session.is_asked
        if not is_stop or any(each.session is session and each is not turn for each in self.turns.values()):
            del self.turns[json.dumps(turn.id)]
            return True
        turn.answer, turn.line = message, line + b"\n"
        turn.task = asyncio.create_task(self._ask(turn))
        return False

    # The stop

    async def _ask(self, turn: Turn) -> None:
        text = turn.session.transcript.last_text if turn.session.transcript else ""
        fields = {"stop_hook_active": turn.continuations > 0, "last_assistant_message": text}
        asking = asyncio.create_task(ask_gates(turn.session.event("Stop", prompt_id=turn.prompt, **fields)))
        try:
            if not (await asyncio.wait({asking}, timeout=SHOW_AFTER_S))[0]:
                self._show(turn, QUESTION, "in_progress")
            answer = await asking
        finally:
            asking.cancel()
        if answer.decision == "block":
            self._continue(turn, answer.reason)
            return
        if answer.outcome or turn.card:
            status = "completed" if answer.outcome in ("", "allowed") else "failed"
            self._show(
                turn, TITLES.get(answer.outcome, answer.outcome), status, (answer.reason, *answer.notices)
            )
        self._end(turn, _with_verdict(turn, answer))

    def _continue(self, turn: Turn, reason: str) -> None:
        """Send the agent back to work. The id of the editor's request is free again, and a cancellation names it."""
        turn.continuations += 1
        turn.task, session = None, turn.session
        self._show(turn, f"blocked ({turn.continuations})", "failed", [reason])
        session.write(lambda transcript: transcript.add_prompt(reason, "stop_hook"))
        params = {"sessionId": session.id, "prompt": [{"type": "text", "text": reason}]}
        request = {"jsonrpc": "2.0", "id": turn.id, "method": "session/prompt", "params": params}
        self.requests[json.dumps(turn.id)] = request
        self.agent.write(_line(request))

    def _end(self, turn: Turn, answer: bytes) -> None:
        del self.turns[json.dumps(turn.id)]
        self.requests.pop(json.dumps(turn.id), None)
        if turn.task and turn.task is not asyncio.current_task():
            turn.task.cancel()
        self.editor.write(answer)

    def _show(self, turn: Turn, title: str, status: str, texts: Iterable[str] = ()) -> None:
        """Show a card, or change the one that is in progress."""
        kind = "tool_call_update" if turn.card else "tool_call"
        card = turn.card or f"turngate:{uuid.uuid4().hex}"
        turn.card = card if status == "in_progress" else ""
        content = [{"type": "content", "content": {"type": "text", "text": text}} for text in texts if text]
        shown = {"title": f"Turngate: {title}", "kind": "other", "status": status, "content": content}
        params = {
            "sessionId": turn.session.id,
            "update": {"sessionUpdate": kind, "toolCallId": card, **shown},
        }
        self.editor.write(_line({"jsonrpc": "2.0", "method": "session/update", "params": params}))

    async def close(self, why: str) -> None:
        """Answer what is open with an error, and end what runs for the sessions."""
        for identity in {
            **self.requests,
            **{key: {"id": turn.id} for key, turn in self.turns.items()},
        }.values():
            error = {"code": -32603, "message": why}  # the internal error of JSON-RPC
            self.editor.write(_line({"jsonrpc": "2.0", "id": identity["id"], "error": error}))
        starts = (session.start for session in self.sessions.values())
        tasks = [*filter(None, (*starts, *(turn.task for turn in self.turns.values())))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.turns, self.requests = {}, {}
        await asyncio.gather(*ending)


def say(text: str) -> None:
    print(f"turngate acp: {text}", file=sys.stderr, flush=True)


async def _blocks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield as many complete lines as were read at once; at the end also an incomplete one."""
    parts: list[bytes] = []
    while data := await reader.read(READ_BYTES):
        head, newline, rest = data.rpartition(b"\n")
        if newline:
            yield b"".join((*parts, head, newline))
            parts = []
        parts.append(rest)
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


def _look(look: Callable[[Json, bytes], bool], message: Json | None, line: bytes) -> bool:
    """Return whether a line is passed on. Anything may be in it."""
    try:
        return look(message, line) if message else True
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        say(f"a message was passed on unread: {type(error).__name__}: {str(error)[:MAX_SHOWN_CHARS]}")
        return True


def _key(message: Json) -> str:
    """Return the id of a message as a key: 1 and true and 1.0 are three ids; "" for a notification."""
    return json.dumps(message["id"]) if "id" in message else ""


def _line(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _with_verdict(turn: Turn, answer: HostAnswer) -> bytes:
    """Return the agent's answer with what Turngate says; byte for byte if it has nothing to say."""
    if not answer.outcome and not turn.continuations:
        return turn.line
    verdict = {"outcome": answer.outcome or "allowed", "continuations": turn.continuations}
    verdict |= {"reason": answer.reason, "notices": answer.notices}
    result = turn.answer["result"]
    result["_meta"] = {**(meta if isinstance(meta := result.get("_meta"), dict) else {}), "turngate": verdict}
    return _line(turn.answer)
