"""The cases of the gate `outputs`. It does not need git, and runs no command of the user."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.gates import GateCase
from tests.support.git_projects import (
    Step,
    files,
    repository,
    runs_git,
    steps,
    write,
    write_transcript,
)

WORDS = ("outputs", "reports/*.md")
REPORT = {"reports/a.md": "# Report\n"}
UNKNOWN = {"systemMessage": 'gate "outputs": when the agent has begun is not known, so the files may be old'}


def aged(*names: str) -> Step:
    """Return a step after which the files are older than the session."""

    def step(project: Path) -> None:
        for name in names:
            os.utime(project / name, (10**9, 10**9))

    return step


def blocked(*findings: str) -> dict[str, str]:
    listed = "\n".join(each if each.startswith("and ") else f"- {each}" for each in findings)
    return {
        "decision": "block",
        "reason": f"these outputs are missing:\n{listed}\nWrite them before you finish.",
    }


def subagent(project: Path) -> Mapping[str, Any]:
    """Make a file that is newer than the session, and older than the subagent that stops."""
    write_transcript(project)
    (project.parent / "transcript.jsonl").rename(project.parent / "agent.jsonl")
    write_transcript(project, "2001-01-01T00:00:00Z")
    write(project, REPORT)
    os.utime(project / "reports/a.md", (1_100_000_000, 1_100_000_000))
    path = str(project.parent / "agent.jsonl")
    return {
        "hook_event_name": "SubagentStop",
        "agent_id": "a1",
        "agent_type": "writer",
        "agent_transcript_path": path,
    }


CASES = [
    GateCase("passed: it exists, is new and is not empty", WORDS, steps(files(REPORT), write_transcript), {}),
    GateCase(
        "failed: there is none",
        WORDS,
        steps(write_transcript),
        blocked("reports/*.md: there is no such file"),
    ),
    GateCase(
        "failed: it is empty",
        WORDS,
        steps(files({"reports/a.md": ""}), write_transcript),
        blocked("reports/a.md is empty"),
    ),
    GateCase(
        "failed: it is old",
        WORDS,
        steps(files(REPORT), aged("reports/a.md"), write_transcript),
        blocked("reports/a.md is older than this session"),
    ),
    GateCase(
        "passed: an old one, by choice",
        (*WORDS, "--any-age"),
        steps(files(REPORT), aged("reports/a.md"), write_transcript),
        {},
    ),
    GateCase(
        "passed: one of several is good",
        WORDS,
        steps(
            files({**REPORT, "reports/b.md": "", "reports/c.md": "c"}), aged("reports/c.md"), write_transcript
        ),
        {},
    ),
    GateCase(
        "failed: it is too short",
        (*WORDS, "--min-bytes", "100"),
        steps(files(REPORT), write_transcript),
        blocked("reports/a.md has less than 100 bytes"),
    ),
    GateCase(
        "failed: each glob needs one",
        ("outputs", "reports/*.md", "dist/app.js", "!reports/draft.md", "data"),
        steps(files({"reports/draft.md": "x", "data/x/y.bin": b"\0"}), write_transcript),
        blocked("reports/*.md: there is no such file", "dist/app.js: there is no such file"),
    ),
    GateCase(
        "passed: also files that git ignores",
        ("outputs", "dist/**"),
        steps(repository({".gitignore": "dist\n"}), files({"dist/app.js": "x"}), write_transcript),
        {},
    ),
    GateCase(
        "failed: many files are empty",
        ("outputs", *(f"{number:02}" for number in range(15))),
        steps(write_transcript),
        blocked(*(f"{number:02}: there is no such file" for number in range(10)), "and 5 more"),
    ),
    GateCase(
        "failed: a subagent is compared with its own start",
        WORDS,
        subagent,
        blocked("reports/a.md is older than this session"),
    ),
    GateCase("passed: the start is not known, with a note", WORDS, steps(files(REPORT)), UNKNOWN),
    GateCase(
        "failed: the start is not known, and there is none",
        WORDS,
        steps(),
        blocked("reports/*.md: there is no such file"),
    ),
    GateCase("recorded: a file since the start", WORDS, steps(files(REPORT)), {}, steps()),
    GateCase(
        "recorded: a file before the start",
        WORDS,
        steps(),
        blocked("reports/a.md is older than this session"),
        steps(files(REPORT), aged("reports/a.md")),
    ),
    GateCase(
        "failed: stop_hook_active passes no gate",
        WORDS,
        steps(write_transcript, stop_hook_active=True),
        blocked("reports/*.md: there is no such file"),
    ),
    GateCase(
        "waiting: a subagent works in the background",
        WORDS,
        steps(background_tasks=[{"id": "1", "type": "subagent", "status": "running"}]),
        {"systemMessage": 'gate "outputs" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase(
        "passed: a repository without a commit",
        WORDS,
        steps(runs_git("init", "-q"), files(REPORT), write_transcript),
        {},
    ),
    GateCase(
        "failed: names with blanks, newlines, quotes and dashes",
        ("outputs", "*.txt"),
        steps(files({"-a b\nc.txt": "", 'q".txt': ""}), write_transcript),
        blocked('"-a b\\nc.txt" is empty', '"q\\".txt" is empty'),
    ),
    GateCase(
        "passed: 10 MB of a binary file",
        ("outputs", "*.bin"),
        steps(files({"a.bin": bytes(range(256)) * 40960}), write_transcript),
        {},
    ),
    GateCase(
        "could not run: its own timeout",
        (*WORDS, "--timeout", "0.001"),
        steps(files(REPORT)),
        {
            "systemMessage": 'gate "outputs" could not run: the project\'s files cannot be listed within 0.001 s; '
            "it was NOT enforced"
        },
    ),
    GateCase(
        "strict: its own timeout",
        (*WORDS, "--timeout", "0.001", "--strict"),
        steps(files(REPORT)),
        {
            "decision": "block",
            "reason": 'gate "outputs" could not run: the project\'s files cannot be listed within 0.001 s',
        },
    ),
]
