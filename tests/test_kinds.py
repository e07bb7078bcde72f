"""Adding a hook kind: everything that the type checker cannot see is checked here, and named when it is missing."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, ClassVar, get_args

import pytest

import turngate
from turngate import CallbackHook, CommandHook, InvalidOptions, Options
from turngate.cli.commands.log import format as log_format
from turngate.core.dialect import DIALECTS
from turngate.core.hooks.kinds import HOW_IT_RUNS, KINDS, Hook, HookKind, HttpHook, hook_text, identity, label
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
        yield f"the way through Options: options/check_options.py ({error})"
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


def test_only_what_says_how_a_hook_runs_is_not_part_of_its_identity() -> None:
    known = {field.name for hook in KINDS.values() for field in fields(hook)}
    hook = CommandHook("make")
    same = [replace(hook, shell="bash"), replace(hook, timeout=7), replace(hook, on_failure="block")]
    others = [
        replace(hook, env={"A": "1"}),
        replace(hook, condition="Bash"),
        replace(hook, outcomes=("error",)),
    ]
    assert known >= HOW_IT_RUNS
    assert {identity(each) for each in same} == {identity(hook)}
    assert len({identity(each) for each in (hook, *others)}) == 4


def test_hooks_of_two_kinds_with_the_same_body_are_two_hooks() -> None:
    assert len({identity(sample(hook)) for hook in KINDS.values()}) == len(KINDS)


def test_a_kind_that_claude_code_does_not_have_is_rejected_for_claude() -> None:
    class Unknown(CommandHook):
        kind: ClassVar[Any] = "unknown"

    with pytest.raises(InvalidOptions, match="the hook kind 'unknown' has no equivalent in Claude Code"):
        Options({"Stop": [Unknown("make")]}).for_claude()
