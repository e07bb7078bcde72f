"""What defines a check of a project: the parts of files that say what its commands run, and on which files.

An agent that changes one of them changes what the gate checks. Which command is run, the settings or `find_checks.py` say:
neither is a program that an agent could choose. It decides from texts alone.
"""

import configparser
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turngate.core.text import one_line
from turngate.core.verdict.decisions import Block
from turngate.gates.find_checks import MAKEFILES, ProjectFiles, read_json_table, read_toml_table
from turngate.gates.gate import GateContext
from turngate.gates.stored_state import digest
from turngate.gates.toolchains import CONFIGURATION, CONFTEST

MAX_DEFINITION_FILE_BYTES = 64 * 1024  # of a file that is kept whole
MAX_VALUE_CHARS = 160
MAX_DIFF_LINES = 12

# What a conftest.py can leave out of a run; its fixtures are the project's own.
_LEAVES_OUT = re.compile(r"^.*\b(?:collect_ignore\w*|def pytest_\w+|_exit|exitstatus)\b.*$", re.MULTILINE)
_RUN_SCRIPT = re.compile(
    r"\b(?:npm|pnpm|yarn|bun)\s+(?:run(?:-script)?\s+)?(?:-\S+\s+)*([\w:.-]+)|\brun-[sp]\s+([\w:.-]+)"
)
_MAKE_RULE = re.compile(
    r"^([\w.-][^:=#\n\t]*?)[ \t]*::?(?!=)([^\n]*)\n((?:\t[^\n]*\n?|[ \t]*\n)*)", re.MULTILINE
)
_MAKE_VARIABLE = re.compile(
    r"(?:[\w.-]+[ \t]*:[ \t]*)?(?:export[ \t]+|override[ \t]+)*([\w.-]+)[ \t]*[:?+!]*="
)
_MAKE_SWITCH = re.compile(
    r"-?s?include\b|(?:export[ \t]+)?(?:SHELL|\.SHELLFLAGS|MAKEFLAGS|GNUMAKEFLAGS|PATH)[ \t]*[:?+!]*=|\.(?:IGNORE|SILENT|ONESHELL)\b"
)
_RUN_TARGET = re.compile(r"\bg?make\b((?:\s+[\w./=-]+)*)")


def check_definition(check: str, commands: Sequence[str], files: ProjectFiles) -> dict[str, str]:
    """Return the parts that define a check, by how a message names them."""
    text = "\n".join(commands)
    parts = dict(_scripts(text, read_json_table(files.texts.get("package.json", ""), "scripts")))
    parts |= dict(_recipes(text, files))
    parts |= dict(_configuration(check, files))
    return parts


