"""Adding a hook kind: everything that the type checker cannot see is checked here, and named when it is missing."""

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from tools.api import SECTIONS

import turngate
from tests.support.paths import ROOT
from turngate import AgentHook, CallbackHook, CommandHook, InvalidOptions, Options
from turngate.cli.commands.log import format as log_format
from turngate.core.dialect import CLAUDE, TURNGATE, Dialect
from turngate.core.hooks.kinds import (
    HOW_IT_RUNS,
    KINDS,
    Hook,
    HookKind,
    HttpHook,
    hook_text,
    identity,
    label,
)
from turngate.core.settings import Layer, Rule
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


def test_the_union_and_the_literal_name_the_same_kinds() -> None:
    in_union, in_literal = [hook.kind for hook in get_args(Hook)], get_args(HookKind)
    differing = sorted({*in_union} ^ {*in_literal})
    message = f"core/hooks/kinds.py: the union Hook and the literal HookKind differ in {differing}"
    assert sorted(in_union) == sorted(in_literal), message


@pytest.mark.parametrize("hook", KINDS.values(), ids=KINDS)
def test_a_hook_kind_is_complete(hook: type[Hook]) -> None:
    lacks = [*missing(hook)]
    assert not lacks, "\n  ".join((f"the hook kind {hook.kind!r} lacks:", *lacks))


def missing(hook: type[Hook]) -> Iterator[str]:
    """Yield what a kind lacks, in the order of the steps in CONTRIBUTING.md."""
    yield from missing_in_output(hook)
    yield from missing_runner(hook)
    rows = [*missing_rows(hook)]
    yield from rows or missing_in_settings(hook)
    yield from () if rows else missing_in_options(hook)
    yield from missing_in_api(hook)
    yield from missing_in_docs(hook)


def missing_in_output(hook: type[Hook]) -> Iterator[str]:
    one, other = sample(hook), sample(hook, 1)
    try:
        text, other_text = hook_text(one), hook_text(other)
    except AssertionError:  # of assert_never
        yield "a case in hook_text: core/hooks/kinds.py"
        return
    if not text.strip() or not label(one).strip() or text == other_text:
        yield f"a text that tells hooks with a different {hook.body!r} apart: hook_text in core/hooks/kinds.py"
    body = BODIES.get(hook, TEXTS)[0] if hook.in_settings else text
    if body not in hook_json(one).values():
        yield f"its {hook.body!r} in the JSON of a run: _SHOWN in core/verdict/json_output.py"
    elif body not in log_format._format_run({"hook": hook_json(one)}):
        yield f"its {hook.body!r} in `turngate log`: _format_run in cli/commands/log/format.py"


def missing_runner(hook: type[Hook]) -> Iterator[str]:
    if hook in (AgentHook, CallbackHook):  # in runners/prompt.py and in run_hook itself
        return
    if not (ROOT / (runner := f"src/turngate/runners/{hook.kind}.py")).exists():
        yield f"its runner: {runner}"
    if not (ROOT / (test := f"tests/runners/test_{hook.kind}.py")).exists():
        yield f"a test of its runner: {test}"


def missing_rows(hook: type[Hook]) -> Iterator[str]:
    names = {row.field: key for key, row in keys.HOOK_KEYS.items()}
    for field in fields(hook) if hook.in_settings else ():
        if field.name not in names:
            yield f"a row for {hook.__name__}.{field.name}: HOOK_KEYS in settings/key_table.py"
        elif field.name == hook.body and names[field.name] != hook.body:
            yield f"the key {hook.body!r}, as the field, for its body: HOOK_KEYS in settings/key_table.py"


def missing_in_settings(hook: type[Hook]) -> Iterator[str]:
    if not hook.in_settings:
        return
    if hook.kind not in kinds_in_the_schema():
        yield f"the kind {hook.kind} in the JSON Schema: settings/json_schema.py"
    layer = parse(hook)
    rule = Rule("Stop", sample(hook), None, "user", "f", "turngate", "[0].hooks[0]")
    if (layer.rules, layer.problems) != ((rule,), ()):
        yield f"the way from a settings entry to {hook.__name__}: settings/parse_hooks.py"


