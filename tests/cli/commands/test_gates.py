"""`turngate gates`: a project's gates in a plain shell, without an agent."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import start_in_project, turngate, turngate_with_progress
from tests.support.terminal import Terminal, wait_for

SECONDS = re.compile(r" +\d+\.\d\d s")
NO_GATES = "no gates are configured; `turngate init` finds the checks of a project\n"
APPROVE = (
    "→ read what is not approved with `turngate hooks diff`, and approve it with `turngate hooks approve --all`; "
    "or add --trust, in CI of your own repository\n"
)

Gates = Callable[..., tuple[int, str, str]]


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
        "async": "it runs in the background, and does not hold a stop",
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
                },
                {
                    **common,
                    "name": "off",
                    "hook": {"type": "command", "id": "off", "command": "true"},
                    "outcome": "left_out",
                    "reason": "its own `enabled` switches it off",
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
