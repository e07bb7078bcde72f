"""The actions of `turngate gates`: run the gates of a project without an agent, as CI does, or list them; and reports for other programs."""

import argparse
import asyncio
import contextlib
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import uuid4

from turngate._frozen_dataclass import frozen
from turngate.cli.arguments import find_project_here
from turngate.cli.console.conversation_text import flat, format_waiting
from turngate.cli.console.progress import ProgressLine, show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.console.verdict import print_warning, problems_for
from turngate.cli.main import EXIT_ALLOWED, EXIT_NOT_ENFORCED, EXIT_PROBLEMS
from turngate.cli.project import with_place
from turngate.cli.recorded_sessions import accept_open_stop, read_accepted
from turngate.cli.review import find_keys, load_all_hooks
from turngate.cli.review.entries import format_text, shown_key
from turngate.cli.workspace import OpenWorkspace, open_workspace
from turngate.core.answers.report_types import Skipped
from turngate.core.constants import GATES_BASE, GATES_RUN_SESSION, STOP_EVENTS
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.kinds import CommandHook, identity, label
from turngate.core.hooks.selection import switched_off_by
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import indent, keep_ends, one_line, quote_name, strip_controls
from turngate.core.verdict.decisions import Fault, Halt
from turngate.core.verdict.hints import GONE, run_hint
from turngate.core.verdict.hook_run import HookRun, run_message
from turngate.core.verdict.json_output import hook_json
from turngate.core.verdict.verdict import is_blocking
from turngate.doctor.proof.planted_failures import gate_text
from turngate.doctor.proof.ready_made_gates import named_gate, why_not_a_check
from turngate.doctor.proof.samples import conversation, sample_fields
from turngate.engine import ask_hooks
from turngate.errors import UsageError
from turngate.gates.session_changes import NO_SESSION, record_files
from turngate.ports import HookRunContext, World, on_machine
from turngate.settings.load import has_unloaded_hooks
from turngate.settings.plugin_folders import display_name
from turngate.stop_hooks import open_world
from turngate.trust.fingerprint import scripts_of
from turngate.trust.review import unique_keys

_CONVERSATION = re.compile(r"transcript_path|last_assistant_message", re.IGNORECASE)
Outcome = Literal["passed", "failed", "could not run", "left out"]


@frozen
class GateEntry:
    """One hook that decides whether an agent may stop; `left_out` says why it needs an agent."""

    key: str
    rule: Rule
    left_out: str | None = None
    file: str | None = None  # in which it is configured, for the user


@frozen
class GateResult:
    entry: GateEntry
    outcome: Outcome
    reason: str | None = None
    hint: str | None = None
    seconds: float = 0.0


NOT_LOADED = "no gate could be loaded; `turngate check` lists what to correct"
NO_GATES = "no gates are configured; `turngate init` finds the checks of a project"
APPROVE = (
    "read what is not approved with `turngate hooks diff`, and approve it with `turngate hooks approve --all`; "
    "or add --trust, in CI of your own repository"
)
_LABEL_WIDTH = len("could not run")
_STYLES: Mapping[Outcome, str] = {
    "passed": "good",
    "failed": "alert",
    "could not run": "notice",
    "left out": "dim",
}


def run_action(options: argparse.Namespace) -> int:
    if options.action == "accept":
        print(strip_controls(accept_open_stop(options.session, options.why)))
        return EXIT_ALLOWED
    with open_workspace(options, find_project_here(options)) as workspace:
        world, has_base = workspace.world, getattr(options, "base", None) is not None
        with show_if_slow(f"reading the settings{on_machine(world)}"):
            settings = load_all_hooks(options, world)
            entries = select_gates(settings, world, getattr(options, "names", ()), has_base=has_base)
        if options.action == "run":
            return _run(entries, settings, workspace, options)
    return _list(entries, world.location, options)


# Run


def _run(
    entries: Sequence[GateEntry], settings: Settings, workspace: OpenWorkspace, options: argparse.Namespace
) -> int:
    location = workspace.world.location
    with open_private_folder() as private:
        work = _run_and_print(entries, settings, workspace.world, private, options)
        results = workspace.run(work, "; no gate is left running")
    problems = [problem for event in STOP_EVENTS for problem in problems_for(event, settings)]
    not_loaded = has_unloaded_hooks(settings, *STOP_EVENTS)
    code = _exit_code(results, lenient=options.lenient, not_loaded=not_loaded)
    report = _report_json(results, location, problems, not_loaded=not_loaded)
    name = "json" if options.json else options.format
    if _prints_text(options):
        _print_end(results, problems, location, not_loaded=not_loaded)
    if name != "text" and (text := FORMATS[name](report)):
        print(text)
    if name == "github":
        write_job_summary(report)
    return code


