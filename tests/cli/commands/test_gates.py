"""`turngate gates`: a project's gates in a plain shell, without an agent."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import start_in_project, turngate, turngate_with_progress
from tests.support.git_projects import commit, git, make_repository, write
from tests.support.terminal import Terminal, wait_for

SECONDS = re.compile(r" +\d+\.\d\d s")
NO_GATES = "no gates are configured; `turngate init` finds the checks of a project\n"
APPROVE = (
    "→ read what is not approved with `turngate hooks diff`, and approve it with `turngate hooks approve --all`; "
    "or add --trust, in CI of your own repository\n"
)

Gates = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints name the project only where they are read elsewhere."""
    monkeypatch.chdir(project)


@pytest.fixture
def gates(project: Path) -> Gates:
    """Run `turngate gates` in the project, and hide the times in what it prints."""

    def run(*words: str) -> tuple[int, str, str]:
        code, out, err = turngate("gates", *words, "--project", str(project))
        return code, SECONDS.sub(" 0.00 s", out), err

    return run


def write_hooks(project: Path, *hooks: dict[str, Any], event: str = "Stop") -> None:
    given = [{"type": "command", **hook} for hook in hooks]
    write_settings(project, "turngate", {"hooks": {event: [{"hooks": given}]}})


PASSES = {"id": "lint", "command": "true"}
FAILS = {"id": "tests", "command": "printf 'test_a failed\\ntest_b failed\\n' >&2; exit 2"}
BREAKS = {"id": "types", "command": "no-such-program"}


# Outcomes


@pytest.mark.req("S3-50")
def test_all_passed(project: Path, gates: Gates) -> None:
    write_hooks(project, PASSES)
    assert gates("run") == (0, 'passed 0.00 s  "lint"  (.turngate/settings.json)\n1 passed\n', "")


@pytest.mark.req("S3-50")
def test_one_failed(project: Path, gates: Gates) -> None:
    write_hooks(project, FAILS, PASSES, BREAKS)
    assert gates("run") == (
        1,
        """\
failed 0.00 s  "tests"  (.turngate/settings.json)
  test_a failed
  test_b failed
passed 0.00 s  "lint"  (.turngate/settings.json)
could not run 0.00 s  "types"  (.turngate/settings.json): exit code 127: /bin/sh: 1: no-such-program: not found
1 passed, 1 failed, 1 could not run
""".replace("/bin/sh: 1: ", shell_prefix()),
        "",
    )


def shell_prefix() -> str:
    """dash and bash name themselves in different ways."""
    done = subprocess.run(["/bin/sh", "-c", "no-such-program"], capture_output=True, text=True, check=False)
    return done.stderr.partition("no-such-program")[0]


@pytest.mark.req("S3-50")
@pytest.mark.parametrize(("words", "code"), [((), 13), (("--lenient",), 0)])
def test_one_could_not_run(project: Path, gates: Gates, words: tuple[str, ...], code: int) -> None:
    write_hooks(project, PASSES, {"id": "slow", "command": "sleep 60", "timeout": 0.1})
    assert gates("run", *words) == (
        code,
        """\
passed 0.00 s  "lint"  (.turngate/settings.json)
could not run 0.00 s  "slow"  (.turngate/settings.json): timed out after 0.1 s
  → raise its `timeout`
1 passed, 1 could not run
""",
        "",
    )


