"""Between two messages of the user, hooks continue the agent no more often than the limits allow, whatever wakes it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.support.builders import rule, run
from tests.support.sessions import SAVE_INPUT, ScriptedSession, lines, saved_inputs
from tests.support.subagents import parent, task
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent import turn as agent_turn
from turngate.agent.session import Session
from turngate.core.conversation.messages import UserMessage
from turngate.core.dialect import CLAUDE, DIALECTS, MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import Continuation
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Settings
from turngate.core.text import quote_name
from turngate.core.verdict.decisions import Advise, Block
from turngate.core.verdict.loop_guard import ContinueTurn, LoopGuard, new_guard
from turngate.core.verdict.verdict import Continue, Stop, Verdict
from turngate.models.scripted import ScriptedModel
from turngate.transcript.resume import read_conversation
from turngate.transcript.writer import Transcript

ALL = pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
BLOCK = "tee -a seen > /dev/null; echo more >&2; exit 2"
BACK = task(run_in_background=True)


def background(command: str = "true") -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command, "run_in_background": True}}


@pytest.fixture
def always_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_turn, "COMMAND_WAIT_S", 3000.0)


def session(
    project: Path, *main: Any, dialect: Dialect = TURNGATE, limit: int = 1, stop: str = BLOCK, **options: Any
) -> ScriptedSession:
    model = ScriptedModel({"main": list(main), "sub": ["counted"]})
    configured = Settings(rules=(rule(stop),), dialect=dialect, limit=limit, hard_limit=limit)
    events: list[Any] = []
    made = Session(
        str(project),
        model,
        configured,
        permission_mode="bypassPermissions",
        on_event=events.append,
        **options,
    )
    return ScriptedSession(made, model, events)


def counts(agent: ScriptedSession) -> list[int]:
    return [event.count for event in agent.of(Continuation)]


# The guard


REPORT, TOOL, ADVICE, BLOCKED, PASSED = "a report", "a tool call", "advice", "a block", "no objection"
STEPS = st.lists(st.sampled_from([REPORT, REPORT, TOOL, ADVICE, BLOCKED, BLOCKED, PASSED]), max_size=60)
VERDICTS: dict[str, Verdict] = {
    ADVICE: Continue((run(Advise("look")),), "look", advice_only=True),
    BLOCKED: Continue((run(Block("fix it")),), "fix it"),
    PASSED: Stop(),
}


@pytest.mark.req("C-18", "X-08")
@given(
    steps=STEPS,
    limit=st.none() | st.integers(0, 9),
    hard=st.integers(0, 9),
    dialect=st.sampled_from([*DIALECTS]),
)
@examples(max_examples=300, deadline=None)
def test_however_reports_and_stops_follow_each_other_the_hard_limit_holds(
    steps: list[str], limit: int | None, hard: int, dialect: str
) -> None:
    """A stop at which the turn may end is not its end: a report that arrives then wakes the agent."""
    guard = new_guard(Settings(dialect=DIALECTS[dialect], limit=limit, hard_limit=hard), {})
    continued = 0
    for step in steps:
        if step == REPORT:
            guard = guard.after_report()
            assert not guard.active
        elif step == TOOL:
            guard = guard.after_tool_call()
        elif isinstance(next_step := guard.after(VERDICTS[step]), ContinueTurn):
            guard, continued = next_step.guard, continued + 1
            assert guard.active
    assert continued == guard.continuations <= hard


def test_the_hard_limit_holds_where_tool_calls_reset_the_count_and_a_variable_sets_the_limit() -> None:
    environ = {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"}
    guard = new_guard(Settings(dialect=CLAUDE, hard_limit=1), environ)
    step = guard.after(VERDICTS[BLOCKED])
    assert isinstance(step, ContinueTurn)
    end = step.guard.after_tool_call().after(VERDICTS[BLOCKED])
    assert vars(end) == {
        "ended_by": "capped",
        "notice": 'Turn ended after 1 continuation (the limit). Still blocked by: "check".',
        "stop_reason": None,
        "last_reason": "fix it",
    }


# A turn


@ALL
@pytest.mark.usefixtures("always_wait")
def test_the_end_of_a_command_in_the_background_does_not_start_a_new_count(
    project: Path, dialect: Dialect
) -> None:
    replies = (background(), "one", background(), "two", background(), "three", "four", "five", "six")
    agent = session(project, *replies, dialect=dialect)
    result = agent.play()
    assert (counts(agent), result.ended_by, result.continuations) == ([1], "capped", 1)
    limit = "Turn ended after 1 continuation (the limit). Still blocked by: " + quote_name(BLOCK) + "."
    assert result.notices == (limit,)  # once, at the end of the turn


@ALL
def test_the_report_of_a_subagent_does_not_start_a_new_count(project: Path, dialect: Dialect) -> None:
    main = [BACK, "one", BACK, "two", BACK, "three", "four", "five", "six"]
    agent = session(project, *main, dialect=dialect)
    result = agent.play()
    assert (counts(agent), result.ended_by) == ([1], "capped")


@pytest.mark.usefixtures("always_wait")
def test_after_a_report_no_continuation_is_active_and_the_count_goes_on(project: Path) -> None:
    wait = "until [ -e go ]; do sleep 0.01; done"
    stop = f"{BLOCK.partition(';')[0]}; [ $(wc -l < seen) -ge 2 ] && touch go; echo more >&2; exit 2"
    agent = session(project, background(wait), "one", "two", "three", "four", limit=2, stop=stop)
    result = agent.play()
    seen = saved_inputs(project, "stop_hook_active", "continuation_count")
    assert (result.ended_by, counts(agent)) == ("capped", [1, 2])
    assert (seen[0], seen[1], seen[-1][1]) == ((False, 0), (True, 1), 2)
    assert (False, 2) in seen  # the stop after the report


def test_a_message_of_the_user_starts_a_new_count(project: Path) -> None:
    agent = session(project, "one", "two", "three", "four")
    agent.play("first", "second")
    assert counts(agent) == [1, 1]


REPLIES = st.lists(st.sampled_from(["done", "done", background(), BACK]), min_size=1, max_size=8)


@pytest.mark.usefixtures("always_wait")
@given(replies=REPLIES, limit=st.integers(0, 3), dialect=st.sampled_from([*DIALECTS]))
@examples(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
def test_whatever_the_agent_starts_in_the_background_hooks_continue_it_within_the_limit(
    tmp_path_factory: pytest.TempPathFactory, replies: list[Any], limit: int, dialect: str
) -> None:
    project = tmp_path_factory.mktemp("project")
    agent = session(project, *replies, "done", dialect=DIALECTS[dialect], limit=limit)
    result = agent.play()
    assert (result.ended_by, counts(agent)) == ("capped", list(range(1, limit + 1)))


# Turns and processes without a word of the user between them


async def commands_end(session: Session) -> None:
    async with asyncio.timeout(HANG_TIMEOUT_S):
        while session._agent.background.running:
            await asyncio.sleep(0.01)


async def permit(*_: object) -> bool:
    return True


def test_turns_that_the_end_of_commands_begins_share_the_count_of_the_users_message(project: Path) -> None:
    wait = "until [ -e go ]; do sleep 0.01; done"
    agent = session(project, background(wait), "one", "two", "three", "four", permit=permit)

    async def turns() -> list[str]:
        async with agent.session as running:
            first = await running.send("go")
            (project / "go").touch()
            await commands_end(running)
            woken = await running.answer_background()
            assert woken is not None
            return [first.ended_by, woken.ended_by]

    assert asyncio.run(turns()) == ["capped", "capped"]
    assert counts(agent) == [1]


@ALL
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_hooks_in_the_background_and_stop_hooks_share_the_count(
    project: Path, dialect: Dialect, limit: int
) -> None:
    """Each stop is blocked every other time, and each time by a hook in the background that wakes the agent."""
    wake = CommandHook("echo later >&2; exit 2", id="wake", detached=True, rewake=True)
    other = (
        "n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n; [ $((n % 2)) = 1 ] || { echo now >&2; exit 2; }"
    )
    model = ScriptedModel({"main": ["done"]})
    rules = (rule(other), rule(wake))
    events: list[Any] = []
    settings = Settings(rules=rules, dialect=dialect, limit=limit, hard_limit=limit)
    agent = ScriptedSession(Session(str(project), model, settings, on_event=events.append), model, events)

    async def turns() -> None:
        async with asyncio.timeout(HANG_TIMEOUT_S), agent.session as running:
            await running.send("go")
            while running._agent.resources.world.background or running.has_background_results:
                await running.answer_background()
                await asyncio.sleep(0.01)

    asyncio.run(turns())
    stored = read_conversation(agent.session.transcript_path)
    origins = [message.origin for message in stored.messages if isinstance(message, UserMessage)]
    continued = origins.count("stop_hook") + origins.count("background")
    assert 0 < continued == stored.continuations <= limit


def transcript(tmp_path: Path, *messages: tuple[str, str, dict[str, Any]], ends: bool = False) -> str:
    path = str(tmp_path / "chat.jsonl")
    written = Transcript(path, "s", str(tmp_path))
    for text, origin, meta in messages:
        written.write_message(UserMessage(text, origin), **meta)  # type: ignore[arg-type]
    if ends:
        written.write_record({"type": "turn_end", "ended_by": "capped"})
    written.close()
    return path


@pytest.mark.parametrize("origin", ["subagent", "background", "context", "summary"])
@pytest.mark.parametrize("ends", [False, True])
def test_a_transcript_says_how_often_hooks_have_continued_since_the_users_message(
    tmp_path: Path, origin: str, ends: bool
) -> None:
    messages = [("go", "user", {}), ("more", "stop_hook", {"continuation": 1}), ("a report", origin, {})]
    stored = read_conversation(transcript(tmp_path, *messages, ends=ends))
    assert (stored.continuations, stored.is_unfinished) == (1, not ends)


def test_a_message_of_the_user_in_a_transcript_starts_a_new_count(tmp_path: Path) -> None:
    messages = [("go", "user", {}), ("more", "stop_hook", {"continuation": 1}), ("again", "user", {})]
    assert read_conversation(transcript(tmp_path, *messages)).continuations == 0


def test_a_resumed_session_goes_on_with_the_count_until_the_users_message(project: Path) -> None:
    """A report of a subagent waits; in mux the hooks are asked about its answer before that of the message."""
    main = [BACK, "one", "two"]
    options: dict[str, Any] = {"dialect": MUX, "said": {"limit": 1, "hard_limit": 1}}
    first = parent(project, {"text": "late", "delay": 1}, main=main, rules=[rule(BLOCK)], **options)

    async def leave() -> None:
        async with first.session as running:
            turn = asyncio.create_task(running.send("go"))
            await first.until("registered")
            running.interrupt()
            await turn

    asyncio.run(leave())
    path = Path(first.session.transcript_path)
    continued = {"type": "user", "uuid": "u", "origin": "stop_hook", "isMeta": True, "continuation": 1}
    with path.open("a") as file:
        print(json.dumps({**continued, "message": {"role": "user", "content": "more"}}), file=file)
    resumed = session(project, "three", "four", "five", "six", dialect=MUX, session_id=first.session.id)

    async def opened() -> LoopGuard:
        async with resumed.session as running:
            await running.open()
            return running._agent.guard

    guard = asyncio.run(opened())
    assert (guard.continuations, guard.below_limit, guard.active) == (1, False, False)
    assert lines(project / "seen") == []


def test_what_a_session_start_hook_says_starts_no_new_count(project: Path) -> None:
    said = {"hookSpecificOutput": {"hookEventName": "SessionStart", "initialUserMessage": "look around"}}
    hook = rule(f"cat > /dev/null; echo '{json.dumps(said)}'", "SessionStart")
    model = ScriptedModel({"main": ["answer {n}"]})
    configured = Settings(rules=(hook, rule(SAVE_INPUT)), limit=1, hard_limit=1)
    made = Session(str(project), model, configured)
    path = Path(made.transcript_path)
    path.parent.mkdir(parents=True)
    transcript_path = transcript(path.parent, ("go", "user", {}), ("more", "stop_hook", {"continuation": 1}))
    assert transcript_path == str(path)

    async def turn() -> None:
        async with made as running:
            await running.send("again")

    asyncio.run(turn())
    assert saved_inputs(project, "continuation_count") == [1, 1]  # the turn that did not end goes on
