"""`lazy_pattern`, a `re.compile` that compiles at the first use.

One stop loads a hundred patterns and uses twenty. To compile all of them took a tenth of the time of a gate.
"""

import re


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    return _LazyPattern(text, flags)  # type: ignore[return-value] # it has the same methods


class _LazyPattern:
    def __init__(self, text: str, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> object:
        """Look up a method of the pattern, once."""
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value
