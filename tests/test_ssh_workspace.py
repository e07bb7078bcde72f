"""A project on another machine: where it is, the connection, and the session there."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shells.ssh.test_files import needs_bash
from tests.shells.test_every_shell import needs_sshd
from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import TURNGATE, turngate
from tests.support.machines import skip_with_shared_files
from tests.support.remote_files import QuestionCounter
from tests.support.servers.ssh import HOST, SshServer, ssh_server
from tests.support.sessions import block_first, wait_for_file
from tests.support.terminal import CTRL_D, ENTER, Terminal
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S, wait_for_slow_machine
from turngate import ScriptedModel, Session, UsageError, Workspace
from turngate.aio.threads import run_in_thread
from turngate.core.conversation.messages import ToolResults, UserMessage
from turngate.shells.ssh.files import SshFiles
from turngate.shells.ssh.workspace import SshLocation, parse_ssh_location

# Where it is


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("build:src/app", SshLocation("build", "src/app")),
        ("me@build:/srv/app", SshLocation("build", "/srv/app", "me")),
        ("me@build:~/a b:c", SshLocation("build", "~/a b:c", "me")),
        ("[::1]:/srv", SshLocation("::1", "/srv")),
        ("ssh://build/srv", SshLocation("build", "/srv")),
        ("ssh://me@[::1]:2222/srv", SshLocation("::1", "/srv", "me", 2222)),
    ],
)
def test_a_place_on_another_machine_is_parsed(text: str, expected: SshLocation) -> None:
    assert parse_ssh_location(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "build", "build:", ":src", "-oProxyCommand=x:src", "ssh://build", "ssh://build:x/srv", "a\0:b"],
)
def test_what_is_not_such_a_place_is_named_with_what_was_expected(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_ssh_location(text)
    assert str(raised.value) == (
        f"--ssh {text}: expected [user@]host:path, or ssh://[user@]host[:port]/path, with the project's folder"
    )


def test_a_port_that_there_cannot_be_is_named() -> None:
    with pytest.raises(UsageError, match="there is no port 65536; ports end at 65535"):
        parse_ssh_location("ssh://build:65536/srv")


names = st.text("abcdefghij.-0123456789", min_size=1).filter(lambda name: not name.startswith("-"))


@given(
    names,
    st.none() | names,
    st.none() | st.integers(1, 65535),
    st.text(min_size=1).filter(lambda t: "\0" not in t),
)
def test_the_location_of_a_workspace_can_be_given_to_ssh_again(
    host: str, user: str | None, port: int | None, name: str
) -> None:
    place = SshLocation(host, f"/{name}", user, port)
    assert parse_ssh_location(place.machine + place.path) == place


# The workspace


PROJECT = "code/app"  # in the home folder on the other machine


@pytest.fixture
def server(other_machine: SshServer) -> SshServer:
    return other_machine


@pytest.fixture
def there(server: SshServer) -> Iterator[Path]:
    """The folder of the project, as it is called on this machine."""
    folder = server.home / PROJECT
    folder.mkdir(parents=True)
    yield folder
    shutil.rmtree(folder.parent)


@pytest.mark.req("S0-105")
@pytest.mark.parametrize("path", ["code/app", "~/code/app", "{home}/code/app", "code/../code/./app/"])
def test_a_workspace_knows_its_folder_there(path: str, server: SshServer, there: Path) -> None:
    async def scenario() -> tuple[str, str, str]:
        async with await Workspace.ssh(HOST, path.format(home=server.path_there(server.home))) as workspace:
            return workspace.project, workspace.location, workspace.environ["HOME"]

    folder = server.path_there(there)
    assert asyncio.run(scenario()) == (folder, f"ssh://{HOST}{folder}", server.path_there(server.home))


@needs_bash
def test_the_search_path_of_cd_there_does_not_choose_another_folder(server: SshServer, there: Path) -> None:
    other = there / "other"
    (other / PROJECT).mkdir(parents=True)
    with bashrc(server, f"export CDPATH={server.path_there(other)}\n"):
        assert asyncio.run(folder_of(PROJECT)) == server.path_there(there)


async def folder_of(path: str) -> str:
    async with await Workspace.ssh(HOST, path) as workspace:
        return workspace.project


def test_the_name_of_a_folder_there_may_be_any_bytes(server: SshServer, there: Path) -> None:
    name = "not UTF-8 \udcff\n"
    (there / name).mkdir()
    found = asyncio.run(folder_of(f"{PROJECT}/{name}"))
    assert os.fsencode(found) == os.fsencode(server.path_there(there / name))


def test_a_folder_that_is_not_there_is_named(server: SshServer) -> None:
    with pytest.raises(UsageError) as raised:
        asyncio.run(Workspace.ssh(HOST, "/no/such"))
    assert str(raised.value) == (
        f"there is no folder /no/such on {HOST}, or no access to it; expected the project's folder"
    )


@pytest.mark.parametrize(
    ("where", "what", "name"),
    [
        ("x$(touch ran):app", "host", "'x$(touch ran)'"),
        ("x;touch${IFS}ran:app", "host", "'x;touch${IFS}ran'"),
        ("`touch ran`@x:app", "user", "'`touch ran`'"),
    ],
)
def test_a_name_that_a_proxy_command_would_run_is_refused(
    project: Path, where: str, what: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    config = Path.home() / ".ssh" / "config"
    config.parent.mkdir(mode=0o700)
    config.write_text("Host *\n  ProxyCommand sh -c 'exec nc %r@%h %p'\n")
    code, out, err = turngate("fire", "Stop", f"--ssh={where}")
    refused = f"turngate: the {what} {name} has characters that the name of a {what} cannot have\n"
    assert (code, out, err) == (64, "", refused)
    assert list(project.iterdir()) == []


def test_a_user_in_the_name_of_the_host_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        asyncio.run(Workspace.ssh("root@build", "src/app"))
    assert str(raised.value) == "the host 'root@build' names a user; expected host='build', user='root'"


def test_a_session_there_is_not_made_on_the_event_loop(server: SshServer, there: Path) -> None:
    async def scenario() -> None:
        async with await Workspace.ssh(HOST, PROJECT) as workspace:
            Session(workspace, ScriptedModel({"main": []}))

    with pytest.raises(
        UsageError, match=r"is on another machine; use `await Session.in_workspace\(workspace, model\)`"
    ):
        asyncio.run(scenario())


def test_without_the_library_the_workspace_says_what_to_install() -> None:
    program = """
        import asyncio, sys
        sys.modules["asyncssh"] = None
        from turngate import UsageError, Workspace

        try:
            asyncio.run(Workspace.ssh("box", "/"))
        except UsageError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert printed.startswith("SSH needs asyncssh, which is not installed; to install it: ")


