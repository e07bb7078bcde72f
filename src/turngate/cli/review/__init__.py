"""The review of all hooks that a session in a project would have, those of agent files included.

What people see of hooks under review: lists, definitions, changes, earlier runs.
"""

from collections.abc import Sequence

from turngate.core.dialect import DIALECTS
from turngate.core.settings import Rule
from turngate.settings.load import project_path
from turngate.subagents.agent_hooks import agent_type_rules
from turngate.subagents.agent_types import load_agent_types
from turngate.trust.review import Review, review_project


def review_hooks(
    project: str,
    *,
    dialect: str,
    plugin_dirs: Sequence[str] = (),
    extra: str | None = None,
) -> Review:
    """Review the hooks of a project and of the user, as they are now."""
    project = project_path(project)
    rules = agent_hooks(project, dialect)
    return review_project(project, dialect=dialect, plugin_dirs=plugin_dirs, extra=extra, agent_hooks=rules)


def agent_hooks(project: str, dialect: str) -> tuple[Rule, ...]:
    """Return the hooks of agent files."""
    agent_types, _ = load_agent_types(project, (), known_tools=())  # a plugin's have no hooks
    rules, _, _ = agent_type_rules(agent_types.values(), DIALECTS[dialect])
    return tuple(rules)
