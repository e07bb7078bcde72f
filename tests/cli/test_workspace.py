"""Commands with `--ssh`: they print what they print on that machine, and read nothing of this one."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import start_turngate, turngate
from tests.support.git_projects import git, make_repository, write
from tests.support.machines import skip_with_shared_files
from tests.support.servers.ssh import HOST, SshServer
from tests.support.terminal import wait_for
from tests.support.timeouts import NEVER_S

SECONDS = re.compile(r" *\d+\.\d\d s")
Printed = tuple[int, str, str]


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


def run(*words: str) -> Printed:
    code, out, err = turngate(*words)
    return code, SECONDS.sub(" 0.00 s", out), err


def here(project: Path, *words: str) -> Printed:
    return run(*words, "--project", str(project))


def there(*words: str) -> Printed:
    return run(*words, "--ssh", f"{HOST}:app")


def moved(printed: Printed, project: Path, location: str) -> Printed:
    """Return what a command prints for a project here, as it is printed for a project at another location."""
    code, *texts = printed
    located = (re.sub("`(turngate hooks [^`]*)`", rf"`\1 --ssh {location}`", text) for text in texts)
    out, err = (text.replace(str(project), location) for text in located)
    return code, out, err


def command(key: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "id": key, "command": text, **more}


def gate(name: str, **options: Any) -> dict[str, Any]:
    return {"type": "gate", "gate": name, "id": name, "options": options}


def hooks(*each: dict[str, Any]) -> dict[str, Any]:
    return {"hooks": {"Stop": [{"hooks": list(each)}]}}


# fire


@pytest.mark.req("S0-105")
def test_fire_asks_the_hooks_of_the_other_machine(
    box: SshServer, app: Path, project: Path, home: Path, tmp_path: Path
) -> None:
    transcript = tmp_path / "chat.jsonl"
    transcript.write_text("the conversation")
    for folder, own_home in ((project, home), (app, box.home)):
        write_settings(own_home, "turngate", hooks(command("user", "exit 0")))
        reads = command("reads", 'cat "$TURNGATE_TRANSCRIPT_PATH" >&2; exit 2')
        write_settings(folder, "turngate", hooks(reads, command("fails", "exit 3")))
        script(folder / ".mux" / "stop", "#!/bin/sh\nexit 0\n")
    words = ("fire", "Stop", "--input", json.dumps({"transcript_path": str(transcript)}))
    assert there(*words) == (
        10,
        """\
Stop: blocked
  passed 0.00 s  "user"  (~/.turngate/settings.json)
  passed 0.00 s  ".mux/stop"  (.mux/stop)
  blocked 0.00 s  "reads"  (.turngate/settings.json)
  failed (not enforced) 0.00 s  "fails"  (.turngate/settings.json)
Sent to the agent:
  [Stop hook requested continuation]
  the conversation
""",
        '! hook "fails" failed and was NOT enforced: exit code 3, nothing on stderr\n',
    )
    assert here(project, *words) == there(*words)
    location = f"ssh://{HOST}{box.path_there(app)}"
    assert json.loads(there(*words, "--json")[1])["project"] == location
    assert turngate("log", "--project", location)[0] == 0


def test_what_is_pending_there_is_read_with_ssh(
    box: SshServer, app: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    monkeypatch.chdir(project)
    for folder in (project, app):
        write_settings(folder, "turngate", hooks(command("tests", "exit 0")))
    location = f"ssh://{HOST}{box.path_there(app)}"
    for words in (("fire", "Stop"), ("gates", "run"), ("gates",), ("hooks", "test", "Stop", "--in-place")):
        assert there(*words) == moved(here(project, *words), project, location)
    hint = f"with `turngate hooks diff --ssh {location}`, then approve it with `turngate hooks approve tests --ssh {location}`"
    assert there("fire", "Stop") == (
        0,
        """\
Stop: allowed, 1 gate NOT enforced
  skipped 0.00 s  "tests"  (.turngate/settings.json): it is not approved