def _prints_text(options: argparse.Namespace) -> bool:
    """GitHub Actions reads its commands from between the lines of a log."""
    return not options.json and options.format in ("text", "github")


async def _run_and_print(
    entries: Sequence[GateEntry],
    settings: Settings,
    world: World,
    private: str,
    options: argparse.Namespace,
) -> list[GateResult]:
    """Run the gates in order, each by itself, in the project; print each result at once."""
    base = "" if options.base is None else await find_base(world, options.base)
    results, accepted = [], await read_accepted(world)
    for entry in entries:
        if entry.left_out:
            result = GateResult(entry, "left out", entry.left_out)
        else:
            result = await run_gate(entry, settings, world, private, base)
            note = accepted.get(label(entry.rule.hook))
            if note and result.outcome != "passed":
                result = replace(result, reason=f"{result.reason}\n{note}")
        results.append(result)
        if _prints_text(options):
            _print_result(result, world.location)
    return results


def _exit_code(results: Sequence[GateResult], *, lenient: bool, not_loaded: bool) -> int:
    """Nothing that ran is nothing that passed."""
    outcomes = {result.outcome for result in results}
    if "failed" in outcomes:
        return EXIT_PROBLEMS
    is_enforced = "passed" in outcomes and "could not run" not in outcomes and not not_loaded
    return EXIT_ALLOWED if is_enforced or lenient else EXIT_NOT_ENFORCED


def _print_result(result: GateResult, location: str) -> None:
    label = paint(f"{result.outcome:<{_LABEL_WIDTH}}", _STYLES[result.outcome])
    time = f"{result.seconds:6.2f} s" if result.outcome != "left out" else " " * 8
    file = result.entry.file
    name = quote_name(shown_key(result.entry.key)) + (f"  ({file})" if file else "")
    is_long = result.outcome == "failed"
    why = f": {result.reason}" if result.reason and not is_long else ""
    print(f"{label} {time}  {flat(name + why)}", flush=True)
    if is_long:
        print(indent(bounded(result.reason or "")), flush=True)
    if result.hint:
        print(f"  → {flat(with_place(result.hint, location))}", flush=True)


def _print_end(
    results: Sequence[GateResult], problems: Iterable[Problem], location: str, *, not_loaded: bool
) -> None:
    for problem in dict.fromkeys(problems):
        print_warning(flat(str(problem)), problem.hint)
    pending = {result.entry.rule.pending for result in results if result.outcome == "could not run"}
    if pending - {None, GONE}:
        print(f"→ {with_place(APPROVE, location)}")
    counts = Counter(result.outcome for result in results)
    total = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _STYLES if counts[outcome])
    worst: tuple[Outcome, ...] = ("failed", "could not run", "passed")
    style = next((_STYLES[each] for each in worst if counts[each]), "notice")
    print(paint(total or (NOT_LOADED if not_loaded else NO_GATES), style))


def _report_json(
    results: Sequence[GateResult], project: str, problems: Iterable[Problem], *, not_loaded: bool
) -> dict[str, Any]:
    gates = [
        {
            **_entry_json(result.entry),
            "outcome": result.outcome.replace(" ", "_"),
            "reason": result.reason,
            "seconds": round(result.seconds, 4),
            "places": find_places(result.reason or "", project) if result.outcome == "failed" else [],
        }
        for result in results
    ]
    return {
        "project": project,
        "gates": gates,
        "not_loaded": not_loaded,
        "warnings": [str(problem) for problem in dict.fromkeys(problems)],
    }


# List


def _list(entries: Sequence[GateEntry], project: str, options: argparse.Namespace) -> int:
    if options.json:
        gates = [{**_entry_json(entry), "left_out": entry.left_out} for entry in entries]
        print(json.dumps({"project": project, "gates": gates}, indent=2))
        return EXIT_ALLOWED
    for entry in entries:
        file = f"  ({entry.file})" if entry.file else ""
        why = entry.left_out and f"left out: {entry.left_out}"
        pending = entry.rule.pending and f"pending: {entry.rule.pending}"
        print(flat(f"{shown_key(entry.key)}  {format_text(entry.rule)}{file}"))
        if note := why or pending:
            print(paint(f"  {flat(note)}", "dim"))
    if not entries:
        print(NO_GATES)
    return EXIT_ALLOWED


