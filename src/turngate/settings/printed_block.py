"""Reads what `echo` and `printf` of a hook print, and whether that blocks."""

import re
from collections.abc import Sequence

from turngate.core.answers.contract import read_answer
from turngate.core.answers.interpret_answer import decide
from turngate.core.dialect import Dialect
from turngate.core.verdict.decisions import Block, Fault

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "033": "\033"}
_CONVERSION = re.compile(r"\\(n|t|r|\\|\"|033)|%([%s])|([\\%])")


def printed_text(texts: Sequence[str | None]) -> str | None:
    """Return the output of an `echo` or a `printf`, or None if it depends on the shell or on a run."""
    words = [text for text in texts if text is not None]
    if len(words) < len(texts):
        return None
    name, *arguments = words
    if name == "printf":
        return _format(arguments[0], arguments[1:]) if arguments else None
    if arguments[:1] == ["-n"]:
        arguments = arguments[1:]
    text = " ".join(arguments)
    return None if "\\" in text or text.startswith("-") else text


def _format(pattern: str, values: list[str]) -> str | None:
    pieces: list[str] = []
    end = 0
    for found in _CONVERSION.finditer(pattern):
        escape, conversion, unknown = found.groups()
        if unknown or (conversion == "s" and not values):
            return None
        pieces += [pattern[end : found.start()], _ESCAPES[escape] if escape else "%"]
        if conversion == "s":
            pieces[-1] = values.pop(0)
        end = found.end()
    return None if values else "".join([*pieces, pattern[end:]])


def blocks(text: str, event: str, dialect: Dialect) -> bool | None:
    """Return whether this output blocks; False: it is meant as a block and has no effect; None: it is not one."""
    decision = decide(read_answer(text, event, dialect), event, dialect)
    if isinstance(decision, Block):
        return True
    return False if isinstance(decision, Fault) else None
