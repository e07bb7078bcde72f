"""`frozen`, a `dataclass(frozen=True)` that compiles nothing when a module is loaded.

`dataclass` compiles six methods for each class, which was half of the time that it takes to load the modules of a session.
Here five of them are functions that all classes share, and `__init__` is compiled when it is first used.
"""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, make_dataclass
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

T = TypeVar("T")


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
    every_field = [(each.name, each.type, each) for each in cls.__dataclass_fields__.values()]
    namespace = {"__module__": cls.__module__}
    if hasattr(cls, "__post_init__"):
        namespace["__post_init__"] = cls.__post_init__
    made: Any = make_dataclass(
        cls.__name__, every_field, namespace=namespace, frozen=True, repr=False, eq=False
    )
    return made.__init__


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