def parse(hook: type[Hook], family: str = "turngate", dialect: Dialect = TURNGATE) -> Layer:
    entry = {"type": hook.kind, hook.body: BODIES.get(hook, TEXTS)[0]}
    hooks = {"hooks": {"Stop": [{"hooks": [entry]}]}}
    return parse_layer(hooks, file="f", level="user", family=family, dialect=dialect)


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


def missing_in_api(hook: type[Hook]) -> Iterator[str]:
    name = hook.__name__
    if hook.__doc__ == name:  # as `frozen` sets it
        yield f"a docstring of {name}: core/hooks/kinds.py"
    if name not in vars(turngate)["__all__"]:
        yield f"the public name {name}: src/turngate/__init__.py"
    if f" as {name}\n" not in read("src/turngate/__init__.pyi"):
        yield f"the public name {name}: src/turngate/__init__.pyi"
    section = next((section for section in SECTIONS if name in section.names), None)
    if section is None:
        yield f"the public name {name} in a section: tools/api.py"
    elif f"{name}(" not in read(example := f"examples/api/{section.example}.py"):
        yield f"a use of {name}: {example}"


def read(file: str) -> str:
    return (ROOT / file).read_text()


def names_in(file: str, after: str, before: str, pattern: str) -> set[str]:
    """Return what the pattern finds in the part of a page between two texts."""
    part = read(file).partition(after)[2].partition(before)[0]
    return set(re.findall(pattern, part, re.MULTILINE))


HOOKS_PAGE = "docs/reference/hook-kinds.md"
# Where the pages list all kinds.
LISTS = {
    f"its row in the first table: {HOOKS_PAGE}": names_in(HOOKS_PAGE, "| kind |", "\n## ", r"^\| \[?(\w+)"),
    f"its row in the table of timeouts: {HOOKS_PAGE}": names_in(
        HOOKS_PAGE, "\n## Timeouts\n", "\n## ", r"^\| `(\w+)`"
    ),
    "its name at **Hook kinds**: README.md": names_in("README.md", "**Hook kinds:**", ", at", r"`(\w+)`"),
    "its name in the row **hook** of the glossary: docs/explanation/architecture.md": names_in(
        "docs/explanation/architecture.md", "; its *kind*", " |\n", r"(?: is|,| or) (\w+)"
    ),
}


def missing_in_docs(hook: type[Hook]) -> Iterator[str]:
    yield from (place for place, kinds in LISTS.items() if hook.kind not in kinds)


def test_the_pages_list_only_kinds_that_exist() -> None:
    unknown = {place: kinds - {*KINDS} for place, kinds in LISTS.items() if not kinds <= {*KINDS}}
    assert unknown == {}


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


def test_a_kind_that_claude_code_does_not_have_is_rejected_for_claude(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HttpHook, "in_claude_code", False)
    with pytest.raises(InvalidOptions, match="the hook kind 'http' has no equivalent in Claude Code"):
        Options({"Stop": [sample(HttpHook)]}).for_claude()


def test_a_kind_that_claude_code_does_not_have_is_a_problem_in_its_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HttpHook, "in_claude_code", False)
    layers = [parse(HttpHook, "claude", dialect) for dialect in (TURNGATE, CLAUDE)]
    problems = [(each.severity, each.message, each.hint) for layer in layers for each in layer.problems]
    unknown = 'is "http", which Claude Code does not know'
    assert ([len(layer.rules) for layer in layers], problems) == (
        [1, 0],
        [
            (
                "warning",
                f"{unknown}: only Turngate runs the hook",
                "move it to .turngate/, or use a command hook",
            ),
            ("error", f"{unknown}: the hook is left out", "use a command hook"),
        ],
    )