""",
        f'! hook "tests" was skipped and NOT enforced: it is not approved\n  → read it {hint}\n',
    )


def test_without_a_hook_there_fire_says_where_there_are_some(
    box: SshServer, app: Path, project: Path
) -> None:
    location = f"ssh://{HOST}{box.path_there(app)}"
    for words in (("fire", "Stop"), ("fire", "Stop", "--dialect", "claude")):
        assert there(*words) == moved(here(project, *words), project, location)
    for folder in (project, app):
        write_settings(folder, "turngate", stop_hooks("exit 2"))
    for words in (("fire", "SubagentStop"), ("fire", "Stop", "--dialect", "claude")):
        assert there(*words) == moved(here(project, *words), project, location)


def test_a_signal_ends_the_hooks_there(box: SshServer, app: Path) -> None:
    text = f"trap 'echo ended > ~/ended; exit 0' TERM; echo > ~/begun; sleep {NEVER_S} & wait"
    write_settings(app, "turngate", hooks(command("waits", text)))
    with start_turngate("fire", "Stop", "--ssh", f"{HOST}:app") as process:
        wait_for(box.home / "begun")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        assert (process.wait(), err.splitlines()[-1:]) == (
            130,
            ["turngate: ended by SIGINT before a verdict; no hook is left running"],
        )
    assert (box.home / "ended").read_text() == "ended\n"


# gates


CHECKS = {
    "Makefile": "check:\n\tcat $$TURNGATE_TRANSCRIPT_PATH transcript_path\n",
    "checks/slow.sh": 'grep done "$(jq -r .transcript_path)"\n',
    "tests/test_a.py": "def test(): assert 1\n",
}


@pytest.mark.req("S0-105")
def test_the_gates_of_another_machine_are_listed_and_run_there(
    box: SshServer, app: Path, project: Path, state: Path
) -> None:
    for folder in (project, app):
        checks = (
            command("passes", 'test "$(pwd -P)" = "$TURNGATE_PROJECT_DIR"'),
            command("fails", "echo 'a test failed' >&2; exit 2"),
            command("script", "sh checks/slow.sh"),
            command("make", "make check"),
            gate("clean"),
            gate("untouched", globs=["tests/**"]),
        )
        make_repository(folder, {**CHECKS, ".turngate/settings.json": json.dumps(hooks(*checks))})
        git(folder, "branch", "base")
        write(folder, {"tests/test_a.py": "def test(): pass\n"})
    before = sorted(path for path in state.rglob("*") if path.is_file())
    at = "(.turngate/settings.json)"
    assert there("gates", "run", "--base", "base") == (
        1,
        f"""\
passed 0.00 s  "passes"  {at}
failed 0.00 s  "fails"  {at}
  a test failed
left out                "script"  {at}: it reads the conversation
left out                "make"  {at}: it reads the conversation
failed 0.00 s  "clean"  {at}
  these changes are not committed:
  - modified: tests/test_a.py
  Commit what belongs to your task, or stash it with `git stash`.
failed 0.00 s  "untouched"  {at}
  protected files have changed:
  - tests/test_a.py:1 was changed
  Restore them, and complete the task without changing them.
1 passed, 3 failed, 2 left out
""",
        "",
    )
    for words in (
        ("gates",),
        ("gates", "run"),
        ("gates", "run", "--base", "base"),
        ("gates", "run", "clean"),
    ):
        assert there(*words) == here(project, *words)
    assert there("gates", "run", "--base", "none") == here(project, "gates", "run", "--base", "none")
    assert sorted(path for path in state.rglob("*") if path.is_file()) == before
    report = json.loads(there("gates", "--json")[1])
    assert (report["project"], len(report["gates"])) == (f"ssh://{HOST}{box.path_there(app)}", 6)


# hooks test


@pytest.mark.req("S0-105")
def test_hooks_are_tested_in_place_on_the_other_machine(box: SshServer, app: Path, project: Path) -> None:
    for folder in (project, app):
        asks = "jq -c '{decision: \"block\", reason: .last_assistant_message}'"
        write_settings(
            folder, "turngate", hooks(command("asks", asks), command("place", "pwd -P >&2; exit 2"))
        )
    words = ("hooks", "test", "Stop", "--in-place")
    assert there(*words) == moved(here(project, *words), project, box.path_there(app))
    only = json.loads(there(*words, "--json", "--hook", "place")[1])
    assert (only["project"], only["in_copy"], only["hooks"][0]["reason"]) == (
        f"ssh://{HOST}{box.path_there(app)}",
        False,
        box.path_there(app),
    )
