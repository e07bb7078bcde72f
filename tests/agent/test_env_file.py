"""The file in which SessionStart hooks set variables, when a hook makes something else of it."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.shells.test_every_shell import needs_sshd
from tests.support.builders import rule
from tests.support.live_models import wait_until
from tests.support.prefixed_files import PrefixedFiles
from tests.support.servers.ssh import HOST, SshServer, ssh_server
from tests.support.sessions import ScriptedSession, scripted_session
from tests.support.subagents import bash
from turngate import ScriptedModel, Session, Settings, Workspace
from turngate.agent.env_file import MAX_BYTES, UnusableEnvFile, read_exports, send_env_file
from turngate.core.conversation.messages import ToolResults
from turngate.core.events.stream_events import Notice, SessionEvent
from turngate.ports import ConnectionLost, RemoteMachine, World
from turngate.shells.local import LocalShell

WORDS = "so no variables are set from it; check the SessionStart hooks"


def said(path: Path, environ: dict[str, str] | None = None) -> dict[str, str] | str:
    """Return the variables, or why there are none."""
    try:
        return read_exports(str(path), environ or {})
    except UnusableEnvFile as error:
        return str(error).replace(str(path), "FILE").replace(WORDS, "WORDS")


def printed(agent: ScriptedSession) -> list[str]:
    """Return what the agent's tools gave."""
    messages = agent.model.requests[-1].messages
    return [r.content for m in messages if isinstance(m, ToolResults) for r in m.results]


