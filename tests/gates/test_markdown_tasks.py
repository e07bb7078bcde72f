"""The tasks of a Markdown file."""

import pytest

from turngate.gates.markdown_tasks import Task, read_checkboxes, read_plan, section

CHECKBOXES = {
    "- [ ] one": [Task("one", False)],
    "* [x] one\n+ [X] two": [Task("one", True), Task("two", True)],
    "1. [ ] one\n2) [x] two": [Task("one", False), Task("two", True)],
    "- [] one\n- [ ]": [Task("one", False), Task("(without a name)", False)],
    "- [-] dropped\n- [~] half\n- [/] begun": [
        Task("dropped", True),
        Task("half", False),
        Task("begun", False),
    ],
    "- [.] begun\n- [  ] two\n- [\u00a0] three": [
        Task("begun", False),
        Task("two", False),
        Task("three", False),
    ],
    "- a\n    - [ ] nested\n\n        - [x] deeper": [Task("nested", False), Task("deeper", True)],
    "# H\n## Sub\n- [ ] one\n# Other #\n- [ ] two": [
        Task("one", False, ("H", "Sub")),
        Task("two", False, ("Other",)),
    ],
    "- [.] one\n- [d] two\n- [  ] three\n- [\xa0] four\n- [..] five\n- [   ] six": [
        Task(name, False) for name in ("one", "two", "three", "four", "five", "six")
    ],
    "- [x ] one\n- [ x] two\n- [✔\ufe0f] three": [Task(name, True) for name in ("one", "two", "three")],
    # A block of code or a comment without an end hides nothing
    "```\n- [ ] code\n```\n```sh\n- [ ] one\n~~~\n- [ ] two": [Task("one", False), Task("two", False)],
    "<!-- a -->\n<!-- no end\n- [ ] one": [Task("one", False)],
    # What is not a task
    "```\n- [ ] code\n```": [],
    "````md\n```\n- [ ] code\n```\n````\n- [ ] one": [Task("one", False)],
    "~~~\n- [ ] code\n```\n~~~": [],
    "- item\n  ```\n  - [ ] code\n  ```\n- [ ] one": [Task("one", False)],
    "`` ` `` and ```inline``` code\n- [ ] one": [Task("one", False)],
    "text\n\n    - [ ] indented code": [],
    "> - [ ] quoted\n  > - [ ] quoted": [],
    "<!-- - [ ] a -->\n<!--\n- [ ] b\n-->- [ ] c": [Task("c", False)],
    "- [ ] one <!-- note -->": [Task("one", False)],
    "- [link](x)\n- [1] reference\n- [UI] label\n- [x](link)\n[ ] no list\n-[ ] no blank\ntext - [ ] in a line": [],
    "": [],
}


@pytest.mark.parametrize("text", CHECKBOXES)
def test_checkboxes(text: str) -> None:
    assert read_checkboxes(text) == CHECKBOXES[text]


PLANS = {
    "- [ ] one": [Task("one", False)],
    "## Task 1\n**Status:** In progress": [Task("Task 1 has the status In progress", False, ("Task 1",))],
    "## Task 1\n- **Status**: complete": [Task("Task 1 has the status complete", True, ("Task 1",))],
    "Status: pending": [Task("the plan has the status pending", False)],
    "## A\nStatus: ✅ done": [Task("A has the status ✅ done", True, ("A",))],
    "## Phase 1\n### Parser ✅\n### Printer (pending)\n### [ ] Tests\n### [x] Docs": [
        Task("Parser", True, ("Phase 1",)),
        Task("Printer", False, ("Phase 1",)),
        Task("Tests", False, ("Phase 1",)),
        Task("Docs", True, ("Phase 1",)),
    ],
    "| # | Task | Status |\n|---|---|---|\n| 1 | Parser | done |\n| 2 | Printer | not started |\n\n| a | b |": [
        Task("1 Parser", True),
        Task("2 Printer", False),
    ],
    # What has no status
    "# Plan\n**Status:** Approved by Ann\nstatus: https://ci.example": [],
    "## Parser (new)\n## Open questions": [],
    "| Name | Size |\n|---|---|\n| done | pending |": [],
    "```\nStatus: pending\n```": [],
}


@pytest.mark.parametrize("text", PLANS)
def test_plans(text: str) -> None:
    assert read_plan(text) == PLANS[text]


def test_a_section_has_the_tasks_below_its_heading() -> None:
    tasks = read_checkboxes("# A\n- [ ] a\n## **Done** when\n- [ ] b\n### More\n- [ ] c\n## Other\n- [ ] d")
    assert [task.text for task in section(tasks, "## done when")] == ["b", "c"]


def test_ten_megabytes_are_read() -> None:
    assert len(read_checkboxes("- [ ] item\n" * 900_000)) == 900_000
