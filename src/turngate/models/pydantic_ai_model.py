"""PydanticAiModel: ask a model of any provider that pydantic-ai knows.

Only this module imports pydantic-ai, which takes a second to load. What pydantic-ai and the providers' SDKs raise
is translated into ModelError.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import assert_never

from turngate.aio.threads import run_in_thread
from turngate.core.conversation import messages
from turngate.core.conversation.messages import Message, ModelRequest, Reply, StopReason, Text, ToolUse
from turngate.errors import ModelError, UsageError
from turngate.extra_install import install_command
from turngate.http.connection import Timeouts
from turngate.models import providers
from turngate.models.known_models import DEFAULT_CONTEXT_TOKENS
from turngate.models.providers import PYDANTIC_AI, safe_line
from turngate.models.wire.base import content_of, is_repeated, nonblank

try:
    from pydantic_ai import exceptions
    from pydantic_ai import messages as wire
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.providers import infer_provider_class
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

except ImportError:
    raise UsageError(
        f"models of the form {PYDANTIC_AI}:PROVIDER:NAME need a library that is not installed: "
        f"{install_command(PYDANTIC_AI)}"
    ) from None


class PydanticAiModel:
    """`PydanticAiModel("pydantic-ai:groq:…")`. It keeps its connection for the next request, until `close`."""

    def __init__(self, name: str, timeouts: Timeouts | None = None) -> None:
        self.name = name
        self._timeouts = timeouts or Timeouts()
        self._library_name = name.removeprefix(f"{PYDANTIC_AI}:")
        self._provider = self._library_name.partition(":")[0]
        self._model: Model | None = _open(self._library_name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.context = self._model.context_window or DEFAULT_CONTEXT_TOKENS

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        """The time between two events is limited: the libraries themselves wait for ten minutes and more."""
        seconds, loop = self._timeouts.first_byte, asyncio.get_running_loop()
        is_told = False
        try:
            async with asyncio.timeout(seconds) as timer, self._open_stream(request) as stream:
                async for event in stream:
                    seconds = self._timeouts.silence
                    timer.reschedule(None if seconds is None else loop.time() + seconds)
                    if text := _piece(event):
                        is_told = True
                        tell(text)
                        is_told = False
                response = stream.get()
        except Exception as error:
            if is_told:  # the listener has failed
                raise
            if isinstance(error, TimeoutError) and timer.expired():
                text = f"{self._provider} did not answer in time: nothing came for {seconds:g} s"
                raise ModelError("network", text) from None
            raise translate_error(error, self._provider) from None  # its chain may contain a key
        if response.finish_reason or (response.provider_details or {}).get("finish_reason"):
            # In a thread, because the first price loads a table of all models.
            return _reply(response, await run_in_thread(_cost, response))
        raise ModelError("network", f"{self._provider} ended the stream in the middle of its answer")

    def _open_stream(self, request: ModelRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        model = self._connect()
        settings = ModelSettings(cache=is_repeated(request))
        if "max_retries" not in model.unsupported_settings:
            settings["max_retries"] = 0  # the session retries, and notifies the user
        return model_request_stream(
            model,
            _history(request.messages),
            model_settings=settings,
            model_request_parameters=_parameters(request, model),
        )

    async def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        model, self._model = self._model, None
        if model is not None and self._loop is asyncio.get_running_loop():
            async with model:  # its exit closes the connections
                pass

    def _connect(self) -> Model:
        """Return the model with a connection of this event loop; a connection works only in the loop that opened it."""
        loop = asyncio.get_running_loop()
        if self._model is None or self._loop not in (None, loop):
            self._model = _open(self._library_name)
        self._loop = loop
        return self._model


def _open(name: str) -> Model:
    provider = name.partition(":")[0]
    try:
        infer_provider_class(provider)
    except ValueError:
        raise UsageError(f"unknown provider {provider!r} in the model {name!r}") from None
    except ImportError as error:
        raise UsageError(f"the model {name!r} needs a package: {_install(error)}") from None
    try:
        return infer_model(name)
    except Exception as error:  # noqa: BLE001 - as above
        raise UsageError(f"the model {name!r} cannot be used: {_describe_setup_error(error)}") from None


def _install(error: ImportError) -> str:
    """Return the pip command; pydantic-ai names its own extra."""
    extra = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
    return f"pip install 'pydantic-ai-slim[{extra[1]}]'" if extra else safe_line(str(error))


def _describe_setup_error(error: Exception) -> str:
    """Return which variable to set; the rest of pydantic-ai's message is about its own Python arguments."""
    variable = re.search(r"Set the `([A-Z0-9_]+)` environment variable", str(error))
    return f"set {variable[1]}" if variable else safe_line(str(error))


def _parameters(request: ModelRequest, model: Model) -> ModelRequestParameters:
    parameters = ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema)
            )
            for tool in request.tools
        ],
        instruction_parts=[wire.InstructionPart(request.system)] if request.system else [],
    )
    # A model without schema support follows the form that every prompt describes in words.
    if request.schema is not None and model.profile.get("supports_json_schema_output", False):
        parameters.output_mode = "native"
        parameters.output_object = OutputObjectDefinition(dict(request.schema), name="judgment")
    return parameters


