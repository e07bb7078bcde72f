"""Scripts that a command runs without naming them plainly. Each is changed, or added, after the approval."""

import os
import py_compile
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.measures import count_calls, cpu_limit, peak_memory
from tests.trust.support import EVIL, RUNS, approve_all, ask, command, make, said, write

PYTHON = sys.executable
BEGIN_SH = "#!/bin/sh\n"
GATE = f"{sys.executable} -m turngate gate"
PYTHON_EVIL = "open('evil', 'w')"
OF_THIS_FOLDER = 'DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\n'
OF_PARENT = 'cd "$(dirname "$0")/.." || exit 1\n'

Case = tuple[str, dict[str, str], str]  # the command, the files, and the one that is changed


def included(text: str, name: str = "hooks/lib.sh") -> Case:
    return "bash hooks/check.sh", {"hooks/check.sh": text + RUNS, name: ""}, name


def started(text: str) -> Case:
    return text, {"scripts/check.sh": BEGIN_SH + RUNS}, "scripts/check.sh"


SHELL: dict[str, Case] = {
    "from the folder of the script": included(f'{OF_THIS_FOLDER}source "$DIR/lib.sh"\n'),
    "from the folder above": included(f"{OF_PARENT}. ./lib.sh\n", "lib.sh"),
    "from a folder in an unknown one": included(
        'cd "$(git rev-parse --show-toplevel || pwd)/scripts"; . ./lib.sh\n', "scripts/lib.sh"
    ),
    "from a folder in a folder": started("cd . && cd scripts && ./check.sh"),
    "after pushd": started("bash -c 'pushd scripts; ./check.sh'"),
    "by a variable that the environment has too": started('CDPATH=scripts; sh "$CDPATH/check.sh"'),
    "by one of two values": started('x=other; x=scripts; sh "$x/check.sh"'),
    "in a loop over names": started("for x in other check; do sh scripts/$x.sh; done"),
    "in a loop over a pattern": started('for x in scripts/*.sh; do sh "$x"; done'),
    "by a name that is not known": started("read x; sh scripts/$x.sh; sh scripts/c*k.sh"),
    "by xargs": started("echo | xargs scripts/check.sh"),
    "by a ready-made gate": started(f"{GATE} -- scripts/check.sh"),
    "by a ready-made gate with options": started(f"{GATE} until --promise x -- 'sh scripts/check.sh'"),
    "by flock": started("flock lock sh scripts/check.sh"),
    "by setsid": started("setsid -w scripts/check.sh"),
    "by find": started("find . -maxdepth 0 -exec scripts/check.sh \\;"),
    "by env in another folder": started("env -C . scripts/check.sh"),
    "on a continued line": started("sh scripts/che\\\nck.sh"),
    "behind an escaped blank": started("true \\ # ; sh scripts/check.sh"),
    "behind a number sign on a continued line": started("echo !\\\n# ; sh scripts/check.sh"),
    "behind a value that is added": started("bash -c 'X+=1 scripts/check.sh'"),
    "by eval": started("eval 'sh scripts/check.sh'"),
    "by trap": started("trap 'sh scripts/check.sh' EXIT; true"),
    "as input": started("sh < scripts/check.sh"),
    "as input of -s": started("bash -s < scripts/check.sh"),
    "in a process substitution": started("bash -c 'cat <(sh scripts/check.sh)'"),
    "in quotes in a substitution": started('x="$(sh "$CLAUDE_PROJECT_DIR/scripts/check.sh" 2>&1)" || true'),
    "in a substitution in another one": started('echo "$(echo "$(sh scripts/check.sh)")"'),
    "as the interpreter of a script": (
        "scripts/start",
        {"scripts/start": "#!scripts/check.sh\n", "scripts/check.sh": BEGIN_SH + RUNS},
        "scripts/check.sh",
    ),
    "in place of one beside the script": (
        "sh hooks/check.sh",
        {"hooks/check.sh": f"[ -f ./lib.sh ] && . ./lib.sh\n{RUNS}", "hooks/lib.sh": ""},
        "lib.sh",
    ),
    "in a package of `python -m`": (
        f"{PYTHON} -m hooks.check",
        {"hooks/check.py": "open('ran', 'w')"},
        "hooks/__init__.py",
    ),
    "as a module beside that of `python -m`": (
        f"{PYTHON} -m hooks.check",
        {"hooks/helper.py": "", "hooks/check.py": "from hooks import helper\nopen('ran', 'w')"},
        "hooks/helper.py",
    ),
    "as a module of `python -mNAME`": (f"{PYTHON} -mthis", {}, "this.py"),
    "of awk": ("awk -f scripts/check.awk", {"scripts/check.awk": "BEGIN {}"}, "scripts/check.awk"),
    "of make": ("make -s -f scripts/check.mk", {"scripts/check.mk": "all:\n\t@true\n"}, "scripts/check.mk"),
}


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("CDPATH", "/nowhere")


