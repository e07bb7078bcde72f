"""Passes every line between an editor and an agent, and asks the gates when a prompt of a session ends."""

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from turngate.acp.gate_process import GateAnswer, ask_gates, ending, not_asked
from turngate.acp.session_transcript import SessionTranscript
from turngate.aio.threads import run_in_thread
from turngate.errors import UsageError
from turngate.state.paths import session_folder

PROTOCOL_VERSION = 1
READ_BYTES = 1024 * 1024
SHOW_AFTER_S = 0.5  # a stop that takes no longer has no card while it is checked
INTERNAL_ERROR = -32603  # of JSON-RPC
MAX_SHOWN_CHARS = 200
TRANSCRIPT_FILE = "acp.jsonl"
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
QUESTION = "Turngate: may the agent stop?"
# What an outcome is called on the card. Every other one is named by itself.
TITLES = {
    "allowed": "passed",
    "capped": "still blocked at the limit of continuations",
    "stalled": "still blocked, and the agent has done nothing more",
    "halted": "a hook has ended the turn",
    "checkpoint": "waiting for you",
}

Json = dict[str, Any]


class Writer(Protocol):
    """The part of `asyncio.StreamWriter` that the proxy uses."""

    def write(self, data: bytes, /) -> None: ...
    async def drain(self) -> None: ...


@dataclass(eq=False)
class Session:
    id: str
    cwd: str
    transcript: SessionTranscript | None = None
    start: asyncio.Task[None] | None = None  # while its gates are recorded: a prompt waits for it
    is_replayed: bool = False  # the agent repeats an earlier conversation
    is_asked: bool = True  # False: the agent's own hook line holds
    mode: str = ""


@dataclass(eq=False)
class Turn:
    """An open prompt of the editor."""

    id: Any
    session: Session
    prompt: str = field(default_factory=lambda: uuid.uuid4().hex)
    task: asyncio.Task[None] | None = (
        None  # while the agent waits: its prompt is held, or the gates are asked
    )
    answer: Json = field(default_factory=dict)  # of the agent, the last one,
    line: bytes = b""  # and as it was sent
    continuations: int = 0
    is_cancelled: bool = False
    card: str | None = None  # the id of one that is in progress


