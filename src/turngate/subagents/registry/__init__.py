"""The registry of runs, which several processes share."""

from turngate.subagents.registry.registry import Registry, RegistryWorker, registry_exists

__all__ = ["Registry", "RegistryWorker", "registry_exists"]
