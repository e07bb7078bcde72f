"""Which values of an environment are secrets. Variables are recognized by their names, passwords also in URLs."""

import re
from collections.abc import Iterator, Mapping

MIN_SECRET_CHARS = 8  # a shorter value occurs in texts by chance
MIN_LINE_CHARS = 16  # of a value with several lines, such as a private key

_PART = re.compile(
    "TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY", re.IGNORECASE
)
_WORDS = frozenset({"KEY", "KEYS", "PASS", "PWD", "PAT", "AUTH", "JWT", "PSK", "COOKIE", "BEARER"})
_ANY_WORD = re.compile(f"TOKEN|SECRET|CREDENTIAL|{'|'.join(sorted(_WORDS))}", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# The last word of a variable that is about a secret and does not hold it.
_ABOUT = frozenset(
    {
        "BACKEND",
        "COUNT",
        "DIR",
        "ENDPOINT",
        "EXPIRY",
        "FILE",
        "FOLDER",
        "HOST",
        "LENGTH",
        "LIMIT",
        "MODE",
        "NAME",
        "PATH",
        "PORT",
        "SOCK",
        "SOCKET",
        "TTL",
        "TYPE",
        "URI",
        "URL",
    }
)
_URL_PASSWORD = re.compile(r"://[^/?#\s:@]*:([^/?#\s@]+)@")


def is_secret_name(name: str) -> bool:
    """Return whether a variable with this name holds a secret: `GITHUB_TOKEN`, `DB_PASS`, not `PWD` or `KEY_FILE`."""
    if not _ANY_WORD.search(name):  # most names, at little cost
        return False
    words = [word.upper() for word in _WORD.findall(name)]
    if words[-1] in _ABOUT or name in ("PWD", "OLDPWD"):
        return False
    return bool(_PART.search(name)) or not _WORDS.isdisjoint(words)


def secret_values(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the values that must not be shown."""
    return frozenset(secret for name, value in environ.items() for secret in _secrets(name, value))


def _secrets(name: str, value: str) -> Iterator[str]:
    if len(value) < MIN_SECRET_CHARS:
        return
    if is_secret_name(name):
        yield value.strip()
        lines = value.splitlines()
        yield from (
            line for line in lines if len(lines) > 1 and len(line) >= MIN_LINE_CHARS and "---" not in line
        )
    elif "://" in value:
        yield from (found for found in _URL_PASSWORD.findall(value) if len(found) >= MIN_SECRET_CHARS)
