"""Ctrl-C while the program starts, as a real process that gets the signal at a known moment."""

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.timeouts import HANG_TIMEOUT_S

# Sends the signal when a module is looked for, and again and again afterwards.
SITE = """
import os, signal, sys

class Interrupt:
    found = False

    def find_spec(self, name, path=None, target=None):
        self.found |= name == {module!r}
        if self.found:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
"""
SCRIPT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["turngate"].split(":")
PROGRAMS = {
    "module": ["-m", "turngate"],
    "script": ["-c", f"import sys\nfrom {SCRIPT[0]} import {SCRIPT[1]}\nsys.exit({SCRIPT[1]}())"],
}
MODULES = [
    "turngate.cli.main",
    "argparse",
    "turngate.cli.arguments",
    "turngate.cli.console.streams",
    "turngate.cli.commands.check",
    "turngate.settings.load",
    "turngate.core.hooks.kinds",
]


def interrupted(tmp_path: Path, program: str, module: str, ignored: bool = False) -> tuple[int, str, str]:
    (tmp_path / "sitecustomize.py").write_text(SITE.format(module=module))
    done = subprocess.run(
        [sys.executable, *PROGRAMS[program], "check", "--project", str(tmp_path)],
        env={"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignored else None,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("module", MODULES)
def test_an_interrupt_while_modules_load_ends_the_program_quietly(
    tmp_path: Path, program: str, module: str
) -> None:
    assert interrupted(tmp_path, program, module) == (130, "", "")


def test_an_interrupt_that_the_caller_ignores_stays_ignored(tmp_path: Path) -> None:
    code, out, err = interrupted(tmp_path, "module", "argparse", ignored=True)
    assert (code, out.startswith("no settings"), err) == (0, True, "")


END = """
import atexit, sys, threading, time
from turngate.__main__ import end_process
class Late:
    def __del__(self):
        print("freed", flush=True)
late = Late()
atexit.register(print, "at exit")
{more}
print("output")
sys.exit(end_process(5))
"""


@pytest.mark.parametrize(
    ("more", "out"),
    [
        ("", "output\nat exit\n"),
        ("threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", "output\nat exit\n"),
        (
            "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()",
            "output\nthread\nat exit\nfreed\n",
        ),
    ],
    ids=["nothing is left", "a daemon thread", "a thread to wait for"],
)
def test_the_process_ends_without_freeing_its_objects_unless_a_thread_has_to_end_first(
    more: str, out: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", END.format(more=more)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (5, out, "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_module_of_the_project_does_not_replace_one_that_turngate_imports(
    project: Path, program: str
) -> None:
    (project / "json.py").write_text("raise SystemExit(3)\n")
    done = subprocess.run(
        [sys.executable, *PROGRAMS[program], "check"],
        cwd=project,
        env={"PYTHONPATH": str(project), "HOME": str(project.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    assert (done.returncode, done.stdout.startswith("no settings"), done.stderr) == (0, True, "")
