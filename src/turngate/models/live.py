"""Asks a real model: one streamed request at a time, through pydantic-ai, which no other module knows."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import assert_never

from turngate.core.messages import (
    Message,
    ModelRequest,
    Reply,
    StopReason,
    Text,
    ToolResults,
    ToolUse,
    Usage,
    UserMessage,
)
from turngate.core.text import one_line, truncate
from turngate.errors import ModelError, UsageError

try:
    from pydantic_ai import exceptions
    from pydantic_ai import messages as wire
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.models import Model, ModelRequestParameters, infer_model
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.providers import infer_provider_class
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition
except ImportError:
    raise UsageError(
        "live models are an extra: pip install 'turngate[anthropic]' or 'turngate[openai]'; "
        "--model scripted:FILE needs none"
    ) from None

CONTEXT = 200_000  # tokens, for a model whose size nobody knows
DEFAULTS = (
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5"),
    ("OPENAI_API_KEY", "openai:gpt-6.1-sol"),
)


def default_model(environ: Mapping[str, str], settings_model: str | None) -> str:
    """The settings' model, else one of the first provider whose key is in the environment."""
    found = settings_model or next((model for key, model in DEFAULTS if environ.get(key)), None)
    if found is None:
        raise UsageError(
            "no model is given: say --model PROVIDER:NAME or --model scripted:FILE, or set ANTHROPIC_API_KEY"
        )
    return found


