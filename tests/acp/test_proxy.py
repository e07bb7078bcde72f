"""`turngate acp` between an editor and an agent, both in lines: what passes, what is asked, how a turn ends."""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acp.line_editor import AGENT, PROXY, Editor, editor_of, prompts_of, received, started
from tests.support.builders import stop_hooks, write_settings
from turngate.acp.proxy import MAX_UNREAD_BYTES, Proxy, pass_on, passed
from turngate.acp.session import Session
from turngate.hosts.host import HEADING

NOT_YET = "echo not yet >&2; exit 2"
BLOCKS = f"{HEADING}\nnot yet"
DONE = [["text", "Done."]]
ANSWER = {"stopReason": "end_turn"}


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_TRUST", "1")


def verdict(answer: dict[str, Any]) -> dict[str, Any]:
    found = answer["result"]["_meta"]["turngate"]
    assert isinstance(found, dict)
    return found


def test_without_any_hook_every_byte_is_the_same_as_without_the_proxy(project: Path, tmp_path: Path) -> None:
    odd = '{"jsonrpc":"2.0", "method":"_x.dev/hello","params":{"a" : 1.50, "a":2, "\\u0041":"\\/"}}\r\n[1,2]\nno json\n\n'
    steps: list[list[Any]] = [["text", "Grüße"], ["raw", odd], ["stop", "end_turn", {"_meta": {"x": [1e2]}}]]
    lines = []
    for direct in (True, False):
        folder = tmp_path / str(direct)
        folder.mkdir()
        with editor_of(folder, steps, proxy=[] if direct else PROXY) as editor:
            editor.prompt(editor.open(project))
            editor.write(b'{"jsonrpc" : "2.0","method":"_y","params":{"b":1e400,"n":1}}\nnot json\n')
            editor.request("_x.dev/any", {"deep": [[[]]]})
            editor.close()
            lines.append((editor.lines, received(folder)))
    assert lines[0] == lines[1]


def test_a_block_is_the_next_prompt_of_the_agent_under_the_same_id(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks("test -e done.txt || { echo not yet >&2; exit 2; }"))
    steps = [["text", "Now it is."], ["write", str(project / "done.txt"), "x"]]
    with editor_of(tmp_path, DONE, steps) as editor:
        answer = editor.answer_to(editor.start_prompt(editor.open(project), identity="prompt 7"))
        cards = editor.cards()
    assert answer == {
        "jsonrpc": "2.0",
        "id": "prompt 7",
        "result": {
            **ANSWER,
            "_meta": {"turngate": {"outcome": "allowed", "continuations": 1, "reason": "", "notices": []}},
        },
    }
    assert prompts_of(tmp_path) == ["do it", BLOCKS]
    assert [each["id"] for each in received(tmp_path) if each["method"] == "session/prompt"] == [
        "prompt 7"
    ] * 2
    assert [card[1:] for card in cards if card[2] != "in_progress"] == [
        ("Turngate: blocked (1)", "failed"),
        ("Turngate: passed", "completed"),
    ]


