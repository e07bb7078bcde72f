"""Which gates `turngate init` proposes for a project, by itself and for names that a person gives, and the text of its settings."""

import configparser
import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from glob import glob
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.text import closest_word, quote_name
from turngate.errors import UsageError
from turngate.gates.arguments import json_name, option_rows
from turngate.gates.find_checks import (
    WHOLE,
    CheckCommand,
    chosen_commands,
    find_check_commands,
    is_unready,
    repeats,
)
from turngate.gates.library import GATES
from turngate.gates.library.coverage import REPORTS
from turngate.gates.library.project_checks import LOOKED_FOR
from turngate.gates.project_files import ProjectFiles, read_project_files
from turngate.gates.project_tasks import read_json, read_toml, table
from turngate.gates.toolchains import NODE_LOCK_FILES, PROJECT_CHECKS, PYTHON_LOCK_FILES
from turngate.hosts.install.json_text import JsonStyle, format_json
from turngate.settings.json_schema import schema_address
from turngate.settings.paths import read_text

TEST_TIMEOUT_S = 600
MAX_PACKAGES = 40
_USUAL = ("tests", "lint", "types", "format")  # a build is proposed only where there is nothing else


@frozen
class ProposedGate:
    """One gate as it would stand in the settings."""

    entry: dict[str, Any]
    command: str  # what it runs in this project; "" for a gate that runs no command
    found_in: str  # the file that names the command; or what the gate holds
    quicker: str = field(default="", compare=False)  # a command of the project for a part of the tests
    others: "tuple[ProposedGate, ...]" = field(default=(), compare=False)  # in its place, if it cannot run

    @property
    def id(self) -> str:
        return str(self.entry["id"])

    @property
    def check(self) -> str:
        return self.id.partition("-")[0]


@frozen
class Proposal:
    gates: tuple[ProposedGate, ...]
    missing: tuple[CheckCommand, ...] = ()  # checks that the project names and whose program is not there


def propose_for(
    project: str, files: ProjectFiles, has_program: Callable[[str], bool], wanted: Collection[str] = ()
) -> Proposal:
    """Choose gates for a project; without tests of its own, also for each of its packages.

    `wanted`: checks that a person asks for, also if nothing shows that the project uses them.
    """
    commands = find_check_commands(files)
    root = propose(commands, has_program, wanted)
    found = {gate.check for gate in root.gates} | {each.check for each in root.missing}
    if "tests" in found:
        return root
    gates, missing = [*root.gates], [*root.missing]
    packages = {
        folder: read_project_files(os.path.join(project, folder))
        for folder in _packages(project, files, is_searched=not found)[:MAX_PACKAGES]
    }
    texts = {
        folder: "\n".join(each.texts.get(name, "") for name in _MANIFESTS)
        for folder, each in packages.items()
    }
    names = {match[1] for text in texts.values() if (match := re.search(_PACKAGE_NAME, text))}
    for folder, read in packages.items():
        # A change of what a package needs of the workspace concerns it too.
        words = re.findall(_WORD, re.sub(_PACKAGE_NAME, "", texts[folder], count=1))
        is_alone = names.isdisjoint(words)
        locks = {*PYTHON_LOCK_FILES, *NODE_LOCK_FILES} & files.names  # those of the workspace are its own
        inner = ProjectFiles(read.names | locks, read.texts)
        own = propose(
            [each for each in find_check_commands(inner) if each.check not in found], has_program, wanted
        )
        gates += [_in_folder(gate, folder, is_alone=is_alone) for gate in own.gates]
        missing += own.missing
    if not gates:
        missing += [each for each in commands if is_unready(each.program, files.names)]
    return Proposal(tuple(gates), tuple(missing))


def propose(
    commands: Sequence[CheckCommand], has_program: Callable[[str], bool], wanted: Collection[str] = ()
) -> Proposal:
    """Choose gates for the checks whose programs are there; none for what another gate checks too."""
    sure = [each for each in commands if not each.is_guess or each.check in wanted]
    first = {*_USUAL, *wanted}
    usual = _propose([each for each in sure if each.check in first], has_program)
    if usual.gates:
        return usual
    others = _propose([each for each in sure if each.check not in first], has_program)
    return Proposal(others.gates, (*usual.missing, *others.missing))


