"""The cases of the gate `no-stubs`; those of lines are in test_stubs. It runs no command of the user."""

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
    write_transcript,
)

WORDS = ("no-stubs",)
OLD = "# TODO of before\ndef f():\n    return 1\n"
FILES = {"src/a.py": OLD, "README.md": "TODO\n"}
ADVICE = "Complete them, or remove them and say in your answer what is missing."


def changed(
    contents: Mapping[str, str | bytes], *then: Step, **fields: Any
) -> Callable[[Path], Mapping[str, Any]]:
    return steps(repository(FILES), write_transcript, files(contents), *then, **fields)


def blocked(*findings: str) -> dict[str, str]:
    listed = "\n".join(each if each.startswith("and ") else f"- {each}" for each in findings)
    return {"decision": "block", "reason": f"the added lines contain stubs:\n{listed}\n{ADVICE}"}


def not_enforced(why: str) -> dict[str, str]:
    return {"systemMessage": f'gate "no-stubs" could not run: {why}; it was NOT enforced'}


STUB = OLD + "# TODO\n"
FOUND = blocked("src/a.py:4: TODO: # TODO")
LONG = f"# {'x' * 9_997}\n" * 1_800  # 18 MB

CASES = [
    GateCase("passed: no stubs", WORDS, changed({"src/a.py": OLD + "a = 1\n"}), {}),
    GateCase("passed: nothing changed", WORDS, changed({}), {}),
    GateCase("failed: a TODO", WORDS, changed({"src/a.py": STUB}), FOUND),
    GateCase("failed: and committed", WORDS, changed({"src/a.py": STUB}, commit), FOUND),
    GateCase(
        "failed: several, also in a new file",
        WORDS,
        changed(
            {"src/a.py": OLD + "def g():\n    pass\n", "src/b.ts": 'throw new Error("not implemented")\n'}
        ),
        blocked(
            "src/a.py:4: empty body: def g():",
            'src/b.ts:1: not implemented: throw new Error("not implemented")',
        ),
    ),
    GateCase("passed: moved to another file", WORDS, changed({"src/b.py": OLD}, removed("src/a.py")), {}),
    GateCase("passed: renamed", WORDS, changed({}, runs_git("mv", "src/a.py", "src/b.py")), {}),
    GateCase(
        "passed: not source code", WORDS, changed({"README.md": "TODO\nFIXME\n", "notes.txt": "TODO\n"}), {}
    ),
    GateCase(
        "passed: allowed",
        (*WORDS, "--allow", "TODO(#*)"),
        changed({"src/a.py": OLD + "# TODO(#12): x\n"}),
        {},
    ),
    GateCase(
        "failed: another one than what is allowed",
        (*WORDS, "--allow", "TODO(#*)"),
        changed({"src/a.py": STUB}),
        FOUND,
    ),
    GateCase("passed: another file", (*WORDS, "--files", "!src"), changed({"src/a.py": STUB}), {}),
    GateCase(
        "failed: one of the files",
        (*WORDS, "--files", "src"),
        changed({"src/a.py": STUB, "b.py": STUB}),
        FOUND,
    ),
    GateCase(
        "failed: many",
        WORDS,
        changed({"src/a.py": "# FIXME\n" * 22}),
        blocked(*(f"src/a.py:{number}: FIXME: # FIXME" for number in range(1, 11)), "and 12 more"),
    ),
    GateCase(
        "failed: stop_hook_active passes no gate",
        WORDS,
        changed({"src/a.py": STUB}, stop_hook_active=True),
        FOUND,
    ),
    GateCase(
        "waiting: a subagent works in the background",
        WORDS,
        changed({"src/a.py": STUB}, background_tasks=[{"id": "1", "type": "subagent", "status": "running"}]),
        {"systemMessage": 'gate "no-stubs" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase(
        "recorded: the stubs of the user do not count",
        WORDS,
        steps(files({"src/a.py": STUB + "a = 1\n", "src/b.py": STUB})),
        blocked("src/b.py:1: TODO: # TODO of before", "src/b.py:4: TODO: # TODO"),
        steps(repository(FILES), files({"src/a.py": STUB})),
    ),
    GateCase(
        "recorded: no git, only new files are checked",
        WORDS,
        steps(files({"src/a.py": STUB, "src/n w\n.py": "# TODO\n"})),
        blocked('"src/n w\\n.py":1: TODO: # TODO'),
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
            "reason": f'gate "no-stubs" could not run: the project has no git repository, {NO_RECORD}',
        },
    ),
    GateCase("passed: an empty repository", WORDS, steps(runs_git("init", "-q")), {}),
    GateCase(
        "failed: names with blanks, newlines, quotes and bytes that are not UTF-8",
        WORDS,
        changed({"-a b\nc.py": "# TODO\n", 'q".py': "# TODO\n", os.fsdecode(b"\xff.py"): "# TODO\n"}),
        blocked(
            '"-a b\\nc.py":1: TODO: # TODO',
            '"q\\".py":1: TODO: # TODO',
            '"\\xff.py":1: TODO: # TODO',
        ),
    ),
    GateCase(
        "failed: bytes that are not UTF-8, and controls",
        WORDS,
        changed({"src/b.py": b"# TODO \xff\x1b[31m\r\n"}),
        blocked("src/b.py:1: TODO: # TODO \ufffd"),
    ),
    GateCase("passed: a binary file", WORDS, changed({"src/b.bin": b"# TODO\0" * 10}), {}),
    GateCase(
        "failed: a source file that looks like a binary one",
        WORDS,
        changed({"src/b.py": b"# TODO\n\0"}),
        blocked("src/b.py:1: TODO: # TODO"),
    ),
    GateCase(
        "passed, with a note: a new repository inside of the project",
        WORDS,
        changed({"n w/a.py": STUB}, runs_git("init", "-q", "n w")),
        {"systemMessage": 'gate "no-stubs": not checked, because it is a repository of its own: "n w/"'},
    ),
    GateCase(
        "failed: although there is also a repository inside of the project",
        WORDS,
        changed({"nested/a.py": STUB, "src/a.py": STUB}, runs_git("init", "-q", "nested")),
        FOUND,
    ),
    GateCase(
        "recorded: a repository inside of the project that was there before",
        WORDS,
        steps(files({"src/a.py": OLD + "a = 1\n"})),
        {},
        steps(repository(FILES), files({"nested/a.py": STUB}), runs_git("init", "-q", "nested")),
    ),
    GateCase(
        "could not run: more than can be read",
        WORDS,
        changed({"src/a.py": LONG}),
        not_enforced(
            "the changes are too long to be read as a whole; in the part that was read, nothing was found"
        ),
    ),
    GateCase(
        "could not run: its own timeout",
        (*WORDS, "--timeout", "0.01"),
        changed({}),
        not_enforced("the changes since the session's start cannot be read within 0.01 s"),
    ),
]
