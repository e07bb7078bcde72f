"""`make projects`: Turngate in real projects, with sessions that have to pass and faults that have to be blocked.

Projects that are in the results already are left out, unless --only names them. It exits with 1 if anything is wrong.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.projects.play import play
from bench.projects.results import counts, differences, line, page
from bench.projects.table import TABLES, Project, read_projects

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "projects-results.md"


def main() -> int:
    options = parse_arguments()
    projects = read_projects(options.tables)
    rows = read_results(options.results)
    for project in chosen(projects, options):
        if project.name in rows and not options.only:
            continue
        row = play(project, options.sources, options.work)
        rows = {**read_results(options.results), project.name: asdict(row)}  # others may have added rows
        options.results.parent.mkdir(parents=True, exist_ok=True)
        options.results.write_text(json.dumps(rows, indent=1))
        print(line(project, rows[project.name]), flush=True)
    if not options.no_page:
        PAGE.write_text(page(projects, rows))
    return (
        0 if all(is_good(project, rows[project.name]) for project in projects if project.name in rows) else 1
    )


def read_results(file: Path) -> dict[str, Any]:
    rows: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return rows


def chosen(projects: list[Project], options: argparse.Namespace) -> list[Project]:
    names = options.only.split(",") if options.only else None
    return [
        project
        for project in projects
        if (names is None or project.name in names) and options.language in (None, project.language)
    ]


def is_good(project: Project, row: dict[str, object]) -> bool:
    n = counts(row)
    return not differences(project, row) and not n["innocent blocked"] and n["shown"] == n["faults"] > 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.projects", description=__doc__)
    parser.add_argument(
        "--only", metavar="NAMES", help="only these projects, with commas, also if they have results"
    )
    parser.add_argument("--language", help="only projects in this language")
    parser.add_argument(
        "--sources",
        type=Path,
        default=Path(".projects/sources"),
        help="a folder with a clone owner+name of each project",
    )
    parser.add_argument(
        "--work", type=Path, default=Path(".projects/work"), help="where projects are installed"
    )
    parser.add_argument(
        "--results", type=Path, default=Path(".projects/results.json"), help="is kept between runs"
    )
    parser.add_argument("--tables", type=Path, default=TABLES, help="a folder with other tables")
    parser.add_argument("--no-page", action="store_true", help="leave docs/projects-results.md as it is")
    options = parser.parse_args()
    options.sources, options.work = options.sources.resolve(), options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    sys.exit(main())
