import argparse
import inspect
import json
import os
import platform
import pwd
import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.cli import TURNGATE
from tests.support.paths import ROOT
from turngate.cli.arguments import Parser, build_parser
from turngate.cli.commands import check
from turngate.cli.main import COMMANDS, main
from turngate.core.constants import DOCUMENTATION
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


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["check", "foo"], "unrecognized arguments: foo; see `turngate check --help`"),
        (["check", "--odd words"], "unrecognized arguments: --odd words; see `turngate check --help`"),
        (["chekc"], "argument COMMAND: chekc is unknown; did you mean check?; see `turngate --help`"),
        (["fire", "Stpo"], "argument EVENT: Stpo is unknown; did you mean Stop?; see `turngate fire --help`"),
        (
            ["gates", "run", "--jsn"],
            "unrecognized option --jsn; did you mean --json?; see `turngate gates --help`",
        ),
        (
            ["hooks", "--projct", "."],
            "unrecognized option --projct; did you mean --project?; see `turngate hooks --help`",
        ),
        (
            ["run", "-p", "hi", "--modle=x"],
            "unrecognized option --modle; did you mean --model?; see `turngate run --help`",
        ),
        (["fier", "Stop"], "; did you mean fire?; see `turngate --help`"),
    ],
)
def test_wrong_usage_points_to_the_command_or_to_the_closest_name(
    words: list[str], end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 64
    assert capsys.readouterr().err.endswith(f"{end}\n")


@pytest.mark.parametrize("place", [["--ssh", "build:src/app"], ["--ssh=build:src/app"]])
@pytest.mark.parametrize(
    ("words", "command", "hint"),
    [
        (
            ["check"],
            "check",
            "it looks for programs and scripts here: run it there, or read what `turngate hooks --ssh` reports",
        ),
        (
            ["doctor"],
            "doctor",
            "it looks for programs and copies projects here: run it there, or `turngate gates run --ssh` here",
        ),
        (["init"], "init", "it looks for programs and writes files here: run it there"),
        (["install"], "install", "it writes the settings of agent programs here: run it there"),
        (["uninstall"], "uninstall", "it writes the settings of agent programs here: run it there"),
        (["runs"], "runs", "leave --ssh out"),
        *(
            (
                [command],
                command,
                "name a project on another machine as `turngate sessions` lists it: --project ssh://…",
            )
            for command in ("log", "sessions")
        ),
    ],
)
def test_a_command_without_ssh_says_that_it_works_on_this_machine_only(
    words: list[str], command: str, hint: str, place: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *place]) == 64
    assert capsys.readouterr().err == f"turngate: `turngate {command}` works on this machine only; {hint}\n"


@pytest.mark.parametrize("words", [["hook"], ["gate", "tests"], ["gate"]], ids=" ".join)
def test_what_agent_programs_run_works_on_this_machine_only(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"turngate {words[0]}"
    hint = "ask the hooks of a project there with `turngate gates run --ssh` or `turngate fire --ssh`"
    assert main([*words, "--ssh", "build:src/app"]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"{name}: `{name}` works on this machine only; {hint}"


def test_ssh_behind_two_dashes_is_not_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--", "--ssh"]) == 64
    expected = "turngate: unrecognized arguments: -- --ssh; see `turngate check --help`\n"
    assert capsys.readouterr().err == expected


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([])
    assert (code, capsys.readouterr().err.splitlines()[0]) == (
        64,
        "usage: turngate [-h] [--version] COMMAND ...",
    )


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    extras = "agent, pydantic-ai, claude, ssh, postgres"  # all are installed for the tests
    assert capsys.readouterr().out == (
        f"turngate {version('turngate')} (Python {platform.python_version()}; extras: {extras})\n"
    )


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


def help_words() -> list[list[str]]:
    """Return the words of every command and of every action of a command."""
    return [[command, *action] for command in COMMANDS for action in ([], *actions_of(command))]


def actions_of(command: str) -> list[list[str]]:
    return [
        [name] for name in subparsers(subparsers(build_parser([command], COMMANDS)).get(command, Parser()))
    ]


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return {
        name: each
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, each in action.choices.items()
    }


@pytest.mark.parametrize("words", help_words(), ids=" ".join)
def test_every_command_and_action_explains_itself(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    usage, out = f"usage: turngate {' '.join(words)} ", capsys.readouterr().out
    teaches = [title for title in ("\nExamples:\n", "\nExit codes:\n  0   ") if title in out]
    assert (ended.value.code, out.startswith(usage)) == (0, True)
    assert len(teaches) == 2 or (len(words) == 2 and len(teaches) == 1)  # an action: exit codes only


def test_the_first_steps_name_how_other_programs_ask_the_gates(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    steps = capsys.readouterr().out.partition("First steps:\n")[2].split("\n\n")[0]
    named = [line.split()[1] for line in steps.splitlines()]
    assert named == ["demo", "init", "install", "status", "gates", "doctor"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_complete(command: str) -> None:
    lacks = [*missing(command)]
    assert not lacks, "\n  ".join((f"the command {command!r} lacks:", *lacks))


def missing(command: str) -> Iterator[str]:
    name, summary = COMMANDS[command]
    if not summary:
        yield "a summary in COMMANDS of cli/main.py"
    if find_spec(f"turngate.cli.commands.{name}") is None:
        yield f"a module: src/turngate/cli/commands/{name}.py"
        return
    if command == "gate":
        return
    module = import_module(f"turngate.cli.commands.{name}")
    run = getattr(module, "run", None)
    if command != "hook" and not inspect.isfunction(getattr(module, "declare", None)):
        yield "a function `declare(parser)`, which adds the arguments"
    if not inspect.isfunction(run) or inspect.iscoroutinefunction(run):
        yield "a plain function `run`, not async"
        return
    signature = inspect.signature(run, eval_str=True)
    options = list[str] if command == "hook" else argparse.Namespace
    if [each.annotation for each in signature.parameters.values()] != [options]:
        yield f"one parameter of `run`: {options}"
    if signature.return_annotation is not int:
        yield "the exit code as the result of `run`: -> int"


@pytest.mark.parametrize("home", ["", "relative"])
def test_a_home_without_a_full_path_is_the_folder_of_the_account(home: str, project: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "TURNGATE_STATE"}
    done = subprocess.run(
        [*TURNGATE, "doctor"],
        cwd=project,
        env={**environ, "HOME": home},
        capture_output=True,
        text=True,
        check=True,
    )
    folder = pwd.getpwuid(os.getuid()).pw_dir
    assert f"\nstate folder: {folder}/.local/state/turngate, " in done.stdout


def test_messages_name_pages_of_the_documentation_by_their_addresses() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert metadata["project"]["urls"]["Documentation"] == DOCUMENTATION
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    pages = re.findall(r"\{DOCUMENTATION\}/([\w/.-]+)", sources)
    assert pages
    assert [page for page in pages if not (ROOT / "docs" / page).is_file()] == []


def test_every_help_has_examples_in_columns() -> None:
    """As docs/reference/cli.md shows them, which another test compares with the parsers."""
    pages = re.findall(
        r"^## (turngate[^\n]*)\n\n```text\n(.*?)^```",
        (ROOT / "docs/reference/cli.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert len(pages) > len(COMMANDS)
    wrong = []
    for name, text in pages[1:]:
        examples = text.partition("\nExamples:\n")[2].partition("\n\n")[0].splitlines()
        described = [re.match(r"  (?:turngate|echo) .*?\S {3,}(?=\S)", line) for line in examples]
        columns = {found.end() for found in described if found}
        if not examples or len(columns) > 1:
            wrong.append((name, columns))
    assert wrong == []
