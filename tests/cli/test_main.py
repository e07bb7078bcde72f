import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from turngate.cli.commands import check
from turngate.cli.main import main
from turngate.settings.json_schema import SCHEMAS


@pytest.mark.parametrize(
    "words", [["nonsense"], ["fire"], ["fire", "Nothing"], ["fire", "Stop", "--odd"], ["check", "x"]]
)
def test_wrong_usage_is_64_one_line_and_never_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = main(words)
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n"), err.startswith("turngate: "), "--help" in err) == (
        64,
        "",
        1,
        True,
        True,
    )


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([])
    assert (code, capsys.readouterr().err.splitlines()[0]) == (
        64,
        "usage: turngate [-h] [--version] COMMAND ...",
    )


@pytest.mark.parametrize("command", ["check", "fire", "schema"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert (ended.value.code, capsys.readouterr().out.startswith(f"usage: turngate {command}")) == (0, True)


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"turngate {version('turngate')}\n"


def test_an_internal_error_is_70_and_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(_: object) -> int:
        raise RuntimeError("a bug\nof ours")

    monkeypatch.setattr(check, "run", breaks)
    assert (main(["check"]), capsys.readouterr().err) == (
        70,
        "turngate: internal error: RuntimeError: a bug of ours; set TURNGATE_DEBUG=1 for the traceback\n",
    )


@pytest.mark.parametrize("name", list(SCHEMAS))
def test_a_schema_is_printed_by_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["schema", name]), json.loads(capsys.readouterr().out)) == (0, SCHEMAS[name]())


def test_without_a_name_all_schemas_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["schema"]), list(json.loads(capsys.readouterr().out))) == (0, list(SCHEMAS))


def test_a_stop_without_hooks_loads_neither_the_engine_nor_asyncio(project: Path) -> None:
    code = (
        "import sys; from turngate.cli.main import main; main(['fire', 'Stop']);"
        "print(sorted(m for m in sys.modules if m in ('asyncio', 'dataclasses', 'turngate.engine', 'typing')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
