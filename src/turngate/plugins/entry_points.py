"""Finds plugins that other packages bring: entry points `turngate.plugins`, and of these only what the settings name."""

from collections.abc import Sequence
from importlib.metadata import entry_points

from turngate.errors import UsageError
from turngate.plugins.handlers import Plugins

GROUP = "turngate.plugins"


def load_plugins(names: Sequence[str]) -> Plugins:
    """The plugins that are switched on; nobody's code runs because it happens to be installed."""
    plugins = Plugins()
    known = {point.name: point for point in entry_points(group=GROUP)} if names else {}
    for name in names:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise UsageError(
                f"the settings switch on the plugin {name!r}, which is not installed; installed: {there}"
            )
        try:
            found = known[name].load()
            plugins.add(found() if isinstance(found, type) else found)
        except Exception as error:
            said = f"the plugin {name!r} can not be loaded ({type(error).__name__}: {error}); switch it off in the settings"
            raise UsageError(said) from error
    return plugins
