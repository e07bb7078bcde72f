"""The transcript: the form of its records, when they are on disk, and the reader of the last answer."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.paths import SEEDS
from tests.support.sessions import block_first, lines, records, scripted_session
from tests.support.subagents import parent
from turngate.core.conversation.messages import (
    Message,
    Reply,
    Text,
    ToolResult,
    ToolResults,
    ToolUse,
    Usage,
    UserMessage,
)
from turngate.core.events.events import StopEvent
from turngate.core.events.plugin_events import SubagentStoppingEvent
from turngate.core.hooks.kinds import CallbackHook
from turngate.core.verdict.decisions import Block
from turngate.plugins.handlers import Plugins
from turngate.transcript.reader import message_of, read_last_assistant_message, read_records
from turngate.transcript.writer import Transcript

ASKED = Reply(
    (
        Text("let me look"),
        ToolUse("t1", "Bash", {"command": "npm test"}),
        ToolUse("t2", "Read", {"file_path": "/a"}),
    ),
    "tool_use",
    Usage(input_tokens=10, output_tokens=3, cache_read_input_tokens=7),
    "scripted:x",
    "msg-1",
)
ANSWERED = ToolResults((ToolResult("t1", "ok"), ToolResult("t2", "no such file", is_error=True)))
DONE = Reply((Text("all"), Text("done")), model="scripted:x", id="msg-2")
TALK: tuple[Message, ...] = (UserMessage("go"), UserMessage("it is Monday", "context"), ASKED, ANSWERED, DONE)


def written(path: Path, *messages: Message, **meta: Any) -> list[str]:
    transcript = Transcript(str(path), "s-1", "/p")
    for message in messages:
        transcript.write_message(message, **meta)
    transcript.close()
    return lines(path)


# The shape


@pytest.mark.req("C-28")
def test_a_conversation_has_the_shape_that_scripts_for_claude_code_read(tmp_path: Path) -> None:
    written(tmp_path / "chat.jsonl", *TALK)
    found = records(str(tmp_path / "chat.jsonl"))
    said = [record for record in found if "message" in record]
    uuids = [record.pop("uuid") for record in said]
    assert [record.pop("parentUuid") for record in said] == [None, *uuids[:-1]]
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("timestamp")) for record in said
    )
    common: dict[str, Any] = {"sessionId": "s-1", "cwd": "/p", "isSidechain": False}
    no_usage: dict[str, Any] = dict.fromkeys(
        ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"), 0
    )
    assert found == [
        {"type": "user", **common, "message": {"role": "user", "content": "go"}},
        {
            "type": "user",
            **common,
            "isMeta": True,
            "origin": "context",
            "message": {"role": "user", "content": "it is Monday"},
        },
        {"type": "tool_call", "tool_name": "bash", "script": "npm test"},
        {"type": "tool_call", "tool_name": "read", "input": {"file_path": "/a"}},
        {
            "type": "assistant",
            **common,
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "let me look"},
                    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "npm test"}},
                    {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "/a"}},
                ],
                "model": "scripted:x",
                "id": "msg-1",
                "stop_reason": "tool_use",
                "usage": {**no_usage, "input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 7},
            },
        },
        {
            "type": "user",
            **common,
            "message": {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "ok", "is_error": False},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "no such file", "is_error": True},
                ],
            },
        },
        {
            "type": "assistant",
            **common,
            "message": {
                "role": "assistant",
                "content": [{"type": "text", "text": "all"}, {"type": "text", "text": "done"}],
                "model": "scripted:x",
                "id": "msg-2",
                "stop_reason": "end_turn",
                "usage": no_usage,
            },
        },
    ]


@pytest.mark.req("C-28")
def test_records_are_compact_and_tool_calls_begin_as_people_grep_for_them(tmp_path: Path) -> None:
    found = written(tmp_path / "chat.jsonl", *TALK)
    assert [json.dumps(json.loads(line), separators=(",", ":")) for line in found] == found
    assert found[2:4] == [
        '{"type":"tool_call","tool_name":"bash","script":"npm test"}',
        '{"type":"tool_call","tool_name":"read","input":{"file_path":"/a"}}',
    ]


def test_messages_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    continued = UserMessage("[Stop hook requested continuation]\ngo on", "stop_hook")
    odd = UserMessage('half a \N{FAMILY}, a "quote", a \\ and\r\n\u2028 line ends')
    written(tmp_path / "chat.jsonl", *TALK, continued, odd)
    read = [message_of(record) for record in read_records(str(tmp_path / "chat.jsonl"))]
    assert [message for message in read if message] == [*TALK, continued, odd]


def test_half_a_surrogate_pair_does_not_stop_the_writer(tmp_path: Path) -> None:
    written(tmp_path / "chat.jsonl", UserMessage("bad \ud800 text"))
    assert records(str(tmp_path / "chat.jsonl"))[0]["message"]["content"] == "bad ? text"


def test_half_a_line_of_a_killed_process_does_not_swallow_the_next_record(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"type":"user","message":{"role":"us')
    written(path, UserMessage("go"))
    assert [message_of(record) for record in read_records(str(path))] == [UserMessage("go")]


def test_only_its_owner_may_read_a_conversation(tmp_path: Path) -> None:
    written(tmp_path / "state" / "chat.jsonl", UserMessage("secret"))
    modes = [
        os.stat(path).st_mode & 0o777 for path in (tmp_path / "state", tmp_path / "state" / "chat.jsonl")
    ]
    assert modes == [0o700, 0o600]


def test_a_resumed_conversation_is_one_chain(project: Path) -> None:
    for prompt in ("one", "two"):
        result = scripted_session(project, "done", session_id="s").play(prompt)
    said = [record for record in records(result.transcript_path) if "uuid" in record]
    assert [record["parentUuid"] for record in said] == [None, *(record["uuid"] for record in said[:-1])]


# Hook scripts that grep


def grep(project: Path, command: str, *replies: Any) -> str:
    """Return the output of a Stop hook that reads the transcript."""
    scripted_session(
        project, *replies, stop=f"{command} > found; true", permission_mode="bypassPermissions"
    ).play("go")
    return (project / "found").read_text().strip()


RAN = {"tool": "Bash", "input": {"command": ": npm run test -- --ci"}}
GREPS = [
    ("""tail -n 50 "$MUX_TRANSCRIPT_PATH" | grep '"role":"assistant"' | tail -1 | grep -c 'all done'""", "1"),
    ("""grep -c '"tool_name":"bash".*"script":".*test' "$MUX_TRANSCRIPT_PATH" """, "1"),
    ("""grep -c '"tool_name":"bash".*"script":".*lint' "$MUX_TRANSCRIPT_PATH" """, "0"),
    ("""grep -c '"type":"assistant"' "$TURNGATE_TRANSCRIPT_PATH" """, "2"),
    ("""p=$(sed 's/.*"transcript_path":"\\([^"]*\\)".*/\\1/'); grep -c '"name":"Bash"' "$p" """, "1"),
]


@pytest.mark.req("C-28", "S3-40")
@pytest.mark.parametrize(("command", "found"), GREPS)
def test_the_greps_of_hook_scripts_find_their_records(project: Path, command: str, found: str) -> None:
    assert grep(project, command, RAN, {"texts": ["so,", "all done"]}) == found


@pytest.mark.req("C-28")
def test_a_jq_like_reader_gets_the_last_answer(project: Path) -> None:
    reader = (
        "import json,sys; t=[json.loads(l) for l in open(json.load(sys.stdin)['transcript_path'])]; "
        "print([b['text'] for r in t if r['type']=='assistant' for b in r['message']['content'] if b['type']=='text'][-1])"
    )
    assert grep(project, f'{sys.executable} -c "{reader}"', RAN, "all done") == "all done"


@pytest.mark.req("S3-40")
def test_the_checklist_hook_counts_open_boxes_in_a_real_conversation(project: Path) -> None:
    hook = SEEDS / "003_checklist.py.txt"
    agent = scripted_session(
        project, "- [x] read\n- [ ] write", "- [x] write", stop=f"{sys.executable} {hook}"
    )
    result = agent.play("go")
    assert agent.heard()[-1] == (
        "[Stop hook requested continuation]\n"
        "Found 1 incomplete tasks. Please complete all tasks before finishing."
    )
    assert (result.outcome, result.continuations) == ("completed", 1)


@pytest.mark.req("X-19")
def test_a_continuation_is_marked_as_not_the_users(project: Path) -> None:
    result = scripted_session(project, "answer {n}", stop=block_first(1)).play("go")
    said = [r for r in records(result.transcript_path) if r["type"] == "user"]
    assert [(r.get("isMeta"), r.get("origin"), r["message"]["content"]) for r in said] == [
        (None, None, "go"),
        (True, "stop_hook", "[Stop hook requested continuation]\nrun the tests"),
    ]


@pytest.mark.parametrize("given", [None, 5, "ls", ["a"]])
@pytest.mark.parametrize("name", ["Bash", "Read"])
def test_an_input_that_is_not_an_object_does_not_stop_the_writer(
    tmp_path: Path, name: str, given: Any
) -> None:
    written(tmp_path / "chat.jsonl", Reply((ToolUse("t1", name, given),)))
    [_, record] = records(str(tmp_path / "chat.jsonl"))
    assert message_of(record) == Reply((ToolUse("t1", name, {}),))


# On disk before any hook


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the processors busy with other processes."""
    burning = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], stdout=subprocess.DEVNULL)
        for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


