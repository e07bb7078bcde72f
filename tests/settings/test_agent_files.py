"""`turngate check` reads the hooks in the front matter of agent types as it reads those of settings files."""

import json
from pathlib import Path

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.measures import cpu_limit
from turngate.cli.main import main
from turngate.settings.agent_types import MAX_FILES
from turngate.settings.front_matter import parse_nested

TRUST = "run only if the project is trusted (--trust)"


def write_agent(folder: Path, hooks: str, name: str = ".claude/agents/coder.md") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: coder\n{hooks}---\nYou write code.\n")


def at(event: str, command: str) -> str:
    return f"hooks:\n  {event}:\n    - hooks:\n        - type: command\n          command: {command}\n"


def check(capfd: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, list[str]]:
    code = main(["check", "--project", str(project), *words])
    return code, capfd.readouterr().out.splitlines()


def test_a_correct_front_matter_has_no_findings(
    project: Path, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_agent(home, at("Stop", "./gate.sh"))
    script(project / "gate.sh", "#!/bin/sh\nexit 0\n")
    found = check(capfd, project, "--dialect", "claude")
    relative = "./gate.sh is a relative path: Turngate runs hooks in the project's folder, Claude Code in its current one"
    assert found == (
        0,
        [
            "~/.claude/agents/coder.md",
            f"  note: Stop[0].hooks[0].command: {relative}",
            '    → write "$CLAUDE_PROJECT_DIR"/gate.sh',
            "1 hook, no problems",
        ],
    )


@pytest.mark.parametrize(
    ("hooks", "found"),
    [
        (
            at("Stop", "./gone.sh"),
            ["  error: Stop[0].hooks[0].command: ./gone.sh does not exist, so the hook fails at every run"],
        ),
        (
            at("stop", "true"),
            [
                "  warning: stop: is not a known event, so its hooks never run",
                '    → did you mean "Stop"?',
            ],
        ),
        (
            at("Stop", "*true"),
            ["  error: hooks: has a line that is not understood: command: *true; none of its hooks run"],
        ),
        (
            at("Stop", "exit 1"),
            [
                "  warning: Stop[0].hooks[0].command: ends with exit code 1, and only exit code 2 blocks: this hook can never block",
                "    → write exit 2",
            ],
        ),
        ("hooks: 5\n", ["  error: hooks: is 5, expected an object of events"]),
    ],
)
@pytest.mark.parametrize("family", ["claude", "turngate"])
def test_a_defect_in_a_front_matter_is_named(
    project: Path, capfd: pytest.CaptureFixture[str], hooks: str, found: list[str], family: str
) -> None:
    name = f".{family}/agents/coder.md"
    write_agent(project, hooks, name)
    code, lines = check(capfd, project)
    assert (code, lines[0], [line for line in lines[1:-1] if TRUST not in line]) == (1, name, found)


@pytest.mark.parametrize("start", ["---\n", "\ufeff--- \n"])
@pytest.mark.parametrize("hooks", ["", at("Stop", "'true'")])
def test_a_front_matter_without_an_end_is_named(
    project: Path, capfd: pytest.CaptureFixture[str], hooks: str, start: str
) -> None:
    write_agent(project, hooks)
    path = project / ".claude/agents/coder.md"
    path.write_text(path.read_text().replace("---\nYou", "You").replace("---\n", start))
    assert check(capfd, project) == (
        1,
        [
            ".claude/agents/coder.md",
            "  error: its front matter has no second line of ---, so none of it is read",
            "0 hooks, 1 problem",
        ],
    )


def test_hooks_of_a_plugins_agent_type_are_not_run(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_agent(project, at("Stop", "./gone.sh"), "p/agents/coder/AGENT.md")
    assert check(capfd, project, "--plugin-dir", str(project / "p")) == (
        0,
        [
            "p/agents/coder/AGENT.md",
            "  note: hooks: are not run: an agent type of a plugin has none",
            "0 hooks, no problems",
        ],
    )


@pytest.mark.parametrize("name", [".claude/skills/x/SKILL.md", "p/skills/x/SKILL.md"])
def test_hooks_of_a_skill_are_not_run(project: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    write_agent(project, at("Stop", "./gone.sh"), name)
    write_agent(project, "", ".claude/skills/without/SKILL.md")
    (project / "p/skills").mkdir(parents=True, exist_ok=True)
    assert check(capfd, project, "--plugin-dir", str(project / "p")) == (
        0,
        [name, "  note: hooks: are not run: Turngate does not run hooks of skills", "0 hooks, no problems"],
    )


@pytest.mark.parametrize("name", [".claude/agents/a{}.md", ".claude/skills/a{}/SKILL.md"])
def test_only_so_many_files_are_checked(project: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    for number in range(MAX_FILES + 2):
        write_agent(project, "", name.format(f"{number:03}"))
    said = "  note: is not read, nor are 1 more: at most 500 files with 4 MiB are"
    assert check(capfd, project) == (0, [name.format("500"), said, "0 hooks, no problems"])


@pytest.mark.parametrize("line", ["-", "- a", "- a: b"])
def test_a_long_list_of_hooks_is_read_in_bounded_time(line: str) -> None:
    lines = [line] * (95_000 // len(f"{line}\n"))
    with cpu_limit(3):
        assert len(parse_nested(["", *lines])) == len(lines)


def test_files_of_another_dialect_and_files_without_hooks_are_not_mentioned(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_agent(project, at("Stop", "./gone.sh"), ".turngate/agents/coder.md")
    write_agent(project, "tools: Nonsense\n")
    (project / ".claude/agents/README.md").write_text("# Agents\n")
    code, lines = check(capfd, project, "--dialect", "claude")
    assert (code, lines[-1]) == (0, "0 hooks, no problems")


def test_hooks_that_are_switched_off_are_noted(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_agent(project, at("Stop", "'true'"))
    write_settings(project, "claude", {**stop_hooks("true"), "disableAllHooks": True})
    main(["check", "--json", "--project", str(project)])
    found = [(p["file"], p["message"]) for p in json.loads(capfd.readouterr().out)["problems"]]
    off = "disableAllHooks in .claude/settings.json switches it off"
    assert (".claude/agents/coder.md", off) in found


def test_a_pipe_does_not_block(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import os  # noqa: PLC0415 - only here

    for folder in (".claude/agents", ".claude/skills/x"):
        (project / folder).mkdir(parents=True)
    os.mkfifo(project / ".claude/agents/coder.md")
    os.mkfifo(project / ".claude/skills/x/SKILL.md")
    assert check(capfd, project) == (
        1,
        [
            ".claude/agents/coder.md",
            "  warning: is not a regular file; this agent type is not loaded",
            "0 hooks, 1 problem",
        ],
    )