class Proxy:
    """`own_line`: returns why the agent's own hook line holds in a folder, or None."""

    def __init__(
        self, editor: Writer, agent: Writer, state: str, own_line: Callable[[str], str | None]
    ) -> None:
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
            pairs = zip(_parse(lines), lines, strict=False)
            passed = [line for message, line in pairs if _look(look, message, line)]
            writer.write(block if len(passed) == len(lines) else b"\n".join(passed))
            await writer.drain()

    # What the editor sends

    def from_editor(self, message: Json, _line: bytes = b"") -> bool:
        """Return whether the agent gets the message."""
        method, params, key = message.get("method"), message.get("params"), _key(message)
        if key is not None and isinstance(method, str):
            self.requests[key] = message
        if not isinstance(params, dict):
            return True
        session = self.sessions.get(str(params.get("sessionId")))
        match method:
            case "session/load" | "session/resume":
                self._open(str(params["sessionId"]), params, "resume", is_new=method == "session/load")
            case "session/set_mode" if session:
                session.mode = str(params.get("modeId"))
            case "session/prompt" if session and key is not None:
                return self._prompt(session, key, message)
            case "session/prompt":
                say(f"session {params.get('sessionId')} was not opened here, so its stops are not checked")
            case "session/cancel" if session:
                return self._cancel([turn for turn in self.turns.values() if turn.session is session])
            case "$/cancel_request":
                turn = self.turns.get(json.dumps(params.get("requestId")))
                return self._cancel([turn] if turn else [])
            case _:
                pass
        return True

    def _prompt(self, session: Session, key: str, message: Json) -> bool:
        for other in [
            turn for turn in self.turns.values() if turn.session is session and turn.task and turn.answer
        ]:
            self._end_card(other, "not asked, because of another prompt", "completed", "")
            self._end(other, other.line)
        turn = self.turns[key] = Turn(message["id"], session)
        text = "\n".join(str(each["text"]) for each in message["params"]["prompt"] if "text" in each)
        self._write_transcript(session, lambda transcript: transcript.add_prompt(text))
        if session.start is None or session.start.done():
            return True
        turn.task = asyncio.create_task(self._send_after_start(turn, session.start, message))
        return False

    async def _send_after_start(self, turn: Turn, start: "asyncio.Task[None]", message: Json) -> None:
        await asyncio.wait({start})
        turn.task = None
        self.agent.write(_line(message))

    def _cancel(self, turns: list[Turn]) -> bool:
        """End the turns in which the agent has nothing to do; return whether the agent has to know."""
        for turn in turns:
            turn.is_cancelled = True
            if turn.task:
                self._end_card(turn, "cancelled", "failed", "")
                self._end(turn, _cancelled(turn))
        return not turns or any(turn.task is None for turn in turns)

    # What the agent sends

    def from_agent(self, message: Json, line: bytes) -> bool:
        """Return whether the editor gets the message."""
        if "method" in message:
            if message["method"] == "session/update":
                self._update(message["params"])
            return True
        key, result = _key(message) or "", message.get("result")
        request, turn = self.requests.pop(key, None), self.turns.get(key)
        if turn:
            return turn.task is None and self._answered(turn, message, line)  # an agent may answer twice
        if request and isinstance(result, dict):
            self._opened(request, result)
        return True

    def _update(self, params: Json) -> None:
        session, update = self.sessions.get(str(params.get("sessionId"))), params["update"]
        if session is None:
            return
        if update.get("sessionUpdate") == "current_mode_update":
            session.mode = str(update.get("currentModeId"))
        is_replay = session.is_replayed
        self._write_transcript(session, lambda transcript: transcript.add(update, is_replay=is_replay))

    def _opened(self, request: Json, result: Json) -> None:
        method, params = request["method"], request.get("params")
        if method == "initialize" and result.get("protocolVersion") != PROTOCOL_VERSION:
            version = result.get("protocolVersion")
            say(f"editor and agent speak version {version} of the protocol, so stops are not checked")
        if method in ("session/new", "session/fork") and isinstance(params, dict):
            self._open(str(result["sessionId"]), params, "startup", is_new=True)
        modes = result.get("modes")
        if method in OPENING and isinstance(params, dict):
            session = self.sessions[str(result.get("sessionId", params.get("sessionId")))]
            session.mode = str(modes.get("currentModeId")) if isinstance(modes, dict) else ""
            session.is_replayed = False

    def _open(self, identity: str, params: Json, source: str, *, is_new: bool) -> None:
        session = self.sessions[identity] = Session(identity, str(params["cwd"]))
        session.is_replayed = source == "resume"
        path = f"{session_folder(self.state, identity)}/{TRANSCRIPT_FILE}"
        session.transcript = SessionTranscript(path, identity, session.cwd, is_new=is_new)
        session.start = asyncio.create_task(self._start(session, source))

    async def _start(self, session: Session, source: str) -> None:
        """Record the gates of the session, unless the agent's own hook line does."""
        if why := await run_in_thread(self.own_line, session.cwd):
            session.is_asked = False
            say(f"{why}, so the stops of session {session.id} are left to it")
            return
        event = {"hook_event_name": "SessionStart", "source": source}
        await ask_gates({**event, **_common(session)})

    def _answered(self, turn: Turn, message: Json, line: bytes) -> bool:
        session, result = turn.session, message.get("result")
        result = result if isinstance(result, dict) else {}
        self._write_transcript(session, lambda transcript: transcript.end_turn(result))
        others = (each for each in self.turns.values() if each.session is session and each is not turn)
        is_stop = result.get("stopReason") == "end_turn" and not turn.is_cancelled and not any(others)
        if not is_stop or not session.is_asked:
            del self.turns[json.dumps(turn.id)]
            return True
        turn.answer, turn.line = message, line + b"\n"
        turn.task = asyncio.create_task(self._ask(turn))
        return False

    # The stop

    async def _ask(self, turn: Turn) -> None:
        session = turn.session
        event: Json = {"hook_event_name": "Stop", "prompt_id": turn.prompt, **_common(session)}
        event["stop_hook_active"] = turn.continuations > 0
        if session.transcript:
            event["last_assistant_message"] = session.transcript.last_text
        asking = asyncio.create_task(ask_gates(event))
        try:
            if not (await asyncio.wait({asking}, timeout=SHOW_AFTER_S))[0]:
                turn.card = f"turngate:{uuid.uuid4().hex}"
                self._show(session, "tool_call", turn.card, QUESTION, "in_progress", "")
            answer = await asking
        except Exception as error:  # noqa: BLE001 - the editor must get its answer
            answer = not_asked(f"internal error: {type(error).__name__}: {error}")
        finally:
            asking.cancel()
        if answer.decision == "block":
            self._continue(turn, answer)
            return
        if answer.outcome or turn.card:
            what = TITLES.get(answer.outcome, answer.outcome or "nothing to check")
            is_passed = answer.outcome in ("", "allowed")
            texts = (answer.reason, *answer.notices)
            self._end_card(
                turn, what, "completed" if is_passed else "failed", "\n\n".join(filter(None, texts))
            )
        self._end(turn, _with_verdict(turn, answer))

    def _continue(self, turn: Turn, answer: GateAnswer) -> None:
        """Send the agent back to work. The id of the editor's request is free again, and a cancellation names it."""
        turn.continuations += 1
        turn.task, session = None, turn.session
        self._end_card(turn, f"blocked ({turn.continuations})", "failed", answer.reason)
        self._write_transcript(session, lambda transcript: transcript.add_prompt(answer.reason, "stop_hook"))
        params = {"sessionId": session.id, "prompt": [{"type": "text", "text": answer.reason}]}
        request = {"jsonrpc": "2.0", "id": turn.id, "method": "session/prompt", "params": params}
        self.requests[json.dumps(turn.id)] = request
        self.agent.write(_line(request))

    def _end(self, turn: Turn, answer: bytes) -> None:
        del self.turns[json.dumps(turn.id)]
        self.requests.pop(json.dumps(turn.id), None)
        if turn.task and turn.task is not asyncio.current_task():
            turn.task.cancel()
        self.editor.write(answer)

    def _end_card(self, turn: Turn, what: str, status: str, text: str) -> None:
        kind, card = (
            ("tool_call_update", turn.card) if turn.card else ("tool_call", f"turngate:{uuid.uuid4().hex}")
        )
        self._show(turn.session, kind, card, f"Turngate: {what}", status, text)
        turn.card = None

    def _show(self, session: Session, kind: str, card: str, title: str, status: str, text: str) -> None:
        update: Json = {
            "sessionUpdate": kind,
            "toolCallId": card,
            "title": title,
            "kind": "other",
            "status": status,
        }
        if text:
            update["content"] = [{"type": "content", "content": {"type": "text", "text": text}}]
        params = {"sessionId": session.id, "update": update}
        self.editor.write(_line({"jsonrpc": "2.0", "method": "session/update", "params": params}))

    def _write_transcript(self, session: Session, write: Callable[[SessionTranscript], None]) -> None:
        try:
            if session.transcript:
                write(session.transcript)
        except (
            OSError,
            UsageError,
        ) as error:  # what is there is not the whole conversation: no gate may rely on it
            say(f"the transcript of session {session.id} cannot be written: {error}")
            session.transcript = None

    def fail_open_requests(self, why: str) -> None:
        """Answer what the agent has left open with an error."""
        ids = {key: request["id"] for key, request in self.requests.items()}
        ids |= {key: turn.id for key, turn in self.turns.items()}
        for turn in [*self.turns.values()]:
            if turn.task:
                turn.task.cancel()
        for identity in ids.values():
            error = {"code": INTERNAL_ERROR, "message": why}
            self.editor.write(_line({"jsonrpc": "2.0", "id": identity, "error": error}))
        self.turns, self.requests = {}, {}

    async def close(self) -> None:
        """End what runs for the sessions."""
        tasks = {
            each
            for each in (*(s.start for s in self.sessions.values()), *(t.task for t in self.turns.values()))
            if each
        }
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*ending, return_exceptions=True)


