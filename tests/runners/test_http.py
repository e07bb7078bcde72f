"""Http hooks against real endpoints on loopback: kind ones, slow ones, and hostile ones."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import ask, rule, settings, stop_event, world, write_settings
from tests.support.certificates import make_certificate, server_context
from tests.support.servers.http import Endpoint, serve_answers
from tests.support.sessions import scripted_session
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S
from turngate.core.answers.report_types import HookFailed, Replied, Report, TimedOut
from turngate.core.dialect import CLAUDE, TURNGATE, Dialect
from turngate.core.events.hook_input import encode
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import HttpHook
from turngate.core.settings import AllowedUrls, Settings
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.core.verdict.hook_run import outcome
from turngate.core.verdict.json_output import run_json
from turngate.core.verdict.verdict import Continue, Stop, Verdict, warnings
from turngate.engine import ask_hooks
from turngate.extra_install import install_command
from turngate.state.journal import Journal
from turngate.state.paths import session_folder
from turngate.trust.load import load_settings

BLOCK = '{"decision": "block", "reason": "the build is red"}'


def asked(
    project: Path, hook: HttpHook, dialect: Dialect = TURNGATE, **fields: Any
) -> tuple[Report, Decision]:
    """What the hook saw and what it decided."""
    verdict = asyncio.run(ask(project, hook, dialect=dialect, **fields))
    [done] = verdict.runs
    return done.report, done.decision


def under(project: Path, configured: Settings) -> tuple[Report, Decision, str]:
    verdict = asyncio.run(ask_hooks(stop_event(cwd=str(project)), configured, world(project)))
    [done] = verdict.runs
    return done.report, done.decision, outcome(done)


# What is sent


@pytest.mark.parametrize("dialect", [TURNGATE, CLAUDE], ids=lambda dialect: dialect.name)
def test_the_endpoint_is_sent_what_a_command_would_read(project: Path, dialect: Dialect) -> None:
    with serve_answers() as endpoint:
        asked(project, HttpHook(f"{endpoint.url}/hook?x=1"), dialect, last_assistant_message="dönè ✓")
    event = stop_event(cwd=str(project), last_assistant_message="dönè ✓")
    assert (endpoint.paths, endpoint.raw) == (["/hook?x=1"], [encode(event, dialect)])
    assert endpoint.headers[0]["content-type"] == "application/json"
    assert endpoint.headers[0]["accept-encoding"] == "identity"


def test_headers_use_the_variables_that_are_allowed_and_no_others(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "s3cr3t-value")
    monkeypatch.setenv("OTHER", "private-value")
    monkeypatch.delenv("UNSET", raising=False)
    headers = {
        "Authorization": "Bearer ${HOOK_TOKEN}",
        "X-Twice": "$HOOK_TOKEN/$HOOK_TOKEN",
        "X-Other": "[$OTHER]",
        "X-Unset": "[${UNSET}]",
        "X-Plain": "costs $5, $(id)",
        "Host": "elsewhere.example",
        "X Bad": "x",
    }
    with serve_answers() as endpoint:
        hook = HttpHook(endpoint.url, headers=headers, allowed_env_vars=("HOOK_TOKEN", "UNSET"))
        report, decision = asked(project, hook)
    sent = {
        name: value for name, value in endpoint.headers[0].items() if name.startswith(("x", "auth", "host"))
    }
    assert sent == {
        "authorization": "Bearer s3cr3t-value",
        "x-twice": "s3cr3t-value/s3cr3t-value",
        "x-other": "[]",
        "x-unset": "[]",
        "x-plain": "costs $5, $(id)",
        "host": f"127.0.0.1:{endpoint.port}",
    }
    remarks = (
        "$OTHER is not among its `allowedEnvVars`, so it was sent as an empty string",
        "$UNSET is not set, so it was sent as an empty string",
        "its header 'Host' was not sent: the name is not allowed",
        "its header 'X Bad' was not sent: the name is not allowed",
    )
    assert (report, decision) == (Replied(""), Allow(warnings=remarks))


def test_a_value_that_would_make_two_headers_is_not_sent(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "abcdef\r\nX-Evil: 1")
    with serve_answers() as endpoint:
        hook = HttpHook(endpoint.url, headers={"X-A": "$TOKEN"}, allowed_env_vars=("TOKEN",))
        _, decision = asked(project, hook)
    said = "its header X-A was not sent: its value has characters that are not allowed"
    assert decision == Allow(warnings=(said,))
    assert [name for name in endpoint.headers[0] if name.startswith("x-")] == []


def test_variables_of_the_settings_count_as_well(project: Path) -> None:
    with serve_answers() as endpoint:
        hook = HttpHook(endpoint.url, headers={"X-A": "$TOKEN"}, allowed_env_vars=("TOKEN",))
        under(project, settings(hook, env={"TOKEN": "from-settings"}))
    assert endpoint.headers[0]["x-a"] == "from-settings"


def test_no_secret_reaches_the_journal_even_when_the_endpoint_says_it_back(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "s3cr3t-value")
    reply = {"body": '{"systemMessage": "you sent s3cr3t-value"}'}
    with serve_answers(reply, {"body": "s3cr3t-value"}, {"status": 401, "body": "s3cr3t-value"}) as endpoint:
        hook = HttpHook(
            endpoint.url,
            headers={"Authorization": "$TOKEN", "X-B": "literal-value"},
            allowed_env_vars=("TOKEN",),
        )
        journal = Journal(str(state))
        told: list[str] = []
        for _ in range(3):
            verdict = asyncio.run(
                ask_hooks(stop_event(cwd=str(project)), settings(hook), world(project, journal))
            )
            told += [str(verdict.runs[0].decision), *warnings(verdict.runs, TURNGATE)]
        journal.close()
    written = (Path(session_folder(str(state), "s-1")) / "journal.jsonl").read_text()
    found = [word for word in ("s3cr3t-value", "literal-value") for text in (*told, written) if word in text]
    assert (found, "you sent …" in written, len(endpoint.paths)) == ([], True, 3)


SECRET = "abc/def+secret=="
LITERAL = "written-out-1"
SENT = {"Authorization": "Bearer $TOKEN", "X-Padded": "$PADDED", "X-Api-Key": LITERAL}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"got {SECRET}", "got …"),
        ("got abc%2Fdef%2bsecret%3D%3d", "got …"),
        ("got padded-1", "got …"),
        (f"got {LITERAL}", "got …"),
        ("got nothing", "got nothing"),
    ],
)
def test_what_an_endpoint_says_back_is_hidden_in_its_reason_and_in_the_journal(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch, said: str, shown: str
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    monkeypatch.setenv("PADDED", "padded-1  ")
    body = json.dumps({"decision": "block", "reason": said}).replace("/", "\\/")
    journal = Journal(str(state))
    with serve_answers({"body": body}) as endpoint:
        hook = HttpHook(endpoint.url, headers=SENT, allowed_env_vars=("TOKEN", "PADDED"))
        verdict = asyncio.run(
            ask_hooks(stop_event(cwd=str(project)), settings(hook), world(project, journal))
        )
    journal.close()
    written = (Path(session_folder(str(state), "s-1")) / "journal.jsonl").read_text()
    decisions = [done.decision for done in verdict.runs]
    assert (decisions, said in written) == ([Block(shown)], said == shown)


@pytest.mark.parametrize("stage", ["decision", "reason", "hookSpecificOutput", "approve"])
def test_a_block_stays_a_block_whatever_a_variable_holds(
    project: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    monkeypatch.setenv("STAGE", stage)
    with serve_answers({"body": BLOCK}) as endpoint:
        hook = HttpHook(endpoint.url, headers={"X-Stage": "$STAGE"}, allowed_env_vars=("STAGE",))
        report, decision = asked(project, hook)
    assert (report, decision) == (Replied(BLOCK.replace(stage, "…")), Block("the build is red"))


# What is answered

ANSWERS: dict[str, tuple[dict[str, Any], Decision]] = {
    "nothing": ({}, Allow()),
    "204": ({"status": 204}, Allow()),
    "blanks": ({"body": " \r\n"}, Allow()),
    "block": ({"body": BLOCK}, Block("the build is red")),
    "created": ({"status": 201, "body": BLOCK}, Block("the build is red")),
    "byte-order mark": ({"body": "\ufeff" + BLOCK}, Block("the build is red")),
    "whatever the type says": ({"body": BLOCK, "type": "text/html"}, Block("the build is red")),
    "halt": ({"body": '{"continue": false, "stopReason": "enough"}'}, Halt("enough")),
    "context": (
        {"body": '{"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "look"}}'},
        Advise("look"),
    ),
    "approve": ({"body": '{"decision": "approve", "reason": "fine"}'}, Allow("fine")),
    "text": (
        {"body": "all good", "type": "text/plain"},
        Fault("its reply is not a JSON object"),
    ),
    "a list": ({"body": "[]"}, Fault("its reply is not a JSON object")),
    "half of it": (
        {"body": BLOCK[:-2]},
        Fault(
            "its reply is not a JSON object",
            warnings=(
                (
                    "its decision was not read, because its JSON is truncated (line 1, column 33: Unterminated string "
                    "starting at)"
                ),
            ),
        ),
    ),
}


@pytest.mark.req("S2-10")
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_means_what_it_would_mean_on_a_commands_stdout(project: Path, name: str) -> None:
    answer, expected = ANSWERS[name]
    with serve_answers(answer) as endpoint:
        _, decision = asked(project, HttpHook(endpoint.url))
    assert decision == expected


def test_a_block_continues_the_turn_and_a_blank_answer_does_not(project: Path) -> None:
    with serve_answers({"body": BLOCK}) as endpoint:
        verdict: Verdict = asyncio.run(ask(project, HttpHook(endpoint.url)))
    assert isinstance(verdict, Continue)
    assert verdict.prompt == "[Stop hook requested continuation]\nthe build is red"


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_status_that_is_no_success_fails_open(project: Path, status: int) -> None:
    with serve_answers({"status": status, "body": BLOCK}) as endpoint:
        hook = HttpHook(f"{endpoint.url}/hook")
        report, decision = asked(project, hook)
    said = f"HTTP {status} from {endpoint.url}/hook"
    assert (report, decision) == (HookFailed(said), Fault(said))


def test_a_failure_is_shown_and_a_hook_that_must_work_holds_the_agent(project: Path) -> None:
    with serve_answers({"status": 500}) as endpoint:
        open_, strict = HttpHook(endpoint.url), HttpHook(endpoint.url, blocking=True)
        first = asyncio.run(ask(project, open_))
        second = asyncio.run(ask(project, strict))
    failed = f'hook "{endpoint.url}" failed and was NOT enforced: HTTP 500 from {endpoint.url}'
    assert isinstance(first, Stop)
    assert (outcome(first.runs[0]), warnings(first.runs, TURNGATE)) == ("failed", (failed,))
    assert isinstance(second, Continue)


def test_no_server_listens(project: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        report, _ = asked(project, HttpHook(f"http://127.0.0.1:{port}/hook"))
    assert report == HookFailed(f"127.0.0.1:{port} cannot be reached: Connection refused")


def test_a_host_that_does_not_exist(project: Path) -> None:
    report, decision = asked(project, HttpHook("https://no-such-host.invalid/hook", timeout=30))
    assert isinstance(report, HookFailed)
    assert report.error.startswith("the host no-such-host.invalid cannot be resolved: ")
    assert decision == Fault(report.error)


def test_an_endpoint_that_hangs_up_in_the_middle(project: Path) -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"
    with serve_answers({"raw": cut}) as endpoint:
        report, _ = asked(project, HttpHook(endpoint.url))
    said = f"127.0.0.1:{endpoint.port} closed the connection in the middle of its answer"
    assert report == HookFailed(said)


def test_an_endpoint_that_speaks_no_http(project: Path) -> None:
    with serve_answers({"raw": b"SSH-2.0-OpenSSH_9.6\r\n"}) as endpoint:
        report, _ = asked(project, HttpHook(endpoint.url))
    said = f"127.0.0.1:{endpoint.port} does not speak HTTP"
    assert report == HookFailed(said)


# Time and size


@pytest.mark.req("S2-19")
def test_a_slow_endpoint_is_ended_at_its_limit_and_its_connection_is_closed(project: Path) -> None:
    with serve_answers({"delay": NEVER_S}) as endpoint:
        report, decision = asked(project, HttpHook(endpoint.url, timeout=0.3))
        assert endpoint.left.wait(HANG_TIMEOUT_S)
    assert (report, decision) == (TimedOut(0.3), Fault("timed out after 0.3 s", "timeout"))


def test_a_cancelled_stop_closes_the_connection_at_once(project: Path) -> None:
    async def cancel(endpoint: Endpoint) -> None:
        task = asyncio.create_task(ask(project, HttpHook(endpoint.url, timeout=NEVER_S)))
        await asyncio.to_thread(endpoint.asked.wait, HANG_TIMEOUT_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with serve_answers({"delay": NEVER_S}) as endpoint:
        asyncio.run(cancel(endpoint))
        assert endpoint.left.wait(HANG_TIMEOUT_S)


@pytest.mark.parametrize(
    "answer", [{"endless": True}, {"body": "x" * (1024 * 1024 + 1)}], ids=["endless", "huge"]
)
def test_an_answer_beyond_a_mebibyte_is_not_read_to_its_end(project: Path, answer: dict[str, Any]) -> None:
    with serve_answers(answer) as endpoint:
        report, _ = asked(project, HttpHook(endpoint.url, timeout=HANG_TIMEOUT_S))
    assert report == HookFailed(f"{endpoint.url} replied with more than 1,024 KiB")


def test_a_compressed_answer_is_not_unpacked(project: Path) -> None:
    with serve_answers({"body": "x", "headers": {"Content-Encoding": "gzip"}}) as endpoint:
        report, _ = asked(project, HttpHook(endpoint.url))
    assert report == HookFailed(f"{endpoint.url} replied with compressed content, which was not requested")


# Redirects


def to(place: str, status: int = 307) -> dict[str, Any]:
    return {"status": status, "headers": {"Location": place}}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_the_same_host_is_followed_with_the_whole_input(project: Path, status: int) -> None:
    with serve_answers(to("/b", status), to("c", status), {"body": BLOCK}) as endpoint:
        _, decision = asked(project, HttpHook(f"{endpoint.url}/a"))
    assert (decision, endpoint.paths) == (Block("the build is red"), ["/a", "/b", "/c"])
    assert endpoint.raw[0] == endpoint.raw[2]


def test_a_circle_of_redirects_ends(project: Path) -> None:
    with serve_answers(to("/b"), to("/a"), to("/b"), to("/a"), to("/b")) as endpoint:
        report, _ = asked(project, HttpHook(f"{endpoint.url}/a"))
    assert report == HookFailed(f"{endpoint.url}/a redirects more than 3 times")
    assert endpoint.paths == ["/a", "/b", "/a", "/b"]


def test_nothing_is_sent_to_another_host(project: Path) -> None:
    with serve_answers() as other, serve_answers(to(f"{other.url}/steal")) as endpoint:
        report, _ = asked(project, HttpHook(f"{endpoint.url}/a"))
    said = f"{endpoint.url}/a redirects to 127.0.0.1:{other.port}: nothing is sent to another host"
    assert (report, other.paths) == (HookFailed(said), [])


def test_a_redirect_out_of_the_allowed_addresses_is_not_followed(project: Path) -> None:
    with serve_answers(to("/admin")) as endpoint:
        allowed = (AllowedUrls((f"{endpoint.url}/hooks/",), "user"),)
        report, _, _ = under(project, settings(HttpHook(f"{endpoint.url}/hooks/a"), allowed_urls=allowed))
    said = f"{endpoint.url}/admin is not among the `turngate.allowedUrls` of your settings"
    assert (report, endpoint.paths) == (HookFailed(said), ["/hooks/a"])


@pytest.mark.parametrize(
    "answer",
    [to("", 302), to("?", 302), to("/b", 303), to("http://[", 303), {"status": 304}],
    ids=["nowhere", "itself", "303", "303 to nonsense", "304"],
)
def test_another_redirect_is_a_status_like_others(project: Path, answer: dict[str, Any]) -> None:
    with serve_answers(answer) as endpoint:
        report, _ = asked(project, HttpHook(f"{endpoint.url}/a"))
    assert report == HookFailed(f"HTTP {answer['status']} from {endpoint.url}/a")


@pytest.mark.parametrize(
    "place",
    [
        "http://[",
        "http://127.0.0.1:1:80/",
        "http://127.0.0.1:99999/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://me:geheim@127.0.0.1/",
        "http://a%40evil.example/",
        "/a\t/b",
        "\\\\evil.example\\x",
        "/" + "x" * 70_000,
    ],
)
def test_a_redirect_to_no_address_is_the_endpoints_mistake(project: Path, place: str) -> None:
    with serve_answers(to(place)) as endpoint:
        report, _ = asked(project, HttpHook(f"{endpoint.url}/a"))
    assert report == HookFailed(f"{endpoint.url}/a redirects to a URL that is not valid")
    assert endpoint.paths == ["/a"]


PLACES = {
    "a failure": ("/x?t=abc/def+secret==", (), "HTTP 500 from {}/x?t=…"),
    "in percent": ("/x?t=abc%2Fdef%2Bsecret%3D%3D", (), "HTTP 500 from {}/x?t=…"),
    "another host": (
        "http://written-out-1.evil.example/",
        (),
        "{}/a redirects to …: nothing is sent to another host",
    ),
    "not allowed": (
        "/x/abc/def+secret==",
        ("/a",),
        "{}/x/… is not among the `turngate.allowedUrls` of your settings",
    ),
    "a part of it as a host": (
        "http://abc/def+secret==",
        (),
        "{}/a redirects to …: nothing is sent to another host",
    ),
    "no address": (
        "http://[abc/def+secret==",
        (),
        "{}/a redirects to a URL that is not valid",
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_redirect_that_holds_a_secret_does_not_show_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    place, allowed, said = PLACES[name]
    with serve_answers(to(place), {"status": 500}) as endpoint:
        lists = tuple(AllowedUrls((endpoint.url + path,), "user") for path in allowed)
        hook = HttpHook(f"{endpoint.url}/a", headers=SENT, allowed_env_vars=("TOKEN",))
        report, _, _ = under(project, settings(hook, allowed_urls=lists))
    assert report == HookFailed(said.format(endpoint.url))


def test_where_an_address_is_cut_no_half_of_a_secret_stays(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    before = "/" + "x" * 268  # after an address of 22 characters; 300 are shown
    with serve_answers(to(f"{before}{SECRET}{'y' * 50}"), {"status": 500}) as endpoint:
        hook = HttpHook(f"{endpoint.url}/a", headers=SENT, allowed_env_vars=("TOKEN",))
        report, _ = asked(project, hook)
    assert report == HookFailed(f"HTTP 500 from {endpoint.url}{before}…yyyyyyy…")


# Encryption


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def encrypted(certificate: Path) -> Iterator[Endpoint]:
    with serve_answers({"body": BLOCK}, tls=server_context(certificate)) as endpoint:
        yield endpoint


def test_an_untrusted_certificate_is_rejected(project: Path, encrypted: Endpoint) -> None:
    report, _ = asked(project, HttpHook(encrypted.url))
    said = (
        f"the certificate of 127.0.0.1:{encrypted.port} is not trusted: self-signed certificate; "
        "set SSL_CERT_FILE to a file that has its certificate"
    )
    assert (report, encrypted.paths) == (HookFailed(said), [])


def test_a_certificate_that_this_machine_trusts_is_accepted(
    project: Path, encrypted: Endpoint, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    assert asked(project, HttpHook(encrypted.url))[1] == Block("the build is red")


def test_https_to_an_endpoint_without_encryption_fails_in_a_sentence(project: Path) -> None:
    with serve_answers() as endpoint:
        report, _ = asked(project, HttpHook(endpoint.url.replace("http:", "https:")))
    said = f"no encrypted connection to 127.0.0.1:{endpoint.port}: it does not speak TLS"
    assert (report, endpoint.paths) == (HookFailed(said), [])


# Which addresses may be asked


def test_the_users_list_holds_for_the_projects_hooks(project: Path, home: Path) -> None:
    with serve_answers({"body": BLOCK}) as endpoint:
        hooks = [{"type": "http", "url": f"{endpoint.url}{path}"} for path in ("/in/a", "/out")]
        write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
        write_settings(home, "turngate", {"turngate": {"allowedUrls": [f"{endpoint.url}/in/"]}})
        verdict = asyncio.run(
            ask_hooks(stop_event(cwd=str(project)), load_settings(str(project)), world(project))
        )
    said = f"{endpoint.url}/out is not among the `turngate.allowedUrls` of your settings"
    assert [done.decision for done in verdict.runs] == [Block("the build is red"), Fault(said)]
    assert endpoint.paths == ["/in/a"]


DIALECT_FAMILIES = [("turngate", "turngate"), ("turngate", "claude"), ("claude", "claude"), ("mux", "mux")]


@pytest.mark.parametrize(("dialect", "family"), DIALECT_FAMILIES)
@pytest.mark.parametrize("patterns", [[], ["https://hooks.example.com/*"], "http://127.0.0.1:*/*"], ids=str)
def test_a_request_that_allowed_http_hook_urls_does_not_allow_is_not_made(
    project: Path, home: Path, dialect: str, family: str, patterns: Any
) -> None:
    with serve_answers({"body": BLOCK}) as endpoint:
        hook = {"type": "http", "url": f"{endpoint.url}/a"}
        write_settings(project, family, {"hooks": {"Stop": [{"hooks": [hook]}]}})
        write_settings(home, family, {"allowedHttpHookUrls": patterns})
        report, _, result = under(project, load_settings(str(project), dialect=dialect))
    said = f"{endpoint.url}/a is not among the `allowedHttpHookUrls` of the settings"
    assert (report, result, endpoint.paths) == (HookFailed(said), "failed", [])


def test_the_lists_of_allowed_http_hook_urls_add_up(project: Path, home: Path) -> None:
    with serve_answers({"body": BLOCK}) as endpoint:
        hook = {"type": "http", "url": f"{endpoint.url}/a"}
        content = {"hooks": {"Stop": [{"hooks": [hook]}]}, "allowedHttpHookUrls": ["http://127.0.0.1:*"]}
        write_settings(project, "claude", content)
        write_settings(home, "claude", {"allowedHttpHookUrls": []})
        _, decision, _ = under(project, load_settings(str(project), dialect="claude"))
    assert (decision, endpoint.paths) == (Block("the build is red"), ["/a"])


def test_a_redirect_to_what_allowed_http_hook_urls_does_not_allow_is_not_followed(project: Path) -> None:
    answer = {"status": 307, "headers": {"Location": "/other"}}
    with serve_answers(answer, {"body": BLOCK}) as endpoint:
        configured = settings(HttpHook(f"{endpoint.url}/a"), http_hook_urls=(f"{endpoint.url}/a",))
        report, _, _ = under(project, configured)
    said = f"{endpoint.url}/other is not among the `allowedHttpHookUrls` of the settings"
    assert (report, endpoint.paths) == (HookFailed(said), ["/a"])


@pytest.mark.parametrize(
    ("pattern", "path", "name"),
    [("/hooks/*", "/hooks/../admin", "/admin"), ("/*/team-a", "/evil#/hooks/team-a", "/evil#/hooks/team-a")],
)
def test_allowed_http_hook_urls_are_compared_with_the_path_that_is_requested(
    project: Path, pattern: str, path: str, name: str
) -> None:
    answer = {"status": 307, "headers": {"Location": path}}
    with serve_answers(answer, {"body": BLOCK}) as endpoint:
        allowed = (f"{endpoint.url}/start", f"{endpoint.url}{pattern}")
        reports = [
            under(project, settings(HttpHook(endpoint.url + first), http_hook_urls=allowed))[0]
            for first in (path, "/start")
        ]
    said = "is not among the `allowedHttpHookUrls` of the settings"
    expected = [HookFailed(f"{endpoint.url}{each} {said}") for each in (path, name)]
    assert (reports, endpoint.paths) == (expected, ["/start"])


@pytest.mark.parametrize(("dialect", "family"), DIALECT_FAMILIES)
def test_a_variable_outside_of_http_hook_allowed_env_vars_is_sent_empty(
    project: Path, monkeypatch: pytest.MonkeyPatch, dialect: str, family: str
) -> None:
    for name in ("AAA", "BBB"):
        monkeypatch.setenv(name, f"value-of-{name}")
    with serve_answers() as endpoint:
        headers = {"X-A": "$AAA", "X-B": "<$BBB>"}
        hook = {"type": "http", "url": endpoint.url, "headers": headers, "allowedEnvVars": ["AAA", "BBB"]}
        content = {"hooks": {"Stop": [{"hooks": [hook]}]}, "httpHookAllowedEnvVars": ["AAA"]}
        write_settings(project, family, content)
        _, decision, _ = under(project, load_settings(str(project), dialect=dialect))
    sent = endpoint.headers[0]
    assert (sent["x-a"], sent["x-b"]) == ("value-of-AAA", "<>")
    assert decision == Allow(
        warnings=(
            "$BBB is not among the `httpHookAllowedEnvVars` of the settings, so it was sent as an empty string",
        )
    )


def test_a_projects_hook_does_not_send_in_the_clear(project: Path) -> None:
    hook = HttpHook("http://hooks.example.com/a")
    refused = under(project, Settings(rules=(rule(hook, source="project"),)))
    said = (
        "http://hooks.example.com/a is not encrypted: use https, or allow it in `turngate.allowedUrls` of your "
        "user settings"
    )
    assert refused == (HookFailed(said), Fault(said), "failed")


def test_a_password_in_the_address_is_neither_sent_nor_shown(project: Path) -> None:
    with serve_answers() as endpoint:
        hook = HttpHook(f"http://me:geheim@127.0.0.1:{endpoint.port}/a")
        verdict = asyncio.run(ask(project, hook))
    said = f"http://…@127.0.0.1:{endpoint.port}/a"
    why = f"{said} contains a password: put it in `headers`, as a variable"
    assert warnings(verdict.runs, TURNGATE) == (f'hook "{said}" failed and was NOT enforced: {why}',)
    assert endpoint.paths == []


def test_without_the_library_the_hook_says_what_to_install(project: Path) -> None:
    program = f"""
