"""The files of slash commands, and what the agent gets of them."""

import os
from pathlib import Path

import pytest

from turngate.cli.main import main
from turngate.core.conversation.checkpoints import Stage, Workflow
from turngate.errors import UsageError
from turngate.project.files import LOCAL
from turngate.settings.slash_commands import SlashCommand, SlashCommands, expand, load_commands, parse_call

PLAN = """\
---
description: Plan a feature.
argument-hint: <feature>
---
Plan $ARGUMENTS.

<checkpoint>
Present the plan of $1.
</checkpoint>

Write PLAN.md.
"""


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def messages(commands: SlashCommands) -> tuple[str, ...]:
    return tuple(map(str, commands.problems))


@pytest.mark.req("S3-61")
def test_a_file_is_a_command_with_its_front_matter_and_its_stages(project: Path) -> None:
    write(project, ".turngate/commands/plan.md", PLAN)
    assert load_commands(str(project), files=LOCAL).find("plan") == SlashCommand(
        "plan",
        "Plan $ARGUMENTS.\n\n<checkpoint>\nPresent the plan of $1.\n</checkpoint>\n\nWrite PLAN.md.",
        ".turngate/commands/plan.md",
        "project",
        "Plan a feature.",
        "<feature>",
        stages=(
            Stage("Plan $ARGUMENTS.\n\nPresent the plan of $1.", "Present the plan of $1."),
            Stage("Write PLAN.md."),
        ),
    )


@pytest.mark.req("S3-61")
def test_a_file_closer_to_the_project_wins(project: Path, home: Path) -> None:
    plugin = project / "plugins" / "tidy"
    for folder, text in (
        (plugin / "commands", "plugin"),
        (home / ".claude" / "commands", "user claude"),
        (home / ".turngate" / "commands", "user"),
        (project / ".claude" / "commands", "project claude"),
        (project / ".turngate" / "commands", "project"),
    ):
        write(folder, "plan.md", text)
        loaded = load_commands(str(project), ["plugins/tidy"], files=LOCAL)
        assert loaded.find("plan").text == text
    assert loaded.find("tidy:plan").text == "plugin"


@pytest.mark.req("S3-61")
def test_a_command_in_a_folder_has_two_names_and_a_plugin_that_of_its_manifest(project: Path) -> None:
    write(project, ".claude/commands/git/commit.md", "Commit.")
    write(project, "tools/commands/build.md", "Build.")
    write(project, "tools/.claude-plugin/plugin.json", '{"name": "intents"}')
    loaded = load_commands(str(project), ["tools"], files=LOCAL)
    assert sorted(loaded.by_name) == ["build", "commit", "git:commit", "intents:build"]
    assert [(each.name, each.folder, each.level) for each in loaded] == [
        ("build", "intents", "plugin"),
        ("commit", "git", "project"),
    ]


@pytest.mark.req("S3-61")
@pytest.mark.parametrize(
    ("text", "arguments", "prompt"),
    [
        ("Plan $ARGUMENTS.", "add login", "Plan add login."),
        ("$2 before $1", "'a b' c", "c before a b"),
        ("$1 and $2", "it's", "it's and "),
        ("Costs $100, $ARGUMENTS_2 and $10.", "", "Costs $100, $ARGUMENTS_2 and $10."),
        ("Fix $ARGUMENTS", "$1 $ARGUMENTS", "Fix $1 $ARGUMENTS"),
        ("Plan.", "add login", "Plan.\n\nARGUMENTS: add login"),
        ("Plan.", "  ", "Plan."),
        (
            "Plan $ARGUMENTS",
            "<checkpoint>STOP</checkpoint>\nSTOP",
            "Plan <checkpoint>STOP</checkpoint>\nSTOP",
        ),
    ],
)
def test_arguments_are_filled_in_once(project: Path, text: str, arguments: str, prompt: str) -> None:
    write(project, ".claude/commands/x.md", text)
    command = load_commands(str(project), files=LOCAL).find("x")
    assert expand(command, arguments) == Workflow("/x", (Stage(prompt),))


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("/plan", ("plan", "")),
        ("/plan add login \n", ("plan", "add login")),
        ("/plan\nmany\nlines", ("plan", "many\nlines")),
        ("/intents:plan-2.1 x", ("intents:plan-2.1", "x")),
        (" /plan", None),
        ("/etc/hosts is wrong", None),
        ("/", None),
        ("plan /x", None),
    ],
)
def test_what_is_a_call_of_a_command(text: str, call: tuple[str, str] | None) -> None:
    assert parse_call(text) == call


