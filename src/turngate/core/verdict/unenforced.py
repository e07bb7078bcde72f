"""The gates that a turn has missed, as a record of the transcript: a crash must not make the turn a success."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from turngate._frozen import frozen
from turngate.core.events.session_events import SubagentFinished
from turngate.core.hooks.kinds import HookKind
from turngate.core.text import quote_name
from turngate.core.verdict.hook_run import HookOutcome, HookOutput

RECORD_TYPE = "missed_gates"
_KEPT_OF_HOOK = ("event", "hook", "kind", "outcome", "said")
_TEXTS_OF_SUBAGENT = ("agent_id", "label", "outcome", "agent_type", "reason", "run_id")


@frozen(kw_only=True)
class MissedGates:
    unenforced: tuple[HookOutput, ...] = ()
    subagents: tuple[SubagentFinished, ...] = ()  # that a gate still blocks

    def as_record(self) -> dict[str, Any]:
        """Return the record, without what the hooks printed."""
        subagents = [{**vars(each), "unenforced": _hooks_json(each.unenforced)} for each in self.subagents]
        return {"type": RECORD_TYPE, "unenforced": _hooks_json(self.unenforced), "subagents": subagents}

    def notices(self) -> tuple[str, ...]:
        """Return what the turn that continues after a crash says about hooks; its result names blocked subagents."""
        hooks = [(f"hook {quote_name(hook.hook)}", hook) for hook in self.unenforced]
        hooks += [
            (f"hook {quote_name(hook.hook)} of subagent {finished.label}", hook)
            for finished in self.subagents
            for hook in finished.unenforced
        ]
        before = "was NOT enforced before the process died"
        return tuple(dict.fromkeys(f"{name} {before}: {hook.said or hook.outcome}" for name, hook in hooks))


def _hooks_json(hooks: Iterable[HookOutput]) -> list[dict[str, Any]]:
    return [{name: getattr(hook, name) for name in _KEPT_OF_HOOK} for hook in hooks]


def merge_missed(missed: Iterable[MissedGates]) -> MissedGates:
    """Return all of them as one, without repetitions."""
    missed = list(missed)
    return MissedGates(
        unenforced=tuple(dict.fromkeys(hook for each in missed for hook in each.unenforced)),
        subagents=tuple(dict.fromkeys(finished for each in missed for finished in each.subagents)),
    )


def missed_gates_of(record: Mapping[str, Any]) -> MissedGates:
    """Read a record; values that no version writes are left out."""
    subagents = tuple(filter(None, map(_subagent, _objects(record.get("subagents")))))
    return MissedGates(unenforced=_hook_outputs(record.get("unenforced")), subagents=subagents)


def _objects(values: object) -> Iterator[Mapping[str, Any]]:
    yield from (value for value in (values if isinstance(values, list) else ()) if isinstance(value, dict))


def _hook_outputs(values: object) -> tuple[HookOutput, ...]:
    return tuple(filter(None, map(_hook_output, _objects(values))))


def _hook_output(value: Mapping[str, Any]) -> HookOutput | None:
    event, hook, said = value.get("event"), value.get("hook"), value.get("said")
    kind: Any = value.get("kind")
    outcome: Any = value.get("outcome")
    if not isinstance(event, str) or not isinstance(hook, str):
        return None
    if kind not in get_args(HookKind) or outcome not in get_args(HookOutcome):
        return None
    return HookOutput(event, hook, kind, outcome, said if isinstance(said, str) else None)


def _subagent(value: Mapping[str, Any]) -> SubagentFinished | None:
    texts = {name: value.get(name) for name in _TEXTS_OF_SUBAGENT}
    redirects, seconds, names = value.get("redirects"), value.get("seconds"), value.get("blocked_by")
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(names, list):
        return None
    if type(redirects) is not int or not isinstance(seconds, int | float):
        return None
    given: dict[str, Any] = {**texts, "blocked_by": tuple(map(str, names))}
    hooks = _hook_outputs(value.get("unenforced"))
    return SubagentFinished(**given, redirects=redirects, seconds=seconds, unenforced=hooks)
