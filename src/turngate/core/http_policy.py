"""Http hooks before anything is sent: which URLs are allowed, and which headers are sent."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from turngate.core.redaction import Redactor, make_redactor
from turngate.core.settings import AllowedUrls
from turngate.core.text import describe_url

OWNERS = ("user", "python")  # levels whose list of URLs holds for hooks of every level
MAX_PERCENT_ENCODINGS = 5  # of one path: `%252e` is two
MAX_REDIRECT_URL_CHARS = 8000
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?|[0-9a-f.]*:[0-9a-f:.]*")  # a host name or an IP address


def url_objection(
    url: str, source: str, lists: Iterable[AllowedUrls], *, known_as: str | None = None
) -> str | None:
    """Why a hook from this source may not ask this address; None: it may.

    The user's list limits everybody and may allow what is not allowed by itself; a project's can only narrow.
    """
    name = known_as or describe_url(url)
    parts = _split(url)
    if parts is None:
        return (
            f"{name} is no address that can be asked: it must begin with https:// or http:// and name a host"
        )
    if parts.username is not None or parts.password is not None:
        return f"{name} holds a password: put it into `headers`, as a variable"
    lists = tuple(lists)
    for allowed in lists:
        if not any(pattern_allows(pattern, url) for pattern in allowed.patterns):
            whose = "your settings" if allowed.level in OWNERS else f"the {allowed.level} settings"
            return f"{name} is not among the `turngate.allowedUrls` of {whose}"
    listed = any(allowed.level in OWNERS for allowed in lists)
    if not listed and source not in OWNERS and parts.scheme == "http" and not is_loopback(parts.hostname):
        return (
            f"{name} is not encrypted: use https, or allow it in `turngate.allowedUrls` of your user settings"
        )
    return None


def pattern_allows(pattern: str, url: str) -> bool:
    """Does a pattern of an allow-list hold for this address?

    A prefix is compared part by part, so that `https://a.example` does not let `https://a.example.org` in.
    One with a query is a whole address. A host alone means https, and on this machine also http.
    """
    wanted, asked = _split(pattern if "://" in pattern else f"https://{pattern}", wild=True), _split(url)
    if wanted is None or asked is None or not _is_host(wanted.hostname or "", asked.hostname or ""):
        return False
    if "://" not in pattern:
        safe = asked.scheme == "https" or is_loopback(asked.hostname)
        port = wanted.port
        bare = wanted.path in ("", "/") and not wanted.query
        return safe and bare and (port is None or port == _port(asked))
    if wanted.scheme != asked.scheme or _port(wanted) != _port(asked):
        return False
    if wanted.query:
        return (wanted.path or "/", wanted.query) == (asked.path or "/", asked.query)
    return _is_below(wanted.path, asked.path)


def _is_host(pattern: str, host: str) -> bool:
    return host.endswith(pattern[1:]) and host != pattern[1:] if pattern.startswith("*.") else host == pattern


def _is_below(folder: str, path: str) -> bool:
    base = folder.rstrip("/")
    if not base:
        return True
    plain = path
    for _ in range(MAX_PERCENT_ENCODINGS):
        plain = unquote(plain)
    # Some servers drop what follows a semicolon, and then read `..;` as `..`.
    climbs = any(part.partition(";")[0] in ("..", ".") for part in re.split(r"[/\\]", plain))
    if climbs or unquote(plain) != plain:
        return False
    return path in (folder, base) or path.startswith(base + "/")


def redirected(url: str, location: str) -> str | None:
    """Where a redirect leads to; None: to nothing that can be asked."""
    try:
        target = urljoin(url, location)
    except ValueError:  # brackets that nobody closed
        return None
    parts = _split(target)
    if parts is None or "@" in parts.netloc or _is_odd(location) or len(target) > MAX_REDIRECT_URL_CHARS:
        return None
    return target


def same_origin(one: str, other: str) -> bool:
    """Is it the same program on the same machine? A redirect leads nowhere else."""
    first, second = _split(one), _split(other)
    if first is None or second is None:
        return False
    return (first.scheme, first.hostname, _port(first)) == (second.scheme, second.hostname, _port(second))


def is_loopback(host: str | None) -> bool:
    known = host in ("localhost", "::1") or (host or "").endswith(".localhost")
    return known or bool(re.fullmatch(r"127(?:\.\d{1,3}){3}", host or ""))


def _split(url: str, *, wild: bool = False) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and _port(parts)
    except ValueError:  # brackets that nobody closed, a port that is no number
        return None
    host = parts.hostname or ""
    named = _HOST.fullmatch(host.removeprefix("*.") if wild else host)
    bracketed = ("[" in parts.netloc) == (":" in host)
    return parts if known and named and bracketed and not _is_odd(url) else None


def _is_odd(url: str) -> bool:
    return any(character.isspace() or not character.isprintable() or character == "\\" for character in url)


def _port(parts: SplitResult) -> int:
    return {"http": 80, "https": 443}.get(parts.scheme, 0) if parts.port is None else parts.port


# Headers

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = frozenset(
    {"host", "content-type", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect"}
)
_SECRET_NAME = re.compile("auth|cookie|token|key|secret|password", re.IGNORECASE)


@dataclass(frozen=True)
class Headers:
    sent: Mapping[str, str]
    warnings: tuple[str, ...] = ()  # names only: no value is ever shown
    redactor: Redactor | None = None

    def redact(self, text: str) -> str:
        """Replace the secrets that were sent: an endpoint may echo them."""
        return self.redactor.text(text) if self.redactor else text


def read_headers(headers: Mapping[str, str], allowed: Iterable[str], environ: Mapping[str, str]) -> Headers:
    """Claude Code: variables only from `allowedEnvVars`, others become empty."""
    allowed = frozenset(allowed)
    sent: dict[str, str] = {}
    warnings: list[str] = []
    secrets: set[str] = set()

    def expand(match: re.Match[str]) -> str:
        variable = match[1] or match[2]
        if variable in allowed and variable in environ:
            secrets.add(environ[variable].strip())
            return environ[variable]
        why = "is not set" if variable in allowed else "is not among its `allowedEnvVars`"
        warnings.append(f"${variable} {why}, so it was sent as an empty string")
        return ""

    for name, value in headers.items():
        if not _NAME.fullmatch(name) or name.lower() in _OURS:
            warnings.append(f"its header {ascii(name)[:60]} was not sent: the name is not allowed")
            continue
        expanded = _VARIABLE.sub(expand, value).strip(" \t")
        if not _is_sendable(expanded):
            warnings.append(
                f"its header {name[:60]} was not sent: its value has characters that are not allowed"
            )
            continue
        sent[name] = expanded
        if _SECRET_NAME.search(name):
            secrets |= _secrets_of(expanded)
    return Headers(sent, tuple(dict.fromkeys(warnings)), make_redactor(secrets))


def _secrets_of(value: str) -> set[str]:
    """Return a header's value, the token of `Bearer token`, and the values of a cookie."""
    return {value, value.partition(" ")[2].strip(), *re.findall(r'="?([^\s;,"]+)', value)}


def unlisted_variables(headers: Mapping[str, str], allowed: Iterable[str]) -> tuple[str, ...]:
    """Return the variables that the headers use and the hook does not allow."""
    listed = frozenset(allowed)
    matches = (match for value in headers.values() for match in _VARIABLE.finditer(value))
    names = (match[1] or match[2] for match in matches)
    return tuple(dict.fromkeys(name for name in names if name not in listed))


def _is_sendable(value: str) -> bool:
    return value.isascii() and all(character.isprintable() or character == "\t" for character in value)
