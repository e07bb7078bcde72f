"""`turngate runs`: the children of sessions, at work and finished. Looks at them, sends them on, ends them."""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module

from turngate.cli.commands.runs_format import chain_json, listing, story
from turngate.cli.commands.runs_summary import Chain, chains, shortest
from turngate.cli.project import read_prompt_from_stdin
from turngate.core.subagent_run import LIVING, SubagentRun
from turngate.errors import RegistryError, UsageError
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.paths import state_folder
from turngate.subagents.registry import FILE, Registry, owner_is_gone
from turngate.subagents.steering import check_steer, request_steer

NOBODY = "there are no runs of subagents; a session starts one with its tool Task"
BY_HAND = "killed by hand"


def run(options: argparse.Namespace) -> int:
    match options.action:
        case "show":
            return _show(options)
        case "steer":
            return _steer(options)
        case "kill":
            return _kill(options)
        case "recover":
            code: int = import_module("turngate.cli.commands.runs_recover").recover(options)
            return code
        case _:
            return _list(options)


@contextlib.contextmanager
def register() -> Iterator[Registry | None]:
    """The register of this user's runs; None: there is none, and to look for it makes none."""
    if not os.path.exists(os.path.join(state_folder(), FILE)):
        yield None
        return
    try:
        with os_errors_as_usage_errors(state_folder()):
            registry = Registry(state_folder())
        with contextlib.closing(registry):
            if registry.fault:
                print(f"! {registry.fault}", file=sys.stderr)
            yield registry
    except RegistryError as error:
        raise UsageError(f"{error}; repair it, or set TURNGATE_STATE to another folder") from None


@contextlib.contextmanager
def _filled() -> Iterator[Registry]:
    """The same where there must be something."""
    with register() as registry:
        if registry is None:
            raise UsageError(NOBODY)
        yield registry


# Looking


def _list(options: argparse.Namespace) -> int:
    with register() as registry:
        found = chains(registry) if registry else []
    if options.json:
        print(json.dumps([chain_json(chain, runs=options.all) for chain in found], indent=2))
    elif not found:
        print(NOBODY)
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        print("\n".join(listing(found, time.time(), every=options.all, colour=colour)))
    return 0


def _show(options: argparse.Namespace) -> int:
    with _filled() as registry:
        chain = _wanted(registry, options.id)
    if options.json:
        print(json.dumps(chain_json(chain, runs=True), indent=2))
    else:
        print("\n".join(story(chain, time.time())))
    return 0


def _wanted(registry: Registry, start: str) -> Chain:
    """The one child that is meant by the beginning of an id: of it, or of any of its runs."""
    every = chains(registry)
    found = [chain for chain in every if start and chain.is_called(start)]
    if len(found) == 1:
        return found[0]
    if not every:
        raise UsageError(NOBODY)
    wide = shortest(every)
    lines = "".join(f"\n  {chain.id[:wide]}  {chain.what}" for chain in (found or every)[-10:])
    said = f"{start} is the beginning of {len(found)} ids" if found else f"there is no run {start!r}"
    raise UsageError(f"{said}; there {'are' if len(found or every) > 1 else 'is'}{lines}")


# Changing


def _steer(options: argparse.Namespace) -> int:
    prompt = read_prompt_from_stdin() if options.prompt == "-" else options.prompt
    with _filled() as registry:
        chain = _wanted(registry, options.id)
        if chain.last.state == "steering":
            raise UsageError(f"the run {chain.id} is being sent on already; wait until it works again")
        if chain.last.state not in LIVING:
            raise _finished(chain)
        check_steer(chain.last, prompt, by="user", since=_since_steered(chain.last))
        request_steer(registry, chain.last, prompt)
    print(f"steered  {chain.id[:8]}  {chain.what}")
    if chain.left:
        print(
            f"Whoever ran it is gone: it goes on with the new prompt when somebody recovers it.\n{_how(chain)}"
        )
    else:
        print(
            "It drops what it does and goes on with the new prompt within a second; hooks are asked as before."
        )
    return 0


def _since_steered(run: SubagentRun) -> float:
    """A run that was started by a steer is as old as that steer."""
    return time.time() - run.created if run.replaces and not run.by_hook else float("inf")


def _kill(options: argparse.Namespace) -> int:
    if not (options.id or options.every):
        raise UsageError(
            "which run? `turngate runs kill ID`, or --all for every one; `turngate runs` lists them"
        )
    with _filled() as registry:
        killed = _killed_all(registry, options.id) if options.every else _killed(registry, options.id)
        left = [run for run in killed if owner_is_gone(registry.state, run.owner)]
    for run in sorted(killed, key=lambda run: (run.depth, run.created)):
        print(f"killed  {run.chain[:8]}  {Chain((run,)).what}")
    if left:
        print(f"Whoever ran {len(left)} of them is gone: plugins hear of it when somebody recovers.")
    return 0


def _killed(registry: Registry, start: str) -> list[SubagentRun]:
    chain = _wanted(registry, start)
    killed = registry.kill(chain.last.id, BY_HAND)
    if not killed:
        raise _finished(chain)
    return killed


def _finished(chain: Chain) -> UsageError:
    return UsageError(f"the run {chain.id} is already finished: {chain.state}")


def _killed_all(registry: Registry, start: str | None) -> list[SubagentRun]:
    """Everything that works, or that one session has started."""
    working = [run for run in registry.all() if run.state in LIVING]
    meant = {run.parent for run in working if run.parent.startswith(start or "")}
    if not meant:
        raise UsageError(f"no subagent {f'of a session {start} ' if start else ''}is at work")
    if start and len(meant) > 1:
        lines = "".join(f"\n  {parent}" for parent in sorted(meant))
        raise UsageError(f"{start} is the beginning of {len(meant)} sessions; there are{lines}")
    return [run for parent in sorted(meant) for run in registry.kill_all(parent, "", BY_HAND)]


def _how(chain: Chain) -> str:
    return f"  turngate runs recover --project {chain.project}"
