"""`make cluster`: three workers and a parent on one PostgreSQL, with scripted models; it ends by itself.

It shows `turngate runs --watch` while the parent's six subagents run, each redirected once by a gate.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from turngate.cli.commands.worker.local_postgres import local_postgres

WORKERS, SUBAGENTS = 3, 6
TURNGATE = (sys.executable, "-m", "turngate")
GATE = {
    "type": "command",
    "command": 'test "$TURNGATE_STOP_HOOK_COUNT" != 0 || { echo "check it again" >&2; exit 2; }',
}
TASK = {
    "tool": "Task",
    "input": {"description": "count", "prompt": "count the lines", "run_in_background": True},
}
WORK = [{"text": "a first answer", "delay": 1.5}, {"text": "a second answer", "delay": 1}]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="turngate-cluster-") as folder, local_postgres() as url:
        project, script = Path(folder) / "project", Path(folder) / "model.json"
        (project / ".turngate").mkdir(parents=True)
        hooks = {"SubagentStop": [{"hooks": [GATE]}]}
        (project / ".turngate" / "settings.json").write_text(json.dumps({"hooks": hooks}))
        script.write_text(json.dumps({"main": [*[TASK] * SUBAGENTS, "all of them are done"], "sub": WORK}))
        common = ("--project", str(project), "--model", f"scripted:{script}", "--trust")

        def start(state: str, *words: str) -> "subprocess.Popen[bytes]":
            """Start a program with a state folder of its own, as on a machine of its own."""
            environ = {
                **os.environ,
                "HOME": folder,
                "TURNGATE_STATE": f"{folder}/{state}",
                "TURNGATE_REGISTRY": url,
            }
            return subprocess.Popen([*TURNGATE, *words], env=environ)

        workers = [start(f"worker{number}", "worker", "--slots", "2", *common) for number in range(WORKERS)]
        watch = start("parent", "runs", "--watch")
        code = start("parent", "run", "-p", "count", "--subagents", "workers", *common).wait()
        start("parent", "workers").wait()
        for process in (watch, *workers):
            process.send_signal(signal.SIGTERM)
        drained = [process.wait() for process in workers]
        watch.wait()
        print(f"the parent ended with {code}, the workers with {drained}")
    return code or max(drained)


if __name__ == "__main__":
    sys.exit(main())
