"""The session's own time, compared with the raw spawn of its hook."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from bench.measure import Row, interleaved
from turngate import CommandHook, Rule, Settings
from turngate.agent.session import Session
from turngate.core.conversation.messages import ModelRequest, Reply, Text
from turngate.transcript.reader import read_last_assistant_message

CLOCK = "/bin/date +%s.%N"  # prints when it was started


class TimestampModel:
    """Replies at once and keeps the times of each request and reply."""

    name = "bench:timestamp"
    context = 200_000

    def __init__(self) -> None:
        self.requested: list[float] = []
        self.replied: list[float] = []

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        self.requested.append(time.time())
        reply = Reply((Text("done"),))
        self.replied.append(time.time())
        return reply

    async def close(self) -> None:
        pass


def stop_hook_latency() -> list[Row]:
    """Block every stop once: the hook's time stamp falls between two requests."""
    before, after, raw = asyncio.run(_measure_stops(60))
    return [
        Row(
            "model's last byte to the hook's first instruction / raw spawn of that hook",
            before,
            raw,
            max_ratio=3,
        ),
        Row("the hook's exit to the next model request / 5 ms", after, 0.005, max_ratio=1),
    ]


async def _measure_stops(count: int) -> tuple[float, float, float]:
    before, after, raw = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        model, stamps = TimestampModel(), os.path.join(folder, "stamps")
        direct = CommandHook(os.path.join(folder, "hook"))
        with open(direct.command, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{CLOCK} >> {stamps}\necho more >&2\nexit 2\n")
        os.chmod(direct.command, 0o700)
        settings = Settings(rules=(Rule("Stop", direct),), limit=1)
        async with Session(folder, model, settings, state=os.path.join(folder, "state")) as session:
            for _ in range(count):
                await session.send("go")
                started = time.time()
                subprocess.run([direct.command], capture_output=True, check=False)
                with open(stamps, encoding="ascii") as file:
                    first, _, alone = [float(line) for line in file.read().split()[-3:]]
                before.append(first - model.replied[-2])
                after.append(model.requested[-1] - first)
                raw.append(alone - started)
    return statistics.median(before), statistics.median(after), statistics.median(raw)


def last_assistant_message() -> Row:
    with tempfile.TemporaryDirectory() as folder:
        small, large = (_write_transcript(os.path.join(folder, f"{size}.jsonl"), size) for size in (1, 1024))
        ours, floor = interleaved(
            lambda: read_last_assistant_message(large),
            lambda: read_last_assistant_message(small),
            rounds=51,
            inner=20,
        )
    return Row("last assistant message from a 1 GB transcript / from a 1 MB one", ours, floor, max_ratio=2)


def _write_transcript(path: str, megabytes: int) -> str:
    message = {"role": "assistant", "content": [{"type": "text", "text": "x" * 900}]}
    line = json.dumps({"type": "assistant", "message": message}, separators=(",", ":")) + "\n"
    block = (line * (1024 * 1024 // len(line))).encode()
    with open(path, "wb") as file:
        file.writelines(block for _ in range(megabytes))
    return path


def concurrent_sessions() -> Row:
    times: dict[int, list[float]] = {1: [], 200: []}
    for _ in range(3):
        for count, durations in times.items():
            started = time.perf_counter()
            asyncio.run(_run_sessions(count))
            durations.append(time.perf_counter() - started)
    ours, floor = (statistics.median(times[count]) for count in (200, 1))
    return Row(
        "200 sessions at once, each blocked once by a 100 ms hook / one alone", ours, floor, max_ratio=12
    )


async def _run_sessions(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = 'sleep 0.1; [ "$TURNGATE_STOP_HOOK_ACTIVE" = true ] || { echo more >&2; exit 2; }'
        settings = Settings(rules=(Rule("Stop", CommandHook(command)),))

        async def one(number: int) -> None:
            state = os.path.join(folder, str(number))
            async with Session(folder, TimestampModel(), settings, state=state) as session:
                result = await session.send("go")
                assert (result.outcome, result.continuations) == ("completed", 1), result

        await asyncio.gather(*(one(number) for number in range(count)))


def run_without_hooks() -> Row:
    turngate = os.path.join(os.path.dirname(sys.executable), "turngate")
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "script.json")
        with open(script, "w", encoding="utf-8") as file:
            file.write('{"main": ["done"]}')
        env = {**os.environ, "HOME": folder, "TURNGATE_STATE": folder}
        command = [turngate, "run", "-p", "go", "--model", f"scripted:{script}"]

        def ours() -> None:
            subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)

        def floor() -> None:
            subprocess.run([sys.executable, "-c", "import pydantic_ai"], check=True)

        a, b = interleaved(ours, floor, rounds=11)
    return Row(
        'turngate run -p with a script and no hook / python -c "import pydantic_ai"', a, b, max_ratio=0.6
    )
