"""`lazy_pattern`, a `re.compile` that compiles at the first use.

One stop loads a hundred patterns and uses twenty. To compile all of them took a tenth of the time of a gate.
"""

import re

TYPE_CHECKING = False  # as that of typing, which takes longer to load than most patterns

if TYPE_CHECKING:
    lazy_pattern = re.compile
else:

    class lazy_pattern:  # noqa: N801 - it stands for a function
        """Has the methods of a pattern; each is looked up once."""

        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._given = text, flags

        def __getattr__(self, name: str) -> object:
            value = getattr(re.compile(*self._given), name)
            setattr(self, name, value)
            return value
