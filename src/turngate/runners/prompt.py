"""Prompt hooks: a question to a small model, which answers whether the agent may stop."""

from collections.abc import Callable
from functools import partial

from turngate.core.answers import NotAnAnswer
from turngate.core.dialect import Dialect
from turngate.core.events import Event
from turngate.core.hooks import PromptHook
from turngate.core.judgements import INSTRUCTIONS, SCHEMA, again, expanded, question, read_judgement
from turngate.core.messages import Message, ModelRequest, Said, Usage
from turngate.core.reports import Broke, Judged, Report
from turngate.core.settings import Settings
from turngate.core.wire import encode
from turngate.digest import conversation, digest, last_answer
from turngate.errors import ModelError, UsageError
from turngate.ports import Live, Model, World
from turngate.tasks import leaving, off_the_loop

BYTES_PER_TOKEN = 3  # or more, in what people and programs write
SHARE = 0.7  # of a model's context that a conversation may fill


async def run_prompt(hook: PromptHook, event: Event, settings: Settings, world: World, _: Live) -> Report:
    if world.judge is None:
        return Broke("it is unavailable: no model is there to answer it")
    try:
        judge = world.judge(hook.model)
        asked = await _question(hook, event, settings, judge)
        return await _judged(judge, asked, hook, event, settings.dialect)
    except UsageError as error:
        return Broke(f"it is unavailable: {error}")
    except ModelError as error:
        return Broke(f"its model did not answer: {error}")


async def _judged(judge: Model, asked: str, hook: PromptHook, event: Event, dialect: Dialect) -> Report:
    """One answer; one more where the first can not be read. What it says is for others to decide."""
    messages: tuple[Message, ...] = (Said(asked),)
    usage, cost = Usage(), 0.0
    priced = True
    for number in (1, 2):
        request = ModelRequest(messages=messages, system=INSTRUCTIONS, agent="judge", schema=SCHEMA)
        reply = await leaving(judge.ask(request, _unheard))
        usage += reply.usage
        priced, cost = priced and reply.cost is not None, cost + (reply.cost or 0.0)
        report = Judged(reply.text, reply.model or judge.name, usage, number, cost if priced else None)
        answer = read_judgement(reply.text, hook.prompt, event.name, dialect)
        if dialect.strict_judge or not isinstance(answer, NotAnAnswer):
            break
        messages = (*messages, reply, Said(again(answer.error)))
    return report


def _unheard(_: str) -> None:
    """Nobody listens while a judge speaks."""


async def _question(hook: PromptHook, event: Event, settings: Settings, judge: Model) -> str:
    told = encode(event, settings.dialect, settings.payload).decode("utf-8").rstrip("\n")
    check = expanded(hook.prompt, told)
    reading = _reading(hook, settings.dialect, judge)
    if reading is None:
        return check
    what, read = reading
    return question(check, await off_the_loop(read, event.stopping_transcript), what)


def _reading(hook: PromptHook, dialect: Dialect, judge: Model) -> tuple[str, Callable[[str], str]] | None:
    """What of the conversation the judge sees beside the hook's input, and how it is read."""
    wanted = {"as_asked": hook.transcript, "input": None, "conversation": "full"}[dialect.judge_sees]
    match wanted:
        case "last":
            return "The agent's last answer", last_answer
        case "digest":
            return "A digest of the conversation", digest
        case "full":
            most = int(judge.context * BYTES_PER_TOKEN * SHARE)
            return "The conversation", partial(conversation, most=most)
        case _:
            return None