def _history(history: Sequence[Message]) -> list[wire.ModelMessage]:
    replies = [message for message in history if isinstance(message, Reply)]
    names = {use.id: use.name for reply in replies for use in reply.tool_uses}
    return [_message(message, names) for message in history]


def _message(message: Message, names: Mapping[str, str]) -> wire.ModelMessage:
    match message:
        case messages.UserMessage(text):
            return wire.ModelRequest([wire.UserPromptPart(text)])
        case Reply(blocks):
            parts = [
                wire.TextPart(block.text)
                if isinstance(block, Text)
                else wire.ToolCallPart(block.name, dict(block.input), block.id)
                for block in nonblank(blocks)
            ]
            return wire.ModelResponse(parts)
        case messages.ToolResults(results):
            return wire.ModelRequest(
                [
                    wire.ToolReturnPart(
                        names.get(result.tool_use_id, "unknown"),
                        content_of(result),
                        result.tool_use_id,
                        outcome="failed" if result.is_error else "success",
                    )
                    for result in results
                ]
            )
        case _:
            assert_never(message)


def _piece(event: wire.ModelResponseStreamEvent) -> str:
    match event:
        case (
            wire.PartStartEvent(part=wire.TextPart(content=text))
            | wire.PartDeltaEvent(delta=wire.TextPartDelta(content_delta=text))
        ):
            return text
        case _:
            return ""


def _reply(response: wire.ModelResponse, cost: float | None) -> Reply:
    blocks = tuple(block for part in response.parts if (block := _block(part)))
    refusal = (response.provider_details or {}).get("refusal")  # some providers send it apart from the answer
    return Reply(
        blocks or ((Text(refusal),) if isinstance(refusal, str) and refusal else ()),
        _stop_reason(response),
        _usage(response),
        model=response.model_name or "",
        id=response.provider_response_id or "",
        cost=cost,
    )


def _cost(response: wire.ModelResponse) -> float | None:
    """Return the price in US dollars, or None if pydantic-ai does not know it."""
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


def _stop_reason(response: wire.ModelResponse) -> StopReason:
    if response.finish_reason == "length":
        return "max_tokens"
    if response.finish_reason == "content_filter":
        return "refusal"
    return "tool_use" if response.tool_calls else "end_turn"


def _usage(response: wire.ModelResponse) -> messages.Usage:
    """Count as Anthropic does: cached tokens are not part of `input_tokens`."""
    used = response.usage
    return messages.Usage(
        input_tokens=used.input_tokens - used.cache_write_tokens - used.cache_read_tokens,
        output_tokens=used.output_tokens,
        cache_creation_input_tokens=used.cache_write_tokens,
        cache_read_input_tokens=used.cache_read_tokens,
    )


def translate_error(error: Exception, provider: str) -> ModelError:
    """Return the ModelError for what pydantic-ai or a provider's SDK raised."""
    match error:
        case exceptions.ContentFilterError():
            return ModelError("refusal", f"{provider} refused the request: {safe_line(error.message)}")
        case exceptions.ModelQuotaExceededError():
            return ModelError("quota", f"{provider} reports: {_error_message(error)}")
        case exceptions.ModelContextWindowExceededError():
            text = f"the conversation is too long for the model: {_error_message(error)}"
            return ModelError("context", text)
        case exceptions.ModelTimeoutError() | exceptions.ModelRequestTimeout():
            return ModelError("network", f"{provider} did not answer in time")
        case exceptions.ModelConnectionError() if "Illegal header value" in _cause(error):
            return ModelError("auth", f"the key for {provider} contains a space or a line break")
        case exceptions.ModelConnectionError() if "CERTIFICATE_VERIFY_FAILED" in _cause(error):
            return ModelError("invalid", f"the connection to {provider} failed: {_cause(error)}")
        case exceptions.ModelConnectionError():
            return ModelError("network", f"the connection to {provider} failed: {_cause(error)}")
        case exceptions.ModelHTTPError(status_code=status):
            headers = getattr(getattr(error.__cause__, "response", None), "headers", None) or {}
            body, text = providers.error_object(error.body), _error_message(error)
            return providers.model_error(provider, status, body, text, providers.retry_after(headers))
        case (
            exceptions.ModelRateLimitError()
            | exceptions.ModelUnavailableError()
            | exceptions.ModelServerError()
        ):
            return ModelError("overloaded", f"{provider} reports: {_error_message(error)}")
        case exceptions.UnexpectedModelBehavior():
            text = f"{provider} sent an answer that cannot be read: {safe_line(str(error))}"
            return ModelError("network", text)
        case _:
            return ModelError("invalid", f"the request to {provider} failed: {safe_line(str(error))}")


def _error_message(error: exceptions.ModelAPIError) -> str:
    return safe_line(providers.error_message(providers.error_object(error.body)) or error.message)


def _cause(error: BaseException) -> str:
    """Return the message of the innermost cause: SDKs themselves only say "Connection error."."""
    text = str(error)
    cause = error.__cause__ or error.__context__
    while cause:
        text = str(cause) or text
        cause = cause.__cause__ or cause.__context__
    return safe_line(text)
