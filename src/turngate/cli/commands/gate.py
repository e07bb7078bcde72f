"""`turngate gate`: check one ready-made gate, as a hook command or for a person."""

import os
import sys

from turngate.cli.hook_command import EXIT_NOT_PASSED, run_hook_command
from turngate.cli.hook_stdin import NOT_JSON, read_object_from_stdin
from turngate.core.constants import STOP_EVENTS
from turngate.gates.quick_answer import quick_path, read_quick_answer
from turngate.hosts.input_fields import normalise
from turngate.state.paths import state_folder

PROJECT_VARIABLES = ("TURNGATE_PROJECT_DIR", "CLAUDE_PROJECT_DIR")  # set by agent programs


def run(words: list[str]) -> int:
    """Check the gate that the words after `turngate gate` name."""
    return run_hook_command("turngate gate", _run, words)


def _run(words: list[str]) -> int:
    if not words:
        return _report_no_words()
    if _asks_for_help(words):
        from turngate.cli.gate_help import help_text  # noqa: PLC0415 # lazy: loads all gates

        print(help_text(words))
        sys.exit()
    fields, note = _read_input()
    quick = _quick_path(words, fields) if fields else None
    answer = read_quick_answer(quick) if quick else None
    if answer is not None:
        print(answer, end="\n" if answer else "")
        return 0
    from turngate.cli.commands.gate_engine import check_gate  # noqa: PLC0415 # lazy: loads asyncio

    if note:
        print(f"turngate gate: {note}", file=sys.stderr)
    return check_gate(words, fields, quick)


def _read_input() -> tuple[dict[str, object] | None, str | None]:
    """Return the input of a hook of any host, with the names of Turngate beside its own, or why there is none."""
    fields, note = read_object_from_stdin()
    if fields is None:
        return None, note
    known = normalise(fields)
    event = known["hook_event_name"]
    if not event and "hook_event_name" not in fields and "session_id" not in fields:
        return None, NOT_JSON
    return {**known, **fields, **({"hook_event_name": event} if event else {})}, None


def _quick_path(words: list[str], fields: dict[str, object]) -> str | None:
    """Return the file of a stored answer, or None if the gate has to look at more than the tree."""
    session, agent = fields.get("session_id"), fields.get("agent_id")
    if fields.get("hook_event_name") not in STOP_EVENTS or fields.get("background_tasks"):
        return None
    if not isinstance(session, str) or not session:
        return None
    places = [
        _current_folder(),
        str(fields.get("cwd")),
        *(os.environ.get(name, "") for name in PROJECT_VARIABLES),
    ]
    return quick_path(state_folder(), session, str(agent or ""), words, places)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


def _asks_for_help(words: list[str]) -> bool:
    own = words[: words.index("--")] if "--" in words else words
    return "--help" in own or "-h" in own


def _report_no_words() -> int:
    """A hook `turngate gate` checks nothing: the usage on stdout with exit code 0 would look passed."""
    from turngate.cli.gate_help import help_text  # noqa: PLC0415 # lazy: loads all gates

    problem = "there is neither the name of a gate nor a command; see `turngate gate --help`"
    print(f"turngate gate: {problem}\n{help_text([])}", file=sys.stderr)
    return EXIT_NOT_PASSED
