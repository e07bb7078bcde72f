"""The fingerprint of a hook: its definition, the files that it runs, and the variables that its command uses."""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks.kinds import KINDS, CommandHook, GateHook, Hook, HttpHook, command_of
from turngate.core.hooks.plugin_variables import expand_plugin_variables
from turngate.core.settings import Rule
from turngate.project.content_hash import content_id, file_id, has_id, names_id
from turngate.project.files import Files
from turngate.project.safe_paths import is_inside
from turngate.settings.key_table import HOOK_KEYS
from turngate.trust.script_files import ScriptFiles

_ENCODER = json.JSONEncoder(separators=(",", ":"), default=repr)
_KEYS = {row.field: key for key, row in HOOK_KEYS.items()}
_USED = re.compile(r"\$\{?([A-Za-z_]\w*)")
_SET_BY_THE_RUN = re.compile(
    r"(?:CLAUDE|MUX|TURNGATE)_\w+|CLAUDECODE|PWD|OLDPWD|RANDOM|SECONDS|LINENO|SHLVL|_"
)


class Fingerprint(NamedTuple):
    """What an approval is about. `content` is the definition as compact JSON."""

    content: str
    files: Mapping[str, str | None] = MappingProxyType({})  # path: id of its content
    variables: Mapping[str, str | None] = MappingProxyType({})  # name: id of its value

    @property
    def digest(self) -> str:
        """The digest of the definition alone."""
        return text_digest(self.content)

    @property
    def definition(self) -> str:
        """The definition for a reader, with the keys of a settings file."""
        named = {_KEYS.get(name, name): value for name, value in json.loads(self.content).items()}
        return json.dumps(named, indent=2, ensure_ascii=False)


class Surroundings:
    """What the fingerprints of one review have in common: folders and variables."""

    def __init__(
        self, files: Files, project: str, home: str, environ: Mapping[str, str], *, of_user: bool = False
    ) -> None:
        """`of_user`: for hooks of the user, who chooses which programs of the project are in `$PATH`."""
        self.files, self.home, self.environ = files, home, dict(environ)
        self.project = files.realpath(project)
        self._of_user = of_user
        self._path_folders: dict[str, list[str]] = {}

    def variables_of(self, hook: CommandHook, env: Mapping[str, str]) -> dict[str, str]:
        names = ("CLAUDE_PROJECT_DIR", "MUX_PROJECT_DIR", "TURNGATE_PROJECT_DIR")
        project = dict.fromkeys(names, self.project)
        return {**self.environ, **env, **hook.env, "PWD": self.project, **project}

    def path_folders(self, path: str) -> list[str]:
        """Return the folders of `$PATH` that are inside the project: a file there can take a program's name."""
        if path not in self._path_folders:
            entries = [os.path.join(self.project, each) for each in path.split(":")]
            entries = entries if path and not self._of_user else []
            inside = [each for each in entries if is_inside(self.files.realpath(each), self.project)]
            self._path_folders[path] = inside
        return self._path_folders[path]


class LevelSettings(NamedTuple):
    """What the settings of a hook's level say about all hooks: `env`, and values of GUARDED fields."""

    env: Mapping[str, str] = MappingProxyType({})
    options: Mapping[str, Any] = MappingProxyType({})

    def options_of(self, rule: Rule) -> dict[str, Any]:
        """Return the options that this hook does not set itself: with them it could be disarmed."""
        if not self.options:
            return {}
        hook, event, kind = rule.hook, rule.event, rule.hook.kind
        modes, timeouts = self.options.get("mode", {}), self.options.get("timeouts", {})
        keys = ((event, kind), (event, "*"), ("*", kind), ("*", "*"))
        timeout = next((timeouts[key] for key in keys if key in timeouts), None)
        needs_judge = asks_judge(hook) and not getattr(hook, "model", None)
        found = {
            "mode": None if hook.mode else modes.get(event) or modes.get("*"),
            "defaults": None if hook.timeout else timeout,
            "stopBudget": self.options.get("stop_budget") if event in STOP_EVENTS else None,
            "payload": self.options.get("payload"),
            "judge": self.options.get("judge") if needs_judge else None,
            "passEnv": self.options.get("pass_env") if isinstance(hook, CommandHook | GateHook) else None,
        }
        return {name: value for name, value in found.items() if value is not None}


def asks_judge(hook: Hook) -> bool:
    if not isinstance(hook, GateHook):
        return hook.asks == "model"
    from turngate.gates.library import GATES  # noqa: PLC0415  # lazy: few projects have a gate

    return hook.gate in GATES and GATES[hook.gate].asks_model


def definition_files(hook: GateHook) -> tuple[str, ...]:
    """Return the files that say what a gate checks."""
    from turngate.gates.arguments import GateCall, option_rows, read_gate_hook  # noqa: PLC0415  # lazy, as above

    call = read_gate_hook(hook)
    if not isinstance(call, GateCall):
        return ()
    names = (call.options[row.name] for row in option_rows(call.gate) if row.is_definition)
    return tuple(name for name in names if name)


NO_SETTINGS = LevelSettings()


