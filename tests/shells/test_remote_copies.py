"""RemoteCopies: what is sent, what a hook sees there, and that nothing stays there."""

import asyncio
import filecmp
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.shells.test_every_shell import needs_sshd, wait_for
from tests.support.builders import settings, stop_event
from tests.support.live_models import wait_until
from tests.support.paths import ROOT
from tests.support.servers.ssh import HOST, SshServer, ssh_server
from tests.support.shells import opened
from tests.support.ssh_leftovers import files_left
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S, POLL_INTERVAL_S
from turngate.core.answers.report_types import Exited
from turngate.core.events.events import Subagent
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.hook_run import outcome, run_message
from turngate.core.verdict.verdict import Stop, Verdict
from turngate.engine import ask_hooks
from turngate.ports import RemoteMachine, World
from turngate.shells.ssh.copies import CHUNK_BYTES, READ_BYTES, CopyFailed, RemoteCopies
from turngate.shells.ssh.files import SshFiles
from turngate.shells.ssh.shell import SshShell

T = TypeVar("T")


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "chat.jsonl"
    path.write_text("one\ntwo\n")
    return path


def with_copies(scenario: Callable[[RemoteCopies], Awaitable[T]]) -> T:
    async def opening() -> T:
        async with opened(lambda: SshShell(HOST)) as shell:
            assert isinstance(shell, SshShell)
            copies = RemoteCopies(shell)
            try:
                return await scenario(copies)
            finally:
                await copies.close()

    return asyncio.run(opening())


# A copy


@pytest.mark.req("X-32")
def test_a_copy_is_private_and_is_removed_afterwards(own_server: SshServer, transcript: Path) -> None:
    async def scenario(copies: RemoteCopies) -> tuple[str, list[int], bool]:
        copy = Path(await copies.copy(str(transcript)))
        folders = [path for path in copy.parents if path.is_relative_to(own_server.temporary)][:-1]
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (copy, *folders)]
        return read(copy), modes, copy.name == transcript.name

    assert with_copies(scenario) == ("one\ntwo\n", [0o600, 0o700, 0o700], True)
    assert files_left(own_server) == []


@pytest.mark.req("X-32")
def test_only_what_is_new_is_sent(server: SshServer, transcript: Path) -> None:
    """The copy stays the same file; a copy that is sent anew replaces it."""

    async def scenario(copies: RemoteCopies) -> list[tuple[str, bool]]:
        first = Path(await copies.copy(str(transcript)))
        inode = inode_of(first)
        seen = []
        for new in ("three\n", "", "é\n"):
            append(transcript, new)
            copy = Path(await copies.copy(str(transcript)))
            assert copy == first
            seen.append((read(copy), inode_of(copy) == inode))
        return seen

    whole = "one\ntwo\nthree\n"
    assert with_copies(scenario) == [(whole, True), (whole, True), (f"{whole}é\n", True)]


def read(path: Path | str) -> str:
    return Path(path).read_text()


def exists(path: str) -> bool:
    return os.path.exists(path)


def inode_of(path: Path) -> int:
    return path.stat().st_ino


def remove(path: Path) -> None:
    path.unlink()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


CHANGES_HERE: dict[str, Callable[[Path], object]] = {
    "shorter": lambda path: path.write_text("one\n"),
    "empty": lambda path: path.write_text(""),
    "rewritten and longer": lambda path: path.write_text("ONE\ntwo\nthree\n"),
    "rewritten with the same size": lambda path: path.write_text("ONE\ntwo\n"),
    "replaced": lambda path: (
        path.with_name("new").write_text("other\n") and path.with_name("new").rename(path)
    ),
}


@pytest.mark.parametrize("change", CHANGES_HERE.values(), ids=CHANGES_HERE)
def test_a_transcript_that_was_rewritten_is_sent_anew(
    change: Callable[[Path], object], server: SshServer, transcript: Path
) -> None:
    async def scenario(copies: RemoteCopies) -> str:
        await copies.copy(str(transcript))
        change(transcript)
        return read(await copies.copy(str(transcript)))

    assert with_copies(scenario) == transcript.read_text()


