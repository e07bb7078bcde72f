"""The line that `turngate install` writes, where Turngate is not there."""

import subprocess

import pytest

from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.base import Host, HostAnswer, Level
from turngate.hosts.hook_command import NOT_CHECKED, hook_command

GUARDED = [(host, "project") for host in HOSTS.values()] + [
    (host, "user") for host in HOSTS.values() if host.failed_hook_blocks
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
    elif host.shows_notices:
        told = (expected.stdout.rstrip("\n"), "")
    else:
        told = ("", NOT_CHECKED)
    assert (done.stdout.rstrip("\n"), done.stderr.rstrip("\n"), done.returncode) == (*told, 0)
