"""Settings from real files: which are read, in which order they count, and what a bad one does to the others."""

import codecs
import errno
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, script, stop_event, stop_hooks, subagent_stop, write_settings
from tests.support.paths import SEEDS
from turngate.core.answers.report_types import Skipped
from turngate.core.constants import LEVELS
from turngate.core.dialect import CLAUDE, DIALECTS, MUX, TURNGATE
from turngate.core.events.events import Event
from turngate.core.hooks.kinds import (
    AgentHook,
    CallbackHook,
    CommandHook,
    Hook,
    HttpHook,
    PromptHook,
    hook_text,
)
from turngate.core.hooks.selection import Plan, plan
from turngate.core.settings import AllowedUrls, Problem, Rule, Settings
from turngate.core.verdict.loop_guard import new_guard
from turngate.errors import UsageError
from turngate.settings.paths import FileTooLarge, read_bytes
from turngate.settings.problem_log import ProblemLog
from turngate.trust.load import load_settings

FAMILIES = ("claude", "mux", "turngate")
NINE = [(level, family) for level in LEVELS for family in FAMILIES]  # weakest first


class Folders:
    """A project and a home, to write settings into."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project, self.home = project, home

    def write(self, level: str, family: str, content: Any) -> Path:
        folder = self.home if level == "user" else self.project
        return write_settings(folder, family, content, name(level))

    def load(self, dialect: str = "turngate") -> Settings:
        return load_settings(str(self.project), dialect=dialect)


def name(level: str) -> str:
    return "settings.local.json" if level == "local" else "settings.json"


def shown(level: str, family: str) -> str:
    return f"{'~/' if level == 'user' else ''}.{family}/{name(level)}"


@pytest.fixture
def folders(project: Path, home: Path) -> Folders:
    return Folders(project, home)


def written(level: str, family: str, hook: Hook | str = "make", event: str = "Stop", number: int = 0) -> Rule:
    """Return the rule of a hook in this file."""
    hook = CommandHook(hook) if isinstance(hook, str) else hook
    return Rule(event, hook, None, level, shown(level, family), family, f"[0].hooks[{number}]")


def asked(settings: Settings, event: Event | None = None) -> list[str]:
    return [hook_text(each.hook) for each in plan(settings, event or stop_event()).ask]


# Which files


def test_no_file_at_all_is_no_hook_and_no_problem(folders: Folders) -> None:
    assert folders.load() == Settings(hard_limit=10)
    assert folders.load("mux") == Settings(dialect=MUX, hard_limit=10)
    assert folders.load("claude") == Settings(dialect=CLAUDE)


@pytest.mark.req("C-08")
@pytest.mark.parametrize(("level", "family"), NINE)
def test_each_of_the_nine_files_is_read_by_itself(folders: Folders, level: str, family: str) -> None:
    folders.write(level, family, stop_hooks("make"))
    assert folders.load() == Settings(rules=(written(level, family),), hard_limit=10)


@pytest.mark.parametrize(
    "level",
    [
        pytest.param("user", marks=pytest.mark.req("S0-09")),
        pytest.param("project", marks=pytest.mark.req("S0-10")),
        pytest.param("local", marks=pytest.mark.req("S0-11")),
    ],
)
def test_the_mux_dialect_reads_the_mux_family(folders: Folders, level: str) -> None:
    folders.write(level, "mux", stop_hooks("make"))
    assert folders.load("mux") == Settings(rules=(written(level, "mux"),), dialect=MUX, hard_limit=10)


@pytest.mark.req("S3-15")
@pytest.mark.parametrize("level", LEVELS)
def test_the_claude_dialect_reads_the_claude_family(folders: Folders, level: str) -> None:
    folders.write(level, "claude", stop_hooks("make"))
    assert folders.load("claude") == Settings(rules=(written(level, "claude"),), dialect=CLAUDE)


@pytest.mark.parametrize("dialect", ["mux", "claude"])
def test_mux_and_claude_read_nothing_of_the_other_families(folders: Folders, dialect: str) -> None:
    for level, family in NINE:
        folders.write(level, family, stop_hooks(f"{level} {family}") if family == dialect else "{ broken")
    expected = tuple(written(level, dialect, f"{level} {dialect}") for level in LEVELS)
    found = folders.load(dialect)
    assert (found.rules, found.problems) == (expected, ())


@pytest.mark.req("S0-90", "S0-91")
def test_both_stops_come_out_of_the_settings(folders: Folders) -> None:
    both = {**stop_hooks("make")["hooks"], **stop_hooks("make child", event="SubagentStop")["hooks"]}
    folders.write("project", "mux", {"hooks": both})
    settings = folders.load("mux")
    assert plan(settings, stop_event()) == Plan(ask=(written("project", "mux"),))
    assert plan(settings, subagent_stop()) == Plan(
        ask=(written("project", "mux", "make child", event="SubagentStop"),)
    )


def test_an_unknown_dialect_is_the_callers_mistake(folders: Folders) -> None:
    with pytest.raises(UsageError) as error:
        folders.load("cursor")
    assert str(error.value) == "unknown dialect 'cursor', expected one of turngate, mux, claude"


def test_the_project_may_be_a_relative_path(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    folders.write("project", "mux", stop_hooks("make"))
    monkeypatch.chdir(folders.project)
    assert load_settings() == folders.load() == Settings(rules=(written("project", "mux"),), hard_limit=10)


def test_the_home_folder_can_be_passed_in(tmp_path: Path, folders: Folders) -> None:
    folders.write("user", "mux", stop_hooks("mine"))
    write_settings(tmp_path, "mux", stop_hooks("theirs"))
    found = load_settings(str(folders.project), home=str(tmp_path))
    assert found.rules == (written("user", "mux", "theirs"),)


def test_in_the_home_itself_a_file_is_read_once(folders: Folders) -> None:
    folders.write("user", "claude", {**stop_hooks("make"), "turngate": {"hardLimit": 20}})
    write_settings(folders.home, "claude", stop_hooks("local"), name("local"))
    expected = (written("user", "claude"), written("local", "claude", "local"))
    assert load_settings(str(folders.home)) == Settings(rules=expected, hard_limit=20)


def test_a_file_that_is_a_link_to_another_is_read_once(folders: Folders) -> None:
    folders.write("project", "claude", stop_hooks("make"))
    link = folders.project / ".mux" / "settings.json"
    link.parent.mkdir()
    link.symlink_to("../.claude/settings.json")
    assert folders.load().rules == (written("project", "claude"),)


# One after the other


@pytest.mark.req("S0-12", "C-08", "C-09")
@pytest.mark.parametrize("count", range(1, 10))
def test_a_single_value_is_that_of_the_strongest_file(folders: Folders, count: int) -> None:
    for number, (level, family) in enumerate(NINE[:count], start=1):
        folders.write(level, family, {"turngate": {"limit": number}})
    assert folders.load() == Settings(limit=count, hard_limit=10)


@pytest.mark.req("S0-12")
def test_local_beats_project_and_project_beats_user_for_every_single_value(folders: Folders) -> None:
    def content(word: str, number: int) -> dict[str, Any]:
        section = {
            "limit": number,
            "payload": "full" if number < 3 else "strict",
            "stopBudget": number,
            "model": word,
            "judge": word,
            "plugins": [word],
            "defaults": {"command": number, word_event(word): 1},
            "order": {"Stop": "parallel" if number < 3 else "sequential", word_event(word): "first_block"},
            "mode": "gate" if number < 3 else "observe",
        }
        steers = {"defaults": {"subagents": {"maxSteerRestarts": number}}}
        return {"turngate": section, "agents": steers, "env": {"WORD": word, word: "1"}}

    def word_event(word: str) -> str:
        return {"user": "SubagentStop", "project": "SessionEnd", "local": "PreCompact"}[word]

    for number, level in enumerate(LEVELS, start=1):
        folders.write(level, "turngate", content(level, number))
    assert replace(folders.load(), guarded={}) == Settings(
        limit=3,
        hard_limit=10,
        child_limit=3,
        payload="strict",
        stop_budget=3.0,
        model="local",
        judge="local",
        plugins=("local",),
        mode={"*": "observe"},
        order={
            "Stop": "sequential",
            "SubagentStop": "first_block",
            "SessionEnd": "first_block",
            "PreCompact": "first_block",
        },
        timeouts={
            ("*", "command"): 3.0,
            ("SubagentStop", "*"): 1.0,
            ("SessionEnd", "*"): 1.0,
            ("PreCompact", "*"): 1.0,
        },
        env={"WORD": "local", "user": "1", "project": "1", "local": "1"},
        user_env={"WORD": "user", "user": "1"},
    )


@pytest.mark.req("S0-92", "C-08", "C-09")
def test_hooks_of_all_files_add_up_in_a_fixed_order(folders: Folders) -> None:
    for level, family in reversed(NINE):
        folders.write(level, family, stop_hooks(f"{level} {family}"))
    expected = tuple(written(level, family, f"{level} {family}") for level, family in NINE)
    settings = folders.load()
    assert settings == Settings(rules=expected, hard_limit=10)
    assert plan(settings, stop_event()) == Plan(ask=expected)


@pytest.mark.req("S0-92", "S0-12")
def test_user_project_and_local_hooks_are_merged_in_the_mux_dialect(folders: Folders) -> None:
    for level in LEVELS:
        folders.write(level, "mux", stop_hooks(level))
    expected = tuple(written(level, "mux", level) for level in LEVELS)
    assert folders.load("mux") == Settings(rules=expected, dialect=MUX, hard_limit=10)


@pytest.mark.req("C-09")
def test_the_same_id_in_a_later_file_takes_the_earlier_ones_place(folders: Folders) -> None:
    folders.write("user", "turngate", with_ids(("lint", "make lint"), ("test", "make test")))
    folders.write("local", "turngate", with_ids(("lint", "make fast-lint")))
    assert folders.load().rules == (
        written("local", "turngate", CommandHook("make fast-lint", id="lint")),
        written("user", "turngate", CommandHook("make test", id="test"), number=1),
    )


def with_ids(*hooks: tuple[str, str], event: str = "Stop", **fields: Any) -> dict[str, Any]:
    entries = [{"type": "command", "command": command, "id": each, **fields} for each, command in hooks]
    return {"hooks": {event: [{"hooks": entries}]}}


@pytest.mark.req("C-09")
def test_the_same_id_on_another_event_is_another_hook(folders: Folders) -> None:
    folders.write("user", "turngate", with_ids(("lint", "a")))
    folders.write("project", "turngate", with_ids(("lint", "b"), event="SubagentStop"))
    settings = folders.load()
    assert (asked(settings), asked(settings, subagent_stop())) == (["a"], ["b"])


@pytest.mark.req("C-09")
def test_an_id_that_is_not_enabled_removes_the_earlier_hook(folders: Folders) -> None:
    folders.write("project", "claude", with_ids(("lint", "make lint"), ("test", "make test")))
    folders.write("local", "turngate", with_ids(("lint", "make lint"), enabled=False))
    off = written("local", "turngate", CommandHook("make lint", id="lint", enabled=False))
    kept = written("project", "claude", CommandHook("make test", id="test"), number=1)
    assert plan(folders.load(), stop_event()) == Plan(
        ask=(kept,), skip=((off, Skipped("it is switched off by its own `enabled`", on_purpose=True)),)
    )


@pytest.mark.req("X-14", "C-08")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_command_in_several_files_runs_once_as_its_last_definition_says(
    folders: Folders, dialect: str
) -> None:
    family = DIALECTS[dialect].families[-1]
    folders.write("user", family, stop_hooks("make", "other", timeout=5))
    folders.write("project", family, stop_hooks("make", timeout=9))
    folders.write("local", family, stop_hooks("make", statusMessage="building"))
    last = CommandHook("make", status_message="building")
    other = written("user", family, CommandHook("other", timeout=5.0), number=1)
    assert plan(folders.load(dialect), stop_event()).ask == (written("local", family, last), other)


@pytest.mark.req("X-14")
def test_other_arguments_make_another_hook(folders: Folders) -> None:
    make: dict[str, Any] = {"type": "command", "command": "make"}
    entries = [make, {**make, "args": []}, {**make, "args": ["-k"]}]
    folders.write("project", "turngate", {"hooks": {"Stop": [{"hooks": entries + entries}]}})
    hooks = (CommandHook("make"), CommandHook("make", args=()), CommandHook("make", args=("-k",)))
    assert tuple(each.hook for each in plan(folders.load(), stop_event()).ask) == hooks


# The switch for all hooks


def switched_off(settings: Settings) -> dict[str, str]:
    """Every hook that the switch silences, and what is said about it."""
    skipped = plan(settings, stop_event()).skip
    return {hook_text(each.hook): why.why for each, why in skipped if isinstance(why, Skipped)}


@pytest.mark.parametrize("family", ["claude", "mux"])
def test_disable_all_hooks_switches_off_its_own_family_only(folders: Folders, family: str) -> None:
    for each in FAMILIES:
        folders.write("project", each, stop_hooks(each))
    folders.write("user", family, {"disableAllHooks": True})
    settings = folders.load()
    assert asked(settings) == [each for each in FAMILIES if each != family]
    assert switched_off(settings) == {family: f"disableAllHooks in ~/.{family}/settings.json switches it off"}


@pytest.mark.parametrize("level", LEVELS)
def test_the_switch_under_turngate_silences_all(folders: Folders, level: str) -> None:
    for family in FAMILIES:
        folders.write("project", family, stop_hooks(family))
    content = {**stop_hooks("turngate"), "disableAllHooks": True}
    folders.write(level, "turngate", content)
    stop = script(folders.project / ".mux" / "stop", "#!/bin/sh\n")
    settings = folders.load()
    why = f"disableAllHooks in {shown(level, 'turngate')} switches it off"
    assert asked(settings) == []
    assert switched_off(settings) == dict.fromkeys((*FAMILIES, str(stop)), why)


@pytest.mark.parametrize(
    ("said", "runs"),
    [
        ({"user": True}, False),
        ({"user": True, "project": False}, True),
        ({"user": False, "local": True}, False),
        ({"user": True, "project": True, "local": False}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_strongest_file_of_a_family_has_the_last_word_on_the_switch(
    folders: Folders, dialect: str, said: Mapping[str, bool], runs: bool
) -> None:
    family = DIALECTS[dialect].families[-1]
    for level in LEVELS:
        switch = {"disableAllHooks": said[level]} if level in said else {}
        folders.write(level, family, {**stop_hooks(level), **switch})
    assert asked(folders.load(dialect)) == (list(LEVELS) if runs else [])


def test_one_familys_word_does_not_lift_anothers_switch(folders: Folders) -> None:
    folders.write("user", "claude", {**stop_hooks("claude"), "disableAllHooks": True})
    folders.write("local", "mux", {**stop_hooks("mux"), "disableAllHooks": False})
    assert asked(folders.load()) == ["mux"]


# Files that are no good

COMMA = "a comma before the closing bracket is not allowed in JSON"
COMMENT = "comments are not allowed in JSON"
QUOTES = 'strings need double quotes (")'

BROKEN = {
    "comment at the top": ("/* why */ {}", f"not JSON at line 1, column 1: {COMMENT}"),
    "comment in an object": ('{\n  // why\n  "hooks": {}\n}', f"not JSON at line 2, column 3: {COMMENT}"),
    "comment after a value": ('{"hooks": {} // why\n}', f"not JSON at line 1, column 14: {COMMENT}"),
    "comment after a comma": ('{"a": 1, # why\n}', f"not JSON at line 1, column 10: {COMMENT}"),
    "comment in a list": ('{"a": [ // why\n]}', f"not JSON at line 1, column 9: {COMMENT}"),
    "comment at the end": ("{}\n// why\n", f"not JSON at line 2, column 1: {COMMENT}"),
    "comma before a brace": ('{\n  "hooks": {},\n}', f"not JSON at line 2, column 14: {COMMA}"),
    "comma before a bracket": ('{"a": [\n  {"hooks": []},\n]}', f"not JSON at line 2, column 16: {COMMA}"),
    "single quotes around a key": ("{'hooks': {}}", f"not JSON at line 1, column 2: {QUOTES}"),
    "single quotes around a value": ("""{"a": 'x'}""", f"not JSON at line 1, column 7: {QUOTES}"),
    "two values": ("{}\n{}", "not JSON at line 2, column 1: there is more text after the JSON value"),
    "cut off": ('{"hooks": ', "not JSON at line 1, column 11: expecting value"),
    "a string that does not end": (
        '{"hooks',
        "not JSON at line 1, column 2: this string has no closing quote",
    ),
    "missing comma": ('{"a": 1\n "b": 2}', "not JSON at line 2, column 2: expecting ',' delimiter"),
    "no JSON at all": ("hooks: []", "not JSON at line 1, column 1: expecting value"),
    "NaN": ('{"a": NaN}', "not JSON: NaN is not a JSON value"),
    "a list nested too deeply": ("[" * 100_000, "not readable: it is nested too deeply"),
    "an object nested too deeply": ('{"a":' * 100_000, "not readable: it is nested too deeply"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_reported_with_its_position_and_does_not_affect_others(
    folders: Folders, text: str, message: str
) -> None:
    folders.write("project", "claude", stop_hooks("before"))
    folders.write("project", "mux", text)
    folders.write("local", "mux", stop_hooks("after"))
    hint = 'remove it, or write it as a key that begins with _ or //: "_comment": "…"'
    problem = Problem(
        file=".mux/settings.json",
        message=f"{message}; none of its hooks run",
        hint=hint if message.endswith(COMMENT) else None,
    )
    rules = (written("project", "claude", "before"), written("local", "mux", "after"))
    assert folders.load() == Settings(rules=rules, hard_limit=10, problems=(problem,))


def test_every_broken_file_is_reported_weakest_first(folders: Folders) -> None:
    for level, family in NINE:
        folders.write(level, family, "{")
    files = [problem.file for problem in folders.load().errors]
    assert files == [shown(level, family) for level, family in NINE]


HOOKS = json.dumps(stop_hooks("make"))


@pytest.mark.parametrize(
    "data", [HOOKS.encode(), codecs.BOM_UTF8 + HOOKS.encode(), b"\r\n\t " + HOOKS.encode() + b"\n"]
)
def test_a_byte_order_mark_and_blanks_around_are_fine(folders: Folders, data: bytes) -> None:
    folders.write("project", "mux", "").write_bytes(data)
    assert folders.load() == Settings(rules=(written("project", "mux"),), hard_limit=10)


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n", codecs.BOM_UTF8, b"{}"], ids=repr)
def test_an_empty_file_says_nothing(folders: Folders, data: bytes) -> None:
    folders.write("project", "mux", "").write_bytes(data)
    assert folders.load() == Settings(hard_limit=10)


@pytest.mark.parametrize(
    ("data", "byte"),
    [
        (HOOKS.encode("utf-16"), 0),
        ('{"a": "é"}'.encode("latin-1"), 7),
        (b'{"a": "\xed\xa0\x80"}', 7),
        (b"\0\xff", 1),
    ],
    ids=["UTF-16", "Latin-1", "half a character", "binary"],
)
def test_a_file_that_is_not_utf_8_is_reported(folders: Folders, data: bytes, byte: int) -> None:
    folders.write("project", "mux", "").write_bytes(data)
    message = f"is not UTF-8 (byte {byte}); none of its hooks run"
    problem = Problem(file=".mux/settings.json", message=message, hint="save it as UTF-8")
    assert folders.load() == Settings(hard_limit=10, problems=(problem,))


@pytest.mark.parametrize(("text", "held"), [("[]", "a list"), ("null", "null"), ("5", "5"), ('"x"', '"x"')])
def test_a_file_that_holds_no_object_is_reported(folders: Folders, text: str, held: str) -> None:
    folders.write("project", "mux", text)
    message = f"the file holds {held}, expected an object"
    problem = Problem(file=".mux/settings.json", message=message, hint='begin with {"hooks": {…}}')
    assert folders.load() == Settings(hard_limit=10, problems=(problem,))


def no_file(folders: Folders, message: str, hint: str | None = None) -> Settings:
    """What is said about something at `.mux/settings.json` that cannot be read."""
    said = Problem(file=".mux/settings.json", message=f"{message}; none of its hooks run", hint=hint)
    return Settings(rules=(written("local", "mux"),), hard_limit=10, problems=(said,))


@pytest.fixture
def path(folders: Folders) -> Path:
    """Where a settings file should be; a good one lies beside it."""
    return folders.write("local", "mux", stop_hooks("make")).with_name("settings.json")


def test_a_folder_in_the_place_of_a_file_is_reported(folders: Folders, path: Path) -> None:
    path.mkdir()
    expected = no_file(folders, "is a folder, expected a file", "remove or rename the folder")
    assert folders.load() == expected


def test_a_link_to_nowhere_is_reported(folders: Folders, path: Path) -> None:
    path.symlink_to("nowhere.json")
    assert folders.load() == no_file(folders, "is a link to a file that does not exist")


def test_a_pipe_is_reported_and_not_read(folders: Folders, path: Path) -> None:
    os.mkfifo(path)
    assert folders.load() == no_file(folders, "is not a regular file")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_is_reported_and_never_opened(folders: Folders, path: Path, device: str) -> None:
    path.symlink_to(device)
    assert folders.load() == no_file(folders, "is not a regular file")


def test_a_file_that_grows_while_it_is_read_is_read_no_further_than_its_limit(path: Path) -> None:
    path.symlink_to("/proc/self/environ")  # its size is said to be 0
    with pytest.raises(FileTooLarge):
        read_bytes(str(path), 1)


def test_of_very_many_problems_the_first_are_reported_and_the_others_counted(folders: Folders) -> None:
    hooks = [{"type": "command", "command": "", "odd": 1}] * 500
    folders.write("project", "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    told = folders.load().problems
    last = Problem(file=".turngate/settings.json", message="and 800 more")
    assert (len(told), told[-1]) == (201, last)


def test_problems_beyond_the_first_are_counted_with_the_severity_of_the_worst() -> None:
    log = ProblemLog("f")
    for number in range(203):
        log.add("odd", severity="warning" if number == 201 else "note")
    first = Problem(file="f", message="odd", severity="note")
    last = Problem(file="f", message="and 3 more", severity="warning")
    assert (log.count, log.is_full, log.problems) == (203, True, (first,) * 200 + (last,))


@pytest.mark.parametrize("groups", [1, 2500], ids=["hooks", "groups"])
def test_of_very_many_hooks_the_first_are_loaded_and_the_limit_is_reported(
    folders: Folders, groups: int
) -> None:
    hooks = [{"type": "command", "command": "make"}] * (2500 // groups)
    folders.write("project", "turngate", {"hooks": {"Stop": [{"hooks": hooks}] * groups}})
    settings = folders.load()
    assert (len(settings.rules), [str(problem) for problem in settings.problems]) == (
        2000,
        [".turngate/settings.json: hooks: has over 2,000 hooks or groups: the others are left out"],
    )


def test_a_link_to_itself_is_reported(folders: Folders, path: Path) -> None:
    path.symlink_to(path.name)
    what = "is a link that leads back to itself, or through too many links"
    expected = no_file(folders, what, "repair the link, or remove it")
    assert folders.load() == expected


def test_a_name_that_is_too_long_is_not_a_question_of_permissions(folders: Folders, path: Path) -> None:
    path.symlink_to("x" * 300)
    assert folders.load() == no_file(folders, f"cannot be read: {os.strerror(errno.ENAMETOOLONG)}", None)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_reported(folders: Folders, path: Path) -> None:
    path.write_text("{}")
    path.chmod(0)
    assert folders.load() == no_file(
        folders, f"cannot be read: {os.strerror(errno.EACCES)}", "check its permissions"
    )


def test_a_file_beyond_all_measure_is_reported_and_not_read(folders: Folders, path: Path) -> None:
    path.touch()
    os.truncate(path, 4 * 1024 * 1024 + 1)
    assert folders.load() == no_file(folders, "is larger than 4 MiB")


def test_a_plain_file_in_the_place_of_a_familys_folder_holds_no_settings(folders: Folders) -> None:
    (folders.project / ".claude").write_text("not a folder")
    assert folders.load() == Settings(hard_limit=10)


@pytest.mark.req("C-35", "S0-03")
def test_an_unknown_event_is_reported_and_stop_still_works(folders: Folders) -> None:
    events = ("PreToolUse", "Foo", "Stop")
    hooks = {event: [{"hooks": [{"type": "command", "command": event}]}] for event in events}
    folders.write("project", "mux", {"hooks": hooks})
    settings = folders.load("mux")
    assert asked(settings) == ["Stop"]
    assert [(problem.severity, str(problem)) for problem in settings.problems] == [
        ("warning", ".mux/settings.json: Foo: is not a known event, so its hooks never run")
    ]


@pytest.mark.parametrize(("dialect", "left"), [("turngate", ["make", "other"]), ("claude", ["other"])])
def test_an_invalid_guard_voids_its_file_only_in_the_claude_dialect(
    folders: Folders, dialect: str, left: list[str]
) -> None:
    guard = {"PreToolUse": [{"hooks": [{"type": "command"}]}]}
    folders.write("project", "claude", {"hooks": {**guard, **stop_hooks("make")["hooks"]}})
    folders.write("local", "claude", stop_hooks("other"))
    settings = folders.load(dialect)
    lost = Problem(
        file=".claude/settings.json",
        message="a PreToolUse or PermissionRequest hook is invalid, so in this dialect no hook of the file runs",
    )
    missing = Problem(
        file=".claude/settings.json",
        message="is missing, expected a non-empty string",
        event="PreToolUse",
        index="[0].hooks[0]",
        field="command",
    )
    assert asked(settings) == left
    assert settings.problems == ((missing, lost) if dialect == "claude" else (missing,))


# The hard limit


@pytest.mark.parametrize("level", ["project", "local"])
def test_the_lists_of_addresses_all_count_so_that_a_project_can_only_narrow(
    folders: Folders, level: str
) -> None:
    folders.write(level, "turngate", {"turngate": {"allowedUrls": ["https://b"]}})
    folders.write("user", "claude", {"turngate": {"allowedUrls": ["https://a", "https://b"]}})
    lists = (AllowedUrls(("https://a", "https://b"), "user"), AllowedUrls(("https://b",), level))
    assert folders.load() == Settings(hard_limit=10, allowed_urls=lists)


def hard_limits(folders: Folders, levels: Mapping[str, int], dialect: str = "turngate") -> Settings:
    family = DIALECTS[dialect].families[-1]
    for level, number in levels.items():
        folders.write(level, family, {"turngate": {"hardLimit": number}})
    return folders.load(dialect)


@pytest.mark.req("C-18")
def test_the_user_may_raise_and_lower_the_hard_limit(folders: Folders) -> None:
    assert hard_limits(folders, {"user": 50}) == Settings(hard_limit=50)
    assert hard_limits(folders, {"user": 2}) == Settings(hard_limit=2)


@pytest.mark.req("C-18")
@pytest.mark.parametrize("level", ["project", "local"])
def test_a_project_may_lower_the_hard_limit_and_never_raise_it(folders: Folders, level: str) -> None:
    assert hard_limits(folders, {level: 4}) == Settings(hard_limit=4)
    refused = Problem(
        file=shown(level, "turngate"),
        field="turngate.hardLimit",
        message="is 50, above 10, which only user settings can raise: 10 is used",
        severity="warning",
    )
    assert hard_limits(folders, {level: 50}) == Settings(hard_limit=10, problems=(refused,))


@pytest.mark.req("C-18")
def test_what_the_user_grants_a_project_may_use(folders: Folders) -> None:
    assert hard_limits(folders, {"user": 50, "project": 30}) == Settings(hard_limit=30)


@pytest.mark.req("C-18")
@pytest.mark.parametrize(("set_at", "limit"), [({}, None), ({"project": 2}, 2), ({"user": 5, "local": 3}, 3)])
def test_the_claude_dialect_has_a_hard_limit_only_where_a_file_sets_one(
    folders: Folders, set_at: dict[str, int], limit: int | None
) -> None:
    settings = hard_limits(folders, set_at, "claude")
    assert settings == Settings(dialect=CLAUDE, hard_limit=limit)
    assert new_guard(settings, {}).hard_limit == limit


@pytest.mark.req("C-18")
def test_a_project_never_raises_the_users_hard_limit_in_the_claude_dialect(folders: Folders) -> None:
    refused = Problem(
        file=shown("local", "claude"),
        field="turngate.hardLimit",
        message="is 50, above 5, which only user settings can raise: 5 is used",
        severity="warning",
    )
    assert hard_limits(folders, {"user": 5, "local": 50}, "claude") == Settings(
        dialect=CLAUDE, hard_limit=5, problems=(refused,)
    )


# The documents' own samples


@pytest.mark.req("S0-13", "S0-16", "S0-17", "S0-18")
def test_the_sample_of_document_000_is_two_rules(folders: Folders) -> None:
    folders.write("project", "mux", (SEEDS / "000_settings.json").read_text())
    settings = folders.load("mux")
    stop = CommandHook("$MUX_PROJECT_DIR/.mux/hooks/stop-check.sh", timeout=30.0)
    child = CommandHook("/path/to/subagent-stop-hook.py")
    rules = (written("project", "mux", stop), written("project", "mux", child, event="SubagentStop"))
    assert settings == Settings(rules=rules, dialect=MUX, hard_limit=10)
    assert [settings.timeout_of(each) for each in rules] == [30.0, 10.0]


# As people write them for Claude Code, with keys that only Claude Code knows.
CLAUDE_SETTINGS: Mapping[str, Any] = {
    "$schema": "https://json.schemastore.org/claude-code-settings.json",
    "permissions": {"allow": ["Bash(npm run lint)"], "deny": ["Read(./.env)"]},
    "env": {"CI": "1"},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh", "once": True}]}
        ],
        "Stop": [
            {
                "hooks": [
                    {"type": "command", "command": "npm test", "timeout": 120, "statusMessage": "Testing"},
                    {"type": "prompt", "prompt": "Is it done? $ARGUMENTS", "model": "haiku"},
                ]
            },
            {"matcher": "", "hooks": [{"type": "http", "url": "http://localhost:8080/stop"}]},
        ],
        "SubagentStop": [
            {
                "matcher": "Explore|Plan",
                "hooks": [{"type": "command", "command": "check", "args": ["--child"], "asyncRewake": True}],
            }
        ],
        "Notification": [{"hooks": [{"type": "command", "command": "beep", "async": True}]}],
    },
}


@pytest.mark.req("S0-04")
def test_a_claude_code_file_copied_to_mux_gives_the_same_hooks(folders: Folders) -> None:
    original = folders.write("project", "claude", dict(CLAUDE_SETTINGS))
    (folders.project / ".mux").mkdir()
    shutil.copy(original, folders.project / ".mux" / "settings.json")
    claude, mux = folders.load("claude"), folders.load("mux")
    expected = [
        ("PreToolUse", "Bash", CommandHook("guard.sh")),
        ("Stop", None, CommandHook("npm test", timeout=120.0, status_message="Testing")),
        ("Stop", None, PromptHook("Is it done? $ARGUMENTS", model="haiku")),
        ("Stop", "", HttpHook("http://localhost:8080/stop")),
        ("SubagentStop", "Explore|Plan", CommandHook("check", args=("--child",), rewake=True)),
    ]
    assert [(each.event, each.matcher, each.hook) for each in claude.rules] == expected
    assert [(each.event, each.matcher, each.hook) for each in mux.rules] == expected
    assert (claude.env, mux.env) == ({"CI": "1"}, {"CI": "1"})
    assert [p for p in (*claude.problems, *mux.problems) if p.severity != "note"] == []


@pytest.mark.req("S0-04", "X-14")
def test_a_copy_of_a_settings_file_does_not_run_its_hooks_twice(folders: Folders) -> None:
    for family in ("claude", "mux"):
        folders.write("project", family, dict(CLAUDE_SETTINGS))
    assert asked(folders.load()) == ["npm test", "Is it done? $ARGUMENTS", "http://localhost:8080/stop"]


# Timeouts


def callback(_: Any) -> None:
    pass


KINDS: Mapping[str, Hook] = {
    "command": CommandHook("make"),
    "prompt": PromptHook("done?"),
    "agent": AgentHook("look"),
    "http": HttpHook("http://localhost/"),
    "callback": CallbackHook(callback),
}


def timeouts(settings: Settings, event: str = "Stop") -> dict[str, float]:
    """Return the timeout of a project's hook of each kind."""
    return {kind: settings.timeout_of(rule(hook, event, source="project")) for kind, hook in KINDS.items()}


