"""Which paths of a project a list of globs names, as in a .gitignore: `src/**/*.py`, `*.{ts,tsx}`, `docs`, `!docs/old`."""

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache

MAX_ALTERNATIVES = 100
_BRACES = r"\{([^{}]*,[^{}]*)\}"


def matches_globs(globs: Sequence[str], path: str) -> bool:
    """Return whether the last glob that names the path is without a `!`. Paths are relative to the project."""
    for glob in reversed(globs):
        if matches_glob(glob.removeprefix("!"), path):
            return not glob.startswith("!")
    return False


def matches_glob(glob: str, path: str) -> bool:
    """Return whether a glob names the path or a folder above it. Without a slash it is a name at any depth.

    `**` stands for any number of folders; `*`, `?` and `[…]` do not match a slash; `{a,b}` is one or the other.
    """
    names = path.split("/")
    return any(_matches_parts(parts, names) for parts in _parts(glob))


def matches_names(glob: str, names: Sequence[str]) -> bool:
    """Return whether a glob names exactly this path, whose parts are given. Raises ValueError for too many alternatives."""
    return any(_matches_parts(parts, names) for parts in _parts(glob, is_exact=True))


@lru_cache(maxsize=1024)
def _parts(glob: str, *, is_exact: bool = False) -> tuple[tuple[re.Pattern[str] | None, ...], ...]:
    """Return, for each alternative of a glob, the patterns of the names in a path; None stands for `**`."""
    alternatives = expand_braces(glob)
    if alternatives is None and is_exact:
        raise ValueError(f"the braces in {glob} have more than {MAX_ALTERNATIVES} alternatives")
    return tuple(_compile(each, is_exact=is_exact) for each in alternatives or (glob,))


def _compile(glob: str, *, is_exact: bool) -> tuple[re.Pattern[str] | None, ...]:
    text = glob.rstrip("/").removeprefix("./")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if "/" not in text and not is_exact:
        parts = ["**", *parts]
    if parts[-1:] != ["**"] and not is_exact:  # what it names may be a folder
        parts.append("**")
    return tuple(None if part == "**" else re.compile(translate(part)) for part in parts)


def _matches_parts(parts: tuple[re.Pattern[str] | None, ...], names: Sequence[str]) -> bool:
    """After a mismatch only the last `**` is extended, so the time is bounded by the product of the lengths."""
    place = number = retry = 0
    folders = -1
    while place < len(names):
        part = parts[number] if number < len(parts) else None
        if number < len(parts) and part is None:
            folders, retry, number = number, place, number + 1
        elif part is not None and part.match(names[place]):
            place, number = place + 1, number + 1
        elif folders >= 0:
            retry += 1
            place, number = retry, folders + 1
        else:
            return False
    return all(part is None for part in parts[number:])


def expand_braces(text: str) -> tuple[str, ...] | None:
    """Return each alternative of `{a,b}` in a text, or None if there are too many."""
    done: list[str] = []
    rest = [text]
    while rest:
        text = rest.pop()
        braces = re.search(_BRACES, text)
        if braces is None:
            done.append(text)
            continue
        rest += [f"{text[: braces.start()]}{each}{text[braces.end() :]}" for each in braces[1].split(",")]
        if len(done) + len(rest) > MAX_ALTERNATIVES:
            return None
    return tuple(done)
