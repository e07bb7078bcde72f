"""The line that a host runs, as a shell runs it: with Turngate, without it, and with one that is broken."""

import subprocess
from pathlib import Path

import pytest

from tests.support.builders import script
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host, HostAnswer, Level
from turngate.hosts.install.hook_command import (
    NOT_CHECKED,
    entries_for,
    hook_command,
    is_short_lived,
    this_program,
)

each_host = pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
MESSAGE = f'{{"systemMessage":"{NOT_CHECKED}"}}\n'


def run(line: str, path: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input='{"hook_event_name": "Stop"}',
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@each_host
def test_the_line_of_a_project_runs_the_program_on_path(host: Host, tmp_path: Path) -> None:
    script(tmp_path / "turngate", '#!/bin/sh\nread -r event; echo "$* $event"\n')
    for event in host.events:
        line = hook_command(host, "project", event, "/elsewhere/turngate")
        assert run(line, tmp_path) == (0, 'hook {"hook_event_name": "Stop"}\n', "")


GUARDED = [
    (host, level) for host in HOSTS.values() if host.failed_hook_blocks for level in ("user", "project")
]


@pytest.mark.parametrize(("host", "level"), GUARDED, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("event", ["Stop", "SubagentStop", "SessionStart"])
def test_a_guarded_line_lets_the_agent_stop_and_tells_the_user_in_the_way_of_the_host(
    host: Host, level: Level, event: str
) -> None:
    command = hook_command(host, level, event, "/nowhere/turngate")
    done = subprocess.run(
        ["/bin/sh", "-c", command], env={"PATH": "/nowhere"}, check=False, capture_output=True, text=True
    )
    expected = host.write_answer(HostAnswer(decision="allow", notices=(NOT_CHECKED,)))
    if event == "SessionStart":
        told = ("", "")
    elif host.name != "cursor":  # it shows the user nothing at a stop
        told = (expected.stdout.rstrip("\n"), "")
    else:
        told = ("", NOT_CHECKED)
    assert (done.stdout.rstrip("\n"), done.stderr.rstrip("\n"), done.returncode) == (*told, 0)


@pytest.mark.parametrize("level", ["user", "project"])
def test_a_broken_program_never_blocks_where_any_failure_blocks(tmp_path: Path, level: Level) -> None:
    """Gemini CLI takes every exit code but 0 and 1 for a block, and it has no limit."""
    script(tmp_path / "turngate", "#!/removed/python\n")
    line = hook_command(HOSTS["gemini"], level, "Stop", str(tmp_path / "turngate"))
    code, out, _ = run(line, tmp_path)
    assert (code, out) == (0, MESSAGE)


def test_the_line_of_the_user_is_the_path_of_the_program() -> None:
    host = HOSTS["codex"]
    assert hook_command(host, "user", "Stop", "'/my venv/bin/turngate'") == "'/my venv/bin/turngate' hook"


def test_every_entry_has_a_timeout_in_the_unit_of_its_host() -> None:
    found = {}
    for name, host in HOSTS.items():
        entries = entries_for(host, "user", "turngate").values()
        found[name] = {entry.get("hooks", [entry])[0].get(host.timeout_key) for entry in entries}
    assert found == {
        **{name: {600} for name in HOSTS},
        "gemini": {600_000},
        "opencode": {None},  # a plugin has none
        "qwen": {60},  # it gives up then, whatever the settings say
    }


# This program


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    folder = tmp_path / "my venv" / "bin"
    script(folder / "turngate", "#!/bin/sh\n")
    return folder


def test_the_program_that_was_called_is_named_by_its_absolute_path(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(installed.parent)
    assert this_program("bin/turngate", "/usr/bin/python3") == f"'{installed}/turngate'"


def test_a_link_to_the_program_is_kept(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "turngate").symlink_to(installed / "turngate")
    assert this_program(str(tmp_path / "turngate"), "/usr/bin/python3") == f"{tmp_path}/turngate"


def test_with_python_m_the_program_beside_python_is_named(installed: Path) -> None:
    assert this_program("/x/turngate/__main__.py", str(installed / "python")) == f"'{installed}/turngate'"


def test_without_a_script_it_is_python_m(tmp_path: Path) -> None:
    assert (
        this_program("/x/__main__.py", f"{tmp_path}/a b/python3") == f"'{tmp_path}/a b/python3' -m turngate"
    )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("/home/u/.cache/uv/archive-v0/x1/bin/turngate", True),
        ("/Users/u/Library/Caches/uv/x/bin/turngate", True),
        ("'/home/u/.cache/pipx/a b/bin/python' -m turngate", True),
        ("/tmp/venv/bin/turngate", True),
        ("/home/u/.local/bin/turngate", False),
        ("/home/u/.local/share/pipx/venvs/turngate/bin/turngate", False),
        ("/tmpfiles/bin/turngate", False),
    ],
)
def test_a_program_that_may_disappear(program: str, expected: bool) -> None:
    assert is_short_lived(program, "/tmp") == expected
