"""The results of `make projects`: a line for the terminal, and docs/reference/projects-results.md."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bench.projects.table import Project

HEAD = """\
# Results on real projects

Written by `make projects`: in a copy of each project with its dependencies, [`turngate init --yes --with
untouched,no-stubs,clean`](../how-to/init.md) writes gates, and sessions of Claude Code are played through `turngate hook`.

- **init** is right if it writes a gate for each check that the project's CI runs, with that command, and no other gate. A person determined what CI runs: one tool for each kind of check, without second tools of the same kind (isort beside ruff), builds, documentation, and tools that could not be installed (phpstan, golangci-lint).
- **Innocent** sessions: a greeting, a sentence in the README, and a question in the middle of the work. None may be blocked.
- **Faults**: up to ten sessions with one planted fault each. Each has to be blocked, by the gate for it, with a reason that names the file or the test and the error.

"""


def counts(row: Mapping[str, Any]) -> dict[str, int]:
    faults = row["faults"]
    return {
        "innocent blocked": sum(bool(each["blocked_by"]) for each in row["innocent"]),
        "innocent": len(row["innocent"]),
        "faults": len(faults),
        "blocked": sum(bool(each["blocked_by"]) for each in faults),
        "right gate": sum(is_right(each) for each in faults),
        "shown": sum(is_right(each) and each["is_shown"] for each in faults),
    }


def is_right(played: Mapping[str, Any]) -> bool:
    return any(
        gate == each or gate.startswith(f"{each}-")
        for gate in played["blocked_by"]
        for each in played["expected"]
    )


# How a tool is started, and options that change nothing about what it checks.
_STARTED = r"^(?:\.?venv/bin/|python3? -m |npx --no-install |uv run )+|^PATH=\S+ | -q\b| --no-fix\b| --extend-exclude=\.venv"


def differences(project: Project, row: Mapping[str, Any]) -> list[str]:
    """Return what `init` should have written otherwise."""
    wanted = project.gates
    proposed = {name: re.sub(_STARTED, "", command) for name, command in row["proposed"].items()}
    wrong = [
        f"`{proposed[name]}` for `{wanted[name]}`"
        for name in wanted
        if name in proposed and proposed[name] != wanted[name]
    ]
    wrong += [f"no {name} (`{wanted[name]}`)" for name in wanted if name not in proposed]
    wrong += [f"{name} (`{proposed[name]}`) too many" for name in proposed if name not in wanted]
    return wrong + [f"edited {name}" for name in row["edited"]]


def line(project: Project, row: Mapping[str, Any]) -> str:
    """Return one line for the terminal, and what was wrong."""
    n, wrong = counts(row), differences(project, row)
    text = (
        f"{project.name}: init {'right' if not wrong else 'WRONG: ' + ', '.join(wrong)}; innocent blocked {n['innocent blocked']}/{n['innocent']}; "
        f"faults {n['faults']}: blocked {n['blocked']}, by the right gate {n['right gate']}, error shown {n['shown']}"
    )
    return "\n".join((text, *(f"  {each}" for each in problems(row))))


def problems(row: Mapping[str, Any]) -> list[str]:
    found = [f"stopped: {row['error']}"] if row["error"] else []
    found += [
        f"{each['name']}: blocked by {', '.join(each['blocked_by'])}"
        for each in row["innocent"]
        if each["blocked_by"]
    ]
    for each in row["faults"]:
        gates = ", ".join(each["blocked_by"])
        if not is_right(each):
            found.append(f"{each['name']}: blocked by {gates}" if gates else f"{each['name']}: not blocked")
        elif not each["is_shown"]:
            found.append(f"{each['name']}: the reason does not show it")
    return found


def page(projects: Sequence[Project], rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page of all projects that were played."""
    played = [(project, rows[project.name]) for project in projects if project.name in rows]
    every = [counts(row) for _, row in played]
    total = {key: sum(n[key] for n in every) for key in counts({"innocent": [], "faults": []})}
    right = sum(not differences(project, row) for project, row in played)
    summary = (
        f"{len(played)} projects in {len({project.language for project, _ in played})} languages: `init` right in {right}; "
        f"{total['innocent blocked']} of {total['innocent']} innocent sessions blocked; {total['blocked']} of {total['faults']} faults blocked, "
        f"{total['right gate']} by the right gate, {total['shown']} with the error in the reason."
    )
    lines = [
        summary,
        "",
        "| project | version | CI runs | init writes | init | innocent blocked | faults | blocked | right gate | error shown |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (project, row), n in zip(played, every, strict=True):
        writes = ", ".join(f"{name}: `{_cell(command)}`" for name, command in row["proposed"].items())
        cells = (
            *(
                project.name,
                row["version"],
                _cell(project.ci),
                writes,
                "wrong" if differences(project, row) else "right",
            ),
            *(
                f"{n['innocent blocked']}/{n['innocent']}",
                n["faults"],
                n["blocked"],
                n["right gate"],
                n["shown"],
            ),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    wrong = [
        f"- {project.name}: {_cell(each)}"
        for project, row in played
        for each in (*(f"init: {one}" for one in differences(project, row)), *problems(row))
    ]
    return HEAD + "\n".join((*lines, "", *(("Exceptions:", "", *wrong, "") if wrong else ())))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
