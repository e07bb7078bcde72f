"""The cases of the gate `untouched`. It runs no command of the user; output of any size is that of `git diff`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.gates.cases.touched import NO_RECORD
from tests.support.gates import GateCase
from tests.support.git_projects import (
    Step,
    commit,
    files,
    removed,
    repository,
    runs_git,
    steps,
    with_submodule,
    write_transcript,
)
from tests.support.transcripts import talk

WORDS = ("untouched", "tests", ".github")
TEST = """\
import pytest


def test_one():
    assert one() == 1
    assert two(
        1,
    ) == 2


def test_errors():
    with pytest.raises(ValueError):
        one("x")
"""
FILES = {
    "src/a.py": "a = 1\n",
    "tests/test_a.py": TEST,
    ".github/ci.yml": "run: pytest\n",
    "tests/run.sh": "pytest\n",
}
ADVICE = "Restore them, and complete the task without changing them."


def changed(
    contents: Mapping[str, str | bytes], *then: Step, **fields: Any
) -> Callable[[Path], Mapping[str, Any]]:
    return steps(repository(FILES), write_transcript, files(contents), *then, **fields)


def edited(old: str, new: str) -> Callable[[Path], Mapping[str, Any]]:
    """Return the setup in which the test was edited."""
    assert old in TEST
    return changed({"tests/test_a.py": TEST.replace(old, new)})


def asks(prompt: str) -> Step:
    """Return the step that writes the conversation in which the user says this."""
    return lambda project: talk().user(prompt).says("Done.").write(project.parent / "transcript.jsonl")


def blocked(*findings: str) -> dict[str, str]:
    listed = "\n".join(each if each.startswith("and ") else f"- {each}" for each in findings)
    return {"decision": "block", "reason": f"protected files have changed:\n{listed}\n{ADVICE}"}


def not_enforced(why: str) -> dict[str, str]:
    return {"systemMessage": f'gate "untouched" could not run: {why}; it was NOT enforced'}


START = steps(repository(FILES), files({"tests/test_a.py": TEST + "# of the user\n"}))
OLD_TEST = "from old import old\n\n\ndef test_old():\n    assert old() == 1\n"
WEAK = ("untouched", "tests", ".github", "--no-weakening")

CASES = [
    GateCase("passed: only other files have changed", WORDS, changed({"src/a.py": "a = 2\n"}), {}),
    GateCase("passed: nothing changed", WORDS, changed({}), {}),
    GateCase(
        "passed, with a note: a file of a submodule",
        ("untouched", "**/m.py"),
        steps(files({"lib/m.py": "x = 2\n"})),
        {"systemMessage": 'gate "untouched": changes in a submodule are not checked: lib'},
        steps(repository({"a.py": ""}), with_submodule, write_transcript),
    ),
    GateCase(
        "failed: a test was edited",
        WORDS,
        edited("== 1", "== 2"),
        blocked("tests/test_a.py:5 was changed"),
    ),
    GateCase(
        "failed: and committed",
        WORDS,
        changed({"tests/test_a.py": ""}, commit),
        blocked("tests/test_a.py:1 was changed"),
    ),
    GateCase(
        "failed: deleted, renamed, mode changed",
        WORDS,
        changed(
            {},
            runs_git("mv", "tests/test_a.py", "tests/b.py"),
            removed(".github/ci.yml"),
            lambda project: (project / "tests/run.sh").chmod(0o755),
        ),
        blocked(
            ".github/ci.yml was deleted",
            "tests/test_a.py was renamed to tests/b.py",
            "tests/run.sh: its mode was changed from 100644 to 100755",
        ),
    ),
    GateCase(
        "failed: moved away",
        WORDS,
        changed({}, runs_git("mv", "tests/test_a.py", "old.py")),
        blocked("tests/test_a.py was renamed to old.py"),
    ),
    GateCase("passed: a new test", WORDS, changed({"tests/test_b.py": ""}), {}),
    GateCase(
        "failed: a new test, by choice",
        (*WORDS, "--added"),
        changed({"tests/test_b.py": ""}),
        blocked("tests/test_b.py was added"),
    ),
    GateCase(
        "failed: hidden from git",
        WORDS,
        changed(
            {}, runs_git("update-index", "--skip-worktree", "tests/run.sh"), files({"tests/run.sh": "true\n"})
        ),
        blocked("tests/run.sh:1 was changed"),
    ),
    GateCase(
        "failed: no longer tracked, and ignored",
        WORDS,
        changed({".gitignore": "run.sh\n"}, runs_git("rm", "-q", "--cached", "tests/run.sh")),
        blocked("tests/run.sh was deleted"),
    ),
    GateCase(
        "passed: with an exception",
        ("untouched", "tests", "!tests/run.sh"),
        changed({"tests/run.sh": "true\n"}),
        {},
    ),
    GateCase(
        "failed: many files",
        ("untouched", "**", "--added"),
        changed({f"{number:02}": "" for number in range(22)}),
        blocked(*(f"{number:02} was added" for number in range(10)), "and 12 more"),
    ),
    GateCase(
        "failed: stop_hook_active passes no gate",
        WORDS,
        changed({"tests/run.sh": ""}, stop_hook_active=True),
        blocked("tests/run.sh:1 was changed"),
    ),
    GateCase(
        "waiting: a subagent works in the background",
        WORDS,
        changed(
            {"tests/run.sh": ""}, background_tasks=[{"id": "1", "type": "subagent", "status": "running"}]
        ),
        {"systemMessage": 'gate "untouched" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase("recorded: changes of the user do not count", WORDS, steps(), {}, START),
    GateCase(
        "recorded: changes since count",
        WORDS,
        steps(files({"tests/test_a.py": TEST})),
        blocked("tests/test_a.py:14 was changed"),
        START,
    ),
    GateCase(
        "recorded: no git",
        WORDS,
        steps(files({"tests/run.sh": "true\n"}), removed(".github/ci.yml")),
        blocked(".github/ci.yml was deleted", "tests/run.sh was changed"),
        steps(files(FILES)),
    ),
    GateCase("recorded: no git, nothing changed", WEAK, steps(), {}, steps(files(FILES))),
    GateCase(
        "could not run: recorded, but assertions cannot be compared without git",
        WEAK,
        steps(files({"tests/test_a.py": ""})),
        not_enforced("the project has no git repository, so the lines of changed files are not known"),
        steps(files(FILES)),
    ),
    GateCase(
        "could not run: no git",
        WORDS,
        steps(files(FILES)),
        not_enforced(f"the project has no git repository, {NO_RECORD}"),
    ),
    GateCase(
        "could not run: an empty project",
        WORDS,
        steps(),
        not_enforced(f"the project has no git repository, {NO_RECORD}"),
    ),
    GateCase(
        "strict: no git",
        (*WORDS, "--strict"),
        steps(),
        {
            "decision": "block",
            "reason": f'gate "untouched" could not run: the project has no git repository, {NO_RECORD}',
        },
    ),
    GateCase("passed: an empty repository", WORDS, steps(runs_git("init", "-q")), {}),
    GateCase(
        "failed: names with blanks, newlines, quotes and bytes that are not UTF-8",
        ("untouched", "*.txt"),
        steps(
            repository(
                {"-a b\nc.txt": "1\n", 'q".txt': "1\n", os.fsdecode(b"\xff.txt"): "1\n", "*.txt": "1\n"}
            ),
            files({"-a b\nc.txt": "2\n", 'q".txt': "2\n", os.fsdecode(b"\xff.txt"): "2\n"}),
        ),
        blocked('"-a b\\nc.txt":1 was changed', '"q\\".txt":1 was changed', '"\\xff.txt":1 was changed'),
    ),
    GateCase(
        "failed: 10 MB of a binary file",
        WORDS,
        changed({"tests/run.sh": bytes(range(256)) * 40960}),
        blocked("tests/run.sh was changed"),
    ),
    GateCase(
        "failed: 20 MB of text",
        WORDS,
        changed({"tests/run.sh": "one more line\n" * 1_500_000}),
        blocked("tests/run.sh:1 was changed"),
    ),
    GateCase(
        "could not run: its own timeout",
        (*WORDS, "--timeout", "0.01"),
        changed({}),
        not_enforced("the changes since the session's start cannot be read within 0.01 s"),
    ),
    GateCase(
        "no weakening: passed, an assertion was added",
        WEAK,
        edited("== 1\n", "== 1\n    assert one() > 0\n"),
        {},
    ),
    GateCase(
        "no weakening: passed, formatted", WEAK, edited("two(\n        1,\n    ) == 2", "(two(1) == 2)"), {}
    ),
    GateCase(
        "no weakening: passed, an expectation was changed",
        WEAK,
        edited("== 1", "== 2"),
        {},
    ),
    GateCase(
        "no weakening: failed, also on a later line of the statement",
        WEAK,
        edited(") == 2", ") is not None"),
        blocked("tests/test_a.py:6: an assertion was removed or weakened: assert two("),
    ),
    GateCase(
        "no weakening: failed, commented out",
        WEAK,
        edited("    assert one()", "    # assert one()"),
        blocked("tests/test_a.py:5: an assertion was removed or weakened: assert one() == 1"),
    ),
    GateCase(
        "no weakening: failed, in a string",
        WEAK,
        edited("    assert one() == 1\n", '    """\n    assert one() == 1\n    """\n'),
        blocked("tests/test_a.py:6: an assertion was removed or weakened: assert one() == 1"),
    ),
    GateCase(
        "no weakening: failed, skipped",
        WEAK,
        edited("def test_one", "@pytest.mark.skip(reason='later')\ndef test_one"),
        blocked("tests/test_a.py:4: a test is switched off: @pytest.mark.skip(reason='later')"),
    ),
    GateCase(
        "no weakening: failed, a test was removed",
        WEAK,
        edited("def test_errors", "def errors"),
        blocked("tests/test_a.py:11: a test was removed: def test_errors():"),
    ),
    GateCase(
        "no weakening: passed, a test was renamed", WEAK, edited("def test_errors", "def test_all_errors"), {}
    ),
    GateCase(
        "no weakening: passed, moved to another file",
        WEAK,
        changed({"tests/test_b.py": TEST}, removed("tests/test_a.py")),
        {},
    ),
    GateCase(
        "no weakening: failed, deleted",
        WEAK,
        changed({}, removed("tests/test_a.py")),
        blocked("tests/test_a.py was deleted"),
    ),
    GateCase(
        "no weakening: failed, moved away",
        WEAK,
        changed({}, runs_git("mv", "tests/test_a.py", "a.py")),
        blocked("tests/test_a.py was renamed to a.py"),
    ),
    GateCase(
        "no weakening: failed, renamed so that no test runner finds it",
        WEAK,
        changed({}, runs_git("mv", "tests/test_a.py", "tests/test_a.py.disabled")),
        blocked("tests/test_a.py was renamed to tests/test_a.py.disabled"),
    ),
    GateCase(
        "no weakening: passed, renamed to another test",
        WEAK,
        changed({}, runs_git("mv", "tests/test_a.py", "tests/a_test.py")),
        {},
    ),
    GateCase(
        "no weakening: failed, CI no longer runs the tests",
        WEAK,
        changed({".github/ci.yml": "run: true\n"}),
        blocked(".github/ci.yml:1: a check was removed: run: pytest"),
    ),
    GateCase(
        "no weakening: passed, a snapshot",
        WEAK,
        steps(
            repository({**FILES, "tests/__snapshots__/a.snap": "1\n"}),
            write_transcript,
            files({"tests/__snapshots__/a.snap": "2\n"}),
        ),
        {},
    ),
    GateCase(
        "no weakening: failed, deselected in a file that is not protected",
        WEAK,
        changed({"pytest.ini": "[pytest]\naddopts = --deselect tests/test_a.py::test_one\n"}),
        blocked("pytest.ini:2: tests are left out: addopts = --deselect tests/test_a.py::test_one"),
    ),
    GateCase(
        "no weakening: passed, a test of what was removed too",
        WEAK,
        steps(
            repository({**FILES, "old.py": "def old():\n    return 1\n", "tests/test_old.py": OLD_TEST}),
            write_transcript,
            removed("old.py"),
            removed("tests/test_old.py"),
        ),
        {},
    ),
    GateCase(
        "no weakening: failed, a test of what is still there",
        WEAK,
        steps(
            repository({**FILES, "old.py": "def old():\n    return 1\n", "tests/test_old.py": OLD_TEST}),
            write_transcript,
            removed("tests/test_old.py"),
        ),
        blocked("tests/test_old.py was deleted"),
    ),
    GateCase(
        "no weakening: passed, the user asked for it",
        WEAK,
        steps(
            repository({**FILES, "tests/test_old.py": OLD_TEST}),
            asks("Please remove test_old, it is not needed."),
            removed("tests/test_old.py"),
        ),
        {},
    ),
    GateCase(
        "no weakening: failed, the user does not want it",
        WEAK,
        steps(
            repository({**FILES, "tests/test_old.py": OLD_TEST}),
            asks("Make old faster. Do not remove tests."),
            removed("tests/test_old.py"),
        ),
        blocked("tests/test_old.py was deleted"),
    ),
]
