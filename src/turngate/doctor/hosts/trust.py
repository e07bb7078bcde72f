"""Whether a host trusts the hooks of its settings files, by its own records. Turngate reads them and never writes them."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Literal

from turngate.doctor.hosts.files import MAX_FILE_BYTES, HostFile, HostHook, full_path
from turngate.hosts.codex import CODEX
from turngate.hosts.host import Host
from turngate.hosts.install.json_text import NotJson, read_json_text
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes

Trust = Literal["trusted", "changed", "not trusted", "switched off", "unknown"]
_CODEX_DEFAULT_TIMEOUT_S = 600


# Codex: each hook, by a digest of its definition


def read_codex_config(project: str, environ: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return `config.toml` of the user, empty if there is none; None: it cannot be read."""
    try:
        text = read_bytes(full_path(CODEX, "~/.codex/config.toml", project, environ), MAX_FILE_BYTES).decode()
        return tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, NotARegularFile, FileTooLarge):
        return None


def codex_trust(hook: HostHook, config: Mapping[str, Any] | None) -> Trust:
    """Return whether Codex runs a hook, by `[hooks.state]` of its configuration."""
    if config is None or (hook.matcher is not None and hook.our_event != "Stop"):
        return "unknown"
    states = _table(_table(config.get("hooks")).get("state"))
    keys = {codex_key(hook, path) for path in (hook.file.path, os.path.realpath(hook.file.path))}
    state = next((_table(states[key]) for key in keys if key in states), {})
    if state.get("enabled") is False:
        return "switched off"
    if "trusted_hash" not in state:
        return "not trusted"
    return "trusted" if state["trusted_hash"] == codex_hash(hook) else "changed"


def codex_key(hook: HostHook, path: str) -> str:
    group, number = hook.place
    return f"{path}:{_snake_case(hook.event)}:{group}:{number}"


def codex_hash(hook: HostHook) -> str:
    """Return the digest that Codex 0.166 compares: JSON with sorted keys, with the defaults filled in."""
    entry = {key: hook.entry[key] for key in ("type", "command", "statusMessage") if key in hook.entry}
    entry["timeout"] = hook.entry.get("timeout", _CODEX_DEFAULT_TIMEOUT_S)
    entry["async"] = hook.entry.get("async", False)
    identity = {"event_name": _snake_case(hook.event), "hooks": [entry]}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def codex_trusts_project(project: str, config: Mapping[str, Any]) -> bool:
    """Return whether Codex reads the settings of the project, or of the repository that it is in."""
    projects = _table(config.get("projects"))
    paths = [project, os.path.realpath(project)]
    return any(
        _table(projects.get(folder)).get("trust_level") == "trusted"
        for path in paths
        for folder in _with_parents(path)
    )


def _with_parents(path: str) -> list[str]:
    """Return a folder and those above it, up to the root of the repository."""
    folders = [path]
    while not os.path.exists(os.path.join(path, ".git")) and path != os.path.dirname(path):
        path = os.path.dirname(path)
        folders.append(path)
    return folders if os.path.exists(os.path.join(path, ".git")) else folders[:1]


# Gemini CLI, Qwen Code and Copilot CLI: the folder


def trusts_folder(host: Host, files: list[HostFile], project: str, environ: Mapping[str, str]) -> bool | None:
    """Return whether the host trusts the folder; None: it asks the user, and does not trust it until then."""
    if host.name == "copilot":
        return _copilot_trusts(_read_object(os.path.expanduser("~/.copilot/config.json")), project)
    if host.name == "gemini":
        by_variable = {"true": True, "false": False}.get(environ.get("GEMINI_CLI_TRUST_WORKSPACE", ""))
        if by_variable is not None:
            return by_variable
    if not _asks_for_trust(host, files):
        return True
    own = environ.get("QWEN_CODE_TRUSTED_FOLDERS_PATH") if host.name == "qwen" else None
    settings = full_path(host, host.files["user"], project, environ)
    path = own or os.path.join(os.path.dirname(settings), "trustedFolders.json")
    return _decide_trust(_read_object(path), os.path.realpath(project))


def _copilot_trusts(config: Mapping[str, Any], project: str) -> bool | None:
    """Return whether a folder is listed, or one above it. `trusted_folders` is the name in older versions."""
    found = [config.get(key) for key in ("trustedFolders", "trusted_folders")]
    folders = [
        folder for each in found if isinstance(each, list) for folder in each if isinstance(folder, str)
    ]
    return True if any(_contains(folder, os.path.realpath(project)) for folder in folders) else None


def _asks_for_trust(host: Host, files: list[HostFile]) -> bool:
    """Return the setting `security.folderTrust.enabled` of the user: that of a project does not count for itself."""
    for file in files:
        if file.owner is host and file.level == "user":
            trust = _table(_table(file.value.get("security")).get("folderTrust")).get("enabled")
            if isinstance(trust, bool):
                return trust
    return host.name == "gemini"  # its default; Qwen Code asks only if it is switched on


def _decide_trust(rules: Mapping[str, Any], project: str) -> bool | None:
    """Return what the rule with the longest path says."""
    best, trusted = -1, None
    for path, level in rules.items():
        folder = os.path.dirname(path) if level == "TRUST_PARENT" else path
        if _contains(folder, project) and len(path) > best:
            best, trusted = len(path), level in ("TRUST_FOLDER", "TRUST_PARENT")
    return trusted


def _contains(folder: str, path: str) -> bool:
    real = os.path.realpath(folder)
    return path == real or path.startswith(real.rstrip("/") + "/")


def _read_object(path: str) -> Mapping[str, Any]:
    try:
        node = read_json_text(read_bytes(path, MAX_FILE_BYTES).decode())
    except (OSError, ValueError, NotJson, NotARegularFile, FileTooLarge):
        return {}
    return _table(node.value if node else None)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
