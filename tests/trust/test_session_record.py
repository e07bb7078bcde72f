"""A session of a host keeps its gates: one that is changed, removed or moved away blocks the stop."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.recordings import recorded
from tests.support.cli import turngate
from tests.support.git_projects import LATER, commit, git, make_repository
from tests.trust.support import approve_all, command, stop_settings, write
from turngate.state.paths import state_folder

BLOCK = {"decision": "block", "reason": "no"}
CHECK = "test ! -e fail || { echo no >&2; exit 2; }\n"


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")


@pytest.fixture
def repository(project: Path) -> Path:
    """A project whose gate is approved and passes, and whose session has stopped once in a subfolder."""
    (project / ".git").mkdir()
    (project / "packages/a").mkdir(parents=True)
    write(project, {"hooks/check.sh": CHECK})
    set_hooks(project, command("sh hooks/check.sh", id="check"))
    approve_all(project)
    assert stop(project) is None
    return project


def set_hooks(project: Path, *hooks: dict[str, Any], **further: Any) -> None:
    write(project, {".turngate/settings.json": json.dumps({**stop_settings(*hooks), **further})})


def stop(project: Path, turn: str = "1", **fields: Any) -> Any:
    """Return the answer of one stop of Codex, which has no limit of its own, in a subfolder of the project."""
    folder = {"cwd": str(project / "packages/a"), "transcript_path": None, "turn_id": turn}
    given = {**recorded("codex", "Stop"), **folder, **fields}
    code, out, _ = turngate("hook", stdin=json.dumps(given))
    assert code == 0
    return json.loads(out) if out else None


def start(project: Path) -> None:
    given = {**recorded("codex", "SessionStart"), "cwd": str(project), "source": "startup"}
    session = {**given, "session_id": recorded("codex", "Stop")["session_id"]}
    assert turngate("hook", stdin=json.dumps(session)) == (0, "", "")


def blocked(why: str, name: str = "check") -> dict[str, str]:
    person = "ask the user to approve it in another terminal with `turngate hooks approve --all`"
    reason = f'The gate "{name}" is NOT enforced: {why}. Undo this change, or {person}.'
    return {"decision": "block", "reason": reason}


def empty_the_settings(project: Path) -> None:
    write(project, {".turngate/settings.json": "{}"})


def break_the_settings(project: Path) -> None:
    write(project, {".turngate/settings.json": "{"})


def remove_the_settings(project: Path) -> None:
    (project / ".turngate/settings.json").unlink()


def rename_the_settings_folder(project: Path) -> None:
    (project / ".turngate").rename(project / ".turngate.off")


def replace_the_command(project: Path) -> None:
    set_hooks(project, command("true", id="check"))


def rename_the_hook(project: Path) -> None:
    set_hooks(project, command("true", id="other"))


def disable_the_hook(project: Path) -> None:
    set_hooks(project, command("sh hooks/check.sh", id="check", enabled=False))


def observe_only(project: Path) -> None:
    set_hooks(project, command("sh hooks/check.sh", id="check", mode="observe"))


def observe_by_the_settings(project: Path) -> None:
    set_hooks(project, command("sh hooks/check.sh", id="check"), turngate={"mode": {"Stop": "observe"}})


def disable_all_hooks(project: Path) -> None:
    write(project, {".turngate/settings.local.json": '{"disableAllHooks": true}'})


def change_the_script(project: Path) -> None:
    write(project, {"hooks/check.sh": "exit 0\n"})


def remove_the_script(project: Path) -> None:
    (project / "hooks/check.sh").unlink()


GONE = "it was approved, but is no longer configured"
REDEFINED = "its definition was changed after it was approved"
MOVES: dict[Callable[[Path], None], str] = {
    empty_the_settings: GONE,
    rename_the_hook: GONE,
    replace_the_command: REDEFINED,
    disable_the_hook: REDEFINED,
    observe_only: REDEFINED,
    observe_by_the_settings: "`mode` of the settings was changed after it was approved",
    disable_all_hooks: "disableAllHooks in .turngate/settings.local.json switches it off",
    change_the_script: "hooks/check.sh was changed after it was approved",
    remove_the_script: "hooks/check.sh was removed after it was approved",
}


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.__name__)
def test_a_gate_that_is_changed_in_its_session_blocks(repository: Path, move: Callable[[Path], None]) -> None:
    move(repository)
    answer = stop(repository)
    assert {**answer, "systemMessage": ""} == {**blocked(MOVES[move]), "systemMessage": ""}


@pytest.mark.parametrize("event", ["TaskCompleted", "TeammateIdle"])
def test_a_gate_of_a_team_that_is_changed_in_its_session_blocks(repository: Path, event: str) -> None:
    settings = {"hooks": {event: [{"hooks": [command("sh hooks/check.sh", id="check")]}]}}
    write(repository, {".turngate/settings.json": json.dumps(settings)})
    approve_all(repository)
    start(repository)
    empty_the_settings(repository)
    fields = {"hook_event_name": event, "task_id": "1", "teammate_name": "bob"}
    assert stop(repository, **fields)["reason"] == blocked(GONE)["reason"]


@pytest.mark.parametrize("move", [remove_the_settings, rename_the_settings_folder])
def test_a_gate_whose_settings_file_is_not_there_runs_as_it_was_approved(
    repository: Path, move: Callable[[Path], None]
) -> None:
    """Another branch may not have the file."""
    move(repository)
    assert stop(repository) is None
    write(repository, {"fail": ""})
    assert stop(repository) == {"decision": "block", "reason": "no"}
    change_the_script(repository)
    assert stop(repository)["reason"] == blocked(GONE)["reason"]


def test_a_settings_file_that_cannot_be_read_blocks(repository: Path) -> None:
    break_the_settings(repository)
    assert stop(repository)["reason"] == blocked(".turngate/settings.json cannot be read")["reason"]


def test_a_folder_that_hides_the_project_changes_nothing(repository: Path) -> None:
    write(repository, {"fail": ""})
    (repository / "packages/a/.git").mkdir()
    write(repository, {"packages/a/.turngate/settings.json": "{}"})
    assert stop(repository) == {"decision": "block", "reason": "no"}


def test_a_project_folder_that_is_renamed_blocks(repository: Path) -> None:
    moved = repository.rename(repository.with_name("moved"))
    assert stop(moved)["reason"] == blocked("it is not approved")["reason"]
    gone = stop(moved, cwd="/nowhere")["reason"]
    assert gone == blocked(f"the project folder {repository} is gone")["reason"]


def test_a_session_whose_worktree_was_removed_goes_on_in_the_repository(
    project: Path, tmp_path: Path
) -> None:
    set_hooks(project, command("true", id="check"))
    make_repository(project, {"a.txt": "1"})
    approve_all(project)
    git(project, "worktree", "add", "-q", str(tmp_path / "other"))
    assert stop(project, cwd=str(tmp_path / "other")) is None
    git(project, "worktree", "remove", "--force", str(tmp_path / "other"))
    assert stop(project, cwd=str(project)) is None


def test_approvals_that_are_removed_block(repository: Path) -> None:
    shutil.rmtree(os.path.join(state_folder(), "trust"))
    assert stop(repository)["reason"] == blocked("it is not approved")["reason"]
    empty_the_settings(repository)
    assert stop(repository)["reason"] == blocked("it is no longer configured")["reason"]


def test_what_is_undone_no_longer_blocks(repository: Path) -> None:
    text = (repository / ".turngate/settings.json").read_text()
    empty_the_settings(repository)
    assert stop(repository)["decision"] == "block"
    write(repository, {".turngate/settings.json": text})
    assert stop(repository) is None


@pytest.mark.parametrize("move", [empty_the_settings, replace_the_command, change_the_script])
def test_an_approval_of_the_change_counts_at_once(repository: Path, move: Callable[[Path], None]) -> None:
    move(repository)
    assert stop(repository)["decision"] == "block"
    assert turngate("hooks", "approve", "--all", "--yes", "--project", str(repository))[0] == 0
    assert stop(repository) is None


def test_a_gate_that_a_person_rejects_no_longer_blocks(repository: Path) -> None:
    replace_the_command(repository)
    assert turngate("hooks", "reject", "check", "--project", str(repository))[0] == 0
    assert stop(repository) is None


def test_at_the_limit_the_user_reads_that_a_gate_was_changed(repository: Path) -> None:
    change_the_script(repository)
    assert [stop(repository)["decision"] for _ in range(3)] == ["block"] * 3
    reason = blocked(MOVES[change_the_script])["reason"]
    ended = 'Turn ended after 3 continuations (the limit). Still blocked by: "check".'
    accept = f"to accept it: turngate gates accept {recorded('claude', 'Stop')['session_id']} --why …"
    assert stop(repository) == {"systemMessage": f"{ended}\nthe last reason: {reason}\n{accept}"}


def test_a_gate_that_was_pending_at_the_start_is_not_enforced(repository: Path) -> None:
    set_hooks(repository, command("sh hooks/check.sh", id="check"), command("exit 2", id="new"))
    for _ in range(2):
        answer = stop(repository)
        assert (answer.get("decision"), '"new" was skipped and NOT enforced' in answer["systemMessage"]) == (
            None,
            True,
        )


def test_a_gate_that_is_approved_in_the_session_is_kept_from_then_on(repository: Path) -> None:
    set_hooks(repository, command("sh hooks/check.sh", id="check"), command("true", id="new"))
    approve_all(repository)
    assert stop(repository) is None
    set_hooks(repository, command("sh hooks/check.sh", id="check"))
    assert stop(repository) == blocked(GONE, "new")


def test_a_session_that_is_resumed_records_its_gates_anew(repository: Path) -> None:
    change_the_script(repository)
    start = {**recorded("codex", "SessionStart"), "cwd": str(repository), "source": "resume"}
    session = {**start, "session_id": recorded("codex", "Stop")["session_id"]}
    assert turngate("hook", stdin=json.dumps(session)) == (0, "", "")
    assert stop(repository).keys() == {"systemMessage"}


def test_another_session_is_not_held_to_the_gates_of_the_first(repository: Path) -> None:
    empty_the_settings(repository)
    assert stop(repository, session_id="another").keys() == {"systemMessage"}


def test_a_damaged_record_counts_as_none(repository: Path) -> None:
    for path in Path(state_folder(), "gates").rglob("*.json"):
        path.write_text("[")
    assert stop(repository) is None


# Projects inside of the project of the session


@pytest.fixture
def monorepo(project: Path) -> Path:
    """A project without settings, with one inside whose gate is approved and fails, and whose session has started."""
    (project / ".git").mkdir()
    inner = project / "packages/a"
    inner.mkdir(parents=True)
    (inner / "old.py").touch()
    set_hooks(inner, command("echo inner >&2; exit 2", id="inner"))
    approve_all(inner)
    start(project)
    return project


def test_the_gates_of_a_project_inside_count_for_the_files_below_it(monorepo: Path) -> None:
    assert stop(monorepo, cwd=str(monorepo)) is None
    (monorepo / "readme.md").touch()
    assert stop(monorepo, cwd=str(monorepo)) is None
    (monorepo / "packages/a/new.py").touch()
    assert stop(monorepo, cwd=str(monorepo)) == {"decision": "block", "reason": "inner"}


def test_a_file_that_is_removed_in_a_project_inside_counts_too(monorepo: Path) -> None:
    (monorepo / "packages/a/old.py").unlink()
    assert stop(monorepo, cwd=str(monorepo)) == {"decision": "block", "reason": "inner"}


def test_a_gate_of_a_project_inside_that_has_blocked_is_asked_again_although_the_work_is_undone(
    monorepo: Path,
) -> None:
    new = monorepo / "packages/a/new.py"
    new.touch()
    assert stop(monorepo, cwd=str(monorepo)) == {"decision": "block", "reason": "inner"}
    new.unlink()
    assert stop(monorepo, "2", cwd=str(monorepo)) == {"decision": "block", "reason": "inner"}


def test_a_script_of_a_project_inside_that_is_changed_blocks(monorepo: Path) -> None:
    inner = monorepo / "packages/a"
    set_hooks(inner, command("sh hooks/check.sh", id="inner"))
    write(inner, {"hooks/check.sh": CHECK})
    approve_all(inner)
    assert stop(monorepo, cwd=str(monorepo)) is None
    change_the_script(inner)
    assert stop(monorepo, cwd=str(monorepo)) == blocked(MOVES[change_the_script], "inner")


def test_the_settings_of_a_project_inside_that_are_emptied_block(monorepo: Path) -> None:
    empty_the_settings(monorepo / "packages/a")
    assert stop(monorepo, cwd=str(monorepo)) == blocked(GONE, "inner")


def test_a_project_inside_that_is_moved_blocks(monorepo: Path) -> None:
    (monorepo / "packages/a").rename(monorepo / "packages/b")
    why = f"the project folder {monorepo}/packages/a is gone"
    assert stop(monorepo, cwd=str(monorepo)) == blocked(why, "inner")


# Other checkouts of the repository


@pytest.fixture
def checkouts(project: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A repository whose session has started in its main checkout, and another checkout that was made later."""
    for event in ("Stop", "SubagentStop"):
        name = {"Stop": "check", "SubagentStop": "of-subagent"}[event]
        rule = stop_settings(command("sh hooks/check.sh", id=name))["hooks"]["Stop"]
        path = project / ".turngate/settings.json"
        hooks = json.loads(path.read_text())["hooks"] if path.exists() else {}
        write(project, {".turngate/settings.json": json.dumps({"hooks": {**hooks, event: rule}})})
    make_repository(project, {"hooks/check.sh": CHECK})
    approve_all(project)
    start(project)
    git(project, "worktree", "add", "-q", str(tmp_path / "other"))
    return project, tmp_path / "other"


