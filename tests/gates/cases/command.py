"""The gate `command`. All cases of the issue apply."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.git_projects import commit, make_repository, steps, write

SLEEP = "sleep 600"


def empty(_: Path) -> None:
    pass


def with_files(files: Mapping[str, str | bytes]) -> Callable[[Path], None]:
    return lambda project: write(project, files)


def repository(project: Path) -> None:
    make_repository(project, {"src/code.py": "x = 1\n", "docs/index.md": "x\n"})


def changed(name: str) -> Callable[[Path], None]:
    """Make a repository in which one file has changed since its commit."""

    def setup(project: Path) -> None:
        repository(project)
        write(project, {name: "changed\n"})

    return setup


def background(_: Path) -> dict[str, Any]:
    return {"background_tasks": [{"id": "a1", "type": "subagent", "status": "running"}]}


def failing(*names: str) -> str:
    """Return the output of a tool with these failures."""
    return "".join(f"FAILED tests/test_a.py::{name} - assert 1 == 2\n" for name in names)


CAT_AND_FAIL = "cat output; test ! -s output"


def known_failures(project: Path) -> None:
    write(project, {"output": failing("test_old")})


NOTHING = {"systemMessage": 'gate "command": nothing to check: no file that matches src/** has changed'}

CASES = (
    GateCase("nothing has changed", ("--", "exit 1"), empty, {}, start=repository),
    GateCase("nothing has changed, without git", ("--", "exit 1"), empty, {}, start=with_files({"a": "1"})),
    GateCase(
        "nothing has changed, and it always runs",
        ("--all-failures", "--always", "--", "exit 1"),
        empty,
        blocked("`exit 1`: exit code 1"),
        start=repository,
    ),
    GateCase(
        "only a commit is new",
        ("--all-failures", "--", "git log -1 --format=%s; exit 1"),
        commit,
        blocked("`git log -1 --format=%s; exit 1`: exit code 1\nchange"),
        start=repository,
    ),
    GateCase(
        "a document has changed",
        ("--all-failures", "--", "exit 1"),
        with_files({"README.md": "x\n"}),
        blocked("`exit 1`: exit code 1"),
        start=repository,
    ),
    GateCase("passed", ("--", "true"), empty, {}),
    GateCase(
        "failed",
        ("--", "echo one; echo two >&2; exit 3"),
        empty,
        blocked("`echo one; echo two >&2; exit 3`: exit code 3\none\ntwo"),
    ),
    GateCase(
        "failed in a chain",
        ("--", "echo lint && echo types && false && echo tests"),
        empty,
        blocked("`echo lint && echo types && false && echo tests`: exit code 1\nlint\ntypes"),
    ),
    GateCase("one word with shell syntax", ("--", "true&&exit"), empty, {}),
    GateCase("words are passed as they are", ("--", "test", "a  b*", "=", "a  b*"), empty, {}),
    GateCase(
        "a program is missing",
        ("--", "no-such-program"),
        empty,
        could_not_run(
            "command", "exit code 127: could not be started: no-such-program: No such file or directory"
        ),
    ),
    GateCase(
        "a program of a chain is missing",
        ("--", "no-such-program test || exit 2"),
        empty,
        could_not_run("command", "exit code 2: /bin/sh: 1: no-such-program: not found"),
    ),
    GateCase(
        "a program that cannot be executed",
        ("--", "./check.sh; exit $?"),
        with_files({"check.sh": "exit 0\n"}),
        could_not_run("command", "exit code 126: /bin/sh: 1: ./check.sh: Permission denied"),
    ),
    GateCase("killed", ("--", "kill -9 $$"), empty, could_not_run("command", "it was killed by signal 9")),
    GateCase(
        "killed in a chain",
        ("--", "sh -c 'kill -9 $$' 2>/dev/null; exit $?"),
        empty,
        could_not_run("command", "it was killed by signal 9"),
    ),
    GateCase(
        "as many failures as a signal has for its exit code",
        ("--", "echo '  130 failing'; exit 130"),
        empty,
        blocked("`echo ' 130 failing'; exit 130`: exit code 130\n  130 failing"),
    ),
    GateCase(
        "an exit code above 128 that is not one of a killed command",
        ("--", "exit 150"),
        empty,
        blocked("`exit 150`: exit code 150"),
    ),
    GateCase(
        "a program of the check is missing, and failures are reported",
        ("--", "no-such-program; echo FAILED a; exit 1"),
        empty,
        blocked(
            "`no-such-program; echo FAILED a; exit 1`: exit code 1\nFAILED a\n/bin/sh: 1: no-such-program: not found"
        ),
    ),
    GateCase(
        "a program of a target of make is missing",
        ("--", "make", "test"),
        with_files({"Makefile": "test:\n\t@no-such-program --all\n"}),
        could_not_run("command", "exit code 2: make: *** [Makefile:2: test] Error 127"),
    ),
    GateCase(
        "a report has lines of 120 columns, as in a wide terminal",
        ("--", "echo $COLUMNS; exit 1"),
        empty,
        blocked("`echo $COLUMNS; exit 1`: exit code 1\n120"),
    ),
    GateCase(
        "its own timeout",
        ("--timeout", "0.5", "--", SLEEP),
        empty,
        could_not_run("command", "it did not end within 0.5 s"),
    ),
    GateCase(
        "strict",
        ("--strict", "--", "exit 127"),
        empty,
        blocked('gate "command" could not run: exit code 127: a program was not found'),
    ),
    GateCase(
        "waiting",
        ("--", "exit 1"),
        background,
        {"systemMessage": 'gate "command" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase(
        "waiting: also if it is strict",
        ("--strict", "--", "exit 1"),
        background,
        {"systemMessage": 'gate "command" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase(
        "failed: a command in the background disables no gate",
        ("--", "exit 1"),
        lambda _: {
            "background_tasks": [{"id": "b1", "type": "shell", "status": "running", "command": "sleep 9"}]
        },
        blocked("`exit 1`: exit code 1"),
    ),
    GateCase(
        "names with spaces and newlines",
        ("--", "ls; exit 1"),
        with_files({"a b\nc": "x"}),
        blocked("`ls; exit 1`: exit code 1\na b\nc"),
    ),
    GateCase(
        "10 MB of output",
        ("--", "yes line | head -c 10000000; echo 'E   assert 1 == 2'; yes more | head -c 10000; exit 1"),
        empty,
        blocked(
            "`yes line | head -c 10000000; echo 'E assert 1 == 2'; yes more | head -c 10000; exit 1`: exit code 1\n"
            "… [1,999,999 lines left out] …\nline\nE   assert 1 == 2\n"
            + "more\n" * 4
            + "… [1,984 lines left out] …"
            + "\nmore" * 12
        ),
    ),
    GateCase(
        "binary output",
        ("--", "printf 'a\\000\\377\\033[31mb\\n'; exit 1"),
        empty,
        blocked("`printf 'a\\000\\377\\033[31mb\\n'; exit 1`: exit code 1\na�b"),
    ),
    GateCase("nothing changed", ("--if-changed", "src/**", "--", "exit 1"), repository, NOTHING),
    GateCase(
        "another file has changed",
        ("--if-changed", "src/**", "--", "exit 1"),
        changed("docs/new.md"),
        NOTHING,
    ),
    GateCase(
        "a file has changed",
        ("--if-changed", "tests/**", "src/**", "--", "exit 1"),
        changed("src/code.py"),
        blocked("`exit 1`: exit code 1"),
    ),
    GateCase(
        "a file was changed and committed",
        ("--all-failures", "--if-changed", "src/**", "--", "exit 1"),
        steps(with_files({"src/new.py": ""}), commit),
        blocked("`exit 1`: exit code 1"),
        start=repository,
    ),
    GateCase(
        "without git, a file has changed",
        ("--all-failures", "--if-changed", "*.py", "--", "exit 1"),
        with_files({"code.py": "x = 2\n"}),
        blocked("`exit 1`: exit code 1"),
        start=with_files({"code.py": "x = 1\n"}),
    ),
    GateCase(
        "without git, nothing has changed",
        ("--if-changed", "src/**", "--", "exit 1"),
        empty,
        {},
        start=with_files({"src/code.py": "x = 1\n"}),
    ),
    GateCase(
        "without git and without a record, the command decides",
        ("--if-changed", "src/**", "--", "exit 1"),
        empty,
        blocked("`exit 1`: exit code 1"),
    ),
    GateCase(
        "failures without a record of the session's start",
        ("--", CAT_AND_FAIL),
        known_failures,
        blocked(f"`{CAT_AND_FAIL}`: exit code 1\n{failing('test_old')}".strip()),
    ),
    GateCase(
        "failures at the session's start that are not known, without git",
        ("--", CAT_AND_FAIL),
        with_files({"other": ""}),
        blocked(
            f"`{CAT_AND_FAIL}`: exit code 1\n{failing('test_old')}\n"
            "All failures count, because what failed at the session's start is not known: "
            "the files of the session's start are not recorded in git.\n"
            "If all of this failed before, end your answer with `turngate: keep command: failed before`."
        ),
        start=known_failures,
    ),
    GateCase(
        "the end of what was printed before its time was up",
        ("--timeout", "0.5", "--", "echo one; echo; echo two >&2; sleep 600"),
        empty,
        could_not_run("command", "it did not end within 0.5 s; the end of its output: one / two"),
    ),
    GateCase(
        "a short reason",
        ("--reason-chars", "100", "--", "seq 1000; exit 1"),
        empty,
        blocked(
            "`seq 1000; exit 1`: exit code 1\n… [976 lines left out] …\n"
            + "\n".join(map(str, range(977, 1001)))
        ),
    ),
)
