"""Knows failures that a gate may look for, and the files that plant them in a copy of the project.

To add one: a function that returns the failure for a gate or None, and a line in `_KINDS`.
"""

import configparser
import contextlib
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from turngate._frozen import frozen
from turngate.doctor.proof.gate_text import folder_at, read_text
from turngate.doctor.proof.git_in_copy import MARK, git
from turngate.doctor.proof.linted_files import CannotPlantError, linted_file
from turngate.doctor.proof.sample_transcript import conversation

MAX_BYTES = 1024 * 1024  # of a file that is changed
SYNTAX_ERROR = "a syntax error"


@frozen
class Gate:
    """What a gate is made of, in the copy. `text` is its command, its scripts and the recipes that they start."""

    text: str
    project: str
    transcript: str  # the path of the conversation that it is given
    has_repository: bool = True


@frozen
class PlantedFailure:
    """Files whose content makes a gate block. `repairs` are those without which a gate should pass before."""

    what: str  # "a failing test"
    where: str  # a path, for the user
    files: Mapping[str, bytes]
    repairs: Mapping[str, bytes] | None = None
    commits: bool = False  # before, everything is committed
    passing: Mapping[str, bytes] = field(default_factory=dict)  # files with which the gate passes
    answer: str = "Done."  # of the agent, with the failure and without it
    passing_answer: str = "Done."
    is_limit: bool = False  # a gate may also end the turn with it
    as_is: Mapping[str, bytes] | None = None  # files for a run in which the gate has to find what it checks
    doubt: str | None = None  # why a gate that allows it may still be a good one


def failures_for(gate: Gate) -> tuple[list[PlantedFailure], list[str]]:
    """Return the failures that this gate seems to look for, and why others cannot be planted."""
    return _failures(gate, _KINDS)


def command_failures(gate: Gate) -> tuple[list[PlantedFailure], list[str]]:
    """Return the failures of a command that decides by its exit code: tests, linters, compilers."""
    return _failures(gate, _CHECKS)


def _failures(gate: Gate, kinds: "Sequence[_Kind]") -> tuple[list[PlantedFailure], list[str]]:
    failures: list[PlantedFailure] = []
    reasons: list[str] = []
    for kind in kinds:
        try:
            failure = kind(gate)
        except CannotPlantError as error:
            reasons.append(str(error))
        else:
            failures += [failure] if failure else []
    return failures, reasons


# Tests


_PYTEST = re.compile(r"(?<![\w.-])(?:pytest|py\.test)(?![\w/=-]|\.\w)([^\n|;&>)}'\"]*)")
_UNITTEST = re.compile(r"-m\s+unittest\b|manage\.py\s+test\b")
_SELECTS = re.compile(r"(?:^|\s)(-k|-m|--lf|--last-failed|--deselect|--ignore)(?=[\s=]|$)")
_FAILING_PYTHON = f"""\
import unittest


class TurngatePlanted(unittest.TestCase):
    def test_{MARK.replace(" ", "_")}(self):
        self.fail("{MARK}")
"""


def _failing_python_test(gate: Gate) -> PlantedFailure | None:
    used = next(_uses(_PYTEST, gate.text), None) or _UNITTEST.search(gate.text)
    if used is None:
        return None
    folder = folder_at(gate.text, used.start(), gate.project)
    is_pytest = used.re is _PYTEST
    name = (
        _pytest_place(used[1], os.path.join(gate.project, folder))
        if is_pytest
        else "test_turngate_planted.py"
    )
    before = read_text(os.path.join(gate.project, folder, name))
    content = f"{before}\n\n{_FAILING_PYTHON}" if before else _FAILING_PYTHON
    return _failing_test(gate, os.path.join(folder, name), content)


