"""Adding a settings key: a row in `settings/key_table.py` and a field in `Settings`, and what is missing is named here."""

from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from turngate.core.constants import EVENTS
from turngate.core.dialect import TURNGATE
from turngate.core.hooks.kinds import SETTINGS_KINDS
from turngate.core.settings import AllowedUrls, Layer, MergeRule, Settings, merge
from turngate.settings import key_table as keys
from turngate.settings.key_table import SECONDS, per_event, string_list
from turngate.settings.parse import parse_layer

# The fields of Settings that do not come from a key with one value.
NOT_SCALARS = {"rules", "switched_off", "managed_only", "dialect", "env", "user_env", "guarded", "problems"}


def test_every_row_has_a_field_in_settings_and_every_field_has_a_row() -> None:
    scalars = {field.name for field in fields(Settings)} - NOT_SCALARS
    lacks = [
        f"{key!r}: a field {row.field!r} in Settings"
        for key, row in keys.TURNGATE_KEYS.items()
        if row.field not in scalars
    ]
    lacks += [
        f"Settings.{name}: a row in settings/key_table.py"
        for name in sorted(scalars - keys.MERGE_RULES.keys())
    ]
    assert not lacks, "\n  ".join(("missing for", *lacks))


def test_every_row_of_a_hook_has_a_field() -> None:
    """That every field has a row is checked in tests/test_kinds.py."""
    assert [key for key, row in keys.HOOK_KEYS.items() if not {*row.kinds} & {*SETTINGS_KINDS}] == []


def test_every_merge_rule_is_used() -> None:
    assert set(keys.MERGE_RULES.values()) == set(get_args(MergeRule))


def merged(field: str, *values: object) -> object:
    layers = [
        Layer(file=level, level=level, family="turngate", scalars={field: value})
        for level, value in zip(("user", "project", "local"), values, strict=False)
        if value is not None
    ]
    return getattr(merge(layers, keys.MERGE_RULES, TURNGATE), field)


@pytest.mark.req("C-09", "C-18")
@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("limit", (1, 2), 2),
        ("announce_children", (True, False), False),
        ("plugins", (("a",), ()), ()),
        (
            "order",
            ({"*": "parallel", "Stop": "parallel"}, {"Stop": "sequential"}),
            {"*": "parallel", "Stop": "sequential"},
        ),
        ("no_revise_after_side_effects", (True, False), True),
        ("allowed_urls", (("a",), ("b",)), (AllowedUrls(("a",), "user"), AllowedUrls(("b",), "project"))),
        ("hard_limit", (20, 15, 30), 15),
        ("pass_env", (None, ("a",), ("b",)), ("a", "b")),
        ("pass_env", (("a",), ("b",)), ("a",)),
        ("http_hook_urls", (("a",), ("b", "a")), ("a", "b")),
    ],
)
def test_a_key_is_merged_by_its_rule(field: str, values: tuple[object, ...], expected: object) -> None:
    assert merged(field, *values) == expected


def test_a_key_that_no_file_sets_has_the_default_of_settings() -> None:
    assert merge([], keys.MERGE_RULES) == Settings(hard_limit=10)


