"""`turngate uninstall`: the same as `turngate install --uninstall`, which its parser sets."""

from turngate.cli.commands.install import run

__all__ = ["run"]
