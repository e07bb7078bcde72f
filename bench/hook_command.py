"""`turngate hook` as a whole process: without any hook, with a gate that has passed, and with hooks that run `true`."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

from bench.gates import SCRIPT, make_repository
from bench.measure import Row, interleaved

OLD_ENOUGH_S = 2.1  # settings that were changed less long ago may be changed again without a new time
GATE = {"type": "gate", "command": "true"}
COMMAND = {"type": "command", "command": "true"}


def hook_of_a_host() -> list[Row]:
    """Compare with Python's own start."""
    return [
        _row("with no hook", None, max_ratio=2.5),
        _row("with one gate that has passed", GATE, max_ratio=4),
        _row("with a command hook `true`", COMMAND, max_ratio=5),
        _row("with a gate that runs `true`", GATE, is_new_session=True, max_ratio=10),
    ]


def _row(what: str, hook: dict[str, str] | None, *, is_new_session: bool = False, max_ratio: float) -> Row:
    """`is_new_session`: each stop is that of another session, so nothing has passed yet."""
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "turngate")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        project = make_repository(folder, 20)
        if hook:
            _write_settings(project, {"hooks": {"Stop": [{"hooks": [hook]}]}})
            time.sleep(OLD_ENOUGH_S)
        env = {**os.environ, "HOME": folder, "TURNGATE_STATE": f"{folder}/state", "TURNGATE_TRUST": "1"}
        fields = {"session_id": "s", "turn_id": "t", "model": "m", "cwd": project, "hook_event_name": "Stop"}
        numbers = itertools.count()

        def ours() -> None:
            session = {"session_id": f"s{next(numbers)}"} if is_new_session else {}
            done = subprocess.run(
                [sys.executable, script, "hook"],
                input=json.dumps({**fields, **session}).encode(),
                cwd=project,
                env=env,
                stdout=subprocess.PIPE,
                check=True,
            )
            assert done.stdout == b""

        def floor() -> None:
            subprocess.run([sys.executable, "-I", "-c", "pass"], input=b"", cwd=project, env=env, check=True)

        medians = interleaved(ours, floor, rounds=41)
    return Row(f"turngate hook {what}, whole process / python -I -c pass", *medians, max_ratio=max_ratio)


def _write_settings(project: str, settings: dict[str, object]) -> None:
    os.mkdir(os.path.join(project, ".turngate"))
    with open(os.path.join(project, ".turngate", "settings.json"), "w", encoding="utf-8") as file:
        json.dump(settings, file)
