"""The cases of the gate `coverage`. It runs no command: the report is there or not."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.git_projects import files, repository, steps, write_transcript

WORDS = ("coverage",)
START = steps(repository({"src/a.py": "a\n", ".gitignore": "coverage*\nlcov.info\nmine\n"}), write_transcript)
SOURCE = "a\nb\nc\nd\n\ne\n"
XML = """<coverage><packages><package><classes><class name="a.py" filename="a.py" line-rate="0.5"><methods/><lines>
<line number="1" hits="1"/><line number="2" hits="1"/><line number="3" hits="0"/><line number="4" hits="0"/>
<line number="6" hits="0"/></lines></class></classes></package></packages></coverage>"""
LCOV = "SF:src/a.py\nDA:1,1\nDA:2,4\nDA:3,0\nDA:4,0\nDA:6,0\nend_of_record\n"
JSON = json.dumps({"files": {"src/a.py": {"executed_lines": [1, 2], "missing_lines": [3, 4, 6]}}})


def reports(name: str, text: str, *, is_old: bool = False) -> Callable[[Path], Mapping[str, Any]]:
    def age(project: Path) -> None:
        os.utime(project / "src/a.py", (1_000_000_000, 1_000_000_000))
        if is_old:
            os.utime(project / name, (900_000_000, 900_000_000))

    return steps(files({"src/a.py": SOURCE, name: text}), age)


FAILED = blocked(
    "tests run 25% of the 4 added lines, but at least 80% is required. Not run:\n- src/a.py: 3-4, 6\nWrite tests that run them."
)
CASES = [
    GateCase(
        "failed: XML, with names from a folder of sources", WORDS, reports("coverage.xml", XML), FAILED, START
    ),
    GateCase("failed: lcov", WORDS, reports("lcov.info", LCOV), FAILED, START),
    GateCase("failed: JSON", WORDS, reports("coverage.json", JSON), FAILED, START),
    GateCase("passed: enough", (*WORDS, "--min", "25"), reports("coverage.xml", XML), {}, START),
    GateCase(
        "passed: all lines",
        WORDS,
        reports("lcov.info", LCOV.replace(",0", ",2")),
        {},
        START,
    ),
    GateCase(
        "passed: a file that the report does not know",
        WORDS,
        reports("lcov.info", "SF:b.py\nDA:1,0\n"),
        {},
        START,
    ),
    GateCase("passed: nothing was added", WORDS, steps(), {}, START),
    GateCase(
        "failed: a report with another name",
        (*WORDS, "--report", "mine/x.xml"),
        reports("mine/x.xml", XML),
        FAILED,
        START,
    ),
    GateCase(
        "could not run: no report",
        WORDS,
        steps(files({"src/a.py": SOURCE})),
        could_not_run(
            "coverage",
            "there is no report: the tests have to write one of coverage.xml, lcov.info, coverage/lcov.info, "
            "coverage.json, coverage/cobertura-coverage.xml",
        ),
        START,
    ),
    GateCase(
        "could not run: an old report",
        WORDS,
        reports("coverage.xml", XML, is_old=True),
        could_not_run("coverage", "coverage.xml is older than src/a.py: run the tests with coverage again"),
        START,
    ),
]