def was_added_or_changed(path: str, *, existed: bool) -> list[str]:
    what = "was changed" if existed else ", which it would run or include, was added"
    return [f"{path} {what} after it was approved".replace(" ,", ",")]


@pytest.mark.req("X-13")
@pytest.mark.parametrize("name", SHELL)
def test_a_script_that_is_started_or_included(name: str, project: Path) -> None:
    text, files, changed = SHELL[name]
    make(project, command(text), files)
    approve_all(project)
    assert said(ask(project)) == []
    (project / "ran").unlink(missing_ok=True)
    write(project, {changed: PYTHON_EVIL if changed.endswith(".py") else BEGIN_SH + EVIL})
    expected = was_added_or_changed(changed, existed=changed in files)
    assert (said(ask(project)), (project / "evil").exists(), (project / "ran").exists()) == (
        expected,
        False,
        False,
    )


def compiled(project: Path, name: str) -> None:
    """Write bytecode that Python runs without a look at the source."""
    write(project, {"evil.py": PYTHON_EVIL})
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(project / "evil.py"), cfile=str(project / name), invalidation_mode=mode)


def test_bytecode_that_takes_the_place_of_a_module(project: Path) -> None:
    make(
        project,
        command(f"{PYTHON} hooks/check.py"),
        {"hooks/check.py": "import colorsys\nopen('ran', 'w')\n"},
    )
    approve_all(project)
    compiled(project, "hooks/colorsys.pyc")
    expected = ["the list of files hooks/*.pyc was changed after it was approved"]
    assert (said(ask(project)), (project / "evil").exists()) == (expected, False)


@pytest.mark.parametrize("text", [f"{PYTHON} hooks/check.py", f"{PYTHON} -m hooks.check"])
def test_bytecode_in_the_folder_for_it_is_not_used(text: str, project: Path, state: Path) -> None:
    """Python writes it by itself, so it does not make the hook pending; but a repository may bring it."""
    files = {"hooks/check.py": "import colorsys\nopen('ran', 'w')\n", "hooks/helper.py": ""}
    files["hooks/check.py"] += "import hooks.helper" if "-m" in text else "import helper"
    make(project, command(text), files)
    approve_all(project)
    for name in ("helper", "check"):
        compiled(project, f"hooks/__pycache__/{name}.{sys.implementation.cache_tag}.pyc")
    assert (said(ask(project)), (project / "ran").exists(), (project / "evil").exists()) == ([], True, False)
    assert (state / "trust/bytecode").stat().st_mode & 0o777 == 0o700


def test_a_large_file_of_the_same_size(project: Path) -> None:
    make(project, command("true || hooks/large"), {"hooks/large": "x" * 2_000_000})
    approve_all(project)
    assert said(ask(project)) == []
    write(project, {"hooks/large": "y" * 2_000_000})
    assert said(ask(project)) == ["hooks/large was changed after it was approved"]