def say(text: str) -> None:
    print(f"turngate acp: {text}", file=sys.stderr, flush=True)


def _common(session: Session) -> Json:
    path = session.transcript.path if session.transcript else ""
    mode = "plan" if session.mode == "plan" else "default"
    return {"session_id": session.id, "cwd": session.cwd, "transcript_path": path, "permission_mode": mode}


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


def _parse(lines: list[bytes]) -> list[Any]:
    """Parse lines at once, which takes half of the time; a line that is not JSON is None."""
    try:
        messages = json.loads(b"[%b]" % b",".join(line or b"0" for line in lines))
    except (ValueError, RecursionError):
        messages = []
    if len(lines) == len(messages) or len(lines) == 1:
        return messages or [None]
    return [message for line in lines for message in _parse([line])]


def _look(look: Callable[[Json, bytes], bool], message: Any, line: bytes) -> bool:
    """Return whether a line is passed on. Anything may be in it."""
    try:
        return look(message, line) if isinstance(message, dict) else True
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        say(f"a message was passed on unread: {type(error).__name__}: {str(error)[:MAX_SHOWN_CHARS]}")
        return True


def _key(message: Json) -> str | None:
    """Return the id of a message as a key: 1 and true and 1.0 are three ids."""
    return json.dumps(message["id"]) if "id" in message else None


def _line(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _cancelled(turn: Turn) -> bytes:
    return _line({"jsonrpc": "2.0", "id": turn.id, "result": {"stopReason": "cancelled"}})


def _with_verdict(turn: Turn, answer: GateAnswer) -> bytes:
    """Return the agent's answer with what Turngate says; byte for byte if it has nothing to say."""
    if not answer.outcome and not turn.continuations:
        return turn.line
    verdict = {"outcome": answer.outcome or "allowed", "continuations": turn.continuations}
    verdict |= {"reason": answer.reason, "notices": answer.notices}
    result = turn.answer["result"]
    result["_meta"] = {**(meta if isinstance(meta := result.get("_meta"), dict) else {}), "turngate": verdict}
    return _line(turn.answer)
