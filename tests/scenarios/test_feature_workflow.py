"""The workflow of document 003, examples/feature-workflow: where it passes, and where it must not, in `run` and as a hook."""

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

from tests.hosts.recordings import recorded
from tests.support.cli import TURNGATE, turngate
from tests.support.git_projects import commit, make_repository
from tests.support.paths import ROOT
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.transcripts import TranscriptBuilder

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
            "--allow",
            "Bash",
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
def planned(_workflow: Workflow) -> Workflow:
    _workflow.begin(plan)
    return _workflow


@pytest.fixture
def implemented(_workflow: Workflow) -> Workflow:
    _workflow.begin(plan, implement)
    return _workflow


def plan(workflow: Workflow) -> None:
    assert workflow.run("plan", "/plan text functions", "--session", "plan")[0] == 12


def implement(workflow: Workflow) -> None:
    assert workflow.run("implement", "/implement text", "--session", "implement")[0] == 0


def shipped(name: str) -> Script:
    script: Script = json.loads((EXAMPLE / "scripts" / f"{name}.json").read_text())
    return script


AT_THE_START = [("plan-is-done", "allow"), ("full-suite", "allow")]  # these gates record something
QUESTION = "Phase 1: Plan is complete; 3 tasks are open in Phase 2: Implementation. Check the result, then say whether to go on."


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


@pytest.mark.req("S3-56", "S3-64")
def test_a_missing_or_bad_plan_makes_the_planner_continue_and_a_good_one_waits_for_the_user(
    workflow: Workflow,
) -> None:
    code, result = workflow.run("plan", "/plan text functions", "--session", "plan")
    assert (code, result["ended_by"], result["stop_reason"]) == (12, "checkpoint", QUESTION)
    assert reasons(result, "plan-is-written") == [
        f"these outputs are missing:\n- {PLAN.replace('text', '*')}: there is no such file\nWrite them before you finish."
    ]
    [reason] = reasons(result, "plan-has-phases")
    assert reason.splitlines()[1:] == [
        f'{PLAN} has no heading "## Phase 2" with the tasks of the implementation'
    ]
    assert [(each["agent_type"], each["redirects"]) for each in result["subagents"]] == [("feature-plan", 2)]


@pytest.mark.req("S3-57", "S3-58", "S3-59", "S3-60", "S3-66")
def test_after_the_users_yes_chunks_are_checked_in_parallel_then_the_plan_then_the_full_suite(
    planned: Workflow,
) -> None:
    code, result = planned.run("implement", "yes", "--resume", "--session", "plan")
    assert (code, result["outcome"], result["continuations"]) == (0, "completed", 0)
    redirects = {each["label"]: each["redirects"] for each in result["subagents"]}
    assert {name: redirects[name] for name in CHUNKS} == {"chunk-1": 0, "chunk-2": 1, "chunk-3": 0}
    [reason] = reasons(result, "chunk-tests")
    assert reason.startswith("You have edited tests/test_title.py, and no command has checked it since.")
    assert stops(result, "chunk-lint").count(("chunk-lint", "block")) == 0
    assert stops(result, "update-memory", "plan-is-done", "full-suite")[-3:] == [
        ("update-memory", "allow"),
        ("plan-is-done", "allow"),
        ("full-suite", "allow"),
    ]
    assert re.findall(r"\[(.)\]", (planned.project / PLAN).read_text()) == ["x", "x", "x", "x"]


def test_nothing_is_implemented_if_the_user_says_no(planned: Workflow) -> None:
    code, result = planned.run("implement", "no", "--resume", "--session", "plan")
    assert (code, result["ended_by"], (planned.project / "slug.py").exists()) == (12, "checkpoint", False)


