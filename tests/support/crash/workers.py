"""Worker processes: each opens the parent's session, runs its subagents and may be killed meanwhile."""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tests.support.crash.parents import ParentSpec, append_line, runs_of
from tests.support.crash.steps import KillPoint, StepCallback, step_callback
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent.session import Session
from turngate.core.conversation.messages import ModelRequest, Reply, Text, ToolUse, UserMessage
from turngate.core.conversation.subagent_run import OPEN_STATES, SubagentRun
from turngate.core.events.plugin_events import (
    SubagentEndedEvent,
    SubagentStopPayload,
    SubagentStoppingContext,
    SubagentStoppingEvent,
)
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Rule, Settings
from turngate.plugins.handlers import Plugins
from turngate.subagents.limits import SubagentLimits, SubagentOptions

REDIRECTS = 2  # how often the gate redirects each subagent
UNLIMITED = SubagentLimits(recoveries=10**6, rapid=10**6)
START_PREFIX = "begin "  # the user asks the parent for the subagents named after it
# The command gate counts with TURNGATE_STOP_HOOK_COUNT, which the registry keeps across processes.
GATE_COMMAND = (
    f'n=$((TURNGATE_STOP_HOOK_COUNT + 1)); [ $n -gt {REDIRECTS} ] || {{ echo "redirect $n" >&2; exit 2; }}'
)


@dataclass
class EchoModel:
    """Replies from the conversation alone, so that any process can continue it."""

    seconds: float = 0.004
    log: str = ""  # a file for the begin and end of each subagent's request
    name: str = "chaos:echo"
    context: int = 200_000

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        prompts = [message.text for message in request.messages if isinstance(message, UserMessage)]
        if request.agent == "main":
            return _reply_of_parent(request)
        self._log("begin", prompts[0])
        await asyncio.sleep(random.uniform(self.seconds / 2, self.seconds))
        self._log("end", prompts[0])
        return Reply((Text(f"answer {len(prompts)} to {prompts[0]}"),))

    def _log(self, what: str, task: str) -> None:
        if self.log:
            append_line(self.log, json.dumps([what, os.getpid(), task, time.time()]))

    async def close(self) -> None:
        pass


def _reply_of_parent(request: ModelRequest) -> Reply:
    """Call the Task tool for each subagent that the user named last."""
    last = request.messages[-1]
    if not (isinstance(last, UserMessage) and last.text.startswith(START_PREFIX)):
        return Reply((Text("heard"),))
    labels = last.text.removeprefix(START_PREFIX).split()
    uses = (ToolUse(f"{time.time_ns()}-{label}", "Task", task_input(label)) for label in labels)
    return Reply(tuple(uses), "tool_use")


@dataclass(frozen=True)
class RedirectGate:
    """Redirects each subagent `REDIRECTS` times. Its files make it decide alike in the next process."""

    folder: str

    async def __call__(self, event: SubagentStoppingEvent, context: SubagentStoppingContext) -> Any:
        folder = os.path.join(self.folder, event.agent_id)
        os.makedirs(folder, exist_ok=True)
        numbers = {run: int(number) for number, run in (name.split("-") for name in os.listdir(folder))}
        number = numbers.get(event.run_id, len(numbers) + 1)
        if number > REDIRECTS:
            return None
        os.close(os.open(os.path.join(folder, f"{number}-{event.run_id}"), os.O_CREAT | os.O_WRONLY, 0o600))
        return {"allow": False, "prompt": redirect_prompt(number), "reason": "chaos"}


def redirect_prompt(number: int) -> str:
    return f"redirect {number}"


def task_input(label: str) -> dict[str, Any]:
    return {"description": label, "prompt": f"task {label}"}


def create_session(
    spec: ParentSpec,
    on_step: StepCallback,
    limits: SubagentLimits = UNLIMITED,
    model: EchoModel | None = None,
) -> Session:
    plugins, rules = Plugins(), (Rule("SubagentStop", CommandHook(GATE_COMMAND)),)
    if not spec.command_gate:
        plugins.on("subagent_stopping", RedirectGate(os.path.join(spec.folder, "gate")))
    if spec.log_plugins:
        _log_plugin_calls(plugins, spec, on_step)
    return Session(
        spec.project,
        model or EchoModel(),
        Settings(rules=rules if spec.command_gate else ()),
        session_id=spec.session,
        state=spec.state,
        plugins=plugins,
        max_turns=10**6,
        children=SubagentOptions(
            limits=limits,
            on_step=on_step,
            announcer=_fail_to_announce if spec.failing_announcer else None,
        ),
    )


def _log_plugin_calls(plugins: Plugins, spec: ParentSpec, on_step: StepCallback) -> None:
    def on_stop(payload: SubagentStopPayload) -> None:
        append_line(spec.plugin_log, json.dumps(["subagent_stop", payload.result.label, payload.outcome]))
        on_step("stopped", payload.result)

    def on_end(event: SubagentEndedEvent, _: SubagentStoppingContext) -> None:
        append_line(spec.plugin_log, json.dumps(["subagent_ended", event.label, event.outcome]))

    plugins.on("subagent_stop", on_stop)
    plugins.on("subagent_ended", on_end)


async def _fail_to_announce(_: SubagentRun) -> None:
    raise ConnectionError("connection refused")


# Tasks of a worker


async def run_subagents(
    spec: ParentSpec,
    on_step: StepCallback,
    limits: SubagentLimits = UNLIMITED,
    model: EchoModel | None = None,
) -> None:
    """Start the subagents that are not registered yet, and wait until no run is open."""
    async with asyncio.timeout(HANG_TIMEOUT_S), create_session(spec, on_step, limits, model) as session:
        await session.open()
        registry = (await session._agent.subagents.connect()).registry
        registered = {run.label for run in runs_of(registry, spec)}
        for label in spec.labels:
            if label not in registered and label not in spec.foreground_labels:
                await start_subagent(session, label)
        if missing := [label for label in spec.foreground_labels if label not in registered]:
            await session.send(START_PREFIX + " ".join(missing))
        open_chains = {run.chain for run in runs_of(registry, spec)}
        while open_chains:
            await asyncio.sleep(0.02)
            open_chains = {
                chain
                for chain in open_chains
                if (run := registry.find("last", chain)) and run.state in OPEN_STATES
            }


async def start_subagent(session: Session, label: str) -> None:
    await session._agent.task_tool.start({**task_input(label), "run_in_background": True})


async def resume_parent(spec: ParentSpec, on_step: StepCallback) -> None:
    """Open the parent's session again and take one turn, in which it reads its reports."""
    async with asyncio.timeout(HANG_TIMEOUT_S), create_session(spec, on_step) as session:
        await session.send("go on")


# Processes


def fork_worker(
    task: Callable[..., Coroutine[Any, Any, None]],
    spec: ParentSpec,
    kill: KillPoint | None = None,
    *args: Any,
    on_step: StepCallback | None = None,
) -> int:
    """Run a task in a new process and return its pid. The caller must not have threads."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        random.seed()
        asyncio.run(task(spec, _both(step_callback(spec, kill), on_step), *args))
        code = 0
    except BaseException as error:
        print(f"worker failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _both(first: StepCallback, second: StepCallback | None) -> StepCallback:
    def on_step(name: str, run: SubagentRun) -> None:
        if second:
            second(name, run)
        first(name, run)

    return on_step


def wait_for_worker(pid: int) -> int:
    """Return the exit code, or the negative number of the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
