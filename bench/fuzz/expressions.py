"""Matchers, permission rules, shell commands, URLs and headers."""

from random import Random
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from bench.fuzz.target import Target
from bench.fuzz.values import HOSTILE, json_value, text
from turngate.core.hooks.http_policy import (
    pattern_allows,
    read_headers,
    redirect_target,
    same_origin,
    url_problem,
)
from turngate.core.hooks.matcher import read_matcher
from turngate.core.permissions.rule import read_rule, rule_matches
from turngate.core.settings import AllowedUrls
from turngate.core.shell.parse import read_commands

# Matchers

PIECES = [
    *(
        "a",
        "s",
        "ſ",
        "k",
        "K",
        "Task",
        "Bash",
        ".",
        "\\w",
        "\\s",
        "[a-z]",
        "[^b]",
        "\\b",
        "^",
        "$",
        "!",
        "mcp__",
    ),
    *(
        "*",
        "+",
        "?",
        "*?",
        "+?",
        "{2,}",
        "{0,9}",
        "{1000}",
        "*+",
        "|",
        "|",
        "(?:",
        ")",
        "(",
        "(?i)",
        "(?i:",
        "(?>",
    ),
    *("(?=", "(?!", "(?<=", "\\1", "(?(1)a|b)", "(?P<n>", "(?P=n)", "[\\d\\D]", "(?#", "[", "]", "\\"),
]


def make_matcher(random: Random) -> tuple[str, str]:
    pattern = "".join(random.choices(PIECES, k=random.randint(1, 12)))
    if random.random() < 0.3:
        inner = "".join(random.choices(PIECES[:17], k=random.randint(1, 3)))
        pattern = f"(?:{inner}){random.choice(['*', '+', '{2,30}', '{50}'])}{pattern}"
    if random.random() < 0.1:
        pattern = "|".join([pattern] * random.choice([2, 10, 200])) + ".*.*!"
    subject = random.choice(["a", "s", "sſ", "Task", "ab", text(random)]) * random.choice([1, 3, 40, 400])
    return pattern, subject + random.choice(["", "!", "b"])


def check_matcher(value: tuple[str, str]) -> None:
    pattern, subject = value
    read_matcher.cache_clear()
    assert read_matcher(pattern).matches(subject) in (True, False)


# Permission rules


class Call(NamedTuple):
    rule: str
    tool: str
    tool_input: Any
    must_match: bool


WRAPPERS = [
    "{}",
    " {} ",
    "true && {}",
    "false || {}",
    "a; {}",
    "a | {}",
    "({})",
    "{{ {}; }}",
    "! {}",
    "X=1 {}",
    "{} &",
    "cd /; {}",
    "sudo {}",
    "env A=b {}",
    "timeout 5 {}",
    "sh -c '{}'",
    "$(echo {})",
    "`{}`",
    "if true; then {}; fi",
    "a\n{}",
    "for i in 1; do {}; done",
    "echo $({})",
    "a && \\\n {}",
    "eval {}",
    "nohup {} &",
    "x=$({}) y",
    "cat <<E\n$({})\nE\n",
]
COMMANDS = ["rm -rf x", "rm x", "r\\m x", "'rm' x", '"rm" -f x', "r''m x", "/bin/rm x", "rm\tx", "$'rm' x"]


def make_call(random: Random) -> Call:
    if random.random() < 0.5:
        command = random.choice(COMMANDS)
        for _ in range(random.choice([0, 1, 1, 2])):
            command = random.choice(WRAPPERS).format(command)
        return Call("Bash(rm *)", "Bash", {"command": command}, must_match=True)
    words = [
        random.choice([*"|&;()<>{}$`'\"\\!#*?[]~=\n ", "rm", "git", "$(", "${", "<<E", "2>&1", text(random)])
        for _ in range(random.randint(0, 40))
    ]
    command = "".join(words) * random.choice([1, 1, 1, 300])
    rule = random.choice(
        ["Bash(rm *)", "Bash(git:*)", "Edit(src/**)", "WebFetch(domain:a.b)", "*", f"Bash({text(random)})"]
    )
    key = random.choice(["command", "file_path", "url", "subagent_type", "path"])
    tool_input = random.choice([{key: command}, {key: json_value(random, ["x"], [""], 1)}])
    return Call(
        rule, random.choice(["Bash", "Edit", "WebFetch", "Task", text(random)]), tool_input, must_match=False
    )


