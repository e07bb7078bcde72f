"""The gates that a turn has missed, as a record of the transcript: a crash must not make the turn a success."""

from collections.abc import Iterable, Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.events.stream_events import SubagentFinished
from turngate.core.text import quote_name
from turngate.core.verdict.hook_run import HookOutput, record_outputs, recorded_outputs

RECORD_TYPE = "missed_gates"


@frozen(kw_only=True)
class MissedGates:
    unenforced: tuple[HookOutput, ...] = ()
    subagents: tuple[SubagentFinished, ...] = ()  # that a gate still blocks

    def as_record(self) -> dict[str, Any]:
        """Return the record, without what the hooks printed."""
        subagents = [{**vars(each), "unenforced": record_outputs(each.unenforced)} for each in self.subagents]
        return {"type": RECORD_TYPE, "unenforced": record_outputs(self.unenforced), "subagents": subagents}

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


def merge_missed(missed: Iterable[MissedGates]) -> MissedGates:
    """Return all of them as one, without repetitions."""
    missed = list(missed)
    return MissedGates(
        unenforced=tuple(dict.fromkeys(hook for each in missed for hook in each.unenforced)),
        subagents=tuple(dict.fromkeys(finished for each in missed for finished in each.subagents)),
    )


def missed_gates_of(record: Mapping[str, Any]) -> MissedGates:
    """Read a record; one of another form has nothing."""
    try:
        return MissedGates(
            unenforced=recorded_outputs(record["unenforced"]),
            subagents=tuple(map(_subagent, record["subagents"])),
        )
    except (KeyError, TypeError):
        return MissedGates()


def _subagent(record: Mapping[str, Any]) -> SubagentFinished:
    hooks = recorded_outputs(record["unenforced"])
    return SubagentFinished(**{**record, "blocked_by": tuple(record["blocked_by"]), "unenforced": hooks})
