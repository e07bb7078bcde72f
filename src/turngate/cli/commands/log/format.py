"""The lines of `turngate log`: one per record, further ones for a long reason, with headings for the date, the project and the session."""

import json
import time
from collections.abc import Iterator
from typing import Any

from turngate.cli.console import conversation_text as fmt
from turngate.cli.console.streams import paint
from turngate.core.constants import AGENT_KEEPS
from turngate.core.text import MAX_SHOWN_LINE_CHARS, one_line, quote_name, strip_controls, truncate
from turngate.history.journals import hook_name
from turngate.state.process_stat import ProcessId, is_alive

MAX_HOOK_NAME_CHARS = 80
MAX_REASON_LINES = 10
REASON_INDENT = " " * 14


class JsonLines:
    def format(self, record: dict[str, Any]) -> Iterator[str]:
        yield json.dumps(record)

    def unfinished(self, *, running: bool) -> list[dict[str, Any]]:  # noqa: ARG002 - the records of starts are printed
        return []


class TextLines:
    """`verbose`: show reasons whole."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._heading, self._verbose = "", verbose
        # The process and the record of the start of each run, until the record of its end.
        self._started: dict[str, tuple[ProcessId, dict[str, Any]]] = {}

    def unfinished(self, *, running: bool) -> list[dict[str, Any]]:
        """Return records of the runs whose process was killed, once; with `running`, also of those that still run."""
        found = []
        for run, (process, record) in tuple(self._started.items()):
            is_running = is_alive(process)
            if running or not is_running:
                del self._started[run]
                outcome = "running" if is_running else "did not end"
                found.append({**record, "kind": "hook", "outcome": outcome})
        return found

    def format(self, record: dict[str, Any]) -> Iterator[str]:
        """Yield the record's lines, below a heading if the date, the project or the session has changed."""
        if record.get("kind") == "start":
            pid, started = record["process"]
            self._started[record["run"]] = ProcessId(int(pid), str(started)), record
            return
        self._started.pop(record.get("run", ""), None)
        line, style = _format(record)
        if line is None:
            return
        when = time.localtime(record.get("time", 0))
        session = f"session {record.get('session_id')}"
        heading = "  ".join(filter(None, (time.strftime("%Y-%m-%d", when), record.get("project"), session)))
        if heading != self._heading:
            self._heading = heading
            yield paint(strip_controls(heading), "bold")
        yield f"{time.strftime('%H:%M:%S', when)}  {paint(strip_controls(line), style)}"
        if record.get("kind") not in ("verdict", "turn_end", "notice", "cached", "mark", "accepted"):
            for text in self._further_lines(record.get("reason")):
                yield f"{REASON_INDENT}{text}".rstrip()

    def _further_lines(self, reason: str | None) -> list[str]:
        """Return the lines of a reason below the first, which is in the line of the run."""
        if self._verbose:
            lines = strip_controls(reason or "").strip().splitlines()
            return lines if len(lines) > 1 else []
        lines = lines_with_words(strip_controls(reason or ""))
        more = len(lines) - MAX_REASON_LINES
        shown = [truncate(line, MAX_SHOWN_LINE_CHARS) for line in lines[1:MAX_REASON_LINES]]
        return [*shown, f"… {more} more line{'s' * (more > 1)}: turngate log -v"] if more > 0 else shown


def _format(record: dict[str, Any]) -> tuple[str | None, str]:
    """Return the line of a record and its style, for `paint`: what did not go well stands out."""
    match record.get("kind"):
        case "verdict":
            verdict = _format_verdict(record)
            style = "alert" if record.get("unenforced") else fmt.headline_style(verdict)
            return f"{record.get('event')}: {verdict}", style
        case "turn_end":
            return _format_turn_end(record), "notice"
        case "notice":
            return f"! {one_line(record.get('text', ''))}", "notice"
        case "cached":
            return f"{record.get('event')}: allowed (unchanged since everything passed)", "plain"
        case "mark" | "accepted" as kind:
            said = f"block {record.get('block')} marked as {'wrong' if record.get('wrong') else 'right'}"
            why = f": {one_line(str(record['why']))}" if record.get("why") else ""
            return f"{said if kind == 'mark' else 'a person accepted this end'}{why}", "notice"
        case _:
            is_alert = record.get("outcome") in ("failed", "timeout", "waiting", "did not end")
            return f"  {_format_run(record)}", "alert" if is_alert else "plain"


