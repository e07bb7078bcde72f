"""What could make code run that no person has approved. In each row the code is changed after the approval."""

import asyncio
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.builders import stop_event, write_settings
from tests.trust.support import (
    EVIL,
    RUNS,
    approvals_file,
    approve_all,
    ask,
    change_record,
    command,
    make,
    said,
    stop_settings,
    write,
)
from turngate.engine import ask_hooks
from turngate.errors import UsageError
from turngate.ports import World
from turngate.shells.local import LocalShell
from turngate.trust import approvals
from turngate.trust.load import load_reviewed, load_settings

PYTHON = sys.executable


class Attack(NamedTuple):
    hook: dict[str, Any]
    files: dict[str, str]
    change: Callable[[Path], object]
    said: str


def rewrite(name: str, text: str = EVIL) -> Callable[[Path], object]:
    return lambda project: write(project, {name: text})


def swap_link(project: Path) -> None:
    write(project, {"other.sh": EVIL})
    (project / "hooks/link.sh").unlink()
    (project / "hooks/link.sh").symlink_to("../other.sh")


def swap_folder(project: Path) -> None:
    write(project, {"others/check.sh": EVIL})
    shutil.move(project / "hooks", project / "old")
    (project / "hooks").symlink_to("others")


def redefine(*hooks: dict[str, Any], **settings: Any) -> Callable[[Path], object]:
    return lambda project: write_settings(project, "turngate", stop_settings(*hooks, **settings))


def set_variable(name: str, value: str) -> Callable[[Path], object]:
    return lambda project: os.environ.__setitem__(name, value.format(project=project))


CHECK = {"hooks/check.sh": RUNS}
SHELL = command("sh hooks/check.sh")
CHANGED = "hooks/check.sh was changed after it was approved"
DEFINITION = "its definition was changed after it was approved"
LOOKALIKE = "hooks/che\N{CYRILLIC SMALL LETTER ES}k.sh"
IMPORT = {"hooks/check.py": "import helper\nopen('ran', 'w')\n", "hooks/helper.py": ""}

