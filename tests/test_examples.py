"""Every example runs, and does what it says."""

import asyncio
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples.plugins import test_runner_gate as example

from tests.support.builders import stop_event
from tests.support.paths import ROOT
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate import (
    Block,
    Plugins,
    ScriptedModel,
    Session,
    Settings,
    SubagentStoppingContext,
    SubagentStoppingEvent,
)
from turngate.core.events.stream_events import SessionEvent, SubagentRedirected

PROMPT = (
    "You indicated completion but the test results are not confirmed. "
    "Please run the test suite and report the results."
)


def played(
    project: Path, plugins: Plugins, label: str, *answers: Any
) -> tuple[str, list[SubagentRedirected]]:
    """A main agent asks for one child with these answers: the result, and how the child was sent back."""
    task = {"tool": "Task", "input": {"description": label, "prompt": "Run the tests."}}
    model = ScriptedModel({"main": [task, "green"], "sub": list(answers)})
    events: list[SessionEvent] = []

    async def turn() -> str:
        async with Session(
            str(project), model, Settings(), plugins=plugins, on_event=events.append
        ) as session:
            return (await session.send("go")).result

    return asyncio.run(turn()), [event for event in events if isinstance(event, SubagentRedirected)]


def test_the_example_plugin_runs_as_a_program(project: Path) -> None:
    words = [sys.executable, str(ROOT / "examples" / "plugins" / "test_runner_gate.py")]
    done = subprocess.run(
        words, cwd=project, capture_output=True, text=True, check=False, timeout=HANG_TIMEOUT_S
    )
    assert (done.returncode, done.stderr, done.stdout.splitlines(), os.listdir(project)) == (
        0,
        "",
        [
            "test-runner wants to stop, redirects: 0: I am done.",
            "test-runner wants to stop, redirects: 1: All tests passed: 12 of 12.",
            "The tests are run. Subagents: [('test-runner', 'ok')]",
        ],
        [],
    )


@pytest.mark.req("S4-46")
@pytest.mark.parametrize(
    ("label", "answers", "told"),
    [
        ("test-runner", ["I am done.", "All tests passed"], ["I am done.", "All tests passed"]),
        ("test-runner", ["I am done.", "✓ 12 tests"], ["I am done.", "✓ 12 tests"]),
        ("test-runner", ["All tests passed"], ["All tests passed"]),
        ("somebody else", ["I am done."], ["I am done."]),
        ("test-runner", [{"error": "invalid"}], [None]),
    ],
)
def test_the_seeds_plugin_sends_a_test_runner_back_until_its_results_are_confirmed(
    project: Path, state: Path, label: str, answers: list[Any], told: list[str | None]
) -> None:
    plugins, log = Plugins(), project / "telemetry.jsonl"
    example.register(plugins, log)
    result, redirected = played(project, plugins, label, *answers)
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert [
        (
            each["kind"],
            each["data"]["label"],
            each["data"]["last_assistant_message"],
            each["data"]["steer_count"],
        )
        for each in logged
    ] == [("subagent.stop", label, answer, number) for number, answer in enumerate(told)]
    back = [
        SubagentRedirected(logged[0]["data"]["agent_id"], label, "Test results not confirmed in output", 1, 3)
    ] * (len(told) - 1)
    [transcript] = state.glob("sessions/*/subagents/*.jsonl")
    heard = [json.loads(line).get("message", {}) for line in transcript.read_text().splitlines()]
    assert (result, redirected) == ("green", back)
    assert [each["content"] for each in heard if each.get("role") == "user"] == [
        "Run the tests.",
        *[PROMPT] * len(back),
    ]


@pytest.mark.req("S4-46")
def test_the_seeds_plugin_is_asked_before_one_of_lower_priority(project: Path) -> None:
    plugins, asked = Plugins(), list[str]()

    def lower(event: SubagentStoppingEvent, context: SubagentStoppingContext) -> None:
        asked.append(str(event.last_assistant_message))

    plugins.on("subagent_stopping", lower, priority=99)
    example.register(plugins, project / "telemetry.jsonl")
    played(project, plugins, "test-runner", "I am done.", "✓")
    assert asked == ["✓"]