def _format_turn_end(record: dict[str, Any]) -> str | None:
    """Name an end that the verdict above it does not: `turn ended (capped) after 3 continuations (the limit). …`."""
    ended_by = record.get("ended_by")
    if blocked := record.get("blocked_subagents"):
        return one_line(f"turn ended ({ended_by}): {fmt.format_blocked_subagents(blocked)}")
    if ended_by == "allowed":
        return None
    reason = record.get("reason") or ""
    rest = reason.removeprefix("Turn ended")
    return one_line(f"turn ended ({ended_by}){f': {rest}' if rest and rest == reason else rest}")


def _format_verdict(record: dict[str, Any]) -> str:
    """Name the verdict as `fire` does, with the hooks that blocked, or else the last line of the prompt or reason."""
    names = ", ".join(_quote(str(name)) for name in record.get("blocked_by", ()))
    if record.get("verdict") == "continue":
        verdict = f"blocked by {names}" if names else "blocked"
    else:
        verdict = _HALTS.get(record.get("ended_by", "")) or _question(record) or "allowed"
    failed = []
    for run in record.get("unenforced", ()):  # of a gate that was skipped there is no other record
        why = f": {one_line(str(run['why']))}" if run.get("outcome") == "skipped" and run.get("why") else ""
        failed.append(_quote(str(run.get("hook"))) + why)
    verdict += f" (not enforced: {', '.join(failed)})" if failed else ""
    lines = lines_with_words(record.get("prompt") or record.get("stop_reason"))
    return f"{verdict}: {lines[-1]}" if lines and not names else verdict


_HALTS = {"halted": "halted by a hook", "checkpoint": "waiting for the user"}


def _quote(name: str) -> str:
    return quote_name(one_line(name, MAX_HOOK_NAME_CHARS))


def _question(record: dict[str, Any]) -> str | None:
    """Return `ask` or `defer` if a hook leaves a tool call to the user."""
    permission = record.get("permission")
    return permission if permission in ("ask", "defer") else None


def lines_with_words(text: str | None) -> list[str]:
    """Return the lines that hold a letter or digit: the rulers of a test runner say nothing."""
    return [line for line in (text or "").strip().splitlines() if any(map(str.isalnum, line))]


def _format_run(record: dict[str, Any]) -> str:
    hook = record.get("hook", {})
    name = hook_name(hook)
    # The record of the verdict says which failures were not enforced.
    result = record.get("outcome", "")
    label = (_question(record) if result == "allow" else None) or fmt.outcome_label(result, blocking=True)
    notice = str(record.get("notice") or "")
    reason = lines_with_words(record.get("reason") or (notice if AGENT_KEEPS in notice else ""))
    why = f"  {truncate(reason[0], MAX_SHOWN_LINE_CHARS)}" if reason else ""
    cost = ""
    if (
        "evaluation" in record and hook.get("type") != "agent"
    ):  # that of a hook agent is in a record of its own
        spent = record["evaluation"]
        price = spent.get("cost_usd")
        tokens = spent.get("input_tokens", 0) + spent.get("output_tokens", 0)
        cost = f"  ({tokens:,} tokens{f', {fmt.format_dollars(price)}' if price is not None else ''})"
    seconds = " " * 8 if result in ("did not end", "running") else f"{record.get('seconds', 0):6.2f} s"
    return f"{label:<{fmt.LABEL_WIDTH}} {seconds}  {_quote(name)}{why}{cost}"
