"""`turngate gates run --format`: reports that CI systems read."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.builders import write_settings
from tests.support.cli import turngate

FAILURE = "a.py:2: AssertionError: 1 != 2 | 100%\nsrc/b.ts(3,5): error TS1: <T>\n  --> c.rs:4:1\ngone.py:9: is not there\n"
HOOKS = [
    {"type": "gate", "id": "tests", "command": "cat failure.txt; exit 1"},
    {"type": "command", "id": "types", "command": "no-such-program"},
    {"type": "command", "id": "lint", "command": "true"},
    {"type": "prompt", "id": "plan", "prompt": "Is it done?"},
]


@pytest.fixture
def failing(project: Path) -> Path:
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": HOOKS}]}})
    (project / "src").mkdir()
    for name in ("a.py", "src/b.ts", "c.rs"):
        (project / name).write_text("\n" * 9)
    (project / "failure.txt").write_text(FAILURE)
    return project


def report(project: Path, name: str) -> tuple[int, str]:
    code, out, err = turngate("gates", "run", "--format", name, "--trust", "--project", str(project))
    assert err == ""
    return code, out


PLACES = [
    {"file": "a.py", "line": 2, "message": "AssertionError: 1 != 2 | 100%"},
    {"file": "src/b.ts", "line": 3, "message": "error TS1: <T>"},
    {"file": "c.rs", "line": 4, "message": "src/b.ts(3,5): error TS1: <T>"},
]


def test_json_has_the_places_that_a_failure_names(failing: Path) -> None:
    code, out = report(failing, "json")
    gates = [(gate["name"], gate["outcome"], gate["places"]) for gate in json.loads(out)["gates"]]
    assert (code, gates) == (
        1,
        [
            ("tests", "failed", PLACES),
            ("types", "could_not_run", []),
            ("lint", "passed", []),
            ("plan", "left_out", []),
        ],
    )


def test_github_gets_an_annotation_for_each_place_and_a_summary_of_the_job(
    failing: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    code, out = report(failing, "github")
    lines = out.splitlines()
    assert (code, lines[0].split()[0], [line for line in lines if line.startswith("::")]) == (
        1,
        "failed",
        [
            "::error file=a.py,line=2,title=tests%3A failed::AssertionError: 1 != 2 | 100%25",
            "::error file=src/b.ts,line=3,title=tests%3A failed::error TS1: <T>",
            "::error file=c.rs,line=4,title=tests%3A failed::src/b.ts(3,5): error TS1: <T>",
            "::warning title=types%3A could not run::exit code 127: /bin/sh: 1: no-such-program: not found",
        ],
    )
    assert summary.read_text().splitlines()[:4] == [
        "### Turngate",
        "",
        "| gate | result | seconds |",
        "|---|---|---|",
    ]


def test_markdown_has_a_table_and_each_reason_in_a_fence(failing: Path) -> None:
    (failing / "failure.txt").write_text("a.py:2: ```wrong```\n")
    code, out = report(failing, "markdown")
    lines = [line.rpartition(" | ")[0] if line.startswith("| ") else line for line in out.splitlines()]
    assert (code, lines) == (
        1,
        [
            "| gate | result",
            "|---|---|---|",
            "| tests | failed",
            "| types | could not run",
            "| lint | passed",
            "| plan | left out",
            "",
            "**tests**: failed",
            "",
            "````",
            "`cat failure.txt; exit 1`: exit code 1",
            "a.py:2: ```wrong```",
            "````",
            "",
            "**types**: could not run",
            "",
            "```",
            "exit code 127: /bin/sh: 1: no-such-program: not found",
            "```",
            "",
            "1 failed, 1 could not run, 1 passed, 1 left out.",
        ],
    )


def test_junit_is_xml_with_a_case_for_each_gate(failing: Path) -> None:
    (failing / "failure.txt").write_text('<a> & \x01 ]]> "b"\n')
    code, out = report(failing, "junit")
    suite = ET.fromstring(out)[0]
    cases = [(case.get("name"), [child.tag for child in case]) for case in suite]
    numbers = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert (code, numbers, cases) == (
        1,
        ["4", "1", "1", "1"],
        [("tests", ["failure"]), ("types", ["error"]), ("lint", []), ("plan", ["skipped"])],
    )
    assert (suite[0][0].text or "").splitlines()[1] == '<a> &  ]]> "b"'


def test_sarif_has_a_result_for_each_place(failing: Path) -> None:
    code, out = report(failing, "sarif")
    log: dict[str, Any] = json.loads(out)
    [run] = log["runs"]
    places = [
        (
            result["ruleId"],
            result["level"],
            [each["physicalLocation"]["artifactLocation"]["uri"] for each in result.get("locations", [])],
        )
        for result in run["results"]
    ]
    assert (code, log["version"], places) == (
        1,
        "2.1.0",
        [
            ("tests", "error", ["a.py"]),
            ("tests", "error", ["src/b.ts"]),
            ("tests", "error", ["c.rs"]),
            ("types", "warning", []),
        ],
    )


@pytest.mark.parametrize("name", ["json", "markdown", "github", "junit", "sarif"])
def test_a_project_without_gates_has_a_report_too(project: Path, name: str) -> None:
    assert report(project, name)[0] == 13


@pytest.mark.parametrize("name", ["json", "markdown", "github", "junit", "sarif"])
def test_settings_that_cannot_be_loaded_are_in_every_report(project: Path, name: str) -> None:
    (project / ".turngate").mkdir()
    (project / ".turngate/settings.json").write_text("{wrong")
    code, out, _ = turngate("gates", "run", "--format", name, "--trust", "--project", str(project))
    assert (code, "not JSON at line 1" in out) == (13, True)


def test_a_failure_at_the_end_of_a_long_output_is_bounded(failing: Path) -> None:
    (failing / "failure.txt").write_text("".join(f"a.py:{line}: wrong\n" for line in range(1, 400)))
    code, out = report(failing, "json")
    gate = json.loads(out)["gates"][0]
    assert (code, len(gate["places"]) <= 50) == (1, True)
