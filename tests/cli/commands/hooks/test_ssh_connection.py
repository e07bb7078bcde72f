"""A command whose machine of `--ssh` cannot be used: one sentence, exit code 64."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shells.test_every_shell import needs_sshd
from tests.shells.test_ssh import stopped
from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import PROGRESS, turngate
from tests.support.paths import ROOT
from tests.support.servers.ssh import HOST, SshServer, make_key, ssh_server
from tests.support.terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, Terminal
from tests.support.timeouts import NEVER_S
from turngate import ScriptedModel, Session, TurnResult, Workspace
from turngate.core.conversation.messages import ToolResults
from turngate.shells.ssh.remote_command import PROGRAMS

COMMANDS = pytest.mark.parametrize("command", [("run", "-p", "go"), ("hooks",)], ids=["run", "hooks"])


def said(command: tuple[str, ...], location: str) -> str:
    """Return the one line that a command prints, which fails."""
    code, out, err = turngate(*command, "--ssh", location)
    assert (code, out, err[:10], err.count("\n")) == (64, "", "turngate: ", 1)
    return err.removeprefix("turngate: ").removesuffix("\n")


# The login


def fingerprint(server: SshServer) -> str:
    words = ["ssh-keygen", "-l", "-f", str(server.folder / "host_key.pub")]
    _, shown, *_ = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    return f"ssh-ed25519 {shown}"


@COMMANDS
def test_an_unknown_host_key_is_not_accepted(command: tuple[str, ...], server: SshServer, home: Path) -> None:
    (home / ".ssh/known_hosts").unlink()
    assert said(command, f"{HOST}:app") == (
        f"the host key of [127.0.0.1]:{server.port} is not known ({fingerprint(server)}); "
        f"compare it with the server's own key and accept it with `ssh {HOST}`"
    )
    assert not (home / ".ssh/known_hosts").exists()


@COMMANDS
def test_a_changed_host_key_is_not_accepted(command: tuple[str, ...], server: SshServer, home: Path) -> None:
    name = f"[127.0.0.1]:{server.port}"
    make_key(home / "other")
    (home / ".ssh/known_hosts").write_text(f"{name} {(home / 'other.pub').read_text()}")
    assert said(command, f"{HOST}:app") == (
        f"the host key of {name} has CHANGED ({fingerprint(server)}): another machine may be answering; "
        f"if the server has a new key, remove the old one with `ssh-keygen -R '{name}'` and accept it with `ssh {HOST}`"
    )


@COMMANDS
def test_a_key_that_the_server_does_not_know_is_reported(
    command: tuple[str, ...], server: SshServer, home: Path
) -> None:
    server.configure_client(home, key=make_key(home / "other"))
    why = f"{HOST} accepts none of your keys; check the login with `ssh {HOST}`"
    assert said(command, f"{HOST}:app") == why


@COMMANDS
def test_a_closed_port_is_reported(command: tuple[str, ...]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert said(command, f"ssh://127.0.0.1:{port}/app") == (
            f"no SSH server listens on 127.0.0.1, port {port}: connection refused; "
            f"check the connection with `ssh -p {port} 127.0.0.1`"
        )


@COMMANDS
def test_a_name_that_cannot_be_resolved_is_reported(command: tuple[str, ...]) -> None:
    why = said(command, "no.such.invalid:app")
    assert why.startswith("the name no.such.invalid cannot be resolved: ")


# What there is on the machine


@contextmanager
def logins_with(tmp_path: Path, home: Path, **variables: str) -> Iterator[SshServer]:
    """Yield a server with a project `app` whose logins have other values of these variables."""
    given = {"HOME": f"{tmp_path}/sshd/home", **variables}
    environment = " ".join(f"{name}={value}" for name, value in given.items())
    with ssh_server(tmp_path / "sshd", SetEnv=environment) as server:
        server.configure_client(home)
        (server.home / "app").mkdir()
        yield server


def programs(folder: Path, *names: str) -> str:
    """Return a folder that holds only these programs."""
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return str(folder)


@needs_sshd
@COMMANDS
def test_programs_that_there_are_not_are_named(command: tuple[str, ...], tmp_path: Path, home: Path) -> None:
    found = [name for name in PROGRAMS.split() if name not in ("awk", "find")]
    with logins_with(tmp_path, home, PATH=programs(tmp_path / "programs", *found)):
        assert said(command, f"{HOST}:app") == (
            f"{HOST} lacks programs that Turngate needs: awk, find; install them there, or add their folder to PATH"
        )


def test_the_docs_list_the_programs() -> None:
    *names, last = (f"`{name}`" for name in PROGRAMS.split())
    docs = " ".join((ROOT / "docs/how-to/ssh.md").read_text().split())
    assert f"in the `PATH` of a login shell: {', '.join(names)} and {last}." in docs


@needs_sshd
def test_a_machine_needs_no_other_programs(tmp_path: Path, home: Path) -> None:
    """It has neither `stat` nor `readlink`, and no `bash`."""
    calls = (
        ("Write", {"file_path": "src/new.txt", "content": "one\n"}),
        ("Edit", {"file_path": "src/new.txt", "old_string": "one", "new_string": "two"}),
        ("Glob", {"pattern": "**/*.txt"}),
        ("Grep", {"pattern": "two"}),
        ("Bash", {"command": "cat src/link"}),
    )
    replies = [{"tools": [{"name": name, "input": arguments}]} for name, arguments in calls]
    model = ScriptedModel({"main": [*replies, "done"]})

    async def scenario(app: Path) -> TurnResult:
        allowed = {"Write", "Edit", "Bash"}
        async with (
            await Workspace.ssh(HOST, str(app)) as workspace,
            await Session.in_workspace(workspace, model, trust=True, allow=allowed) as session,
        ):
            return await session.send("go")

    with logins_with(tmp_path, home, PATH=programs(tmp_path / "programs", *PROGRAMS.split())) as server:
        app = server.home / "app"
        (app / "src").mkdir()
        (app / "src/link").symlink_to("new.txt")
        hook = 'grep -q tool_result "$TURNGATE_TRANSCRIPT_PATH" || { echo "no transcript" >&2; exit 2; }'
        write_settings(app, "turngate", stop_hooks(hook))
        result = asyncio.run(scenario(app))
    answers = [each for each in model.requests[-1].messages if isinstance(each, ToolResults)]
    assert [each.results[0].content for each in answers] == [
        f"Created {app}/src/new.txt",
        f"Changed {app}/src/new.txt in 1 place",
        f"{app}/src/new.txt",
        f"{app}/src/new.txt",
        "two",
    ]
    assert (result.outcome, result.continuations, result.unenforced) == ("completed", 0, ())


@needs_sshd
@COMMANDS
@pytest.mark.parametrize(("value", "wrong"), [("", "is not set"), ("app", "is 'app'")])
def test_a_login_without_a_home_folder_is_reported(
    value: str, wrong: str, command: tuple[str, ...], tmp_path: Path, home: Path
) -> None:
    with logins_with(tmp_path, home, HOME=value) as server:
        assert said(command, f"{HOST}:{server.home}/app") == (
            f"HOME {wrong} in a login on {HOST}; expected the path of the home folder there"
        )


# Mistakes that need no connection


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            "hooks --settings none.json",
            SETTINGS_FILE := "--settings none.json: there is no such file; give a file, or JSON in braces",
        ),
        ("run -p go --settings none.json", SETTINGS_FILE),
        ("run -p go --allow Sing", "--allow Sing: there is no such tool; the tools are "),
        (
            "run -p go --model scripted:none.json",
            "the script none.json cannot be read: No such file or directory",
        ),
        ("run -p go --model sonnet", "the model 'sonnet' is not of the form PROVIDER:NAME"),
    ],
)
def test_a_mistake_on_the_command_line_is_found_without_a_connection(words: str, error: str) -> None:
    assert said(tuple(words.split()), "no.such.invalid:app").startswith(error)


# A connection that is lost

SFTP_SERVER = Path("/usr/lib/openssh/sftp-server")
WITH_LIMIT = """\
import sys
from turngate.cli.main import main
from turngate.shells.ssh import files
files.READ_TIMEOUT_S = 2.0
sys.exit(main(sys.argv[1:]))
"""


@needs_sshd
@pytest.mark.skipif(not SFTP_SERVER.exists(), reason="needs the program sftp-server")
@COMMANDS
def test_a_machine_that_stops_answering_while_settings_are_loaded_is_reported(
    command: tuple[str, ...], tmp_path: Path, home: Path
) -> None:
    """The server gets the question whether there is such a folder, and no further one."""
    served = 100 + len(str(tmp_path / "sshd/home/app"))
    silent = tmp_path / "silent"
    script(silent, f"#!/bin/sh\n{{ dd bs=1 count={served} 2>/dev/null; cat >/dev/null; }} | {SFTP_SERVER}\n")
    with ssh_server(tmp_path / "sshd", None, Subsystem=f"sftp {silent}") as server:
        server.configure_client(home)
        (server.home / "app").mkdir()
        words = (sys.executable, "-c", WITH_LIMIT, *command, "--ssh", f"{HOST}:app")
        ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    why = f"the files of ssh://{HOST} cannot be read: the machine did not answer within 2 s; check the connection, and try again"
    printed = PROGRESS.sub("", ended.stderr)
    assert (ended.returncode, ended.stdout, printed) == (64, "", f"turngate: {why}\n")


@contextmanager
def conversation(server: SshServer, tmp_path: Path, *replies: object) -> Iterator[Terminal]:
    """Yield a conversation in a project there that has a pending hook."""
    write_settings(server.home / "app", "turngate", stop_hooks("true", id="gate"))
    (tmp_path / "script.json").write_text(json.dumps({"main": replies}))
    words = ("run", "--ssh", f"{HOST}:app", "--model", f"scripted:{tmp_path}/script.json")
    with Terminal(*words, cwd=tmp_path) as terminal:
        terminal.expect("! 1 hook is pending and does not run")
        yield terminal


GONE = f"! no SSH server listens on {HOST}, port "


def check_the_conversation_goes_on(terminal: Terminal) -> None:
    terminal.say("go on")
    terminal.expect("Still here.")
    terminal.type(CTRL_D)
    terminal.expect("to continue this conversation")
    assert (terminal.end(), terminal.text.count(GONE), "Traceback" in terminal.text) == (0, 1, False)


@pytest.mark.parametrize("keys", ["", "n", "yy"], ids=["before it opens", "reject", "approve"])
def test_the_menu_of_hooks_reports_a_server_that_is_gone(
    keys: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    with (
        logins_with(tmp_path, home) as server,
        conversation(server, tmp_path, "Still here.") as terminal,
    ):
        if keys:
            terminal.say("/hooks")
            terminal.expect("> gate  Stop  PENDING")
        for key in keys[:-1]:
            terminal.type(key)
            terminal.expect("y again approves")
        server.kill()
        terminal.type(keys[-1] if keys else f"/hooks{ENTER}")
        terminal.expect(GONE)
        check_the_conversation_goes_on(terminal)


@needs_sshd
def test_hooks_that_are_read_slowly_are_announced_and_an_interrupt_ends_it(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    with logins_with(tmp_path, home) as server, conversation(server, tmp_path) as terminal:
        with stopped(server.connections()):
            terminal.say("/hooks")
            terminal.expect(f"reading the hooks on {HOST} · ")
            terminal.type(CTRL_C)
            terminal.expect("interrupted")
        terminal.say("/hooks")
        terminal.expect("> gate  Stop  PENDING")


def test_the_list_of_hooks_reports_a_server_that_is_gone_while_the_agent_works(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    slow = {"text": "Late.", "delay": NEVER_S}
    with (
        logins_with(tmp_path, home) as server,
        conversation(server, tmp_path, slow, "Still here.") as terminal,
    ):
        terminal.say("go")
        terminal.expect("waiting for the model")
        server.kill()
        terminal.say("/hooks")
        terminal.expect(GONE)
        terminal.type(ESCAPE)
        terminal.expect("interrupted")
        check_the_conversation_goes_on(terminal)
