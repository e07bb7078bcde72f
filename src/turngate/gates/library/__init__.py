"""The gates, one module each, and all of them by name. To add a gate: a module and its name in `_NAMES`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module

from turngate.gates.gate import Gate, GateOption

# A gate is in the module of its name, as its name in capitals; the checks of projects share one module.
_PROJECT_CHECKS = ("tests", "lint", "types", "format", "build")
_NAMES = (
    *("archive", "budget", "checklist", "command", "clean", "evidence", "plan", "judge", "log", "notify"),
    *("no-stubs", "outputs", *_PROJECT_CHECKS, "todos", "touched", "until", "untouched"),
    *("checks", "coverage", "debug", "dependencies", "ran", "review", "secrets", "size", "suppressions"),
)

# They judge words and differences, so that the user's wish may speak against them. The agent can say so, unless they are firm.
# Against those that run a command it can only say so if it is not known what failed before.
_SOFT = (
    *("checklist", "clean", "evidence", "no-stubs", "plan", "todos", "touched", "untouched"),
    *("coverage", "debug", "dependencies", "ran", "review", "size", "suppressions"),
)
FIRM = GateOption("firm", "flag", "do not let the agent override the gate with `turngate: keep`")


class _Gates(Mapping[str, Gate]):
    """All gates; a module is loaded when its gate is asked for, because most stops need one or two of them."""

    def __getitem__(self, name: str) -> Gate:
        if name not in _NAMES:
            raise KeyError(name)
        own = name.replace("-", "_")
        module = import_module(
            f"turngate.gates.library.{'project_checks' if name in _PROJECT_CHECKS else own}"
        )
        gate: Gate = getattr(module, own.upper())
        return replace(gate, options=(*gate.options, FIRM)) if name in _SOFT or gate.is_cached else gate

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __contains__(self, name: object) -> bool:
        return name in _NAMES


GATES = _Gates()
