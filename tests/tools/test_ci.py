"""`.ci/run`: the tests run in the environment of a machine that knows nothing of ours."""

import os
import subprocess
from pathlib import Path

from tests.support.builders import script
from tests.support.paths import ROOT
from tests.support.timeouts import HANG_TIMEOUT_S

BY_SHELL = {"_", "PWD", "OLDPWD", "SHLVL"}
INHERITED = {
    "HOME": "/home/me",
    "LANG": "C.UTF-8",
    "PIP_INDEX_URL": "https://mirror.example/simple a b",
    "UV_INDEX_URL": "https://mirror.example/simple",
    "https_proxy": "http://proxy.example:3128",
    "NO_PROXY": "localhost",
    "SSL_CERT_FILE": "/etc/ssl/own.pem",
    "REQUESTS_CA_BUNDLE": "/etc/ssl/own.pem",
}
LEFT_OUT = {"PYTHONUNBUFFERED": "1", "TURNGATE_STATE": "/x", "ANTHROPIC_API_KEY": "x", "TERM": "xterm"}


def test_all_tests_run_with_a_minimal_environment(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script(tmp_path / "bin" / "make", f'#!/bin/sh\necho "$@" > "{seen}"\nenv >> "{seen}"\nexit 7\n')
    for program in ("jq", "tmux"):  # so that nothing is installed
        script(tmp_path / "bin" / program, "#!/bin/sh\n")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / ".ci" / "run"],
        env={**INHERITED, **LEFT_OUT, "PATH": path},
        capture_output=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    target, *variables = seen.read_text().splitlines()
    environ = dict(line.split("=", 1) for line in variables)
    inherited = {name: value for name, value in environ.items() if name not in BY_SHELL}
    assert (done.returncode, target, inherited) == (7, "test-all", {**INHERITED, "PATH": path})
