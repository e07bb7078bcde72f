"""`turngate doctor --prove`: each gate in a copy of its project, and the project as it was."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, script, stop_hooks, write_settings
from tests.support.paths import ROOT
from turngate.cli.main import main
from turngate.core.constants import TEAM_EVENTS
from turngate.core.hooks.kinds import CallbackHook
from turngate.doctor.diagnosis import HookDiagnosis, HookFacts
from turngate.doctor.proof.proof import why_unprovable

SH = "#!/bin/sh\n"
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
SEEDS = ROOT / "tests" / "data" / "seeds"
UNKNOWN = "Turngate does not know what it checks; it knows tests, linters, compilers, checklists in Markdown, searches in the conversation, and the state of git"


@pytest.fixture(autouse=True)
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the copies are made."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the pytest of a gate starts faster
    return folder


def prove(project: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Return the exit code and the proofs. The project must stay as it is, and no copy of it."""
    before = content(project)
    code = main(["doctor", "--prove", "--project", str(project)])
    lines = capsys.readouterr().out.splitlines()
    assert content(project) == before
    assert os.listdir(os.environ["TMPDIR"]) == []
    start = lines.index("Proofs, each in a copy of the project")
    return code, lines[start + 1 : -1]


def content(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Return the mode and the content of every file."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        data: bytes | str = str(path.readlink()) if path.is_symlink() else ""
        found[str(path.relative_to(folder))] = (
            info.st_mode,
            path.read_bytes() if path.is_file() and not path.is_symlink() else data,
        )
    return found


def gate(project: Path, command: str, **fields: Any) -> None:
    write_settings(project, "turngate", stop_hooks(command, id="gate", **fields))


def make_repository(project: Path) -> None:
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *words], cwd=project, check=True)


def proof(result: str, text: str, *hints: str) -> list[str]:
    return [f'  {result:<13}  Stop[0].hooks[0] "gate": {text}', *(f"    → {hint}" for hint in hints)]


OBSERVE = 'a hook that only reports is not a gate: write "mode": "observe"'


# Tests


def test_a_gate_that_runs_pytest_blocks_a_failing_test(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "test_a.py").write_text("def test_a(): pass\n")
    gate(project, f"{PYTEST} >&2 || exit 2")
    assert prove(project, capsys) == (0, proof("proved", "blocks a failing test"))


def test_a_gate_whose_failure_does_not_block_is_not_proved(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "test_a.py").write_text("def test_a(): pass\n")
    script(project / "check.sh", f"{SH}{PYTEST} >/dev/null 2>&1 || exit $?\n")
    gate(project, "./check.sh")
    assert prove(project, capsys) == (
        13,
        proof(
            "NOT PROVED",
            "it failed with a failing test planted at tests/test_turngate_planted.py, and a failure does not block: exit code 1, nothing on stderr",
            "to block, a hook exits with code 2 and prints the reason on stderr",
        ),
    )


def test_a_gate_that_hides_the_result_is_not_proved(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "test_a.py").write_text("def test_a(): pass\n")
    script(project / "check.sh", f"{SH}{PYTEST} | tail -3 >&2 || exit 2\n")
    gate(project, "./check.sh")
    code, lines = prove(project, capsys)
    assert (code, lines) == (
        13,
        proof(
            "NOT PROVED", "it allowed a stop with a failing test planted at test_turngate_planted.py", OBSERVE
        ),
    )


def test_tests_that_a_makefile_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "test_a.py").write_text("def test_a(): pass\n")
    (project / "Makefile").write_text(f"test:\n\t{PYTEST}\n")
    gate(project, "make test >&2 || exit 2")
    assert prove(project, capsys) == (0, proof("proved", "blocks a failing test"))


def test_the_tests_of_unittest(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "test_a.py").write_text(
        "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"
    )
    gate(project, f"{sys.executable} -m unittest -q || exit 2")
    assert prove(project, capsys) == (0, proof("proved", "blocks a failing test"))


