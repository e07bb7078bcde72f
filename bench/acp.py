"""The pipe of `turngate acp`: what an agent sends through it, as a ratio to the same agent without it.

The times are those until the editor has the last update. The processor time is that of the proxy from the first update
on, and its floor a program that only passes bytes on, with asyncio too (`bare_pipe.py`; with two threads it would use
about two thirds of that). They do not have what the proxy does when the turn has ended: it reads the updates then.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measure import Row

UPDATES = 10_000
ROUNDS = 11
END = ["stop", "max_tokens"]  # no gate is asked
ROOT = Path(__file__).resolve().parents[1]
AGENT = ROOT / "tests" / "acp" / "line_agent.py"
PROXY = [sys.executable, "-m", "turngate", "acp", "--"]
BARE_PIPE = [sys.executable, str(ROOT / "bench" / "bare_pipe.py")]


@dataclass(frozen=True)
class Times:
    wall: float  # from the prompt until the editor has the last update
    processor: float  # of the process that the editor has started, for all updates except the first


def pipe() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TURNGATE_STATE"] = f"{folder}/state"
        script = Path(folder, "script.json")
        agent = [sys.executable, str(AGENT), str(script)]
        commands = {"proxy": [*PROXY, *agent], "bare pipe": [*BARE_PIPE, *agent], "agent": agent}

        def medians(steps: list[Any], updates: int) -> dict[str, Times]:
            script.write_text(json.dumps([[END], [steps, ["wait for file", f"{folder}/all seen"], END]]))
            times: dict[str, list[Times]] = {name: [] for name in commands}
            for _ in range(ROUNDS):
                for name, command in commands.items():
                    times[name].append(times_of_prompt(command, folder, updates))
            return {
                name: Times(*(statistics.median(getattr(each, kind) for each in found) for kind in KINDS))
                for name, found in times.items()
            }

        many, large = medians(["many", UPDATES], UPDATES), medians(["large", 10_000_000], 1)
        what = f"{UPDATES:,} updates"
        wall = many["proxy"].wall, many["bare pipe"].wall
        processor = many["proxy"].processor, many["bare pipe"].processor
        return [
            Row(f"turngate acp: {what} / through a bare pipe", *wall, max_ratio=1.3),
            Row(f"turngate acp: {what} / without it", many["proxy"].wall, many["agent"].wall, max_ratio=1.3),
            Row(f"turngate acp: processor time of {what} / of a bare pipe", *processor, max_ratio=1.3),
            Row(
                "turngate acp: a line of 10 MB / without it",
                large["proxy"].wall,
                large["agent"].wall,
                max_ratio=4,
            ),
        ]


KINDS = ("wall", "processor")


def times_of_prompt(command: list[str], folder: str, updates: int) -> Times:
    """Return the times of a prompt; the editor parses each line, as editors do."""
    all_seen = Path(folder, "all seen")
    all_seen.unlink(missing_ok=True)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        clock = (~process.pid << 3) | 2  # of the process, in Linux

        def send(identity: int, method: str, params: Mapping[str, object]) -> None:
            message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]

        def receive() -> Mapping[str, object]:
            return json.loads(process.stdout.readline())  # type: ignore[union-attr, no-any-return]

        prompt = {"sessionId": "session-1", "prompt": [{"type": "text", "text": "go"}]}
        send(1, "initialize", {"protocolVersion": 1})
        send(2, "session/new", {"cwd": folder, "mcpServers": []})
        while receive().get("id") != 2:
            pass
        send(3, "session/prompt", prompt)  # waits until the gates of the session are recorded
        receive()
        start = time.perf_counter()
        send(4, "session/prompt", prompt)
        receive()
        used = time.clock_gettime(clock)
        for _ in range(updates - 1):
            receive()
        times = Times(time.perf_counter() - start, time.clock_gettime(clock) - used)
        all_seen.touch()
        receive()
        process.stdin.close()
    return times
