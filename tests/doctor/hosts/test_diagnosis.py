"""Whether a host runs Turngate at a stop: real settings files in a temporary home and project."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from turngate.cli.main import main
from turngate.core.settings import Problem
from turngate.doctor.diagnosis import Fact, Finding
from turngate.doctor.hosts.diagnosis import HostDiagnosis, diagnose_host
from turngate.doctor.hosts.files import MAX_FILE_BYTES, codex_key, hooks_in, read_host_files
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Level
from turngate.hosts.install.hook_command import entries_for
from turngate.project.files import LOCAL
from turngate.settings.load import load_layers

NAMES = tuple(HOSTS)
REVIEW = "start `codex` and review it in `/hooks`"
INSTALL_AGAIN = "install Turngate there, or run `turngate install` again"
PUT_ON_PATH = "put it there (`pipx install .` or `uv tool install .` in a clone of Turngate), or use `turngate install claude --user`"


@pytest.fixture(autouse=True)
def turngate_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a `turngate` that starts and does nothing, the only program on PATH besides those of the system."""
    program = tmp_path / "bin" / "turngate"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def path_of(host: str, level: Level, home: Path, project: Path) -> Path:
    name = HOSTS[host].files[level]
    return home / name[2:] if level == "user" else project / name


def install(
    host: str, home: Path, project: Path, level: Level = "project", program: str = "turngate", **changes: Any
) -> Path:
    """Write the lines that `turngate install` writes; `changes` replace keys of each hook, None removes one."""
    path = path_of(host, level, home, project)
    entries = entries_for(HOSTS[host], level, program)
    value = {**HOSTS[host].new_file, "hooks": {event: [dict(entry)] for event, entry in entries.items()}}
    if file_format := HOSTS[host].file_format:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file_format.add("", entries))
        return path
    for [entry] in value["hooks"].values():
        for hook in [dict(each) for each in entry["hooks"]] if "hooks" in entry else [entry]:
            for key, change in changes.items():
                hook.pop(key, None) if change is None else hook.update({key: change})
            if "hooks" in entry:
                entry["hooks"] = [hook]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def trust_in_codex(home: Path, project: Path, extra: str = "") -> None:
    """Write what Codex writes when the user trusts the project and its hooks."""
    lines = [f'[projects."{project}"]', 'trust_level = "trusted"', extra]
    for file in read_host_files(HOSTS["codex"], str(project), os.environ):
        for hook in hooks_in(file):
            lines += [f'[hooks.state."{codex_key(hook, file.path)}"]', 'trusted_hash = "sha256:0"']
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text("\n".join(lines))


def trust_folder(host: str, home: Path, project: Path, level: str = "TRUST_FOLDER") -> None:
    folder = path_of(host, "user", home, project).parent
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trustedFolders.json").write_text(json.dumps({str(project): level}))


def trust(host: str, home: Path, project: Path) -> None:
    if host == "codex":
        trust_in_codex(home, project)
    elif host in ("gemini", "qwen"):
        trust_folder(host, home, project)
    elif host == "copilot":
        write_settings(home, "copilot", {"trustedFolders": [str(project.parent)]}, "config.json")


def diagnose(host: str, project: Path) -> HostDiagnosis:
    settings = load_layers(str(project), dialect="host", files=LOCAL).merge()
    return diagnose_host(HOSTS[host], settings, str(project), os.environ)


def findings(diagnosis: HostDiagnosis) -> list[tuple[Finding, ...]]:
    return [hook.findings for hook in diagnosis.hooks if hook.hook.our_event == "Stop"]


def problem_facts(diagnosis: HostDiagnosis) -> list[Fact]:
    return [fact for fact in diagnosis.facts if fact.is_problem]


# Everything is right


