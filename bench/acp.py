"""The pipe of `turngate acp`: updates and cancellations through it, as ratios to the same agent without it."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

UPDATES = 10_000
ROUNDS = 5
AGENT = Path(__file__).resolve().parents[1] / "tests" / "acp" / "line_agent.py"
PROXY = [sys.executable, "-m", "turngate", "acp", "--"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TURNGATE_STATE"] = f"{folder}/state"
        script = Path(folder, "script.json")
        agent = [sys.executable, str(AGENT), str(script)]
        for name, steps in (
            (f"{UPDATES:,} updates", [["many", UPDATES], ["stop", "max_tokens"]]),
            ("a line of 10 MB", [["large", 10_000_000], ["stop", "max_tokens"]]),
        ):
            script.write_text(json.dumps([steps]))
            direct, proxied = [], []
            for _ in range(ROUNDS):
                direct.append(seconds_of_prompt(agent, folder))
                proxied.append(seconds_of_prompt([*PROXY, *agent], folder))
            bare, through = statistics.median(direct), statistics.median(proxied)
            print(f"acp: {name}: {through / bare:.2f} x the bare pipe ({through:.3f} s, {bare:.3f} s)")


def seconds_of_prompt(command: list[str], folder: str) -> float:
    """Return how long the editor waits for the end of a prompt; it parses each line, as editors do."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout

        def request(identity: int, method: str, params: dict[str, object]) -> None:
            message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            for line in process.stdout:  # type: ignore[union-attr]
                if json.loads(line).get("id") == identity:
                    return

        request(1, "initialize", {"protocolVersion": 1})
        request(2, "session/new", {"cwd": folder, "mcpServers": []})
        time.sleep(1)  # the gates of the session are recorded
        start = time.perf_counter()
        prompt = [{"type": "text", "text": "go"}]
        request(3, "session/prompt", {"sessionId": "session-1", "prompt": prompt})
        seconds = time.perf_counter() - start
        process.stdin.close()
    return seconds


if __name__ == "__main__":
    main()
