"""Runs the suite of `StopGates` with the lowest and the newest version of each framework, and writes the page with the results.

`make frameworks`, or `make frameworks ONLY=langchain,strands`. Each version has an environment of its own below `.frameworks`.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
import venv
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
CACHE, SUITE = ROOT / ".frameworks", "tests/adapters/test_stop_gates.py"
PAGE = ROOT / "docs" / "reference" / "frameworks-results.md"
# The framework, its extra, and what its tests need besides.
FRAMEWORKS = {
    "pydantic_ai": ("pydantic-ai", ()),
    "langchain": ("langchain", ("deepagents>=0.7,<0.8",)),
    "openai_agents": ("openai-agents", ()),
    "strands": ("strands", ()),
    "claude_agent_sdk": ("claude", ()),
}
FOR_TESTS = ("hypothesis", "jsonschema", "pytest", "pytest-timeout", "pytest-xdist")
TITLES = ("pydantic-ai", "LangChain", "OpenAI Agents SDK", "Strands Agents", "Claude's Agent SDK")
TIMED_RUNS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="frameworks, separated by commas")
    only = parser.parse_args().only
    names = [name for name in only.split(",") if name] or [*FRAMEWORKS]
    CACHE.mkdir(exist_ok=True)
    for name in names:
        for which in ("lowest", "newest"):
            result = run(name, which)
            (CACHE / f"{name}-{which}.json").write_text(json.dumps(result))
            print(f"{name} {which} {result['version']}: {result['passed']} passed, {result['failed']} failed")
    results = {
        path.stem: json.loads(path.read_text())
        for name in FRAMEWORKS
        for path in sorted(CACHE.glob(f"{name}-*est.json"))
    }
    if len(results) == 2 * len(FRAMEWORKS):
        PAGE.write_text(page(results))
    return 1 if any(result["failed"] for result in results.values()) else 0


def run(name: str, which: str) -> dict[str, object]:
    """Return the version that was installed, and the outcome of each test."""
    extra, further = FRAMEWORKS[name]
    folder = CACHE / f"{name}-{which}"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    requirement = requirement_of(extra)
    package = re.split("[<>=[]", requirement)[0]
    wanted = [requirement, *further]
    if which == "lowest":
        wanted = [re.sub(r">=([\w.]+),.*", r"==\1", each) for each in wanted]
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--upgrade"]
    # The wheel of Claude's SDK holds the whole program.
    subprocess.run(
        [*pip, "--no-binary", "claude-agent-sdk", "-e", ".[agent,postgres,ssh]", *FOR_TESTS, *wanted],
        cwd=ROOT,
        check=True,
    )
    report = CACHE / f"{name}-{which}.xml"
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        SUITE,
        "-k",
        name,
        f"--junitxml={report}",
    ]
    subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr)
    outcomes = read_report(report)
    ends = [outcome for each in outcomes.values() for outcome in each]
    return {
        "version": version_of(python, package),
        "outcomes": outcomes,
        "passed": ends.count("passes"),
        "failed": ends.count("FAILS"),
        "import": import_time(python, name),
    }


def requirement_of(extra: str) -> str:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [requirement] = [each for each in extras[extra] if not each.startswith("turngate")]
    return str(requirement)


def read_report(report: Path) -> dict[str, list[str]]:
    """Return for each test how its cases ended: `passes`, `FAILS`, or why it does not exist."""
    outcomes: dict[str, list[str]] = {}
    for case in ET.parse(report).iter("testcase"):
        name = case.attrib["name"].partition("[")[0]
        skipped = case.find("skipped")
        why = skipped.attrib["message"].removeprefix("does not exist: ") if skipped is not None else "passes"
        is_bad = case.find("failure") is not None or case.find("error") is not None
        outcomes.setdefault(name, []).append("FAILS" if is_bad else why)
    return outcomes


def version_of(python: Path, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def import_time(python: Path, name: str) -> list[int]:
    """Return the milliseconds to import the framework, and then `StopGates`: the best of some runs."""
    package = {"openai_agents": "agents", "langchain": "langchain.agents"}.get(name, name)
    clock = "import time; t = time.perf_counter()"
    code = f"{clock}; import {package}; u = time.perf_counter(); import turngate.{name}; print(u - t, time.perf_counter() - u)"
    runs = []
    for _ in range(TIMED_RUNS + 1):  # the first one compiles
        printed = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout
        runs.append([float(each) for each in printed.split()])
    return [round(1000 * min(each)) for each in zip(*runs[1:], strict=True)]


def page(results: dict[str, dict[str, object]]) -> str:
    """Return the page: the versions, then a row for each test."""
    lines = [
        "# Results with frameworks",
        "",
        f"Written by `make frameworks` on {datetime.now(UTC):%Y-%m-%d}. It runs the suite `{SUITE}` with the lowest and the newest",
        "version of each framework, offline. [Python frameworks](../how-to/frameworks.md) says how to use `StopGates`.",
        "",
        "| framework | lowest | newest | import of the framework | of `StopGates` after it |",
        "|---|---|---|---|---|",
    ]
    for name, title in zip(FRAMEWORKS, TITLES, strict=True):
        low, new = results[f"{name}-lowest"], results[f"{name}-newest"]
        times: list[int] = new["import"]  # type: ignore[assignment]
        lines.append(f"| {title} | {low['version']} | {new['version']} | {times[0]} ms | {times[1]} ms |")
    lines += ["", f"| case | {' | '.join(TITLES)} |", f"|---|{'---|' * len(TITLES)}"]
    reasons: list[str] = []
    tests: dict[str, None] = {}
    for result in results.values():
        tests |= dict.fromkeys(result["outcomes"])  # type: ignore[call-overload]
    for test in sorted(tests):
        cells = [
            cell(test, results[f"{name}-lowest"], results[f"{name}-newest"], reasons) for name in FRAMEWORKS
        ]
        lines.append(f"| {test.removeprefix('test_').replace('_', ' ')} | {' | '.join(cells)} |")
    lines += ["", "A number: the case does not exist there, or the framework prevents it:", ""]
    lines += [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join(lines) + "\n"


def cell(test: str, lowest: dict[str, object], newest: dict[str, object], reasons: list[str]) -> str:
    ends = {end for result in (lowest, newest) for end in result["outcomes"].get(test, ["not run"])}  # type: ignore[attr-defined]
    if len(ends) > 1 or "FAILS" in ends:
        return "FAILS"
    end = str(ends.pop())
    if end == "passes":
        return end
    if end not in reasons:
        reasons.append(end)
    return str(reasons.index(end) + 1)


if __name__ == "__main__":
    sys.exit(main())
