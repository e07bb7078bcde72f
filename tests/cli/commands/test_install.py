"""`turngate install` and `turngate uninstall` as a person uses them: real processes, real files, a real terminal."""

import fcntl
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import cli
from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import TURNGATE, start_turngate
from tests.support.terminal import CTRL_C, CTRL_D, Terminal
from turngate.core.constants import IN_HOOK, IN_TOOL
from turngate.hosts.all_hosts import AGENT_MARKERS, HOSTS
from turngate.hosts.host import Level
from turngate.hosts.install.hook_command import entries_for, this_program
from turngate.hosts.install.settings_file import hook_lines

PROGRAM = this_program("", sys.executable)
TEAM = """\
{
  "model": "opus", // not sonnet
  "hooks": {"Stop": []}
}
"""
NOTHING = "nothing was changed"
NO_HOOKS = "→ this project has no hooks for a stop yet: `turngate init` writes gates for its checks\n"
ALWAYS = ("turngate init", "turngate doctor")  # what the last steps name
CHECK = "→ `turngate doctor --host {}` says whether the line will run, and block\n"
NOT_A_TERMINAL = "turngate: there is no terminal to ask at; add --yes to write what is printed above\n"


REJECTED = (
    "! Claude Code rejects .claude/settings.json as it is, and runs no hook in it: "
    "it accepts no comments and no trailing commas\n"
)


def turngate(*words: str) -> tuple[int, str, str]:
    """Run the command, without two warnings, that the tests run in a temporary folder and of the comment in TEAM.

    And without the hint that a file of a project is not read everywhere.
    """
    code, out, err = cli.turngate(*words)
    out = "".join(line for line in out.splitlines(keepends=True) if "may not read this file" not in line)
    lines = err.replace(REJECTED, "").splitlines(keepends=True)
    return code, out, "".join(line for line in lines if not line.startswith(f"! {PROGRAM} is in a cache"))


def test_a_file_that_the_host_rejects_is_named_before_the_line_is_written(settings: Path) -> None:
    code, _, err = cli.turngate("install", "claude", "--project", "--yes")
    assert (code, REJECTED in err) == (0, True)


