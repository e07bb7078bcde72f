"""`turngate status`: a project on one screen: agent programs, gates, approvals, problems in settings, and the next command."""

import argparse
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.cli.arguments import EXIT_ERRORS, EXIT_USAGE, PROJECT_HELP, Parser, add_json_option
from turngate.cli.commands.check import find_all_problems
from turngate.cli.commands.goal import goal_line, goals_json
from turngate.cli.console import conversation_text as fmt
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.project import project_folder, with_place
from turngate.cli.review.entries import PENDING, Histories, PastRun, shown_key
from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks.selection import switched_off_by
from turngate.doctor.diagnosis import is_gate, review_settings
from turngate.doctor.hosts.diagnosis import diagnose_files
from turngate.hosts.all_hosts import AGENT_MARKERS, HOSTS
from turngate.project.files import LOCAL
from turngate.project.safe_paths import is_inside
from turngate.settings.load import load_layers, project_path
from turngate.state.paths import state_folder


def declare(parser: Parser) -> None:
    parser.ssh_hint = "`turngate hooks --ssh` shows the hooks of a project on another machine"
    parser.description = """\
Show a project on one screen: which agent programs run Turngate here, what each gate last decided, which
hooks wait for your approval, how many problems the settings have, and the command to run next. It runs no
gate."""
    parser.epilog = f"""\
Examples:
  turngate status                    this project
  turngate status --project ../api   another project
  turngate status --json             one JSON object for programs

Exit codes:
  0   printed, whatever it says
  {EXIT_USAGE}
  {EXIT_ERRORS}"""
    parser.add_argument("--project", metavar="DIR", help=PROJECT_HELP)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    project = project_folder(options.project)
    with show_if_slow("reading the settings"):
        status = _read(project)
        next_step = with_place(_next_step(status), project)
    if options.json:
        print(json.dumps({**asdict(status), "next": next_step}, indent=2))
        return 0
    for heading, rows in _sections(status):
        print(paint(fmt.flat(heading), "bold"))
        width = max((len(shown_key(name)) for name, _, _ in rows), default=0)
        for name, text, style in rows:
            print(f"  {shown_key(name):<{width}}  {paint(fmt.flat(text), style)}")
    print(f"Next: {next_step}")
    return 0


@frozen
class HostStatus:
    """An agent program that has the line of Turngate, or is installed."""

    name: str
    title: str
    files: tuple[str, ...]  # with the line
    runs: bool  # Turngate, for an agent that starts in the current folder
    why_not: str | None  # or what limits it


@frozen
class GateStatus:
    key: str
    trust: str  # approved, new, changed, rejected or exempt
    last: PastRun | None
    passed: float | None  # when it last passed


@frozen
class Status:
    project: str
    hosts: tuple[HostStatus, ...]
    gates: tuple[GateStatus, ...]
    pending: tuple[str, ...]  # keys of all hooks that wait for approval, also those that are no gates
    goals: tuple[dict[str, Any], ...]  # of sessions
    gone: tuple[str, ...]  # keys of hooks that were approved and are not configured any more
    problems: dict[str, int]  # by severity


def _read(project: str) -> Status:
    reviewed = review_settings(project, dialect="turngate")
    settings = reviewed.settings
    histories = Histories(project, state_folder())
    gates = []
    for hook in reviewed.hooks:
        rule, is_on = hook.rule, not switched_off_by(hook.rule, settings)
        if rule.event in STOP_EVENTS and is_on and is_gate(rule, settings):
            history = histories.of(rule)
            gates.append(GateStatus(hook.key, hook.status, next(iter(history.last), None), history.passed))
    given = {"dialect": "turngate", "plugin_dirs": (), "extra": None}
    return Status(
        project,
        tuple(_hosts(project)),
        tuple(gates),
        tuple(hook.key for hook in reviewed.hooks if hook.status in PENDING),
        tuple(goals_json(project, state_folder())),
        tuple(key for _, key in reviewed.gone),
        dict(Counter(problem.severity for problem in find_all_problems(project, given)[1])),
    )


