"""`frozen`, a `dataclass(frozen=True)` that compiles nothing when a module is loaded.

`dataclass` compiles six methods for each class, which was half of the time that it takes to load the modules of a session.
Here five of them are functions that all classes share, and `__init__` is compiled when it is first used.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, InitVar, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

T = TypeVar("T")


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()  # the default of a parameter whose value a `default_factory` makes


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T], /) -> type[T]: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...


def frozen(cls: type[T] | None = None, /, *, kw_only: bool = False) -> Any:
    """Make a frozen dataclass: `@frozen` or `@frozen(kw_only=True)`."""
    return _complete(cls, kw_only) if cls else lambda cls: _complete(cls, kw_only)


def _complete(cls: type[T], kw_only: bool) -> type[T]:
    cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise `dataclass` makes one from the signature
    made: Any = dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
    made.__init__ = _Init(made)
    made.__repr__ = _repr
    made.__eq__ = _eq
    made.__hash__ = _hash
    made.__setattr__ = made.__delattr__ = _raise
    return cls


class _Init:
    """Stands for the `__init__` of a class until that is first called or looked at."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if isinstance(self._cls.__dict__["__init__"], _Init):
            self._cls.__init__ = _compile_init(self._cls)
        return self._cls.__dict__["__init__"].__get__(instance, owner)


def _compile_init(cls: Any) -> Any:
    """Compile the function that `dataclass` would, and no other."""
    real = {each.name for each in fields(cls) if each.init}
    every = cls.__dataclass_fields__.values()
    given = [each for each in every if each.name in real or isinstance(each.type, InitVar)]
    values = ", ".join(f"{each.name!r}: {_value(each)}" for each in given if each.name in real)
    lines = [f"_set(self, '__dict__', {{{values}}})"]  # three times as fast as one call for each field
    if hasattr(cls, "__post_init__"):
        lines.append(f"self.__post_init__({', '.join(each.name for each in given if each.name not in real)})")
    source = f"def __init__({_parameters(given)}):\n " + "\n ".join(lines)
    names = {"__name__": cls.__module__, "_set": object.__setattr__, "_FACTORY": _FACTORY}
    names |= {f"_default_{each.name}": each.default for each in given}
    names |= {f"_make_{each.name}": each.default_factory for each in given}
    exec(source, names)  # noqa: S102 - of the names of fields
    init: Any = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in given} | {"return": None}
    return init


def _parameters(given: list[Field[Any]]) -> str:
    positional = [_parameter(each) for each in given if not each.kw_only]
    keywords = [_parameter(each) for each in given if each.kw_only]
    return ", ".join(["self", *positional, *(["*", *keywords] if keywords else ())])


def _parameter(each: Field[Any]) -> str:
    if each.default is not MISSING:
        return f"{each.name}=_default_{each.name}"
    return each.name if each.default_factory is MISSING else f"{each.name}=_FACTORY"


def _value(each: Field[Any]) -> str:
    if each.default_factory is MISSING:
        return each.name
    return f"_make_{each.name}() if {each.name} is _FACTORY else {each.name}"


def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: object) -> bool:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _compared(value: Any) -> tuple[Any, ...]:
    return tuple([getattr(value, each.name) for each in fields(value) if each.compare])


def _raise(_self: object, name: str, _value: object = None) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")