def sample(schema: Mapping[str, Any]) -> Any:
    """Return a value that a row accepts."""
    if "anyOf" in schema:
        return sample(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "array":
            return [sample(schema["items"])]
        case "object":
            values = schema.get("additionalProperties") or next(
                iter(schema.get("properties", {}).items()), None
            )
            if isinstance(values, tuple):
                return {values[0]: sample(values[1])}
            return {"A": sample(values)} if values else {}
        case kind:
            return {"string": "A", "integer": 7, "number": 7.5, "boolean": True}[kind]


@pytest.mark.parametrize("name", keys.HOOK_KEYS)
def test_each_key_of_a_hook_becomes_the_field_of_its_row(name: str) -> None:
    row = keys.HOOK_KEYS[name]
    for kind in (kind for kind in row.kinds if kind in SETTINGS_KINDS):
        body = {"command": "make"} if kind == "gate" else {SETTINGS_KINDS[kind].body: "http://localhost/"}
        value = "tests" if name == "gate" else {} if name == "options" else sample(row.type.schema)
        entry = {"type": kind, **body, name: value}
        groups = {"hooks": {"Stop": [{"hooks": [entry]}]}}
        layer = parse_layer(groups, file="f", level="user", family="turngate", dialect=TURNGATE)
        field = getattr(layer.rules[0].hook, row.field)
        assert (field, layer.problems) == (row.type.convert(value) if row.type.convert else value, ())


@pytest.mark.parametrize("name", keys.TURNGATE_KEYS)
def test_merged_values_have_the_type_of_the_field(name: str) -> None:
    section = {name: sample(keys.TURNGATE_KEYS[name].type.schema)}
    layers = [
        parse_layer({"turngate": section}, file=level, level=level, family="turngate", dialect=TURNGATE)
        for level in ("user", "project")
    ]
    settings, hints = merge(layers, keys.MERGE_RULES, TURNGATE), get_type_hints(Settings)
    names = [keys.TURNGATE_KEYS[key].field for key in section]
    wrong = [
        f"Settings.{name} is {hints[name]}, and two files give {getattr(settings, name)!r}: "
        "the type or the merge rule of its row in settings/key_table.py is wrong"
        for name in names
        if not is_of(hints[name], getattr(settings, name))
    ]
    assert not wrong, "\n  ".join(wrong)


def is_of(hint: Any, value: Any) -> bool:
    """Return whether a value has exactly this type: True is not an int here, and 1 is not a float."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(is_of(each, value) for each in args)
    if origin is Literal:
        return value in args
    if origin is tuple and args[-1] is Ellipsis:
        return type(value) is tuple and all(is_of(args[0], each) for each in value)
    if origin is tuple:
        return type(value) is tuple and len(value) == len(args) and all(map(is_of, args, value))
    if origin is Mapping:
        return type(value) is dict and all(
            is_of(args[0], name) and is_of(args[1], each) for name, each in value.items()
        )
    return type(value) is hint


@pytest.mark.parametrize(("rule", "field"), [("each", "allowed_urls"), ("ceiling", "hard_limit")])
def test_a_rule_that_knows_one_field_is_used_only_for_it(rule: MergeRule, field: str) -> None:
    assert [name for name, used in keys.MERGE_RULES.items() if used == rule] == [field]


def test_a_value_per_event_is_converted_as_the_value_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        "a": keys.row("a", per_event(SECONDS), ""),
        "b": keys.row("b", per_event(string_list("names")), ""),
    }
    monkeypatch.setattr(keys, "TURNGATE_KEYS", rows)

    def scalars(section: Mapping[str, Any]) -> str:
        layer = parse_layer(
            {"turngate": section}, file="f", level="user", family="turngate", dialect=TURNGATE
        )
        return repr(layer.scalars)  # 5 == 5.0

    assert [scalars({"a": 5, "b": ["x"]}), scalars({"a": {"Stop": 5}, "b": {"Stop": ["x"]}})] == [
        "{'a': {'*': 5.0}, 'b': {'*': ('x',)}}",
        "{'a': {'Stop': 5.0}, 'b': {'Stop': ('x',)}}",
    ]


def test_a_name_that_is_nearly_an_event_is_recognized() -> None:
    assert [keys.closest_event(word) for word in ("stop", "Stpo", "sub_agent_stop", "Zzz")] == [
        "Stop",
        "Stop",
        "SubagentStop",
        None,
    ]
    assert all(keys.closest_event(event) == event for event in EVENTS)


@pytest.mark.parametrize(
    "name",
    ["PostStop", "PreStop", "SessionStop", "AgentStop", "TurnEnd", "turn_end", "Finish", "Done", "End"],
)
def test_usual_wrong_names_of_stop_mean_stop(name: str) -> None:
    assert keys.closest_event(name) == "Stop"
