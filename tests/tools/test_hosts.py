"""`make hosts`, as far as it needs no program from npm: the models, the recordings and the table of results."""

import json
import platform
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from bench.hosts import __main__ as hosts
from bench.hosts.claude import CLAUDE
from bench.hosts.codex import CODEX
from bench.hosts.models import serve_gemini, serve_responses
from bench.hosts.npm import CannotInstall, find, newer_node, require_npm
from bench.hosts.play import Row, lost_fields, place_of
from bench.hosts.program import SUBAGENT_PROMPT, Json, Script
from bench.hosts.programs import PROGRAMS
from bench.hosts.qwen import QWEN
from bench.hosts.recording import event_name, shortened, without_run
from bench.hosts.results import line, page
from bench.hosts.room import Ended, Room, open_room, run
from bench.hosts.scenarios import SCENARIOS
from bench.hosts.terminal import watch

from tests.support.builders import script
from tests.support.paths import ROOT
from turngate.hosts.all_hosts import HOSTS

PASSED = Row("codex", "a gate that passes", {"requests": 1}, {"requests": 1, "sent_back": 0})
FAILED = Row("codex", "a gate that passes", {"requests": 1}, {"requests": 7, "sent_back": 6}, "stderr: no")


def ask(url: str, text: str) -> list[Json]:
    """Return the events of the answer to one message."""
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    body = {"model": "m", "stream": True, "input": [message]}
    request = urllib.request.Request(f"{url}/responses", json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return [json.loads(row[6:]) for row in answer.read().decode().splitlines() if row.startswith("data:")]


def post(url: str, body: Json) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


def gemini_agent(body: Json) -> str:
    return "main" if "tools" in body else "other"


def test_each_agent_has_a_script_of_its_own_whose_replies_may_depend_on_the_request() -> None:
    spawn = {"namespace": "agents", "name": "spawn", "input": {"n": 1}}
    script: Script = {
        "main": [lambda body: {"text": f"{body['model']}?"}, {"tools": [spawn]}],
        "sub": ["sub"],
    }
    with serve_responses(script, lambda body: "sub" if SUBAGENT_PROMPT in str(body) else "main") as model:
        ended = [ask(model.url, text)[-1] for text in ("go", SUBAGENT_PROMPT, "on")]
        agents = model.agents
    first, second, third = (event["response"]["output"][0] for event in ended)
    assert (agents, first["content"][0]["text"], second["content"][0]["text"]) == (
        ["main", "sub", "main"],
        "m?",
        "sub",
    )
    assert {key: third[key] for key in ("type", "namespace", "name", "arguments")} == {
        "type": "function_call",
        "namespace": "agents",
        "name": "spawn",
        "arguments": '{"n": 1}',
    }


def test_a_recording_has_no_folder_id_or_time_of_its_run() -> None:
    room = Room(Path("/tmp/turngate-hosts-a_b"))
    ids: dict[str, str] = {}
    lines = [
        "/tmp/turngate-hosts-a_b/home/user/.x/-tmp-turngate-hosts-a-b-home-user-project/y",
        "0199f0aa-0000-7000-8000-0123456789ab at 2026-11-16T12:30:01.123Z, 2026/11/16, 1794832187121",
        "agent-ad36e6a42ff028f49 0199f0aa-0000-7000-8000-0123456789ab 1794832187.25",
        f"session-2026-11-16T12-35-7c46378e.jsonl {'3f' * 32} call_1794832187121_0 PGID: 4711",
    ]
    assert [without_run(room, text, ids) for text in lines] == [
        "/home/user/.x/-home-user-project/y",
        "00000000-0000-4000-8000-000000000001 at 2026-01-01T00:00:00Z, 2026/01/01, 1767225600",
        "agent-a0000000000000002 00000000-0000-4000-8000-000000000001 1767225600",
        f"session-2026-01-01T00-00-00000000.jsonl {'0' * 64} call_1767225600_0 PGID: 1",
    ]


def test_a_recording_is_named_after_its_event_even_if_the_input_does_not_name_it() -> None:
    inputs = [
        ({"hook_event_name": "Stop"}, "1-2"),
        ({"hook_event_name": "Stop", "agent_id": "a"}, "1-2"),
        ({"hook_event_name": "SubagentStop", "agent_id": "a"}, "1-2"),
        ({"agentId": "a"}, "1-2-camelcase-agentStop"),
        ({"agentId": "a"}, "1-2"),
    ]
    assert [event_name(event, Path(file)) for event, file in inputs] == [
        "Stop",
        "Stop-of-subagent",
        "SubagentStop",
        "camelcase-agentStop-of-subagent",
        "camelcase-subagentStart",
    ]


def test_gemini_gets_its_replies_as_a_stream_and_other_requests_as_a_whole() -> None:
    call = {"name": "run", "input": {"n": 1}}
    with serve_gemini({"main": [{"text": "twelve chars", "tools": [call]}]}, gemini_agent) as model:
        streamed = post(f"{model.url}/v1beta/models/m:streamGenerateContent?alt=sse", {"tools": []})
        whole = post(f"{model.url}/v1beta/models/m:generateContent", {})
    chunks = [json.loads(row[6:]) for row in streamed.splitlines() if row]
    parts = [chunk["candidates"][0]["content"]["parts"] for chunk in (*chunks, json.loads(whole))]
    function = {"functionCall": {"name": "run", "args": {"n": 1}}}
    assert (model.agents, parts) == (
        ["main", "other"],
        [[{"text": "twelve cha"}], [{"text": "rs"}], [function], [{"text": "ok"}]],
    )


@pytest.mark.parametrize(("version", "installs"), [("v20.11.0", True), ("v22.0.1", False)])
def test_a_program_gets_a_node_of_its_own_if_that_on_path_is_too_old(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, installs: bool
) -> None:
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho {version}\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    machine = {"x86_64": "x64"}.get(platform.machine(), "arm64")
    wanted = [f"node-{sys.platform}-{machine}@22"] if installs else []
    assert (newer_node(QWEN), newer_node(CODEX)) == (wanted, [])


def test_a_recorded_transcript_has_only_the_conversation_and_no_long_texts() -> None:
    lines = [{"type": "user", "texts": ["go", "x" * 500]}, {"type": "prompt"}]
    transcript = "".join(json.dumps(each) + "\n" for each in lines)
    recorded = shortened(transcript, lambda each: each["type"] == "user")
    assert recorded == '{"type":"user","texts":["go","' + "x" * 20 + '…"]}\n'


def test_a_scenario_passes_if_all_that_is_expected_was_seen() -> None:
    assert (line(PASSED), line(FAILED)) == (
        "pass  codex: a gate that passes (1 request)",
        "FAIL  codex: a gate that passes (7 requests, sent back 6 times); expected: 1 request\nstderr: no",
    )


def test_a_run_of_one_program_keeps_the_results_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda *_: "2026-01-01")
    programs = (CLAUDE, CODEX)
    before = page("", programs, {"claude": "1.0"}, [Row("claude", "s", {"code": 0}, {"code": 0})])
    after = page(before, programs, {"codex": "2.0"}, [FAILED])
    head = "(2026-01-01)\n\n| scenario | result | seen |\n|---|---|---|\n"
    assert after.split("\n## ")[1:] == [
        f"Claude Code 1.0 {head}| s | pass | exit code 0 |\n",
        f"Codex 2.0 {head}| a gate that passes | FAIL | 7 requests |\n",
    ]
    assert page(after, programs, {"codex": "2.0"}, [FAILED]) == after


