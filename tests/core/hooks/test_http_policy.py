"""Which addresses may be asked, in tables."""

import pytest

from turngate.core.hooks.http_policy import (
    is_loopback,
    pattern_allows,
    read_headers,
    redirect_target,
    same_origin,
    url_problem,
    wildcard_allows,
)
from turngate.core.hooks.kinds import HttpHook, identity, label
from turngate.core.settings import AllowedUrls
from turngate.core.text import describe_url
from turngate.core.verdict.json_output import hook_json

ADMITTED = [
    ("https://a.example", "https://a.example"),
    ("https://a.example", "https://a.example:443/x?y=1"),
    ("https://a.example/", "https://a.example/x"),
    ("https://A.example/hooks", "https://a.EXAMPLE/hooks"),
    ("https://a.example/hooks", "https://a.example/hooks/x"),
    ("https://a.example/hooks/", "https://a.example/hooks"),
    ("https://a.example/hooks/", "https://a.example/hooks/x?to=../y"),
    ("https://*.example/", "https://a.b.example/x"),
    ("http://intern:8080", "http://intern:8080/x"),
    ("a.example", "https://a.example/x"),
    ("*.example", "https://a.example/x"),
    ("a.example:8443", "https://a.example:8443/"),
    ("localhost", "http://localhost:1234/x"),
    ("127.0.0.1", "http://127.0.0.1:1/"),
    ("[::1]", "https://[::1]/"),
    ("https://a.example/x?team=a", "https://a.example/x?team=a"),
    ("https://a.example/hooks/", "https://a.example/hooks/a;v=1/%2525"),
    ("https://bücher.example/", "https://bücher.example/x"),
]
NOT_ADMITTED = [
    ("https://a.example", "https://a.example.org/"),
    ("https://a.example", "http://a.example/"),
    ("https://a.example", "https://a.example:8443/"),
    ("https://a.example", "https://a.example@evil.example/"),
    ("https://a.example/hooks", "https://a.example/hooks2"),
    ("https://a.example/hooks/", "https://a.example/hooks/../admin"),
    ("https://a.example/hooks/", "https://a.example/hooks/%2e%2E/admin"),
    ("https://a.example/hooks/", "https://a.example/hooks/%252e%252e/admin"),
    ("https://a.example/hooks/", "https://a.example/hooks/..\\admin"),
    ("*.example", "https://example/"),
    ("*.example", "https://badexample/"),
    ("a.example", "http://a.example/"),
    ("a.example:8443", "https://a.example/"),
    ("", "https://a.example/"),
    ("*", "https://a.example/"),
    ("ftp://a.example", "ftp://a.example/"),
    ("https://[::1", "https://[::1/"),
    ("https://a.example/hooks/", "https://a.example/hooks/..;/admin"),
    ("https://a.example/hooks/", "https://a.example/hooks/..%3bx=1/admin"),
    ("https://a.example/hooks/", "https://a.example/hooks/%25252e%25252e/admin"),
    ("https://a.example/hooks/", "https://a.example/hooks/%2e%2e%5cadmin"),
    ("https://a.example/hooks/", "https://a.example/hooks/%252525252525252e./admin"),
    ("https://a.example/x?team=a", "https://a.example/x?team=b"),
    ("https://a.example/x?team=a", "https://a.example/x?team=a&team=b"),
    ("https://a.example/x?team=a", "https://a.example/x/y?team=a"),
    ("https://a.example/x?team=a", "https://a.example/x"),
    ("a.example?team=a", "https://a.example/?team=b"),
    ("*.example", "https://evil.org%2f.example/"),
    ("*.example", "https://evil.org%00.example/"),
    ("*.example", "https://evil.org;.example/"),
    ("*.example", "https://evil.org,.example/"),
    ("*.example", "https://evil.org\u3002.example/"),
    ("*.example", "https://evil..example/"),
    ("*.example", "https://*.example/"),
    ("*.example", "https://[v1.example]/"),
    ("*.", "https://a.example./"),
    ("a.example", "https://a.example:0/"),
]


@pytest.mark.parametrize(("pattern", "url"), ADMITTED)
def test_an_address_that_a_pattern_lets_in(pattern: str, url: str) -> None:
    assert pattern_allows(pattern, url)


@pytest.mark.parametrize(("pattern", "url"), NOT_ADMITTED)
def test_an_address_that_a_pattern_keeps_out(pattern: str, url: str) -> None:
    assert not pattern_allows(pattern, url)