def test_a_stop_in_another_checkout_is_checked_there(checkouts: tuple[Path, Path]) -> None:
    main, other = checkouts
    write(other, {"fail": ""})
    assert (stop(main, cwd=str(other / "hooks")), stop(main, cwd=str(main))) == (BLOCK, None)


def test_a_stop_in_another_checkout_is_checked_in_that_of_the_session_too(
    checkouts: tuple[Path, Path],
) -> None:
    main, other = checkouts
    assert stop(main, cwd=str(other)) is None
    write(main, {"fail": ""})
    assert stop(main, cwd=str(other)) == BLOCK


def test_a_gate_that_has_blocked_in_the_checkout_of_the_session_is_asked_there_again(
    checkouts: tuple[Path, Path],
) -> None:
    main, other = checkouts
    asked = main.parent / "asked"
    set_hooks(main, command(f"pwd >> {asked}; sh hooks/check.sh", id="check"))
    commit(main)
    approve_all(main)
    git(other, "merge", "-q", "--ff-only", git(main, "rev-parse", "HEAD").strip())
    start(main)
    write(main, {"fail": ""})
    assert stop(main, cwd=str(main)) == BLOCK
    (main / "fail").unlink()
    assert stop(main, "2", cwd=str(other)) is None
    assert asked.read_text().split() == [str(main), str(other), str(main)]


