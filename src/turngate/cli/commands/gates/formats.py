"""The report of `turngate gates run` for other programs: JSON, Markdown, JUnit, SARIF, and commands of GitHub Actions."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from turngate.core.text import keep_ends, one_line, strip_controls

MAX_PLACES = 50  # of one gate
MAX_MESSAGE_CHARS = 300
MAX_REASON_CHARS = 8_000
# A file and a line as compilers and test runners print them: `a.py:3:`, `a.ts(3,5):`, `--> a.rs:3:5`.
_PLACE = re.compile(
    r"(?P<file>(?:[\w@+.-]+/)*[\w@+.-]+\.\w+)(?::(?P<line>\d+)(?::\d+)?|\((?P<in_brackets>\d+),\d+\)):?(?P<rest>.*)"
)

_LEVELS = {"failed": "error", "could_not_run": "warning"}  # of GitHub and of SARIF
_Report = Mapping[str, Any]  # of `--json`


def find_places(reason: str, project: str) -> list[dict[str, Any]]:
    """Return the places in files of the project that a reason names, each with its message."""
    places: dict[tuple[str, int], str] = {}
    before = error = ""  # the line before, and the first that pytest marks as the error
    for text in reason.splitlines():
        found = _PLACE.search(text)
        if found and os.path.isfile(os.path.join(project, found["file"])):
            line = max(
                1, int(found["line"] or found["in_brackets"])
            )  # 0 is a whole file, and not valid in SARIF
            message = one_line(error or found["rest"].strip() or before or text, MAX_MESSAGE_CHARS)
            places.setdefault((os.path.normpath(found["file"]), line), message)
            error = ""
        elif text.startswith("E   "):
            error = error or text[1:].strip()
        before = text.strip() or before
    return [
        {"file": file, "line": line, "message": message}
        for (file, line), message in list(places.items())[:MAX_PLACES]
    ]


def _to_markdown(report: _Report) -> str:
    gates = report["gates"]
    lines = ["| gate | result | seconds |", "|---|---|---|"]
    for gate in gates:
        name, label = _escape_markdown(gate["name"]), _label(gate)
        lines.append(f"| {name} | {label} | {gate['seconds']:.2f} |")
    for gate in gates:
        if gate["reason"] and gate["outcome"] in ("failed", "could_not_run"):
            text = _reason(gate)
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            lines += ["", f"**{_escape_markdown(gate['name'])}**: {_label(gate)}", "", fence, text, fence]
    counts = Counter(map(_label, gates))
    total = ", ".join(f"{number} {label}" for label, number in counts.items()) or "no gates are configured"
    lines += ["", f"{total}.", *(f"- {_escape_markdown(text)}" for text in report["warnings"])]
    return "\n".join(lines)


def _to_github(report: _Report) -> str:
    """Return one workflow command for each failure, with its file and line where the gate names them."""
    commands = []
    for gate in report["gates"]:
        level = _LEVELS.get(gate["outcome"])
        title = f"title={_escape_property(gate['name'] + ': ' + _label(gate))}"
        if level and not gate["places"]:
            commands.append(f"::{level} {title}::{_escape_message(_reason(gate))}")
        for each in gate["places"] if level else ():
            file = _escape_property(_in_checkout(report, each["file"]))
            message = _escape_message(each["message"])
            commands.append(f"::{level} file={file},line={each['line']},{title}::{message}")
    commands += [f"::warning::{_escape_message(text)}" for text in report["warnings"]]
    return "\n".join(commands)


def _to_junit(report: _Report) -> str:
    from xml.sax.saxutils import escape, quoteattr  # noqa: PLC0415 # lazy: few runs need it

    gates = _with_warnings(report)
    counts = Counter(gate["outcome"] for gate in gates)
    cases = []
    for gate in gates:
        head = f'<testcase classname="turngate" name={quoteattr(gate["name"])} time="{gate["seconds"]:.3f}"'
        element = {"failed": "failure", "could_not_run": "error", "left_out": "skipped"}.get(gate["outcome"])
        if element is None:
            cases.append(f"    {head}/>")
            continue
        text = _reason(gate)
        inner = (
            f"<{element} message={quoteattr(one_line(text, MAX_MESSAGE_CHARS))}>{escape(text)}</{element}>"
        )
        cases.append(f"    {head}>{inner}</testcase>")
    numbers = f'tests="{len(gates)}" failures="{counts["failed"]}" errors="{counts["could_not_run"]}"'
    suite = f'  <testsuite name="turngate" {numbers} skipped="{counts["left_out"]}">'
    heading = '<?xml version="1.0" encoding="UTF-8"?>'
    text = "\n".join([heading, "<testsuites>", suite, *cases, "  </testsuite>", "</testsuites>"])
    return re.sub("[\ufffe\uffff]", "", text)  # XML has no way to write them


def _to_sarif(report: _Report) -> str:
    from urllib.parse import quote  # noqa: PLC0415 # lazy: few runs need it

    results = []
    gates = _with_warnings(report)
    for gate in gates:
        level = _LEVELS.get(gate["outcome"])
        if level is None:
            continue
        result = {"ruleId": gate["name"], "level": level}
        if not gate["places"]:
            results.append({**result, "message": {"text": _reason(gate)}})
        for each in gate["places"]:
            file = {"uri": quote(_in_checkout(report, each["file"]))}
            region = {"startLine": each["line"]}
            location = {"physicalLocation": {"artifactLocation": file, "region": region}}
            results.append({**result, "message": {"text": each["message"]}, "locations": [location]})
    rules = [{"id": name} for name in dict.fromkeys(gate["name"] for gate in gates)]
    run = {"tool": {"driver": {"name": "Turngate", "rules": rules}}, "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


FORMATS: Mapping[str, Callable[[_Report], str]] = {
    "json": lambda report: json.dumps(report, indent=2),
    "markdown": _to_markdown,
    "github": _to_github,
    "junit": _to_junit,
    "sarif": _to_sarif,
}


def write_job_summary(report: _Report) -> None:
    """Append the report to the page of a job of GitHub Actions, if there is one."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"### Turngate\n\n{_to_markdown(report)}\n")


def _in_checkout(report: _Report, file: str) -> str:
    """Return the path of a file of the project in the checkout of GitHub Actions, if the project is a folder there."""
    checkout = os.environ.get("GITHUB_WORKSPACE")
    path = os.path.relpath(os.path.join(report["project"], file), checkout) if checkout else ".."
    return file if path.startswith("..") else path


def _with_warnings(report: _Report) -> list[_Report]:
    """Return the gates, and each problem of the settings as a gate that could not run: these formats have no other place for it."""
    common = {"name": "settings", "outcome": "could_not_run", "seconds": 0.0, "places": []}
    return [*report["gates"], *({**common, "reason": text} for text in report["warnings"])]


def _label(gate: _Report) -> str:
    return str(gate["outcome"]).replace("_", " ")


def bounded(reason: str) -> str:
    return keep_ends(reason, MAX_REASON_CHARS // 2, MAX_REASON_CHARS // 2)


def _reason(gate: _Report) -> str:
    return strip_controls(bounded(gate["reason"] or "")) or "it gave no reason"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", one_line(text, MAX_MESSAGE_CHARS))


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
