"""The ready-made gates: which one a hook is, and the failures that each of them has to block.

To add a gate: a function that returns its failures, and a line in `PLANTERS`.
"""

import json
import math
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.check.lint import gate_words
from turngate.core.globs import expand_braces, matches_globs
from turngate.core.hooks.kinds import CommandHook, GateHook, Hook
from turngate.doctor.proof.planted_failures import (
    MARK,
    CannotPlantError,
    Gate,
    PlantedFailure,
    dirty_tree,
    encode,
    failures_for,
    gate_text,
)
from turngate.doctor.proof.samples import conversation, spent_conversation
from turngate.errors import UsageError
from turngate.gates.arguments import GateArguments, GateCall, GateProblem, parse_gate_words, read_gate_hook
from turngate.gates.find_checks import chosen_commands, find_check_commands
from turngate.gates.gate import Gate as ReadyMadeGate
from turngate.gates.project_files import read_project_files
from turngate.gates.toolchains import PROJECT_CHECKS
from turngate.settings.paths import read_text


@frozen
class NamedGate:
    """A ready-made gate as a hook has it: the values of its options, and the text of its command."""

    gate: ReadyMadeGate
    options: Mapping[str, Any]
    command: str | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(self.options.get(self.gate.operands.name) or ()) if self.gate.operands else ()


def named_gate(hook: Hook) -> NamedGate | None:
    """Return the gate of a hook; None for any other hook, and for a gate that cannot be read."""
    call: GateCall | GateArguments | list[GateProblem]
    if isinstance(hook, GateHook):
        call = read_gate_hook(hook)
    elif isinstance(hook, CommandHook) and (words := gate_words(hook)) is not None:
        try:
            call = parse_gate_words(words)
        except UsageError:
            return None
    else:
        return None
    if isinstance(call, list):
        return None
    text, own = None, call.command
    if own:
        text = own.command if own.args is None else shlex.join((own.command, *own.args))
    return NamedGate(call.gate, call.options, text)


OBSERVER = "it is an observer: it never blocks"
_NOT_CHECKS = {"budget": "it is a limit: it ends the turn, and does not block", "judge": "it asks a model"}


def why_not_a_check(gate: ReadyMadeGate) -> str | None:
    """Return why a gate does not check the project or the conversation itself, or None."""
    return _NOT_CHECKS.get(gate.name, OBSERVER if gate.is_observer else None)


def with_judge(hook: Hook, model: str) -> Hook:
    """Return the hook of a gate that asks a model, with another model."""
    if isinstance(hook, GateHook):
        return replace(hook, options={**hook.options, "model": model})
    if isinstance(hook, CommandHook) and hook.args is not None:
        return replace(hook, args=(*hook.args, "--model", model))
    if isinstance(hook, CommandHook):  # the last of several counts
        return replace(hook, command=f"{hook.command} --model {shlex.quote(model)}")
    return hook


def with_all_failures(hook: Hook) -> Hook:
    """Return the hook of a gate that runs a command, which runs at every stop and counts also what failed at the start."""
    if isinstance(hook, GateHook):
        return replace(hook, options={**hook.options, "always": True, "allFailures": True})
    flags = ("--always", "--all-failures")
    if isinstance(hook, CommandHook) and hook.args is not None:
        after = hook.args.index("gate") + 1
        place = after if hook.args[after].startswith("-") else after + 1  # the name may be missing
        return replace(hook, args=(*hook.args[:place], *flags, *hook.args[place:]))
    if isinstance(hook, CommandHook):
        command = re.sub(
            r"(\bgate(?:\s+[a-z][\w-]*)?)(?=\s|$)", rf"\1 {' '.join(flags)}", hook.command, count=1
        )
        return replace(hook, command=command)
    return hook


# Files


def _walk_files(project: str) -> Iterator[str]:
    """Yield the regular files, relative to the project, in the order of their names."""
    for folder, folders, names in os.walk(project):
        folders[:] = sorted(name for name in folders if name not in (".git", "node_modules", ".venv", "venv"))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield os.path.relpath(path, project)


MAX_SEARCHED_FILES = 20_000
MAX_TURNS = 100_000  # of a planted conversation
_NAME = "turngate-planted"
_CONVERSATION = "the conversation"


# Commands


def _command(named: NamedGate, gate: Gate) -> list[PlantedFailure]:
    """A command, or those of a check of the project, are known by the programs that they run."""
    check, commands = named.gate.name, [named.command] if named.command else []
    if not commands:
        found = chosen_commands(find_check_commands(read_project_files(gate.project)), check)
        commands = [each.command for each in found]
    if not commands:
        raise CannotPlantError(f"the project has no {check} that is known")
    text = "\n".join((gate.text, *(gate_text(command, (), gate.project) for command in commands)))
    failures, reasons = failures_for(replace(gate, text=text), of_tools=True)
    if not failures:
        unknown = f"it is not known what {' and '.join(f'`{each}`' for each in commands)} checks"
        raise CannotPlantError("; ".join(reasons) or unknown)
    return failures