def _scripts(text: str, scripts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the scripts of package.json that a command runs, and those that they run."""
    waiting = [first or second for first, second in _RUN_SCRIPT.findall(text)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        for each in (f"pre{name}", name, f"post{name}"):
            if each in seen or not isinstance(scripts.get(each), str):
                continue
            seen.add(each)
            yield f"the script `{each}` of package.json", scripts[each]
            waiting += [first or second for first, second in _RUN_SCRIPT.findall(scripts[each])]


def _recipes(text: str, files: ProjectFiles) -> Iterator[tuple[str, str]]:
    """Yield the rules of make that a command runs, those of their prerequisites, and the lines that change how they run."""
    name = next((name for name in MAKEFILES if name in files.texts), None)
    waiting = [word for words in _RUN_TARGET.findall(text) for word in words.split() if "=" not in word]
    if name is None or not waiting:
        return
    rules: dict[str, list[str]] = {}
    for found in _MAKE_RULE.finditer(f"{files.texts[name]}\n"):
        for target in found[1].split():
            rules.setdefault(target, []).append(f"{found[2].strip()}\n{found[3].rstrip()}".strip())
    used = ""
    for target in waiting:
        if target not in rules:
            continue
        recipe = "\n".join(rules.pop(target))
        used += recipe
        yield f"the target `{target}` of {name}", recipe
        waiting += [*recipe.partition("\n")[0].split(), *_words_after_make(recipe)]
    lines = [line for line in files.texts[name].splitlines() if _changes_recipes(line, used)]
    if lines:
        yield f"what {name} sets for it", "\n".join(lines)


def _words_after_make(recipe: str) -> Iterator[str]:
    yield from (word for words in _RUN_TARGET.findall(recipe) for word in words.split())


def _changes_recipes(line: str, recipes: str) -> bool:
    """Return whether a line of a Makefile sets a variable of these recipes, or how make runs all of them."""
    if _MAKE_SWITCH.match(line):
        return True
    variable = _MAKE_VARIABLE.match(line)
    return bool(variable and re.search(rf"\$[({{]{re.escape(variable[1])}[)}}]", recipes))


def _configuration(check: str, files: ProjectFiles) -> Iterator[tuple[str, str]]:
    tools = read_toml_table(files.texts.get("pyproject.toml", ""), "tool")
    for name in CONFIGURATION[check].tables:
        if name in tools:
            yield f"[tool.{name}] of pyproject.toml", _as_text(tools[name])
    for file in ("setup.cfg", "tox.ini"):
        yield from _sections(check, file, files.texts.get(file, ""))
    for key in CONFIGURATION[check].package_keys:
        if found := read_json_table(files.texts.get("package.json", ""), key):
            yield f"`{key}` of package.json", _as_text(found)
    for name, text in sorted(files.texts.items()):
        if re.fullmatch(CONFIGURATION[check].files, name):
            yield name, text[:MAX_DEFINITION_FILE_BYTES]
        elif check == "tests" and re.fullmatch(CONFTEST, name) and (lines := _LEAVES_OUT.findall(text)):
            yield f"what {name} leaves out", "\n".join(lines)


def _sections(check: str, file: str, text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for name in parser.sections():
        if re.fullmatch(CONFIGURATION[check].sections, name):
            yield f"[{name}] of {file}", _as_text(dict(parser.items(name)))


def _as_text(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, default=str, ensure_ascii=False)


def describe_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a sentence, or a difference, for each part that was changed."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [_describe_part(name, before.get(name), now.get(name)) for name in names]


def _describe_part(name: str, before: str | None, now: str | None) -> str:
    if before is None or now is None:
        what = "is new" if before is None else "was removed"
        return f"{name} {what}: `{one_line(now or before or '', MAX_VALUE_CHARS)}`"
    if "\n" not in before + now:
        return f"{name} was `{one_line(before, MAX_VALUE_CHARS)}`, now `{one_line(now, MAX_VALUE_CHARS)}`"
    import difflib  # noqa: PLC0415 # lazy: only for a change

    lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0))[2:]
    changed = [line for line in lines if not line.startswith("@@")]
    more = [f"and {len(changed) - MAX_DIFF_LINES} more lines"] if len(changed) > MAX_DIFF_LINES else []
    return "\n".join([f"{name} was changed:", *changed[:MAX_DIFF_LINES], *more])


CHANGED = "The check `{}` itself was changed in this session:"
ONCE = (
    "If the user has not asked for this, undo it. Otherwise stop again: the check then runs as it is now, "
    "and the user is told of the change."
)


def definition_at_start(context: GateContext) -> dict[str, str] | None:
    """Return what defined the check at the session's start, or else at its first stop."""
    recorded = (context.state.start or {}).get("definition") or context.state.data.get("definition")
    return {str(name): str(text) for name, text in recorded.items()} if isinstance(recorded, dict) else None


def block_once(context: GateContext, check: str, definition: Mapping[str, str]) -> Block | None:
    """Return a block with what the session has changed of a check, the first time that a change is seen."""
    data, before = context.state.data, definition_at_start(context)
    if before is None:
        data["definition"] = dict(definition)
    seen = digest(repr(sorted(definition.items())))
    changes = describe_changes(before or definition, definition)
    if not changes or data.get("told") == seen:
        return None
    data["told"], context.keeps_result = seen, False
    return Block("\n".join([CHANGED.format(check), *(f"- {each}" for each in changes), ONCE]))


def note_changes(context: GateContext, definition: Mapping[str, str]) -> str | None:
    """Return for the user what the session has changed of a check."""
    return "; ".join(describe_changes(definition_at_start(context) or definition, definition)) or None
