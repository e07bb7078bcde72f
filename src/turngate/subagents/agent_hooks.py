"""Hooks in the front matter of agent types: they run only for subagents of their type."""

from collections.abc import Iterable
from dataclasses import replace

from turngate.core.dialect import Dialect
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import truncate
from turngate.settings.parse_hooks import HooksParser
from turngate.settings.problem_log import ProblemLog
from turngate.subagents.agent_types import AgentType
from turngate.subagents.front_matter import NotUnderstood, parse_block

MAX_LINE_CHARS = 100  # of a line in a message


def agent_type_rules(
    agent_types: Iterable[AgentType], dialect: Dialect
) -> tuple[tuple[Rule, ...], tuple[Problem, ...], list[str]]:
    """Return the rules of all agent types, the problems of hooks that could not be loaded, and notices.

    As in Claude Code, a plugin's never run: they are left out on purpose, and a notice says so.
    """
    rules: list[Rule] = []
    not_loaded: list[Problem] = []
    notices: list[str] = []
    for agent_type in agent_types:
        if agent_type.hook_lines is None or agent_type.family not in dialect.families:
            continue
        if agent_type.level == "plugin":
            notices.append(f"{agent_type.file} has hooks, which are not run: a plugin's agent type has none")
        else:
            found, problems = parse_hooks(agent_type, dialect)
            rules += (_of_subagent(rule, agent_type.name) for rule in found)
            not_loaded += Settings(problems=problems).not_loaded
    return tuple(rules), tuple(not_loaded), notices


def parse_hooks(agent_type: AgentType, dialect: Dialect) -> tuple[list[Rule], tuple[Problem, ...]]:
    """Return the hooks as they are written, and all problems."""
    log = ProblemLog(agent_type.file)
    parser = HooksParser(log, agent_type.level, agent_type.family, dialect)
    first, *others = agent_type.hook_lines or ("",)
    try:
        parser.parse(parse_block([first, *others]))
    except NotUnderstood as error:
        line = truncate(str(error), MAX_LINE_CHARS)
        log.add(f"has a line that is not understood: {line}; none of its hooks run", field="hooks")
    return parser.rules, log.problems


def _of_subagent(rule: Rule, agent_type: str) -> Rule:
    """Claude Code: "agent frontmatter `Stop` hook runs as `SubagentStop`"; a matcher has no effect on Stop."""
    if rule.event == "Stop":
        rule = replace(rule, event="SubagentStop", matcher=None)
    return replace(rule, agent_type=agent_type)