def _propose(sure: Sequence[CheckCommand], has_program: Callable[[str], bool]) -> Proposal:
    gates: list[ProposedGate] = []
    missing: list[CheckCommand] = []
    kept: list[CheckCommand] = []
    for check in dict.fromkeys(each.check for each in sure):
        chosen = chosen_commands(sure, check)
        for best in chosen:
            others = [each for each in sure if each.check == check and each not in chosen]
            others = [each for each in others if best.kind in WHOLE or each.kind == best.kind]
            there = [each for each in (best, *others) if has_program(each.program)]
            if not there:
                missing.append(best)
            elif not repeats(there[0], kept):
                kept.append(there[0])
                is_first = not any(gate.entry["id"] == check for gate in gates)
                follows = len(chosen) == 1 and check in GATES
                made = [_gate(each, is_first=is_first, follows=follows and each is best) for each in there]
                gates.append(replace(made[0], others=tuple(made[1:])))
    return Proposal(tuple(gates), tuple(missing))


def _gate(found: CheckCommand, *, is_first: bool, follows: bool) -> ProposedGate:
    """`follows`: the gate, such as `tests`, finds its command again at every run, so it follows the project."""
    name = found.check if is_first else f"{found.check}-{found.kind}"
    what = {"gate": found.check} if follows else {"command": found.command}
    limit = {"timeout": TEST_TIMEOUT_S} if found.check in ("tests", "build") else {}
    entry = {"type": "gate", "id": name, **what, **limit}
    return ProposedGate(entry, found.command, found.found_in, found.quicker)


# Packages of a workspace

_MANIFESTS = ("package.json", "pyproject.toml", "go.mod", "Cargo.toml", "*.sln*", "pom.xml", "composer.json")
_PACKAGE_NAME = r"""(?m)^[\s{,]*["']?name["']?\s*[:=]\s*["']([^"']+)["']"""
_WORD = r"[\w@/.-]+"
_NO_PACKAGE = r"^/|(?:^|/)(?:\.[^/]*|node_modules|vendor|third_party|examples?|docs?|fixtures?|testdata|tests?|templates?|venv)(?:/|$)"


def _packages(project: str, files: ProjectFiles, *, is_searched: bool) -> list[str]:
    """Return the folders of a workspace; `is_searched`: without one, those that look like projects."""
    patterns = _workspace_patterns(project, files)
    if patterns:
        folders = _matches(project, (each for each in patterns if each[0] != "!"))
        left_out = _matches(project, (each[1:] for each in patterns if each[0] == "!"))
        found = sorted(folders - left_out - {"."})
    elif is_searched:
        depths = ("*/", "*/*/", "*/*/*/")
        found = sorted(
            os.path.dirname(path)
            for depth in depths
            for name in _MANIFESTS
            for path in glob(depth + name, root_dir=project)
        )
        found = [
            each for each in dict.fromkeys(found) if not any(each.startswith(f"{other}/") for other in found)
        ]
    else:
        return []
    return [
        each
        for each in found
        if not re.search(_NO_PACKAGE, each) and os.path.isdir(os.path.join(project, each))
    ]


def _matches(project: str, patterns: Iterable[str]) -> set[str]:
    return {path.rstrip("/") for each in patterns for path in glob(each, root_dir=project, recursive=True)}


def _workspace_patterns(project: str, files: ProjectFiles) -> list[str]:
    named = read_json(files.texts.get("package.json", "")).get("workspaces") or []
    named = named.get("packages", []) if isinstance(named, dict) else named
    pyproject = read_toml(files.texts.get("pyproject.toml", ""))
    uv = table(pyproject, "tool", "uv", "workspace").get("members") or []
    pnpm = read_text(os.path.join(project, "pnpm-workspace.yaml"))
    block = re.search(r"(?m)^packages:\s*\n((?:[ \t]*(?:-.*|#.*)?\n?)*)", pnpm)
    lines = re.findall(r"-\s*['\"]?([^'\"\n#]+?)['\"]?\s*(?:#.*)?$", block[1], re.MULTILINE) if block else []
    return [
        each.removeprefix("./")
        for each in (*named, *uv, *lines)
        if isinstance(each, str) and each.strip("./")
    ]


