"""`frozen` is a frozen dataclass in everything but the time that it takes to load."""

import copy
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, InitVar, asdict, field, is_dataclass, replace
from typing import ClassVar

import pytest

from turngate._frozen_dataclass import frozen


@frozen
class Point:
    """A value."""

    x: int
    y: int = 0


@frozen
class Counted:
    text: str
    length: int = field(init=False, default=-1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.text))


@frozen(kw_only=True)
class Base:
    kind: ClassVar[str] = "base"
    names: list[str] = field(default_factory=list)
    secret: str = field(default="s", repr=False, compare=False)
    seconds: float = 0
    milliseconds: InitVar[int | None] = None

    def __post_init__(self, milliseconds: int | None) -> None:
        if milliseconds is not None:
            object.__setattr__(self, "seconds", milliseconds / 1000)


@frozen
class Derived(Base):
    command: str
    note: str = field(default="n", kw_only=True)


class Place(Point):
    pass


def test_a_value_has_its_arguments_and_the_defaults() -> None:
    assert (Point(1), Point(1, 2), Point(y=4, x=3)) == (Point(1, 0), Point(x=1, y=2), Point(3, 4))
    assert (Point(1).x, Point(1).y) == (1, 0)


def test_a_default_factory_is_called_for_each_value() -> None:
    first, second = Derived("a"), Derived("a")
    assert (first.names, second.names, first.names is second.names) == ([], [], False)


def test_an_init_variable_goes_to_post_init_also_from_a_subclass() -> None:
    assert Derived("a", milliseconds=1500).seconds == 1.5


def test_a_field_may_be_left_to_post_init() -> None:
    assert repr(Counted("abc")) == "Counted(text='abc', length=3)"
    assert str(inspect.signature(Counted)) == "(text: str) -> None"


def test_fields_of_the_base_class_stay_keyword_only() -> None:
    with pytest.raises(
        TypeError, match=r"Derived.__init__\(\) takes 2 positional arguments but 3 were given"
    ):
        Derived("a", [])  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"Derived.__init__\(\) missing 1 required positional argument: 'command'"
    ):
        Derived()  # type: ignore[call-arg]


def test_a_value_is_shown_and_compared_without_the_fields_that_say_so() -> None:
    assert repr(Derived("a", secret="t")) == "Derived(names=[], seconds=0, command='a', note='n')"
    assert Derived("a", secret="t") == Derived("a", secret="u")
    assert Derived("a") != Derived("b")


def test_values_of_two_classes_are_not_equal() -> None:
    assert Point(1, 2) != Place(1, 2)


def test_equal_values_have_the_same_hash() -> None:
    assert len({Point(1), Point(1, 0), Point(2)}) == 2


def test_a_value_cannot_be_changed() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        del point.x
    assert point == Point(1)


def test_a_value_can_be_replaced_copied_pickled_matched_and_made_a_dictionary() -> None:
    point = Point(1, 2)
    match point:
        case Point(x, y):
            matched = (x, y)
    assert (replace(point, y=5), copy.deepcopy(point), pickle.loads(pickle.dumps(point))) == (
        Point(1, 5),
        point,
        point,
    )
    assert (asdict(point), matched, is_dataclass(Point)) == ({"x": 1, "y": 2}, (1, 2), True)


def test_the_signature_is_that_of_a_dataclass() -> None:
    assert str(inspect.signature(Point)) == "(x: int, y: int = 0) -> None"
    assert [*inspect.signature(Derived).parameters] == [
        "command",
        "names",
        "secret",
        "seconds",
        "milliseconds",
        "note",
    ]


def test_a_plain_subclass_has_the_same_fields() -> None:
    assert (repr(Place(1)), Place(1) == Place(1, 0)) == ("Place(x=1, y=0)", True)


def test_no_method_is_compiled_when_the_events_are_loaded() -> None:
    """From 3.13 on, `dataclass` compiles one empty function for each class."""
    program = """
import dataclasses, sys, turngate._frozen_dataclass
compiled = []
sys.addaudithook(lambda event, arguments: event == "compile" and arguments[1] == "<string>" and compiled.append(arguments[0]))
import turngate.core.events.events
print([text for text in compiled if b"self" in text])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
