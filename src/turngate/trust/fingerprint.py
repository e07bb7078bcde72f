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
from turngate.core.hooks.plugin_variables import PLUGIN_DATA, PLUGIN_ROOT, expand_plugin_variables
from turngate.core.settings import Rule
from turngate.project.files import LOCAL, Files
from turngate.project.safe_paths import is_inside
from turngate.settings.key_table import HOOK_KEYS
from turngate.trust.command_files import CommandFiles, find_command_files
from turngate.trust.covered_files import ALL, MENTIONED, NO_FILES, CoveredFiles, FileIds, TooLarge
from turngate.trust.file_kinds import HOOK_FOLDERS

_ENCODER = json.JSONEncoder(separators=(",", ":"), default=repr)
_KEYS = {row.field: key for key, row in HOOK_KEYS.items()}
_USED = re.compile(r"\$\{?([A-Za-z_]\w*)")
_SET_BY_THE_RUN = re.compile(
    r"(?:CLAUDE|MUX|TURNGATE)_\w+|CLAUDECODE|PWD|OLDPWD|RANDOM|SECONDS|LINENO|SHLVL|_"
)
# The folder of the project in a definition: it is another one in each checkout of a repository.
PROJECT = "\\u0000"


class Fingerprint(NamedTuple):
    """What an approval is about. `content` is the definition as compact JSON."""

    content: str
    files: FileIds = NO_FILES
    variables: Mapping[str, str | None] = MappingProxyType({})  # name: id of its value
    watched: FileIds = NO_FILES  # the files, and where there must be none while a session runs
    named: tuple[str, ...] = ()  # the files that the command names
    problem: str | None = None  # why it cannot be approved

    @property
    def digest(self) -> str:
        """The digest of the definition alone."""
        return text_digest(self.content)

    @property
    def definition(self) -> str:
        """The definition for a reader, with the keys of a settings file."""
        named = {_KEYS.get(name, name): value for name, value in json.loads(self.content).items()}
        return json.dumps(named, indent=2, ensure_ascii=False).replace(PROJECT, ".")


class Surroundings:
    """What the fingerprints of one review have in common: folders and variables."""

    def __init__(self, covered: CoveredFiles, environ: Mapping[str, str], *, of_user: bool = False) -> None:
        """`of_user`: for hooks of the user, who chooses which programs of the project are in `$PATH`."""
        self.covered, self.environ, self.of_user = covered, dict(environ), of_user
        self.files, self.project = covered.files, covered.project
        self._path_folders: dict[str, list[str]] = {}
        names = ("PWD", "CLAUDE_PROJECT_DIR", "MUX_PROJECT_DIR", "TURNGATE_PROJECT_DIR")
        self.own = dict.fromkeys(names, self.project)

    def path_folders(self, hook: CommandHook, env: Mapping[str, str]) -> list[str]:
        """Return the folders of `$PATH` that are inside the project: a file there can take a program's name."""
        path = next((each["PATH"] for each in (hook.env, env, self.environ) if "PATH" in each), "")
        if path not in self._path_folders:
            entries = [os.path.join(self.project, each) for each in path.split(":")]
            entries = entries if path and not self.of_user else []
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
            "allowedHttpHookUrls": self.options.get("http_hook_urls") if isinstance(hook, HttpHook) else None,
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


def definition_of(rule: Rule, level: LevelSettings = NO_SETTINGS, project: str | None = None) -> str:
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
    text = _ENCODER.encode(shown)
    escaped = _ENCODER.encode(project)[1:-1] if project else ""
    if not project or project == "/" or escaped not in text:
        return text
    return re.sub(rf'(?<![\\w./-]){re.escape(escaped)}(?=[/"])', lambda _: PROJECT, text)


def _options(hook: Hook) -> Iterable[tuple[str, Any]]:
    """Return the fields of a hook that are not at their default."""
    for name, default in _DEFAULTS[type(hook)]:
        value = getattr(hook, name)
        if value != default:
            # The name of a plugin's folder for data depends on the path of the plugin, which counts itself.
            left_out = PLUGIN_DATA if isinstance(value, Mapping) and PLUGIN_ROOT in value else None
            yield name, {key: value[key] for key in value if key != left_out} if left_out else value


_NOT_IN_DEFINITION = ("status_message", "callback")
_DEFAULTS = {
    kind: tuple(
        (each.name, {} if each.default_factory is dict else each.default)
        for each in dataclasses.fields(kind)
        if each.name not in _NOT_IN_DEFINITION
    )
    for kind in KINDS.values()
}


def files_of(
    rule: Rule, level: LevelSettings, around: Surroundings, *, explains: bool = False
) -> CommandFiles:
    """Return the files of a hook: those that its command names, and the folders of hooks. Raises TooLarge."""
    command = command_of(rule.hook)
    if command is None:
        named = definition_files(rule.hook) if isinstance(rule.hook, GateHook) else ()
        return CommandFiles(named, dict.fromkeys(named))
    hook = expand_plugin_variables(command)
    variables = {**around.environ, **level.env, **hook.env, **around.own}
    folders = around.path_folders(hook, level.env)
    found = find_command_files(hook, variables, folders, around.covered, explains=explains)
    # `npm test` names no file: what is beside the hooks of another program has nothing to do with it.
    is_plain = not (found.covered or found.absent or "$" in command.command)
    own = {} if around.of_user else dict.fromkeys(HOOK_FOLDERS[: 2 if is_plain else 3], ALL)
    return found._replace(covered={**own, **found.covered})


def scripts_of(rule: Rule, project: str, files: Files = LOCAL) -> list[str]:
    """Return the paths of the files that the command of a hook names, and of those beside them that these name."""
    covered = CoveredFiles(files, files.realpath(project))
    try:
        named = files_of(rule, NO_SETTINGS, Surroundings(covered, files.environ)).named
        folders = {f"{os.path.dirname(name)}/": MENTIONED for name in named if "/" in name}
        found = covered.ids({**folders, **dict.fromkeys(named)})
    except TooLarge:
        return []
    return [covered.path_of(name) for name in found if name not in folders]


def fingerprint(
    rule: Rule, content: str, level: LevelSettings, around: Surroundings, approved: FileIds = NO_FILES
) -> Fingerprint:
    """Return the fingerprint of a hook with this definition as it is now, also of the folders that were `approved`."""
    command = command_of(rule.hook)
    try:
        found = files_of(rule, level, around)
        folders = {name: which for name, which in approved.items() if name.endswith("/")}
        ids = around.covered.ids({**found.covered, **folders})
    except TooLarge as error:
        return Fingerprint(content, problem=str(error))
    variables = used_variables(command, level.env, around) if command else {}
    absent = dict.fromkeys(name for name in found.absent if name not in ids)
    return Fingerprint(content, ids, variables, {**ids, **absent} if absent else ids, found.named)


def used_variables(hook: CommandHook, env: Mapping[str, str], around: Surroundings) -> dict[str, str | None]:
    """Return an id of the value of each variable that the command takes from the user's environment."""
    folders = around.path_folders(hook, env)
    used: dict[str, str | None] = {"PATH": text_digest("\n".join(folders))[:16]} if folders else {}
    text = hook.command if hook.args is None else ""  # without a shell, no variable is replaced
    for name in _USED.findall(text) if "$" in text else ():
        if name not in {"PATH", *env, *hook.env} and not _SET_BY_THE_RUN.fullmatch(name):
            value = around.environ.get(name)
            used[name] = None if value is None else text_digest(value)[:16]
    return used


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
