"""What a gate runs, as one text: its command, its scripts, and the recipes of make and npm that they start."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes

MAX_BYTES = 1024 * 1024  # of a file that is read
MAX_RECIPES = 50  # of one gate
_SEPARATORS = r"[\s\"',\[\]()]+"  # also between the arguments in a Python or Node script
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_MAKE = re.compile(r"(?<![\w./-])g?make(?![\w.-])([^\n;&|>]*)")
_RULE = re.compile(r"^(?![\t#])([^:=#\n]+):(?![:=])([^=\n]*)$")
_PACKAGE_SCRIPT = re.compile(rf"\b(?:npm|pnpm|yarn|bun){_SEPARATORS}(?:run{_SEPARATORS})?([\w:.-]+)")


def gate_text(command: str, scripts: Iterable[str], project: str) -> str:
    """Return the command with the content of its scripts and of the recipes that they start."""
    text = "\n".join((command, *map(read_text, scripts)))
    return "\n".join((text, *_make_recipes(text, project), *_package_scripts(text, project)))


def read_text(path: str) -> str:
    """Return the content of a file, or an empty text if it cannot be read."""
    try:
        return read_bytes(path, MAX_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, NotARegularFile, FileTooLarge):
        return ""


# make


def _make_recipes(text: str, project: str) -> Iterator[str]:
    calls = _MAKE.findall(text)
    content = next(filter(None, (read_text(f"{project}/{name}") for name in _MAKEFILES)), "") if calls else ""
    rules = _read_rules(content)
    waiting = [target for call in calls for target in _targets(call) or [*rules][:1]]
    done: set[str] = set()
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


def _read_rules(makefile: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return the rules by target, each with what it needs and its recipe; those of patterns and `.PHONY` are left out."""
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
    return rules


# npm


def _package_scripts(text: str, project: str) -> Iterator[str]:
    names = _PACKAGE_SCRIPT.findall(text)
    scripts = _read_scripts(read_text(f"{project}/package.json")) if names else {}
    done: set[str] = set()
    while names and len(done) < MAX_RECIPES:
        name = names.pop(0)
        script = scripts.get(name)
        if isinstance(script, str) and name not in done:
            done.add(name)
            yield script
            names += _PACKAGE_SCRIPT.findall(script)


def _read_scripts(package: str) -> dict[str, Any]:
    try:
        scripts = json.loads(package)["scripts"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return scripts if isinstance(scripts, dict) else {}
