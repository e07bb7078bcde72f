"""The pipe of `turngate acp`: what an agent sends through it, as a ratio to the same agent without it."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.measure import Row

UPDATES = 10_000
ROUNDS = 7
END = ["stop", "max_tokens"]  # no gate is asked
AGENT = Path(__file__).resolve().parents[1] / "tests" / "acp" / "line_agent.py"
PROXY = [sys.executable, "-m", "turngate", "acp", "--"]


def pipe() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TURNGATE_STATE"] = f"{folder}/state"
        script = Path(folder, "script.json")
        agent = [sys.executable, str(AGENT), str(script)]
        rows = []
        for what, steps, bound in (
            (f"{UPDATES:,} updates", ["many", UPDATES], 1.3),
            ("a line of 10 MB", ["large", 10_000_000], 4),
        ):
            script.write_text(json.dumps([[END], [steps, END]]))
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(ROUNDS):
                for durations, command in zip(times, ([*PROXY, *agent], agent), strict=True):
                    durations.append(seconds_of_prompt(command, folder))
            ours, floor = map(statistics.median, times)
            rows.append(Row(f"turngate acp: {what} / without it", ours, floor, max_ratio=bound))
        return rows


def seconds_of_prompt(command: list[str], folder: str) -> float:
    """Return how long the editor waits for the end of a prompt; it parses each line, as editors do."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout

        def request(identity: int, method: str, params: Mapping[str, object]) -> None:
            message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            for line in process.stdout:  # type: ignore[union-attr]
                if json.loads(line).get("id") == identity:
                    return

        request(1, "initialize", {"protocolVersion": 1})
        request(2, "session/new", {"cwd": folder, "mcpServers": []})
        prompt = {"sessionId": "session-1", "prompt": [{"type": "text", "text": "go"}]}
        request(3, "session/prompt", prompt)  # waits until the gates of the session are recorded
        start = time.perf_counter()
        request(4, "session/prompt", prompt)
        seconds = time.perf_counter() - start
        process.stdin.close()
    return seconds