@pytest.mark.parametrize(("name", "level"), [(name, level) for name in NAMES for level in HOSTS[name].files])
def test_a_line_that_is_as_install_writes_it_has_no_finding(
    name: str, level: Level, home: Path, project: Path, turngate_program: Path
) -> None:
    install(name, home, project, level, str(turngate_program))
    trust(name, home, project)
    found = diagnose(name, project)
    assert {hook.findings for hook in found.hooks} == {()}
    assert (found.problems, problem_facts(found)) == ((), [])
    assert (found.runs_turngate, found.fails_to_hold, found.has_problem) == (True, False, False)
    text, hint = f"in {HOSTS[name].files[level]} ({level})", None
    if level == "project":
        text += "; an agent that starts in a subfolder or a new worktree may not read it"
        hint = f"`turngate install {name}` writes it to your own settings, which apply everywhere"
    assert found.facts[1] == Fact("installed", text, hint=hint)


@pytest.mark.parametrize("name", NAMES)
def test_a_host_without_the_line_does_not_run_turngate(name: str, project: Path) -> None:
    found = diagnose(name, project)
    text = f"{HOSTS[name].title} does not run Turngate: no settings file has the line `turngate hook`"
    assert problem_facts(found) == [Fact("installed", text, True, f"`turngate install {name}` adds it")]
    assert (found.hooks, found.runs_turngate, found.fails_to_hold) == ((), False, True)


def test_an_event_without_the_line_is_named(home: Path, project: Path) -> None:
    path = install("codex", home, project)
    value = json.loads(path.read_text())
    del value["hooks"]["SubagentStop"]
    path.write_text(json.dumps(value))
    hint = "`turngate install codex` adds the others"
    assert problem_facts(diagnose("codex", project)) == [
        Fact("installed", "in .codex/hooks.json (project), but not at SubagentStop", True, hint)
    ]


# The program of the line


def test_a_program_that_is_not_there_does_not_run(home: Path, project: Path, tmp_path: Path) -> None:
    gone = str(tmp_path / "venv" / "bin" / "turngate")
    install("claude", home, project, "user", gone)
    message = f"{gone} does not exist: the hook fails at every stop"
    assert findings(diagnose("claude", project)) == [
        (Finding("will NOT run", "error", message, INSTALL_AGAIN),)
    ]


@pytest.mark.parametrize(
    ("mode", "text", "problem"),
    [
        (0o644, "#!/bin/sh\n", "is not executable"),
        (0o755, "#!/bin/sh\nexit 3\n", "cannot be started: exit code 3"),
        (0o755, "#!/no/python\n", "cannot be started: No such file or directory"),
    ],
)
def test_a_program_that_cannot_be_started_does_not_run(
    mode: int, text: str, problem: str, home: Path, project: Path, turngate_program: Path
) -> None:
    turngate_program.write_text(text)
    turngate_program.chmod(mode)
    install("claude", home, project, "user", str(turngate_program))
    message = f"{turngate_program} {problem}: the hook fails at every stop"
    assert findings(diagnose("claude", project)) == [
        (Finding("will NOT run", "error", message, INSTALL_AGAIN),)
    ]


def test_the_program_of_a_project_is_not_started(home: Path, project: Path, tmp_path: Path) -> None:
    """The settings came with the repository: doctor runs nothing of it."""
    program = project / "turngate"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    write_settings(project, "claude", stop_hooks(f"{program} hook", timeout=600))
    assert findings(diagnose("claude", project)) == [()]
    assert not (tmp_path / "started").exists()


