"""Which values of an environment are secrets."""

from collections.abc import Mapping

import pytest

from turngate.core.redaction import is_secret_name, secret_values

VALUE = "s3cr3t-value"


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "GITHUBTOKEN",
        "gitlab_token",
        "npm_config__authToken",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "ANTHROPIC_API_KEY",
        "OPENAI_APIKEY",
        "PGPASSWORD",
        "MYSQL_PWD",
        "DB_PASS",
        "DbPassword",
        "SSH_PASSPHRASE",
        "SIGNING_KEY",
        "KEY",
        "GITHUB_PAT",
        "HTTP_AUTH",
        "SESSION_COOKIE",
        "SUPABASE_JWT",
        "CREDENTIALS",
        "DJANGO_SECRET_KEY",
    ],
)
def test_a_name_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "PATH",
        "PWD",
        "OLDPWD",
        "HOME",
        "KEYBOARD",
        "MONKEY",
        "COMPASS",
        "AUTHOR",
        "GIT_AUTHOR_NAME",
        "PATTERN",
        "SSH_AUTH_SOCK",
        "SSH_KEY_PATH",
        "SECRET_NAME",
        "TOKEN_URL",
        "TLS_KEY_FILE",
        "PASSWORD_MIN_LENGTH",
        "XDG_SESSION_ID",
        "TURNGATE_SESSION_ID",
        "CLAUDE_PROJECT_DIR",
    ],
)
def test_a_name_of_something_else(name: str) -> None:
    assert not is_secret_name(name)


PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nshort\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"A_TOKEN": VALUE, "HOME": "/home/someone"}, {VALUE}),
        ({"A_TOKEN": f" {VALUE}\n"}, {VALUE}),
        ({"A_TOKEN": "1234567", "B_TOKEN": ""}, set()),
        ({"A_TOKEN": "12345678"}, {"12345678"}),
        ({"PRIVATE_KEY": PEM}, {PEM.strip(), "MIIEvQIBADANBgkq"}),
        ({"DATABASE_URL": "postgres://me:pass-word@db.example:5432/x?a=b"}, {"pass-word"}),
        ({"DATABASE_URL": "postgres://me:short@db.example/x"}, set()),
        ({"PROXY": "http://proxy.example:8080/@x"}, set()),
        ({}, set()),
    ],
)
def test_secret_values(environ: Mapping[str, str], expected: set[str]) -> None:
    assert secret_values(environ) == expected
