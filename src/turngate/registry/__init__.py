"""The register of children's runs: SQLite, safe for several processes; its transitions stand in register.py."""

from turngate.registry.opening import FILE, owners_of
from turngate.registry.owners import Owner, is_gone
from turngate.registry.register import Registry
from turngate.registry.rows import FROZEN_MOST, frozen, new_id

__all__ = ["FILE", "FROZEN_MOST", "Owner", "Registry", "frozen", "is_gone", "new_id", "owners_of"]
