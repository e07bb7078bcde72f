"""The folder and the environment of a hook, on each machine."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, settings, stop_event
from tests.support.machines import Machine, SshMachine, ask_on, workspace_on
from turngate.core.answers.report_types import Exited, Report
from turngate.core.events.events import StopEvent, Subagent
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.hook_run import outcome, run_message
from turngate.core.verdict.verdict import Continue, Stop, Verdict
from turngate.engine import ask_hooks
from turngate.ports import World


@pytest.mark.req("S0-31")
@pytest.mark.parametrize("command", ["/bin/pwd -P", "pwd -P"])
def test_a_hook_runs_in_the_projects_folder(
    command: str, project: Path, tmp_path: Path, machine: Machine
) -> None:
    (tmp_path / "link").symlink_to(project)
    for folder in (project, tmp_path / "link"):
        assert report(machine, folder, command) == Exited(0, f"{os.path.realpath(project)}\n")


@pytest.mark.req("S0-31")
def test_a_hook_runs_in_the_projects_folder_wherever_the_agent_is(
    project: Path, transcript: Path, machine: Machine
) -> None:
    (project / "src").mkdir()
    event = stop_event(cwd=str(project / "src"), transcript_path=str(transcript))
    (only,) = ask_in_workspace(machine, project, "pwd -P", event).runs
    assert only.report == Exited(0, f"{os.path.realpath(project)}\n")


@pytest.mark.req("S0-31")
@pytest.mark.parametrize("command", ["/usr/bin/printenv PWD", "printenv PWD"])
def test_a_hooks_own_idea_of_its_folder_is_the_projects(
    command: str, project: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    monkeypatch.setenv("PWD", "/somewhere/else")
    assert report(machine, project, command) == Exited(0, f"{project}\n")


@pytest.mark.req("S0-32", "S0-33", "S0-34", "S0-35", "S0-105")
@pytest.mark.parametrize(("active", "word"), [(False, "false"), (True, "true")])
def test_a_hook_finds_project_transcript_and_state_in_its_environment(
    active: bool,
    word: str,
    project: Path,
    transcript: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: Machine,
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    state = {"stop_hook_active": active, "continuation_count": int(active)}
    event = stop_event(cwd=str(project), transcript_path=str(transcript), **state)
    (only,) = ask_in_workspace(machine, project, "/usr/bin/env", event).runs
    variables = found(only.report)
    path = variables["TURNGATE_TRANSCRIPT_PATH"]
    assert project.is_absolute()
    assert is_transcript_there(machine, path, transcript)
    assert variables == {
        "CLAUDE_PROJECT_DIR": str(project),
        "MUX_PROJECT_DIR": str(project),
        "MUX_STOP_HOOK_ACTIVE": word,
        "MUX_STOP_HOOK_COUNT": str(int(active)),
        "MUX_TRANSCRIPT_PATH": path,
        "TURNGATE_EVENT": "Stop",
        "TURNGATE_IN_HOOK": "1",
        "TURNGATE_PROJECT_DIR": str(project),
        "TURNGATE_SESSION_ID": "s-1",
        "TURNGATE_STOP_HOOK_ACTIVE": word,
        "TURNGATE_STOP_HOOK_COUNT": str(int(active)),
        "TURNGATE_TRANSCRIPT_PATH": path,
    }


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "my chat.jsonl"
    path.write_text('{"text":"TODO"}\n')
    return path


def ask_in_workspace(machine: Machine, project: Path, command: str, event: StopEvent) -> Verdict:
    """Run a hook that gets the transcript of an event, as in a session."""
    world = workspace_on(machine, project)
    return machine.run(ask_hooks(event, settings(command, event=event.name), world))


def is_transcript_there(machine: Machine, path: str, transcript: Path) -> bool:
    """Return whether a path names the transcript on a machine. The server of the tests can also read the one here."""
    if isinstance(machine, SshMachine):
        return Path(path).is_relative_to(machine.environ["TMPDIR"]) and Path(path).name == transcript.name
    return path == str(transcript)


def found(ended: Report) -> dict[str, str]:
    """Return the variables that Turngate sets, without the run marker, the state folder and the time that is left."""
    assert isinstance(ended, Exited)
    lines = (line.partition("=") for line in ended.stdout.splitlines())
    ours = {name: value for name, _, value in lines if name.startswith(("CLAUDE_P", "MUX_", "TURNGATE_"))}
    return {
        name: ours[name] for name in ours.keys() - {"TURNGATE_RUN", "TURNGATE_STATE", "TURNGATE_HOOK_TIMEOUT"}
    }


def report(machine: Machine, project: Path, command: str, **fields: Any) -> Report:
    (only,) = machine.run(ask_on(machine, project, command, **fields)).runs
    return only.report


@pytest.mark.req("S0-35")
def test_a_subagents_hook_finds_the_subagents_transcript(
    project: Path, transcript: Path, machine: Machine
) -> None:
    command = 'echo "$TURNGATE_EVENT"; echo "$MUX_TRANSCRIPT_PATH"; echo "$TURNGATE_TRANSCRIPT_PATH"'
    event = stop_event(subagent=Subagent(id="a-1", transcript_path=str(transcript)))
    (only,) = ask_in_workspace(machine, project, command, event).runs
    assert isinstance(only.report, Exited)
    name, *paths = only.report.stdout.splitlines()
    assert (name, [is_transcript_there(machine, path, transcript) for path in paths]) == (
        "SubagentStop",
        [True, True],
    )


@pytest.mark.req("S0-35")
def test_a_hook_can_grep_the_transcript_that_its_environment_names(
    project: Path, transcript: Path, machine: Machine
) -> None:
    command = 'if grep -q TODO "$MUX_TRANSCRIPT_PATH"; then echo "$MUX_TRANSCRIPT_PATH" >&2; exit 2; fi'
    verdict = ask_in_workspace(machine, project, command, stop_event(transcript_path=str(transcript)))
    [path] = [run_message(r) for r in verdict.runs]
    assert path is not None
    assert is_transcript_there(machine, path, transcript)


def test_a_hooks_env_overrides_the_settings_env_and_both_override_the_inherited_one(
    project: Path, machine: Machine
) -> None:
    hook = CommandHook(
        'echo "$A $B $C $MUX_STOP_HOOK_ACTIVE"', env={"C": "hook", "MUX_STOP_HOOK_ACTIVE": "x"}
    )
    given = settings(hook, env={"B": "settings", "C": "settings"})
    inherited = dict.fromkeys("ABC", "inherited")
    where = World(machine.shell, str(project), environ={**machine.environ, **inherited})
    (only,) = machine.run(ask_hooks(stop_event(), given, where)).runs
    assert only.report == Exited(0, "inherited settings hook false\n")


@pytest.mark.req("S0-15")
@pytest.mark.parametrize("variable", ["MUX_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "TURNGATE_PROJECT_DIR"])
@pytest.mark.parametrize("form", ['"${}/.mux/hooks/stop-check.sh"', '"${}"/.mux/hooks/stop-check.sh'])
def test_a_project_with_a_blank_works_when_its_variable_is_quoted(
    variable: str, form: str, tmp_path: Path, machine: Machine
) -> None:
    project = tmp_path / "my project"
    script(project / ".mux/hooks/stop-check.sh", "#!/bin/sh\necho 'go on' >&2\nexit 2\n")
    verdict = machine.run(ask_on(machine, project, form.replace("{}", variable)))
    assert (type(verdict), [run_message(r) for r in verdict.runs]) == (Continue, ["go on"])


@pytest.mark.req("S0-15")
def test_a_project_with_a_blank_fails_visibly_when_its_variable_is_not_quoted(
    tmp_path: Path, machine: Machine
) -> None:
    project = tmp_path / "my project"
    script(project / ".mux/hooks/stop-check.sh", "#!/bin/sh\necho 'go on' >&2\nexit 2\n")
    verdict = machine.run(ask_on(machine, project, "$MUX_PROJECT_DIR/.mux/hooks/stop-check.sh"))
    assert (type(verdict), [(outcome(r), run_message(r)) for r in verdict.runs]) == (
        Stop,
        [("failed", f"exit code 127: /bin/sh: 1: {tmp_path}/my: not found")],
    )


@pytest.mark.req("S0-19")
@pytest.mark.parametrize(
    ("mode", "verdict", "words"),
    [(0o755, Continue, "go on"), (0o644, Stop, "exit code 126: /bin/sh: 1: {}: Permission denied")],
)
def test_a_bare_path_is_a_command_if_it_is_executable(
    mode: int, verdict: type[Stop | Continue], words: str, project: Path, machine: Machine
) -> None:
    body = "#!/usr/bin/env python3\nimport sys\nsys.exit(print('go on', file=sys.stderr) or 2)\n"
    path = script(project / "check.py", body, mode)
    given = machine.run(ask_on(machine, project, str(path)))
    assert (type(given), [run_message(r) for r in given.runs]) == (verdict, [words.replace("{}", str(path))])


# Environments that the kernel would reject


@pytest.mark.req("X-33")
@pytest.mark.parametrize(
    "env",
    [
        pytest.param({"A": "x" * 10_000_000}, id="a value of 10 MB"),
        pytest.param({"A": "\N{GRINNING FACE}" * 99_999}, id="a value of 400 kB in 99,999 letters"),
        pytest.param({"A" * 200_000: "x"}, id="a name of 200 kB"),
        pytest.param({f"A{n}": "x" * 99_000 for n in range(40)}, id="4 MB in forty values"),
        pytest.param({f"A{n}": "x" for n in range(200_000)}, id="200,000 values"),
        pytest.param({"A": "x\0y"}, id="NUL in a value"),
        pytest.param({"A\0B": "x"}, id="NUL in a name"),
        pytest.param({"A": "half \ud83d"}, id="half a surrogate pair in a value"),
        pytest.param({"A\ud83d": "x"}, id="half a surrogate pair in a name"),
        pytest.param({"": "x"}, id="an empty name"),
        pytest.param({"A=B": "x"}, id="an equals sign in a name"),
        pytest.param({"a.b": "1", "1": "2", "a b": "3"}, id="names that no shell can set"),
        pytest.param({"UID": "x", "PPID": "x", "IFS": "o", "SHELLOPTS": "x"}, id="variables of the shell"),
    ],
)
def test_a_variable_that_cannot_be_passed_does_not_break_the_hook(
    env: dict[str, str], project: Path, machine: Machine
) -> None:
    verdict = machine.run(ask_on(machine, project, CommandHook("echo 'go on' >&2; exit 2", env=env)))
    assert (type(verdict), [run_message(r) for r in verdict.runs]) == (Continue, ["go on"])


@pytest.mark.req("X-33")
@pytest.mark.parametrize("field", ["session_id", "transcript_path"])
@pytest.mark.parametrize("value", ["half \ud83d", "x\0y", "x" * 3_000_000], ids=["half", "NUL", "long"])
def test_an_event_that_cannot_be_passed_does_not_break_the_hook(
    field: str, value: str, project: Path, machine: Machine
) -> None:
    told: dict[str, Any] = {field: value}
    verdict = machine.run(ask_on(machine, project, "echo 'go on' >&2; exit 2", **told))
    assert (type(verdict), [run_message(r) for r in verdict.runs]) == (Continue, ["go on"])


@pytest.mark.req("X-33")
def test_a_large_payload_comes_through_stdin_alone(project: Path, machine: Machine) -> None:
    long = "x" * 2_000_000
    verdict = machine.run(ask_on(machine, project, "wc -c; env | wc -c", last_assistant_message=long))
    (only,) = verdict.runs
    assert isinstance(only.report, Exited)
    told, env = map(int, only.report.stdout.split())
    assert (told > 2_000_000, env < 1_000_000) == (True, True)
