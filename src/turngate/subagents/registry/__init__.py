"""The registry of runs, which several processes share."""

from turngate.subagents.registry.registry import Registry, RegistryWorker, registry_exists
from turngate.subagents.registry.sqlite_store import AbandonedRuns

__all__ = ["AbandonedRuns", "Registry", "RegistryWorker", "registry_exists"]