@pytest.mark.req("S0-26")
def test_under_load_the_hook_finds_the_last_answer_fifty_times_out_of_fifty(project: Path) -> None:
    hook = """tail -n 1 "$TURNGATE_TRANSCRIPT_PATH" | grep -c '"role":"assistant".*the very last word' >> found"""
    with busy(3):
        for _ in range(50):
            scripted_session(project, "{n}: this is the very last word", stop=hook).play("go")
    assert lines(project / "found") == ["1"] * 50


class SyncedSizes:
    """Notes up to where each file was synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: dict[str, int] = {}
        self._sync = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self)

    def __call__(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        self._sync(fd)
        self.sizes[os.readlink(f"/proc/self/fd/{fd}")] = size

    def unsynced(self, path: str) -> int:
        """Return how many bytes of a file may not be on disk yet."""
        return os.path.getsize(path) - self.sizes.get(path, 0)


@pytest.mark.req("S0-26")
def test_the_transcript_is_synced_before_each_stop_hook_starts(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test cannot cut the power; it can show that the system was asked to write, and that nothing came after."""
    synced, left = SyncedSizes(monkeypatch), list[int]()

    def look(event: StopEvent) -> Block | None:
        left.append(synced.unsynced(event.transcript_path))
        return Block("again") if len(left) == 1 else None

    scripted_session(project, "answer {n}", stop=CallbackHook(look)).play()
    assert left == [0, 0]


