"""Open models by name, and choose the model that answers a prompt or agent hook."""

import os
import threading
from collections.abc import Callable, Mapping
from functools import partial

from turngate.errors import UsageError
from turngate.models.providers import PROVIDERS, PYDANTIC_AI
from turngate.models.scripted import ScriptedModel
from turngate.ports import Model

# The model of the first provider whose key is in the environment.
DEFAULT_MODELS = {"ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5-5", "OPENAI_API_KEY": "openai:gpt-6.1-sol"}
# A small model of each provider. A server at another address may not have it.
SMALL_MODELS = {"anthropic": "claude-haiku-5-5", "openai": "gpt-6-luna"}
# Claude Code: the `model` field, "else ANTHROPIC_SMALL_FAST_MODEL, else ANTHROPIC_DEFAULT_HAIKU_MODEL".
SMALL_MODEL_VARIABLES = {"anthropic": ("ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL")}


def open_model(name: str, environ: Mapping[str, str] = os.environ) -> Model:
    """Return the model `scripted:FILE` or `PROVIDER:NAME`. `environ` has keys and addresses. Raises UsageError."""
    if name.startswith("scripted:"):
        return ScriptedModel.from_file(name.removeprefix("scripted:"))
    if not all(name.partition(":")[::2]):
        raise UsageError(
            f"the model {name!r} is not of the form PROVIDER:NAME, such as {DEFAULT_MODELS['ANTHROPIC_API_KEY']}; "
            "scripted:FILE replays a script"
        )
    if name.startswith(f"{PYDANTIC_AI}:"):
        from turngate.models.pydantic_ai_model import PydanticAiModel  # noqa: PLC0415 - lazy: an extra, and slow to load

        return PydanticAiModel(name)
    from turngate.models.live import LiveModel  # noqa: PLC0415 - lazy: not for a scripted model

    return LiveModel(name, environ)


NO_MODEL = (
    "no model given: pass --model PROVIDER:NAME or --model scripted:FILE, "
    f"or set {' or '.join(DEFAULT_MODELS)}"
)
NO_JUDGE = (
    "no judge model is configured: give the hook a `model`, the settings a `judge`, or set ANTHROPIC_API_KEY"
)


def default_model(environ: Mapping[str, str], otherwise: str = NO_MODEL) -> str:
    """Return a model of the first provider whose key is in the environment. Raises UsageError."""
    name = next((model for key, model in DEFAULT_MODELS.items() if environ.get(key)), None)
    if name is None:
        raise UsageError(otherwise)
    return name


class JudgeModels:
    """Models of hooks: `judges(hook.model)` returns an open model, and keeps it for the next hook.

    The order is: the hook's model, the settings' `judge`, a small model of the session's provider, the
    session's own model.
    """

    def __init__(
        self,
        settings_judge: str | None = None,
        session: Model | None = None,
        models: Callable[[str], Model] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings_judge, self._session = settings_judge, session
        self._open_model = models or partial(open_model, environ=environ)
        self._environ = environ
        self._opened: dict[str, Model] = {}
        self._lock = threading.Lock()

    def __call__(self, hook_model: str | None) -> Model:
        """Return the model. Raises UsageError when it does not exist, or none is configured."""
        name = self._name(self._settings_judge if hook_model is None else hook_model)
        if self._session is not None and name in ("", self._session.name):
            return self._session
        with self._lock:  # hooks that run in parallel call from threads
            if name not in self._opened:
                self._opened[name] = self._open_model(name)
            return self._opened[name]

    def _name(self, configured: str | None) -> str:
        """Return PROVIDER:NAME, by default of the session's provider, or "" for the session's own model."""
        if configured and ":" in configured:
            return configured
        provider = self._provider(configured)
        if provider == "scripted" or provider not in SMALL_MODELS:
            return f"{provider}:{configured}" if configured and provider != "scripted" else ""
        name = configured or self._small_model(provider)
        if name is None:  # at another address, only the session's model is known to exist
            return "" if self._session else default_model(self._environ, NO_JUDGE)
        return f"{provider}:{name}"

    def _provider(self, configured: str | None) -> str:
        try:
            name = self._session.name if self._session else default_model(self._environ, NO_JUDGE)
        except UsageError:
            if not configured:
                raise
            raise UsageError(
                f"the model {configured!r} is not of the form PROVIDER:NAME, "
                "and no API key in the environment tells its provider"
            ) from None
        return name.partition(":")[0]

    def _small_model(self, provider: str) -> str | None:
        for variable in SMALL_MODEL_VARIABLES.get(provider, ()):
            if name := self._environ.get(variable):
                return name
        return None if self._environ.get(PROVIDERS[provider].url_variable) else SMALL_MODELS[provider]

    async def close(self) -> None:
        """Close the opened models; the session closes its own."""
        while self._opened:
            _, model = self._opened.popitem()
            await model.close()
