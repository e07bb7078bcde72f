"""The cases of the gate `plan`. It runs only what `checklist` runs: see the cases there for globs and folders."""

from tests.gates.cases.checklist import RUNNING, project_with
from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.transcripts import talk

PLAN = """\
# Plan: printer

## Phase 1: Parser
- [x] Write the grammar
- [x] Test it

## Phase 2: Printer
- [ ] Write the printer
1. [ ] Print a table

## Phase 3: Docs
- [ ] Write the page
"""
OPEN_REASON = (
    "3 of 5 tasks of PLAN.md are open:\n"
    "- Write the printer (Phase 2: Printer)\n- Print a table (Phase 2: Printer)\n- Write the page (Phase 3: Docs)\n"
    "Complete them and update the plan."
)
DONE = PLAN.replace("[ ]", "[x]")
PHASE_2_REASON = (
    "2 of 2 tasks of Phase 2: Printer in PLAN.md are open:\n"
    "- Write the printer (Phase 2: Printer)\n- Print a table (Phase 2: Printer)\nComplete them and update the plan."
)
STATUS_PLAN = """\
# Plan
### Task 1: Parser
**Status:** complete
### Task 2: Printer
**Status:** pending
### Task 3: Docs (in progress)
"""
STATUS_REASON = (
    "2 of 3 tasks of PLAN.md are open:\n- Task 2: Printer has the status pending (Task 2: Printer)\n"
    "- Task 3: Docs (Plan)\nComplete them and update the plan."
)


def one_open(name: str, task: str) -> dict[str, object]:
    return blocked(f"1 of 1 tasks of {name} is open:\n- {task}\nComplete it and update the plan.")


PAUSE = ("plan", "--pause-between-phases", "PLAN.md")

CASES = (
    GateCase("a plan that is done passes", ("plan", "PLAN.md"), project_with({"PLAN.md": DONE}), {}),
    GateCase(
        "open tasks are named", ("plan", "PLAN.md"), project_with({"PLAN.md": PLAN}), blocked(OPEN_REASON)
    ),
    GateCase(
        "an agent that a hook already continues is blocked too",
        ("plan", "PLAN.md"),
        project_with({"PLAN.md": PLAN}, stop_hook_active=True),
        blocked(OPEN_REASON),
    ),
    GateCase(
        "tasks with a status in words",
        ("plan", "PLAN.md"),
        project_with({"PLAN.md": STATUS_PLAN}),
        blocked(STATUS_REASON),
    ),
    GateCase(
        "a table",
        ("plan", "docs/plans/*/PLAN.md"),
        project_with({"docs/plans/a b/PLAN.md": "| Task | Status |\n|--|--|\n| A | done |\n| B | todo |\n"}),
        blocked('1 of 2 tasks of "docs/plans/a b/PLAN.md" is open:\n- B\nComplete it and update the plan.'),
    ),
    GateCase(
        "a file without tasks",
        ("plan", "PLAN.md"),
        project_with({"PLAN.md": "# Plan\n"}),
        could_not_run("plan", "PLAN.md has no tasks: neither checkboxes nor a status"),
    ),
    GateCase(
        "an empty project",
        ("plan", "PLAN.md"),
        project_with({}),
        could_not_run("plan", "there is no file PLAN.md in the project"),
    ),
    GateCase(
        "a missing plan blocks a strict gate",
        ("plan", "PLAN.md", "--strict"),
        project_with({}),
        blocked('gate "plan" could not run: there is no file PLAN.md in the project'),
    ),
    GateCase(
        "a blank and a line break in a name",
        ("plan", "my plan\n.md"),
        project_with({"my plan\n.md": "- [ ] a\n"}),
        one_open('"my plan\\n.md"', "a"),
    ),
    GateCase(
        "10 MB",
        ("plan", "PLAN.md"),
        project_with({"PLAN.md": ("x" * 9_999 + "\n") * 1_000 + "- [ ] last\n"}),
        one_open("PLAN.md", "last"),
    ),
    GateCase(
        "binary content",
        ("plan", "PLAN.md"),
        project_with({"PLAN.md": bytes(range(256)) * 100 + b"\n- [ ] a\xff\n"}),
        one_open("PLAN.md", "a\ufffd"),
    ),
    GateCase(
        "its own timeout",
        ("plan", "--timeout", "0.001", "PLAN.md"),
        project_with({"PLAN.md": PLAN}),
        could_not_run("plan", "PLAN.md cannot be read within 0.001 s"),
    ),
    GateCase(
        "a waiting agent is left alone",
        ("plan", "PLAN.md"),
        project_with({"PLAN.md": PLAN}, background_tasks=RUNNING),
        {"systemMessage": 'gate "plan" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase(
        "an old plan does not hold a session that has not edited it",
        ("plan", "--if-touched", "PLAN.md"),
        project_with({"PLAN.md": PLAN}, talk().runs("cat PLAN.md")),
        {},
    ),
    GateCase(
        "a plan that this session has edited",
        ("plan", "--if-touched", "PLAN.md"),
        project_with({"PLAN.md": PLAN}, talk().edits("PLAN.md")),
        blocked(OPEN_REASON),
    ),
    GateCase(
        "a phase that another session has completed needs no answer",
        PAUSE,
        project_with({"PLAN.md": PLAN}, talk().user("Go on with PLAN.md.")),
        blocked(PHASE_2_REASON),
    ),
    GateCase(
        "a plan that nobody has named", ("plan", "PLAN.md"), project_with({"PLAN.md": PLAN}, talk()), {}
    ),
    GateCase(
        "the phases that the user has asked for",
        ("plan", "PLAN.md"),
        project_with({"PLAN.md": PLAN}, talk().user("Do phase 1 of PLAN.md, not phase 2.")),
        {},
    ),
    GateCase(
        "tasks for later",
        ("plan", "PLAN.md"),
        project_with({"PLAN.md": "- [x] a\n## Out of scope\n- [ ] b\n"}, talk().edits("PLAN.md")),
        {},
    ),
    GateCase(
        "a plan that was asked for, and not begun",
        ("plan", "PLAN.md"),
        project_with({"PLAN.md": "- [ ] a\n"}, talk().user("Write a plan.").edits("PLAN.md")),
        {"systemMessage": 'gate "plan": PLAN.md was written, and none of it was begun'},
    ),
    GateCase(
        "a plan without phases does not pause",
        PAUSE,
        project_with({"PLAN.md": "- [x] a\n- [ ] b\n"}, talk().edits("PLAN.md")),
        blocked("1 of 2 tasks of PLAN.md is open:\n- b\nComplete it and update the plan."),
    ),
)
