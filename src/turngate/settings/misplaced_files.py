"""Finds files that look like settings but are not read. Imports little: the fast path of `turngate fire` needs it."""

import os

from turngate.core.constants import FAMILIES, SCRIPT_FAMILIES, SCRIPTS
from turngate.filesystem import files

_READ = ("settings.json", "settings.local.json")
_SUFFIXES = ("json", "jsonc", "json5", "yaml", "yml", "toml")
_MISSPELT_SUFFIXES = ("jsn", "josn", "jso", "jsno", "jason", "jsonn", "txt", "local", "")  # of settings
_BEGINNINGS = ("set", "hook", "turngate")
_BEGINNINGS_WITH_CONFIG = (*_BEGINNINGS, "config")
_FOLDERS_WITH_A_CONFIG = ("~/.claude", "~/.mux", ".mux")  # of another program
_SCRIPT_SUFFIXES = ("", "sh", "bash", "py", "js", "mjs", "ts", "rb", "pl")
_SCRIPT_NAMES = {"stop": "Stop", "subagentstop": "SubagentStop"}
_HOOK_FOLDER_FILES = ("hooks/hooks.json", "hooks/settings.json")  # the place of a plugin's hooks, or nearly
_MAX_PLUGINS = 100  # in the folder `plugins`
PLUGIN_FILES = ("hooks/hooks.json", ".claude-plugin/plugin.json")

# Files at the top of a project, each with the family whose settings were probably meant; None: the dialect's own.
_TOP_FILES = {
    "turngate.json": "turngate",
    ".turngate.json": "turngate",
    "turngate.yaml": "turngate",
    "turngate.yml": "turngate",
    "turngate.toml": "turngate",
    "turngate/settings.json": "turngate",
    "mux/settings.json": "mux",
    "claude/settings.json": "claude",
    "settings.json": None,
    "settings.local.json": None,
    "hooks.json": None,
}


class MisplacedFile:
    """A file that is not read: its path, and what was expected in its place.

    kind: `settings` in the folder of a family; `link` for such a folder that is a link to nothing; `top` at the top of
    the project; `script`, which has an event; `plugin`.
    """

    def __init__(
        self, kind: str, path: str, display_name: str, expected: str = "", event: str | None = None
    ) -> None:
        self.kind, self.path, self.display_name = kind, path, display_name
        self.expected, self.event = expected, event


def misplaced_files(project: str, dialect: str, home: str) -> list[MisplacedFile]:
    """Return what may be misplaced, by its name alone. `near_misses` reads the files and decides."""
    found: list[MisplacedFile] = []
    for base, prefix in ((home, "~/"), (project, "")):
        if not prefix and base == home:
            continue
        for family in FAMILIES[dialect]:
            found += _in_family(base, f"{prefix}.{family}", family)
    names = _names(project)
    for family in FAMILIES[dialect]:
        found += [file for name in names for file in _in_misspelt_folder(project, name, family)]
    for name, meant in _TOP_FILES.items():
        path = os.path.join(project, name)
        if (meant is None or meant in FAMILIES[dialect]) and files.isfile(path):
            expected = _expected(f".{meant or FAMILIES[dialect][-1]}", name)
            found.append(MisplacedFile("top", path, name, expected))
    plugins = _names(os.path.join(project, "plugins"))[:_MAX_PLUGINS] if "plugins" in names else []
    for name in (*PLUGIN_FILES, *(f"plugins/{plugin}/{PLUGIN_FILES[0]}" for plugin in plugins)):
        path = os.path.join(project, name)
        if files.isfile(path):
            found.append(MisplacedFile("plugin", path, name))
    return found


def _names(folder: str) -> list[str]:
    try:
        return sorted(files.listdir(folder))
    except OSError:
        return []


def _in_misspelt_folder(project: str, name: str, family: str) -> list[MisplacedFile]:
    if name[0] != "." or name == f".{family}" or not _is_misspelt(name[1:].lower(), family):
        return []
    paths = ((file, os.path.join(project, name, file)) for file in _READ)
    return [
        MisplacedFile("settings", path, f"{name}/{file}", f".{family}/{file}")
        for file, path in paths
        if files.isfile(path) and not _is_same_folder(project, name, family)
    ]


def _is_misspelt(word: str, family: str) -> bool:
    """Return whether the words differ in one letter, or in two that are swapped. difflib takes long to import."""
    if word == family:
        return True
    wrong, right = word, family
    while wrong and right and wrong[0] == right[0]:
        wrong, right = wrong[1:], right[1:]
    while wrong and right and wrong[-1] == right[-1]:
        wrong, right = wrong[:-1], right[:-1]
    is_swapped = len(wrong) == 2 and wrong == right[::-1]
    return len(family) > 3 and (max(len(wrong), len(right)) <= 1 or is_swapped)


def _is_same_folder(project: str, name: str, family: str) -> bool:
    """Return whether the file system ignores case, or one folder is a link to the other."""
    try:
        paths = (os.path.join(project, name), os.path.join(project, f".{family}"))
        return os.path.samestat(*map(files.stat, paths))
    except OSError:
        return False


def _in_family(base: str, folder: str, family: str) -> list[MisplacedFile]:
    path = os.path.join(base, f".{family}")
    try:
        names = sorted(files.listdir(path))
    except NotADirectoryError:
        return [MisplacedFile("settings", path, folder, f"{folder}/settings.json")]
    except FileNotFoundError:
        return [MisplacedFile("link", path, folder)] if files.islink(path) else []
    except OSError:
        return []
    found = []
    for name in (name for entry in names for name in (_HOOK_FOLDER_FILES if entry == "hooks" else (entry,))):
        if name not in _READ and _looks_like_settings(name, path, folder):
            expected = _expected(folder, name)
            found.append(MisplacedFile("settings", os.path.join(path, name), f"{folder}/{name}", expected))
        elif family in SCRIPT_FAMILIES and not folder.startswith("~") and (event := _script_event(name)):
            expected = f"{folder}/{SCRIPTS[event]}"
            found.append(
                MisplacedFile("script", os.path.join(path, name), f"{folder}/{name}", expected, event)
            )
    return found


def _looks_like_settings(name: str, path: str, folder: str) -> bool:
    lower = name.lower()
    stem, _, suffix = lower.rpartition(".") if "." in name else (lower, "", "")
    if suffix in _SUFFIXES:
        is_close = stem.startswith(
            _BEGINNINGS if folder in _FOLDERS_WITH_A_CONFIG else _BEGINNINGS_WITH_CONFIG
        )
    else:
        is_close = suffix in _MISSPELT_SUFFIXES and stem.startswith("setting")
    # A folder is not a mistake, and most projects have no hooks/hooks.json.
    needs_file = suffix not in _SUFFIXES or "/" in name
    return is_close and (not needs_file or files.isfile(os.path.join(path, name)))


def _expected(folder: str, name: str) -> str:
    return f"{folder}/{'settings.local.json' if 'local' in name.lower() else 'settings.json'}"


def _script_event(name: str) -> str | None:
    """Return the event of a script whose name is almost that of a script hook."""
    if name in SCRIPTS.values():
        return None
    stem, _, suffix = name.lower().partition(".")
    return _SCRIPT_NAMES.get(stem.replace("_", "").replace("-", "")) if suffix in _SCRIPT_SUFFIXES else None