def _entry_json(entry: GateEntry) -> dict[str, Any]:
    hook = hook_json(entry.rule.hook)
    return {"name": entry.key, "event": entry.rule.event, "file": entry.file, "hook": hook}


@contextlib.contextmanager
def open_private_folder() -> Iterator[str]:
    """Yield a folder for the state of one run and a short conversation, which is removed afterward."""
    with tempfile.TemporaryDirectory(prefix="turngate-gates-") as folder:
        with open(os.path.join(folder, "transcript.jsonl"), "xb") as file:
            file.write(conversation(ran_tests=False))
        yield folder


async def run_gate(
    entry: GateEntry,
    settings: Settings,
    place: World,
    private: str,
    base: str = "",
    state: str | None = None,
) -> GateResult:
    """Run one gate. `base`: a commit, if any. `state`: where what is known of the gate is kept, by default nowhere."""
    rule, state = entry.rule, state or os.path.join(private, "state")
    given = {"session_id": f"{GATES_RUN_SESSION}{uuid4()}"}  # nothing is known from an earlier run
    fields = sample_fields(
        rule, given, project=place.project, transcript=os.path.join(private, "transcript.jsonl")
    )
    event = read_event(rule.event, fields, cwd=place.project)
    own = replace(settings, rules=(rule,), stop_budget=None)
    waiting = format_waiting(label(rule.hook), settings.timeout_of(rule))
    progress = ProgressLine(lambda: [waiting])
    async with open_world(place, own, state=state) as world, progress.shown():
        world.logs = False
        world.environ_here = {**world.own_environ, "TURNGATE_STATE": state, GATES_BASE: base}
        world.environ = {**world.environ, GATES_BASE: base} if world.machine else world.environ_here
        verdict = await ask_hooks(event, own, world)
    if not verdict.runs:
        return GateResult(entry, "could not run", "it does not run for this event")
    return _read_run(entry, verdict.runs[0], settings)


def _read_run(entry: GateEntry, run: HookRun, settings: Settings) -> GateResult:
    reason = run_message(run)
    if is_blocking(run, settings.dialect) or isinstance(run.decision, Halt):
        return GateResult(entry, "failed", reason or "it gave no reason", seconds=run.seconds)
    if isinstance(run.decision, Fault) or isinstance(run.report, Skipped):
        hint = run_hint(run) if run.rule.pending in (None, GONE) else None  # the others have one at the end
        return GateResult(entry, "could not run", reason, hint, run.seconds)
    return GateResult(entry, "passed", run.decision.notice, seconds=run.seconds)


# Which hooks can be run without an agent, and the commit that `--base` compares with


def select_gates(
    settings: Settings, world: World, names: Sequence[str], *, has_base: bool
) -> list[GateEntry]:
    """Return all hooks of stops, or those with these keys. Raises UsageError for a name that is not one.

    `has_base`: there is a commit that gates can compare with.
    """
    keyed = zip(unique_keys(settings.rules), settings.rules, strict=True)
    stops = [(key, rule) for key, rule in keyed if rule.event in STOP_EVENTS]
    entries = list(_entries(stops, settings, world, has_base=has_base))
    by_key = {entry.key: entry for entry in entries}
    return find_keys(by_key, names, "gate") if names else entries


def _entries(
    rules: Sequence[tuple[str, Rule]], settings: Settings, world: World, *, has_base: bool
) -> Iterator[GateEntry]:
    """A check that is a hook of Stop and of SubagentStop is run once."""
    seen: dict[tuple[object, ...], str] = {}
    for key, rule in rules:
        why = _why_left_out(rule, settings, world, has_base=has_base)
        same = seen.get(identity(rule.hook)) if why is None and not rule.pending else None
        if why is None and same is None:
            seen[identity(rule.hook)] = key
        why = why or (f"it is the same as {shown_key(same)}" if same else None)
        file = display_name(rule.file, world.project, world.files.home) if rule.file else None
        yield GateEntry(key, rule, why, file)


