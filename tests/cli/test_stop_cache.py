"""A stop that is answered without the engine: nothing is configured."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings
from turngate.cli.main import main
from turngate.cli.project import nothing_is_configured
from turngate.project.files import LOCAL
from turngate.settings.paths import script_files, settings_files

DIALECTS = ["turngate", "mux", "claude", "host"]


def configuration(project: Path, dialect: str) -> list[Path]:
    scripts = [file for _, file in script_files(str(project), dialect)]
    return [Path(file.path) for file in (*settings_files(str(project), dialect, files=LOCAL), *scripts)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_file_that_may_hold_a_hook_is_looked_for(project: Path, home: Path, dialect: str) -> None:
    assert nothing_is_configured(str(project), dialect)
    for path in configuration(project, dialect):
        if not path.is_relative_to(project) and not path.is_relative_to(home):
            continue  # of the administrator
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("nowhere")  # also what cannot be read is left to the engine, which reports it
        assert not nothing_is_configured(str(project), dialect), path
        path.unlink()
    assert nothing_is_configured(str(project), dialect)


def test_an_approved_hook_that_is_gone_is_left_to_the_engine(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    assert main(["hooks", "approve", "--all", "--yes", "--project", str(project)]) == 0
    (project / ".turngate" / "settings.json").unlink()
    assert not nothing_is_configured(str(project), "host")


@pytest.mark.parametrize("words", [["fire", "Stop"], ["hook"]])
def test_it_loads_neither_the_engine_nor_asyncio(project: Path, words: list[str]) -> None:
    slow = ["asyncio", "typing", "turngate.engine"]
    slow += ["dataclasses"] if sys.version_info < (3, 14) else []  # argparse loads it since then
    code = (
        f"import sys; from turngate.cli.main import main; main({words});"
        f"print([m for m in {slow} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        input='{"hook_event_name": "Stop", "session_id": "s"}',
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
