"""The table of projects: `tables/*.toml`, one file for each language."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.projects.languages import LANGUAGES, Language

TABLES = Path(__file__).with_name("tables")


@dataclass(frozen=True, kw_only=True)
class Project:
    name: str
    language: str
    source: str  # owner/name, which is the folder owner+name of --sources
    commit: str
    version: str = ""
    install: str = ""  # a shell command in the project's folder
    ci: str  # what its CI runs, as a person has read it
    gates: dict[str, str] = field(default_factory=dict)  # what `init` should write for that: gate → command
    main: str = ""  # the source file for most faults, if not that of the broken function
    # by kind: {file, text, shows}; instead of the text, `old` and `new` replace a part
    faults: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def syntax(self) -> Language:
        return LANGUAGES[self.language]


def read_projects(folder: Path = TABLES) -> list[Project]:
    """Return all projects, by language."""
    found = []
    for file in sorted(folder.glob("*.toml")):
        rows: list[dict[str, Any]] = tomllib.loads(file.read_text())["project"]
        found += [Project(**{"language": file.stem, **row}) for row in rows]
    return found
