"""Splits a command with a condition into its parts, each character of it being read once or twice."""

import re

Parts = tuple[str, str, str]  # the commands before the check, the check, and what it decides about

_IF_KEYWORD = re.compile(r"(?:^|[;\n])[^\S\n]*(if|then|fi)\b")
_NEGATION = re.compile(r"\s*!\s")
_GROUP_START = re.compile(r"(?:\|\||&&)\s*\{\s")


def split_branch(text: str) -> Parts | tuple[()]:
    """Return the parts of a command that consists of one condition; nothing for any other."""
    return _split_if(text) or _split_group(text) or ()


def _split_if(text: str) -> Parts | None:
    """`BEFORE; if CHECK; then BODY; fi`. What follows is nothing, or `exit 0`."""
    keywords = list(_IF_KEYWORD.finditer(text))
    if [match[1] for match in keywords] != ["if", "then", "fi"]:
        return None
    start, then, end = keywords
    check = text[start.end() : then.start()]
    negation = _NEGATION.match(check)
    parts = (
        text[: start.start()],
        check[negation.end() :] if negation else check,
        text[then.end() : end.start()],
    )
    return parts if _ends_there(text[end.end() :]) else None


def _split_group(text: str) -> Parts | None:
    """`BEFORE; CHECK || { BODY; }`, also with `&&`."""
    start, end = _GROUP_START.search(text), text.rfind("}")
    if start is None or end < start.end() or not _ends_there(text[end + 1 :]):
        return None
    body, before = text[start.end() : end], text[: start.start()]
    if not body.rstrip(" \t").endswith((";", "\n")):
        return None
    check = max(before.rfind(";"), before.rfind("\n")) + 1
    return before[:check], before[check:], body


def _ends_there(rest: str) -> bool:
    return rest.replace(";", " ").split() in ([], ["exit", "0"])
