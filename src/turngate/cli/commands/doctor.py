"""`turngate doctor`: say for each hook whether it will run and, if it is a gate, whether it will hold."""

import argparse
import contextlib
import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from turngate.check.lint import find_problems
from turngate.cli.arguments import (
    EXIT_ERRORS_AND_SIGNALS,
    EXIT_USAGE,
    Parser,
    add_json_option,
    add_project_options,
)
from turngate.cli.commands.check import unignored_local_settings
from turngate.cli.console.conversation_text import counted, flat, format_time, format_waiting
from turngate.cli.console.progress import ProgressLine, show_if_slow
from turngate.cli.console.signals import restore_handlers, run_to_end
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_ALLOWED, EXIT_NOT_ENFORCED, EXIT_PROBLEMS
from turngate.cli.project import plugin_folders, project_folder, search_note, with_place
from turngate.cli.review.entries import Histories, what_to_do
from turngate.core.constants import STOP_EVENTS
from turngate.core.dialect import HOST
from turngate.core.hooks.kinds import label
from turngate.core.settings import Problem, Settings
from turngate.core.text import quote_name
from turngate.core.verdict.json_output import hook_json
from turngate.doctor.diagnosis import (
    Diagnosis,
    Fact,
    HookDiagnosis,
    HookFacts,
    LastRun,
    ReviewedSettings,
    diagnose,
    inspect_turngate,
    position,
    review_settings,
)
from turngate.doctor.hosts.diagnosis import HostDiagnosis, HostHookDiagnosis, diagnose_host, with_host_events
from turngate.doctor.proof.project_copy import ProjectCopy, ProjectTooLarge, copy_project
from turngate.doctor.proof.proof import Proof, prove, why_unprovable
from turngate.history.past_stops import changed_at
from turngate.hosts.all_hosts import HOSTS
from turngate.project.files import LOCAL
from turngate.settings.agent_types import load_agent_types
from turngate.settings.paths import script_files, settings_files
from turngate.state.paths import state_folder
from turngate.trust.fingerprint import scripts_of


def declare(parser: Parser) -> None:
    parser.ssh_hint = (
        "it looks for programs and copies projects here: run it there, or `turngate gates run --ssh` here"
    )
    parser.description = """\
Explain, in one line per hook, why it will or won't run, or won't do what you meant, and what to do about it.
With --prove, run each gate of a stop in a temporary copy of the project: first as it is, then with a
failure that it should find (a failing test, an open checklist item, a dirty tree).
With --host, also examine the settings of an agent program: whether `turngate hook` is there and will run (trust,
timeout, program), and which other stop hooks cannot block. Below that come the hooks that
`turngate hook` runs: those of `.turngate` and `.mux`."""
    parser.epilog = f"""\
Examples:
  turngate doctor                every hook of this project, and yours
  turngate doctor --prove        also show that each gate blocks
  turngate doctor --host codex   does Codex run Turngate here, and which of its stop hooks cannot block?
  turngate doctor --json         one JSON object for programs

Exit codes:
  0   every hook will run
  1   there are problems, but every gate will run and hold
  13  a gate will not run or hold, could not be loaded, or did not block with --prove;
      or HOST does not run Turngate
  {EXIT_USAGE}
  {EXIT_ERRORS_AND_SIGNALS}"""
    add_project_options(parser)
    parser.add_argument("--prove", action="store_true", help="test each gate in a copy of the project")
    parser.add_argument(
        "--host",
        choices=list(HOSTS),
        metavar="HOST",
        help=f"also examine this agent program: {', '.join(HOSTS)}",
    )
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    dialect = HOST.name if options.host else options.dialect
    project = project_folder(options.project, dialect)
    with show_if_slow("examining the hooks"):
        reviewed = review_settings(
            project, dialect=dialect, plugin_dirs=plugin_folders(options.plugin_dir), extra=options.settings
        )
        settings = reviewed.settings
        histories = Histories(project, state_folder())
        diagnosis = _diagnose(reviewed, project, histories)
        facts = inspect_turngate(state_folder(), settings.environ_of_models(os.environ))
        if histories.unknown_program:
            when, program = histories.unknown_program
            text = f"{program}; Turngate has blocked its agent on {format_time(when, '%Y-%m-%d')}"
            hint = "if its agent stops even if a gate blocks, let it run `turngate hook --exit-code`"
            facts = (*facts, Fact("unknown program", text, hint=hint))
        host = diagnose_host(HOSTS[options.host], settings, project, os.environ) if options.host else None
        if host:
            diagnosis = with_host_events(diagnosis, host.host)
    if not options.json:
        if note := search_note(project, options.project):
            print(note)
        for fact in (*facts, *(host.facts if host else ())):
            text = f"{fact.name}: {fact.text}"
            print(paint(flat(f"! {text}"), "alert") if fact.is_problem else flat(text))
            _print_hint(fact.hint, "  ", project)
        if host:
            _print_files(_lines_of(host), host.problems, project, f" of {host.host.title}")
        own = ((hook.rule.file or "Python", _name(hook), hook) for hook in diagnosis.hooks)
        _print_files(own, diagnosis.problems, project)
    proofs: dict[int, Proof] = {}
    for hook in diagnosis.hooks if options.prove else ():
        if hook.rule.event not in STOP_EVENTS:
            continue
        proof = _prove(hook, settings, project)
        if not options.json:
            if not proofs:
                print(paint("Proofs, each in a copy of the project", "bold"))
            result = paint(f"{proof.result:<{LABEL_WIDTH}}", _STYLES[proof.result])
            print(f"  {result}  {flat(f'{_name(hook)}: {proof.text}')}")
            _print_hint(proof.hint, "    ", project)
        proofs[id(hook)] = proof
    if options.json:
        report = report_json(diagnosis, facts, proofs, project)
        print(json.dumps({**report, "host": host_json(host)} if host else report, indent=2))
    else:
        if host and host.runs_turngate:
            print(paint(f"{host.host.title} asks Turngate at every stop", "good"))
        elif host:
            title = host.host.title
            print(paint(f"{title} does NOT ask Turngate, so no hook of Turngate runs there", "alert"))
        print(summary(diagnosis, proofs.values()))
    if any(proof.result == "NOT PROVED" for proof in proofs.values()) or settings.not_loaded:
        return EXIT_NOT_ENFORCED
    examined: list[HookDiagnosis | HostDiagnosis] = [*diagnosis.hooks, *([host] if host else [])]
    if any(each.fails_to_hold for each in examined):
        return EXIT_NOT_ENFORCED
    has_problem = (
        any(each.has_problem for each in examined)
        or any(problem.severity != "note" for problem in diagnosis.problems)
        or any(fact.is_problem for fact in facts)
    )
    return EXIT_PROBLEMS if has_problem else EXIT_ALLOWED


