"""The gates that a person names with `turngate init --with`: their options for a project, or what to write instead."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.cli.commands.init.proposal import Proposal, ProposedGate
from turngate.core.text import closest_word, quote_name
from turngate.errors import UsageError
from turngate.gates.arguments import json_name, option_rows
from turngate.gates.find_checks import chosen_commands, find_check_commands
from turngate.gates.library import GATES
from turngate.gates.library.coverage import REPORTS
from turngate.gates.library.project_checks import LOOKED_FOR
from turngate.gates.project_files import ProjectFiles
from turngate.gates.toolchains import PROJECT_CHECKS


@frozen
class Place:
    """What is known of a project and its machine."""

    files: ProjectFiles
    has_program: Callable[[str], bool]
    has_repository: bool
    has_judge: bool


@frozen
class NamedGates:
    gates: tuple[ProposedGate, ...]
    notes: tuple[str, ...]  # a sentence about each that is left out, or needs something else


def read_names(given: Iterable[str]) -> list[str]:
    """Return the names in `--with a,b --with c`. Raises UsageError for one that is not a gate."""
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    for name in names:
        if name not in GATES:
            meant = closest_word(name, tuple(GATES))
            hint = f"did you mean {quote_name(meant)}? The" if meant else "the"
            known = ", ".join(sorted(GATES))
            raise UsageError(f"--with: there is no gate {quote_name(name)}; {hint} gates are {known}")
    return list(dict.fromkeys(names))


def propose_named(names: Sequence[str], place: Place, proposal: Proposal) -> NamedGates:
    """Return the gates of these names that `proposal`, which has those of the project's checks, lacks."""
    gates, notes = [], []
    found = {gate.check for gate in proposal.gates} | {each.check for each in proposal.missing}
    for name in names:
        if name in PROJECT_CHECKS and name in found:
            continue
        if name in PROJECT_CHECKS:
            others = chosen_commands(find_check_commands(place.files), name)
            by_hand = f"looked for {LOOKED_FOR[name]}; name the command: {_entry(name, command='COMMAND')}"
            reason = f"another gate runs what `{others[0].command}` runs" if others else by_hand
            notes.append(f"{name} is left out: {reason}")
        elif why := _why_left_out(name, place):
            notes.append(f"{name} is left out: {why}")
        else:
            options = _guess_options(name, place)
            entry = {"type": "gate", "id": name, "gate": name, **({"options": options} if options else {})}
            gates.append(ProposedGate(entry, "", GATES[name].summary))
            notes += [f"{name}: {note}"] if (note := _note(name, place)) else []
    return NamedGates(tuple(gates), tuple(notes))


_ALSO_NEEDED = {"budget": "minutes", "judge": "prompt", "notify": "webhook"}
_COMPARE_WITH_GIT = ("clean", "coverage", "dependencies", "review", "size", "untouched")


def _why_left_out(name: str, place: Place) -> str | None:
    """Return what is missing, and what to do or to write."""
    gate, options = GATES[name], _guess_options(name, place)
    if gate.command == "required":
        return f"name its command: {_entry(name, command='COMMAND')}"
    rows = (row for row in option_rows(gate) if row.required or row.name == _ALSO_NEEDED.get(name))
    if missing := [row for row in rows if json_name(row) not in options]:
        kinds: dict[str, Callable[[str], Any]] = {"texts": lambda word: [word], "number": lambda _: 60}
        values = {json_name(row): kinds.get(row.kind, str)(row.metavar.rstrip("…")) for row in missing}
        return f"its options cannot be guessed; write {_entry(name, options=values)}"
    if name in _COMPARE_WITH_GIT and not place.has_repository:
        return f"it compares with git; run `git init`, and then `turngate init --with {name}`"
    if name == "checks" and not place.has_program("gh"):
        return f"it needs gh, the command line of GitHub; install it, and run `turngate init --with {name}`"
    if gate.asks_model and not place.has_judge:
        return f"it asks a model, and none is configured; write {_entry(name, options={'model': 'PROVIDER:NAME'})}"
    return None


def _entry(name: str, **values: Any) -> str:
    gate = {} if name == "command" else {"gate": name}
    return json.dumps({"type": "gate", "id": name, **gate, **values})


_TEST_FOLDERS = ("tests", "test", "spec", "__tests__", "testing")
_TEST_FILES = {
    "package.json": ("**/*.test.*", "**/*.spec.*"),
    "go.mod": ("**/*_test.go",),
    "Cargo.toml": ("**/*.rs",),  # which hold the tests of their own code
    "Makefile.PL": ("t/**",),
}


def _guess_options(name: str, place: Place) -> dict[str, Any]:
    """Return options that fit the project. A number is the gate's default, so that it can be seen and changed."""
    names = place.files.names
    if name == "untouched":
        places = [f"{folder}/**" for folder in _TEST_FOLDERS if folder in names]
        places = places or [name for name in sorted(names) if re.fullmatch(r"tests?\.\w+", name)]
        globs = places + [glob for sign, globs in _TEST_FILES.items() if sign in names for glob in globs]
        if not globs and {"pyproject.toml", "setup.py", "setup.cfg"} & names:
            globs = ["**/test_*.py", "**/*_test.py"]
        return {"globs": globs, "noWeakening": True} if globs else {}
    if name == "touched":
        logs = [
            each for each in sorted(names) if re.fullmatch(r"(?i)(?:changelog|changes|history)\.\w+", each)
        ]
        sources = [f"{folder}/**" for folder in ("src", "lib") if folder in names]
        return {"if": sources, "then": logs[:1]} if logs and sources else {}
    if name in ("coverage", "size"):
        return {json_name(row): row.default for row in GATES[name].options if row.kind == "number"}
    return {}


# How tests write a report of coverage, by a word of their command.
_WITH_COVERAGE = {
    "pytest": "pytest --cov --cov-report=xml",
    "vitest": "vitest run --coverage --coverage.reporter=lcov",
    "jest": "jest --coverage",
    "mocha": "c8 --reporter=lcov mocha",
    "node": "c8 --reporter=lcov node --test",
    "cargo": "cargo llvm-cov --lcov --output-path lcov.info",
}


def _note(name: str, place: Place) -> str | None:
    """Return what else the gate needs, or could use."""
    if name == "secrets" and not place.has_program("gitleaks"):
        return "it knows the usual formats of keys; if gitleaks is installed, it runs that too"
    if name != "coverage" or any(report in place.files.names for report in REPORTS):
        return None
    tests = [each for each in find_check_commands(place.files) if each.check == "tests"]
    words = re.findall(r"[\w-]+", " ".join(step for each in tests for step in each.steps))
    command = next((_WITH_COVERAGE[word] for word in words if word in _WITH_COVERAGE), None)
    how = f", as `{command}` does" if command else ""
    return f"let the tests write {' or '.join(REPORTS[:2])}{how}; without a report it cannot run"
