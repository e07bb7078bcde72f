"""The usual arguments of `turngate fire`, read without argparse: to import it takes as long as the rest of the command."""

from turngate.core.constants import DIALECT_NAMES, EVENTS

_FLAGS = ("--trust", "--strict", "--json")
_VALUES = ("--project", "--dialect", "--input")


class FireOptions:
    """The options of `turngate fire`, with the names and defaults that argparse gives them."""

    command = "fire"

    def __init__(self, event: str) -> None:
        self.event = event
        self.project: str | None = None
        self.settings: str | None = None
        self.dialect = "turngate"
        self.plugin_dir: list[str] = []
        self.input: str | None = None
        self.trust = self.strict = self.json = False


def read_fire_arguments(argv: list[str] | tuple[str, ...]) -> FireOptions | None:
    """Return the options, or None if argparse has to read the arguments: any other option, an abbreviation, a mistake."""
    if argv[:1] not in (["fire"], ("fire",)) or len(argv) < 2 or argv[1] not in EVENTS:
        return None
    options = FireOptions(argv[1])
    words = iter(argv[2:])
    for word in words:
        if word in _FLAGS:
            setattr(options, word[2:], True)
        elif word in _VALUES and _is_value(value := next(words, "")):
            setattr(options, word[2:], value)
        else:
            return None
    return options if options.dialect in DIALECT_NAMES else None


def _is_value(word: str) -> bool:
    return word == "-" or (word != "" and word[0] != "-")
