"""The workflow of document 003 in a temporary project, offline: a script plays the models, everything else is real.

Run it: python examples/feature-workflow/run.py
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # also if it is imported
from install import HERE, install

STEPS = (
    ("plan", ("-p", "/plan text functions", "--session", "plan")),
    ("implement", ("-p", "yes", "--resume", "--session", "plan")),
)


def turngate(project: Path, script: str, *words: str) -> int:
    print(f"\n$ turngate run {shlex.join(words)}", flush=True)
    model = f"scripted:{HERE / 'scripts' / script}.json"
    # --trust: the hooks are those of this example. In your project, `turngate hooks approve` shows them first.
    options = (
        "--project",
        str(project),
        "--model",
        model,
        "--allow",
        "Write",
        "--allow",
        "Edit",
        "--allow",
        "Bash",
        "--trust",
    )
    command = [sys.executable, "-m", "turngate", "run", *options, *words]
    environ = {**os.environ, "HOOK_STATE": f"{project}-state", "TURNGATE_STATE": f"{project}-state"}
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(command, env=environ, check=False).returncode


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        install(project)
        for script, words in STEPS:
            print(f"exit code {turngate(project, script, *words)}")
        print(f"\n{(project / 'docs/plans/text/MEMORY.md').read_text()}", end="")


if __name__ == "__main__":
    main()
