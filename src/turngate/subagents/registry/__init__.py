"""The registry of runs: a SQLite file that several processes share."""

from turngate.subagents.registry.owners import Owner, owner_is_gone
from turngate.subagents.registry.registry import Registry, RegistryWorker

__all__ = ["Owner", "Registry", "RegistryWorker", "owner_is_gone"]
