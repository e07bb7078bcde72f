"""Opening a model by its name: providers, keys, addresses, and what is missing."""

import subprocess
import sys

import pytest
from pydantic_ai import exceptions

from tests.support.paths import ROOT
from tests.support.providers import KEY
from turngate.cli.commands.run import MODEL_HELP
from turngate.errors import UsageError
from turngate.extra_install import install_command
from turngate.models.providers import ALIASES
from turngate.models.providers import PROVIDERS as PROVIDERS_TABLE
from turngate.models.pydantic_ai_model import translate_error as model_error
from turngate.models.resolve import default_model, open_model


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def test_a_model_knows_its_name_and_its_size() -> None:
    models = [
        open_model("anthropic:claude-sonnet-5-5"),
        open_model("anthropic:claude-of-tomorrow"),
    ]
    assert [(model.name, model.context) for model in models] == [
        ("anthropic:claude-sonnet-5-5", 1_000_000),
        ("anthropic:claude-of-tomorrow", 200_000),
    ]


PROVIDERS = (
    "anthropic, openai, openai-chat, gemini or google, openrouter, ollama, deepseek, groq, mistral, xai, "
    "pydantic-ai:PROVIDER for every provider of that library"
)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "anthropic:x",
            "the model 'anthropic:x' cannot be used: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN",
        ),
        ("openai:x", "the model 'openai:x' cannot be used: set OPENAI_API_KEY"),
        ("google:x", "the model 'google:x' cannot be used: set GEMINI_API_KEY or GOOGLE_API_KEY"),
        (
            "nobody:x",
            f"unknown provider 'nobody' in the model 'nobody:x'; the providers are {PROVIDERS}",
        ),
        ("pydantic-ai:anthropic:x", "the model 'anthropic:x' cannot be used: set ANTHROPIC_API_KEY"),
        ("pydantic-ai:nobody:x", "unknown provider 'nobody' in the model 'nobody:x'"),
        (
            "pydantic-ai:groq:x",
            "the model 'groq:x' needs a package: pip install 'pydantic-ai-slim[groq]'",
        ),
    ],
)
def test_a_model_that_cannot_be_opened_is_explained(
    monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UsageError) as caught:
        open_model(name)
    assert str(caught.value) == told


def test_a_local_server_needs_no_key() -> None:
    assert open_model("ollama:qwen").name == "ollama:qwen"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://[::bad", "Invalid IPv6 URL"),
        ("http://host:99999999/", "Port out of range 0-65535"),
        ("api.example.com/v1", "expected http://HOST or https://HOST"),
        ("ftp://example.com", "expected http://HOST or https://HOST"),
        ("https://me:secret@example.com", "a user name or password in it is not supported"),
    ],
)
def test_an_invalid_address_is_explained(monkeypatch: pytest.MonkeyPatch, url: str, why: str) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    with pytest.raises(UsageError) as caught:
        open_model("anthropic:x")
    assert str(caught.value) == (
        f"the model 'anthropic:x' cannot be used: ANTHROPIC_BASE_URL is not a valid address: {why}"
    )


def test_a_missing_sdk_of_pydantic_ai_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.delitem(sys.modules, "pydantic_ai.providers.openai", raising=False)
    with pytest.raises(UsageError) as caught:
        open_model("pydantic-ai:openai:x")
    assert str(caught.value) == (
        "the model 'openai:x' needs a package: pip install 'pydantic-ai-slim[openai]'"
    )


@pytest.mark.parametrize(
    ("library", "module", "told"),
    [
        (
            "h11",
            "live",
            (
                f"live models need a library that is not installed: {install_command('agent')}; "
                "--model scripted:FILE needs none\n"
            ),
        ),
        (
            "pydantic_ai",
            "pydantic_ai_model",
            (
                "models of the form pydantic-ai:PROVIDER:NAME need a library that is not installed: "
                f"{install_command('pydantic-ai')}\n"
            ),
        ),
    ],
)
def test_without_its_library_the_extra_is_named(library: str, module: str, told: str) -> None:
    found = python(
        f"import sys; sys.modules[{library!r}] = None\n"
        "from turngate.errors import UsageError\n"
        f"try: import turngate.models.{module}\n"
        "except UsageError as error: print(error)"
    )
    assert found == told


def test_a_direct_model_does_not_load_the_libraries_of_providers() -> None:
    code = (
        "import sys; from turngate.models.resolve import open_model\n"
        "open_model('ollama:x'); open_model('anthropic:x')\n"
        "print(sorted({'pydantic', 'pydantic_ai', 'anthropic', 'openai', 'httpx2'} & set(sys.modules)))"
    )
    assert python(code) == "[]\n"


def test_a_scripted_model_needs_no_pydantic_ai() -> None:
    code = "import sys, turngate.models.scripted; print('pydantic_ai' in sys.modules)"
    assert python(code) == "False\n"


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


BOTH = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        (BOTH, "anthropic:claude-sonnet-5-5"),
        ({"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "o"}, "openai:gpt-6.1-sol"),
    ],
)
def test_the_first_key_chooses_the_model(environ: dict[str, str], found: str) -> None:
    assert default_model(environ) == found


def test_without_a_model_and_a_key_the_message_explains_how_to_give_one() -> None:
    with pytest.raises(UsageError) as caught:
        default_model({"PATH": "/bin"})
    assert str(caught.value) == (
        "no model given: pass --model PROVIDER:NAME or --model scripted:FILE, "
        "or set ANTHROPIC_API_KEY or OPENAI_API_KEY"
    )


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (exceptions.ModelTimeoutError("m", "slow"), "network", "anthropic did not answer in time"),
        (exceptions.ModelRequestTimeout("m", 5), "network", "anthropic did not answer in time"),
        (exceptions.ModelRateLimitError("m", "slow down."), "overloaded", "anthropic reports: slow down"),
        (exceptions.ContentFilterError("not this."), "refusal", "anthropic refused the request: not this"),
        (
            exceptions.UnexpectedModelBehavior("noise"),
            "network",
            "anthropic sent an answer that cannot be read: noise",
        ),
        (exceptions.UserError("not so"), "invalid", "the request to anthropic failed: not so"),
        (ValueError("odd"), "invalid", "the request to anthropic failed: odd"),
    ],
)
def test_what_no_loopback_can_show_has_its_kind_too(error: Exception, kind: str, told: str) -> None:
    found = model_error(error, "anthropic")
    assert (found.kind, str(found)) == (kind, told)


def test_the_help_and_the_page_name_every_provider() -> None:
    names = [*PROVIDERS_TABLE, "pydantic-ai:"]
    page = (ROOT / "docs" / "reference" / "models.md").read_text()
    assert [name for name in names if name not in MODEL_HELP] == []
    assert [
        name for name in (*names, *ALIASES) if f"`{name}" not in page and name != "openai-responses"
    ] == []
    variables = [
        name for each in PROVIDERS_TABLE.values() for name in (each.url_variable, *each.key_variables)
    ]
    assert [name for name in variables if name not in page] == []
    assert [
        each.url for each in PROVIDERS_TABLE.values() if f"`{each.url_variable}`: `{each.url}`" not in page
    ] == []
