"""The registry of runs: the transitions of a run, and what can be read about runs.

A transition is durable when its method returns, and only then may its effect begin. Each one names the states that it
leads out of, so a second try, a late result or another process changes nothing and gets None.
"""

import asyncio
import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from turngate.aio.threads import SerialThread
from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import EndedOutcome, SubagentRun
from turngate.errors import RegistryError, SubagentBusy
from turngate.state.paths import REGISTRY_FILE
from turngate.subagents.registry import table as sql
from turngate.subagents.registry.database import open_database
from turngate.subagents.registry.owners import OWNERS_FOLDER, lock_path, owner_status
from turngate.subagents.registry.table import new_id, truncate_result

BUSY_TIMEOUT_S = 10.0  # for another process that writes
BUSY_PAUSE_S = 0.005
RAPID_RECOVERY_S = 120.0  # recoveries closer together than this count as rapid
GIVEN_UP_RETENTION_S = 7 * 86400.0
FINISHED_RETENTION_S = 300.0


class Registry:
    """`Registry(state)`; every method may be called from any thread."""

    def __init__(self, state: str, on_wait: Callable[[str], None] | None = None) -> None:
        self.state = os.path.abspath(state)
        self.path = os.path.join(self.state, REGISTRY_FILE)
        self.owners = os.path.join(self.state, OWNERS_FOLDER)
        self.commits = 0
        self._lock = threading.Lock()
        self._db, self.notice = open_database(self.path, on_wait)  # the fault is a notice for the user

    def close(self) -> None:
        with self._lock:
            self._db.close()

    # Transitions of one run

    def register(self, run: SubagentRun, *, may_run: bool, max_running: int) -> SubagentRun:
        """Store a run before it starts: `running` if it may run and the machine has a slot, else `waiting`."""
        values = {**vars(run), "may_run": may_run, "max_running": max_running}
        registered = self._run(sql.REGISTER, **values)
        if registered is None:
            raise SubagentBusy("this subagent is still running; wait for its report")
        return registered

    def start(self, run: SubagentRun, owner: str, *, max_running: int) -> SubagentRun | None:
        return self._run(sql.START, id=run.id, depth=run.depth, owner=owner, max_running=max_running)

    def end(
        self,
        run: str,
        owner: str,
        outcome: EndedOutcome,
        *,
        reason: str,
        error: str = "",
        answer: str = "",
        usage: Usage | None = None,
        tool_calls: int = 0,
        tools: Sequence[str] = (),
        guard: Mapping[str, Any] | None = None,
    ) -> SubagentRun | None:
        """Return None if the run is already killed, steered or ended."""
        return self._run(
            sql.END,
            id=run,
            owner=owner,
            outcome=outcome,
            reason=reason,
            error=error,
            answer=truncate_result(answer),
            usage=usage,
            tool_calls=tool_calls,
            tools=tools,
            guard=guard,
        )

    def record_usage(
        self, run: str, usage: Usage, tool_calls: int, tools: Sequence[str]
    ) -> SubagentRun | None:
        """Record what a run used before it was ended from outside."""
        return self._run(sql.RECORD_USAGE, id=run, usage=usage, tool_calls=tool_calls, tools=tools)

    def request_redirect(
        self,
        run: str,
        prompt: str,
        *,
        why: str,
        counts: bool,
        max_steers: int | None,
        guard: Mapping[str, Any] | None = None,
        states: Sequence[str] = ("ended",),
    ) -> SubagentRun | None:
        """Store the next prompt, and count the redirect before the prompt is sent."""
        return self._run(
            sql.REQUEST_REDIRECT.format(states=sql.quote(states)),
            id=run,
            next=new_id(),
            prompt=prompt,
            why=why,
            counts=int(counts),
            max_steers=max_steers,
            guard=guard,
        )

    def cancel_redirect(self, run: str, *, counted: bool, error: str = "") -> SubagentRun | None:
        """Return to `ended` as if no redirect was requested.

        A run that was aborted for the redirect has no outcome of its own; it ends with `error`.
        """
        return self._run(sql.CANCEL_REDIRECT, id=run, counted=int(counted), error=error)

    def replace(self, run: SubagentRun) -> SubagentRun | None:
        """Insert the successor of a run in `steering`; a trigger sets the old run's state to `replaced`."""
        return self._run(sql.REPLACE, **vars(sql.successor_of(run, time.time())))

    def finish(
        self,
        run: str,
        *,
        result: str,
        reason: str,
        announcement: str,
        max_steers: int | None,
        guard: Mapping[str, Any] | None = None,
    ) -> SubagentRun | None:
        """Store the final result for the parent."""
        return self._run(
            sql.FINISH,
            id=run,
            result=truncate_result(result),
            reason=reason,
            announcement=truncate_result(announcement),
            max_steers=max_steers,
            guard=guard,
        )

    def finish_lost(self, run: str, owner: str, *, error: str, announcement: str) -> SubagentRun | None:
        """End a run that cannot continue; its parent gets the announcement instead of a result."""
        return self._run(sql.FINISH_LOST, id=run, owner=owner, error=error, announcement=announcement)

    def announce(self, run: str, *, taken: bool = False, to_root: bool = False) -> SubagentRun | None:
        """Put the result into the parent's inbox, exactly once: the message is the run's own row.

        `taken`: the parent's conversation holds it already, as a tool result.
        `to_root`: the subagent that started it takes no more turns, so the main agent gets the result.
        """
        return self._run(sql.ANNOUNCE, id=run, taken=taken, to_root=to_root)

    def count_attempt(self, run: str) -> int:
        """Count a failed attempt to announce, and return how many there were."""
        changed = self._run(sql.COUNT_ATTEMPT, id=run)
        return changed.attempts if changed else 0

    def give_up(self, run: str, why: str) -> SubagentRun | None:
        return self._run(sql.GIVE_UP, id=run, why=why)

    def mark_done(self, run: str) -> SubagentRun | None:
        """Note that plugins were notified of the end: nothing is left to do."""
        return self._run(sql.MARK_DONE, id=run)

    # Kills

    def kill(self, run: str, reason: str) -> list[SubagentRun]:
        """Kill a run and everything it started; results that arrive later change nothing."""
        return self._runs(sql.KILL, id=run, reason=reason)

    def kill_all(self, parent: str, parent_agent: str, reason: str) -> list[SubagentRun]:
        """Kill everything that a session has started, or one subagent of it."""
        return self._runs(sql.KILL_ALL, parent=parent, agent=parent_agent, reason=reason)

    # Results for a parent

    def inbox(self, parent: str, parent_agent: str = "") -> list[SubagentRun]:
        """Return the announced results that the parent's conversation does not hold yet, oldest first."""
        return self._runs(sql.INBOX, parent=parent, agent=parent_agent)

    def mark_delivered(self, run: str) -> SubagentRun | None:
        """Note that the parent's conversation holds the result, on disk."""
        return self._run(sql.MARK_DELIVERED, id=run)

    def discard_results(self, parent: str, parent_agent: str) -> None:
        """Mark results of a conversation that was reset as delivered, so that no other one gets them."""
        self._rows(sql.DISCARD_RESULTS, parent=parent, agent=parent_agent)

    def reassign_to_root(self, agent: str) -> None:
        """Give undelivered results of a subagent that takes no more turns to the main agent."""
        self._rows(sql.REASSIGN_TO_ROOT, agent=agent)

    # Owners

    def other_owners(self, owner: str | None) -> list[str]:
        """Return the other owners that have open runs; None: all of them."""
        return [row["owner"] for row in self._rows(sql.OTHER_OWNERS, owner=owner)]

    def adopt(
        self,
        dead: str,
        owner: str,
        project: str | None,
        may_adopt: Callable[[SubagentRun], bool] = lambda _: True,
    ) -> list[SubagentRun]:
        """Take over the open runs of an owner that is gone, of one project or of all; only those that it may.

        Returns nothing while that owner lives. An adoption counts as a recovery only if the owner died; an
        owner that ended in order has given up its runs.
        """
        with owner_status(self.owners, dead) as status:
            if status is None:
                return []
            runs = [run.id for run in self._runs(sql.ADOPTABLE, dead=dead, project=project) if may_adopt(run)]
            adopted = self._runs(
                sql.ADOPT,
                owner=owner,
                dead=dead,
                runs=json.dumps(runs),
                rapid_s=RAPID_RECOVERY_S,
                died=status == "died",
            )
            lock = lock_path(self.owners, dead)
            if lock and not self._rows(sql.HAS_OPEN_RUNS, owner=dead):
                with contextlib.suppress(OSError):
                    os.unlink(lock)
            return adopted

    def leave(self, owner: str) -> int:
        """Give up the open runs of an owner that ends in order; return how many."""
        return len(self._rows(sql.LEAVE, owner=owner))

    def release_slots_of_dead(self) -> None:
        """Return the running runs of dead owners to `waiting`, so that they hold no slot of the machine."""
        for owner in self.other_owners(None):
            with owner_status(self.owners, owner) as status:
                if status is not None:
                    self._rows(sql.RELEASE_SLOTS, owner=owner)

    # Queries

    def get(self, run: str) -> SubagentRun | None:
        return self._run(sql.GET, id=run)

    def last(self, chain: str) -> SubagentRun | None:
        """Return the run that a chain has reached."""
        return self._run(sql.LAST, chain=chain)

    def chain(self, chain: str) -> list[SubagentRun]:
        return self._runs(sql.CHAIN, chain=chain)

    def all(self) -> list[SubagentRun]:
        return self._runs(sql.ALL)

    def owned(self, owner: str) -> list[SubagentRun]:
        """Return the open runs of an owner."""
        return self._runs(sql.OWNED, owner=owner)

    def unfinished(self, parent: str) -> list[SubagentRun]:
        """Return the runs of a session that have no announced result yet, whichever process owns them."""
        return self._runs(sql.UNFINISHED, parent=parent)

    def is_empty(self) -> bool:
        """Return whether nothing is open, and nothing is left to delete."""
        return not self._rows(sql.IS_NOT_EMPTY)

    def version(self) -> int:
        """Return a number that changes when another process writes; cheap enough to poll."""
        return int(self._rows("PRAGMA data_version")[0][0])

    # Deletion

    def delete_finished(self, retention: float = FINISHED_RETENTION_S) -> int:
        """Delete runs that finished `retention` seconds ago, but none with an undelivered result."""
        before = time.time() - retention
        finished = self._rows(sql.DELETE_FINISHED, before=before)
        given_up = self._rows(sql.DELETE_GIVEN_UP, before=before - GIVEN_UP_RETENTION_S)
        return len(finished) + len(given_up)

    # Statements

    def _run(self, statement: str, **values: object) -> SubagentRun | None:
        return next(iter(self._runs(statement, **values)), None)

    def _runs(self, statement: str, **values: object) -> list[SubagentRun]:
        rows = self._rows(statement, **values)
        try:
            return [sql.row_to_run(row) for row in rows]
        except (ValueError, TypeError, AttributeError) as error:
            raise RegistryError(f"the registry {self.path} is damaged: {error}") from error

    def _rows(self, statement: str, **values: object) -> list[sqlite3.Row]:
        """Execute a statement, which may use the time as `:now`."""
        columns = {"now": time.time(), **{name: sql.to_column(value) for name, value in values.items()}}
        with self._lock:
            try:
                rows = self._execute(statement, columns)
            except sqlite3.Error as error:
                raise RegistryError(f"the registry {self.path} cannot be used: {error}") from error
            if rows and not statement.startswith(("SELECT", "PRAGMA")):
                self.commits += 1
            return rows

    def _execute(self, statement: str, values: Mapping[str, object]) -> list[sqlite3.Row]:
        """Execute a statement; wait for another process that writes only if there is something to change."""
        end = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                return self._db.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                code = error.sqlite_errorcode & 0xFF  # without the bits of extended codes
                if code != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                query = sql.rows_to_change(statement)
                if query and not self._db.execute(query, values).fetchall():
                    return []
                time.sleep(BUSY_PAUSE_S)  # SQLite does not wait for every kind of lock itself


T = TypeVar("T")
RETRY_PAUSES_S = (0.05, 0.2, 0.5, 1.0, 2.0)


class RegistryWorker:
    """One thread for one registry; `lock` lets a caller decide and write without another write in between."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._thread = SerialThread()
        self.lock = asyncio.Lock()

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._thread.call(function, *arguments)

    async def transition(self, function: Callable[..., T], *arguments: object) -> T:
        """Call `function` alone, and retry it while the disk is full or another process holds the database."""
        for pause in (*RETRY_PAUSES_S, None):
            try:
                async with self.lock:
                    return await self.call(function, *arguments)
            except RegistryError:
                if pause is None:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("the last try either returns or raises")

    async def close(self) -> None:
        """Close the registry after the calls that are already queued."""
        await self.call(self._registry.close)
        self._thread.close()