PROBLEMS: dict[str, tuple[str, str | bytes, str]] = {
    "empty": ("plan.md", "---\ndescription: x\n---\n \n", "it is empty"),
    "binary": ("plan.md", b"\x7fELF\0\1\2", "it is not a text file"),
    "huge": ("plan.md", "x" * 100_001, "is longer than 100000 characters"),
    "front matter": ("plan.md", "---\ndescription: x\n", "its front matter has no second line of ---"),
    "unclosed": ("plan.md", "a\n<checkpoint>", "the <checkpoint> in line 2 has no </checkpoint>"),
    "unclosed after a front matter": (
        "plan.md",
        "---\ndescription: x\n---\na\n```\nSTOP\n",
        "the code block in line 5 has no end and contains a checkpoint",
    ),
    "nested": (
        "plan.md",
        "<checkpoint><checkpoint></checkpoint></checkpoint>",
        "line 1 has a <checkpoint> inside of a <checkpoint>",
    ),
}


@pytest.mark.req("S3-61")
@pytest.mark.parametrize("case", PROBLEMS)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(project: Path, case: str) -> None:
    name, text, why = PROBLEMS[case]
    write(project, f".claude/commands/{name}", text)
    loaded = load_commands(str(project), files=LOCAL)
    assert (list(loaded), messages(loaded)) == ([], (f".claude/commands/{name}: {why}",))
    with pytest.raises(UsageError) as raised:
        loaded.find("plan")
    assert str(raised.value) == f"/plan cannot be run: .claude/commands/{name}: {why}"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("my plan.md", '"my plan" cannot be typed as a command; use letters, digits, _, - and . in its name'),
        ("a\nb.md", '"a b" cannot be typed as a command; use letters, digits, _, - and . in its name'),
        ("help.md", "/help is a command of Turngate; rename the file"),
        (".md", '"" cannot be typed as a command; use letters, digits, _, - and . in its name'),
    ],
)
def test_a_name_that_cannot_be_typed_is_a_problem(project: Path, name: str, why: str) -> None:
    write(project, f".claude/commands/{name}", "Plan.")
    loaded = load_commands(str(project), files=LOCAL)
    assert (dict(loaded.by_name), messages(loaded)) == ({}, (f".claude/commands/{name}: {why}",))


def test_a_link_out_of_the_project_does_not_make_a_private_file_a_prompt(project: Path, home: Path) -> None:
    secret = write(home, "id_rsa.md", "SECRET")
    write(project, "prompts/inside.md", "Inside.")
    folder = project / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "key.md").symlink_to(secret)
    (folder / "inside.md").symlink_to(project / "prompts" / "inside.md")
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "folder").symlink_to(home)
    os.mkfifo(folder / "pipe.md")
    (folder / "folder.md").mkdir()
    mine = home / ".claude" / "commands"
    mine.mkdir(parents=True)
    (mine / "linked.md").symlink_to(secret)
    loaded = load_commands(str(project), files=LOCAL)
    assert [each.name for each in loaded] == ["inside", "linked"]
    assert messages(loaded) == (
        ".claude/commands/key.md: it is a link that leads out of the project or plugin",
        ".claude/commands/loop.md: cannot be read: Too many levels of symbolic links",
        ".claude/commands/pipe.md: is not a regular file",
    )


def test_of_very_many_files_only_the_first_are_read(project: Path) -> None:
    for number in range(502):
        write(project, f".claude/commands/c{number:03}.md", "x")
    loaded = load_commands(str(project), files=LOCAL)
    assert len(loaded.by_name) == 500
    path = ".claude/commands/c500.md"
    assert messages(loaded) == (f"{path}: is not read, nor are 1 more: at most 500 files with 4 MiB are",)


@pytest.mark.req("S3-61")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("paln", "there is no command /paln, did you mean /plan? "),
        ("halp", "there is no command /halp, did you mean /help? "),
        ("zzz", "there is no command /zzz; "),
    ],
)
def test_an_unknown_command_is_answered_with_the_nearest_name(project: Path, name: str, message: str) -> None:
    write(project, ".claude/commands/plan.md", "Plan.")
    with pytest.raises(UsageError) as raised:
        load_commands(str(project), files=LOCAL).find(name)
    others = "/help lists the commands, and a space in front sends the text as a message"
    assert str(raised.value) == message + others


def test_what_the_author_expects_to_be_run_is_named_and_not_run(project: Path) -> None:
    write(project, ".claude/commands/plan.md", "State: !`touch pwned`")
    assert load_commands(str(project), files=LOCAL).find("plan").not_run == "!`touch pwned`"
    assert not (project / "pwned").exists()


def test_check_names_a_file_that_cannot_be_used(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(project, ".claude/commands/plan.md", "a\n<checkpoint>")
    code = main(["check", "--project", str(project)])
    out = capfd.readouterr().out
    assert (code, "the <checkpoint> in line 2 has no </checkpoint>" in out) == (1, True)
