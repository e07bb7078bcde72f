"""Finds the files that a command runs: its scripts, what they include, and what could be run instead of them."""

import ast
import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from turngate.filesystem.content import is_system_file
from turngate.settings.invocation import SHELL_BUILTINS, read_invocation
from turngate.settings.script_file import Script, read_script

MAX_FILES = 200  # of one hook
MAX_WORDS = 20_000  # of one script
MAX_NESTING = 5  # of `sh -c` and `$(…)`

_UNKNOWN = "\0"  # the value of an expansion that only a run of the command knows
_TOKEN = re.compile(
    r"""
    (?P<comment>(?<![^\s;&|(])\#[^\n]*)
    |(?P<blank>[ \t\r]+|\\\n)
    |(?P<redirect>\d*(?:<<<|<<-?|>>|>\||>&|<&|<>|&>>?|>|<)[ \t]*)
    |(?P<operator>\$\(|[;&|\n(){}!`])
    |(?P<word>(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\$\{[^}]*\}|[^\s;&|(){}!`'"\\<>$]|\$(?!\())+)
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_VARIABLE = re.compile(r"\$\{(\w+)(?::?[-=?+]([^}]*))?\}|\$(\w+)|\$\{[^}]*\}|\$[@*#?$!-]")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_KEYWORDS = frozenset(
    ["if", "then", "else", "elif", "do", "while", "until", "for", "case", "fi", "done", "esac"]
)
_DECLARATIONS = frozenset(["export", "readonly", "declare", "local", "typeset"])
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?|pypy3?")
_NODE_IMPORT = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*["'](\.[^"'\n]+)["']""")
_NODE_SUFFIXES = ("", ".js", ".mjs", ".cjs", ".ts", ".json", "/index.js", "/index.ts")
_SCRIPT_SUFFIXES = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php")
_GLOB = re.compile(r"[*?\[]")
_HOOK_FOLDERS = frozenset([".claude", ".mux", ".turngate", "hooks"])


class Place(NamedTuple):
    """Where a command is read: the folder it runs in, and the folder of the script that holds it."""

    project: str
    script_folder: str | None = None

    @property
    def folders(self) -> tuple[str, ...]:
        return (self.project,) if self.script_folder is None else (self.script_folder, self.project)


