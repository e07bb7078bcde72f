"""Reports files that look like settings but are not read, and what was expected instead."""

import os
import re
from collections.abc import Collection, Sequence
from shlex import quote

from turngate.core.constants import EVENTS, FAMILIES
from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Layer, Problem, Severity
from turngate.filesystem.real_path import real_path
from turngate.settings.key_table import closest_name
from turngate.settings.misplaced_files import MisplacedFile, misplaced_files
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes

MAX_SEARCHED_BYTES = 1024 * 1024
# An event with its list of hooks, in JSON, YAML or TOML.
_HOOKS = re.compile(rf"(?:^|[\s\"'.{{])(?:{'|'.join(EVENTS)})[\"']?\s*(?:[:=]\s*(?:\[|\n)|\])")
_JSON = (".json", ".jsonc", ".json5")
_PROJECT_SOURCES = ("project", "local", "script")
_STEMS = (
    "settings.json",
    "settings.local.json",
    "settings",
    "settings.local",
    "setting",
    "hooks",
    "hook",
    "turngate",
    "config",
    "config.local",
)


def near_misses(
    project: str, dialect: str, home: str, layers: Sequence[Layer], used: Collection[str]
) -> list[Problem]:
    """Return a problem for each file that the user probably took for settings.

    `used` holds the folders of plugins, and the file of `--settings`.
    """
    files = misplaced_files(project, dialect, home)
    if not files:
        return []
    problems: list[Problem | None] = []
    used = {real_path(path) for path in used}
    seen = {*used}  # one problem is enough for the two files of a plugin
    for file in files:
        path = real_path(file.path)
        if path in used or path.removesuffix("/hooks/hooks.json") in used:
            continue
        if file.kind == "link":
            message = "is a link to a folder that does not exist; no settings are read from it"
            problems.append(_problem(file, message, "error", "repair the link, or remove it"))
        elif file.kind == "script":
            problems.append(_script_problem(file, layers))
        elif file.kind != "plugin":
            problems.append(_settings_problem(file, layers))
        elif (
            root := real_path(os.path.dirname(os.path.dirname(file.path)))
        ) not in seen and _has_plugin_hooks(file):
            seen.add(root)
            if file.display_name.startswith("plugins/") and _has_project_hooks(layers):
                continue  # a project with hooks may develop plugins
            problems.append(_plugin_problem(file, dialect, layers))
    return [problem for problem in problems if problem]


def _settings_problem(file: MisplacedFile, layers: Sequence[Layer]) -> Problem | None:
    text = _read(file.path)
    stem = os.path.basename(file.path).rpartition(".")[0].lstrip(".")
    if _HOOKS.search(text) and (not stem or closest_name(stem, _STEMS)):
        is_json = file.path.endswith(_JSON) or text.lstrip().startswith("{")
        verb = "move its hooks to" if is_json else "write its hooks as JSON to"
        message = f"is not read, so its hooks never run; expected {file.expected}"
        severity: Severity = "warning" if _is_beside_settings(file, layers) else "error"
        return _problem(file, message, severity, f"{verb} {file.expected}")
    names_turngate = "turngate" in file.display_name or ".mux/" in file.display_name
    if names_turngate and (not stem or closest_name(stem, _STEMS)):
        return _problem(file, f"is not read; expected {file.expected}", "warning")
    return None  # of another program


def _is_beside_settings(file: MisplacedFile, layers: Sequence[Layer]) -> bool:
    """Return whether other settings are read in the same place; then the file may belong to another program."""
    if file.kind == "top":
        return _has_project_hooks(layers)
    folder = os.path.dirname(file.expected)
    return any(os.path.dirname(layer.file) == folder and layer.rules for layer in layers)


def _script_problem(file: MisplacedFile, layers: Sequence[Layer]) -> Problem | None:
    name = os.path.basename(file.path)
    if any(name in hook_text(rule.hook) for layer in layers for rule in layer.rules):
        return None
    message = f"is not run, because a script hook has the name {file.expected}"
    has_gate = any(rule.event == file.event for layer in layers for rule in layer.rules)
    severity: Severity = "warning" if has_gate else "error"  # a gate of the event may start it indirectly
    return _problem(file, message, severity, f"mv {quote(file.display_name)} {file.expected}")


def _has_plugin_hooks(file: MisplacedFile) -> bool:
    text = _read(file.path)
    return bool(_HOOKS.search(text)) or (file.path.endswith("plugin.json") and '"hooks"' in text)


def _plugin_problem(file: MisplacedFile, dialect: str, layers: Sequence[Layer]) -> Problem:
    message = "belongs to a Claude Code plugin, whose hooks do not run by themselves"
    settings = f".{FAMILIES[dialect][-1]}/settings.json"
    root = os.path.dirname(os.path.dirname(file.path))
    hint = f"to run them, add --plugin-dir {quote(root)}; hooks of the project belong in {settings}"
    return _problem(file, message, _plugin_severity(file, layers), hint)


def _plugin_severity(file: MisplacedFile, layers: Sequence[Layer]) -> Severity:
    """A project that is a plugin has gates that were meant; one that only contains plugins may develop them."""
    if _has_project_hooks(layers):
        return "note"
    return "warning" if file.display_name.startswith("plugins/") else "error"


def _has_project_hooks(layers: Sequence[Layer]) -> bool:
    return any(rule.source in _PROJECT_SOURCES for layer in layers for rule in layer.rules)


def _read(path: str) -> str:
    try:
        return read_bytes(path, MAX_SEARCHED_BYTES).decode("utf-8", "replace")
    except (OSError, NotARegularFile, FileTooLarge):
        return ""


def _problem(file: MisplacedFile, message: str, severity: Severity, hint: str | None = None) -> Problem:
    name = file.display_name
    return Problem(file=name, event=file.event, message=message, severity=severity, hint=hint)
