"""What a gate runs, as one text: its command, its scripts, and the recipes of make and npm that they start."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from turngate.gates.project_files import MAKEFILES
from turngate.project.files import LOCAL, Files
from turngate.settings.paths import read_text

MAX_RECIPES = 50  # of one gate
_SEPARATORS = r"[\s\"',\[\]()]+"  # also between the arguments in a Python or Node script
_COMMENT_LINES = re.compile(r"^[ \t]*#.*\n?", re.MULTILINE)
_MAKE = re.compile(r"(?<![\w./-])g?make(?![\w.-])([^\n;&|>]*)")
_RULE = re.compile(r"^(?![\t#])([^:=#\n]+):(?![:=])([^=\n]*)$")
_PACKAGE_SCRIPT = re.compile(rf"\b(?:npm|pnpm|yarn|bun){_SEPARATORS}(?:run{_SEPARATORS})?([\w:.-]+)")


def gate_text(command: str, scripts: Iterable[str], project: str, files: Files = LOCAL) -> str:
    """Return the command with the content of its scripts and of the recipes that they start."""
    read = (read_text(path, files) for path in scripts)
    text = _COMMENT_LINES.sub("", "\n".join((command, *read)))
    made = _recipes(_MAKE, _made, text, project, files)
    return "\n".join((text, *made, *_recipes(_PACKAGE_SCRIPT, _run, text, project, files)))


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


_Rules = Mapping[str, tuple[Sequence[str], Sequence[str]]]  # by name: what it needs, and its lines


_ReadRules = Callable[[str, str, Files], tuple[Sequence[str], _Rules]]


def _recipes(
    pattern: re.Pattern[str], read: _ReadRules, text: str, project: str, files: Files
) -> Iterator[str]:
    """Yield the lines that calls of make or npm run, after a line that leads to their folder if another one was left."""
    for call in islice(pattern.finditer(text), MAX_RECIPES):
        folder = folder_at(text, call.start(), project, files)
        lines = list(_lines_of(*read(call[1], os.path.join(project, folder), files)))
        if lines and (folder or _CD.search(text)):
            yield f"cd $TURNGATE_PROJECT_DIR/{folder}"
        yield from lines


def _lines_of(names: Sequence[str], rules: _Rules) -> Iterator[str]:
    waiting, done = list(names), set[str]()
    while waiting and len(done) < MAX_RECIPES:
        name = waiting.pop(0)
        if name in rules and name not in done:
            done.add(name)
            needed, lines = rules[name]
            yield from lines
            waiting += needed


def _made(arguments: str, folder: str, files: Files) -> tuple[Sequence[str], _Rules]:
    """Return the targets of a call of make, and the rules of its file: without those of patterns, and `.PHONY`."""
    if re.search(r"\s-C\b|--directory", arguments):
        return (), {}
    makefile = next(filter(None, (read_text(os.path.join(folder, name), files) for name in MAKEFILES)), "")
    rules: dict[str, tuple[list[str], list[str]]] = {}
    targets: list[str] = []
    for line in makefile.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            for target in targets:
                rules[target][1].append(line.strip())
        elif found := _RULE.match(line):
            needed, _, recipe = found[2].partition(";")
            targets = [name for name in found[1].split() if "%" not in name and not name.startswith(".")]
            for target in targets:
                earlier = rules.setdefault(target, ([], []))
                earlier[0].extend(needed.split())
                earlier[1].extend([recipe.strip()] if recipe.strip() else [])
        elif line.strip() and not line.startswith("#"):
            targets = []
    words = re.split(_SEPARATORS, arguments)
    named = [word for word in words if re.fullmatch(r"[\w.][\w./-]*", word) and word != "."]
    return named or [*rules][:1], rules


def _run(name: str, folder: str, files: Files) -> tuple[Sequence[str], _Rules]:
    """Return the script of a call of npm, and all scripts of the package."""
    try:
        scripts = json.loads(read_text(os.path.join(folder, "package.json"), files))["scripts"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return (), {}
    texts = {key: text for key, text in scripts if isinstance(text, str)}
    return [name], {key: (_PACKAGE_SCRIPT.findall(text), [text]) for key, text in texts.items()}
