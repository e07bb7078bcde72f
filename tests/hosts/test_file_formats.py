"""`turngate install` and `turngate uninstall` in the settings of hosts that are no JSON with `hooks`: TOML, a plugin, a list."""

import json
import tomllib
from typing import Any

import pytest

from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host, Level
from turngate.hosts.install.hook_command import entries_for
from turngate.hosts.install.settings_file import (
    Change,
    InstallRecord,
    UnsuitableSettings,
    hook_lines,
    plan_install,
    plan_uninstall,
)

PROGRAM = "'/home/u/my venv/bin/turngate'"
LINE = f"{PROGRAM} hook"
FORMATS = [name for name, host in HOSTS.items() if host.file_format]
KIMI_TABLES = (
    '[[hooks]]\nevent = "PreToolUse"\nmatcher = "Bash"\ncommand = "check"\n\n[models.m]\nname = "m" # mine\n'
)
KIRO_HOOK = {"name": "lint", "trigger": "PostFileSave", "action": {"type": "command", "command": "lint"}}
KIRO_FILE = json.dumps({"version": "v1", "hooks": [KIRO_HOOK]})
# Host: a file of the user.
BEFORE: list[tuple[str, str | None]] = [
    *((name, None) for name in FORMATS),
    ("kimi", ""),
    ("kimi", "# mine"),
    ("kimi", KIMI_TABLES),
    ("kimi", KIMI_TABLES.replace("\n", "\r\n")),
    ("kimi", f"{KIMI_TABLES}\n\n\n"),
    ("kiro", KIRO_FILE),
]


def install(
    host: Host, text: str | None, record: InstallRecord | None = None, level: Level = "user"
) -> Change:
    return plan_install(text, entries_for(host, level, PROGRAM), host, record)


def uninstall(host: Host, text: str | None, record: InstallRecord | None) -> str | None:
    return plan_uninstall(text, host, record).after


def hooks_of(name: str, text: str | None) -> Any:
    if not text:
        return []
    return tomllib.loads(text).get("hooks", []) if name == "kimi" else json.loads(text)["hooks"]


@pytest.mark.parametrize(("name", "text"), BEFORE)
def test_a_file_is_restored_to_the_byte(name: str, text: str | None) -> None:
    host = HOSTS[name]
    installed = install(host, text)
    lines = {event: [LINE] for event in host.events.values()}
    assert hook_lines(installed.after or "", host.file_format) == lines
    again = install(host, installed.after, installed.record)
    assert (again.after, again.record and again.record.before) == (installed.after, text)
    assert uninstall(host, installed.after, installed.record) == text


@pytest.mark.parametrize(("name", "text"), BEFORE)
def test_without_a_record_only_what_is_ours_is_removed(name: str, text: str | None) -> None:
    host = HOSTS[name]
    after = uninstall(host, install(host, text).after, None)
    assert hooks_of(name, after) == hooks_of(name, text)
    assert (after is None) == (not (text or "").strip())


def test_a_file_of_kimi_that_was_edited_since_keeps_the_rest_of_its_bytes() -> None:
    host = HOSTS["kimi"]
    installed = install(host, KIMI_TABLES)
    edited = f"{installed.after}\n[theme]\nname = 'dark'\n"
    assert uninstall(host, edited, installed.record) == f"{KIMI_TABLES}\n[theme]\nname = 'dark'\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kimi", "hooks = []\n"),
        ("kimi", "hooks = 5\n"),
        ("kimi", "[[hooks\n"),
        ("kiro", '{"hooks": {}}'),
        ("kiro", "[]"),
        ("kiro", "{"),
        ("opencode", "export const Other = async () => ({})\n"),
        ("opencode", "const COMMAND = [\n"),
    ],
)
def test_a_file_that_cannot_hold_the_line_is_refused(name: str, text: str) -> None:
    with pytest.raises(UnsuitableSettings):
        install(HOSTS[name], text)


def test_the_plugin_of_opencode_starts_the_words_of_the_line() -> None:
    installed = install(HOSTS["opencode"], None).after or ""
    assert 'const COMMAND = ["/home/u/my venv/bin/turngate", "hook"]\n' in installed
