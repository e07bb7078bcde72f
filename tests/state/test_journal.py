import json
import os
import stat
from pathlib import Path

import pytest

from turngate.state import journal as journal_module
from turngate.state.journal import Journal
from turngate.state.paths import session_folder, state_folder


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_state_folder_is_ours_or_xdgs() -> None:
    home = os.path.expanduser("~")
    assert [
        state_folder(environ)
        for environ in (
            {"TURNGATE_STATE": "/s"},
            {"XDG_STATE_HOME": "/x"},
            {"XDG_STATE_HOME": "relative"},
            {},
        )
    ] == ["/s", "/x/turngate", f"{home}/.local/state/turngate", f"{home}/.local/state/turngate"]


@pytest.mark.parametrize(
    "session", ["../../etc", "", ".", "..", "a/b", "x" * 300, ".hidden", "new\nline", "\ud800"]
)
def test_no_session_id_leaves_the_sessions_folder(session: str) -> None:
    folder = session_folder("/s", session)
    assert (os.path.dirname(folder), os.path.basename(folder)[:3]) == ("/s/sessions", "id-")


def test_a_plain_session_id_is_its_own_folder() -> None:
    assert session_folder("/s", "workspace-abc123") == "/s/sessions/workspace-abc123"


def test_files_are_private(state: Path) -> None:
    journal = Journal(str(state))
    journal.record("s", {"kind": "hook"})
    journal.close()
    path = state / "sessions" / "s" / "journal.jsonl"
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, state / "sessions", state)]
    assert modes == [0o600, 0o700, 0o700, 0o700]


def test_a_journal_is_bounded_and_keeps_the_newest(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_JOURNAL_BYTES", 1000)
    journal = Journal(str(state))
    for number in range(100):
        journal.record("s", {"number": number})
    journal.close()
    folder = state / "sessions" / "s"
    newest, older = lines(folder / "journal.jsonl"), lines(folder / "journal.1.jsonl")
    numbers = [line["number"] for line in (*older, *newest)]
    assert numbers == list(range(100 - len(numbers), 100))
    assert all(path.stat().st_size <= 1000 for path in folder.iterdir())


def test_kept_texts_are_bounded_too(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_TEXTS", 3)
    journal = Journal(str(state))
    paths = [journal.keep("s", f"text {number}") for number in range(5)]
    assert paths[-1] is not None
    assert Path(paths[-1]).read_text() == "text 4"
    assert len(list(Path(paths[-1]).parent.iterdir())) == 3


def test_a_journal_may_be_used_again_after_it_was_closed(state: Path) -> None:
    journal = Journal(str(state))
    for number in range(3):
        journal.record("s", {"number": number})
        journal.close()
    assert [line["number"] for line in lines(state / "sessions" / "s" / "journal.jsonl")] == [0, 1, 2]


def test_values_that_json_cannot_hold_do_not_stop_the_journal(state: Path) -> None:
    journal = Journal(str(state))
    journal.record("s", {"odd": {1, 2}, "half": "\ud800", "raw": b"x"})
    journal.record("s", {"kind": "after"})
    journal.close()
    assert len(lines(state / "sessions" / "s" / "journal.jsonl")) == 2
