"""One experiment in a process of its own, which has no threads and can be forked; prints JSON.

python -m tests.support.crash steps STEP [--command-gate]
python -m tests.support.crash random RUNS
python -m tests.support.crash takeover SUBAGENTS
python -m tests.support.crash scene SCENE
python -m tests.support.crash die FOLDER STEP
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tests.support.crash.parents import ParentSpec
from tests.support.crash.random_kills import kill_at_random
from tests.support.crash.scenes import SCENES, play_scene
from tests.support.crash.step_kills import kill_at_steps
from tests.support.crash.steps import STEPS, KillPoint, kill_sequences, step_callback
from tests.support.crash.totals import Totals
from tests.support.crash.two_processes import take_over
from tests.support.crash.workers import run_subagents
from turngate.subagents.limits import SubagentLimits


def main() -> None:
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="turngate-crash-") as folder:
        print(json.dumps(options.run(options, folder)))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)

    def add(name: str, run: Callable[[argparse.Namespace, str], Any]) -> argparse.ArgumentParser:
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        return command

    steps = add("steps", _steps)
    steps.add_argument("step", choices=STEPS)
    steps.add_argument("--command-gate", action="store_true")
    add("random", _random).add_argument("runs", type=int)
    add("takeover", _takeover).add_argument("subagents", type=int)
    add("scene", _scene).add_argument("scene", choices=SCENES)
    die = add("die", _die)
    die.add_argument("folder")
    die.add_argument("step")
    return parser.parse_args()


def _steps(options: argparse.Namespace, folder: str) -> Any:
    parts = [
        kill_at_steps(os.path.join(folder, str(number)), kills, command_gate=options.command_gate)
        for number, kills in enumerate(kill_sequences(options.step))
    ]
    return asdict(sum(parts, Totals()))


def _random(options: argparse.Namespace, folder: str) -> Any:
    return asdict(kill_at_random(folder, options.runs, batch=100, progress=lambda _: None))


def _takeover(options: argparse.Namespace, folder: str) -> Any:
    totals = Totals()
    return [asdict(take_over(folder, options.subagents, totals)), asdict(totals)]


def _scene(options: argparse.Namespace, folder: str) -> Any:
    steps = SCENES[options.scene]
    return {step: asdict(play_scene(os.path.join(folder, step), options.scene, step)) for step in steps}


def _die(options: argparse.Namespace, _: str) -> None:
    """Work on one subagent with the default limits until the step, and die there."""
    spec = ParentSpec(options.folder, "parent", 1)
    asyncio.run(run_subagents(spec, step_callback(spec, KillPoint(options.step)), SubagentLimits()))


if __name__ == "__main__":
    main()
