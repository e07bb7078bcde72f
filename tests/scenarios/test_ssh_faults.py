"""Machines and connections that fail while a session runs: what is reported, and that nothing is left there."""

import errno
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.shells.ssh.test_files import needs_bash
from tests.shells.test_every_shell import needs_sshd
from tests.support.builders import script, write_settings
from tests.support.cli import PROGRESS, start_turngate, turngate
from tests.support.servers.ssh import HOST, SshServer, ssh_server
from tests.support.sessions import wait_for_file_sync
from tests.support.shells import PATH
from tests.support.ssh_leftovers import assert_nothing_is_left, files_left, processes_left
from tests.support.timeouts import NEVER_S

pytestmark = [needs_sshd, pytest.mark.req("X-32", "X-11")]


class Session(NamedTuple):
    """A project there, and the arguments of a session in it."""

    project: Path
    words: tuple[str, ...]


class Reported(NamedTuple):
    """What the command reported: its exit code, the last answer, its stderr, and each run of a hook."""

    code: int
    answer: str
    stderr: str
    runs: list[tuple[str, str | None, str]]  # outcome, reason, stdout


def make_session(
    server: SshServer, *hooks: dict[str, Any], replies: Sequence[Any] = ("answer {n}",)
) -> Session:
    project = server.home / "app"
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    model = server.folder / "script.json"
    model.write_text(json.dumps({"main": replies}))
    words = ("--strict", "--allow", "Bash", "--output-format", "json", "--model", f"scripted:{model}")
    return Session(project, ("run", "--ssh", f"{HOST}:app", "-p", "go", *words))


def command(text: str) -> dict[str, Any]:
    return {"type": "command", "id": "tests", "command": text}


def reported(code: int, out: str, err: str) -> Reported:
    result = json.loads(out)
    runs = [(run["outcome"], run["reason"], run["stdout"]) for run in result["hook_runs"]]
    return Reported(code, result["result"], PROGRESS.sub("", err), runs)


def not_enforced(why: str, answer: str = "answer 1") -> Reported:
    return Reported(13, answer, f'! hook "tests" failed and was NOT enforced: {why}\n', [("failed", why, "")])


# The connection is lost while a hook runs


HANGING = f"sleep {NEVER_S} & echo begun > begun; wait"
REASONS = ("Connection lost", f"[Errno {errno.ECONNRESET}] {os.strerror(errno.ECONNRESET)}")


def restart(server: SshServer) -> None:
    server.kill()
    server.start()


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(SshServer.cut_connections, id="the connection is cut"),
        pytest.param(SshServer.kill, id="the server is killed"),
        pytest.param(restart, id="the server is restarted"),
    ],
)
def test_a_hook_whose_connection_is_lost_is_reported_and_leaves_nothing(
    lose: Callable[[SshServer], None], own_server: SshServer
) -> None:
    session = make_session(own_server, command(HANGING))
    with start_turngate(*session.words) as program:
        wait_for_file_sync(session.project / "begun")
        assert (processes_left(own_server) != [], files_left(own_server) != []) == (True, True)
        lose(own_server)
        out, err = program.communicate()
        found = reported(program.wait(), out, err)
    why = f"the connection to {HOST} was lost while it ran: "
    assert found in [not_enforced(why + reason) for reason in REASONS]
    assert_nothing_is_left(own_server)


# Servers with odd settings


READS_TRANSCRIPT = (
    'last() { tail -n 1 "$MUX_TRANSCRIPT_PATH" | grep -o "answer ."; }; '
    "[ -e asked ] || { touch asked; last >&2; exit 2; }; last"
)
BLOCKED_ONCE = Reported(0, "answer 2", "", [("block", "answer 1", ""), ("allow", None, "answer 2\n")])
ANSWER = '{"decision":"block","reason":"noise"}'
NOISE = f"echo '{ANSWER}'; printf noise; echo '{ANSWER}' >&2; printf noise >&2\n"


def run_with(tmp_path: Path, home: Path, *, bashrc: str = "", **options: str) -> Reported:
    """Run a session with a hook that reads the transcript, and look for what it leaves."""
    with ssh_server(tmp_path / "sshd", None, **options) as server:
        server.configure_client(home)
        (server.home / ".bashrc").write_text(bashrc)
        found = reported(*turngate(*make_session(server, command(READS_TRANSCRIPT)).words))
        assert_nothing_is_left(server)
    return found


def test_a_server_with_three_channels_has_the_same_verdicts(tmp_path: Path, home: Path) -> None:
    assert run_with(tmp_path, home, MaxSessions="3") == BLOCKED_ONCE