# A session there


async def answers(there: Path, *replies: Any, **options: Any) -> tuple[Any, list[str]]:
    model = ScriptedModel({"main": list(replies)})
    async with (
        await Workspace.ssh(HOST, PROJECT) as workspace,
        await Session.in_workspace(workspace, model, trust=True, **options) as session,
    ):
        result = await session.send("go")
    return result, [getattr(message, "text", "") for message in model.requests[-1].messages]


@pytest.mark.req("S0-105")
def test_a_hook_of_the_settings_there_blocks_there(there: Path) -> None:
    write_settings(there, "turngate", stop_hooks(block_first(1)))
    result, _ = asyncio.run(answers(there, "answer {n}"))
    assert (result.result, result.continuations, result.ended_by) == ("answer 2", 1, "allowed")


def test_the_whole_of_a_long_reason_is_in_a_file_there(there: Path) -> None:
    """A path of this machine would lead the agent nowhere."""

    async def scenario() -> tuple[bytes, int]:
        model = ScriptedModel({"main": ["answer {n}"]})
        async with (
            await Workspace.ssh(HOST, PROJECT) as workspace,
            await Session.in_workspace(workspace, model, trust=True) as session,
        ):
            await session.send("go")
            prompt = model.requests[-1].messages[-1]
            assert isinstance(prompt, UserMessage)
            [path] = re.findall(r"/\S+\.txt", prompt.text)
            files = workspace.files
            assert isinstance(files, SshFiles)
            content = await run_in_thread(files.read, path, 100_000)
            return content, (await run_in_thread(files.stat, path)).st_mode & 0o777

    command = "[ -e asked ] || { touch asked; printf 'begin%020000dend' 0 >&2; exit 2; }"
    write_settings(there, "turngate", stop_hooks(command))
    assert asyncio.run(scenario()) == (f"begin{0:020000d}end".encode(), 0o600)