USER, PROJECT = (
    AllowedUrls(("https://a.example", "http://intern"), "user"),
    AllowedUrls(("https://a.example/x",), "project"),
)
BY_ITSELF = "{} is not encrypted: use https, or allow it in `turngate.allowedUrls` of your user settings"
NO_ADDRESS = "{} is not a valid URL: it must begin with https:// or http:// and name a host"
CASES: dict[str, tuple[str, str, tuple[AllowedUrls, ...], str | None]] = {
    "https": ("https://b.example/", "project", (), None),
    "loopback": ("http://127.0.0.1:9/", "project", (), None),
    "in the clear": ("http://b.example/", "project", (), BY_ITSELF),
    "in the clear, local": ("http://b.example/", "local", (), BY_ITSELF),
    "in the clear, the user's": ("http://b.example/", "user", (), None),
    "in the clear, from Python": ("http://b.example/", "python", (), None),
    "the user allows it": ("http://intern/x", "project", (USER,), None),
    "the project cannot": (
        "http://intern/x",
        "project",
        (AllowedUrls(("http://intern",), "project"),),
        BY_ITSELF,
    ),
    "not in the user's": (
        "https://b.example/",
        "project",
        (USER,),
        "{} is not among the `turngate.allowedUrls` of your settings",
    ),
    "the user's holds for the user": (
        "https://b.example/",
        "user",
        (USER,),
        "{} is not among the `turngate.allowedUrls` of your settings",
    ),
    "in both": ("https://a.example/x", "project", (USER, PROJECT), None),
    "the project's narrows": (
        "https://a.example/y",
        "project",
        (USER, PROJECT),
        "{} is not among the `turngate.allowedUrls` of the project settings",
    ),
    "the project's cannot widen": (
        "https://c.example/",
        "project",
        (USER, AllowedUrls(("https://c.example",), "local")),
        "{} is not among the `turngate.allowedUrls` of your settings",
    ),
    "an empty list": (
        "https://a.example/",
        "user",
        (AllowedUrls((), "user"),),
        "{} is not among the `turngate.allowedUrls` of your settings",
    ),
    "no address": ("hook", "user", (), NO_ADDRESS),
    "a file": ("file:///etc/passwd", "user", (), NO_ADDRESS),
    "no host": ("https:///x", "user", (), NO_ADDRESS),
    "a bad port": ("https://a:99999/", "user", (), NO_ADDRESS),
    "port 0": ("https://a:0/", "user", (), NO_ADDRESS),
    "a host in percent": ("https://evil.org%2f.example/", "user", (), NO_ADDRESS),
    "a host with a comma": ("https://a,b.example/", "user", (), NO_ADDRESS),
    "a host with two dots": ("https://a..b/", "user", (), NO_ADDRESS),
    "a zone": ("https://[fe80::1%25eth0]/", "user", (), NO_ADDRESS),
}


@pytest.mark.parametrize("name", CASES)
def test_who_may_ask_what(name: str) -> None:
    url, source, lists, why = CASES[name]
    assert url_problem(url, source, lists) == (why.format(url) if why else None)


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("localhost", True),
        ("x.localhost", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("127.0.0.1.example", False),
        ("128.0.0.1", False),
        ("mylocalhost", False),
        (None, False),
    ],
)
def test_what_is_this_machine(host: str | None, near: bool) -> None:
    assert is_loopback(host) is near


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a/x", "https://a:443/y", True),
        ("https://a/x", "http://a/x", False),
        ("https://a/x", "https://b/x", False),
        ("https://a/x", "https://a:8/x", False),
        ("https://a/x", "nonsense", False),
    ],
)
def test_what_is_the_same_host(one: str, other: str, same: bool) -> None:
    assert same_origin(one, other) is same


def test_a_password_is_shown_nowhere_and_tells_two_hooks_apart() -> None:
    hook, other = HttpHook("https://me:geheim@a.example/x"), HttpHook("https://me:anders@a.example/x")
    assert (label(hook), hook_json(hook)["url"]) == ("https://…@a.example/x", "https://…@a.example/x")
    assert identity(hook) != identity(other)


def test_a_long_address_is_shown_on_one_short_line() -> None:
    assert len(describe_url("https://a.example/" + "x\n" * 1000)) == 300


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/x?y", "https://a.example/x?y"),
        ("c", "https://a.example/b/c"),
        ("//b.example/", "https://b.example/"),
        ("http://[", None),
        ("http://a.example:99999/", None),
        ("https://me:geheim@a.example/", None),
        ("https://a.example%40b.example/", None),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
        ("/a b", None),
        ("/a\tb", None),
        ("\\\\b.example\\x", None),
        ("/" + "x" * 8000, None),
    ],
)
def test_where_a_redirect_leads_to(location: str, target: str | None) -> None:
    assert redirect_target("https://a.example/b/a", location) == target


