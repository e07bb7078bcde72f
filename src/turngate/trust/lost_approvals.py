"""Hooks that were approved and are no longer configured so: rules that never run, and are reported."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from turngate.core.constants import FAMILIES
from turngate.core.hooks.kinds import KINDS, CommandHook, Hook
from turngate.core.settings import Rule
from turngate.core.verdict.hints import GONE
from turngate.trust.approvals import Approval


def gone_rule(approval: Approval, place: str, why: str = GONE) -> Rule:
    """Return the rule as it was approved. It does not run: `why` says so."""
    content = json.loads(approval.fingerprint.content)
    file = place.partition(f":{content.get('event')}:")[0]
    return Rule(
        content.get("event", ""),
        _hook(content, approval.key),
        content.get("matcher"),
        source="project",
        file=file,
        family=_family(file),
        agent_type=content.get("agent"),
        pending=why,
    )


def is_read_by(place: str, dialect: str) -> bool:
    """Return whether the file of a hook is one that sessions of the dialect read."""
    others = {*FAMILIES["turngate"]} - {*FAMILIES[dialect]}
    return not place.startswith(tuple(f"{folder}.{family}/" for family in others for folder in ("", "~/")))


def describe_change_of_definition(approved: str, now: str) -> str:
    """Return what was changed, as the beginning of a sentence."""
    one, other = json.loads(approved), json.loads(now)
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    match names:
        case ["settings_env"]:
            return "the `env` of the settings was changed"
        case ["settings"]:
            options: list[Mapping[str, Any]] = [each.get("settings", {}) for each in (one, other)]
            changed = [
                key for key in {**options[0], **options[1]} if options[0].get(key) != options[1].get(key)
            ]
            return f"`{changed[0]}` of the settings was changed"
        case _:
            return "its definition was changed"


def _hook(content: Mapping[str, Any], key: str) -> Hook:
    kind: Any = KINDS.get(content.get("type", ""), CommandHook)
    known = {each.name for each in fields(kind)}
    options = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in content.items()
        if name in known
    }
    options["mode"] = content.get("mode") or content.get("settings", {}).get("mode") or "gate"
    try:
        hook: Hook = kind(**options)
    except (TypeError, ValueError):  # of another version
        return CommandHook(key)
    return hook


def _family(file: str) -> str:
    return next((family for family in FAMILIES["turngate"] if file.startswith(f".{family}/")), "claude")