HOOKS = {
    "command_hook": [
        "block: Write report.md first.",
        "allow: None",
        "completed: Done, and the report is written.",
    ],
    "prompt_hook": [
        "block: Run the tests and report the result.",
        "allow: The tests were run.",
        "completed: I ran the tests: 12 passed.",
    ],
    "callback_hook": [
        "block: You promise something for later. Do it now.",
        "allow: no promises",
        "completed: Done, with tests.",
    ],
    "http_hook": ["block: It is not reviewed yet.", "allow: None", "completed: Done, and reviewed."],
    "agent_hook": [
        "block: There is no CHANGES.md.",
        "allow: CHANGES.md names the discount.",
        "completed: Done, and CHANGES.md names it.",
    ],
    "session_analysis": [
        "would_block: A price list was asked for and written; no test reads it, which is the risk.",
        "completed: The prices are there.",
    ],
    "subagent_validation": [
        "block: Say how many there are.",
        "allow: 12 is a number.",
        "completed: There are 12 tests.",
    ],
    "different_stops": [
        "SubagentStop: Does the answer name the files it rests on? Yes.",
        "SubagentStop: Was the work checked? Yes.",
        "Stop: Is everything done that the user asked for? Yes.",
    ],
    "telemetry": [
        '{"event": "SubagentStop", "subagent": "Explore", "tool_calls": 0, "stop_hook_active": false}',
        '{"event": "Stop", "subagent": null, "tool_calls": 1, "stop_hook_active": false}',
    ],
    "quality_gate": [
        "no_secrets: allow []",
        "lint: block ['1:def total(prices): return 0  # TODO']",
        "types: skipped ['an earlier hook blocked']",
        "tests: skipped ['an earlier hook blocked']",
        "no_secrets: allow []",
        "lint: allow []",
        "types: allow []",
        "tests: block ['AssertionError']",
        "no_secrets: allow []",
        "lint: allow []",
        "types: allow []",
        "tests: allow []",
        "completed: Done, and it adds up.",
    ],
    "checklist": [
        "block: 2 tasks are open: discount, tests",
        "allow: None",
        "completed: Now everything is done.",
    ],
    "plan_review": [
        "block: The plan asks for empty input, and nothing handles it.",
        "allow: The plan is met.",
        "completed: The parser is done; empty input has its own test now.",
    ],
    "pipeline": [
        "parser: ok, redirects: 1",
        "printer: ok, redirects: 0",
        "SubagentStop block: parser.py does not exist. Write it.",
        "SubagentStop allow: None",
        "Stop block: These chunks are missing: printer",
        "SubagentStop allow: None",
        "Stop allow: None",
        "completed: Done, all of it.",
    ],
    "memory": [
        "No memory yet.",
        "- The prices are in prices.py.",
        "- The prices are in prices.py.",
        "- The discount is in.",
    ],
}


SHOWN = {
    **{f"{kind}_hook": ("S2-21",) for kind in ("command", "prompt", "callback", "http", "agent")},
    "session_analysis": ("S2-22",),
    "plan_review": ("S3-55",),
    "subagent_validation": ("S2-23",),
    "different_stops": ("S2-24",),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.req(*SHOWN[name])] if name in SHOWN else []) for name in HOOKS],
)
def test_an_example_of_a_hook_runs_offline_and_prints_the_answers_of_its_hooks(
    project: Path, home: Path, name: str
) -> None:
    words = [sys.executable, str(ROOT / "examples" / "hooks" / f"{name}.py")]
    done = subprocess.run(
        words, cwd=project, capture_output=True, text=True, check=False, timeout=HANG_TIMEOUT_S
    )
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", HOOKS[name])
    assert (os.listdir(project), os.listdir(home)) == ([], [])


REVIEW = (  # of document 003
    "Review the implementation against the plan in docs/plans/. Verify each task is truly complete, not just 'code compiles'. "
    "Check: 1) Does the code match plan requirements? 2) Are all edge cases handled? 3) Is the MEMORY.md accurate? "
)


@pytest.mark.req("S3-55")
def test_the_judge_of_the_plan_review_is_asked_the_questions_of_the_document_about_each_answer(
    state: Path,
) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "hooks" / "plan_review.py"))
    asked = [each.messages[0].text for each in example["MODEL"].requests if each.agent == "judge"]
    questions = [(text[: len(REVIEW)], json.loads(text[len(REVIEW) :])) for text in asked]
    assert [(review, event["last_assistant_message"]) for review, event in questions] == [
        (REVIEW, "The parser is done."),
        (REVIEW, "The parser is done; empty input has its own test now."),
    ]


