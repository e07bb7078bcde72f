"""Where agents stopped in transcripts of the agent programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from turngate.history.past_stops import PastSession, PastStop, find_transcripts, read_past_session

TRANSCRIPTS = ROOT / "tests" / "data" / "transcripts"


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "user", "cwd": "/srv/app", "message": {"role": "user", "content": text}, **more}


def reply(identity: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"id": identity, "role": "assistant", "content": list(blocks)}
    return {"type": "assistant", "message": message, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
RESULT = user(
    "", message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a"}]}
)


def answers(path: Path) -> list[tuple[str, str]]:
    session = read_past_session(str(path))
    return [(stop.answer, stop.reply) for stop in session.stops]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([user("go"), reply("1", text("Done.")), user("thanks")], [("Done.", "thanks")]),
        (
            [
                user("go"),
                reply("1", text("Let me look.")),
                reply("1", CALL),
                RESULT,
                reply("2", text("Done.")),
            ],
            [("Done.", "")],
        ),
        ([user("go"), reply("1", text("Let me look."), CALL), RESULT], []),
        ([user("go"), reply("1", text("Part one.")), reply("1", text("Part two."))], [("Part two.", "")]),
        (
            [
                user("go"),
                reply("1", text("Done.")),
                user("Stop hook feedback:\n- red", isMeta=True),
                reply("2", text("Now.")),
            ],
            [("Done.", ""), ("Now.", "")],
        ),
        ([user("go"), reply("1", text("Done."), isSidechain=True), reply("2", CALL)], []),
        (
            [user("go"), user("also this"), reply("1", text("Both done.")), user("no"), user("not at all")],
            [("Both done.", "no")],
        ),
        ([user("go")], []),
    ],
    ids=["one", "work after words", "unfinished", "two lines", "hook", "subagent", "next words", "no answer"],
)
def test_an_agent_stopped_where_an_answer_is_followed_by_no_work(
    tmp_path: Path, records: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert answers(path) == expected


THREE = ["first answer", "second answer", "third answer"]


@pytest.mark.parametrize(
    ("name", "folder", "expected"),
    [
        ("codex", "/home/user/project", ["I am done.", "Now I am done."]),
        ("copilot", "/home/user/project", THREE),
        ("copilot-subagent", "/home/user/project", ["main done"]),
        ("gemini", "", THREE),
        ("qwen", "/home/user/project", THREE),
    ],
)
def test_the_stops_of_every_agent_program_are_found(name: str, folder: str, expected: list[str]) -> None:
    session = read_past_session(str(TRANSCRIPTS / f"{name}.jsonl"))
    assert session is not None
    assert (session.host, session.folder) == (name.removesuffix("-subagent"), folder)
    assert [stop.answer for stop in session.stops] == expected


def test_a_transcript_up_to_a_stop_ends_with_its_answer(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    first = [user("go"), reply("1", text("Done."), timestamp="2026-11-10T10:00:00Z")]
    lines = [json.dumps(record) for record in (*first, user("more"), reply("2", text("Done again.")))]
    path.write_text("\n".join(lines) + "\n")
    session = read_past_session(str(path))
    assert session is not None
    end = len("\n".join(lines[:2])) + 1
    assert session.stops[0] == PastStop(end, "Done.", 1794304800.0, "more")
    assert session.stops[1].end == path.stat().st_size


def test_a_file_that_is_not_a_transcript_has_no_stops(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\nnot JSON\n')
    assert read_past_session(str(path)) == PastSession(str(path), "", error="the format is not known")


def test_transcripts_are_found_where_the_programs_write_them(tmp_path: Path) -> None:
    state, home = tmp_path / "state", tmp_path / "home"
    files = {
        "claude": home / ".claude/projects/-srv-app/1.jsonl",
        "codex": home / ".codex/sessions/2026/11/10/rollout-1.jsonl",
        "gemini": home / ".gemini/tmp/abc/chats/session-1.jsonl",
        "qwen": home / ".qwen/projects/-srv-app/chats/1.jsonl",
        "copilot": home / ".copilot/session-state/1/events.jsonl",
        "turngate": state / "sessions/1/chat.jsonl",
    }
    for path in files.values():
        path.parent.mkdir(parents=True)
        path.touch()
    (home / ".claude/projects/-srv-app/notes.md").touch()
    every = {host: str(path) for host, path in files.items()}
    found = find_transcripts(str(home), str(state), (), 0)
    assert {host: path for path, host in found} == every
    assert find_transcripts(str(home), str(state), ["qwen"], 0) == [(every["qwen"], "qwen")]
    assert find_transcripts(str(home), str(state), (), 4e9) == []
