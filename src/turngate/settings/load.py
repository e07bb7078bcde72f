"""Reads the settings of a project: the files of the dialect's families, and the script hooks next to them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Required, TypedDict

from turngate._frozen_dataclass import frozen
from turngate.core.constants import COMMAND_LINE, EVENTS, MANAGED
from turngate.core.dialect import ALL_DIALECTS, DIALECTS, Dialect
from turngate.core.hooks.kinds import CommandHook
from turngate.core.hooks.turngate_hook_command import runs_turngate_hook
from turngate.core.settings import Layer, Problem, Rule, Settings, merge
from turngate.errors import UsageError
from turngate.project.files import LOCAL, Files, MachineUnreachable
from turngate.settings import key_table as keys
from turngate.settings.parse import UnreadableFile, parse_json, parse_layer, read_json
from turngate.settings.paths import SettingsFile, script_files, settings_files
from turngate.settings.plugin_folders import PluginLoader, excess_problems, find_plugin_folders
from turngate.settings.problem_log import add_duplicate_keys


def script_layers(project: str, dialect: str, files: Files) -> list[Layer]:
    return [
        _layer(event, script, files)
        for event, script in script_files(project, dialect)
        if files.lexists(script.path)
    ]


def _layer(event: str, script: SettingsFile, files: Files) -> Layer:
    name = script.display_name
    layer = Layer(file=name, level=script.level, family=script.family)
    what, hint = "", ""
    if not files.isfile(script.path):
        what, hint = "an executable file", "make it an executable file, or remove it"
    elif not files.is_executable(script.path):
        what, hint = "executable", f"chmod +x {name}"
    if what:
        message = f"{name} is not {what}, so it never runs"
        return replace(layer, problems=(Problem(file=name, event=event, message=message, hint=hint),))
    hook = CommandHook(script.path, args=(), id=name)
    rule = Rule(event, hook, source="script", file=name, family=script.family, level=script.level)
    return replace(layer, rules=(rule,))


def project_path(project: str, files: Files) -> str:
    """Return the absolute path of a project's folder. Raises UsageError if it is not a folder."""
    if files.isdir(project):
        return os.path.abspath(project)
    wrong = f"{project} is not a folder" if files.lexists(project) else f"there is no folder {project}"
    raise UsageError(f"{wrong}; expected the project's folder, which holds .turngate, .mux or .claude")


@contextmanager
def report_unreachable(files: Files) -> Iterator[None]:
    """Raise UsageError if the machine of these files does not answer."""
    try:
        yield
    except MachineUnreachable as error:
        raise UsageError(
            f"the files of {files.machine} cannot be read: {error}; check the connection, and try again"
        ) from None


@frozen
class Layers:
    """The layers of a project as they were read, for `trust.review` and `merge`."""

    project: str
    home: str
    dialect: Dialect
    layers: tuple[Layer, ...]
    files: Files
    own: tuple[Layer, ...] | None = None  # of this machine, if the project is on another one
    plugin_dirs: tuple[str, ...] = ()

    def merge(self) -> Settings:
        """Return the settings. What is not reviewed before runs without an approval."""
        if self.own is None:
            settings = merge(self.layers, keys.MERGE_RULES, self.dialect)
        else:
            settings = _merge_with_own(self.layers, self.own, self.dialect)
        problems = (*settings.problems, *excess_problems(self.layers))
        return replace(settings, plugin_dirs=self.plugin_dirs, problems=problems)


class Sources(TypedDict, total=False):
    """Which settings are read besides the files of a project: the keyword arguments of `load_layers`."""

    dialect: Required[str]
    home: str | None
    plugin_dirs: Sequence[str]
    extra: str | None
    recorded_plugins: Sequence[str]


def load_layers(
    project: str,
    *,
    dialect: str,
    home: str | None = None,
    plugin_dirs: Sequence[str] = (),
    extra: str | None = None,
    recorded_plugins: Sequence[str] = (),
    files: Files,
) -> Layers:
    """Read the settings of a project whose folder may not exist: then only those of the user are found.

    `recorded_plugins` are the folders of plugins of a session that has ended.
    """
    if dialect not in ALL_DIALECTS:
        raise UsageError(f"unknown dialect {dialect!r}, expected one of {', '.join(DIALECTS)}")
    project, home = os.path.abspath(project), home or files.home
    layers = _load_files(project, dialect, home, files)
    if extra is not None:
        layers.append(load_extra(extra, ALL_DIALECTS[dialect]))
    plugins = find_plugin_folders(layers, plugin_dirs, project, home, recorded_plugins, files=files)
    layers += script_layers(project, dialect, files)
    layers += [
        each for plugin in plugins for each in PluginLoader(plugin, ALL_DIALECTS[dialect], files).load()
    ]
    own = tuple(_load_files(None, dialect, None, LOCAL)) if files.machine else None
    roots = tuple(plugin.root for plugin in plugins)
    return Layers(project, home, ALL_DIALECTS[dialect], tuple(layers), files, own, roots)


