"""The state of Turngate itself: its version, its state folder, the registry, the keys of models."""

import contextlib
import os
import platform
import sqlite3
import tempfile
import urllib.parse
from collections.abc import Mapping
from importlib.metadata import version
from typing import NamedTuple

from turngate.models.providers import PROVIDERS
from turngate.state.files import open_regular_file
from turngate.state.paths import OTHER_STATE_FOLDER, REGISTRY_FILE, REGISTRY_URL

_BUSY_TIMEOUT_S = 5.0


class Fact(NamedTuple):
    """One line about Turngate; `is_problem`: it does not work as it is."""

    name: str
    text: str
    is_problem: bool = False
    hint: str | None = None


def inspect_turngate(state: str, environ: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return what is known about this installation. `environ` is where models find their keys."""
    return (
        Fact("turngate", f"{version('turngate')}, Python {platform.python_version()}"),
        _state_folder(state),
        _registry(os.path.join(state, REGISTRY_FILE), environ),
        _model_keys(environ),
    )


def _state_folder(state: str) -> Fact:
    name, folder = "state folder", state
    while not os.path.lexists(folder):  # it can be made
        folder = os.path.dirname(folder)
    try:
        with tempfile.NamedTemporaryFile(prefix=".turngate-", dir=folder):
            is_there = folder == state
    except OSError as error:
        why = f"cannot be written ({error.strerror}): there is no journal, and nothing can be approved"
        return Fact(name, f"{state} {why}", is_problem=True, hint=f"repair it, {OTHER_STATE_FOLDER}")
    return Fact(name, f"{state}, {'writable' if is_there else 'not there yet'}")


def _registry(path: str, environ: Mapping[str, str]) -> Fact:
    name = "registry"
    if environ.get(REGISTRY_URL):
        return Fact(name, f"in the database of {REGISTRY_URL}; `turngate runs` tries it")
    if not os.path.lexists(path):
        return Fact(name, "not there yet: no subagent has been started")
    try:
        # Another process may use it: SQLite never opens the file twice in one process.
        os.close(open_regular_file(path, os.O_RDWR))
        uri = f"file:{urllib.parse.quote(path)}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S)) as db:
            runs = int(db.execute("SELECT count(*) FROM runs").fetchone()[0])
    except (OSError, sqlite3.Error) as error:
        why = getattr(error, "strerror", None) or error
        text = f"{path} cannot be used ({why}): no subagent can be started"
        return Fact(name, text, is_problem=True, hint=f"move it away, {OTHER_STATE_FOLDER}")
    return Fact(name, f"readable, {runs:,} run{'s' * (runs != 1)} of subagents")


def _model_keys(environ: Mapping[str, str]) -> Fact:
    """Name the variables that hold a key, never their values."""
    variables = dict.fromkeys(name for provider in PROVIDERS.values() for name in provider.key_variables)
    found = [name for name in variables if environ.get(name)]
    if found:
        return Fact("model key", f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} set")
    return Fact("model key", "none is set; `turngate run` and hooks that ask a model need one, or ollama")
