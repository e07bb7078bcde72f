"""Runs each proposed gate once, as a stop would, and keeps those that can run and change no file."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace

from turngate.cli.commands.gates.actions import GateEntry, GateResult, open_private_folder, run_gate
from turngate.cli.commands.init.proposal import ProposedGate, settings_text
from turngate.cli.console.conversation_text import flat
from turngate.cli.console.signals import restore_handlers, run_until_signal
from turngate.cli.console.streams import paint
from turngate.core.dialect import TURNGATE
from turngate.core.settings import Settings
from turngate.core.text import one_line
from turngate.gates.baseline import Results
from turngate.gates.local_tree_state import local_tree_state
from turngate.ports import World
from turngate.project.git import run_git
from turngate.settings.parse import parse_layer
from turngate.shells.local import LocalShell
from turngate.state.paths import state_folder

TRIAL_TIMEOUT_S = 300
SLOW_S = 60
GIT_TIMEOUT_S = 60
MAX_REASON_CHARS = 200
GREEN = "green"
RED = "red; only what a session breaks will block, not what fails now"


def try_gates(
    gates: Sequence[ProposedGate], project: str
) -> tuple[tuple[ProposedGate, ...], dict[str, str | None]]:
    """Return the gates that can run, and for each command the state of the files that it was tried on; print what was seen."""
    kept: list[ProposedGate] = []
    trees: dict[str, str | None] = {}
    for gate in gates:
        tree = local_tree_state(project, state_folder())
        found = _try(gate, project) if gate.command else gate
        if found is not None:
            kept.append(found)
            trees |= {found.command: tree} if found.command else {}
    return tuple(kept), trees


def keep_results(trees: Mapping[str, str | None], project: str) -> None:
    """Store what the trial has found also for the files as they are now, with the settings that were written.

    So the first session that starts here knows what failed before it.
    """
    now = local_tree_state(project, state_folder()) if trees else None
    for command, tree in trees.items():
        results = Results(state_folder(), project, command)
        if (known := results.find(tree)) is not None:
            results.store(now, known)


def _try(gate: ProposedGate, project: str) -> ProposedGate | None:
    """Try a gate, and then those that can stand in its place, until one of them can run."""
    for each in (gate, *gate.others):
        before = _stats(project, "diff", "--name-only", "--relative", "-z")
        kinds = {_kind(path) for path in _stats(project, "ls-files", "-z")}
        new = _stats(project, "ls-files", "-z", "--others", "--exclude-standard")
        print(flat(f"{each.id}  runs `{each.command}`"), flush=True)
        result = _run(each, project)
        after = _stats(project, "diff", "--name-only", "--relative", "-z")
        edited = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
        # A file that git does not know, of a kind that it knows none of, may be what an earlier run has built.
        sources = [path for path in new if not kinds or _kind(path) in kinds - {""}]
        edited += [path for path in sources if _stat(project, path) != new[path]]
        note, is_kept = describe_trial(result, edited, each.quicker)
        seen = flat(note if is_kept else f"left out: it {note}")
        print(f"{flat(each.id)}  {paint(seen, 'good' if seen.startswith(GREEN) else 'notice')}", flush=True)
        if is_kept:
            return each
        if result is None:
            break
    return None


def _run(gate: ProposedGate, project: str) -> GateResult | None:
    """Return the result, or None after Ctrl-C."""
    text = settings_text([replace(gate, entry={**gate.entry, "timeout": TRIAL_TIMEOUT_S})])
    layer = parse_layer(json.loads(text), file="", level="project", family="turngate", dialect=TURNGATE)
    entry, world = GateEntry(gate.id, layer.rules[0]), World(LocalShell(), project)
    with open_private_folder() as private:
        result = run_until_signal(run_gate(entry, Settings(), world, private, state=state_folder()))
    restore_handlers()
    if isinstance(result, signal.Signals) and result != signal.SIGINT:
        os.kill(os.getpid(), result)
    return None if isinstance(result, signal.Signals) else result


def describe_trial(result: GateResult | None, edited: Sequence[str], quicker: str) -> tuple[str, bool]:
    """Return what was seen, and whether the gate is kept. `quicker`: a command of the project for a part of a slow one."""
    if edited:
        more = f" and {len(edited) - 1} more" if len(edited) > 1 else ""
        return f"changed {edited[0]}{more}", False
    if result is None:
        return "was ended by Ctrl-C", False
    part = f"; a part of the tests: `{quicker}`" if quicker else ""
    if result.outcome == "could not run":
        if result.seconds >= TRIAL_TIMEOUT_S * 0.75:  # a gate keeps a part of its time for itself
            return f"slow, it did not end within {TRIAL_TIMEOUT_S} s{part}", True
        return f"could not run: {one_line(result.reason or '', MAX_REASON_CHARS)}", False
    color = GREEN if result.outcome == "passed" else RED
    return f"{color}, {result.seconds:.1f} s{f' (slow){part}' if result.seconds > SLOW_S else ''}", True


def _stats(project: str, *words: str) -> Mapping[str, tuple[int, int] | None]:
    """Return the files that git names, with their times and sizes; none without a repository."""
    with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
        listed = run_git(project, *words, timeout=GIT_TIMEOUT_S).stdout.decode("utf-8", "surrogateescape")
        return {path: _stat(project, path) for path in listed.split("\0") if path}
    return {}


def _kind(path: str) -> str:
    return os.path.splitext(path)[1]


def _stat(project: str, path: str) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = os.lstat(os.path.join(project, path))
        return found.st_mtime_ns, found.st_size
    return None
