"""`related`: the tests that the session's change concerns run first, and block alone; what is not certain is for the whole suite."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gates.test_baseline import CAN_MOUNT, Session
from tests.support.gates import answer_of_process, answer_with_shell, blocked, claude_input, record_with_shell
from tests.support.git_projects import make_repository, write
from tests.support.sessions import lines
from turngate.gates.library.command import ONLY_RELATED

PYTEST = f"{sys.executable} -m pytest -q"
needs_mount = pytest.mark.skipif(not CAN_MOUNT, reason="no mount namespaces here")
FILES = {
    ".gitignore": "__pycache__\n.pytest_cache\n",
    "conftest.py": "",
    "shop.py": "def total(a, b): return a + b\n",
    "cart.py": "import shop\ndef items(): return shop.total(1, 1)\n",
    "tests/test_shop.py": "import shop\ndef test_total(): assert shop.total(1, 2) == 3\n",
    # It is not named after what it tests, and says that it has run.
    "tests/test_others.py": "import cart\ndef test_items():\n    open('../all', 'a').write('run\\n')\n    assert cart.items() == 2\n",
}
OLD_ONLY = {"systemMessage": 'gate "tests": it fails only as it did at the session\'s start'}


@pytest.fixture(autouse=True)
def _without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this project take seconds to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def begin(project: Path, files: dict[str, str], *words: str) -> Session:
    make_repository(project, {**FILES, **files})
    return Session(project, "tests", "--related", "--", *(words or (PYTEST,)))


def whole_runs(project: Path) -> int:
    path = project / "../all"
    return len(lines(path)) if path.exists() else 0


def shown(answer: dict[str, Any]) -> list[str]:
    """Return the command, the names of failed tests, and the last sentence of a reason about related tests."""
    found = answer["reason"].split("\n")
    names = [line.removeprefix("FAILED ").partition(" - ")[0] for line in found if "py::" in line]
    command = found[0].partition("`: ")[0].strip("`").replace(PYTEST, "pytest")
    return [command, *names, *([ONLY_RELATED] if found[-1] == ONLY_RELATED else [])]


@needs_mount
def test_a_related_test_that_fails_blocks_before_the_whole_suite_runs(project: Path) -> None:
    session = begin(project, {})
    write(project, {"shop.py": "def total(a, b): return a - b\n"})
    assert shown(session.stop()) == [
        "pytest -k test_shop.py",
        "tests/test_shop.py::test_total",
        ONLY_RELATED,
    ]
    assert whole_runs(project) == 0
    write(project, {"shop.py": "def total(a, b): return b + a\n"})
    assert (session.stop(), whole_runs(project)) == ({}, 1)


@needs_mount
def test_if_related_tests_pass_the_whole_suite_decides(project: Path) -> None:
    session = begin(project, {})
    write(project, {"shop.py": "def total(a, b): return a + b + (a == b)\n"})
    assert shown(session.stop()) == ["pytest", "tests/test_others.py::test_items"]
    assert whole_runs(project) == 2  # now, and on the files of the start


@needs_mount
def test_a_new_test_that_fails_blocks_before_the_whole_suite_runs(project: Path) -> None:
    session = begin(project, {})
    write(project, {"tests/test_new.py": "def test_new(): assert 1 == 2\n"})
    assert shown(session.stop())[1:] == ["tests/test_new.py::test_new", ONLY_RELATED]
    assert whole_runs(project) == 0


@needs_mount
def test_a_related_test_that_failed_at_the_start_does_not_block(project: Path) -> None:
    old = {"tests/test_cart.py": "def test_old(): assert 1 == 2\n"}
    session = begin(project, old)
    write(project, {"cart.py": f"{FILES['cart.py']}\n"})
    assert (session.stop(), whole_runs(project)) == (OLD_ONLY, 2)  # now, and on the files of the start
    write(project, {"tests/test_cart.py": f"{old['tests/test_cart.py']}def test_new(): assert 3 == 4\n"})
    answer = session.stop()
    assert shown(answer) == [
        "pytest -k test_cart.py",
        "tests/test_cart.py::test_new",
        ONLY_RELATED,
    ]
    assert "1 failure that was there at the session's start is left out." in answer["reason"]


@needs_mount
def test_the_tests_that_failed_last_run_before_the_whole_suite(project: Path) -> None:
    session = begin(project, {"tests/test_far.py": "import cart\ndef test_far(): assert cart.items() == 2\n"})
    write(project, {"cart.py": "def items(): return 3\n"})
    names = ["tests/test_far.py::test_far", "tests/test_others.py::test_items"]
    assert shown(session.stop())[1:] == names
    write(
        project,
        {
            "cart.py": "def items(): return 4\n",
            "tests/test_more.py": "def test_more(): open('../more', 'w')\n",
        },
    )
    assert shown(session.stop()) == [
        "pytest --lf --lfnf=none",
        *names,
        ONLY_RELATED,
    ]


def test_a_test_that_the_configuration_leaves_out_is_not_run(project: Path) -> None:
    session = begin(project, {"pytest.ini": "[pytest]\ntestpaths = tests\n"})
    write(project, {"browser/test_page.py": "def test_page(): assert 1 == 2\n"})
    assert (session.stop(), whole_runs(project)) == ({}, 1)


def test_data_of_testmon_without_testmon_are_for_the_whole_suite(project: Path) -> None:
    session = begin(project, {".gitignore": f"{FILES['.gitignore']}.testmondata\n"})
    write(project, {".testmondata": "", "shop.py": "def total(a, b): return b + a\n"})
    assert (session.stop(), whole_runs(project)) == ({}, 1)


def test_a_failure_that_no_test_is_the_cause_of_is_for_the_whole_suite(project: Path) -> None:
    """As a coverage that is too low for a part of the tests."""
    conftest = (
        "def pytest_sessionfinish(session):\n    if session.testscollected < 3: session.exitstatus = 1\n"
    )
    session = begin(project, {"conftest.py": conftest, "tests/test_c.py": "def test_c(): pass\n"})
    write(project, {"shop.py": "def total(a, b): return b + a\n"})
    assert (session.stop(), whole_runs(project)) == ({}, 1)


# Tools that are not installed everywhere: programs that write how they were called, and print what the tool prints.

FAILS = "echo '  ● total'; echo; echo '    Expected: 3'; echo; echo 'Tests:       1 failed, 1 total'; exit 1"
USAGE = (
    "echo '● Unrecognized CLI Parameter:'; echo; echo '  Unrecognized option \"findRelatedTests\".'; exit 1"
)


def programs(project: Path, scripts: dict[str, str], body: str, *names: str) -> None:
    """Make a project with a package.json, and programs that fail with `body` if they get a file."""
    text = f'#!/bin/sh\necho "$(basename $0) $*" >> ../calls\ncase "$*" in *src/a.*|*./src*) {body};; esac\n'
    files = {f"node_modules/.bin/{name}": f"{text}echo 'Tests:       1 passed, 1 total'\n" for name in names}
    make_repository(
        project, {".gitignore": "node_modules\n", "package.json": json.dumps({"scripts": scripts})}
    )
    write(project, files)
    for name in files:
        (project / name).chmod(0o755)


@pytest.mark.parametrize(
    ("scripts", "command", "file", "calls"),
    [
        ({"test": "jest"}, "npm test", "src/a.js", ["jest --findRelatedTests src/a.js"]),
        ({"unit": "A=1 jest -i"}, "yarn run unit", "src/a.js", ["jest -i --findRelatedTests src/a.js"]),
        ({}, "node_modules/.bin/jest", "src/a.js", ["jest --findRelatedTests src/a.js"]),
        (
            {"test": "vitest run --coverage"},
            "pnpm test",
            "src/a.ts",
            ["vitest related src/a.ts --run --coverage"],
        ),
        ({"test": "vitest"}, "npm test", "src/a.ts", ["vitest related src/a.ts --run"]),
        ({"test": "nx run-many -t test"}, "npm test", "src/a.ts", ["nx affected --files=src/a.ts -t test"]),
        ({}, "node_modules/.bin/go test -race ./...", "src/a.go", ["go test -race ./src"]),
        # What is run cannot be told, or a part of it would be left out.
        ({"test": "jest && vitest"}, "npm test", "src/a.js", ["jest ", "vitest "]),
        ({"test": "jest", "pretest": "vitest"}, "npm test", "src/a.js", ["vitest ", "jest "]),
        ({"test": "nx run-many -t test -p b"}, "npm test", "src/a.ts", ["nx run-many -t test -p b"]),
        ({}, "node_modules/.bin/go test ./other/...", "src/a.go", ["go test ./other/..."]),
        ({}, "node_modules/.bin/go test ./...", "src/testdata/a.go", ["go test ./..."]),
        ({}, "node_modules/.bin/jest | cat", "src/a.js", ["jest "]),
    ],
)
def test_how_tools_are_called(
    project: Path, scripts: dict[str, str], command: str, file: str, calls: list[str]
) -> None:
    programs(project, scripts, FAILS, "jest", "vitest", "nx", "go")
    session = Session(project, "tests", "--related", "--all-failures", "--", command)
    write(project, {file: "x"})
    answer = session.stop()
    assert lines(project / "../calls") == calls
    assert ("decision" in answer) is ("src" in calls[0])


def test_the_reason_names_the_tool_and_not_what_finds_it(project: Path) -> None:
    programs(project, {"test": "jest"}, FAILS, "jest")
    session = Session(project, "tests", "--related", "--all-failures", "--", "npm test")
    write(project, {"src/a.js": "x"})
    output = "  ● total\n\n    Expected: 3\n\nTests:       1 failed, 1 total"
    reason = f"`jest --findRelatedTests src/a.js`: exit code 1\n{output}\n\n{ONLY_RELATED}"
    assert session.stop() == blocked(reason)


def test_a_tool_that_cannot_runs_the_whole_suite(project: Path) -> None:
    programs(project, {"test": "jest"}, USAGE, "jest")
    session = Session(project, "tests", "--related", "--", "npm test")
    write(project, {"src/a.js": "x"})
    assert session.stop() == {}
    assert lines(project / "../calls") == ["jest --findRelatedTests src/a.js", "jest "]


@needs_mount
def test_if_the_same_tests_cannot_run_on_the_files_of_the_start_the_whole_suite_decides(
    project: Path,
) -> None:
    programs(project, {}, f"test -e src/a.js || {{ echo boom; exit 3; }}; {FAILS}", "jest")
    session = Session(project, "tests", "--related", "--", "node_modules/.bin/jest")
    write(project, {"src/a.js": "x"})
    assert session.stop() == {}
    related = "jest --findRelatedTests src/a.js"
    assert lines(project / "../calls") == [related, related, "jest "]


@needs_mount
def test_related_tests_run_on_another_machine(project: Path) -> None:
    programs(project, {}, FAILS, "jest")
    words = ("tests", "--related", "--all-failures", "--", "node_modules/.bin/jest")
    record_with_shell(words, claude_input(project), project)
    write(project, {"src/a.js": "x"})
    answer = answer_with_shell(words, claude_input(project), project)
    assert ("decision" in answer, lines(project / "../calls")) == (
        True,
        ["jest --findRelatedTests src/a.js"],
    )


@pytest.mark.parametrize("has_passed_at_start", [True, False])
def test_without_mount_namespaces_a_stored_result_of_the_start_is_needed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_passed_at_start: bool
) -> None:
    write(tmp_path, {"programs/unshare": "#!/bin/sh\necho 'unshare: Operation not permitted' >&2\nexit 1\n"})
    (tmp_path / "programs/unshare").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"), prepend=":")
    programs(project, {"test": "jest"}, FAILS, "jest")
    words = ("tests", "--related", "--", "npm test")
    if has_passed_at_start:
        assert answer_of_process(words, claude_input(project, session_id="earlier"))[1] == {}
    session = Session(project, *words)
    write(project, {"src/a.js": "x"})
    assert ("decision" in session.stop()) is has_passed_at_start
    related = "jest --findRelatedTests src/a.js"
    assert lines(project / "../calls") == (["jest ", related] if has_passed_at_start else [related, "jest "])


def test_related_tests_that_do_not_end_leave_time_for_the_whole_suite_and_are_run_once(project: Path) -> None:
    programs(project, {}, "sleep 600", "jest")
    jest = project / "node_modules/.bin/jest"
    jest.write_text(jest.read_text().replace("case", "sleep 600\ncase"))
    session = Session(project, "tests", "--related", "--timeout", "8", "--", "node_modules/.bin/jest")
    write(project, {"src/a.js": "x"})
    # The whole suite has more time once the others do not run.
    while "not run again" not in session.stop()["systemMessage"]:
        pass
    related, *whole = lines(project / "../calls")
    assert (related, {*whole}) == ("jest --findRelatedTests src/a.js", {"jest "})