class LiveModel:
    """`LiveModel("anthropic:claude-…")`. Its connection is kept for the next request, until `close`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._model: Model | None = _found(name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.context = self._model.context_window or CONTEXT

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        async with aclosing(self._streamed(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    return piece
                tell(piece)
        raise ModelError("network", f"{self._provider} broke off in the middle of its answer")

    async def close(self) -> None:
        """Ends the connection; the next request makes a new one."""
        model, self._model = self._model, None
        if model is not None and self._loop is asyncio.get_running_loop():
            async with model:  # leaving it closes its connections
                pass

    async def _streamed(self, request: ModelRequest) -> AsyncGenerator[str | Reply, None]:
        """Each piece of text, and at last the whole reply, if its end has been seen."""
        try:
            model = self._connected()
            async with model_request_stream(
                model,
                _history(request.messages),
                model_settings=_settings(request, model),
                model_request_parameters=_parameters(request, model),
            ) as stream:
                async for event in stream:
                    if piece := _piece(event):
                        yield piece
                response = stream.get()
        except Exception as error:  # noqa: BLE001 (what SDKs raise is not ours to list)
            raise _failure(error, self._provider) from None  # its chain may hold a key
        if response.finish_reason or (response.provider_details or {}).get("finish_reason"):
            yield _reply(response, priced=request.agent == "judge")

    def _connected(self) -> Model:
        """A connection belongs to the event loop that opened it; another loop needs another one."""
        loop = asyncio.get_running_loop()
        if self._model is None or self._loop not in (None, loop):
            self._model = _found(self.name)
        self._loop = loop
        return self._model

    @property
    def _provider(self) -> str:
        return self.name.partition(":")[0]


def _found(name: str) -> Model:
    provider, _, model = name.partition(":")
    if not (provider and model):
        raise UsageError(f"the model {name!r} is not written as PROVIDER:NAME, like {DEFAULTS[0][1]}")
    try:
        infer_provider_class(provider)
    except ValueError:
        raise UsageError(f"no provider is called {provider!r}, as in the model {name!r}") from None
    except ImportError as error:
        raise UsageError(f"the model {name!r} needs more: {_install(error)}") from None
    try:
        return infer_model(name)
    except Exception as error:  # noqa: BLE001 (nor is this)
        raise UsageError(f"the model {name!r} can not be asked: {_missing(error)}") from None


def _install(error: ImportError) -> str:
    """pydantic-ai names its own extra; two of them are ours as well."""
    extra = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
    if extra is None:
        return _sentence(str(error))
    ours = extra[1] in ("anthropic", "openai")
    return f"pip install '{'turngate' if ours else 'pydantic-ai-slim'}[{extra[1]}]'"


def _missing(error: Exception) -> str:
    """pydantic-ai names the variable, and goes on about its own Python arguments."""
    variable = re.search(r"Set the `([A-Z0-9_]+)` environment variable", str(error))
    return f"set {variable[1]}" if variable else _sentence(str(error))


def _settings(request: ModelRequest, model: Model) -> ModelSettings:
    again = request.agent != "judge" or bool(request.tools)  # a conversation is sent again and again
    settings = ModelSettings(cache=again)
    if "max_retries" not in model.unsupported_settings:
        settings["max_retries"] = 0  # the session does that, and shows it
    return settings


def _parameters(request: ModelRequest, model: Model) -> ModelRequestParameters:
    parameters = _plain_parameters(request)
    # A model that can not be held to a schema is told its form in words, as the others are too.
    if request.schema is not None and model.profile.get("supports_json_schema_output", False):
        parameters.output_mode = "native"
        parameters.output_object = OutputObjectDefinition(dict(request.schema), name="judgement")
    return parameters


def _plain_parameters(request: ModelRequest) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema)
            )
            for tool in request.tools
        ],
        instruction_parts=[wire.InstructionPart(request.system)] if request.system else [],
    )


def _history(messages: Sequence[Message]) -> list[wire.ModelMessage]:
    names = {use.id: use.name for said in messages if isinstance(said, Reply) for use in said.tool_uses}
    return [_message(message, names) for message in messages]


def _message(message: Message, names: Mapping[str, str]) -> wire.ModelMessage:
    match message:
        case UserMessage(text):
            return wire.ModelRequest([wire.UserPromptPart(text)])
        case Reply(blocks):
            # Providers refuse a blank text, even if they said it themselves.
            told = [b for b in blocks if not isinstance(b, Text) or b.text.strip()]
            return wire.ModelResponse([_part(block) for block in told])
        case ToolResults(results):
            return wire.ModelRequest(
                [
                    wire.ToolReturnPart(
                        names.get(result.tool_use_id, "unknown"),
                        result.content if result.content.strip() else "(no output)",  # nor a blank one here
                        result.tool_use_id,
                        outcome="failed" if result.is_error else "success",
                    )
                    for result in results
                ]
            )
        case _:
            assert_never(message)


def _part(block: Text | ToolUse) -> wire.TextPart | wire.ToolCallPart:
    if isinstance(block, Text):
        return wire.TextPart(block.text)
    return wire.ToolCallPart(block.name, dict(block.input), block.id)


def _piece(event: wire.ModelResponseStreamEvent) -> str:
    match event:
        case wire.PartStartEvent(part=wire.TextPart(content=text)):
            return text
        case wire.PartDeltaEvent(delta=wire.TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def _reply(response: wire.ModelResponse, *, priced: bool = False) -> Reply:
    blocks = tuple(block for part in response.parts if (block := _block(part)))
    return Reply(
        blocks or _refusal(response),
        _stop_reason(response),
        _usage(response),
        model=response.model_name or "",
        id=response.provider_response_id or "",
        cost=_cost(response) if priced else None,
    )


def _cost(response: wire.ModelResponse) -> float | None:
    """In US dollars, as far as pydantic-ai knows the model's price."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def _block(part: wire.ModelResponsePart) -> Text | ToolUse | None:
    match part:
        case wire.TextPart(content=text):
            return Text(text)
        case wire.ToolCallPart(tool_name=name, tool_call_id=call):
            return ToolUse(call, name, part.args_as_dict())
        case _:
            return None


def _refusal(response: wire.ModelResponse) -> tuple[Text, ...]:
    """Some providers give the words of a refusal apart from the answer."""
    said = (response.provider_details or {}).get("refusal")
    return (Text(said),) if isinstance(said, str) and said else ()


