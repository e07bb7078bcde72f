"""The register of children's runs: SQLite, safe for several processes; its transitions stand in register.py."""

from turngate.subagents.registry.database import FILE, owners_with_open_runs
from turngate.subagents.registry.owners import Owner, owner_is_gone
from turngate.subagents.registry.registry import Registry
from turngate.subagents.registry.rows import FROZEN_MOST, frozen, new_id
from turngate.subagents.registry.worker import RegistryWorker

__all__ = [
    "FILE",
    "FROZEN_MOST",
    "Owner",
    "Registry",
    "RegistryWorker",
    "frozen",
    "new_id",
    "owner_is_gone",
    "owners_with_open_runs",
]
