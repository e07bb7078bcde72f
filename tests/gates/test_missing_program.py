"""Commands that have checked nothing, because a program, a script or a target is not there."""

import pytest

from turngate.gates.missing_program import missing_program

MISSING = [
    (127, "sh: 1: npm: not found"),
    (2, "/bin/sh: 1: npm: not found"),
    (1, "bash: line 1: npm: command not found"),
    (1, "zsh:1: command not found: npm"),
    (1, "./check.sh: line 3: npm: command not found"),
    (1, "./check.sh: 3: npm: not found"),
    (1, "/usr/bin/python3: No module named pytest"),
    (2, "make: *** No rule to make target 'test'.  Stop."),
    (2, "make: *** [Makefile:2: test] Error 127"),
    (1, 'npm ERR! Missing script: "lint"'),
    (1, 'npm error Missing script: "lint"'),
    (101, "error: no such command: `clippy`"),
    (2, "error: Failed to spawn: `pytest`"),
    (1, "Command not found: pytest"),
    (126, "sh: 1: ./check: Permission denied"),
]


@pytest.mark.req("X-37")
@pytest.mark.parametrize(("code", "line"), MISSING)
def test_a_message_of_a_tool_that_is_missing_is_recognized(code: int, line: str) -> None:
    assert (
        missing_program(code, f"something before\n{line}\n") == f"exit code {code}: {' '.join(line.split())}"
    )


@pytest.mark.parametrize(
    "stderr",
    [
        "",
        "ModuleNotFoundError: No module named 'requests'",
        "AssertionError: npm: not found",
        "make: *** No rule to make target 'a.o', needed by 'app'.  Stop.",
        "make: *** [Makefile:2: test] Error 1",
        "sh: 1: npm: not found\n" + "the tests begin\n" * 20,
    ],
)
def test_a_check_that_fails_is_not_taken_for_a_missing_program(stderr: str) -> None:
    assert missing_program(1, stderr) is None
