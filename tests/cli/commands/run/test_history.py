"""The file of earlier messages, whatever it holds."""

import json
import os
from pathlib import Path

import pytest

from turngate.cli.commands.run.screen_ui import MAX_ENTRY_BYTES, MAX_HISTORY_ENTRIES, InputHistory


def test_lines_that_are_not_messages_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b'"a"\n' + b"[" * 100_000 + b'\n{}\n\xff\n"b"\n"c')
    assert list(InputHistory(str(path)).load_history_strings()) == ["b", "a"]


def test_only_the_end_of_a_large_file_is_read_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "history"
    with path.open("wb") as file:
        file.truncate(64 * 1024 * 1024)  # zeros that take no room on the disk
        file.seek(0, os.SEEK_END)
        file.write(b'\n"last"\n')
    read = list(InputHistory(str(path)).load_history_strings())
    assert (read, path.stat().st_size < 2 * 1024 * 1024) == (["last"], True)
    assert list(InputHistory(str(path)).load_history_strings()) == ["last"]


def test_the_newest_messages_are_read_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "history"
    messages = [f"m{number}" for number in range(2 * MAX_HISTORY_ENTRIES + 1)]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in messages))
    newest = messages[-MAX_HISTORY_ENTRIES:]
    assert list(InputHistory(str(path)).load_history_strings()) == newest[::-1]
    assert [json.loads(line) for line in path.read_text().splitlines()] == newest


def test_a_message_that_would_push_out_the_others_is_not_stored(tmp_path: Path) -> None:
    history = InputHistory(str(tmp_path / "state" / "history"))
    for message in ("a", "x" * MAX_ENTRY_BYTES, "b"):
        history.store_string(message)
    assert list(history.load_history_strings()) == ["b", "a"]


@pytest.mark.parametrize("name", ["history", "history.new"])
def test_a_named_pipe_is_neither_read_nor_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / "history"
    path.write_text('"a"\n' * (2 * MAX_HISTORY_ENTRIES + 1))  # enough to be rewritten
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    # Another process has the pipe open: a write to it would succeed.
    reader = os.open(tmp_path / name, os.O_RDWR | os.O_NONBLOCK)
    try:
        history = InputHistory(str(path))
        history.store_string("b")
        read = list(history.load_history_strings())
        with pytest.raises(BlockingIOError):
            os.read(reader, 10)
    finally:
        os.close(reader)
    expected = [] if name == "history" else ["b", *["a"] * (MAX_HISTORY_ENTRIES - 1)]
    assert read == expected
