"""`turngate hooks test` as a person uses it: real processes, in a copy of the project and in place."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, write_settings
from tests.support.cli import turngate
from tests.support.sessions import wait_for_file
from tests.support.timeouts import HANG_TIMEOUT_S

pytestmark = pytest.mark.req("S3-51", "X-35")
SECONDS = re.compile(r"\d+\.\d\d s")
COPY = re.compile(r"/[^\s\"]*/turngate-copy-[^/\s\"]+")


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints name the project only where they are read elsewhere."""
    monkeypatch.chdir(project)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that belongs to this test alone."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def run_test(project: Path, *words: str) -> tuple[int, str, str]:
    code, out, err = turngate("hooks", "test", *words, "--project", str(project))
    return code, COPY.sub("COPY", SECONDS.sub("0.00 s", out)), err


def configure(project: Path, *hooks: Any, event: str = "Stop", **group: Any) -> None:
    entries = [{"type": "command", **hook} for hook in hooks]
    write_settings(project, "turngate", {"hooks": {event: [{"hooks": entries, **group}]}})


def say(answer: Any) -> str:
    return f"echo '{json.dumps(answer)}'"


def test_each_answer_is_explained(project: Path) -> None:
    block = {"decision": "block", "reason": "Update the changelog.", "note": 1}
    configure(
        project,
        {"id": "tests", "command": "echo '3 failed' >&2; exit 2"},
        {"command": f"{say(block)}; echo debug >&2"},
        {"id": "lint", "command": "echo oops; exit 1"},
    )
    assert run_test(project, "stop") == (
        13,
        """\
Stop: blocked
  in a copy of the project, which is removed
tests  (.turngate/settings.json)
  blocked, 0.00 s: echo '3 failed' >&2; exit 2
  input      {"last_assistant_message": "Done."}
  exit code  2 → blocks
  stderr     3 failed → the reason of the block
  ⇒ the agent is sent back with this text:
    [Stop hook requested continuation]
    3 failed
Stop:2  (.turngate/settings.json)
  blocked, 0.00 s: echo '{"decision": "block", "reason": "Update the changelog.", "note": 1}'; echo debug >&2
  input      {"last_assistant_message": "Done."}
  exit code  0 → success: the answer is on stdout
  stdout     a JSON object with decision, reason, note → read as the answer
    note     1 → ignored: without it, the result is the same
  stderr     debug → ignored: the exit code is 0
  ⇒ the agent is sent back with this text:
    [Stop hook requested continuation]
    Update the changelog.
lint  (.turngate/settings.json)
  failed (not enforced), 0.00 s: echo oops; exit 1
  input      {"last_assistant_message": "Done."}
  exit code  1 → failed: a failure does not block, only 2 does
  stdout     oops → ignored: the exit code is 1, and an answer counts only with exit code 0
  ⇒ NOT enforced: the agent may stop
  → to block, a hook exits with code 2 and prints the reason on stderr
""",
        "",
    )


def test_one_hook_is_run_with_a_sample_that_its_matcher_matches(project: Path) -> None:
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
    configure(
        project,
        {"id": "guard", "command": say(answer)},
        {"id": "other", "command": "touch ran"},
        event="PreToolUse",
        matcher="Write|Edit",
    )
    written = {
        "tool_name": "Write",
        "tool_input": {"file_path": "COPY/project/example.txt", "content": "hello\n"},
        "tool_use_id": "toolu_sample",
    }
    code, out, err = run_test(project, "PreToolUse", "--hook", "guard")
    assert (code, out.splitlines()[2:], err) == (
        0,
        [
            "guard  (.turngate/settings.json)",
            f"  blocked, 0.00 s: {say(answer)}",
            f"  input      {json.dumps(written)}",
            "  exit code  0 → success: the answer is on stdout",
            "  stdout     a JSON object with hookSpecificOutput → read as the answer",
            "  ⇒ the tool call is denied, and the agent is sent:",
            "    denied by a hook",
        ],
        "",
    )