def _why_left_out(rule: Rule, settings: Settings, world: World, *, has_base: bool) -> str | None:
    if setting := switched_off_by(rule, settings):
        return f"{setting} switches it off"
    if not rule.hook.enabled:
        return "its own `enabled` switches it off"
    if rule.rejected:
        return "it was rejected"
    if settings.mode_of(rule) != "gate":
        return "it only observes"
    if rule.hook.detached:
        return "it runs in the background, and does not block a stop"
    if named := named_gate(rule.hook):
        needs = "it needs a conversation" if named.gate.needs_conversation else None
        no_start = NO_SESSION if named.gate.record is record_files and not has_base else None
        return why_not_a_check(named.gate) or needs or no_start
    if isinstance(rule.hook, CommandHook):
        command = " ".join((rule.hook.command, *(rule.hook.args or ())))
        text = gate_text(command, scripts_of(rule, world.project, world.files), world.project, world.files)
        return "it reads the conversation" if _CONVERSATION.search(text) else None
    return f"it asks a {rule.hook.asks}" if rule.hook.asks else None


GIT_TIMEOUT_S = 60.0


async def find_base(world: World, revision: str) -> str:
    """Return the last commit that the revision and HEAD have in common. Raises UsageError."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit, name = await _git(world, *words), quote_name(flat(revision))
    if not commit:
        raise UsageError(
            f"--base {name}: git knows no such commit here; fetch it first, e.g. `git fetch origin`"
        )
    base = await _git(world, "merge-base", commit, "HEAD")
    if not base:
        raise UsageError(
            f"--base {name} has no commit in common with HEAD here; "
            "fetch the whole history (`git fetch --unshallow`, in a GitHub workflow `fetch-depth: 0`)"
        )
    return base


async def _git(world: World, *words: str) -> str:
    """Return the first line that git prints where the project is; empty if it fails."""
    git, live = CommandHook("git", args=("-c", "core.fsmonitor=false", *words)), HookRunContext()
    try:
        async with asyncio.timeout(GIT_TIMEOUT_S):
            done = await world.shell.run(git, cwd=world.project, env=world.environ, stdin=b"", live=live)
    except TimeoutError:
        raise UsageError(f"--base: git did not answer within {GIT_TIMEOUT_S:.0f} s") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--base: git could not be started: {error}") from None
    return done.stdout.partition("\n")[0] if done.code == 0 else ""


# Reports for other programs: JSON, Markdown, JUnit, SARIF, and commands of GitHub Actions


MAX_PLACES = 50  # of one gate
MAX_MESSAGE_CHARS = 300
MAX_REASON_CHARS = 8_000
# A file and a line as compilers and test runners print them: `a.py:3:`, `a.ts(3,5):`, `--> a.rs:3:5`.
_PLACE = re.compile(
    r"(?P<file>(?:[\w@+.-]+/)*[\w@+.-]+\.\w+)(?::(?P<line>\d+)(?::\d+)?|\((?P<in_brackets>\d+),\d+\)):?(?P<rest>.*)"
)

_LEVELS = {"failed": "error", "could_not_run": "warning"}  # of GitHub and of SARIF
_Report = Mapping[str, Any]  # of `--json`


def find_places(reason: str, project: str) -> list[dict[str, Any]]:
    """Return the places in files of the project that a reason names, each with its message."""
    places: dict[tuple[str, int], str] = {}
    before = error = ""  # the line before, and the first that pytest marks as the error
    for text in reason.splitlines():
        found = _PLACE.search(text)
        if found and os.path.isfile(os.path.join(project, found["file"])):
            line = max(
                1, int(found["line"] or found["in_brackets"])
            )  # 0 is a whole file, and not valid in SARIF
            message = one_line(error or found["rest"].strip() or before or text, MAX_MESSAGE_CHARS)
            places.setdefault((os.path.normpath(found["file"]), line), message)
            error = ""
        elif text.startswith("E   "):
            error = error or text[1:].strip()
        before = text.strip() or before
    return [
        {"file": file, "line": line, "message": message}
        for (file, line), message in list(places.items())[:MAX_PLACES]
    ]


def _to_markdown(report: _Report) -> str:
    gates = report["gates"]
    lines = ["| gate | result | seconds |", "|---|---|---|"]
    for gate in gates:
        name, label = _escape_markdown(gate["name"]), _label(gate)
        lines.append(f"| {name} | {label} | {gate['seconds']:.2f} |")
    for gate in gates:
        if gate["reason"] and gate["outcome"] in ("failed", "could_not_run"):
            text = _reason(gate)
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            lines += ["", f"**{_escape_markdown(gate['name'])}**: {_label(gate)}", "", fence, text, fence]
    counts = Counter(map(_label, gates))
    total = ", ".join(f"{number} {label}" for label, number in counts.items()) or "no gates are configured"
    lines += ["", f"{total}.", *(f"- {_escape_markdown(text)}" for text in report["warnings"])]
    return "\n".join(lines)


def _to_github(report: _Report) -> str:
    """Return one workflow command for each failure, with its file and line where the gate names them."""
    commands = []
    for gate in report["gates"]:
        level = _LEVELS.get(gate["outcome"])
        title = f"title={_escape_property(gate['name'] + ': ' + _label(gate))}"
        if level and not gate["places"]:
            commands.append(f"::{level} {title}::{_escape_message(_reason(gate))}")
        for each in gate["places"] if level else ():
            file = _escape_property(_in_checkout(report, each["file"]))
            message = _escape_message(each["message"])
            commands.append(f"::{level} file={file},line={each['line']},{title}::{message}")
    commands += [f"::warning::{_escape_message(text)}" for text in report["warnings"]]
    return "\n".join(commands)


def _to_junit(report: _Report) -> str:
    from xml.sax.saxutils import escape, quoteattr  # noqa: PLC0415 # lazy: few runs need it

    gates = _with_warnings(report)
    counts = Counter(gate["outcome"] for gate in gates)
    cases = []
    for gate in gates:
        head = f'<testcase classname="turngate" name={quoteattr(gate["name"])} time="{gate["seconds"]:.3f}"'
        element = {"failed": "failure", "could_not_run": "error", "left_out": "skipped"}.get(gate["outcome"])
        if element is None:
            cases.append(f"    {head}/>")
            continue
        text = _reason(gate)
        inner = (
            f"<{element} message={quoteattr(one_line(text, MAX_MESSAGE_CHARS))}>{escape(text)}</{element}>"
        )
        cases.append(f"    {head}>{inner}</testcase>")
    numbers = f'tests="{len(gates)}" failures="{counts["failed"]}" errors="{counts["could_not_run"]}"'
    suite = f'  <testsuite name="turngate" {numbers} skipped="{counts["left_out"]}">'
    heading = '<?xml version="1.0" encoding="UTF-8"?>'
    text = "\n".join([heading, "<testsuites>", suite, *cases, "  </testsuite>", "</testsuites>"])
    return re.sub("[\ufffe\uffff]", "", text)  # XML has no way to write them


def _to_sarif(report: _Report) -> str:
    from urllib.parse import quote  # noqa: PLC0415 # lazy: few runs need it

    results = []
    gates = _with_warnings(report)
    for gate in gates:
        level = _LEVELS.get(gate["outcome"])
        if level is None:
            continue
        result = {"ruleId": gate["name"], "level": level}
        if not gate["places"]:
            results.append({**result, "message": {"text": _reason(gate)}})
        for each in gate["places"]:
            file = {"uri": quote(_in_checkout(report, each["file"]))}
            region = {"startLine": each["line"]}
            location = {"physicalLocation": {"artifactLocation": file, "region": region}}
            results.append({**result, "message": {"text": each["message"]}, "locations": [location]})
    rules = [{"id": name} for name in dict.fromkeys(gate["name"] for gate in gates)]
    run = {"tool": {"driver": {"name": "Turngate", "rules": rules}}, "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


FORMATS: Mapping[str, Callable[[_Report], str]] = {
    "json": lambda report: json.dumps(report, indent=2),
    "markdown": _to_markdown,
    "github": _to_github,
    "junit": _to_junit,
    "sarif": _to_sarif,
}


def write_job_summary(report: _Report) -> None:
    """Append the report to the page of a job of GitHub Actions, if there is one."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"### Turngate\n\n{_to_markdown(report)}\n")


def _in_checkout(report: _Report, file: str) -> str:
    """Return the path of a file of the project in the checkout of GitHub Actions, if the project is a folder there."""
    checkout = os.environ.get("GITHUB_WORKSPACE")
    path = os.path.relpath(os.path.join(report["project"], file), checkout) if checkout else ".."
    return file if path.startswith("..") else path


def _with_warnings(report: _Report) -> list[_Report]:
    """Return the gates, and each problem of the settings as a gate that could not run: these formats have no other place for it."""
    common = {"name": "settings", "outcome": "could_not_run", "seconds": 0.0, "places": []}
    return [*report["gates"], *({**common, "reason": text} for text in report["warnings"])]


def _label(gate: _Report) -> str:
    return str(gate["outcome"]).replace("_", " ")


def bounded(reason: str) -> str:
    return keep_ends(reason, MAX_REASON_CHARS // 2, MAX_REASON_CHARS // 2)


def _reason(gate: _Report) -> str:
    return strip_controls(bounded(gate["reason"] or "")) or "it gave no reason"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", one_line(text, MAX_MESSAGE_CHARS))


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