def test_a_selection_of_tests_may_leave_the_planted_one_out(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate(project, f"{PYTEST} -k fast >&2 || exit 2")
    assert prove(project, capsys) == (0, proof("cannot prove", "its pytest runs only some tests (-k)"))


needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")


@needs_npm
@pytest.mark.parametrize(
    ("seed", "code", "expected"),
    [
        ("003_exit_2.sh", 0, proof("proved", "blocks a failing test")),
        (
            "003_loop_prevention.sh",
            13,
            proof(
                "NOT PROVED",
                "it failed with a failing test planted at test/turngate-planted.test.js, and a failure does not block: its decision was not read, because there is text before its JSON: print only the JSON on stdout, and everything else on stderr",
            ),
        ),
    ],
)
def test_the_gates_of_the_seeds_that_run_npm(
    seed: str, code: int, expected: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "package.json").write_text('{"scripts": {"test": "node --test"}}')
    (project / "test").mkdir()
    (project / "test" / "a.test.js").write_text("")
    shutil.copy(SEEDS / seed, project / "check.sh")
    gate(project, "bash check.sh")
    assert prove(project, capsys) == (code, expected)


# Git


def test_a_gate_that_asks_git_blocks_a_dirty_tree(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "README.md").write_text("hello\n")
    shutil.copy(SEEDS / "000_commit_reminder.sh", project / "check.sh")
    gate(project, "bash check.sh")
    make_repository(project)
    assert prove(project, capsys) == (0, proof("proved", "blocks a dirty tree"))


def test_what_is_dirty_already_is_committed_in_the_copy(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SEEDS / "000_commit_reminder.sh", project / "check.sh")
    gate(project, "bash check.sh")
    make_repository(project)
    (project / "new.txt").write_text("mine\n")
    assert prove(project, capsys) == (
        0,
        proof("proved", "blocks a dirty tree (after the copy was cleaned up)"),
    )


def test_a_gate_that_runs_tests_only_in_a_dirty_tree(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "test_a.py").write_text("def test_a(): pass\n")
    script(project / "check.sh", f'{SH}[ -z "$(git status --porcelain)" ] || {PYTEST} >&2 || exit 2\n')
    gate(project, "./check.sh")
    make_repository(project)
    assert prove(project, capsys) == (0, proof("proved", "blocks a failing test; allows a dirty tree"))


def test_a_project_that_is_a_part_of_a_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = tmp_path / "repository" / "app"
    project.mkdir(parents=True)
    shutil.copy(SEEDS / "000_commit_reminder.sh", project / "check.sh")
    gate(project, "bash check.sh")
    make_repository(project.parent)
    (project.parent / "new.txt").write_text("mine\n")
    before = content(project.parent)
    assert prove(project, capsys)[1] == proof("proved", "blocks a dirty tree (after the copy was cleaned up)")
    assert content(project.parent) == before


def test_variables_do_not_lead_git_back_to_the_repository(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SEEDS / "000_commit_reminder.sh", project / "check.sh")
    gate(project, "bash check.sh")
    make_repository(project)
    (project / "new.txt").write_text("mine\n")
    monkeypatch.setenv("GIT_DIR", str(project / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(project / ".git" / "index"))
    assert prove(project, capsys)[1] == proof("proved", "blocks a dirty tree (after the copy was cleaned up)")


def test_the_worktree_of_another_repository_is_not_touched(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SEEDS / "000_commit_reminder.sh", project / "check.sh")
    gate(project, "bash check.sh")
    make_repository(project)
    worktree = tmp_path / "worktree"
    subprocess.run(["git", "worktree", "add", "-q", str(worktree)], cwd=project, check=True)
    (worktree / "new.txt").write_text("mine\n")
    before = content(project)
    assert prove(worktree, capsys)[1] == proof(
        "proved", "blocks a dirty tree (after the copy was cleaned up)"
    )
    assert content(project) == before


# Linters, checklists and conversations


def test_a_gate_that_runs_a_linter_blocks_a_syntax_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "a.py").write_text("A = 1\n")
    gate(project, f"{sys.executable} -m compileall -q . >&2 || exit 2")
    assert prove(project, capsys) == (0, proof("proved", "blocks a syntax error"))


@pytest.mark.parametrize(
    ("text", "end"), [("- [x] one\n", ""), ("- [ ] one\n", " (after the copy was cleaned up)")]
)
def test_a_gate_that_reads_a_checklist_blocks_an_open_item(
    text: str, end: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "TODO.md").write_text(text)
    check = 'grep -n -e "- \\[ \\]" "$TURNGATE_PROJECT_DIR"/TODO.md >&2 && exit 2\nexit 0\n'
    script(project / "check.sh", f"{SH}{check}")
    gate(project, "./check.sh")
    assert prove(project, capsys) == (0, proof("proved", f"blocks an open checklist item{end}"))


@pytest.mark.parametrize(
    ("seed", "blocks"),
    [
        ("000_stop.sh", "a session without a test run"),
        ("000_test_verification.sh", "a session without a test run"),
        ("000_subagent_check.sh", "a session without a tool call"),
        ("003_checklist.py.txt", "an open checklist item"),
    ],
)
def test_the_gates_of_the_seeds_that_read_the_conversation(
    seed: str, blocks: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SEEDS / seed, project / "check")
    gate(project, f"{'python3' if seed.endswith('.py.txt') else 'bash'} check")
    assert prove(project, capsys) == (0, proof("proved", f"blocks {blocks}"))


def test_a_gate_for_subagents_is_given_one_that_it_is_meant_for(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SEEDS / "000_subagent_check.sh", project / "check")
    group = {"matcher": "Explore", "hooks": [{"type": "command", "command": "bash check", "id": "gate"}]}
    write_settings(project, "turngate", {"hooks": {"SubagentStop": [group]}})
    assert prove(project, capsys) == (
        0,
        ['  proved         SubagentStop[0].hooks[0] "gate": blocks a session without a tool call'],
    )


@pytest.mark.parametrize("event", TEAM_EVENTS)
def test_a_gate_of_a_team_is_proved_at_its_event(
    event: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SEEDS / "000_subagent_check.sh", project / "check")
    group = {"hooks": [{"type": "command", "command": "bash check", "id": "gate"}]}
    write_settings(project, "turngate", {"hooks": {event: [group]}})
    code, [line, *_] = prove(project, capsys)
    assert (code, line) == (
        0,
        f'  proved         {event}[0].hooks[0] "gate": blocks a session without a tool call',
    )


def test_a_gate_of_an_agent_type_is_given_such_a_subagent(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SEEDS / "000_subagent_check.sh", project / "check")
    agent = project / ".turngate" / "agents" / "reviewer.md"
    agent.parent.mkdir(parents=True)
    hook = "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: bash check\n          id: gate\n"
    agent.write_text(f"---\nname: reviewer\ndescription: reviews\n{hook}---\nReview.\n")
    assert prove(project, capsys) == (0, proof("proved", "blocks a session without a tool call"))


def test_what_init_wrote_is_proved(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    (project / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\n[tool.ruff]\nfix = true\n[tool.mypy]\n"
    )
    (project / "prices.py").write_text("TOTAL = 4\n")
    (project / "test_prices.py").write_text("def test_total() -> None:\n    assert 2 + 2 == 4\n")
    assert main(["init", "--yes", "--project", str(project)]) == 0
    capsys.readouterr()
    assert prove(project, capsys) == (
        0,
        [
            '  proved         Stop[0].hooks[0] "tests": blocks a failing test',
            '  proved         Stop[0].hooks[1] "lint": blocks a syntax error',
            '  proved         Stop[0].hooks[2] "types": blocks a syntax error',
        ],
    )


# What cannot be proved


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("true", UNKNOWN),
        ("bash 000_exit_2.sh", UNKNOWN),
        (
            "git status >/dev/null; exit 7",
            "it does not work in a copy of the project: exit code 7, nothing on stderr",
        ),
    ],
)
def test_a_gate_that_cannot_be_proved(
    command: str, why: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SEEDS / "000_exit_2.sh", project)
    make_repository(project)
    gate(project, command)
    assert prove(project, capsys)[1] == proof("cannot prove", why)


