"""Which proxy a request goes through."""

import pytest

from turngate.http.connection import HttpError, Proxy, proxy_for

PROXY = Proxy("proxy.example", 3128, "")
URL = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("scheme", "environ", "found"),
    [
        ("https", {}, None),
        ("https", {"HTTPS_PROXY": URL}, PROXY),
        ("https", {"https_proxy": URL}, PROXY),
        ("https", {"https_proxy": URL, "HTTPS_PROXY": "http://other.example"}, PROXY),
        ("https", {"HTTP_PROXY": URL}, None),
        ("http", {"HTTP_PROXY": URL}, PROXY),
        ("http", {"HTTPS_PROXY": URL}, None),
        ("https", {"ALL_PROXY": URL}, PROXY),
        ("https", {"HTTPS_PROXY": ""}, None),
        ("https", {"HTTPS_PROXY": "proxy.example:3128"}, PROXY),
        ("https", {"HTTPS_PROXY": "http://proxy.example"}, Proxy("proxy.example", 80, "")),
        (
            "https",
            {"HTTPS_PROXY": "http://me:p%40ss@proxy.example:3128"},
            Proxy("proxy.example", 3128, "Basic bWU6cEBzcw=="),
        ),
    ],
)
def test_the_variables_name_the_proxy(scheme: str, environ: dict[str, str], found: Proxy | None) -> None:
    assert proxy_for(scheme, "api.example.com", 443, environ) == found


@pytest.mark.parametrize(
    ("no_proxy", "host", "direct"),
    [
        ("*", "api.example.com", True),
        ("api.example.com", "api.example.com", True),
        ("example.com", "api.example.com", True),
        (".example.com", "api.example.com", True),
        ("*.example.com", "api.example.com", True),
        ("EXAMPLE.com", "API.example.com", True),
        ("ample.com", "api.example.com", False),
        ("other.org, example.com", "api.example.com", True),
        ("example.com:443", "api.example.com", True),
        ("example.com:8443", "api.example.com", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("2001:db8::/32", "2001:db8::1", True),
        ("10.0.0.0/8", "api.example.com", False),
        (",", "api.example.com", False),
        (".", "api.example.com", False),
    ],
)
def test_no_proxy_names_hosts_that_are_reached_directly(no_proxy: str, host: str, direct: bool) -> None:
    found = proxy_for("https", host, 443, {"HTTPS_PROXY": URL, "NO_PROXY": no_proxy})
    assert found == (None if direct else PROXY)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.1.2.3", "::1"])
def test_a_local_server_has_no_proxy(host: str) -> None:
    assert proxy_for("http", host, 80, {"HTTP_PROXY": URL, "ALL_PROXY": URL}) is None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("socks5://me:secret@proxy.example", "HTTPS_PROXY is not supported; expected http://HOST:PORT"),
        ("http://", "HTTPS_PROXY is not supported; expected http://HOST:PORT"),
        ("http://me:secret@host:port", "HTTPS_PROXY is not a valid URL; expected http://HOST:PORT"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_an_error_without_its_password(value: str, told: str) -> None:
    with pytest.raises(HttpError) as caught:
        proxy_for("https", "api.example.com", 443, {"HTTPS_PROXY": value})
    assert str(caught.value) == told
