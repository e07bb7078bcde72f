"""The sample history of `turngate serve --demo`, as if its last stop was a minute ago."""

import json
import os
from pathlib import Path

from turngate.history.journals import block_id
from turngate.state.files import make_private_dir
from turngate.state.journal import JOURNAL_FILE
from turngate.state.paths import TRANSCRIPT_FILE

SAMPLE = "examples/history/sample.jsonl"  # in the repository; the wheel has it beside this module


def write_sample(state: str, now: float) -> None:
    """Write the sessions to a state folder."""
    path = Path(__file__).with_name("sample.jsonl")
    path = path if path.exists() else Path(__file__).parents[3] / SAMPLE
    for line in path.read_text(encoding="utf-8").splitlines():
        session = json.loads(line)
        about = {"session_id": session["session"], "project": session["project"], "host": session["host"]}
        records = [{**each, **about, "time": now + each["time"]} for each in session["records"]]
        for mark in (each for each in records if each["kind"] == "mark"):
            block = records[mark["block"]]
            mark |= {"block": block_id(block), "gate": block["hook"]["id"], "blocked_at": block["time"]}
        folder = os.path.join(state, "sessions", session["session"])
        make_private_dir(folder)
        title = {"type": "user", "message": {"role": "user", "content": session["title"]}}
        for name, written in ((JOURNAL_FILE, records), (TRANSCRIPT_FILE, [title])):
            Path(folder, name).write_text(
                "".join(f"{json.dumps(each)}\n" for each in written), encoding="utf-8"
            )
