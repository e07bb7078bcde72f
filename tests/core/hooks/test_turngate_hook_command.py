"""Which commands are the line with which another agent program runs Turngate."""

import shlex

import pytest

from turngate.core.hooks.kinds import CommandHook
from turngate.core.hooks.turngate_hook_command import is_hook_line, runs_turngate_hook
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host
from turngate.hosts.install.hook_command import hook_command

PROGRAMS = [
    "turngate",
    "/home/u/venv/bin/turngate",
    shlex.quote("/home/u/my venv/bin/turngate"),
    shlex.quote("/home/u/it's here/bin/turngate"),
    '"/Users/u/Library/My Tools/turngate"',
    r"/home/u/my\ venv/bin/turngate",
    "python -m turngate",
    "/usr/bin/python3.11 -I -m turngate",
    shlex.quote("/opt/my python/bin/python3") + " -m turngate",
    "uvx turngate",
    "uv run turngate",
    "uv tool run turngate",
    "pipx run turngate",
]


BEFORE = ["", "  ", "exec ", "env ", "TURNGATE_STATE=/s "]
AFTER = ["", " ", " --host codex", " --timeout 30 --project /p"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_line_that_runs_turngate_hook(program: str) -> None:
    lines = [f"{before}{program} hook{after}" for before in BEFORE for after in AFTER]
    assert [line for line in lines if not is_hook_line(line)] == []


@pytest.mark.parametrize(
    "line",
    [
        "command -v turngate && turngate hook",
        "command -v turngate >/dev/null 2>&1 && exec turngate hook --timeout 30",
        "if command -v turngate >/dev/null 2>&1; then turngate hook; fi",
        "if command -v turngate > /dev/null; then exec turngate hook; else echo 'not checked' >&2; fi",
    ],
)
def test_a_line_that_looks_for_turngate_first(line: str) -> None:
    assert is_hook_line(line)


@pytest.mark.parametrize(
    "line",
    [
        "timeout 60 turngate hook",
        "timeout -k 5 -s KILL 1.5m turngate hook --host codex",
        "/usr/bin/timeout 60 /home/u/bin/turngate hook",
        "nice turngate hook",
        "nice -n 10 turngate hook",
        "nice -10 timeout 60 turngate hook",
        "sh -c 'turngate hook'",
        '/bin/bash -c "turngate hook"',
        "sh -c 'cd /p && exec turngate hook'",
        "cd . && turngate hook",
        "cd '/my project' && turngate hook",
        "cd /p && command -v turngate >/dev/null 2>&1 && turngate hook || true",
        "timeout 60 sh -c 'turngate hook'",
    ],
)
def test_a_line_that_only_wraps_turngate_hook(line: str) -> None:
    assert is_hook_line(line)


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_every_line_that_install_writes(host: Host) -> None:
    places = [(level, event) for level in host.files for event in host.events]
    lines = [hook_command(host, *place, program) for place in places for program in PROGRAMS]
    assert [line for line in lines if not is_hook_line(line)] == []


@pytest.mark.parametrize(
    "line",
    [
        "",
        "turngate",
        "turngate hooks",
        "turngate hooks list",
        "turngate gate tests",
        "turngate fire Stop",
        "echo turngate hook",
        "echo 'turngate hook'",
        "/opt/notturngate hook",
        "turngate-old hook",
        "turngate hook && make test",
        "make test && turngate hook",
        "turngate hook | tee log",
        "turngate hook > log",
        "command -v turngate && echo turngate hook",
        "command -v turngate || make test",
        "command -v turngate >/dev/null 2>&1 && turngate gate tests || true",
        "command -v turngate && turngate hook; ./my-check.sh",
        "command -v turngate && turngate hook && ./my-check.sh",
        "command -v turngate >/dev/null && turngate hook || ./my-check.sh",
        "if command -v turngate; then turngate hook; fi; ./deploy.sh",
        "if command -v turngate; then turngate hook; else ./deploy.sh; fi",
        "turngate hook\n./my-check.sh",
        "turngate hook --host claude\n./my-check.sh",
        "timeout 60 make test && turngate hook",
        "timeout 60 sh -c 'turngate hook; make test'",
        "sh -c 'turngate hook' && make test",
        "sh -c 'make test'; echo turngate hook",
        "sh -x -c 'turngate hook'",
        "cd /p; turngate hook",
        "cd /p && make test && turngate hook",
        "cd /p || turngate hook",
        'cd "$(./my-check.sh)" && turngate hook',
        "turngate hook `./my-check.sh`",
        "A=$(./my-check.sh) turngate hook",
        'command -v turngate && turngate hook || echo "$(./my-check.sh)"',
        "node -m turngate hook",
        "npx turngate hook",
    ],
)
def test_another_command(line: str) -> None:
    assert not is_hook_line(line)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["turngate", "hook"], True),
        (["/opt/python3", "-m", "turngate", "hook"], True),
        (["sh", "-c", "turngate hook"], True),
        (["/bin/bash", "-c", "cd /p && turngate hook"], True),
        (["sh", "-c", "turngate hook; make test"], False),
        (["echo", "-c", "turngate hook"], False),
    ],
)
def test_a_command_with_a_list_of_arguments(words: list[str], expected: bool) -> None:
    assert runs_turngate_hook(CommandHook(words[0], args=tuple(words[1:]))) is expected
