"""Who has to approve a hook, where it is configured, and its name on the command line."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from turngate.core.constants import COMMAND_LINE, MANAGED
from turngate.core.hooks.turngate_command import runs_turngate_hook
from turngate.core.settings import GUARDED, Layer, Rule
from turngate.trust.fingerprint import LevelSettings


def owner_of(rule: Rule) -> Literal["project", "user"] | None:
    """Return who has to approve a hook; None for hooks in Python, of `--settings` and of an administrator.

    A `turngate hook` line never runs here, so it needs no approval.
    """
    if rule.source == "python" or runs_turngate_hook(rule.hook):
        return None
    return owner_of_level(rule.level or rule.source)


def owner_of_level(level: str) -> Literal["project", "user"] | None:
    if level == "user":
        return "user"
    return None if level in (COMMAND_LINE, MANAGED) else "project"


def level_settings(owner: str, layers: Iterable[Layer]) -> LevelSettings:
    """Return what the files of an owner say about all hooks; the user's options may change without a review."""
    own = [layer for layer in layers if owner_of_level(layer.level) == owner]
    env = {name: value for layer in own for name, value in layer.env.items()}
    options: dict[str, Any] = {}
    for layer in own if owner == "project" else ():
        for name in GUARDED & layer.scalars.keys():
            value = layer.scalars[name]
            options[name] = {**options.get(name, {}), **value} if isinstance(value, Mapping) else value
    return LevelSettings(env, options)


def place_of(rule: Rule) -> str:
    """Return where a hook is configured: the same place with another definition is the same hook, changed."""
    return f"{rule.file}:{rule.event}:{rule.agent_type or ''}:{rule.hook.id or rule.index}"


def unique_keys(rules: Iterable[Rule]) -> list[str]:
    """Give a hook its id as key, or its event and its number there; the second of the same id gets a number too."""
    numbers: dict[str, int] = {}
    used: dict[str, int] = {}
    keys = []
    for rule in rules:
        numbers[rule.event] = numbers.get(rule.event, 0) + 1
        key = rule.hook.id or f"{rule.event}:{numbers[rule.event]}"
        used[key] = used.get(key, 0) + 1
        keys.append(key if used[key] == 1 else f"{key}:{used[key]}")
    return keys
