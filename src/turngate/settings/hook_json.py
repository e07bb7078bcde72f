"""Reads the JSON form of one hook, for settings files and for `Options`. The callers phrase the problems."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from turngate.core.hooks.kinds import Hook
from turngate.settings.keys import Key
from turngate.settings.problem_log import did_you_mean


class RejectedKey(NamedTuple):
    """A key that is unknown (`row` is None), belongs to other hook kinds, or has an invalid value."""

    name: str
    value: Any
    row: Key | None


def hook_from_json(
    entry: Mapping[str, Any], hook: type[Hook], rows: Mapping[str, Key]
) -> tuple[dict[str, Any], list[RejectedKey]]:
    """Return the constructor arguments for a hook, and the keys that did not become one."""
    fields: dict[str, Any] = {}
    rejected: list[RejectedKey] = []
    kind = hook.kind
    for name, value in entry.items():
        if name == "type":
            continue
        row = rows.get(name)
        if row is not None and kind in row.kinds and row.is_valid(value):
            fields[row.field] = value if row.convert is None else row.convert(value)
        else:
            rejected.append(RejectedKey(name, value, row))
    return fields, rejected


def describe_bad_type(
    entry: Mapping[str, Any], kinds: Mapping[str, type[Hook]], describe: Callable[[Any], str]
) -> tuple[str, str | None]:
    """Return message and hint for an entry whose `type` is missing or not one of these kinds."""
    expected = "expected one of " + ", ".join(f'"{kind}"' for kind in kinds)
    if "type" not in entry:
        bodies = ((kind, "gate" if kind == "gate" else hook.body) for kind, hook in kinds.items())
        kind = next((kind for kind, body in bodies if body in entry), "command")
        return f"is missing, {expected}", f'add "type": "{kind}"'
    value = entry["type"]
    kind = value.lower() if isinstance(value, str) else ""
    return f"is {describe(value)}, {expected}", did_you_mean(kind if kind in kinds else None)