def test_a_guarded_line_without_turngate_on_path_does_not_hold(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("gemini", home, project)
    trust("gemini", home, project)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    message = "`turngate` is not on PATH: the line only says so, and the agent may stop"
    found = diagnose("gemini", project)
    hint = PUT_ON_PATH.replace("claude", "gemini")
    assert findings(found) == [(Finding("will NOT hold", "error", message, hint),)]
    assert not found.runs_turngate


@pytest.mark.parametrize(
    "line", ["timeout 700 {} hook", "cd . && {} hook", "sh -c '{} hook'", "nice -n 5 {} hook"]
)
def test_the_program_of_a_wrapped_line_is_looked_for(line: str, project: Path) -> None:
    write_settings(project, "claude", stop_hooks(line.format("turngate"), timeout=600))
    assert findings(diagnose("claude", project)) == [()]
    write_settings(project, "claude", stop_hooks(line.format("/gone/turngate"), timeout=600))
    message = "/gone/turngate does not exist: the hook fails at every stop"
    assert findings(diagnose("claude", project)) == [
        (Finding("will NOT run", "error", message, INSTALL_AGAIN),)
    ]


def test_a_guarded_line_of_another_version_is_noted(project: Path) -> None:
    write_settings(project, "claude", stop_hooks("command -v turngate && turngate hook || true", timeout=600))
    message = "it is not the line that this version of Turngate installs"
    hint = "`turngate install claude --project` updates it"
    assert findings(diagnose("claude", project)) == [(Finding("will run", "note", message, hint),)]


# Twice


def test_a_line_in_two_files_runs_twice(home: Path, project: Path, turngate_program: Path) -> None:
    install("claude", home, project)
    install("claude", home, project, "user", str(turngate_program))
    of_user, of_project = findings(diagnose("claude", project))
    assert of_user == (
        Finding(
            "will run, but",
            "warning",
            "Turngate runs twice: it is in .claude/settings.json too",
            "`turngate uninstall claude --user` removes one of them",
        ),
    )
    assert of_project[0].hint == "`turngate uninstall claude --project` removes one of them"


@pytest.mark.parametrize(
    ("name", "outlook", "condition"),
    [
        ("copilot", "will run, but", ""),
        ("cursor", "will run", " if `Third-party skills` is switched on"),  # only then, so nothing is wrong
    ],
)
def test_a_file_of_claude_code_that_another_host_reads_too_is_the_second_line(
    name: str, outlook: str, condition: str, home: Path, project: Path
) -> None:
    install(name, home, project)
    install("claude", home, project)
    trust(name, home, project)
    hooks = [hook for hook in diagnose(name, project).hooks if hook.hook.our_event == "Stop"]
    assert [hook.outlook for hook in hooks] == [outlook, outlook]
    file = HOSTS[name].files["project"]
    title, own = HOSTS[name].title, f"`turngate uninstall {name} --project` removes one of them"
    of_claude = f"`turngate uninstall {name}` removes that of {title}: this file covers both"
    found = {(each.message, each.hint) for hook in hooks for each in hook.findings}
    assert {
        (f"Turngate runs twice{condition}: it is in .claude/settings.json too", own),
        (f"Turngate runs twice{condition}: it is in {file} too", of_claude),
    } <= found


def test_the_line_of_claude_code_is_enough_for_copilot(home: Path, project: Path) -> None:
    install("claude", home, project)
    trust("copilot", home, project)
    found = diagnose("copilot", project)
    assert (found.runs_turngate, found.fails_to_hold) == (True, False)


# The timeout


SLOW = {
    "hooks": {"Stop": [{"hooks": [{"type": "command", "id": "tests", "command": "make", "timeout": 300}]}]}
}


@pytest.mark.parametrize(
    ("name", "timeout", "finding"),
    [
        (
            "gemini",
            600,
            Finding(
                "will NOT hold",
                "error",
                "timeout: is 600, which Gemini CLI reads as milliseconds: it is ended before it answers",
                'write "timeout": 600000',
            ),
        ),
        (
            "claude",
            600_000,
            Finding(
                "will run, but",
                "warning",
                "timeout: is 600000, which is read as seconds",
                'write "timeout": 600',
            ),
        ),
        (
            "codex",
            "600",
            Finding(
                "will run, but",
                "warning",
                "timeout: is '600', expected a positive number",
                'write "timeout": 600',
            ),
        ),
        (
            "qwen",
            None,
            Finding(
                "will run, but",
                "warning",
                'Qwen Code gives up on a hook after 60 s, and the hook "tests" may take 300 s: '
                "Turngate then answers after 55 s that it is not enforced",
                "make the check faster, or run it in CI",
            ),
        ),
        (
            "droid",
            30,
            Finding(
                "will run, but",
                "warning",
                'its timeout is 30 s, and the hook "tests" may take 300 s: '
                "Factory droid then ends it, and the agent may stop",
                'write "timeout": 600',
            ),
        ),
    ],
)
def test_a_wrong_timeout_is_named(
    name: str, timeout: object, finding: Finding, home: Path, project: Path
) -> None:
    write_settings(project, "turngate", SLOW)
    install(name, home, project, timeout=timeout)
    trust(name, home, project)
    found = findings(diagnose(name, project))
    assert [each for each in found[0] if each.message.endswith(finding.message[-20:])] == [finding]


@pytest.mark.parametrize(("name", "timeout"), [("gemini", 600_000), ("codex", None), ("claude", 300)])
def test_a_timeout_that_is_long_enough_is_not_named(
    name: str, timeout: object, home: Path, project: Path
) -> None:
    write_settings(project, "turngate", SLOW)
    install(name, home, project, timeout=timeout)
    trust(name, home, project)
    assert findings(diagnose(name, project)) == [()]


# The file


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_cannot_be_parsed_is_named(name: str, home: Path, project: Path) -> None:
    level: Level = "project" if "project" in HOSTS[name].files else "user"
    bad = "const COMMAND = [" if name == "opencode" else '{"hooks": {'
    install(name, home, project, level).write_text(bad)
    title = HOSTS[name].title
    [problem] = diagnose(name, project).problems
    assert problem.file == HOSTS[name].files[level]
    assert problem.message.startswith("cannot be parsed: ")
    assert problem.message.endswith(f", so {title} runs no hook in it")


def test_a_file_that_is_too_large_is_named_with_the_limit(home: Path, project: Path) -> None:
    install("claude", home, project).write_text(" " * (MAX_FILE_BYTES + 1))
    [problem] = diagnose("claude", project).problems
    assert problem.message == "is larger than 8 MiB, so Claude Code runs no hook in it"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 1}, "it accepts only `description` and `hooks`, and there is `version`"),
        ({"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}, "Stop[0].hooks[0] has no `type`"),
    ],
)
def test_codex_rejects_a_file_with_other_keys(
    change: Mapping[str, Any], why: str, home: Path, project: Path
) -> None:
    path = install("codex", home, project)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    trust("codex", home, project)
    [(first, *_)] = findings(diagnose("codex", project))
    assert first == Finding("will NOT run", "error", f"Codex rejects .codex/hooks.json: {why}")


