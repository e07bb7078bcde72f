"""`turngate worker --project URL`: a project in git travels to a worker and back as commits on a ref of its remote."""

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.commands.test_worker import TASK, gate, result_of, script, until, wait_for
from tests.support.cli import start_in_project, start_turngate, turngate
from tests.support.registry import a_run
from tests.support.servers.postgres import PostgresServer
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.commands.worker.clone import open_slots
from turngate.state.paths import state_folder
from turngate.subagents.git_files import git_label, is_git_url, send_files
from turngate.subagents.registry import Registry


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def bash(command: str) -> dict[str, object]:
    return {"tool": "Bash", "input": {"command": command}}


@pytest.fixture
def registry(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setenv("TURNGATE_REGISTRY", postgres.url())
    opened = Registry("")
    yield opened
    opened.close()


@pytest.fixture
def remote(project: Path) -> str:
    """Make the project a clone with a commit; return the URL of its remote."""
    bare = project.parent / "remote.git"
    git(project, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    git(project, "init", "--quiet", "--initial-branch=main")
    (project / ".gitignore").write_text("*.log\n")
    (project / "lines.txt").write_text("one\n")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "first")
    git(project, "remote", "add", "origin", f"file://{bare}")
    git(project, "push", "--quiet", "origin", "main")
    return f"file://{bare}"


def words_of(model: str, *words: str) -> tuple[str, ...]:
    given = ("run", "-p", "go", "--model", model, "--output-format", "json", "--subagents", "git")
    return (*given, "--allow", "Bash", *words)


def refs_of(remote: str) -> list[str]:
    listed = git(Path("/"), "ls-remote", remote, "refs/turngate/*")
    return [line.partition("\t")[2] for line in listed.splitlines()]


def fetched(project: Path, ref: str, name: str) -> list[str]:
    git(project, "fetch", "--quiet", "origin", ref)
    return git(project, "show", f"FETCH_HEAD:{name}").splitlines()


def test_a_subagent_works_on_the_files_of_the_session_and_its_changes_are_a_ref_of_the_remote(
    project: Path, remote: str, registry: Registry
) -> None:
    (project / "lines.txt").write_text("one\nnot committed\n")
    (project / "new.txt").write_text("untracked\n")
    (project / "debug.log").write_text("ignored\n")
    before = (git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD"))
    command = "{ cat lines.txt; ls; } >> new.txt; rm lines.txt"
    model = script(project, main=[TASK, "home"], sub=[bash(command), "counted"])
    with start_turngate("worker", "--model", model, "--project", remote) as process:
        until(process, "worker ready")
        code, out, _ = turngate(*words_of(model, "--project", str(project)))
        until(process, "ended ")
    [ref], [run] = refs_of(remote), registry.read("all")
    assert (code, json.loads(out)["result"], ref) == (0, "home", f"refs/turngate/{run.chain}")
    assert run.result.startswith("counted\n\n[The subagent worked on a copy of the project's files.")
    assert f"`git fetch origin {ref}`, then `git diff {run.launch['git']} FETCH_HEAD`" in run.result
    names = ["lines.txt", "new.txt"]
    assert fetched(project, ref, "new.txt") == ["untracked", "one", "not committed", *names]
    changed = git(project, "diff", "--name-status", str(run.launch["git"]), "FETCH_HEAD")
    assert changed.split() == ["D", "lines.txt", "M", "new.txt"]
    assert (git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD")) == before


def test_commits_of_a_subagent_arrive_and_the_next_one_starts_from_the_session_again(
    project: Path, remote: str, registry: Registry
) -> None:
    commit = "git switch -q -c mine && echo two >> lines.txt && git -c user.name=s -c user.email=s@s commit -qam second"
    shown = "{ git log --format=%s; git status --porcelain --branch; cat lines.txt; } > ../shown"
    tasks = [{**TASK, "input": {"prompt": name, "description": name}} for name in ("first", "second")]
    model = script(project, main=[*tasks, "home"])
    subs = {"first": [bash(commit), "done"], "second": [bash(shown), "done"]}
    Path(model.removeprefix("scripted:")).write_text(json.dumps({"main": [*tasks, "home"], "sub": subs}))
    with start_turngate("worker", "--model", model, "--project", remote) as process:
        until(process, "worker ready")
        turngate(*words_of(model, "--project", str(project)))
    [clones] = Path(state_folder()).glob("clones/shown")
    assert clones.read_text() == "first\n## HEAD (no branch)\none\n"
    [ref] = refs_of(remote)  # the second one has changed nothing
    assert fetched(project, ref, "lines.txt") == ["one", "two"]
    assert git(project, "log", "--format=%s", "FETCH_HEAD").splitlines()[1:] == ["second", "first"]
    assert [run.result.endswith("FETCH_HEAD`.]") for run in registry.read("all")] == [True, False]


def test_two_slots_have_files_of_their_own(project: Path, remote: str, registry: Registry) -> None:
    task = {"name": "Task", "input": {"prompt": "count", "description": "lines", "run_in_background": True}}
    meet = "echo mine >> lines.txt; touch ../$(basename $PWD).here; until [ $(ls ../*.here | wc -l) = 2 ]; do sleep 0.05; done"
    model = script(project, main=[{"tools": [task, task]}, "home"], sub=[bash(meet), "counted"])
    words = ("--slots", "2", "--model", model, "--project", remote)
    with start_turngate("worker", *words) as process:
        until(process, "worker ready: 2 slots")
        out = turngate(*words_of(model, "--project", str(project)))[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert len(json.loads(out)["subagents"]) == 2
    assert [fetched(project, ref, "lines.txt") for ref in refs_of(remote)] == [["one", "mine"]] * 2


def test_after_a_takeover_a_subagent_continues_from_its_last_end(
    project: Path, remote: str, registry: Registry, postgres: PostgresServer
) -> None:
    gate(project, "grep -q second lines.txt || { echo more >&2; exit 2; }")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "gate")
    git(project, "push", "--quiet", "origin", "main")
    wait = f"echo lost >> lines.txt; sleep {HANG_TIMEOUT_S}"
    sub = [bash("echo first >> lines.txt"), "one", bash(wait)]
    model = script(project, main=[TASK, "home"], sub=sub)
    words = ("worker", "--trust", "--model", model, "--project", remote)
    with start_turngate(*words) as first, start_in_project(project, *words_of(model, "--trust")) as session:
        until(first, "redirected")
        wait_for(registry, "replaced", "running")
        first.kill()
        script(project, sub=[bash("echo second >> lines.txt"), "three"])
        with postgres.leases_of_dead_processes_lapse(), start_turngate(*words):
            result = result_of(session)
    lost = "what it has done since its last end, or its start, may be lost"
    assert (result["result"], result["notices"]) == (
        "home",
        [f"subagent lines is continued by another worker, because its own died; {lost}"],
    )
    [ref] = refs_of(remote)
    assert fetched(project, ref, "lines.txt") == ["one", "first", "second"]


def test_a_worker_that_has_lost_a_subagent_cannot_replace_its_files(project: Path, remote: str) -> None:
    state = str(project.parent / "state")
    send_files(str(project), state, "r")
    late, heir = open_slots(remote, state, 2)
    run = a_run(owner="one")
    late.fetch(run)
    (Path(late.folder) / "lines.txt").write_text("late\n")
    taken = replace(run, owner="two", recoveries=1)
    heir.fetch(taken)
    assert "could not be sent, and are still in" in late.push(run)
    (Path(heir.folder) / "lines.txt").write_text("heir\n")
    assert heir.push(taken) == ""
    assert fetched(project, "refs/turngate/r", "lines.txt") == ["heir"]


def test_without_a_remote_the_subagent_stays_here_and_the_user_is_told(
    project: Path, registry: Registry
) -> None:
    git(project, "init", "--quiet")
    model = script(project, main=[TASK, "home"], sub=["counted"])
    out = turngate(*words_of(model, "--project", str(project)))[1]
    why = "subagents of the type general-purpose run here and not on workers: its git repository has no remote origin"
    result = json.loads(out)
    assert (result["result"], result["notices"]) == ("home", [why])


def test_a_worker_says_what_git_cannot_read(project: Path, registry: Registry) -> None:
    missing = f"file://{project.parent}/missing.git"
    code, out, err = turngate("worker", "--project", missing)
    assert (code, out) == (64, "")
    assert "git clone" in err
    assert "check that git can read the remote without a prompt" in err


@pytest.mark.parametrize(
    ("place", "is_git"),
    [
        ("git@host:app.git", True),
        ("me@host:app", True),
        ("https://host/app", True),
        ("ssh://git@host/app.git", True),
        ("ssh://me@build/srv/app", False),
        ("/srv/app", False),
        ("app", False),
    ],
)
def test_the_project_of_a_worker_is_a_repository_a_location_over_ssh_or_a_folder(
    place: str, *, is_git: bool
) -> None:
    assert is_git_url(place) is is_git


def test_a_label_names_a_repository_without_a_password() -> None:
    assert (
        git_label("https://me:secret@host/app.git")
        == git_label("https://host/app/")
        == "git:https://host/app"
    )
