"""Finds the files that a command names: each word that leads to a file of the project counts.

The command is split without understanding it: a word that is read wrongly names no file, and costs nothing.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from turngate.core.hooks.kinds import CommandHook
from turngate.core.hooks.plugin_variables import PLUGIN_ROOT
from turngate.project.safe_paths import is_inside
from turngate.trust.covered_files import ALL, MENTIONED, NO_FILES, CoveredFiles, FileIds, TooLarge
from turngate.trust.file_kinds import (
    BUILT,
    CODE,
    COMPILED,
    HOOK_FOLDERS,
    INSTALLED,
    MARKS_OF_CODE,
    MODULES,
    has_suffix,
    is_check,
    is_of_code,
    is_of_hooks,
    is_of_scripts,
    is_test,
    may_be_check,
)

UNKNOWN = "\0"  # in a word: what only a run of the command knows
Words = Sequence[str]  # of one command
MAX_CHARS = 50_000  # of a command
MAX_WORDS = 5_000
MAX_FOLDERS = 30  # that words name, in which the others are looked for
_PLAIN = re.compile(r"[\w -]*", re.ASCII)
_PATTERN = rf"[*?\[{{{UNKNOWN}]"
_NODE = frozenset(["node", "tsx", "ts-node"])
_NODE_RUNNERS = frozenset(["bun", "deno"])  # a name without a folder is that of a task
# What may follow the name of a module.
_NODE_ENDS = (".js", ".mjs", ".cjs", ".ts", "/index.js", "/package.json")
_PYTHON_ENDS = (".py", "/__main__.py", "/__init__.py")
_SYSTEM = tuple("/bin /sbin /lib /lib64 /usr /opt /nix /dev /proc /System /Library".split())


class CommandFiles(NamedTuple):
    """Names as those of `CoveredFiles`."""

    named: tuple[str, ...] = ()  # the files that words name
    covered: FileIds = NO_FILES  # these files, and folders with which of their files count
    absent: tuple[str, ...] = ()  # where a file would be run, if there was one
    not_covered: tuple[str, ...] = ()  # what else the command may run, for a reader


def find_command_files(
    hook: CommandHook,
    variables: Mapping[str, str],
    path_folders: Sequence[str],
    covered: CoveredFiles,
    *,
    explains: bool = False,
) -> CommandFiles:
    """Return the files that a command names. `path_folders`: those of `$PATH` in the project. Raises TooLarge.

    `explains`: also say what else it may run.
    """
    text = " ".join((hook.command, *(hook.args or ())))
    if _PLAIN.fullmatch(text) and not path_folders and not explains and not covered.may_have(text.split()):
        return CommandFiles()  # as `make check`: fast, because there may be a thousand hooks
    commands: list[Words] = [[word] for word in hook.args or () if " " in word]
    commands += split_commands(text, variables) if len(text) <= MAX_CHARS else ()
    if len(text) > MAX_CHARS or sum(map(len, commands)) > MAX_WORDS:
        raise TooLarge("its command is too long to find the files that it names; put it into a script")
    finder = _Finder(variables, path_folders, covered, commands, is_substituted="$(" in text)
    for words in commands:
        finder.add_command(words, explains=explains)
    return CommandFiles(tuple(finder.named), finder.covered, tuple(finder.absent), tuple(finder.not_covered))


class _Finder:
    def __init__(
        self,
        variables: Mapping[str, str],
        path_folders: Sequence[str],
        covered: CoveredFiles,
        commands: Sequence[Words],
        *,
        is_substituted: bool,
    ) -> None:
        self._is_substituted = is_substituted
        self._all, self._files, self._project = covered, covered.files, covered.project
        self._home, self._plugin = variables.get("HOME", ""), variables.get(PLUGIN_ROOT, "")
        self.named: dict[str, None] = {}
        self.covered: dict[str, str | None] = {}
        self.absent: dict[str, None] = {}
        self.not_covered: dict[str, None] = {}
        self._missing: dict[str, None] = {}  # of one command
        self._pieces = {word: pieces_of(word) for words in commands for word in words}
        self._is_module = any(word.startswith("-m") for word in self._pieces)
        programs = {word.rpartition("/")[2] for word in self._pieces}
        is_node = not programs.isdisjoint(_NODE | _NODE_RUNNERS)
        self._ends = _PYTHON_ENDS if self._is_module else _NODE_ENDS if is_node else ()
        self._has_tasks = is_node and programs.isdisjoint(_NODE)
        # What the command itself writes, such as a program that it compiles and runs.
        self._outputs = {
            os.path.normpath(word)
            for words in commands
            for option, word in pairwise(words)
            if re.fullmatch(_OUTPUT_OPTION, option)
        }
        self._path_folders = path_folders
        self._folders = [self._project]  # `cd FOLDER`, `PATH=FOLDER`, `dir=FOLDER`
        for piece in dict.fromkeys(piece for pieces in self._pieces.values() for piece in pieces):
            for path in [self._join(folder, piece.strip(UNKNOWN)) for folder in self._folders]:
                is_new = path not in self._folders and is_inside(path, self._project)
                if is_new and stat.S_ISDIR(self._all.mode(path)):
                    self._folders.append(path)
            if len(self._folders) > MAX_FOLDERS:
                raise TooLarge(f"its command names more than {MAX_FOLDERS} folders; put it into a script")

    def add_command(self, words: Words, *, explains: bool) -> None:
        self._missing = {}
        paths = [(number, *each) for number, word in enumerate(words) for each in self._paths(word)]
        if not paths and not self._missing and not explains:
            return
        (name, command), count = program_of(words), len(self.covered)
        reads_code = re.match(_READS_CODE, " ".join(words)) is not None
        if reads_code:
            paths, name = [each for each in paths if each[0] == 0], os.path.basename(words[0])
        is_data = reads_code or (
            takes_data(name, command)
            and not any(self._is_script_named(name, words[number], path) for number, path, _ in paths)
        )
        names = [os.path.basename(word) for word in words]
        of_system = _OF_SYSTEM.intersection(names[: names.index(name) + 1] if name in names else ())
        for number, path, is_pattern in paths:
            base = os.path.basename(words[number])
            if not is_data or base == name or base in of_system or names_configuration(words, number):
                is_alone = is_data and base not in of_system
                self._add(path, words, number, is_pattern=is_pattern, is_alone=is_alone)
        is_kept = of_system.__contains__ if is_data else bool
        self.absent |= {each: None for each in self._missing if is_kept(os.path.basename(each))}
        runs_more = _is_check(command) or name in {*_RUNNERS, "turngate"}  # than the files that it is given
        if explains and len(self.covered) == count and runs_more:
            says = _RUNNERS.get(name, "its configuration")
            self.not_covered[f"what `{command}` runs ({says} and the project's own files)"] = None

    def _is_script_named(self, name: str, word: str, path: str) -> bool:
        """Return whether a word is a script of the project with the name of a tool: `.husky/pre-commit` is not pre-commit."""
        is_named = os.path.basename(word) == name and is_inside(path, self._project)
        is_installed = not INSTALLED.isdisjoint((self._name(path) or "").split("/"))
        return is_named and not is_installed and stat.S_ISREG(self._all.mode(path))

    # Where a word may lead

    def _paths(self, word: str) -> Iterator[tuple[str, bool]]:
        """Yield the files and folders to which a word may lead, and whether it is a pattern of files in a folder."""
        for piece in self._pieces[word]:
            name = piece
            if start := re.search(_PATTERN, piece):
                folder, slash, _ = piece[: start.start()].rpartition("/")
                if slash and (has_suffix(piece, CODE) or not os.path.splitext(piece)[1]):
                    yield from ((path, True) for path in self._existing(folder))
                elif has_suffix(piece, CODE):  # in one of those that other words name
                    yield from ((path, True) for path in self._folders[1:])
                name = piece.rpartition(UNKNOWN)[2]
                name = name.lstrip("/") if name.startswith("/") and not re.search(_PATTERN, name) else ""
            module = name.removeprefix("-m").replace(".", "/") if self._is_module else name
            ends = () if self._has_tasks and "/" not in name else self._ends
            for each in (name, *(module + end for end in ends)) if name else ():
                yield from ((path, False) for path in self._existing(each))

    def _existing(self, name: str) -> Iterator[str]:
        """Yield where the files and folders of this name are. Where a script could be, a missing one is remembered."""
        if name.startswith(("/", "~/")) and self._all.mode(path := self._join("/", name)):
            yield path
            return
        is_script = has_suffix(name, CODE) or ("/" in name and not os.path.splitext(name)[1])
        for folder in (*self._folders, *(() if "/" in name else self._path_folders)):
            path = self._join(folder, name.lstrip("/"))
            if self._all.mode(path):
                yield path
            elif (is_script or folder in self._path_folders) and (missing := self._name(path)):
                is_inside_project = not missing.startswith("/") and missing not in self._outputs
                if is_inside_project and not self._is_own_code(
                    missing, self._which(os.path.dirname(missing))
                ):
                    self._missing[missing] = None

    def _join(self, folder: str, name: str) -> str:
        path = os.path.join(folder, self._home + name[1:] if name.startswith("~/") else name)
        if "/.." in path:  # behind a link it is another folder
            return os.path.join(self._files.realpath(os.path.dirname(path)), os.path.basename(path))
        return os.path.normpath(path)

    # What counts

    def _add(self, path: str, words: Words, number: int, *, is_pattern: bool, is_alone: bool) -> None:
        """Add a file, or a folder of which a pattern names the files. `is_alone`: without the files in its folder."""
        name = self._name(path)
        if name in self._outputs:
            return
        is_folder = stat.S_ISDIR(self._all.mode(path))
        if name is None or (is_alone and (is_folder or not INSTALLED.isdisjoint(name.split("/")))):
            return
        folder = name if is_folder else os.path.dirname(name)
        which = None if is_alone else self._which(folder)
        if is_folder:
            if which == ALL or (which and is_pattern):
                self.covered[_folder_name(folder)] = ALL
            return
        # What runs in `$(…)` is what the command checks, as in `test "$(python3 sum.py)" = 2`.
        is_run = is_interpreted(words, number) or (
            number == 0 and self._all.can_run(name, self._all.mode(path))
        )
        is_run = is_run and not self._is_substituted
        is_own_code = self._is_own_code(name, which, is_run=is_run)
        if is_own_code or self._is_data(name, words, number):
            what = "code of the project" if is_own_code else "data"
            self.not_covered[f"{name} ({what}, by its name)"] = None
            return
        self.named[name] = self.covered[name] = None
        if which:
            self.covered.setdefault(_folder_name(folder), which)
        elif not is_alone:
            place = f"the folder {folder}" if folder else "the project's root folder"
            self.not_covered[f"what {name} runs of {place}"] = None
            # Python imports a module beside a script instead of that of the standard library.
            for entry in self._files.listdir(self._all.path_of(folder)) if name.endswith(".py") else ():
                if entry.partition(".")[0] in sys.stdlib_module_names:
                    module = os.path.join(folder, entry)
                    self.covered[module if has_suffix(entry, MODULES) else f"{module}/__init__.py"] = None
        if self._files.islink(path) and is_inside(real := self._files.realpath(path), self._project):
            # Python loads modules from there.
            self._add(real, words, number, is_pattern=False, is_alone=is_alone)

    def _name(self, path: str) -> str | None:
        """Return the name of a file for `CoveredFiles`, "" for the project, None for a file of the system."""
        if is_inside(path, self._project):
            return path[len(self._project.rstrip("/")) + 1 :]
        return None if any(is_inside(path, folder) for folder in _SYSTEM) else path

    def _is_data(self, name: str, words: Words, number: int) -> bool:
        is_program = number == 0 and "/" in words[0] and not os.path.splitext(name)[1]  # `./tool`
        is_run = is_interpreted(words, number) and not has_suffix(name, COMPILED)
        is_run = is_run or is_program or names_configuration(words, number)
        return not (
            is_run or may_be_check(name) or self._all.can_run(name, self._all.mode(self._all.path_of(name)))
        )

    @staticmethod
    def _is_own_code(name: str, which: str | None, *, is_run: bool = False) -> bool:
        """Return whether a file is what the project builds or what agents change, and not a check. `is_run`: a script."""
        folder = os.path.dirname(name)
        is_built = not BUILT.isdisjoint(folder.split("/"))
        is_code = is_built or is_test(name) or (not is_check(name) and (is_of_code(folder) or not is_run))
        return not which and not name.startswith("/") and is_code

    def _which(self, folder: str) -> str | None:
        """Return which files of a folder count if one of them is named; None: no others."""
        if folder.startswith("/"):
            is_of_plugin = self._plugin and folder != self._plugin and is_inside(folder, self._plugin)
            is_own = not {"hooks", ".turngate", ".mux"}.isdisjoint(folder.split("/"))
            return ALL if is_own else MENTIONED if is_of_plugin else None
        if folder in ("", ".claude") or not INSTALLED.isdisjoint(folder.split("/")):
            return None
        if is_of_hooks(folder) or is_of_scripts(folder):
            return ALL if is_of_hooks(folder) else MENTIONED
        marks = (f"{self._all.path_of(folder)}/{name}" for name in MARKS_OF_CODE)
        return None if is_of_code(folder) or any(map(self._all.mode, marks)) else MENTIONED


def _folder_name(folder: str) -> str:
    """Return the name of a folder for `CoveredFiles`; one in a folder of hooks is covered with it."""
    return next((each for each in HOOK_FOLDERS if f"{folder}/".startswith(each)), f"{folder}/")


# Words

_VARIABLE = r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?[-=+?]([^{}]*))?\}|\{[^{}]*\}|[\d@*#?$!-])"
_BETWEEN_COMMANDS = r"[;&|\n()`]+"
_OUTPUT = r"(?<!<)>+\s*[^\s<>;&|()`]+"
_QUOTED = r"'([^'\n]*)'|\"([^\"\n]*)\""
# Quotes separate words, or do not.
_FORMS = (str.maketrans("'\"<>", "    "), str.maketrans("<>", "  ", "'\"\\"))
_BETWEEN_PIECES = r"[=:,@]"
_OUTPUT_OPTION = r"-o|--out(?:put)?(?:-?file)?"
_CONFIG_OPTION = r"-c|-p|--?[\w-]*(?:conf|rc|project)[\w-]*"
_INTERPRETER = r"\.|source|eval|\w*sh|python[\d.]*|pypy3?|node|bun|deno|tsx|ts-node|ruby|perl|php|lua|[gm]?awk|uv|run|Rscript|julia|tclsh|elixir|pwsh|expect|bats"
# What stands before the program that is meant; the second ones may be it.
_BEFORE_PROGRAM = (
    r"\w+=.*|-.*|\d+[smhd]?|[!{]|if|elif|else|while|until|then|do|env|g?timeout|nice|nohup|exec|command|time|stdbuf"
    r"|sudo|xargs|\w*sh|python[\d.]*|npx|bunx|uvx|run|dlx"
)
# These read a file and run nothing of it: they check its syntax, or compile it.
_READS_CODE = r"(?:\S*/)?(?:(?:ba|da|k|z)?sh -n|node (?:--check|-c)|php -l|ruby -w?c|perl -w?c|(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|rustc|javac))\s"
_STARTERS = frozenset("uv poetry pdm hatch pipenv rye bundle pnpm yarn npm".split())
# Programs that read files and run none of them.
_READERS = frozenset("grep egrep fgrep rg test [ [[ wc diff cmp stat jq touch mkdir rm true false".split())
# Programs that no project installs: one with such a name takes the place of that of the system.
_OF_SYSTEM = _READERS | frozenset("env timeout nice nohup stdbuf sudo xargs sh bash dash zsh".split())
# Programs that run what a file of the project says.
_RUNNERS = {
    "make": "Makefile",
    "just": "justfile",
    "task": "Taskfile.yml",
    "rake": "Rakefile",
} | dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json")


def split_commands(text: str, variables: Mapping[str, str]) -> Iterator[Words]:
    """Yield the words of each command in a text, in all ways in which it could be read.

    A variable has its value, or one that is not known: the command may set it.
    """
    text = text.replace(UNKNOWN, " ").replace("\\\n", "").replace("\\ ", UNKNOWN)
    readings = dict.fromkeys((_replace_variables(text, variables), _replace_variables(text, {})))
    for each in dict.fromkeys(
        re.sub(_OUTPUT, " ", each).translate(form) for each in readings for form in _FORMS
    ):
        yield from filter(None, map(str.split, re.split(_BETWEEN_COMMANDS, each)))
    for each in readings:  # a name with blanks
        yield from ([word] for found in re.findall(_QUOTED, each) if " " in (word := "".join(found)))


def _replace_variables(text: str, variables: Mapping[str, str]) -> str:
    for _ in range(3 if "$" in text else 0):  # a default value may have variables
        text = re.sub(_VARIABLE, lambda found: variables.get(found[1] or found[2], found[3] or UNKNOWN), text)
    return text


def pieces_of(word: str) -> list[str]:
    """Return what may be a path in a word: `--file=x`, `-fx`, `PATH=x:y`."""
    pieces = (word, *re.split(_BETWEEN_PIECES, word), word[2:] if word.startswith("-") else "")
    return [piece for piece in dict.fromkeys(each.strip("$") for each in pieces) if piece.strip("./")]


def names_configuration(words: Words, number: int) -> bool:
    """Return whether a word is the value of an option that names a configuration file."""
    option, equals, _ = words[number].partition("=")
    option = option if equals else words[number - 1] if number else ""
    return re.fullmatch(_CONFIG_OPTION, option) is not None


def is_interpreted(words: Words, number: int) -> bool:
    """Return whether a word stands behind an interpreter and its options. The first word of code in a string is no program."""
    before = next((word for word in reversed(words[:number]) if not word.startswith("-")), "")
    return re.fullmatch(_INTERPRETER, os.path.basename(before)) is not None


def program_of(words: Words) -> tuple[str, str]:
    """Return the program that is meant, and the command from there on: behind `uv run`, `timeout 60`, `sh -c` …"""
    starter = None  # `npm run NAME` runs what package.json says
    for number, word in enumerate(words):
        name = os.path.basename(word)
        if re.fullmatch(_BEFORE_PROGRAM, name):
            continue
        command = " ".join((name, *words[number + 1 :]))
        if name not in _STARTERS or takes_data(name, command):
            return starter if starter and not takes_data(name, command) else (name, command)
        starter = starter or ((name, command) if name in _RUNNERS else None)
    return starter or ("", "")


def takes_data(name: str, command: str) -> bool:
    """Return whether the words of a program are what it checks or reads, and not what it runs."""
    is_script = os.path.splitext(name)[1] in CODE and name != "manage.py"
    return name in _READERS or (not is_script and _is_check(command))


def _is_check(command: str) -> bool:
    """Return whether it is a command of a tool that checks: only options stand before a subcommand."""
    from turngate.gates.toolchains import TOOLS  # noqa: PLC0415 # lazy: few words name files

    for tool in TOOLS:
        subcommands = {text for check, text in tool.checks.items() if check != "build"} | {*tool.plants}
        if subcommands and command.startswith(tool.name):
            ends = "" if "" in subcommands else rf"\s+(?:[-+]\S+\s+)*(?:{'|'.join(sorted(subcommands))})"
            if re.match(rf"{re.escape(tool.name)}{ends}(?![\w.-])", command):
                return True
    return False
