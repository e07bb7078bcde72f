"""The ten usual mistakes with a first gate: one command names each of them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings


def turngate(project: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "turngate", *words]
    done = subprocess.run(
        command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def check(project: Path) -> tuple[int, list[str]]:
    code, out = turngate(project, "check")
    return code, out.splitlines()[:-1]


def fire(project: Path) -> list[str]:
    return turngate(project, "fire", "Stop", "--trust")[1].splitlines()


def gate(project: Path, content: Any) -> None:
    write_settings(project, "turngate", content)


GATE = "#!/bin/sh\ntest -f DONE || { echo 'write the file DONE' >&2; exit 2; }\n"


@pytest.fixture
def gate_script(project: Path) -> Path:
    return script(project / "gate.sh", GATE)


def test_without_a_mistake_nothing_is_named(project: Path, gate_script: Path) -> None:
    gate(project, stop_hooks("./gate.sh"))
    assert check(project) == (0, [".turngate/settings.json"])


def test_a_wrong_event(project: Path, gate_script: Path) -> None:
    gate(project, stop_hooks("./gate.sh", event="OnStop"))
    assert check(project) == (
        1,
        [
            ".turngate/settings.json",
            "  warning: OnStop: is not a known event, so its hooks never run",
            '    → did you mean "Stop"?',
        ],
    )


def test_a_wrong_unit(project: Path, gate_script: Path) -> None:
    gate(project, stop_hooks("./gate.sh", timeout=30_000))
    assert check(project) == (
        1,
        [
            ".turngate/settings.json",
            "  warning: Stop[0].hooks[0].timeout: is 30000, which is read as seconds",
            "    → write 30 for 30000 milliseconds",
        ],
    )


def test_a_script_that_is_not_executable(project: Path, gate_script: Path) -> None:
    gate_script.chmod(0o644)
    gate(project, stop_hooks("./gate.sh"))
    assert check(project) == (
        1,
        [
            ".turngate/settings.json",
            "  error: Stop[0].hooks[0].command: ./gate.sh is not executable, so the hook fails at every run",
            "    → chmod +x ./gate.sh",
        ],
    )


def test_a_comment_in_the_json(project: Path) -> None:
    gate(project, '{\n  // the gate\n  "hooks": {}\n}')
    assert check(project) == (
        1,
        [
            ".turngate/settings.json",
            "  error: not JSON at line 2, column 3: comments are not allowed in JSON; none of its hooks run",
            '    → remove it, or write it as a key that begins with _ or //: "_comment": "…"',
        ],
    )


def test_exit_1_instead_of_2(project: Path, gate_script: Path) -> None:
    gate_script.write_text(GATE.replace("exit 2", "exit 1"))
    gate(project, stop_hooks("./gate.sh"))
    assert check(project) == (
        1,
        [
            ".turngate/settings.json",
            (
                "  warning: Stop[0].hooks[0].command: ./gate.sh ends with exit code 1 and never with 2, "
                "and only exit code 2 blocks: it can never block"
            ),
            "    → to block, write the reason to stderr and exit with 2",
        ],
    )


def test_text_before_the_json(project: Path, gate_script: Path) -> None:
    block = """echo '{"decision": "block", "reason": "write the file DONE"}'"""
    gate_script.write_text(f"#!/bin/sh\nls\ntest -f DONE || {block}\n")
    gate(project, stop_hooks("./gate.sh"))
    assert fire(project)[-1] == (
        '! hook "./gate.sh" failed and was NOT enforced: its decision was not read, because there is text before its '
        "JSON: print only the JSON on stdout, and everything else on stderr"
    )


def test_a_missing_tool(project: Path) -> None:
    gate(project, stop_hooks("pyttest -q >&2 || exit 2"))
    assert check(project) == (
        1,
        [
            ".turngate/settings.json",
            (
                "  error: Stop[0].hooks[0].command: the program pyttest is not in the PATH, "
                "so the hook blocks at every run"
            ),
            '    → install pyttest, or correct the name; did you mean "pytest"?',
        ],
    )
    assert fire(project)[-1].startswith(
        '! hook "pyttest -q >&2 || exit 2": its exit code 2 looks like a mistake in the hook, not like a block: /bin/sh: '
    )


def test_a_hook_that_hangs(project: Path) -> None:
    gate(project, stop_hooks("exec sleep 600", timeout=0.5))
    printed = fire(project)  # on a slow machine, a line "waiting for …" comes first
    assert "Stop: allowed, 1 gate NOT enforced" in printed
    assert printed[-2:] == [
        '! hook "exec sleep 600" timed out after 0.5 s and was NOT enforced',
        "  → raise its `timeout`",
    ]


def test_a_stop_budget_that_is_too_short(project: Path) -> None:
    gate(project, {**stop_hooks("exec sleep 600"), "turngate": {"stopBudget": 0.5}})
    assert fire(project)[-1] == "  → raise `stopBudget`, the time that all hooks of a stop have together"


def test_a_missing_tool_inside_a_substitution(project: Path, gate_script: Path) -> None:
    gate_script.write_text('#!/bin/sh\nactive=$(cat | jqq -r .x)\ntest -z "$active" || exit 2\n')
    gate(project, stop_hooks("./gate.sh"))
    assert fire(project)[-1] == (
        '! hook "./gate.sh": passed, but its stderr says "jqq: not found": the gate may not have checked anything'
    )


def test_a_test_runner_with_blocking_gives_its_output_to_the_agent(project: Path) -> None:
    gate(project, stop_hooks("echo FAILED test_discount; echo 1 failed; exit 1", blocking=True))
    why = "exit code 1, nothing on stderr; on stdout: FAILED test_discount 1 failed"
    assert f"  this check failed and must pass before you may stop: {why}" in fire(project)


def test_a_hook_that_never_ends_by_its_nature(project: Path) -> None:
    gate(project, stop_hooks("tail -f log.txt"))
    assert check(project) == (
        1,
        [
            ".turngate/settings.json",
            "  warning: Stop[0].hooks[0].command: tail -f log.txt never ends, so the hook times out at every run",
        ],
    )


@pytest.mark.parametrize("name", ["hooks.json", "setting.json"])
def test_settings_in_the_wrong_place(project: Path, gate_script: Path, name: str) -> None:
    write_settings(project, "turngate", stop_hooks("./gate.sh"), name=name)
    assert check(project) == (
        1,
        [
            f".turngate/{name}",
            "  error: is not read, so its hooks never run; expected .turngate/settings.json",
            "    → move its hooks to .turngate/settings.json",
        ],
    )


def test_an_endless_block(project: Path, gate_script: Path) -> None:
    gate_script.write_text("#!/bin/sh\necho 'not yet' >&2\nexit 2\n")
    gate(project, stop_hooks("./gate.sh"))
    assert check(project) == (
        1,
        [
            ".turngate/settings.json",
            (
                "  warning: Stop[0].hooks[0].command: ./gate.sh: blocks every time, whatever the agent did, "
                "so the agent is sent back until the limit is reached"
            ),
            "    → block on a condition: CHECK || { echo 'REASON' >&2; exit 2; }",
        ],
    )