def test_codex_accepts_no_comments(home: Path, project: Path) -> None:
    path = install("codex", home, project)
    trust("codex", home, project)
    path.write_text(f"// ours\n{path.read_text()}")
    why = "it accepts no comments and no trailing commas"
    [(first, *_)] = findings(diagnose("codex", project))
    assert first == Finding("will NOT run", "error", f"Codex rejects .codex/hooks.json: {why}")


def test_claude_code_accepts_no_comments(home: Path, project: Path) -> None:
    path = install("claude", home, project)
    path.write_text(f"// ours\n{path.read_text()}")
    why = "it accepts no comments and no trailing commas"
    [(first, *_)] = findings(diagnose("claude", project))
    assert first == Finding("will NOT run", "error", f"Claude Code rejects .claude/settings.json: {why}")


@pytest.mark.parametrize("name", ["gemini", "qwen"])
def test_comments_are_read_where_the_host_reads_them(name: str, home: Path, project: Path) -> None:
    path = install(name, home, project)
    path.write_text(f"// ours\n{path.read_text()}")
    trust(name, home, project)
    assert findings(diagnose(name, project)) == [()]


def test_copilot_rejects_a_file_of_claude_code_with_a_prompt_hook(home: Path, project: Path) -> None:
    path = install("claude", home, project)
    value = json.loads(path.read_text())
    value["hooks"]["Stop"].append({"hooks": [{"type": "prompt", "prompt": "Is it done?"}]})
    path.write_text(json.dumps(value))
    trust("copilot", home, project)
    line, prompt = findings(diagnose("copilot", project))
    message = (
        "Copilot CLI rejects .claude/settings.json: Stop[1].hooks[0] has the type 'prompt', "
        "which it does not accept at a stop"
    )
    assert line == (Finding("will NOT run", "error", message),)
    assert prompt[0] == line[0]
    assert findings(diagnose("claude", project)) == [(), ()]