@pytest.mark.req("C-02")
@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        pytest.param("turngate", (60.0, 30.0, 60.0, 30.0, 30.0), marks=pytest.mark.req("S3-47")),
        pytest.param("mux", (10.0, 30.0, 60.0, 30.0, 30.0), marks=pytest.mark.req("S0-101", "S0-17")),
        pytest.param("claude", (600.0, 30.0, 60.0, 600.0, 60.0)),
    ],
)
def test_each_dialect_has_its_default_timeouts(
    folders: Folders, dialect: str, expected: tuple[float, ...]
) -> None:
    assert timeouts(folders.load(dialect)) == dict(zip(KINDS, expected, strict=True))


@pytest.mark.req("S0-101")
@pytest.mark.parametrize("dialect", ["turngate", "mux", "host"])
def test_a_command_of_a_mux_file_has_ten_seconds_in_every_dialect_that_reads_it(
    folders: Folders, dialect: str
) -> None:
    folders.write("project", "mux", stop_hooks("make"))
    settings = folders.load(dialect)
    assert [settings.timeout_of(each) for each in settings.rules] == [10.0]


@pytest.mark.req("C-02", "S3-47")
def test_the_narrowest_word_on_a_timeout_counts(folders: Folders) -> None:
    defaults = {"command": 1, "http": 2, "SubagentStop": 3, "Stop": {"command": 4}}
    folders.write("project", "turngate", {"turngate": {"defaults": defaults}})
    settings = folders.load()
    assert timeouts(settings) == {"command": 4, "prompt": 30, "agent": 60, "http": 2, "callback": 30}
    assert timeouts(settings, "SubagentStop") == dict.fromkeys(KINDS, 3)
    assert timeouts(settings, "PreToolUse") == {
        "command": 1,
        "prompt": 30,
        "agent": 60,
        "http": 2,
        "callback": 30,
    }
    assert settings.timeout_of(rule(CommandHook("make", timeout=5))) == 5


