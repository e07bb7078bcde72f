"""Splits a command into words without understanding it: a word that is read wrongly names no file, and costs nothing."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from turngate.trust.file_names import CODE

UNKNOWN = "\0"  # in a word: what only a run of the command knows

_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?[-=+?]([^{}]*))?\}|\{[^{}]*\}|[\d@*#?$!-])")
_BETWEEN_COMMANDS = re.compile(r"[;&|\n()`]+")
_OUTPUT = re.compile(r"(?<!<)>+\s*[^\s<>;&|()`]+")
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")
_FORMS = (
    str.maketrans("'\"<>", "    "),
    str.maketrans("<>", "  ", "'\"\\"),
)  # quotes separate words, or do not
_BETWEEN_PIECES = re.compile(r"[=:,@]")
_CONFIG_OPTION = re.compile(r"-c|-p|--?[\w-]*(?:conf|rc|project)[\w-]*")
_INTERPRETER = re.compile(
    r"\.|source|eval|\w*sh|python[\d.]*|pypy3?|node|bun|deno|tsx|ts-node|ruby|perl|php|lua|[gm]?awk|g?make|uv|run"
)
# What stands before the program that is meant; the second ones may be it.
_BEFORE_PROGRAM = re.compile(
    r"\w+=.*|-.*|\d+[smhd]?|[!{]|if|elif|else|while|until|then|do|env|g?timeout|nice|nohup|exec|command|time|stdbuf"
    r"|sudo|xargs|\w*sh|python[\d.]*|npx|bunx|uvx|run|dlx"
)
_STARTERS = frozenset("uv poetry pdm hatch pipenv rye bundle pnpm yarn npm".split())
# Programs that read files and run none of them.
_READERS = frozenset("grep egrep fgrep rg test [ [[ wc diff cmp ls stat jq touch mkdir rm true false".split())
# Programs that run what a file of the project says.
_RUNNERS = {
    "make": "Makefile",
    "just": "justfile",
    "task": "Taskfile.yml",
    "rake": "Rakefile",
} | dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json")

Words = Sequence[str]  # of one command


def split_commands(text: str, variables: Mapping[str, str]) -> Iterator[Words]:
    """Yield the words of each command in a text, in all ways in which it could be read.

    A variable has its value, or one that is not known: the command may set it.
    """
    text = text.replace(UNKNOWN, " ").replace("\\\n", "").replace("\\ ", UNKNOWN)
    readings = dict.fromkeys((_replace_variables(text, variables), _replace_variables(text, {})))
    for each in dict.fromkeys(_OUTPUT.sub(" ", each).translate(form) for each in readings for form in _FORMS):
        yield from filter(None, map(str.split, _BETWEEN_COMMANDS.split(each)))
    for each in readings:  # a name with blanks
        yield from ([word] for found in _QUOTED.findall(each) if " " in (word := "".join(found)))


def _replace_variables(text: str, variables: Mapping[str, str]) -> str:
    for _ in range(3 if "$" in text else 0):  # a default value may have variables
        text = _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[3] or UNKNOWN), text)
    return text


def pieces_of(word: str) -> list[str]:
    """Return what may be a path in a word: `--file=x`, `-fx`, `PATH=x:y`."""
    pieces = (word, *_BETWEEN_PIECES.split(word), word[2:] if word.startswith("-") else "")
    return [piece for piece in dict.fromkeys(each.strip("$") for each in pieces) if piece.strip("./")]


def names_configuration(words: Words, number: int) -> bool:
    """Return whether a word is the value of an option that names a configuration file."""
    option, equals, _ = words[number].partition("=")
    option = option if equals else words[number - 1] if number else ""
    return _CONFIG_OPTION.fullmatch(option) is not None


def is_interpreted(words: Words, number: int) -> bool:
    """Return whether a word stands where a script does: first, or behind an interpreter and its options."""
    before = next((word for word in reversed(words[:number]) if not word.startswith("-")), ".")
    return _INTERPRETER.fullmatch(os.path.basename(before)) is not None


def program_of(words: Words) -> tuple[str, str]:
    """Return the program that is meant, and the command from there on: behind `uv run`, `timeout 60`, `sh -c` …"""
    starter = None  # `npm run NAME` runs what package.json says
    for number, word in enumerate(words):
        name = os.path.basename(word)
        if _BEFORE_PROGRAM.fullmatch(name):
            continue
        command = " ".join((name, *words[number + 1 :]))
        if name not in _STARTERS or takes_data(name, command):
            return starter if starter and not takes_data(name, command) else (name, command)
        starter = starter or ((name, command) if name in _RUNNERS else None)
    return starter or ("", "")


def takes_data(name: str, command: str) -> bool:
    """Return whether the words of a program are what it checks or reads, and not what it runs."""
    is_script = os.path.splitext(name)[1] in CODE and name != "manage.py"
    return name in _READERS or (not is_script and _checks().match(command) is not None)


@cache
def _checks() -> re.Pattern[str]:
    """Return what a command of a tool that checks looks like: only options stand before a subcommand."""
    from turngate.gates.toolchains import TOOLS  # noqa: PLC0415 # lazy: few words name files

    patterns = []
    for tool in TOOLS:
        subcommands = {text for check, text in tool.checks.items() if check != "build"} | {*tool.plants}
        ends = "" if "" in subcommands else rf"\s+(?:[-+]\S+\s+)*(?:{'|'.join(subcommands)})"
        patterns += [re.escape(tool.name) + ends] if subcommands else []
    return re.compile(rf"(?:{'|'.join(patterns)})(?![\w.-])")


def describe_runner(name: str, command: str) -> str | None:
    """Return what a program runs beside the files that it is given, or None if that is nothing of the project."""
    from turngate.gates.toolchains import BY_NAME  # noqa: PLC0415 # lazy, as above

    checks = name in BY_NAME and BY_NAME[name].checks
    if not checks and name not in {*_RUNNERS, "turngate"}:
        return None
    return f"what `{command}` runs ({_RUNNERS.get(name, 'its configuration')} and the project's own files)"
