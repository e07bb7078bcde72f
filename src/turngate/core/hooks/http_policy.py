"""Http hooks before anything is sent: which URLs are allowed, and which headers are sent."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from turngate._frozen_dataclass import frozen
from turngate.core.redaction import Redactor, make_redactor
from turngate.core.settings import AllowedUrls
from turngate.core.text import describe, describe_name, describe_url, wildcard_matches

OWNER_LEVELS = ("user", "python", "command line", "managed")  # their lists of URLs hold for all hooks
MAX_PERCENT_ENCODINGS = 5  # of one path: `%252e` is two
MAX_REDIRECT_URL_CHARS = 8000
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?|[0-9a-f.]*:[0-9a-f:.]*")  # a host name or an IP address


def url_problem(
    url: str,
    source: str,
    lists: Iterable[AllowedUrls],
    patterns: Iterable[str] | None = None,
    *,
    name: str | None = None,
) -> str | None:
    """Return why a hook of this level may not send to this URL, or None if it may.

    The user's list limits every hook and may allow what is not allowed by default; a project's list only narrows it.
    `patterns` are those of Claude Code's `allowedHttpHookUrls`, None if no file has that key.
    """
    name = name or describe_url(url)
    parts = _split(url)
    if parts is None:
        return f"{name} is not a valid URL: it must begin with https:// or http:// and name a host"
    if parts.username is not None or parts.password is not None:
        return f"{name} contains a password: put it in `headers`, as a variable"
    if patterns is not None and not any(wildcard_allows(pattern, url) for pattern in patterns):
        return f"{name} is not among the `allowedHttpHookUrls` of the settings"
    lists = tuple(lists)
    for allowed in lists:
        if not any(pattern_allows(pattern, url) for pattern in allowed.patterns):
            whose = "your settings" if allowed.level in OWNER_LEVELS else f"the {allowed.level} settings"
            return f"{name} is not among the `turngate.allowedUrls` of {whose}"
    listed = any(allowed.level in OWNER_LEVELS for allowed in lists)
    is_open = parts.scheme == "http" and not is_loopback(parts.hostname)
    if is_open and not listed and source not in OWNER_LEVELS:
        return (
            f"{name} is not encrypted: use https, or allow it in `turngate.allowedUrls` of your user settings"
        )
    return None


def pattern_allows(pattern: str, url: str) -> bool:
    """Return whether a pattern of an allow-list matches this URL.

    A prefix is compared part by part, so that `https://a.example` does not allow `https://a.example.org`.
    A pattern with a query is a complete URL. A host alone means https, and on this machine also http.
    """
    allowed = _split(pattern if "://" in pattern else f"https://{pattern}", wild=True)
    parts = _split(url)
    if allowed is None or parts is None or not _is_host(allowed.hostname or "", parts.hostname or ""):
        return False
    if "://" not in pattern:
        safe = parts.scheme == "https" or is_loopback(parts.hostname)
        bare = allowed.path in ("", "/") and not allowed.query
        return safe and bare and allowed.port in (None, _port(parts))
    if allowed.scheme != parts.scheme or _port(allowed) != _port(parts):
        return False
    if allowed.query:
        return (allowed.path or "/", allowed.query) == (parts.path or "/", parts.query)
    base = allowed.path.rstrip("/")
    is_inside = parts.path in (allowed.path, base) or parts.path.startswith(base + "/")
    return not base or (is_inside and not _has_dots(parts.path))


def wildcard_allows(pattern: str, url: str) -> bool:
    """Return whether a pattern of `allowedHttpHookUrls` matches this URL; `*` stands for any characters.

    In the host part `*` stays in the host part, so that `https://*.a.example/*` does not allow
    `https://b.example/x.a.example/`. The host is compared without case. The fragment is never sent, and a path with
    `..` is not the one that is requested.
    """
    path, mark, query = url.partition("#")[0].partition("?")
    path_pattern, mark_pattern, query_pattern = pattern.partition("?")
    # Only `*` at the end covers a query, so that `https://a.example/*/b` does not allow `https://a.example/?/b`.
    covered = mark_pattern + query_pattern or ("*" if pattern.endswith("*") else "")
    return wildcard_matches(covered, mark + query) and _wildcard_allows_path(path_pattern, path)


def _wildcard_allows_path(pattern: str, url: str) -> bool:
    if _has_dots(urlsplit(url).path):
        return False
    scheme, separator, rest = pattern.partition("://")
    if not separator:
        return wildcard_matches(pattern, url)
    host, path = _split_host(rest)
    if not path and host.endswith("*"):
        path = "*"
    url_scheme, _, url_rest = url.partition("://")
    url_host, url_path = _split_host(url_rest)
    return (
        wildcard_matches(scheme.lower(), url_scheme.lower())
        and wildcard_matches(host.lower(), url_host.lower())
        and wildcard_matches(path, url_path)
    )


def _split_host(rest: str) -> tuple[str, str]:
    end = re.search(r"[/?#]", rest)
    return (rest, "") if end is None else (rest[: end.start()], rest[end.start() :])


def _is_host(pattern: str, host: str) -> bool:
    return host.endswith(pattern[1:]) and host != pattern[1:] if pattern.startswith("*.") else host == pattern


def _has_dots(path: str) -> bool:
    """Return whether a path has a part `..` or `.`, also percent-encoded, or is encoded too often to tell."""
    plain = path
    for _ in range(MAX_PERCENT_ENCODINGS):
        plain = unquote(plain)
    # Some servers drop what follows a semicolon, and read `..;` as `..`.
    dots = any(part.partition(";")[0] in ("..", ".") for part in re.split(r"[/\\]", plain))
    return dots or unquote(plain) != plain


def redirect_target(url: str, location: str) -> str | None:
    try:
        target = urljoin(url, location).removesuffix("?")  # which Python keeps since 3.14
    except ValueError:  # a bracket without its counterpart
        return None
    parts = _split(target)
    if parts is None or "@" in parts.netloc or _is_odd(location) or len(target) > MAX_REDIRECT_URL_CHARS:
        return None
    return target


def same_origin(one: str, other: str) -> bool:
    """Return whether scheme, host and port are the same; no other redirect is followed."""
    first, second = _split(one), _split(other)
    if first is None or second is None:
        return False
    return (first.scheme, first.hostname, _port(first)) == (second.scheme, second.hostname, _port(second))


def is_loopback(host: str | None) -> bool:
    named = host in ("localhost", "::1") or (host or "").endswith(".localhost")
    return named or bool(re.fullmatch(r"127(?:\.\d{1,3}){3}", host or ""))


def _split(url: str, *, wild: bool = False) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        supported = parts.scheme in ("http", "https") and _port(parts)
    except ValueError:  # a bracket without its counterpart, a port that is not a number
        return None
    host = parts.hostname or ""
    named = _HOST.fullmatch(host.removeprefix("*.") if wild else host)
    bracketed = ("[" in parts.netloc) == (":" in host)
    return parts if supported and named and bracketed and not _is_odd(url) else None


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


@frozen
class Headers:
    fields: Mapping[str, str]
    warnings: tuple[str, ...] = ()  # names only: no value is ever shown
    redactor: Redactor | None = None

    def redact(self, text: str) -> str:
        """Replace the secrets that were sent: an endpoint may echo them."""
        return self.redactor.text(text) if self.redactor else text


def read_headers(
    headers: Mapping[str, str],
    allowed: Iterable[str],
    environ: Mapping[str, str],
    permitted: Iterable[str] | None = None,
) -> Headers:
    """Claude Code: variables only from `allowedEnvVars`, others become empty. `permitted`: its `httpHookAllowedEnvVars`, if a file has that key."""
    allowed = frozenset(allowed)
    forbidden = frozenset() if permitted is None else allowed - frozenset(permitted)
    fields: dict[str, str] = {}
    warnings: list[str] = []
    secrets: set[str] = set()

    def expand(match: re.Match[str]) -> str:
        variable = match[1] or match[2]
        if variable in allowed - forbidden and variable in environ:
            secrets.add(environ[variable].strip())
            return environ[variable]
        if variable in forbidden:
            why = "is not among the `httpHookAllowedEnvVars` of the settings"
        else:
            why = "is not set" if variable in allowed else "is not among its `allowedEnvVars`"
        warnings.append(f"${variable} {why}, so it was sent as an empty string")
        return ""

    for name, value in headers.items():
        if not _NAME.fullmatch(name) or name.lower() in _OURS:
            warnings.append(f"its header {describe(name)} was not sent: the name is not allowed")
            continue
        expanded = _VARIABLE.sub(expand, value).strip(" \t")
        if not expanded.isascii() or not expanded.replace("\t", " ").isprintable():
            why = "its value has characters that are not allowed"
            warnings.append(f"its header {describe_name(name)} was not sent: {why}")
            continue
        fields[name] = expanded
        if _SECRET_NAME.search(name):  # also the token of `Bearer token`, and the values of a cookie
            secrets |= {expanded, expanded.partition(" ")[2].strip()}
            secrets.update(re.findall(r'="?([^\s;,"]+)', expanded))
    return Headers(fields, tuple(dict.fromkeys(warnings)), make_redactor(secrets))


def unlisted_variables(headers: Mapping[str, str], allowed: Iterable[str]) -> tuple[str, ...]:
    listed = frozenset(allowed)
    matches = (match for value in headers.values() for match in _VARIABLE.finditer(value))
    names = (match[1] or match[2] for match in matches)
    return tuple(dict.fromkeys(name for name in names if name not in listed))
