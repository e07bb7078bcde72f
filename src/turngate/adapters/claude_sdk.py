"""Turngate's hooks as options of Claude's Agent SDK.

Hooks that Claude Code can run itself are passed in its settings JSON, where timeouts are in seconds. Callbacks are
called in this process when Claude Code asks for them, and their results are translated.
"""

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, assert_never, get_args

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from claude_agent_sdk.types import HookEvent

from turngate.core.answers.interpret import interpret
from turngate.core.answers.report_types import Returned
from turngate.core.constants import STOP_EVENTS
from turngate.core.dialect import CLAUDE
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.kinds import CallbackHook, CommandHook, GateHook, Hook, label
from turngate.core.settings import Problem, Rule
from turngate.core.text import describe, describe_exception, describe_syntax_error, quote_name
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.core.verdict.hook_run import HookRun, outcome
from turngate.errors import TurngateError, UsageError
from turngate.options.check_options import hook_json
from turngate.options.hook_forms import is_sdk_callback, without_trailing_underscores
from turngate.options.options import InvalidOptions, Options
from turngate.runners import run_callback
from turngate.tracing import open_hook_span

LOG = logging.getLogger("turngate")
LIMIT_VARIABLE = str(CLAUDE.limit_variable)  # from which Claude Code reads the limit of continuations


def claude_options(options: Options, base: ClaudeAgentOptions | None) -> ClaudeAgentOptions:
    base = ClaudeAgentOptions() if base is None else base
    rules = [rule for rule in options.rules_as_written() if rule.hook.enabled]
    problems = [
        Problem(file="", event=rule.event, index=rule.index, field=field, message=message)
        for rule in rules
        for field, message in _unsupported(rule)
    ]
    unsupported = _unsupported_options(options, base)
    problems += [Problem(file="", field=field, message=message) for field, message in unsupported]
    if problems:
        raise InvalidOptions(problems)
    settings, hooks = _base_settings(base), dict(base.hooks or {})
    for rule in rules:
        if isinstance(rule.hook, CallbackHook):
            callbacks = [_sdk_callback(rule, rule.hook)]
            matcher = HookMatcher(matcher=rule.matcher, hooks=callbacks, timeout=rule.hook.timeout)
            hooks[rule.event] = [*hooks.get(rule.event, []), matcher]  # type: ignore[index, call-overload]
        else:
            group = {"matcher": rule.matcher} if rule.matcher else {}
            groups = settings.setdefault("hooks", {}).setdefault(rule.event, [])
            groups.append({**group, "hooks": [_settings_entry(rule.hook, options.judge)]})
    return replace(
        base,
        hooks=hooks or None,
        settings=json.dumps(settings) if settings else None,
        model=base.model or (options.model.removeprefix("anthropic:") if options.model else None),
        env={**({} if options.limit is None else {LIMIT_VARIABLE: str(options.limit)}), **base.env},
    )


# What Claude Code does not support

# Without these fields a hook would decide differently.
_UNSUPPORTED = ("blocking", "mode", "env", "pass_env", "transcript", "shell")
_CALLBACK_EVENTS = frozenset(name for each in get_args(HookEvent) for name in get_args(each))
_CLAUDE_DEFAULTS = {"mode": "gate", "transcript": "full"}  # these values are supported, and not written
_NO_EQUIVALENT = "has no equivalent in Claude Code"


def _unsupported(rule: Rule) -> Iterator[tuple[str | None, str]]:
    """Yield field and message of each option of the hook that Claude Code does not support."""
    hook = rule.hook
    if not hook.in_claude_code:
        instead = ": use CallbackHook(gate_callback(…))" if isinstance(hook, GateHook) else ""
        yield None, f"the hook kind {hook.kind!r} {_NO_EQUIVALENT}{instead}"
    if isinstance(hook, CallbackHook) and rule.event not in _CALLBACK_EVENTS:
        yield None, f"the SDK does not call functions at {rule.event}"
    if hook.condition and rule.event in STOP_EVENTS:
        yield "condition", "prevents a hook from running at a stop in Claude Code"
    if hook.outcomes != ("ok",):
        yield "outcomes", _NO_EQUIVALENT
    if hook.detached and not isinstance(hook, CommandHook):
        yield "detached", _NO_EQUIVALENT
    for name in () if isinstance(hook, CallbackHook) else _UNSUPPORTED:
        value = getattr(hook, name, None)
        if value and value != _CLAUDE_DEFAULTS.get(name):
            yield name, _NO_EQUIVALENT
    yield from _other_provider("model", _model_of(hook))


def _unsupported_options(options: Options, base: object) -> Iterator[tuple[str, str]]:
    yield from _other_provider("model", options.model)
    yield from _other_provider("judge", options.judge)
    if options.dialect not in (None, CLAUDE.name):
        yield "dialect", f'is {options.dialect!r}, expected "{CLAUDE.name}" for Claude Code'
    if options.limit == 0:
        yield "limit", "is 0, which Claude Code reads as no limit, expected 1 or more"
    if not isinstance(base, ClaudeAgentOptions):
        yield "base", f"is {describe(base)}, expected ClaudeAgentOptions"


