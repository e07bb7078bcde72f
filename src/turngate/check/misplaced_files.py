"""Finds files that look like settings but are not read, and says what was expected instead."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from shlex import quote
from typing import NamedTuple

from turngate.core.constants import COMMAND_LINE, EVENTS, SCRIPT_FAMILIES, SCRIPTS
from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Layer, Problem, Severity
from turngate.project.safe_paths import real_path
from turngate.settings.key_table import closest_name
from turngate.settings.load import Layers
from turngate.settings.paths import read_text
from turngate.settings.plugin_folders import HOOKS_FILE, MANIFEST

_MAX_PLUGINS = 100  # in the folder `plugins`
# An event with its list of hooks, in JSON, YAML or TOML.
_HOOKS = re.compile(rf"(?:^|[\s\"'.{{])(?:{'|'.join(EVENTS)})[\"']?\s*(?:[:=]\s*(?:\[|\n)|\])")
_READ = ("settings.json", "settings.local.json")
_STEMS = (
    *("settings.json", "settings.local.json", "settings", "settings.local", "setting"),
    *("hooks", "hook", "turngate", "config", "config.local"),
)
_JSON = ("json", "jsonc", "json5")
_SUFFIXES = (*_JSON, "yaml", "yml", "toml", "txt", "local")
_FOLDERS_WITH_A_CONFIG = ("~/.claude", "~/.mux", ".mux")  # of another program
_HOOK_FOLDER_FILES = ("hooks/hooks.json", "hooks/settings.json")  # the place of a plugin's hooks, or nearly
_SCRIPT_SUFFIXES = ("", "sh", "bash", "py", "js", "mjs", "ts", "rb", "pl")
_SCRIPT_NAMES = {"stop": "Stop", "subagentstop": "SubagentStop"}
# Files at the top of a project, each with the family whose settings were probably meant; None: the dialect's own.
_TOP_FILES = {
    **{f"turngate.{suffix}": "turngate" for suffix in ("json", "yaml", "yml", "toml")},
    ".turngate.json": "turngate",
    **{f"{family}/settings.json": family for family in ("turngate", "mux", "claude")},
    **dict.fromkeys((*_READ, "hooks.json")),
}


class _File(NamedTuple):
    """A file that is not read, and what was expected in its place."""

    path: str
    name: str  # in messages
    expected: str


def find_misplaced_files(read: Layers) -> tuple[Problem, ...]:
    """Return a problem for each file that the user probably took for settings."""
    given = [layer.file for layer in read.layers if layer.level == COMMAND_LINE]
    used = {real_path(path) for path in (*read.plugin_dirs, *given)}
    bases = {read.project: "", read.home: "~/"}  # in the home folder, the files of the user
    files = [
        file
        for base, prefix in reversed(bases.items())
        for family in read.dialect.families
        for file in _in_family(os.path.join(base, f".{family}"), f"{prefix}.{family}", family)
    ]
    files += _in_misspelt_folders(read)
    families = read.dialect.families
    for name, meant in _TOP_FILES.items():
        path = os.path.join(read.project, name)
        if (meant is None or meant in families) and os.path.isfile(path):
            files.append(_File(path, name, _expected(f".{meant or families[-1]}", name)))
    found = ((file, real_path(file.path)) for file in files)
    unread = (file for file, path in found if used.isdisjoint((path, path.removesuffix(f"/{HOOKS_FILE}"))))
    return (*filter(None, (_problem(file, read.layers) for file in unread)), *_plugins(read, used))


def _in_family(path: str, folder: str, family: str) -> Iterator[_File]:
    if os.path.isfile(path) or (os.path.islink(path) and not os.path.exists(path)):
        yield _File(path, folder, f"{folder}/settings.json")
    inner = (_HOOK_FOLDER_FILES if entry == "hooks" else (entry,) for entry in _names(path))
    for name in chain.from_iterable(inner):
        file = os.path.join(path, name)
        event = _script_event(name) if family in SCRIPT_FAMILIES and folder[0] != "~" else None
        if event:
            yield _File(file, f"{folder}/{name}", f"{folder}/{SCRIPTS[event]}")
        elif os.path.isdir(file) or not os.path.lexists(file):
            continue  # a folder is not a mistake
        elif name not in _READ and _looks_like_settings(name, folder):
            yield _File(file, f"{folder}/{name}", _expected(folder, name))


def _looks_like_settings(name: str, folder: str) -> bool:
    stem, dot, suffix = name.lower().rpartition(".")
    if not dot:
        stem, suffix = suffix, ""
    if folder in _FOLDERS_WITH_A_CONFIG and stem.startswith("config"):
        return False
    is_close = not suffix or closest_name(suffix, _SUFFIXES, 0.7)
    return bool(is_close and closest_name(os.path.basename(stem), _STEMS))


def _in_misspelt_folders(read: Layers) -> Iterator[_File]:
    for family in read.dialect.families:
        right = os.path.join(read.project, f".{family}")
        for name in _names(read.project):
            path = os.path.join(read.project, name)
            if name[0] != "." or name == f".{family}" or not closest_name(name[1:], [family], 0.82):
                continue
            if not (os.path.exists(right) and os.path.samefile(path, right)):  # a link, or case is ignored
                there = (file for file in _READ if os.path.isfile(os.path.join(path, file)))
                yield from (_File(f"{path}/{file}", f"{name}/{file}", f".{family}/{file}") for file in there)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _expected(folder: str, name: str) -> str:
    return f"{folder}/{'settings.local.json' if 'local' in name.lower() else 'settings.json'}"


def _script_event(name: str) -> str | None:
    """Return the event of a script whose name is almost that of a script hook."""
    if name in SCRIPTS.values():
        return None
    stem, _, suffix = name.lower().partition(".")
    return _SCRIPT_NAMES.get(stem.replace("_", "").replace("-", "")) if suffix in _SCRIPT_SUFFIXES else None


def _problem(file: _File, layers: Sequence[Layer]) -> Problem | None:
    if not file.expected.endswith(_READ):
        return _script_problem(file, layers)
    if not os.path.exists(file.path):
        message = "is a link to a folder that does not exist; no settings are read from it"
        return Problem(file=file.name, message=message, hint="repair the link, or remove it")
    text = read_text(file.path)
    if _HOOKS.search(text):
        is_json = file.path.endswith(_JSON) or text.lstrip().startswith("{")
        verb = "move its hooks to" if is_json else "write its hooks as JSON to"
        message = f"is not read, so its hooks never run; expected {file.expected}"
        severity: Severity = "warning" if _is_beside_settings(file, layers) else "error"
        return Problem(file=file.name, message=message, severity=severity, hint=f"{verb} {file.expected}")
    if "turngate" in file.name or ".mux/" in file.name:
        return Problem(file=file.name, message=f"is not read; expected {file.expected}", severity="warning")
    return None  # of another program


def _is_beside_settings(file: _File, layers: Sequence[Layer]) -> bool:
    """Return whether other settings are read in the same place; then the file may belong to another program."""
    if file.name in _TOP_FILES:
        return _has_project_hooks(layers)
    folder = os.path.dirname(file.expected)
    return any(os.path.dirname(layer.file) == folder and layer.rules for layer in layers)


def _script_problem(file: _File, layers: Sequence[Layer]) -> Problem | None:
    name = os.path.basename(file.path)
    rules = [rule for layer in layers for rule in layer.rules]
    if any(name in hook_text(rule.hook) for rule in rules):
        return None
    event = _script_event(name)
    return Problem(
        file=file.name,
        event=event,
        message=f"is not run, because a script hook must be named {file.expected}",
        # A gate of the event may start it indirectly.
        severity="warning" if any(rule.event == event for rule in rules) else "error",
        hint=f"mv {quote(file.name)} {file.expected}",
    )


def _plugins(read: Layers, used: set[str]) -> Iterator[Problem]:
    """Report plugins that are not loaded. A project with hooks may contain plugins that it develops."""
    has_hooks = _has_project_hooks(read.layers)
    names = _names(os.path.join(read.project, "plugins"))[: 0 if has_hooks else _MAX_PLUGINS]
    seen = {*used}  # one problem is enough for the two files of a plugin
    for name in (HOOKS_FILE, MANIFEST, *(f"plugins/{plugin}/{HOOKS_FILE}" for plugin in names)):
        path = os.path.join(read.project, name)
        root = os.path.dirname(os.path.dirname(path))
        text = read_text(path)
        has_plugin_hooks = _HOOKS.search(text) or (path.endswith(MANIFEST) and '"hooks"' in text)
        if real_path(root) in seen or not has_plugin_hooks:
            continue
        seen.add(real_path(root))
        settings = f".{read.dialect.families[-1]}/settings.json"
        yield Problem(
            file=name,
            message="belongs to a Claude Code plugin, whose hooks do not run by themselves",
            severity="note" if has_hooks else "warning" if name.startswith("plugins/") else "error",
            hint=f"to run them, add --plugin-dir {quote(root)}; hooks of the project belong in {settings}",
        )


def _has_project_hooks(layers: Sequence[Layer]) -> bool:
    sources = ("project", "local", "script")
    return any(rule.source in sources for layer in layers for rule in layer.rules)