def _in_folder(gate: ProposedGate, folder: str, *, is_alone: bool) -> ProposedGate:
    command = f"cd {shlex.quote(folder)} && {gate.command}"
    limit = {key: gate.entry[key] for key in ("timeout",) if key in gate.entry}
    name = f"{gate.id}-{folder.replace('/', '-')}"
    entry = {
        "type": "gate",
        "id": name,
        "command": command,
        **({"options": {"ifChanged": [f"{folder}/**"]}} if is_alone else {}),
        **limit,
    }
    others = tuple(_in_folder(each, folder, is_alone=is_alone) for each in gate.others)
    quicker = gate.quicker and f"cd {shlex.quote(folder)} && {gate.quicker}"
    return ProposedGate(entry, command, os.path.join(folder, gate.found_in), quicker, others)


# Gates that a person names with `turngate init --with`


@frozen
class Place:
    """What is known of a project and its machine."""

    files: ProjectFiles
    has_program: Callable[[str], bool]
    has_repository: bool
    has_judge: bool


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


def propose_named(
    names: Sequence[str], place: Place, proposal: Proposal
) -> tuple[list[ProposedGate], list[str]]:
    """Return the gates of these names that `proposal`, which has those of the project's checks, lacks; and notes.

    A note is a sentence about a gate that is left out, or needs something else.
    """
    gates, notes = list[ProposedGate](), list[str]()
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
    return gates, notes


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
        places += [name for name in sorted(names) if re.fullmatch(r"tests?\.\w+", name)]
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


# The text of the settings


def settings_text(gates: Iterable[ProposedGate], style: JsonStyle | None = None) -> str:
    """Return the text of a settings file with these gates, as prettier and biome print it."""
    hooks = [gate.entry for gate in gates]
    settings = {"$schema": schema_address("settings"), "hooks": {"Stop": [{"hooks": hooks}]}}
    return f"{format_json(settings, style or JsonStyle())}\n"


_ENDINGS = "json yaml yml js cjs mjs ts".split()
_PRETTIER = (
    ".prettierrc",
    *(f"{name}.{end}" for name in (".prettierrc", "prettier.config") for end in _ENDINGS),
)
# Files of formatters, with patterns for tabs, the width of an indentation, and that of a line.
_FORMATTERS = (
    (
        ("biome.json", "biome.jsonc"),
        r"\A(?![\s\S]*\"indentStyle\":\s*\"space\")",
        r"\"indentWidth\":\s*(\d+)",
        r"\"lineWidth\":\s*(\d+)",
    ),
    (_PRETTIER, r"useTabs['\"]?:\s*true", r"tabWidth['\"]?:\s*(\d+)", r"printWidth['\"]?:\s*(\d+)"),
)


def json_style(project: str) -> JsonStyle:
    """Return what the project's formatter wants: biome, prettier, or what .editorconfig says."""
    for names, tabs, indent, width in _FORMATTERS:
        for name in names:
            if text := read_text(os.path.join(project, name)):
                spaces = _number(indent, text, 2)
                return JsonStyle(
                    "\t" if re.search(tabs, text) else " " * spaces, _number(width, text, 80), spaces
                )
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    with contextlib.suppress(configparser.Error):
        parser.read_string(f"[top]\n{read_text(os.path.join(project, '.editorconfig'))}")
    options: dict[str, str] = {}
    for section in parser.sections():
        options |= parser[section] if section == "*" or "json" in section else {}
    spaces = _number(r"(\d+)", options.get("indent_size", ""), 2)
    line = _number(r"(\d+)", options.get("max_line_length", ""), 80)
    return JsonStyle("\t" if options.get("indent_style") == "tab" else " " * spaces, line, spaces)


def _number(pattern: str, text: str, usual: int) -> int:
    found = re.search(pattern, text)
    return int(found[1][:3]) if found else usual
