"""Which files a command names, which folders count with them, and what the review says that it does not cover."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.trust.support import write
from turngate.core.hooks.kinds import CommandHook
from turngate.project.files import LOCAL
from turngate.trust.command_files import CommandFiles, find_command_files
from turngate.trust.covered_files import ALL, MENTIONED, CoveredFiles

FILES = {
    **dict.fromkeys(("main.js", "main.php", "main.rb", "main.c", "a.tgz", "b.zip"), ""),
    **dict.fromkeys(("latest.sql", "latest.go", "latest.R", "check.go"), ""),
    "hooks/check.sh": "",
    "data/a.json": "",
    "scripts/run.py": "",
    "tools/package/check.py": "",
    "src/app.py": "",
    "tests/run.sh": "",
    "backend/check.sh": "",
    "backend/pyproject.toml": "",
    "check.py": "",
    "main.py": "",
    "data.json": "",
    "setup.cfg": "",
    "bin/lint": "",
    "dist/cli.js": "",
    "node_modules/.bin/eslint": "",
    "Makefile": "",
}


class Row(NamedTuple):
    command: str
    named: list[str]
    folders: dict[str, str]
    not_covered: tuple[str, ...] = ()


HOOK = Row("hooks/check.sh", ["hooks/check.sh"], {"hooks/": ALL})
OWN = "and the project's own files)"
ROWS = [
    HOOK,
    HOOK._replace(
        command="bash -eu hooks/check.sh --fix data.json", not_covered=("data.json (data, by its name)",)
    ),
    HOOK._replace(command="{ hooks/check.sh || true; } 2>&1 | tail -5"),
    HOOK._replace(command="# hooks/check.sh"),  # a comment is not told apart
    HOOK._replace(command='"${CLAUDE_PROJECT_DIR:-.}"/hooks/check.sh'),
    HOOK._replace(command="cd hooks; ./check.sh"),
    Row("wc -l hooks/check.sh", [], {}),
    Row("ls hooks/*.sh | xargs sh", [], {"hooks/": ALL}),
    Row("bin/lint hooks/check.sh", ["bin/lint", "hooks/check.sh"], {"bin/": MENTIONED, "hooks/": ALL}),
    Row("run-parts hooks", [], {"hooks/": ALL}),
    Row("run-parts scripts", [], {}),
    Row("uv run scripts/run.py > out.txt", ["scripts/run.py"], {"scripts/": MENTIONED}),
    Row('for x in scripts/*.py; do "$x"; done', [], {"scripts/": ALL}),
    Row("cat scripts/*.md", [], {}),
    Row("python3 -m tools.package.check", ["tools/package/check.py"], {"tools/package/": MENTIONED}),
    Row("./check.py", ["check.py"], {}, ("what check.py runs of the project's root folder",)),
    Row("sh tests/run.sh", ["tests/run.sh"], {}, ("what tests/run.sh runs of the folder tests",)),
    Row(
        "sh backend/check.sh", ["backend/check.sh"], {}, ("what backend/check.sh runs of the folder backend",)
    ),
    Row("python3 main.py", ["main.py"], {}, ("what main.py runs of the project's root folder",)),
    Row("report main.py", [], {}, ("main.py (code of the project, by its name)",)),
    Row("python3 src/app.py", [], {}, ("src/app.py (code of the project, by its name)",)),
    Row("node dist/cli.js", [], {}, ("dist/cli.js (code of the project, by its name)",)),
    Row("jq -e .ok data.json", [], {}),
    Row(
        "sqlite3 :memory: < latest.sql; go run latest.go",
        [],
        {},
        ("latest.sql (data, by its name)", "latest.go (data, by its name)"),
    ),
    Row("go run check.go", ["check.go"], {}, ("what check.go runs of the project's root folder",)),
    Row("Rscript latest.R", ["latest.R"], {}, ("what latest.R runs of the project's root folder",)),
    Row(
        "python3 -c \"import json; json.load(open('data.json'))\"", [], {}, ("data.json (data, by its name)",)
    ),
    Row("python3 -c \"open('data/a.json')\"", [], {}, ("data/a.json (data, by its name)",)),
    Row("node -e \"require('./main.js')\"", [], {}, ("main.js (code of the project, by its name)",)),
    Row("bash -n hooks/check.sh && /bin/sh -n hooks/check.sh", [], {}),
    Row("node --check main.js; php -l main.php; ruby -c main.rb; gcc -c main.c", [], {}),
    HOOK._replace(command="sh hooks/check.sh bash -n"),
    Row("gcc -o check.py main.c && ./check.py", [], {}),  # what the command writes itself
    Row(
        "tar czf a.tgz src && zip -r b.zip src",
        [],
        {},
        ("a.tgz (data, by its name)", "b.zip (data, by its name)"),
    ),
    Row("report --in data.json", [], {}, ("data.json (data, by its name)",)),
    Row(
        "report --config data.json", ["data.json"], {}, ("what data.json runs of the project's root folder",)
    ),
    Row("lint src", ["bin/lint"], {"bin/": MENTIONED}),
    Row("node_modules/.bin/eslint src", [], {}, (f"what `eslint src` runs (its configuration {OWN}",)),
    Row("flake8 --config setup.cfg src/app.py", ["setup.cfg"], {}),
    Row("make test", [], {}, (f"what `make test` runs (Makefile {OWN}",)),
    Row(
        "npm run check && pytest",
        [],
        {},
        (f"what `npm run check` runs (package.json {OWN}", f"what `pytest` runs (its configuration {OWN}"),
    ),
    Row("echo done; exit 0", [], {}),
    Row("", [], {}),
    Row("\0", [], {}),
    Row("'" * 1001, [], {}),
]


def find(project: Path, command: CommandHook, *, explains: bool = True) -> CommandFiles:
    variables = {"CLAUDE_PROJECT_DIR": str(project), "HOME": str(project.parent / "me")}
    covered = CoveredFiles(LOCAL, str(project))
    return find_command_files(command, variables, [str(project / "bin")], covered, explains=explains)


@pytest.fixture
def filled(project: Path) -> Path:
    write(project, FILES)
    for name in (
        "data.json",
        "setup.cfg",
        "Makefile",
        "a.tgz",
        "b.zip",
        "main.js",
        "data/a.json",
        "latest.sql",
        "latest.go",
    ):
        (project / name).chmod(0o644)
    return project


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command[:40])
def test_the_files_of_a_command(row: Row, filled: Path) -> None:
    found = find(filled, CommandHook(row.command))
    folders = {name: which for name, which in found.covered.items() if which}
    assert (list(found.named), folders, found.not_covered) == (row.named, row.folders, row.not_covered)


def test_the_files_of_a_command_without_a_shell(filled: Path) -> None:
    found = find(filled, CommandHook("sh", args=("hooks/check.sh", "-c", "cd scripts && ./run.py")))
    assert found.named == ("hooks/check.sh", "scripts/run.py")


def test_a_file_outside_of_the_project_counts_alone_and_one_of_the_system_not(
    filled: Path, tmp_path: Path
) -> None:
    write(tmp_path / "me", {"bin/notify.py": "", ".claude/hooks/stop.sh": ""})
    found = find(filled, CommandHook("/bin/sh ~/bin/notify.py; ~/.claude/hooks/stop.sh"))
    assert dict(found.covered) == {
        f"{tmp_path}/me/bin/notify.py": None,
        f"{tmp_path}/me/.claude/hooks/stop.sh": None,
        f"{tmp_path}/me/.claude/hooks/": ALL,
    }


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("[ -f hooks/more.sh ] && . hooks/more.sh", ["hooks/more.sh"]),
        ("cd hooks; ./later.sh", ["later.sh", "hooks/later.sh"]),
        ("pytest tests/test_new.py", []),
        ("python3 scripts/run.py --out src/generated.py --log out/x.txt", []),
        ("./build/app", []),
        ("sh -c log", []),
    ],
)
def test_where_a_file_would_be_run_there_must_be_none_while_a_session_runs(
    command: str, absent: list[str], filled: Path
) -> None:
    found = find(filled, CommandHook(command), explains=False)
    assert [name for name in found.absent if not name.startswith("bin/")] == absent
