"""Open this user's registry for a command."""

import contextlib
import os
import sys
from collections.abc import Iterator

from turngate.cli.progress import print_above_progress
from turngate.errors import RegistryError, UsageError
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.paths import state_folder
from turngate.subagents.registry import ADVICE, REGISTRY_FILE, Registry

NO_SUBAGENTS = "there are no subagents; a session starts one with the Task tool"


@contextlib.contextmanager
def open_registry() -> Iterator[Registry | None]:
    """Yield this user's registry, or None if there is no file; reading never creates one."""
    if not os.path.exists(os.path.join(state_folder(), REGISTRY_FILE)):
        yield None
        return
    try:
        with os_errors_as_usage_errors(state_folder()):
            registry = Registry(state_folder(), on_wait=print_above_progress)
        with contextlib.closing(registry):
            if registry.notice:
                print(f"! {registry.notice}", file=sys.stderr)
            yield registry
    except RegistryError as error:
        has_advice = ADVICE in str(error)
        raise UsageError(str(error) if has_advice else f"{error}; repair it, {ADVICE}") from None


@contextlib.contextmanager
def existing_registry() -> Iterator[Registry]:
    """Yield this user's registry; without a file there are no subagents, which is an error here."""
    with open_registry() as registry:
        if registry is None:
            raise UsageError(NO_SUBAGENTS)
        yield registry
