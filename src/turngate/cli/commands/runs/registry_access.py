"""Open this user's registry for a command."""

import contextlib
import os
import sys
from collections.abc import Iterator

from turngate.errors import RegistryError, UsageError
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.paths import state_folder
from turngate.subagents.registry import REGISTRY_FILE, Registry

NO_SUBAGENTS = "there are no subagents; a session starts one with the Task tool"


@contextlib.contextmanager
def open_registry() -> Iterator[Registry | None]:
    """Yield this user's registry, or None if there is no file; reading never creates one."""
    if not os.path.exists(os.path.join(state_folder(), REGISTRY_FILE)):
        yield None
        return
    try:
        with os_errors_as_usage_errors(state_folder()):
            registry = Registry(state_folder())
        with contextlib.closing(registry):
            if registry.notice:
                print(f"! {registry.notice}", file=sys.stderr)
            yield registry
    except RegistryError as error:
        raise UsageError(f"{error}; repair it, or set TURNGATE_STATE to another folder") from None


@contextlib.contextmanager
def existing_registry() -> Iterator[Registry]:
    """Yield this user's registry; without a file there are no subagents, which is an error here."""
    with open_registry() as registry:
        if registry is None:
            raise UsageError(NO_SUBAGENTS)
        yield registry
