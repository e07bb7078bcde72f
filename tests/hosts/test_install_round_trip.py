"""`turngate install` and `turngate uninstall` over real-shaped settings files: each is restored byte for byte."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host, Level
from turngate.hosts.install.hook_command import entries_for
from turngate.hosts.install.json_text import read_json_text
from turngate.hosts.install.settings_file import hook_lines, plan_install, plan_uninstall

JSON_HOSTS = {name: host for name, host in HOSTS.items() if host.file_format is None}
FILES = sorted((Path(__file__).parent / "settings_files").glob("*/*.json"))
PROGRAM = "'/home/u/my venv/bin/turngate'"
LEVELS: tuple[Level, ...] = ("user", "project")


def _cases() -> Iterator[Any]:
    for path in FILES:
        text = path.read_bytes().decode()
        yield pytest.param(HOSTS[path.parent.name], text, id=f"{path.parent.name}/{path.stem}")
    for host in JSON_HOSTS.values():
        yield pytest.param(host, None, id=f"{host.name}/missing")


CASES = list(_cases())
HUGE = json.dumps({"env": {f"NAME_{n}": "x" * 50 for n in range(20_000)}, "hooks": {"Stop": []}}, indent=2)


def test_there_are_enough_files_of_every_host() -> None:
    assert len(FILES) >= 30
    assert {path.parent.name for path in FILES} == {*JSON_HOSTS} - {
        "vscode"
    }  # which has the files of Claude Code


def value_of(text: str | None) -> Any:
    root = read_json_text(text or "")
    return root.value if root else {}


def entries(host: Host, level: Level) -> dict[str, Any]:
    return dict(entries_for(host, level, PROGRAM))


def expected(host: Host, level: Level, before: Any) -> Any:
    hooks = dict(before.get("hooks", {}))
    hooks |= {event: [*hooks.get(event, []), entry] for event, entry in entries(host, level).items()}
    return {**host.new_file, **before, "hooks": hooks}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("host", "text"), [*CASES, pytest.param(HOSTS["claude"], HUGE, id="claude/huge")])
def test_a_file_is_restored_to_the_byte(host: Host, text: str | None, level: Level) -> None:
    installed = plan_install(text, entries(host, level), host, None)
    assert value_of(installed.after) == expected(host, level, value_of(text))
    again = plan_install(installed.after, entries(host, level), host, installed.record)
    assert again.after == installed.after
    assert plan_uninstall(installed.after, host, installed.record).after == text


@pytest.mark.parametrize(("host", "text"), CASES)
def test_another_line_of_ours_is_updated_in_its_place(host: Host, text: str | None) -> None:
    """The second installation has another path, and the record of the first one still restores the file."""
    first = plan_install(text, entries(host, "user"), host, None)
    second = plan_install(first.after, entries(host, "project"), host, first.record)
    assert value_of(second.after) == expected(host, "project", value_of(text))
    assert plan_uninstall(second.after, host, second.record).after == text


@pytest.mark.parametrize(("host", "text"), CASES)
def test_a_file_that_was_edited_since_loses_only_what_is_ours(host: Host, text: str | None) -> None:
    """Someone adds a key at the end of the object, as text; what is removed is found in the structure."""
    installed = plan_install(text, entries(host, "user"), host, None)
    assert installed.after is not None
    assert installed.record is not None
    root = read_json_text(installed.after)
    assert root is not None
    edit = root.items[0].start
    edited = installed.after[:edit] + '"edited": true, ' + installed.after[edit:]
    after = plan_uninstall(edited, host, installed.record).after
    assert value_of(after) == {"edited": True, **value_of(text)}
    assert hook_lines(after or "") == {}


@pytest.mark.parametrize(("host", "text"), CASES)
def test_without_a_record_the_lines_are_removed_too(host: Host, text: str | None) -> None:
    """The settings of a project come with the repository, and the record is on another machine."""
    installed = plan_install(text, entries(host, "project"), host, None)
    after = plan_uninstall(installed.after, host, None).after
    kept = {**host.new_file, **without_empty_lists(value_of(text), host)}
    assert value_of(after) == (kept if after is not None else {})
    assert after is not None or kept == host.new_file


def without_empty_lists(value: dict[str, Any], host: Host) -> dict[str, Any]:
    hooks = value.get("hooks", {})
    kept = {event: each for event, each in hooks.items() if each != [] or event not in host.events.values()}
    return {key: each for key, each in {**value, "hooks": kept}.items() if key != "hooks" or kept}