ATTACKS = {
    "a script behind an approved command is changed": Attack(
        SHELL, CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a script that is a program is changed": Attack(
        command("./hooks/check.sh"),
        {"hooks/check.sh": f"#!/bin/sh\n{RUNS}"},
        rewrite("hooks/check.sh"),
        CHANGED,
    ),
    "a script named through the variable of the project is changed": Attack(
        command('"$CLAUDE_PROJECT_DIR"/hooks/check.sh'), CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a script named without a shell is changed": Attack(
        command("sh", args=["${TURNGATE_PROJECT_DIR}/hooks/check.sh"]),
        CHECK,
        rewrite("hooks/check.sh"),
        CHANGED,
    ),
    "a script after `cd` is changed": Attack(
        command("cd hooks && sh ./check.sh"), CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a script behind other programs is changed": Attack(
        command("timeout 20 env A=1 nice -n 1 sh hooks/check.sh"), CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a script in the text of `sh -c` is changed": Attack(
        command("sh -c 'sh hooks/check.sh'"), CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a script in a substitution is changed": Attack(
        command('x="$(sh hooks/check.sh)"; exit 0'), CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a script in a condition is changed": Attack(
        command("if true; then sh hooks/check.sh; fi"), CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a script that another program starts is changed": Attack(
        command("echo | xargs sh hooks/check.sh"), CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a script that a variable of the command names is changed": Attack(
        command('dir=hooks; sh "$dir/check.sh"'), CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a file is added to those that a pattern matches": Attack(
        command('for f in hooks/*.sh; do sh "$f"; done'),
        CHECK,
        rewrite("hooks/zz.sh"),
        "hooks/zz.sh was added after it was approved",
    ),
    "a file of those that a pattern matches is changed": Attack(
        command('for f in hooks/*.sh; do sh "$f"; done'), CHECK, rewrite("hooks/check.sh"), CHANGED
    ),
    "a link leads to another file": Attack(
        command("sh hooks/link.sh"),
        {"hooks/check.sh": RUNS, "hooks/link.sh": RUNS},
        swap_link,
        "hooks/link.sh was changed after it was approved",
    ),
    "a folder becomes a link to another one": Attack(SHELL, CHECK, swap_folder, CHANGED),
    "a script is removed": Attack(
        SHELL,
        CHECK,
        lambda project: (project / "hooks/check.sh").unlink(),
        "hooks/check.sh was removed after it was approved",
    ),
    "a script that was missing is added": Attack(
        command("sh hooks/later.sh; sh hooks/check.sh"),
        CHECK,
        rewrite("hooks/later.sh"),
        "hooks/later.sh was added after it was approved",
    ),
    "an included file is changed": Attack(
        SHELL,
        {"hooks/check.sh": f". hooks/lib.sh\n{RUNS}", "hooks/lib.sh": ""},
        rewrite("hooks/lib.sh"),
        "hooks/lib.sh was changed after it was approved",
    ),
    "a file that is included from beside the script is changed": Attack(
        SHELL,
        {"hooks/check.sh": f'source "$(dirname "$0")/lib.sh"\n{RUNS}', "hooks/lib.sh": ""},
        rewrite("hooks/lib.sh"),
        "hooks/lib.sh was changed after it was approved",
    ),
    "a file that an included file includes is changed": Attack(
        SHELL,
        {"hooks/check.sh": f". hooks/a.sh\n{RUNS}", "hooks/a.sh": "[ -f hooks/b.sh ] && . hooks/b.sh"},
        rewrite("hooks/b.sh"),
        "hooks/b.sh was added after it was approved",
    ),
    "a module that a script of hooks imports is changed": Attack(
        command(f"{PYTHON} hooks/check.py"),
        IMPORT,
        rewrite("hooks/helper.py", "open('evil', 'w')"),
        "hooks/helper.py was changed after it was approved",
    ),
    "a module takes the name of one of the standard library": Attack(
        command(f"{PYTHON} hooks/check.py"),
        {"hooks/check.py": "import colorsys\nopen('ran', 'w')\n"},
        rewrite("hooks/colorsys.py", "open('evil', 'w')"),
        "hooks/colorsys.py was added after it was approved",
    ),
    "a module takes the name of one that `python -m` runs": Attack(
        command(f"{PYTHON} -m this"),
        {},
        rewrite("this.py", "open('evil', 'w')"),
        "this.py was added after it was approved",
    ),
    "a program takes the name of another one": Attack(
        command("true-check; exit 0", env={"PATH": "bin:/usr/bin:/bin"}),
        {"bin/other": ""},
        rewrite("bin/true-check", f"#!/bin/sh\n{EVIL}"),
        "bin/true-check was added after it was approved",
    ),
    "$PATH gets a folder of the project": Attack(
        SHELL,
        {**CHECK, "bin/sh": f"#!/bin/sh\n{EVIL}"},
        set_variable("PATH", "{project}/bin:/usr/bin:/bin"),
        "$PATH has another value than when it was approved",
    ),
    "a variable of the command names another file": Attack(
        command('sh "$HOOK_DIR/check.sh"'),
        {**CHECK, "other/check.sh": EVIL},
        set_variable("HOOK_DIR", "{project}/other"),
        "$HOOK_DIR has another value than when it was approved",
    ),
    "a variable with a default is set": Attack(
        command('sh "${HOOK_FILE:-hooks/check.sh}"'),
        {**CHECK, "other.sh": EVIL},
        set_variable("HOOK_FILE", "other.sh"),
        "$HOOK_FILE has another value than when it was approved",
    ),
    "the command is changed": Attack(SHELL, CHECK, redefine(command("touch evil")), DEFINITION),
    "the command gets another character that looks the same": Attack(
        SHELL, {**CHECK, LOOKALIKE: EVIL}, redefine(command(f"sh {LOOKALIKE}")), DEFINITION
    ),
    "a gate becomes an observer": Attack(
        SHELL, CHECK, redefine({**SHELL, "timeout": 1, "async": True}), DEFINITION
    ),
    "the settings get a variable": Attack(
        SHELL,
        CHECK,
        redefine(SHELL, env={"ENV": "evil.sh", "BASH_ENV": "evil.sh"}),
        "the `env` of the settings was changed after it was approved",
    ),
}


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOOK_DIR", str(project / "hooks"))