HOSTILE = {
    "a pipe": ('rm -f "$CLAUDE_ENV_FILE"; mkfifo "$CLAUDE_ENV_FILE"', "is not a regular file"),
    "a device": ('ln -sf /dev/zero "$CLAUDE_ENV_FILE"', "is not a regular file"),
    "a folder": ('rm -f "$CLAUDE_ENV_FILE"; mkdir "$CLAUDE_ENV_FILE"', "is a folder, expected a file"),
    "a link to itself": (
        'ln -sf "$CLAUDE_ENV_FILE" "$CLAUDE_ENV_FILE"',
        "cannot be read: Too many levels of symbolic links",
    ),
    "huge": ('truncate -s 100G "$CLAUDE_ENV_FILE"', "is larger than 256 KiB"),
    "doubling": (
        """printf 'A=%01000d\\n' 0 > "$CLAUDE_ENV_FILE"
        for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo 'A=$A$A$A$A$A$A$A$A' >> "$CLAUDE_ENV_FILE"; done""",
        "expands to more than 256 KiB",
    ),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_file_that_cannot_be_used_is_a_notice_and_the_turn_goes_on(
    hostile: str, project: Path, state: Path
) -> None:
    command, why = HOSTILE[hostile]
    hook = rule(command, "SessionStart")
    agent = scripted_session(project, bash("echo ${A-unset}"), "done", rules=[hook], allow=["Bash"])
    result = agent.play()
    [path] = (folder / "env" for folder in state.rglob("*") if os.path.lexists(folder / "env"))
    notices = [event.text for event in agent.events if isinstance(event, Notice)]
    assert (result.outcome, printed(agent), notices) == (
        "completed",
        ["unset"],
        [f"the environment file {path} {why}, {WORDS}"],
    )


def test_without_a_file_there_are_no_variables(tmp_path: Path) -> None:
    assert said(tmp_path / "env") == {}


@pytest.mark.parametrize(("size", "expected"), [(MAX_BYTES, MAX_BYTES - 3), (MAX_BYTES + 1, None)])
def test_a_file_of_the_maximum_size_is_read(tmp_path: Path, size: int, expected: int | None) -> None:
    path = tmp_path / "env"
    path.write_text("A=" + "x" * (size - 3) + "\n")
    assert said(path) == (
        {"A": "x" * expected} if expected else "the environment file FILE is larger than 256 KiB, WORDS"
    )


def test_a_file_of_very_many_variables_is_read(tmp_path: Path) -> None:
    path = tmp_path / "env"
    names = [f"v{number}" for number in range(25_000)]
    path.write_text("".join(f"{name}=1\n" for name in names))
    assert said(path) == dict.fromkeys(names, "1")


def test_the_file_is_not_read_on_the_event_loop(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    system_open = os.open

    def recorded(path: Any, *args: Any, **named: Any) -> int:
        if str(path).endswith("/env"):
            threads.append(threading.current_thread() is threading.main_thread())
        return system_open(path, *args, **named)

    monkeypatch.setattr(os, "open", recorded)
    hook = rule('echo A=1 >> "$CLAUDE_ENV_FILE"', "SessionStart")
    agent = scripted_session(project, bash("echo $A"), "done", rules=[hook], allow=["Bash"])
    agent.play()
    assert (printed(agent), threads) == (["1"], [False])


def test_a_nul_character_is_left_out_as_a_shell_does(tmp_path: Path) -> None:
    """No process can be started with one in its environment."""
    path = tmp_path / "env"
    path.write_bytes(b"export A=x\0y\nB=\0\n")
    assert said(path) == {"A": "xy", "B": ""}


# A project on another machine


def play_there(there: Path, command: str, asked: str, *, notices: list[str] | None = None) -> str:
    """Run a SessionStart hook there, then a command of the agent, and return what that printed."""
    model = ScriptedModel({"main": [bash(asked), "done"]})
    settings = Settings(rules=(rule(command, "SessionStart"),))

    def listen(event: SessionEvent) -> None:
        if isinstance(event, Notice) and notices is not None:
            notices.append(event.text)

    async def scenario() -> None:
        async with (
            await Workspace.ssh(HOST, str(there)) as workspace,
            await Session.in_workspace(
                workspace, model, settings, session_id="s", allow={"Bash"}, on_event=listen
            ) as session,
        ):
            await session.send("go")

    asyncio.run(scenario())
    *_, result = [r for m in model.requests[-1].messages if isinstance(m, ToolResults) for r in m.results]
    return result.content


@pytest.mark.req("S0-105", "X-32")
def test_a_hook_on_another_machine_sets_variables_there(server: SshServer, project: Path) -> None:
    command = 'echo "export WHERE=$CLAUDE_ENV_FILE" >>"$TURNGATE_ENV_FILE"'
    printed = play_there(project, command, 'echo "$WHERE"').strip()
    assert Path(printed).is_relative_to(server.temporary)
    assert list(server.temporary.iterdir()) == []


def test_a_resumed_session_on_another_machine_has_the_variables_of_its_start(
    server: SshServer, project: Path
) -> None:
    command = '[ -s "$CLAUDE_ENV_FILE" ] || echo "export A=$((1 + 1))" >>"$CLAUDE_ENV_FILE"'
    assert play_there(project, command, "echo $A") == "2"
    assert (
        play_there(project, 'echo "export B=$(cat $CLAUDE_ENV_FILE)" >>"$CLAUDE_ENV_FILE"', "echo $A") == "2"
    )


@pytest.mark.parametrize("hostile", ["a pipe", "a folder", "huge"])
def test_a_file_on_another_machine_that_cannot_be_used_is_a_notice(
    hostile: str, server: SshServer, project: Path
) -> None:
    command, why = HOSTILE[hostile]
    notices: list[str] = []
    assert play_there(project, command, "echo on", notices=notices) == "on"
    (notice,) = notices
    assert notice.endswith(f" {why}, {WORDS}")


@needs_sshd
def test_a_file_that_cannot_be_copied_is_a_notice_and_the_session_goes_on(
    tmp_path: Path, home: Path, project: Path
) -> None:
    notices: list[str] = []
    with ssh_server(tmp_path / "sshd", SetEnv=f"HOME={tmp_path}/sshd/home TMPDIR=/sys") as server:
        server.configure_client(home)
        assert play_there(project, "exit 0", "echo on", notices=notices) == "on"
    first = notices[0]
    assert f" could not be copied to ssh://{HOST}: mkdir: " in first
    assert first.endswith(WORDS)


class LostCopies:
    """Copies of which none is made, because the connection is lost."""

    async def copy(self, path: str) -> str:
        raise ConnectionLost(f"the connection was lost while the transcript {path} was copied")

    def has_lost(self, path: str) -> bool:
        raise AssertionError(path)

    async def renew(self, path: str) -> str:
        raise AssertionError(path)


def test_a_connection_that_is_lost_is_not_said_of_the_transcript(tmp_path: Path) -> None:
    path = tmp_path / "env"
    files = PrefixedFiles("/", str(tmp_path))
    world = World(LocalShell(), str(tmp_path), environ={}, remote=RemoteMachine(files, LostCopies()))
    with pytest.raises(UnusableEnvFile) as raised:
        asyncio.run(send_env_file(world, str(path)))
    why = f"could not be copied to {files.machine}: the connection was lost"
    assert str(raised.value) == f"the environment file {path} {why}, {WORDS}"


@needs_sshd
@pytest.mark.req("X-32")
def test_after_a_lost_connection_the_file_is_there_again(tmp_path: Path, home: Path, project: Path) -> None:
    stop = 'cat "$CLAUDE_ENV_FILE" "$TURNGATE_ENV_FILE" >>seen; echo "$CLAUDE_ENV_FILE" >>paths'
    start = 'echo "export A=1" >>"$CLAUDE_ENV_FILE"'
    settings = Settings(rules=(rule(start, "SessionStart"), rule(stop), rule(f"{stop}; true")))

    async def scenario(server: SshServer) -> None:
        model = ScriptedModel({"main": ["one", "two"]})
        async with (
            await Workspace.ssh(HOST, str(project)) as workspace,
            await Session.in_workspace(workspace, model, settings) as session,
        ):
            await session.send("one")
            server.cut_connections()
            await asyncio.to_thread(
                wait_until, lambda: not any(server.temporary.iterdir()), "the folder was not removed"
            )
            await session.send("two")

    with ssh_server(tmp_path / "sshd") as server:
        server.configure_client(home)
        asyncio.run(scenario(server))
    assert (project / "seen").read_text() == "export A=1\n" * 8
    assert len(set((project / "paths").read_text().splitlines())) == 2
