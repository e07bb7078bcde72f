"""An editor that speaks the Agent Client Protocol in lines, without a library, to `turngate acp` or to an agent itself."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

AGENT = Path(__file__).with_name("line_agent.py")
PROXY = [sys.executable, "-m", "turngate", "acp", "--"]
WAIT_S = 120.0  # never reached on a machine that works

Json = dict[str, Any]


class Editor:
    """Everything that is received is in `messages`, in order; `lines` has the same as bytes."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        reply: Callable[[Json], Json | None] = lambda _request: None,
    ) -> None:
        """`reply`: the result for a request of the agent, or None if it is answered later."""
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd)
        self._reply = reply
        self.messages: list[Json] = []
        self.lines: list[bytes] = []
        self.errors = ""
        self.times: list[float] = []  # when each message came
        self._changed = threading.Condition()
        self.is_at_end = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._error_reader = threading.Thread(target=self._read_errors, daemon=True)
        self._error_reader.start()
        self._next = 0

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = {}
            message = message if isinstance(message, dict) else {}
            with self._changed:
                self.lines.append(line)
                self.messages.append(message)
                self.times.append(time.monotonic())
                self._changed.notify_all()
            if "id" in message and "method" in message and (result := self._reply(message)) is not None:
                self.send({"id": message["id"], "result": result})
        with self._changed:
            self.is_at_end = True
            self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr
        with suppress(ValueError):  # closed, while another process still has it
            for line in self.process.stderr:
                self.errors += line.decode("utf-8", "replace")

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Json) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def start(self, method: str, params: Json, identity: Any = None) -> Any:
        """Send a request and return its id."""
        self._next += 1
        identity = self._next if identity is None else identity
        self.send({"id": identity, "method": method, "params": params})
        return identity

    def wait_for(self, found: Callable[[Json], bool], *, count: int = 1) -> Json:
        """Wait for the message that fits, or for the `count`th one."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.is_at_end or sum(map(found, self.messages)) >= count, timeout=WAIT_S
            )
            fitting = [message for message in self.messages if found(message)]
        assert len(fitting) >= count, (self.messages[-20:], self.errors)
        return fitting[count - 1]

    def answer_to(self, identity: Any) -> Json:
        return self.wait_for(lambda message: message.get("id") == identity and "method" not in message)

    def request(self, method: str, params: Json) -> Json:
        return self.answer_to(self.start(method, params))

    def open(self, folder: Path, version: int = 1) -> str:
        self.request("initialize", {"protocolVersion": version, "clientCapabilities": {}})
        answer = self.request("session/new", {"cwd": str(folder), "mcpServers": []})
        return str(answer["result"]["sessionId"])

    def start_prompt(self, session: str, text: str = "do it", identity: Any = None) -> Any:
        prompt = [{"type": "text", "text": text}]
        return self.start("session/prompt", {"sessionId": session, "prompt": prompt}, identity)

    def prompt(self, session: str, text: str = "do it") -> Json:
        return self.answer_to(self.start_prompt(session, text))

    def cards(self) -> list[tuple[str, str, str]]:
        """Return kind, title and status of each card of Turngate."""
        updates = (message.get("params", {}).get("update", {}) for message in self.messages)
        return [
            (update["sessionUpdate"], update["title"], update["status"])
            for update in updates
            if str(update.get("toolCallId")).startswith("turngate:")
        ]

    def close(self) -> int:
        """Close stdin, as an editor does, and return the exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        code = self.process.wait(WAIT_S)
        self._reader.join()
        self._error_reader.join()
        return code


@contextmanager
def editor_of(tmp_path: Path, *prompts: list[list[Any]], proxy: Sequence[str] = PROXY) -> Iterator[Editor]:
    """Yield an editor whose agent does what the lists of steps say, through the proxy, or without one."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(prompts or [[]]))
    with started([*proxy, sys.executable, str(AGENT), str(script)]) as editor:
        yield editor


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[Editor]:
    editor = Editor(command, **options)
    try:
        yield editor
    finally:
        editor.process.kill()
        editor.process.wait()
        for stream in (editor.process.stdin, editor.process.stdout, editor.process.stderr):
            with suppress(OSError):
                if stream:
                    stream.close()


def received(tmp_path: Path) -> list[Json]:
    """Return what the agent has received."""
    return [json.loads(line) for line in (tmp_path / "received").read_text().splitlines()]


def prompts_of(tmp_path: Path) -> list[str]:
    """Return the prompts that the agent has received."""
    messages = [message for message in received(tmp_path) if message.get("method") == "session/prompt"]
    return [message["params"]["prompt"][0]["text"] for message in messages]
