"""Subagents for workers: which project a worker offers, and which subagents stay in the process of their session."""

import socket

from turngate.core.constants import SUBAGENT_EVENTS
from turngate.core.hooks.kinds import label
from turngate.core.text import quote_name
from turngate.plugins.handlers import HANDLER_NAMES
from turngate.ports import World
from turngate.settings.agent_types import AgentType
from turngate.subagents.host import SubagentHost
from turngate.subagents.registry.registry import registry_url


def project_label(world: World) -> str:
    """Return the label of a project: a folder is one of its machine only, a location over SSH is one for all machines."""
    return world.location if world.machine else f"{socket.gethostname()}:{world.project}"


def why_here(
    host: SubagentHost, agent_type: AgentType, registry: str | None, place: str, *, is_resumed: bool
) -> str:
    """Return why subagents of this type cannot run on a worker, or "" if they can."""
    if not registry_url(registry):
        return "the registry is a file; set TURNGATE_REGISTRY to the URL of a database"
    if host.world.in_hook:
        return "this session was started from a hook"
    if place == "git" and host.world.machine:
        return "the project is on another machine, which workers reach over SSH: use `workers` and not `git`"
    if is_resumed:
        return "the conversation of one that is resumed is on this machine"
    if agent_type.stages:
        return "they have a checkpoint, which continues their conversation on this machine"
    for rule in host.settings.rules:
        if rule.source == "python" and rule.event in SUBAGENT_EVENTS:
            return f"hook {quote_name(label(rule.hook))} is defined in Python, in this process"
    if not host.settings.plugins and any(map(host.plugins.has_handlers, HANDLER_NAMES)):
        return "the plugins of this session are objects of this process"
    return ""
