"""The quick look: it says that there is nothing to ask only where the real reader would say nothing either."""

import codecs
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.strategies import settings_values
from turngate.core.constants import EVENTS
from turngate.core.dialect import DIALECTS
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.selection import Plan, plan
from turngate.settings import key_table as keys
from turngate.settings.quick_check import has_no_hooks
from turngate.trust.load import load_settings


def really_nothing(project: Path, event: str, dialect: str = "turngate", home: Path | None = None) -> bool:
    """What the real reader finds: no hook for the event, and nothing that a user must be told at it."""
    settings = load_settings(str(project), dialect=dialect, home=str(home) if home else None)
    told = [
        problem
        for problem in settings.problems
        if problem.severity != "note" and (problem.event in (None, event) or problem.event not in EVENTS)
    ]
    return not told and plan(settings, read_event(event, {}, cwd=str(project))) == Plan()


QUIET: Mapping[str, Any] = {
    "an empty file": "",
    "an empty object": {},
    "only a byte-order mark": "\ufeff",
    "a byte-order mark": "\ufeff{}",
    "no hooks": {"hooks": {}},
    "an empty list": {"hooks": {"Stop": []}},
    "a subagent's hooks": stop_hooks("make", event="SubagentStop"),
    "a bad hook of another event": {"hooks": {"SubagentStop": "make"}},
    "what every family may hold": {"$schema": "s", "env": {"A": "1"}, "disableAllHooks": True},
}


@pytest.mark.req("S0-08")
@pytest.mark.parametrize("content", QUIET.values(), ids=QUIET)
@pytest.mark.parametrize("family", ["claude", "mux", "turngate"])
def test_a_file_without_a_hook_for_the_event_is_seen_at_a_glance(
    project: Path, home: Path, family: str, content: Any
) -> None:
    write_settings(project, family, content)
    write_settings(project, family, content, "settings.local.json")
    write_settings(home, family, content)
    assert has_no_hooks(str(project), "Stop", "turngate")
    assert really_nothing(project, "Stop")


@pytest.mark.parametrize("dialect", ["turngate", "claude"])
def test_what_only_claude_code_reads_is_passed_over_at_a_glance(project: Path, dialect: str) -> None:
    write_settings(project, "claude", {"permissions": {"allow": []}, "model": "opus", "anything": [1]})
    assert has_no_hooks(str(project), "Stop", dialect)
    assert really_nothing(project, "Stop", dialect)


@pytest.mark.req("S0-08")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("event", EVENTS)
def test_no_file_at_all_is_seen_at_a_glance(project: Path, event: str, dialect: str) -> None:
    assert has_no_hooks(str(project), event, dialect)
    assert really_nothing(project, event, dialect)


LOUD: Mapping[str, Any] = {
    "a hook": stop_hooks("make"),
    "a group without hooks": {"hooks": {"Stop": [{"hooks": []}]}},
    "a hook that is off": stop_hooks("make", enabled=False),
    "a hook and the switch": {**stop_hooks("make"), "disableAllHooks": True},
    "a bad hook": {"hooks": {"Stop": ["make"]}},
    "a bad event": {"hooks": {"Stop": {}}},
    "an unknown event": {"hooks": {"stop": []}},
    "an event at the top": {"Stop": []},
    "an event of others at the top": {"SubagentStop": []},
    "hooks that are none": {"hooks": []},
    "a list": [],
    "broken JSON": "{",
    "NaN": '{"a": NaN}',
    "a number too long": f'{{"a": {"1" * 5000}}}',
    "too deep": "[" * 100_000,
    "a bad switch": {"disableAllHooks": "yes"},
    "a bad section": {"turngate": 5},
    "a bad limit": {"turngate": {"limit": "3"}},
    "a hard limit too high": {"turngate": {"hardLimit": 50}},
    "a bad limit of steer restarts": {"agents": {"defaults": {"subagents": {"maxSteerRestarts": -1}}}},
    "a bad environment": {"env": []},
    "a bad variable": {"env": {"A": 1}},
    "UTF-16": "{}".encode("utf-16"),
    "UTF-16 without a mark": "{}".encode("utf-16-le"),
    "Latin-1": '{"a": "é"}'.encode("latin-1"),
    "half a character": b'{"a": "\xed\xa0\x80"}',
    "two byte-order marks": codecs.BOM_UTF8 * 2 + b"{}",
}


@pytest.mark.parametrize("content", LOUD.values(), ids=LOUD)
def test_hooks_and_problems_are_left_to_load_settings(project: Path, content: Any) -> None:
    path = write_settings(project, "turngate", "" if isinstance(content, bytes) else content)
    if isinstance(content, bytes):
        path.write_bytes(content)
    assert not has_no_hooks(str(project), "Stop", "turngate")


