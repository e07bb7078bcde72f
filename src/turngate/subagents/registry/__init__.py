"""The registry of runs, which several processes share."""

from turngate.subagents.registry.registry import AbandonedRuns, Registry, RegistryWorker, registry_exists

__all__ = ["AbandonedRuns", "Registry", "RegistryWorker", "registry_exists"]