def test_a_path_through_a_link_and_back(project: Path) -> None:
    """`shared/..` is the folder above that to which the link leads."""
    (project / "shared").symlink_to("a/b")
    make(project, command("sh shared/../check.sh"), {"a/b/file": "", "a/check.sh": RUNS})
    approve_all(project)
    write(project, {"a/check.sh": EVIL})
    assert said(ask(project)) == ["check.sh was changed after it was approved"]
    assert not (project / "evil").exists()


def test_a_project_that_was_approved_through_a_link(project: Path, tmp_path: Path) -> None:
    """The files of the project count, not those to which the link leads later."""
    make(project, command("sh hooks/check.sh"), {"hooks/check.sh": RUNS})
    link = tmp_path / "link"
    link.symlink_to(project)
    approve_all(link)
    assert said(ask(link)) == []
    link.unlink()
    assert said(ask(project)) == []
    write(project, {"hooks/check.sh": EVIL})
    assert said(ask(project)) == ["hooks/check.sh was changed after it was approved"]


@pytest.mark.skipif(not os.access("/opt", os.W_OK), reason="needs a folder in /opt")
def test_a_project_in_a_folder_of_the_system(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    project = Path("/opt") / f"turngate-{tmp_path.parent.name}-{tmp_path.name}"
    project.mkdir()
    request.addfinalizer(lambda: shutil.rmtree(project))
    make(
        project,
        command("sh hooks/check.sh"),
        {"hooks/check.sh": f". hooks/lib.sh\n{RUNS}", "hooks/lib.sh": ""},
    )
    approve_all(project)
    assert said(ask(project)) == []
    write(project, {"hooks/lib.sh": EVIL})
    assert said(ask(project)) == ["hooks/lib.sh was changed after it was approved"]
    assert not (project / "evil").exists()


def test_a_folder_that_cannot_be_listed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files can be opened nevertheless."""
    make(
        project,
        command(f"{PYTHON} hooks/check.py"),
        {"hooks/check.py": "import colorsys\nopen('ran', 'w')\n"},
    )
    approve_all(project)
    write(project, {"hooks/colorsys.py": PYTHON_EVIL})
    list_folder = os.listdir

    def listdir(path: Any = ".") -> list[str]:
        if str(path) == str(project / "hooks"):
            raise PermissionError(13, "Permission denied", str(path))
        return list_folder(path)

    monkeypatch.setattr(os, "listdir", listdir)  # root may list every folder
    expected = "hooks/colorsys.py, which it would run or include, was added after it was approved"
    assert (said(ask(project)), (project / "evil").exists()) == ([expected], False)


@pytest.mark.parametrize(
    ("start", "part", "end"),
    [
        ("x=ab\n", "x=$x$x$x$x$x$x$x$x\n", "sh $x"),
        ("", "${" * 500, ""),
        ('"', "${" * 500, '"'),
        ("", "$(" * 500, ""),
        ("`", "`" * 1_000, ""),
    ],
)
def test_the_work_and_memory_for_a_hostile_script_are_at_most_proportional_to_its_length(
    start: str, part: str, end: str, project: Path
) -> None:
    def approve(times: int) -> None:
        text = f"{start}{part * times}{end}\n. hooks/lib.sh"
        make(project, command("sh hooks/check.sh"), {"hooks/check.sh": text})
        approve_all(project)

    with cpu_limit(30):
        some = count_calls(lambda: approve(30))
        assert count_calls(lambda: approve(60)) < 2.1 * some
    assert peak_memory(lambda: approve(60)) < 20_000_000


@pytest.mark.parametrize("name", ["\\ud800/x.sh", "hooks/\\ud800*", "hooks/\\ud800", "a\\u0000b/x.sh"])
def test_a_name_that_no_file_can_have(name: str, project: Path) -> None:
    settings = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true || sh NAME"}]}]}}'
    write(project, {".turngate/settings.json": settings.replace("NAME", name), "hooks/check.sh": ""})
    approve_all(project)
    ask(project)
    ask(project, trust=True)