def test_claude_code_rejects_a_file_with_a_wrong_type(home: Path, project: Path) -> None:
    path = install("claude", home, project)
    path.write_text(json.dumps({**json.loads(path.read_text()), "permissions": "all"}))
    message = 'Claude Code rejects .claude/settings.json: permissions is "all"'
    assert findings(diagnose("claude", project)) == [(Finding("will NOT run", "error", message),)]


@pytest.mark.parametrize("is_nested", [True, False])
def test_the_line_in_the_file_of_hooks_of_droid_is_found(is_nested: bool, project: Path) -> None:
    events = {"Stop": [{"hooks": [{"type": "command", "command": "turngate hook", "timeout": 600}]}]}
    (project / ".factory").mkdir()
    (project / ".factory" / "hooks.json").write_text(json.dumps({"hooks": events} if is_nested else events))
    found = diagnose("droid", project)
    assert (findings(found), found.runs_turngate) == ([()], True)


def test_droid_does_not_read_settings_beside_a_file_of_hooks(home: Path, project: Path) -> None:
    install("droid", home, project)
    (project / ".factory" / "hooks.json").write_text('{"hooks": {}}')
    message = "Factory droid does not read the hooks of .factory/settings.json beside a hooks.json"
    assert findings(diagnose("droid", project)) == [
        (
            Finding(
                "will NOT run",
                "error",
                message,
                "add the line `turngate hook` in droid with `/hooks`, or move the hooks to settings.json and remove hooks.json",
            ),
        )
    ]


@pytest.mark.parametrize(
    ("name", "file", "content", "setting"),
    [
        ("claude", ".claude/settings.local.json", '{"disableAllHooks": true}', "disableAllHooks"),
        ("qwen", "~/.qwen/settings.json", '{"disableAllHooks": true}', "disableAllHooks"),
        ("gemini", "~/.gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled"),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks"),
    ],
)
def test_hooks_that_are_switched_off_are_named(
    name: str, file: str, content: str, setting: str, home: Path, project: Path
) -> None:
    install(name, home, project)
    path = home / file[2:] if file.startswith("~") else project / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    trust(name, home, project)
    hint = f"remove {setting} from {file}"
    assert findings(diagnose(name, project)) == [
        (Finding("will NOT run", "error", f"{setting} in {file} switches it off", hint),)
    ]


def test_a_command_that_gemini_has_switched_off_is_named(home: Path, project: Path) -> None:
    path = install("gemini", home, project)
    value = json.loads(path.read_text())
    command = value["hooks"]["AfterAgent"][0]["hooks"][0]["command"]
    path.write_text(json.dumps({**value, "hooksConfig": {"disabled": [command]}}))
    trust("gemini", home, project)
    message = "hooksConfig.disabled in .gemini/settings.json switches it off"
    hint = "remove hooksConfig.disabled from .gemini/settings.json"
    assert findings(diagnose("gemini", project)) == [(Finding("will NOT run", "error", message, hint),)]


@pytest.mark.parametrize(
    ("name", "event", "hint"),
    [
        ("gemini", "Stop", "write AfterAgent"),
        ("gemini", "SubagentStop", "Gemini CLI has no event for it"),
        ("codex", "AfterAgent", "write Stop"),
        ("cursor", "Stop", "write stop"),
    ],
)
def test_an_event_of_another_host_is_named(
    name: str, event: str, hint: str, home: Path, project: Path
) -> None:
    path = install(name, home, project)
    value = json.loads(path.read_text())
    value["hooks"][event] = [{"hooks": [{"type": "command", "command": "make"}]}]
    path.write_text(json.dumps(value))
    title, file = HOSTS[name].title, HOSTS[name].files["project"]
    message = f"is not an event of {title}: its hooks never run"
    assert diagnose(name, project).problems == (Problem(file=file, event=event, message=message, hint=hint),)


