"""What keeps a turn within bounds and loses nothing: halts, cut calls, full disks, models that misbehave."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.machines import Machine
from tests.support.sessions import lines, on_first, records, say, scripted_session, scripted_session_on
from turngate.agent.model_loop import TRUNCATED_CALL
from turngate.agent.session import Session
from turngate.core.conversation.messages import ModelRequest, Reply
from turngate.core.dialect import MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import Continuation, HookStarted, Notice, StreamEnd, TurnEnd
from turngate.core.hooks.kinds import CommandHook

HALT = say({"continue": False, "stopReason": "enough"})


def calls(*commands: str) -> dict[str, Any]:
    return {"tools": [{"name": "Bash", "input": {"command": command}} for command in commands]}


def test_a_model_that_calls_tools_for_ever_is_ended_by_itself(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.agent.session.MAX_REQUESTS", 7)
    agent = scripted_session(project, {"tool": "Glob", "input": {"pattern": "*"}})
    result = agent.play()
    assert (result.ended_by, result.stop_reason, result.model_requests) == (
        "max_turns",
        "the limit of 7 model requests is reached",
        7,
    )


def test_a_hook_that_ends_the_turn_after_a_tool_leaves_its_result(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(
        machine,
        project,
        calls("echo one", "echo two"),
        rules=[rule(HALT, "PostToolUse")],
        allow=["Bash"],
        session_id="s",
    )
    result = agent.play()
    assert (result.ended_by, result.stop_reason) == ("halted", "enough")
    contents = [
        block["content"]
        for record in records(agent.session.transcript_path)
        if record["type"] == "user" and isinstance(record["message"]["content"], list)
        for block in record["message"]["content"]
    ]
    assert contents == [
        "one",
        "no result: the turn ended (halted) before this call finished",
    ]


WAIT = say({"continue": False, "stopReason": "approve the plan", "waits": True})


@pytest.mark.parametrize("event", ["Stop", "PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart"])
def test_a_hook_can_end_the_turn_to_wait_for_the_user(project: Path, event: str, machine: Machine) -> None:
    agent = scripted_session_on(
        machine, project, calls("true"), "done", rules=[rule(WAIT, event)], allow=["Bash"]
    )
    result = agent.play()
    assert (result.outcome, result.ended_by, result.stop_reason) == (
        "waiting",
        "checkpoint",
        "approve the plan",
    )


def test_a_hook_that_waits_overrides_the_blocks_of_the_others(project: Path, machine: Machine) -> None:
    rules = [rule("echo more >&2; exit 2"), rule(WAIT)]
    result = scripted_session_on(machine, project, "done", rules=rules).play()
    assert (result.ended_by, result.continuations) == ("checkpoint", 0)


def asks_for(count: int) -> str:
    """Return a hook that always blocks, each time for another reason."""
    block = {"decision": "block", "reason": "round $n", "continuations": count}
    answer = json.dumps(block).replace('"', '\\"')
    return f'n=$(cat n 2>/dev/null); n=$((n+1)); echo $n > n; echo "{answer}"'


@pytest.mark.req("C-18", "U-14")
def test_a_hook_that_asks_for_continuations_gets_them_up_to_the_hard_limit(
    project: Path, machine: Machine
) -> None:
    hook = CommandHook(asks_for(12), id="until")
    agent = scripted_session_on(machine, project, "done", rules=[rule(hook)])
    result = agent.play()
    less = "gets 10, the hard limit: raise `hardLimit` in the user settings for more"
    assert (result.ended_by, result.continuations, result.notices) == (
        "capped",
        10,
        (
            f'gate "until" asks for 12 continuations and {less}',
            'Turn ended after 10 continuations (the limit). Still blocked by: "until".',
        ),
    )
    assert [each.limit for each in agent.of(Continuation)] == [10] * 10


def test_each_result_is_on_disk_before_the_next_tool_begins(project: Path) -> None:
    agent = scripted_session(project, calls("echo first-result", "cp $CHAT copy"), "done", allow=["Bash"])
    agent.session._agent.tool_context.environ["CHAT"] = agent.session.transcript_path
    agent.play()
    assert '"content":"first-result"' in lines(project / "copy")[-1]
    assert agent.heard()[-1] == "tool: first-result + (no output)"


def test_a_tool_call_in_an_answer_that_was_cut_is_not_run(project: Path) -> None:
    cut = {**calls("touch half"), "stop_reason": "max_tokens"}
    agent = scripted_session(project, cut, "done", allow=["Bash"])
    result = agent.play()
    assert (result.outcome, result.result, result.tool_calls) == ("completed", "done", 0)
    assert agent.heard() == ["go", "agent: Bash", f"tool: {TRUNCATED_CALL}"]
    assert not (project / "half").exists()


def test_a_tool_call_that_is_cut_again_and_again_ends_the_turn(project: Path) -> None:
    agent = scripted_session(project, {**calls("touch half"), "stop_reason": "max_tokens"}, allow=["Bash"])
    result = agent.play()
    assert (result.ended_by, result.model_requests) == ("error", 4)
    assert not (project / "half").exists()


def test_a_start_hook_that_says_continue_false_ends_the_turn_before_the_model_is_asked(
    project: Path, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine, project, "done", rules=[rule(HALT, "SessionStart", matcher="startup")]
    )
    result = agent.play()
    assert (result.ended_by, result.stop_reason, result.model_requests) == ("halted", "enough", 0)


def test_a_start_hook_at_the_opening_ends_the_first_turn_only(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, "done", rules=[rule(HALT, "SessionStart")])

    async def two() -> list[str]:
        async with agent.session:
            await agent.session.open()
            return [(await agent.session.send(prompt)).ended_by for prompt in ("one", "two")]

    assert machine.run(two()) == ["halted", "allowed"]


class Odd:
    """A custom model that misbehaves."""

    name, context = "odd:one", 200_000

    def __init__(self, raised: BaseException) -> None:
        self.raised = raised

    async def ask(self, request: ModelRequest, tell: Any) -> Reply:  # noqa: ARG002
        raise self.raised

    async def close(self) -> None:
        raise RuntimeError("it cannot be closed")


ODD = [
    (ZeroDivisionError("by zero"), "the model failed (invalid): ZeroDivisionError: by zero"),
    (asyncio.CancelledError(), "the model failed (network): the request was cancelled, and not by turngate"),
]


@pytest.mark.parametrize(("raised", "said"), ODD, ids=["exception", "cancelled"])
def test_a_model_of_ones_own_that_raises_fails_the_turn_and_nothing_else(
    project: Path, raised: BaseException, said: str, machine: Machine
) -> None:
    agent = scripted_session_on(machine, project, rules=[rule("cat > failure", "StopFailure")], retries=())
    agent.session._agent.model = Odd(raised)
    result = agent.play()
    assert (result.ended_by, result.stop_reason) == ("error", said)
    assert lines(project / "failure") != []
    assert agent.of(Notice)[-1] == Notice(
        "the model's connection could not be closed: RuntimeError: it cannot be closed"
    )


def test_a_disk_that_is_full_ends_the_turn_as_an_error_and_plugins_are_notified(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = scripted_session(project, "done")
    told: list[Any] = []
    agent.session._agent.plugins.on("stop", told.append)

    async def full() -> Any:
        async with agent.session:
            await agent.session.open()
            with open("/dev/full", "wb") as disk:  # noqa: ASYNC230
                monkeypatch.setattr(agent.session._agent.conversation.transcript, "_fd", disk.fileno())
                result = await agent.session.send("go")
                monkeypatch.undo()
            return result

    result = asyncio.run(full())
    assert (result.ended_by, [payload.ended_by for payload in told]) == ("error", ["error"])
    assert result.stop_reason == ("the transcript cannot be written: [Errno 28] No space left on device")
    assert len(agent.of(TurnEnd)) == 1


def test_a_later_prompt_that_is_blocked_takes_neither_the_answer_nor_the_gate_with_it(
    project: Path, machine: Machine
) -> None:
    no = "grep -q secret && { echo not that >&2; exit 2; }; exit 0"
    agent = scripted_session_on(
        machine,
        project,
        "one",
        "two",
        stop="touch asked",
        rules=[rule(no, "UserPromptSubmit")],
        listen=on_first(StreamEnd, lambda session: session.queue("secret")),
    )
    result = agent.play()
    assert (result.outcome, result.result, result.model_requests) == ("completed", "one", 1)
    assert (project / "asked").exists()
    assert Notice("a hook blocked the prompt: not that") in agent.of(Notice)


@pytest.mark.req("S0-100", "C-31")
@pytest.mark.parametrize("dialect", [TURNGATE, MUX], ids=["turngate", "mux"])
def test_messages_typed_while_a_hook_blocks_do_not_multiply_the_continuations(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    def type_on(event: object, session: Session) -> None:
        if isinstance(event, HookStarted) and len(typed) < 2:
            typed.append(event)
            session.queue(f"also {len(typed)}")

    typed: list[object] = []
    counting = "echo x >> asked; echo no $(wc -l < asked) >&2; exit 2"
    agent = scripted_session_on(machine, project, "a{n}", stop=counting, dialect=dialect, listen=type_on)
    result = agent.play()
    assert (result.ended_by, len(agent.of(Continuation))) == ("capped", 3)
    assert {message for message in agent.heard() if message.startswith("also")} == {"also 1", "also 2"}


def test_a_conversation_that_does_not_fit_is_summed_up_and_sent_again(project: Path) -> None:
    agent = scripted_session(project, "one", {"error": "context"}, "the summary", "two")
    result = agent.play("first", "second")
    assert (result.outcome, result.result, result.model_requests) == ("completed", "two", 3)
    assert agent.heard() == ["Summary of the conversation so far:\n\nthe summary", "second"]


def test_a_conversation_that_does_not_fit_even_then_ends_the_turn(project: Path) -> None:
    agent = scripted_session(project, "one", {"error": "context"}, "the summary", {"error": "context"})
    result = agent.play("first", "second")
    assert (result.ended_by, result.model_requests) == ("error", 3)


def test_what_a_tool_printed_counts_before_the_next_request_is_made(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(
        machine,
        project,
        calls("yes | head -c 28000"),
        "the summary",
        "done",
        context=4000,
        allow=["Bash"],
        rules=[rule("touch compacted", "PreCompact")],
    )
    result = agent.play()
    assert (result.outcome, result.result) == ("completed", "done")
    assert (project / "compacted").exists()
    assert len(agent.heard(1)[2]) < 5000  # the summary is made from less


def test_a_session_that_skips_the_stop_observers_does_so_when_it_crashes_too(project: Path) -> None:
    def break_down(_: object, __: Session) -> None:
        raise ZeroDivisionError

    agent = scripted_session(project, "done", listen=break_down, skip_stop_hook=True)
    told: list[Any] = []
    agent.session._agent.plugins.on("stop", told.append)
    with pytest.raises(ZeroDivisionError):
        agent.play()
    assert told == []
