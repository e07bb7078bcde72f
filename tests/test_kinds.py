"""Adding a hook kind: everything that the type checker cannot see is checked here, and named when it is missing."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from importlib.util import find_spec
from typing import Any, ClassVar, get_args

import pytest

import turngate
from turngate import CallbackHook, CommandHook, InvalidOptions, Options
from turngate.cli.commands.log import format as log_format
from turngate.core.dialect import DIALECTS
from turngate.core.hooks.kinds import KINDS, Hook, HookKind, HttpHook, hook_text, identity, label
from turngate.core.settings import Rule
from turngate.core.verdict.json_output import hook_json
from turngate.settings import key_table as keys
from turngate.settings.json_schema import settings_schema
from turngate.settings.parse import parse_layer


def no_op(_: object) -> None:
    """The body of a callback hook."""


def other_no_op(_: object) -> None:
    """The body of another callback hook."""


# Two bodies of each kind; most kinds have text.
BODIES: dict[type[Hook], tuple[Any, Any]] = {
    CallbackHook: (no_op, other_no_op),
    HttpHook: ("http://localhost/", "http://localhost/other"),
}
TEXTS = ("one text", "another text")


def sample(hook: type[Hook], which: int = 0) -> Hook:
    return hook(**{hook.body: BODIES.get(hook, TEXTS)[which]})


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
    yield from missing_in_output(hook)


def missing_in_settings(hook: type[Hook]) -> Iterator[str]:
    row = keys.HOOK_KEYS.get(hook.body)
    if row is None or hook.kind not in row.kinds:
        yield f"the kind {hook.kind} in the row {hook.body!r} of HOOK_KEYS: settings/key_table.py"
        return
    if hook.kind not in kinds_in_the_schema():
        yield f"the kind {hook.kind} in the JSON Schema: settings/json_schema.py"
    entry = {"type": hook.kind, hook.body: BODIES.get(hook, TEXTS)[0]}
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
        yield f"the fields of {hook.__name__} in the JSON of Options: settings/key_table.py"


def missing_in_output(hook: type[Hook]) -> Iterator[str]:
    one, other = sample(hook), sample(hook, 1)
    text = hook_text(one)
    if not text.strip() or not label(one).strip() or text == hook_text(other):
        yield f"a text that tells hooks with a different {hook.body!r} apart: hook_text in core/hooks/kinds.py"
    if hook_json(one).get("name" if hook is CallbackHook else hook.body) != text:
        yield f"the key {hook.body!r} in the JSON of a run: hook_json in core/verdict/json_output.py"
    if text not in log_format._format_run({"hook": hook_json(one)}):
        yield "its text in `turngate log`: _NAME_KEYS in cli/commands/log/format.py"


# Fields that do not make two hooks of several files different hooks, although their values differ. Claude Code
# (measured): the same command runs once, and the same prompt is asked once, whatever these say.
HOW_IT_RUNS = {
    "timeout",
    "enabled",
    "mode",
    "blocking",
    "detached",
    "rewake",
    "status_message",
    "continue_on_block",
}
NOT_IN_IDENTITY: Mapping[str, set[str]] = {
    "command": HOW_IT_RUNS | {"shell", "on_failure"},  # Claude Code (measured): the shell does not count
    "prompt": HOW_IT_RUNS,
    "agent": HOW_IT_RUNS,
    "http": HOW_IT_RUNS | {"allowed_env_vars", "on_failure"},  # the headers that use the variables count
    "gate": HOW_IT_RUNS | {"shell", "strict"},  # as `blocking`, `strict` is about failures
    "callback": set(),  # callbacks are never merged
}
# A value of each field that is neither its default nor text; one of a field of text is TEXTS[1].
CHANGED: Mapping[str, Any] = {
    "timeout": 7.0,
    "enabled": False,
    "mode": "observe",
    "blocking": True,
    "outcomes": ("error",),
    "detached": True,
    "rewake": True,
    "args": ("-k",),
    "shell": "bash",
    "on_failure": "block",
    "continue_on_block": True,
    "env": {"A": "1"},
    "pass_env": ("A",),
    "transcript": "last",
    "options": {"ifChanged": ["src/**"]},
    "strict": True,
    "headers": {"A": "1"},
    "allowed_env_vars": ("A",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_changes_what_a_hook_checks_is_part_of_its_identity(kind: str) -> None:
    hook = KINDS[kind]
    one, other = sample(hook), sample(hook, 1)
    names = {field.name for field in fields(hook)} - {hook.body}
    changed = {name: replace(one, **{name: CHANGED.get(name, TEXTS[1])}) for name in names}
    same = {name for name, each in changed.items() if identity(each) == identity(one)}
    if identity(one) == identity(other):
        same.add(hook.body)
    listed = NOT_IN_IDENTITY.get(kind, HOW_IT_RUNS)
    lacks = [f"{name!r} in `identity`, or in NOT_IN_IDENTITY and why" for name in sorted(same - listed)]
    lacks += [f"{name!r} only in `identity`, not in NOT_IN_IDENTITY" for name in sorted(listed - same)]
    assert not lacks, "\n  ".join((f"the hook kind {kind!r} lacks:", *lacks))


def test_hooks_of_two_kinds_with_the_same_body_are_two_hooks() -> None:
    assert len({identity(sample(hook)) for hook in KINDS.values()}) == len(KINDS)


def test_a_kind_that_claude_code_does_not_have_is_rejected_for_claude() -> None:
    class Unknown(CommandHook):
        kind: ClassVar[Any] = "unknown"

    with pytest.raises(InvalidOptions, match="the hook kind 'unknown' has no equivalent in Claude Code"):
        Options({"Stop": [Unknown("make")]}).for_claude()