def check_call(value: Call) -> None:
    rule = read_rule(value.rule)
    if rule is None:
        return
    matches = rule_matches(rule, value.tool, value.tool_input, "/project")
    assert matches or not value.must_match, "the rule does not match the command that it names"
    if isinstance(command := value.tool_input.get("command"), str):
        for with_groups in (False, True):
            read_commands(command, with_groups=with_groups)


# URLs

HOSTS = [
    "a.example",
    "A.EXAMPLE",
    "a.example.",
    "a.example.org",
    "evil.example",
    "127.0.0.1",
    "localhost",
    "[::1]",
]
URL_PARTS = [
    *(
        "/",
        "/x",
        "/x/",
        "..",
        "/..",
        "/%2e%2e",
        "%252e",
        "/..;",
        "\\",
        "?q=1",
        "#f",
        "@",
        ":",
        "443",
        ":80",
        ":0",
        ":99999",
    ),
    *(
        "//",
        "user:pw@",
        "[",
        "]",
        "%00",
        "%0d%0a",
        "\n",
        " ",
        "*",
        "evil.example",
        ".a.example",
        "/x.a.example/",
    ),
]


class Request(NamedTuple):
    url: str
    location: str
    headers: dict[str, str]


def make_request(random: Random) -> Request:
    scheme = random.choice(["https://", "http://", "HTTPS://", "ftp://", "//", "", "https:/", "file://"])
    parts = random.choices([*URL_PARTS, *HOSTILE[:20]], k=random.randint(0, 6))
    url = scheme + random.choice(["", "", "user@", "a.example@"]) + random.choice(HOSTS) + "".join(parts)
    location = "".join(random.choices([*URL_PARTS, *HOSTS, "https://", text(random)], k=random.randint(0, 4)))
    headers = {
        random.choice(["Authorization", "X-A", text(random)]): random.choice(
            ["$A", "Bearer ${A}", text(random)]
        )
    }
    return Request(url, location, headers)


ALLOWED = AllowedUrls(("https://a.example/x",), "user")


def check_request(value: Request) -> None:
    url, location, headers = value
    if url_problem(url, "project", [ALLOWED]) is None:
        _assert_allowed(url)
    if url_problem(url, "project", (), ["https://a.example/x", "https://a.example/x/*"]) is None:
        _assert_allowed(url)
    for pattern in ("a.example", "https://*.a.example/*", url, location):
        pattern_allows(pattern, url)
        url_problem(url, "user", (), [pattern])
    target = redirect_target(url, location)
    if target is not None and same_origin(url, target):
        assert urlsplit(target).hostname == urlsplit(url).hostname, "the redirect leads to another host"
    sent = read_headers(headers, ["A"], {"A": "secret-value", "B": "other"})
    joined = "".join(f"{name}{field}" for name, field in sent.fields.items())
    assert not set("\r\n\0") & set(joined), "a header with a line break"
    assert "secret-value" not in sent.redact(f"echo {joined}"), "a secret is shown"


def _assert_allowed(url: str) -> None:
    parts = urlsplit(url)
    assert (parts.scheme, (parts.hostname or "").rstrip(".")) == ("https", "a.example"), "another host"
    assert parts.port in (None, 443), "another port"
    path = parts.path
    for _ in range(6):
        path = unquote(path)
    assert path == "/x" or path.startswith("/x/"), "another path"
    assert not {"..", "."} & set(path.replace("\\", "/").split("/")), "a path that leads elsewhere"
    assert "@" not in parts.netloc, "with a password"


TARGETS = (
    Target("matchers", make_matcher, check_matcher),
    Target("permission-rules", make_call, check_call),
    Target("urls", make_request, check_request),
)
