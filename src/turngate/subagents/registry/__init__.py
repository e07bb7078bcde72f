"""The registry of runs: a SQLite file that several processes share."""

from turngate.subagents.registry.database import owners_with_open_runs
from turngate.subagents.registry.owners import Owner, owner_is_gone, process_of
from turngate.subagents.registry.registry import Registry, RegistryWorker
from turngate.subagents.registry.table import MAX_RESULT_CHARS, new_id, truncate_result

__all__ = [
    "MAX_RESULT_CHARS",
    "Owner",
    "Registry",
    "RegistryWorker",
    "new_id",
    "owner_is_gone",
    "owners_with_open_runs",
    "process_of",
    "truncate_result",
]
