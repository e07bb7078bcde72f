"""Adding a settings key: a row in `settings/keys.py` and a field in `Settings`, and what is missing is named here."""

from dataclasses import fields
from typing import get_args

import pytest

from turngate.core.constants import EVENTS
from turngate.core.dialect import TURNGATE
from turngate.core.hooks import SETTINGS_KINDS, Hook
from turngate.core.settings import AllowedUrls, Layer, MergeRule, Settings, merge
from turngate.settings import keys

# The fields of Settings that do not come from a key with one value.
NOT_SCALARS = {"rules", "switched_off", "dialect", "env", "problems"}


def test_every_row_has_a_field_in_settings_and_every_field_has_a_row() -> None:
    scalars = {field.name for field in fields(Settings)} - NOT_SCALARS
    lacks = [
        f"{key!r}: a field {row.field!r} in Settings"
        for key, row in keys.TURNGATE_KEYS.items()
        if row.field not in scalars
    ]
    lacks += [
        f"Settings.{name}: a row in settings/keys.py" for name in sorted(scalars - keys.MERGE_RULES.keys())
    ]
    assert not lacks, "\n  ".join(("missing for", *lacks))


@pytest.mark.parametrize("hook", SETTINGS_KINDS.values(), ids=SETTINGS_KINDS)
def test_every_row_of_a_hook_has_a_field_and_every_field_has_a_row(hook: type[Hook]) -> None:
    in_rows = {row.field for row in keys.HOOK_KEYS.values() if hook.kind in row.kinds}
    in_class = {field.name for field in fields(hook)}
    lacks = [f"the field {name!r} in {hook.__name__}" for name in sorted(in_rows - in_class)]
    lacks += [f"a row in settings/keys.py for {hook.__name__}.{name}" for name in sorted(in_class - in_rows)]
    assert not lacks, "\n  ".join((f"the hook kind {hook.kind!r} lacks:", *lacks))


def test_every_merge_rule_is_used() -> None:
    assert set(keys.MERGE_RULES.values()) == set(get_args(MergeRule))


def merged(field: str, *values: object) -> object:
    layers = [
        Layer(file=level, level=level, family="turngate", scalars={field: value})
        for level, value in zip(("user", "project", "local"), values, strict=False)
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
    ],
)
def test_a_key_is_merged_by_its_rule(field: str, values: tuple[object, ...], expected: object) -> None:
    assert merged(field, *values) == expected


def test_a_key_that_no_file_sets_has_the_default_of_settings() -> None:
    assert merge([], keys.MERGE_RULES) == Settings(hard_limit=10)


def test_a_name_that_is_nearly_an_event_is_recognized() -> None:
    assert [keys.closest_event(word) for word in ("stop", "Stpo", "sub_agent_stop", "Zzz")] == [
        "Stop",
        "Stop",
        "SubagentStop",
        None,
    ]
    assert all(keys.closest_event(event) == event for event in EVENTS)
