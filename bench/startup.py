"""Start of the whole process, and loading of settings."""

import json
import os
import subprocess
import sys
import tempfile

from bench.measure import Row, interleaved
from turngate import load_settings


def fire_without_hooks() -> Row:
    turngate = os.path.join(os.path.dirname(sys.executable), "turngate")
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "HOME": folder, "TURNGATE_STATE": folder}

        def ours() -> None:
            subprocess.run(
                [turngate, "fire", "Stop", "--trust"],
                cwd=folder,
                env=env,
                stdout=subprocess.DEVNULL,
                check=True,
            )

        def floor() -> None:
            subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)

        a, b = interleaved(ours, floor, rounds=41)
    return Row("turngate fire with no hook, whole process / python -I -S -c pass", a, b, max_ratio=5)


def load_many_hooks() -> Row:
    hooks = [{"type": "command", "command": f"make check-{n}", "timeout": 30} for n in range(1000)]
    data = json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}}, indent=2).encode()
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, ".turngate"))
        with open(os.path.join(folder, ".turngate", "settings.json"), "wb") as file:
            file.write(data)

        def ours() -> None:
            assert len(load_settings(folder, home="/nonexistent").rules) == 1000

        a, b = interleaved(ours, lambda: json.loads(data), rounds=101)
    return Row("loading settings with 1,000 hooks / json.loads of the same bytes", a, b, max_ratio=15)