def test_copilot_has_two_names_for_an_event(home: Path, project: Path) -> None:
    trust("copilot", home, project)
    entry = {"type": "command", "bash": "turngate hook", "timeoutSec": 600}
    names = ("agentStop", "subagentStop", "sessionStart", "subagentStart")
    value = {"version": 1, "hooks": {name: [entry] for name in names}}
    path = project / ".github" / "hooks" / "own.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(value))
    found = diagnose("copilot", project)
    assert (found.runs_turngate, found.has_problem) == (True, False)


# Trust


def test_a_hook_that_is_not_trusted_in_codex_is_skipped(home: Path, project: Path) -> None:
    install("codex", home, project)
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f'[projects."{project}"]\ntrust_level = "trusted"\n')
    message = "it is not trusted in Codex, which skips it without a message"
    assert findings(diagnose("codex", project)) == [(Finding("will NOT run", "error", message, REVIEW),)]


def test_what_only_codex_knows_is_named(home: Path, project: Path) -> None:
    install("codex", home, project)
    trust_in_codex(home, project)
    found = diagnose("codex", project)
    text = "Codex skips a hook that has changed since you trusted it, and only Codex knows"
    assert found.facts[-1] == Fact("trust", text, hint="open `/hooks` in Codex after a change")
    assert (findings(found), found.has_problem) == ([()], False)


def test_a_project_that_codex_does_not_trust_has_no_hooks(home: Path, project: Path) -> None:
    install("codex", home, project)
    trust_in_codex(home, project)
    path = home / ".codex" / "config.toml"
    path.write_text(path.read_text().replace('"trusted"', '"untrusted"', 1))
    message = "Codex does not trust this project, and reads none of its hooks"
    hint = "start `codex` in the project and trust it"
    assert findings(diagnose("codex", project)) == [(Finding("will NOT run", "error", message, hint),)]


def test_trust_in_codex_that_cannot_be_read_is_not_known(
    home: Path, project: Path, turngate_program: Path
) -> None:
    install("codex", home, project, "user", str(turngate_program))
    (home / ".codex" / "config.toml").write_text("not TOML")
    found = diagnose("codex", project)
    message = "whether Codex trusts it is not known"
    assert findings(found) == [(Finding("will run", "note", message, REVIEW),)]


@pytest.mark.parametrize(
    ("name", "level", "trust_level", "message"),
    [
        ("gemini", "project", None, "Gemini CLI does not trust this folder yet"),
        ("gemini", "user", "DO_NOT_TRUST", "Gemini CLI does not trust this folder"),
        ("qwen", "project", "DO_NOT_TRUST", "Qwen Code does not trust this folder"),
        ("qwen", "user", "DO_NOT_TRUST", None),
    ],
)
def test_a_folder_that_is_not_trusted_has_no_hooks(
    name: str,
    level: Level,
    trust_level: str | None,
    message: str | None,
    home: Path,
    project: Path,
    turngate_program: Path,
) -> None:
    path = install(name, home, project, level, str(turngate_program))
    if trust_level:
        trust_folder(name, home, project, trust_level)
    user = path_of(name, "user", home, project)
    user.parent.mkdir(exist_ok=True)
    value = json.loads(path.read_text()) if level == "user" else {}
    user.write_text(json.dumps({**value, "security": {"folderTrust": {"enabled": True}}}))
    hint = f"start `{name}` in it and trust it"
    expected = (Finding("will NOT run", "error", message, hint),) if message else ()
    assert findings(diagnose(name, project)) == [expected]


def test_copilot_runs_hooks_of_a_project_only_in_a_trusted_folder(home: Path, project: Path) -> None:
    install("copilot", home, project)
    hint = "start `copilot` in it and trust it"
    message = "Copilot CLI does not trust this folder yet"
    for config in ("{}", '{"trustedFolders": "/"}'):
        write_settings(home, "copilot", config, "config.json")
        assert findings(diagnose("copilot", project)) == [(Finding("will NOT run", "error", message, hint),)]
    config = f'// This file is managed automatically.\n{{"trustedFolders": ["{project}"]}}'
    write_settings(home, "copilot", config, "config.json")
    assert findings(diagnose("copilot", project)) == [()]


