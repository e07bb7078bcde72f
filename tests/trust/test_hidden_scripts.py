"""Scripts that a command runs without naming them plainly. Each is changed, or added, after the approval."""

import os
import py_compile
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.measures import count_calls, cpu_limit, peak_memory
from tests.trust.support import EVIL, RUNS, approve_all, ask, command, make, said, stop_settings, write
from turngate.errors import UsageError
from turngate.project.files import LOCAL, LocalFiles
from turngate.trust.review import review_project

PYTHON = sys.executable
BEGIN_SH = "#!/bin/sh\n"
GATE = f"{sys.executable} -m turngate gate"
PYTHON_EVIL = "open('evil', 'w')"
OF_THIS_FOLDER = 'DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\n'

Case = tuple[str, dict[str, str], str]  # the command, the files, and the one that is changed


def included(text: str, name: str = "hooks/lib.sh") -> Case:
    return "bash hooks/check.sh", {"hooks/check.sh": text + RUNS, name: ""}, name


def started(text: str) -> Case:
    return text, {"scripts/check.sh": BEGIN_SH + RUNS}, "scripts/check.sh"


SHELL: dict[str, Case] = {
    "from the folder of the script": included(f'{OF_THIS_FOLDER}source "$DIR/lib.sh"\n'),
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


AWK = ("BEGIN {}", 'BEGIN { system("touch evil") }')
MAKE = ("all:\n\t@true\n", "all:\n\t@touch evil\n")
NODE = ("", "require('fs').writeFileSync('evil', '')\n")
SCRIPT = (f"{BEGIN_SH}exit 0\n", BEGIN_SH + EVIL)
# How a command names its script in a folder D, the script, and its texts before and after the change.
FORMS: dict[str, tuple[str, str, tuple[str, str]]] = {
    "on a continued line": ("D/\\\nx.sh", "x.sh", SCRIPT),
    "by env -S": ("env -S 'sh D/x.sh'", "x.sh", SCRIPT),
    "by env --chdir": ("env --chdir=D ./x.sh", "x.sh", SCRIPT),
    "in braces": ("bash -c 'D/{x,y}.sh'", "x.sh", SCRIPT),
    "in $'…'": ("bash -c \"\\$'D/x.sh'\"", "x.sh", SCRIPT),
    "with blanks in its name": ("sh 'D/a b.sh'", "a b.sh", SCRIPT),
    "with escaped blanks in its name": ("sh D/a\\ b.sh", "a b.sh", SCRIPT),
    "in quotes": ('sh D/"x".sh', "x.sh", SCRIPT),
    "by PATH before a command": ("PATH=D:$PATH x.sh", "x.sh", SCRIPT),
    "by an exported PATH": ('export PATH="$PWD/D:$PATH"; x.sh', "x.sh", SCRIPT),
    "included by PATH": ("PATH=D:$PATH; . x.sh", "x.sh", SCRIPT),
    "by PATH of env": ("env PATH=D:/bin:/usr/bin x.sh", "x.sh", SCRIPT),
    "by eval of a file": ("bash -c 'eval \"$(< D/x.sh)\"'", "x.sh", SCRIPT),
    "by a pipe": ("cat D/x.sh | sh", "x.sh", SCRIPT),
    "by printf": ("sh $(printf '%s/%s' D x.sh)", "x.sh", SCRIPT),
    "by a default value": (": ${NONE:=D/x.sh}; sh $NONE", "x.sh", SCRIPT),
    "by two variables": ("d=D; f=x; sh $d/$f.sh", "x.sh", SCRIPT),
    "by a variable with a command": ("CMD='sh D/x.sh'; $CMD", "x.sh", SCRIPT),
    "in backticks in backticks": ("echo `echo \\`D/x.sh\\``", "x.sh", SCRIPT),
    "as input 0": ("sh 0< D/x.sh", "x.sh", SCRIPT),
    "as /dev/stdin": ("sh /dev/stdin < D/x.sh", "x.sh", SCRIPT),
    "after output": ("true >log; sh D/x.sh", "x.sh", SCRIPT),
    "behind a tool": ('test -z "$(sh D/x.sh)"', "x.sh", SCRIPT),
    "with the suffix of a document": ("sh D/x.txt", "x.txt", SCRIPT),
    "by BASH_ENV": ("BASH_ENV=D/x.sh bash -c true", "x.sh", SCRIPT),
    "by git": ("git -c alias.x='!sh D/x.sh' x", "x.sh", SCRIPT),
    "by find": ("find D -name '*.sh' | xargs -n 1 sh", "x.sh", SCRIPT),
    "of awk": ("awk -fD/c.awk </dev/null", "c.awk", AWK),
    "of make -f": ("make -s -fD/m", "m", MAKE),
    "of make --file": ("make -s --file=D/m", "m", MAKE),
    "that node requires": ("node --require=./D/p.js D/c.js", "p.js", NODE),
    "of node without a suffix": ("node D/c", "c.js", NODE),
    "in a text of node": ("node -e \"require('./D/c')\"", "c.js", NODE),
}


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("CDPATH", "/nowhere")


def was_added_or_changed(path: str, *, existed: bool) -> list[str]:
    return [f"{path} was {'changed' if existed else 'added'} after it was approved"]


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


@pytest.mark.req("X-13")
@pytest.mark.parametrize("folder", [".claude/hooks", "hooks", "quality/checks"])
def test_a_script_that_a_command_names_in_another_way(folder: str, project: Path) -> None:
    """All forms at once: after the approval each script is changed, and none of them runs."""
    hooks, changed = [], {}
    for number, (name, (text, script, (before, after))) in enumerate(FORMS.items()):
        place = f"{folder}/{number}"
        write(
            project,
            {f"{place}/{script}": before, f"{place}/c.js": ""}
            if "js" in script
            else {f"{place}/{script}": before},
        )
        changed[f"{place}/{script}"] = after.replace("evil", f"evil-{number}")
        hooks.append(command(re.sub(r"(?<!\w)D(?!\w)|(?<=-f)D", place, text), id=name))
    write_settings(project, "turngate", stop_settings(*hooks))
    approve_all(project)
    assert said(ask(project)) == []
    write(project, changed)
    skipped = [run.hook for run in ask(project).unenforced]
    assert (skipped, sorted(project.glob("evil*"))) == ([*FORMS], [])
    ask(project, trust=True)
    ran = [name for number, name in enumerate(FORMS) if (project / f"evil-{number}").exists()]
    assert ran == [*FORMS]


@pytest.mark.req("X-13")
@pytest.mark.parametrize(
    ("text", "files", "added"),
    [
        (
            f"{PYTHON} hooks/check.py",
            {"hooks/check.py": "import json, subprocess, sys\n"},
            {f"hooks/{name}.py": PYTHON_EVIL for name in ("re", "selectors", "signal")},
        ),
        (
            "node hooks/check.js",
            {"hooks/check.js": 'require("./lib")', "hooks/lib/index.js": ""},
            {"hooks/lib/package.json": '{"main": "evil.js"}', "hooks/lib/evil.js": NODE[1]},
        ),
    ],
    ids=["a module that the standard library imports", "another main file of a package"],
)
def test_a_file_that_takes_the_place_of_another_one(
    text: str, files: dict[str, str], added: dict[str, str], project: Path
) -> None:
    make(project, command(text), files)
    approve_all(project)
    assert said(ask(project)) == []
    write(project, added)
    assert (said(ask(project)), (project / "evil").exists()) == (
        [f"{min(added)} was added after it was approved"],
        False,
    )
    ask(project, trust=True)
    assert (project / "evil").exists()


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
    expected = ["hooks/colorsys.pyc was added after it was approved"]
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
    assert said(ask(project)) == ["a/check.sh was changed after it was approved"]
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
    """Its files can be opened nevertheless, and nobody knows which there are."""
    make(project, command("sh hooks/check.sh"), {"hooks/check.sh": RUNS})
    approve_all(project)
    real_scan = LocalFiles.scan

    def scan(files: LocalFiles, path: str) -> Any:
        if path == str(project / "hooks"):
            raise PermissionError(13, "Permission denied", path)
        return real_scan(files, path)

    monkeypatch.setattr(LocalFiles, "scan", scan)  # root may list every folder
    assert said(ask(project)) == ["hooks/. was added after it was approved"]


@pytest.mark.parametrize(
    ("start", "part", "end"),
    [
        ("x=ab\n", "x=$x$x$x$x$x$x$x$x\n", "sh $x"),
        ("", "${" * 200, ""),
        ('"', "${a:-" * 100, '"'),
        ("", "$(" * 10, ""),
        ("`", "`" * 500, ""),
        ("", "'" * 500, ""),
        ("", "a/" * 200, ""),
    ],
)
def test_the_work_and_memory_for_a_hostile_command_are_at_most_proportional_to_its_length(
    start: str, part: str, end: str, project: Path
) -> None:
    def review(times: int) -> None:
        text = f"true || {start}{part * times}{end}\n. hooks/lib.sh"
        make(project, command(text), {"hooks/lib.sh": ""})
        [hook] = review_project(str(project), files=LOCAL).hooks
        assert hook.fingerprint.files["hooks/"] == "all"

    with cpu_limit(30):
        some = count_calls(lambda: review(30))
        assert count_calls(lambda: review(60)) < 2.1 * some
    assert peak_memory(lambda: review(60)) < 20_000_000


@pytest.mark.parametrize(
    "text", ["true " + "x/" * 25_000, "true " + " x/y" * 5_001], ids=["characters", "words"]
)
def test_a_command_that_is_too_long_cannot_be_approved(text: str, project: Path) -> None:
    make(project, command(text), {})
    why = "its command is too long to find the files that it names; put it into a script"
    with pytest.raises(UsageError, match=f"Stop:1 cannot be approved: {why}"):
        approve_all(project)
    assert said(ask(project)) == ["it is not approved"]


@pytest.mark.parametrize("name", ["\\ud800/x.sh", "hooks/\\ud800*", "hooks/\\ud800", "a\\u0000b/x.sh"])
def test_a_name_that_no_file_can_have(name: str, project: Path) -> None:
    settings = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true || sh NAME"}]}]}}'
    write(project, {".turngate/settings.json": settings.replace("NAME", name), "hooks/check.sh": ""})
    approve_all(project)
    ask(project)
    ask(project, trust=True)