# What is redacted


@pytest.mark.parametrize(
    ("name", "value", "said", "left"),
    [
        ("Authorization", "Bearer abc-123", "Bearer abc-123, abc-123", "…, …"),
        ("authorization", "Bearer $UNSET", "a Bearer token", "a Bearer token"),
        ("Cookie", "id=abc-123; theme=dark-blue", "abc-123, dark-blue", "…, …"),
        ("X-Api-Key", "abc-123", "abc-123", "…"),
        ("X-Stage", "testing", "testing", "testing"),
        ("X-Stage", "$PADDED", "[padded]", "[…]"),
    ],
)
def test_which_values_are_secrets(name: str, value: str, said: str, left: str) -> None:
    assert read_headers({name: value}, ["PADDED", "UNSET"], {"PADDED": " padded \t"}).redact(said) == left


@pytest.mark.parametrize(
    ("pattern", "url", "allowed"),
    [
        ("https://hooks.example.com/*", "https://hooks.example.com/a/b?c=d", True),
        ("https://hooks.example.com/*", "https://hooks.example.com", False),
        ("https://hooks.example.com/*", "http://hooks.example.com/a", False),
        ("https://hooks.example.com/*", "https://hooks.example.com.evil.example/a", False),
        ("https://hooks.example.com/*", "https://HOOKS.example.com/a", True),
        ("https://hooks.example.com/a", "https://hooks.example.com/A", False),
        ("https://*.example.com/*", "https://a.b.example.com/x", True),
        ("https://*.example.com/*", "https://evil.example/x.example.com/", False),
        ("https://*.example.com/*", "https://evil.example?.example.com/", False),
        ("http://localhost:*", "http://localhost:8080/hook", True),
        ("http://localhost:*", "http://localhost/hook", False),
        ("http*://a.example/*/end", "https://a.example/x/y/end", True),
        ("http*://a.example/*/end", "https://a.example/end", False),
        ("*", "https://a.example/", True),
        ("https://a.example/*a*a", "https://a.example/a", False),
        ("https://a.example/*a*a", "https://a.example/aa", True),
        ("", "https://a.example/", False),
        ("https://a.example/hooks/*", "https://a.example/hooks/../admin", False),
        ("https://a.example/hooks/*", "https://a.example/hooks/%2e%2E/admin", False),
        ("https://a.example/hooks/*", "https://a.example/hooks/%252e%252e/admin", False),
        ("https://a.example/hooks/*", "https://a.example/hooks/..;/admin", False),
        ("https://a.example/hooks/*", "https://a.example/hooks/x?to=../y", True),
        ("https://a.example/*/team-a", "https://a.example/evil#/hooks/team-a", False),
        ("https://a.example/*/team-a", "https://a.example/hooks/team-a#top", True),
        ("*/team-a", "https://a.example/evil#/hooks/team-a", False),
        ("*/hooks/*", "https://a.example/hooks/../admin", False),
        ("https://a.example/*/team-a", "https://a.example/evil?/team-a", False),
        ("https://a.example/*/team-a", "https://a.example/hooks/team-a?to=b", False),
        ("https://a.example/hook", "https://a.example/hook?to=b", False),
        ("https://a.example/*?team=a", "https://a.example/x/y?team=a", True),
        ("https://a.example/*?team=a", "https://a.example/x?to=b?team=a", False),
        ("https://a.example/*?team=a", "https://a.example/x", False),
        ("https://a.example/hook?*", "https://a.example/hook?to=b?c", True),
        ("https://a.example/hook?*", "https://a.example/hook", False),
        ("https://a.example*", "https://a.example/x?to=b", True),
        ("*/team-a", "https://a.example/evil?/team-a", False),
        ("*", "https://a.example/x?to=b", True),
    ],
)
def test_a_wildcard_stands_for_any_characters_but_stays_in_the_host(
    pattern: str, url: str, allowed: bool
) -> None:
    assert wildcard_allows(pattern, url) is allowed


def test_a_pattern_of_many_wildcards_is_compared_at_once() -> None:
    assert not wildcard_allows("https://a.example/" + "*a" * 2000 + "*b", "https://a.example/" + "a" * 50_000)
