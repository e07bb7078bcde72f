"""Which addresses may be asked, in tables."""

import pytest

from turngate.core.endpoints import admits, is_loopback, objection, same_origin
from turngate.core.hooks import HttpHook, identity, label, shown
from turngate.core.settings import UrlList
from turngate.core.wire import hook_json

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
]


@pytest.mark.parametrize(("pattern", "url"), ADMITTED)
def test_an_address_that_a_pattern_lets_in(pattern: str, url: str) -> None:
    assert admits(pattern, url)


@pytest.mark.parametrize(("pattern", "url"), NOT_ADMITTED)
def test_an_address_that_a_pattern_keeps_out(pattern: str, url: str) -> None:
    assert not admits(pattern, url)


USER, PROJECT = (
    UrlList(("https://a.example", "http://intern"), "user"),
    UrlList(("https://a.example/x",), "project"),
)
BY_ITSELF = "{} is not encrypted: use https, or allow it in `turngate.allowedUrls` of your user settings"
NO_ADDRESS = "{} is no address that can be asked: it must begin with https:// or http:// and name a host"
CASES: dict[str, tuple[str, str, tuple[UrlList, ...], str | None]] = {
    "https": ("https://b.example/", "project", (), None),
    "loopback": ("http://127.0.0.1:9/", "project", (), None),
    "in the clear": ("http://b.example/", "project", (), BY_ITSELF),
    "in the clear, local": ("http://b.example/", "local", (), BY_ITSELF),
    "in the clear, the user's": ("http://b.example/", "user", (), None),
    "in the clear, from Python": ("http://b.example/", "python", (), None),
    "the user allows it": ("http://intern/x", "project", (USER,), None),
    "the project can not": ("http://intern/x", "project", (UrlList(("http://intern",), "project"),), BY_ITSELF),
    "not in the user's": ("https://b.example/", "project", (USER,), "{} is not among the `turngate.allowedUrls` of your settings"),
    "the user's holds for the user": ("https://b.example/", "user", (USER,), "{} is not among the `turngate.allowedUrls` of your settings"),
    "in both": ("https://a.example/x", "project", (USER, PROJECT), None),
    "the project's narrows": ("https://a.example/y", "project", (USER, PROJECT), "{} is not among the `turngate.allowedUrls` of the project settings"),
    "the project's can not widen": ("https://c.example/", "project", (USER, UrlList(("https://c.example",), "local")), "{} is not among the `turngate.allowedUrls` of your settings"),
    "an empty list": ("https://a.example/", "user", (UrlList((), "user"),), "{} is not among the `turngate.allowedUrls` of your settings"),
    "no address": ("hook", "user", (), NO_ADDRESS),
    "a file": ("file:///etc/passwd", "user", (), NO_ADDRESS),
    "no host": ("https:///x", "user", (), NO_ADDRESS),
    "a bad port": ("https://a:99999/", "user", (), NO_ADDRESS),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_who_may_ask_what(name: str) -> None:
    url, source, lists, why = CASES[name]
    assert objection(url, source, lists) == (why.format(url) if why else None)


@pytest.mark.parametrize(
    ("host", "near"),
    [("localhost", True), ("x.localhost", True), ("127.8.8.8", True), ("::1", True), ("127.0.0.1.example", False),
     ("128.0.0.1", False), ("mylocalhost", False), (None, False)],
)  # fmt: skip
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
    assert len(shown("https://a.example/" + "x\n" * 1000)) == 300
