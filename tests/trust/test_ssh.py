"""Settings, script hooks and approvals of a project behind a real SSH server."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.builders import script, stop_event, stop_hooks, write_settings
from tests.support.remote_files import QuestionCounter, connected_files
from tests.support.servers.ssh import HOST, SshServer, ssh_server
from tests.support.timeouts import wait_for_slow_machine
from tests.trust.support import command, said, stop_settings
from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Settings
from turngate.core.verdict.verdict import Continue, Verdict
from turngate.engine import ask_hooks
from turngate.ports import RemoteMachine, World
from turngate.runners import WRITES_ITSELF
from turngate.shells.ssh.files import SshFiles
from turngate.shells.ssh.shell import SshShell
from turngate.trust.load import load_settings
from turngate.trust.review import review_project

MACHINE = "ssh://me@box"


@pytest.fixture
def files(server: SshServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshFiles]:
    wait_for_slow_machine(monkeypatch)
    monkeypatch.delenv("TURNGATE_TRUST")
    with connected_files() as made:
        made.machine = MACHINE
        yield made


def load(files: SshFiles, project: Path) -> Settings:
    return load_settings(str(project), files=files)


def approve_all(files: SshFiles, project: Path) -> None:
    review = review_project(str(project), files=files)
    review.approve(review.hooks)


def pending(settings: Settings) -> dict[str, str | None]:
    return {hook_text(rule.hook): rule.pending for rule in settings.rules}


@pytest.mark.req("S0-105")
def test_script_hooks_and_their_approvals_work_on_remote_files(files: SshFiles, project: Path) -> None:
    path = script(project / ".mux" / "stop", "#!/bin/sh\n. .mux/check.sh\n")
    before = pending(load(files, project))
    approve_all(files, project)
    approved = pending(load(files, project))
    (project / ".mux/check.sh").write_text("exit 2\n")
    added = pending(load(files, project))
    (project / ".mux/check.sh").unlink()
    path.write_text("#!/bin/sh\nexit 2\n")
    changed = pending(load(files, project))
    assert [before, approved, added, changed] == [
        {str(path): "it is not approved"},
        {str(path): None},
        {str(path): ".mux/check.sh was added after it was approved"},
        {str(path): ".mux/stop was changed after it was approved"},
    ]
    assert load_settings(str(project)).rules[0].pending == "it is not approved"  # on this machine


@pytest.mark.req("S0-105")
def test_settings_are_discovered_on_the_other_machine(
    files: SshFiles, server: SshServer, project: Path, home: Path
) -> None:
    secret = {"ANTHROPIC_API_KEY": "secret"}
    write_settings(home, "claude", {"env": secret, **stop_hooks("here")})
    write_settings(server.home, "claude", {"env": {"OWN": "1"}, **stop_hooks("there")})
    plugin = project / "plugin" / "hooks" / "hooks.json"
    write_settings(project, "turngate", {"turngate": {"pluginDirs": ["plugin"]}, **stop_hooks("project")})
    plugin.parent.mkdir(parents=True)
    plugin.write_text('{"Stop": [{"hooks": [{"type": "command", "command": "plugin"}]}]}')
    settings = load(files, project)
    new = "it is not approved"
    assert (pending(settings), settings.env, settings.user_env) == (
        {"there": None, "project": new, "plugin": new},
        {"OWN": "1"},
        secret,
    )
    assert settings.problems == ()


def test_a_load_asks_few_questions(counter: QuestionCounter, files: SshFiles, project: Path) -> None:
    write_settings(project, "turngate", stop_settings(command("./check.sh")))
    script(project / "check.sh", "#!/bin/sh\n")
    script(project / ".mux" / "stop", "#!/bin/sh\n")
    approve_all(files, project)
    before = counter.count
    load(files, project)
    assert counter.count - before < 10  # the usual places at once, and the script elsewhere


def ask(project: Path, settings: Settings, before: Callable[[], None] = lambda: None) -> Verdict:
    """Run the Stop hooks over SSH, after something has happened to the connection."""

    async def scenario() -> Verdict:
        shell = SshShell(HOST)
        try:
            environ = await shell.environment()
            files = SshFiles(
                shell, asyncio.get_running_loop(), home=environ["HOME"], environ=environ, machine=MACHINE
            )
            world = World(shell, str(project), environ=environ, remote=RemoteMachine(files))
            before()
            return await ask_hooks(stop_event(cwd=str(project)), settings, world)
        finally:
            await shell.close()

    return asyncio.run(scenario())


@pytest.mark.req("S0-105")
def test_a_script_that_was_changed_in_the_session_does_not_run_there(files: SshFiles, project: Path) -> None:
    path = script(project / ".mux" / "stop", "#!/bin/sh\necho not yet >&2; exit 2\n")
    approve_all(files, project)
    settings = load(files, project)
    assert isinstance(ask(project, settings), Continue)
    path.write_text("#!/bin/sh\ntouch evil\n")
    assert said(ask(project, settings)) == [".mux/stop was changed in this session"]
    assert not (project / "evil").exists()


def test_the_answer_of_a_script_that_changes_while_it_runs_does_not_count(
    files: SshFiles, project: Path
) -> None:
    script(project / ".mux" / "stop", '#!/bin/sh\necho "# more" >> "$0"\nexit 2\n')
    approve_all(files, project)
    why = f".mux/stop was changed while it ran, so its answer does not count ({WRITES_ITSELF})"
    assert said(ask(project, load(files, project))) == [why]


def test_a_hook_whose_files_cannot_be_compared_is_a_failed_hook(
    files: SshFiles, project: Path, home: Path, tmp_path: Path
) -> None:
    script(project / ".mux" / "stop", "#!/bin/sh\ntouch ran\nexit 2\n")
    approve_all(files, project)
    settings = load(files, project)
    with ssh_server(tmp_path / "sshd") as own:
        own.configure_client(home)
        [why] = said(ask(project, settings, before=own.kill))
    assert why is not None
    assert why.startswith("its files could not be compared with those that were approved: ")
    assert not (project / "ran").exists()


def test_bytecode_of_hooks_is_kept_in_the_home_folder_there(
    files: SshFiles, server: SshServer, project: Path, state: Path
) -> None:
    script(project / ".claude" / "hooks" / "check.py", "import helper\n")
    helper = "import sys\nopen('prefix', 'w').write(sys.pycache_prefix)\n"
    (project / ".claude" / "hooks" / "helper.py").write_text(helper)
    write_settings(project, "claude", stop_settings(command("python3 .claude/hooks/check.py")))
    approve_all(files, project)
    verdict = ask(project, load(files, project))
    assert said(verdict) == []
    folder = f"{server.home}/.local/state/turngate/trust/bytecode"
    assert (project / "prefix").read_text() == folder
    assert not (state / "trust" / "bytecode").exists()