def _hosts(project: str) -> Iterator[HostStatus]:
    settings = load_layers(project_path(project, LOCAL), dialect="host", files=LOCAL).merge()
    seen = set[str]()  # VS Code has the files of Claude Code
    for host in HOSTS.values():
        diagnosis = diagnose_files(host, settings, project, os.environ)
        lines = [hook for hook in diagnosis.hooks if hook.hook.is_turngate]
        files_of_host = {line.hook.file.path for line in lines if line.hook.file.owner is host}
        own = files_of_host - seen
        seen |= files_of_host
        own_files = [each for each in diagnosis.problems if each.file in host.files.values()]
        unread = [f"{each.file} {each.message}" for each in own_files if each.event is None]
        if not (own or unread or any(map(shutil.which, host.programs or (host.name,)))):
            continue
        files = tuple(dict.fromkeys(line.hook.file.name for line in lines))
        stops = [line for line in lines if line.hook.our_event == "Stop"]
        worst = next((line.findings[0] for line in stops if line.findings), None)
        why = worst.message if worst else next(iter(unread), None)
        is_below = is_inside(os.getcwd(), project) and os.getcwd() != project
        in_project_only = stops and all(line.hook.file.level == "project" for line in stops)
        if why is None and in_project_only and is_below:
            why = "an agent that starts in this subfolder may not read it"
        yield HostStatus(host.name, host.title, files, diagnosis.runs_turngate, why)


def _next_step(status: Status) -> str:
    """Return the command to run now, and what for."""
    broken = next((host for host in status.hosts if host.why_not and not host.runs), None)
    last = {gate.last.outcome if gate.last else None for gate in status.gates}
    if status.problems.get("error"):
        return "`turngate check` shows which settings do not work"
    if not status.gates:
        return "`turngate init` writes gates for the checks of this project"
    if status.pending:
        by = "a person runs it" if any(name in os.environ for name in AGENT_MARKERS) else "and asks you"
        return f"`turngate hooks approve --all` shows what is not approved, {by}"
    if not any(host.files or host.why_not for host in status.hosts):
        name = status.hosts[0].name if len(status.hosts) == 1 else "HOST"
        return f"`turngate install {name}` lets an agent program run these gates"
    if broken:
        return f"`turngate doctor --host {broken.name}` says why {broken.title} does not run Turngate here"
    if status.problems.get("warning"):
        return "`turngate check` shows which settings do not do what they seem to"
    if last & {"failed", "timeout"}:
        return "`turngate doctor` says why a gate gave no decision"
    if last == {None}:
        return "`turngate fire Stop` runs the gates now, as if an agent had said that it is done"
    return "`turngate doctor --prove` shows that each gate blocks"


# Output


def _sections(status: Status) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield each heading with its rows: a name, a text and a style."""
    yield f"Project {status.project}", []
    hosts = [(host.title, *_host_text(host)) for host in status.hosts]
    yield "Agent programs", hosts or [("none", "no agent program is on PATH or runs Turngate", "dim")]
    gates = [(gate.key, *_gate_text(gate)) for gate in status.gates]
    yield "Gates", gates or [("none", "nothing is checked when an agent stops", "notice")]
    if status.goals:
        yield "Goals", [(goal["goal"], goal_line(goal), "plain") for goal in status.goals]
    shown = {gate.key for gate in status.gates}
    others = [(key, "waits for your approval", "notice") for key in status.pending if key not in shown]
    others += [(key, "was approved, but is no longer configured", "alert") for key in status.gone]
    if others:
        yield "Other hooks", others
    counts = [fmt.counted(n, name) for name in ("error", "warning") if (n := status.problems.get(name))]
    if counts:
        hint = with_place("`turngate check` lists them", status.project)
        yield "Settings", [("problems", f"{', '.join(counts)}; {hint}", "alert")]


def _host_text(host: HostStatus) -> tuple[str, str]:
    if not host.files and not host.why_not:
        return f"does not run Turngate; `turngate install {host.name}`", "dim"
    where = f" ({', '.join(host.files)})" if host.files else ""
    text = f"{'runs Turngate' if host.runs else 'does NOT run Turngate here'}{where}"
    style = "good" if host.runs and not host.why_not else "notice" if host.runs else "alert"
    return f"{text}: {host.why_not}" if host.why_not else text, style


def _gate_text(gate: GateStatus) -> tuple[str, str]:
    if gate.trust in PENDING:
        return f"waits for your approval ({gate.trust})", "notice"
    if gate.trust == "rejected":
        return "rejected, so it does not run", "dim"
    if gate.last is None:
        return "has not run yet", "dim"
    minutes = "%Y-%m-%d %H:%M"
    label = fmt.outcome_label(gate.last.outcome)
    text = f"{label} {fmt.format_time(gate.last.time, minutes)}"
    if gate.last.outcome != "allow":
        text += f": {fmt.first_line(gate.last.reason)}" if gate.last.reason else ""
        text += f"; last passed {fmt.format_time(gate.passed, minutes)}" if gate.passed else "; never passed"
    return text, fmt.label_style(label)
