"""`turngate replay`: gates are asked again about an earlier stop, with the files of then."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.recordings import recorded
from tests.support.builders import script, write_settings
from tests.support.cli import turngate
from tests.support.git_projects import commit, git, make_repository, removed, runs_git, write
from turngate.gates.recorded_trees import REFS

CHECKS = {
    "notes": "grep -q done notes.txt",
    "tool": "find . -name 'tool.*' -perm -100 | grep -q .",
    "link": 'test "$(readlink link)" = notes.txt',
    "names": 'ls | grep -qx "a.b"',
    "few": 'test "$(git ls-files --others --exclude-standard | wc -l)" -lt 4',
    "script": "sh check.sh",
}
SETTINGS = {
    "hooks": {
        "Stop": [
            {
                "hooks": [
                    *(
                        {
                            "type": "gate",
                            "id": name,
                            "command": text,
                            "options": {"allFailures": name != "few"},
                        }
                        for name, text in CHECKS.items()
                    ),
                    {"type": "gate", "id": "kept", "gate": "untouched", "options": {"globs": ["kept/**"]}},
                    {"type": "gate", "id": "clean", "gate": "clean"},
                    {
                        "type": "command",
                        "id": "plain",
                        "command": "test ! -e bad || { echo bad >&2; exit 2; }",
                    },
                ]
            }
        ]
    }
}
Step = Callable[[Path], object]


def files(**contents: str) -> Step:
    return lambda project: write(project, contents)


def links(name: str, target: str) -> Step:
    def link(project: Path) -> None:
        (project / name).unlink(missing_ok=True)
        (project / name).symlink_to(target)

    return link


# What the agent does before each stop.
STEPS: tuple[Step, ...] = (
    files(bad="x"),
    files(**{"notes.txt": "done"}),
    removed("bad"),
    lambda project: script(project / "tool.sh", "exit 0", 0o644),
    lambda project: (project / "tool.sh").chmod(0o755),
    links("link", ".gitignore"),
    links("link", "notes.txt"),
    files(**{"a b": "1"}),
    files(**{'c"d': "2", "new\nline": "3"}),
    files(**{"kept/a": "changed"}),
    runs_git("checkout", "kept/a"),
    files(**{"log.ignored": "an ignored file", "sub/x.ignored": "x"}),
    files(**{"check.sh": "exit 1"}),
    runs_git("checkout", "check.sh"),
    commit,
    removed("notes.txt"),
    files(**{"notes.txt": "not yet"}),
    lambda project: (project / "check.sh").chmod(0o755),
    runs_git("checkout", "."),
    files(**{"kept/b": "new", "\udcff".encode("utf-8", "surrogateescape").decode("utf-8", "replace"): ""}),
)


@pytest.fixture
def project(project: Path, home: Path) -> Path:
    start = {".gitignore": "*.ignored\n", "kept/a": "a", "check.sh": "exit 0", "log.ignored": "no"}
    make_repository(project, start)
    write_settings(project, "turngate", SETTINGS)
    commit(project)
    write_settings(home, "turngate", {"turngate": {"recordTrees": True}})
    return project


def tell(project: Path, event: str, **fields: Any) -> Any:
    given = {**recorded("codex", "Stop"), "hook_event_name": event, "cwd": str(project)}
    given |= {"session_id": "s1", "transcript_path": None, **fields}
    code, out, err = turngate("hook", "--host", "codex", stdin=json.dumps(given))
    assert (code, err) == (0, "")
    return json.loads(out) if out else None


def replay(*words: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = turngate("replay", *words, "--json")
    return code, json.loads(out)


def trees(project: Path) -> list[str]:
    return git(project, "for-each-ref", "--format=%(refname)", REFS).split()


def test_each_of_twenty_stops_gets_the_answers_of_then(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    assert turngate("hooks", "approve", "--all", "--yes", "--project", str(project))[0] == 0
    tell(project, "SessionStart", source="startup")
    then = []
    for number, step in enumerate(STEPS):
        step(project)
        answer = tell(project, "Stop", turn_id=str(number))
        then.append("block" if answer and answer.get("decision") == "block" else "pass")
    status, index = git(project, "status", "--porcelain"), (project / ".git" / "index").read_bytes()
    found, answers = [], []
    for number in range(1, len(STEPS) + 1):
        code, out = replay("s1", str(number))
        differ = [gate for gate in out["gates"] if not gate["is_same"]]
        found.append((code, differ, out["left_out"], sorted(gate["gate"] for gate in out["gates"])))
        answers.append({gate["gate"]: gate["now"] for gate in out["gates"]})
    assert found == [(0, [], [], sorted([*CHECKS, "kept", "clean", "plain"]))] * 20
    blocking = [sorted(name for name, now in each.items() if now == "block") for each in answers]
    assert ["block" if names else "pass" for names in blocking] == then
    assert {name for names in blocking for name in names} == {*CHECKS, "kept", "clean", "plain"}
    where = {
        name: [n for n, names in enumerate(blocking, 1) if name in names]
        for name in ("plain", "tool", "link")
    }
    assert where == {"plain": [1, 2], "tool": [1, 2, 3, 4], "link": [1, 2, 3, 4, 5, 6]}
    # A script that is not what was approved is not run.
    assert [n for n, names in enumerate(blocking, 1) if "script" in names] == [13]
    assert (git(project, "status", "--porcelain"), (project / ".git" / "index").read_bytes()) == (
        status,
        index,
    )
    assert trees(project) == sorted(f"{REFS}/s1/{number}" for number in range(21))
    assert "ignored\n" not in git(project, "ls-tree", "-r", "--name-only", f"{REFS}/s1/12")


@pytest.fixture
def stopped(project: Path) -> Path:
    """Two stops: the first is blocked, the second passes where nothing else is asked."""
    gate = {"type": "gate", "id": "notes", "command": CHECKS["notes"]}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [gate]}]}})
    tell(project, "Stop", turn_id="1")
    write(project, {"notes.txt": "done"})
    tell(project, "Stop", turn_id="2")
    return project


def test_the_stops_are_listed_and_a_difference_is_named(stopped: Path) -> None:
    listed = turngate("replay", "s1")[1].splitlines()
    assert [(line.split()[0], line.split(maxsplit=3)[3]) for line in listed] == [
        ("1", "notes blocked"),
        ("2", "notes passed"),
    ]
    gate = {"type": "gate", "id": "notes", "command": "test -e other"}
    write_settings(stopped, "turngate", {"hooks": {"Stop": [{"hooks": [gate]}]}})
    assert turngate("replay", "s1", "1")[0] == 0
    code, out, _ = turngate("replay", "s", "2", "notes")
    assert (code, out.splitlines()[1:]) == (
        1,
        [
            "notes  passed         blocked  differs",
            "  `test -e other`: exit code 1",
            "1 gate of 1 answers differently than then",
        ],
    )


def test_a_gate_that_is_not_approved_is_not_run(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    code, out = replay("s1", "2")
    assert (code, [(gate["then"], gate["now"], gate["reason"]) for gate in out["gates"]]) == (
        13,
        [("allow", "skipped", "it is not approved")],
    )


def test_files_that_are_gone_are_one_sentence(stopped: Path) -> None:
    git(stopped, "update-ref", "-d", f"{REFS}/s1/1")
    gone = "the files of stop 1 of session s1 cannot be checked out: they are no longer in the repository, which keeps them for 30 days\n"
    assert turngate("replay", "s1", "1") == (13, "", gone)
    unknown = "turngate: the files of stop 3 of session s1 were not recorded; there are 1, 2\n"
    assert turngate("replay", "s1", "3") == (64, "", unknown)
    other = stopped.with_name("other")
    stopped.rename(other)
    moved = f"there is no folder {stopped}; --project names another checkout of its repository\n"
    assert turngate("replay", "s1", "2") == (
        13,
        "",
        f"the files of stop 2 of session s1 cannot be checked out: {moved}",
    )
    assert turngate("replay", "s1", "2", "--project", str(other))[0] == 0


def test_nothing_is_recorded_unless_the_user_wants_it(project: Path, home: Path) -> None:
    shutil.rmtree(home / ".turngate")
    asked = {**SETTINGS, "turngate": {"recordTrees": True}}  # by the project
    write_settings(project, "turngate", asked)
    assert "has no effect in a project" in turngate("check", "--project", str(project))[1]
    answer = tell(project, "Stop", turn_id="1")
    assert answer["decision"] == "block"
    assert trees(project) == []
    none = 'no stop of session s1 has its files recorded; `"recordTrees": true` in your own settings records the files of each stop\n'
    assert turngate("replay", "s1") == (0, none, "")


def test_a_stop_that_passes_from_the_cache_is_recorded_too(stopped: Path) -> None:
    tell(stopped, "Stop", turn_id="3")
    os.utime(stopped / "notes.txt", (1, 1))
    tell(stopped, "Stop", turn_id="4")
    assert trees(stopped) == [f"{REFS}/s1/{number}" for number in (1, 2, 3, 4)]
    assert turngate("replay", "s1", "4")[0] == 0


def test_a_failure_to_record_neither_blocks_nor_hides_the_answer(stopped: Path) -> None:
    shutil.rmtree(stopped / ".git")
    tell(stopped, "Stop", turn_id="3")
    out = turngate("log", "s1", "--json")[1].splitlines()
    notices = [record["text"] for line in out if (record := json.loads(line))["kind"] == "notice"]
    assert notices == ["the files are not recorded: the project is not in a git repository"]
    assert json.loads(out[-1])["verdict"] == "stop"


def test_the_built_in_agent_records_its_stops(project: Path, home: Path) -> None:
    write(project.parent, {"model.json": json.dumps({"main": ["Done."]})})
    write_settings(
        project,
        "turngate",
        {"hooks": {"Stop": [{"hooks": [{"type": "gate", "id": "notes", "command": "true"}]}]}},
    )
    words = ("run", "-p", "go", "--project", str(project), "--model", f"scripted:{project.parent}/model.json")
    assert turngate(*words, "--session", "own")[0] == 0
    assert f"{REFS}/own/1" in trees(project)
    code, out = replay("own", "1")
    assert (code, [(gate["gate"], gate["is_same"]) for gate in out["gates"]]) == (0, [("notes", True)])


def test_a_transcript_is_that_of_the_stop_and_its_paths_lead_into_the_copy(
    project: Path, tmp_path: Path
) -> None:
    def record(kind: str, *blocks: dict[str, Any]) -> str:
        return (
            json.dumps({"type": kind, "message": {"id": str(blocks), "role": kind, "content": [*blocks]}})
            + "\n"
        )

    gate = {"type": "gate", "id": "evidence", "gate": "evidence"}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [gate]}]}})
    path = tmp_path / "t.jsonl"
    edit = {"type": "tool_use", "id": "1", "name": "Edit", "input": {"file_path": f"{project}/a.py"}}
    done = {"type": "tool_result", "tool_use_id": "1", "content": "ok"}
    said = {"type": "text", "text": "All tests pass."}
    path.write_text(
        record("user", {"type": "text", "text": "go"})
        + record("assistant", edit)
        + record("user", done)
        + record("assistant", said)
    )
    write(project, {"a.py": "1"})
    fields = {"transcript_path": str(path), "last_assistant_message": "All tests pass."}
    given = {"hook_event_name": "Stop", "session_id": "c1", "cwd": str(project), **fields}
    assert "a.py" in turngate("hook", "--host", "claude", stdin=json.dumps(given))[1]
    with path.open("a") as file:  # later
        run = {"type": "tool_use", "id": "2", "name": "Bash", "input": {"command": "pytest -q"}}
        file.write(
            record("assistant", run) + record("user", {**done, "tool_use_id": "2", "content": "1 passed"})
        )
    code, out = replay("c1", "1")
    assert (code, [(gate["now"], gate["reason"].split(",")[0]) for gate in out["gates"]]) == (
        0,
        [("block", "You have edited a.py")],
    )


def test_a_repository_cannot_be_pushed_from_by_accident(stopped: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    git(stopped, "remote", "add", "origin", str(bare))
    git(stopped, "push", "-q", "--all", "origin")
    git(stopped, "push", "-q", "--tags", "origin")
    assert trees(bare) == []
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", f"file://{stopped}", str(clone))
    assert trees(clone) == []
