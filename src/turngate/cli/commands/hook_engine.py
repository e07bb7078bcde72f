"""The part of `turngate hook` that asks hooks; loaded only when there may be one."""

import os
import signal
import sys
from dataclasses import replace
from typing import Any

from turngate.cli.commands.hook import HookOptions
from turngate.cli.console.signals import run_until_signal
from turngate.core.constants import STOP_EVENTS, STOP_OF_START
from turngate.core.events.hook_input import read_event
from turngate.core.settings import Settings
from turngate.core.verdict.decisions import Allow
from turngate.core.verdict.verdict import Stop
from turngate.engine import ask_hooks
from turngate.errors import UsageError
from turngate.hosts.all_hosts import PORTABLE, find_host
from turngate.hosts.host import OWN_TIMEOUT_S, Host, HostAnswer
from turngate.hosts.input_fields import recognise
from turngate.hosts.quick_stop import keep, signatures
from turngate.hosts.stop import HostStop, ask_at_stop, stop_event
from turngate.models.resolve import JudgeModels
from turngate.ports import World, describe_killed
from turngate.shells.local import LocalShell
from turngate.state.journal import Journal
from turngate.state.paths import state_folder
from turngate.stop_hooks import make_world
from turngate.trust.load import load_settings

UNKNOWN_HOST = (
    "this is not the input of an agent program that Turngate knows, so the answer is the one that most programs "
    "understand; name the program with --host if it is one of them"
)


def answer_event(
    options: HookOptions,
    fields: dict[str, Any],
    known: dict[str, Any],
    project: str,
    count: str,
    quick: str | None,
) -> int:
    """Ask the hooks and print the answer in the language of the host. `count`, `quick`: files kept for this agent."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is inherited as ignored, exit codes are lost
    host, limit = _host(options.host, fields), _time_limit(options.timeout)
    settings = load_settings(project, dialect="host")
    journal = Journal(state_folder(), project)
    judges = JudgeModels(settings.judge, environ=settings.environ_of_models(os.environ))
    world = make_world(LocalShell(), project, settings, journal, judges)
    world.logs, world.time_limit = False, limit
    # Before the gates run: what changes meanwhile was not checked.
    found = signatures(project) if quick else None
    ended = run_until_signal(_ask(host, fields, known, settings, world, judges, count))
    journal.close()
    if isinstance(ended, signal.Signals):
        print(f"turngate hook: ended by {ended.name} before an answer", file=sys.stderr)
        return 128 + ended
    if ended is None:
        return 0
    if quick and found and _all_hold(ended, settings, world):
        keep(quick, found, project)
    trouble = [*([describe_killed(world)] if world.killed else ()), *filter(None, [journal.fault])]
    if host is PORTABLE:
        trouble.append(UNKNOWN_HOST)
    return _print(host, replace(ended.answer, notices=(*ended.answer.notices, *trouble)))


def _host(given: str | None, fields: dict[str, Any]) -> Host:
    name = given or recognise(fields)
    return find_host(name) if name else PORTABLE


def _time_limit(given: str | None) -> float:
    """Return the seconds for all hooks together."""
    try:
        seconds = OWN_TIMEOUT_S if given is None else float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86_400:
        raise UsageError(f"--timeout {given}: expected a number of seconds")
    return seconds


async def _ask(
    host: Host,
    fields: dict[str, Any],
    known: dict[str, Any],
    settings: Settings,
    world: World,
    judges: JudgeModels,
    count: str,
) -> HostStop | None:
    """Return the answer to a stop; None at a start, where gates only record what is there."""
    name = known["hook_event_name"]
    if name in STOP_EVENTS:
        try:
            event = stop_event(name, known, fields, world.project)
        except (ValueError, TypeError) as error:
            raise UsageError(f"the event on stdin: {error}") from None
        stop = await ask_at_stop(host, event, settings, world, count)
    else:
        rules = tuple(rule for rule in settings.rules if rule.event == STOP_OF_START[name])
        await ask_hooks(read_event(name, known, cwd=world.project), replace(settings, rules=rules), world)
        stop = None
    await world.close(settings.dialect.background_grace)
    await judges.close()
    return stop


def _all_hold(stop: HostStop, settings: Settings, world: World) -> bool:
    """Return whether nothing but gates was asked, and each of them passes again while the files are the same."""
    verdict = stop.verdict
    if not isinstance(verdict, Stop) or verdict.halted or stop.answer.notices or settings.plugin_dirs:
        return False
    return bool(verdict.runs) and all(
        isinstance(run.decision, Allow) and run.rule in world.held for run in verdict.runs
    )


def _print(host: Host, answer: HostAnswer) -> int:
    output = host.write_answer(answer)
    for text, stream in ((output.stderr, sys.stderr), (output.stdout, sys.stdout)):
        if text:
            print(text, file=stream)
    return output.code
