"""Crashes off the usual way: of runs that are killed, buried or given up, and while a parent waits for its child.

    python -m bench.crashes SCENE

For each step of the scene one worker dies there, by SIGKILL; the next ones go on with what it left. What came of it is
printed as JSON, by the step.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.chaos import (
    PATIENT,
    TOO_LONG,
    Answering,
    OnStep,
    Place,
    ended,
    forked,
    hear,
    made,
    runs_of,
    session_of,
    start,
    work,
)
from turngate.core.messages import Message, Reply, ToolResults, UserMessage
from turngate.state.paths import main_transcript_path
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.registry import Registry
from turngate.transcript.reader import read_records
from turngate.transcript.resume import read_conversation

ONE_AT_ONCE = SubagentLimits(recoveries=PATIENT.recoveries, rapid=PATIENT.rapid, at_once=1)
ONE_TRY = SubagentLimits(recoveries=PATIENT.recoveries, rapid=PATIENT.rapid, announce_tries=1)
NEVER = 600.0  # seconds until a child answers that is to be killed

# `killed`: the register knows of the kill, nobody else; `stopped`: a plugin has been told `subagent_stop`;
# `kept`: the parent's conversation has the result of the tool, and the register does not know.
SCENES = {
    "killed": ("killed", "stopped", "told", "done"),
    "killed in line": ("killed", "told", "done"),
    "buried": ("buried",),
    "given up": ("observed", "told", "given up"),
    "waited for": ("stopped", "observed", "kept", "announced", "told", "done"),
}
CRASHED_AT = frozenset(step for steps in SCENES.values() for step in steps)


@dataclass(frozen=True)
class Found:
    """What came of each child, in the order in which they were asked for."""

    exits: list[int]  # of the workers
    runs: list[list[str]]  # the state, the outcome and the reason of each child's last run
    announced: list[int]  # how many of a child's runs were announced
    stops: list[list[str]]  # the different outcomes that plugins were told
    ends: list[list[str]]
    keys: list[int]  # how often the parent's transcript has the child's result, by its key
    shown: list[int]  # how often the parent's model is shown an answer of the child
    lost: list[int]  # how often it is shown that the child was lost
    waiting: int  # reports that nobody has taken


def crash(folder: str, scene: str, step: str) -> Found:
    kill = (step, 1)
    if scene.startswith("killed"):
        place = made(Place(folder, "parent", 2 if scene == "killed in line" else 1, noted=True))
        exits = [ended(forked(_kill_the_last, place, kill))]
        limits = ONE_AT_ONCE
    elif scene == "waited for":
        place, limits = made(Place(folder, "parent", 2, foreground=1, noted=True)), PATIENT
        exits = [ended(forked(work, place, kill)), ended(forked(hear, place))]
    else:
        place, limits = made(Place(folder, "parent", 1, noted=True, deaf=scene == "given up")), ONE_TRY
        exits = [ended(forked(work, place, kill, limits))]
    exits += [ended(forked(work, place, None, limits)), ended(forked(hear, place))]
    return _found(place, exits)


async def _kill_the_last(place: Place, on_step: OnStep) -> None:
    """The first child is at work, and nobody but it: the others wait in line."""
    log = os.path.join(place.folder, "asked")
    model = Answering(NEVER, log)
    async with asyncio.timeout(TOO_LONG), session_of(place, on_step, ONE_AT_ONCE, model) as session:
        await session.open()
        for label in place.labels:
            await start(session, label)
        supervisor = await session.family.supervisor()
        while not os.path.exists(log):
            await asyncio.sleep(0.005)
        await supervisor.kill(runs_of(supervisor.registry, place)[-1].id)
        await asyncio.sleep(NEVER)


def _found(place: Place, exits: list[int]) -> Found:
    registry = Registry(place.state)
    runs = runs_of(registry, place)
    waiting = len(registry.inbox(place.session))
    registry.close()
    path = main_transcript_path(place.state, place.session)
    keys = Counter(record["key"] for record in read_records(path) if "key" in record)
    shown = [text for message in read_conversation(path).messages for text in _texts(message)]
    told = [json.loads(line) for line in Path(place.log).read_text().splitlines()]
    chains = [[run for run in runs if run.label == label] for label in place.labels]

    def outcomes(handler: str) -> list[list[str]]:
        return [
            sorted({said for name, whose, said in told if (name, whose) == (handler, label)})
            for label in place.labels
        ]

    return Found(
        exits=exits,
        runs=[[last.state, str(last.outcome), last.reason] for *_, last in chains],
        announced=[sum(run.announced is not None for run in chain) for chain in chains],
        stops=outcomes("subagent_stop"),
        ends=outcomes("subagent_ended"),
        keys=[keys.pop(chain[0].chain, 0) for chain in chains] + list(keys.values()),
        shown=[sum(text.count(f" to task {label}") for text in shown) for label in place.labels],
        lost=[
            sum(f'"{label}"' in text and "it was lost" in text for text in shown) for label in place.labels
        ],
        waiting=waiting,
    )


def _texts(message: Message) -> list[str]:
    match message:
        case UserMessage(text):
            return [text]
        case ToolResults(results):
            return [result.content for result in results]
        case Reply():
            return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scene", choices=SCENES)
    scene = parser.parse_args().scene
    with tempfile.TemporaryDirectory(prefix="turngate-crash-") as folder:
        found = {step: asdict(crash(os.path.join(folder, step), scene, step)) for step in SCENES[scene]}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