def test_a_subagent_is_checked_in_its_own_checkout_alone(checkouts: tuple[Path, Path]) -> None:
    main, other = checkouts
    subagent = {"hook_event_name": "SubagentStop", "agent_id": "a", "agent_type": "x"}
    write(main, {"fail": ""})
    assert (stop(main, cwd=str(other), **subagent), stop(main, cwd=str(main), **subagent)) == (None, BLOCK)


def test_a_gate_that_is_changed_in_another_checkout_blocks(checkouts: tuple[Path, Path]) -> None:
    main, other = checkouts
    change_the_script(other)
    assert stop(main, cwd=str(other)) == blocked(MOVES[change_the_script])


RECIPE = "test:\n\t@echo no; exit 1\n"
NO_RECIPE = "test:\n\t@true\n"
CHANGES: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "the check": (
        {"type": "gate", "gate": "tests", "id": "check"},
        {"Makefile": NO_RECIPE},
        "The check `tests` itself was changed in this session:",
    ),
    "a file that is not to be touched": (
        {"type": "gate", "gate": "untouched", "options": {"globs": ["kept/**"]}, "id": "check"},
        {"kept/a": "other"},
        "protected files have changed:",
    ),
}


@pytest.mark.parametrize("place", ["another checkout", "a project inside"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_committed_since_the_start_counts_in(
    change: str, place: str, project: Path, tmp_path: Path
) -> None:
    hook, files, reason = CHANGES[change]
    inner = project / "packages/a" if place == "a project inside" else project
    inner.mkdir(parents=True, exist_ok=True)
    set_hooks(inner, hook)
    write(inner, {"Makefile": RECIPE, "kept/a": "one"})
    make_repository(project, {"readme": ""})
    approve_all(inner)
    start(project)
    folder = project
    if place == "another checkout":
        inner = folder = tmp_path / "other"
        git(project, "worktree", "add", "-q", str(folder))
    write(inner, files)
    git(folder, "commit", "-qam", "other", date=LATER)
    answer = stop(project, cwd=str(folder))
    assert (answer["decision"], answer["reason"].splitlines()[0]) == ("block", reason)


def test_what_another_checkout_has_of_an_older_branch_is_no_change(project: Path, tmp_path: Path) -> None:
    set_hooks(project, CHANGES["a file that is not to be touched"][0])
    make_repository(project, {"kept/a": "one"})
    git(project, "branch", "old")
    write(project, {"kept/a": "two"})
    git(project, "commit", "-qam", "two")
    approve_all(project)
    write(project, {"kept/a": "of the user"})
    start(project)
    other = tmp_path / "other"
    git(project, "worktree", "add", "-q", str(other), "old")
    write(other, {"new": ""})
    assert stop(project, cwd=str(other)) is None


def test_failures_from_before_the_session_do_not_count_in_another_checkout_either(
    project: Path, tmp_path: Path
) -> None:
    set_hooks(project, {"type": "gate", "gate": "tests", "id": "check", "options": {"baseline": True}})
    make_repository(project, {"Makefile": RECIPE})
    approve_all(project)
    start(project)
    git(project, "worktree", "add", "-q", str(tmp_path / "other"))
    write(tmp_path / "other", {"new": ""})
    assert "decision" not in stop(project, cwd=str(tmp_path / "other"))


def test_what_is_there_from_before_the_session_is_not_checked_from_a_checkout_inside(
    checkouts: tuple[Path, Path],
) -> None:
    main, _ = checkouts
    write(main, {"fail": "", ".gitignore": "ignored"})
    start(main)
    inside = main / ".claude/worktrees/x"
    git(main, "worktree", "add", "-q", str(inside), "-b", "x")
    write(main, {"ignored/report": "new"})
    assert stop(main, cwd=str(inside)) is None
    write(main, {"new": ""})
    assert stop(main, cwd=str(inside)) == BLOCK


# Other branches


def test_a_branch_from_before_a_gate_is_held_to_it_as_it_was_approved(project: Path) -> None:
    write(project, {"hooks/check.sh": CHECK})
    set_hooks(project)
    make_repository(project, {"readme": ""})
    git(project, "branch", "old")
    set_hooks(project, command("sh hooks/check.sh", id="check"))
    git(project, "commit", "-qam", "gate")
    approve_all(project)
    start(project)
    git(project, "checkout", "-q", "old")
    assert stop(project, cwd=str(project)) is None
    write(project, {"fail": ""})
    assert stop(project, cwd=str(project)) == BLOCK
    empty_the_settings(project)
    assert stop(project, cwd=str(project))["reason"] == blocked(GONE)["reason"]


def test_a_branch_may_have_a_definition_that_was_approved_before(project: Path) -> None:
    write(project, {"hooks/check.sh": CHECK})
    set_hooks(project, command("sh hooks/check.sh one", id="check"))
    make_repository(project, {"readme": ""})
    approve_all(project)
    git(project, "branch", "old")
    set_hooks(project, command("sh hooks/check.sh two", id="check"))
    git(project, "commit", "-qam", "two")
    approve_all(project)
    start(project)
    answers = []
    for branch in ("old", "main", "old"):
        git(project, "checkout", "-q", branch)
        answers.append(stop(project, cwd=str(project)))
    approve_all(project)
    answers.append(stop(project, cwd=str(project)))
    git(project, "checkout", "-q", "main")
    answers.append(stop(project, cwd=str(project)))
    assert answers == [None] * 5
    set_hooks(project, command("sh hooks/check.sh one", id="check"))  # which is not that of the commit
    assert stop(project, cwd=str(project)) is None  # it was approved last
    set_hooks(project, command("sh hooks/check.sh three", id="check"))
    assert stop(project, cwd=str(project)) == blocked(REDEFINED)


def test_an_earlier_definition_that_is_not_committed_blocks(repository: Path) -> None:
    set_hooks(repository, command("sh hooks/check.sh two", id="check"))
    approve_all(repository)
    assert stop(repository) is None
    set_hooks(repository, command("sh hooks/check.sh", id="check"))
    assert stop(repository)["reason"] == blocked("it is no longer configured")["reason"]


def test_a_gate_that_a_person_forgets_is_forgotten_with_its_earlier_definitions(project: Path) -> None:
    for name in ("one", "two"):
        set_hooks(project, command(f"true {name}", id="check"))
        approve_all(project)
    empty_the_settings(project)
    assert turngate("hooks", "approve", "--all", "--yes", "--project", str(project))[0] == 0
    set_hooks(project, command("true one", id="check"))
    assert "it is not approved" in stop(project, cwd=str(project))["systemMessage"]


# The settings of the user


@pytest.mark.parametrize(
    "change",
    [
        {"turngate": {"mode": {"Stop": "observe"}}},
        {"turngate": {"stopBudget": 0.001}},
        {"turngate": {"defaults": {"command": 0.001}}},
        {"env": {"PATH": "/nowhere"}},
    ],
    ids=str,
)
def test_what_the_settings_of_the_user_say_at_the_start_counts_for_the_session(
    repository: Path, change: dict[str, Any]
) -> None:
    write(repository, {"fail": ""})
    write(Path.home(), {".turngate/settings.json": json.dumps(change)})
    assert stop(repository) == BLOCK


def test_the_addresses_that_a_project_allows_are_part_of_an_approval(project: Path) -> None:
    set_hooks(project, {"type": "http", "url": "http://127.0.0.1:1/x", "id": "check"})
    approve_all(project)
    assert "NOT enforced" in stop(project, cwd=str(project))["systemMessage"]
    write(project, {".turngate/settings.local.json": '{"allowedHttpHookUrls": []}'})
    why = "`allowedHttpHookUrls` of the settings was changed after it was approved"
    assert stop(project, cwd=str(project)) == blocked(why)