@pytest.mark.parametrize(
    ("start", "stop"),
    [("SessionStart", "Stop"), ("SubagentStart", "SubagentStop"), ("SessionStart", "SubagentStop")],
)
def test_a_gate_may_record_something_at_the_start(project: Path, start: str, stop: str) -> None:
    write_settings(project, "turngate", {"hooks": {stop: [{"hooks": [{"type": "gate", "command": "make"}]}]}})
    assert has_no_hooks(str(project), start, "turngate") == (
        stop == "SubagentStop" and start == "SessionStart"
    )


@pytest.mark.parametrize("dialect", ["turngate", "claude"])
def test_a_type_that_voids_a_claude_file_is_left_to_load_settings(project: Path, dialect: str) -> None:
    write_settings(project, "claude", {"cleanupPeriodDays": "30"})
    assert not has_no_hooks(str(project), "Stop", dialect)


@pytest.mark.parametrize("key", keys.RESTRICTIONS)
def test_a_restriction_of_http_hooks_is_left_to_load_settings(project: Path, key: str) -> None:
    write_settings(project, "claude", {"hooks": {}, key: [3]})
    assert not has_no_hooks(str(project), "Stop", "claude")


def test_a_file_that_an_invalid_guard_voids_is_left_to_load_settings(project: Path) -> None:
    write_settings(project, "claude", {"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}})
    assert has_no_hooks(str(project), "Stop", "turngate")
    assert not has_no_hooks(str(project), "Stop", "claude")


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def circular(path: Path) -> None:
    path.symlink_to(path.name)


def huge(path: Path) -> None:
    path.write_bytes(b'{"a": "' + b"x" * (16 * 1024 * 1024) + b'"}')


@pytest.mark.parametrize("make", [folder, pipe, dangling, circular, huge])
def test_an_unreadable_file_is_left_to_load_settings(project: Path, make: Callable[[Path], None]) -> None:
    (project / ".claude").mkdir()
    make(project / ".claude" / "settings.json")
    assert not has_no_hooks(str(project), "Stop", "turngate")
    assert not really_nothing(project, "Stop")


def test_a_folder_that_cannot_be_entered_is_left_to_load_settings(project: Path) -> None:
    circular(project / ".claude")
    assert not really_nothing(project, "Stop")
    assert not has_no_hooks(str(project), "Stop", "turngate")


@pytest.mark.parametrize(("name", "event"), [("stop", "Stop"), ("subagent_stop", "SubagentStop")])
@pytest.mark.parametrize("mode", [0o755, 0o644])
def test_a_script_is_left_to_load_settings_at_its_own_event(
    project: Path, name: str, event: str, mode: int
) -> None:
    script(project / ".mux" / name, "#!/bin/sh\n", mode)
    seen = {each: has_no_hooks(str(project), each, "turngate") for each in EVENTS}
    assert seen == {each: each != event for each in EVENTS}
    assert has_no_hooks(str(project), event, "claude")


FILES = [
    f".{family}/{name}"
    for family in ("claude", "mux", "turngate")
    for name in ("settings.json", "settings.local.json")
]
contents = settings_values().map(lambda value: json.dumps(value).encode())
odd = st.binary(max_size=20) | contents.map(lambda data: data.decode().encode("utf-16"))
marked = contents.map(lambda data: codecs.BOM_UTF8 + data)


@given(
    files=st.dictionaries(st.sampled_from(FILES), st.one_of(contents, contents, marked, odd), max_size=3),
    mine=st.dictionaries(st.sampled_from(FILES[::2]), contents, max_size=1),
    scripts=st.dictionaries(
        st.sampled_from(["stop", "subagent_stop"]), st.sampled_from([0o755, 0o644]), max_size=1
    ),
    event=st.sampled_from(["Stop", "SubagentStop", *EVENTS]),
    dialect=st.sampled_from([*DIALECTS]),
)
def test_the_quick_check_never_misses_a_hook_or_a_problem(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[str, bytes],
    mine: dict[str, bytes],
    scripts: dict[str, int],
    event: str,
    dialect: str,
) -> None:
    project, home = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("home")
    for place, held in ((project, files), (home, mine)):
        for name, data in held.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(data)
    for name, mode in scripts.items():
        script(project / ".mux" / name, "", mode)
    seen = has_no_hooks(str(project), event, dialect, str(home))
    assert not seen or really_nothing(project, event, dialect, home)
