"""The settings files that a host reads, and the hooks in them."""

import glob
import os
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from turngate._frozen import frozen
from turngate.core.hooks.turngate_command import is_hook_line
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host, Level
from turngate.hosts.input_fields import EVENT_NAMES
from turngate.hosts.install.json_text import NotJson, read_json_text
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes

# Only droid has such a file; which shape it has there is not documented, so `turngate install` does not write it.
HOW_TO_BE_READ = "add the line `turngate hook` in droid with `/hooks`, or move the hooks to settings.json and remove hooks.json"
MAX_FILE_BYTES = 8 * 1024 * 1024

# Besides `Host.files`. A host with several files in a folder reads them all.
_FURTHER_FILES: Mapping[str, tuple[tuple[Level, str], ...]] = {
    "claude": (("project", ".claude/settings.local.json"),),
    "codex": (("user", "~/.codex/config.toml"), ("project", ".codex/config.toml")),
    "copilot": (
        ("user", "~/.copilot/hooks/*.json"),
        ("user", "~/.copilot/settings.json"),
        ("project", ".github/hooks/*.json"),
        ("project", ".github/copilot/settings.json"),
        ("project", ".github/copilot/settings.local.json"),
    ),
    "droid": (
        ("user", "~/.factory/hooks.json"),
        ("project", ".factory/settings.local.json"),
        ("project", ".factory/hooks.json"),
    ),
}
# Of the files of another host: Copilot CLI does not read those of the user.
_LEVELS_OF_OTHERS: Mapping[str, tuple[Level, ...]] = {"copilot": ("project",), "cursor": ("user", "project")}
# Copilot CLI has two names for each event.
_FURTHER_EVENTS = {"copilot": ("agentStop", "subagentStop", "sessionStart", "subagentStart", "SubagentStart")}


@frozen
class HostFile:
    """A settings file that is there."""

    path: str
    name: str  # as it is shown: `~/.codex/hooks.json`, `.codex/hooks.json`
    owner: Host  # whose format it has; another host may read it too
    level: Level
    value: Mapping[str, Any]  # empty if it cannot be read
    problem: str | None = None  # why it cannot


@frozen
class HostHook:
    """One hook in a settings file of a host."""

    file: HostFile
    event: str  # as it is written there
    place: tuple[int, int]  # of its group, and in it
    entry: Mapping[str, Any]
    matcher: object = None
    in_group: bool = True

    @property
    def position(self) -> str:
        group, number = self.place
        return f"{self.event}[{group}]" + (f".hooks[{number}]" if self.in_group else "")

    @property
    def command(self) -> str:
        values = (self.entry.get(key) for key in ("command", "bash", "exec"))
        return next((value for value in values if isinstance(value, str)), "")

    @property
    def is_turngate(self) -> bool:
        return is_hook_line(self.command)

    @property
    def our_event(self) -> str | None:
        return event_of(self.file.owner, self.event)


def event_of(host: Host, name: str) -> str | None:
    """Return our name of an event of a host; None: it has no such event, or Turngate does not use it."""
    if name in _FURTHER_EVENTS.get(host.name, ()):
        return EVENT_NAMES[name]
    return next((ours for ours, theirs in host.events.items() if theirs == name), None)


def read_host_files(host: Host, project: str, environ: Mapping[str, str]) -> list[HostFile]:
    """Return the files that the host reads, its own first."""
    found = [*_files_of(host, ("user", "project"), project, environ)]
    for name in host.reads_files_of:
        found += _files_of(HOSTS[name], _LEVELS_OF_OTHERS.get(host.name, ()), project, environ)
    return list({file.path: file for file in found}.values())


def reads_file_of(host: Host, other: Host, level: Level) -> bool:
    """Return whether a host reads the file that `turngate install` writes for this one, or for another one."""
    shared = other.name in host.reads_files_of and level in _LEVELS_OF_OTHERS.get(host.name, ())
    return host is other or shared


def why_ignored(host: Host, path: str, name: str) -> str | None:
    """Return why a host does not read the hooks of a settings file, because of another file in its folder."""
    other = host.ignored_beside
    if other is None or os.path.basename(path) != os.path.basename(host.files["user"]):
        return None
    if not os.path.exists(os.path.join(os.path.dirname(path), other)):
        return None
    return f"{host.title} does not read the hooks of {name} beside a {other}"


def _files_of(
    host: Host, levels: tuple[Level, ...], project: str, environ: Mapping[str, str]
) -> Iterator[HostFile]:
    for level, pattern in (*host.files.items(), *_FURTHER_FILES.get(host.name, ())):
        if level in levels:
            for path in sorted(glob.glob(full_path(host, pattern, project, environ))):
                name = os.path.join(os.path.dirname(pattern), os.path.basename(path))
                yield _read(path, name, host, level)


def full_path(host: Host, name: str, project: str, environ: Mapping[str, str]) -> str:
    """Return the path of a file of a host; some hosts have a variable for the user's folder."""
    variable, replaced = host.folder_variable or ("", "")
    if name.startswith("~") and (folder := environ.get(variable)):
        return os.path.abspath(folder) + name.removeprefix(replaced)
    return os.path.join(project, os.path.expanduser(name))


def _read(path: str, name: str, host: Host, level: Level) -> HostFile:
    try:
        text = read_bytes(path, MAX_FILE_BYTES).decode("utf-8-sig")
        value = tomllib.loads(text) if path.endswith(".toml") else _read_json(text)
    except (NotJson, tomllib.TOMLDecodeError) as error:
        return HostFile(path, name, host, level, {}, f"cannot be parsed: {error}")
    except UnicodeDecodeError as error:
        return HostFile(path, name, host, level, {}, f"is not UTF-8 (byte {error.start})")
    except (OSError, NotARegularFile, FileTooLarge, RecursionError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return HostFile(path, name, host, level, {}, f"cannot be read: {why}")
    if not isinstance(value, dict):
        return HostFile(path, name, host, level, {}, "is not a JSON object")
    return HostFile(path, name, host, level, value)


def _read_json(text: str) -> object:
    node = read_json_text(text)
    return {} if node is None else node.value


def _events_of(file: HostFile) -> object:
    """Return the value of `hooks`; the file that holds nothing else in droid may have the events at its top."""
    is_top = os.path.basename(file.path) == file.owner.ignored_beside and "hooks" not in file.value
    return file.value if is_top else file.value.get("hooks")


def hooks_in(file: HostFile) -> Iterator[HostHook]:
    """Yield the hooks of a file, in groups as Claude Code has them, or one by one."""
    events = _events_of(file)
    for event, entries in events.items() if isinstance(events, dict) else ():
        for group, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, dict):
                continue
            inner = entry.get("hooks")
            if not isinstance(inner, list):
                yield HostHook(file, event, (group, 0), entry, entry.get("matcher"), in_group=False)
                continue
            for number, hook in enumerate(inner):
                if isinstance(hook, dict):
                    yield HostHook(file, event, (group, number), hook, entry.get("matcher"))