@pytest.mark.req("S0-26", "S4-42")
def test_a_subagents_transcript_is_synced_before_its_hooks_start(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, left = SyncedSizes(monkeypatch), list[int]()

    def look(event: StopEvent) -> Block | None:
        assert event.subagent is not None
        left.append(synced.unsynced(event.subagent.transcript_path))
        return Block("again") if len(left) == 1 else None

    parent(project, "answer {n}", rules=[rule(CallbackHook(look), "SubagentStop")]).play()
    assert left == [0, 0]


@pytest.mark.req("S4-42")
def test_a_subagents_transcript_is_synced_before_a_plugin_is_asked(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins, synced, left = Plugins(), SyncedSizes(monkeypatch), list[int]()

    def look(event: SubagentStoppingEvent, _: object) -> dict[str, Any] | None:
        [path] = state.glob(f"sessions/*/subagents/{event.agent_id}.jsonl")
        left.append(synced.unsynced(str(path)))
        return {"allow": False, "prompt": "again"} if len(left) == 1 else None

    plugins.on("subagent_stopping", look)
    parent(project, "answer {n}", plugins=plugins).play()
    assert left == [0, 0]


@pytest.mark.req("S0-26")
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop"])
def test_hooks_of_all_events_find_the_answer_that_they_are_about(project: Path, event: str) -> None:
    find = """grep -c '"role":"assistant".*looking around' "$TURNGATE_TRANSCRIPT_PATH" > found"""
    reply = {"text": "looking around", "tool": "Bash", "input": {"command": "true"}}
    scripted_session(project, reply, "done", rules=[rule(find, event)], allow=["Bash"]).play()
    assert lines(project / "found") == ["1"]


# The reader


def line(role: str, content: Any, kind: str = "assistant") -> str:
    return json.dumps({"type": kind, "message": {"role": role, "content": content}})


def text(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": each} for each in texts]


TOOL_ONLY = [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]
NOISE = line("user", "go on", "user")

LAST: list[tuple[str, list[str], str | None]] = [
    ("text blocks are joined", [line("assistant", text("a", "b"))], "a\nb"),
    ("the newest counts", [line("assistant", text("old")), line("assistant", text("new"))], "new"),
    ("document 004", [line("assistant", text("from 004"), "message"), NOISE], "from 004"),
    ("tools are passed over", [line("assistant", text("said")), line("assistant", TOOL_ONLY)], "said"),
    ("text beside a tool", [line("assistant", [*text("said"), *TOOL_ONLY])], "said"),
    ("blank text", [line("assistant", text("said")), line("assistant", text(" "))], "said"),
    ("a plain string", [line("assistant", "said")], "said"),
    ("only a user", [NOISE], None),
    ("nothing", [], None),
    (
        "a cut-off last line",
        [line("assistant", text("said")), '{"type":"assistant","message":{"role":"assis'],
        "said",
    ),
    ("no JSON", [line("assistant", text("said")), "not JSON", "", "[]", "5", "null", '"x"'], "said"),
    (
        "odd shapes",
        [
            line("assistant", text("said")),
            '{"message":5}',
            '{"message":{"role":"assistant","content":5}}',
            '{"message":{"role":"assistant","content":[5,{"type":"text","text":5}]}}',
        ],
        "said",
    ),
]


@pytest.mark.req("S4-38", "S4-39", "S4-40", "S4-41", "C-28")
@pytest.mark.parametrize(("content", "found"), [case[1:] for case in LAST], ids=[case[0] for case in LAST])
@pytest.mark.parametrize("end", ["\n", ""], ids=["whole", "no line end"])
def test_the_last_answer_is_found(tmp_path: Path, content: list[str], found: str | None, end: str) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(content) + (end if content else ""))
    assert read_last_assistant_message(str(path)) == found


@pytest.mark.req("S4-41")
def test_a_missing_file_a_folder_and_garbage_are_not_errors(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(os.urandom(200_000))
    paths = [tmp_path / "absent", tmp_path, garbage, tmp_path / "absent" / "below", "a\0b", "\ud800"]
    assert [read_last_assistant_message(str(path)) for path in paths] == [None] * 6


@pytest.mark.req("S4-41")
def test_garbage_after_the_answer_does_not_hide_it(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(line("assistant", text("café")).encode() + b"\n\xff\xfe\x00\x80{\n" + b"\x00" * 5000)
    assert read_last_assistant_message(str(path)) == "café"


@pytest.mark.req("S4-39")
@pytest.mark.parametrize(("after", "found"), [(49, "said"), (50, None)])
@pytest.mark.parametrize("width", [1, 5000], ids=["short lines", "long lines"])
def test_the_fiftieth_line_from_the_end_is_read_and_the_one_before_is_not(
    tmp_path: Path, after: int, found: str | None, width: int
) -> None:
    path = tmp_path / "chat.jsonl"
    noise = line("user", "x" * width, "user")
    path.write_text("\n".join([noise, line("assistant", text("said")), *[noise] * after]) + "\n")
    assert read_last_assistant_message(str(path)) == found


@pytest.mark.req("S4-39")
def test_a_hundred_thousand_lines_cost_no_more(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(f"{NOISE}\n" * 100_000 + line("assistant", text("said")) + "\n" + f"{NOISE}\n" * 9)
    assert read_last_assistant_message(str(path)) == "said"


@pytest.mark.req("S4-39")
def test_data_far_before_the_end_is_never_read(tmp_path: Path) -> None:
    """The file has a hole of a terabyte, so reading it from the beginning would not end."""
    path = tmp_path / "chat.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + line("assistant", text("said")).encode() + b"\n")
    assert read_last_assistant_message(str(path)) == "said"


def test_the_reader_finds_what_a_session_wrote(project: Path) -> None:
    result = scripted_session(
        project, RAN, {"texts": ["so,", "all done"]}, permission_mode="bypassPermissions"
    ).play()
    assert read_last_assistant_message(result.transcript_path) == "so,\nall done"


# A file that another process deletes


@pytest.mark.parametrize("end", [Transcript.sync, Transcript.close])
def test_a_deleted_transcript_is_written_again(tmp_path: Path, end: Callable[[Transcript], None]) -> None:
    path = tmp_path / "session" / "chat.jsonl"
    transcript = Transcript(str(path), "s-1", "/p")
    transcript.write_record({"n": 1})
    shutil.rmtree(path.parent)
    transcript.write_record({"n": 2})
    end(transcript)
    transcript.close()
    assert (records(str(path)), transcript.restored) == ([{"n": 1}, {"n": 2}], 1)


def test_a_transcript_that_was_replaced_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    transcript = Transcript(str(path), "s-1", "/p")
    transcript.write_record({"n": 1})
    path.unlink()
    path.write_text('{"n": "edited"}')
    transcript.sync()
    transcript.write_record({"n": 2})
    transcript.close()
    assert records(str(path)) == [{"n": "edited"}, {"n": 2}]


def test_the_user_learns_that_the_transcript_was_deleted_and_hooks_read_it_whole(project: Path) -> None:
    delete = {"tool": "Bash", "input": {"command": "rm -r $TURNGATE_STATE/sessions/s-1/chat.jsonl"}}
    hook = "grep -c '\"role\":' $TURNGATE_STATE/sessions/s-1/chat.jsonl > seen"
    agent = scripted_session(
        project, delete, "done", stop=hook, session_id="s-1", permission_mode="bypassPermissions"
    )
    result = agent.play()
    assert (project / "seen").read_text() == "4\n"
    said = "the transcript was deleted or replaced while the session used it; it continues in "
    assert [notice for notice in result.notices if "transcript" in notice] == [said + result.transcript_path]
    assert len(records(result.transcript_path)) == 6
