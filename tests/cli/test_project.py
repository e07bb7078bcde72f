"""The project is found from a subfolder, and every command says which folder it took."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings
from turngate.cli.main import main
from turngate.cli.project import find_project
from turngate.core.constants import FAMILIES

ALL = FAMILIES["turngate"]
NOT_USED = "! {0} belongs to another user, so {1} is not used as the project; to use it, add --project {1}\n"

# What exists below a folder `top`, where the search starts, where home is, and the folder that is found.
SEARCHES: dict[str, tuple[list[str], str, str, str]] = {
    "the start folder": (["a/.turngate", ".turngate"], "a", "home", "a"),
    "the parent": (["a/.turngate", "a/b"], "a/b", "home", "a"),
    "two levels up": (["a/.mux", "a/b/c"], "a/b/c", "home", "a"),
    "the nearest of two": (["a/.turngate", "a/b/.claude", "a/b/c"], "a/b/c", "home", "a/b"),
    "not a settings folder without settings below one with them": (
        ["a/.turngate", "a/.turngate/settings.json!", "a/b/.claude", "a/b/c"],
        "a/b/c",
        "home",
        "a",
    ),
    "not the start folder if its settings folder has no settings": (
        ["a/.mux", "a/.mux/stop!", "a/b/.claude", "a/b/.claude/notes.md!"],
        "a/b",
        "home",
        "a",
    ),
    "the nearest with local settings": (
        ["a/.turngate", "a/.turngate/settings.json!", "a/b/.claude", "a/b/.claude/settings.local.json!"],
        "a/b",
        "home",
        "a/b",
    ),
    "a script in the folder of Claude Code is not a hook": (
        ["a/.turngate", "a/.turngate/settings.json!", "a/b/.claude", "a/b/.claude/stop!"],
        "a/b",
        "home",
        "a",
    ),
    "from inside the settings folder": (["a/.claude/hooks"], "a/.claude/hooks", "home", "a"),
    "the git root itself": (["a/.claude", "a/.git", "a/b"], "a/b", "home", "a"),
    "not above the git root": (["a/.claude", "a/b/.git", "a/b/c"], "a/b/c", "home", "a/b/c"),
    "not above the git root of the start folder": (["a/.claude", "a/b/.git"], "a/b", "home", "a/b"),
    "a git root with settings, below other settings": (
        ["a/.claude", "a/b/.git", "a/b/.mux", "a/b/c"],
        "a/b/c",
        "home",
        "a/b",
    ),
    "below home": (["home/p/.turngate", "home/p/src"], "home/p/src", "home", "home/p"),
    "not home: its settings are the user's": (["home/.claude", "home/p"], "home/p", "home", "home/p"),
    "not home, even as a git root": (["home/.claude", "home/.git", "home/p"], "home/p", "home", "home/p"),
    "home as the start folder": (["home/.claude"], "home", "home", "home"),
    "not above home": ([".turngate", "home/p"], "home/p", "home", "home/p"),
    "not above home, from home": ([".turngate", "home"], "home", "home", "home"),
    "not above home, from beside it": ([".turngate", "a/b"], "a/b", "home", "a/b"),
    "no settings anywhere": (["a/b"], "a/b", "home", "a/b"),
    "a file in place of a settings folder": (["a/.turngate", "a/b/.mux!", "a/b/c"], "a/b/c", "home", "a"),
}


def make(top: Path, paths: list[str]) -> None:
    """Make folders, and a file for a path that ends with `!`."""
    (top / "home").mkdir(parents=True, exist_ok=True)
    for name in paths:
        path = top / name.removesuffix("!")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch() if name.endswith("!") else path.mkdir(exist_ok=True)


@pytest.mark.parametrize(("paths", "start", "home", "found"), SEARCHES.values(), ids=SEARCHES)
def test_the_search_finds(tmp_path: Path, paths: list[str], start: str, home: str, found: str) -> None:
    make(tmp_path, paths)
    assert find_project(str(tmp_path / start), ALL, home=str(tmp_path / home)) == str(tmp_path / found)


def test_a_work_tree_whose_git_is_a_file_is_a_git_root(tmp_path: Path) -> None:
    make(tmp_path, ["a/.claude", "a/b/.git!", "a/b/c"])
    start = str(tmp_path / "a/b/c")
    assert find_project(start, ALL, home=str(tmp_path / "home")) == start


def test_a_settings_folder_that_is_given_as_the_project_is_named(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("exit 2"))
    assert main(["fire", "Stop", "--project", str(project / ".turngate")]) == 0
    said = f"is the settings folder of a project, not a project; did you mean --project {project}?"
    assert capfd.readouterr().err.splitlines()[0] == f"! --project: .turngate {said}"


def test_home_is_recognized_through_a_link(tmp_path: Path) -> None:
    make(tmp_path, ["data/me/.claude", "data/me/p"])
    (tmp_path / "link").symlink_to(tmp_path / "data/me")
    start = str(tmp_path / "data/me/p")
    assert find_project(start, ALL, home=str(tmp_path / "link")) == start


def test_only_the_settings_of_the_dialect_count(tmp_path: Path) -> None:
    make(tmp_path, ["a/.claude", "a/b/.turngate", "a/b/c"])
    start, home = str(tmp_path / "a/b/c"), str(tmp_path / "home")
    assert [find_project(start, FAMILIES[dialect], home=home) for dialect in FAMILIES] == [
        str(tmp_path / "a/b"),
        start,
        str(tmp_path / "a"),
        str(tmp_path / "a/b"),
    ]


def test_settings_of_another_user_above_the_start_folder_are_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, ["a/.turngate", "a/b"])
    start, others = str(tmp_path / "a/b"), (os.getuid() + 1,)
    found = find_project(start, ALL, home=str(tmp_path / "home"), owners=others)
    assert (found, capsys.readouterr().err) == (
        start,
        NOT_USED.format(f"{tmp_path}/a/.turngate", f"{tmp_path}/a"),
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize(
    "name", ["", "settings.json", "settings.local.json", "stop", "subagent_stop", "hooks"]
)
def test_a_folder_above_with_one_file_of_another_user_is_not_the_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    make(tmp_path, ["a/.claude", "a/.mux", "a/.turngate", "a/b"])
    foreign = tmp_path / "a/.turngate" / name
    foreign.mkdir(exist_ok=True) if name in ("", "hooks") else foreign.touch()
    os.lchown(foreign, 12345, -1)
    found = find_project(str(tmp_path / "a/b"), ALL, home=str(tmp_path / "home"))
    expected = (str(tmp_path / "a/b"), NOT_USED.format(foreign, f"{tmp_path}/a"))
    assert (found, capsys.readouterr().err) == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_files_of_another_user_that_the_dialect_does_not_read_are_ignored(tmp_path: Path) -> None:
    make(tmp_path, ["a/.claude", "a/.turngate", "a/b", "a/.claude/stop!"])
    for name in ("a/.turngate", "a/.claude/stop"):
        os.lchown(tmp_path / name, 12345, -1)
    found = find_project(str(tmp_path / "a/b"), FAMILIES["claude"], home=str(tmp_path / "home"))
    assert found == str(tmp_path / "a")


def test_settings_of_another_user_in_the_start_folder_are_used(tmp_path: Path) -> None:
    make(tmp_path, ["a/.turngate"])
    start = str(tmp_path / "a")
    assert find_project(start, ALL, home=str(tmp_path / "home"), owners=(os.getuid() + 1,)) == start


# The commands


FOUND = "project: {} (found above the current folder)\n"


@pytest.fixture
def subfolder(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A subfolder of a project with a hook that records where it runs; the current folder."""
    record = 'pwd > "$TURNGATE_PROJECT_DIR"/cwd; cat > "$TURNGATE_PROJECT_DIR"/input'
    write_settings(project, "turngate", stop_hooks(record))
    folder = project / "src" / "deep"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def turngate(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capfd.readouterr()
    return code, out, err


def test_fire_in_a_subfolder_runs_the_hooks_of_the_project_in_its_folder(
    project: Path, subfolder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = turngate(capfd, "fire", "Stop")
    assert (code, out.splitlines()[:2], err) == (0, [FOUND.format(project).strip(), "Stop: allowed"], "")
    assert (project / "cwd").read_text() == f"{project}\n"
    assert json.loads((project / "input").read_text())["cwd"] == str(project)


def test_fire_as_json_names_the_project(
    project: Path, subfolder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = [json.loads(turngate(capfd, "fire", event, "--json")[1]) for event in ("Stop", "SubagentStop")]
    assert [(each["project"], len(each["runs"])) for each in said] == [(str(project), 1), (str(project), 0)]


def test_fire_without_a_hook_names_the_project(
    project: Path, subfolder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = f"no hook for SubagentStop is configured in {project}; there are hooks for Stop"
    said = f"SubagentStop: allowed\n  {where}\n"
    assert turngate(capfd, "fire", "SubagentStop") == (0, FOUND.format(project) + said, "")


def test_check_in_a_subfolder_reads_the_settings_of_the_project(
    project: Path, subfolder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert turngate(capfd, "check")[1] == (
        f"{FOUND.format(project)}.turngate/settings.json\n1 hook, no problems\n"
    )
    assert json.loads(turngate(capfd, "check", "--json")[1])["project"] == str(project)


def script(project: Path) -> str:
    path = project / "script.json"
    path.write_text(json.dumps({"main": ["done"]}))
    return f"scripted:{path}"


def test_run_in_a_subfolder_works_in_the_project_and_says_so(
    project: Path, subfolder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert turngate(capfd, "run", "-p", "go", "--model", script(project)) == (
        0,
        "done\n",
        FOUND.format(project),
    )
    assert (project / "cwd").read_text() == f"{project}\n"


def test_run_as_json_names_the_project_in_the_result_only(
    project: Path, subfolder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("run", "-p", "go", "--model", script(project), "--output-format", "json")
    code, out, err = turngate(capfd, *words)
    assert (code, json.loads(out)["project"], err) == (0, str(project), "")


def test_run_finds_the_newest_session_of_the_project_from_a_subfolder(
    project: Path, subfolder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--model", script(project), "--output-format", "json")
    first = json.loads(turngate(capfd, "run", "-p", "go", "--project", str(project), *words)[1])
    second = json.loads(turngate(capfd, "run", "-p", "on", "--resume", *words)[1])
    assert second["session_id"] == first["session_id"]


def test_recover_in_a_subfolder_names_the_project(
    project: Path, subfolder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert turngate(capfd, "runs", "recover") == (0, f"no subagent was left behind in {project}\n", "")


@pytest.mark.parametrize("given", [".", "{}"])
def test_a_project_that_is_given_is_taken_as_it_is(
    subfolder: Path, capfd: pytest.CaptureFixture[str], given: str
) -> None:
    assert turngate(capfd, "fire", "Stop", "--project", given.format(subfolder)) == (
        0,
        f"Stop: allowed\n  no hook for Stop is configured in {subfolder}\n",
        "",
    )


def test_in_the_folder_of_the_project_nothing_is_said_about_it(
    project: Path, subfolder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert turngate(capfd, "fire", "SubagentStop")[1].splitlines()[0] == "SubagentStop: allowed"


def test_a_session_takes_the_folder_that_it_is_given(subfolder: Path) -> None:
    from turngate import load_settings  # noqa: PLC0415 - what a user imports

    assert load_settings(str(subfolder)).rules == ()


@pytest.mark.parametrize(
    ("folder", "words", "hint"),
    [
        (".", ["fire", "Stop", "--project", "shop"], "`turngate hooks approve ok --project shop`"),
        (".", ["gates", "run", "--project", "shop"], "`turngate hooks approve --all --project shop`"),
        (".", ["hooks", "--project", "shop"], "`turngate hooks approve ok --project shop`"),
        (".", ["doctor", "--project", "shop"], "`turngate hooks approve ok --project shop`"),
        ("shop/src", ["fire", "Stop"], "`turngate hooks approve ok`"),
        ("shop/src", ["hooks"], "`turngate hooks approve ok`"),
    ],
)
def test_a_hint_is_a_command_that_works_where_it_is_read(
    folder: str,
    words: list[str],
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    (tmp_path / "shop" / "src").mkdir(parents=True)
    write_settings(tmp_path / "shop", "turngate", stop_hooks("true", id="ok"))
    monkeypatch.chdir(tmp_path / folder)
    main(words)
    printed = "".join(capsys.readouterr())
    assert hint in printed
    assert main([*hint.strip("`").split()[1:], "--yes"]) == 0


@pytest.mark.parametrize(
    ("path", "words", "command"),
    [
        ("/usr/bin:/bin", ("check",), "`venv/bin/turngate hooks approve --all`"),
        ("/usr/bin:/bin", ("check", "--project", "../p/"), "`venv/bin/turngate hooks approve --all`"),
        ("/usr/bin:/bin", ("install", "claude", "--yes"), "`{}/venv/bin/turngate hooks approve --all`"),
        ("venv/bin:/usr/bin:/bin", ("check",), "`turngate hooks approve --all`"),
    ],
)
def test_a_program_that_is_not_on_path_is_named_by_its_path_in_hints(
    tmp_path: Path, path: str, words: tuple[str, ...], command: str
) -> None:
    project = tmp_path / "p"
    write_settings(
        project, "turngate", {"hooks": {"Stop": [{"hooks": [{"type": "gate", "command": "true"}]}]}}
    )
    (project / "venv/bin").mkdir(parents=True)
    (project / "venv/bin/turngate").symlink_to(Path(sys.executable).with_name("turngate"))
    environ = {"PATH": path, "HOME": str(tmp_path / "home")}
    done = subprocess.run(
        ["venv/bin/turngate", *words], cwd=project, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, command.format(project) in done.stdout) == (0, True), done.stdout + done.stderr
