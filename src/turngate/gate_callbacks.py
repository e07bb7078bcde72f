"""A ready-made gate as a Python function, for `CallbackHook`, plugins and Claude's Agent SDK."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, overload

from turngate.core.answers.report_types import HookFailed, Returned
from turngate.core.constants import STOP_EVENTS, STOPS_OF_START
from turngate.core.dialect import TURNGATE
from turngate.core.events.events import Event, StopEvent, StopHookInput, Subagent
from turngate.core.events.hook_input import read_event
from turngate.core.events.plugin_events import (
    SubagentStoppingContext,
    SubagentStoppingEvent,
    SubagentStoppingResult,
)
from turngate.core.hooks.kinds import COMMAND_GATE, GateHook, hook_text
from turngate.core.settings import Rule, Settings
from turngate.core.text import camel_case, quote_name
from turngate.core.verdict.decisions import Block, Decision, Fault
from turngate.errors import TurngateError, UsageError
from turngate.gates.arguments import GateCall, read_gate_hook
from turngate.gates.run_gate import answer_json, describe_fault
from turngate.ports import HookRunContext, Shell, World
from turngate.runners.gate import run_gate_hook
from turngate.shells.local import LocalShell


def gate_callback(
    gate: str = COMMAND_GATE,
    *,
    command: str | None = None,
    args: Sequence[str] | None = None,
    project: str | os.PathLike[str] | None = None,
    shell: Shell | None = None,
    strict: bool = False,
    timeout: float | None = None,
    **options: Any,
) -> "GateCallback":
    """Return a function that runs a ready-made gate: `gate_callback("tests", if_changed=["src/**"])`.

    `project` is the folder of the event unless it is given; `shell` is where the commands run, on this machine unless
    it is given. The gate ends on its own after `timeout` seconds, 600 by default. Raises UsageError for a gate or an option
    that does not exist.
    """
    given = {camel_case(name): value for name, value in options.items() if value is not None}
    hook = GateHook(
        gate,
        command,
        None if args is None else tuple(args),
        given,
        strict=strict,
        timeout=TURNGATE.timeouts["gate"] if timeout is None else timeout,
    )
    read = read_gate_hook(hook)
    if not isinstance(read, GateCall):
        raise UsageError("; ".join(map(str, read)))
    return GateCallback(hook, None if project is None else os.fspath(project), shell)


class GateCallback:
    """A gate that is called with an event; `gate_callback` makes it.

    With a `StopEvent` it returns a decision, with the three arguments of Claude's SDK a dict in the JSON contract, and as a
    handler of `subagent_stopping` a `SubagentStoppingResult`. At a start it records what is there, and returns `Allow`.
    """

    def __init__(self, hook: GateHook, project: str | None, shell: Shell | None) -> None:
        self.hook = hook
        self._project, self._shell = project, shell
        self.__name__ = self.__qualname__ = hook_text(hook)

    def __repr__(self) -> str:
        return f"<gate {quote_name(hook_text(self.hook))}>"

    @overload
    async def __call__(
        self, event: SubagentStoppingEvent, context: SubagentStoppingContext, /
    ) -> SubagentStoppingResult: ...

    @overload
    async def __call__(
        self, event: Mapping[str, Any], tool_use_id: str | None = None, context: Any = None, /
    ) -> Any: ...  # a dict; the type that the SDK expects is known only with the SDK

    @overload
    async def __call__(self, event: Event | StopHookInput, /) -> Decision: ...

    async def __call__(self, event: Any, *_: Any) -> Any:
        match event:
            case SubagentStoppingEvent():
                return self._plugin_result(await self._decide(_stop_of_plugin(event)))
            case Mapping():
                name = str(event.get("hook_event_name") or "Stop")
                decision = await self._decide(read_event(name, dict(event), cwd=os.getcwd()))
                return answer_json(self.hook.gate, decision)
            case StopHookInput():
                return await self._decide(event.event())
            case _:
                return await self._decide(event)

    async def _decide(self, event: Event) -> Decision:
        if event.name not in (*STOP_EVENTS, *STOPS_OF_START):
            return Fault(f"a gate answers at {', '.join(STOP_EVENTS)}, not at {event.name}")
        world = World(self._shell or LocalShell(), self._project or event.cwd or os.getcwd())
        limit = self.hook.timeout or TURNGATE.timeouts["gate"]
        live = HookRunContext()
        live.redactor = world.redactor({})
        async with world.shell.slot():
            try:
                async with asyncio.timeout(limit) as timer:
                    live.deadline, live.limit = timer.when(), limit
                    rule = Rule(event.name, self.hook)
                    report = await run_gate_hook(rule, self.hook, event, Settings(), world, live)
            except TimeoutError:
                if not timer.expired():
                    raise
                report = HookFailed(f"timed out after {limit:.3g} s")
        failed = Fault(getattr(report, "error", ""))
        decision: Decision = report.value if isinstance(report, Returned) else failed
        return live.redactor.decision(decision) if live.redactor else decision

    def _plugin_result(self, decision: Decision) -> SubagentStoppingResult:
        match decision:
            case Block(reason):
                more = decision.continuations
                return SubagentStoppingResult(
                    allow=False, prompt=reason, reason=reason, extend_max_steers=more
                )
            case Fault():  # the session reports what a handler raises, and the subagent may stop
                raise TurngateError(describe_fault(self.hook.gate, decision))
            case _:
                return SubagentStoppingResult()


def _stop_of_plugin(event: SubagentStoppingEvent) -> StopEvent:
    """Return the stop that a plugin is asked about; its event names neither the folder nor the transcript."""
    return StopEvent(
        session_id=event.requester_session_key,
        transcript_path="",
        cwd="",
        last_assistant_message=event.last_assistant_message,
        continuation_count=event.steer_count,
        limit=event.max_steers,
        subagent=Subagent(id=event.agent_id, outcome=event.outcome),
    )