def test_qwen_code_does_not_ask_for_trust_unless_it_is_switched_on(home: Path, project: Path) -> None:
    install("qwen", home, project)
    assert findings(diagnose("qwen", project)) == [()]


# Other stop hooks


@pytest.mark.parametrize(
    ("name", "hook", "finding"),
    [
        (
            "codex",
            {"type": "agent", "prompt": "Check it."},
            Finding(
                "will NOT run",
                "error",
                "has the type 'agent', which Codex does not run at a stop",
                "Codex runs command, mcp_tool",
            ),
        ),
        (
            "gemini",
            {"type": "prompt", "prompt": "Is it done?"},
            Finding(
                "will NOT run",
                "error",
                "has the type 'prompt', which Gemini CLI does not run at a stop",
                "Gemini CLI runs command",
            ),
        ),
        (
            "gemini",
            {"command": "make"},
            Finding(
                "will NOT run", "error", "has no `type`, so Gemini CLI rejects it", 'add "type": "command"'
            ),
        ),
        (
            "claude",
            {"type": "command", "command": "make >&2 || exit 2", "async": True},
            Finding(
                "will NOT hold",
                "error",
                "`async` is true, and Claude Code does not wait for the answer of such a hook",
                "remove `async`",
            ),
        ),
        (
            "codex",
            {"type": "command", "command": "./specific.sh"},
            Finding(
                "will NOT hold",
                "error",
                "prints `hookSpecificOutput`, and Codex rejects a stop answer with it, also its block",
                "print only `decision` and `reason`",
            ),
        ),
        (
            "qwen",
            {"type": "command", "command": """echo '{"continue": false, "stopReason": "enough"}'"""},
            Finding(
                "will run, but",
                "warning",
                "prints `continue: false`, and Qwen Code continues the turn then",
                "print nothing to let the agent stop",
            ),
        ),
        (
            "claude",
            {"type": "command", "command": "turngate fire Stop"},
            Finding(
                "will NOT hold",
                "error",
                "`turngate fire` answers with exit code 10, which no agent program takes for a block",
                "`turngate install claude` adds `turngate hook`",
            ),
        ),
        (
            "codex",
            {"type": "command", "command": "./no-such-check.sh"},
            Finding(
                "will NOT run",
                "error",
                "./no-such-check.sh does not exist, so the hook fails at every run",
            ),
        ),
        ("qwen", {"type": "command", "command": "make >&2 || exit 2"}, None),
        ("codex", {"type": "command", "command": "make >&2 || exit 2"}, None),
        ("qwen", {"type": "prompt", "prompt": "Is it done?"}, None),
    ],
)
def test_a_stop_hook_that_cannot_block_is_named(
    name: str, hook: dict[str, Any], finding: Finding | None, home: Path, project: Path
) -> None:
    script = project / "specific.sh"
    more = '"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"y"}'
    script.write_text(f'#!/bin/sh\ntest -s NOTES.md || echo \'{{"decision":"block","reason":"x",{more}}}\'\n')
    script.chmod(0o755)
    path = install(name, home, project)
    value = json.loads(path.read_text())
    value["hooks"][HOSTS[name].events["Stop"]].append({"hooks": [hook]})
    path.write_text(json.dumps(value))
    trust(name, home, project)
    [*_, last] = findings(diagnose(name, project))
    assert last == ((finding,) if finding else ())


EXIT_2 = (
    Finding(
        "will NOT hold",
        "error",
        "blocks only with exit code 2, which {} takes for a warning",
        'print {{"decision": "block", "reason": …}} and exit with 0, or make it a gate of `.turngate`',
    ),
)


