"""Crashes away from the main path: of runs that are killed, lost or given up, and while a parent waits.

For each step of a scene one worker dies there; the next workers continue with what it left.
"""

import asyncio
import json
import os
from collections import Counter
from dataclasses import dataclass

from tests.support.crash.parents import ParentSpec, read_lines, runs_of
from tests.support.crash.steps import KillPoint, StepCallback
from tests.support.crash.workers import (
    UNLIMITED,
    EchoModel,
    create_session,
    fork_worker,
    resume_parent,
    run_subagents,
    start_subagent,
    wait_for_worker,
)
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.conversation.messages import Message, Reply, ToolResults, UserMessage
from turngate.state.paths import main_transcript_path
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.registry import Registry
from turngate.transcript.reader import read_records
from turngate.transcript.resume import read_conversation

ONE_SLOT = SubagentLimits(recoveries=UNLIMITED.recoveries, rapid=UNLIMITED.rapid, at_once=1)
ONE_TRY = SubagentLimits(recoveries=UNLIMITED.recoveries, rapid=UNLIMITED.rapid, announce_tries=1)
NEVER_S = 10 * HANG_TIMEOUT_S

# `killed`: the registry has the kill, nothing else does; `stopped`: a plugin's `subagent_stop` handler has run;
# `kept`: the parent's transcript has the tool result, and the registry does not know it.
SCENES = {
    "killed": ("killed", "stopped", "end_notified", "done"),
    "killed in queue": ("killed", "end_notified", "done"),
    "lost": ("lost",),
    "given_up": ("stop_notified", "end_notified", "given_up"),
    "foreground": ("stopped", "stop_notified", "kept", "announced", "end_notified", "done"),
}
SCENE_STEPS = frozenset(step for steps in SCENES.values() for step in steps)


@dataclass(frozen=True)
class SceneResult:
    """What became of each subagent, in the order in which they were requested."""

    exits: list[int]  # exit codes of the workers
    runs: list[list[str]]  # state, outcome and reason of each subagent's last run
    announced: list[int]  # how many of a subagent's runs were announced
    stops: list[list[str]]  # the distinct outcomes in `subagent_stop`
    ends: list[list[str]]  # the distinct outcomes in `subagent_ended`
    keys: list[int]  # how often the parent's transcript has the subagent's report, by its key
    answers: list[int]  # how often the parent's conversation has an answer of the subagent
    losses: list[int]  # how often it says that the subagent was lost
    waiting: int  # reports in the parent's inbox


def play_scene(folder: str, scene: str, step: str) -> SceneResult:
    kill = KillPoint(step)
    if scene.startswith("killed"):
        spec = ParentSpec(folder, "parent", 2 if scene == "killed in queue" else 1, log_plugins=True).create()
        exits = [wait_for_worker(fork_worker(_kill_last_subagent, spec, kill))]
        limits = ONE_SLOT
    elif scene == "foreground":
        spec = ParentSpec(folder, "parent", 2, foreground_every=1, log_plugins=True).create()
        limits = UNLIMITED
        exits = [
            wait_for_worker(fork_worker(run_subagents, spec, kill)),
            wait_for_worker(fork_worker(resume_parent, spec)),
        ]
    else:
        fails = scene == "given_up"
        spec = ParentSpec(folder, "parent", 1, log_plugins=True, failing_announcer=fails).create()
        limits = ONE_TRY
        exits = [wait_for_worker(fork_worker(run_subagents, spec, kill, limits))]
    exits += [
        wait_for_worker(fork_worker(run_subagents, spec, None, limits)),
        wait_for_worker(fork_worker(resume_parent, spec)),
    ]
    return _read_result(spec, exits)


async def _kill_last_subagent(spec: ParentSpec, on_step: StepCallback) -> None:
    """Kill the last subagent while the first one runs and the others wait for the slot."""
    model = EchoModel(NEVER_S, spec.request_log)
    async with asyncio.timeout(HANG_TIMEOUT_S), create_session(spec, on_step, ONE_SLOT, model) as session:
        await session.open()
        for label in spec.labels:
            await start_subagent(session, label)
        supervisor = session._agent.subagents
        while not os.path.exists(spec.request_log):
            await asyncio.sleep(0.005)
        await supervisor.kill(runs_of((await supervisor.connect()).registry, spec)[-1].id)
        await asyncio.sleep(NEVER_S)


def _read_result(spec: ParentSpec, exits: list[int]) -> SceneResult:
    registry = Registry(spec.state)
    runs = runs_of(registry, spec)
    waiting = len(registry.inbox(spec.session))
    registry.close()
    path = main_transcript_path(spec.state, spec.session)
    keys = Counter(record["key"] for record in read_records(path) if "key" in record)
    texts = [text for message in read_conversation(path).messages for text in _texts(message)]
    chains = [[run for run in runs if run.label == label] for label in spec.labels]
    return SceneResult(
        exits=exits,
        runs=[[last.state, str(last.outcome), last.reason] for *_, last in chains],
        announced=[sum(run.announced is not None for run in chain) for chain in chains],
        stops=_logged_outcomes(spec, "subagent_stop"),
        ends=_logged_outcomes(spec, "subagent_ended"),
        keys=[keys.pop(chain[0].chain, 0) for chain in chains] + list(keys.values()),
        answers=[sum(text.count(f" to task {label}") for text in texts) for label in spec.labels],
        losses=[
            sum(f'"{label}"' in text and "it was lost" in text for text in texts) for label in spec.labels
        ],
        waiting=waiting,
    )


def _logged_outcomes(spec: ParentSpec, handler: str) -> list[list[str]]:
    calls = [json.loads(line) for line in read_lines(spec.plugin_log)]
    return [
        sorted({outcome for name, subagent, outcome in calls if (name, subagent) == (handler, label)})
        for label in spec.labels
    ]


def _texts(message: Message) -> list[str]:
    match message:
        case UserMessage(text):
            return [text]
        case ToolResults(results):
            return [result.content for result in results]
        case Reply():
            return []
