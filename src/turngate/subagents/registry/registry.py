"""The registry of runs: the transitions of a run, and what can be read about runs.

A transition is durable when its method returns, and only then may its effect begin. Each one names the states that it
leads out of and the owner that makes it, so a second try, a late result or another process changes nothing and gets None.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from turngate.aio.threads import SerialThread
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.errors import RegistryError, UsageError
from turngate.state.paths import REGISTRY_FILE, REGISTRY_URL
from turngate.subagents.registry import statements as sql
from turngate.subagents.registry.sqlite_store import SqliteStore
from turngate.subagents.registry.statements import Query, Transition
from turngate.subagents.registry.store import RunStore
from turngate.subagents.registry.table import new_id, row_to_run, successor_of, to_column, truncate_result

FINISHED_RETENTION_S = 300.0


def registry_url(setting: str | None = None, *, needed_by: str = "") -> str:
    """Return the URL of a registry on PostgreSQL, by the environment or else the user's setting; "": a file."""
    url = os.environ.get(REGISTRY_URL) or setting or ""
    if needed_by and not url:
        raise UsageError(
            f"{needed_by} needs a registry on PostgreSQL; set {REGISTRY_URL} to postgresql://USER@HOST/NAME"
        )
    if url and not url.startswith(("postgresql://", "postgres://")):
        where = REGISTRY_URL if os.environ.get(REGISTRY_URL) else "`registry` of your settings"
        raise RegistryError(f"{where} is not the URL of a registry, expected postgresql://USER@HOST/NAME")
    return url


def registry_exists(state: str, setting: str | None = None) -> bool:
    """Return whether there may be runs; reading never creates a file."""
    return bool(registry_url(setting)) or os.path.exists(os.path.join(state, REGISTRY_FILE))


