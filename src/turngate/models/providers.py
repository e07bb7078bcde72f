"""The providers of live models: address, key and wire format of each, and what their errors mean."""

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from turngate.core.redaction import secret_values
from turngate.core.text import one_line, replace_surrogates, truncate
from turngate.errors import ModelError, UsageError

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


def describe_providers() -> str:
    """Return the list for messages and `--help`."""
    names = ", ".join(PROVIDERS).replace("gemini", "gemini or google")
    return f"{names}, {PYDANTIC_AI}:PROVIDER for every provider of that library"


def find_key(model: str, provider: Provider, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the variable that holds the key, and the key. Raises UsageError if a key is needed and missing."""
    for variable in provider.key_variables:
        if value := environ.get(variable):
            return variable, value
    if provider.needs_key:
        raise UsageError(f"the model {model!r} cannot be used: set {' or '.join(provider.key_variables)}")
    return "", ""


# What a provider answers instead of a reply → ModelError

_TOO_LONG = re.compile(r"too long|too large|context.(length|window)|maximum context", re.IGNORECASE)
_NO_CREDIT = re.compile(r"credit balance is too low|insufficient.(quota|credit|balance)", re.IGNORECASE)
# The status for a provider's name of an error.
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout": 408,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def model_error(
    provider: str, status: int, error: Mapping[str, Any], text: str, retry_after: float | None
) -> ModelError:
    what = " ".join([text, *(str(error.get(name, "")) for name in ("type", "code"))])
    if status == 402 or (status in (400, 403, 429) and _NO_CREDIT.search(what)):
        return ModelError("quota", f"{provider} reports: {text}")
    if status in (400, 413) and _TOO_LONG.search(what):
        return ModelError("context", f"the conversation is too long for the model: {text}")
    return ModelError(error_kind(status), f"{provider} answered {status}: {text}", retry_after=retry_after)


def error_kind(status: int) -> str:
    if status == 429 or status >= 500:
        return "overloaded"
    return {401: "auth", 402: "quota", 403: "auth", 408: "network", 413: "context"}.get(status, "invalid")


def error_object(data: object) -> dict[str, Any]:
    """Return the error of `{"error": {…}}`, `[{"error": {…}}]`, `{"error": "…"}` or `{"message": …}`."""
    if isinstance(data, list) and data:
        data = data[0]
    inner = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(inner, str):
        return {"message": inner}
    return inner if isinstance(inner, dict) else {}


def error_message(error: Mapping[str, Any]) -> str:
    text = error.get("message") or error.get("detail")
    return text if isinstance(text, str) else ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the header Retry-After, which is a number or a date."""
    value = headers.get("retry-after", "")
    if not value:
        return None
    with suppress(ValueError):
        return max(0.0, float(value))
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - lazy: slow to load, and nearly always a number

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


MAX_MESSAGE_CHARS = 200


def safe_line(text: str, *secrets: str) -> str:
    """Return one short line without these secrets, those of the environment, and what looks like a key."""
    for value in (*secrets, *secret_values(os.environ)):
        if len(value) > 7:
            text = text.replace(value, "…")
    text = re.sub(r"\b((sk|pk|gsk|xai)[-_]|AIza)[\w*-]{6,}", "…", text)
    return truncate(one_line(replace_surrogates(text)).rstrip("."), MAX_MESSAGE_CHARS)