@pytest.mark.req("S3-58", "S3-59", "S3-60")
def test_a_chunk_that_is_missing_blocks_the_stop_before_the_full_suite_runs(planned: Workflow) -> None:
    script = shipped("implement")
    orchestrate = script["sub"]["Orchestrate"]
    [*tasks], [*marks] = orchestrate[0]["tools"], orchestrate[2]["tools"]
    orchestrate[0]["tools"], orchestrate[2]["tools"] = tasks[:2], marks[:2]
    read = {"tool": "Read", "input": {"file_path": PLAN}}
    script["main"] = [
        script["main"][0],
        "Done.",
        {"tools": [tasks[2]]},
        read,
        {"tools": [marks[2]]},
        "Done, all three.",
    ]
    code, result = planned.run(script, "/implement text", "--session", "implement")
    assert (code, result["continuations"], result["result"]) == (0, 1, "Done, all three.")
    assert stops(result, "plan-is-done", "full-suite") == [
        *AT_THE_START,
        ("plan-is-done", "block"),
        ("full-suite", "skipped"),
        ("plan-is-done", "allow"),
        ("full-suite", "allow"),
    ]
    [reason] = reasons(result, "plan-is-done")
    assert reason.splitlines()[:2] == [
        f"1 of 3 tasks of Phase 2: Implementation in {PLAN} is open:",
        "- chunk-3: counts (count.py, tests/test_count.py) (Phase 2: Implementation)",
    ]


@pytest.mark.req("S3-57", "S3-60")
def test_a_chunk_that_is_never_checked_ends_at_the_limit_and_the_run_says_so(planned: Workflow) -> None:
    script = shipped("implement")
    script["sub"]["Implement chunk-2"] = script["sub"]["Implement chunk-2"][:2]
    code, result = planned.run(script, "/implement text", "--session", "implement")
    assert [(each["label"], each["reason"]) for each in result["blocked_subagents"]] == [
        ("chunk-2", "capped")
    ]
    assert (code, result["ended_by"]) == (10, "capped")
    assert all("FAIL: test_title_of_two_words" in each for each in reasons(result, "full-suite"))


@pytest.mark.req("S3-59", "S3-60")
def test_the_full_suite_blocks_although_every_chunk_passes(planned: Workflow) -> None:
    broken, repaired = (
        f"def words(text: str) -> list[str]:\n    return {each}\n" for each in ("[]", "text.split()")
    )
    script = shipped("implement")
    first = {"tool": "Bash", "input": {"command": f"printf '{broken}' > words.py"}}
    fix = {"tool": "Bash", "input": {"command": f"printf '{repaired}' > words.py"}}
    script["main"] = [first, script["main"][0], "Done.", fix, "Repaired."]
    code, result = planned.run(script, "/implement text", "--session", "implement")
    assert (code, result["result"]) == (0, "Repaired.")
    assert stops(result, "plan-is-done", "full-suite") == [
        *AT_THE_START,
        ("plan-is-done", "allow"),
        ("full-suite", "block"),
        ("plan-is-done", "allow"),
        ("full-suite", "allow"),
    ]
    assert "FAIL: test_words" in reasons(result, "full-suite")[0]


@pytest.mark.req("S3-65", "S3-66", "S3-54")
def test_the_memory_is_written_at_a_stop_and_the_next_session_begins_with_it(planned: Workflow) -> None:
    memory = planned.project / "docs/plans/text/MEMORY.md"
    chunks = "chunk-1: slugs (slug.py, tests/test_slug.py); chunk-2: titles (title.py, tests/test_title.py); chunk-3: counts (count.py, tests/test_count.py)"
    assert memory.read_text() == (
        f"# Memory\n\n## Session plan\n\n- tasks: 3 open: {chunks}\n"
        "- last answer: The plan has three chunks: slugs, titles, counts.\n"
    )
    memory.write_text(memory.read_text() + "".join(f"line {number}\n" for number in range(300)))
    _, result = planned.run({"main": ["The chunks."]}, "What is next?", "--session", "next")
    [loaded] = [each for each in result["hook_runs"] if each["hook"]["id"] == "load-memory"]
    lines = loaded["stdout"].splitlines()
    assert (len(lines), lines[2]) == (100, "## Session plan")


