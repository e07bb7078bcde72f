"""The result of the tests does not depend on the environment in which they are run, and a test that hangs fails."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.timeouts import HANG_TIMEOUT_S

# Tests of what depends on the environment: git, terminals, colors, locale, times, trust, proxies, logins.
SAMPLE = (
    "tests/cli/commands/test_check_git_ignore.py",
    "tests/cli/commands/test_log.py::test_a_log_of_no_session_waits_for_the_first_one",
    "tests/cli/console/test_progress.py::test_at_a_terminal_one_line_is_rewritten_and_cleared",
    "tests/cli/test_color.py",
    "tests/models/test_opening.py::test_the_help_and_the_page_name_every_provider",
    "tests/runners/test_http.py::test_a_host_that_does_not_exist",
    "tests/test_engine.py::test_a_command_that_exits_with_two_sends_the_agent_back",
    "tests/trust/test_attacks.py::test_a_hook_of_a_new_project_does_not_run",
)
ODD = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "FORCE_COLOR": "1",
    "COLUMNS": "20",
    "LINES": "5",
    "CI": "true",
    "LANG": "tr_TR.UTF-8",
    "LC_ALL": "tr_TR.UTF-8",
    "TZ": "Pacific/Chatham",
    "PAGER": "false",
    "EDITOR": "false",
    "SHELL": "/bin/false",
    "USER": "nobody",
    "LOGNAME": "nobody",
    "GIT_DIR": "/nonexistent/git",
    "XDG_CONFIG_HOME": "/nonexistent/config",
    "XDG_STATE_HOME": "/nonexistent/state",
    "XDG_CACHE_HOME": "relative",
    "XDG_RUNTIME_DIR": "",
    "http_proxy": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "ANTHROPIC_API_KEY": "x",
    "CLAUDECODE": "1",
    "CLAUDE_PROJECT_DIR": "/nonexistent",
    "TURNGATE_DEBUG": "1",
    "TURNGATE_GATES_BASE": "/nonexistent",
    "TURNGATE_IN_HOOK": "1",
    "TURNGATE_STATE": "/nonexistent",
    "TURNGATE_TRUST": "0",
    "PYTEST_ADDOPTS": "--color=yes",
}


def run_pytest(*words: str, environ: Mapping[str, str]) -> tuple[int, list[str], str]:
    """Return the exit code, the counts of the last line, and the whole output."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    return done.returncode, re.findall(r"\d+ [a-z]+", done.stdout.splitlines()[-1]), done.stdout


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param(ODD, id="odd values"),
        pytest.param({}, id="no variables"),
        pytest.param({"TERM": "dumb", "LANG": "C"}, id="no variables but LANG=C"),
        pytest.param(
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, id="no variables but ASCII"
        ),
    ],
)
def test_a_sample_of_the_tests_passes_with(environ: dict[str, str]) -> None:
    code, counts, output = run_pytest("-q", *SAMPLE, environ=environ)
    assert (code, [count.split()[1] for count in counts]) == (0, ["passed"]), output


HANGS = """
import asyncio, subprocess, time
import pytest

pytestmark = pytest.mark.timeout(1)

def test_a_sleep_that_does_not_end():
    time.sleep(1000)

def test_a_process_that_does_not_end():
    subprocess.run(["sleep", "1000"])

def test_a_task_that_does_not_end():
    asyncio.run(asyncio.sleep(1000))

@pytest.mark.timeout(0)
def test_the_next_one():
    pass
"""


def test_a_test_that_hangs_fails_by_its_name_and_the_next_one_runs(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    file = tmp_path / "test_hangs.py"
    file.write_text(HANGS)
    code, counts, output = run_pytest(
        "-n", "1", f"--rootdir={ROOT}", f"-c={ROOT / 'pyproject.toml'}", str(file), environ={}
    )
    failed = re.findall(r"^FAILED .*::(\w+) - Failed: Timeout", output, re.MULTILINE)
    assert (code, counts, failed) == (1, ["3 failed", "1 passed"], re.findall(r"test_a\w+", HANGS)), output
    assert float(pytestconfig.getini("timeout")) > HANG_TIMEOUT_S
