"""`turngate hook` as a whole process: without any gate, and with one that has passed for these files."""

import json
import os
import subprocess
import sys
import tempfile
import time

from bench.gates import SCRIPT, make_repository
from bench.measure import Row, interleaved

OLD_ENOUGH_S = 2.1  # a file that was changed less long ago may be changed again without a new time


def hook_of_a_host() -> list[Row]:
    """Compare with Python's own start."""
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "turngate")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        project = make_repository(folder, 20)
        env = {
            **os.environ,
            "HOME": folder,
            "TURNGATE_STATE": os.path.join(folder, "state"),
            "TURNGATE_TRUST": "1",
        }
        fields = {"session_id": "s", "turn_id": "t", "model": "m", "cwd": project, "hook_event_name": "Stop"}

        def ours() -> None:
            done = subprocess.run(
                [sys.executable, script, "hook"],
                input=json.dumps(fields).encode(),
                cwd=project,
                env=env,
                stdout=subprocess.PIPE,
                check=True,
            )
            assert done.stdout == b""

        def floor() -> None:
            subprocess.run([sys.executable, "-I", "-c", "pass"], input=b"", cwd=project, env=env, check=True)

        without = interleaved(ours, floor, rounds=41)
        _add_gate(project)
        time.sleep(OLD_ENOUGH_S)
        with_gate = interleaved(ours, floor, rounds=41)
    return [
        Row("turngate hook with no gate, whole process / python -I -c pass", *without, max_ratio=2.5),
        Row("turngate hook with one cached gate, whole process / python -I -c pass", *with_gate, max_ratio=4),
    ]


def _add_gate(project: str) -> None:
    os.mkdir(os.path.join(project, ".turngate"))
    settings = {"hooks": {"Stop": [{"hooks": [{"type": "gate", "command": "true"}]}]}}
    with open(os.path.join(project, ".turngate", "settings.json"), "w", encoding="utf-8") as file:
        json.dump(settings, file)
