"""A stop that needs no hook: everything has passed and is as it was. Imports little.

Agent programs run `turngate hook` and `turngate gate` at every stop, and most stops end here. A stamp is a file that
says for one agent of one session that everything has passed: for which project, which tree, which settings and
approvals, which files and variables of the gates, and with which answer.
"""

import json
import os
import sys
import time
from contextlib import suppress

from turngate.cli.hook_input import NOT_JSON, read_object_from_stdin, refuse_command
from turngate.cli.project import configuration_files
from turngate.core.constants import STOP_EVENTS, TEAM_EVENTS
from turngate.gates.stored_state import digest, inputs_state, stat_file, write_file
from turngate.hosts.input_fields import normalize, recognize, variable_of_command
from turngate.state.paths import session_folder, state_folder

GATE_PROJECT_VARIABLES = ("TURNGATE_PROJECT_DIR", "CLAUDE_PROJECT_DIR")  # set by agent programs
VERSION = 5


def stamp_path(fields: dict[str, object], words: list[str]) -> str | None:
    """Return the file of the stamp for the agent that stops; None if more than files decides. `words`: what is asked."""
    event = fields.get("hook_event_name")
    session = str(fields.get("session_id") or "")
    agent = str(fields.get(TEAM_EVENTS.get(str(event), "agent_id")) or "")
    if event not in STOP_EVENTS or not session or fields.get("background_tasks"):
        return None
    asked = [*words, str(event), str(fields.get("agent_type", "")), os.environ.get("TURNGATE_TRUST", "")]
    name = f"{digest(chr(0).join(asked))}.stamp"
    return os.path.join(state_folder(), "gates", digest(f"{session}\0{agent}"), name)


def read_stamp(path: str) -> str | None:
    """Return the answer if everything is as it was when everything passed."""
    try:
        with open(path, encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return None
    project = stamp["project"]
    if (stamp["version"], stamp["settings"]) != (VERSION, settings_state(project)):
        return None
    if stamp["inputs"] != inputs_state(project, stamp["files"], stamp["variables"]):
        return None
    from turngate.gates.local_tree_state import local_tree_state  # noqa: PLC0415 # lazy: only where there is a stamp

    answer: str = stamp["answer"]
    return answer if stamp["tree"] == local_tree_state(project, state_folder()) else None


def write_stamp(
    path: str,
    settings: str | None,
    passed: tuple[str, tuple[str, ...], tuple[str, ...]] | None,  # `HeldPass`
    project: str,
    answer: str = "",
) -> None:
    """Remember that everything has passed; `settings`: their state before. Without them, forget it."""
    tree, files, variables = passed or ("", (), ())
    inputs = inputs_state(project, files, variables) if settings and tree else None
    if inputs:
        stamp = {"version": VERSION, "project": project, "settings": settings, "tree": tree, "answer": answer}
        write_file(path, json.dumps({**stamp, "inputs": inputs, "files": files, "variables": variables}))
        return
    with suppress(OSError):  # most often there is none
        os.unlink(path)


def record_cached_stop(project: str, fields: dict[str, object]) -> None:
    """Add a line to the journal of the session: the agent may stop, as everything has passed on the same files."""
    session = str(fields.get("session_id"))
    entry = {"time": time.time(), "session_id": session, "project": project, "kind": "cached"}
    line = json.dumps({**entry, "event": fields.get("hook_event_name")}, separators=(",", ":"))
    path = os.path.join(session_folder(state_folder(), session), "journal.jsonl")
    with suppress(OSError):  # there is no journal, or it cannot be written; the stop is allowed all the same
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "wb", buffering=0) as file:
            file.write(f"{line}\n".encode("utf-8", "replace"))


def settings_state(project: str) -> str | None:
    """Return what is the same only if settings and approvals are; None if they were changed just now."""
    trust = os.path.join(state_folder(), "trust")
    try:
        files = (*configuration_files(project, "host"), trust, f"{trust}/projects")
        return digest(f"{[stat_file(path) for path in files]}")
    except (OSError, ValueError):
        return None


def run_gate(words: list[str]) -> int:
    """Check the gate that the words after `turngate gate` name, unless its last answer is that of now."""
    own = words[: words.index("--")] if "--" in words else words
    if not words or "--help" in own or "-h" in own:
        from turngate.cli.commands.gate import print_help  # noqa: PLC0415 # lazy: loads all gates

        return print_help(words)
    fields, note = _read_gate_input()
    session = fields.get("session_id") if fields else None
    if fields and session and (by := variable_of_command(recognize(fields), session)):
        return refuse_command("turngate gate", by)
    try:
        current = os.getcwd()
    except OSError:  # it was deleted
        current = ""
    # What decides which project is meant.
    places = [
        current,
        str((fields or {}).get("cwd")),
        *(os.environ.get(each, "") for each in GATE_PROJECT_VARIABLES),
    ]
    stamp = stamp_path(fields, [*words, "", *places]) if fields else None
    answer = read_stamp(stamp) if stamp else None
    if answer is not None:
        print(answer, end="\n" if answer else "")
        return 0
    from turngate.cli.commands.gate import check_gate  # noqa: PLC0415 # lazy: loads asyncio and all gates

    if note:
        print(f"turngate gate: {note}", file=sys.stderr)
    return check_gate(words, fields, stamp)


def _read_gate_input() -> tuple[dict[str, object] | None, str | None]:
    """Return the input of a hook of any host, with the names of Turngate beside its own, or why there is none."""
    fields, note = read_object_from_stdin()
    if fields is None:
        return None, note
    known = normalize(fields)
    event = known["hook_event_name"]
    if not event and "hook_event_name" not in fields and "session_id" not in fields:
        return None, NOT_JSON
    return {**known, **fields, **({"hook_event_name": event} if event else {})}, None
