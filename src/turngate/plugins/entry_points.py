"""Load plugins that other packages provide as entry points, only those that the settings enable."""

from collections.abc import Sequence
from typing import Any

from turngate.errors import UsageError
from turngate.plugins.handlers import Plugins

ENTRY_POINT_GROUP = "turngate.plugins"


def installed_plugins() -> tuple[str, ...]:
    """Return the names of the plugins that packages provide, without loading them."""
    return tuple(sorted(_entry_points()))


def load_plugins(names: Sequence[str]) -> Plugins:
    """Load the named plugins; a package that is only installed runs no code. Raises UsageError."""
    plugins = Plugins()
    installed = _entry_points() if names else {}
    for name in names:
        if name not in installed:
            available = ", ".join(sorted(installed)) or "none"
            raise UsageError(
                f"the settings enable the plugin {name!r}, which is not installed; installed: {available}"
            )
        try:
            plugin = installed[name].load()
            plugins.add(plugin() if isinstance(plugin, type) else plugin)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(
                f"the plugin {name!r} cannot be loaded ({reason}); disable it in the settings"
            ) from error
    return plugins


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - lazy: slow to load, and most projects have no plugins

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
