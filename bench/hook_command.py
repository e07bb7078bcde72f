"""`turngate hook` as a whole process: without any hook, with a gate that has passed, and with hooks that run `true`."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

from bench.gates import FILES, SCRIPT, make_repository
from bench.measure import Row, interleaved, processor_time

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
        project = make_repository(folder, 20)
        if hook:
            _write_settings(project, {"hooks": {"Stop": [{"hooks": [hook]}]}})
            time.sleep(OLD_ENOUGH_S)
        numbers = itertools.count()

        def ours() -> None:
            _ask(project, f"s{next(numbers)}" if is_new_session else "s")

        def floor() -> None:
            subprocess.run([sys.executable, "-I", "-c", "pass"], input=b"", cwd=project, check=True)

        medians = interleaved(ours, floor, rounds=41)
    return Row(f"turngate hook {what}, whole process / python -I -c pass", *medians, max_ratio=max_ratio)


def stop_in_a_large_project() -> list[Row]:
    """Compare the processor time of a stop that the cache answers, and of a first stop after an edit, with that of `git status`."""
    with tempfile.TemporaryDirectory() as folder:
        project = make_repository(folder, FILES)
        _write_settings(project, {"hooks": {"Stop": [{"hooks": [GATE]}]}})
        _ask(project, "s", "SessionStart")
        time.sleep(OLD_ENOUGH_S)
        _ask(project, "s")

        numbers = itertools.count()
        session = "s"

        def edit() -> None:
            nonlocal session
            number = next(numbers)
            session = f"s{number}"
            _ask(project, session, "SessionStart")
            path = f"{project}/f{number * 50}/1.txt"
            for edited, line in ((path, "changed"), (_transcript(project), json.dumps({"file_path": path}))):
                with open(edited, "a", encoding="utf-8") as file:
                    file.write(f"{line}\n")
            time.sleep(OLD_ENOUGH_S)

        def ours() -> None:
            _ask(project, session)

        def floor() -> None:
            subprocess.run(["git", "status"], cwd=project, stdout=subprocess.DEVNULL, check=True)

        cached = interleaved(ours, floor, rounds=11, clock=processor_time)
        first = interleaved(ours, floor, rounds=5, clock=processor_time, prepare=edit)
    what = f"{FILES:,} files, processor time / git status"
    return [
        Row(f"turngate hook with one gate that has passed, {what}", *cached, max_ratio=1.5),
        Row(f"turngate hook at the first stop, after an edit, {what}", *first, max_ratio=3),
    ]


def _ask(project: str, session: str, event: str = "Stop") -> None:
    """Run `turngate hook` as a host does; nothing blocks."""
    folder = os.path.dirname(project)
    script = os.path.join(folder, "turngate")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    fields = {"session_id": session, "turn_id": "t", "model": "m", "cwd": project, "hook_event_name": event}
    fields["transcript_path"] = _transcript(project)
    env = {**os.environ, "HOME": folder, "TURNGATE_STATE": f"{folder}/state", "TURNGATE_TRUST": "1"}
    done = subprocess.run(
        [sys.executable, script, "hook"],
        input=json.dumps(fields).encode(),
        cwd=project,
        env=env,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout == b""


def _transcript(project: str) -> str:
    return f"{os.path.dirname(project)}/transcript.jsonl"


def _write_settings(project: str, settings: dict[str, object]) -> None:
    os.mkdir(os.path.join(project, ".turngate"))
    with open(os.path.join(project, ".turngate", "settings.json"), "w", encoding="utf-8") as file:
        json.dump(settings, file)
