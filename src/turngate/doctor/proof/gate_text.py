"""What a gate runs, as one text: its command, its scripts, and the recipes of make and npm that they start."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes

MAX_BYTES = 1024 * 1024  # of a file that is read
MAX_RECIPES = 50  # of one gate
_SEPARATORS = r"[\s\"',\[\]()]+"  # also between the arguments in a Python or Node script
_COMMENT_LINES = re.compile(r"^[ \t]*#.*\n?", re.MULTILINE)
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_MAKE = re.compile(r"(?<![\w./-])g?make(?![\w.-])([^\n;&|>]*)")
_RULE = re.compile(r"^(?![\t#])([^:=#\n]+):(?![:=])([^=\n]*)$")
_PACKAGE_SCRIPT = re.compile(rf"\b(?:npm|pnpm|yarn|bun){_SEPARATORS}(?:run{_SEPARATORS})?([\w:.-]+)")


def gate_text(command: str, scripts: Iterable[str], project: str) -> str:
    """Return the command with the content of its scripts and of the recipes that they start."""
    text = _COMMENT_LINES.sub("", "\n".join((command, *map(read_text, scripts))))
    return "\n".join((text, *_make_recipes(text, project), *_package_scripts(text, project)))


def read_text(path: str) -> str:
    """Return the content of a file, or an empty text if it cannot be read."""
    try:
        return read_bytes(path, MAX_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, NotARegularFile, FileTooLarge):
        return ""


_CD = re.compile(r"(?:^|[;&|({\n]|\bthen\b|\bdo\b)[ \t]*cd[ \t]+(\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|]+)")
_PROJECT = re.compile(r"\$\{?(?:CLAUDE|MUX|TURNGATE)_PROJECT_DIR(?::?-[^}]*)?\}?/?")


def folder_at(text: str, position: int, project: str) -> str:
    """Return the folder in which this part of a text runs, as far as it is known: relative, "" for the project."""
    folder = ""
    for found in _CD.finditer(text, 0, position):
        rest = text[found.end() : position]
        # `"$CLAUDE_PROJECT_DIR"/app` is two words for the expression above.
        word = found[1].strip("\"'") + (re.match(r"[^\s;&|]*", rest) or [""])[0]
        is_anchored = bool(_PROJECT.match(word))
        name = os.path.normpath(os.path.join("" if is_anchored else folder, _PROJECT.sub("", word, count=1)))
        is_inside = not name.startswith(("..", "/")) and os.path.isdir(os.path.join(project, name))
        folder = name if is_inside and name != "." else ""
    return folder


def _folder_line(text: str, folder: str) -> list[str]:
    """Return a line that takes what follows to its folder; none where no other folder was left."""
    is_moved = folder or _CD.search(text)
    return [f"cd $TURNGATE_PROJECT_DIR/{folder}"] if is_moved else []


# make


def _make_recipes(text: str, project: str) -> Iterator[str]:
    for call in list(_MAKE.finditer(text))[:MAX_RECIPES]:
        folder = folder_at(text, call.start(), project)
        paths = (os.path.join(project, folder, name) for name in _MAKEFILES)
        rules = _read_rules(next(filter(None, map(read_text, paths)), ""))
        recipes = list(_recipes_of(_targets(call[1]) or [*rules][:1], rules))
        if recipes and not re.search(r"\s-C\b|--directory", call[1]):
            yield from (*_folder_line(text, folder), *recipes)


def _recipes_of(targets: list[str], rules: "_Rules") -> Iterator[str]:
    waiting, done = targets, set[str]()
    while waiting and len(done) < MAX_RECIPES:
        target = waiting.pop(0)
        if target in rules and target not in done:
            done.add(target)
            needed, recipe = rules[target]
            yield from recipe
            waiting += needed


def _targets(arguments: str) -> list[str]:
    words = [word for word in re.split(_SEPARATORS, arguments) if word]
    return [word for word in words if re.fullmatch(r"[\w.][\w./-]*", word) and word != "."]


_Rules = dict[str, tuple[list[str], list[str]]]


def _read_rules(makefile: str) -> _Rules:
    """Return the rules by target, each with what it needs and its recipe; those of patterns and `.PHONY` are left out."""
    rules: _Rules = {}
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
    return rules


# npm


def _package_scripts(text: str, project: str) -> Iterator[str]:
    for call in list(_PACKAGE_SCRIPT.finditer(text))[:MAX_RECIPES]:
        folder = folder_at(text, call.start(), project)
        scripts = list(
            _scripts_of(call[1], _read_scripts(read_text(os.path.join(project, folder, "package.json"))))
        )
        if scripts:
            yield from (*_folder_line(text, folder), *scripts)


def _scripts_of(name: str, scripts: dict[str, Any]) -> Iterator[str]:
    waiting, done = [name], set[str]()
    while waiting and len(done) < MAX_RECIPES:
        each = waiting.pop(0)
        script = scripts.get(each)
        if isinstance(script, str) and each not in done:
            done.add(each)
            yield script
            waiting += _PACKAGE_SCRIPT.findall(script)


def _read_scripts(package: str) -> dict[str, Any]:
    try:
        scripts = json.loads(package)["scripts"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return scripts if isinstance(scripts, dict) else {}
