"""Where and why a text is not JSON, in words for the user."""

import json

BLANKS = "\ufeff \t\r\n"  # around JSON
COMMENT = "comments are not allowed in JSON"


def describe_syntax_error(text: str, error: json.JSONDecodeError) -> str:
    """Return line, column and cause, with better words for common mistakes than those of the json module."""
    position, cause = error.pos, error.msg[0].lower() + error.msg[1:]
    rest = text[position:].lstrip()
    before = text[:position].rstrip()
    if rest.startswith(("//", "/*", "#")):
        cause = COMMENT
    elif (rest[:1] in ("}", "]") and before.endswith(",")) or "trailing comma" in cause:
        # Python 3.13 points at the comma, older versions behind it.
        position = text.rindex(",", 0, position + 1)
        cause = "a comma before the closing bracket is not allowed in JSON"
    elif error.msg == "Extra data":
        cause = "there is more text after the JSON value"
    elif error.msg.startswith("Unterminated string"):
        cause = "this string has no closing quote"
    elif rest.startswith("'"):
        cause = 'strings need double quotes (")'
    line = text.count("\n", 0, position) + 1
    return f"not JSON at line {line}, column {position - text.rfind(chr(10), 0, position)}: {cause}"


def json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return "nested too deeply"


def is_truncated(body: str, error: Exception) -> bool:
    """Return whether the JSON is valid up to the end of the text."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.pos >= len(body) or error.msg.startswith("Unterminated string")