def test_a_session_that_is_resumed_or_replaced_continues_where_the_work_stands(implemented: Workflow) -> None:
    code, result = implemented.run({"main": ["It is all there."]}, "/implement text", "--session", "two")
    assert (code, stops(result, "plan-is-done", "full-suite")) == (
        0,
        [*AT_THE_START, ("plan-is-done", "allow"), ("full-suite", "allow")],
    )


def test_a_session_that_implements_nothing_is_not_held_by_the_plan(planned: Workflow) -> None:
    code, result = planned.run({"main": ["Hello."]}, "Say hello.", "--session", "other")
    assert (code, stops(result, "plan-is-done")) == (0, [("plan-is-done", "allow")] * 2)


# The same files as a hook of other programs


class HostSession:
    """A session of Claude Code or Codex in the example, with their input and transcripts."""

    def __init__(self, host: str, folder: Path) -> None:
        self.project = folder / "project"
        runpy.run_path(str(EXAMPLE / "install.py"))["install"](self.project)
        make_repository(self.project, {})
        commit(self.project)
        assert turngate("hooks", "approve", "--all", "--yes", "--project", str(self.project))[0] == 0
        self._host, self._transcripts = host, folder / f".{host}" / "projects" / "p"
        self._transcripts.mkdir(parents=True)
        self._prompts = 0
        self._hook("SessionStart", "main")

    def user(self, agent: str, text: str) -> None:
        self._prompts += agent == "main"
        source = {"content_item_metadata": [{"provenance": {"type": "user"}}]}
        prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        self._append(
            agent,
            TranscriptBuilder().user(text),
            prompt | {"internal_chat_message_metadata_passthrough": source},
        )

    def runs(self, agent: str, command: str) -> None:
        """Run a command of the agent."""
        done = subprocess.run(
            ["sh", "-c", command], cwd=self.project, capture_output=True, text=True, check=False
        )
        output = f"Process exited with code {done.returncode}\nOutput:\n{done.stdout}{done.stderr}"
        self._append(
            agent,
            TranscriptBuilder().runs(command, done.stdout + done.stderr, done.returncode),
            {
                "type": "function_call",
                "name": "exec_command",
                "arguments": json.dumps({"cmd": command}),
                "call_id": command,
            },
            {"type": "function_call_output", "call_id": command, "output": output},
        )

    def begins(self, kind: str, prompt: str) -> None:
        self.user(kind, prompt)
        self._hook("SubagentStart", kind)

    def stops(self, agent: str, answer: str) -> tuple[str | None, str]:
        """Return the decision and what was said: the reason, or what the user reads."""
        event = "Stop" if agent == "main" else "SubagentStop"
        answered = self._hook(event, agent, last_assistant_message=answer)
        decision = "halt" if answered.get("continue") is False else answered.get("decision")
        return decision, answered.get("reason") or answered.get("stopReason") or answered.get(
            "systemMessage", ""
        )

    def _append(self, agent: str, claude: TranscriptBuilder, *codex: dict[str, Any]) -> None:
        path = self._transcripts / f"{agent}.jsonl"
        before = path.read_bytes() if path.exists() else b""
        meta = {"timestamp": "2026-11-16T12:00:00Z", "type": "session_meta", "payload": {"id": agent}}
        items = [
            {"timestamp": "2026-11-16T12:00:00Z", "type": "response_item", "payload": each} for each in codex
        ]
        lines = [json.dumps(each).encode() for each in ([] if before else [meta]) + items]
        added = claude.lines if self._host == "claude" else lines
        path.write_bytes(before + b"".join(line + b"\n" for line in added))

    def _hook(self, event: str, agent: str, **fields: Any) -> dict[str, Any]:
        given = recorded(self._host, event) | fields | {"cwd": str(self.project)}
        given["transcript_path"] = str(self._transcripts / "main.jsonl")
        if "Subagent" in event:
            own = {"agent_id": agent, "agent_type": agent}
            given |= own | {"agent_transcript_path": str(self._transcripts / f"{agent}.jsonl")}
        for name in {"prompt_id", "turn_id"} & {*given}:
            given[name] = f"prompt {self._prompts}"
        code, out, err = turngate("hook", stdin=json.dumps(given))
        assert (code, err) == (0, "")
        answer: dict[str, Any] = json.loads(out) if out.strip() else {}
        return answer