def _load_files(project: str | None, dialect: str, home: str | None, files: Files) -> list[Layer]:
    found = settings_files(project, dialect, home, files=files)
    return [layer for file in found if (layer := _load_file(file, ALL_DIALECTS[dialect], files))]


def load_extra(extra: str, dialect: Dialect) -> Layer:
    """Return the layer of `--settings`, a file on this machine. What the command line names must be usable.

    Raises UsageError.
    """
    name = "--settings" if extra.lstrip().startswith("{") else extra
    try:
        value, duplicates = parse_json(extra) if name == "--settings" else read_json(extra, LOCAL)
    except FileNotFoundError:
        raise UsageError(
            f"--settings {extra}: there is no such file; give a file, or JSON in braces"
        ) from None
    except UnreadableFile as error:
        raise UsageError(f"{name if name == '--settings' else f'--settings {name}'}: {error}") from None
    layer = parse_layer(value, file=name, level=COMMAND_LINE, family=dialect.families[-1], dialect=dialect)
    return add_duplicate_keys(layer, duplicates)


def has_unloaded_hooks(settings: Settings, *events: str) -> bool:
    """Return whether a hook that may have been meant for one of these events was not loaded."""
    meant = (
        name if name in EVENTS else name and keys.closest_event(name)
        for name in (problem.event for problem in settings.not_loaded)
    )
    return any(event is None or event in events for event in meant)


def _load_file(file: SettingsFile, dialect: Dialect, files: Files) -> Layer | None:
    try:
        value, duplicates = read_json(file.path, files)
    except FileNotFoundError:
        return None
    except UnreadableFile as error:
        name, message = file.display_name, f"{error}; none of its hooks run"
        problem = Problem(file=name, message=message, hint=error.hint)
        return Layer(file=name, level=file.level, family=file.family, problems=(problem,))
    layer = parse_layer(value, file=file.display_name, level=file.level, family=file.family, dialect=dialect)
    # The line with which another agent program runs Turngate is not a hook of this project: see `turngate doctor --host`.
    rules = tuple(rule for rule in layer.rules if not runs_turngate_hook(rule.hook))
    return add_duplicate_keys(replace(layer, rules=rules), duplicates)


# The settings of a project on another machine under those of this one. Models are asked and http hooks are sent from
# here, with the keys of the user. So what the user and the administrator have set here counts for them, and the home
# folder on the other machine is trusted no more than a project.

# Fields that user and managed settings of the other machine do not set. A project does, within its limits.
_OWN_FIELDS = frozenset({"model", "judge", "hard_limit"})
_OWN_KEYS = (
    *("turngate.model", "turngate.judge", "turngate.hardLimit", "turngate.allowedUrls", "env"),
    *(*keys.RESTRICTIONS, "allowManagedHooksOnly"),
)
_OWNER_LEVELS = ("user", MANAGED)


def _merge_with_own(layers: Sequence[Layer], own: Sequence[Layer], dialect: Dialect) -> Settings:
    """Return the settings of layers that were read on another machine, under the user and managed layers of this one."""
    settings = merge([*map(_as_remote, layers), *map(_as_own, own)], keys.MERGE_RULES, dialect)
    given = [layer for layer in layers if layer.level == COMMAND_LINE]
    here = merge([*own, *given], keys.MERGE_RULES, dialect)
    lists = [each for each in here.allowed_urls if each.level != COMMAND_LINE]
    urls, variables = here.http_hook_urls, here.http_hook_variables
    return replace(
        settings,
        user_env=here.user_env,
        # A list of the other machine allows nothing that is not allowed without it.
        allowed_urls=(
            *lists,
            *(
                replace(each, level="remote") if each.level in _OWNER_LEVELS else each
                for each in settings.allowed_urls
            ),
        ),
        http_hook_urls=settings.http_hook_urls if urls is None else urls,
        http_hook_variables=settings.http_hook_variables if variables is None else variables,
    )


def _as_remote(layer: Layer) -> Layer:
    if layer.level not in _OWNER_LEVELS or _OWN_FIELDS.isdisjoint(layer.scalars):
        return layer
    scalars = {name: value for name, value in layer.scalars.items() if name not in _OWN_FIELDS}
    return replace(layer, scalars=scalars)


def _as_own(layer: Layer) -> Layer:
    """Return what a layer of this machine says about all hooks. Its hooks and its `env` are not for another machine."""
    is_managed = layer.level == MANAGED
    file = f"{layer.file} of this machine"
    whole = (each for each in layer.problems if each.event is None)
    problems = (each for each in whole if each.field is None or each.field.startswith(_OWN_KEYS))
    return Layer(
        file=file,
        level=layer.level,
        family=layer.family,
        disable_all=layer.disable_all if is_managed else None,
        managed_only=layer.managed_only,
        scalars={name: layer.scalars[name] for name in _OWN_FIELDS & layer.scalars.keys()},
        problems=tuple(replace(each, file=file) for each in problems),
    )