def _diagnose(reviewed: ReviewedSettings, project: str, histories: Histories) -> Diagnosis:
    settings = reviewed.settings
    agent_types, _ = load_agent_types(project, settings.plugin_dirs, files=LOCAL)
    problems = (*find_problems(settings, project), *unignored_local_settings(project, settings.dialect.name))
    scripts = (file for _, file in script_files(project, settings.dialect.name))
    files = (*settings_files(project, settings.dialect.name, files=LOCAL), *scripts)
    paths = {file.display_name: file.path for file in files}
    facts = []
    for rule, hook in zip(settings.rules, reviewed.hooks, strict=True):
        file = paths.get(hook.rule.file or "", os.path.join(project, hook.rule.file or ""))
        last = next(iter(histories.of(hook.rule).last), None)
        facts.append(
            HookFacts(
                rule,
                hook.key,
                hook.status,
                how_to_approve=what_to_do(hook.key),
                last_run=LastRun(last.time, last.outcome, last.reason, last.seconds) if last else None,
                changed=max(map(changed_at, (file, *scripts_of(rule, project)))),
            )
        )
    for rule, key in reviewed.gone:
        hint = f"configure it again, or forget it with `turngate hooks reject {shlex.quote(key)}`"
        facts.append(HookFacts(rule, key, "gone", hint))
    return diagnose(facts, settings, problems, project=project, agent_types=agent_types)


# Proofs


def _prove(hook: HookDiagnosis, settings: Settings, project: str) -> Proof:
    """Try a gate in a copy of its own, which is removed in every case, also after a signal."""
    if why := why_unprovable(hook):
        return Proof("cannot prove", why)
    try:
        with contextlib.ExitStack() as stack:
            with show_if_slow("copying the project"):
                copy = stack.enter_context(copy_project(project))
            work = _prove_in(copy, hook, settings, project)
            return run_to_end(work, "; the copy of the project is removed")
    except ProjectTooLarge as error:
        return Proof("cannot prove", f"the project is {error.strerror}")
    except OSError as error:
        return Proof("cannot prove", f"the project cannot be copied: {error}")
    finally:
        restore_handlers()  # so that the next copy can be interrupted


async def _prove_in(copy: ProjectCopy, hook: HookDiagnosis, settings: Settings, project: str) -> Proof:
    waiting = format_waiting(label(hook.rule.hook), settings.timeout_of(hook.rule))
    async with ProgressLine(lambda: [waiting]).shown():
        return await prove(hook, settings, project, copy)


# Output

LABEL_WIDTH = len("will NOT hold")
_STYLES = {
    "will run": "good",
    "will run, but": "notice",
    "will NOT hold": "alert",
    "will NOT run": "alert",
    "proved": "good",
    "NOT PROVED": "alert",
    "cannot prove": "notice",
}
_RESULTS = ("proved", "NOT PROVED", "cannot prove")