def test_a_gate_that_is_red_without_a_planted_failure_is_not_proved(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / "a.txt").touch()
    make_repository(project)
    gate(project, "git status >/dev/null; echo never >&2; exit 2")
    why = "it blocks even without a planted failure: never"
    hint = "`turngate gates run` shows whether it is red in the project itself, and not only in a copy"
    assert prove(project, capsys) == (13, proof("NOT PROVED", why, hint))


def test_a_project_without_a_repository(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SEEDS / "000_commit_reminder.sh", project / "check.sh")
    gate(project, "bash check.sh")
    why = "it asks git, and there is no repository in the copy"
    assert prove(project, capsys)[1] == proof("cannot prove", why)


def test_what_the_copy_lacks_is_named_when_a_gate_does_not_work_in_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(project / "pipe")
    gate(project, f"{PYTEST} --version >/dev/null; test -p pipe")
    text = "exit code 1, nothing on stderr (of the copy: left out: pipe (it is not a regular file))"
    assert prove(project, capsys)[1] == proof(
        "cannot prove", f"it does not work in a copy of the project: {text}"
    )


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        ({"type": "prompt", "prompt": "Is it done?"}, "it asks a model"),
        ({"type": "http", "url": "https://example.com/"}, "it asks a server"),
        (
            {"type": "command", "command": "true", "mode": "observe"},
            "it is not a gate: its block is only recorded, or ignored",
        ),
        (
            {"type": "command", "command": "./gone"},
            "./gone does not exist, so the hook fails at every run",
        ),
    ],
)
def test_a_hook_that_is_not_run_for_a_proof(
    hook: dict[str, Any], why: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [{**hook, "id": "gate"}]}]}})
    assert prove(project, capsys)[1] == proof("cannot prove", why)


