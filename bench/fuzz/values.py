"""Random texts, JSON values and files: mostly with real names, so that they get far, and with hostile parts."""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.support.strategies import NAMES, NUMBERS, WORDS

HOSTILE = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\u202e",
    "\u2066",
    "\ud800",
    "\0",
    "\r",
    "\n",
    "\x85",
    "\u2028",
    "\ufeff",
    "ſ",
    "İ",
    "K",
    "🙂",
    "é",
    "$(id)",
    "`id`",
    "${HOME}",
    "$ARGUMENTS",
    "../",
    "/proc/self/fd",
    "%2e%2e/",
    "{",
    "}",
    "[",
    '"',
    "'",
    "\\",
    "{" * 200,
    "[" * 2_000,
    "9" * 5_000,
    "a" * 3_000,
]
PLAIN = "abcdefghijklmnop XYZ_-.:,;/*?|&<>()0123456789"


def text(random: Random, most: int = 12) -> str:
    """Return a short text, sometimes with a hostile part, seldom a long one."""
    parts = []
    for _ in range(random.randint(0, 3)):
        if random.random() < 0.3:
            parts.append(random.choice(HOSTILE))
        else:
            parts.append("".join(random.choices(PLAIN, k=random.randint(0, most))))
    return "".join(parts) * (random.choice([1, 1, 1, 20]) if random.random() < 0.1 else 1)


def scalar(random: Random, words: Sequence[Any] = WORDS) -> Any:
    kind = random.random()
    if kind < 0.5:
        return random.choice(words)
    if kind < 0.7:
        return text(random)
    if kind < 0.85:
        return random.choice(NUMBERS)
    return random.choice([None, True, False])


def json_value(
    random: Random, names: Sequence[str] = NAMES, words: Sequence[Any] = WORDS, depth: int = 3
) -> Any:
    kind = random.random()
    if depth == 0 or kind < 0.4:
        return scalar(random, words)
    if kind < 0.6:
        return [json_value(random, names, words, depth - 1) for _ in range(random.randint(0, 3))]
    keys = [
        random.choice(names) if random.random() < 0.8 else text(random) for _ in range(random.randint(0, 4))
    ]
    return {key: json_value(random, names, words, depth - 1) for key in keys}


def some(random: Random, good: Any, share: float = 0.15, **names: Any) -> Any:
    """Return the good value, and sometimes any other."""
    return json_value(random, depth=2, **names) if random.random() < share else good


def dumps(random: Random, value: Any) -> bytes:
    """Return JSON in one of the ways in which programs write it; lone surrogates are escaped."""
    return json.dumps(value, indent=random.choice([None, None, 2])).encode()


def damaged(random: Random, data: bytes, share: float = 0.3) -> bytes:
    """Return the data, sometimes truncated, repeated, or with other bytes in it."""
    while random.random() < share:
        place = random.randint(0, len(data))
        match random.randint(0, 5):
            case 0:
                data = data[:place]
            case 1:
                data = data[place:]
            case 2:
                data = data[:place] + random.choice(HOSTILE).encode("utf-8", "surrogatepass") + data[place:]
            case 3:
                data = data[:place] + random.randbytes(random.randint(1, 4)) + data[place:]
            case 4:
                data = data[:place] + data[place : place + 30] * random.choice([2, 3, 100]) + data[place:]
            case _:
                data = random.choice([b"\xef\xbb\xbf", b"\n", b"text\n", b" "]) + data
    return data


def unprintable(output: str) -> list[str]:
    """Return the characters of an output that a terminal might obey."""
    return sorted({letter for letter in output if not letter.isprintable() and letter not in "\n\t"})