def _stop_reason(response: wire.ModelResponse) -> StopReason:
    if response.finish_reason == "length":
        return "max_tokens"
    if response.finish_reason == "content_filter":
        return "refusal"
    return "tool_use" if response.tool_calls else "end_turn"


def _usage(response: wire.ModelResponse) -> Usage:
    """Named and counted as Anthropic does: what went through the cache is not in `input_tokens`."""
    used = response.usage
    return Usage(
        input_tokens=used.input_tokens - used.cache_write_tokens - used.cache_read_tokens,
        output_tokens=used.output_tokens,
        cache_creation_input_tokens=used.cache_write_tokens,
        cache_read_input_tokens=used.cache_read_tokens,
    )


def _failure(error: Exception, provider: str) -> ModelError:
    match error:
        case exceptions.ContentFilterError():
            return ModelError("refusal", f"{provider} refused the request: {_sentence(error.message)}")
        case exceptions.ModelQuotaExceededError():
            return ModelError("quota", f"{provider} says: {_said(error)}")
        case exceptions.ModelContextWindowExceededError():
            return ModelError("context", f"the conversation is too long for the model: {_said(error)}")
        case exceptions.ModelTimeoutError() | exceptions.ModelRequestTimeout():
            return ModelError("network", f"{provider} did not answer in time")
        case exceptions.ModelConnectionError() if "Illegal header value" in _cause(error):
            return ModelError("auth", f"the key for {provider} holds a blank or a line break")
        case exceptions.ModelConnectionError():
            return ModelError("network", f"the connection to {provider} failed: {_cause(error)}")
        case exceptions.ModelHTTPError(status_code=status):
            said = f"{provider} answered {status}: {_said(error)}"
            if status in (400, 413) and _TOO_LONG.search(said):
                return ModelError("context", said)
            return ModelError(_kind(status), said, retry_after=_retry_after(error))
        case (
            exceptions.ModelRateLimitError()
            | exceptions.ModelUnavailableError()
            | exceptions.ModelServerError()
        ):
            return ModelError("overloaded", f"{provider} says: {_said(error)}")
        case exceptions.UnexpectedModelBehavior():
            return ModelError(
                "network", f"{provider} gave no answer that can be read: {_sentence(str(error))}"
            )
        case _:
            return ModelError("invalid", f"{provider} could not be asked: {_sentence(str(error))}")


_TOO_LONG = re.compile(r"too long|too large|context (length|window)|maximum context", re.IGNORECASE)


def _retry_after(error: Exception) -> float | None:
    """What the provider's own client kept of the answer's header, when it is a number of seconds."""
    headers = getattr(getattr(error.__cause__, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None


def _kind(status: int) -> str:
    if status == 429 or status >= 500:
        return "overloaded"
    return {401: "auth", 402: "quota", 403: "auth", 408: "network"}.get(status, "invalid")


def _said(error: exceptions.ModelAPIError) -> str:
    """What the provider itself says is wrong, in `{"error": {"message": …}}` or `{"message": …}`."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, dict) else body
    said = inner.get("message") if isinstance(inner, dict) else inner
    return _sentence(said if isinstance(said, str) and said else error.message)


def _cause(error: BaseException) -> str:
    """SDKs say "Connection error."; what happened stands at the bottom."""
    said = str(error)
    below = error.__cause__ or error.__context__
    while below:
        said = str(below) or said
        below = below.__cause__ or below.__context__
    return _sentence(said)


def _sentence(text: str) -> str:
    """One short line without a key."""
    for name, value in os.environ.items():
        if len(value) > 7 and re.search(r"KEY|TOKEN|SECRET|PASSWORD", name):
            text = text.replace(value, "…")
    text = re.sub(r"\b((sk|pk|gsk|xai)[-_]|AIza)[\w*-]{6,}", "…", text)
    return truncate(one_line(text).rstrip("."), 200)
