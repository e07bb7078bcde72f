"""A session's children: the Task tool, and what they report.

The register and the supervisor are made when the first child is asked for, or when an earlier process left some.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from turngate.agent.tools import ALIASES, TOOLS, Tool, ToolFailed, ToolOutput
from turngate.aio.cancellation import finish_despite_cancel
from turngate.aio.threads import run_in_thread
from turngate.core.inbox import InboxEntry
from turngate.core.messages import ToolSpec
from turngate.core.settings import Settings
from turngate.core.subagent_run import SubagentRun
from turngate.errors import TurngateError
from turngate.ports import Model
from turngate.subagents.agent_types import AgentType, describe_types, load_agent_types
from turngate.subagents.host import Parent, child_transcript
from turngate.subagents.limits import SubagentLimits
from turngate.transcript.reader import read_records

if TYPE_CHECKING:
    from turngate.agent.session_base import SessionBase
    from turngate.subagents.supervisor import Supervisor

OUTLOOK = 0.5  # seconds between two looks for processes that have died
NOT_FOR_CHILDREN = ("AskUser",)  # a child has no user
REGISTER = "registry.db"


class SubagentManager:
    def __init__(
        self,
        session: "SessionBase",
        *,
        limits: SubagentLimits | None = None,
        models: Callable[[str], Model] | None = None,
        root: "SubagentManager | None" = None,
        announcer: Callable[[SubagentRun], Awaitable[None]] | None = None,
        on_step: Callable[[str, SubagentRun], None] | None = None,
    ) -> None:
        self._session = session
        self._root = root or self
        self.models = models
        self._announcer, self._on_step = announcer, on_step
        self.made: Supervisor | None = None
        self._kinds: dict[str, AgentType] | None = None
        self.problems: list[str] = []
        self._making = asyncio.Lock()
        self._stirred = asyncio.Event()
        self.has_spawned = False
        self._outlook: asyncio.Task[None] | None = None
        self._news = False
        self._queued: set[str] = set()
        self.families: dict[str, SubagentManager] = {}  # of children, by their ids
        if root and session.role:
            root.families[session.role.agent_id] = self
        self.limits: SubagentLimits = limits or (root.limits if root else _limits(session.settings))

    # The Task tool

    @property
    def kinds(self) -> Mapping[str, AgentType]:
        if self._root is not self:
            return self._root.kinds
        if self._kinds is None:
            self._kinds, self.problems = load_agent_types(
                self._session.project, self._session.settings.plugin_dirs
            )
        return self._kinds

    @property
    def depth(self) -> int:
        return self._session.role.depth if self._session.role else 0

    def tools(self) -> dict[str, Tool]:
        """The tools of this session: those of its kind, and children only while they are not too deep."""
        role = self._session.role
        tools = dict(TOOLS)
        if role:
            for names in (role.kind.tools, role.tools):  # a child has no more than its parent
                if names is not None:
                    wanted = {ALIASES.get(name, name) for name in names}
                    tools = {name: tool for name, tool in tools.items() if name in wanted}
            tools = {name: tool for name, tool in tools.items() if name not in NOT_FOR_CHILDREN}
        if self.depth >= self.limits.depth:
            tools.pop("Task", None)
        if "Task" in tools:
            known = tools["Task"].spec
            told = ToolSpec(known.name, known.description + describe_types(self.kinds), known.schema)
            tools["Task"] = replace(tools["Task"], spec=told)
        return tools

    async def start(self, given: Mapping[str, Any]) -> ToolOutput:
        """What the Task tool does: a child works while the call waits, or is only started."""
        resume = given.get("resume") or ""
        kind = self._kind_of(resume, given.get("subagent_type"))
        if kind not in self.kinds:
            raise ToolFailed(f"there is no kind of subagent {kind!r}; there are {', '.join(self.kinds)}")
        background = given.get("run_in_background", self._session.settings.dialect.children_in_background)
        try:
            supervisor = await self.supervisor()
            run = await supervisor.spawn(
                kind,
                given["prompt"],
                label=given.get("description", ""),
                background=background,
                parent=self._session.id,
                parent_agent=self._agent,
                depth=self.depth + 1,
                resume=resume,
                launch=self._launch(kind),
            )
            self.has_spawned = True
        except (TurngateError, OSError) as error:
            raise ToolFailed(f"the subagent was not started: {error}") from None
        if background:
            return ToolOutput(
                f"The subagent {run.agent_id} works in the background; its report comes as a message of its own."
            )
        return await self._waited(supervisor, run)

    def _kind_of(self, agent: str, wanted: str | None) -> str:
        """A child that is gone on with stays what it is."""
        if not agent:
            return wanted or "general-purpose"
        path = child_transcript(self._session.state, self._session.id, agent)
        if os.path.basename(agent) != agent or not os.path.isfile(path):
            raise ToolFailed(f"there is no subagent {agent} of this session to go on with")
        kind = next(
            (str(record["agentType"]) for record in read_records(path) if record.get("agentType")), ""
        )
        if kind and wanted and wanted != kind:
            raise ToolFailed(f"the subagent {agent} is of the kind {kind}, not {wanted}")
        return kind or wanted or "general-purpose"

    async def _waited(self, supervisor: "Supervisor", run: SubagentRun) -> ToolOutput:
        try:
            ended = await supervisor.result(run.chain)
        except asyncio.CancelledError:
            await finish_despite_cancel(supervisor.kill(run.id, "interrupted"))
            raise
        except TurngateError as error:
            raise ToolFailed(str(error)) from None
        if ended.outcome == "killed":
            return ToolOutput(f"The subagent was ended: {ended.reason}.", is_error=True)
        if ended.outcome != "ok":
            answer = f"\n\nIts last answer was:\n{ended.result}" if ended.result else ""
            return ToolOutput(
                f"The subagent failed ({ended.outcome}): {ended.error}{answer}", run.chain, is_error=True
            )
        return ToolOutput(ended.result or "(the subagent gave no answer)", run.chain)

    def handed(self, key: str) -> None:
        if self._root.made:
            self._root.made.result_delivered(key)

    def _launch(self, kind: str) -> dict[str, Any]:
        session = self._session
        return {
            "kind": kind,
            "model": self._model_name(self.kinds[kind]),
            "permission_mode": session.permission_mode,
            "allow": sorted(session.allowed),
            "extra_paths": list(session.workplace.extra_paths),
            "dialect": session.settings.dialect.name,
            "tools": list(session.tools),
            "prompt_id": session.turn.prompt_id if session.in_turn else "",
        }

    # What children report

    async def open(self, *, fresh: bool) -> None:
        """An earlier process may have left children, or reports that nobody has taken yet."""
        if self._root is not self:
            self._news = not fresh  # its own children may have reported while it was away
            return
        if not self._session.world.in_hook:
            self._outlook = asyncio.create_task(self._look_out())
        if not self._left_something():
            return
        try:
            supervisor = await self.supervisor()
            waiting = await run_in_thread(supervisor.registry.inbox, self._session.id)
            if not await supervisor.recover_and_notify() and not waiting:
                await self._let_go()  # nobody pays for children that are not there
        except (TurngateError, OSError) as error:  # whoever needs no children needs no register
            self._session.notice(str(error))
        else:
            self._news = bool(waiting)

    async def _look_out(self) -> None:
        """Another process may die while we have no children of our own: what it leaves is taken over here too."""
        seen: float | None = None
        owners: list[str] = []
        while True:
            await asyncio.sleep(OUTLOOK)
            if self.made is not None and self.made.watching:
                continue
            changed = self._last_change()
            if changed != seen:
                seen = changed
                owners = await run_in_thread(_owners_of, self._session.state, self._session.project)
            if any(_is_gone(self._session.state, owner) for owner in owners):
                seen, owners = None, []
                with contextlib.suppress(TurngateError, OSError):
                    (await self.supervisor()).watch()

    def _last_change(self) -> float | None:
        found = []
        for end in ("", "-wal"):
            with contextlib.suppress(OSError):
                found.append(os.stat(os.path.join(self._session.state, REGISTER + end)).st_mtime)
        return max(found, default=None)

    def _left_something(self) -> bool:
        return os.path.exists(os.path.join(self._session.state, REGISTER))

    def expect(self) -> None:
        """Something about a child of this session has changed."""
        self._news = True
        self._stirred.set()

    def stir(self) -> None:
        """Whoever waits for children has something else to look at."""
        self._stirred.set()

    async def reports(self) -> list[InboxEntry]:
        """Reports that have come, each once."""
        if not self._news:
            return []
        self._news = False
        try:
            supervisor = await self.supervisor()
            runs = await run_in_thread(supervisor.registry.inbox, self._session.id, self._agent)
            for run in runs:
                if self._session.has_delivered(run.chain):
                    await supervisor.transition(supervisor.registry.mark_delivered, run.id)
        except TurngateError as error:
            self._session.notice(str(error))
            runs = []
        except BaseException:
            self._news = True  # an interrupt takes no report away
            raise
        new = [
            run
            for run in runs
            if not self._session.has_delivered(run.chain) and run.chain not in self._queued
        ]
        self._queued.update(run.chain for run in new)
        return [InboxEntry(run.announcement, "subagent", key=run.chain) for run in new]

    async def took(self, key: str) -> None:
        """The report of this key is in the conversation, on disk; it knows its own key, so this may fail."""
        self._queued.discard(key)
        supervisor = await self.supervisor()
        try:
            for run in await supervisor.transition(supervisor.registry.chain, key):
                await supervisor.transition(supervisor.registry.mark_delivered, run.id)
        except TurngateError as error:
            self._session.notice(str(error))

    def waits(self) -> list[SubagentRun]:
        """Children in the background that are still at work."""
        supervisor = self._root.made
        return supervisor.running(self._session.id, self._agent, background=True) if supervisor else []

    def tasks(self) -> list[dict[str, str]]:
        """The same as hooks are told."""
        return [
            {
                "id": run.agent_id,
                "type": "subagent",
                "status": "running",
                "description": run.label,
                "agent_type": run.agent_type,
            }
            for run in self.waits()
        ]

    async def next_news(self) -> bool:
        """Waits for the next report, or until it is stirred; False: the children took too long to wait any longer."""
        self._stirred.clear()
        if not self.waits() or self._news:
            return True
        try:
            async with asyncio.timeout(self.limits.wait):
                await self._stirred.wait()
        except TimeoutError:
            return False
        return True

    async def settled(self) -> None:
        """The turn is over: what it has not kept comes as a message, and everyone else has been told."""
        if self._root.made:
            self._root.made.release_waiters(self._session.id, self._agent)
        if self.made:
            await self.made.wait_for_finished()

    async def end(self, reason: str) -> None:
        """Ends all children of this session, for good."""
        if self._root.made:
            await self._root.made.kill_all(self._session.id, self._agent, reason)

    async def forget(self) -> None:
        """Reports for a conversation that is forgotten reach no other one."""
        if made := self._root.made:
            await made.transition(made.registry.discard_results, self._session.id, self._agent)
            self._queued.clear()

    async def close(self) -> None:
        if self._outlook is not None:
            self._outlook.cancel()
            await asyncio.wait({self._outlook})
        await self._let_go()

    async def _let_go(self) -> None:
        if self._root is self and self.made:
            supervisor, self.made = self.made, None
            await supervisor.close()

    async def supervisor(self) -> "Supervisor":
        if self._root is not self:
            return await self._root.supervisor()
        async with self._making:  # two tasks may come here at once
            if self.made is None:
                registry = await run_in_thread(
                    import_module("turngate.subagents.registry").Registry, self._session.state
                )
                made = import_module("turngate.subagents.supervisor").Supervisor
                parent = Parent(self._session, self)
                self.made = made(
                    parent, registry, self.limits, announcer=self._announcer, on_step=self._on_step
                )
                self.made.watch()
        return self.made

    # Parts

    @property
    def _agent(self) -> str:
        return self._session.role.agent_id if self._session.role else ""

    def _model_name(self, kind: AgentType) -> str:
        return kind.model if kind.model and self._root.models else self._session.model.name


def _owners_of(state: str, project: str) -> list[str]:
    """Without a register nobody has to load what reads it."""
    if not os.path.exists(os.path.join(state, REGISTER)):
        return []
    found: list[str] = import_module("turngate.subagents.registry").owners_with_open_runs(state, project)
    return found


def _is_gone(state: str, owner: str) -> bool:
    return bool(import_module("turngate.subagents.registry").owner_is_gone(state, owner))


def _limits(settings: Settings) -> SubagentLimits:
    said = {
        "at_once": settings.children_at_once,
        "depth": settings.children_depth,
        "seconds": settings.child_seconds,
    }
    return replace(SubagentLimits(), **{name: value for name, value in said.items() if value is not None})  # type: ignore[arg-type]
