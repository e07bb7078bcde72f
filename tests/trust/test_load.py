"""The hooks of a session after a review."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import rule
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.hints import GONE
from turngate.trust.load import refreshed

WHY = "its definition was changed after it was approved"


def configured(command: str | CommandHook, number: int = 0, **fields: Any) -> Rule:
    place = {"source": "project", "file": ".turngate/settings.json", "index": f"[0].hooks[{number}]"}
    return rule(command, **{**place, **fields})


def after(start: list[Rule], reviewed: list[Rule]) -> list[tuple[Rule, str | None]]:
    settings = refreshed(Settings(rules=tuple(start)), Settings(rules=tuple(reviewed)))
    return [(each, each.pending) for each in settings.rules]


@pytest.mark.req("S3-16")
def test_a_hook_that_was_approved_takes_the_place_of_the_old_one() -> None:
    new = configured("new")
    assert after([configured("old")], [new]) == [(new, None)]


@pytest.mark.req("S3-16")
def test_a_hook_that_has_changed_and_is_pending_runs_on_as_it_was() -> None:
    old = configured("old")
    assert after([old], [configured("new", pending=WHY)]) == [(old, None)]


@pytest.mark.req("S3-16")
def test_a_new_hook_that_is_pending_stays_pending() -> None:
    new = configured("new", 1, pending=WHY)
    assert after([configured("old")], [configured("old"), new]) == [(configured("old"), None), (new, WHY)]


@pytest.mark.req("S3-16", "X-13")
def test_a_hook_that_was_rejected_stops_at_once() -> None:
    new = configured("old", pending="it was rejected", rejected=True)
    assert after([configured("old")], [new]) == [(new, "it was rejected")]


@pytest.mark.req("S3-16")
def test_a_hook_that_an_agent_has_removed_and_one_in_python_run_on() -> None:
    removed, python = configured("old"), rule("python")
    assert after([removed, python], []) == [(removed, None), (python, None)]


@pytest.mark.req("S3-16")
def test_a_hook_that_an_agent_has_removed_runs_on_although_another_moved_to_its_place() -> None:
    first, second = configured("first"), configured("second", 1)
    moved = configured("second")
    assert after([first, second], [moved]) == [(moved, None), (first, None)]


def test_a_hook_that_is_gone_and_runs_on_is_not_reported_as_pending() -> None:
    old = configured("old")
    gone = configured(CommandHook("old", mode="gate"), index=None, pending=GONE)
    assert after([old], [gone]) == [(old, None)]


def test_a_hook_whose_script_has_changed_runs_on_with_the_files_of_the_start() -> None:
    old = configured("sh x.sh", files={"/p/x.sh": "sha256:1"})
    new = configured("sh x.sh", files={"/p/x.sh": "sha256:2"}, pending=WHY)
    [(rule, pending)] = after([old], [new])
    assert (rule.files, pending) == ({"/p/x.sh": "sha256:1"}, None)


def test_an_approved_hook_replaces_the_users_hook_with_the_same_id() -> None:
    mine = rule(CommandHook("mine", id="x"), source="user", file="~/.turngate/settings.json")
    theirs = configured(CommandHook("theirs", id="x"))
    assert after([mine], [theirs]) == [(theirs, None)]


def test_an_environment_that_was_approved_reaches_the_hooks() -> None:
    reviewed = Settings(env={"A": "1"}, user_env={"B": "2"})
    assert refreshed(Settings(limit=7), reviewed) == replace(reviewed, limit=7)
