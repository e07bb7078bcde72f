"""A gate that was approved and does not run any more is not enforced, however it was disarmed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.cli import turngate
from tests.trust.support import RUNS, approve_all, ask, command, make, said, stop_settings, write
from turngate.project.files import LOCAL
from turngate.trust.load import load_settings
from turngate.trust.review import review_project

HOOK = command("sh hooks/check.sh", id="check")
CHECK = {"hooks/check.sh": RUNS}
GONE = "it was approved, but is no longer configured"
DEFINITION = "its definition was changed after it was approved"


def configure(*hooks: dict[str, Any], **others: Any) -> Callable[[Path], object]:
    return lambda project: write_settings(project, "turngate", stop_settings(*hooks, **others))


def at(event: str, matcher: str | None = None) -> Callable[[Path], object]:
    group = {"hooks": [HOOK], **({"matcher": matcher} if matcher else {})}
    return lambda project: write_settings(project, "turngate", {"hooks": {event: [group]}})


LOST = {
    "it is removed": (configure(), GONE),
    "its file is removed": (lambda project: (project / ".turngate/settings.json").unlink(), GONE),
    "it is at another event": (at("SessionEnd"), GONE),
    "it is disabled": (configure({**HOOK, "enabled": False}), DEFINITION),
    "it only observes": (configure({**HOOK, "mode": "observe"}), DEFINITION),
    "the settings let it only observe": (
        configure(HOOK, turngate={"mode": "observe"}),
        "`mode` of the settings was changed after it was approved",
    ),
    "the settings let all of its event only observe": (
        configure(HOOK, turngate={"mode": {"Stop": "observe"}}),
        "`mode` of the settings was changed after it was approved",
    ),
    "the settings leave it no time": (
        configure(HOOK, turngate={"defaults": {"command": 0.001}}),
        "`defaults` of the settings was changed after it was approved",
    ),
    "the settings leave all hooks no time": (
        configure(HOOK, turngate={"stopBudget": 0.001}),
        "`stopBudget` of the settings was changed after it was approved",
    ),
}


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")


@pytest.mark.req("S3-16")
@pytest.mark.parametrize("name", LOST)
def test_it_is_not_enforced_when(name: str, project: Path) -> None:
    change, why = LOST[name]
    make(project, HOOK, CHECK)
    approve_all(project)
    change(project)
    verdict = ask(project)
    assert ([(run.hook, run.said) for run in verdict.unenforced], (project / "ran").exists()) == (
        [("check", why)],
        False,
    )
    assert turngate("fire", "Stop", "--project", str(project), "--strict")[0] == 13
    assert turngate("fire", "PreCompact", "--project", str(project), "--strict")[0] == 0


def test_a_script_hook_that_is_removed(project: Path) -> None:
    write(project, {".turngate/stop": f"#!/bin/sh\n{RUNS}"})
    approve_all(project)
    (project / ".turngate/stop").unlink()
    assert said(ask(project)) == [GONE]


def test_it_counts_until_it_is_forgotten(project: Path) -> None:
    make(project, HOOK, CHECK)
    approve_all(project)
    write_settings(project, "turngate", {})
    assert turngate("hooks", "reject", "check", "--project", str(project)) == (0, "forgotten  check\n", "")
    assert said(ask(project)) == []
    assert turngate("fire", "Stop", "--project", str(project), "--strict")[0] == 0


def test_it_is_forgotten_when_everything_is_approved(project: Path) -> None:
    make(project, HOOK, CHECK)
    approve_all(project)
    write_settings(project, "turngate", {})
    elsewhere = ("hooks", "approve", "--all", "--yes", "--project", str(project), "--dialect", "claude")
    assert turngate(*elsewhere) == (0, "nothing is pending\n", "")
    assert said(ask(project)) == [GONE]
    configure(command("true"))(project)
    code, out, _ = turngate("hooks", "approve", "--all", "--yes", "--project", str(project))
    assert (code, "check: GONE; it was approved on " in out, out.splitlines()[-2:]) == (
        0,
        True,
        ["forgotten  check", "approved  Stop:1"],
    )
    assert said(ask(project)) == []


def test_what_to_do_is_shown(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr/bin")  # the shorter path is shown, and from here that is the full one
    make(project, HOOK, CHECK)
    approve_all(project)
    write_settings(project, "turngate", {})
    hint = f"configure it again, or forget it with `turngate hooks reject check --project {project}`"
    warning = f'! hook "check" was skipped and NOT enforced: {GONE}\n  → {hint}\n'
    assert turngate("fire", "Stop", "--project", str(project))[2] == warning


def test_the_first_of_several_without_a_name_is_removed(project: Path) -> None:
    """The others move to its place."""
    hooks = [command("true 1"), command("true 2")]
    configure(*hooks)(project)
    approve_all(project)
    configure(hooks[1])(project)
    assert [(run.hook, run.said) for run in ask(project).unenforced] == [("true 1", GONE)]
    assert [
        json.loads(each.fingerprint.content)["command"]
        for each in review_project(str(project), files=LOCAL).vanished
    ] == ["true 1"]


def test_a_version_that_was_replaced_is_not_gone(project: Path) -> None:
    for text in ("true 1", "true 2", "true 3"):
        configure(command(text))(project)
        approve_all(project)
    assert (said(ask(project)), review_project(str(project), files=LOCAL).vanished) == ([], ())


def test_a_version_that_was_rejected_ends_the_approval_of_the_one_before(project: Path) -> None:
    make(project, HOOK, CHECK)
    approve_all(project)
    configure({**HOOK, "timeout": 9})(project)
    review = review_project(str(project), files=LOCAL)
    review.reject(review.hooks)
    assert said(ask(project)) == []


def test_a_hook_of_a_family_that_the_dialect_does_not_read_is_not_gone(project: Path) -> None:
    make(project, HOOK, CHECK)
    approve_all(project)
    assert said(ask(project, dialect="claude")) == []


def test_a_file_that_cannot_be_read_is_reported_once(project: Path) -> None:
    make(project, HOOK, CHECK)
    approve_all(project)
    write(project, {".turngate/settings.json": "{"})
    assert (said(ask(project)), len(load_settings(str(project)).errors)) == ([], 1)


def test_two_hooks_with_one_name_are_approved_at_once(project: Path) -> None:
    configure(command("true 1", id="check"), command("true 2", id="check"))(project)
    approve_all(project)
    assert said(ask(project)) == []


def test_with_trust_nothing_is_gone(project: Path) -> None:
    make(project, HOOK, CHECK)
    approve_all(project)
    write_settings(project, "turngate", {})
    assert said(ask(project, trust=True)) == []