class ScriptFiles:
    """Collects the paths of the files. A path without a file counts too: a file there would be run or included."""

    def __init__(self, project: str, variables: Mapping[str, str], path_folders: Sequence[str]) -> None:
        self.project, self.variables, self.path_folders = project, dict(variables), path_folders
        self.paths: dict[str, None] = {}
        self.patterns: dict[str, None] = {}  # of file names
        self._to_read: list[tuple[str, str | None]] = []
        self._folders: list[str] = []  # of `cd`

    def add_command(self, text: str) -> None:
        self._read_shell(text, Place(self.project))
        self._read_scripts()

    def add_arguments(self, words: Sequence[str]) -> None:
        """Add the files of a command that is started without a shell."""
        self._read_segment([self._expand(word) for word in words], Place(self.project), 0)
        self._read_scripts()

    def _read_scripts(self) -> None:
        seen: set[str] = set()
        while self._to_read:
            path, language = self._to_read.pop()
            if path in seen:
                continue
            seen.add(path)
            script = None if is_system_file(path) else read_script(path)
            if script is not None:
                self._read_script(script, language or script.language or "shell")

    def _read_script(self, script: Script, language: str) -> None:
        """Add what a script runs or includes. What a script elsewhere imports is the project's own code, not a hook's."""
        folder = os.path.dirname(script.path)
        if language == "shell":
            self._read_shell(script.text, Place(self.project, folder))
        elif _HOOK_FOLDERS.isdisjoint(folder.split("/")):
            return
        elif language == "python":
            for path in _python_imports(script.text, folder):
                self._add(path, "python")
        elif language == "node":
            for name in _NODE_IMPORT.findall(script.text):
                paths = [os.path.join(folder, name + suffix) for suffix in _NODE_SUFFIXES]
                self._add_first(paths, "node")

    # Shell

    def _read_shell(self, text: str, place: Place, nesting: int = 0) -> None:
        if nesting > MAX_NESTING:
            return
        for words in _segments(text):
            for word in words:
                for match in _SUBSTITUTION.finditer(word):
                    self._read_shell(match[1] or match[2] or "", place, nesting + 1)
            self._read_segment([self._expand(word) for word in words], place, nesting)

    def _read_segment(self, words: list[str], place: Place, nesting: int) -> None:
        words = self._without_assignments(words)
        if not words:
            return
        if words[0] == "cd" and len(words) > 1:
            self._folders += [os.path.join(place.project, words[-1])] if _UNKNOWN not in words[-1] else []
            return
        if words[0] in ("source", "."):
            self._add_word(words[1] if len(words) > 1 else "", place, "shell", bare=True)
        elif invocation := read_invocation(words):
            self._add_program(words[invocation.program], place)
            if invocation.script is not None:
                self._add_word(words[invocation.script], place, invocation.language, bare=True)
            if invocation.shell_command:
                self._read_shell(invocation.shell_command, place, nesting + 1)
            if _PYTHON.fullmatch(os.path.basename(words[invocation.program])):
                self._add_module(words[invocation.program + 1 :])
        for word in words[1:]:
            self._add_if_script(word, place)

    def _without_assignments(self, words: list[str]) -> list[str]:
        """Remember the assignments in front of a command, and return the command."""
        while words and (
            words[0] in _KEYWORDS or words[0] in _DECLARATIONS or _ASSIGNMENT.fullmatch(words[0])
        ):
            if match := _ASSIGNMENT.fullmatch(words[0]):
                self.variables.setdefault(match[1], match[2])
            words = words[1:]
        return words

    def _expand(self, word: str) -> str:
        """Return the word without quotes and with the values of variables."""
        single = word.startswith("'") and word.endswith("'") and word.count("'") == 2
        text = _QUOTED.sub(lambda match: next(filter(None, match.groups()), ""), word)
        if single:
            return text
        text = _SUBSTITUTION.sub(_UNKNOWN, text)
        text = _VARIABLE.sub(self._value, text)
        home = self.variables.get("HOME", "")
        return home + text[1:] if text.startswith("~/") else text

    def _value(self, match: re.Match[str]) -> str:
        name = match[1] or match[3] or ""
        value = self.variables.get(name)
        return value if value is not None else (match[2] or _UNKNOWN)

    # Files

    def _add_program(self, word: str, place: Place) -> None:
        if "/" in word or _UNKNOWN in word:
            self._add_word(word, place, None)
        elif word and word not in SHELL_BUILTINS:
            for folder in self.path_folders:
                self._add(os.path.join(folder, word), None)

    def _add_word(self, word: str, place: Place, language: str | None, *, bare: bool = False) -> None:
        """Add the file that a word names. After an expansion that is not known, it is looked for beside the script."""
        rest = word.rpartition(_UNKNOWN)[2]
        if not rest.strip("/") or ("/" not in word and not bare):
            return
        if _UNKNOWN in word or (word.startswith("/") and not os.path.lexists(word)):
            rest = rest.lstrip("/")
        self._add_first([os.path.join(folder, rest) for folder in (*self._folders, *place.folders)], language)

    def _add_first(self, paths: Sequence[str], language: str | None) -> None:
        existing = [path for path in paths if os.path.isfile(path)]
        for path in existing or paths:
            self._add(path, language)

    def _add(self, path: str, language: str | None) -> None:
        path = os.path.normpath(path)
        if path not in self.paths and len(self.paths) < MAX_FILES:
            self.paths[path] = None
            self._to_read.append((path, language))

    def _add_module(self, arguments: Sequence[str]) -> None:
        """`python -m NAME` runs a module of the current folder before one that is installed."""
        if "-m" in arguments[:-1]:
            name = arguments[arguments.index("-m") + 1].replace(".", "/")
            for path in (f"{name}.py", f"{name}/__main__.py", f"{name}/__init__.py"):
                self._add(os.path.join(self.project, path), "python")

    def _add_if_script(self, word: str, place: Place) -> None:
        """Add an argument that is a script or a folder of hooks: `xargs .claude/hooks/check.sh`, `run-parts hooks`."""
        if _UNKNOWN in word or _HOOK_FOLDERS.isdisjoint(word.split("/")):
            return
        for folder in place.folders:
            path = os.path.join(folder, word)
            if _GLOB.search(word) or os.path.isdir(path):
                self._add_pattern(path if _GLOB.search(word) else os.path.join(path, "*"))
            elif os.path.isfile(path) and (word.endswith(_SCRIPT_SUFFIXES) or os.access(path, os.X_OK)):
                self._add(path, None)

    def _add_pattern(self, pattern: str) -> None:
        """Add the files that a pattern matches, and the pattern itself: it may match another file later."""
        self.patterns[os.path.normpath(pattern)] = None
        for path in islice(glob.iglob(pattern), MAX_FILES):
            if os.path.isfile(path):
                self._add(path, None)


def _segments(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command, as they are written."""
    words: list[str] = []
    is_target = False
    for number, match in enumerate(_TOKEN.finditer(text)):
        if number > MAX_WORDS:
            break
        kind = match.lastgroup
        if kind == "operator":
            if words:
                yield words
            words = []
        elif kind == "word" and not is_target:
            words.append(match[0])
        is_target = kind == "redirect" or (is_target and kind == "blank")
    if words:
        yield words


def _python_imports(text: str, folder: str) -> Iterator[str]:
    """Yield where Python looks first for the modules that a script imports: in the folder of the script."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for name in dict.fromkeys(_imported_names(ast.walk(tree))):
        path = os.path.join(folder, name.replace(".", "/"))
        if os.path.isdir(os.path.dirname(path)):
            yield f"{path}.py"
            yield f"{path}/__init__.py"


def _imported_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from _with_parents(module)
            yield from (f"{module}.{alias.name}".lstrip(".") for alias in node.names if alias.name != "*")


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".") if name else []
    return (".".join(parts[: number + 1]) for number in range(len(parts)))
