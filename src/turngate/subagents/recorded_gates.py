"""The gates that a subagent lives under, as its row holds them: only a process that asks them may continue it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.subagent_run import LIVING_STATES, SubagentRun
from turngate.core.hooks.kinds import CallbackHook, identity, label, qualified_name
from turngate.core.hooks.selection import stays, switched_off_by
from turngate.core.settings import Rule, Settings
from turngate.core.text import printable
from turngate.settings.key_table import RESTRICTIONS, TURNGATE_KEYS
from turngate.subagents.host import SubagentHost

GATE_EVENTS = ("SubagentStop", "PreToolUse", "PermissionRequest")  # a block holds a subagent back
MAX_NAMES = 5  # of gates in a row
FINGERPRINT_CHARS = 16
_NOT_IN_FINGERPRINT = ("callback", "name", "status_message", "timeout")
# The other fields of `Settings` decide what a gate sees, whether it can run, or whether its block counts. One that is
# added is compared unless it is listed here.
NOT_ABOUT_GATES = frozenset(
    {
        *("rules", "switched_off", "managed_only", "mode", "timeouts", "guarded"),  # in the fingerprints
        "dialect",  # by its name
        "user_env",  # a part of `env`
        *("limit", "child_limit"),  # the row has the limit of redirects
        "announce_children",  # the row has it
        *("children_at_once", "children_depth", "model", "plugins", "plugin_dirs"),
        *("when_user_pending", "retention_days", "registry", "problems"),
    }
)

_DEFAULTS = vars(Settings())


@frozen(kw_only=True)
class Gates:
    """What holds a subagent back. `names` is for readers; equal gates have equal fingerprints in every process."""

    dialect: str
    hooks: bool = True  # False: started with --no-hooks, or from a hook
    names: tuple[str, ...] = ()  # each with its file, or "Python"; the first MAX_NAMES
    fingerprints: tuple[str, ...] = ()
    # Fingerprints of the settings under which they are asked, without defaults; None in a row of an earlier version.
    settings: Mapping[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "names": list(self.names), "fingerprints": list(self.fingerprints)}


def gates_of(host: SubagentHost, agent_type: str) -> Gates:
    """Return the gates that a session asks for subagents of this type."""
    handlers = host.plugins.handler_names("subagent_stopping")
    found = {_fingerprint(["subagent_stopping", name]): f"{name} (plugin)" for name in handlers}
    if host.hooks_run:
        found |= dict(_hook_gates(host.settings, agent_type))
    return Gates(
        dialect=host.settings.dialect.name,
        hooks=host.hooks_run,
        names=tuple(dict.fromkeys(found.values()))[:MAX_NAMES],
        fingerprints=tuple(found),
        settings=compared_settings(host.settings),
    )


def recorded_gates(run: SubagentRun) -> Gates:
    """Return the gates in a run's row. A row of an earlier version has no more than the dialect."""
    stored = run.launch.get("gates")
    values: Mapping[str, Any] = stored if isinstance(stored, Mapping) else {}
    return Gates(
        dialect=str(values.get("dialect") or run.launch.get("dialect") or ""),
        hooks=bool(values.get("hooks", True)),
        names=_texts(values.get("names")),
        fingerprints=_texts(values.get("fingerprints")),
        settings=settings if isinstance(settings := values.get("settings"), Mapping) else None,
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def why_left(run: SubagentRun, host: SubagentHost) -> str:
    """Return why a session may not continue a run of another process, or "" if it may.

    It may if it asks at least the gates that the run lives under, under the same settings. One that has its result
    needs no gate any more.
    """
    if run.state not in LIVING_STATES:
        return ""
    wanted, asked = recorded_gates(run), gates_of(host, run.agent_type)
    if wanted.dialect not in ("", asked.dialect):
        return f"it runs in the dialect {wanted.dialect}, not in {asked.dialect}"
    if wanted.hooks and not asked.hooks:
        return "no hooks run here"
    if not set(wanted.fingerprints) <= set(asked.fingerprints):
        return f"not all of its gates are asked here: {describe_gates(wanted)}"
    if wanted.fingerprints and (names := _different(wanted.settings, asked.settings)):
        return f"its gates are asked under other settings here: {', '.join(names)}"
    return ""


def _different(wanted: Mapping[str, str] | None, asked: Mapping[str, str] | None) -> list[str]:
    """Return the settings that differ, by their keys in a file."""
    if wanted is None or asked is None:
        return []
    keys = {key.field: name for name, key in (*TURNGATE_KEYS.items(), *RESTRICTIONS.items())}
    names = sorted(wanted.keys() | asked.keys())
    return [printable(keys.get(name, name)) for name in names if wanted.get(name) != asked.get(name)]


def left_notice(run: SubagentRun, why: str) -> str:
    name, chain = printable(run.name), run.chain[:8]
    if run.is_for_workers:
        return f"subagent {name} ({chain}) is left to other workers: {why}"
    return (
        f"subagent {name} ({chain}) of a process that died is left alone: {why}; "
        "continue it with `turngate runs recover` (--current-gates: under the current gates), "
        f"or end it with `turngate runs kill {chain}`"
    )


def describe_gates(gates: Gates) -> str:
    more = ", …" if len(gates.fingerprints) > len(gates.names) else ""
    return printable(", ".join(gates.names)) + more


# Fingerprints


def compared_settings(settings: Settings) -> dict[str, str]:
    """Return a fingerprint of each setting that decides how gates are asked, if it is not the default."""
    values = {name: value for name, value in vars(settings).items() if name not in NOT_ABOUT_GATES}
    return {name: _fingerprint([value]) for name, value in values.items() if value != _DEFAULTS[name]}


def _hook_gates(settings: Settings, agent_type: str) -> Iterator[tuple[str, str]]:
    rules = [
        rule for rule in settings.rules if rule.event in GATE_EVENTS and rule.agent_type in (None, agent_type)
    ]
    for number, rule in enumerate(rules):
        if (
            rule.hook.enabled
            and not rule.pending
            and not rule.hook.detached
            and settings.mode_of(rule) == "gate"
            and not switched_off_by(rule, settings)
            and not any(_may_replace(other, rule, settings) for other in rules[number + 1 :])
        ):
            yield _fingerprint(_content(rule, settings)), f"{label(rule.hook)} ({rule.file or 'Python'})"


def _may_replace(later: Rule, rule: Rule, settings: Settings) -> bool:
    """Return whether a later definition of the same hook counts instead, wherever its matcher matches too."""
    return (
        later.event == rule.event
        and not later.pending
        and "python" not in (later.source, rule.source)
        and identity(later.hook) == identity(rule.hook)
        and not stays(rule, later, settings)
    )


def _content(rule: Rule, settings: Settings) -> list[Any]:
    """Return what decides how a hook behaves. Of a callback only its name is known, not what it does."""
    hook = rule.hook
    values = {name: value for name, value in vars(hook).items() if name not in _NOT_IN_FINGERPRINT}
    if isinstance(hook, CallbackHook):
        values["callback"] = qualified_name(hook.callback)
    content = [rule.event, rule.matcher, rule.agent_type, hook.kind, values, settings.timeout_of(rule)]
    own = {name: value for name, value in settings.guarded_for(rule).items() if name not in NOT_ABOUT_GATES}
    return [*content, own] if own else content


def _fingerprint(content: list[Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:FINGERPRINT_CHARS]
