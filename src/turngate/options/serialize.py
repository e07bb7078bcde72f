"""Options as JSON, there and back; a function is never written."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from turngate.core.hooks import Hook
from turngate.core.settings import Problem
from turngate.core.text import describe
from turngate.options.config_forms import Config, HookGroup, hook_of
from turngate.options.parse import OWN, copy_plain, default_of, key_name
from turngate.settings import keys

_JSON = {"timeout" if name == "timeout_ms" else name: name for name in OWN}


def options_json(hooks: Mapping[str, Sequence[Config]], own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "hooks": {event: [_config_json(config) for config in configs] for event, configs in hooks.items()},
        **{told: own[name] for told, name in _JSON.items() if own[name] is not None},
    }


def _config_json(config: Config) -> dict[str, Any]:
    if isinstance(config, HookGroup):
        matcher = {} if config.matcher is None else {"matcher": config.matcher}
        return {**matcher, "hooks": [_config_json(hook) for hook in config.hooks]}
    return config_json(hook_of(config), per_second=1000)


def config_json(hook: Hook, *, per_second: int) -> dict[str, Any]:
    """A hook as JSON, its timeout in whatever the surface counts; a function is never written."""
    told: dict[str, Any] = {"type": hook.kind}
    for name, key in keys.HOOK.items():
        value = getattr(hook, key.field, None)
        if hook.kind in key.kinds and value != default_of(hook, key.field):
            told[name] = copy_plain(value)
    if hook.timeout is not None:
        limit = hook.timeout * per_second
        told["timeout"] = max(1, round(limit)) if per_second > 1 or limit == int(limit) else limit
    return told


# Back


class Told(NamedTuple):
    """What some JSON says, not yet checked, and what was no option at all."""

    hooks: Any
    own: Mapping[str, Any]
    problems: Sequence[Problem]


def told_in(value: Mapping[str, Any] | str, callbacks: Iterable[Callable[..., Any]]) -> Told:
    try:
        told: Any = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError as error:
        return _nothing(f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}")
    except ValueError:  # Python's own limit
        return _nothing("is not JSON: a number in it is too long")
    except RecursionError:
        return _nothing("is not JSON: it is nested too deeply")
    if not isinstance(told, Mapping):
        return _nothing(f"is {describe(told)}, expected an object")
    problems = [
        Problem(file="", field=key_name(name), message="is no option")
        for name in told
        if name != "hooks" and name not in _JSON
    ]
    try:
        functions = iter(callbacks)
    except TypeError:
        functions = iter(())
        message = f"is {describe(callbacks)}, expected a list of functions"
        problems.append(Problem(file="", field="callbacks", message=message))
    hooks = _with_functions(told.get("hooks", {}), functions)
    if any(True for _ in functions):
        problems.append(
            Problem(file="", field="callbacks", message="has a function that no callback hook takes")
        )
    return Told(hooks, {_JSON[name]: each for name, each in told.items() if name in _JSON}, problems)


def _nothing(message: str) -> Told:
    return Told({}, {}, [Problem(file="", message=message)])


def _with_functions(hooks: Any, functions: Iterator[Callable[..., Any]]) -> Any:
    """The same JSON, and each callback entry has the next function, as long as there are some."""

    def entry(config: Any) -> Any:
        if not isinstance(config, Mapping) or config.get("type") != "callback":
            return config
        found = next(functions, None)
        return config if found is None else {**config, "callback": found}

    def entry_or_group(config: Any) -> Any:
        if isinstance(config, Mapping) and "hooks" in config and "type" not in config:
            return {**config, "hooks": _each(entry, config["hooks"])}
        return entry(config)

    if not isinstance(hooks, Mapping):
        return hooks
    return {event: _each(entry_or_group, configs) for event, configs in hooks.items()}


def _each(change: Callable[[Any], Any], configs: Any) -> Any:
    return [change(config) for config in configs] if isinstance(configs, list | tuple) else configs