def _print_files(
    lines: Iterable[tuple[str, str, HookDiagnosis | HostHookDiagnosis]],
    problems: Sequence[Problem],
    project: str,
    owner: str = "",
) -> None:
    """Print hooks, each with its file and its name, and problems file by file. `owner`: the host whose files they are."""
    lines = list(lines)
    for file in dict.fromkeys((*(file for file, _, _ in lines), *(each.file for each in problems))):
        print(paint(flat((file or "settings") + owner), "bold"))
        for place, name, hook in lines:
            if place == file:
                _print_hook(name, hook, project)
        for problem in problems:
            if problem.file == file:
                text = ": ".join(filter(None, (problem.severity, problem.position, problem.message)))
                print(f"  {paint(flat(text), 'dim' if problem.severity == 'note' else 'alert')}")
                _print_hint(problem.hint, "    ", project)


def _lines_of(diagnosis: HostDiagnosis) -> Iterator[tuple[str, str, HostHookDiagnosis]]:
    """Yield the hooks with files, positions and names; those of Turngate of which the same is known are one line."""
    groups: dict[object, list[HostHookDiagnosis]] = {}
    for hook in diagnosis.hooks:
        key = hook.findings if hook.hook.is_turngate else hook.hook.position
        groups.setdefault((hook.hook.file.name, key), []).append(hook)
    for first, *others in groups.values():
        positions = ", ".join(hook.hook.position for hook in (first, *others))
        yield first.hook.file.name, f"{positions} {first.name}", first


def _print_hook(name: str, hook: HookDiagnosis | HostHookDiagnosis, project: str) -> None:
    others = list(hook.findings)
    first = others.pop(0) if others and others[0].outlook != "will run" else None
    reason = f": {first.message}" if first else ""
    print(f"  {paint(f'{hook.outlook:<{LABEL_WIDTH}}', _STYLES[hook.outlook])}  {flat(name + reason)}")
    if first:
        _print_hint(first.hint, "    ", project)
    for finding in others:
        print(f"    {'note' if finding.severity == 'note' else 'also'}: {flat(finding.message)}")
        _print_hint(finding.hint, "      ", project)


def _print_hint(hint: str | None, indent: str, project: str) -> None:
    if hint:
        print(f"{indent}→ {with_place(flat(hint), project)}")


def _name(hook: HookDiagnosis) -> str:
    return f"{position(hook.rule)} {quote_name(label(hook.rule.hook))}"


def summary(diagnosis: Diagnosis, proofs: Iterable[Proof]) -> str:
    count = len(diagnosis.hooks)
    failing = sum(hook.fails_to_hold for hook in diagnosis.hooks)
    run = sum(hook.outlook != "will NOT run" for hook in diagnosis.hooks)
    parts = [counted(count, "hook")]
    if count:
        parts.append(f"{run} will run" if run < count else "all will run" if count > 1 else "it will run")
    if failing:
        parts.append(f"{counted(failing, 'gate')} will NOT hold")
    results: Counter[str] = Counter(proof.result for proof in proofs)
    parts += [f"{results[result]} {result}" for result in _RESULTS if results[result]]
    return paint(", ".join(parts), "alert" if failing or results["NOT PROVED"] else "good")


def host_json(diagnosis: HostDiagnosis) -> dict[str, Any]:
    return {
        "name": diagnosis.host.name,
        "runs_turngate": diagnosis.runs_turngate,
        "facts": [fact._asdict() for fact in diagnosis.facts],
        "hooks": [
            {
                "event": hook.hook.event,
                "file": hook.hook.file.name,
                "position": hook.hook.position,
                "command": hook.hook.command,
                "is_turngate": hook.hook.is_turngate,
                "outlook": hook.outlook,
                "findings": [finding._asdict() for finding in hook.findings],
            }
            for hook in diagnosis.hooks
        ],
        "problems": [asdict(problem) for problem in diagnosis.problems],
    }


def report_json(
    diagnosis: Diagnosis, facts: Iterable[Fact], proofs: Mapping[int, Proof], project: str
) -> dict[str, Any]:
    return {
        "project": project,
        "turngate": [fact._asdict() for fact in facts],
        "hooks": [
            {
                "event": hook.rule.event,
                "file": hook.rule.file,
                "position": position(hook.rule),
                "hook": hook_json(hook.rule.hook),
                "gate": hook.is_gate,
                "key": hook.facts.key,
                "trust": hook.facts.trust,
                "outlook": hook.outlook,
                "findings": [finding._asdict() for finding in hook.findings],
                "last_run": hook.facts.last_run._asdict() if hook.facts.last_run else None,
                "proof": asdict(proofs[id(hook)]) if id(hook) in proofs else None,
            }
            for hook in diagnosis.hooks
        ],
        "problems": [asdict(problem) for problem in diagnosis.problems],
    }