@pytest.mark.parametrize("name", ["copilot", "cursor"])
@pytest.mark.parametrize(
    ("command", "is_lost"),
    [
        ("make >&2 || exit 2", True),
        ("$CLAUDE_PROJECT_DIR/check.sh", True),
        ("python3 check.py", True),
        ("turngate gate --exit-code -- make", True),
        ("""make || echo '{"decision":"block","reason":"make fails"}'""", False),
        ("make", False),
    ],
)
def test_exit_code_2_does_not_block_where_the_host_ignores_it(
    name: str, command: str, is_lost: bool, home: Path, project: Path
) -> None:
    trust(name, home, project)
    (project / "check.sh").write_text("#!/bin/sh\nmake >&2 || exit 2\n")
    (project / "check.py").write_text("import sys\nsys.exit(2)\n")
    write_settings(project, "claude", stop_hooks(command))
    [found] = findings(diagnose(name, project))
    title = HOSTS[name].title
    assert [each.message for each in found if each.severity == "error"] == (
        [EXIT_2[0].message.format(title)] if is_lost else []
    )


# Our own side


def test_who_runs_the_hooks_of_claude_is_said(project: Path) -> None:
    write_settings(project, "claude", stop_hooks("make >&2 || exit 2"))
    assert diagnose("claude", project).facts[-1] == Fact(
        "in .claude", "1 stop hook, which Claude Code runs itself; `turngate hook` does not"
    )
    assert diagnose("codex", project).facts[-1] == Fact(
        "in .claude",
        "1 stop hook, which neither Codex nor `turngate hook` runs",
        hint="put what should run here too in `.turngate/settings.json`",
    )


def test_a_limit_above_that_of_the_host_is_named(project: Path) -> None:
    write_settings(project, "turngate", {"turngate": {"limit": 10}})
    text = "10, but Copilot CLI itself ends a turn after 8 continuations, without Turngate's message"
    assert Fact("limit", text, True, "lower `limit` to 8") in diagnose("copilot", project).facts
    assert [fact.name for fact in diagnose("codex", project).facts] == ["Codex", "installed"]


# The command


def test_the_command_says_that_a_host_runs_turngate(
    home: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("claude", home, project)
    write_settings(project, "turngate", stop_hooks("make >&2 || exit 2"))
    assert main(["hooks", "approve", "--all", "--yes", "--project", str(project)]) == 0
    capsys.readouterr()
    assert main(["doctor", "--host", "claude", "--project", str(project)]) == 0
    places = ", ".join(f"{event}[0].hooks[0]" for event in HOSTS["claude"].events)
    not_read = "an agent that starts in a subfolder or a new worktree may not read it"
    assert capsys.readouterr().out.splitlines()[4:] == [
        "Claude Code: `claude` is not on PATH",
        "  → the rest applies once it is installed",
        f"installed: in .claude/settings.json (project); {not_read}",
        "  → `turngate install claude` writes it to your own settings, which apply everywhere",
        ".claude/settings.json of Claude Code",
        f'  will run       {places} "turngate hook"',
        ".turngate/settings.json",
        '  will run       Stop[0].hooks[0] "make >&2 || exit 2"',
        "Claude Code asks Turngate at every stop",
        "1 hook, it will run",
    ]


def test_the_command_answers_with_13_if_the_host_does_not_run_turngate(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--host", "gemini", "--project", str(project)]) == 13
    assert "Gemini CLI does NOT ask Turngate" in capsys.readouterr().out


def test_hooks_that_are_never_asked_are_named(
    home: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("gemini", home, project)
    trust("gemini", home, project)
    hooks = {
        **stop_hooks("true", event="SubagentStop")["hooks"],
        **stop_hooks("true", event="PreToolUse")["hooks"],
    }
    write_settings(project, "turngate", {"hooks": hooks})
    assert main(["hooks", "approve", "--all", "--yes", "--project", str(project)]) == 0
    capsys.readouterr()
    assert main(["doctor", "--host", "gemini", "--json", "--project", str(project)]) == 13
    report = json.loads(capsys.readouterr().out)
    assert [(hook["event"], hook["findings"][0]["message"]) for hook in report["hooks"]] == [
        ("SubagentStop", "Gemini CLI has no event for SubagentStop, so it is never asked"),
        ("PreToolUse", "`turngate hook` asks only hooks at Stop, SubagentStop, TaskCompleted, TeammateIdle"),
    ]
    assert report["host"]["runs_turngate"] is True
