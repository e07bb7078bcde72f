"""Http hooks before anything is sent: which addresses may be asked, and what their headers say."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from turngate.core.hooks import shown
from turngate.core.settings import UrlList

OWNERS = ("user", "python")  # whose word on addresses counts for everybody


def objection(url: str, source: str, lists: Iterable[UrlList]) -> str | None:
    """Why a hook from this source may not ask this address; None: it may.

    The user's list limits everybody and may allow what is not allowed by itself; a project's can only narrow.
    """
    parts = _split(url)
    if parts is None:
        return f"{shown(url)} is no address that can be asked: it must begin with https:// or http:// and name a host"
    if parts.username is not None or parts.password is not None:
        return f"{shown(url)} holds a password: put it into `headers`, as a variable"
    lists = tuple(lists)
    for allowed in lists:
        if not any(admits(pattern, url) for pattern in allowed.patterns):
            whose = "your settings" if allowed.level in OWNERS else f"the {allowed.level} settings"
            return f"{shown(url)} is not among the `turngate.allowedUrls` of {whose}"
    listed = any(allowed.level in OWNERS for allowed in lists)
    if not listed and source not in OWNERS and parts.scheme == "http" and not is_loopback(parts.hostname):
        return f"{shown(url)} is not encrypted: use https, or allow it in `turngate.allowedUrls` of your user settings"
    return None


def admits(pattern: str, url: str) -> bool:
    """Does a pattern of an allow-list hold for this address?

    A prefix is compared part by part, so that `https://a.example` does not let `https://a.example.org` in.
    A host alone means https, and on this machine also http.
    """
    wanted, asked = _split(pattern if "://" in pattern else f"https://{pattern}"), _split(url)
    if wanted is None or asked is None or not _is_host(wanted.hostname or "", asked.hostname or ""):
        return False
    if "://" not in pattern:
        safe = asked.scheme == "https" or is_loopback(asked.hostname)
        port = wanted.port
        return safe and wanted.path in ("", "/") and (port is None or port == _port(asked))
    if wanted.scheme != asked.scheme or _port(wanted) != _port(asked):
        return False
    return _is_below(wanted.path, asked.path)


def _is_host(pattern: str, host: str) -> bool:
    return host.endswith(pattern[1:]) and host != pattern[1:] if pattern.startswith("*.") else host == pattern


def _is_below(folder: str, path: str) -> bool:
    base = folder.rstrip("/")
    if not base:
        return True
    climbs = any(part in ("..", ".") for part in re.split(r"[/\\]", unquote(unquote(path))))
    return not climbs and (path in (folder, base) or path.startswith(base + "/"))


def same_origin(one: str, other: str) -> bool:
    """Is it the same program on the same machine? A redirect leads nowhere else."""
    first, second = _split(one), _split(other)
    if first is None or second is None:
        return False
    return (first.scheme, first.hostname, _port(first)) == (second.scheme, second.hostname, _port(second))


def is_loopback(host: str | None) -> bool:
    known = host in ("localhost", "::1") or (host or "").endswith(".localhost")
    return known or bool(re.fullmatch(r"127(?:\.\d{1,3}){3}", host or ""))


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and _port(parts)
    except ValueError:  # brackets that nobody closed, a port that is no number
        return None
    odd = any(character.isspace() or not character.isprintable() or character == "\\" for character in url)
    return parts if known and not odd else None


def _port(parts: SplitResult) -> int:
    return parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)


# Headers

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = frozenset(
    {"host", "content-type", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect"}
)
SECRET = 6  # characters; what is shorter stands in every text by accident


@dataclass(frozen=True)
class Headers:
    sent: Mapping[str, str]
    remarks: tuple[str, ...] = ()  # names only: no value is ever shown
    secrets: tuple[str, ...] = ()  # what variables put in

    def without_secrets(self, text: str) -> str:
        """An endpoint may say back what it was sent; people's logs are no place for that."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


def read_headers(headers: Mapping[str, str], allowed: Iterable[str], environ: Mapping[str, str]) -> Headers:
    """Claude Code: variables only from `allowedEnvVars`, others become empty."""
    allowed = frozenset(allowed)
    sent: dict[str, str] = {}
    remarks: list[str] = []
    secrets: set[str] = set()
    for name, value in headers.items():

        def put(found: re.Match[str]) -> str:
            variable = found[1] or found[2]
            if variable not in allowed:
                remarks.append(f"${variable} is not among its `allowedEnvVars`, so it was sent as nothing")
            elif variable not in environ:
                remarks.append(f"${variable} is not set, so it was sent as nothing")
            else:
                secrets.add(environ[variable])
                return environ[variable]
            return ""

        if not _NAME.fullmatch(name) or name.lower() in _OURS:
            remarks.append(f"its header {ascii(name)[:60]} was not sent: the name is not allowed")
            continue
        filled = _VARIABLE.sub(put, value).strip(" \t")
        if _is_sendable(filled):
            sent[name] = filled
        else:
            remarks.append(
                f"its header {name[:60]} was not sent: the value has characters that are not allowed"
            )
    longest_first = sorted((secret for secret in secrets if len(secret) >= SECRET), key=len, reverse=True)
    return Headers(sent, tuple(dict.fromkeys(remarks)), tuple(longest_first))


def unlisted(headers: Mapping[str, str], allowed: Iterable[str]) -> tuple[str, ...]:
    """The variables that headers name and the hook does not allow."""
    known = frozenset(allowed)
    named = (found[1] or found[2] for value in headers.values() for found in _VARIABLE.finditer(value))
    return tuple(dict.fromkeys(name for name in named if name not in known))


def _is_sendable(value: str) -> bool:
    return value.isascii() and all(character.isprintable() or character == "\t" for character in value)
