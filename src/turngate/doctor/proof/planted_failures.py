"""What a gate runs, the failures that it may look for, and the files that plant them in a copy of the project.

Which tool has to find which failure is a column of `gates/toolchains.py`. To add another failure: a function that returns it
for a gate or None, and a line in `_KINDS`.
"""

import configparser
import contextlib
import glob
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.doctor.proof.project_copy import git_output
from turngate.doctor.proof.samples import conversation
from turngate.gates.project_files import MAKEFILES
from turngate.gates.project_tasks import task_runners
from turngate.gates.toolchains import TOOLS, Tool
from turngate.project.files import LOCAL, Files
from turngate.settings.paths import read_text

MAX_RECIPES = 50  # calls of make and npm in one gate
_SEPARATORS = r"[\s\"',\[\]()]+"  # also between the arguments in a Python or Node script
_COMMENT_LINES = re.compile(r"^[ \t]*#.*\n?", re.MULTILINE)
_CALL = re.compile(
    rf"(?<![\w./-])g?make(?![\w.-])(?P<arguments>[^\n;&|>]*)"
    rf"|\b(?:npm|pnpm|yarn|bun){_SEPARATORS}(?:run{_SEPARATORS})?(?P<script>[\w:.-]+)"
)
_RECIPE_BESIDE = re.compile(r"^(?![\t#])([^:=#\n]+:(?![:=])[^;=\n]*);", re.MULTILINE)
_MADE_BEFORE = re.compile(r"make\b[^-]*")  # how a task of make names what it needs


def gate_text(command: str, scripts: Iterable[str], project: str, files: Files = LOCAL) -> str:
    """Return the command with the content of its scripts and of the tasks that they start."""
    read = (read_text(path, files) for path in scripts)
    text = _COMMENT_LINES.sub("", "\n".join((command, *read)))
    return "\n".join((text, *_tasks(text, project, files)))


_CD = re.compile(r"(?:^|[;&|({\n]|\bthen\b|\bdo\b)[ \t]*cd[ \t]+(\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|]+)")
_PROJECT = re.compile(r"\$\{?(?:CLAUDE|MUX|TURNGATE)_PROJECT_DIR(?::?-[^}]*)?\}?/?")


def folder_at(text: str, position: int, project: str, files: Files = LOCAL) -> str:
    """Return the folder in which this part of a text runs, as far as it is known: relative, "" for the project."""
    folder = ""
    for found in _CD.finditer(text, 0, position):
        rest = text[found.end() : position]
        # `"$CLAUDE_PROJECT_DIR"/app` is two words for the expression above.
        word = found[1].strip("\"'") + (re.match(r"[^\s;&|]*", rest) or [""])[0]
        is_anchored = bool(_PROJECT.match(word))
        name = os.path.normpath(os.path.join("" if is_anchored else folder, _PROJECT.sub("", word, count=1)))
        is_inside = not name.startswith(("..", "/")) and files.isdir(os.path.join(project, name))
        folder = name if is_inside and name != "." else ""
    return folder


def _tasks(text: str, project: str, files: Files) -> Iterator[str]:
    """Yield the lines that calls of make or npm run, after a line that leads to their folder if another one was left."""
    for call in islice(_CALL.finditer(text), MAX_RECIPES):
        folder, arguments = folder_at(text, call.start(), project, files), call["arguments"]
        names = ("package.json",) if arguments is None else MAKEFILES
        found = {name: read_text(os.path.join(project, folder, name), files) for name in names}
        texts = {name: _RECIPE_BESIDE.sub(r"\1\n\t", read) for name, read in found.items() if read}
        runner = next(task_runners(texts, "npm"), None)
        if runner is None or re.search(r"\s-C\b|--directory", arguments or ""):
            continue
        started = [call["script"]]
        if arguments is not None:
            words = re.split(_SEPARATORS, arguments)
            targets = [word for word in words if re.fullmatch(r"[\w.][\w./-]*", word) and word != "."]
            started = targets or [*runner.tasks][:1]
        known = (name for name in started if name in runner.tasks)
        parts = dict.fromkeys(part for name in known for part in runner.parts(name))
        lines = [line for part in parts for line in runner.tasks[part].split("\n") if line]
        lines = [line for line in lines if arguments is None or not _MADE_BEFORE.fullmatch(line)]
        if lines and (folder or _CD.search(text)):
            yield f"cd $TURNGATE_PROJECT_DIR/{folder}"
        yield from lines


MAX_BYTES = 1024 * 1024  # of a file that is changed
MARK = "planted by turngate doctor"


class CannotPlantError(Exception):
    """Raised for a failure that the gate seems to look for and that cannot be planted; the text says why."""


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


def failures_for(gate: Gate, *, of_tools: bool = False) -> tuple[list[PlantedFailure], list[str]]:
    """Return the failures that this gate seems to look for, and why others cannot be planted.

    `of_tools`: only those of a command that decides by its exit code: tests, linters, compilers.
    """
    failures: list[PlantedFailure] = []
    reasons: list[str] = []
    for kind in _TOOL_FAILURES if of_tools else (*_TOOL_FAILURES, *_KINDS):
        try:
            failure = _tool_failure(gate, kind) if isinstance(kind, str) else kind(gate)
        except CannotPlantError as error:
            reasons.append(str(error))
        else:
            failures += [failure] if failure else []
    return failures, reasons


