"""Which program wrote a transcript, and where its last tool call is."""

import os
from pathlib import Path

import pytest

from tests.support.transcripts import talk
from turngate.transcript.format_detection import CALLS, MAX_LINE_BYTES, recognize_format, tool_call_position

RECORDED = Path(__file__).parents[1] / "data" / "transcripts"
RECORDED_BY_HOSTS = Path(__file__).parents[1] / "hosts" / "recorded"


def format_of(path: Path) -> str | None:
    file = os.open(path, os.O_RDONLY)
    try:
        return recognize_format(file)
    finally:
        os.close(file)


@pytest.mark.parametrize("name", ["codex", "qwen", "gemini", "copilot", "qwen-subagent", "copilot-subagent"])
def test_the_transcript_of_a_host_is_recognized(name: str) -> None:
    assert format_of(RECORDED / f"{name}.jsonl") == name.partition("-")[0]


@pytest.mark.parametrize(
    "path", sorted(RECORDED_BY_HOSTS.glob("*/transcript.*")), ids=lambda path: path.parent.name
)
def test_what_make_hosts_has_recorded_is_recognized(path: Path) -> None:
    assert format_of(path) == path.parent.name


@pytest.mark.parametrize("style", [(b'":', b'":'), (b'":', b'": ')], ids=["compact", "with spaces"])
def test_a_transcript_of_claude_code_is_recognized_by_its_messages(
    style: tuple[bytes, bytes], tmp_path: Path
) -> None:
    builder = talk().raw(b'{"type":"summary"}')
    builder.lines = [line.replace(*style) for line in [b'{"type":"mode"}', *builder.lines]]
    builder.write(tmp_path / "t.jsonl")
    assert format_of(tmp_path / "t.jsonl") == "claude"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        '{"type":"message","text":"hello"}\n',
        '{"role":"user","content":"go"}\n{"role":"assistant","content":"done"}\n',
        '{"message":{"role":"user","text":"go"}}\n',
        '{"role":"user","message":{"content":[{"type":"text","text":"go"}]}}\n',
        '[{"message":{"role":"user","content":"go"}}]',
        "user: go\nassistant: done\n",
    ],
)
def test_any_other_format_is_not_known(text: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text)
    assert format_of(tmp_path / "t") is None
    assert tool_call_position(str(tmp_path / "t")) is None


@pytest.mark.parametrize("name", ["codex", "qwen", "gemini", "copilot"])
def test_the_last_tool_call_of_a_host_is_found(name: str) -> None:
    path = RECORDED / f"{name}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if any(mark in line for mark in CALLS[name]))
    assert tool_call_position(str(path)) == sum(map(len, lines[:last])) > 0


def test_no_tool_call_and_no_knowledge_are_different(tmp_path: Path) -> None:
    path = talk().says('"type":"tool_use"').write(tmp_path / "t.jsonl")
    assert tool_call_position(path) == -1
    assert tool_call_position(str(tmp_path / "none")) is None
    assert tool_call_position("") is None
    assert tool_call_position(talk().runs("ls").write(tmp_path / "t.jsonl")) not in (None, -1)


def test_a_line_that_is_too_long_to_be_read_may_be_a_tool_call(tmp_path: Path) -> None:
    builder = talk().runs("ls")
    offset = sum(len(line) + 1 for line in builder.lines)
    path = builder.raw(b'{"text":"' + b"x" * (2 * MAX_LINE_BYTES) + b'"}').says("done").write(tmp_path / "t")
    assert tool_call_position(path) == offset
