"""`turngate init`: propose gates for the checks of a project, try them, write them after a yes, and approve what was confirmed."""

import argparse
import contextlib
import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from turngate.cli.commands.check import NOT_IGNORED, check_ignore
from turngate.cli.commands.gates.actions import GateEntry, GateResult, open_private_folder, run_gate
from turngate.cli.commands.init.proposal import (
    Place,
    ProposedGate,
    json_style,
    propose_for,
    propose_named,
    read_names,
    settings_text,
)
from turngate.cli.console.conversation_text import counted, flat
from turngate.cli.console.questions import can_ask, confirm, may_write
from turngate.cli.console.signals import restore_handlers, run_until_signal
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_IO_ERROR, EXIT_PROBLEMS
from turngate.cli.project import project_folder, search_note, with_place
from turngate.cli.review import approve_shown
from turngate.cli.review.entries import PENDING, shown_key, what_to_do
from turngate.core.dialect import TURNGATE
from turngate.core.hooks.kinds import GateHook, command_of
from turngate.core.settings import Rule, Settings
from turngate.core.text import one_line
from turngate.errors import UsageError
from turngate.gates.baseline import Results
from turngate.gates.find_checks import has_program, unreadable_files
from turngate.gates.local_tree_state import local_tree_state
from turngate.gates.project_files import read_project_files
from turngate.hosts.all_hosts import AGENT_MARKERS
from turngate.hosts.install.settings_file import (
    UnsuitableSettings,
    add_hooks,
    hook_lines,
    read_settings_text,
    replace_settings_text,
)
from turngate.models.resolve import DEFAULT_MODELS
from turngate.ports import World
from turngate.project.checkouts import find_top
from turngate.project.files import LOCAL
from turngate.project.git import run_git
from turngate.project.safe_paths import real_path
from turngate.settings.load import load_layers, project_path
from turngate.settings.parse import parse_layer
from turngate.shells.local import LocalShell
from turngate.state.files import write_all
from turngate.state.paths import state_folder
from turngate.trust.review import Review, review_project


def _review(project: str) -> Review:
    return review_project(project, dialect="turngate", files=LOCAL)


NOTHING_FOUND = (
    "no checks were found: there is no script, target or configuration of a test runner, a linter or a type checker "
    "whose program is installed"
)
BY_HAND = """\
→ name a command yourself, in .turngate/settings.json:
{"hooks": {"Stop": [{"hooks": [{"type": "gate", "command": "./check.sh"}]}]}}"""
NOW = "→ `turngate gates run` runs them now, `turngate doctor --prove` shows that they block"
WHEN_APPROVED = (
    "→ once they are approved, `turngate gates run` runs them (before that, only with --trust), "
    "and `turngate doctor --prove` shows that they block"
)


def init(options: argparse.Namespace) -> int:
    names = read_names(options.with_gates)
    project = project_folder(options.project)
    check_place(project)
    if note := search_note(project, options.project):
        print(note)
    files = read_project_files(project)
    settings = load_layers(project_path(project, LOCAL), dialect="turngate", files=LOCAL).merge()
    has_judge = bool(settings.judge or any(map(os.environ.get, DEFAULT_MODELS)))
    top = find_top(os.path.realpath(project), LOCAL)
    has_repository = os.path.exists(os.path.join(top, ".git"))
    here = Place(files, partial(has_program, project), has_repository, has_judge)
    proposal = propose_for(project, files, here.has_program, names)
    named, notes = propose_named(names, here, proposal)
    gates = (*proposal.gates, *named)
    # What a hook of the project runs already, with the file of that hook.
    rules = [rule for rule in settings.rules if rule.event == "Stop" and rule.source != "user"]
    configured = {gate.id: rule.file or "" for gate in gates for rule in rules if _runs(rule, gate)}
    new = tuple(gate for gate in gates if gate.id not in configured)
    unread = (
        f"! {name}: {why}, so the checks that it names are not known"
        for name, why in unreadable_files(files).items()
    )
    warnings = [*unread]
    warnings += [f"{name} is left out: a hook in {file} already runs it" for name, file in configured.items()]
    warnings += [
        f"{tool.check} is left out: `{tool.command}` ({tool.found_in}) needs {tool.program}, which was not found"
        for tool in proposal.missing
    ]
    warnings += notes
    before = None
    if os.path.lexists(os.path.join(project, SETTINGS)):
        before = _read_existing(project)
        asked = tuple(gate for gate in new if gate in named or gate.check in names)
        _show_additions([gate for gate in new if gate not in asked], configured, is_kept=not asked)
        if not asked:
            _print_warnings(warnings)
            return 0
        new = asked
    trees: dict[str, str | None] = {}
    if any(gate.command for gate in new) and _is_tried(new, options):
        print("each command is run once (Ctrl-C leaves one out):", flush=True)
        new, trees = try_gates(new, project)
        print()
    if new:
        code = _write(new, project, options, before, warnings)
        keep_results(trees, project)
        return code
    _print_warnings(warnings)
    if configured:
        print("every check that was found is already a hook")
        return 0
    print(NOTHING_FOUND, BY_HAND, sep="\n")
    return EXIT_PROBLEMS


