"""Prompt hooks: a judge, which is a model, answers whether the agent may stop."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from turngate.aio.foreign_code import run_isolated
from turngate.aio.threads import finish_despite_cancel, run_in_thread
from turngate.core.answers.judge import (
    SCHEMA,
    build_question,
    expand_arguments,
    instructions,
    judgment_problem,
    parse_judgment,
    retry_prompt,
)
from turngate.core.answers.report_types import HookFailed, JudgeReplied, Report
from turngate.core.conversation.messages import Evaluation, Message, ModelRequest, UserMessage
from turngate.core.dialect import Dialect
from turngate.core.events.events import Event, StopEvent
from turngate.core.events.hook_input import encode
from turngate.core.hooks.kinds import PromptHook
from turngate.core.settings import Settings
from turngate.core.text import replace_surrogates, truncate_middle
from turngate.errors import ModelError, UsageError
from turngate.models.resolve import JudgeModels
from turngate.ports import HookRunContext, Model, World
from turngate.transcript.digest import conversation, digest, has_unknown_format, last_answer

MIN_BYTES_PER_TOKEN = 3  # in natural language and code
CONVERSATION_FRACTION = 0.7  # of the model's context
RETRY_PAUSE_S = 0.5
MAX_RETRY_PAUSE_S = 5.0  # that a provider may request
UNKNOWN_FORMAT = (
    "the transcript has no messages in a format that Turngate knows; "
    'with `"transcript": "none"` the judge is asked without them'
)


async def run_prompt(
    hook: PromptHook, event: Event, settings: Settings, world: World, live: HookRunContext
) -> Report:
    """Ask the judge of the world, or the one that the settings name."""
    own = JudgeModels(settings.judge, environ=settings.environ_of_models(world.own_environ))
    try:
        judge = await run_in_thread(world.judge or own, hook.model)  # imports are slow
        prompt = await _judge_prompt(hook, event, settings, judge)
        if isinstance(prompt, HookFailed):
            return prompt
        return await _ask_judge(judge, prompt, event, settings.dialect, live)
    except UsageError as error:
        return HookFailed(f"it is unavailable: {error}")
    except ModelError as error:
        return HookFailed(f"its model did not answer: {error}")
    finally:
        await finish_despite_cancel(own.close())


async def _ask_judge(
    judge: Model, prompt: str, event: Event, dialect: Dialect, live: HookRunContext
) -> Report:
    """Return the judge's reply. Ask once more after an error or, unlike Claude Code, if the reply cannot be parsed."""
    messages: tuple[Message, ...] = (UserMessage(prompt),)
    spent = Evaluation(judge.name)
    for is_last in (False, True):
        system = instructions(event.name)
        request = ModelRequest(messages=messages, system=system, agent="judge", schema=SCHEMA)
        live.evaluation = spent.with_request()
        try:
            reply = await run_isolated(judge.ask(request, lambda _: None))  # nothing is streamed
        except ModelError as error:
            live.evaluation = spent = spent.with_failure()
            wait = max(RETRY_PAUSE_S, error.retry_after or 0.0)
            hopeless = error.kind in ("auth", "quota")
            now = asyncio.get_running_loop().time()
            left = math.inf if live.deadline is None else live.deadline - now
            if is_last or hopeless or wait > min(MAX_RETRY_PAUSE_S, left):
                raise
            await asyncio.sleep(wait)
            continue
        live.evaluation = spent = spent.with_reply(reply)
        answer = parse_judgment(reply.text, event.name, dialect)
        problem = judgment_problem(answer, dialect)
        if is_last or dialect.strict_judge or problem is None:
            return JudgeReplied(reply.text)
        messages = (*messages, reply, UserMessage(retry_prompt(problem)))
    raise AssertionError("the last try either returns or raises")


async def _judge_prompt(hook: PromptHook, event: Event, settings: Settings, judge: Model) -> str | HookFailed:
    limit = int(judge.context * MIN_BYTES_PER_TOKEN * CONVERSATION_FRACTION)
    check = expand_arguments(hook.prompt, _payload(event, settings, limit // 4), settings.dialect)
    if isinstance(check, HookFailed):
        return check
    source = _record_source(hook, settings.dialect, limit)
    if source is None:
        return replace_surrogates(check)
    path = event.stopping_transcript
    # Before a stop a transcript may have no messages yet.
    if isinstance(event, StopEvent) and await run_in_thread(has_unknown_format, path):
        return HookFailed(UNKNOWN_FORMAT)
    heading, read = source
    agent = event.subagent.id if isinstance(event, StopEvent) and event.subagent else None
    seen = await run_in_thread(partial(read, path, agent=agent))
    return replace_surrogates(build_question(check, seen, heading))


def _payload(event: Event, settings: Settings, limit: int) -> str:
    """Return the hook's input; a last answer that would fill the model's context is truncated."""
    if isinstance(event, StopEvent) and len(event.last_text) > limit:
        message = truncate_middle(event.last_text, limit, event.stopping_transcript or None)
        event = replace(event, last_assistant_message=message)
    return encode(event, settings.dialect, settings.payload).decode("utf-8").rstrip("\n")


def _record_source(hook: PromptHook, dialect: Dialect, limit: int) -> tuple[str, Callable[..., str]] | None:
    """Return which part of the conversation the judge gets besides the hook's input, and how to read it."""
    part = {"as_asked": hook.transcript, "input": None, "conversation": "full"}[dialect.judge_sees]
    further = "The conversation, in which the further lines of what was said are indented"
    parts: dict[str | None, tuple[str, Callable[..., str]]] = {
        "last": ("The agent's last answer", last_answer),
        "digest": ("A digest of the conversation, in which what was said is indented", digest),
        "full": (further, partial(conversation, limit=limit)),
    }
    return parts.get(part)
