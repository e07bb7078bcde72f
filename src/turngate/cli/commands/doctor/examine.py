"""`turngate doctor`: say for each hook whether it will run and, if it is a gate, whether it will hold."""

import argparse
import contextlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterable

from turngate.check.problems import find_problems
from turngate.cli.commands.check import unignored_local_settings
from turngate.cli.commands.doctor.format import (
    host_json,
    host_summary,
    print_diagnosis,
    print_facts,
    print_host,
    print_proof,
    report_json,
    summary,
)
from turngate.cli.console.conversation_text import format_waiting
from turngate.cli.console.progress import ProgressLine, show_if_slow
from turngate.cli.console.signals import restore_handlers, run_until_signal
from turngate.cli.main import EXIT_ALLOWED, EXIT_NOT_ENFORCED, EXIT_PROBLEMS
from turngate.cli.project import plugin_folders, project_folder, search_note
from turngate.cli.review.entries import what_to_do
from turngate.cli.review.run_history import Histories
from turngate.core.constants import STOP_EVENTS
from turngate.core.dialect import HOST
from turngate.core.hooks.kinds import label
from turngate.core.settings import Settings
from turngate.doctor.diagnosis import Diagnosis, HookDiagnosis, HookFacts, LastRun, diagnose
from turngate.doctor.environment import Fact, inspect_turngate
from turngate.doctor.hosts.diagnosis import HostDiagnosis, diagnose_host, with_host_events
from turngate.doctor.proof.project_copy import ProjectCopy, ProjectTooLarge, copy_project
from turngate.doctor.proof.proof import Proof, cannot_prove, prove, why_unprovable
from turngate.doctor.review import ReviewedSettings, review_settings
from turngate.hosts.all_hosts import HOSTS
from turngate.project.files import LOCAL
from turngate.settings.agent_types import load_agent_types
from turngate.settings.paths import script_files, settings_files
from turngate.state.paths import state_folder
from turngate.trust.fingerprint import scripts_of


def examine(options: argparse.Namespace) -> int:
    dialect = HOST.name if options.host else options.dialect
    project = project_folder(options.project, dialect)
    with show_if_slow("examining the hooks"):
        reviewed = review_settings(
            project, dialect=dialect, plugin_dirs=plugin_folders(options.plugin_dir), extra=options.settings
        )
        settings = reviewed.settings
        diagnosis = _diagnose(reviewed, project)
        facts = inspect_turngate(state_folder(), settings.environ_of_models(os.environ))
        host = diagnose_host(HOSTS[options.host], settings, project, os.environ) if options.host else None
        if host:
            diagnosis = with_host_events(diagnosis, host.host)
    if not options.json:
        if note := search_note(project, options.project):
            print(note)
        print_facts([*facts, *(host.facts if host else ())])
        if host:
            print_host(host)
        print_diagnosis(diagnosis)
    proofs: dict[int, Proof] = {}
    try:
        for hook in diagnosis.hooks if options.prove else ():
            if hook.rule.event in STOP_EVENTS:
                proofs[id(hook)] = _prove(hook, settings, project)
                if not options.json:
                    print_proof(hook, proofs[id(hook)], is_first=len(proofs) == 1)
    except _Interrupted as interrupted:
        print(
            f"turngate: ended by {interrupted.number.name}; the copy of the project is removed",
            file=sys.stderr,
        )
        return 128 + interrupted.number
    if options.json:
        report = report_json(diagnosis, facts, proofs, project)
        print(json.dumps({**report, "host": host_json(host)} if host else report, indent=2))
    else:
        if host:
            print(host_summary(host))
        print(summary(diagnosis, proofs.values()))
    return max(_exit_code(diagnosis, facts, settings, proofs.values()), _exit_code_of_host(host))


def _diagnose(reviewed: ReviewedSettings, project: str) -> Diagnosis:
    settings = reviewed.settings
    agent_types, _ = load_agent_types(project, settings.plugin_dirs, files=LOCAL)
    problems = (*find_problems(settings, project), *unignored_local_settings(project, settings.dialect.name))
    histories = Histories(project, state_folder())
    paths = _paths_of_settings(project, settings.dialect.name)
    facts = []
    for rule, hook in zip(settings.rules, reviewed.hooks, strict=True):
        file = hook.rule.file or ""
        last = next(iter(histories.of(hook.rule).last), None)
        facts.append(
            HookFacts(
                rule,
                hook.key,
                hook.status,
                how_to_approve=what_to_do(hook.key),
                last_run=LastRun(last.time, last.outcome, last.reason, last.seconds) if last else None,
                changed=max(
                    map(_modified, (paths.get(file, os.path.join(project, file)), *scripts_of(rule, project)))
                ),
            )
        )
    gone = (HookFacts(rule, key, "gone", _how_to_forget(key)) for rule, key in reviewed.gone)
    return diagnose([*facts, *gone], settings, problems, project=project, agent_types=agent_types)


def _how_to_forget(key: str) -> str:
    return f"configure it again, or forget it with `turngate hooks reject {shlex.quote(key)}`"


def _paths_of_settings(project: str, dialect: str) -> dict[str, str]:
    files = [
        *settings_files(project, dialect, files=LOCAL),
        *(file for _, file in script_files(project, dialect)),
    ]
    return {file.display_name: file.path for file in files}


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except (OSError, ValueError):
        return 0.0


def _exit_code(
    diagnosis: Diagnosis, facts: Iterable[Fact], settings: Settings, proofs: Iterable[Proof]
) -> int:
    is_refuted = any(proof.result == "NOT PROVED" for proof in proofs)
    if is_refuted or settings.not_loaded or any(hook.fails_to_hold for hook in diagnosis.hooks):
        return EXIT_NOT_ENFORCED
    has_problem = (
        any(hook.has_problem for hook in diagnosis.hooks)
        or any(problem.severity != "note" for problem in diagnosis.problems)
        or any(fact.is_problem for fact in facts)
    )
    return EXIT_PROBLEMS if has_problem else EXIT_ALLOWED


def _exit_code_of_host(host: HostDiagnosis | None) -> int:
    if host is None:
        return EXIT_ALLOWED
    if host.fails_to_hold:
        return EXIT_NOT_ENFORCED
    return EXIT_PROBLEMS if host.has_problem else EXIT_ALLOWED


# Proofs


class _Interrupted(Exception):
    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


def _prove(hook: HookDiagnosis, settings: Settings, project: str) -> Proof:
    """Try a gate in a copy of its own, which is removed in every case. Raises _Interrupted."""
    if why := why_unprovable(hook):
        return cannot_prove(why)
    try:
        with contextlib.ExitStack() as stack:
            with show_if_slow("copying the project"):
                copy = stack.enter_context(copy_project(project))
            result = run_until_signal(_prove_in(copy, hook, settings, project))
    except ProjectTooLarge as error:
        return cannot_prove(f"the project is {error.strerror}")
    except OSError as error:
        return cannot_prove(f"the project cannot be copied: {error}")
    finally:
        restore_handlers()  # so that the next copy can be interrupted
    if isinstance(result, signal.Signals):
        raise _Interrupted(result)
    return result


async def _prove_in(copy: ProjectCopy, hook: HookDiagnosis, settings: Settings, project: str) -> Proof:
    waiting = format_waiting(label(hook.rule.hook), settings.timeout_of(hook.rule))
    async with ProgressLine(lambda: [waiting]).shown():
        return await prove(hook, settings, project, copy)