@pytest.mark.req("S3-47")
def test_a_command_of_a_file_of_claude_code_has_sixty_seconds_unless_it_says_otherwise(
    folders: Folders,
) -> None:
    hooks = [{"type": "command", "command": "make"}, {"type": "command", "command": "lint", "timeout": 5}]
    folders.write("project", "claude", {"hooks": {"Stop": [{"hooks": hooks}]}})
    settings = folders.load()
    assert [settings.timeout_of(each) for each in settings.rules] == [60.0, 5.0]


@pytest.mark.req("C-02")
def test_a_later_file_overrides_one_default_timeout_and_keeps_the_others(folders: Folders) -> None:
    folders.write("user", "turngate", {"turngate": {"defaults": {"command": 1, "agent": 2}}})
    folders.write("local", "turngate", {"turngate": {"defaults": {"command": 3}}})
    assert timeouts(folders.load()) == {"command": 3, "prompt": 30, "agent": 2, "http": 30, "callback": 30}


def test_session_end_hooks_have_a_short_default_timeout(folders: Folders) -> None:
    assert timeouts(folders.load(), "SessionEnd") == dict.fromkeys(KINDS, 1.5)
    folders.write("project", "turngate", {"turngate": {"defaults": {"SessionEnd": 20}}})
    assert timeouts(folders.load(), "SessionEnd") == dict.fromkeys(KINDS, 20)


