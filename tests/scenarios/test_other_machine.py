"""A project on a machine that shares no file of the tests with this one."""

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, write_settings
from tests.support.cli import start_turngate, turngate
from tests.support.left_behind import asked, listed, scripted, task
from tests.support.machines import skip_with_shared_files
from tests.support.servers.ssh import HOST, SshServer
from tests.support.sessions import message_text
from tests.support.shells import run
from tests.support.timeouts import NEVER_S
from turngate import ScriptedModel, Session, TurnResult, Workspace
from turngate.core.verdict.hook_run import outcome
from turngate.shells.ssh.shell import SshShell

WHERE = ("--ssh", f"{HOST}:app")


@pytest.fixture
def box(other_machine: SshServer) -> SshServer:
    skip_with_shared_files(other_machine)
    return other_machine


@pytest.fixture
def app(box: SshServer) -> Path:
    """The folder of the project, as it is called on this machine."""
    folder = box.home / "app"
    folder.mkdir()
    return folder


def test_no_folder_of_the_tests_is_on_both_machines(box: SshServer, home: Path, tmp_path: Path) -> None:
    """The server must be another machine, or the other tests show nothing."""
    (box.home / "there").touch()
    path = box.path_there(box.home / "there")
    folders = (home, tmp_path, Path(os.environ["TMPDIR"]), box.home)
    seen = run(lambda: SshShell(HOST), f"ls -d {' '.join(map(str, folders))} {path} 2>/dev/null")
    assert (seen.stdout, os.path.exists(path)) == (f"{path}\n", False)


# A session


def command(key: str, text: str) -> dict[str, Any]:
    return {"type": "command", "id": key, "command": text}


def gate(name: str, **options: Any) -> dict[str, Any]:
    return {"type": "gate", "gate": name, "id": name, "options": options}


def hooks(**by_event: list[dict[str, Any]]) -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": each}] for event, each in by_event.items()}}


COMMIT = "git add -A && git -c user.name=a -c user.email=a@b commit -qm change"
SETTINGS = hooks(
    SessionStart=[
        command("env", '[ -s "$CLAUDE_ENV_FILE" ] || echo "export TOKEN=$PWD" > "$CLAUDE_ENV_FILE"')
    ],
    SubagentStop=[command("subagent", 'grep -o "I looked" "$TURNGATE_TRANSCRIPT_PATH" > ~/subagent')],
    Stop=[
        command("relative", "./checks/transcript.sh"),
        command("project", '. "$CLAUDE_PROJECT_DIR/checks/library.sh"; record'),
        {"type": "agent", "id": "agent", "prompt": "Is the guide there?"},
        {"type": "gate", "id": "command", "command": "sh checks/suite.sh"},
        gate("touched", **{"if": ["src/**"], "then": ["CHANGELOG.md"]}),
        gate("untouched", globs=["tests/**"]),
        gate("no-stubs"),
        gate("clean"),
        gate("archive", to="~/archive"),
        gate("log", file="~/stops.jsonl"),
    ],
)
FILES = {
    "CLAUDE.md": "Be brief.",
    "tests/test_a.py": "def test(): assert 1\n",
    "checks/library.sh": 'record() { echo "$PWD" > ~/library; }\n',
    "checks/suite.sh": "test -e src/a.py\n",
    ".claude/agents/scout.md": "---\nname: scout\ndescription: looks around\n---\nYou are a scout.\n",
    ".claude/commands/ship.md": "Ship $ARGUMENTS.",
    "plugin/hooks/hooks.json": json.dumps(
        hooks(Stop=[command("plugin", 'cp "${CLAUDE_PLUGIN_ROOT}/part" "$CLAUDE_PLUGIN_DATA"')])
    ),
    "plugin/part": "of a plugin",
    "../shared/note": "a note",
}


