"""Reads the front matter of agent types and skills for `turngate check`: their hooks, and what is wrong with them."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from turngate.core.settings import Problem, Rule, Settings
from turngate.filesystem.real_path import real_path
from turngate.settings.agent_types import (
    AgentType,
    agent_files,
    count_readable,
    describe_unread,
    parse_hooks,
    read_agent_file,
    read_text,
)
from turngate.settings.front_matter import nested_lines
from turngate.settings.plugin_folders import display_name


def check_agent_files(settings: Settings, project: str) -> tuple[tuple[Rule, ...], tuple[Problem, ...]]:
    """Return the hooks in front matters, each with the event that is written there, and all problems."""
    home = os.path.expanduser("~")
    rules: list[Rule] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    places, unread = agent_files(project, settings.plugin_dirs, home)
    for level, family, path in places:
        real = real_path(path)
        if family in settings.dialect.families and real not in seen:
            seen.add(real)
            found, wrong = _check_file(level, family, path, settings, display_name(path, project, home))
            rules += found
            problems += wrong
    problems += _unread_problems(unread, project, home)
    if "claude" in settings.dialect.families:
        problems += _skill_problems(project, settings, home)
    return tuple(rules), tuple(problems)


def _check_file(
    level: str, family: str, path: str, settings: Settings, name: str
) -> tuple[list[Rule], list[Problem]]:
    agent_type, problem = read_agent_file(path)
    if agent_type is None:
        message = (problem or "").removeprefix(f"{path} ")
        return [], [Problem(file=name, message=message, severity="warning")]
    if agent_type.is_unclosed:
        return [], [
            Problem(file=name, message="its front matter has no second line of ---, so none of it is read")
        ]
    if agent_type.hook_lines is None:
        return [], []
    if level == "plugin":
        return [], [_note(name, "are not run: an agent type of a plugin has none")]
    return _parse(replace(agent_type, file=name, level=level, family=family), settings)


def _parse(agent_type: AgentType, settings: Settings) -> tuple[list[Rule], list[Problem]]:
    rules, problems = parse_hooks(agent_type, settings.dialect)
    return [replace(rule, agent_type=agent_type.name) for rule in rules], list(problems)


def _skill_problems(project: str, settings: Settings, home: str) -> Iterator[Problem]:
    roots = [os.path.join(base, ".claude") for base in dict.fromkeys((home, project))]
    folders = [os.path.join(glob.escape(root), "skills", "*") for root in (*settings.plugin_dirs, *roots)]
    paths = [path for folder in folders for path in sorted(glob.glob(os.path.join(folder, "SKILL.md")))]
    count = count_readable(paths)
    for path in paths[:count]:
        text, _ = read_text(path)
        if text is not None and nested_lines(text, "hooks") is not None:
            message = "are not run: Turngate does not run hooks of skills"
            yield _note(display_name(path, project, home), message)
    yield from _unread_problems(paths[count:], project, home)


def _unread_problems(unread: Sequence[str], project: str, home: str) -> Iterator[Problem]:
    if unread:
        file = display_name(unread[0], project, home)
        yield Problem(file=file, message=describe_unread(len(unread)), severity="note")


def _note(file: str, message: str) -> Problem:
    return Problem(file=file, field="hooks", message=message, severity="note")
