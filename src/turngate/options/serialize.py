"""Converts `Options` to JSON and back. Functions are not written."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from turngate.core.hooks.kinds import Hook
from turngate.core.settings import Problem
from turngate.core.text import describe, describe_syntax_error
from turngate.options.config_forms import Config, HookGroup, hook_of
from turngate.options.parse import OWN, copy_plain, default_of, key_name
from turngate.settings import key_table as keys

_JSON_NAMES = {"timeout" if name == "timeout_ms" else name: name for name in OWN}


def options_json(hooks: Mapping[str, Sequence[Config]], own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "hooks": {event: [_config_json(config) for config in configs] for event, configs in hooks.items()},
        **{key: own[name] for key, name in _JSON_NAMES.items() if own[name] is not None},
    }


def _config_json(config: Config) -> dict[str, Any]:
    if isinstance(config, HookGroup):
        matcher = {} if config.matcher is None else {"matcher": config.matcher}
        return {**matcher, "hooks": [_config_json(hook) for hook in config.hooks]}
    return hook_json(hook_of(config), per_second=1000)


def hook_json(hook: Hook, *, per_second: int) -> dict[str, Any]:
    """Return a hook as JSON without the function of a callback. `per_second` is the unit of the timeout."""
    entry: dict[str, Any] = {"type": hook.kind}
    for name, row in keys.HOOK_KEYS.items():
        value = getattr(hook, row.field, None)
        if hook.kind in row.kinds and value != default_of(hook, row.field):
            entry[name] = copy_plain(value)
    if hook.timeout is not None:
        limit = hook.timeout * per_second
        entry["timeout"] = max(1, round(limit)) if per_second > 1 or limit == int(limit) else limit
    return entry


# Back


class ParsedOptions(NamedTuple):
    """The content of some JSON, not yet checked, and the problems of the JSON itself."""

    hooks: Any
    own: Mapping[str, Any]
    problems: Sequence[Problem]


def parse_options_json(
    value: Mapping[str, Any] | str, callbacks: Iterable[Callable[..., Any]]
) -> ParsedOptions:
    try:
        options: Any = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError as error:
        return _invalid(f"is {describe_syntax_error(error.doc, error)}")
    except ValueError:  # Python limits the digits of an integer
        return _invalid("is not JSON: a number in it is too long")
    except RecursionError:
        return _invalid("is not JSON: it is nested too deeply")
    if not isinstance(options, Mapping):
        return _invalid(f"is {describe(options)}, expected an object")
    problems = [
        Problem(file="", field=key_name(name), message="is not an option")
        for name in options
        if name != "hooks" and name not in _JSON_NAMES
    ]
    hooks, callback_problems = _with_callbacks(options.get("hooks", {}), callbacks)
    own = {_JSON_NAMES[name]: each for name, each in options.items() if name in _JSON_NAMES}
    return ParsedOptions(hooks, own, [*problems, *callback_problems])


def _invalid(message: str) -> ParsedOptions:
    return ParsedOptions({}, {}, [Problem(file="", message=message)])


def _with_callbacks(hooks: Any, callbacks: Iterable[Callable[..., Any]]) -> tuple[Any, list[Problem]]:
    """Return the hooks with the functions put into their callback entries, in order."""
    try:
        functions = iter(callbacks)
    except TypeError:
        message = f"is {describe(callbacks)}, expected a list of functions"
        return _fill_callbacks(hooks, iter(())), [Problem(file="", field="callbacks", message=message)]
    filled = _fill_callbacks(hooks, functions)
    if any(True for _ in functions):
        message = "has more functions than there are callback hooks"
        return filled, [Problem(file="", field="callbacks", message=message)]
    return filled, []


def _fill_callbacks(hooks: Any, functions: Iterator[Callable[..., Any]]) -> Any:
    def fill_entry(config: Any) -> Any:
        if not isinstance(config, Mapping) or config.get("type") != "callback":
            return config
        function = next(functions, None)
        return config if function is None else {**config, "callback": function}

    def fill(config: Any) -> Any:
        if isinstance(config, Mapping) and "hooks" in config and "type" not in config:
            return {**config, "hooks": _map_list(fill_entry, config["hooks"])}
        return fill_entry(config)

    if not isinstance(hooks, Mapping):
        return hooks
    return {event: _map_list(fill, configs) for event, configs in hooks.items()}


def _map_list(change: Callable[[Any], Any], configs: Any) -> Any:
    return [change(config) for config in configs] if isinstance(configs, list | tuple) else configs
