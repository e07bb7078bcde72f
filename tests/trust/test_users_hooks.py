"""A hook of the user runs in every project: what it would run of a project is approved for this project."""

import os
from pathlib import Path

import pytest

from tests.support.builders import write_settings
from tests.trust.support import EVIL, RUNS, approve_all, ask, command, said, stop_settings, write
from turngate.project.files import LOCAL
from turngate.trust.review import review_project

HOOK = command("if [ -f scripts/check.sh ]; then sh scripts/check.sh; fi", id="check")
NOT_APPROVED = "it runs scripts/check.sh of the project, which is not approved"


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    write_settings(home, "turngate", stop_settings(HOOK))


def make(folder: Path, text: str) -> Path:
    write(folder, {"scripts/check.sh": text})
    return folder


@pytest.mark.req("C-25")
def test_a_script_of_a_project_is_approved_for_this_project_alone(tmp_path: Path) -> None:
    good, evil = make(tmp_path / "good", RUNS), make(tmp_path / "evil", EVIL)
    assert (said(ask(good)), said(ask(evil))) == ([NOT_APPROVED], [NOT_APPROVED])
    approve_all(good)
    assert (said(ask(good)), (good / "ran").exists()) == ([], True)
    assert (said(ask(evil)), (evil / "evil").exists()) == ([NOT_APPROVED], False)
    make(good, EVIL)
    assert said(ask(good)) == ["scripts/check.sh was changed after it was approved"]
    assert not (good / "evil").exists()


def test_a_change_in_one_project_does_not_matter_in_another(tmp_path: Path) -> None:
    one, other = make(tmp_path / "one", RUNS), make(tmp_path / "other", RUNS)
    approve_all(one)
    approve_all(other)
    make(one, EVIL)
    assert (said(ask(other)), (other / "ran").exists()) == ([], True)


def test_without_a_script_in_the_project_it_runs_on_first_sight(project: Path) -> None:
    assert said(ask(project)) == []
    make(project, EVIL)
    assert (said(ask(project)), (project / "evil").exists()) == ([NOT_APPROVED], False)


def test_a_pattern_that_matches_nothing_in_the_project_needs_no_approval(project: Path, home: Path) -> None:
    hook = command('for x in checks/*.sh; do [ ! -f "$x" ] || sh "$x"; done')
    write_settings(home, "turngate", stop_settings(hook))
    assert said(ask(project)) == []
    write(project, {"checks/check.sh": EVIL})
    assert said(ask(project)) == ["it runs checks/check.sh of the project, which is not approved"]


def test_an_activated_environment_of_another_project_does_not_matter(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {".venv/bin/tool": ""})
    monkeypatch.setenv("PATH", f"{project}/.venv/bin:/usr/bin:/bin")
    assert said(ask(project)) == []
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert (said(ask(project)), said(ask(tmp_path))) == ([], [])


def test_a_hook_that_the_user_removes_is_not_a_lost_gate(project: Path, home: Path) -> None:
    approve_all(make(project, RUNS))
    write_settings(home, "turngate", {})
    assert said(ask(project)) == []


def test_in_the_home_folder_all_scripts_are_the_users(home: Path) -> None:
    make(home, RUNS)
    assert (said(ask(home)), (home / "ran").exists()) == ([], True)


def test_many_hooks_are_stored_at_once(project: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, a thousand hooks would delay the start of the first session by many seconds."""
    replaced: list[str] = []
    real_replace = os.replace

    def replace(source: str, target: str) -> None:
        replaced.append(os.path.basename(target))
        real_replace(source, target)

    monkeypatch.setattr(os, "replace", replace)
    write_settings(home, "turngate", stop_settings(*(command(f"true {number}") for number in range(900))))
    review = review_project(str(project), files=LOCAL)
    assert ({hook.status for hook in review.hooks}, replaced) == ({"approved"}, ["user.json"])