CHANGES_THERE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda copy: copy.write_text("one\n"),
    "removed": lambda copy: copy.unlink(),
    "longer": lambda copy: append(copy, "more\n"),
    "changed with the same size": lambda copy: copy.write_text("ONE\ntwo\n"),
    "its folder removed": lambda copy: shutil.rmtree(copy.parent),
    "all folders removed": lambda copy: shutil.rmtree(copy.parent.parent),
}


@pytest.mark.req("X-32")
@pytest.mark.parametrize("change", CHANGES_THERE.values(), ids=CHANGES_THERE)
def test_a_copy_that_is_not_as_it_was_sent_is_sent_anew(
    change: Callable[[Path], object], own_server: SshServer, transcript: Path
) -> None:
    async def scenario(copies: RemoteCopies) -> str:
        change(Path(await copies.copy(str(transcript))))
        append(transcript, "three\n")
        return read(await copies.copy(str(transcript)))

    assert with_copies(scenario) == "one\ntwo\nthree\n"
    assert files_left(own_server) == []


@pytest.mark.parametrize("seconds", [0, 4_102_444_800])
def test_no_clock_decides_what_is_sent(seconds: int, server: SshServer, transcript: Path) -> None:
    """A clock that is wrong there shows in the times of files, which here are those of 1970 and 2100."""

    async def scenario(copies: RemoteCopies) -> tuple[str, bool]:
        copy = Path(await copies.copy(str(transcript)))
        inode = inode_of(copy)
        for path in (copy, copy.parent, copy.parent.parent):
            os.utime(path, (seconds, seconds))
        append(transcript, "three\n")
        await copies.copy(str(transcript))
        return read(copy), inode_of(copy) == inode

    assert with_copies(scenario) == ("one\ntwo\nthree\n", True)


CONTENTS = [
    b"",
    b"\n",
    b"\n\n",
    b"no newline",
    b"'$HOME' \\n `id` %s\r\n",
    b"\xff\xfe",
    b"\0",
    b"-n",
    bytes(range(256)) * 40,
]


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
def test_a_copy_has_the_same_bytes(content: bytes, server: SshServer, transcript: Path) -> None:
    transcript.write_bytes(content)

    async def scenario(copies: RemoteCopies) -> tuple[bool, bool]:
        copy = await copies.copy(str(transcript))
        whole = filecmp.cmp(copy, transcript, shallow=False)
        with transcript.open("ab") as file:
            file.write(content)
        await copies.copy(str(transcript))
        return whole, filecmp.cmp(copy, transcript, shallow=False)

    assert with_copies(scenario) == (True, True)