def test_a_turn_ends_at_the_limit_and_the_user_reads_why(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", {**stop_hooks(NOT_YET), "turngate": {"limit": 2}})
    work = {
        "sessionUpdate": "tool_call",
        "toolCallId": "1",
        "title": "t",
        "kind": "read",
        "status": "completed",
    }
    with editor_of(tmp_path, [["update", work], *DONE]) as editor:
        session = editor.open(project)
        first, second = editor.prompt(session), editor.prompt(session, "again")
    assert prompts_of(tmp_path) == ["do it", BLOCKS, BLOCKS, "again", BLOCKS, BLOCKS]
    notices = [
        f'Turn ended after 2 continuations (the limit). Still blocked by: "{NOT_YET}".',
        "the last reason: not yet",
        f"to accept it: turngate gates accept {session} --why …",
    ]
    expected = {"outcome": "capped", "continuations": 2, "reason": "", "notices": notices}
    assert (verdict(first), verdict(second)) == (expected, expected)


def test_an_agent_that_does_nothing_more_is_let_go(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    with editor_of(tmp_path, DONE) as editor:
        found = verdict(editor.prompt(editor.open(project)))
    assert (found["outcome"], found["continuations"]) == ("stalled", 1)


def test_a_hook_that_halts_ends_the_turn(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks("""echo '{"continue": false, "stopReason": "enough"}'"""))
    with editor_of(tmp_path, DONE) as editor:
        found = verdict(editor.prompt(editor.open(project)))
    assert found == {"outcome": "halted", "continuations": 0, "reason": "enough", "notices": []}


def test_a_gate_that_fails_is_not_enforced(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks("echo broken >&2; exit 1"))
    with editor_of(tmp_path, DONE) as editor:
        found = verdict(editor.prompt(editor.open(project)))
        cards = editor.cards()
    assert found["outcome"] == "not enforced"
    assert "was NOT enforced: exit code 1: broken" in found["notices"][0]
    assert cards[-1][1:] == ("Turngate: not enforced", "failed")


def test_a_gate_that_is_not_approved_is_not_enforced(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    with editor_of(tmp_path, DONE) as editor:
        found = verdict(editor.prompt(editor.open(project)))
    assert (found["outcome"], prompts_of(tmp_path)) == ("not enforced", ["do it"])


def test_a_gate_that_the_agent_changes_in_its_session_blocks(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = write_settings(project, "turngate", stop_hooks("true"))
    with editor_of(tmp_path, [["write", str(settings), "{}"], *DONE]) as editor:
        editor.prompt(editor.open(project))
    assert "was changed" in prompts_of(tmp_path)[1] or "NOT enforced" in prompts_of(tmp_path)[1]


@pytest.mark.parametrize("words", ["--host acp", "--host codex", ""])
def test_a_command_of_the_agent_gives_no_event_of_its_session(
    words: str, project: Path, tmp_path: Path
) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    event = json.dumps(
        {
            "hook_event_name": "SessionStart",
            "session_id": "session-1",
            "source": "startup",
            "cwd": str(project),
        }
    )
    gives = ["run", "sh", "-c", f"echo '{event}' | {sys.executable} -m turngate hook {words}"]
    with editor_of(tmp_path, [gives, *DONE], DONE) as editor:
        editor.prompt(editor.open(project))
    [ran] = [each for each in received(tmp_path) if "code" in each]
    assert (ran["code"], ran["stdout"]) == (64, "")
    assert (
        "a command of the agent has given this event of its own session (TURNGATE_IN_ACP is set)"
        in ran["stderr"]
    )


@pytest.mark.parametrize("reason", ["max_tokens", "max_turn_requests", "refusal", "cancelled"])
def test_no_gate_is_asked_when_the_agent_has_not_finished(reason: str, project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    with editor_of(tmp_path, [["stop", reason]]) as editor:
        answer = editor.prompt(editor.open(project))
    assert answer["result"] == {"stopReason": reason}


def test_a_slow_gate_is_shown_while_it_runs(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks("until test -e seen; do sleep 0.05; done"))
    with editor_of(tmp_path, DONE) as editor:
        prompt = editor.start_prompt(editor.open(project))
        editor.wait_for(lambda message: '"in_progress"' in json.dumps(message))
        (project / "seen").touch()
        editor.answer_to(prompt)
        cards = editor.cards()
    assert cards == [
        ("tool_call", "Turngate: may the agent stop?", "in_progress"),
        ("tool_call_update", "Turngate: passed", "completed"),
    ]


def test_requests_of_the_agent_reach_the_editor_during_a_continuation(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    ask = ["request", "session/request_permission", {"options": [], "toolCall": {}}]
    with editor_of(tmp_path, DONE, [ask, *DONE]) as editor:
        prompt = editor.start_prompt(editor.open(project))
        request = editor.wait_for(lambda message: message.get("method") == "session/request_permission")
        editor.send({"id": request["id"], "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})
        assert verdict(editor.answer_to(prompt))["continuations"] == 1
    assert {"answer": {"outcome": {"outcome": "selected", "optionId": "yes"}}} in received(tmp_path)


# Cancel


def slow_gate(project: Path) -> None:
    gate = "echo $$ > started.new; mv started.new started; exec sleep 86399"
    write_settings(project, "turngate", stop_hooks(gate))


def wait_for_file(path: Path) -> str:
    while not path.exists():
        time.sleep(0.01)
    return path.read_text()


def wait_until_gone(pid: str) -> None:
    while Path(f"/proc/{pid.strip()}/stat").exists():
        time.sleep(0.01)


def cancel(editor: Editor, session: str, prompt: Any, *, by_request: bool) -> None:
    if by_request:
        editor.send({"method": "$/cancel_request", "params": {"requestId": prompt}})
    else:
        editor.send({"method": "session/cancel", "params": {"sessionId": session}})


@pytest.mark.parametrize("by_request", [False, True])
def test_a_cancellation_ends_the_gate_and_the_idle_agent_is_not_told(
    by_request: bool, project: Path, tmp_path: Path
) -> None:
    slow_gate(project)
    with editor_of(tmp_path, DONE) as editor:
        session = editor.open(project)
        prompt = editor.start_prompt(session)
        gate = wait_for_file(project / "started")
        cancel(editor, session, prompt, by_request=by_request)
        answer = editor.answer_to(prompt)
        wait_until_gone(gate)
        write_settings(project, "turngate", {})
        after = editor.prompt(session, "and now?")
    assert answer["result"] == {"stopReason": "cancelled"}
    assert after["result"]["stopReason"] == "end_turn"
    assert not [each for each in received(tmp_path) if "cancel" in str(each.get("method"))]


class Written(list[bytes]):
    """A writer that keeps what is written."""

    def write(self, data: bytes) -> None:
        self.append(data)

    async def drain(self) -> None:
        pass


def proxy_of(editor: Any, agent: Any) -> Proxy:
    return Proxy(editor, agent, lambda _folder: "")


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


@pytest.mark.parametrize("by_request", [False, True])
def test_a_cancellation_before_the_agent_has_its_prompts_is_answered_without_it(
    by_request: bool, tmp_path: Path
) -> None:
    async def cancel_early() -> tuple[list[bytes], Written, Written]:
        editor, agent = Written(), Written()
        proxy = proxy_of(editor, agent)
        session = proxy.sessions["s"] = Session(str(tmp_path / "acp.jsonl"), "s", str(tmp_path), is_new=True)
        session.start = asyncio.create_task(asyncio.sleep(86395))
        prompts: list[dict[str, Any]] = [
            {"id": number, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}
            for number in (1, 2)
        ]
        whole: list[dict[str, Any]] = [{"method": "session/cancel", "params": {"sessionId": "s"}}]
        each: list[dict[str, Any]] = [
            {"method": "$/cancel_request", "params": {"requestId": number}} for number in (1, 2)
        ]
        messages = [*prompts, *(each if by_request else whole)]
        sent = [passed(proxy.from_editor, line(message)) for message in messages]
        await asyncio.sleep(0)  # the tasks are told
        assert not proxy.requests
        return sent, editor, agent

    sent, editor, agent = asyncio.run(cancel_early())
    assert (b"".join(sent), agent) == (b"", [])
    assert [json.loads(line) for line in editor] == [
        {"jsonrpc": "2.0", "id": number, "result": {"stopReason": "cancelled"}} for number in (1, 2)
    ]


@pytest.mark.parametrize("continuation", [False, True])
def test_a_cancellation_while_the_agent_works_is_the_agents(
    continuation: bool, project: Path, tmp_path: Path
) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    works = [["text", "working"], ["wait for cancel"], ["stop", "cancelled"]]
    with editor_of(tmp_path, *([DONE] if continuation else []), works) as editor:
        session = editor.open(project)
        prompt = editor.start_prompt(session)
        editor.wait_for(lambda message: '"working"' in json.dumps(message))
        cancel(editor, session, prompt, by_request=False)
        answer = editor.answer_to(prompt)
    assert answer["result"] == {"stopReason": "cancelled"}
    assert prompts_of(tmp_path) == ["do it", *([BLOCKS] if continuation else [])]


def test_an_agent_that_ends_its_turn_although_it_was_cancelled_is_not_sent_back(
    project: Path, tmp_path: Path
) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    with editor_of(tmp_path, [["text", "working"], ["wait for cancel"]]) as editor:
        session = editor.open(project)
        prompt = editor.start_prompt(session)
        editor.wait_for(lambda message: '"working"' in json.dumps(message))
        cancel(editor, session, prompt, by_request=False)
        assert editor.answer_to(prompt)["result"] == ANSWER


def test_another_prompt_while_the_gates_run_takes_their_place(project: Path, tmp_path: Path) -> None:
    slow_gate(project)
    with editor_of(tmp_path, DONE) as editor:
        session = editor.open(project)
        first = editor.start_prompt(session)
        wait_until = wait_for_file(project / "started")
        write_settings(project, "turngate", {})
        second = editor.start_prompt(session, "something else")
        assert editor.answer_to(first)["result"] == ANSWER
        editor.answer_to(second)
        wait_until_gone(wait_until)


# Ends


def test_a_dead_agent_is_an_error_of_the_open_requests(project: Path, tmp_path: Path) -> None:
    with editor_of(tmp_path, [["child", "30"], ["exit", 2]]) as editor:
        answer = editor.prompt(editor.open(project))
        assert editor.process.wait(60) == 1
    assert answer["error"] == {"code": -32603, "message": "the agent ended with exit code 2"}


def test_an_agent_that_dies_while_the_gates_run_is_an_error(project: Path, tmp_path: Path) -> None:
    slow_gate(project)
    dies = [*DONE, ["stop", "end_turn"]]
    with editor_of(tmp_path, dies) as editor:
        prompt = editor.start_prompt(editor.open(project))
        gate = wait_for_file(project / "started")
        os.kill(agent_of(editor), signal.SIGKILL)
        assert editor.answer_to(prompt)["error"]["message"] == "the agent ended with exit code -9"
        assert editor.process.wait(60) == 137
        wait_until_gone(gate)


def agent_of(editor: Editor) -> int:
    children = Path(f"/proc/{editor.process.pid}/task/{editor.process.pid}/children").read_text().split()
    for child in children:
        if b"line_agent" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError(children)


def test_an_editor_that_leaves_ends_agent_and_gates(project: Path, tmp_path: Path) -> None:
    slow_gate(project)
    with editor_of(tmp_path, DONE) as editor:
        editor.start_prompt(editor.open(project))
        gate, agent = wait_for_file(project / "started"), agent_of(editor)
        assert editor.close() == 0
        wait_until_gone(gate)
        wait_until_gone(str(agent))


def test_a_signal_ends_agent_and_gates(project: Path, tmp_path: Path) -> None:
    slow_gate(project)
    with editor_of(tmp_path, DONE) as editor:
        editor.start_prompt(editor.open(project))
        gate, agent = wait_for_file(project / "started"), agent_of(editor)
        editor.process.terminate()
        assert editor.process.wait(60) == 143
        wait_until_gone(gate)
        wait_until_gone(str(agent))


def test_an_agent_that_never_answers_ends_with_its_editor(project: Path, tmp_path: Path) -> None:
    with editor_of(tmp_path, [["never"]]) as editor:
        editor.start_prompt(editor.open(project))
        assert editor.close() == 0


def test_an_agent_that_cannot_be_started_is_named() -> None:
    with started([*PROXY, "no-such-agent"]) as editor:
        assert editor.close() == 64
    assert editor.errors == "turngate: the agent no-such-agent cannot be started: No such file or directory\n"


# Sessions


def test_several_sessions_of_one_connection_are_asked_apart(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    free = tmp_path / "free"
    free.mkdir()
    with editor_of(tmp_path, DONE) as editor:
        gated, other = editor.open(project), editor.open(free)
        prompts = [editor.start_prompt(session, session) for session in (gated, other, gated)]
        found = [editor.answer_to(prompt)["result"] for prompt in prompts]
    # Two prompts of one session were open: the gates are asked at the end of the last one.
    assert sorted("_meta" in each for each in found) == [False, False, True]


def test_a_loaded_session_is_asked_and_its_transcript_begins_with_what_is_replayed(
    project: Path, tmp_path: Path, state: Path
) -> None:
    write_settings(project, "turngate", stop_hooks("cat > event.json"))
    with editor_of(tmp_path, DONE) as editor:
        editor.request("session/load", {"sessionId": "old", "cwd": str(project), "mcpServers": []})
        editor.prompt("old")
    event = json.loads((project / "event.json").read_text())
    messages = [
        json.loads(line)["message"] for line in Path(event["transcript_path"]).read_text().splitlines()
    ]
    texts = [each["content"] if each["role"] == "user" else each["content"][0]["text"] for each in messages]
    assert texts == ["an earlier task", "an earlier answer", "do it", "Done."]
    assert event["last_assistant_message"] == "Done."


@pytest.mark.parametrize("method", ["session/fork", "session/resume"])
def test_a_session_of_any_origin_is_asked(method: str, project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    with editor_of(tmp_path, DONE) as editor:
        editor.open(tmp_path)
        answer = editor.request(method, {"sessionId": "session-1", "cwd": str(project), "mcpServers": []})
        session = answer["result"].get("sessionId", "session-1")
        assert verdict(editor.prompt(session))["continuations"] == 1


def test_a_session_that_was_not_opened_here_is_named(project: Path, tmp_path: Path) -> None:
    with editor_of(tmp_path, [["stop", "end_turn"]]) as editor:
        editor.start_prompt("unknown")
        editor.close()
    assert "session unknown was not opened here, so its stops are not checked" in editor.errors


def test_another_version_of_the_protocol_is_named(tmp_path: Path) -> None:
    with editor_of(tmp_path) as editor:
        editor.request("initialize", {"protocolVersion": 2})
        editor.close()
    assert "speak version 2 of the protocol, so stops are not checked" in editor.errors


def test_gates_read_all_updates_of_a_turn(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks("cat > event.json"))
    words = MAX_UNREAD_BYTES // 100  # a part of them is read before the turn ends
    with editor_of(tmp_path, [["many", words], ["raw", "no json\n"], *DONE]) as editor:
        editor.prompt(editor.open(project))
    event = json.loads((project / "event.json").read_text())
    assert event["last_assistant_message"] == "word " * words + "Done."


# Hostile input


def test_a_huge_line_passes_and_the_next_one_is_read() -> None:
    huge = line({"id": 1, "method": "huge", "params": {"text": "x" * 80_000_000}})
    following = line({"id": 2, "method": "next"})
    written = Written()
    proxy = proxy_of(written, written)

    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(huge + following)
        reader.feed_eof()
        await pass_on(reader, written, lambda lines: passed(proxy.from_editor, lines))

    asyncio.run(read())
    assert b"".join(written) == huge + following
    assert [each.message for each in proxy.requests.values()] == [json.loads(huge), json.loads(following)]


def test_a_line_of_10_mb_passes(project: Path, tmp_path: Path) -> None:
    with editor_of(tmp_path, [["large", 10_000_000]]) as editor:
        session = editor.open(project)
        editor.prompt(session, "y" * 10_000_000)
        sizes = max(map(len, editor.lines))
    assert sizes > 10_000_000
    assert prompts_of(tmp_path) == ["y" * 10_000_000]


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"id": ' + b"9" * 5000 + b', "result": {}}',
        b'{"method": "session/update", "params": {"sessionId": "session-1", "update": null}}',
        b'{"method": "session/update", "params": {"sessionId": "session-1", "update": {"sessionUpdate": []}}}',
        b'{"method": "session/update", "params": [1]}',
        (
            b'{"method": "session/update", "params": {"sessionId": "session-1", "update": {"sessionUpdate": "tool_call",'
            b' "toolCallId": [], "kind": {}, "status": "completed", "rawInput": 5, "content": [5], "title": {}}}}'
        ),
        b'{"method": "session/update", "params": {"sessionId": "session-1", "update": {"sessionUpdate": "usage_update",'
        b' "used": ' + b"9" * 4300 + b"}}}",
        b'{"method": "session/prompt", "id": 1, "params": {"sessionId": "session-1", "prompt": 5}}',
        b'{"method": "session/new", "id": 99, "params": 5}',
        b'{"id": {}, "result": {}}',
        b'{"id": 1, "result": {"stopReason": "end_turn"}}',
        b"\xff\xfe\x00",
        b"nan",
    ],
)
def test_a_hostile_line_passes_and_the_stop_is_checked(line: bytes, project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    with editor_of(tmp_path, [["raw", (line + b"\n").decode("latin-1")], *DONE]) as editor:
        session = editor.open(project)
        editor.write(line + b"\n")
        found = verdict(editor.answer_to(editor.start_prompt(session, identity="mine")))
        assert line + b"\n" in editor.lines
    assert found["continuations"] > 0  # 3 if the agent calls a tool each time


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full"])
def test_an_editor_that_reads_no_log_has_its_stops_checked(
    closed: str, project: Path, tmp_path: Path
) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    (tmp_path / "script.json").write_text(json.dumps([DONE]))
    agent = [sys.executable, str(AGENT), str(tmp_path / "script.json")]
    with started(["sh", "-c", f'exec "$@" {closed}', "sh", *PROXY, *agent]) as editor:
        editor.request("initialize", {"protocolVersion": 2})  # a line of the log
        assert verdict(editor.prompt(editor.open(project)))["continuations"] == 1
        assert editor.close() == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in editor.lines)


def test_a_huge_id_is_kept(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    with editor_of(tmp_path, DONE) as editor:
        identity = editor.start_prompt(editor.open(project), identity="i" * 1_000_000)
        assert verdict(editor.answer_to(identity))["continuations"] == 1
