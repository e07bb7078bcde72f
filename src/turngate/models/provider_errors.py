"""Translate what a provider answers instead of a reply into ModelError."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from turngate.errors import ModelError
from turngate.models.safe_text import safe_line

_TOO_LONG = re.compile(r"too long|too large|context.(length|window)|maximum context", re.IGNORECASE)
_NO_CREDIT = re.compile(r"credit balance is too low|insufficient.(quota|credit|balance)", re.IGNORECASE)
# The status for a provider's name of an error inside of a stream.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def status_error(
    provider: str, status: int, headers: Mapping[str, str], body: bytes, *secrets: str
) -> ModelError:
    """Return the error for a response with this status."""
    error = _error_object(body)
    text = safe_line(_message(error) or body.decode("utf-8", "replace").strip() or "no message", *secrets)
    if status < 400:
        text = (
            "it redirects to another address, and no request follows"
            if status >= 300
            else "it has no content"
        )
    return _model_error(provider, status, error, text, _retry_after(headers))


def stream_error(provider: str, error: Mapping[str, Any], *secrets: str) -> ModelError:
    """Return the error for one that a provider reports in the middle of an answer."""
    names = [error.get(name) for name in ("type", "code")]
    status = next((_STATUSES[name] for name in names if isinstance(name, str) and name in _STATUSES), None)
    if status is None and isinstance(code := error.get("code"), int) and 400 <= code < 600:
        status = code
    text = safe_line(_message(error) or "no message", *secrets)
    return _model_error(provider, status or 500, error, text, None)


def _model_error(
    provider: str, status: int, error: Mapping[str, Any], text: str, retry_after: float | None
) -> ModelError:
    what = " ".join([text, *(str(error.get(name, "")) for name in ("type", "code"))])
    if status == 402 or (status in (400, 403, 429) and _NO_CREDIT.search(what)):
        return ModelError("quota", f"{provider} reports: {text}")
    if status in (400, 413) and _TOO_LONG.search(what):
        return ModelError("context", f"the conversation is too long for the model: {text}")
    return ModelError(_kind(status), f"{provider} answered {status}: {text}", retry_after=retry_after)


def _kind(status: int) -> str:
    if status == 429 or status >= 500:
        return "overloaded"
    return {401: "auth", 403: "auth", 408: "network", 413: "context"}.get(status, "invalid")


def _error_object(body: bytes) -> dict[str, Any]:
    """Return the error of `{"error": {…}}`, `[{"error": {…}}]`, `{"error": "…"}` or `{"message": …}`."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(data, list) and data:
        data = data[0]
    inner = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(inner, str):
        return {"message": inner}
    return inner if isinstance(inner, dict) else {}


def _message(error: Mapping[str, Any]) -> str:
    text = error.get("message") or error.get("detail")
    return text if isinstance(text, str) else ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the header Retry-After, which is a number or a date."""
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    if not value:
        return None
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - lazy: slow to load, and nearly always a number

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