@pytest.mark.parametrize("name", ["a b.jsonl", "it's\n$HOME.jsonl", "-rf", "é.jsonl", "x" * 255])
def test_a_transcript_may_have_any_name(name: str, server: SshServer, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("one\n")

    async def scenario(copies: RemoteCopies) -> tuple[str, str]:
        await copies.copy(str(path))
        append(path, "two\n")
        copy = Path(await copies.copy(str(path)))
        return copy.name, read(copy)

    assert with_copies(scenario) == (name, "one\ntwo\n")


def test_a_transcript_that_does_not_exist_has_no_copy_either(server: SshServer, transcript: Path) -> None:
    async def scenario(copies: RemoteCopies) -> list[bool]:
        seen = [exists(await copies.copy(str(transcript)))]
        remove(transcript)
        seen.append(exists(await copies.copy(str(transcript))))
        append(transcript, "new\n")
        seen.append(exists(await copies.copy(str(transcript))))
        return seen

    assert with_copies(scenario) == [True, False, True]


def test_what_is_not_a_file_is_named_as_the_reason(server: SshServer, tmp_path: Path) -> None:
    async def scenario(copies: RemoteCopies) -> str:
        with pytest.raises(CopyFailed) as raised:
            await copies.copy(str(tmp_path))
        return str(raised.value)

    why = f"the transcript could not be copied to {HOST}: {tmp_path}: it is not a regular file"
    assert with_copies(scenario) == why


# Several at once


@pytest.mark.req("X-32")
def test_hooks_of_one_stop_share_one_transfer(own_server: SshServer, transcript: Path) -> None:
    """Each command there is counted by the login shell. What is short needs no command."""
    with_counter(own_server)

    transcript.write_text("x" * 2 * READ_BYTES)  # so that each look at the copy is a command

    async def scenario(copies: RemoteCopies) -> tuple[int, int]:
        await copies.copy(str(transcript))
        before = counted(own_server)
        append(transcript, "three\n")
        paths = await asyncio.gather(*(copies.copy(str(transcript)) for _ in range(10)))
        return len(set(paths)), counted(own_server) - before

    assert with_copies(scenario) == (1, 1)


def with_counter(server: SshServer) -> None:
    """bash reads `.bashrc` for each command."""
    (server.home / ".bashrc").write_text(f"echo >>{server.folder}/count\n")


def counted(server: SshServer) -> int:
    path = server.folder / "count"
    if not path.exists():
        pytest.skip("the login shell is not bash")
    return len(path.read_text().splitlines())


def test_a_hook_that_asks_later_sees_what_is_new(own_server: SshServer, transcript: Path) -> None:
    transcript.write_text("x" * 2 * CHUNK_BYTES)

    async def scenario(copies: RemoteCopies) -> str:
        first = asyncio.ensure_future(copies.copy(str(transcript)))
        await wait_for_transfer(own_server)
        append(transcript, "three\n")
        second = read(await copies.copy(str(transcript)))
        await first
        return second[2 * CHUNK_BYTES :]

    assert with_copies(scenario) == "three\n"


async def wait_for_transfer(server: SshServer) -> None:
    """Wait until a part of a new copy is there."""
    async with asyncio.timeout(HANG_TIMEOUT_S):
        while not any(name.endswith(".new") for name in files_left(server)):
            await asyncio.sleep(0)


def test_a_hook_that_is_cancelled_does_not_cancel_the_others(server: SshServer, transcript: Path) -> None:
    async def scenario(copies: RemoteCopies) -> str:
        first, second = (asyncio.ensure_future(copies.copy(str(transcript))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        return read(await second)

    assert with_copies(scenario) == "one\ntwo\n"


@pytest.mark.req("X-32")
def test_two_sessions_never_share_a_folder(own_server: SshServer, transcript: Path) -> None:
    async def scenario() -> tuple[int, list[bool]]:
        async with opened(lambda: SshShell(HOST)) as first, opened(lambda: SshShell(HOST)) as second:
            assert isinstance(first, SshShell)
            assert isinstance(second, SshShell)
            copies = [RemoteCopies(shell) for shell in (first, first, second)]
            paths = [Path(await each.copy(str(transcript))) for each in copies]
            await copies[1].close()
            await copies[2].close()
            return len({path.parent for path in paths}), [path.exists() for path in paths]

    assert asyncio.run(scenario()) == (3, [True, False, False])
    assert files_left(own_server) == []


# Long transcripts


def test_a_long_transcript_takes_little_memory(server: SshServer, tmp_path: Path) -> None:
    """100 MB, in a process of its own, whose memory is compared before and after."""
    path = tmp_path / "long.jsonl"
    write_long(path)
    program = """
        import asyncio, filecmp, resource, sys
        from turngate.shells.ssh.copies import RemoteCopies
        from turngate.shells.ssh.shell import SshShell

        async def main():
            shell = SshShell("box")
            await shell.environment()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            copies = RemoteCopies(shell)
            copy = await copies.copy(sys.argv[1])
            print(filecmp.cmp(copy, sys.argv[1], shallow=False))
            with open(sys.argv[1], "a") as file:
                file.write("new\\n")
            await copies.copy(sys.argv[1])
            print(filecmp.cmp(copy, sys.argv[1], shallow=False))
            print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
            await copies.close()
            await shell.close()

        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    printed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    assert printed[:2] == ["True", "True"]
    assert int(printed[2]) < 80  # MiB


def write_long(path: Path) -> None:
    line = b"x" * 999 + b"\n"
    with path.open("wb") as file:
        for _ in range(100):
            file.write(line * 1000)


def test_an_interrupt_ends_a_transfer_and_the_next_one_begins_anew(
    own_server: SshServer, tmp_path: Path
) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"x" * (3 * CHUNK_BYTES))

    async def scenario(copies: RemoteCopies) -> bool:
        copying = asyncio.ensure_future(copies.copy(str(path)))
        await wait_for_transfer(own_server)
        copying.cancel()
        await asyncio.wait({copying})
        assert copying.cancelled()
        return read(await copies.copy(str(path))) == read(path)

    assert with_copies(scenario)
    assert files_left(own_server) == []


# Hooks


async def ask(copies: RemoteCopies, project: Path, *hooks: CommandHook | str, **fields: object) -> Verdict:
    """Run these hooks for one Stop, over the connection of the copies."""
    world = await world_of(copies, project)
    return await ask_hooks(stop_event(cwd=str(project), **fields), settings(*hooks), world)


async def world_of(copies: RemoteCopies, project: Path) -> World:
    shell = copies.shell
    environ = await shell.environment()
    files = SshFiles(shell, asyncio.get_running_loop(), home="/", environ=environ)
    return World(shell, str(project), environ=environ, remote=RemoteMachine(files, copies))


def stdout(verdict: Verdict) -> str:
    (only,) = verdict.runs
    assert isinstance(only.report, Exited), only.report
    return only.report.stdout


def failure(verdict: Verdict) -> tuple[type, str, str | None]:
    (only,) = verdict.runs
    return type(verdict), outcome(only), run_message(only)


@pytest.mark.req("S0-26", "S0-35", "X-32")
def test_a_hook_finds_the_last_answer_in_its_copy_every_time(
    server: SshServer, transcript: Path, project: Path
) -> None:
    """The path here can be read there as well, on this one machine: it must not be the path that the hook gets."""
    command = 'tail -n 1 "$MUX_TRANSCRIPT_PATH"; echo "$TURNGATE_TRANSCRIPT_PATH"; cat'

    async def scenario(copies: RemoteCopies) -> list[tuple[str, list[bool], bool]]:
        seen = []
        for number in range(50):
            append(transcript, f"answer {number}\n")
            printed = stdout(await ask(copies, project, command, transcript_path=str(transcript)))
            answer, path, payload = printed.splitlines()
            same = [json.loads(payload)["transcript_path"] == path]
            seen.append((answer, same, Path(path).is_relative_to(server.temporary)))
        return seen

    assert with_copies(scenario) == [(f"answer {number}", [True], True) for number in range(50)]


@pytest.mark.req("S0-35", "X-32")
def test_a_hook_of_a_subagent_gets_copies_of_both_transcripts(
    server: SshServer, transcript: Path, project: Path
) -> None:
    own = transcript.with_name("agent-1.jsonl")
    own.write_text("three\n")
    subagent = Subagent(id="a-1", transcript_path=str(own))
    command = 'echo "$MUX_TRANSCRIPT_PATH"; cat'

    async def scenario(copies: RemoteCopies) -> list[str]:
        world = await world_of(copies, project)
        event = stop_event(transcript_path=str(transcript), subagent=subagent)
        verdict = await ask_hooks(event, settings(command, event="SubagentStop"), world)
        path, payload = stdout(verdict).splitlines()
        told = json.loads(payload)
        paths = [Path(path), Path(told["agent_transcript_path"]), Path(told["parent_transcript_path"])]
        assert all(each.is_relative_to(server.temporary) for each in paths)
        return [each.read_text() for each in paths]

    assert with_copies(scenario) == ["three\n", "three\n", "one\ntwo\n"]


def test_a_hook_without_a_transcript_copies_nothing(own_server: SshServer, project: Path) -> None:
    async def scenario(copies: RemoteCopies) -> tuple[str, list[str]]:
        printed = stdout(await ask(copies, project, 'echo "<$MUX_TRANSCRIPT_PATH>"', transcript_path=""))
        return printed, files_left(own_server)

    assert with_copies(scenario) == ("<>\n", [])


def test_a_hook_before_the_first_message_gets_a_path_that_does_not_exist(
    server: SshServer, tmp_path: Path, project: Path
) -> None:
    """As on this machine: the transcript of a session that has just begun does not exist."""
    command = 'basename "$MUX_TRANSCRIPT_PATH"; [ -e "$MUX_TRANSCRIPT_PATH" ] || echo missing'

    async def scenario(copies: RemoteCopies) -> str:
        return stdout(await ask(copies, project, command, transcript_path=str(tmp_path / "chat.jsonl")))

    assert with_copies(scenario) == "chat.jsonl\nmissing\n"


# What goes wrong there


@needs_sshd
@pytest.mark.req("X-32")
@pytest.mark.parametrize("cut", ["the server is killed", "the connection is cut"])
def test_the_folder_is_removed_when_the_connection_is_lost_and_the_next_hook_gets_another(
    cut: str, own_server: SshServer, transcript: Path, project: Path
) -> None:
    hanging = f'echo "$MUX_TRANSCRIPT_PATH" >>paths; sleep {NEVER_S}'

    async def scenario(copies: RemoteCopies) -> tuple[tuple[type, str, str | None], str, str]:
        asking = asyncio.ensure_future(ask(copies, project, hanging, transcript_path=str(transcript)))
        await wait_for(project / "paths")
        if cut == "the server is killed":
            own_server.kill()
            await asyncio.to_thread(own_server.start)
        else:
            own_server.cut_connections()
        lost = failure(await asking)
        await asyncio.to_thread(
            wait_until, lambda: files_left(own_server) == [], "the folder was not removed"
        )
        command = 'cat "$MUX_TRANSCRIPT_PATH"; echo "$MUX_TRANSCRIPT_PATH"'
        *lines, path = stdout(
            await ask(copies, project, command, transcript_path=str(transcript))
        ).splitlines()
        return lost, "\n".join(lines), path

    (verdict, ended, message), seen, path = with_copies(scenario)
    assert (verdict, ended) == (Stop, "failed")
    assert str(message).startswith(f"the connection to {HOST} was lost while it ran: ")
    assert (seen, path == (project / "paths").read_text().strip()) == ("one\ntwo", False)
    assert files_left(own_server) == []


@needs_sshd
@pytest.mark.req("X-32")
def test_a_hook_that_starts_on_another_connection_than_its_copy_is_not_enforced(
    own_server: SshServer, transcript: Path, project: Path
) -> None:
    """It would read no transcript, and pass."""

    class CutAfterwards(RemoteCopies):
        async def copy(self, path: str) -> str:
            copy = await super().copy(path)
            own_server.cut_connections()
            async with asyncio.timeout(HANG_TIMEOUT_S):
                while self.shell.folder:
                    await asyncio.sleep(POLL_INTERVAL_S)
            return copy

    async def scenario(copies: RemoteCopies) -> tuple[type, str, str | None]:
        cut = CutAfterwards(copies.shell)
        return failure(await ask(cut, project, "exit 0", transcript_path=str(transcript)))

    why = "the connection was lost before it started, and the copy of its transcript with it"
    assert with_copies(scenario) == (Stop, "failed", why)


@needs_sshd
@pytest.mark.req("X-32")
def test_a_connection_that_is_lost_while_a_transcript_is_copied_is_opened_again(
    own_server: SshServer, tmp_path: Path, project: Path
) -> None:
    """Nothing of the hook has started, so the copy begins anew."""
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"x" * (3 * CHUNK_BYTES))

    async def scenario(copies: RemoteCopies) -> str:
        command = 'wc -c <"$MUX_TRANSCRIPT_PATH"'
        asking = asyncio.ensure_future(ask(copies, project, command, transcript_path=str(path)))
        await wait_for_transfer(own_server)
        own_server.cut_connections()
        return stdout(await asking).strip()

    assert with_copies(scenario) == str(3 * CHUNK_BYTES)
    wait_until(lambda: files_left(own_server) == [], "the folder was not removed")


@needs_sshd
@pytest.mark.req("X-32")
def test_a_connection_that_is_lost_twice_while_a_transcript_is_copied_leaves_nothing(
    own_server: SshServer, tmp_path: Path, project: Path
) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"x" * (3 * CHUNK_BYTES))

    async def scenario(copies: RemoteCopies) -> tuple[type, str, str | None]:
        asking = asyncio.ensure_future(ask(copies, project, "touch started", transcript_path=str(path)))
        for _ in range(2):
            await wait_for_transfer(own_server)
            before = files_left(own_server)
            own_server.cut_connections()
            async with asyncio.timeout(HANG_TIMEOUT_S):
                while set(before) & set(files_left(own_server)):
                    await asyncio.sleep(0)
        return failure(await asking)

    why = f"the connection to {HOST} was lost while the transcript was copied"
    assert with_copies(scenario) == (Stop, "failed", why)
    wait_until(lambda: files_left(own_server) == [], "the folder was not removed")
    assert not (project / "started").exists()


@needs_sshd
@pytest.mark.req("X-32")
def test_the_folder_is_removed_when_this_process_is_killed(own_server: SshServer, transcript: Path) -> None:
    program = """
        import asyncio, sys
        from turngate.shells.ssh.copies import RemoteCopies
        from turngate.shells.ssh.shell import SshShell

        async def main():
            print(await RemoteCopies(SshShell("box")).copy(sys.argv[1]), flush=True)
            await asyncio.Event().wait()

        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(transcript)]
    ours = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert ours.stdout is not None
    with ours, ours.stdout as printed:
        assert Path(printed.readline().strip()).read_text() == "one\ntwo\n"
        ours.send_signal(signal.SIGKILL)
    wait_until(lambda: files_left(own_server) == [], "the folder was not removed")


@needs_sshd
@pytest.mark.req("X-32")
def test_a_full_disk_there_fails_the_hook_and_leaves_nothing(
    full_disk: SshServer, transcript: Path, project: Path
) -> None:
    async def scenario(copies: RemoteCopies) -> tuple[tuple[type, str, str | None], list[str], str]:
        await copies.copy(str(transcript))
        append(transcript, "x" * 100_000)
        failed = failure(await ask(copies, project, "touch started", transcript_path=str(transcript)))
        files = [name for name in files_left(full_disk) if (full_disk.temporary / name).is_file()]
        remove(transcript)
        append(transcript, "short\n")
        return failed, files, read(await copies.copy(str(transcript)))

    (verdict, ended, message), files, later = with_copies(scenario)
    assert (verdict, ended, files, later) == (Stop, "failed", [], "short\n")
    assert str(message).startswith(f"the transcript could not be copied to {HOST}: ")
    assert "No space left on device" in str(message) or "ile size limit" in str(message)
    assert "\n" not in str(message)
    assert not (project / "started").exists()
    assert files_left(full_disk) == []


@needs_sshd
@pytest.mark.req("X-32")
def test_a_login_that_prints_much_and_has_no_umask_does_not_change_a_copy(
    tmp_path: Path, home: Path, transcript: Path
) -> None:
    (tmp_path / "banner").write_text("welcome\n" * 100)

    async def scenario(copies: RemoteCopies) -> tuple[str, list[int]]:
        await copies.copy(str(transcript))
        append(transcript, "three\n")
        copy = Path(await copies.copy(str(transcript)))
        return read(copy), [stat.S_IMODE(path.stat().st_mode) for path in (copy, copy.parent)]

    with ssh_server(tmp_path / "sshd", Banner=str(tmp_path / "banner")) as server:
        server.configure_client(home)
        (server.home / ".bashrc").write_text("umask 0; yes noise | head -c 300000; echo noise >&2\n")
        assert with_copies(scenario) == ("one\ntwo\nthree\n", [0o600, 0o700])
        assert files_left(server) == []
