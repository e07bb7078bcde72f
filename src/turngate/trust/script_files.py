"""Finds the files that a command runs: its scripts, what they include, and what could be run instead of them."""

import ast
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from turngate.core.hooks.plugin_variables import PLUGIN_ROOT
from turngate.core.shell.expand import Variables
from turngate.core.shell.invocation import RUNNERS, SHELL_BUILTINS, language_of, read_invocation
from turngate.core.shell.parse import UNKNOWN, Part, Word, split_commands, take_substitutions
from turngate.project.content_hash import SYSTEM_FOLDERS, is_system_file
from turngate.project.files import Files
from turngate.project.safe_paths import is_inside
from turngate.settings.script_file import Script, read_script

MAX_FILES = 500  # of one hook
MAX_FOLDERS = 20  # of `cd`
MAX_NESTING = 5  # of `sh -c` and `eval`

_NODE_IMPORT = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*["'](\.[^"'\n]+)["']""")
_NODE_SUFFIXES = ("", ".js", ".mjs", ".cjs", ".ts", ".json", "/index.js", "/index.ts")
_SCRIPT_SUFFIXES = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php")
_GLOB = re.compile(r"[*?\[]")
_SETTINGS_FOLDERS = frozenset([".claude", ".mux", ".turngate"])
_HOOK_FOLDERS = _SETTINGS_FOLDERS | {"hooks"}
_OF_SYSTEM = tuple(f"{folder}/" for folder in SYSTEM_FOLDERS)
_MODULE_OPTION = re.compile(r"-[A-Za-z]*?m(.*)")
# Programs that run the program that they are given, after options that are not read.
_RUNNERS = RUNNERS | frozenset(
    "find chronic unbuffer poetry pipenv pdm hatch rye conda direnv dotenv mise docker nix run-parts".split()
)
_FILE_OPTION = frozenset(["awk", "gawk", "mawk", "sed", "jq", "make", "gmake"])  # whose -f names a script


class Place(NamedTuple):
    """Where a command is read: the folder it runs in, and the folder of the script that holds it."""

    project: str
    script_folder: str | None = None

    @property
    def folders(self) -> tuple[str, ...]:
        return (self.project,) if self.script_folder is None else (self.script_folder, self.project)


class ScriptFiles:
    """Collects the paths of the files. A path without a file counts too: a file there would be run or included."""

    def __init__(
        self, files: Files, project: str, variables: Mapping[str, str], path_folders: Sequence[str]
    ) -> None:
        self._files = files
        self.project, self.path_folders = project, path_folders
        self._variables = Variables(variables)
        self._roots = tuple(filter(None, (project, variables.get(PLUGIN_ROOT))))
        self.paths: dict[str, None] = {}
        self.patterns: dict[str, None] = {}  # of file names
        self._to_read: list[tuple[str, str | None]] = []
        self._folders: list[str] = []  # of `cd`

    def add_command(self, text: str) -> None:
        self._read_shell(text, Place(self.project))
        self._read_scripts()

    def add_arguments(self, words: Sequence[str]) -> None:
        """Add the files of a command that is started without a shell."""
        for reading in self._variables.readings([Word((Part(word, "bare"),)) for word in words]):
            self._read_command(reading, Place(self.project))
        self._read_scripts()

    def _read_scripts(self) -> None:
        seen: set[str] = set()
        while self._to_read:
            path, language = self._to_read.pop()
            if path in seen:
                continue
            seen.add(path)
            is_read = not is_system_file(self._files, path, self.project)
            if is_read and (script := read_script(path, self._files)):
                unknown = "shell" if script.shebang is None else "other"
                self._read_script(script, language or script.language or unknown)

    def _read_script(self, script: Script, language: str) -> None:
        """Add what a script runs or includes. What a script elsewhere imports is the project's own code, not a hook's."""
        folder = os.path.dirname(script.path)
        if script.shebang is not None:  # the kernel looks for a relative path in the current folder
            self._read_command(script.shebang.split(), Place(self.project))
        if language == "shell":
            self._read_shell(script.text, Place(self.project, folder))
        elif not self._hook_waitss(folder):
            return
        elif language == "python":
            self._add_imports(script.text, folder)
        elif language == "node":
            for name in _NODE_IMPORT.findall(script.text):
                self._add_first([os.path.join(folder, name + suffix) for suffix in _NODE_SUFFIXES], "node")

    def _add_imports(self, text: str, folder: str) -> None:
        """Add the modules that a script of hooks imports from beside it or, with `python -m`, from the project."""
        self.patterns |= dict.fromkeys(os.path.join(folder, name) for name in ("*.so", "*.pyc"))
        for path in _python_imports(text, folder, self._files):
            self._add(path, "python")
        for path in _python_imports(text, self.project, self._files):
            if self._hook_waitss(os.path.dirname(path)):
                self._add(path, "python")

    def _hook_waitss(self, folder: str) -> bool:
        parts = folder.removeprefix(self.project) if is_inside(folder, self.project) else folder
        return not _HOOK_FOLDERS.isdisjoint(parts.split("/"))

    # Shell

    def _read_shell(self, text: str, place: Place, nesting: int = 0) -> None:
        if nesting > MAX_NESTING:
            return
        text, inner = take_substitutions(text)
        for each in inner:
            self._read_shell(each, place, nesting + 1)
        for command in split_commands(text):
            words = (*command.assignments, *command.words)
            inputs = [word for operator, word in command.redirects if operator == "<"]
            for reading in self._variables.readings([*words, *inputs]):
                self._read_command(reading[: len(words)], place, nesting, reading[len(words) :])

    def _read_command(
        self, words: list[str], place: Place, nesting: int = 0, inputs: Sequence[str] = ()
    ) -> None:
        words = self._variables.without_assignments(words)
        if not words:
            return
        if words[0] in ("cd", "pushd") and len(words) > 1:
            self._enter(words[-1], place)
            return
        if words[0] in ("source", "."):
            self._add_word(words[1] if len(words) > 1 else "", place, "shell", bare=True)
        elif words[0] in ("eval", "trap"):
            self._read_shell(" ".join(words[1:]), place, nesting + 1)
        else:
            if command := _command_of_gate(words):
                self._read_shell(command, place, nesting + 1)
            # An interpreter may stand behind a program that is not known: `flock FILE sh check.sh`.
            for start in (0, *(n for n in range(1, len(words)) if language_of(words[n]))):
                self._read_program(words[start:], place, nesting, inputs)
        runs_others = os.path.basename(words[0]) in _RUNNERS
        for word in words[1:]:
            self._add_if_script(word, place, anywhere=runs_others)

    def _read_program(self, words: list[str], place: Place, nesting: int, inputs: Sequence[str]) -> None:
        invocation = read_invocation(words)
        if invocation is None:
            return
        program, arguments = words[invocation.program], words[invocation.program + 1 :]
        self._add_program(program, place)
        if invocation.script is not None:
            self._add_word(words[invocation.script], place, invocation.language, bare=True)
        elif invocation.shell_command:
            self._read_shell(invocation.shell_command, place, nesting + 1)
        elif language_of(program):
            for name in inputs:
                self._add_word(name, place, None, bare=True)
        if language_of(program) == "python":
            self._add_module(arguments)
        if os.path.basename(program) in _FILE_OPTION:
            for option, value in pairwise(arguments):
                if option in ("-f", "--file", "--makefile"):
                    self._add_word(value, place, "other", bare=True)

    def _enter(self, folder: str, place: Place) -> None:
        """Remember the folder of a `cd`, which may follow another one."""
        rest = folder.rpartition(UNKNOWN)[2].lstrip("/") if UNKNOWN in folder else folder
        for start in (*self._folders, *place.folders):
            path = os.path.join(start, rest)
            if path not in self._folders and len(self._folders) < MAX_FOLDERS:
                self._folders.append(path)

    # Files

    def _add_program(self, word: str, place: Place) -> None:
        if "/" in word or UNKNOWN in word:
            self._add_word(word, place, None)
        elif word and word not in SHELL_BUILTINS:
            for folder in self.path_folders:
                self._add(os.path.join(folder, word), None)

    def _add_word(self, word: str, place: Place, language: str | None, *, bare: bool = False) -> None:
        """Add the file that a word names. After an expansion that is not known, it is looked for beside the script."""
        known, unknown, rest = word.rpartition(UNKNOWN)
        if not (known + rest).strip("/") or ("/" not in word and not bare):
            return
        if unknown and "/" not in rest:  # hooks/$name.sh
            self._add_patterns(word.replace(UNKNOWN, "*"), place)
            return
        folders = (*self._folders, *place.folders)
        if word.startswith("/") and not unknown:
            self._add(word, language)
            rest = "" if self._files.lexists(word) else rest
        if rest := rest.lstrip("/") if unknown or word.startswith("/") else rest:
            if _GLOB.search(rest):
                self._add_patterns(rest, place)
            for folder in folders:
                self._add(os.path.join(folder, rest), language)

    def _add_first(self, paths: Sequence[str], language: str | None) -> None:
        """Add the first path that exists, and those before it: a file there would be taken."""
        for path in paths:
            self._add(path, language)
            if self._files.isfile(path):
                break

    def _add(self, path: str, language: str | None) -> None:
        # `..` is kept: behind a link it is another folder.
        path = "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
        if path.startswith(_OF_SYSTEM) and not is_inside(path, self.project):
            return  # such as the `/bin/sh` of most scripts: its path, which the command names, is all that counts
        if path not in self.paths and len(self.paths) < MAX_FILES:
            self.paths[path] = None
            self._to_read.append((path, language))

    def _add_module(self, arguments: Sequence[str]) -> None:
        """`python -m NAME` runs a module of the current folder before one that is installed, and its packages first."""
        for position, argument in enumerate(arguments):
            if not argument.startswith("-"):
                break
            if match := _MODULE_OPTION.fullmatch(argument):
                name = match[1] or "".join(arguments[position + 1 : position + 2])
                *packages, last = _with_parents(name) or ("",)
                for package in packages:
                    self._add(os.path.join(self.project, package.replace(".", "/"), "__init__.py"), "python")
                for suffix in (".py", "/__main__.py", "/__init__.py") if last else ():
                    self._add(os.path.join(self.project, last.replace(".", "/") + suffix), "python")
                break

    def _add_if_script(self, word: str, place: Place, *, anywhere: bool = False) -> None:
        """Add an argument that is a script or a folder of hooks: `xargs .claude/hooks/check.sh`, `run-parts hooks`."""
        if UNKNOWN in word or ("/" not in word and word not in _HOOK_FOLDERS):
            return
        hook_waitss = self._names_hooks(word)
        for folder in place.folders if hook_waitss or anywhere else ():
            path = os.path.join(folder, word)
            if _GLOB.search(word) or self._files.isdir(path):
                if hook_waitss:
                    self._add_pattern(path if _GLOB.search(word) else os.path.join(path, "*"))
            elif self._files.isfile(path) and (
                word.endswith(_SCRIPT_SUFFIXES) or self._files.is_executable(path)
            ):
                self._add(path, None)

    def _names_hooks(self, word: str) -> bool:
        """Return whether a word is a path below a folder of settings, or `hooks` of the project or the plugin.

        Other folders of this name have code: `eslint src/hooks`.
        """
        for root in self._roots:
            word = word.removeprefix(f"{root}/")
        parts = [part for part in word.split("/") if part not in ("", ".")]
        return parts[:1] == ["hooks"] or not _SETTINGS_FOLDERS.isdisjoint(parts)

    def _add_patterns(self, word: str, place: Place) -> None:
        for folder in (*self._folders, *place.folders):
            self._add_pattern(os.path.join(folder, word))

    def _add_pattern(self, pattern: str) -> None:
        """Add the files that a pattern matches, and the pattern itself: it may match another file later."""
        self.patterns[os.path.normpath(pattern)] = None
        for path in islice(self._files.match(pattern), MAX_FILES):
            if self._files.isfile(path):
                self._add(path, None)


def _python_imports(text: str, folder: str, files: Files) -> Iterator[str]:
    """Yield where Python looks first for the modules that a script imports: in the folder of the script."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for name in dict.fromkeys(_imported_names(ast.walk(tree))):
        path = os.path.join(folder, name.replace(".", "/"))
        if files.isdir(os.path.dirname(path)):
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


def _with_parents(name: str) -> list[str]:
    parts = name.split(".") if name else []
    return [".".join(parts[: number + 1]) for number in range(len(parts))]


def _command_of_gate(words: Sequence[str]) -> str | None:
    """Return the command that `turngate gate` is given behind `--`, also by `python -m turngate gate`.

    One word is a command line.
    """
    own = words[: words.index("--")] if "--" in words else ()
    if not any(os.path.basename(first) == "turngate" and second == "gate" for first, second in pairwise(own)):
        return None
    command = words[len(own) + 1 :]
    return command[0] if len(command) == 1 else shlex.join(command)
