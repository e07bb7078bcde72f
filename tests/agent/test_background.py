"""Commands in the background: read, ended, reported to the agent, and never left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.machines import Machine, skip_without_sshd
from tests.support.sessions import (
    SAVE_INPUT,
    ScriptedSession,
    hang,
    is_running,
    lines,
    saved_inputs,
    scripted_session,
    scripted_session_on,
    survives,
    wait_for_file,
    wait_for_file_sync,
)
from turngate.agent import turn as agent_turn
from turngate.agent.background import KEPT_BYTES, MAX_RUNNING, RecentOutput
from turngate.core.conversation.messages import ToolResults
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import BackgroundCommandFinished, Notice
from turngate.core.text import omission_note

ALL = pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)


async def release(project: Path, is_unfinished: Callable[[], object]) -> None:
    """Let the command continue that waits for the file `go`, and wait until it has ended."""
    (project / "go").touch()
    async with asyncio.timeout(300):
        while is_unfinished():
            await asyncio.sleep(0.01)


def background(command: str, **more: Any) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command, "run_in_background": True, **more}}


def read(name: str = "bash_1") -> dict[str, Any]:
    return {"tool": "BashOutput", "input": {"bash_id": name}}


def kill(name: str = "bash_1") -> dict[str, Any]:
    return {"tool": "KillShell", "input": {"shell_id": name}}


def wait_for(path: str, then: str = "true") -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": f"until [ -e {path} ]; do sleep 0.01; done; {then}"}}


def session(machine: Machine, project: Path, *replies: Any, **options: Any) -> ScriptedSession:
    return scripted_session_on(machine, project, *replies, permission_mode="bypassPermissions", **options)


def results(agent: ScriptedSession) -> list[str]:
    messages = agent.model.requests[-1].messages
    return [r.content for message in messages if isinstance(message, ToolResults) for r in message.results]


@pytest.fixture
def never_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_turn, "COMMAND_WAIT_S", 0.0)


@pytest.fixture
def always_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_turn, "COMMAND_WAIT_S", 3000.0)


# The end wakes the agent


@ALL
@pytest.mark.usefixtures("always_wait")
def test_the_end_of_a_command_wakes_the_agent_and_the_stop_hooks_run_again(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    command = "until [ -e seen ]; do sleep 0.01; done; echo built"
    replies = (background(command, description="build"), "it is building", "it is built")
    agent = session(machine, project, *replies, stop=SAVE_INPUT, dialect=dialect)
    result = agent.play()
    assert agent.heard()[-2:] == [
        "agent: it is building",
        f"[Background command] bash_1 ({command}) ended with exit code 0.\n\nbuilt",
    ]
    first, second = saved_inputs(project)
    task = {"id": "bash_1", "type": "shell", "status": "running", "description": "build", "command": command}
    assert (first["background_tasks"], second.get("background_tasks", [])) == ([task], [])
    assert (first["stop_hook_active"], second["stop_hook_active"]) == (False, False)
    assert first["prompt_id"] != second["prompt_id"]
    assert (result.ended_by, result.result, result.model_requests) == ("allowed", "it is built", 3)


@pytest.mark.usefixtures("always_wait")
def test_a_command_that_ends_while_the_agent_works_is_reported_after_its_answer(
    project: Path, machine: Machine
) -> None:
    agent = session(
        machine, project, background("touch ended; exit 3"), wait_for("ended"), "worked", "saw it"
    )
    result = agent.play()
    assert agent.heard()[-1] == (
        "[Background command] bash_1 (touch ended; exit 3) ended with exit code 3. It printed nothing new."
    )
    assert (result.result, [e.status for e in agent.of(BackgroundCommandFinished)]) == ("saw it", ["failed"])


@pytest.mark.usefixtures("never_wait")
def test_a_command_that_ends_between_two_turns_is_reported_with_the_next_prompt(
    project: Path, machine: Machine
) -> None:
    agent = session(
        machine, project, background("until [ -e go ]; do sleep 0.01; done; echo late"), "one", "two", "three"
    )

    async def turns() -> None:
        async with agent.session as running:
            await running.send("first")
            await release(project, lambda: running._agent.background.running)
            await running.send("second")

    machine.run(turns())
    assert [
        text.partition(" (")[0] for text in agent.heard() if "agent:" not in text and "tool:" not in text
    ] == [
        "first",
        "[Background command] bash_1",
        "second",
    ]


@pytest.mark.usefixtures("never_wait")
def test_the_end_of_a_command_can_begin_a_turn_of_its_own(project: Path, machine: Machine) -> None:
    agent = session(
        machine, project, background("until [ -e go ]; do sleep 0.01; done"), "one", "woken", stop=SAVE_INPUT
    )

    async def turns() -> Any:
        async with agent.session as running:
            await running.send("first")
            nothing = await running.answer_background()
            await release(project, lambda: running._agent.background.running)
            return nothing, await running.answer_background()

    nothing, woken = machine.run(turns())
    assert (nothing, woken.result, len(saved_inputs(project))) == (None, "woken", 2)


def test_a_stop_that_is_halted_does_not_wait_for_commands(project: Path, machine: Machine) -> None:
    agent = session(machine, project, background(hang()), "done", stop="""echo '{"continue": false}'""")
    assert agent.play().ended_by == "halted"


# BashOutput and KillShell


@pytest.mark.usefixtures("always_wait")
def test_output_is_read_once_and_what_was_read_is_not_reported(project: Path, machine: Machine) -> None:
    command = "echo one; touch a; until [ -e b ]; do sleep 0.01; done; echo two >&2; touch c"
    agent = session(
        machine,
        project,
        background(command),
        wait_for("a", "sleep 1"),  # what is in the pipe may not have been read yet
        read(),
        read(),
        {"tool": "Bash", "input": {"command": "touch b; until [ -e c ]; do sleep 0.01; done; sleep 1"}},
        read(),
        "done",
    )
    result = agent.play()
    texts = results(agent)
    assert texts[2:4] == ["bash_1 is running.\none", "bash_1 is running.\n(no new output)"]
    assert texts[5] in ("bash_1 is running.\ntwo", "bash_1 ended with exit code 0.\ntwo")
    assert result.result == "done"


@pytest.mark.usefixtures("always_wait")
def test_a_killed_command_ends_with_its_children_and_wakes_no_agent(project: Path, machine: Machine) -> None:
    command = f"({hang('child')}) & {hang()}"
    agent = session(
        machine,
        project,
        background(command),
        wait_for("pid"),
        wait_for("child"),
        kill(),
        read(),
        kill(),
        "done",
    )
    result = agent.play()
    assert results(agent)[3:] == [
        "bash_1 was killed.",
        "bash_1 was killed.\n(no new output)",
        "bash_1 is not running: it was killed",
    ]
    pids = [(project / name).read_text().strip() for name in ("pid", "child")]
    assert ([survives(pid) for pid in pids], result.model_requests) == ([False, False], 7)


@pytest.mark.parametrize("reply", [read("bash_7"), kill("bash_7")], ids=["BashOutput", "KillShell"])
def test_an_unknown_command_is_an_error(project: Path, reply: dict[str, Any]) -> None:
    agent = scripted_session(project, reply, "done", permission_mode="bypassPermissions")
    agent.play()
    assert results(agent) == ["there is no background command 'bash_7'"]


@pytest.mark.usefixtures("never_wait")
def test_an_agent_can_run_only_so_many_commands_at_once(project: Path, machine: Machine) -> None:
    agent = session(machine, project, *[background("sleep 3600")] * (MAX_RUNNING + 1), "done")
    agent.play()
    names = ", ".join(f"bash_{n}" for n in range(1, MAX_RUNNING + 1))
    assert results(agent)[-1] == f"8 commands are already running in the background ({names}): end one first"


def test_a_command_in_the_background_needs_permission(project: Path) -> None:
    agent = scripted_session(project, background("touch ran"), "done")
    agent.play()
    assert (results(agent)[0].partition(",")[0], (project / "ran").exists()) == (
        "Bash needs permission",
        False,
    )


def test_a_hook_gets_the_id_of_a_command_in_the_background(project: Path, machine: Machine) -> None:
    agent = session(machine, project, background("true"), "done", rules=[rule(SAVE_INPUT, "PostToolUse")])
    agent.play()
    assert saved_inputs(project, "tool_response")[0]["backgroundTaskId"] == "bash_1"


# Bounded output


def test_only_the_newest_output_is_kept_and_what_is_missing_is_named() -> None:
    output = RecentOutput()
    output.feed(b"a" * KEPT_BYTES)
    output.feed(b"b" * 10)
    assert output.take_new() == omission_note(10, "bytes") + "a" * (KEPT_BYTES - 10) + "b" * 10
    output.feed(b"c")
    assert (output.take_new(), output.take_new(), output.truncated) == ("c", "", True)


@pytest.mark.usefixtures("never_wait")
def test_a_command_that_floods_its_output_does_not_hold_up_the_agent(project: Path, machine: Machine) -> None:
    agent = session(machine, project, background("echo $$ > pid; yes flood"), wait_for("pid"), read(), "done")
    assert agent.play().result == "done"
    [command] = agent.session._agent.background._commands.values()  # what it holds in memory
    assert len(command.output._tail) <= KEPT_BYTES
    assert not survives((project / "pid").read_text().strip())


# Nothing is left behind


@pytest.mark.usefixtures("never_wait")
@pytest.mark.parametrize(
    "command",
    [hang(), f"trap '' TERM; {hang()}", f"setsid sh -c '{hang()}'"],
    ids=["never ends", "ignores TERM", "leaves its session"],
)
def test_a_command_ends_with_the_session_and_the_user_is_told(
    project: Path, command: str, machine: Machine
) -> None:
    agent = session(machine, project, background(command), wait_for("pid"), "done")
    result = agent.play()
    pid = (project / "pid").read_text().strip()
    notice = f"background command killed because it was still running: {command}"
    told = [event.text for event in agent.of(Notice)]
    assert (result.ended_by, survives(pid), told) == ("allowed", False, [notice])


def test_an_interrupt_ends_the_commands_of_its_turn_and_not_earlier_ones(
    project: Path, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine,
        project,
        background(hang("first")),
        wait_for("first"),
        "one",
        background(hang("second")),
        wait_for("second"),
        wait_for("never"),
        permission_mode="bypassPermissions",
        permit=permit,
    )

    async def turns() -> tuple[bool, bool]:
        async with agent.session as running:
            await running.send("one")
            turn = asyncio.create_task(running.send("two"))
            second = await wait_for_file(project / "second")
            running.interrupt()
            await turn
            return is_running(lines(project / "first")[0]), await asyncio.to_thread(survives, second)

    assert machine.run(turns()) == (True, False)
    assert not survives(lines(project / "first")[0])


async def permit(*_: object) -> bool:
    return True


def test_a_reset_ends_the_commands(project: Path, machine: Machine) -> None:
    agent = session(machine, project, background(hang()), wait_for("pid"), "done", permit=permit)

    async def reset() -> bool:
        async with agent.session as running:
            await running.send("one")
            await running.reset()
            return await asyncio.to_thread(survives, lines(project / "pid")[0])

    assert machine.run(reset()) is False


@pytest.mark.usefixtures("never_wait")
def test_the_commands_of_a_subagent_end_with_it(project: Path, machine: Machine) -> None:
    task = {"tool": "Task", "input": {"prompt": "look", "run_in_background": False}}
    # The main agent waits for its end, because the end of the session would end it too.
    look = "n=0; while kill -0 $(cat pid) && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done"
    wait = {"tool": "Bash", "input": {"command": f"({look}; kill -0 $(cat pid) || echo gone) 2>/dev/null"}}
    agent = session(
        machine, project, task, wait, "done", sub=[background(hang()), wait_for("pid"), "found it"]
    )
    agent.play()
    assert results(agent) == ["found it", "gone"]


@pytest.mark.usefixtures("always_wait")
def test_the_end_of_a_command_wakes_a_subagent_too(project: Path, machine: Machine) -> None:
    task = {"tool": "Task", "input": {"prompt": "look", "run_in_background": False}}
    agent = session(
        machine, project, task, "done", sub=[background("sleep 0.2; echo built"), "waiting", "it is built"]
    )
    agent.play()
    assert results(agent) == ["it is built"]


# Processes that a command leaves running

LEFT_ON = ", and processes that it started are still running; KillShell ends them"
LEAVES = f"sh -c '{hang()}' & until [ -s pid ]; do sleep 0.01; done; echo started"


@pytest.mark.usefixtures("always_wait")
@pytest.mark.parametrize(
    "command",
    [LEAVES, LEAVES.replace("&", ">/dev/null 2>&1 &", 1), f"setsid {LEAVES}"],
    ids=["holds the output", "has closed the output", "has left the session"],
)
def test_what_a_command_left_running_is_reported_and_ends_with_the_session(
    project: Path, command: str, machine: Machine
) -> None:
    agent = session(machine, project, background(command), "it starts", "it has started")
    result = agent.play()
    heading = f"[Background command] bash_1 ({command}) ended with exit code 0"
    notice = f"background command killed because it was still running: {command}"
    assert agent.heard()[-1] == f"{heading}{LEFT_ON}.\n\nstarted"
    assert (result.result, survives(lines(project / "pid")[0])) == ("it has started", False)
    assert [event.text for event in agent.of(Notice)] == [notice]


@pytest.mark.usefixtures("always_wait")
def test_what_a_command_left_running_can_still_be_read_and_killed(project: Path, machine: Machine) -> None:
    skip_without_sshd(machine)
    command = "{ until [ -e go ]; do sleep 0.01; done; echo late; touch said; sleep 3600; } & echo $! > pid"
    say = {"tool": "Bash", "input": {"command": "touch go; until [ -e said ]; do sleep 0.01; done; sleep 1"}}
    replies = (background(command), "it starts", read(), say, read(), kill(), read(), "done")
    agent = session(machine, project, *replies)
    agent.play()
    left_on = f"bash_1 ended with exit code 0{LEFT_ON}."
    assert (results(agent)[1], *results(agent)[3:]) == (
        f"{left_on}\n(no new output)",
        f"{left_on}\nlate",
        "bash_1 was killed.",
        "bash_1 was killed.\n(no new output)",
    )
    assert not survives(lines(project / "pid")[0])


@pytest.mark.usefixtures("always_wait")
def test_what_a_command_of_a_subagent_left_running_ends_with_the_subagent(
    project: Path, machine: Machine
) -> None:
    task = {"tool": "Task", "input": {"prompt": "look", "run_in_background": False}}
    is_alive = "grep -q 'State:.[^Z]' /proc/$(cat pid)/status 2>/dev/null"
    ended = {"tool": "Bash", "input": {"command": f"while {is_alive}; do sleep 0.01; done; echo gone"}}
    agent = session(machine, project, task, ended, "done", sub=[background(LEAVES), "it starts", "found it"])
    agent.play()
    assert results(agent) == ["found it", "gone"]


@pytest.mark.usefixtures("always_wait")
def test_what_a_command_left_running_may_end_by_itself(project: Path, machine: Machine) -> None:
    command = "{ until [ -e go ]; do sleep 0.01; done; } & echo started"
    agent = session(machine, project, background(command), "it starts", "it has started", permit=permit)

    async def play() -> bool:
        async with agent.session as running:
            await running.send("go")
            await release(project, lambda: running._agent.background.alive)
            return running._agent.background.get("bash_1").leaves_processes

    assert (machine.run(play()), agent.of(Notice)) == (False, [])


SCRIPT = """
import asyncio, sys
from turngate import Session, ScriptedModel
model = ScriptedModel({"main": [
    {"tool": "Bash", "input": {"command": sys.argv[1], "run_in_background": True}},
    {"tool": "Bash", "input": {"command": "touch ready"}},
    {"text": "never", "delay": 3600},
]})
asyncio.run(Session(".", model, permission_mode="bypassPermissions").send("go"))
"""


def test_a_command_ends_when_its_session_is_killed(project: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, hang()], cwd=project, env=os.environ)
    pid = wait_for_file_sync(project / "pid")
    while not (project / "ready").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not survives(pid)


def test_what_a_command_left_running_ends_when_its_session_is_killed(project: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, LEAVES], cwd=project, env=os.environ)
    pid = wait_for_file_sync(project / "pid")
    while not (project / "ready").exists():
        assert process.poll() is None
    time.sleep(1)  # the command itself has ended, or it ends with the session
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not survives(pid)


def test_a_hook_may_block_while_a_command_runs(project: Path, machine: Machine) -> None:
    """The command does not delay the hooks, also in dialects that wait for subagents."""
    agent = session(
        machine,
        project,
        background(hang()),
        "one",
        "two",
        stop="[ -e a ] || { touch a; echo no >&2; exit 2; }",
        permit=permit,
    )
    assert agent.play().continuations == 1