FEW = f"{HOST} opens no further session on a connection (open failed): set MaxSessions to 3 or more in its sshd_config"
NOISY = (
    f"SFTP of {HOST} cannot be read, because a startup file of the login shell there prints text: "
    "let it print at a terminal only"
)
ADD_SFTP = "add `Subsystem sftp internal-sftp` to its sshd_config"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"MaxSessions": "1"}, FEW),
        (
            {"Subsystem": "other internal-sftp"},
            f"{HOST} has no SFTP, which Turngate reads files with: {ADD_SFTP}",
        ),
        ({"Subsystem": "sftp /bin/false"}, f"SFTP of {HOST} does not start: {ADD_SFTP}"),
        ({"Subsystem": "sftp /bin/echo hello"}, NOISY),
    ],
)
def test_a_server_whose_files_cannot_be_read_says_what_is_missing(
    options: dict[str, str], why: str, tmp_path: Path, home: Path
) -> None:
    with ssh_server(tmp_path / "sshd", None, **options) as server:
        server.configure_client(home)
        assert turngate(*make_session(server, command("true")).words) == (64, "", f"turngate: {why}\n")
        assert_nothing_is_left(server)


def test_a_server_with_two_channels_starts_no_command(tmp_path: Path, home: Path) -> None:
    found = run_with(tmp_path, home, MaxSessions="2")
    assert found == not_enforced(f"could not be started: ssh {HOST}: {FEW}")


def test_a_banner_is_not_an_answer(tmp_path: Path, home: Path) -> None:
    (tmp_path / "banner").write_text(f"{ANSWER}\n")
    assert run_with(tmp_path, home, Banner=str(tmp_path / "banner")) == BLOCKED_ONCE


@needs_bash
def test_what_a_login_prints_is_not_an_answer(tmp_path: Path, home: Path) -> None:
    assert run_with(tmp_path, home, bashrc=NOISE) == BLOCKED_ONCE


# A clock that is wrong


HOUR_S, MONTH_S = 3600, 30 * 86400


@needs_bash
@pytest.mark.parametrize("error", [-MONTH_S, MONTH_S], ids=["slow", "fast"])
def test_a_wrong_clock_there_changes_no_verdict(error: int, own_server: SshServer) -> None:
    """`date` and the times of files show it. A file is old or new by the clock there, and a copy is not sent by any."""
    programs = own_server.folder / "programs"
    script(programs / "date", f"#!/bin/sh\necho $(($({shutil.which('date')} +%s) + {error}))\n")
    (own_server.home / ".bashrc").write_text(f"export PATH={programs}:$PATH\n")
    set_time = 'touch -d "@$(($(date +%s) + {}))"'
    hook = (
        f'{set_time.format(0)} "$MUX_TRANSCRIPT_PATH"; tail -n 1 "$MUX_TRANSCRIPT_PATH" | grep -o "answer ."'
    )
    gate = {"type": "gate", "gate": "outputs", "options": {"globs": ["new", "old"]}}
    renew = {"tools": [{"name": "Bash", "input": {"command": f"{set_time.format(HOUR_S)} old"}}]}
    session = make_session(own_server, command(hook), gate, replies=("answer 1", renew, "answer 2"))
    now = time.time() + error
    for name, written in (("new", now + HOUR_S), ("old", now - HOUR_S)):
        (session.project / name).write_text("x")
        os.utime(session.project / name, (written, written))
    outputs = "these outputs are missing:\n- old is older than this session\nWrite them before you finish."
    assert reported(*turngate(*session.words)) == Reported(
        0,
        "answer 2",
        "",
        [
            ("allow", None, ""),  # the gate, at the start of the session
            ("allow", None, "answer 1\n"),
            ("block", outputs, ""),
            ("allow", None, "answer 2\n"),
            ("allow", None, ""),
        ],
    )
    assert_nothing_is_left(own_server)


# No place for the copy of the transcript


DISK_IS_FULL = (f"cat: write error: {os.strerror(errno.ENOSPC)}", "File size limit exceeded")


def test_a_full_disk_there_is_reported_and_leaves_nothing(full_disk: SshServer) -> None:
    answer = "x" * 100_000
    session = make_session(full_disk, command("touch started"), replies=(answer,))
    found = reported(*turngate(*session.words))
    why = f"the transcript could not be copied to {HOST}: "
    assert found in [not_enforced(why + reason, answer) for reason in DISK_IS_FULL]
    assert not (session.project / "started").exists()
    assert_nothing_is_left(full_disk)


def test_a_temporary_folder_without_write_access_is_reported_and_leaves_nothing(
    tmp_path: Path, home: Path
) -> None:
    """Not even root can make a folder in /sys."""
    found = run_with(tmp_path, home, SetEnv=f"HOME={tmp_path}/sshd/home TMPDIR=/sys")
    [name] = set(re.findall(r"/sys/turngate-[0-9a-f]{32}", found.stderr))
    failed = subprocess.run(["mkdir", name], env={"PATH": PATH}, capture_output=True, text=True, check=False)
    assert found == not_enforced(f"the transcript could not be copied to {HOST}: {failed.stderr.strip()}")
    assert not (tmp_path / "sshd/home/app/asked").exists()
    assert list(Path("/sys").glob("turngate-*")) == []
