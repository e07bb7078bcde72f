"""The cases of the gate `checklist`.

It runs only `head`, and `git ls-files` for a glob, so that the output of a command is the content of the file.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.git_projects import write
from tests.support.transcripts import TranscriptBuilder, talk

END = "Finish what is open and check it off."
OPEN = "# To do\n- [x] one\n- [ ] two\n- [ ] three\n"
OPEN_REASON = f"2 of 3 items in TODO.md are open:\n- two\n- three\n{END}"
RUNNING = [{"id": "b1", "type": "subagent", "status": "running", "agent_type": "explorer"}]


def project_with(
    contents: Mapping[str, str | bytes], transcript: TranscriptBuilder | None = None, **fields: Any
) -> Callable[[Path], Mapping[str, Any]]:
    def setup(project: Path) -> Mapping[str, Any]:
        write(project, contents)
        if transcript is not None:
            transcript.write(project.parent / "transcript.jsonl")
        return fields

    return setup


def _fifo(project: Path) -> None:
    os.mkfifo(project / "TODO.md")


def _edits(name: str) -> Callable[[Path], Mapping[str, Any]]:
    """Return the set-up of a session in which the agent has edited a file of the project, given by its absolute path."""

    def setup(project: Path) -> Mapping[str, Any]:
        return project_with({"TODO.md": OPEN}, talk().edits(str(project / name)))(project)

    return setup


IF_TOUCHED = ("checklist", "--if-touched", "TODO.md")

CASES = (
    GateCase("checked items pass", ("checklist", "TODO.md"), project_with({"TODO.md": "- [x] one\n"}), {}),
    GateCase(
        "open items are named",
        ("checklist", "TODO.md"),
        project_with({"TODO.md": OPEN}),
        blocked(OPEN_REASON),
    ),
    GateCase(
        "an agent that a hook already continues is blocked too",
        ("checklist", "TODO.md"),
        project_with({"TODO.md": OPEN}, stop_hook_active=True),
        blocked(OPEN_REASON),
    ),
    GateCase(
        "items in code, quotations and comments do not count",
        ("checklist", "TODO.md"),
        project_with({"TODO.md": "- [x] a\n> - [ ] b\n<!-- - [ ] c -->\n```\n- [ ] d\n```\n"}),
        {},
    ),
    GateCase(
        "a file without a checklist passes with a note",
        ("checklist", "TODO.md"),
        project_with({"TODO.md": "# To do\n"}),
        {"systemMessage": 'gate "checklist": TODO.md has no checklist'},
    ),
    GateCase(
        "several files",
        ("checklist", "A.md", "B.md", "C.md"),
        project_with({"A.md": "- [ ] a\n", "B.md": "1. [x] b\n", "C.md": "* [ ] c\n"}),
        blocked(f"1 of 1 items in A.md is open:\n- a\n\n1 of 1 items in C.md is open:\n- c\n{END}"),
    ),
    GateCase(
        "a glob, without git",
        ("checklist", "docs/plans/*/TODO.md"),
        project_with(
            {"docs/plans/a/TODO.md": "- [ ] a\n", "docs/plans/b/TODO.md": "- [x] b\n", "TODO.md": OPEN}
        ),
        blocked(f"1 of 1 items in docs/plans/a/TODO.md is open:\n- a\n{END}"),
    ),
    GateCase(
        "a glob that names nothing",
        ("checklist", "docs/*.md"),
        project_with({}),
        could_not_run("checklist", "docs/*.md names no file of the project"),
    ),
    GateCase(
        "blanks and line breaks in names",
        ("checklist", "my list\n.md", "-n.md"),
        project_with({"my list\n.md": "- [ ] a\n", "-n.md": "- [ ] b\n"}),
        blocked(
            f'1 of 1 items in "my list\\n.md" is open:\n- a\n\n1 of 1 items in -n.md is open:\n- b\n{END}'
        ),
    ),
    GateCase(
        "only a section",
        ("checklist", "--section", "done when", "TODO.md"),
        project_with({"TODO.md": "## Ideas\n- [ ] a\n## Done when\n- [ ] b\n"}),
        blocked(f"1 of 1 items in TODO.md is open:\n- b\n{END}"),
    ),
    GateCase(
        "a section that is not there",
        ("checklist", "--section", "Nothing", "TODO.md"),
        project_with({"TODO.md": OPEN}),
        could_not_run("checklist", "TODO.md has no section 'Nothing'"),
    ),
    GateCase(
        "an empty project",
        ("checklist", "TODO.md"),
        project_with({}),
        could_not_run("checklist", "there is no file TODO.md in the project"),
    ),
    GateCase(
        "a missing file blocks a strict gate",
        ("checklist", "--strict", "TODO.md"),
        project_with({}),
        blocked('gate "checklist" could not run: there is no file TODO.md in the project'),
    ),
    GateCase(
        "a folder",
        ("checklist", "docs"),
        project_with({"docs/a.md": ""}),
        could_not_run("checklist", "docs cannot be read: it is not a regular file"),
    ),
    GateCase(
        "a pipe, which never ends",
        ("checklist", "TODO.md"),
        _fifo,
        could_not_run("checklist", "TODO.md cannot be read: it is not a regular file"),
    ),
    GateCase(
        "a link to a device, which never ends",
        ("checklist", "TODO.md"),
        lambda project: os.symlink("/dev/zero", project / "TODO.md"),
        could_not_run("checklist", "TODO.md cannot be read: it is not a regular file"),
    ),
    GateCase(
        "its own timeout",
        ("checklist", "--timeout", "0.001", "TODO.md"),
        project_with({"TODO.md": OPEN}),
        could_not_run("checklist", "TODO.md cannot be read within 0.001 s"),
    ),
    GateCase(
        "10 MB",
        ("checklist", "TODO.md"),
        project_with({"TODO.md": "some text of a line\n" * 500_000 + "- [ ] last\n"}),
        blocked(f"1 of 1 items in TODO.md is open:\n- last\n{END}"),
    ),
    GateCase(
        "more than can be read",
        ("checklist", "TODO.md"),
        project_with({"TODO.md": "- [ ] a\n" * 2_500_000}),
        could_not_run("checklist", "TODO.md cannot be read: the output is too long"),
    ),
    GateCase(
        "binary content",
        ("checklist", "TODO.md"),
        project_with({"TODO.md": bytes(range(256)) * 100 + b"\n- [ ] a\xff\n"}),
        blocked(f"1 of 1 items in TODO.md is open:\n- a\ufffd\n{END}"),
    ),
    GateCase(
        "a waiting agent is left alone",
        ("checklist", "TODO.md"),
        project_with({"TODO.md": OPEN}, background_tasks=RUNNING),
        {"systemMessage": 'gate "checklist" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase(
        "an old list does not hold a session that has not edited it",
        IF_TOUCHED,
        project_with({"TODO.md": OPEN}, talk().edits("/elsewhere/TODO.md").runs("cat TODO.md")),
        {},
    ),
    GateCase("a list that this session has edited", IF_TOUCHED, _edits("TODO.md"), blocked(OPEN_REASON)),
    GateCase("another file was edited", IF_TOUCHED, _edits("docs/TODO.md"), {}),
    GateCase(
        "a list that a command has edited",
        IF_TOUCHED,
        project_with({"TODO.md": OPEN}, talk().runs("sed -i 's/a/b/' TODO.md")),
        blocked(OPEN_REASON),
    ),
    GateCase(
        "an edit that failed",
        IF_TOUCHED,
        project_with(
            {"TODO.md": OPEN}, talk().calls("Edit", {"file_path": "TODO.md"}, "Error", is_error=True)
        ),
        {},
    ),
    GateCase(
        "what was edited is unknown",
        IF_TOUCHED,
        project_with({"TODO.md": OPEN}),
        could_not_run("checklist", "the transcript cannot be read: No such file or directory"),
    ),
)
