"""What `turngate runs` says about children: a table, the story of one, and the same as JSON."""

import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from turngate.cli.commands.runs_summary import Chain, shortest, state_of
from turngate.core.subagent_run import SubagentRun
from turngate.core.text import printable, truncate

WIDE = 100  # columns
BY_HAND = "steered by hand"  # what the supervisor writes down as the reason
_WHAT, _STATE, _SINCE, _FOR, _BACK, _SESSION = 31, 15, 8, 10, 6, 8
_DIM, _BRIGHT = "\033[2m", "\033[0m"


# The table


def listing(found: Sequence[Chain], now: float, *, every: bool, colour: bool) -> Iterator[str]:
    wide = shortest(found)
    what = _WHAT - (wide - 8)
    names = (
        ("WHAT", what),
        ("STATE", _STATE),
        ("SINCE", _SINCE),
        ("FOR", _FOR),
        ("BACK", _BACK),
        ("SESSION", _SESSION),
    )
    yield (f"  {'ID':<{wide}}" + "".join(f"  {name:<{width}}" for name, width in names)).rstrip()
    for chain in found:
        dim, back = (_DIM, _BRIGHT) if colour and not chain.open else ("", "")
        cells = (
            (chain.what, what),
            (chain.state, _STATE),
            (_clock(chain.began, now), _SINCE),
            (_long(chain.seconds(now)), _FOR),
            (_back(chain.last), _BACK),
            (printable(chain.last.parent)[:_SESSION], _SESSION),
        )
        line = "".join(f"  {truncate(text, width):<{width}}" for text, width in cells)
        yield dim + (f"{'*' if chain.open else ' '} {chain.id[:wide]:<{wide}}{line}").rstrip() + back
        for note in (*_notes(chain), *(_runs(chain) if every else ())):
            yield dim + truncate(f"  {'':<{wide}}  {note}", WIDE) + back
    yield ""
    yield _sum(found)


def _notes(chain: Chain) -> Iterator[str]:
    if chain.last.parent_agent:
        yield f"for the subagent {chain.last.parent_agent}"
    if why := _why(chain.last):
        yield why if why == BY_HAND else f"sent back: {why}"
    if chain.last.error and chain.last.outcome != "ok":
        yield f"{chain.state}: {printable(chain.last.error)}"
    if chain.left:
        yield "whoever ran it is gone; `turngate runs recover` goes on with it"
    elif chain.unread:
        yield "its report waits until that session is resumed"


def _runs(chain: Chain) -> Iterator[str]:
    for number, run in enumerate(chain.runs, 1):
        yield f"run {number}: {state_of(run)}{_took(run)}: {printable(run.prompt)}"


def _sum(found: Sequence[Chain]) -> str:
    count = sum(chain.open for chain in found)
    left = sum(chain.left for chain in found)
    said = f"{count} at work (*)" + (f", {left} of them left by a process that died" if left else "")
    return f"{said}, {len(found) - count} finished; `turngate runs show ID` has everything"


# The story of one


def story(chain: Chain, now: float) -> Iterator[str]:
    last = chain.last
    yield f"{chain.what}: {chain.state}"
    for name, value in _facts(chain, now):
        if value:
            yield f"  {name:<14}{value}"
    yield from _text("Task", last.task)
    for number, run in enumerate(chain.runs, 1):
        how = "" if not run.replaces else ", sent back by a hook" if run.by_hook else ", steered by hand"
        yield f"\nRun {number} ({run.id[:8]}{how}): {state_of(run)}{_took(run)}"
        for name, value in _facts_of_run(run):
            if value:
                yield f"  {name:<14}{value}"
        if run.prompt != last.task:
            yield from _text("  Prompt", run.prompt, "    ")
    if last.state == "steering":
        yield from _text("\nIt goes on with", last.next_prompt)
    if last.result:
        yield from _text("\nResult", last.result)
    for note in _notes(chain):
        if note.startswith(("whoever", "its report")):
            yield f"\n{note[0].upper()}{note[1:]}."


def _facts(chain: Chain, now: float) -> Iterator[tuple[str, str]]:
    last = chain.last
    yield "id", chain.id
    yield "subagent", last.agent_id
    yield "session", last.parent
    yield "parent", last.parent_agent
    yield "project", chain.project
    yield "model", str(last.launch.get("model", ""))
    yield "since", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(chain.began))
    yield "for", _long(chain.seconds(now))
    yield "sent back", f"{_back(last)} times" if last.steer_count else ""
    yield "the last time", _why(last)
    yield "taken over", f"{last.recoveries} times" if last.recoveries else ""
    yield "transcript", last.transcript


def _facts_of_run(run: SubagentRun) -> Iterator[tuple[str, str]]:
    tokens = run.usage.input_tokens, run.usage.output_tokens
    yield "outcome", run.outcome or ""
    yield "reason", run.reason
    yield "error", printable(run.error)
    yield "tokens", f"{tokens[0]} in, {tokens[1]} out" if any(tokens) else ""
    yield "tools", ", ".join(run.tools)


def _text(name: str, text: str, indent: str = "  ") -> Iterator[str]:
    yield f"{name}:"
    shown = "".join(letter if letter.isprintable() or letter in "\n\t" else " " for letter in text)
    yield textwrap.indent(shown.rstrip() or "(nothing)", indent)


# JSON


def chain_json(chain: Chain, *, runs: bool) -> dict[str, Any]:
    last = chain.last
    return {
        "id": chain.id,
        "agent_id": last.agent_id,
        "agent_type": last.agent_type,
        "label": last.label,
        "state": last.state,
        "open": chain.open,
        "left": chain.left,
        "outcome": last.outcome,
        "reason": last.reason,
        "error": last.error,
        "redirects": last.steer_count,
        "limit": last.max_steers,
        "why": last.steer_why,
        "session": last.parent,
        "parent_agent": last.parent_agent,
        "project": chain.project,
        "background": last.background,
        "depth": last.depth,
        "created": chain.began,
        "ended": None if chain.open else last.ended,
        "task": last.task,
        "result": last.result,
        "report": "unread" if chain.unread else "read" if last.taken is not None else None,
        "transcript_path": last.transcript,
        **({"runs": [_run_json(run) for run in chain.runs]} if runs else {}),
    }


def _run_json(run: SubagentRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "state": run.state,
        "prompt": run.prompt,
        "by_hook": run.by_hook,
        "created": run.created,
        "seconds": run.seconds,
        "outcome": run.outcome,
        "reason": run.reason,
        "error": run.error,
        "result": run.result,
        "usage": asdict(run.usage),
        "tools": list(run.tools),
    }


# Words


def _why(run: SubagentRun) -> str:
    """Without the words that hooks' refusals begin with."""
    return printable(
        " ".join(line for line in run.steer_why.split("\n") if not line.startswith("[Stop hook "))
    )


def _back(run: SubagentRun) -> str:
    if not run.steer_count:
        return "-"
    return f"{run.steer_count} of {'any' if run.max_steers is None else run.max_steers}"


def _took(run: SubagentRun) -> str:
    return "" if run.seconds is None else f" after {_long(run.seconds)}"


def _clock(then: float, now: float) -> str:
    day, today = time.localtime(then)[:3], time.localtime(now)[:3]
    return time.strftime("%H:%M:%S" if day == today else "%b %d", time.localtime(then))


def _long(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{int(seconds)} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // (24 * 60)} d {minutes // 60 % 24} h"
