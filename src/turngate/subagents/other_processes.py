"""The subagents of a session that other processes run: workers, or those that adopted them after a crash."""

import asyncio
from collections.abc import Callable, Sequence

from turngate.core.conversation.subagent_run import SubagentRun, names_of
from turngate.subagents.registry import Registry


class RunsElsewhere:
    """The process that runs them puts their results into the registry, where this session finds them."""

    def __init__(
        self, session_id: str, notify_parent: Callable[[SubagentRun], None], notice: Callable[[str], None]
    ) -> None:
        self._session_id = session_id
        self._notify_parent, self._notice = notify_parent, notice
        self._runs: dict[str, SubagentRun] = {}  # by chain
        self._added: dict[str, SubagentRun] = {}  # since the last `read` began
        self._places: dict[str, str] = {}  # of their owners
        self._reported: set[str] = set()  # chains that the user knows of
        self._updated = asyncio.Event()  # replaced at each update

    def __bool__(self) -> bool:
        return bool(self._runs)

    def of(self, *parent: str) -> list[SubagentRun]:
        """Return those that one agent has started: a session, and a subagent of it or ""."""
        return [run for run in self._runs.values() if (run.parent, run.parent_agent) == parent]

    def read(
        self,
        registry: Registry,
        owner: str,
        is_own: Callable[[SubagentRun], bool],
        fetch: Callable[[Registry, SubagentRun], None],
    ) -> list[SubagentRun]:
        """Return the runs that a live process other than the owner runs; `fetch` those that have ended on workers. This blocks."""
        self._added = {}
        others = [run for run in registry.elsewhere(owner, self._session_id, self._runs) if is_own(run)]
        owners = {run.owner for run in others if not run.is_for_workers}
        self._places = registry.living(owners) if owners else {}
        runs = [run for run in others if run.owner in self._places or run.is_for_workers]
        for run in self.gone(runs):
            if run.is_for_workers:
                fetch(registry, run)
        return runs

    def update(self, runs: Sequence[SubagentRun]) -> None:
        """Notify the agents whose subagents are no longer run elsewhere, and the user of those that are."""
        before, self._runs = self._runs, {run.chain: run for run in (*self._added.values(), *runs)}
        for run in runs:
            if run.is_for_workers and run.recoveries > before.get(run.chain, run).recoveries:
                lost = "what it has done since its last end, or its start, may be lost"
                self._notice(
                    f"subagent {run.name} is continued by another worker, because its own died; {lost}"
                )
        updated, self._updated = self._updated, asyncio.Event()
        updated.set()
        for chain, run in before.items():
            if chain not in self._runs:
                self._notify_parent(run)
        self._report([run for run in runs if run.chain not in self._reported])

    def gone(self, runs: Sequence[SubagentRun]) -> list[SubagentRun]:
        """Return the runs that were among them until now."""
        chains = {run.chain for run in runs} | self._added.keys()
        return [run for run in [*self._runs.values()] if run.chain not in chains]

    def add(self, run: SubagentRun) -> None:
        """Add a run for workers that was registered just now, or one that this process has lost."""
        self._runs[run.chain] = self._added[run.chain] = run

    async def wait_for_end(self, chain: str) -> None:
        while chain in self._runs:
            await self._updated.wait()

    def _report(self, runs: Sequence[SubagentRun]) -> None:
        for run in runs:
            if run.is_for_workers and run.error:
                self._reported.add(run.chain)
                self._notice(f"subagent {run.name} waits for another worker: {run.error}")
        runs = [run for run in runs if run.owner in self._places and not run.is_for_workers]
        if not runs:
            return
        self._reported.update(run.chain for run in runs)
        where = ", ".join(sorted({self._places[run.owner] for run in runs} - {""})) or "another session"
        one = len(runs) == 1
        count = "1 subagent of this session is" if one else f"{len(runs)} subagents of this session are"
        results = "its result arrives" if one else "their results arrive"
        self._notice(f"{count} continued by {where}: {names_of(runs)}; {results} here")