@pytest.fixture(autouse=True)
def _project(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start in a git repository, with the same programs on every machine."""
    (project / ".git").mkdir()
    script(tmp_path / "bin" / "turngate", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.chdir(project)


@pytest.fixture
def settings(project: Path) -> Path:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(TEAM)
    return path


def hooks_of(path: Path) -> Any:
    return json.loads(path.read_text())["hooks"]


def project_hooks(name: str) -> dict[str, Any]:
    return {event: [entry] for event, entry in entries_for(HOSTS[name], "project", PROGRAM).items()}


def user_hooks(name: str) -> dict[str, Any]:
    return {event: [entry] for event, entry in entries_for(HOSTS[name], "user", PROGRAM).items()}


def last_lines(text: str) -> str:
    """Return what follows the difference."""
    lines = text.splitlines(True)[1:]  # without the summary
    return "".join(line for line in lines if not line.startswith(("+", "-", "@", " ")))


def test_warnings_stand_between_the_difference_and_the_question(settings: Path) -> None:
    with Terminal(
        "install", "claude", "--project", cwd=settings.parents[1], env={"NO_COLOR": "1"}
    ) as terminal:
        terminal.expect(f"{REJECTED}write it to .claude/settings.json? [y]es, [n]o ")
        terminal.type("y")
        assert terminal.end() == 0


@pytest.mark.parametrize(
    ("answer", "code", "end"), [("y", 0, "installed in "), ("n", 1, "nothing was written")]
)
def test_where_stdin_is_not_a_terminal_a_line_of_it_answers(
    home: Path, answer: str, code: int, end: str
) -> None:
    done = cli.turngate("install", "claude", stdin=f"{answer}\n")
    asked = "write it to ~/.claude/settings.json? [y]es, [n]o \n"
    assert (done[0], done[1].partition(asked)[2].startswith(end)) == (code, True)
    assert (home / ".claude" / "settings.json").exists() is (answer == "y")


# Write


@pytest.mark.parametrize("name", HOSTS)
def test_the_line_of_every_host_is_written_and_removed_for_both_levels(
    name: str, project: Path, home: Path
) -> None:
    host = HOSTS[name]
    levels: dict[Level, tuple[Path, dict[str, Any]]] = {
        "user": (home, user_hooks(name)),
        "project": (project, project_hooks(name)),
    }
    for level in host.files:
        folder, hooks = levels[level]
        shown = host.files[level]
        path = folder / shown.removeprefix("~/")
        before = sorted(folder.rglob("*"))
        step = host.steps_by_hand.get(level)
        steps = f"→ {step}\n" if step else ""
        code, out, err = turngate("install", name, f"--{level}", "--yes")
        assert (code, last_lines(out), err) == (
            0,
            f"installed in {shown}\n{steps}{NO_HOOKS}{CHECK.format(name)}",
            "",
        )
        if host.file_format:
            assert [*hook_lines(path.read_text(), host.file_format)] == [*host.events.values()]
        else:
            assert json.loads(path.read_text()) == {**host.new_file, "hooks": hooks}
        code, out, err = turngate("uninstall", name, f"--{level}", "--yes")
        assert (code, last_lines(out), err) == (0, f"removed {shown}\n", "")
        assert [each for each in sorted(folder.rglob("*")) if "state" not in each.parts] == before


def test_comments_and_order_stay_and_the_difference_is_shown_after_a_summary(settings: Path) -> None:
    code, out, err = turngate("install", "claude", "--project", "--yes")
    written = settings.read_text()
    assert (code, err) == (0, "")
    assert out.startswith(
        """\
Claude Code: `turngate hook` at Stop, SubagentStop, SessionStart, SubagentStart, TaskCompleted, TeammateIdle, in .claude/settings.json
--- .claude/settings.json
+++ .claude/settings.json
@@ -1,4 +1,15 @@
 {
   "model": "opus", // not sonnet
-  "hooks": {"Stop": []}
+  "hooks": {"Stop": [
+    {
+      "hooks": [
+        {
+          "type": "command",
"""
    )
    assert written.startswith('{\n  "model": "opus", // not sonnet\n  "hooks": {"Stop": [\n')
    assert turngate("uninstall", "claude", "--project", "--yes")[0] == 0
    assert settings.read_text() == TEAM


def test_kimi_has_no_settings_of_a_project(project: Path) -> None:
    said = "turngate: Kimi Code has no settings of a project; leave out --project\n"
    assert turngate("install", "kimi", "--project", "--yes") == (64, "", said)


def test_a_plugin_of_another_author_is_not_replaced(project: Path) -> None:
    path = project / ".opencode" / "plugins" / "turngate.js"
    path.parent.mkdir(parents=True)
    path.write_text("export const Mine = async () => ({})\n")
    code, out, err = turngate("install", "opencode", "--project", "--yes")
    assert (code, out, path.read_text()) == (64, "", "export const Mine = async () => ({})\n")
    assert "it is another plugin with the name of this one; rename it" in err


SETTINGS_FILES = Path(__file__).parents[2] / "hosts" / "settings_files"


@pytest.mark.parametrize(
    "name",
    [
        "claude/windows_bom",
        "claude/empty_file",
        "claude/mixed_line_ends",
        "codex/stop_async",
        "gemini/windows_no_newline",
        "qwen/three_spaces",
        "copilot/camel_case_events",
        "cursor/prompt_tabs",
        "droid/typical",
    ],
)
def test_an_odd_file_is_restored_to_the_byte(name: str, project: Path, home: Path) -> None:
    host = HOSTS[name.partition("/")[0]]
    before = (SETTINGS_FILES / f"{name}.json").read_bytes()
    for level, folder in (("user", home), ("project", project)):
        path = folder / host.files[level].removeprefix("~/")  # type: ignore[index]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(before)
        path.chmod(0o640)
        codes = [turngate("install", host.name, f"--{level}", "--yes")[0] for _ in range(2)]
        assert path.read_bytes() != before
        assert [*codes, turngate("uninstall", host.name, f"--{level}", "--yes")[0]] == [0, 0, 0]
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (before, 0o640)


def test_a_second_install_writes_nothing(settings: Path) -> None:
    turngate("install", "claude", "--project", "--yes")
    before = settings.stat()
    said = f"already installed in .claude/settings.json\n{NO_HOOKS}{CHECK.format('claude')}"
    assert turngate("install", "claude", "--project") == (0, said, "")
    assert (settings.stat().st_ino, settings.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_older_line_is_updated_and_the_file_is_restored_afterwards(home: Path) -> None:
    path = home / ".codex" / "hooks.json"
    path.parent.mkdir()
    path.write_text('{"hooks": {}}\n')
    turngate("install", "codex", "--user", "--yes")
    path.write_text(path.read_text().replace(f"{PROGRAM} hook", "/old/turngate hook").replace("600", "60"))
    assert turngate("install", "codex", "--user", "--yes")[0] == 0
    assert hooks_of(path) == user_hooks("codex")
    assert turngate("uninstall", "codex", "--user", "--yes")[0] == 0
    assert path.read_text() == '{"hooks": {}}\n'


def test_a_dry_run_writes_nothing(settings: Path, state: Path) -> None:
    code, out, err = turngate("install", "claude", "--project", "--dry-run")
    assert (code, last_lines(out), err) == (0, "nothing was written (--dry-run)\n", "")
    assert (settings.read_text(), (state / "installs").exists()) == (TEAM, False)


def test_without_a_terminal_it_says_how_to_write(settings: Path) -> None:
    code, out, err = turngate("install", "claude", "--project")
    assert (code, out != "", err, settings.read_text()) == (64, True, NOT_A_TERMINAL, TEAM)


def test_what_was_there_before_is_kept_privately(settings: Path, state: Path) -> None:
    turngate("install", "claude", "--project", "--yes")
    [record] = (state / "installs").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert json.loads(record.read_text())["before"] == TEAM
    turngate("uninstall", "claude", "--project", "--yes")
    assert list((state / "installs").iterdir()) == []


def test_a_file_that_was_edited_since_keeps_the_edit(settings: Path) -> None:
    turngate("install", "claude", "--project", "--yes")
    settings.write_text(settings.read_text().replace("opus", "haiku"))
    assert turngate("uninstall", "claude", "--project", "--yes")[0] == 0
    assert settings.read_text() == TEAM.replace("opus", "haiku")


def test_a_folder_with_other_files_stays(project: Path) -> None:
    turngate("install", "claude", "--project", "--yes")
    (project / ".claude" / "agents").mkdir()
    turngate("uninstall", "claude", "--project", "--yes")
    assert [path.name for path in (project / ".claude").iterdir()] == ["agents"]


def test_mode_and_link_stay(settings: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    settings.rename(target)
    target.chmod(0o640)
    settings.symlink_to(target)
    code, out, _ = turngate("install", "claude", "--project", "--yes")
    assert (code, out.splitlines()[1]) == (0, f".claude/settings.json is a link to {target}")
    assert (settings.is_symlink(), stat.S_IMODE(target.stat().st_mode)) == (True, 0o640)
    turngate("uninstall", "claude", "--project", "--yes")
    assert (settings.is_symlink(), target.read_text()) == (True, TEAM)


# Ask


def test_it_asks_at_a_terminal(settings: Path, project: Path) -> None:
    with Terminal("install", "claude", "--project", cwd=project, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("write it to .claude/settings.json? [y]es, [n]o ")
        assert settings.read_text() == TEAM
        terminal.say("y")
        assert terminal.end() == 0
        terminal.expect("installed in .claude/settings.json")
    with Terminal("uninstall", "claude", "--project", cwd=project, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("remove it from .claude/settings.json? [y]es, [n]o ")
        terminal.say("y")
        assert terminal.end() == 0
    assert settings.read_text() == TEAM


@pytest.mark.parametrize(("answer", "code"), [("n\r", 1), ("\r", 1), (CTRL_D, 1), (CTRL_C, 130)])
def test_any_other_answer_writes_nothing(settings: Path, project: Path, answer: str, code: int) -> None:
    with Terminal("install", "claude", "--project", cwd=project, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("write it to .claude/settings.json? [y]es, [n]o ")
        terminal.type(answer)
        assert terminal.end() == code
    assert settings.read_text() == TEAM


def test_the_difference_is_colored_at_a_terminal(settings: Path, project: Path) -> None:
    with Terminal("install", "claude", "--project", "--dry-run", cwd=project) as terminal:
        terminal.expect("nothing was written (--dry-run)")
        assert terminal.end() == 0
        assert b'\x1b[32m+  "hooks": {"Stop": [' in terminal.raw


def test_a_file_that_changes_while_it_asks_is_kept(settings: Path, project: Path) -> None:
    with Terminal("install", "claude", "--project", cwd=project, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("write it to .claude/settings.json? ")
        settings.write_text("{}")
        terminal.say("y")
        assert terminal.end() == 64
        terminal.expect(f"{settings} has changed after it was read; {NOTHING}, run the command again")
    assert settings.read_text() == "{}"


# Which file


def test_outside_of_a_project_the_settings_are_the_users(
    tmp_path: Path, home: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = turngate("install", "qwen", "--yes")
    assert (code, err) == (0, "")
    assert last_lines(out).startswith("installed in ~/.qwen/settings.json\n")
    steps = "→ in each project: `turngate init` writes gates for its checks\n"
    assert last_lines(out).endswith(steps + CHECK.format("qwen"))
    assert hooks_of(home / ".qwen" / "settings.json") == user_hooks("qwen")


def test_below_a_project_the_file_is_that_of_the_git_root(project: Path, monkeypatch: Any) -> None:
    (project / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(project / "src" / "deep")
    turngate("install", "claude", "--project", "--yes")
    assert (project / ".claude" / "settings.json").exists()


def test_the_nearest_folder_with_settings_of_turngate_is_the_project(project: Path, monkeypatch: Any) -> None:
    (project / "api" / ".turngate").mkdir(parents=True)
    monkeypatch.chdir(project / "api")
    turngate("install", "claude", "--project", "--yes")
    assert ((project / "api" / ".claude").exists(), (project / ".claude").exists()) == (True, False)


def test_the_home_folder_is_not_a_project(home: Path, monkeypatch: Any) -> None:
    (home / ".git").mkdir()
    monkeypatch.chdir(home)
    code, out, err = turngate("install", "claude", "--project", "--yes")
    hint = "change to a project, or use --user for Claude Code everywhere"
    assert (code, out, err) == (64, "", f"turngate: this is your home folder, not a project; {hint}\n")
    assert "\n--- /dev/null\n+++ ~/.claude/settings.json\n" in turngate("install", "claude", "--dry-run")[1]


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("qwen", "QWEN_HOME", "settings.json"),
    ],
)
def test_a_variable_of_the_host_moves_the_settings_of_the_user(
    name: str, variable: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "moved"))
    assert turngate("install", name, "--user", "--yes")[0] == 0
    assert hooks_of(tmp_path / "moved" / file) == user_hooks(name)


# What it says


def test_without_a_host_it_lists_where_the_line_is(home: Path) -> None:
    turngate("install", "claude", "--project", "--yes")
    turngate("install", "codex", "--user", "--yes")
    turngate("install", "codex", "--project", "--yes")
    listed = """\
claude    .claude/settings.json
codex     ~/.codex/hooks.json, .codex/hooks.json
gemini    -
qwen      -
copilot   -
opencode  -
kimi      -
cursor    -
droid     -
kiro      -
vscode    .claude/settings.json
→ `turngate install HOST` lets a host run Turngate, `turngate uninstall HOST` removes it
"""
    assert turngate("install") == (0, listed, "")


def test_an_unknown_host_gets_the_closest() -> None:
    code, out, err = turngate("install", "claud")
    assert (code, out) == (64, "")
    assert "claud is unknown" in err
    assert "did you mean claude?" in err


@pytest.mark.parametrize("words", [("--uninstall",), ("--user",)])
def test_a_host_is_needed_to_write(words: tuple[str, ...]) -> None:
    said = "turngate: which host? `turngate install` lists them\n"
    assert turngate("install", *words) == (64, "", said)


def twice(title: str, has: str, new: str, remedy: str = "") -> str:
    return f"! {title} already has the line in {has}: with one in {new} too, it runs Turngate twice at a stop{remedy}\n"


def test_both_levels_would_run_it_twice() -> None:
    turngate("install", "codex", "--user", "--yes")
    remedy = "; `turngate uninstall codex --user` removes that one"
    said = twice("Codex", "~/.codex/hooks.json", ".codex/hooks.json", remedy)
    assert turngate("install", "codex", "--project", "--yes")[2] == said
    code, out, _ = turngate("uninstall", "codex", "--project", "--yes")
    hint = "→ the line is also in ~/.codex/hooks.json: `turngate uninstall codex --user`\n"
    assert (code, last_lines(out)) == (0, f"removed .codex/hooks.json\n{hint}")


def test_a_host_that_reads_the_settings_of_another_one_is_covered() -> None:
    turngate("install", "claude", "--project", "--yes")
    said = twice("Copilot CLI", ".claude/settings.json", ".github/hooks/turngate.json")
    assert turngate("install", "copilot", "--project", "--yes")[2] == said
    turngate("uninstall", "claude", "--project", "--yes")
    remedy = "; `turngate uninstall copilot --project` removes that one"
    said = twice("Copilot CLI", ".github/hooks/turngate.json", ".claude/settings.json", remedy)
    assert turngate("install", "claude", "--project", "--yes")[2] == said


def test_the_settings_of_the_user_cover_only_the_hosts_that_read_them() -> None:
    """Copilot CLI does not read `~/.claude/settings.json`; Cursor does."""
    turngate("install", "claude", "--user", "--yes")
    assert turngate("install", "copilot", "--user", "--yes")[2] == ""
    said = twice("Cursor", "~/.claude/settings.json", "~/.cursor/hooks.json")
    assert turngate("install", "cursor", "--user", "--yes")[2] == said


def test_a_line_in_local_settings_counts_too(project: Path) -> None:
    write_settings(project, "claude", stop_hooks("turngate hook"), "settings.local.json")
    said = twice("Claude Code", ".claude/settings.local.json", ".claude/settings.json")
    assert turngate("install", "claude", "--project", "--yes")[2] == said


def test_where_turngate_is_not_on_path_the_line_of_a_project_does_not_find_it(monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    said = (
        "! turngate is not on PATH here, where the line in a project's settings looks for it, so stops would not be checked; put it there "
        "(`pipx install .` or `uv tool install .` in a clone of Turngate), or use `turngate install droid --user`\n"
    )
    assert turngate("install", "droid", "--project", "--dry-run")[2] == said


@pytest.mark.parametrize("level", ["user", "project"])
def test_where_droid_would_not_read_the_line_it_is_not_written(level: str, project: Path, home: Path) -> None:
    folder, shown = (home, "~/") if level == "user" else (project, "")
    (folder / ".factory").mkdir()
    (folder / ".factory" / "hooks.json").write_text("{}")
    said = (
        f"turngate: Factory droid does not read the hooks of {shown}.factory/settings.json beside a hooks.json; add the line "
        "`turngate hook` in droid with `/hooks`, or move the hooks to settings.json and remove hooks.json; nothing was changed\n"
    )
    assert turngate("install", "droid", f"--{level}", "--yes") == (64, "", said)
    assert [path.name for path in (folder / ".factory").iterdir()] == ["hooks.json"]


def test_a_line_that_droid_no_longer_reads_is_not_called_installed(project: Path) -> None:
    assert turngate("install", "droid", "--project", "--yes")[0] == 0
    (project / ".factory" / "hooks.json").write_text("{}")
    code, out, _ = turngate("install", "droid", "--project", "--yes")
    assert (code, out) == (64, "")
    assert turngate("uninstall", "droid", "--project", "--yes")[0] == 0


@pytest.mark.parametrize(
    ("name", "level", "steps"),
    [
        ("copilot", "user", []),
        (
            "copilot",
            "project",
            ["→ trust the folder when Copilot CLI asks: a project's hooks do not run until then"],
        ),
        ("qwen", "user", []),
        ("codex", "user", ["→ open Codex and trust the hook in `/hooks`: until then Codex skips it"]),
    ],
)
def test_the_steps_by_hand_are_those_of_the_level(name: str, level: str, steps: list[str]) -> None:
    out = turngate("install", name, f"--{level}", "--yes")[1]
    assert [line for line in out.splitlines() if line.startswith("→")][: -len(ALWAYS)] == steps


def test_a_program_that_may_disappear_is_written_with_a_warning_and_its_line_works(
    tmp_path: Path, home: Path
) -> None:
    """It is what `uvx turngate` does: the program is in a cache."""
    start = "import sys\nfrom turngate.cli.main import main\nsys.exit(main())\n"
    program = script(tmp_path / ".cache" / "it's a cache" / "turngate", f"#!{sys.executable}\n{start}")
    done = subprocess.run(
        [program, "install", "codex", "--user", "--yes"], capture_output=True, text=True, check=True
    )
    quoted = shlex.quote(str(program))
    hint = "install Turngate for good (`pipx install .` or `uv tool install .` in a clone of Turngate) and run this again"
    said = f"! {quoted} is in a cache or a temporary folder and may disappear; {hint}\n"
    [entry] = hooks_of(home / ".codex" / "hooks.json")["Stop"]
    line = entry["hooks"][0]["command"]
    assert (done.stderr, line) == (said, f"{quoted} hook")
    event = '{"hook_event_name": "Stop", "session_id": "1", "turn_id": "1"}'
    ran = subprocess.run(["/bin/sh", "-c", line], input=event, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert turngate("uninstall", "codex", "--user", "--yes")[0] == 0
    assert not (home / ".codex").exists()


def test_pending_hooks_are_named(project: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    write_settings(project, "turngate", stop_hooks("./check.sh"))
    pending = "→ 1 hook is pending, and skipped until a person approves: `turngate hooks approve --all`\n"
    out = turngate("install", "claude", "--project", "--yes")[1]
    assert last_lines(out) == f"installed in .claude/settings.json\n{pending}{CHECK.format('claude')}"


def test_what_is_not_installed_is_not_removed(settings: Path) -> None:
    assert turngate("uninstall", "claude", "--project") == (0, "not installed in .claude/settings.json\n", "")
    assert turngate("install", "claude", "--project", "--uninstall") == (
        0,
        "not installed in .claude/settings.json\n",
        "",
    )


# Files that cannot be used


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": }', "not JSON at line 1, column 7: expecting value; correct it there and run this again"),
        ('{"hooks": []}', '"hooks" is a list, expected an object'),
        ('{"hooks": {"Stop": {}}}', '"Stop" in "hooks" is an object, expected a list of hooks'),
        (
            '{"a": 1, "a": 2}',
            'line 1, column 10: the key "a" is there twice in one object; correct it there and run this again',
        ),
        ("[]", "it holds a list, expected an object"),
    ],
)
def test_settings_that_cannot_hold_hooks_are_kept(settings: Path, text: str, why: str) -> None:
    settings.write_text(text)
    said = f"turngate: .claude/settings.json: {why}; {NOTHING}\n"
    assert turngate("install", "claude", "--project", "--yes") == (64, "", said)
    assert settings.read_text() == text


def unusable(settings: Path, why: str) -> tuple[int, str, str]:
    return 64, "", f"turngate: {settings} {why}; {NOTHING}\n"


def test_a_folder_a_pipe_and_a_dangling_link_are_kept(settings: Path) -> None:
    settings.unlink()
    settings.mkdir()
    assert turngate("install", "claude", "--project", "--yes") == unusable(
        settings, "is a folder, expected a file"
    )
    settings.rmdir()
    os.mkfifo(settings)
    assert turngate("install", "claude", "--project", "--yes") == unusable(settings, "is not a regular file")
    settings.unlink()
    settings.symlink_to("gone.json")
    expected = unusable(settings, "is a link to a file that does not exist")
    assert turngate("install", "claude", "--project", "--yes") == expected


def test_a_large_file_and_one_that_is_not_utf8_are_kept(settings: Path) -> None:
    settings.write_bytes(b'{"a": "\xff"}')
    assert turngate("install", "claude", "--project", "--yes") == unusable(settings, "is not UTF-8 (byte 7)")
    settings.write_text('{"a": "' + "x" * (8 * 1024 * 1024) + '"}')
    assert turngate("install", "claude", "--project", "--yes") == unusable(settings, "is larger than 8 MiB")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_is_kept(settings: Path) -> None:
    os.chown(settings, 12345, -1)
    assert turngate("install", "claude", "--project", "--yes") == unusable(
        settings, "belongs to another user"
    )
    assert settings.read_text() == TEAM


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write to every file")
def test_a_file_and_a_folder_that_are_not_writable_are_kept(settings: Path) -> None:
    settings.chmod(0o400)
    assert turngate("install", "claude", "--project", "--yes") == unusable(settings, "is not writable")
    settings.chmod(0o600)
    settings.parent.chmod(0o500)
    try:
        code, _, err = turngate("install", "claude", "--project", "--yes")
    finally:
        settings.parent.chmod(0o700)
    said = f"turngate: .claude/settings.json cannot be written: Permission denied; {NOTHING}\n"
    assert (code, err, settings.read_text()) == (74, said, TEAM)


def limited(blocks: int, *words: str) -> tuple[int, str]:
    """Run the command with a limit of the size of files, which is what a full disk is: bytes are not accepted."""
    command = ["/bin/sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *TURNGATE, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_a_full_disk_truncates_nothing(settings: Path, state: Path, project: Path) -> None:
    code, err = limited(0, "install", "claude", "--project", "--yes")
    assert (code, err.endswith(f" cannot be written: File too large; {NOTHING}\n")) == (74, True)
    assert (settings.read_text(), list(settings.parent.iterdir())) == (TEAM, [settings])
    code, err = limited(0, "install", "codex", "--project", "--yes")
    assert (code, (project / ".codex").exists(), list((state / "installs").iterdir())) == (74, False, [])


def test_a_disk_that_fills_up_during_the_settings_truncates_nothing(settings: Path) -> None:
    large = json.dumps({"a": ["x" * 50] * 200}, indent=2)
    turngate("install", "claude", "--project", "--yes")
    settings.write_text(settings.read_text().replace('"opus"', large))
    before = settings.read_text()
    code, err = limited(4, "uninstall", "claude", "--project", "--yes")
    said = f"turngate: .claude/settings.json cannot be written: File too large; {NOTHING}\n"
    assert (code, err, settings.read_text()) == (74, said, before)
    assert list(settings.parent.iterdir()) == [settings]


# Several processes, and processes that are killed


def test_several_processes_at_once_write_one_line(project: Path) -> None:
    commands = [[*TURNGATE, "install", "claude", "--project", "--yes"] for _ in range(4)]
    started = [subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for each in commands]
    ended = [(process.communicate()[1], process.returncode) for process in started]
    assert ended == [(b"", 0)] * 4
    assert hooks_of(project / ".claude" / "settings.json") == project_hooks("claude")
    turngate("uninstall", "claude", "--project", "--yes")
    assert not (project / ".claude" / "settings.json").exists()


def test_a_process_that_is_killed_while_it_waits_leaves_the_old_file(settings: Path) -> None:
    lock = os.open(settings.parent, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with start_turngate("install", "claude", "--project", "--yes") as process:
        for line in process.stdout:
            if line.startswith("+      "):
                break
        process.kill()
    os.close(lock)
    assert (settings.read_text(), list(settings.parent.iterdir())) == (TEAM, [settings])


def test_a_process_that_is_killed_at_any_moment_leaves_the_old_file_or_the_new_one(settings: Path) -> None:
    assert turngate("install", "claude", "--project", "--yes")[0] == 0
    new = settings.read_text()
    turngate("uninstall", "claude", "--project", "--yes")
    seen = set()
    for delay in range(12):
        process = subprocess.Popen(
            [*TURNGATE, "install", "claude", "--project", "--yes"], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.read(1 + delay * 400)  # the difference is printed just before the file is written
        process.send_signal(signal.SIGKILL)
        process.communicate()
        seen.add(settings.read_text())
        turngate("uninstall", "claude", "--project", "--yes")
        assert settings.read_text() == TEAM
    assert seen <= {TEAM, new}


def test_what_a_killed_process_has_left_is_overwritten(settings: Path) -> None:
    left = settings.parent / ".settings.json.turngate-new"
    left.write_text('{"half')
    assert turngate("install", "claude", "--project", "--yes")[0] == 0
    assert (list(settings.parent.iterdir()), left.exists()) == ([settings], False)


@pytest.mark.parametrize("marker", AGENT_MARKERS)
def test_an_agent_cannot_remove_the_line_that_holds_it(
    settings: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert turngate("install", "claude", "--project", "--yes")[0] == 0
    installed = settings.read_text()
    monkeypatch.setenv(marker, "1")
    why = f"this was started by a hook or an agent ({marker} is set)"
    assert turngate("uninstall", "claude", "--project", "--yes") == (
        64,
        "",
        f"turngate: a person removes Turngate, in a terminal of their own, and {why}\n",
    )
    assert settings.read_text() == installed


@pytest.mark.parametrize("marker", AGENT_MARKERS)
def test_an_agent_can_see_what_a_person_would_remove(
    settings: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert turngate("install", "claude", "--project", "--yes")[0] == 0
    monkeypatch.setenv(marker, "1")
    code, out, err = turngate("uninstall", "claude", "--project", "--dry-run")
    assert (code, last_lines(out), err) == (0, "nothing was written (--dry-run)\n", "")


def test_an_agent_or_the_hook_of_another_program_can_run_everything_else(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hooks of some hosts have the same variables as the commands of their agents."""
    write_settings(project, "turngate", stop_hooks("echo why >&2; exit 2"))
    assert turngate("hooks", "approve", "--all", "--yes")[0] == 0
    event = json.dumps({"hook_event_name": "Stop", "session_id": "1", "turn_id": "1", "model": "gpt"})
    commands = [["hook"], ["fire", "Stop"], ["check"], ["install"]]

    def run_all() -> list[tuple[int, str]]:
        done = [
            subprocess.run([*TURNGATE, *words], input=event, capture_output=True, text=True, check=False)
            for words in commands
        ]
        return [(each.returncode, each.stdout.partition("\n")[0]) for each in done]

    before = run_all()
    for marker in set(AGENT_MARKERS) - {IN_HOOK, IN_TOOL}:
        monkeypatch.setenv(marker, "1")
    assert run_all()[1:] == before[1:]  # a played event is refused
    assert before[0] == (0, '{"decision":"block","reason":"why"}')


# Whose settings


def test_the_line_is_written_to_the_settings_of_the_user_unless_a_project_is_asked_for(home: Path) -> None:
    code, out, _ = turngate("install", "claude", "--yes")
    assert (code, "installed in ~/.claude/settings.json\n" in out) == (0, True)
    assert f"{PROGRAM} hook" in (home / ".claude/settings.json").read_text()


def test_a_line_for_a_project_is_said_not_to_be_read_everywhere(project: Path) -> None:
    out = cli.turngate("install", "claude", "--project", "--yes")[1]
    hint = (
        "→ Claude Code may not read this file in a subfolder or a new worktree; "
        "`turngate install claude` writes the line to your own settings, which apply everywhere\n"
    )
    assert (hint in out, (project / ".claude/settings.json").exists()) == (True, True)


def test_uninstall_finds_the_line_of_the_project(project: Path) -> None:
    turngate("install", "claude", "--project", "--yes")
    assert turngate("uninstall", "claude", "--yes")[1].endswith("removed .claude/settings.json\n")
    assert not (project / ".claude").exists()