# Git and files


def _untouched(named: NamedGate, gate: Gate) -> list[PlantedFailure]:
    """A protected file without its content: whatever it held is weaker now."""
    path = _find_file(named.operands, gate.project)
    if path is None:
        raise CannotPlantError(f"there is no file that {' '.join(named.operands)} names")
    files = {os.path.join(gate.project, path): f"{MARK}\n".encode()}
    return [PlantedFailure("a changed protected file", path, files, commits=True)]


# What a gate that reads added lines has to find in them.
_ADDED = {
    "no-stubs": ("a stub", f"def planted():\n    raise NotImplementedError  # TODO: {MARK}\n"),
    "debug": ("a breakpoint", "def planted():\n    breakpoint()\n"),
    "suppressions": ("a suppression", "import os  # noqa\n"),
    "secrets": ("a private key", f'KEY = "{"-" * 5}BEGIN PRIVATE KEY{"-" * 5}{"aB1+" * 16}"\n'),
}


def _added_lines(named: NamedGate, gate: Gate) -> list[PlantedFailure]:
    what, content = _ADDED.get(named.gate.name) or (
        "too many lines",
        "1\n" * (named.options["max-lines"] + 1),
    )
    files = {os.path.join(gate.project, "turngate_planted.py"): content.encode()}
    return [PlantedFailure(what, "turngate_planted.py", files, commits=True)]


def _touched(named: NamedGate, gate: Gate) -> list[PlantedFailure]:
    path = _make_path(named.options["if"])
    if matches_globs(named.options["then"], path):
        raise CannotPlantError(f"{path}, which --if names, is also named by --then")
    files = {os.path.join(gate.project, path): f"{MARK}\n".encode()}
    return [PlantedFailure("a change without its documents", path, files, commits=True)]


def _outputs(named: NamedGate, gate: Gate) -> list[PlantedFailure]:
    paths = [_make_path([glob]) for glob in named.operands if not glob.startswith("!")]
    content = f"{MARK}\n".ljust(int(named.options.get("min-bytes") or 0)).encode()
    there = {os.path.join(gate.project, path): content for path in paths}
    what = f"empty {'outputs' if len(paths) > 1 else 'output'}"
    return [PlantedFailure(what, ", ".join(paths), dict.fromkeys(there, b""), passing=there)]


def _find_file(globs: Sequence[str], project: str) -> str | None:
    paths = islice(_walk_files(project), MAX_SEARCHED_FILES)
    return next((path for path in paths if matches_globs(globs, path)), None)


def _make_path(globs: Sequence[str]) -> str:
    """Return the path of a file that the globs name."""
    for glob in (each for given in globs for each in expand_braces(given) or ()):
        name = re.sub(r"\[!?(.)[^]]*\]", r"\1", glob.replace("**/", "").replace("?", "x"))
        path = os.path.normpath(re.sub(r"\*+", _NAME, name))
        inside = "" if glob.endswith("/") or path.startswith(("..", "/")) else path
        for each in (inside, os.path.join(path, _NAME)):
            if each and matches_globs(globs, each):
                return each
    raise CannotPlantError(f"it is not known which files {' '.join(globs)} names")


# Lists and conversations


def _checklist(named: NamedGate, gate: Gate) -> list[PlantedFailure]:
    """An open item in the first file, while all items are done before."""
    done = {os.path.join(gate.project, path): text for path, text in _closed_lists(named, gate.project)}
    first = next(iter(done), None)
    if first is None:
        raise CannotPlantError("it names no file")
    edit = ("Edit", {"file_path": first, "old_string": "a", "new_string": "b"})  # for `if-touched`
    talk = {gate.transcript: conversation(calls=[edit])}
    planted = {**done, first: _with_open_item(done[first], named.options.get("section"))}
    where = os.path.relpath(first, gate.project)
    passing, files = ({path: encode(text) for path, text in each.items()} for each in (done, planted))
    what = "an open checklist item"
    return [PlantedFailure(what, where, {**talk, **files}, passing={**talk, **passing}, as_is=talk)]


def _closed_lists(named: NamedGate, project: str) -> Iterator[tuple[str, str]]:
    """Yield the files, each with all of its items done."""
    for name in named.operands:
        is_file = os.path.isfile(os.path.join(project, name))
        path = name if is_file else _find_file([name], project) or _make_path([name])
        text = read_text(os.path.join(project, path)) or f"- [x] {MARK}\n"
        yield path, re.sub(r"(?m)^(\s*(?:[-*+]|\d+[.)]) )\[ \]", r"\1[x]", text)