@pytest.mark.req("S3-16")
@pytest.mark.req("X-13")
@pytest.mark.parametrize("name", ATTACKS)
def test_what_was_changed_after_the_approval_does_not_run(name: str, project: Path) -> None:
    attack = ATTACKS[name]
    make(project, attack.hook, attack.files)
    approve_all(project)
    assert said(ask(project)) == []
    (project / "ran").unlink(missing_ok=True)
    attack.change(project)
    verdict = ask(project)
    assert (said(verdict), (project / "evil").exists(), (project / "ran").exists()) == (
        [attack.said],
        False,
        False,
    )
    approve_all(project)
    assert attack.said not in said(ask(project))


def test_the_hooks_of_the_attacks_run_while_nothing_is_changed(project: Path) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    assert (said(ask(project)), (project / "ran").read_text()) == ([], "ran\n")


@pytest.mark.req("X-13")
def test_a_checkout_between_the_comparison_and_the_run_is_seen(project: Path) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    settings = load_settings(str(project))
    write(project, {"hooks/check.sh": EVIL})
    world = World(LocalShell(), str(project))
    verdict = asyncio.run(ask_hooks(stop_event(cwd=str(project)), settings, world))
    assert (said(verdict), (project / "evil").exists()) == (
        ["hooks/check.sh was changed in this session"],
        False,
    )


def test_a_file_whose_name_differs_only_in_case_is_another_file(project: Path) -> None:
    """Where the file system tells them apart. Where it does not, it is the same file, whose content is compared."""
    make(project, command("sh check.sh"), {"check.sh": RUNS})
    approve_all(project)
    write(
        project,
        {"Check.sh": EVIL, ".Turngate/settings.json": json.dumps(stop_settings(command("touch evil")))},
    )
    assert (said(ask(project)), (project / "evil").exists()) == ([], False)
    write_settings(project, "turngate", stop_settings(command("sh Check.sh")))
    assert (said(ask(project)), (project / "evil").exists()) == ([DEFINITION], False)


