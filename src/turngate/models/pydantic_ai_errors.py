"""Translate what pydantic-ai and the providers' SDKs raise into ModelError."""

import re

from pydantic_ai import exceptions

from turngate.errors import ModelError
from turngate.models.safe_text import safe_line


def model_error(error: Exception, provider: str) -> ModelError:
    """Return the ModelError for what pydantic-ai or a provider's SDK raised."""
    match error:
        case exceptions.ContentFilterError():
            return ModelError("refusal", f"{provider} refused the request: {safe_line(error.message)}")
        case exceptions.ModelQuotaExceededError():
            return ModelError("quota", f"{provider} reports: {_message(error)}")
        case exceptions.ModelContextWindowExceededError():
            return ModelError("context", f"the conversation is too long for the model: {_message(error)}")
        case exceptions.ModelTimeoutError() | exceptions.ModelRequestTimeout():
            return ModelError("network", f"{provider} did not answer in time")
        case exceptions.ModelConnectionError() if "Illegal header value" in _cause(error):
            return ModelError("auth", f"the key for {provider} contains a space or a line break")
        case exceptions.ModelConnectionError() if "CERTIFICATE_VERIFY_FAILED" in _cause(error):
            return ModelError("invalid", f"the connection to {provider} failed: {_cause(error)}")
        case exceptions.ModelConnectionError():
            return ModelError("network", f"the connection to {provider} failed: {_cause(error)}")
        case exceptions.ModelHTTPError(status_code=status):
            text = f"{provider} answered {status}: {_message(error)}"
            if status in (400, 413) and _TOO_LONG.search(text):
                return ModelError("context", text)
            return ModelError(_kind(status), text, retry_after=_retry_after(error))
        case (
            exceptions.ModelRateLimitError()
            | exceptions.ModelUnavailableError()
            | exceptions.ModelServerError()
        ):
            return ModelError("overloaded", f"{provider} reports: {_message(error)}")
        case exceptions.UnexpectedModelBehavior():
            return ModelError(
                "network", f"{provider} sent an answer that cannot be read: {safe_line(str(error))}"
            )
        case _:
            return ModelError("invalid", f"the request to {provider} failed: {safe_line(str(error))}")


_TOO_LONG = re.compile(r"too long|too large|context (length|window)|maximum context", re.IGNORECASE)


def _retry_after(error: Exception) -> float | None:
    """Return the answer's Retry-After header, as the SDK kept it, if it is a number of seconds."""
    headers = getattr(getattr(error.__cause__, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None


def _kind(status: int) -> str:
    if status == 429 or status >= 500:
        return "overloaded"
    return {401: "auth", 402: "quota", 403: "auth", 408: "network", 413: "context"}.get(status, "invalid")


def _message(error: exceptions.ModelAPIError) -> str:
    """Return the provider's own message, from `{"error": {"message": …}}` or `{"message": …}`."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, dict) else body
    text = inner.get("message") if isinstance(inner, dict) else inner
    return safe_line(text if isinstance(text, str) and text else error.message)


def _cause(error: BaseException) -> str:
    """Return the message of the innermost cause: SDKs themselves only say "Connection error."."""
    text = str(error)
    cause = error.__cause__ or error.__context__
    while cause:
        text = str(cause) or text
        cause = cause.__cause__ or cause.__context__
    return safe_line(text)