def test_every_example_of_a_hook_is_run() -> None:
    assert sorted(path.stem for path in (ROOT / "examples" / "hooks").glob("*.py")) == sorted(HOOKS)


def test_the_example_of_an_http_hook_fails_without_its_extra(project: Path) -> None:
    path = ROOT / "examples" / "hooks" / "http_hook.py"
    code = f"import runpy, sys; sys.modules['h11'] = None; runpy.run_path({str(path)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "the hook was not enforced; does this Python have the extra `http`?",
    )
    assert "completed" not in done.stdout


@pytest.mark.req("S3-49")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            "../outside is written",
            "Begin your answer with the name of the chunk: '../outside.py' is not a relative path",
        ),
        (
            "/etc/passwd",
            "Begin your answer with the name of the chunk: '/etc/passwd.py' is not a relative path",
        ),
        (
            "link is written",
            "Begin your answer with the name of the chunk: 'link.py' does not lead to a place",
        ),
        ("a\0b", "Begin your answer with the name of the chunk: 'a\\x00b.py' is not a relative path"),
        ("", ".py does not exist. Write it."),
        ("missing is written", "missing.py does not exist. Write it."),
    ],
)
def test_the_pipeline_takes_no_file_outside_of_the_project(
    answer: str, reason: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.parent / "outside.py").write_text("pass")
    (project / "link.py").symlink_to(project.parent / "outside.py")
    monkeypatch.syspath_prepend(str(ROOT))
    example = runpy.run_path(str(ROOT / "examples" / "hooks" / "pipeline.py"))
    event = stop_event(cwd=str(project), last_assistant_message=answer)
    assert example["chunk_is_there"](event) == Block(
        f"{reason} below {project}." if "Begin" in reason else reason
    )


@pytest.mark.req("S3-49")
@pytest.mark.parametrize(
    ("example", "function", "file", "refusal"),
    [
        ("checklist", "all_ticked", "TODO.md", "TODO.md leads to a file with secrets. Replace it."),
        ("quality_gate", "no_secrets", "prices.py", "prices.py leads to a file with secrets. Replace it."),
        (
            "pipeline",
            "chunk_is_there",
            "credentials.py",
            "credentials.py usually holds secrets, so it is not a chunk.",
        ),
    ],
)
def test_an_example_opens_no_file_with_secrets(
    project: Path, monkeypatch: pytest.MonkeyPatch, example: str, function: str, file: str, refusal: str
) -> None:
    (project / ".env").write_text("- [ ] hunter2\n")
    (project / file).symlink_to(".env")
    monkeypatch.syspath_prepend(str(ROOT))
    hook = runpy.run_path(str(ROOT / "examples" / "hooks" / f"{example}.py"))[function]
    event = stop_event(cwd=str(project), last_assistant_message=file.replace(".py", " is written"))
    assert hook(event) == Block(refusal)
    (project / file).unlink()
    (project / file).symlink_to(project.parent)
    outside = hook(event)
    assert outside is not None
    assert f"{file!r} does not lead to a place below {project}" in outside.reason


@pytest.mark.req("S3-49")
@pytest.mark.parametrize("target", [".env", "../outside"])
def test_the_example_of_a_memory_neither_shows_nor_changes_a_file_with_secrets(
    project: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    secrets = project / target
    secrets.write_text("hunter2")
    (project / "MEMORY.md").symlink_to(target)
    monkeypatch.syspath_prepend(str(ROOT))
    options = runpy.run_path(str(ROOT / "examples" / "hooks" / "memory.py"))["OPTIONS"]
    model = ScriptedModel({"main": ["done"]})

    async def turn() -> tuple[str, ...]:
        async with Session(str(project), model, options.settings()) as session:
            return (await session.send("go")).notices

    notices = asyncio.run(turn())
    assert ("hunter2" in str(model.requests), secrets.read_text()) == (False, "hunter2")
    assert [("MEMORY.md" in each, "NOT enforced" in each) for each in notices] == [(True, True)] * 2