@pytest.mark.parametrize(("words", "code"), [((), 13), (("--lenient",), 0)])
def test_a_gate_that_is_not_approved_does_not_run(
    project: Path, gates: Gates, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_hooks(project, {"id": "touch", "command": "touch ran"})
    line = 'could not run 0.00 s  "touch"  (.turngate/settings.json): it is not approved\n'
    assert gates("run", *words) == (code, f"{line}{APPROVE}1 could not run\n", "")
    assert not (project / "ran").exists()


def test_trust_accepts_all_gates(project: Path, gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_hooks(project, PASSES)
    assert gates("run", "--trust")[0] == 0


def test_a_failure_of_a_blocking_hook_is_a_failure(project: Path, gates: Gates) -> None:
    write_hooks(project, {**BREAKS, "blocking": True})
    assert gates("run")[0] == 1


def test_a_hook_that_halts_has_not_passed(project: Path, gates: Gates) -> None:
    write_hooks(project, {"id": "halt", "command": """echo '{"continue": false, "stopReason": "enough"}'"""})
    assert gates("run") == (
        1,
        'failed 0.00 s  "halt"  (.turngate/settings.json)\n  enough\n1 failed\n',
        "",
    )


def test_settings_that_cannot_be_read_are_not_called_settings_without_gates(
    project: Path, gates: Gates
) -> None:
    write(project, {".turngate/settings.json": '{"hooks": {}'})
    code, out, _ = gates("run")
    assert (code, out) == (13, "no gate could be loaded; `turngate check` lists what to correct\n")


def test_an_approved_gate_that_is_no_longer_configured_can_be_forgotten(
    project: Path, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_hooks(project, PASSES)
    turngate("hooks", "approve", "--all", "--yes", "--project", str(project))
    write_hooks(project)
    line = 'could not run 0.00 s  "lint"  (.turngate/settings.json): it was approved, but is no longer configured\n'
    hint = "  → configure it again, or forget it with `turngate hooks reject lint`\n"
    assert gates("run") == (13, f"{line}{hint}1 could not run\n", "")


def test_a_command_that_is_not_executable_is_named_with_what_to_do(project: Path, gates: Gates) -> None:
    write(project, {"check.sh": "#!/bin/sh\n"})
    write_hooks(project, {"type": "gate", "id": "mine", "command": "./check.sh"})
    assert "  → chmod +x ./check.sh\n" in gates("run")[1]


@pytest.mark.parametrize(("words", "code"), [((), 13), (("--lenient",), 0)])
def test_no_gate_is_not_a_gate_that_passed(gates: Gates, words: tuple[str, ...], code: int) -> None:
    assert gates("run", *words) == (code, NO_GATES, "")


def test_settings_that_cannot_be_read_are_not_passed(project: Path, gates: Gates) -> None:
    write_settings(project, "claude", stop_hooks("true"))
    write_settings(project, "turngate", "{")
    code, out, err = gates("run")
    assert (code, out.splitlines()[-1], err.startswith("! .turngate/settings.json: ")) == (
        13,
        "1 passed",
        True,
    )


def test_a_long_reason_is_truncated(project: Path, gates: Gates) -> None:
    write_hooks(project, {"id": "loud", "command": "yes failed | head -c 3000000 >&2; exit 2"})
    code, out, _ = gates("run")
    assert (code, len(out) < 20_000, out.endswith("1 failed\n")) == (1, True, True)


# What is left out


def test_what_needs_a_conversation_or_a_model_is_left_out_and_named(project: Path, gates: Gates) -> None:
    script(project / "check.py", "import json, sys\njson.load(sys.stdin)['transcript_path']\n")
    write_settings(
        project,
        "turngate",
        {
            "hooks": {
                "Stop": [
                    {
                        "hooks": [
                            {"type": "command", **PASSES},
                            {"type": "command", "id": "reader", "command": "python3 check.py"},
                            {"type": "command", "id": "observer", "command": "true", "mode": "observe"},
                            {"type": "command", "id": "async", "command": "true", "async": True},
                            {"type": "command", "id": "off", "command": "true", "enabled": False},
                            {"type": "prompt", "id": "judge", "prompt": "Is it done?"},
                            {"type": "agent", "id": "agent", "prompt": "Is it done?"},
                            {"type": "http", "id": "server", "url": "https://example.com/x"},
                        ]
                    }
                ],
                "PreToolUse": [{"hooks": [{"type": "command", "id": "other", "command": "true"}]}],
            }
        },
    )
    left_out = {
        "reader": "it reads the conversation",
        "observer": "it only observes",
        "async": "it runs in the background, and does not block a stop",
        "off": "its own `enabled` switches it off",
        "judge": "it asks a model",
        "agent": "it asks a model",
        "server": "it asks a server",
    }
    assert gates("run") == (
        0,
        'passed 0.00 s  "lint"  (.turngate/settings.json)\n'
        + "".join(
            f'left out                "{name}"  (.turngate/settings.json): {why}\n'
            for name, why in left_out.items()
        )
        + "1 passed, 7 left out\n",
        "",
    )


def test_if_every_gate_is_left_out_nothing_has_passed(project: Path, gates: Gates) -> None:
    write_hooks(project, {"id": "off", "command": "true", "enabled": False})
    assert gates("run")[0] == 13


@pytest.mark.req("S3-50")
def test_gates_of_subagents_run_too_and_the_same_check_runs_once(project: Path, gates: Gates) -> None:
    same = {"type": "command", "command": "echo x >> log"}
    hooks = {
        "Stop": [{"hooks": [same]}],
        "SubagentStop": [{"matcher": "Explore|reviewer", "hooks": [same, {"type": "command", **PASSES}]}],
    }
    write_settings(project, "turngate", {"hooks": hooks})
    (project / ".turngate" / "agents").mkdir()
    (project / ".turngate" / "agents" / "writer.md").write_text(
        "---\nname: writer\ndescription: writes\nhooks:\n  Stop:\n    - hooks:\n"
        "        - type: command\n          command: test -e log\n---\nWrite.\n"
    )
    assert gates("run") == (
        0,
        """\
passed 0.00 s  "Stop:1"  (.turngate/settings.json)
left out                "SubagentStop:1"  (.turngate/settings.json): it is the same as Stop:1
passed 0.00 s  "lint"  (.turngate/settings.json)
passed 0.00 s  "SubagentStop:3"  (.turngate/agents/writer.md)
3 passed, 1 left out
""",
        "",
    )
    assert (project / "log").read_text() == "x\n"


# Ready-made gates


@pytest.mark.req("S3-50")
def test_gates_of_the_settings_run_in_process(project: Path, gates: Gates) -> None:
    hooks = [
        {"type": "gate", "id": "good", "command": "true"},
        {"type": "gate", "id": "bad", "command": "echo 'test_a failed'; exit 3"},
        {"type": "gate", "id": "gone", "command": "no-such-program"},
        {"type": "gate", "id": "list", "gate": "todos"},
        {"type": "gate", "id": "bell", "gate": "notify"},
        {"type": "command", "id": "limit", "command": "turngate gate budget --turns 3"},
    ]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    code, out, _ = gates("run")
    assert (code, [line.split()[0] for line in out.splitlines()[:2]]) == (1, ["passed", "failed"])
    assert "test_a failed" in out
    assert '"gone"  (.turngate/settings.json): ' in out
    assert 'left out                "list"  (.turngate/settings.json): it needs a conversation\n' in out
    assert '"bell"  (.turngate/settings.json): it is an observer: it never blocks\n' in out
    assert '"limit"  (.turngate/settings.json): it is a limit: it ends the turn, and does not block\n' in out
    assert out.endswith("1 passed, 1 failed, 1 could not run, 3 left out\n")


# Changes: there is no session whose start is known


CHECKS_CHANGES: list[dict[str, Any]] = [
    {
        "type": "gate",
        "id": "docs",
        "gate": "touched",
        "options": {"if": ["src/**"], "then": ["CHANGELOG.md"]},
    },
    {"type": "gate", "id": "tests", "gate": "untouched", "options": {"globs": ["tests/**"]}},
    {"type": "command", "id": "stubs", "command": "turngate gate no-stubs"},
]


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`turngate` is found by hooks."""
    monkeypatch.setenv("PATH", os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])))


def write_gates(project: Path, *hooks: dict[str, Any]) -> None:
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": list(hooks)}]}})


@pytest.mark.usefixtures("on_path")
@pytest.mark.req("S3-50")
@pytest.mark.parametrize(
    "hook",
    [
        {"type": "gate", "command": "exit 1", "options": {"ifChanged": ["src/**"]}},
        {"type": "command", "command": "turngate gate --if-changed 'src/**' -- 'exit 1'"},
        {"type": "gate", "command": "exit 1", "options": {"baseline": True}},
        {"type": "gate", "gate": "checklist", "options": {"files": ["TODO.md"], "ifTouched": True}},
        {"type": "gate", "gate": "plan", "options": {"files": ["TODO.md"], "ifTouched": True}},
        {"type": "command", "command": "turngate gate checklist --if-touched TODO.md"},
    ],
)
def test_a_fresh_checkout_passes_no_gate_that_looks_only_at_changes(
    project: Path, gates: Gates, hook: dict[str, Any]
) -> None:
    write_gates(project, hook)
    make_repository(project, {"src/a.py": "1", "TODO.md": "- [ ] open\n"})
    code, out, _ = gates("run")
    assert (code, out.splitlines()[-1]) == (1, "1 failed")


def test_the_line_of_another_agent_program_is_not_a_gate(project: Path, gates: Gates) -> None:
    write_gates(project, {"type": "gate", "id": "ok", "command": "true"})
    write_settings(project, "claude", stop_hooks("turngate hook"))
    code, out, _ = gates("run")
    assert (code, out.splitlines()[-1]) == (0, "1 passed")


@pytest.mark.req("S3-50")
def test_gates_that_only_compare_are_left_out_without_a_base(project: Path, gates: Gates) -> None:
    write_gates(project, *CHECKS_CHANGES)
    make_repository(project, {"src/a.py": "1"})
    why = "(.turngate/settings.json): it compares with a session's start; give --base REV\n"
    assert gates("run") == (
        13,
        "".join(f'left out                "{name}"  {why}' for name in ("docs", "tests", "stubs"))
        + "3 left out\n",
        "",
    )


@pytest.mark.usefixtures("on_path")
def test_a_comparison_inside_of_another_command_could_not_run_without_a_base(
    project: Path, gates: Gates
) -> None:
    write_gates(project, {"type": "command", "id": "both", "command": "cd . && turngate gate no-stubs"})
    make_repository(project, {"src/a.py": "1"})
    code, out, _ = gates("run")
    assert (code, out.splitlines()[-1]) == (13, "1 could not run")
    assert "it compares with a session's start; give --base REV" in out


@pytest.mark.usefixtures("on_path")
@pytest.mark.req("S3-50")
def test_with_a_base_the_changes_of_a_pull_request_are_checked(project: Path, gates: Gates) -> None:
    """The base is what both have in common: later commits of the other branch are not changes of this one."""
    looks_at_source = {
        "type": "gate",
        "id": "source",
        "command": "exit 1",
        "options": {"ifChanged": ["src/**"]},
    }
    looks_at_docs = {
        "type": "gate",
        "id": "pages",
        "command": "exit 1",
        "options": {"ifChanged": ["docs/**"]},
    }
    options = {"files": ["TODO.md", "OLD.md"], "ifTouched": True}
    items = {"type": "gate", "id": "items", "gate": "checklist", "options": options}
    write_gates(project, *CHECKS_CHANGES, looks_at_source, looks_at_docs, items)
    make_repository(project, {"src/a.py": "a = 1\n", "tests/t.py": "assert 1\n", "OLD.md": "- [ ] old\n"})
    git(project, "branch", "upstream")
    git(project, "checkout", "-q", "-b", "feature")
    write(project, {"src/a.py": "a = 2  # TODO\n", "tests/t.py": "assert True\n", "TODO.md": "- [ ] new\n"})
    commit(project)
    git(project, "checkout", "-q", "upstream")
    write(project, {"docs/page.md": "text\n"})
    commit(project)
    git(project, "checkout", "-q", "feature")
    code, out, _ = gates("run", "--base", "upstream")
    labels = [line.split(" 0.00 s  ") for line in out.splitlines() if " 0.00 s  " in line]
    assert (code, {name.split('"')[1]: label for label, name in labels}) == (
        1,
        {
            "docs": "failed",
            "tests": "failed",
            "stubs": "failed",
            "source": "failed",
            "pages": "passed",
            "items": "failed",
        },
    )
    assert ("TODO.md" in out, "OLD.md" in out) == (True, False)


@pytest.mark.parametrize("revision", ["no-such-branch", "--all", ""])
def test_an_unknown_base_is_wrong_usage(project: Path, gates: Gates, revision: str) -> None:
    write_hooks(project, PASSES)
    make_repository(project, {"a": "1"})
    why = "git knows no such commit here; fetch it first, e.g. `git fetch origin`"
    assert gates("run", f"--base={revision}") == (64, "", f'turngate: --base "{revision}": {why}\n')


def test_a_base_without_a_common_commit_is_wrong_usage(project: Path, gates: Gates) -> None:
    write_hooks(project, PASSES)
    make_repository(project, {"a": "1"})
    git(project, "branch", "upstream")
    git(project, "checkout", "-q", "--orphan", "other")
    commit(project)
    code, out, err = gates("run", "--base", "upstream")
    assert (code, out, "has no commit in common with HEAD here" in err) == (64, "", True)


# Names


def test_only_the_gates_that_are_named_run(project: Path, gates: Gates) -> None:
    write_hooks(project, PASSES, {"command": "touch ran"}, FAILS)
    assert gates("run", "Stop:2", "lint", "lint") == (
        0,
        """\
passed 0.00 s  "Stop:2"  (.turngate/settings.json)
passed 0.00 s  "lint"  (.turngate/settings.json)
2 passed
""",
        "",
    )


@pytest.mark.parametrize(
    ("name", "hint"), [("lnt", "did you mean lint?"), ("x\ny", "`turngate gates` lists them")]
)
def test_a_name_that_is_not_a_gate_is_wrong_usage(project: Path, gates: Gates, name: str, hint: str) -> None:
    write_hooks(project, PASSES)
    code, out, err = gates("run", name)
    assert (code, out, err.endswith(f"; {hint}\n"), err.count("\n")) == (64, "", True, 1)


# Output


def test_json_holds_everything(project: Path, gates: Gates) -> None:
    write_hooks(project, FAILS, {"id": "off", "command": "true", "enabled": False})
    code, out, _ = gates("run", "--json")
    report = json.loads(out)
    for gate in report["gates"]:
        assert gate.pop("seconds") >= 0
    common = {"event": "Stop", "file": ".turngate/settings.json"}
    assert (code, report) == (
        1,
        {
            "project": str(project),
            "gates": [
                {
                    **common,
                    "name": "tests",
                    "hook": {"type": "command", **FAILS},
                    "outcome": "failed",
                    "reason": "test_a failed\ntest_b failed",
                    "places": [],
                },
                {
                    **common,
                    "name": "off",
                    "hook": {"type": "command", "id": "off", "command": "true"},
                    "outcome": "left_out",
                    "reason": "its own `enabled` switches it off",
                    "places": [],
                },
            ],
            "not_loaded": False,
            "warnings": [],
        },
    )


def test_the_gates_are_listed_with_what_they_run(
    project: Path, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_hooks(project, PASSES, {"id": "off", "command": "false", "enabled": False})
    assert gates("list") == (
        0,
        """\
lint  command: true  (.turngate/settings.json)
  pending: it is not approved
off  command: false  (.turngate/settings.json)
  left out: its own `enabled` switches it off
""",
        "",
    )
    assert [gate["left_out"] for gate in json.loads(gates("list", "--json")[1])["gates"]] == [
        None,
        "its own `enabled` switches it off",
    ]


def test_a_project_without_gates_is_pointed_to_init(gates: Gates) -> None:
    assert gates("list") == (0, NO_GATES, "")


def test_a_gate_that_takes_more_than_a_second_is_shown_while_it_runs(project: Path) -> None:
    wait = "until test -e released; do sleep 0.05; done"
    write_hooks(project, {"id": "slow", "command": wait})
    with Terminal("gates", "run", cwd=project) as terminal:
        terminal.expect('waiting for hook "slow" (at most 60 s) … 1 s')
        (project / "released").touch()
        terminal.expect("1 passed")
        assert terminal.end() == 0


def test_elsewhere_the_wait_is_one_line_on_stderr(project: Path) -> None:
    write_hooks(project, {"id": "slow", "command": "sleep 1.5"})
    code, out, err = turngate_with_progress("gates", "run", "--project", str(project))
    assert (code, out.splitlines()[-1], err) == (
        0,
        "1 passed",
        'waiting for hook "slow" (at most 60 s) …\n',
    )


def test_an_interrupt_ends_the_gate_and_keeps_what_was_printed(project: Path) -> None:
    write_hooks(project, PASSES, {"id": "slow", "command": "touch started; sleep 600"})
    with start_in_project(project, "gates", "run") as process:
        wait_for(project / "started")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert (process.wait(), out.count("passed"), err.splitlines()[-1]) == (
            130,
            1,
            "turngate: ended by SIGINT; no gate is left running",
        )


def test_nothing_is_left_in_the_state_folder(project: Path, gates: Gates, state: Path) -> None:
    write_hooks(project, {"id": "gate", "command": "turngate gate -- true"}, PASSES)
    gates("run")
    assert [path.name for path in state.rglob("*") if path.is_file()] == []


def test_inside_of_a_hook_nothing_runs(project: Path, gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop hook that runs `turngate gates run` would start itself without end."""
    monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
    write_hooks(project, {"id": "touch", "command": "touch ran"})
    assert (gates("run")[0], (project / "ran").exists()) == (13, False)
