"""Agent hooks: a scripted model looks around in a real project and says whether the agent may stop."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import ask, rule, stop_event, subagent_stop, write_settings
from tests.support.sessions import lines, message_text, records
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S
from turngate.agent.hook_agent import (
    AT_STOP,
    INSTRUCTIONS,
    MAX_REQUESTS,
    NUDGE,
    TRANSCRIPT,
    HookAgentRunner,
)
from turngate.agent.session import Session
from turngate.core.answers.report_types import HookFailed, JudgeReplied, Report
from turngate.core.conversation.messages import Evaluation, ModelRequest, Reply, Usage
from turngate.core.dialect import CLAUDE, TURNGATE, Dialect
from turngate.core.events.hook_input import encode
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import AgentHook, CommandHook
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.decisions import Allow, Block, Fault
from turngate.core.verdict.hook_run import outcome
from turngate.models.scripted import ScriptedModel
from turngate.ports import HookRunContext, World
from turngate.shells.local import LocalShell

DONE = {"tool": "StructuredOutput", "input": {"ok": True, "reason": "all there"}}
NOT_DONE = {"tool": "StructuredOutput", "input": {"ok": False, "reason": "TODO is still open"}}
HOOK = AgentHook("Is everything in TODO done?")


def read(path: str) -> dict[str, Any]:
    return {"tool": "Read", "input": {"file_path": path}}


def looked(
    project: Path, *replies: Any, hook: AgentHook = HOOK, dialect: Dialect = TURNGATE, event: Any = None
) -> tuple[Report, ScriptedModel]:
    """One inspection by itself."""
    model = ScriptedModel({"judge": list(replies)})
    settings = Settings(rules=(rule(hook),), dialect=dialect)
    state = os.environ["TURNGATE_STATE"]
    world = World(LocalShell(), str(project))
    inspect = HookAgentRunner(world, settings, state, lambda _: model, world.environ, retries=(0.01,))
    return asyncio.run(inspect(hook, event or stop_event(cwd=str(project)), HookRunContext())), model


def judged(report: Report) -> dict[str, Any]:
    assert isinstance(report, JudgeReplied), report
    answer: dict[str, Any] = json.loads(report.text)
    return answer


class Stage:
    """A session whose model plays the main agent and the one that looks."""

    def __init__(
        self, project: Path, judge: list[Any], *rules: Rule, dialect: Dialect = TURNGATE, **script: Any
    ) -> None:
        self.model = ScriptedModel({"main": ["answer {n}"], **script, "judge": judge})
        settings = Settings(rules=rules or (rule(HOOK),), dialect=dialect)
        self.session = Session(
            str(project), self.model, settings, session_id="s-1", models=lambda _: self.model
        )

    def play(self) -> TurnResult:
        async def turn() -> TurnResult:
            async with self.session:
                return await self.session.send("go")

        return asyncio.run(turn())

    def asked(self, who: str) -> int:
        return sum(request.agent == who for request in self.model.requests)

    def hook_files(self) -> list[Path]:
        return sorted(Path(os.path.dirname(self.session.transcript_path), "hooks").glob("*"))

    def journal(self, kind: str) -> list[dict[str, Any]]:
        known = map(json.loads, lines(Path(os.path.dirname(self.session.transcript_path), "journal.jsonl")))
        return [line for line in known if line["kind"] == kind]


# One look


def test_it_works_in_the_project_and_answers_with_its_own_tool(project: Path) -> None:
    (project / "TODO").write_text("write tests\n")
    report, model = looked(project, read("TODO"), NOT_DONE)
    assert judged(report) == {"ok": False, "reason": "TODO is still open"}
    told = encode(stop_event(cwd=str(project)), TURNGATE).decode().strip()
    assert [message_text(message) for message in model.requests[1].messages] == [
        f"Is everything in TODO done?\n\n{told}",
        "agent: Read",
        "tool:      1\twrite tests",
    ]


def test_the_input_stands_where_the_prompt_wants_it(project: Path) -> None:
    _, model = looked(project, DONE, hook=AgentHook("<$ARGUMENTS> and <$ARGUMENTS>"))
    told = encode(stop_event(cwd=str(project)), TURNGATE).decode().strip()
    assert message_text(model.requests[0].messages[0]) == f"<{told}> and <{told}>"


@pytest.mark.req("X-16")
def test_it_has_read_only_tools_and_one_to_answer_with(project: Path) -> None:
    _, model = looked(project, DONE)
    assert [tool.name for tool in model.requests[0].tools] == ["Read", "Glob", "Grep", "StructuredOutput"]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Bash", {"command": "touch made"}),
        ("Write", {"file_path": "made", "content": "x"}),
        ("Task", {"prompt": "go"}),
    ],
)
def test_it_can_change_nothing_and_start_no_agent(project: Path, tool: str, given: dict[str, Any]) -> None:
    report, model = looked(project, {"tool": tool, "input": given}, DONE)
    said = f"tool: unknown tool {tool!r}, expected one of Read, Glob, Grep, StructuredOutput"
    assert (judged(report)["ok"], message_text(model.requests[1].messages[-1])) == (True, said)
    assert list(project.iterdir()) == []


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "chat.jsonl"
    path.parent.mkdir()
    path.write_text('{"role":"user","content":"build it"}\n')
    (path.parent / "secret").write_text("key\n")
    return path


def test_it_gets_the_path_of_the_conversation_and_may_read_that_file_alone(
    project: Path, conversation: Path
) -> None:
    secret = conversation.parent / "secret"
    grep = {
        "tool": "Grep",
        "input": {"pattern": "build", "path": str(conversation), "output_mode": "content"},
    }
    folder = {"tool": "Grep", "input": {"pattern": "key", "path": str(conversation.parent)}}
    event = stop_event(cwd=str(project), transcript_path=str(conversation))
    _, model = looked(project, read(str(conversation)), grep, read(str(secret)), folder, DONE, event=event)
    assert model.requests[0].system == INSTRUCTIONS.format(
        project=project, transcript=TRANSCRIPT.format(path=conversation), requests=MAX_REQUESTS, **AT_STOP
    )
    refused = f"is not allowed: it is outside of the project {project}"
    assert [message_text(message) for message in model.requests[-1].messages[2::2]] == [
        'tool:      1\t{"role":"user","content":"build it"}',
        f'tool: {conversation}:1:{{"role":"user","content":"build it"}}',
        f"tool: {secret} {refused}",
        f"tool: {conversation.parent} {refused}",
    ]


@pytest.mark.parametrize("path", ["", "/", "/etc", "/no/such/file"])
def test_a_conversation_that_is_no_file_opens_nothing(project: Path, path: str) -> None:
    event = stop_event(cwd=str(project), transcript_path=path)
    report, model = looked(project, read("/etc/passwd"), DONE, event=event)
    said = f"tool: /etc/passwd is not allowed: it is outside of the project {project}"
    assert (judged(report)["ok"], message_text(model.requests[1].messages[-1])) == (True, said)
    assert "conversation so far" not in model.requests[0].system


def test_at_a_subagents_stop_it_reads_the_subagents_conversation(project: Path, conversation: Path) -> None:
    event = subagent_stop()
    child = (
        type(event.subagent)(id="a-1", type="x", transcript_path=str(conversation))
        if event.subagent
        else None
    )
    report, model = looked(project, DONE, event=stop_event(cwd=str(project), subagent=child))
    assert judged(report)["ok"]
    assert TRANSCRIPT.format(path=conversation) in model.requests[0].system


# Its answer

WORDS: dict[str, tuple[str, Any]] = {
    "JSON": ('{"ok": false, "reason": "no tests"}', False),
    "JSON in words": ('I looked.\n```json\n{"ok": true, "reason": "fine"}\n```', True),
}


@pytest.mark.parametrize("name", WORDS)
def test_an_answer_in_words_counts_as_well(project: Path, name: str) -> None:
    text, _ = WORDS[name]
    report, model = looked(project, text)
    assert isinstance(report, JudgeReplied)
    assert (report.text, len(model.requests)) == (text, 1)


@pytest.mark.parametrize("dialect", [TURNGATE, CLAUDE], ids=lambda dialect: dialect.name)
def test_one_that_ends_without_an_answer_is_asked_once_more(project: Path, dialect: Dialect) -> None:
    report, model = looked(project, "It looks good.", DONE, dialect=dialect)
    assert judged(report) == {"ok": True, "reason": "all there"}
    nudge = message_text(model.requests[1].messages[-1])
    assert nudge == (
        NUDGE
        if dialect is CLAUDE
        else (
            'You ended without StructuredOutput. Answer with one JSON object like {"ok": false, "reason": "…"} and nothing else.'
        )
    )


def test_one_that_never_answers_fails_after_the_second_time(project: Path) -> None:
    report, model = looked(project, "It looks good.")
    assert (report, len(model.requests)) == (HookFailed("the agent ended without an answer"), 2)


def test_in_the_claude_dialect_words_are_no_answer(project: Path) -> None:
    report, model = looked(project, '{"ok": false, "reason": "x"}', dialect=CLAUDE)
    assert (report, len(model.requests)) == (HookFailed("the agent ended without an answer"), 2)


def test_a_hook_agent_that_never_answers_is_ended(project: Path) -> None:
    report, model = looked(project, {"tool": "Glob", "input": {"pattern": "*"}})
    said = f"the agent made {MAX_REQUESTS} model requests without an answer"
    assert (report, len(model.requests)) == (HookFailed(said), MAX_REQUESTS)


def test_an_answer_of_the_wrong_shape_is_returned_to_the_judge(project: Path) -> None:
    report, model = looked(project, {"tool": "StructuredOutput", "input": {"ok": "yes"}}, DONE)
    assert judged(report) == {"ok": True, "reason": "all there"}
    assert message_text(model.requests[1].messages[-1]) == 'tool: `ok` must be true or false, not "yes"'


def test_a_block_without_a_reason_is_returned_to_the_judge_once(project: Path) -> None:
    bare = {"tool": "StructuredOutput", "input": {"ok": False}}
    report, model = looked(project, bare, NOT_DONE)
    assert judged(report) == {"ok": False, "reason": "TODO is still open"}
    assert message_text(model.requests[1].messages[-1]) == (
        "tool: its answer blocks without a reason: give a reason, the agent reads it as its next task"
    )
    report, model = looked(project, bare)
    assert (judged(report), len(model.requests)) == ({"ok": False}, 2)


def test_in_the_claude_dialect_a_block_needs_no_reason(project: Path) -> None:
    report, model = looked(project, {"tool": "StructuredOutput", "input": {"ok": False}}, dialect=CLAUDE)
    assert (judged(report), len(model.requests)) == ({"ok": False}, 1)


def test_a_model_that_fails_is_named(project: Path) -> None:
    report, _ = looked(project, {"error": "auth", "message": "bad key"})
    assert report == HookFailed("its model did not answer: bad key")


@pytest.mark.parametrize(
    ("reply", "cost"), [({"error": "auth", "message": "bad key"}, 0.0), ({"text": "x", "delay": 60}, None)]
)
def test_a_failed_request_costs_nothing_and_the_cost_of_an_abandoned_one_is_unknown(
    reply: Any, cost: float | None, project: Path
) -> None:
    (run,) = Stage(project, [reply], rule(AgentHook("Look.", timeout=0.3))).play().hook_runs
    assert run.evaluation == Evaluation("scripted:script", 1, Usage(), cost)


# In a session


@pytest.mark.req("S2-10", "X-16")
def test_a_block_continues_the_turn_and_the_hook_agent_fires_no_other_hook(project: Path) -> None:
    (project / "TODO").write_text("write tests\n")
    events = (
        "PreToolUse",
        "PostToolUse",
        "SubagentStart",
        "SubagentStop",
        "Stop",
        "UserPromptSubmit",
        "SessionStart",
    )
    watching = [rule(CommandHook(f"echo {event} >> heard"), event) for event in events]
    stage = Stage(project, [read("TODO"), NOT_DONE, DONE], rule(HOOK), *watching)
    result = stage.play()
    assert (result.result, result.ended_by, result.continuations) == ("answer 2", "allowed", 1)
    assert lines(project / "heard") == ["SessionStart", "UserPromptSubmit", "Stop", "Stop"]
    assert [message_text(message) for message in stage.model.requests[-2].messages] == [
        "go",
        "agent: answer 1",
        "[Stop hook requested continuation]\nTODO is still open",
    ]
    decisions = [run.decision for run in result.hook_runs if run.rule.hook == HOOK]
    assert decisions == [Block("TODO is still open"), Allow("all there")]


def test_the_claude_dialect_says_it_in_its_own_words(project: Path) -> None:
    stage = Stage(project, [NOT_DONE, DONE], dialect=CLAUDE)
    result = stage.play()
    [first, second] = [run.decision for run in result.hook_runs]
    assert (first, second) == (
        Block("Agent hook condition was not met: TODO is still open"),
        Allow("all there"),
    )


def test_each_hook_agent_has_its_own_transcript_and_is_not_a_subagent_run(project: Path, state: Path) -> None:
    stage = Stage(project, [NOT_DONE, DONE])
    result = stage.play()
    files = stage.hook_files()
    assert [[record["type"] for record in records(str(file))] for file in files] == [
        ["user", "tool_call", "assistant"]
    ] * 2
    assert {
        record["isSidechain"] for file in files for record in records(str(file)) if "isSidechain" in record
    } == {True}
    assert (result.subagents, (state / "registry.db").exists()) == ((), False)
    assert "Is everything in TODO" not in Path(result.transcript_path).read_text()


def test_what_it_took_is_in_the_journal_and_not_in_the_turns_own_count(project: Path) -> None:
    stage = Stage(project, [{"tool": "Glob", "input": {"pattern": "*"}}, DONE])
    result = stage.play()
    [line] = stage.journal("inspection")
    [run] = stage.journal("hook")
    [file] = stage.hook_files()
    taken = {key: line[key] for key in ("hook", "outcome", "model", "requests", "cost_usd", "transcript")}
    assert taken == {
        "hook": {"type": "agent", "prompt": HOOK.prompt},
        "outcome": "looked",
        "model": "scripted:script",
        "requests": 2,
        "cost_usd": None,
        "transcript": str(file),
    }
    assert run["evaluation"] == {
        "model": "scripted:script",
        "requests": 2,
        "input_tokens": line["input_tokens"],
        "output_tokens": line["output_tokens"],
        "cost_usd": None,
    }
    assert (line["input_tokens"] > 0, result.model_requests) == (True, 1)


@pytest.mark.req("S2-19")
@pytest.mark.parametrize("dialect", [TURNGATE, CLAUDE], ids=lambda dialect: dialect.name)
def test_a_slow_one_is_ended_at_its_limit_and_the_turn_ends_with_it(project: Path, dialect: Dialect) -> None:
    hook = AgentHook("slow?", timeout=0.3)
    stage = Stage(project, [{"text": "late", "delay": NEVER_S}], rule(hook), dialect=dialect)
    result = stage.play()
    [run] = result.hook_runs
    assert (run.decision, outcome(run), result.ended_by) == (
        Fault("timed out after 0.3 s", "timeout"),
        "timeout",
        "allowed",
    )
    assert result.notices == ('hook "slow?" timed out after 0.3 s and was NOT enforced',)
    [line] = stage.journal("inspection")
    assert line["requests"] == 1


@pytest.mark.parametrize("dialect", [TURNGATE, CLAUDE], ids=lambda dialect: dialect.name)
def test_no_answer_fails_open_and_is_recorded_as_failed(project: Path, dialect: Dialect) -> None:
    stage = Stage(project, ["fine"], dialect=dialect)
    result = stage.play()
    [run] = result.hook_runs
    assert (run.decision, outcome(run), result.ended_by) == (
        Fault("the agent ended without an answer"),
        "failed",
        "allowed",
    )
    said = 'hook "Is everything in TODO done?" failed and was NOT enforced: the agent ended without an answer'
    assert result.notices == (said,)


class Stubborn:
    """A model that does not mind being cancelled."""

    name, context = "stubborn:model", 1000
    released = False

    async def ask(self, _: ModelRequest, __: Callable[[str], None]) -> Reply:
        while not self.released:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return Reply(())

    async def close(self) -> None:
        """Nothing is open."""


def test_a_model_that_ignores_its_cancellation_does_not_delay_the_turn(project: Path) -> None:
    stubborn = Stubborn()

    async def turn() -> TurnResult:
        model = ScriptedModel({"main": ["done"]})
        hook = AgentHook("well?", timeout=0.2, model="stubborn:model")
        settings = Settings(rules=(rule(hook),))
        async with Session(str(project), model, settings, models=lambda _: stubborn) as session:
            result = await session.send("go")
            stubborn.released = True
            return result

    result = asyncio.run(asyncio.wait_for(turn(), HANG_TIMEOUT_S))
    assert [outcome(run) for run in result.hook_runs] == ["timeout"]


def test_a_subagents_stop_is_looked_at_too(project: Path) -> None:
    task = {"tool": "Task", "input": {"prompt": "do it", "subagent_type": "general-purpose"}}
    stage = Stage(
        project, [NOT_DONE, DONE], rule(HOOK, "SubagentStop"), main=[task, "finished"], sub=["child {n}"]
    )
    result = stage.play()
    heard = [message_text(message) for message in stage.model.requests[-1].messages]
    assert (result.result, heard[-1]) == ("finished", "tool: child 2")
    assert (stage.asked("sub"), stage.asked("judge")) == (2, 2)


@pytest.mark.req("C-24")
def test_without_a_model_the_hook_is_unavailable_and_blocks_nothing(project: Path) -> None:
    verdict = asyncio.run(ask(project, HOOK))
    assert [run.decision for run in verdict.runs] == [
        Fault(
            "it is unavailable: this World has no `inspect`; a Session, run_stop_hooks and `turngate fire` set one"
        )
    ]


def fired(project: Path, *replies: Any) -> subprocess.CompletedProcess[str]:
    """`turngate fire` with a model that the settings name."""
    (project / "script.json").write_text(json.dumps({"judge": list(replies)}))
    hooks = [{"type": "agent", "prompt": HOOK.prompt}]
    judge = {"judge": f"scripted:{project}/script.json"}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}, "turngate": judge})
    command = [sys.executable, "-m", "turngate", "fire", "Stop", "--json"]
    return subprocess.run(
        command, cwd=project, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.req("S2-10")
def test_the_command_fire_runs_hook_agents_too(project: Path) -> None:
    (project / "TODO").write_text("write tests\n")
    done = fired(project, read("TODO"), NOT_DONE)
    told = json.loads(done.stdout)
    assert (done.returncode, told["prompt"]) == (10, "[Stop hook requested continuation]\nTODO is still open")
    assert told["runs"][0]["evaluation"]["requests"] == 2


def test_fire_without_a_model_says_what_is_missing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(
        project, "turngate", {"hooks": {"Stop": [{"hooks": [{"type": "agent", "prompt": "well?"}]}]}}
    )
    done = subprocess.run(
        [sys.executable, "-m", "turngate", "fire", "Stop", "--json"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    [run] = json.loads(done.stdout)["runs"]
    said = (
        "it is unavailable: no judge model is configured: give the hook a `model`, the settings a `judge`, or set "
        "ANTHROPIC_API_KEY"
    )
    assert (done.returncode, run["outcome"], run["reason"]) == (0, "failed", said)


def test_a_disk_that_takes_no_transcript_fails_open(project: Path, state: Path) -> None:
    folder = state / "sessions" / "s-1"
    folder.mkdir(parents=True)
    (folder / "hooks").write_text("in the way")
    report, model = looked(project, DONE)
    assert isinstance(report, HookFailed)
    assert report.error.startswith(f"it is unavailable: {folder}/hooks")
    assert model.requests == []


@pytest.mark.req("X-16")
def test_a_hook_agent_that_compacts_fires_no_other_hook(project: Path) -> None:
    """Its conversation may exceed the context of its model; even then no hook runs."""
    (project / "big").write_text("x" * 1900 + "\n")
    model = ScriptedModel(
        {"main": ["done"], "judge": [read("big"), read("big"), "a summary", DONE], "context": 1200}
    )
    rules = (rule(HOOK), rule(CommandHook("echo compacted >> heard"), "PreCompact"))

    async def turn() -> TurnResult:
        async with Session(str(project), model, Settings(rules=rules)) as session:
            return await session.send("go")

    result = asyncio.run(turn())
    summed_up = [
        message_text(request.messages[-1]).startswith("Write a summary") for request in model.requests
    ]
    assert (sum(summed_up), [outcome(run) for run in result.hook_runs]) == (1, ["allow"])
    assert lines(project / "heard") == []
