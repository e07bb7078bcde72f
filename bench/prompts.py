"""The cost of prompt hooks: the tokens that a judge reads, and the time of a digest."""

import asyncio
import json
import os
import tempfile
from typing import Literal

from bench.measure import Row, interleaved
from turngate import StopEvent
from turngate.core.conversation.messages import ModelRequest
from turngate.core.hooks.kinds import PromptHook
from turngate.core.settings import Rule, Settings
from turngate.engine import ask_hooks
from turngate.models.scripted import ScriptedModel
from turngate.ports import World
from turngate.shells.local import LocalShell
from turngate.transcript.digest import digest

STEPS = 60  # of a typical session: read, edit, test
OUTPUT = "".join(f"tests/test_{n}.py::test_case_{n} PASSED [{n}%]\n" for n in range(60))


def judge_input() -> Row:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chat.jsonl")
        _write(path, steps=STEPS)
        ours, floor = (_tokens(path, transcript) for transcript in ("digest", "full"))
    return Row("a judge's input in tokens, digest / full", ours, floor, max_ratio=0.1, unit=" tokens")


def digest_time() -> Row:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chat.jsonl")
        _write(path, size=200_000_000)
        ours, _ = interleaved(lambda: digest(path), lambda: None, rounds=7)
    return Row("the digest of a 200 MB transcript / 1 s", ours, 1.0, max_ratio=1)


def _tokens(path: str, transcript: Literal["digest", "full"]) -> float:
    """Return the size of everything that is sent; a token is about four characters."""
    model = ScriptedModel({"judge": ['{"ok": true}']})
    settings = Settings(rules=(Rule("Stop", PromptHook("Did the tests pass?", transcript=transcript)),))
    event = StopEvent(session_id="bench", transcript_path=path, cwd="/tmp", last_assistant_message="Done.")
    world = World(LocalShell(), "/tmp", judge=lambda _: model)
    asyncio.run(ask_hooks(event, settings, world))
    return sum(map(_characters, model.requests)) / 4


def _characters(request: ModelRequest) -> int:
    return len(request.system) + sum(len(getattr(message, "text", "")) for message in request.messages)


def _write(path: str, *, steps: int = 0, size: int = 0) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(_line("user", "Make the parser faster and keep its tests green."))
        step = 0
        while step < steps or file.tell() < size:
            step += 1
            look = {
                "type": "tool_use",
                "id": f"r{step}",
                "name": "Read",
                "input": {"file_path": "/p/parser.py"},
            }
            edit = {
                "file_path": f"/p/part_{step % 40}.py",
                "old_string": "x = 1\n" * 20,
                "new_string": "x = 2\n" * 20,
            }
            change = {"type": "tool_use", "id": f"e{step}", "name": "Edit", "input": edit}
            test = {"type": "tool_use", "id": f"b{step}", "name": "Bash", "input": {"command": "make test"}}
            file.write(
                _line(
                    "assistant", [{"type": "text", "text": "I look, change it and test."}, look, change, test]
                )
            )
            results = [
                (f"r{step}", "def parse(text):\n    return text\n" * 60),
                (f"e{step}", "ok"),
                (f"b{step}", OUTPUT),
            ]
            blocks = [
                {"type": "tool_result", "tool_use_id": call, "content": content} for call, content in results
            ]
            file.write(_line("user", blocks))
        file.write(_line("assistant", [{"type": "text", "text": "It is faster, and the tests are green."}]))


def _line(role: str, content: object) -> str:
    return (
        json.dumps({"type": role, "message": {"role": role, "content": content}}, separators=(",", ":"))
        + "\n"
    )
