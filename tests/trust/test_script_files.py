"""Which files a command runs, as far as its text and its scripts say."""

from pathlib import Path

import pytest

from tests.trust.support import write
from turngate.project.files import LOCAL
from turngate.trust.script_files import ScriptFiles

FILES = {
    "hooks/check.sh": "",
    "hooks/check.py": "import helper\nfrom . import other\nfrom package import part\n",
    "hooks/helper.py": "import json",
    "hooks/package/__init__.py": "",
    "hooks/package/part.py": "",
    "hooks/check.js": "const a = require('./lib'); import b from '../b.mjs'; import c from 'package'",
    "hooks/lib.js": "",
    "b.mjs": "",
    "tools/run.py": "import helper",
    "tools/helper.py": "",
    "data.json": "{}",
    "bin/lint": "",
}


def files_of(project: Path, command: str, *, existing: bool = True) -> list[str]:
    write(project, FILES)
    found = ScriptFiles(LOCAL, str(project), {"CLAUDE_PROJECT_DIR": str(project)}, [str(project / "bin")])
    found.add_command(command)
    paths = [Path(path) for path in found.paths]
    return sorted(str(path.relative_to(project)) for path in paths if path.exists() or not existing)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("hooks/check.sh", ["hooks/check.sh"]),
        ("bash -eu hooks/check.sh --fix data.json", ["hooks/check.sh"]),
        ("FIX=1 exec hooks/check.sh", ["hooks/check.sh"]),
        ("{ hooks/check.sh || true; } 2>&1 | tail -5", ["hooks/check.sh"]),
        ("! (hooks/check.sh)", ["hooks/check.sh"]),
        ("jq . data.json > out.json", []),
        ("ruff check tools/run.py", []),
        ("# hooks/check.sh", []),
        ("echo 'hooks/check.sh", ["hooks/check.sh"]),  # an open quotation is not known to be data
        ("cat <<EOF\nhooks/check.sh\nEOF", ["hooks/check.sh"]),
        ("lint src", ["bin/lint"]),
        ("python3 tools/run.py", ["tools/run.py"]),
        (
            "python3 hooks/check.py",
            ["hooks/check.py", "hooks/helper.py", "hooks/package/__init__.py", "hooks/package/part.py"],
        ),
        ("node hooks/check.js", ["hooks/../b.mjs", "hooks/check.js", "hooks/lib.js"]),
        (
            "uv run hooks/check.py --help",
            ["hooks/check.py", "hooks/helper.py", "hooks/package/__init__.py", "hooks/package/part.py"],
        ),
        ('"${CLAUDE_PROJECT_DIR:-.}"/hooks/check.sh', ["hooks/check.sh"]),
        ("while read -r x; do hooks/check.sh; done", ["hooks/check.sh"]),
        ("case $1 in a) hooks/check.sh;; esac", ["hooks/check.sh"]),
        ("`hooks/check.sh`", ["hooks/check.sh"]),
        ("", []),
        ("\0", []),
        ("'" * 1001, []),
    ],
)
def test_the_files_of_a_command(command: str, files: list[str], project: Path) -> None:
    assert files_of(project, command) == files


def test_a_file_that_does_not_exist_counts_too(project: Path) -> None:
    assert files_of(project, "sh hooks/later.sh", existing=False) == ["bin/sh", "hooks/later.sh"]


def test_scripts_that_include_each_other_end(project: Path) -> None:
    write(project, {"a.sh": ". ./b.sh", "b.sh": ". ./a.sh"})
    assert files_of(project, "sh a.sh") == ["a.sh", "b.sh"]


def test_a_script_with_many_files_is_read_up_to_a_limit(project: Path) -> None:
    write(project, {"hooks/all.sh": "".join(f". hooks/{number}.sh\n" for number in range(100_000))})
    found = ScriptFiles(LOCAL, str(project), {}, [])
    found.add_command("sh hooks/all.sh")
    assert len(found.paths) == 1  # the script is larger than what is read


def test_nested_substitutions_end(project: Path) -> None:
    assert files_of(project, "$(" * 10_000 + "hooks/check.sh" + ")" * 10_000) == ["hooks/check.sh"]
