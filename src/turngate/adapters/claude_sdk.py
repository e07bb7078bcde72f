"""Claude's Agent SDK: our hooks as its options. What Claude Code can run itself travels in its settings JSON, where
timeouts are in seconds; a function is called here, when Claude Code asks for it, and its answer is translated."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, assert_never, get_args

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from claude_agent_sdk.types import HookEvent

from turngate.core.constants import STOP_EVENTS
from turngate.core.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.core.dialect import CLAUDE
from turngate.core.hook_input import read_event
from turngate.core.hooks import AgentHook, CallbackHook, CommandHook, Hook, PromptHook, label
from turngate.core.interpret import interpret
from turngate.core.reports import Returned
from turngate.core.settings import Problem, Rule
from turngate.core.text import describe, describe_exception
from turngate.errors import TurngateError, UsageError
from turngate.options import InvalidOptions, Options
from turngate.options.sdk_callbacks import is_sdk_callback, meant
from turngate.options.serialize import config_json
from turngate.runners.callback import run_callback


def claude_options(options: Options, base: ClaudeAgentOptions | None) -> ClaudeAgentOptions:
    base = ClaudeAgentOptions() if base is None else base
    rules = [rule for rule in options.rules_as_written() if rule.hook.enabled]
    problems = [
        Problem(file="", event=rule.event, index=rule.index, field=name, message=message)
        for rule in rules
        for name, message in _untold(rule)
    ]
    problems += [Problem(file="", field=name, message=message) for name, message in _other(options, base)]
    if problems:
        raise InvalidOptions(problems)
    told, hooks = _settings(base), dict(base.hooks or {})
    for rule in rules:
        if isinstance(rule.hook, CallbackHook):
            matcher = HookMatcher(
                matcher=rule.matcher, hooks=[_answering(rule, rule.hook)], timeout=rule.hook.timeout
            )
            hooks[rule.event] = [*hooks.get(rule.event, []), matcher]  # type: ignore[index, call-overload]
        else:
            group = {"matcher": rule.matcher} if rule.matcher else {}
            groups = told.setdefault("hooks", {}).setdefault(rule.event, [])
            groups.append({**group, "hooks": [_config(rule.hook, options.judge)]})
    return replace(
        base,
        hooks=hooks or None,
        settings=json.dumps(told) if told else None,
        model=base.model or (_name(options.model) if options.model else None),
        env={**_limit(options), **base.env},
    )


# What Claude Code does not know, and what would be another gate without it.
_OURS = ("blocking", "mode", "env", "transcript", "shell")
_CALLED_AT = frozenset(name for each in get_args(HookEvent) for name in get_args(each))
_ITS_OWN = {"mode": "gate", "transcript": "full"}  # what it does anyway


def _untold(rule: Rule) -> Iterator[tuple[str | None, str]]:
    hook = rule.hook
    if isinstance(hook, CallbackHook) and rule.event not in _CALLED_AT:
        yield None, f"the SDK calls no functions at {rule.event}"
    if hook.condition and rule.event in STOP_EVENTS:
        yield "condition", "keeps a hook from running at a stop of Claude Code"
    if hook.outcomes != ("ok",):
        yield "outcomes", "can not be told to Claude Code"
    if hook.detached and not isinstance(hook, CommandHook):
        yield "detached", "can not be told to Claude Code"
    for name in () if isinstance(hook, CallbackHook) else _OURS:
        given = getattr(hook, name, None)
        if given and given != _ITS_OWN.get(name):
            yield name, "can not be told to Claude Code"
    if isinstance(hook, PromptHook | AgentHook) and _is_foreign(hook.model):
        yield "model", _foreign(hook.model)


def _other(options: Options, base: object) -> Iterator[tuple[str, str]]:
    """The same of all that is no hook."""
    for name, model in (("model", options.model), ("judge", options.judge)):
        if _is_foreign(model):
            yield name, _foreign(model)
    if options.dialect not in (None, CLAUDE.name):
        yield "dialect", f'is {options.dialect!r}, expected "{CLAUDE.name}" for Claude Code'
    if options.limit == 0:
        yield "limit", "is 0, which means no limit to Claude Code, expected 1 or more"
    if not isinstance(base, ClaudeAgentOptions):
        yield "base", f"is {describe(base)}, expected ClaudeAgentOptions"


def _limit(options: Options) -> dict[str, str]:
    """Claude Code is told in a variable how often its hooks may send it on."""
    if options.limit is None or CLAUDE.limit_variable is None:
        return {}
    return {CLAUDE.limit_variable: str(options.limit)}


def _config(hook: Hook, judge: str | None) -> dict[str, Any]:
    told = config_json(hook, per_second=1)
    if isinstance(hook, PromptHook | AgentHook) and (hook.model or judge):
        told["model"] = _name(hook.model or judge or "")
    return {name: value for name, value in told.items() if name not in ("id", "outcomes", *_ITS_OWN)}


def _is_foreign(model: str | None) -> bool:
    """Names of Bedrock have a colon as well (`us.anthropic.claude-…-v1:0`), but providers have no dot."""
    provider, colon, _ = (model or "").partition(":")
    return bool(colon) and provider != "anthropic" and "." not in provider


def _foreign(model: str | None) -> str:
    return f"is {model!r}, expected a model of Anthropic's for Claude Code"


def _name(model: str) -> str:
    return model.removeprefix("anthropic:")


def _settings(base: ClaudeAgentOptions) -> dict[str, Any]:
    """The settings that are there already: JSON, or the path of a file with it."""
    text = (base.settings or "").strip()
    if not text:
        return {}
    where = "the base options' settings"
    if not text.startswith("{"):
        path = os.path.join(base.cwd or "", text)
        where = f"the base options' settings file {path}"
        try:
            with open(path, encoding="utf-8-sig") as file:
                text = file.read()
        except (OSError, ValueError) as error:
            raise UsageError(f"{where} can not be read: {error}") from None
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not JSON: {error}") from None
    hooks = told.get("hooks", {}) if isinstance(told, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise UsageError(f"{where} must be an object whose `hooks` hold a list for each event")
    settings: dict[str, Any] = told
    return settings


class HookFailed(TurngateError):
    """The SDK tells Claude Code so, which says so and goes on without an answer."""


def _answering(rule: Rule, hook: CallbackHook) -> Callable[[Any, str | None, Any], Awaitable[Any]]:
    """A function of the user's as one of the SDK's; its time limit is Claude Code's to keep."""

    async def answer(told: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        try:
            value = meant(await _value(rule, hook, (told, tool_use_id, context)))
            decision = _unwritable(value) or interpret(Returned(value), rule, CLAUDE)
        except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code
            value, decision = None, Fault(describe_exception(error))
        if hook.mode == "observe":
            return _observed(decision, hook)
        if isinstance(decision, Fault):
            return _broken(decision, rule)
        return value if isinstance(value, dict) else _json(decision, rule.event)

    return answer


async def _value(rule: Rule, hook: CallbackHook, told: tuple[Any, str | None, Any]) -> Any:
    if is_sdk_callback(hook.callback):
        return await run_callback(lambda all_three: hook.callback(*all_three), told)
    return await run_callback(hook.callback, read_event(rule.event, told[0], cwd=told[0].get("cwd", "")))


def _unwritable(value: Any) -> Fault | None:
    """A dict goes to Claude Code as it is, in one line of JSON."""
    if not isinstance(value, dict):
        return None
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return Fault(f"its answer can not be written as JSON: {describe_exception(error)}")
    return None


def _observed(decision: Decision, hook: CallbackHook) -> dict[str, Any]:
    match decision:
        case Block(why) | Advise(why) | Halt(why) | Fault(why):
            verb = "failed" if isinstance(decision, Fault) else "would have refused"
            return {"systemMessage": f"{label(hook)} {verb}: {why}"}
        case Allow():
            return {}
        case _:
            assert_never(decision)


def _broken(fault: Fault, rule: Rule) -> dict[str, Any]:
    if not (rule.hook.blocking and fault.may_block):
        raise HookFailed(fault.error)
    return _json(Block(f"this check is broken and must work before you may stop: {fault.error}"), rule.event)


def _json(decision: Decision, event: str) -> dict[str, Any]:
    """A decision in Claude Code's words."""
    notice = {"systemMessage": decision.notice} if decision.notice else {}
    match decision:
        case Allow() | Fault():
            return notice
        case Advise(advice):
            return {**notice, "hookSpecificOutput": {"hookEventName": event, "additionalContext": advice}}
        case Halt(reason):
            return {**notice, "continue": False, **({"stopReason": reason} if reason else {})}
        case Block(reason, advice):
            context = {"additionalContext": advice} if advice else {}
            return {**notice, **_refusal(reason, event, context)}
        case _:
            assert_never(decision)


def _refusal(reason: str, event: str, context: dict[str, str]) -> dict[str, Any]:
    specific: dict[str, Any] = dict(context)
    refused: dict[str, Any] = {}
    if event == "PreToolUse":
        specific |= {"permissionDecision": "deny", "permissionDecisionReason": reason}
    elif event == "PermissionRequest":
        specific["decision"] = {"behavior": "deny", "message": reason}
    else:
        refused = {"decision": "block", "reason": reason}
    return {**refused, **({"hookSpecificOutput": {"hookEventName": event, **specific}} if specific else {})}