# Tools


@frozen
class _Use:
    """Where a gate runs a tool: in this folder, relative to the project, with these arguments."""

    tool: Tool
    project: str
    folder: str
    words: list[str]

    @property
    def base(self) -> str:
        return os.path.join(self.project, self.folder)

    def failure(self, what: str, *files: tuple[str, str]) -> PlantedFailure:
        """Return the failure of files, whose paths are relative to the folder, with their contents."""
        contents = {os.path.normpath(os.path.join(self.folder, name)): encode(text) for name, text in files}
        in_project = {os.path.join(self.project, path): data for path, data in contents.items()}
        return PlantedFailure(what, next(iter(contents)), in_project)


def _pattern(tool: Tool, subcommands: str) -> re.Pattern[str]:
    """Return a pattern for the tool and its arguments. It does not match in `pytest.ini`, `--pytest=` or `eslint-plugin`."""
    use = tool.use or rf"(?<![\w.-]){re.escape(tool.name)}(?![\w/=-]|\.(?!c?js\b)\w)"
    subcommand = rf"\s+(?:[-+]\S+\s+)*(?:{subcommands})\b" if subcommands else ""
    return re.compile(rf"{use}{subcommand}([^\n|;&>)}}'\"]*)")


_USES = [(kind, tool, _pattern(tool, words)) for tool in TOOLS for words, kind in tool.plants.items()]
_ASKS_FOR_PROGRAM = re.compile(r"(?:\b(?:which|type|hash)|-v)\s+$")


def _find_use(gate: Gate, kind: str) -> _Use | None:
    """Return the first use of a tool that has to find this kind of failure, not where a script asks whether it is installed."""
    uses = [
        (found.start(), tool.name, tool, found)
        for each, tool, pattern in _USES
        if each == kind
        for found in pattern.finditer(gate.text)
        if not _ASKS_FOR_PROGRAM.search(gate.text[max(0, found.start() - 20) : found.start()])
    ]
    if not uses:
        return None
    start, _, tool, found = min(uses, key=lambda use: use[:2])
    try:
        words = shlex.split(found[1])
    except ValueError:
        words = found[1].split()
    return _Use(tool, gate.project, folder_at(gate.text, start, gate.project), words)


def _tool_failure(gate: Gate, kind: str) -> PlantedFailure | None:
    use = _find_use(gate, kind)
    if use is None or (kind.startswith("rust") and "[package]" not in read_text(f"{use.base}/Cargo.toml")):
        return None
    match kind:
        case "python test":
            name = _pytest_file(use) if use.tool.python else "test_turngate_planted.py"
            before = read_text(os.path.join(use.base, name))
            files = [(name, f"{before}\n\n{_FAILING_PYTHON}" if before else _FAILING_PYTHON)]
        case "python source":
            name = _python_source(use)
            files = [(name, f"{read_text(os.path.join(use.base, name))}\n# {MARK}\ndef (:\n")]
        case "node test":
            default = "test" if use.tool.name == "mocha" else ""
            folder = next(iter(_folders(use, "test", "tests", "__tests__", "src")), default)
            files = [(os.path.join(folder, "turngate-planted.test.js"), f'throw new Error("{MARK}");\n')]
        case "node source":  # which of them it reads is not known
            folders = _folders(use, "src", "app", "lib", ".")
            names = [
                os.path.join(each, f"turngate-planted.{end}") for each in folders for end in ("js", "ts")
            ]
            files = [(name, _NO_LANGUAGE) for name in names]
        case _:
            files = [_FILES[kind]]
    return use.failure("a failing test" if kind.endswith("test") else "a syntax error", *files)


_FAILING_PYTHON = f"""\
import unittest


class TurngatePlanted(unittest.TestCase):
    def test_{MARK.replace(" ", "_")}(self):
        self.fail("{MARK}")
"""
_NO_LANGUAGE = f"// {MARK}\n)(\n"  # nothing that a compiler accepts
_GO_TEST = f'package planted\n\nimport "testing"\n\nfunc TestPlanted(t *testing.T) {{ t.Fatal("{MARK}") }}\n'
_RUST_TEST = f'#[test]\nfn turngate_planted() {{\n    panic!("{MARK}");\n}}\n'
_FILES = {
    "rust test": ("tests/turngate_planted.rs", _RUST_TEST),
    "rust source": ("src/bin/turngate_planted.rs", _NO_LANGUAGE),
    "go test": ("turngate_planted/planted_test.go", _GO_TEST),  # a package of its own
    "go source": ("turngate_planted/planted.go", _NO_LANGUAGE),
}


def _folders(use: _Use, *names: str) -> list[str]:
    return [name for name in names if os.path.isdir(os.path.join(use.base, name))]


_SELECTS = re.compile(r"(-k|-m|--lf|--last-failed|--deselect|--ignore)(?:=.*)?", re.DOTALL)


