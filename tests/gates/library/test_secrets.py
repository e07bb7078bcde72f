"""The gate `secrets` with gitleaks, which a script plays; the rest is in the table of its cases."""

import json
from pathlib import Path

import pytest

from tests.gates.cases.secrets import START, WORDS, found
from tests.support.gates import answer_of_process, claude_input
from tests.support.git_projects import write

LEAKS = json.dumps([{"RuleID": "generic-api-key", "StartLine": 2}])
GITLEAKS = """#!/bin/sh
test "$1" = stdin && grep -q 'of b' || exit 1
printf '%s' '{leaks}'
exit {code}
"""


@pytest.mark.parametrize(
    ("leaks", "code", "answer"),
    [
        (LEAKS, 3, found("b.py:2: generic-api-key (gitleaks)")),
        ("not JSON", 3, {}),
        (LEAKS, 1, {}),
        ("", 0, {}),
    ],
)
def test_gitleaks_is_asked_about_the_added_lines(
    leaks: str,
    code: int,
    answer: dict[str, str],
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    START(project)
    write(project, {"b.py": "1\nkey of b\n"})
    write(tmp_path / "programs", {"gitleaks": GITLEAKS.format(leaks=leaks, code=code)})
    (tmp_path / "programs/gitleaks").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"), prepend=":")
    assert answer_of_process(WORDS, claude_input(project)) == (0, answer, "")