def _read_existing(project: str) -> str | None:
    """Return the text of the settings. Raises UsageError for one that holds no settings."""
    text = read_settings_text(os.path.join(project, SETTINGS))
    try:
        hook_lines(text or "")
    except UnsuitableSettings as error:
        raise UsageError(f"{SETTINGS}: {error}; nothing was changed") from None
    return text


def _is_tried(gates: Sequence[ProposedGate], options: argparse.Namespace) -> bool:
    """A person decides whether the commands of a project run here; `--yes` is that decision."""
    if options.no_try or options.dry_run or not (options.yes or can_ask()):
        return False
    if options.yes:
        return True
    _print_commands([gate for gate in gates if gate.command])
    return confirm("run each of them once now, to see whether it can run?")


def _runs(rule: Rule, gate: ProposedGate) -> bool:
    command = command_of(rule.hook)
    if isinstance(rule.hook, GateHook) and rule.hook.gate == gate.entry.get("gate"):
        return True
    text = " ".join((command.command, *(command.args or ()))) if command else ""
    return bool(gate.command) and gate.command in text


# What is shown


def _show_additions(new: Sequence[ProposedGate], configured: Mapping[str, str], *, is_kept: bool) -> None:
    print(f"{SETTINGS} exists, and is not changed" if is_kept else f"{SETTINGS} exists")
    if new:
        print('these gates can be added to its "Stop" hooks:')
        print(",\n".join(f"  {json.dumps(gate.entry)}" for gate in new))
        _print_commands(new)
    elif is_kept and not configured:
        print(NOTHING_FOUND)


def _print_commands(gates: Sequence[ProposedGate]) -> None:
    width = max(len(gate.id) for gate in gates)
    for gate in gates:
        found_in = flat(gate.found_in)
        what = f"runs `{flat(gate.command)}` ({found_in})" if gate.command else found_in
        print(f"{gate.id.ljust(width)}  {what}")


def _print_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        if warning.startswith("! "):
            print(paint(flat(warning), "alert", sys.stderr), file=sys.stderr)
        else:
            print(flat(warning))


# Write


def _write(
    gates: Sequence[ProposedGate],
    project: str,
    options: argparse.Namespace,
    before: str | None,
    warnings: Iterable[str],
) -> int:
    """Write settings with these gates, or add them to the settings `before`."""
    own = settings_text(gates, json_style(project))
    text, ignores = own, check_ignore(project, LOCAL_SETTINGS) == NOT_IGNORED  # git would commit them
    print(paint(f"{counted(len(gates), 'gate')} for {SETTINGS}:", "bold"))
    _print_commands(gates)
    if ignores:
        print(f".gitignore gets the line {LOCAL_SETTINGS}")
    print()
    if before is None:
        print(paint(f"{SETTINGS}:", "bold"), text, sep="\n")
    else:
        try:
            text = add_hooks(before, "Stop", [gate.entry for gate in gates])
        except UnsuitableSettings as error:
            raise UsageError(f"{SETTINGS} cannot be changed: {error}; nothing was changed") from None
        print(f'added to the "Stop" hooks in {SETTINGS}:')
        print(",\n".join(f"  {json.dumps(gate.entry, ensure_ascii=False)}" for gate in gates))
    _print_warnings(warnings)
    what = "this gate" if len(gates) == 1 else f"these {len(gates)} gates"
    runs = "" if _is_agent() or not can_ask() else f", and let {what} run on this machine"
    if not may_write(f"write it{runs}?", options):
        return 0 if options.dry_run else EXIT_PROBLEMS
    if not _write_files(project, before, text, ignores=ignores):
        return EXIT_IO_ERROR
    is_confirmed = not options.yes and can_ask()  # a line of stdin approves nothing
    return _approve(project, own, is_confirmed=is_confirmed)


