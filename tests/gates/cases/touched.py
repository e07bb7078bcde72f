"""The cases of the gate `touched`. It starts no command of the user, so that output of any size is that of git."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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

WORDS = ("touched", "--if", "src/**", "--then", "CHANGELOG.md")
FILES = {"src/a.py": "a = 1\n", "src/b.py": "b = 1\n", "CHANGELOG.md": "old\n", "README.md": "old\n"}
NO_RECORD = (
    "and the project's state at the session's start was not recorded; configure this gate at SessionStart too"
)
NOT_ENFORCED = {
    "systemMessage": f'gate "touched" could not run: the project has no git repository, {NO_RECORD}; it was NOT enforced'
}


def blocked(*names: str, wanted: str = "CHANGELOG.md") -> dict[str, str]:
    listed = "\n".join(name if name.startswith("and ") else f"- {name}" for name in names)
    reason = f"these files have changed, but none that {wanted} names:\n{listed}\nUpdate {wanted} to match."
    return {"decision": "block", "reason": reason}


def changed(
    contents: Mapping[str, str | bytes], *then: Step, **fields: Any
) -> Callable[[Path], Mapping[str, Any]]:
    return steps(repository(FILES), write_transcript, files(contents), *then, **fields)


START = steps(
    repository(FILES),
    files({"src/a.py": "of the user\n", "src/new of the user.py": "x\n", "src/large": "x" * 2**21}),
)

CASES = [
    GateCase(
        "passed: both have changed", WORDS, changed({"src/a.py": "a = 2\n", "CHANGELOG.md": "new\n"}), {}
    ),
    GateCase(
        "failed: only the source has changed", WORDS, changed({"src/a.py": "a = 2\n"}), blocked("src/a.py")
    ),
    GateCase(
        "failed: the change is committed", WORDS, changed({"src/a.py": ""}, commit), blocked("src/a.py")
    ),
    GateCase("failed: a new file", WORDS, changed({"src/new.py": ""}), blocked("src/new.py")),
    GateCase(
        "failed: a file was deleted",
        WORDS,
        changed({}, removed("src/a.py")),
        blocked("src/a.py"),
    ),
    GateCase(
        "failed: only the mode of the changelog has changed",
        WORDS,
        changed({"src/a.py": ""}, lambda project: (project / "CHANGELOG.md").chmod(0o755)),
        blocked("src/a.py"),
    ),
    GateCase(
        "passed: the mode of the changelog has changed, and its content",
        WORDS,
        changed(
            {"src/a.py": "", "CHANGELOG.md": "new\n"}, lambda project: (project / "CHANGELOG.md").chmod(0o755)
        ),
        {},
    ),
    GateCase(
        "failed: a file was moved away",
        WORDS,
        changed({}, runs_git("mv", "src/a.py", "a.py")),
        blocked("src/a.py"),
    ),
    GateCase(
        "failed: a deleted changelog is not kept up to date",
        WORDS,
        changed({"src/a.py": ""}, removed("CHANGELOG.md")),
        blocked("src/a.py"),
    ),
    GateCase(
        "failed: many files",
        WORDS,
        changed({f"src/{number}.py": "" for number in range(9)}),
        blocked(*(f"src/{number}.py" for number in range(5)), "and 4 more"),
    ),
    GateCase("passed: only other files have changed", WORDS, changed({"README.md": "new\n"}), {}),
    GateCase("passed: nothing changed", WORDS, changed({}), {}),
    GateCase(
        "passed: several globs, one of which is enough",
        ("touched", "--if", "src/**", "--if", "*.toml", "--then", "CHANGELOG.md", "--then", "docs/**"),
        changed({"pyproject.toml": "", "docs/new page.md": ""}),
        {},
    ),
    GateCase(
        "failed: several globs",
        ("touched", "--if", "*.toml", "--if", "!src", "--then", "CHANGELOG.md", "--then", "docs/**"),
        changed({"pyproject.toml": "", "src/x.toml": ""}),
        blocked("pyproject.toml", wanted="CHANGELOG.md docs/**"),
    ),
    GateCase(
        "passed: a file that both lists name is enough",
        ("touched", "--if", "**", "--then", "*.md"),
        changed({"README.md": "new\n"}),
        {},
    ),
    GateCase(
        "failed: stop_hook_active passes no gate",
        WORDS,
        changed({"src/a.py": ""}, stop_hook_active=True),
        blocked("src/a.py"),
    ),
    GateCase(
        "waiting: a subagent works in the background",
        WORDS,
        lambda project: (
            changed({"src/a.py": ""})(project)
            or {"background_tasks": [{"id": "1", "type": "subagent", "status": "running"}]}
        ),
        {"systemMessage": 'gate "touched" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase("could not run: no git", WORDS, steps(files(FILES)), NOT_ENFORCED),
    GateCase("could not run: an empty project without git", WORDS, steps(), NOT_ENFORCED),
    GateCase(
        "strict: no git",
        (*WORDS, "--strict"),
        steps(files(FILES)),
        {
            "decision": "block",
            "reason": f'gate "touched" could not run: the project has no git repository, {NO_RECORD}',
        },
    ),
    GateCase("passed: an empty repository", WORDS, steps(runs_git("init", "-q")), {}),
    GateCase(
        "failed: a repository without a commit",
        WORDS,
        steps(runs_git("init", "-q"), files({"src/a.py": ""})),
        blocked("src/a.py"),
    ),
    GateCase("recorded: what the user has changed before does not count", WORDS, steps(), {}, START),
    GateCase(
        "recorded: what was changed since counts",
        WORDS,
        steps(files({"src/a.py": "of the agent\n", "src/c.py": ""})),
        blocked("src/a.py", "src/c.py"),
        START,
    ),
    GateCase(
        "recorded: a commit of what was there is not a change",
        WORDS,
        steps(commit),
        {},
        START,
    ),
    GateCase("recorded: no git, nothing changed", WORDS, steps(), {}, steps(files(FILES))),
    GateCase(
        "recorded: no git, a changed, a new and a deleted file",
        WORDS,
        steps(files({"src/a.py": "a = 2\n", "src/a\nb c.py": ""}), removed("src/b.py")),
        blocked('"src/a\\nb c.py"', "src/a.py", "src/b.py"),
        steps(files(FILES)),
    ),
    GateCase(
        "failed: names with blanks, newlines, quotes, dashes and bytes that are not UTF-8",
        WORDS,
        changed(
            {
                "src/-rf": "",
                "src/a b\nc.py": "",
                'src/q"u.py': "",
                "src/ü.py": "",
                os.fsdecode(b"src/\xff.py"): "",
            }
        ),
        blocked("src/-rf", '"src/a b\\nc.py"', '"src/q\\"u.py"', "src/ü.py", '"src/\\xff.py"'),
    ),
    GateCase(
        "failed: 10 MB of changes in a binary file",
        WORDS,
        changed({"src/large.bin": bytes(range(256)) * 40960}),
        blocked("src/large.bin"),
    ),
    GateCase(
        "could not run: its own timeout",
        (*WORDS, "--timeout", "0.01"),
        changed({"src/a.py": ""}),
        {
            "systemMessage": 'gate "touched" could not run: the changes since the session\'s start cannot be read '
            "within 0.01 s; it was NOT enforced"
        },
    ),
]