def _other_provider(field: str, model: str | None) -> Iterator[tuple[str, str]]:
    """Bedrock's model names have a colon as well (`us.anthropic.claude-…-v1:0`), but no provider has a dot."""
    provider, colon, _ = (model or "").partition(":")
    if colon and provider != "anthropic" and "." not in provider:
        yield field, f"is {model!r}, expected a model of Anthropic's for Claude Code"


def _model_of(hook: Hook) -> str | None:
    return getattr(hook, "model", None) if hook.asks == "model" else None


# What Claude Code gets


def _settings_entry(hook: Hook, judge: str | None) -> dict[str, Any]:
    entry = hook_json(hook, per_second=1)
    if hook.asks == "model" and (model := _model_of(hook) or judge):
        entry["model"] = model.removeprefix("anthropic:")
    return {name: value for name, value in entry.items() if name not in ("id", "outcomes", *_CLAUDE_DEFAULTS)}


def _base_settings(base: ClaudeAgentOptions) -> dict[str, Any]:
    """Return the settings of the base options, which are JSON or the path of a JSON file."""
    text = (base.settings or "").strip()
    if not text:
        return {}
    source = "the base options' settings"
    if not text.startswith("{"):
        path = os.path.join(base.cwd or "", text)
        source = f"the base options' settings file {path}"
        try:
            with open(path, encoding="utf-8-sig") as file:
                text = file.read()
        except (OSError, ValueError) as error:
            raise UsageError(f"{source} cannot be read: {error}") from None
    try:
        settings: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{source} is {describe_syntax_error(text, error)}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source} is not JSON: {error}") from None
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise UsageError(f"{source} must be an object whose `hooks` hold a list for each event")
    return dict(settings)


# Callbacks


class HookFailed(TurngateError):
    """Raised into the SDK, which reports a failed hook to Claude Code; Claude Code continues without a decision."""


def _sdk_callback(rule: Rule, hook: CallbackHook) -> Callable[[Any, str | None, Any], Awaitable[Any]]:
    """Return the user's callback as one of the SDK's. Claude Code enforces its timeout."""

    async def call(payload: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        session = payload.get("session_id", "") if isinstance(payload, dict) else ""
        with open_hook_span(rule.event, session, label(hook)) as set_outcome:
            try:
                value = without_trailing_underscores(await _call(rule, hook, (payload, tool_use_id, context)))
                decision = _check_json(value) or interpret(Returned(value), rule, CLAUDE).decision
            except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
                raise
            except BaseException as error:  # noqa: BLE001 - foreign code
                value, decision = None, Fault(describe_exception(error))
            set_outcome(outcome(HookRun(rule, Returned(value), decision, mode=hook.mode or "gate")))
        if hook.mode == "observe":
            return _report_observed(decision, hook)
        if isinstance(decision, Fault):
            return _handle_failure(decision, rule)
        return value if isinstance(value, dict) else _decision_json(decision, rule.event)

    return call


async def _call(rule: Rule, hook: CallbackHook, arguments: tuple[Any, str | None, Any]) -> Any:
    if is_sdk_callback(hook.callback):
        return await run_callback(lambda all_three: hook.callback(*all_three), arguments)
    payload = arguments[0]
    return await run_callback(hook.callback, read_event(rule.event, payload, cwd=payload.get("cwd", "")))


def _check_json(value: Any) -> Fault | None:
    """Return a fault if a dict, which is sent to Claude Code unchanged, cannot be written as JSON."""
    if not isinstance(value, dict):
        return None
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return Fault(f"its result cannot be written as JSON: {describe_exception(error)}")
    return None


def _report_observed(decision: Decision, hook: CallbackHook) -> dict[str, Any]:
    match decision:
        case Block(why) | Advise(why) | Halt(why) | Fault(why):
            verb = "failed" if isinstance(decision, Fault) else "would have blocked"
            return {"systemMessage": f"{label(hook)} {verb}: {why}"}
        case Allow():
            return {}
        case _:
            assert_never(decision)


def _handle_failure(fault: Fault, rule: Rule) -> dict[str, Any]:
    if not (rule.hook.blocking and fault.may_block):
        LOG.warning("hook %s failed and was NOT enforced: %s", quote_name(label(rule.hook)), fault.error)
        raise HookFailed(fault.error)
    failed = Block(f"this check failed and must pass before you may stop: {fault.error}")
    return _decision_json(failed, rule.event)


def _decision_json(decision: Decision, event: str) -> dict[str, Any]:
    """Return a decision in Claude Code's JSON contract; a block has the form that it expects at this event."""
    answer: dict[str, Any] = {"systemMessage": decision.notice} if decision.notice else {}
    specific: dict[str, Any] = {}
    match decision:
        case Allow() | Fault():
            pass
        case Advise(advice):
            specific["additionalContext"] = advice
        case Halt(reason):
            answer |= {"continue": False, **({"stopReason": reason} if reason else {})}
        case Block(reason, advice):
            specific |= {"additionalContext": advice} if advice else {}
            if event == "PreToolUse":
                specific |= {"permissionDecision": "deny", "permissionDecisionReason": reason}
            elif event == "PermissionRequest":
                specific["decision"] = {"behavior": "deny", "message": reason}
            else:
                answer |= {"decision": "block", "reason": reason}
        case _:
            assert_never(decision)
    return {**answer, **({"hookSpecificOutput": {"hookEventName": event, **specific}} if specific else {})}
