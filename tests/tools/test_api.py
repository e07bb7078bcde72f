"""docs/reference/api.md is what the docstrings and examples say, and nothing public is missing there."""

import inspect
import re
from collections import Counter
from dataclasses import is_dataclass

from tools.api import MEMBERS, PAGE, SECTIONS, TYPES, render

import turngate
from tests.support.paths import ROOT

PUBLIC: tuple[str, ...] = vars(turngate)["__all__"]


def test_the_page_is_what_make_api_writes() -> None:
    assert PAGE.read_text() == render()


def test_the_page_is_free_of_internals() -> None:
    """No ids of requirements, no modules of ours, no class variables, and nothing that goes to stderr."""
    internal = r"\(([A-Z]\d?-\d+)|settings/keys\.py|in_settings|in_claude_code|NOT enforced"
    assert [line for line in PAGE.read_text().splitlines() if re.search(internal, line)] == []


def test_every_public_name_has_one_entry() -> None:
    assert Counter(name for section in SECTIONS for name in section.names) == Counter(PUBLIC)


def test_every_public_name_occurs_in_the_example_of_its_section() -> None:
    examples = {each.example: (ROOT / "examples/api" / f"{each.example}.py").read_text() for each in SECTIONS}
    missing = [
        name
        for section in SECTIONS
        for name in section.names
        if len(re.findall(rf"\b{name}\b", examples[section.example])) < 2  # the import, and a use
    ]
    assert missing == []


def test_every_public_name_has_a_docstring() -> None:
    missing = [name for name in PUBLIC if name not in TYPES and not documented(getattr(turngate, name))]
    members = [
        f"{name}.{member}"
        for name, those in MEMBERS.items()
        for member in those
        if not inspect.getattr_static(getattr(turngate, name), member).__doc__
    ]
    assert [*missing, *members] == []


def documented(value: object) -> bool:
    """A dataclass without a docstring gets its name or its signature as one."""
    text = value.__doc__ or ""
    return bool(text) and not (is_dataclass(value) and text.partition("(")[0] == value.__name__)  # type: ignore[union-attr]
