"""Prompt hooks: a question to a small model, which answers whether the agent may stop."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from turngate.aio.cancellation import finish_despite_cancel
from turngate.aio.foreign import run_isolated
from turngate.aio.threads import run_in_thread
from turngate.core.dialect import Dialect
from turngate.core.events import Event, StopEvent
from turngate.core.hook_input import encode
from turngate.core.hooks import PromptHook
from turngate.core.judge import (
    INSTRUCTIONS,
    SCHEMA,
    again,
    expanded,
    judgement_fault,
    parse_judgement,
    question,
)
from turngate.core.messages import Evaluation, Message, ModelRequest, UserMessage
from turngate.core.reports import JudgeReplied, Report, RunFailed
from turngate.core.settings import Settings
from turngate.core.text import replace_surrogates, truncate_middle
from turngate.errors import ModelError, UsageError
from turngate.models.resolve import JudgeModels
from turngate.ports import Model, RunContext, World
from turngate.transcript.digest import conversation, digest, last_answer

BYTES_PER_TOKEN = 3  # or more, in what people and programs write
SHARE = 0.7  # of a model's context that a conversation may fill
PAUSE = 0.5  # seconds before a provider that did not answer is asked once more,
LONGEST_PAUSE = 5.0  # and the most that it may ask for itself


async def run_prompt(
    hook: PromptHook, event: Event, settings: Settings, world: World, live: RunContext
) -> Report:
    """A world without judges of its own asks those that the settings name."""
    own = JudgeModels(settings.judge, environ=world.environ)
    try:
        judge = await run_in_thread(world.judge or own, hook.model)  # what asks a provider takes long to load
        asked = await _question(hook, event, settings, judge)
        return await _judged(judge, asked, hook, event, settings.dialect, live)
    except UsageError as error:
        return RunFailed(f"it is unavailable: {error}")
    except ModelError as error:
        return RunFailed(f"its model did not answer: {error}")
    finally:
        await finish_despite_cancel(own.close())


async def _judged(
    judge: Model, asked: str, hook: PromptHook, event: Event, dialect: Dialect, live: RunContext
) -> Report:
    """One answer; one more try where there is none, or none that can be used. What it says is for others to decide."""
    messages: tuple[Message, ...] = (UserMessage(asked),)
    spent = Evaluation(judge.name)
    for is_last in (dialect.strict_judge, True):
        request = ModelRequest(messages=messages, system=INSTRUCTIONS, agent="judge", schema=SCHEMA)
        live.evaluation = spent.with_request()
        try:
            reply = await run_isolated(judge.ask(request, _unheard))
        except ModelError as error:
            live.evaluation = spent = spent.with_failure()
            wait = max(PAUSE, error.retry_after or 0.0)
            if is_last or not error.is_transient or wait > min(LONGEST_PAUSE, _left(live)):
                raise
            await asyncio.sleep(wait)
            continue
        live.evaluation = spent = spent.with_reply(reply)
        wrong = judgement_fault(parse_judgement(reply.text, hook.prompt, event.name, dialect), dialect)
        if is_last or wrong is None:
            return JudgeReplied(reply.text)
        messages = (*messages, reply, UserMessage(again(wrong)))
    raise AssertionError("the last try either returns or raises")


def _left(live: RunContext) -> float:
    """Seconds until its limit."""
    return math.inf if live.deadline is None else live.deadline - asyncio.get_running_loop().time()


def _unheard(_: str) -> None:
    """Nobody listens while a judge speaks."""


async def _question(hook: PromptHook, event: Event, settings: Settings, judge: Model) -> str:
    most = int(judge.context * BYTES_PER_TOKEN * SHARE)
    check = expanded(hook.prompt, _told(event, settings, most // 4), settings.dialect)
    reading = _reading(hook, settings.dialect, most)
    if reading is None:
        return replace_surrogates(check)
    what, read = reading
    return replace_surrogates(question(check, await run_in_thread(read, event.stopping_transcript), what))


def _told(event: Event, settings: Settings, most: int) -> str:
    """The hook's input; a last answer that would fill the model is cut in its middle."""
    if isinstance(event, StopEvent) and len(event.last_text) > most:
        cut = truncate_middle(event.last_text, most, event.stopping_transcript or None)
        event = replace(event, last_assistant_message=cut)
    return encode(event, settings.dialect, settings.payload).decode("utf-8").rstrip("\n")


def _reading(hook: PromptHook, dialect: Dialect, most: int) -> tuple[str, Callable[[str], str]] | None:
    """What of the conversation the judge sees beside the hook's input, and how it is read."""
    wanted = {"as_asked": hook.transcript, "input": None, "conversation": "full"}[dialect.judge_sees]
    match wanted:
        case "last":
            return "The agent's last answer", last_answer
        case "digest":
            return "A digest of the conversation, in which what was said is indented", digest
        case "full":
            return "The conversation, in which the further lines of what was said are indented", partial(
                conversation, limit=most
            )
        case _:
            return None
