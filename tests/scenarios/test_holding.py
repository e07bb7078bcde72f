"""Moves by which an agent could end its gate, through `turngate hook`: docs/explanation/holding.md lists them all."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.recordings import recorded
from tests.hosts.test_input_fields import SHOWN_BY, environment
from tests.support.cli import turngate
from tests.support.git_projects import BEFORE, commit, git, make_repository, with_submodule
from tests.trust.support import approve_all, command, stop_settings, write
from tests.trust.test_session_record import GONE, REDEFINED, blocked, set_hooks
from turngate.state.paths import state_folder

FAILS = command("echo no >&2; exit 2", id="check")
BLOCK = {"decision": "block", "reason": "no"}
SESSION = recorded("codex", "Stop")["session_id"]


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")


@pytest.fixture
def repository(project: Path) -> Path:
    """A project whose gate is approved and fails, and whose session has started."""
    (project / ".git").mkdir()
    set_hooks(project, FAILS)
    return begin(project)


def begin(project: Path) -> Path:
    """Approve the gates, and start the session."""
    approve_all(project)
    assert start(project, "startup") == (0, "", "")
    return project


def start(project: Path, source: str) -> tuple[int, str, str]:
    fields = {**recorded("codex", "SessionStart"), "cwd": str(project), "source": source}
    return turngate("hook", stdin=json.dumps({**fields, "session_id": SESSION}))


def stop(project: Path, **fields: Any) -> Any:
    """Return the answer of one stop of Codex, which has no limit of its own."""
    given = {**recorded("codex", "Stop"), "cwd": str(project), "transcript_path": None, **fields}
    code, out, _ = turngate("hook", stdin=json.dumps(given))
    assert code == 0
    return json.loads(out) if out else None


# Settings


@pytest.mark.parametrize(
    "file", [".turngate/settings.json", ".turngate/settings.local.json", "~/.turngate/settings.json"]
)
@pytest.mark.parametrize("key", ["limit", "hardLimit"])
def test_a_limit_that_is_lowered_in_the_session_counts_only_in_the_next(
    repository: Path, file: str, key: str
) -> None:
    path = Path(os.path.join(repository, os.path.expanduser(file)))
    path.parent.mkdir(exist_ok=True)
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**settings, "turngate": {key: 0}}))
    ended = 'Turn ended after 0 continuations (the limit). Still blocked by: "check".\nthe last reason: no'
    ended += "\nto accept it: turngate gates accept next --why …"
    assert [stop(repository), stop(repository, session_id="next")] == [BLOCK, {"systemMessage": ended}]


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_a_link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def make_it_huge(path: Path) -> None:
    path.write_text(" " * (5 * 1024 * 1024) + path.read_text())


def make_it_a_list(path: Path) -> None:
    path.write_text("[]")


def leave_out_the_command(path: Path) -> None:
    path.write_text(json.dumps(stop_settings({"type": "command", "id": "check"})))


@pytest.mark.parametrize(
    "move",
    [make_a_folder, make_a_pipe, make_a_link_to_nothing, make_it_huge, make_it_a_list, leave_out_the_command],
)
def test_settings_that_can_no_longer_be_read_block(repository: Path, move: Callable[[Path], None]) -> None:
    move(repository / ".turngate/settings.json")
    assert stop(repository)["reason"] == blocked(".turngate/settings.json cannot be read")["reason"]


@pytest.mark.parametrize(
    ("further", "what"),
    [
        ({"env": {"PATH": "/nowhere"}}, "the `env` of the settings was"),
        ({"turngate": {"defaults": {"command": 0.001}}}, "`defaults` of the settings was"),
        ({"turngate": {"stopBudget": 0.001}}, "`stopBudget` of the settings was"),
        ({"turngate": {"payload": "strict"}}, "`payload` of the settings was"),
        ({"turngate": {"env": "clean"}}, "`passEnv` of the settings was"),
    ],
)
def test_settings_that_change_how_a_gate_runs_block(
    repository: Path, further: dict[str, Any], what: str
) -> None:
    set_hooks(repository, FAILS, **further)
    assert stop(repository) == blocked(f"{what} changed after it was approved")


@pytest.mark.parametrize("change", [{"timeout": 0.001}, {"async": True}, {"if": "Bash(never)"}], ids=str)
def test_an_option_that_weakens_a_gate_blocks(repository: Path, change: dict[str, Any]) -> None:
    set_hooks(repository, {**FAILS, **change})
    assert stop(repository)["reason"] == blocked(REDEFINED)["reason"]


def test_an_entry_with_the_same_id_in_the_local_settings_replaces_nothing(repository: Path) -> None:
    weaker = stop_settings(command("true", id="check"))
    write(repository, {".turngate/settings.local.json": json.dumps(weaker)})
    answer = stop(repository)
    assert (answer["decision"], answer["reason"]) == ("block", "no")
    assert '"check" was skipped and NOT enforced: it is not approved' in answer["systemMessage"]


def test_a_new_hook_that_would_end_the_turn_does_not_run(repository: Path) -> None:
    halts = command("""echo '{"continue": false}'""", id="halts")
    set_hooks(repository, FAILS, halts)
    answer = stop(repository)
    assert (answer["decision"], answer["reason"]) == ("block", "no")
    assert '"halts" was skipped and NOT enforced: it is not approved' in answer["systemMessage"]


def test_a_gate_of_the_user_that_is_removed_blocks(project: Path) -> None:
    write(Path.home(), {".turngate/settings.json": json.dumps(stop_settings({**FAILS, "id": "mine"}))})
    assert stop(project) == BLOCK
    write(Path.home(), {".turngate/settings.json": "{}"})
    assert stop(project) == blocked("it is no longer configured", "mine")


@pytest.mark.parametrize("folder", ["..", "/no/such"])
def test_an_agent_that_works_in_another_folder_has_the_gates_of_its_start(
    repository: Path, folder: str
) -> None:
    assert stop(repository, cwd=os.path.normpath(repository / folder)) == BLOCK


def test_an_agent_whose_conversation_is_compacted_has_the_gates_of_its_start(repository: Path) -> None:
    write(repository, {".turngate/settings.json": "{}"})
    assert start(repository, "compact") == (0, "", "")
    assert stop(repository) == blocked(GONE)


# Scripts


def remove_the_script(path: Path) -> None:
    path.unlink()


def make_it_not_executable(path: Path) -> None:
    path.chmod(0o644)


@pytest.mark.parametrize(
    ("move", "why"),
    [
        (remove_the_script, GONE),
        (make_it_not_executable, ".turngate/stop cannot be read"),
        (make_a_folder, ".turngate/stop cannot be read"),
    ],
)
def test_a_script_hook_that_can_no_longer_run_blocks(
    project: Path, move: Callable[[Path], None], why: str
) -> None:
    write(project, {".turngate/stop": "#!/bin/sh\necho no >&2; exit 2\n"})
    begin(project)
    move(project / ".turngate/stop")
    assert stop(project)["reason"] == blocked(why, ".turngate/stop")["reason"]


# A gate that cannot answer

BROKEN = {
    "its script is no longer executable": ("hooks/check.sh", "exit code 126: "),
    "its program was removed": ("no-such-program", "exit code 127: "),
    "its process was killed": ("kill -9 $$", "it was killed by signal 9"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_gate_that_an_agent_breaks_is_reported_and_a_strict_one_blocks(project: Path, name: str) -> None:
    text, why = BROKEN[name]
    write(project, {"hooks/check.sh": "#!/bin/sh\nexit 1\n"})
    gate = {"type": "gate", "command": text}
    set_hooks(project, {**gate, "id": "lenient"}, {**gate, "id": "strict", "strict": True})
    begin(project)
    (project / "hooks/check.sh").chmod(0o644)
    answer = stop(project)
    assert answer["decision"] == "block"
    assert answer["reason"].startswith(f'gate "command" could not run: {why}')
    assert answer["systemMessage"].startswith(f'hook "lenient" failed and was NOT enforced: {why}')


# Events that the agent gives


def content(folder: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.parametrize("event", ["SessionStart", "Stop"])
@pytest.mark.parametrize("host", SHOWN_BY)
def test_a_command_of_the_agent_gives_no_event_of_its_session(
    repository: Path, monkeypatch: pytest.MonkeyPatch, host: str, event: str
) -> None:
    name = "AfterAgent" if (host, event) == ("gemini", "Stop") else event
    given = {**recorded(host, name), "cwd": str(repository)}
    for variable, value in environment(host, "command", given["session_id"]).items():
        monkeypatch.setenv(variable, value)
    before = content(state_folder())
    why = f"a command of the agent has given this event of its own session ({SHOWN_BY[host]} is set)"
    refused = f"turngate {{}}: {why}; only the agent program does that, so nothing was checked or counted\n"
    assert turngate("hook", stdin=json.dumps(given)) == (64, "", refused.format("hook"))
    assert turngate("gate", "clean", stdin=json.dumps(given)) == (64, "", refused.format("gate"))
    own = json.dumps({"session_id": given["session_id"]})
    if host != "gemini":  # the variable does not say which session
        fired = turngate("fire", event, "--input", own, "--project", str(repository))
        assert fired == (64, "", refused.format("fire"))
    assert content(state_folder()) == before


def test_the_agent_of_turngate_gives_no_event(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_IN_TOOL", "1")
    given = {**recorded("codex", "Stop"), "cwd": str(repository)}
    code, out, err = turngate("hook", stdin=json.dumps(given))
    assert (code, out, "(TURNGATE_IN_TOOL is set)" in err) == (64, "", True)


def test_a_hook_of_each_host_is_answered(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {}
    for host in SHOWN_BY:
        given = {**recorded(host, "AfterAgent" if host == "gemini" else "Stop"), "cwd": str(repository)}
        with monkeypatch.context() as variables:
            for variable, value in environment(host, "hook", given["session_id"]).items():
                variables.setenv(variable, str(repository) if variable.endswith("PROJECT_DIR") else value)
            code, out, _ = turngate("hook", stdin=json.dumps(given))
        reasons[host] = code, json.loads(out)["reason"].splitlines()[-1]
    assert reasons == dict.fromkeys(SHOWN_BY, (0, "no"))


# What is not held


def test_an_agent_that_removes_the_state_folder_stops_and_the_user_reads_that_the_gate_is_not_approved(
    repository: Path,
) -> None:
    shutil.rmtree(state_folder())
    answer = stop(repository)
    assert (answer.keys(), "NOT enforced: it is not approved" in answer["systemMessage"]) == (
        {"systemMessage"},
        True,
    )


def test_an_agent_that_adds_a_halting_hook_to_the_settings_of_the_user_ends_its_turn(
    repository: Path,
) -> None:
    halts = command("""echo '{"continue": false, "stopReason": "enough"}'""", id="halts")
    write(Path.home(), {".turngate/settings.json": json.dumps(stop_settings(halts))})
    assert stop(repository) == {"continue": False, "stopReason": "enough"}


# Commits, branches and checkouts

TESTS = {"type": "gate", "id": "tests", "gate": "tests"}
SOURCES = {
    "pyproject.toml": "[tool.pytest.ini_options]\n",
    "calc.py": "def add(a, b):\n    return a + b\n",
    "test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}
BROKEN_SOURCE = {"calc.py": "def add(a, b):\n    return a - b\n"}


@pytest.fixture
def tested(project: Path) -> Path:
    """A repository whose gate `tests` is approved and passes, and whose session has started."""
    set_hooks(project, TESTS)
    make_repository(project, SOURCES, date=BEFORE)
    return begin(project)


def names_the_test(answer: Any) -> bool:
    return bool(answer) and answer["decision"] == "block" and "test_calc.py::test_add" in answer["reason"]


def test_broken_work_that_is_committed_with_an_old_date_blocks(tested: Path) -> None:
    write(tested, BROKEN_SOURCE)
    commit(tested, date=BEFORE)
    assert names_the_test(stop(tested))


def test_a_merge_of_an_older_branch_that_breaks_the_tests_blocks(tested: Path) -> None:
    git(tested, "checkout", "-q", "-b", "older")
    write(tested, BROKEN_SOURCE)
    commit(tested, date=BEFORE)
    git(tested, "checkout", "-q", "-")
    assert stop(tested) is None
    git(tested, "merge", "-q", "--no-edit", "older", date=BEFORE)
    write(tested, {"README.md": "An edit of a document beside the merge.\n"})
    assert names_the_test(stop(tested))


def test_work_that_failed_and_was_left_on_another_branch_is_reported(tested: Path) -> None:
    write(tested, BROKEN_SOURCE)
    assert names_the_test(stop(tested))
    git(tested, "stash", "-q")
    why = "nothing to check: the check failed at the last stop, and since then all changes of the session were undone"
    assert stop(tested) == {"systemMessage": f'gate "tests": {why}'}


def test_a_gate_of_the_user_is_asked_in_the_checkout_of_the_session_and_in_another(
    project: Path, tmp_path: Path
) -> None:
    make_repository(project, {"calc.py": "1\n"}, date=BEFORE)
    home = Path(os.path.expanduser("~"))
    gate = {"type": "gate", "id": "none", "command": "test ! -e broken"}
    write(home, {".turngate/settings.json": json.dumps(stop_settings(gate))})
    begin(project)
    other = tmp_path / "other"
    git(project, "worktree", "add", "-q", str(other))
    write(project, {"calc.py": "2\n"})
    assert stop(other) is None
    write(project, {"broken": ""})
    assert stop(other)["decision"] == "block"


def test_fewer_tests_in_another_checkout_are_reported(tested: Path, tmp_path: Path) -> None:
    write(tested, {"test_more.py": "def test_more():\n    pass\n"})
    assert stop(tested) is None
    other = tmp_path / "other"
    git(tested, "worktree", "add", "-q", str(other))
    write(other, {"calc.py": SOURCES["calc.py"] + "\n"})
    answer = stop(other)
    assert answer == {"systemMessage": 'gate "tests": 1 test passed, and 2 at the last pass'}


@pytest.mark.parametrize("place", [".git/info/exclude", ".git/ignored", "~/.config/git/ignore"])
def test_a_new_test_that_the_agent_lets_git_ignore_is_a_change(tested: Path, place: str) -> None:
    path = tested / os.path.expanduser(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("test_new.py\n")
    if path.name == "ignored":
        git(tested, "config", "core.excludesFile", str(path))
    write(tested, {"test_new.py": "def test_new():\n    assert 0\n"})
    answer = stop(tested)
    assert (answer["decision"], "test_new.py::test_new" in answer["reason"]) == ("block", True)


def exclude(project: Path) -> None:
    write(project, {"test_new.py": FAILING_TEST})
    with (project / ".git/info/exclude").open("a") as file:
        file.write("test_new.py\n")


def exclude_in_the_configuration_of_the_checkout(project: Path) -> None:
    write(project, {"test_new.py": FAILING_TEST, ".git/ignored": "test_new.py\n"})
    git(project, "config", "extensions.worktreeConfig", "true")
    git(project, "config", "--worktree", "core.excludesFile", str(project / ".git/ignored"))


def make_a_repository_inside(project: Path) -> None:
    write(project, {"part/test_new.py": FAILING_TEST})
    git(project, "init", "-q", "part")


def add_to_a_repository_inside(project: Path) -> None:
    write(project, {"inner/test_new.py": FAILING_TEST})


def add_to_a_submodule(project: Path) -> None:
    write(project, {"lib/test_new.py": FAILING_TEST})


def edit_what_a_link_leads_to(project: Path) -> None:
    write(project.parent / "shared", {"test_new.py": FAILING_TEST})


FAILING_TEST = "def test_new():\n    assert 0\n"
BESIDE_DOCUMENTS = (
    exclude,
    exclude_in_the_configuration_of_the_checkout,
    make_a_repository_inside,
    add_to_a_repository_inside,
    add_to_a_submodule,
    edit_what_a_link_leads_to,
)


@pytest.mark.parametrize("move", BESIDE_DOCUMENTS)
def test_an_edit_of_a_document_does_not_hide_a_change_of_code(
    project: Path, move: Callable[[Path], None]
) -> None:
    set_hooks(project, TESTS)
    write(project.parent / "shared", {"ok.txt": ""})
    if move is edit_what_a_link_leads_to:
        (project / "shared").symlink_to("../shared")
        command_of_tests = {**TESTS, "command": "pytest -q . shared/"}
        set_hooks(project, command_of_tests)
    make_repository(project, SOURCES)
    if move is add_to_a_submodule:
        with_submodule(project)
    if move is add_to_a_repository_inside:
        (project / "inner").mkdir()
        make_repository(project / "inner", {"a.py": ""})
    begin(project)
    write(project, {"README.md": "An edit of a document.\n"})
    if move is not edit_what_a_link_leads_to:
        assert stop(project) is None
    move(project)
    write(project, {"README.md": "Another edit of a document.\n"})
    answer = stop(project)
    assert (answer["decision"], "test_new.py::test_new" in answer["reason"]) == ("block", True)


def test_a_file_that_git_ignores_and_one_of_a_repository_inside_count_for_a_project_inside(
    project: Path,
) -> None:
    inner = project / "packages/a"
    write(inner, {"a.py": ""})
    make_repository(project, {"a.py": ""})
    (inner / "lib").mkdir()
    make_repository(inner / "lib", {"m.py": "1"})
    set_hooks(inner, FAILS)
    approve_all(inner)
    begin(project)
    assert stop(project) is None
    write(inner, {"lib/m.py": "2"})
    assert stop(project) == BLOCK
    write(inner, {"lib/m.py": "1", "new.py": "", "../../.git/info/exclude": "new.py\n"})
    assert stop(project, turn_id="2") == BLOCK


def test_a_named_pipe_in_git_delays_no_stop(tested: Path) -> None:
    write(tested, {"calc.py": SOURCES["calc.py"] + "\n"})
    assert stop(tested) is None
    os.mkfifo(tested / ".git/MERGE_HEAD")
    write(tested, BROKEN_SOURCE)
    assert stop(tested)["decision"] == "block"


@pytest.mark.parametrize(
    "line", ["grep -q x a.txt", "env A=1 timeout 9 grep -q x a.txt", "sh -c 'grep -q x a.txt'"]
)
@pytest.mark.parametrize("program", ["grep", "pytest"])
def test_a_new_program_of_the_project_takes_the_place_of_none_of_the_system(
    project: Path, monkeypatch: pytest.MonkeyPatch, line: str, program: str
) -> None:
    write(project, {".venv/bin/python3x": "", ".gitignore": ".venv\n", "a.txt": "y"})
    monkeypatch.setenv("PATH", str(project / ".venv/bin"), prepend=":")
    line = line.replace("grep", program)
    set_hooks(project, {"type": "gate", "id": "check", "command": line})
    make_repository(project, {"a.txt": "y"})
    begin(project)
    write(project, {"a.txt": "z", f".venv/bin/{program}": "#!/bin/sh\nexit 0\n"})
    (project / f".venv/bin/{program}").chmod(0o755)
    answer = stop(project)
    if program == "pytest":  # the agent may install it
        assert "was added" not in str(answer)
    else:
        assert ".venv/bin/grep was added after it was approved" in answer["reason"]


def test_scripts_of_turngate_run_no_program_of_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = ("git", "sed", "awk", "xargs", "tr")
    write(project, {f".venv/bin/{name}": "#!/bin/sh\nexit 0\n" for name in programs})
    for name in programs:
        (project / ".venv/bin" / name).chmod(0o755)
    set_hooks(project, {"type": "gate", "id": "clean", "gate": "clean"})
    make_repository(project, {"a.txt": "y", ".gitignore": ".venv\n"})
    monkeypatch.setenv("PATH", str(project / ".venv/bin"), prepend=":")
    begin(project)
    write(project, {"a.txt": "z"})
    assert stop(project)["reason"].startswith("these changes are not committed:\n- modified: a.txt")


def test_a_temporary_file_beside_the_settings_changes_no_gate(repository: Path) -> None:
    write(repository, {".turngate/settings.json.tmp.4711.1": "{}"})
    assert stop(repository) == BLOCK


@pytest.mark.parametrize(
    ("words", "does"),
    [(("log", "--wrong", "x"), "marks blocks"), (("sessions", "prune"), "removes sessions")],
)
def test_an_agent_neither_marks_blocks_nor_removes_sessions(
    project: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], does: str
) -> None:
    monkeypatch.setenv("TURNGATE_IN_TOOL", "1")
    code, out, err = turngate(*words)
    assert (code, out, f"a person {does}, in a terminal of their own" in err) == (64, "", True)