def _pytest_file(use: _Use) -> str:
    """Return the file for a failing test, where this pytest collects it."""
    if selected := next(filter(None, map(_SELECTS.fullmatch, use.words)), None):
        raise CannotPlantError(f"its pytest runs only some tests ({selected[1]})")
    options = _configuration(use)
    named = [word.partition("::")[0] for word in use.words if not word.startswith("-")]
    for name in (*named, *_as_list(options.get("testpaths")), "tests", "test", "."):
        path = os.path.join(use.base, name)
        if os.path.isfile(path) and name.endswith(".py"):
            return os.path.normpath(name)
        if os.path.isdir(path):
            pattern = next(iter(_as_list(options.get("python_files"))), "test_*.py")
            return os.path.normpath(os.path.join(name, pattern.replace("*", "turngate_planted")))
    raise AssertionError("the project's folder exists")


def _python_source(use: _Use) -> str:
    """Return a file that the tool checks; it may be new. Raises CannotPlantError."""
    known = use.tool.python
    words = [word for word in use.words if word not in (known.arguments.split() if known else ())]
    if found := _first_source([word for word in words if os.path.exists(f"{use.base}/{word}")], use.base):
        return found
    options = _configuration(use)
    entries = [entry for key in (known.path_keys if known else ()) for entry in _as_list(options.get(key))]
    unknown = next((key for key in (known.other_keys if known else ()) if options.get(key)), None)
    if not entries and not unknown:
        return _first_source(["src"], use.base) or "turngate_planted.py"
    if found := _first_source(entries, use.base):
        return found
    keys = unknown or (known.path_keys[0] if known else "")
    raise CannotPlantError(f"its {use.tool.name} checks only what its configuration names ({keys})")


def _first_source(entries: Sequence[str], base: str) -> str | None:
    """Return the first Python file that an entry names, or a new one in the first folder."""
    for entry in entries:
        for path in sorted(glob.glob(entry, root_dir=base, recursive=True)):
            if os.path.isdir(os.path.join(base, path)):
                return os.path.normpath(os.path.join(path, "turngate_planted.py"))
            if path.endswith(".py"):
                return os.path.normpath(path)
    return None


def _configuration(use: _Use) -> Mapping[str, Any]:
    """Return the options of a tool of Python in the first of its files that has some."""
    name = use.tool.name
    sections = (use.tool.python.sections if use.tool.python else ()) or (name,)
    for file in (f"{name}.ini", f".{name}.ini", "tox.ini", "setup.cfg"):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        with contextlib.suppress(configparser.Error):
            parser.read_string(read_text(os.path.join(use.base, file)))
        if section := next(filter(parser.has_section, sections), None):
            return dict(parser[section])
    for file in (f"{name}.toml", f".{name}.toml", "pyproject.toml"):
        with contextlib.suppress(tomllib.TOMLDecodeError, AttributeError, KeyError, TypeError):
            table = tomllib.loads(read_text(os.path.join(use.base, file)))
            table = table["tool"][name] if file == "pyproject.toml" else table
            if table:
                return dict(table.get("ini_options", table))
    return {}


def _as_list(value: object) -> list[str]:
    if isinstance(value, str):
        return [each for each in re.split(r"[,\s]+", value) if each]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


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


def dirty_tree(gate: Gate) -> PlantedFailure:
    if not gate.has_repository:
        raise CannotPlantError("it asks git, and there is no repository in the copy")
    new = "turngate-planted.txt"
    files = {os.path.join(gate.project, new): f"{MARK}\n".encode()}
    tracked = _tracked_text(gate.project)
    if tracked:
        path = os.path.join(gate.project, tracked)
        files[path] = encode(f"{read_text(path)}\n")
    where = f"{tracked} and {new}" if tracked else new
    return PlantedFailure("a dirty tree", where, files, commits=True)


def _tracked_text(project: str) -> str | None:
    """Return a tracked file to which a line can be added; one of prose, if there is one."""
    paths = {name: os.path.join(project, name) for name in git_output(project, "ls-files", "-z").split("\0")}
    files = [name for name, path in paths.items() if os.path.isfile(path) and not os.path.islink(path)]
    small = [name for name in files if os.path.getsize(paths[name]) < MAX_BYTES]
    prose = [name for name in small if name.endswith((".md", ".txt", ".rst"))]
    return next(iter([*prose, *small]), None)


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
            repairs = {path: encode(done)} if done != text else None
            return PlantedFailure("an open checklist item", relative, {path: encode(item)}, repairs)
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
    return PlantedFailure(what, "the conversation", {gate.transcript: conversation(ran_tests=False)})


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


_Kind = str | Callable[[Gate], PlantedFailure | None]  # the failure of tools, or a function
_TOOL_FAILURES = sorted({kind for kind, _, _ in _USES}, key=lambda kind: (kind.endswith("source"), kind))
_KINDS: tuple[_Kind, ...] = (
    _open_checklist_item,
    _idle_session,
    lambda gate: dirty_tree(gate) if _asks_git(gate.text) else None,
)
