"""`run_stop_hooks` on the machine of its runtime: this one, or that of a workspace over SSH."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.machines import skip_with_shared_files
from tests.support.servers.ssh import HOST, SshServer
from turngate import LocalShell, StopHookInput, StopHooksResult, UsageError, Workspace, World, run_stop_hooks
from turngate.ports import Shell
from turngate.shells.ssh.shell import SshShell


@pytest.fixture
def box(other_machine: SshServer) -> SshServer:
    skip_with_shared_files(other_machine)
    return other_machine


@pytest.fixture
def app(box: SshServer) -> Path:
    """The folder of the project on the other machine, as it is called on this one."""
    folder = box.home / "app"
    folder.mkdir()
    return folder


def hook_input(transcript: str = "") -> StopHookInput:
    return StopHookInput(
        session_id="s-1",
        transcript_path=transcript,
        cwd="/",
        permission_mode="default",
        hook_event_name="Stop",
        stop_hook_active=False,
    )


def stop_here(project: Path | str, transcript: str = "", **options: Any) -> StopHooksResult:
    return asyncio.run(run_stop_hooks(LocalShell(), str(project), hook_input(transcript), **options))


def stop_there(
    project: str = ".",
    transcript: str = "",
    prepare: Callable[[World], Awaitable[None]] | None = None,
    **options: Any,
) -> list[StopHooksResult]:
    """Return the results with the workspace `~/app` of the other machine, and with its shell, as the runtime."""

    async def scenario() -> list[StopHooksResult]:
        async with await Workspace.ssh(HOST, "app") as workspace:
            if prepare:
                await prepare(workspace)
            return [
                await run_stop_hooks(runtime, project, hook_input(transcript), **options)
                for runtime in (workspace, workspace.shell)
            ]

    return asyncio.run(scenario())


REPORTS = 'printf "%s\\n" "$PWD" "$MUX_PROJECT_DIR" "$HOME" "$(cat "$MUX_TRANSCRIPT_PATH")" >&2; exit 2'


@pytest.mark.req("S0-63", "S0-105")
def test_the_stop_hooks_of_a_project_over_ssh_are_those_of_its_machine(
    box: SshServer, app: Path, project: Path, home: Path, tmp_path: Path
) -> None:
    """The same files on both machines give the same result, with the paths of each."""
    transcript = tmp_path / "chat.jsonl"
    transcript.write_text("the conversation")
    for folder, own_home in ((project, home), (app, box.home)):
        write_settings(own_home, "mux", stop_hooks("echo of the user >&2; exit 1"))
        write_settings(folder, "mux", stop_hooks(REPORTS))
        write_settings(folder, "claude", {"hooks": {"Foo": []}})
        script(folder / ".mux" / "stop", "#!/bin/sh\necho of the script >&2\nexit 1\n")
    here = stop_here(project, str(transcript))
    there = StopHooksResult(
        should_stop=False,
        continue_reason=f"{box.path_there(app)}\n{box.path_there(app)}\n{box.path_there(box.home)}\nthe conversation",
        warnings=[
            ".claude/settings.json: Foo: is not a known event, so its hooks never run",
            'hook "echo of the user >&2; exit 1" failed and was NOT enforced: exit code 1: of the user',
            'hook ".mux/stop" failed and was NOT enforced: exit code 1: of the script',
        ],
    )
    assert stop_there(transcript=str(transcript)) == [there, there]
    assert stop_there(box.path_there(app), str(transcript)) == [there, there]
    assert stop_there("~/app", str(transcript)) == [there, there]
    assert (here.continue_reason, here.warnings) == (
        f"{project}\n{project}\n{home}\nthe conversation",
        there.warnings,
    )


@pytest.mark.req("S0-63", "S0-105")
def test_of_a_path_that_is_on_both_machines_the_other_one_is_read(
    box: SshServer, app: Path, project: Path
) -> None:
    write_settings(project, "turngate", stop_hooks("echo of this machine >> ~/ran"))
    settings = json.dumps(stop_hooks("pwd >> ~/ran; echo of the other machine >&2; exit 2")).encode()

    async def write_there(workspace: World) -> None:
        path = str(project / ".turngate" / "settings.json")
        await workspace.call(lambda: workspace.files.replace(path, settings, make_folders=True))

    blocked = StopHooksResult(should_stop=False, continue_reason="of the other machine")
    assert stop_there(str(project), prepare=write_there) == [blocked, blocked]
    assert (box.home / "ran").read_text() == f"{project}\n{project}\n"


@pytest.mark.req("S0-105")
def test_approvals_are_those_of_the_other_machine(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_settings(app, "turngate", stop_hooks("echo no >&2; exit 2"))
    pending = StopHooksResult(
        should_stop=True,
        warnings=['hook "echo no >&2; exit 2" was skipped and NOT enforced: it is not approved'],
    )
    blocked = StopHooksResult(should_stop=False, continue_reason="no")
    assert stop_there() == [pending, pending]
    assert stop_there(trust=True) == [blocked, blocked]
    assert turngate("hooks", "approve", "--all", "--yes", "--ssh", f"{HOST}:app")[0] == 0
    assert stop_there() == [blocked, blocked]


def test_a_project_folder_that_is_not_there_is_reported_as_here(
    box: SshServer, app: Path, tmp_path: Path
) -> None:
    gone, home = tmp_path / "gone", box.path_there(box.home)
    why = "so only your user settings were read"
    assert stop_here(gone).warnings == [f"the project folder {gone} does not exist, {why}"]
    missing = StopHooksResult(True, None, [f"the project folder {home}/gone does not exist on {HOST}, {why}"])
    assert stop_there("../gone") == [missing, missing]


def test_the_journal_names_the_project_with_its_machine(box: SshServer, app: Path) -> None:
    write_settings(app, "turngate", stop_hooks("echo no >&2; exit 2"))
    stop_there()
    code, out, err = turngate("log", "--project", f"ssh://{HOST}{box.path_there(app)}", "--json")
    entries = [json.loads(line) for line in out.splitlines()]
    assert (code, [entry["kind"] for entry in entries if entry["kind"] != "start"], err) == (
        0,
        ["hook", "verdict"] * 2,
        "",
    )


def test_a_machine_that_does_not_answer_is_an_error(own_server: SshServer) -> None:
    (own_server.home / "app").mkdir()

    async def stop_server(_: World) -> None:
        own_server.kill()

    with pytest.raises(UsageError) as raised:
        stop_there(prepare=stop_server)
    assert str(raised.value).startswith(f"the files of ssh://{HOST} cannot be read: ")


class OtherShell:
    """A shell that somebody else wrote: nothing says on which machine its commands run."""

    run = LocalShell.run

    def slot(self, *, background: bool = False) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        return nullcontext()


@pytest.mark.req("S0-63")
@pytest.mark.parametrize("runtime", [OtherShell(), SshShell(HOST)], ids=lambda shell: type(shell).__name__)
def test_a_shell_whose_files_are_not_known_is_never_a_silent_pass(runtime: Shell, project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("echo no >&2; exit 2"))
    with pytest.raises(UsageError) as raised:
        asyncio.run(run_stop_hooks(runtime, str(project), hook_input()))
    assert str(raised.value) == (
        f"{type(runtime).__name__} does not say where the project's files are; pass the workspace of "
        "`await Workspace.ssh(…)`, or `World(shell, project)` if they are on this machine"
    )


def test_a_world_says_that_the_files_of_a_shell_are_on_this_machine(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("echo $NAME >&2; exit 2"))
    world = World(OtherShell(), str(project), environ={**os.environ, "NAME": "of the world"})
    result = asyncio.run(run_stop_hooks(world, ".", hook_input()))
    assert result == StopHooksResult(should_stop=False, continue_reason="of the world")