def test_a_field_is_lost_unless_it_was_corrected() -> None:
    given = {"hook_event_name": "AfterAgent", "a": 1, "transcript_path": "m", "agent_transcript_path": "m"}
    got = {"hook_event_name": "Stop", "a": 2, "transcript_path": "m", "agent_transcript_path": "s"}
    assert lost_fields([given, {**given, "agent_transcript_path": "t"}], [got, got]) == [
        "a",
        "agent_transcript_path",
    ]


def test_a_notice_is_found_where_the_user_reads_it() -> None:
    ends = [Ended(0, "a gate", ""), Ended(0, "", "a gate"), Ended(None, "", "", "!agate"), Ended(0, "", "")]
    assert [place_of("a gate", each) for each in ends] == ["stdout", "stderr", "terminal", "nowhere"]


def test_a_program_that_hangs_is_killed_with_its_process_group() -> None:
    with open_room() as room:
        environment = {"PATH": "/usr/bin:/bin"}
        ended = run(["sh", "-c", "sleep 600 & sleep 600"], room, environment, limit_s=1)
        displayed = watch(["sh", "-c", "echo now; echo here; sleep 600"], room, environment, "now here", 60)
    assert (ended, displayed) == (Ended(None, "", ""), "nowhere")


def test_without_npm_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotInstall, match=r"^node is not on PATH: install Node.js 22 or later"):
        require_npm()


