"""The gates, one module each, and all of them by name. To add a gate: a module and a row in `_MODULES`."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from turngate.gates.gate import Gate

# The module of each gate; there the gate has its name in capitals.
_MODULES = {
    "archive": "archive",
    "budget": "budget",
    "checklist": "checklist",
    "command": "command",
    "clean": "clean",
    "evidence": "evidence",
    "plan": "plan",
    "judge": "judge",
    "log": "log",
    "notify": "notify",
    "no-stubs": "no_stubs",
    "outputs": "outputs",
    "tests": "project_checks",
    "lint": "project_checks",
    "types": "project_checks",
    "build": "project_checks",
    "todos": "todos",
    "touched": "touched",
    "until": "until",
    "untouched": "untouched",
}


class _Gates(Mapping[str, Gate]):
    """All gates; a module is loaded when its gate is asked for, because most stops need one or two of them."""

    def __getitem__(self, name: str) -> Gate:
        module = import_module(f"turngate.gates.library.{_MODULES[name]}")
        gate: Gate = getattr(module, name.upper().replace("-", "_"))
        return gate

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)

    def __contains__(self, name: object) -> bool:
        return name in _MODULES


GATES = _Gates()