def definition_of(rule: Rule, level: LevelSettings = NO_SETTINGS) -> str:
    """Return what decides when and how a hook runs, as compact JSON."""
    options = {name: value for name, value in _options(rule.hook) if value is not None}
    if isinstance(rule.hook, HttpHook):
        headers = rule.hook.headers.items()
        options["headers"] = {name: f"sha256:{text_digest(value)[:16]}" for name, value in headers}
    content = {
        "event": rule.event,
        "matcher": rule.matcher,
        "agent": rule.agent_type,
        "type": rule.hook.kind,
        **options,
        "settings_env": level.env,
        "settings": level.options_of(rule),
    }
    # An option that is not at its default counts also if it is empty: `args`, `passEnv`.
    shown = {name: value for name, value in content.items() if name in options or value not in (None, {}, ())}
    return _ENCODER.encode(shown)


def _options(hook: Hook) -> Iterable[tuple[str, Any]]:
    """Return the fields of a hook that are not at their default."""
    for name, default in _DEFAULTS[type(hook)]:
        value = getattr(hook, name)
        if value != default:
            yield name, dict(value) if isinstance(value, Mapping) else value


_NOT_IN_DEFINITION = ("status_message", "callback")


_DEFAULTS = {
    kind: tuple(
        (each.name, {} if each.default_factory is dict else each.default)
        for each in dataclasses.fields(kind)
        if each.name not in _NOT_IN_DEFINITION
    )
    for kind in KINDS.values()
}


def fingerprint(rule: Rule, level: LevelSettings, around: Surroundings) -> Fingerprint:
    """Return the fingerprint of a hook as it is now."""
    content, env = definition_of(rule, level), level.env
    command = command_of(rule.hook)
    if command is None:
        named = definition_files(rule.hook) if isinstance(rule.hook, GateHook) else ()
        paths = [os.path.join(around.project, name) for name in named]
        return Fingerprint(content, {path: file_id(around.files, path, around.project) for path in paths})
    hook = expand_plugin_variables(command)
    variables = around.variables_of(hook, env)
    folders = around.path_folders(variables.get("PATH", ""))
    found = ScriptFiles(around.files, around.project, variables, folders)
    if hook.args is None:
        found.add_command(hook.command)
    else:
        found.add_arguments((hook.command, *hook.args))
    patterns = {pattern: names_id(around.files, pattern) for pattern in found.patterns}
    ids = {**{path: file_id(around.files, path, around.project) for path in found.paths}, **patterns}
    return Fingerprint(content, ids, used_variables(hook, env, around))


def used_variables(hook: CommandHook, env: Mapping[str, str], around: Surroundings) -> dict[str, str | None]:
    """Return an id of the value of each variable that the command takes from the user's environment."""
    given = (env_of["PATH"] for env_of in (hook.env, env, around.environ) if "PATH" in env_of)
    folders = around.path_folders(next(given, ""))
    used: dict[str, str | None] = {"PATH": text_digest("\n".join(folders))[:16]} if folders else {}
    text = hook.command if hook.args is None else ""  # without a shell, no variable is replaced
    for name in _USED.findall(text) if "$" in text else ():
        if name not in {"PATH", *env, *hook.env} and not _SET_BY_THE_RUN.fullmatch(name):
            value = around.environ.get(name)
            used[name] = None if value is None else text_digest(value)[:16]
    return used


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


FileIds = Mapping[str, str | None]  # path: id of its content; None: there is no such file


class ChangedFiles:
    """Compares the files of many hooks: each file, and the names in each folder, once."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._is_same: dict[tuple[str, str], bool] = {}
        self._names: dict[str, frozenset[str] | None] = {}

    def first(self, recorded_ids: FileIds) -> str | None:
        """Return the path of the first file that is not as recorded."""
        for path, recorded in recorded_ids.items():
            if recorded is None:
                if self._may_exist(path) and content_id(self.files, path) is not None:
                    return path
            elif not self._has_id(path, recorded):
                return path
        return None

    def _has_id(self, path: str, recorded: str) -> bool:
        if (path, recorded) not in self._is_same:
            self._is_same[path, recorded] = has_id(self.files, path, recorded)
        return self._is_same[path, recorded]

    def _may_exist(self, path: str) -> bool:
        """Return False if the folder has no such name; file systems may ignore the case, and compose characters."""
        folder, name = os.path.split(path)
        names = self._listing(folder)
        return names is None or not name.isascii() or name.lower() in names

    def _listing(self, folder: str) -> frozenset[str] | None:
        """Return the names in a folder, or None if it cannot be listed: its files can be opened nevertheless.

        A folder of another machine is not listed: that would take longer than it saves.
        """
        if self.files.machine:
            return None
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(name.lower() for name in os.listdir(folder))
            except (FileNotFoundError, NotADirectoryError):
                self._names[folder] = frozenset()
            except (OSError, ValueError):
                self._names[folder] = None
        return self._names[folder]


def describe_change(recorded: FileIds, project: str, changed: ChangedFiles) -> str | None:
    """Return what has changed, as the beginning of a sentence, or None."""
    path = changed.first(recorded)
    if path is None:
        return None
    project = changed.files.realpath(project)
    name = os.path.relpath(path, project) if is_inside(path, project) else path
    if (recorded[path] or "").startswith("names:"):
        return f"the list of files {name} was changed"
    if recorded[path] is None:
        return f"{name}, which it would run or include, was added"
    return f"{name} was {'changed' if changed.files.exists(path) else 'removed'}"
