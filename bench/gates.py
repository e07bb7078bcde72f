"""Gates: an answer from the cache as a whole process, and the state of a large tree."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from bench.measure import Row, interleaved
from turngate.gates.local_tree_state import local_tree_state

SCRIPT = "import sys\nfrom turngate.__main__ import main\nsys.exit(main())\n"
# What people write instead: it passes whenever the flag is set.
JQ_HOOK = '[ "$(jq -r .stop_hook_active)" = true ] && exit 0; exit 0'
FILES = 50_000
FILES_PER_FOLDER = 100


def cached_answer() -> list[Row]:
    """Compare `turngate gate -- true` with Python's own start, and with a hook of bash and jq."""
    with tempfile.TemporaryDirectory() as folder:
        project = make_repository(folder, 20)
        script = os.path.join(folder, "turngate")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        fields = {"session_id": "s", "cwd": project, "hook_event_name": "Stop", "stop_hook_active": False}
        env = {**os.environ, "HOME": folder, "TURNGATE_STATE": os.path.join(folder, "state")}
        floors = {"python -I -S -c pass": ([sys.executable, "-I", "-S", "-c", "pass"], 4.0)}
        if shutil.which("bash") and shutil.which("jq"):
            floors["a hook of bash and jq that reads stop_hook_active"] = (["bash", "-c", JQ_HOOK], 1.4)
        else:
            print("bash or jq is not there: no comparison with a hook of both")

        def run(command: list[str]) -> None:
            done = subprocess.run(
                command,
                input=json.dumps(fields).encode(),
                cwd=project,
                env=env,
                stdout=subprocess.PIPE,
                check=True,
            )
            assert done.stdout in (b"", b"{}\n")

        gate = [sys.executable, script, "gate", "--", "true"]
        rows = []
        for name, (floor, max_ratio) in floors.items():
            a, b = interleaved(lambda: run(gate), lambda floor=floor: run(floor), rounds=41)  # type: ignore[misc]
            rows.append(
                Row(f"turngate gate -- true, cached, whole process / {name}", a, b, max_ratio=max_ratio)
            )
        return rows


def tree_state() -> Row:
    """Compare with `git status`; one file is changed and one is new."""
    with tempfile.TemporaryDirectory() as folder:
        project = make_repository(folder, FILES)
        for name in ("f0/0.txt", "new.txt"):
            with open(os.path.join(project, name), "w", encoding="utf-8") as file:
                file.write("changed\n")

        def find() -> None:
            assert local_tree_state(project, os.path.join(folder, "state"))

        def floor() -> None:
            subprocess.run(["git", "status"], cwd=project, stdout=subprocess.DEVNULL, check=True)

        a, b = interleaved(find, floor, rounds=11)
    return Row(f"state of {FILES:,} files, second time / git status", a, b, max_ratio=2)


def make_repository(folder: str, files: int) -> str:
    """Make a repository with this many files, in folders, all of them committed."""
    project = os.path.join(folder, "project")
    for number in range(files):
        name = os.path.join(project, f"f{number // FILES_PER_FOLDER}", f"{number % FILES_PER_FOLDER}.txt")
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "w", encoding="utf-8") as file:
            file.write(f"{number}\n" * 20)
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@example.org"]
    for words in (["init", "-q"], ["config", "gc.auto", "0"], ["add", "-A"], ["commit", "-q", "-m", "files"]):
        subprocess.run([*git, *words], cwd=project, check=True)
    return project
