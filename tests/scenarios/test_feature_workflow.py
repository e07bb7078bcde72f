"""The workflow of document 003, examples/feature-workflow: where it passes, and where it must not."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import TURNGATE
from tests.support.paths import ROOT
from tests.support.timeouts import HANG_TIMEOUT_S

EXAMPLE = ROOT / "examples" / "feature-workflow"
PLAN = "docs/plans/text/PLAN.md"
CHUNKS = ("chunk-1", "chunk-2", "chunk-3")
Script = dict[str, Any]


class Workflow:
    """The example in a folder of its own, with a home. What was run once is copied for the tests that begin there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "workflow"
        self.project = self.folder / "project"
        self._copies = folder / "copies"

    def begin(self, *steps: Callable[["Workflow"], None]) -> None:
        """Install the example and take the steps, or copy the folder of a test that took them."""
        shutil.rmtree(self.folder, ignore_errors=True)
        copy = self._copies / "-".join(step.__name__ for step in steps)
        if not copy.exists():
            self.begin(*steps[:-1]) if steps else self._install()
            for step in steps[-1:]:
                step(self)
            shutil.copytree(self.folder, copy, symlinks=True)
        else:
            shutil.copytree(copy, self.folder, symlinks=True)

    def _install(self) -> None:
        self.project.mkdir(parents=True)
        runpy.run_path(str(EXAMPLE / "install.py"))["install"](self.project)

    def run(self, script: str | Script, *words: str) -> tuple[int, dict[str, Any]]:
        """Run one turn with a script, as its own process; return its exit code and its JSON."""
        path = EXAMPLE / "scripts" / f"{script}.json"
        if not isinstance(script, str):
            path = self.folder / "changed.json"
            path.write_text(json.dumps(script))
        options = (
            "--project",
            str(self.project),
            "--model",
            f"scripted:{path}",
            "--allow",
            "Write",
            "--allow",
            "Edit",
        )
        own = {
            "HOME": str(self.folder / "home"),
            "TURNGATE_STATE": str(self.folder / "state"),
            "HOOK_STATE": str(self.folder / "hook-state"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            [*TURNGATE, "run", "-p", *words, *options, "--output-format", "json"],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_TIMEOUT_S,
        )
        return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def _workflow(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    return Workflow(tmp_path_factory.mktemp("feature"))


@pytest.fixture
def workflow(_workflow: Workflow) -> Workflow:
    _workflow.begin()
    return _workflow


@pytest.fixture
def approved(_workflow: Workflow) -> Workflow:
    _workflow.begin(approve)
    return _workflow


@pytest.fixture
def implemented(_workflow: Workflow) -> Workflow:
    _workflow.begin(approve, implement)
    return _workflow


def approve(workflow: Workflow) -> None:
    assert workflow.run("plan", "/plan text functions", "--session", "plan")[0] == 12
    assert workflow.run("approve", "yes", "--resume", "--session", "plan")[0] == 0


def implement(workflow: Workflow) -> None:
    assert workflow.run("implement", "/implement text", "--session", "implement")[0] == 0


def shipped(name: str) -> Script:
    script: Script = json.loads((EXAMPLE / "scripts" / f"{name}.json").read_text())
    return script


AT_THE_START = ("full-suite", "allow")  # the gate records what defines its check


def stops(result: dict[str, Any], *hooks: str) -> list[tuple[str, str]]:
    """The outcome of each run of these hooks, in order."""
    runs = [(each["hook"]["id"], each["outcome"]) for each in result["hook_runs"]]
    return [each for each in runs if not hooks or each[0] in hooks]


def reasons(result: dict[str, Any], hook: str) -> list[str]:
    return [
        each["reason"]
        for each in result["hook_runs"]
        if each["hook"]["id"] == hook and each["outcome"] == "block"
    ]


@pytest.mark.req("S3-56", "S3-62")
def test_a_bad_plan_makes_the_planner_continue_and_a_good_one_waits_for_the_user(
    workflow: Workflow,
) -> None:
    run, project = workflow.run, workflow.project
    code, result = run("plan", "/plan text functions", "--session", "plan")
    assert (code, result["ended_by"]) == (12, "checkpoint")
    [reason] = reasons(result, "validate-plan")
    assert reason.splitlines() == [
        "The plan is not ready to be implemented:",
        f"- {PLAN}: chunk-2 has no tests",
        f"- {PLAN}: slug.py belongs to chunk-1 and to chunk-3; they are implemented at the same time",
    ]
    assert stops(result, "validate-plan") == [("validate-plan", "block"), ("validate-plan", "allow")]
    assert [(each["agent_type"], each["redirects"]) for each in result["subagents"]] == [("feature-plan", 1)]
    assert (project / PLAN).exists()
    code, result = run("approve", "yes", "--resume", "--session", "plan")
    assert (code, result["result"]) == (0, "Approved. `/implement text` implements it.")


@pytest.mark.req("S3-57", "S3-58", "S3-59", "S3-60", "S3-66")
def test_chunks_are_checked_in_parallel_then_all_of_them_then_the_full_suite(approved: Workflow) -> None:
    run, project = approved.run, approved.project
    code, result = run("implement", "/implement text", "--session", "implement")
    assert (code, result["outcome"], result["continuations"]) == (0, "completed", 0)
    redirects = {each["label"]: each["redirects"] for each in result["subagents"]}
    assert {name: redirects[name] for name in CHUNKS} == {"chunk-1": 0, "chunk-2": 1, "chunk-3": 0}
    [reason] = reasons(result, "validate-chunk")
    assert reason.startswith("chunk-2: its tests fail. Fix title.py.\n")
    assert "FAIL: test_title_of_two_words" in reason
    assert stops(result, "update-memory", "all-chunks", "full-suite") == [
        AT_THE_START,
        ("update-memory", "allow"),
        ("all-chunks", "allow"),
        ("full-suite", "allow"),
    ]
    assert re.findall(r"\[(.)\]", (project / PLAN).read_text()) == ["x", "x", "x"]


@pytest.mark.req("S3-58", "S3-59", "S3-60")
def test_a_chunk_that_is_missing_blocks_the_stop_before_the_full_suite_runs(approved: Workflow) -> None:
    run = approved.run
    script = shipped("implement")
    [*tasks] = script["sub"]["Orchestrate"][0]["tools"]
    script["sub"]["Orchestrate"][0]["tools"] = tasks[:2]
    finish = {"tools": [tasks[2]]}
    script["main"] = [script["main"][0], "Done.", finish, "Done, all three."]
    code, result = run(script, "/implement text", "--session", "implement")
    assert (code, result["continuations"], result["result"]) == (0, 1, "Done, all three.")
    assert stops(result, "all-chunks", "full-suite") == [
        AT_THE_START,
        ("all-chunks", "block"),
        ("full-suite", "skipped"),
        ("all-chunks", "allow"),
        ("full-suite", "allow"),
    ]
    missing = "chunk-3 is not complete, these files are missing: count.py, tests/test_count.py"
    assert reasons(result, "all-chunks") == [f"The plan is not complete:\n- {missing}"]


@pytest.mark.req("S3-57", "S3-60")
def test_a_chunk_that_is_never_repaired_ends_at_the_limit_and_the_run_says_so(approved: Workflow) -> None:
    run = approved.run
    script = shipped("implement")
    script["sub"]["Implement chunk-2"] = script["sub"]["Implement chunk-2"][:2]
    code, result = run(script, "/implement text", "--session", "implement")
    assert (code, result["ended_by"], set(reasons(result, "full-suite"))) == (10, "capped", set())
    assert [(each["label"], each["reason"]) for each in result["blocked_subagents"]] == [
        ("chunk-2", "capped")
    ]
    assert all("FAIL: test_title_of_two_words" in each for each in reasons(result, "all-chunks"))


@pytest.mark.req("S3-59", "S3-60")
def test_the_full_suite_blocks_although_every_chunk_passes(approved: Workflow) -> None:
    run, project = approved.run, approved.project
    (project / "words.py").write_text("def words(text: str) -> list[str]:\n    return []\n")
    script = shipped("implement")
    fix = {
        "file_path": "words.py",
        "content": "def words(text: str) -> list[str]:\n    return text.split()\n",
    }
    read = {"tool": "Read", "input": {"file_path": "words.py"}}
    script["main"] = [script["main"][0], "Done.", read, {"tool": "Write", "input": fix}, "Repaired."]
    code, result = run(script, "/implement text", "--session", "implement")
    assert (code, result["result"]) == (0, "Repaired.")
    assert stops(result, "all-chunks", "full-suite") == [
        AT_THE_START,
        ("all-chunks", "allow"),
        ("full-suite", "block"),
        ("all-chunks", "allow"),
        ("full-suite", "allow"),
    ]
    assert "FAIL: test_words" in reasons(result, "full-suite")[0]


@pytest.mark.req("S3-65", "S3-66", "S3-54")
def test_the_memory_is_written_at_a_stop_and_the_next_session_begins_with_it(approved: Workflow) -> None:
    run, project = approved.run, approved.project
    memory = project / "docs/plans/text/MEMORY.md"
    assert memory.read_text() == (
        "# Memory\n\n## Session plan\n\n- tasks: 3 open: chunk-1: slugs; chunk-2: titles; chunk-3: counts\n"
        "- last answer: Approved. `/implement text` implements it.\n"
    )
    memory.write_text(memory.read_text() + "".join(f"line {number}\n" for number in range(300)))
    _, result = run("approve", "What is next?", "--session", "next")
    [loaded] = [each for each in result["hook_runs"] if each["hook"]["id"] == "load-memory"]
    lines = loaded["stdout"].splitlines()
    assert (len(lines), lines[2]) == (100, "## Session plan")


def test_a_session_that_is_resumed_or_replaced_continues_where_the_work_stands(implemented: Workflow) -> None:
    """What an earlier session completed is checked again and not taken on trust."""
    run = implemented.run
    code, result = run({"main": ["It is all there."]}, "/implement text", "--session", "two")
    assert (code, stops(result, "all-chunks", "full-suite")) == (
        0,
        [AT_THE_START, ("all-chunks", "allow"), ("full-suite", "allow")],
    )


@pytest.mark.req("S3-58", "S3-60")
def test_the_plan_that_was_approved_and_the_files_of_its_chunks_have_to_stay(implemented: Workflow) -> None:
    run, project = implemented.run, implemented.project
    plan = (project / PLAN).read_text()
    lines = [line for line in plan.replace("[x] chunk-2", "[.] chunk-2").split("\n") if "chunk-3" not in line]
    (project / PLAN).write_text("\n".join(lines))
    (project / "slug.py").unlink()
    code, result = run({"main": ["Done."]}, "Go on.", "--resume", "--session", "implement")
    assert (code, reasons(result, "all-chunks")[0].split("\n")) == (
        10,
        [
            "The plan is not complete:",
            "- chunk-3 is no longer in the plan: restore it",
            "- chunk-1 is not complete, these files are missing: slug.py",
            "- the task is not marked as done: chunk-2: titles",
        ],
    )
    (project / PLAN).unlink()
    code, result = run({"main": ["Done."]}, "Go on.", "--resume", "--session", "implement")
    gone = [f"- {name} is no longer in the plan: restore it" for name in CHUNKS]
    assert (code, reasons(result, "all-chunks")[0].split("\n")) == (10, ["The plan is not complete:", *gone])


def test_a_session_that_implements_nothing_is_not_held_by_the_plan(approved: Workflow) -> None:
    run = approved.run
    code, result = run({"main": ["Hello."]}, "Say hello.", "--session", "other")
    assert (code, stops(result, "all-chunks")) == (0, [("all-chunks", "allow")])


@pytest.mark.req("S3-66")
def test_the_example_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "run.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    codes = re.findall(r"^exit code (\d+)$", done.stdout, re.MULTILINE)
    assert (done.returncode, codes, done.stdout.count("## Session")) == (0, ["12", "0", "0"], 2)
