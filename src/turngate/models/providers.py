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
    url: str
    url_variable: str  # names another address
    key_variables: tuple[str, ...]  # the first one that is set holds the key
    needs_key: bool = True
    known_as: str = ""  # its name in the table of known models


PROVIDERS: dict[str, Provider] = {
    "anthropic": Provider(
        "anthropic",
        "https://api.anthropic.com",
        "ANTHROPIC_BASE_URL",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        known_as="anthropic",
    ),
    "openai": Provider(
        "responses", "https://api.openai.com/v1", "OPENAI_BASE_URL", ("OPENAI_API_KEY",), known_as="openai"
    ),
    "openai-chat": Provider(
        "chat", "https://api.openai.com/v1", "OPENAI_BASE_URL", ("OPENAI_API_KEY",), known_as="openai"
    ),
    "gemini": Provider(
        "chat",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_BASE_URL",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        known_as="google",
    ),
    "openrouter": Provider(
        "chat", "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL", ("OPENROUTER_API_KEY",)
    ),
    "ollama": Provider(
        "chat", "http://localhost:11434/v1", "OLLAMA_BASE_URL", ("OLLAMA_API_KEY",), needs_key=False
    ),
    "deepseek": Provider(
        "chat", "https://api.deepseek.com", "DEEPSEEK_BASE_URL", ("DEEPSEEK_API_KEY",), known_as="deepseek"
    ),
    "groq": Provider(
        "chat", "https://api.groq.com/openai/v1", "GROQ_BASE_URL", ("GROQ_API_KEY",), known_as="groq"
    ),
    "mistral": Provider(
        "chat", "https://api.mistral.ai/v1", "MISTRAL_BASE_URL", ("MISTRAL_API_KEY",), known_as="mistral"
    ),
    "xai": Provider("chat", "https://api.x.ai/v1", "XAI_BASE_URL", ("XAI_API_KEY",), known_as="x-ai"),
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


MAX_MESSAGE_CHARS = 200


def safe_line(text: str, *secrets: str) -> str:
    """Return one short line without these secrets, those of the environment, and what looks like a key."""
    for value in (*secrets, *secret_values(os.environ)):
        if len(value) > 7:
            text = text.replace(value, "…")
    text = re.sub(r"\b((sk|pk|gsk|xai)[-_]|AIza)[\w*-]{6,}", "…", text)
    return truncate(one_line(replace_surrogates(text)).rstrip("."), MAX_MESSAGE_CHARS)
