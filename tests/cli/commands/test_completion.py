"""`turngate completion`: a real shell completes with the script."""

import shutil
import subprocess

import pytest

from tests.support.cli import turngate
from turngate.cli.main import COMMANDS

COMPLETE = """
COMP_WORDS=({words}) COMP_CWORD={number}
_turngate
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def script(shell: str) -> str:
    code, out, err = turngate("completion", shell)
    assert (code, err) == (0, "")
    return out


def complete(*words: str) -> list[str]:
    """Return what bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in ("turngate", *words))
    text = script("bash") + COMPLETE.format(words=quoted, number=len(words))
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("",), [*COMMANDS, "--help", "--version"]),
        (("ho",), ["hooks", "hook"]),
        (("hooks", "a"), ["approve"]),
        (("hooks", "approve", "--a"), ["--all"]),
        (("gates", "run", "--f"), ["--format"]),
        (("gates", "--project", ".", "run", "--f"), ["--format"]),
        (("gate", "no"), ["notify", "no-stubs"]),
        (("install", "co"), ["codex", "copilot"]),
        (("fire", "Sub"), ["SubagentStop", "SubagentStart"]),
        (("fire", "Stop", "no-such"), []),
    ],
)
def test_bash_completes_commands_actions_and_options(words: tuple[str, ...], offered: list[str]) -> None:
    assert complete(*words) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_shell_reads_its_script(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=script(shell), text=True, check=True)


def test_the_script_for_fish_names_every_command() -> None:
    text = script("fish")
    assert [name for name in COMMANDS if f"-n '__fish_use_subcommand' -a {name} -d '" not in text] == []


def test_fish_expects_a_value_only_where_an_option_takes_one() -> None:
    lines = [
        line
        for line in script("fish").splitlines()
        if "from hooks && __fish_seen_subcommand_from approve'" in line
    ]
    options = {line.split(" -l ")[1].split()[0]: " -r -F " in line for line in lines if " -l " in line}
    assert (options["all"], options["yes"], options["project"]) == (False, False, True)


def test_an_unknown_shell_is_refused_with_those_that_are_known() -> None:
    code, out, err = turngate("completion", "csh")
    assert (code, out, "(choose from" in err) == (64, "", True)
