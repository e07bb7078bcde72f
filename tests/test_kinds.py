"""Adding a hook kind: everything that the type checker cannot see is checked here, and named when it is missing."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, get_args

import pytest

import turngate
from turngate import CallbackHook, Options
from turngate.core.dialect import DIALECTS
from turngate.core.hooks import KINDS, Hook, HookKind, HttpHook
from turngate.core.settings import Rule
from turngate.settings import keys
from turngate.settings.json_schema import settings_schema
from turngate.settings.parse import parse_layer


def no_op(_: object) -> None:
    """The body of a callback hook."""


BODIES: dict[type[Hook], Any] = {CallbackHook: no_op, HttpHook: "http://localhost/"}


def sample(hook: type[Hook]) -> Hook:
    return hook(**{hook.body: BODIES.get(hook, "x")})


def test_the_table_has_every_class_of_the_union_and_every_name_of_the_literal() -> None:
    assert (tuple(KINDS.values()), tuple(KINDS)) == (get_args(Hook), get_args(HookKind))


@pytest.mark.parametrize("hook", KINDS.values(), ids=KINDS)
def test_a_hook_kind_is_complete(hook: type[Hook]) -> None:
    lacks = [*missing(hook)]
    assert not lacks, "\n  ".join((f"the hook kind {hook.kind!r} lacks:", *lacks))


def missing(hook: type[Hook]) -> Iterator[str]:
    kind = hook.kind
    if find_spec(f"turngate.runners.{kind}") is None:
        yield f"a runner: src/turngate/runners/{kind}.py and a case in run_hook"
    for dialect in DIALECTS.values():
        if kind not in dialect.timeouts:
            yield f"a timeout in the dialect {dialect.name}: core/dialect.py"
    if hook.__name__ not in vars(turngate)["__all__"]:
        yield f"the public name {hook.__name__}: turngate/__init__.py and __init__.pyi"
    if hook.in_settings:
        yield from missing_in_settings(hook)
    yield from missing_in_options(hook)


def missing_in_settings(hook: type[Hook]) -> Iterator[str]:
    row = keys.HOOK_KEYS.get(hook.body)
    if row is None or hook.kind not in row.kinds:
        yield f"the kind {hook.kind} in the row {hook.body!r} of HOOK_KEYS: settings/keys.py"
        return
    if hook.kind not in kinds_in_the_schema():
        yield f"the kind {hook.kind} in the JSON Schema: settings/json_schema.py"
    entry = {"type": hook.kind, hook.body: BODIES.get(hook, "x")}
    hooks = {"hooks": {"Stop": [{"hooks": [entry]}]}}
    layer = parse_layer(hooks, file="f", level="user", family="turngate", dialect=DIALECTS["turngate"])
    rule = Rule("Stop", sample(hook), None, "user", "f", "turngate", "[0].hooks[0]")
    if (layer.rules, layer.problems) != ((rule,), ()):
        yield f"the way from a settings entry to {hook.__name__}: settings/parse.py"


def kinds_in_the_schema() -> set[str]:
    groups = settings_schema()["properties"]["hooks"]["properties"]["Stop"]
    entries = groups["items"]["properties"]["hooks"]["items"]["anyOf"]
    return {entry["properties"]["type"]["const"] for entry in entries}


def missing_in_options(hook: type[Hook]) -> Iterator[str]:
    try:
        options = Options({"Stop": [sample(hook)]})
        back = Options.from_json(options.to_json(), [] if hook.in_settings else [no_op])
    except (ValueError, LookupError, AttributeError) as error:
        yield f"the way through Options: options/parse.py, options/serialize.py ({error})"
        return
    if back.hooks != {"Stop": (sample(hook),)}:
        yield f"the fields of {hook.__name__} in the JSON of Options: settings/keys.py"