def test_the_data_of_a_plugin_is_in_a_private_folder_there(server: SshServer, there: Path) -> None:
    write_settings(there, "turngate", {"turngate": {"pluginDirs": ["plugin"]}})
    hooks = there / "plugin" / "hooks"
    hooks.mkdir(parents=True)
    command = 'echo "$CLAUDE_PLUGIN_ROOT" > "$CLAUDE_PLUGIN_DATA/root"'
    (hooks / "hooks.json").write_text(json.dumps(stop_hooks(command)))
    asyncio.run(answers(there, "answer {n}"))
    [written] = server.home.glob(".local/state/turngate/plugins/*/root")
    assert (written.read_text(), written.parent.stat().st_mode & 0o777) == (
        f"{server.path_there(there)}/plugin\n",
        0o700,
    )


@needs_sshd
@pytest.mark.req("S0-105")
def test_the_commands_of_the_agent_run_there(server: SshServer, there: Path) -> None:
    command = 'read -r parent < /proc/$PPID/comm; echo "${parent%%-*} $HOME $PWD" > seen'
    call = {"tools": [{"name": "Bash", "input": {"command": command}}]}
    asyncio.run(answers(there, call, "done", allow={"Bash"}))
    assert (
        there / "seen"
    ).read_text() == f"sshd {server.path_there(server.home)} {server.path_there(there)}\n"


def test_a_command_in_the_background_runs_there_and_is_ended_with_the_session(there: Path) -> None:
    call = {
        "tools": [
            {"name": "Bash", "input": {"command": "echo $$ > pid; sleep 600", "run_in_background": True}}
        ]
    }
    asyncio.run(
        answers(
            there, call, {"tools": [{"name": "Bash", "input": {"command": WAIT}}]}, "done", allow={"Bash"}
        )
    )
    assert not Path(f"/proc/{(there / 'pid').read_text().strip()}").exists()


