"""The files of a host: its settings with the hooks in them, and its records of what the user trusts. They are only read."""

import glob
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.hooks.turngate_hook_command import is_hook_line
from turngate.hosts.all_hosts import CODEX, HOSTS
from turngate.hosts.host import FolderTrust, Host, Level
from turngate.hosts.install.json_text import read_json_text
from turngate.project.checkouts import up_to_top
from turngate.project.safe_paths import is_inside
from turngate.settings.parse import UnreadableFile, read_utf8

MAX_FILE_BYTES = 8 * 1024 * 1024


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
    ours = (ours for ours, theirs in host.events.items() if theirs == name)
    return host.further_events.get(name) or next(ours, None)


def read_host_files(host: Host, project: str, environ: Mapping[str, str]) -> list[HostFile]:
    """Return the files that the host reads, its own first."""
    found = [*_files_of(host, ("user", "project"), project, environ)]
    for name, levels in host.reads_files_of.items():
        found += _files_of(HOSTS[name], levels, project, environ)
    return list({file.path: file for file in found}.values())


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
    for level, pattern in (*host.files.items(), *host.further_files):
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
        text = read_utf8(path, max_bytes=MAX_FILE_BYTES).removeprefix("\ufeff")
        if host.file_format and os.path.basename(path) == os.path.basename(host.files["user"]):
            value: Any = host.file_format.read(text)
        elif path.endswith(".toml"):
            value = tomllib.loads(text)
        else:
            value = node.value if (node := read_json_text(text)) else {}
        problem = None if isinstance(value, dict) else "is not a JSON object"
    except UnreadableFile as error:
        value, problem = {}, str(error)
    except FileNotFoundError:  # it was removed just now
        value, problem = {}, "does not exist"
    except (ValueError, RecursionError) as error:
        value, problem = {}, f"cannot be parsed: {error}"
    return HostFile(path, name, host, level, {} if problem else value, problem)


def hooks_in(file: HostFile) -> Iterator[HostHook]:
    """Yield the hooks of a file, in groups as Claude Code has them, or one by one."""
    # The file that holds nothing else in droid may have the events at its top.
    is_top = os.path.basename(file.path) == file.owner.ignored_beside and "hooks" not in file.value
    events = file.value if is_top else file.value.get("hooks")
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


# Folders that a host trusts


def trusts_folder(
    trust: FolderTrust, host: Host, files: Sequence[HostFile], project: str, environ: Mapping[str, str]
) -> bool | None:
    """Return whether the host trusts the folder; None: it asks the user, and does not trust it until then."""
    if (value := environ.get(trust.variable)) in ("true", "false"):
        return value == "true"
    # The setting of a project does not count for itself.
    own = (file.value for file in files if file.owner is host and file.level == "user")
    settings = (setting(value, "security.folderTrust.enabled") for value in own)
    is_asked = next((value for value in settings if isinstance(value, bool)), trust.is_asked)
    if trust.is_asked is not None and not is_asked:
        return True
    path = environ.get(trust.file_variable) or full_path(host, trust.file, project, environ)
    record, folder = _read(path, path, host, "user").value, os.path.realpath(project)
    if not trust.lists:
        return _decide_trust(record, folder)
    lists = [each for key in trust.lists if isinstance(each := record.get(key), list)]
    listed = [each for folders in lists for each in folders if isinstance(each, str)]
    return True if any(is_inside(folder, os.path.realpath(each)) for each in listed) else None


def _decide_trust(rules: Mapping[str, Any], project: str) -> bool | None:
    """Return what the rule with the longest path says."""
    best, trusted = -1, None
    for path, level in rules.items():
        folder = os.path.dirname(path) if level == "TRUST_PARENT" else path
        if is_inside(project, os.path.realpath(folder)) and len(path) > best:
            best, trusted = len(path), level in ("TRUST_FOLDER", "TRUST_PARENT")
    return trusted


def setting(value: object, key: str) -> object:
    """Return a value of a settings file by its path, `security.folderTrust.enabled`; None if it is not there."""
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


# Hooks that Codex trusts

CodexTrust = Literal["trusted", "not trusted", "switched off", "unknown"]


def read_codex_config(project: str, environ: Mapping[str, str]) -> HostFile | None:
    """Return `config.toml` of the user, or None if there is none."""
    path = full_path(CODEX, "~/.codex/config.toml", project, environ)
    return _read(path, path, CODEX, "user") if os.path.exists(path) else None


def codex_trust(hook: HostHook, config: HostFile | None) -> CodexTrust:
    """Return whether the user has trusted a hook in Codex. Whether it has changed since, only Codex knows."""
    if config and config.problem:
        return "unknown"
    states = setting(config.value, "hooks.state") if config else None
    keys = {codex_key(hook, path) for path in (hook.file.path, os.path.realpath(hook.file.path))}
    found = [states[key] for key in keys if key in states] if isinstance(states, dict) else []
    if any(setting(state, "enabled") is False for state in found):
        return "switched off"
    return "trusted" if any(setting(state, "trusted_hash") for state in found) else "not trusted"


def codex_key(hook: HostHook, path: str) -> str:
    group, number = hook.place
    return f"{path}:{re.sub(r'(?<!^)(?=[A-Z])', '_', hook.event).lower()}:{group}:{number}"


def codex_trusts_project(project: str, config: HostFile | None) -> bool:
    """Return whether Codex reads the settings of the project, or of the repository that it is in."""
    projects = config.value.get("projects") if config else None
    if not isinstance(projects, dict):
        return False
    for path in (project, os.path.realpath(project)):
        folders = up_to_top(path)
        if not os.path.exists(os.path.join(folders[-1], ".git")):
            folders = [path]
        if any(setting(projects.get(each), "trust_level") == "trusted" for each in folders):
            return True
    return False
