"""Settings of a host with the lines of Turngate and without them: everything else stays as it is, to the byte."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.hosts.install.json_text import read_json_text
from turngate.hosts.install.settings_file import UnsuitableSettings, add_lines, hook_lines, remove_lines

GROUP = {"hooks": [{"type": "command", "command": "/opt/turngate hook", "timeout": 600}]}
FLAT = {"command": "/opt/turngate hook", "timeout": 600, "loop_limit": None}
ENTRIES = {"Stop": GROUP, "SessionStart": GROUP}


def value_of(text: str) -> Any:
    root = read_json_text(text)
    return None if root is None else root.value


# Arbitrary settings, written in arbitrary ways

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False)
) | st.text(max_size=8)
OTHER_ENTRIES = st.sampled_from(
    [
        {"hooks": [{"type": "command", "command": "make test"}]},
        {"matcher": "*", "hooks": []},
        {"hooks": [{"type": "command", "command": "echo turngate hook"}], "matcher": "x"},
        {"command": "./check.sh", "timeout": 5},
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
EVENT_LISTS = st.dictionaries(
    st.sampled_from(["Stop", "SessionStart", "PreToolUse", "stop"]), st.lists(OTHER_ENTRIES, max_size=2)
)
KEYS = st.text(max_size=4).filter(lambda key: key != "hooks")
SETTINGS = st.builds(
    lambda before, hooks, after: {
        **before,
        **({} if hooks is None else {"hooks": hooks}),
        **{key: value for key, value in after.items() if key not in before},
    },
    st.dictionaries(KEYS, VALUES, max_size=2),
    st.none() | EVENT_LISTS,
    st.dictionaries(KEYS, VALUES, max_size=2),
)
GAPS = st.sampled_from(
    ["", "", " ", "  ", "\n", "\r\n", "\n\t", "\n    ", " // c\n", "/* d */", "// e, ]\r\n  "]
)

NOTHING = st.just("")


@st.composite
def texts(draw: st.DrawFn, *, inside_empty: st.SearchStrategy[str] = NOTHING) -> str:
    """Draw the text of settings with blanks, comments and trailing commas in arbitrary places."""

    def write(value: Any) -> str:
        match value:
            case dict() | list() if not value:
                return draw(inside_empty).join("{}" if isinstance(value, dict) else "[]")
            case dict():
                items = [
                    f"{json.dumps(key)}{draw(GAPS)}:{draw(GAPS)}{write(each)}" for key, each in value.items()
                ]
                return "{" + body(items) + "}"
            case list():
                return "[" + body([write(each) for each in value]) + "]"
            case _:
                return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def body(items: list[str]) -> str:
        trailing = draw(st.sampled_from(["", "", ","]))
        gaps = [f"{draw(GAPS)}{item}{draw(GAPS)}" for item in items]
        return ",".join(gaps) + trailing + (draw(GAPS) if trailing else "")

    start = draw(st.sampled_from(["", "\ufeff", "// settings\n", "\n"]))
    return start + write(draw(SETTINGS)) + draw(st.sampled_from(["", "\n", "\r\n", "\n// end", "\n\n"]))


ANY_STYLE = st.builds(
    lambda value, indent, newline, end: json.dumps(value, indent=indent).replace("\n", newline) + end,
    SETTINGS,
    st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\r\n"]),
)


def with_ours(value: Any, entries: Mapping[str, Any], others: Mapping[str, Any]) -> Any:
    """Return what settings hold after the entries were added, without looking at texts."""
    hooks = dict(value.get("hooks", {}))
    hooks |= {event: [*hooks.get(event, []), entry] for event, entry in entries.items()}
    return {**others, **value, "hooks": hooks}


@given(texts(inside_empty=GAPS) | ANY_STYLE, st.sampled_from([{}, {"version": 1}]))
def test_the_text_gets_our_entries_and_nothing_else(text: str, others: dict[str, Any]) -> None:
    added = add_lines(text, ENTRIES, others)
    assert value_of(added) == with_ours(value_of(text), ENTRIES, others)


@given(texts() | ANY_STYLE, st.sampled_from([{}, {"version": 1}]))
def test_removal_restores_the_text_to_the_byte(text: str, others: dict[str, Any]) -> None:
    added = add_lines(text, ENTRIES, others)
    assert remove_lines(added, others, text) == text


@given(texts(inside_empty=GAPS), st.sampled_from([{}, {"version": 1}]))
def test_with_blanks_in_empty_containers_the_values_are_restored(text: str, others: dict[str, Any]) -> None:
    """How an empty container was written is known only from the text before."""
    added = add_lines(text, ENTRIES, others)
    assert value_of(remove_lines(added, others, text)) == value_of(text)


@given(texts(inside_empty=GAPS) | ANY_STYLE)
def test_what_was_there_is_still_there_in_order(text: str) -> None:
    """The old text is a subsequence of the new one: nothing is replaced."""
    added = iter(add_lines(text, ENTRIES, {}))
    assert all(char in added for char in text)


@given(texts(inside_empty=GAPS) | ANY_STYLE)
def test_a_second_time_changes_nothing(text: str) -> None:
    added = add_lines(text, ENTRIES, {})
    assert add_lines(added, ENTRIES, {}) == added


# Single cases


def test_a_line_with_another_path_and_timeout_is_updated_and_keeps_its_other_keys() -> None:
    text = """\
{
  "hooks": {
    "Stop": [
      { // ours, moved into a group of another hook
        "matcher": "*",
        "hooks": [
          {"type": "command", "command": "make test"},
          {"command": "/old/turngate hook", "timeout": 60, "statusMessage": "gates", "type": "command"}
        ]
      }
    ]
  }
}
"""
    updated = text.replace("/old/turngate", "/opt/turngate").replace("60", "600")
    assert add_lines(text, {"Stop": GROUP}, {}) == updated


def test_a_line_without_a_timeout_gets_one() -> None:
    text = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/opt/turngate hook"}]}]}}'
    assert add_lines(text, {"Stop": GROUP}, {}) == text.replace('hook"}', 'hook", "timeout": 600}')


def test_a_line_with_arguments_or_another_key_is_replaced() -> None:
    old = '{"type": "command", "command": "/opt/turngate", "args": ["hook"], "x": 1}'
    text = f'{{"hooks": {{"stop": [{old}]}}}}'
    new = '{"command": "/opt/turngate hook", "timeout": 600, "loop_limit": null}'
    assert add_lines(text, {"stop": FLAT}, {}) == text.replace(old, new)


def test_of_two_lines_of_ours_one_stays() -> None:
    ours = json.dumps(GROUP)
    text = f'{{"hooks": {{"Stop": [{ours}, {{"hooks": []}}, {ours}]}}}}'
    assert add_lines(text, {"Stop": GROUP}, {}) == f'{{"hooks": {{"Stop": [{ours}, {{"hooks": []}}]}}}}'


def test_removal_keeps_the_other_hooks_of_a_group_and_a_comment_at_the_end_of_a_line() -> None:
    ours = json.dumps(GROUP["hooks"][0])
    text = (
        f'{{"hooks": {{"Stop": [{{"hooks": [ {{"command": "a"}}, // first\n{ours}]}}], "Other": [{ours}]}}}}'
    )
    expected = '{"hooks": {"Stop": [{"hooks": [ {"command": "a"} // first\n]}]}}'
    assert remove_lines(text, {}, None) == expected


def test_the_commands_that_run_turngate_by_event() -> None:
    text = json.dumps(
        {"hooks": {"Stop": [{"hooks": [{"command": "make"}]}, GROUP], "stop": [FLAT], "enabled": True}}
    )
    assert hook_lines(text) == {"Stop": ["/opt/turngate hook"], "stop": ["/opt/turngate hook"]}
    assert hook_lines("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "it holds a list, expected an object"),
        ("null", "it holds null, expected an object"),
        ('{"hooks": []}', '"hooks" is a list, expected an object'),
        ('{"hooks": null}', '"hooks" is null, expected an object'),
        ('{"hooks": {"Stop": {}}}', '"Stop" in "hooks" is an object, expected a list of hooks'),
        ('{"hooks": {"Stop": "x"}}', '"Stop" in "hooks" is a string, expected a list of hooks'),
        ('{"hooks": {"Stop": true}}', '"Stop" in "hooks" is true, expected a list of hooks'),
        ('{"a": 1,\n "b" 2}', "not JSON at line 2, column 6: expecting ':' delimiter"),
        ('{"a": 1', "not JSON at line 1, column 8: expecting ',' delimiter"),
        ('{"a": 01}', "not JSON at line 1, column 7: expecting value"),
        ('{"a": 1} x', "not JSON at line 1, column 10: there is more text after the JSON value"),
        ('{"a": "x\ny"}', "not JSON at line 1, column 9: invalid control character at"),
        ('{"a": "x', "not JSON at line 1, column 7: this string has no closing quote"),
        ("{'a': 1}", 'not JSON at line 1, column 2: strings need double quotes (")'),
        ('{"a": 1 /* b }', "line 1, column 9: this comment has no end"),
        (
            '{"a": 1, "b": {"c": 1, "c": 2}}',
            'line 1, column 24: the key "c" is there twice in one object',
        ),
        ("{,}", "not JSON at line 1, column 2: expecting property name enclosed in double quotes"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_settings_that_cannot_hold_hooks(text: str, message: str) -> None:
    with pytest.raises(UnsuitableSettings) as raised:
        add_lines(text, ENTRIES, {})
    assert str(raised.value).removesuffix("; correct it there and run this again") == message