def _is_agent() -> bool:
    """An agent can write settings, and only a person approves hooks."""
    return any(name in os.environ for name in AGENT_MARKERS)


def _write_files(project: str, before: str | None, text: str, *, ignores: bool) -> bool:
    path = os.path.join(project, SETTINGS)
    try:
        if before is None and os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        replace_settings_text(path, before, text)
    except OSError as error:
        print(
            f"turngate: {SETTINGS} cannot be written: {error.strerror}; nothing was changed", file=sys.stderr
        )
        return False
    print(f"written   {SETTINGS}")
    if ignores:
        try:
            add_to_gitignore(project)
            print(f"written   .gitignore: {LOCAL_SETTINGS}")
        except OSError as error:
            hint = f"add the line {LOCAL_SETTINGS} yourself"
            print(f"! .gitignore cannot be changed: {error.strerror}; {hint}", file=sys.stderr)
    return True


def _approve(project: str, text: str, *, is_confirmed: bool) -> int:
    code, next_step = 0, WHEN_APPROVED
    if is_confirmed and not _is_agent():
        try:
            layer = parse_layer(
                json.loads(text), file=SETTINGS, level="project", family="turngate", dialect=TURNGATE
            )
            shown = [rule.hook for rule in layer.rules]
            hooks = [hook for hook in _review(project).hooks if hook.rule.file == SETTINGS]
            pending = [hook for hook in hooks if hook.status in PENDING and hook.rule.hook in shown]
            # An approval covers the content of the project's files that a hook names, which was not shown.
            inside = {
                each.key: (name for name in each.command_files.named if not os.path.isabs(name))
                for each in pending
            }
            files = {key: next(map(shown_key, names), None) for key, names in inside.items()}
            approve_shown([hook for hook in pending if not files[hook.key]], lambda: _review(project))
            for key, file in files.items():
                if file:
                    print(f"pending   {shown_key(key)}: it runs {file} of this project; {what_to_do(key)}")
                else:
                    print(f"approved  {shown_key(key)}")
            next_step = NOW
        except UsageError as error:
            print(f"! the gates are not approved: {error}", file=sys.stderr)
            code = EXIT_PROBLEMS
    else:
        print(
            with_place("→ they run once a person has approved them: `turngate hooks approve --all`", project)
        )
    print(with_place(next_step, project))
    return code


FOLDER = ".turngate"
SETTINGS = f"{FOLDER}/settings.json"
LOCAL_SETTINGS = f"{FOLDER}/settings.local.json"
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND


def check_place(project: str) -> None:
    """Raise UsageError if the settings of this project would be those of another place, or of the user."""
    if real_path(project) == real_path(os.path.expanduser("~")):
        raise UsageError(
            f"this is your home folder, and ~/{SETTINGS} holds your own settings for all projects; "
            "change to a project, or name one with --project"
        )
    folder = os.path.join(project, FOLDER)
    if os.path.islink(folder):
        raise UsageError(
            f"{FOLDER} is a link to {os.readlink(folder)}, and what is written there may not be this project's; "
            f"replace the link by a folder, or write {SETTINGS} yourself"
        )
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UsageError(f"{FOLDER} is a file, expected a folder; rename it")


def add_to_gitignore(project: str) -> None:
    """Append the local settings to `.gitignore`. Raises OSError, also for one that is not a file of its own."""
    path = os.path.join(project, ".gitignore")
    fd = os.open(path, _APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        last = os.pread(fd, 1, info.st_size - 1) if info.st_size else b"\n"
        write_all(fd, (b"" if last == b"\n" else b"\n") + f"{LOCAL_SETTINGS}\n".encode())
    finally:
        os.close(fd)


# Try: each gate once, as a stop would, to keep those that can run and change no file


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
