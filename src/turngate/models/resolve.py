"""Which model a prompt hook asks."""

import os
import threading
from collections.abc import Callable, Mapping
from importlib import import_module

from turngate.errors import UsageError
from turngate.models.scripted import ScriptedModel
from turngate.ports import Model

# A small one of each provider, and where a provider's address may be another one, which need not know it.
SMALL = {"anthropic": "claude-haiku-5-5", "openai": "gpt-6-luna"}
ADDRESS = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
# Claude Code: the `model` field, "else ANTHROPIC_SMALL_FAST_MODEL, else ANTHROPIC_DEFAULT_HAIKU_MODEL".
CHOSEN = {"anthropic": ("ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL")}


class JudgeModels:
    """`judges(hook.model)`: its model, else the settings', else a small one of the session's provider, else the session's."""

    def __init__(
        self,
        settings_judge: str | None = None,
        session: Model | None = None,
        models: Callable[[str], Model] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings_judge, self._session = settings_judge, session
        self._find = models or find_model
        self._environ = environ
        self._found: dict[str, Model] = {}
        self._finding = threading.Lock()

    def __call__(self, named: str | None) -> Model:
        """Raises UsageError when there is no such model, or none at all."""
        name = self._name(named or self._settings_judge)
        if self._session is not None and name in ("", self._session.name):
            return self._session
        with self._finding:  # hooks that run at once ask from threads
            if name not in self._found:
                self._found[name] = self._find(name)
            return self._found[name]

    def _name(self, wanted: str | None) -> str:
        """PROVIDER:NAME, or nothing for the session's own model. A bare name is one of the session's provider."""
        if wanted and ":" in wanted:
            return wanted
        try:
            known = self._session.name if self._session else _default(self._environ)
        except UsageError:
            if not wanted:
                raise
            said = (
                f"{wanted!r} is not written as PROVIDER:NAME, and no key in the environment says whose it is"
            )
            raise UsageError(said) from None
        provider, _, _ = known.partition(":")
        if provider == "scripted" or provider not in SMALL:
            return f"{provider}:{wanted}" if wanted and provider != "scripted" else ""
        chosen = next((name for key in CHOSEN.get(provider, ()) if (name := self._environ.get(key))), None)
        name = wanted or chosen or (None if self._environ.get(ADDRESS[provider]) else SMALL[provider])
        if name is None:  # another address: it surely knows the session's model
            return "" if self._session else _default(self._environ)
        return f"{provider}:{name}"

    async def close(self) -> None:
        """Lets go of their connections; the session's own is the session's."""
        while self._found:
            _, model = self._found.popitem()
            await model.close()


def _default(environ: Mapping[str, str]) -> str:
    """Where no session is: a model of the first provider whose key is there."""
    try:
        name: str = import_module("turngate.models.live").default_model(environ, None)
    except UsageError:
        raise UsageError(
            "no model is there to answer it: give the hook a `model`, the settings a `judge`, or set ANTHROPIC_API_KEY"
        ) from None
    return name


def find_model(name: str) -> Model:
    """A script needs nothing; everything else goes to the library that knows the providers."""
    if name.startswith("scripted:"):
        return ScriptedModel.from_file(name.removeprefix("scripted:"))
    model: Model = import_module("turngate.models.live").LiveModel(name)
    return model