def test_nothing_of_one_project_is_remembered_in_another(tmp_path: Path, folders: Folders) -> None:
    folders.write("project", "turngate", {**stop_hooks("make"), "turngate": {"limit": 1}})
    assert folders.load().limit == 1
    assert load_settings(str(tmp_path)) == Settings(dialect=TURNGATE, hard_limit=10)


@pytest.mark.req("C-09")
def test_an_id_that_is_switched_off_needs_nothing_else(folders: Folders) -> None:
    """What a user removes must not be written down again."""
    folders.write("project", "mux", stop_hooks("check", id="tests"))
    folders.write("local", "mux", {"hooks": {"Stop": [{"hooks": [{"id": "tests", "enabled": False}]}]}})
    settings = folders.load()
    assert (plan(settings, stop_event()).ask, settings.problems) == ((), ())


def test_the_same_id_twice_in_one_file_is_reported(folders: Folders) -> None:
    hooks = [{"type": "command", "command": command, "id": "q"} for command in ("first", "last")]
    folders.write("project", "mux", {"hooks": {"Stop": [{"hooks": hooks}]}})
    settings = folders.load()
    assert ([str(problem) for problem in settings.problems], len(settings.rules)) == (
        [
            ".mux/settings.json: Stop[0].hooks[1].id (q): is 'q', which occurs twice in this file: the last one is used"
        ],
        1,
    )


@pytest.mark.req("C-18")
def test_a_limit_above_the_hard_limit_is_reported(folders: Folders) -> None:
    folders.write("project", "turngate", {"turngate": {"limit": 20}})
    assert [str(problem) for problem in folders.load().problems] == [
        ".turngate/settings.json: turngate.limit: is 20, above the hard limit of 10: 10 is used"
    ]


@pytest.mark.parametrize("level", ["project", "local"])
def test_only_the_user_has_trees_recorded(folders: Folders, level: str) -> None:
    folders.write(level, "turngate", {"turngate": {"recordTrees": True}})
    refused = Problem(
        file=shown(level, "turngate"),
        field="turngate.recordTrees",
        message="has no effect in a project: only user settings can set it",
        severity="warning",
    )
    assert folders.load() == Settings(hard_limit=10, problems=(refused,))
    folders.write("user", "turngate", {"turngate": {"recordTrees": True}})
    folders.write(level, "turngate", {"turngate": {"recordTrees": False}})
    assert folders.load() == Settings(hard_limit=10, record_trees=True, problems=(refused,))