def test_the_hook_works_in_a_copy_which_is_removed(project: Path, temporary: Path) -> None:
    script(
        project / "gate.sh",
        f"#!/bin/sh\npwd > where; cp where {project.parent}/where; git status --short >&2; exit 2\n",
    )
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    configure(project, {"id": "gate", "command": f"{project}/gate.sh"})
    code, out, _ = run_test(project, "Stop")
    assert (code, COPY.sub("COPY", (project.parent / "where").read_text())) == (0, "COPY/project\n")
    assert "?? where" in out
    assert (sorted(os.listdir(project)), list(temporary.iterdir())) == ([".git", ".turngate", "gate.sh"], [])


def test_in_place_the_hook_works_in_the_project(project: Path, temporary: Path) -> None:
    configure(project, {"id": "gate", "command": "touch ran"})
    code, out, _ = run_test(project, "Stop", "--in-place")
    assert (code, out.splitlines()[1]) == (0, "  in the project itself")
    assert (sorted(os.listdir(project)), list(temporary.iterdir())) == ([".turngate", "ran"], [])


def test_a_script_that_names_the_project_is_named(project: Path) -> None:
    script(project / "gate.sh", f"#!/bin/sh\nls {project}\n")
    configure(project, {"command": "./gate.sh"})
    assert run_test(project, "Stop")[1].splitlines()[-1] == (
        "  → gate.sh names the folder of the project, so it may work there and not in the copy"
    )


def test_nothing_is_recorded(project: Path, state: Path) -> None:
    configure(project, {"command": "echo no >&2; exit 2"})
    run_test(project, "Stop")
    run_test(project, "Stop", "--in-place")
    assert not (state / "sessions").exists()


@pytest.mark.parametrize("words", [("--input", '{"tool_name": "Bash", "tool_input": {"command": "rm x"}}')])
def test_an_input_is_given_as_to_fire(project: Path, words: tuple[str, ...]) -> None:
    configure(project, {"command": "cat >&2; exit 2"}, event="PreToolUse")
    _, out, _ = run_test(project, "PreToolUse", *words, "--json")
    [hook] = json.loads(out)["hooks"]
    given = json.loads(hook["stderr"])
    assert (given["tool_name"], given["tool_input"]) == ("Bash", {"command": "rm x"})


def test_json_has_the_same_as_the_text(project: Path) -> None:
    configure(project, {"id": "gate", "command": "echo no >&2; exit 2"})
    code, out, _ = run_test(project, "Stop", "--json")
    shown = json.loads(out)
    [hook] = shown.pop("hooks")
    assert (code, shown) == (
        0,
        {
            "event": "Stop",
            "project": str(project),
            "in_copy": True,
            "notes": [],
            "verdict": "blocked",
            "not_loaded": False,
            "warnings": [],
        },
    )
    assert {name: hook[name] for name in ("key", "outcome", "exit_code", "fields", "effect")} == {
        "key": "gate",
        "outcome": "block",
        "exit_code": 2,
        "fields": [
            {"field": "exit code", "value": "2", "meaning": "blocks", "is_ignored": False},
            {"field": "stderr", "value": "no", "meaning": "the reason of the block", "is_ignored": False},
        ],
        "effect": {
            "text": "the agent is sent back with this text:",
            "detail": "[Stop hook requested continuation]\nno",
        },
    }