class Registry:
    """`Registry(state)`; every method may be called from any thread. `setting`: see `registry_url`."""

    def __init__(
        self, state: str, on_wait: Callable[[str], None] | None = None, setting: str | None = None
    ) -> None:
        if url := registry_url(setting):
            # lazy: psycopg is loaded only with a URL
            from turngate.subagents.registry.postgres_store import PostgresStore  # noqa: PLC0415

            self.store: RunStore = PostgresStore(url)
        else:
            self.store = SqliteStore(state, on_wait)
        self.commits = 0
        self.more_wait = True  # perhaps, runs that fit, beside the one that was claimed last
        self.join, self.beat, self.living = self.store.join, self.store.beat, self.store.living
        self.wait_for_change, self.workers = self.store.wait_for_change, self.store.workers
        self.close = self.store.close

    # Transitions of one run

    def register(self, run: SubagentRun, *, may_run: bool, max_running: int) -> SubagentRun:
        """Store a run before it starts: `running` if it may run and the machine has a slot, else `waiting`."""
        registered = self._run(sql.REGISTER, **vars(run), may_run=may_run, max_running=max_running)
        if registered is None:
            # An earlier try may have registered it, whose answer was lost with a connection.
            registered = self.find("run", run.id)
        if registered is None or registered.owner != run.owner != "":  # a worker may have claimed it already
            raise UsageError("this subagent is still running; wait for its report")
        return registered

    def transition(self, name: Transition, run: str, owner: str, **values: object) -> SubagentRun | None:
        """Return None if the run is no longer in a state that this leads out of, or no longer the owner's.

        With a `part` of its transcript, from the byte `start` on, that is stored too.
        """
        columns = {**sql.OPTIONAL_VALUES, "next_id": new_id(), **values}
        statement = sql.TRANSITIONS[name]
        if "part" in values:
            statement = sql.WITH_TRANSCRIPT.format(transition=statement)
        changed = self._run(statement, **columns, id=run, owner=owner)
        if changed is None and name == "start":
            for dead in self.dead_owners(owner):  # at the next try, their runs hold no slot of the machine
                self._rows(sql.RELEASE_SLOTS, dead=dead)
        return changed

    def replace(self, run: SubagentRun) -> SubagentRun | None:
        """Insert the successor of a run in `steering`; a trigger sets the old run's state to `replaced`."""
        return self._run(sql.REPLACE, **vars(successor_of(run, time.time())))

    # Requests from outside

    def steer(self, run: SubagentRun, prompt: str) -> SubagentRun | None:
        """Request a restart with a new prompt. A steer does not count against the limit of redirects."""
        values = {"max_steers": run.max_steers, "counts": 0, "guard": None, "next_id": new_id()}
        return self._run(sql.STEER, **values, id=run.id, prompt=prompt, why="steered by hand")

    def kill(self, scope: str | tuple[str, str], reason: str) -> list[SubagentRun]:
        """Kill a run and everything it started; results that arrive later change nothing.

        `scope`: a run, or a session with a subagent of it ("": any), of which everything they started is killed.
        """
        if isinstance(scope, str):
            return self._runs(sql.KILL, id=scope, reason=reason)
        return self._runs(sql.KILL_ALL, parent=scope[0], agent=scope[1], reason=reason)

    # Results for a parent

    def inbox(self, parent: str, agent: str = "") -> list[SubagentRun]:
        """Return the announced results that the agent's conversation does not hold yet, oldest first."""
        return self._runs(sql.INBOX, parent=parent, agent=agent)

    def mark_delivered(self, run: str) -> SubagentRun | None:
        """Note that the parent's conversation holds the result, on disk."""
        return self._run(sql.MARK_DELIVERED, id=run)

    def discard_results(self, parent: str) -> None:
        """Mark undelivered results as delivered: their conversation was reset, and no other one may get them."""
        self._rows(sql.DISCARD_RESULTS, parent=parent)

    # Owners

    def take_over(
        self, owner: str, project: str | None, may_adopt: Callable[[SubagentRun], bool] = lambda _: True
    ) -> list[SubagentRun]:
        """Take over the open runs of owners that are gone, of one project or of all; only those that it may.

        An adoption counts as a recovery only if the owner died; an owner that ended in order has given up its runs.
        """
        adopted: list[SubagentRun] = []
        for dead in self.dead_owners(owner, project):
            found = self._runs(sql.ABANDONED, dead=dead, project=project)
            if ids := [run.id for run in found if may_adopt(run)]:
                adopted += self._runs(sql.ADOPT, owner=owner, dead=dead, ids=ids)
        return adopted

    def dead_owners(self, owner: str, project: str | None = None, left: Collection[str] = ()) -> list[str]:
        """Return other owners with open runs that are gone. Chains in `left` do not count while they have no result."""
        rows = self._rows(sql.OTHER_OWNERS, owner=owner, project=project, ids=[*left])
        others = [row["owner"] for row in rows]
        living = self.living(others) if others else {}
        return [each for each in others if each not in living]

    def claim(
        self, owner: str, labels: Sequence[str], *, max_running: int, left: Collection[str] = ()
    ) -> SubagentRun | None:
        """Take the oldest run that is for workers with these labels and has no owner that lives, but no chain in `left`.

        None: there is none, or this worker has `max_running` already, or the session of each has all that it may.
        """
        values = {"labels": json.dumps([*labels]), "ids": [*left], "max_running": max_running}
        rows = self._rows(sql.CLAIM, owner=owner, **values)
        self.more_wait = not rows or bool(rows[0]["more_wait"])
        return next(iter(self._read_rows(rows)), None)

    def leave(self, owner: str) -> int:
        """Give up all open runs of an owner that ends in order; return how many."""
        left = len(self._rows(sql.LEAVE, owner=owner))
        self.store.leave(owner)
        return left

    # Queries and deletion

    def read(self, query: Query, value: str = "") -> list[SubagentRun]:
        return self._runs(sql.QUERIES[query], value=value)

    def find(self, query: Query, value: str = "") -> SubagentRun | None:
        return self._run(sql.QUERIES[query], value=value)

    def elsewhere(self, owner: str, parent: str, known: Mapping[str, SubagentRun]) -> Sequence[SubagentRun]:
        """Return the unfinished runs of a session that others own, those that are known as they were without recoveries."""
        rows = self._rows(sql.ELSEWHERE, owner=owner, parent=parent)
        same = {row["chain"]: known[row["chain"]] for row in rows if row["is_same"] and row["chain"] in known}
        found = (same.get(row["chain"]) or self.find("run", row["id"]) for row in rows)
        return [run for run in found if run is not None]

    def delete_finished(self, retention: float = FINISHED_RETENTION_S) -> int:
        """Delete runs that finished `retention` seconds ago, but none with an undelivered result."""
        return len(self._rows(sql.DELETE_FINISHED, retention=retention))

    def read_transcript(self, chain: str) -> str:
        """Return what is stored of the transcript of a subagent on a worker, which needs PostgreSQL."""
        return "".join(row["part"] for row in self._rows(sql.READ_TRANSCRIPT, chain=chain))

    # Statements

    def _run(self, statement: str, **values: object) -> SubagentRun | None:
        return next(iter(self._runs(statement, **values)), None)

    def _runs(self, statement: str, **values: object) -> list[SubagentRun]:
        return self._read_rows(self._rows(statement, **values))

    def _read_rows(self, rows: Sequence[Mapping[str, Any]]) -> list[SubagentRun]:
        try:
            return [row_to_run(row) for row in rows]
        except (ValueError, TypeError, AttributeError) as error:
            raise RegistryError(f"{self.store.name} is damaged: {error}") from error

    def _rows(self, statement: str, **values: object) -> Sequence[Mapping[str, Any]]:
        columns = {name: to_column(value) for name, value in values.items()}
        for name in columns.keys() & {"result", "announcement"}:
            columns[name] = truncate_result(str(columns[name]))
        rows = self.store.execute(statement, columns)
        if rows and not statement.startswith("SELECT"):
            self.commits += 1
        return rows


T = TypeVar("T")


class RegistryWorker:
    """One thread for one registry; `lock` lets a caller decide and write without another write in between."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._thread, self.waiting = SerialThread(), SerialThread()  # `waiting`: for changes
        self.lock = asyncio.Lock()

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._thread.call(function, *arguments)

    async def transition(self, function: Callable[..., T], *arguments: object) -> T:
        """Call `function` alone, and retry it for some seconds if the registry cannot be used."""
        pauses = iter(self._registry.store.retry_pauses)
        while True:
            try:
                async with self.lock:
                    return await self.call(function, *arguments)
            except RegistryError:
                if (pause := next(pauses, None)) is None:
                    raise
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the registry after the calls that are already queued."""
        await self.call(self._registry.close)
        self._thread.close()
        self.waiting.close()
