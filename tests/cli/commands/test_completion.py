"""`turngate completion`: a real shell completes with the script."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.support.cli import turngate
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.main import COMMANDS

COMPLETE = """
COMP_WORDS=({words}) COMP_CWORD={number}
_turngate
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@cache
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
        (("gates", "run", "--format", ""), ["text", "json", "markdown", "github", "junit", "sarif"]),
        (("doctor", "--host", "co"), ["codex", "copilot"]),
        (("run", "--model", ""), []),  # any file
    ],
)
def test_bash_completes_commands_actions_and_options(words: tuple[str, ...], offered: list[str]) -> None:
    assert complete(*words) == offered


# An interactive zsh: the words that a Tab has completed are printed by a function that is called as the program.
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "autoload -U compinit; compinit -u -D; source $1; turngate() { print -r -- \\"=\\${(j:+:)@}=\\" }"
zpty -w shell "turngate $2"$'\\t'
setopt extended_glob
zpty -r -m shell printed '*=[a-z+-]##=*'
[[ $printed = (#b)*=([a-z+-]##)=* ]] && print -r -- $match[1]
"""


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("dem", "demo"),
        ("hooks app", "hooks approve"),
        ("hooks approve --a", "hooks approve --all"),
        ("gate no-", "gate no-stubs"),
        ("install cod", "install codex"),
        ("fire no-such", "fire no-such"),
        ("gates run --format sa", "gates run --format sarif"),
    ],
)
def test_a_tab_in_zsh_completes_the_word(tmp_path: Path, typed: str, completed: str) -> None:
    (tmp_path / "completion.zsh").write_text(script("zsh"))
    done = subprocess.run(
        ["zsh", "-f", "-c", ZSH, "zsh", str(tmp_path / "completion.zsh"), typed],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    assert (done.stdout.replace("+", " "), done.stderr) == (f"{completed}\n", "")


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ho", ["hook", "hooks"]),
        ("hooks a", ["approve"]),
        ("hooks approve --a", ["--all"]),
        ("gates --project . run --f", ["--format"]),
        ("gate no", ["no-stubs", "notify"]),
        ("install co", ["codex", "copilot"]),
        ("hooks approve l", []),
        ("gates run --tr", ["--trust"]),
        ("gates run --mod", []),
        ("run --mod", ["--model"]),
        ("fire Stop no-such", []),
        ("gates run --format s", ["sarif"]),
        ("doctor --host co", ["codex", "copilot"]),
    ],
)
def test_fish_offers_commands_actions_options_gates_and_hosts(
    tmp_path: Path, typed: str, offered: list[str]
) -> None:
    (tmp_path / "completion.fish").write_text(script("fish"))
    done = subprocess.run(
        ["fish", "-N", "-c", f"source completion.fish; complete -C 'turngate {typed}'"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (sorted(line.split("\t")[0] for line in done.stdout.splitlines()), done.stderr) == (offered, "")


def test_the_script_for_fish_names_every_command() -> None:
    text = script("fish")
    assert [name for name in COMMANDS if f"-n '__turngate_at' -a {name} -d '" not in text] == []


def test_fish_expects_a_value_only_where_an_option_takes_one() -> None:
    lines = [line for line in script("fish").splitlines() if "'__turngate_at hooks approve'" in line]
    options = {line.split(" -l ")[1].split()[0]: " -r -F " in line for line in lines if " -l " in line}
    assert (options["all"], options["yes"], options["project"]) == (False, False, True)


def test_an_unknown_shell_is_refused_with_those_that_are_known() -> None:
    code, out, err = turngate("completion", "csh")
    assert (code, out, "(choose from" in err) == (64, "", True)