def test_a_pending_hook_runs_only_with_trust(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    configure(project, {"id": "gate", "command": "exit 0"})
    code, out, _ = run_test(project, "Stop")
    assert (code, out.splitlines()) == (
        13,
        [
            "Stop: allowed, 1 gate NOT enforced",
            "  in a copy of the project, which is removed",
            "gate  (.turngate/settings.json)",
            "  skipped, 0.00 s: exit 0",
            "  run        it did not run: it is not approved",
            "  ⇒ NOT enforced: the agent may stop",
            "  → --trust runs it for this test; `turngate hooks diff gate` shows it before you approve it",
        ],
    )
    code, out, _ = run_test(project, "Stop", "--trust")
    assert (code, out.splitlines()[0], out.splitlines()[-1]) == (0, "Stop: allowed", "  ⇒ the agent may stop")


def test_a_hook_that_is_gone_is_named_and_nothing_runs_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    configure(project, {"id": "old", "command": "true"}, {"id": "kept", "command": "true"})
    assert turngate("hooks", "approve", "--all", "--yes", "--project", str(project))[0] == 0
    configure(project, {"id": "kept", "command": "true"})
    code, out, _ = run_test(project, "Stop", "--hook", "old")
    assert (code, out.splitlines()[-3:]) == (
        13,
        [
            "  run        it did not run: it was approved, but is no longer configured",
            "  ⇒ NOT enforced: the agent may stop",
            "  → configure it again, or forget it with `turngate hooks reject old`",
        ],
    )


def test_a_hook_that_never_fires_is_seen(project: Path) -> None:
    configure(project, {"id": "gate", "command": "true"}, event="PreToolUse", matcher="bash")
    code, out, _ = run_test(project, "PreToolUse", "--input", '{"tool_name": "Bash"}')
    assert (code, out.splitlines()[3:6]) == (
        0,
        [
            "  skipped, 0.00 s: true",
            "  run        it did not run: its matcher 'bash' does not match 'Bash'",
            "  ⇒ the hook does not take part in this PreToolUse",
        ],
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("SessionEnd",),
            "turngate: there is no hook for SessionEnd to test; there are hooks for Stop\n",
        ),
        (("Stop", "--hook", "tets"), "turngate: there is no hook tets of Stop; there are: tests\n"),
        (("SubagentStop", "--hook", "tests"), "turngate: tests is a hook of Stop, not of SubagentStop\n"),
    ],
)
def test_a_hook_that_is_not_there_is_an_error(project: Path, words: tuple[str, ...], message: str) -> None:
    configure(project, {"id": "tests", "command": "true"})
    assert run_test(project, *words) == (64, "", message)


def test_a_project_that_is_too_large_is_an_error_with_a_way_out(project: Path) -> None:
    configure(project, {"id": "tests", "command": "true"})
    (project / "large").mkdir()
    with (project / "large" / "file").open("wb") as file:
        file.truncate(2 * 1024**3)
    what = "it has more than 1,024 MiB, most of them in large"
    way_out = "--in-place runs the hooks in the project itself"
    message = f"turngate: the project is too large to be copied: {what}; {way_out}\n"
    assert run_test(project, "Stop") == (64, "", message)


def test_an_interrupt_ends_the_hook_and_removes_the_copy(project: Path, temporary: Path) -> None:
    configure(project, {"command": f"echo 1 > {project.parent}/begun; sleep 3600"})
    words = [sys.executable, "-m", "turngate", "hooks", "test", "Stop", "--project", str(project)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        asyncio.run(wait_for_file(project.parent / "begun"))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    assert (process.returncode, out, err) == (130, "", "turngate: ended by SIGINT; no hook is left running\n")
    assert list(temporary.iterdir()) == []


def test_a_folder_of_a_repository_is_tested_in_a_copy_of_the_repository(project: Path) -> None:
    subprocess.run(["git", "init", "-q", str(project.parent)], check=True)
    script(
        project.parent / "scripts" / "gate.sh",
        "#!/bin/sh\ntouch ran ../ran\ngit status --short .. >&2; exit 2\n",
    )
    configure(project, {"id": "gate", "command": f"{project.parent}/scripts/gate.sh"})
    code, out, _ = run_test(project, "Stop")
    assert (code, "?? ../ran\n" in out, (project / "ran").exists(), (project.parent / "ran").exists()) == (
        0,
        True,
        False,
        False,
    )
