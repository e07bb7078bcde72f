"""A question of the agent stays open until its user answers: whatever else arrives waits for the answer."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.sessions import (
    BLOCK_COMMAND,
    SAVE_INPUT,
    block_first,
    lines,
    on_first,
    saved_inputs,
    say,
    scripted_session,
    specific,
)
from tests.support.subagents import bash, parent, task
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent.session import Session
from turngate.cli.main import main as turngate_main
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import HookStarted, ToolStarted, TurnResult
from turngate.core.text import quote_name
from turngate.transcript.resume import read_conversation

ALL = pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
QUESTION = "May I delete the database?"
ASK = {"tool": "AskUser", "input": {"question": QUESTION}}
AGAIN = {"tool": "AskUser", "input": {"question": "Really?"}}
ASKED = "tool: The user was asked; the answer comes with the next message."
BACK = task(description="lines", run_in_background=True)
UNTIL_GO = "until [ -e go ]; do sleep 0.01; done"
UNTIL_REPORTED = bash("until [ -e reported ]; do sleep 0.01; done")
WAITING = ("waiting", "question", QUESTION)
COMPLETED = ("completed", "allowed", None)


def ended(result: TurnResult) -> tuple[str, str, str | None]:
    return result.outcome, result.ended_by, result.question


def last_lines(texts: list[str]) -> list[str]:
    """The last line of each message: that of a report is what the subagent said."""
    return [text.rpartition("\n")[2] for text in texts]


def background(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command, "run_in_background": True}}


def mark_reported(project: Path) -> Callable[[str, SubagentRun], None]:
    def step(name: str, _: SubagentRun) -> None:
        if name == "done":
            (project / "reported").touch()

    return step


# Reports of subagents


@ALL
@pytest.mark.req("X-17")
def test_a_report_that_arrives_before_the_question_waits_for_the_answer(
    project: Path, dialect: Dialect
) -> None:
    main = [BACK, UNTIL_REPORTED, ASK, "I keep it.", "Counted."]
    options: dict[str, Any] = {"allow": ["Bash"], "on_step": mark_reported(project), "dialect": dialect}
    scene = parent(project, "counted", main=main, **options)

    async def turns() -> list[tuple[str, str, str | None]]:
        async with asyncio.timeout(HANG_TIMEOUT_S), scene.session as session:
            first = await session.send("clean up")
            assert len(scene.heard("main")) == 5  # the model was not asked again
            return [ended(first), ended(await session.send("no"))]

    assert asyncio.run(turns()) == [WAITING, COMPLETED]
    said = last_lines(scene.heard("main")[-5:])
    assert said == ["agent: AskUser", ASKED, "no", "agent: I keep it.", "counted"]


@ALL
@pytest.mark.req("X-17")
def test_a_question_does_not_wait_for_subagents_and_their_reports_wait_for_the_answer(
    project: Path, dialect: Dialect
) -> None:
    main = [BACK, ASK, "I keep it.", "Counted."]
    scene = parent(project, bash(UNTIL_GO), "counted", main=main, allow=["Bash"], dialect=dialect)

    async def turns() -> list[tuple[str, str, str | None]]:
        async with asyncio.timeout(HANG_TIMEOUT_S), scene.session as session:
            first = await session.send("clean up")
            (project / "go").touch()
            await scene.until("done")
            return [ended(first), ended(await session.send("no"))]

    assert asyncio.run(turns()) == [WAITING, COMPLETED]
    said = last_lines(scene.heard("main")[-5:])
    assert said == ["agent: AskUser", ASKED, "no", "agent: I keep it.", "counted"]


def test_each_of_several_questions_is_answered_before_anything_else(project: Path) -> None:
    main = [BACK, UNTIL_REPORTED, ASK, AGAIN, "I keep it.", "Counted."]
    scene = parent(project, "counted", main=main, allow=["Bash"], on_step=mark_reported(project))

    async def turns() -> list[str | None]:
        async with asyncio.timeout(HANG_TIMEOUT_S), scene.session as session:
            return [(await session.send(text)).question for text in ("clean up", "yes", "no")]

    assert asyncio.run(turns()) == [QUESTION, "Really?", None]
    said = last_lines(scene.heard("main")[-7:])
    assert said == [ASKED, "yes", "agent: AskUser", ASKED, "no", "agent: I keep it.", "counted"]


# Commands in the background


async def ended_commands(session: Session) -> None:
    async with asyncio.timeout(HANG_TIMEOUT_S):
        while session._agent.background.running:
            await asyncio.sleep(0.01)


async def permit(*_: object) -> bool:
    return True


@pytest.mark.parametrize("user", [None, permit], ids=["without a user", "with a user"])
def test_a_command_that_ends_during_the_question_is_reported_after_the_answer(
    project: Path, user: Any
) -> None:
    replies = (background(UNTIL_GO), ASK, "I keep it.", "It ended.")
    agent = scripted_session(project, *replies, permission_mode="bypassPermissions", permit=user)

    async def turns() -> tuple[Any, ...]:
        async with agent.session as session:
            first = await session.send("clean up")
            (project / "go").touch()
            await ended_commands(session)
            woken = session.has_background_results, await session.answer_background()
            return ended(first), woken, session.question, ended(await session.send("no")), session.question

    assert asyncio.run(turns()) == (WAITING, (False, None), QUESTION, COMPLETED, None)
    report = f"[Background command] bash_1 ({UNTIL_GO}) ended with exit code 0. It printed nothing new."
    assert agent.heard()[-5:] == ["agent: AskUser", ASKED, "no", "agent: I keep it.", report]


def test_a_command_whose_end_the_agent_does_not_know_is_in_the_transcript_of_an_open_question(
    project: Path,
) -> None:
    """With -p the process ends at the question; the next one reads what the command printed."""
    wait = bash("until [ -e built ]; do sleep 0.01; done")
    replies = (background("echo done; touch built"), wait, ASK)
    agent = scripted_session(project, *replies, permission_mode="bypassPermissions")

    async def turn() -> None:
        async with agent.session as session:
            await session.send("clean up")
            await ended_commands(session)

    asyncio.run(turn())
    stored = read_conversation(agent.session.transcript_path)
    resumed = scripted_session(project, "I keep it.", session_id=agent.session.id)
    resumed.play("no")
    report = "[Background command] bash_1 (echo done; touch built) ended with exit code 0.\n\ndone"
    assert (stored.question, resumed.heard()[-3:]) == (QUESTION, [ASKED, report, "no"])


# Continuations


def write_second(session: Session) -> None:
    session.queue("second")


@ALL
@pytest.mark.req("X-17", "C-31")
def test_a_continuation_queued_behind_a_message_does_not_run_past_the_question_of_its_answer(
    project: Path, dialect: Dialect
) -> None:
    stop = f"tee -a seen >/dev/null; {block_first(1)}"
    listen = on_first(HookStarted, write_second)
    agent = scripted_session(project, "one", ASK, "kept", stop=stop, listen=listen, dialect=dialect)

    async def turns() -> list[tuple[str, str, str | None]]:
        async with agent.session as session:
            first = await session.send("first")
            assert len(agent.model.requests) == 2
            return [ended(first), ended(await session.send("no"))]

    assert asyncio.run(turns()) == [WAITING, COMPLETED]
    assert agent.heard()[-4:] == ["second", "agent: AskUser", ASKED, "no"]


def test_in_claude_a_block_of_the_question_replaces_a_continuation_from_before_it(project: Path) -> None:
    count = "n=$(cat n 2>/dev/null || echo 1); echo $((n+1)) > n"
    stop = f"{count}; [ $n -gt 2 ] || {{ echo reason $n >&2; exit 2; }}"
    listen = on_first(HookStarted, write_second)
    agent = scripted_session(project, "one", ASK, "kept", stop=stop, listen=listen, dialect=CLAUDE)
    result = agent.play("first")
    told = f"Stop hook feedback:\n[{stop}]: reason 2\n"
    assert (ended(result), agent.heard()[-4:]) == (COMPLETED, ["second", "agent: AskUser", ASKED, told])


@ALL
def test_a_question_that_no_gate_objects_to_leaves_the_turn_waiting(project: Path, dialect: Dialect) -> None:
    agent = scripted_session(project, ASK, stop=SAVE_INPUT, dialect=dialect)
    assert (ended(agent.play()), len(agent.model.requests)) == (WAITING, 1)


def test_in_claude_a_gate_at_its_limit_leaves_the_question_open(project: Path) -> None:
    agent = scripted_session(project, ASK, stop=BLOCK_COMMAND, dialect=CLAUDE, limit=0)
    result = agent.play()
    notice = f"Turn ended after 0 continuations (the limit). Still blocked by: {quote_name(BLOCK_COMMAND)}."
    assert (ended(result), result.notices) == (WAITING, (notice,))


# Messages of the user


def test_a_message_typed_before_the_question_is_not_its_answer(project: Path) -> None:
    listen = on_first(ToolStarted, write_second)
    agent = scripted_session(project, ASK, "kept", "seconded", listen=listen)

    async def turns() -> tuple[Any, ...]:
        async with agent.session as session:
            first = await session.send("clean up")
            queued = session.queued
            return ended(first), queued, ended(await session.send("no")), session.queued

    assert asyncio.run(turns()) == (WAITING, 1, COMPLETED, 0)
    assert agent.heard()[-5:] == ["agent: AskUser", ASKED, "no", "agent: kept", "second"]


def test_an_answer_that_a_hook_blocks_leaves_the_question_open(project: Path) -> None:
    """The report that waits is not answered either."""
    main = [BACK, UNTIL_REPORTED, ASK, "I keep it.", "Counted."]
    block = f"grep -q secret && {{ {BLOCK_COMMAND}; }}; exit 0"
    rules = [rule(block, "UserPromptSubmit")]
    options: dict[str, Any] = {"allow": ["Bash"], "on_step": mark_reported(project), "rules": rules}
    scene = parent(project, "counted", main=main, **options)

    async def turns() -> list[tuple[str, str, str | None]]:
        async with asyncio.timeout(HANG_TIMEOUT_S), scene.session as session:
            return [ended(await session.send(text)) for text in ("clean up", "my secret", "no")]

    assert asyncio.run(turns()) == [WAITING, ("halted", "halted", QUESTION), COMPLETED]
    said = last_lines(scene.heard("main")[-5:])
    assert said == ["agent: AskUser", ASKED, "no", "agent: I keep it.", "counted"]


def test_the_first_message_of_a_session_start_hook_comes_after_the_answer(project: Path) -> None:
    first = scripted_session(project, ASK)
    first.play("clean up")
    hook = rule(specific("SessionStart", initialUserMessage="look around"), "SessionStart")
    agent = scripted_session(project, "kept", "looked", rules=[hook], session_id=first.session.id)
    assert ended(agent.play("no")) == COMPLETED
    assert agent.heard()[-4:] == [ASKED, "no", "agent: kept", "look around"]


def test_a_message_is_kept_if_what_a_session_start_hook_says_leads_to_a_question(project: Path) -> None:
    hook = rule(specific("SessionStart", initialUserMessage="look around"), "SessionStart")
    agent = scripted_session(project, ASK, "kept", "built", rules=[hook])
    assert ended(agent.play("build it", "no")) == COMPLETED
    assert agent.heard()[-5:] == ["agent: AskUser", ASKED, "no", "agent: kept", "build it"]


# A process that ends


def test_a_killed_session_resumes_with_its_question_open(project: Path) -> None:
    """The transcript ends right after the question: the process was killed before the end of the turn."""
    main = [BACK, UNTIL_REPORTED, ASK]
    scene = parent(project, "counted", main=main, allow=["Bash"], on_step=mark_reported(project))
    scene.play("clean up")
    path = Path(scene.session.transcript_path)
    kept = [line for line in lines(path) if '"turn_end"' not in line]
    path.write_text("\n".join(kept) + "\n")
    resumed = parent(project, main=["I keep it.", "Counted."], session_id=scene.session.id)

    async def turns() -> tuple[str | None, tuple[str, str, str | None]]:
        async with resumed.session as session:
            await session.open()
            return session.question, ended(await session.send("no"))

    assert asyncio.run(turns()) == (QUESTION, COMPLETED)
    said = last_lines(resumed.heard("main")[-4:])
    assert said == [ASKED, "no", "agent: I keep it.", "counted"]


def test_a_summary_does_not_answer_a_question_and_a_reset_withdraws_it(project: Path) -> None:
    agent = scripted_session(project, ASK, "a summary", "kept")

    async def turns() -> list[str | None]:
        async with agent.session as session:
            await session.send("clean up")
            await session.compact()
            stored = read_conversation(session.transcript_path).question
            compacted = session.question
            await session.reset()
            return [stored, compacted, session.question, read_conversation(session.transcript_path).question]

    assert asyncio.run(turns()) == [QUESTION, QUESTION, None, None]


def test_a_question_that_a_hook_denied_is_not_open(project: Path) -> None:
    deny = rule(say({"decision": "block", "reason": "ask nothing"}), "PreToolUse")
    agent = scripted_session(project, ASK, "kept", rules=[deny])
    assert ended(agent.play()) == COMPLETED
    assert read_conversation(agent.session.transcript_path).question is None


def test_with_p_a_question_beside_a_subagent_is_printed_and_exits_with_12(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The next process answers first, then takes the report; its subagent goes on meanwhile."""
    write_settings(project, "turngate", stop_hooks(SAVE_INPUT))
    script = project.parent / "script.json"

    def run(prompt: str, *main: Any) -> tuple[int, str, str]:
        late = {"text": "counted", "delay": 0 if prompt == "no" else 3600}
        script.write_text(json.dumps({"main": main, "sub": [late]}))
        code = turngate_main(
            [
                "run",
                "-p",
                prompt,
                "--project",
                str(project),
                "--session",
                "s",
                "--model",
                f"scripted:{script}",
            ]
        )
        return code, *capfd.readouterr()

    left = "! 1 subagent has not finished: lines; continue with `turngate run --resume --session s`\n"
    assert run("clean up", BACK, ASK, "I deleted it.") == (12, f"{QUESTION}\n", left)
    assert run("no", "I keep it.", "Counted.")[:2] == (0, "Counted.\n")
    assert saved_inputs(project, "last_assistant_message") == ["Counted."]