def make_project(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    grep = 'grep -o "I am done" "$TURNGATE_TRANSCRIPT_PATH" > ~/transcript'
    script(folder / "checks" / "transcript.sh", f"#!/bin/sh\n{grep}\n")
    script(folder / ".turngate" / "stop", "#!/bin/sh\npwd > ~/script\n")
    write_settings(folder, "turngate", {**SETTINGS, "turngate": {"pluginDirs": ["plugin"]}})
    subprocess.run(f"git init -q && {COMMIT}", shell=True, check=True, cwd=folder)


def use(name: str, **given: Any) -> dict[str, Any]:
    return {"tool": name, "input": given}


def lines_of(folder: Path, pattern: str) -> list[str]:
    return [line for path in sorted(folder.glob(pattern)) for line in path.read_text().splitlines()]


@pytest.mark.req("S0-31", "S0-32", "S0-33", "S0-35", "S0-105", "X-32")
def test_the_folder_and_the_variables_of_a_hook_name_paths_of_its_machine(
    box: SshServer, app: Path, tmp_path: Path
) -> None:
    shown = '"$PWD" "$MUX_PROJECT_DIR" "$CLAUDE_PROJECT_DIR" "$TURNGATE_PROJECT_DIR" "${MUX_TRANSCRIPT_PATH%/*/*/*}"'
    text = (
        f'printf "%s\\n" "$(pwd -P)" {shown} > ~/seen; grep -o "I am done" "$MUX_TRANSCRIPT_PATH" >> ~/seen'
    )
    write_settings(app, "turngate", hooks(Stop=[command("paths", text)]))
    (tmp_path / "script.json").write_text(json.dumps({"main": ["I am done"]}))
    words = ("--strict", "--model", f"scripted:{tmp_path / 'script.json'}")
    assert turngate("run", *WHERE, "-p", "go", *words) == (0, "I am done\n", "")
    project, temporary = box.path_there(app), box.path_there(box.temporary)
    assert lines_of(box.home, "seen") == [*[project] * 5, temporary, "I am done"]


@pytest.mark.req("S0-31", "S0-33", "S0-105", "X-32")
def test_nothing_of_a_session_is_read_or_written_on_the_wrong_machine(
    box: SshServer, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    make_project(app)
    approved = turngate("hooks", "approve", "--all", "--yes", *WHERE)
    assert (approved[0], approved[1].count("\napproved  ")) == (0, 14)
    model = ScriptedModel(
        {
            "main": [
                use("Bash", command='echo "$TOKEN"'),
                use("Read", file_path="../shared/note"),
                use("Task", description="look", prompt="Look.", subagent_type="scout"),
                use("Write", file_path="src/a.py", content="a = 1\n"),
                "I am done",
                use("Bash", command=f"echo a > CHANGELOG.md; {COMMIT}"),
                "I am done",
            ],
            "sub": [use("Read", file_path="../shared/note"), "I looked"],
            "judge": [use("Read", file_path="CLAUDE.md"), use("StructuredOutput", ok=True)] * 2,
        }
    )

    async def scenario() -> TurnResult:
        options: dict[str, Any] = {
            "session_id": "s",
            "allow": {"Bash", "Write"},
            "extra_paths": ["../shared"],
        }
        async with (
            await Workspace.ssh(HOST, "app") as workspace,
            await Session.in_workspace(workspace, model, **options) as session,
        ):
            return await session.run_command("/ship it")

    result = asyncio.run(scenario())
    outcomes: dict[str, list[str]] = {}
    for each in result.hook_runs:
        outcomes.setdefault(each.rule.hook.id or "", []).append(outcome(each))
    assert outcomes == {
        "env": ["allow"],
        "subagent": ["allow"],
        "untouched": ["allow"] * 3,  # at the start, and at two stops
        "no-stubs": ["allow"] * 3,
        "touched": ["allow", "block", "allow"],
        "clean": ["allow", "block", "allow"],
        **dict.fromkeys((".turngate/stop", "plugin", "relative", "project", "agent"), ["allow"] * 2),
        "command": ["allow"] * 3,  # as above
        **dict.fromkeys(("archive", "log"), ["allow"] * 2),
    }
    path = box.path_there(app)
    heard = [message_text(request.messages[-1]) for request in model.requests if request.agent == "main"]
    assert heard[:5] == [
        "Ship it.",
        f"tool: {path}",
        "tool:      1\ta note",
        "tool: I looked",
        f"tool: Created {path}/src/a.py",
    ]
    first = {request.agent: request for request in reversed(model.requests)}
    assert first["sub"].system.endswith("\n\nYou are a scout.\n\nThe project's CLAUDE.md:\nBe brief.")
    told = json.loads(message_text(first["judge"].messages[0]).partition("\n\n")[2])["transcript_path"]
    assert f"The conversation so far is in the file {told}," in first["judge"].system
    assert told.startswith(box.path_there(box.temporary))

    file = tmp_path / "script.json"
    again = {
        "main": [use("Bash", command='echo "$TOKEN" > ~/token'), "I am done"],
        "judge": [use("StructuredOutput", ok=True)],
    }
    file.write_text(json.dumps(again))
    words = ("--resume", "--strict", "--allow", "Bash", "--model", f"scripted:{file}")
    assert turngate("run", *WHERE, "-p", "go on", *words) == (0, "I am done\n", "")
    written = {
        "subagent": ["I looked"],
        "transcript": ["I am done"] * 3,
        "library": [path],
        "script": [path],
        "token": [path],
        ".local/state/turngate/plugins/*/part": ["of a plugin"],
    }
    assert {name: lines_of(box.home, name) for name in written} == written
    kept = (len(list(box.home.glob("archive/*"))), len(lines_of(box.home, "stops.jsonl")))
    assert (kept, list(box.temporary.iterdir())) == ((3, 3), [])


# After a crash


def test_a_subagent_that_was_left_behind_there_is_continued_there(
    box: SshServer, app: Path, state: Path
) -> None:
    """`turngate runs recover` would look for its project here."""
    sleep = use("Bash", command=f"sleep {NEVER_S}")
    words = ("run", *WHERE, "--allow", "Bash", "--model", scripted(app, [task("count files")], [sleep]))
    with start_turngate(*words, "-p", "go") as process:
        asked(state)
        process.send_signal(signal.SIGKILL)
        process.wait()
    [child] = listed()
    steered = turngate("runs", "steer", child["id"], "Only in src.")
    scripted(app, ["all done"], [use("Bash", command="pwd > ~/worked"), "three"])
    resumed = turngate(*words, "-p", "go on", "--resume")
    notice = "! continuing 1 subagent of a process that died: count files\n"
    assert (steered[1].splitlines()[-1], resumed) == (
        f"  turngate run --resume --ssh ssh://{HOST}{box.path_there(app)}",
        (0, "all done\n", notice),
    )
    assert [(each["state"], each["result"]) for each in listed()] == [("done", "three")]
    assert lines_of(box.home, "worked") == [box.path_there(app)]