import asyncio, sys
sys.modules["h11"] = None
from pathlib import Path
from tests.support.builders import ask
from turngate.core.hooks.kinds import HttpHook
verdict = asyncio.run(ask(Path({str(project)!r}), HttpHook("https://hooks.example.com/a")))
print(verdict.runs[0].report.error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    command = install_command("http")
    assert done.stdout == f"http hooks need a library that is not installed: {command}\n"


def test_a_project_without_http_hooks_does_not_load_the_library() -> None:
    program = "import sys, turngate.engine; print('h11' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_an_endpoint_and_a_command_are_asked_at_the_same_stop(project: Path) -> None:
    with serve_answers({"body": BLOCK}) as endpoint:
        verdict = asyncio.run(ask(project, HttpHook(endpoint.url, id="ci"), "echo 'no tests' >&2; exit 2"))
    assert isinstance(verdict, Continue)
    assert verdict.prompt == (
        "[Stop hook requested continuation]\nci: the build is red\n\necho 'no tests' >&2; exit 2: no tests"
    )


# At other events


def specific(event: str, **fields: Any) -> dict[str, Any]:
    return {"body": json.dumps({"hookSpecificOutput": {"hookEventName": event, **fields}})}


def played(project: Path, hook: HttpHook, event: str) -> tuple[list[str], TurnResult]:
    """What the model heard in a turn that writes a file."""
    write = {"tool": "Write", "input": {"file_path": "a", "content": "x"}}
    playing = scripted_session(project, write, "done", rules=[rule(hook, event)], permission_mode="default")
    result = playing.play("go")
    return playing.heard(), result


def test_an_endpoint_may_permit_a_tool_and_change_its_input(project: Path) -> None:
    changed = {"file_path": str(project / "b"), "content": "y"}
    with serve_answers(specific("PreToolUse", permissionDecision="allow", updatedInput=changed)) as endpoint:
        heard, _ = played(project, HttpHook(endpoint.url), "PreToolUse")
    assert (heard[:2], (project / "b").read_text(), (project / "a").exists()) == (
        ["go", "agent: Write"],
        "y",
        False,
    )
    assert endpoint.bodies[0]["tool_input"] == {"file_path": str(project / "a"), "content": "x"}


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
def test_the_input_of_a_tool_is_complete_although_it_is_not_shown(
    event: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_USER", "builder")
    changed = {"file_path": str(project / "b"), "content": "hello builder"}
    told = (
        specific(event, permissionDecision="allow", updatedInput=changed)
        if event == "PreToolUse"
        else specific(event, decision={"behavior": "allow", "updatedInput": changed})
    )
    with serve_answers(told) as endpoint:
        hook = HttpHook(endpoint.url, headers={"X-User": "$CI_USER"}, allowed_env_vars=("CI_USER",))
        _, result = played(project, hook, event)
    shown = ["builder" in json.dumps(run_json(run)) for run in result.hook_runs]
    assert ((project / "b").read_text(), shown) == ("hello builder", [False])


def test_an_endpoint_may_block_a_tool(project: Path) -> None:
    with serve_answers(
        specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="not here")
    ) as endpoint:
        heard, _ = played(project, HttpHook(endpoint.url), "PreToolUse")
    assert heard[2] == "tool: a hook blocked this: not here"


def test_an_endpoint_may_add_context_to_a_prompt(project: Path) -> None:
    with serve_answers(specific("UserPromptSubmit", additionalContext="it is Monday")) as endpoint:
        heard, _ = played(project, HttpHook(endpoint.url), "UserPromptSubmit")
    assert heard[:2] == ["go", "it is Monday"]


def test_a_hooks_headers_are_not_in_its_words() -> None:
    hook = HttpHook("https://a.example/x", headers={"Authorization": "geheim"})
    assert repr(hook).count("geheim") == 0


@pytest.mark.req("S2-10")
def test_the_command_asks_the_endpoint_and_the_log_names_it(project: Path) -> None:
    with serve_answers({"body": BLOCK}) as endpoint:
        hooks = [{"type": "http", "url": f"{endpoint.url}/x"}]
        write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
        turngate = [sys.executable, "-m", "turngate"]
        fired = subprocess.run(
            [*turngate, "fire", "Stop", "--json"],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    log = subprocess.run([*turngate, "log"], cwd=project, capture_output=True, text=True, check=True).stdout
    assert (fired.returncode, json.loads(fired.stdout)["prompt"]) == (
        10,
        "[Stop hook requested continuation]\nthe build is red",
    )
    assert f'"{endpoint.url}/x"  the build is red' in log