def test_a_folder_without_the_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotInstall) as error:
        find(CODEX, tmp_path)
    place = tmp_path / "codex" / "node_modules"
    assert str(error.value) == f"Codex is not in {place}: install it there, or leave out --dir"


def test_a_program_of_a_folder_with_an_older_node_is_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script(tmp_path / "bin" / "node", "#!/bin/sh\necho v20.1.0\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    modules = tmp_path / QWEN.folder / "node_modules"
    manifest = modules / QWEN.package / "package.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"version": "1.0"}')
    with pytest.raises(CannotInstall) as error:
        find(QWEN, tmp_path)
    said = "Qwen Code needs Node.js 22 or later, and `node` on PATH is older: put a newer one on PATH, or leave out --dir"
    assert str(error.value) == said
    script(modules / ".bin" / "node", "#!/bin/sh\n")
    assert find(QWEN, tmp_path) == modules / ".bin" / QWEN.command


def test_unknown_programs_are_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["hosts", "--only", "emacs"])
    assert hosts.main() == 64
    assert capsys.readouterr().out.startswith("--only emacs: expected some of claude, codex")


def test_what_a_program_tries_to_reach_beyond_loopback_is_kept_and_fails() -> None:
    with open_room() as room:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": room.proxy}))
        with pytest.raises(urllib.error.HTTPError) as error, opener.open("http://example.com/"):
            pass
        error.value.close()
        tried = list(room.tried)
    assert (error.value.code, tried) == (403, ["http://example.com/"])


def test_a_process_in_a_session_of_its_own_ends_with_the_room() -> None:
    apart = "setsid sh -c 'echo $$ > apart; exec sleep 600' > /dev/null 2>&1 &"
    with open_room() as room:
        environment = {"HOME": str(room.home), "PATH": "/usr/bin:/bin"}
        ended = run(["sh", "-c", f"{apart} while ! test -s apart; do sleep 0.1; done"], room, environment)
        process = Path("/proc", (room.project / "apart").read_text().strip(), "cmdline")
        assert (ended.code, process.read_bytes() != b"") == (0, True)
    assert not process.exists() or process.read_bytes() == b""  # ended, and perhaps not yet waited for
    assert not room.root.exists()


def test_every_scenario_of_the_results_has_passed_on_the_version_that_the_data_names() -> None:
    sections = (ROOT / "docs" / "reference" / "hosts-results.md").read_text().split("\n## ")[1:]
    found = {}
    for section in sections:
        heading, *lines = section.splitlines()
        rows = [line.strip("| ").split(" | ") for line in lines[3:] if line]
        found[heading.rpartition(" (")[0]] = {name: result for name, result, *_ in rows}
    assert found == {
        f"{program.title} {HOSTS[program.name].version}": {
            scenario.name: "pass" for scenario in SCENARIOS if scenario.applies(program)
        }
        for program in PROGRAMS
    }