def _with_open_item(text: str, section: str | None) -> str:
    item = f"- [ ] {MARK}"
    if section is None:
        return f"{text.rstrip()}\n{item}\n"
    heading = re.search(rf"(?mi)^#+ +{re.escape(section)}[ #]*$", text)
    if heading is None:
        return f"{text.rstrip()}\n\n# {section}\n\n{item}\n"
    return f"{text[: heading.end()]}\n\n{item}\n{text[heading.end() :]}"


def _todos(_: NamedGate, gate: Gate) -> list[PlantedFailure]:
    call = ("TodoWrite", {"todos": [{"content": MARK, "status": "pending", "activeForm": MARK}]})
    files = {gate.transcript: conversation(ran_tests=False, calls=[call])}
    return [PlantedFailure("an open task", _CONVERSATION, files)]


def _until(named: NamedGate, gate: Gate) -> list[PlantedFailure]:
    promise = str(named.options["promise"])
    passing = {gate.transcript: conversation(promise)}
    files = {gate.transcript: conversation("Done, I think.")}
    failure = PlantedFailure("an answer without the promise", _CONVERSATION, files, passing=passing)
    # In its last iteration it is a limit.
    return [replace(failure, answer="Done, I think.", passing_answer=promise, is_limit=True)]


def _evidence(_: NamedGate, gate: Gate) -> list[PlantedFailure]:
    claim = "All tests pass."
    edit = ("Edit", {"file_path": os.path.join(gate.project, _NAME), "old_string": "a", "new_string": "b"})
    files = {gate.transcript: conversation(claim, ran_tests=False, calls=[edit])}
    return [PlantedFailure("a claim without a test run", _CONVERSATION, files, answer=claim)]


def _judge(_: NamedGate, gate: Gate) -> list[PlantedFailure]:
    """The judge is a script: what is shown is that its answer decides."""
    path = judge_script(gate)
    answers = (json.dumps({"ok": ok, "reason": MARK}) for ok in (True, False))
    yes, no = (json.dumps({"judge": [answer]}).encode() for answer in answers)
    what = "a stop to which the judge says no (a scripted judge: the model itself was not asked)"
    return [PlantedFailure(what, "the judge", {path: no}, passing={path: yes})]


def judge_script(gate: Gate) -> str:
    """Return the path of the judge's script, beside the transcript."""
    return os.path.join(os.path.dirname(gate.transcript), "judge.json")


def _budget(named: NamedGate, gate: Gate) -> list[PlantedFailure]:
    """A conversation over each of its limits, while it is below all of them before."""
    limits = {name: named.options[name] for name in ("tokens", "minutes", "turns")}
    tokens, minutes, turns = (None if limit is None else math.ceil(limit) for limit in limits.values())
    if turns is not None and turns > MAX_TURNS:
        raise CannotPlantError(f"its limit is above {MAX_TURNS:,} turns")
    now = time.time()
    below = (now, max((tokens or 1) - 1, 0), 1 if turns is None else max(turns - 1, 0))
    over = {
        "tokens": (now, tokens or 0, max(below[2], 1)),
        "minutes": (now - (minutes or 0) * 60 - 1, *below[1:]),
        "turns": (now, below[1], turns or 0),
    }
    passing = {gate.transcript: spent_conversation(*below)}
    failures = []
    for name in (name for name, limit in limits.items() if limit is not None):
        what = f"a conversation over its limit of {name}"
        files = {gate.transcript: spent_conversation(*over[name])}
        failures.append(PlantedFailure(what, _CONVERSATION, files, passing=passing, is_limit=True))
    if not failures:
        raise CannotPlantError("it has no limit: give tokens, minutes or turns")
    return failures


PLANTERS: Mapping[str, Callable[[NamedGate, Gate], list[PlantedFailure]]] = {
    **dict.fromkeys(("command", *PROJECT_CHECKS), _command),
    "clean": lambda _, gate: [dirty_tree(gate)],
    "todos": _todos,
    "checklist": _checklist,
    "plan": _checklist,
    "until": _until,
    "evidence": _evidence,
    "untouched": _untouched,
    **dict.fromkeys((*_ADDED, "size"), _added_lines),
    "touched": _touched,
    "outputs": _outputs,
    "judge": _judge,
    "budget": _budget,
}


def why_no_failure(gate: ReadyMadeGate) -> str | None:
    """Return why no failure can be planted for a gate, or None."""
    if gate.name in PLANTERS:
        return None
    return OBSERVER if gate.is_observer else f"it is not known what the gate {gate.name} checks"
