"""`turngate gates run --format`: reports that CI systems read."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator

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


def test_a_failure_of_pytest_has_what_it_marks_as_the_error(failing: Path) -> None:
    output = ">   assert total() == 160\nE   assert 150 == 160\nE    +  where 150 = total()\n\na.py:5: AssertionError\n"
    (failing / "failure.txt").write_text(f"{output}a.py:7: wrong\n")
    gate = json.loads(report(failing, "json")[1])["gates"][0]
    assert gate["places"] == [
        {"file": "a.py", "line": 5, "message": "assert 150 == 160"},
        {"file": "a.py", "line": 7, "message": "wrong"},
    ]


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


def test_annotations_name_files_as_the_checkout_has_them_and_escape_what_github_reads(
    failing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = {"type": "gate", "id": "a,b:c%", "command": "cat failure.txt; exit 1"}
    write_settings(failing, "turngate", {"hooks": {"Stop": [{"hooks": [gate]}]}})
    monkeypatch.setenv("GITHUB_WORKSPACE", str(failing.parent))
    (failing / "failure.txt").write_text("./a.py:0: 50% of a:b, c\r\n")
    _, out = report(failing, "github")
    assert [line for line in out.splitlines() if line.startswith("::")] == [
        f"::error file={failing.name}/a.py,line=1,title=a%2Cb%3Ac%25%3A failed::50%25 of a:b, c"
    ]
    (failing / "failure.txt").write_text("one\ntwo\n")
    _, out = report(failing, "github")
    assert [line for line in out.splitlines() if line.startswith("::")] == [
        "::error title=a%2Cb%3Ac%25%3A failed::`cat failure.txt; exit 1`: exit code 1%0Aone%0Atwo"
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
    (failing / "failure.txt").write_text('<a> & \x01 ]]> "b"\ufffe\uffff\n')
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


# What the schema of SARIF 2.1.0 requires of the parts that are written.
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": {"$ref": "#/$defs/run"}},
    },
    "additionalProperties": False,
    "$defs": {
        "run": {
            "required": ["tool"],
            "properties": {
                "tool": {"properties": {"driver": {"$ref": "#/$defs/driver"}}, "required": ["driver"]},
                "results": {"items": {"$ref": "#/$defs/result"}},
            },
            "additionalProperties": False,
        },
        "driver": {
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "rules": {"type": "array", "uniqueItems": True, "items": {"required": ["id"]}},
            },
            "additionalProperties": False,
        },
        "result": {
            "required": ["message"],
            "properties": {
                "ruleId": {"type": "string"},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": {"required": ["text"], "additionalProperties": {"type": "string"}},
                "locations": {"items": {"properties": {"physicalLocation": {"$ref": "#/$defs/place"}}}},
            },
            "additionalProperties": False,
        },
        "place": {
            "properties": {
                "artifactLocation": {"properties": {"uri": {"pattern": "^[A-Za-z0-9._~/%+@-]+$"}}},
                "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
            },
            "additionalProperties": False,
        },
    },
}


def test_sarif_is_valid(failing: Path) -> None:
    (failing / "ü.py").write_text("")
    (failing / "failure.txt").write_text("ü.py:0: wrong\na.py:3: wrong\n")
    _, out = report(failing, "sarif")
    log = json.loads(out)
    uris = [
        each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for each in log["runs"][0]["results"]
        if "locations" in each
    ]
    problems = [error.message for error in Draft202012Validator(SARIF).iter_errors(log)]
    assert (problems, uris) == ([], ["%C3%BC.py", "a.py"])


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
