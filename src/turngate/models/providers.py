"""The providers of live models: address, key and wire format of each."""

import os
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from turngate.core.redaction import secret_values
from turngate.core.text import one_line, replace_surrogates, truncate
from turngate.errors import UsageError

WireName = Literal["anthropic", "chat", "responses"]


class Provider(NamedTuple):
    wire: WireName
    variables: str  # begins the names of its variables
    url: str
    known_as: str = ""  # its name in the table of known models
    other_key: str = ""  # a further variable for the key
    needs_key: bool = True

    @property
    def url_variable(self) -> str:
        """The variable that names another address."""
        return f"{self.variables}_BASE_URL"

    @property
    def key_variables(self) -> list[str]:
        """The variables for the key; the first one that is set holds it."""
        return [name for name in (f"{self.variables}_API_KEY", self.other_key) if name]


_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"
PROVIDERS = {
    "anthropic": Provider(
        "anthropic", "ANTHROPIC", "https://api.anthropic.com", "anthropic", "ANTHROPIC_AUTH_TOKEN"
    ),
    "openai": Provider("responses", "OPENAI", "https://api.openai.com/v1", "openai"),
    "openai-chat": Provider("chat", "OPENAI", "https://api.openai.com/v1", "openai"),
    "gemini": Provider("chat", "GEMINI", _GOOGLE, "google", "GOOGLE_API_KEY"),
    "openrouter": Provider("chat", "OPENROUTER", "https://openrouter.ai/api/v1"),
    "ollama": Provider("chat", "OLLAMA", "http://localhost:11434/v1", needs_key=False),
    "deepseek": Provider("chat", "DEEPSEEK", "https://api.deepseek.com", "deepseek"),
    "groq": Provider("chat", "GROQ", "https://api.groq.com/openai/v1", "groq"),
    "mistral": Provider("chat", "MISTRAL", "https://api.mistral.ai/v1", "mistral"),
    "xai": Provider("chat", "XAI", "https://api.x.ai/v1", "x-ai"),
}
ALIASES = {"google": "gemini", "openai-responses": "openai"}
PYDANTIC_AI = "pydantic-ai"


def find_provider(name: str) -> Provider | None:
    return PROVIDERS.get(ALIASES.get(name, name))


def describe_providers() -> str:
    """Return the list for messages and `--help`."""
    names = ", ".join(PROVIDERS).replace("gemini", "gemini or google")
    return f"{names}, {PYDANTIC_AI}:PROVIDER for every provider of that library"


def base_url(provider: Provider, environ: Mapping[str, str]) -> str:
    return (environ.get(provider.url_variable) or provider.url).strip().rstrip("/")


def find_key(model: str, provider: Provider, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the variable that holds the key, and the key. Raises UsageError if a key is needed and missing."""
    for variable in provider.key_variables:
        if value := environ.get(variable):
            return variable, value
    if provider.needs_key:
        raise UsageError(f"the model {model!r} cannot be used: set {' or '.join(provider.key_variables)}")
    return "", ""


def error_kind(status: int) -> str:
    """Return the kind of a ModelError for the status of a response."""
    if status == 429 or status >= 500:
        return "overloaded"
    return {401: "auth", 402: "quota", 403: "auth", 408: "network", 413: "context"}.get(status, "invalid")


MAX_MESSAGE_CHARS = 200


def safe_line(text: str, *secrets: str) -> str:
    """Return one short line without these secrets, those of the environment, and what looks like a key."""
    for value in (*secrets, *secret_values(os.environ)):
        if len(value) > 7:
            text = text.replace(value, "…")
    text = re.sub(r"\b((sk|pk|gsk|xai)[-_]|AIza)[\w*-]{6,}", "…", text)
    return truncate(one_line(replace_surrogates(text)).rstrip("."), MAX_MESSAGE_CHARS)
