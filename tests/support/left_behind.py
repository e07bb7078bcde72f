"""Sessions in processes of their own that are killed while their subagents work."""

import json
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from tests.support.cli import start_in_project, turngate
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import Program

T = TypeVar("T")
STUCK = {"text": "never said", "delay": 3600}


def task(label: str, prompt: str = "Count the files.", **more: Any) -> dict[str, Any]:
    return {"tool": "Task", "input": {"description": label, "prompt": prompt, **more}}


def scripted(project: Path, main: list[Any], sub: list[Any], name: str = "script") -> str:
    path = project.parent / f"{name}.json"
    path.write_text(json.dumps({"main": main, "sub": sub}))
    return f"scripted:{path}"


def listed() -> list[dict[str, Any]]:
    found = json.loads(turngate("runs", "--json")[1])
    assert isinstance(found, list)
    return found


def session(project: Path, main: list[Any], sub: list[Any], *words: str) -> AbstractContextManager[Program]:
    """`turngate run -p` in a process of its own."""
    model = scripted(project, main, sub)
    named = ("--model", model, "--session", "s-1")
    return start_in_project(project, "run", "-p", "go", *named, "--output-format", "json", *words)


def until(wanted: Callable[[], T]) -> T:
    """What it gives, as soon as it gives something."""
    end = time.monotonic() + HANG_TIMEOUT_S
    while time.monotonic() < end:
        if found := wanted():
            return found
        time.sleep(0.05)
    raise AssertionError("it never came")


def asked(state: Path, count: int = 1) -> list[dict[str, Any]]:
    """So many children have heard their prompts, and the model has been asked."""

    def heard() -> bool:
        found = list(state.glob("sessions/*/subagents/*.jsonl"))
        return len(found) >= count and all('"role":"user"' in path.read_text() for path in found)

    until(heard)
    return until(lambda: [each for each in listed() if each["state"] == "running"])


def left_behind(project: Path, state: Path, *sub: Any) -> dict[str, Any]:
    """A child whose session was killed while it worked."""
    with session(project, [task("count files"), "all done"], list(sub or (STUCK,))) as process:
        asked(state)
        process.send_signal(signal.SIGKILL)
        process.wait()
    until(lambda: all(each["left"] for each in listed()))  # in PostgreSQL, once its lease has lapsed
    [child] = [each for each in listed() if each["open"]]
    return child