def read_if(condition: str | None) -> dict[str, Any]:
    hook = {"type": "command", "command": "true", **({"if": condition} if condition else {})}
    return {"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [hook, {**hook, "command": "exit 0"}]}]}}


@pytest.mark.parametrize(
    ("condition", "questions"),
    [
        (None, 0),
        ("Bash(git *)", 0),
        ("Read(src/**)", 2),
        ("Read(~/.ssh/**)", 3),
        ("Read(gone/{a,b}/*.py)", 4),
    ],
)
def test_a_turn_there_asks_few_questions(
    counter: QuestionCounter, there: Path, condition: str | None, questions: int
) -> None:
    """`questions` is how many the condition of two hooks needs."""
    write_settings(there, "turngate", read_if(condition))
    for name in ("CLAUDE.md", "AGENTS.md", "src/a/b/c.py"):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(name)
    read = {"tools": [{"name": "Read", "input": {"file_path": "src/a/b/c.py"}}]}

    async def scenario() -> list[int]:
        model = ScriptedModel({"main": ["one", read, "two"]})
        async with (
            await Workspace.ssh(HOST, PROJECT) as workspace,
            await Session.in_workspace(workspace, model, trust=True) as session,
        ):
            calls = [counter.count]
            for _ in range(2):
                await session.send("go")
                calls.append(counter.count)
        assert "The project's CLAUDE.md:\nCLAUDE.md" in model.requests[-1].system
        return [after - before for before, after in pairwise(calls)]

    folders, env_file, request, read_call = 1, 2, 3, 3  # a call is checked, resolved again, and reads
    at_most = 4  # further ones, for files that may have changed a moment ago
    first, second = asyncio.run(scenario())
    expected = request + questions + read_call + request
    assert (first, expected <= second <= expected + at_most) == (folders + env_file + request, True)


WAIT = "until [ -s pid ]; do sleep 0.1; done"


# The command


def run_there(there: Path, *words: str, replies: tuple[Any, ...] = ("answer {n}",)) -> tuple[int, str, str]:
    script = there.parent / "script.json"
    script.write_text(json.dumps({"main": list(replies)}))
    return turngate("run", "--ssh", f"{HOST}:{PROJECT}", "--model", f"scripted:{script}", *words)


@pytest.mark.req("S0-105")
def test_a_hook_there_is_approved_from_here_and_blocks(
    server: SshServer, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    write_settings(there, "turngate", stop_hooks(block_first(1), id="tests"))
    before = run_there(there, "-p", "go", "--strict")
    approved = turngate("hooks", "approve", "tests", "--yes", "--ssh", f"{HOST}:{PROJECT}")
    where = f"--ssh ssh://{HOST}{server.path_there(there)}"
    assert before == (
        13,
        "answer 1\n",
        (
            '! hook "tests" was skipped and NOT enforced: it is not approved\n  → read it with '
            f"`turngate hooks diff {where}`, then approve it with `turngate hooks approve tests {where}`\n"
        ),
    )
    assert (approved[0], approved[1].splitlines()[-1]) == (0, "approved  tests")
    assert run_there(there, "-p", "go", "--strict") == (0, "answer 2\n", "")


def test_the_hooks_there_are_reviewed_in_a_conversation(
    server: SshServer, there: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    script(there / "gate.sh", "[ -e ran ] || { touch ran; echo 'not yet' >&2; exit 2; }\n")
    write_settings(there, "turngate", stop_hooks("sh gate.sh", id="gate"))
    file = tmp_path / "script.json"
    file.write_text(json.dumps({"main": ["Done.", "Done again."]}))
    words = ("run", "--ssh", f"{HOST}:{PROJECT}", "--model", f"scripted:{file}")
    with Terminal(*words, cwd=tmp_path) as terminal:
        terminal.expect(f"in ssh://{HOST}{server.path_there(there)}")
        terminal.expect("! 1 hook is pending and does not run; review and approve with /hooks")
        terminal.say("/hooks")
        terminal.expect("> gate  Stop  PENDING, so it does not run: it is not approved  command: sh gate.sh")
        terminal.type(ENTER)
        terminal.expect("+[ -e ran ] || { touch ran; echo 'not yet' >&2; exit 2; }")
        terminal.type("y")
        terminal.expect('hook "gate" is approved and runs from its next event on')
        terminal.type("q")
        terminal.say("go")
        terminal.expect("hook blocked the stop (continuation 1 of 3): not yet")
        terminal.expect("Done again.")
        terminal.type(CTRL_D)
        terminal.expect(
            f"to continue this conversation: turngate run --ssh ssh://{HOST}{server.path_there(there)} --session"
        )
        assert terminal.end() == 0


@contextmanager
def bashrc(server: SshServer, text: str) -> Iterator[None]:
    (server.home / ".bashrc").write_text(text)
    try:
        yield
    finally:
        (server.home / ".bashrc").unlink()


@needs_bash
def test_a_machine_whose_find_fails_has_the_same_hooks(server: SshServer, there: Path) -> None:
    """A folder that could not be listed is not an empty one."""
    script(there / "programs" / "find", "#!/bin/sh\nexit 1\n")
    write_settings(there, "turngate", stop_hooks("true", id="tests"))
    with bashrc(server, f"export PATH={server.path_there(there / 'programs')}:$PATH\n"):
        code, out, err = turngate("hooks", "--json", "--ssh", f"{HOST}:{PROJECT}")
    assert (code, [hook["key"] for hook in json.loads(out)["hooks"]], err) == (0, ["tests"], "")


def test_json_about_hooks_there_names_the_machine(server: SshServer, there: Path) -> None:
    _, out, _ = turngate("hooks", "--json", "--ssh", f"{HOST}:{PROJECT}")
    assert json.loads(out)["project"] == f"ssh://{HOST}{server.path_there(there)}"


@pytest.mark.parametrize("end", ["", "/"])
def test_what_happened_there_is_shown_for_the_name_of_the_project(
    end: str, server: SshServer, there: Path, project: Path
) -> None:
    location = f"ssh://{HOST}{server.path_there(there)}"
    for folder in (there, project):
        write_settings(folder, "turngate", stop_hooks("true", id="tests"))
    run_there(there, "-p", "go", "--session", "there")
    model = f"scripted:{there.parent / 'script.json'}"
    turngate("run", "-p", "go", "--session", "here", "--model", model, "--project", str(project))
    _, listed, _ = turngate("sessions", "--json", "--project", location + end)
    _, heading, _ = turngate("log", "--project", location + end)
    assert [session["session_id"] for session in json.loads(listed)] == ["there"]
    assert heading.splitlines()[0].endswith(f"  {location}  session there")
    assert turngate("log", "--project", f"{location}/other") == (
        64,
        "",
        f"turngate: no hook has run in {location}/other yet; `turngate fire Stop --ssh {location}/other` runs them once\n",
    )


@needs_sshd
def test_the_agent_is_told_that_a_connection_was_lost_while_its_command_ran(
    tmp_path: Path, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(server: SshServer) -> list[str]:
        command = "echo begun; sleep 5; echo yes > begun; sleep 600"  # what is printed needs time to arrive
        call = {"tools": [{"name": "Bash", "input": {"command": command}}]}
        model = ScriptedModel({"main": [call, "done"]})
        async with (
            await Workspace.ssh(HOST, str(project)) as workspace,
            await Session.in_workspace(workspace, model, allow={"Bash"}) as session,
        ):
            turn = asyncio.ensure_future(session.send("go"))
            await wait_for_file(project / "begun")
            server.cut_connections()
            await turn
        results = model.requests[-1].messages[-1]
        assert isinstance(results, ToolResults)
        return [result.content for result in results.results]

    wait_for_slow_machine(monkeypatch)
    with ssh_server(tmp_path / "sshd") as server:
        server.configure_client(home)
        [said] = asyncio.run(scenario(server))
    assert said.startswith(f"the connection to {HOST} was lost while it ran")
    assert said.endswith("how it ended is not known, it had printed:\nbegun")


def test_the_line_of_a_hook_is_that_of_the_file_there(
    server: SshServer, there: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    hook = '{"hooks": [{"type": "command", "id": "%s", "command": "true"}]}'
    for folder, above in ((server.home, 3), (there, 1), (home, 9)):
        (folder / ".turngate").mkdir()
        text = '{"hooks": {"Stop": [' + "\n" * above + hook % folder.name + "]}}"
        (folder / ".turngate" / "settings.json").write_text(text)
    try:
        _, out, _ = turngate("hooks", "--ssh", f"{HOST}:{PROJECT}")
    finally:
        shutil.rmtree(server.home / ".turngate")
    places = [line.strip().partition(",")[0] for line in out.splitlines() if "settings.json" in line]
    assert places == ["~/.turngate/settings.json:4", ".turngate/settings.json:2"]
    assert f"`turngate hooks approve app --ssh ssh://{HOST}{server.path_there(there)}` lets it run" in out


def test_the_line_of_a_hook_on_the_command_line_is_that_of_the_file_here(there: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text("\n\n" + json.dumps(stop_hooks("true", id="mine")))
    _, out, _ = turngate("hooks", "--settings", str(file), "--ssh", f"{HOST}:{PROJECT}")
    assert f"    {file}:3, " in out


def test_the_json_result_names_the_machine(server: SshServer, there: Path) -> None:
    code, out, _ = run_there(there, "-p", "go", "--output-format", "json")
    assert (code, json.loads(out)["project"]) == (0, f"ssh://{HOST}{server.path_there(there)}")


def test_a_session_there_is_continued_there_and_not_here(
    server: SshServer, there: Path, project: Path
) -> None:
    assert run_there(there, "-p", "go", "--session", "one")[0] == 0
    assert run_there(there, "-p", "go on", "--resume")[:2] == (0, "answer 1\n")
    location = f"ssh://{HOST}{server.path_there(there)}"
    belongs = f"turngate: session one belongs to {location}; continue it with --ssh {location}\n"
    model = ("--model", f"scripted:{there.parent / 'script.json'}")
    for where in (("--project", str(project)), ("--ssh", "build:code/app")):
        assert turngate("run", "-p", "go", "--session", "one", *where, *model) == (64, "", belongs)


def test_a_session_of_this_machine_is_not_continued_there(there: Path, project: Path) -> None:
    (there.parent / "script.json").write_text(json.dumps({"main": ["answer {n}"]}))
    model = ("--model", f"scripted:{there.parent / 'script.json'}")
    turngate("run", "-p", "go", "--session", "two", "--project", str(project), *model)
    assert run_there(there, "-p", "go", "--session", "two") == (
        64,
        "",
        f"turngate: session two belongs to {project} on this machine; continue it without --ssh\n",
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ("--ssh", "build"),
            "--ssh build: expected [user@]host:path, or ssh://[user@]host[:port]/path, with the project's folder",
        ),
        (
            ("--ssh", "build:x", "--project", "."),
            "--project is a folder here, and --ssh names one on another machine; give one of them",
        ),
        (
            ("--ssh", f"{HOST}:no/such"),
            f"there is no folder no/such on {HOST}, or no access to it; expected the project's folder",
        ),
        (
            ("--ssh", "no.such.invalid:x"),
            "the name no.such.invalid cannot be resolved: Name or service not known; check it, and the hosts of ~/.ssh/config",
        ),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("run", "-p", "go"),
        ("hooks",),
        ("hooks", "test", "Stop", "--in-place"),
        ("fire", "Stop"),
        ("gates", "run"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_sentence(
    command: tuple[str, ...], words: tuple[str, ...], error: str, server: SshServer
) -> None:
    assert turngate(*command, *words) == (64, "", f"turngate: {error}\n")


def test_a_folder_that_is_added_must_exist_there(server: SshServer, there: Path, project: Path) -> None:
    """One that exists here is not meant."""
    skip_with_shared_files(server)
    assert run_there(there, "-p", "go", "--add-dir", str(project)) == (
        64,
        "",
        f"turngate: --add-dir {project}: there is no such folder on ssh://{HOST}; give one that exists\n",
    )
    assert run_there(there, "-p", "go", "--add-dir", "..") == (0, "answer 1\n", "")


@pytest.mark.parametrize("words", ["hooks --ssh box:x test Stop", "hooks test Stop --ssh box:x"])
def test_hooks_are_not_tested_in_a_copy_there(words: str) -> None:
    why = "the project on another machine is not copied; add --in-place to run its hooks in it"
    assert turngate(*words.split()) == (64, "", f"turngate: --ssh: {why}\n")


def test_a_server_that_never_answers_is_left_after_10_seconds(home: Path) -> None:
    """The default limit: a new process has it, and the others of the tests have a longer one."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        words = [*TURNGATE, "run", "-p", "go", "--ssh", f"ssh://127.0.0.1:{port}/srv"]
        began = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG_TIMEOUT_S)
    error = f"127.0.0.1 did not answer within 10 s; check the connection with `ssh -p {port} 127.0.0.1`"
    assert (done.returncode, done.stdout, done.stderr) == (64, "", f"turngate: {error}\n")
    assert time.monotonic() - began >= 10


@pytest.mark.parametrize("command", [("run", "-p", "go"), ("run",), ("hooks",)])
def test_an_interrupt_ends_a_command_that_still_connects(command: tuple[str, ...], home: Path) -> None:
    code = (
        f"import sys; from turngate.shells.ssh import shell; shell.CONNECT_TIMEOUT_S = {NEVER_S}; "
        "from turngate.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(HANG_TIMEOUT_S)
        place = f"ssh://127.0.0.1:{silent.getsockname()[1]}/srv"
        words = [sys.executable, "-c", code, *command, "--ssh", place]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
            connection, _ = silent.accept()
            with connection:
                program.send_signal(signal.SIGINT)
                assert program.wait(HANG_TIMEOUT_S) == 130


def test_the_extra_is_named_if_asyncssh_is_not_installed(project: Path) -> None:
    code = (
        "import sys; sys.modules['asyncssh'] = None; from turngate.cli.main import main; "
        "sys.exit(main(['run', '-p', 'go', '--ssh', 'build:src']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=project
    )
    start = "turngate: SSH needs asyncssh, which is not installed; to install it: "
    assert (done.returncode, done.stdout, done.stderr.startswith(start)) == (64, "", True)
    assert "[ssh]" in done.stderr


def test_a_project_on_this_machine_loads_nothing_for_another_one() -> None:
    program = (
        "import sys, turngate.cli.commands.run, turngate.cli.commands.hooks; "
        "print([name for name in sys.modules if 'remote' in name or 'ssh' in name or 'script_runner' in name])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    assert printed == "[]\n"