def test_a_kind_of_which_no_failure_is_known_is_not_run_for_a_proof() -> None:
    facts = HookFacts(rule(CallbackHook(print)), "Stop:1", "approved", "")
    why = "no failure is known that callback hooks have to block"
    assert why_unprovable(HookDiagnosis(facts, is_gate=True, findings=())) == why


def test_an_unapproved_gate_never_runs(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    gate(project, f"touch {tmp_path}/ran; {PYTEST} || exit 2")
    assert prove(project, capsys) == (13, proof("cannot prove", "it is not approved"))
    assert not (tmp_path / "ran").exists()


def test_a_script_with_the_path_of_the_project_is_not_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script(project / "check.sh", f"{SH}cd {project} && rm -rf src && git status\n")
    (project / "src").mkdir()
    gate(project, "./check.sh")
    why = "check.sh names the folder of the project, so it would run there and not in the copy"
    assert prove(project, capsys)[1] == proof("cannot prove", why)


# Hostile hooks and projects


def test_a_command_with_the_path_of_the_project_runs_in_the_copy(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_repository_with_readme(project)
    gate(project, f'cd {project} && rm -rf src && [ -z "$(git status --porcelain .)" ] || exit 2')
    prove(project, capsys)
    assert (project / "src" / "a.py").exists()


def make_repository_with_readme(project: Path) -> None:
    (project / "src").mkdir()
    (project / "src" / "a.py").write_text("A = 1\n")
    make_repository(project)


def test_a_hook_that_removes_everything_reaches_only_the_copy(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_repository_with_readme(project)
    gate(project, 'git status >/dev/null; rm -rf "$TURNGATE_PROJECT_DIR"/* .git; exit 0')
    assert prove(project, capsys) == (
        13,
        proof(
            "NOT PROVED",
            "it allowed a stop with a dirty tree planted at src/a.py and turngate-planted.txt",
            OBSERVE,
        ),
    )


def test_a_hook_that_hangs_ends_at_its_timeout(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate(project, f"{PYTEST} --version; sleep 600", timeout=0.5)
    assert prove(project, capsys)[1] == proof(
        "cannot prove", "it does not work in a copy of the project: timed out after 0.5 s"
    )


def test_pipes_and_links_of_a_project_do_no_harm(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "TODO.md").write_text("- [x] mine\n")
    os.mkfifo(project / "pipe")
    (project / "TODO.md").symlink_to(outside / "TODO.md")
    (project / "loop").symlink_to("loop")
    script(project / "check.sh", f"{SH}grep -e '- \\[ \\]' TODO.md >&2 && exit 2\nexit 0\n")
    gate(project, "./check.sh")
    assert prove(project, capsys) == (0, proof("proved", "blocks an open checklist item"))
    assert (outside / "TODO.md").read_text() == "- [x] mine\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every folder")
def test_a_folder_that_cannot_be_read_is_left_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "TODO.md").write_text("- [x] one\n")
    (project / "secret").mkdir(0)
    check = "grep -e '- \\[ \\]' TODO.md >&2 && exit 2"
    gate(project, f"{check}; exit 0")
    assert prove(project, capsys) == (0, proof("proved", "blocks an open checklist item"))
    gate(project, f"{check}; exit 7")
    text = "exit code 7, nothing on stderr (of the copy: left out: secret (permission denied))"
    assert prove(project, capsys)[1] == proof(
        "cannot prove", f"it does not work in a copy of the project: {text}"
    )


def test_nothing_is_planted_in_a_dependency_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = project / "node_modules" / "shop" / "plan.md"
    plan.parent.mkdir(parents=True)
    plan.write_text("- [x] theirs\n")
    gate(project, "grep -e '- \\[ \\]' node_modules/shop/plan.md >&2 && exit 2; exit 0")
    [line] = prove(project, capsys)[1]
    assert (
        re.sub(r"'/.*/node", "'…/node", line)
        == proof(
            "cannot prove",
            "a failure cannot be planted: [Errno 18] it is a link that leads out of the copy: '…/node_modules/shop/plan.md'",
        )[0]
    )


def test_a_project_that_is_too_large_is_not_copied(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open(project / "big.bin", "wb") as file:
        file.truncate(2 * 1024**3)
    gate(project, f"{PYTEST} >&2 || exit 2")
    code = main(["doctor", "--prove", "--project", str(project), "--json"])
    [hook] = json.loads(capsys.readouterr().out)["hooks"]
    assert (code, hook["proof"]) == (
        0,
        {
            "result": "cannot prove",
            "text": "the project is too large to be copied: it has more than 1,024 MiB, most of them in big.bin",
            "hint": None,
        },
    )
    assert os.listdir(os.environ["TMPDIR"]) == []


def test_nothing_of_a_proof_is_recorded(
    project: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "test_a.py").write_text("def test_a(): pass\n")
    gate(project, f"{PYTEST} >&2 || exit 2")
    prove(project, capsys)
    assert not (state / "sessions").exists()


def test_an_exempt_gate_is_proved_with_the_scripts_that_it_runs(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SEEDS / "000_stop.sh", project / "check")
    extra = tmp_path / "extra.json"
    extra.write_text(json.dumps(stop_hooks("bash check", id="gate")))
    code = main(["doctor", "--prove", "--project", str(project), "--settings", str(extra)])
    assert (code, capsys.readouterr().out.splitlines()[-2:]) == (
        0,
        [*proof("proved", "blocks a session without a test run"), "1 hook, it will run, 1 proved"],
    )


def test_what_the_script_of_a_gate_includes_is_part_of_what_it_checks(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script(project / "hooks" / "lib.sh", f"{PYTEST} >&2 || exit 2\n")
    script(project / "hooks" / "check.sh", f"{SH}. hooks/lib.sh\n")
    script(project / "hooks" / "other.sh", "ruff check\n")
    (project / "test_a.py").write_text("def test_a(): pass\n")
    gate(project, "sh hooks/check.sh")
    assert prove(project, capsys) == (0, proof("proved", "blocks a failing test"))


# Interrupts


PROGRESS = re.compile(r"^waiting for .*\n", re.MULTILINE)


def test_a_gate_that_takes_long_is_named_meanwhile(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate(project, f"{PYTEST} --version; sleep 2.5", timeout=60)
    main(["doctor", "--prove", "--project", str(project)])
    assert capsys.readouterr().err == 'waiting for hook "gate" (at most 60 s) …\n'


def start_prove(project: Path, marker: Path) -> "subprocess.Popen[str]":
    """Start a proof, and wait until its gate runs."""
    gate(project, f"{PYTEST} --version; touch {marker}; sleep 600")
    process = subprocess.Popen(
        [sys.executable, "-m", "turngate", "doctor", "--prove", "--project", str(project)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not marker.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_removes_the_copy(
    number: signal.Signals, project: Path, tmp_path: Path, temp: Path
) -> None:
    process = start_prove(project, tmp_path / "runs")
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, PROGRESS.sub("", err)) == (
        128 + number,
        f"turngate: ended by {number.name}; the copy of the project is removed\n",
    )
    assert os.listdir(temp) == []


def test_what_a_killed_proof_leaves_is_removed_by_the_next(
    project: Path, tmp_path: Path, temp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start_prove(project, tmp_path / "runs")
    process.kill()
    process.communicate(timeout=120)
    assert [re.sub("copy-.*", "copy-…", name) for name in os.listdir(temp)] == ["turngate-copy-…"]
    gate(project, f"{PYTEST} --version", timeout=60)
    prove(project, capsys)