def test_a_hook_that_writes_its_own_approval_changes_nothing_in_its_session(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs with the rights of the user: what it writes counts for later sessions, as docs/explanation/trust.md says."""
    make(project, command("sh hooks/first.sh"), {"hooks/first.sh": "cp approvals.json $APPROVALS\n", **CHECK})
    approve_all(project)
    before = load_settings(str(project))
    make(project, command("touch evil"), {})
    approve_all(project)
    shutil.copy(approvals_file(state), project / "approvals.json")
    monkeypatch.setenv("APPROVALS", str(approvals_file(state)))
    world = World(LocalShell(), str(project))
    asyncio.run(ask_hooks(stop_event(cwd=str(project)), before, world))
    asyncio.run(ask_hooks(stop_event(cwd=str(project)), before, world))
    assert not (project / "evil").exists()


# What a repository can bring


NOT_APPROVED = "it is not approved"


@pytest.mark.req("C-25", "U-09")
def test_a_hook_of_a_new_project_does_not_run(project: Path) -> None:
    make(project, command("touch evil"), {})
    assert (said(ask(project)), (project / "evil").exists()) == ([NOT_APPROVED], False)


def test_a_pending_hook_does_not_block_either(project: Path) -> None:
    make(project, command("exit 0", blocking=True), {})
    verdict = ask(project)
    assert (type(verdict).__name__, said(verdict)) == ("Stop", [NOT_APPROVED])


def test_settings_local_that_a_pull_adds_do_not_run(project: Path) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    write_settings(project, "claude", stop_settings(command("touch evil")), "settings.local.json")
    assert (said(ask(project)), (project / "evil").exists()) == ([NOT_APPROVED], False)
    assert (project / "ran").exists()


@pytest.mark.req("U-09")
def test_a_script_hook_does_not_run_before_it_is_approved(project: Path) -> None:
    write(project, {".turngate/stop": f"#!/bin/sh\n{RUNS}"})
    assert (said(ask(project)), (project / "ran").exists()) == ([NOT_APPROVED], False)
    approve_all(project)
    assert (said(ask(project)), (project / "ran").exists()) == ([], True)
    write(project, {".turngate/stop": f"#!/bin/sh\n{EVIL}"})
    assert said(ask(project)) == [".turngate/stop was changed after it was approved"]
    assert not (project / "evil").exists()


def test_a_plugin_that_a_project_names_does_not_run(project: Path) -> None:
    plugin = project / "plugin/hooks/hooks.json"
    write(project, {"plugin/hooks/hooks.json": "{}"})
    write_settings(project, "turngate", {"turngate": {"pluginDirs": ["plugin"]}})
    plugin.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch evil"}]}]}}')
    assert (said(ask(project)), (project / "evil").exists()) == ([NOT_APPROVED], False)


def test_a_plugin_that_an_earlier_session_has_recorded_does_not_run(project: Path) -> None:
    """Its project may have named it: `runs recover` would run what was never approved."""
    hooks = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch evil"}]}]}}'
    write(project, {"plugin/hooks/hooks.json": hooks})
    settings = load_reviewed(str(project), dialect="turngate", recorded_plugins=[str(project / "plugin")])
    assert [rule.pending for rule in settings.rules] == [NOT_APPROVED]


def test_a_parent_folder_with_settings_is_a_project_of_its_own(project: Path) -> None:
    inner = project / "inner"
    make(inner, SHELL, CHECK)
    approve_all(inner)
    write_settings(project, "turngate", stop_settings(command("touch evil")))
    assert (said(ask(project)), (project / "evil").exists()) == ([NOT_APPROVED], False)


def test_a_pending_hook_does_not_take_the_place_of_the_users_hook_with_the_same_id(
    project: Path, home: Path
) -> None:
    write_settings(home, "turngate", stop_settings(command("touch ran", id="gate")))
    write_settings(project, "turngate", stop_settings(command("touch evil", id="gate")))
    assert said(ask(project)) == [NOT_APPROVED]
    assert ((project / "ran").exists(), (project / "evil").exists()) == (True, False)


def test_a_pending_definition_does_not_take_the_place_of_the_same_command_of_the_user(
    project: Path, home: Path
) -> None:
    write_settings(home, "turngate", stop_settings(command("touch ran")))
    write_settings(project, "turngate", stop_settings(command("touch ran", timeout=1)))
    assert (said(ask(project)), (project / "ran").exists()) == ([NOT_APPROVED], True)


def test_the_env_of_a_project_does_not_reach_the_users_hooks_before_it_is_approved(
    project: Path, home: Path
) -> None:
    write_settings(home, "turngate", stop_settings(command('echo "[$FROM_PROJECT]" > ran')))
    write_settings(project, "turngate", {"env": {"FROM_PROJECT": "evil"}})
    ask(project)
    assert (project / "ran").read_text() == "[]\n"


def test_a_project_cannot_trust_itself(project: Path) -> None:
    make(project, command("touch evil", env={"TURNGATE_TRUST": "1"}), {}, env={"TURNGATE_TRUST": "1"})
    assert (said(ask(project)), (project / "evil").exists()) == ([NOT_APPROVED], False)


@pytest.mark.req("C-25")
def test_only_the_value_1_of_the_variable_trusts_a_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(project, command("touch evil"), {})
    for value in ("", "0", "false", "no"):
        monkeypatch.setenv("TURNGATE_TRUST", value)
        assert (said(ask(project)), (project / "evil").exists()) == ([NOT_APPROVED], False), value
    monkeypatch.setenv("TURNGATE_TRUST", "1")
    assert (said(ask(project)), (project / "evil").exists()) == ([], True)


# The file of approvals


def test_approvals_are_private_and_outside_of_the_project(project: Path, state: Path) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    modes = {path.stat().st_mode & 0o777 for path in (state / "trust").rglob("*") if path.is_file()}
    folders = {path.stat().st_mode & 0o777 for path in (state / "trust").rglob("*") if path.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})
    assert sorted(path.name for path in project.rglob("*")) == [
        ".turngate",
        "check.sh",
        "hooks",
        "settings.json",
    ]


def test_a_copied_project_is_another_one(project: Path, tmp_path: Path) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    shutil.copytree(project, tmp_path / "copy")
    assert said(ask(tmp_path / "copy")) == [NOT_APPROVED]


def test_a_folder_that_takes_the_place_of_the_project_is_another_one(project: Path, tmp_path: Path) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    shutil.copytree(project, tmp_path / "copy")
    project.rename(tmp_path / "old")
    (tmp_path / "copy").rename(project)
    assert said(ask(project)) == [NOT_APPROVED]


@pytest.mark.parametrize(
    "fields", [{"folder": "/elsewhere"}, {"user": 65534}, {"identity": [1, 2]}, {"version": 3}], ids=str
)
def test_approvals_of_another_project_or_user_do_not_count(
    fields: dict[str, Any], project: Path, state: Path
) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    change_record(approvals_file(state), **fields)
    assert said(ask(project)) == [NOT_APPROVED]


def damage(path: Path) -> None:
    path.write_text("{")


def replace_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (
            lambda path: path.chmod(0o644),
            "is open to other users, so no approval counts; chmod 600 {path} if you trust its content",
        ),
        (
            lambda path: path.chmod(0o620),
            "is open to other users, so no approval counts; chmod 600 {path} if you trust its content",
        ),
        (
            damage,
            "cannot be read (it is not JSON), so no approval counts; remove it, and approve again",
        ),
        (
            lambda path: path.write_text("[]"),
            "is damaged, so no approval counts; remove it, and approve again",
        ),
        (replace_by_link, "is not a regular file, so no approval counts; remove it, and approve again"),
        (replace_by_pipe, "is not a regular file, so no approval counts; remove it, and approve again"),
    ],
    ids=["readable", "writable", "not JSON", "another JSON", "link", "pipe"],
)
def test_approvals_that_another_user_could_have_written_do_not_count(
    spoil: Callable[[Path], object], why: str, project: Path, state: Path
) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    path = approvals_file(state)
    spoil(path)
    assert said(ask(project)) == [NOT_APPROVED]
    assert [str(problem) for problem in load_settings(str(project)).problems] == [
        f"{path}: {why.format(path=path)}"
    ]


def test_a_lock_that_is_held_for_ever_ends_in_a_message(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    path = Path(f"{approvals_file(state)}.lock")
    monkeypatch.setattr(approvals, "LOCK_SECONDS", 0.1)
    with path.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError) as raised:
            approve_all(project)
    assert str(raised.value) == (
        f"the approval cannot be stored: {path}: another process holds it; "
        "repair it, or set TURNGATE_STATE to another folder"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_approvals_that_belong_to_another_user_do_not_count(project: Path, state: Path) -> None:
    make(project, SHELL, CHECK)
    approve_all(project)
    os.chown(approvals_file(state), 65534, 65534)
    assert said(ask(project)) == [NOT_APPROVED]


def test_approvals_inside_the_project_do_not_count(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_STATE", str(project / "state"))
    make(project, SHELL, CHECK)
    with pytest.raises(UsageError) as raised:
        approve_all(project)
    assert str(raised.value) == (
        f"the state folder {project}/state/trust is inside the project, where approvals do not count; "
        "set TURNGATE_STATE to a folder of your own"
    )
    assert said(ask(project)) == [NOT_APPROVED]


@pytest.mark.req("X-13")
@pytest.mark.parametrize("approved", [{"env": "clean"}, {"passEnv": ["LANG"]}, {"args": []}])
def test_an_option_that_is_taken_away_is_a_change(approved: dict[str, Any], project: Path) -> None:
    make(project, command("true", **approved), {})
    approve_all(project)
    assert said(ask(project)) == []
    make(project, command("true"), {})
    assert said(ask(project)) == ["its definition was changed after it was approved"]
