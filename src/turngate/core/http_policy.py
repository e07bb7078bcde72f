"""Http hooks before anything is sent: which addresses may be asked, and what their headers say."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from turngate.core.constants import EVENTS
from turngate.core.hook_output import parsed
from turngate.core.settings import AllowedUrls
from turngate.core.text import describe_url

OWNERS = ("user", "python")  # whose word on addresses counts for everybody
WRAPPED = 5  # how often something may be written in percent, and that in percent again
LONGEST_URL = 8000  # characters of a redirect's address
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?|[0-9a-f.]*:[0-9a-f:.]*")  # a name, or an address of numbers


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
    for _ in range(WRAPPED):
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
    if parts is None or "@" in parts.netloc or _is_odd(location) or len(target) > LONGEST_URL:
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
SECRET = 6  # characters; what is shorter stands in every text by accident
_KEEPS_SECRETS = re.compile("auth|cookie|token|key|secret|password", re.IGNORECASE)  # a header's name
_SCHEMES = ("bearer", "digest", "negotiate")  # stand before a secret, and are none
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*')  # a string or a number of JSON
_CONTRACT = frozenset(
    {
        "decision",
        "reason",
        "continue",
        "stopReason",
        "suppressOutput",
        "systemMessage",
        "async",
        "hookSpecificOutput",
        "hookEventName",
        "additionalContext",
        "permissionDecision",
        "permissionDecisionReason",
        "updatedInput",
        "behavior",
        "message",
        "interrupt",
        "block",
        "approve",
        "allow",
        "deny",
        "ask",
        *EVENTS,
    }
)


@dataclass(frozen=True)
class Headers:
    sent: Mapping[str, str]
    remarks: tuple[str, ...] = ()  # names only: no value is ever shown
    secrets: re.Pattern[str] | None = None

    def hide(self, text: str) -> str:
        """An endpoint may say back what it was sent; people's logs are no place for that."""
        return self.secrets.sub("…", text) if self.secrets else text

    def hide_in_answer(self, text: str) -> str:
        """In JSON only whole strings and numbers change, and no word of the contract: a block stays a block."""
        return _TOKEN.sub(self._without, text) if self.secrets and _is_object(text) else self.hide(text)

    def _without(self, found: re.Match[str]) -> str:
        token = found[0]
        if len(token) < SECRET:
            return token
        said = json.loads(token) if token[0] == '"' else token
        clean = said if said in _CONTRACT else self.hide(said)
        return token if clean == said else json.dumps(clean)


def _is_object(text: str) -> bool:
    body = text.strip("\ufeff \t\r\n")
    try:
        return body.startswith("{") and isinstance(parsed(body), dict)
    except (json.JSONDecodeError, RecursionError):
        return False


def read_headers(headers: Mapping[str, str], allowed: Iterable[str], environ: Mapping[str, str]) -> Headers:
    """Claude Code: variables only from `allowedEnvVars`, others become empty."""
    allowed = frozenset(allowed)
    sent: dict[str, str] = {}
    remarks: list[str] = []
    secrets: set[str] = set()

    def put(found: re.Match[str]) -> str:
        variable = found[1] or found[2]
        if variable not in allowed:
            remarks.append(f"${variable} is not among its `allowedEnvVars`, so it was sent as nothing")
        elif variable not in environ:
            remarks.append(f"${variable} is not set, so it was sent as nothing")
        else:
            secrets.add(environ[variable].strip())
            return environ[variable]
        return ""

    for name, value in headers.items():
        if not _NAME.fullmatch(name) or name.lower() in _OURS:
            remarks.append(f"its header {ascii(name)[:60]} was not sent: the name is not allowed")
            continue
        filled = _VARIABLE.sub(put, value).strip(" \t")
        if not _is_sendable(filled):
            remarks.append(
                f"its header {name[:60]} was not sent: the value has characters that are not allowed"
            )
            continue
        sent[name] = filled
        if _KEEPS_SECRETS.search(name):  # also the token of `Bearer token`, and the values of a cookie
            secrets |= {filled, filled.partition(" ")[2].strip(), *re.findall(r'="?([^\s;,"]+)', filled)}
    return Headers(sent, tuple(dict.fromkeys(remarks)), _searched(secrets))


def _searched(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Finds them as they were sent, in percent, and escaped as in JSON."""
    worth = [secret for secret in secrets if len(secret) >= SECRET and secret.lower() not in _SCHEMES]
    longest_first = sorted(worth, key=len, reverse=True)
    forms = ("".join(map(_forms, secret)) for secret in longest_first)
    return re.compile("|".join(forms), re.IGNORECASE) if worth else None


def _forms(letter: str) -> str:
    plain, code = re.escape(letter), f"{ord(letter):02x}"
    forms = [plain, f"%(?:25){{0,{WRAPPED}}}{code}"]
    if letter == " ":
        forms.append(r"\+")
    if letter != "\\":  # a row of them could be read in too many ways
        forms.append(rf"\\{{1,2}}(?:{plain}|u00{code})")
    return f"(?:{'|'.join(forms)})"


def unlisted_variables(headers: Mapping[str, str], allowed: Iterable[str]) -> tuple[str, ...]:
    """The variables that headers name and the hook does not allow."""
    known = frozenset(allowed)
    named = (found[1] or found[2] for value in headers.values() for found in _VARIABLE.finditer(value))
    return tuple(dict.fromkeys(name for name in named if name not in known))


def _is_sendable(value: str) -> bool:
    return value.isascii() and all(character.isprintable() or character == "\t" for character in value)
