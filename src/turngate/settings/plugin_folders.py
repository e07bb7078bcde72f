"""Loads the hooks of Claude Code plugins: folders with hooks/hooks.json or .claude-plugin/plugin.json."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from turngate.core.constants import COMMAND_LINE, EVENTS, FOREIGN_EVENTS
from turngate.core.dialect import Dialect
from turngate.core.hooks.kinds import CommandHook, GateHook
from turngate.core.hooks.plugin_variables import PLUGIN_DATA, PLUGIN_ROOT
from turngate.core.settings import Layer, Problem
from turngate.core.text import describe_json, truncate
from turngate.project.files import Files
from turngate.project.safe_paths import is_inside
from turngate.settings.parse import UnreadableFile, parse_layer, read_json
from turngate.settings.problem_log import add_duplicate_keys
from turngate.state.paths import plugin_data_folder, state_folder

HOOKS_FILE = os.path.join("hooks", "hooks.json")
MANIFEST = os.path.join(".claude-plugin", "plugin.json")
# A plugin without hooks has at least one of these.
_OTHER_PARTS = ("agents", "commands", "skills", "output-styles", ".mcp.json", ".lsp.json")
MAX_FOLDERS = 100  # of one settings file
MAX_PATH_CHARS = 300  # of a path in a message
_NOT_A_PLUGIN = f"holds neither {HOOKS_FILE} nor {MANIFEST}, so it is not a plugin"


class PluginFolder(NamedTuple):
    """The folder of a plugin, and the settings file that names it; None: the command line or a program."""

    root: str
    display_name: str
    written: str  # as the user wrote it
    level: str
    named_in: str | None


def find_plugin_folders(
    layers: Iterable[Layer],
    given: Sequence[str],
    project: str,
    home: str,
    recorded: Sequence[str] = (),
    *,
    files: Files,
) -> list[PluginFolder]:
    """Return the folders that settings files name, then those that are given, each once.

    Of those that an earlier session has recorded, it is not known who named them: they are trusted as the project's.
    """
    named = [
        (name, layer.level, layer.file)
        for layer in layers
        for name in layer.scalars.get("plugin_dirs", ())[:MAX_FOLDERS]
    ]
    folders: dict[str, PluginFolder] = {}
    others = [*((name, "user", None) for name in given), *((name, "project", None) for name in recorded)]
    for name, level, file in (*named, *others):
        base = home if level == "user" and file else project
        path = os.path.join(home, name[2:]) if name.startswith("~/") else os.path.join(base, name)
        root = os.path.normpath(path)
        folder = PluginFolder(root, display_name(root, project, home), name, level, file)
        folders.setdefault(files.realpath(root), folder)
    return list(folders.values())


def excess_problems(layers: Iterable[Layer]) -> Iterator[Problem]:
    """Report each settings file that names more folders than are read."""
    for layer in layers:
        count = len(layer.scalars.get("plugin_dirs", ()))
        if count > MAX_FOLDERS:
            message = f"names {count:,} folders, and only the first {MAX_FOLDERS} are read"
            yield Problem(file=layer.file, field="turngate.pluginDirs", message=message)


def display_name(path: str, project: str, home: str) -> str:
    """Return the path relative to the project, or with `~`, where it is below one of them."""
    for folder, prefix in ((project, ""), (home, "~/")):
        if path == folder:
            return prefix.rstrip("/") or "."
        if path.startswith(f"{folder.rstrip('/')}/"):
            return prefix + os.path.relpath(path, folder)
    return path


def _describe_path(path: str) -> str:
    return truncate(path.encode("utf-8", "backslashreplace").decode("utf-8"), MAX_PATH_CHARS)


class PluginLoader:
    """Reads a layer from each file of a plugin that has hooks or problems."""

    def __init__(self, folder: PluginFolder, dialect: Dialect, files: Files) -> None:
        self.folder, self.dialect, self._files = folder, dialect, files
        self.family = "claude" if "claude" in dialect.families else dialect.families[-1]

    def load(self) -> Iterator[Layer]:
        problem = self._folder_problem()
        if problem:
            yield self._layer(problem)
            return
        manifest, problems = self._read_manifest()
        if problems:
            yield self._layer(*problems)
        if self._exists(HOOKS_FILE) and self._is_outside(HOOKS_FILE):
            message = "leads outside of the plugin, so its hooks never run"
            yield self._layer(self._problem(HOOKS_FILE, message))
        elif self._exists(HOOKS_FILE):
            yield self._load_file(HOOKS_FILE, manifest)
        listed = manifest.get("hooks", [])
        for item in listed if isinstance(listed, list) else [listed]:
            layer = self._load_item(item, manifest)
            if layer:
                yield layer

    def _folder_problem(self) -> Problem | None:
        root, _, written, _, named_in = self.folder
        if not self._files.isdir(root):
            wrong = "is not a folder" if self._files.lexists(root) else "does not exist"
            name, message = _describe_path(written), f"{wrong}, expected the folder of a plugin"
            if named_in is None:
                return Problem(file=name, message=message)
            return Problem(file=named_in, field="turngate.pluginDirs", message=f"{name} {message}")
        if any(map(self._exists, (HOOKS_FILE, MANIFEST, *_OTHER_PARTS))):
            return None
        return Problem(file=self.folder.display_name, message=_NOT_A_PLUGIN, hint=self._hint())

    def _hint(self) -> str | None:
        parent, name = os.path.split(self.folder.root)
        for folder, file in map(os.path.split, (HOOKS_FILE, MANIFEST)):
            if name == folder and self._exists(file):
                return f"the folder above it is a plugin: name {_describe_path(parent)}"
        for name, expected in (("hooks.json", HOOKS_FILE), ("plugin.json", MANIFEST)):
            if self._exists(name):
                return f"move {name} to {expected}"
        if self._exists(os.path.join(".claude-plugin", "marketplace.json")):
            return "it is a marketplace: name the folder of one of its plugins"
        for name in self._names():
            if any(self._exists(os.path.join(name, file)) for file in (HOOKS_FILE, MANIFEST)):
                return f"its subfolder {name} is a plugin: name that one"
        return None

    def _names(self) -> list[str]:
        try:
            return sorted(self._files.listdir(self.folder.root))
        except OSError:  # it may not be listed
            return []

    def _read_manifest(self) -> tuple[dict[str, Any], list[Problem]]:
        """Return the manifest, which is optional, and what is wrong with it."""
        try:
            value = read_json(os.path.join(self.folder.root, MANIFEST), self._files).value
        except FileNotFoundError:
            return {}, []
        except UnreadableFile as error:
            return {}, [self._problem(MANIFEST, f"{error}; none of its hooks run", hint=error.hint)]
        if isinstance(value, dict):
            return value, []
        return {}, [self._problem(MANIFEST, f"the file holds {describe_json(value)}, expected an object")]

    def _load_item(self, item: Any, manifest: dict[str, Any]) -> Layer | None:
        """Load one value of `hooks` in the manifest: the path of a file, or the hooks themselves."""
        if isinstance(item, dict):
            return self._parse(item, MANIFEST, manifest)
        if not isinstance(item, str):
            message = f"is {describe_json(item)}, expected an object, a path in the plugin, or a list of them"
            return self._layer(self._problem(MANIFEST, message, field="hooks"))
        root = self._files.realpath(self.folder.root)
        path = self._files.realpath(os.path.join(root, item))
        if self._is_outside(item):
            return self._lost_file(item, "leads outside of the plugin")
        if not self._files.lexists(path):
            return self._lost_file(item, "does not exist")
        name = os.path.relpath(path, root)
        is_loaded = path == self._files.realpath(os.path.join(root, HOOKS_FILE))
        return None if is_loaded else self._load_file(name, manifest)

    def _is_outside(self, name: str) -> bool:
        """Return whether a file is outside of the plugin, as far as it can be resolved."""
        root = self._files.realpath(self.folder.root)
        path = os.path.normpath(self._files.realpath(os.path.join(root, name)))
        return path == root or not is_inside(path, root)

    def _lost_file(self, path: str, why: str) -> Layer:
        message = f"{_describe_path(path)} {why}, so its hooks never run"
        return self._layer(self._problem(MANIFEST, message, field="hooks"))

    def _load_file(self, name: str, manifest: dict[str, Any]) -> Layer:
        try:
            value, duplicates = read_json(os.path.join(self.folder.root, name), self._files)
        except FileNotFoundError:  # removed just now
            return self._lost_file(name, "does not exist")
        except UnreadableFile as error:
            return self._layer(self._problem(name, f"{error}; none of its hooks run", hint=error.hint))
        return add_duplicate_keys(self._parse(value, name, manifest), duplicates)

    def _parse(self, value: Any, name: str, manifest: dict[str, Any]) -> Layer:
        """Read `{"hooks": {…}}` or the bare `{…}`. A plugin sets hooks and nothing else."""
        hooks = value
        if isinstance(value, dict):
            is_bare = "hooks" not in value and any(key in EVENTS or key in FOREIGN_EVENTS for key in value)
            hooks = {"hooks": value if is_bare else value.get("hooks", {})}
        file, level = self._display_name(name), self.folder.level
        layer = parse_layer(hooks, file=file, level=level, family=self.family, dialect=self.dialect)
        if value and isinstance(value, dict) and hooks == {"hooks": {}} and "hooks" not in value:
            problem = self._problem(name, 'has no "hooks", so it has no effect', severity="warning")
            return replace(layer, problems=(problem,))
        root = self.folder.root
        plugin_name = manifest.get("name")
        title = plugin_name if isinstance(plugin_name, str) else os.path.basename(root)
        data = plugin_data_folder(state_folder(self._files.environ, self._files.home), title, root)
        level = COMMAND_LINE if self.folder.named_in is None and level == "user" else level
        # The variables also make it another hook than the same command elsewhere.
        variables, rules = {PLUGIN_ROOT: root, PLUGIN_DATA: data}, []
        for rule in layer.rules:
            hook = rule.hook
            if isinstance(hook, CommandHook | GateHook):
                hook = replace(hook, env={**hook.env, **variables})
            rules.append(replace(rule, hook=hook, source="plugin", level=level))
        return replace(layer, rules=tuple(rules))

    def _exists(self, name: str) -> bool:
        return self._files.lexists(os.path.join(self.folder.root, name))

    def _display_name(self, name: str) -> str:
        folder = self.folder.display_name
        return name if folder == "." else os.path.join(folder, name)

    def _problem(self, name: str, message: str, **fields: Any) -> Problem:
        return Problem(file=self._display_name(name), message=message, **fields)

    def _layer(self, *problems: Problem) -> Layer:
        file, level = problems[0].file, self.folder.level
        return Layer(file=file, level=level, family=self.family, problems=problems)