WRITE_PLAN = f"mkdir -p docs/plans/text && printf '# Text\\n{{}}' > {PLAN}"
TASKS = "- [ ] chunk-1: slugs (slug.py, tests/test_slug.py)\\n"
GOOD_PLAN = f"## Phase 1: Plan\\n- [x] Write the plan\\n## Phase 2: Implementation\\n{TASKS}"
WRITE_SLUG = "printf 'def slug(text):\\n    return text{}\\n' > slug.py"
WRITE_TEST = (
    "printf 'import unittest\\nfrom slug import slug\\n\\nclass SlugTest(unittest.TestCase):\\n    def test_slug(self):\\n"
    '        self.assertEqual(slug("A"), "a")\\n\' > tests/test_slug.py'
)
RUN_TEST = "python3 -m unittest tests.test_slug"


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_the_same_files_hold_the_workflow_as_a_hook_of(host: str, tmp_path: Path) -> None:
    session = HostSession(host, tmp_path)
    session.user("main", f"Plan the text functions in {PLAN}.")
    session.begins("feature-plan", "Plan the text functions.")
    decision, reason = session.stops("feature-plan", "The plan is ready.")
    assert (decision, "docs/plans/*/PLAN.md: there is no such file" in reason) == ("block", True)
    session.runs("feature-plan", WRITE_PLAN.format(TASKS))
    decision, reason = session.stops("feature-plan", "The plan is written.")
    assert (decision, f'{PLAN} has no heading "## Phase 2"' in reason) == ("block", True)
    session.runs("feature-plan", WRITE_PLAN.format(GOOD_PLAN))
    assert session.stops("feature-plan", "The plan has one task.") == (None, "")

    question = "Phase 1: Plan is complete; 1 task is open in Phase 2: Implementation. Check the result, then say whether to go on."
    assert session.stops("main", "The plan has one task.") == ("halt", f"waiting for the user: {question}")

    session.user("main", "yes")
    decision, reason = session.stops("main", "All is done.")
    assert (decision, "1 of 1 tasks of Phase 2: Implementation" in reason) == ("block", True)
    session.begins("chunk-worker", f"Implement chunk-1 of {PLAN}.")
    session.runs("chunk-worker", f"{WRITE_SLUG.format('')} && {WRITE_TEST}")
    decision, reason = session.stops("chunk-worker", "chunk-1 is done.")
    assert (decision, "no command has checked it since" in reason) == ("block", True)
    session.runs("chunk-worker", RUN_TEST)
    decision, reason = session.stops("chunk-worker", "chunk-1 is done.")
    assert (decision, f"`{RUN_TEST}` did not succeed" in reason) == ("block", True)

    session.runs("main", f"sed -i 's/- \\[ \\]/- [x]/' {PLAN}")
    decision, reason = session.stops("main", "All is done.")
    assert (decision, "FAIL: test_slug" in reason) == ("block", True)
    session.runs("chunk-worker", WRITE_SLUG.format(".lower()"))
    session.runs("chunk-worker", RUN_TEST)
    assert session.stops("chunk-worker", "chunk-1 is done, and its test passes.") == (None, "")
    assert session.stops("main", "All is done.") == (None, "")


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_a_session_without_a_plan_or_about_something_else_is_not_held_as_a_hook_of(
    host: str, tmp_path: Path
) -> None:
    session = HostSession(host, tmp_path)
    session.user("main", "hello")
    assert session.stops("main", "Hello!") == (None, "")
    subprocess.run(["sh", "-c", WRITE_PLAN.format(GOOD_PLAN)], cwd=session.project, check=True)
    session.user("main", "hi")
    assert session.stops("main", "Hi!") == (None, "")


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
    assert (done.returncode, codes, done.stdout.count("## Session")) == (0, ["12", "0"], 1)