def _uses(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield where a program is run, and not where a script asks whether it is installed."""
    for found in pattern.finditer(text):
        if not re.search(
            r"(?:\b(?:which|type|hash)|-v)\s+$", text[max(0, found.start() - 20) : found.start()]
        ):
            yield found


def _failing_test(gate: Gate, path: str, content: str) -> PlantedFailure:
    return PlantedFailure("a failing test", path, {os.path.join(gate.project, path): _bytes(content)})


def _pytest_place(arguments: str, project: str) -> str:
    """Return the file for a failing test, where this pytest collects it."""
    if selected := _SELECTS.search(arguments):
        raise CannotPlantError(f"its pytest runs only some tests ({selected[1]})")
    options = _pytest_options(project)
    words = _words(arguments)
    named = [word.partition("::")[0] for word in words if not word.startswith("-")]
    folders = [*named, *_as_list(options.get("testpaths")), "tests", "test", "."]
    for name in folders:
        path = os.path.join(project, name)
        if os.path.isfile(path) and name.endswith(".py"):
            return os.path.normpath(name)
        if os.path.isdir(path):
            pattern = next(iter(_as_list(options.get("python_files"))), "test_*.py")
            return os.path.normpath(os.path.join(name, pattern.replace("*", "turngate_planted")))
    raise AssertionError("the project's folder exists")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _pytest_options(project: str) -> Mapping[str, Any]:
    """Return the options of pytest in the first of its files that has a section of them."""
    with contextlib.suppress(tomllib.TOMLDecodeError, AttributeError, KeyError):
        tools = tomllib.loads(read_text(os.path.join(project, "pyproject.toml")))["tool"]
        return dict(tools["pytest"]["ini_options"])
    for name, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        with contextlib.suppress(configparser.Error):
            parser.read_string(read_text(os.path.join(project, name)))
        if parser.has_section(section):
            return dict(parser[section])
    return {}


def _as_list(value: object) -> list[str]:
    return value.split() if isinstance(value, str) else list(value) if isinstance(value, list) else []


_NODE_TESTS = re.compile(r"\b(?:jest|vitest|mocha|ava)\b|\bnode\s+(?:-\S+\s+)*--test\b")


def _failing_node_test(gate: Gate) -> PlantedFailure | None:
    """A file that throws fails in every test runner of Node."""
    used = next(_uses(_NODE_TESTS, gate.text), None)
    if used is None:
        return None
    folder = folder_at(gate.text, used.start(), gate.project)
    there = [
        name
        for name in ("test", "tests", "__tests__", "src")
        if os.path.isdir(os.path.join(gate.project, folder, name))
    ]
    name = there[0] if there else "test" if "mocha" in used[0] else ""
    return _failing_test(
        gate, os.path.join(folder, name, "turngate-planted.test.js"), f'throw new Error("{MARK}");\n'
    )


def _failing_rust_test(gate: Gate) -> PlantedFailure | None:
    used = _CARGO_TEST.search(gate.text)
    folder = folder_at(gate.text, used.start(), gate.project) if used else ""
    if used is None or "[package]" not in read_text(os.path.join(gate.project, folder, "Cargo.toml")):
        return None
    content = f'#[test]\nfn turngate_planted() {{\n    panic!("{MARK}");\n}}\n'
    return _failing_test(gate, os.path.join(folder, "tests", "turngate_planted.rs"), content)


def _failing_go_test(gate: Gate) -> PlantedFailure | None:
    """A test file of another package does not compile, in a folder with or without other files."""
    used = _GO_TEST.search(gate.text)
    if used is None:
        return None
    path = os.path.join(
        folder_at(gate.text, used.start(), gate.project), "turngate_planted", "planted_test.go"
    )
    content = (
        f'package planted\n\nimport "testing"\n\nfunc TestPlanted(t *testing.T) {{ t.Fatal("{MARK}") }}\n'
    )
    return _failing_test(gate, path, content)


_GO_TEST = re.compile(r"\bgo\s+test\b")
_CARGO_TEST = re.compile(r"\bcargo\s+(?:[-+]\S+\s+)*(?:test|nextest)\b")


# Linters

_PYTHON_LINTERS = re.compile(
    r"\b(ruff|flake8|pyflakes|pylint|mypy|pyright|compileall)\b(?:\s+check\b)?([^\n|;&>)}'\"]*)"
)


def _syntax_error(gate: Gate) -> PlantedFailure | None:
    used = next(_uses(_PYTHON_LINTERS, gate.text), None)
    if used is None:
        return None
    folder = folder_at(gate.text, used.start(), gate.project)
    base = os.path.join(gate.project, folder)
    path = os.path.join(folder, linted_file(used[1], _words(used[2]), base))
    content = f"{read_text(os.path.join(gate.project, path))}\n# {MARK}\ndef (:\n"
    return PlantedFailure(SYNTAX_ERROR, path, {os.path.join(gate.project, path): _bytes(content)})


_COMPILERS = (
    (re.compile(r"\bcargo\s+(?:[-+]\S+\s+)*(?:check|clippy|build)\b"), "src/bin/turngate_planted.rs"),
    (re.compile(r"\bgo\s+(?:vet|build)\b|\bgolangci-lint\b"), "turngate_planted/planted.go"),
)
_NODE_LINTERS = re.compile(r"\b(?:eslint|biome|oxlint|tsc)\b")
_NODE_FOLDERS = ("src", "app", "lib", ".")
_NO_LANGUAGE = f"// {MARK}\n)(\n".encode()  # nothing that a compiler accepts


def _error_for_compiler(gate: Gate) -> PlantedFailure | None:
    for pattern, name in _COMPILERS:
        if used := next(_uses(pattern, gate.text), None):
            folder = folder_at(gate.text, used.start(), gate.project)
            cargo = read_text(os.path.join(gate.project, folder, "Cargo.toml"))
            path = os.path.join(folder, name)
            if "[package]" in cargo or not name.endswith(".rs"):
                return PlantedFailure(SYNTAX_ERROR, path, {os.path.join(gate.project, path): _NO_LANGUAGE})
    return None


def _error_for_node_linter(gate: Gate) -> PlantedFailure | None:
    """Which folders and extensions it reads is not known, so it gets a file in each of the usual ones."""
    used = next(_uses(_NODE_LINTERS, gate.text), None)
    if used is None:
        return None
    base = os.path.join(gate.project, folder_at(gate.text, used.start(), gate.project))
    folders = [name for name in _NODE_FOLDERS if os.path.isdir(os.path.join(base, name))]
    names = [os.path.join(name, f"turngate-planted.{end}") for name in folders for end in ("js", "ts")]
    files = {os.path.normpath(os.path.join(base, name)): _NO_LANGUAGE for name in names}
    return PlantedFailure(SYNTAX_ERROR, os.path.normpath(names[0]), files)


# Git

_GIT = re.compile(r"(?<![\w.-])git[\s\"',]")
_QUESTIONS = frozenset({"status", "diff", "ls-files"})
_MAX_GIT_CHARS = 500  # of a command


def _asks_git(text: str) -> bool:
    """Return whether a text has `git status` and the like, in a shell command or as a list of arguments."""
    for found in _GIT.finditer(text):
        words = re.split(r"[\s\"',\[\]()]+", text[found.end() : found.end() + _MAX_GIT_CHARS])
        command = next((word for word in words if word and not re.search(r"^-|[/=$]", word)), "")
        if command in _QUESTIONS:
            return True
    return False


def _dirty_tree(gate: Gate) -> PlantedFailure | None:
    return dirty_tree(gate) if _asks_git(gate.text) else None


def dirty_tree(gate: Gate) -> PlantedFailure:
    if not gate.has_repository:
        raise CannotPlantError("it asks git, and there is no repository in the copy")
    new = "turngate-planted.txt"
    files = {os.path.join(gate.project, new): f"{MARK}\n".encode()}
    tracked = _tracked_text(gate.project)
    if tracked:
        path = os.path.join(gate.project, tracked)
        files[path] = read_text(path).encode("utf-8", "surrogateescape") + b"\n"
    where = f"{tracked} and {new}" if tracked else new
    return PlantedFailure("a dirty tree", where, files, commits=True)


def _tracked_text(project: str) -> str | None:
    """Return a tracked file to which a line can be added; one of prose, if there is one."""
    names = [name for name in git(project, "ls-files", "-z").split("\0") if name]
    candidates = [name for name in names if _is_plain_file(os.path.join(project, name))]
    prose = [name for name in candidates if name.endswith((".md", ".txt", ".rst"))]
    return next(iter([*prose, *candidates]), None)


def _is_plain_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) < MAX_BYTES


# Checklists

_OPEN_ITEM = re.compile(r"\\?\[(?: |\\ |\\s|\[ \]|\[\[:space:\]\])\\?\]")
_MARKDOWN = re.compile(r"[\w./-]*[\w-]\.md\b")
_TRANSCRIPT = re.compile(r"TRANSCRIPT_PATH|transcript_path")


def _open_checklist_item(gate: Gate) -> PlantedFailure | None:
    if not _OPEN_ITEM.search(gate.text):
        return None
    for name in _MARKDOWN.findall(gate.text):
        path = os.path.normpath(os.path.join(gate.project, name.lstrip("/")))
        if path.startswith(gate.project + os.sep) and os.path.isdir(os.path.dirname(path)):
            text = read_text(path)
            done = re.sub(r"(?m)^(\s*[-*+] )\[ \]", r"\1[x]", text)
            item = f"{done.rstrip()}\n\n- [ ] {MARK}\n".lstrip()
            relative = os.path.relpath(path, gate.project)
            repairs = {path: _bytes(done)} if done != text else None
            return PlantedFailure("an open checklist item", relative, {path: _bytes(item)}, repairs)
    if not _TRANSCRIPT.search(gate.text):
        return None
    content = conversation(f"The plan:\n- [ ] {MARK}")
    return PlantedFailure("an open checklist item", "the conversation", {gate.transcript: content})


# Conversations


def _idle_session(gate: Gate) -> PlantedFailure | None:
    """A gate that looks in the conversation for a test run, or for any tool."""
    if not _TRANSCRIPT.search(gate.text):
        return None
    if re.search(r"(?i)(?<!la)test", gate.text):
        what = "a session without a test run"
    elif re.search(r"tool_(?:name|use)", gate.text):
        what = "a session without a tool call"
    else:
        return None
    content = conversation("Done.", ran_tests=False)
    return PlantedFailure(what, "the conversation", {gate.transcript: content})


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


_Kind = Callable[[Gate], PlantedFailure | None]
_CHECKS: tuple[_Kind, ...] = (
    _failing_python_test,
    _failing_node_test,
    _failing_rust_test,
    _failing_go_test,
    _syntax_error,
    _error_for_compiler,
    _error_for_node_linter,
)
_KINDS: tuple[_Kind, ...] = (
    *_CHECKS,
    _open_checklist_item,
    _idle_session,
    _dirty_tree,
)
