"""Names in camel case, as in JavaScript, for values that plugins receive."""

from typing import Any


def snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


class CamelCaseAccess:
    """Also offers each field in camel case: `event.lastAssistantMessage`."""

    def __getattr__(self, name: str) -> Any:
        field = snake_case(name)
        if field == name or field.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        return getattr(self, field)
