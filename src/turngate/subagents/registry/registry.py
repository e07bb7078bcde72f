"""The transitions of a run, one statement each.

A transition is durable when its method returns, and only then its effect may begin. Each one names the states that it
leads out of, so a second try, a late result or another process changes nothing and gets None.
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from turngate.core.messages import Usage
from turngate.core.subagent_run import LIVING, OPEN, EndedOutcome, SubagentRun
from turngate.errors import RegistryError, SubagentBusy
from turngate.subagents.registry.database import FILE, opened
from turngate.subagents.registry.owners import OWNERS, owner_status
from turngate.subagents.registry.rows import (
    IS_OPEN,
    IS_WAITED_FOR,
    NAMES,
    ROOM,
    frozen,
    listed,
    new_id,
    packed,
    row_of,
    run_of,
)

RAPID = 120.0  # seconds within which one recovery after another is in quick succession
GIVEN_UP_KEPT = 7 * 86400.0  # seconds that a result which reached nobody stays longer
FINISHED_KEPT = 300.0  # seconds that a finished run stays in the register


class Registry:
    """`Registry(state)`; every method may be called from any thread."""

    def __init__(self, state: str) -> None:
        self.state = os.path.abspath(state)
        self.path = os.path.join(self.state, FILE)
        self.owners = os.path.join(self.state, OWNERS)
        self.commits = 0
        self._lock = threading.Lock()
        self._db, self.fault = opened(self.path)  # the fault is for people

    def close(self) -> None:
        with self._lock:
            self._db.close()

    # A run's way

    def register(self, run: SubagentRun, *, may_run: bool, most: int) -> SubagentRun:
        """The run is known before it starts; it runs at once if it may and the machine has room."""
        row = {**row_of(run), "may_run": may_run, "most": most}
        values = ", ".join(f":{name}" for name in NAMES if name not in ("state", "started"))
        room = f"(:may_run AND {ROOM})"
        names = ", ".join(name for name in NAMES if name not in ("state", "started"))
        return self._need(
            f"INSERT INTO runs ({names}, state, started) SELECT {values}, "
            f"CASE WHEN {room} THEN 'running' ELSE 'waiting' END, CASE WHEN {room} THEN :created END "
            f"WHERE NOT EXISTS (SELECT 1 FROM runs WHERE agent_id = :agent_id AND state IN ({listed(LIVING)})) RETURNING *",
            row,
        )

    def start(self, run: SubagentRun, owner: str, *, most: int) -> SubagentRun | None:
        return self._change(
            "UPDATE runs SET state = 'running', started = :now WHERE id = :id AND owner = :owner AND state = 'waiting' "
            f"AND {ROOM} RETURNING *",
            {"id": run.id, "depth": run.depth, "owner": owner, "now": time.time(), "most": most},
        )

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
    ) -> SubagentRun | None:
        """None: it is killed, steered or ended already, and this end comes too late."""
        return self._change(
            "UPDATE runs SET state = 'ended', ended = :now, outcome = :outcome, reason = :reason, error = :error, "
            "result = :answer, usage = :usage, tool_calls = tool_calls + :tool_calls, tools = :tools "
            "WHERE id = :id AND owner = :owner AND state = 'running' RETURNING *",
            {
                "id": run,
                "owner": owner,
                "now": time.time(),
                "outcome": outcome,
                "reason": reason,
                "error": error,
                "answer": frozen(answer),
                "usage": packed(usage),
                "tool_calls": tool_calls,
                "tools": packed(list(tools)),
            },
        )

    def record_usage(
        self, run: str, usage: Usage, tool_calls: int, tools: Sequence[str]
    ) -> SubagentRun | None:
        """What a run had used when it was ended from outside."""
        return self._change(
            "UPDATE runs SET usage = :usage, tool_calls = tool_calls + :calls, tools = :tools WHERE id = :id RETURNING *",
            {"id": run, "usage": packed(usage), "calls": tool_calls, "tools": packed(list(tools))},
        )

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
        """The run is to be followed by another one; the count is kept before anything is sent."""
        return self._change(
            "UPDATE runs SET state = 'steering', next_id = :next, next_prompt = :prompt, next_by_hook = :counts, "
            "steer_why = :why, steer_count = steer_count + :counts, max_steers = :most, guard = coalesce(:guard, guard) "
            f"WHERE id = :id AND state IN ({listed(states)}) RETURNING *",
            {
                "id": run,
                "next": new_id(),
                "prompt": prompt,
                "why": why,
                "counts": int(counts),
                "most": max_steers,
                "guard": packed(guard),
            },
        )

    def cancel_redirect(self, run: str, *, counted: bool, error: str = "") -> SubagentRun | None:
        """The new prompt could not be sent: everything goes on as if nobody had asked for it.

        A run that was aborted for it did not end by itself: that is an error.
        """
        return self._change(
            "UPDATE runs SET state = 'ended', next_id = '', next_prompt = '', steer_count = steer_count - :counted, "
            "guard = CASE WHEN :counted AND json_valid(guard) THEN json_extract(guard, '$.before') ELSE guard END, "
            "error = CASE WHEN outcome IS NULL THEN :error ELSE error END, "
            "reason = CASE WHEN outcome IS NULL THEN 'error' ELSE reason END, "
            "ended = coalesce(ended, :now), outcome = coalesce(outcome, 'error') "
            "WHERE id = :id AND state = 'steering' RETURNING *",
            {"id": run, "counted": int(counted), "now": time.time(), "error": error},
        )

    def replace(self, marked: SubagentRun) -> SubagentRun | None:
        """The run that follows takes the place of a marked one; the trigger sets the old one's state."""
        now = time.time()
        successor = replace(
            marked,
            id=marked.next_id,
            state="running",
            prompt=marked.next_prompt,
            by_hook=marked.next_by_hook,
            replaces=marked.id,
            created=now,
            started=now,
            ended=None,
            outcome=None,
            reason="",
            error="",
            result="",
            next_id="",
            next_prompt="",
            usage=Usage(),
            spent=marked.spent + marked.usage,
            tools=(),
            earlier_tools=tuple(dict.fromkeys((*marked.earlier_tools, *marked.tools))),
            next_by_hook=False,
            attempts=0,
            recoveries=0,
            rapid=0,
            recovered=None,
        )
        row = {**row_of(successor), "old": marked.id}
        names = ", ".join(NAMES)
        values = ", ".join(f":{name}" for name in NAMES)
        return self._change(
            f"INSERT INTO runs ({names}) SELECT {values} WHERE EXISTS "
            "(SELECT 1 FROM runs WHERE id = :old AND state = 'steering') RETURNING *",
            row,
        )

    def finish(
        self, run: str, *, result: str, reason: str, announcement: str, max_steers: int | None
    ) -> SubagentRun | None:
        """It may stop: what the parent gets is fixed."""
        return self._change(
            "UPDATE runs SET state = 'final', result = :result, reason = :reason, announcement = :announcement, "
            "max_steers = :most WHERE id = :id AND state = 'ended' RETURNING *",
            {
                "id": run,
                "result": frozen(result),
                "reason": reason,
                "announcement": frozen(announcement),
                "most": max_steers,
            },
        )

    def finish_lost(self, run: str, owner: str, *, error: str, announcement: str) -> SubagentRun | None:
        """It can not be brought back: its parent gets a word instead of its result."""
        return self._change(
            "UPDATE runs SET state = 'final', outcome = 'error', reason = 'lost', error = :error, result = '', "
            "announcement = :announcement, ended = coalesce(ended, :now) "
            f"WHERE id = :id AND owner = :owner AND state IN ({listed(LIVING)}) RETURNING *",
            {"id": run, "owner": owner, "error": error, "announcement": announcement, "now": time.time()},
        )

    def announce(self, run: str, *, taken: bool = False, to_root: bool = False) -> SubagentRun | None:
        """The parent's inbox has it, exactly once: the message is the run's own row.

        `taken`: it reached the parent's conversation already, as a tool's result.
        `to_root`: the child that asked for it is gone, so the session's main agent is told.
        """
        return self._change(
            "UPDATE runs SET state = 'announced', announced = :now, taken = CASE WHEN :taken THEN :now ELSE taken END, "
            "parent_agent = CASE WHEN :to_root THEN '' ELSE parent_agent END "
            "WHERE id = :id AND state = 'final' RETURNING *",
            {"id": run, "now": time.time(), "taken": taken, "to_root": to_root},
        )

    def count_attempt(self, run: str) -> int:
        """One more try to hand it over has failed; how many there were."""
        changed = self._change(
            "UPDATE runs SET attempts = attempts + 1 WHERE id = :id AND state = 'final' RETURNING *",
            {"id": run},
        )
        return changed.attempts if changed else 0

    def give_up(self, run: str, why: str) -> SubagentRun | None:
        return self._change(
            "UPDATE runs SET state = 'given_up', error = :why WHERE id = :id AND state = 'final' RETURNING *",
            {"id": run, "why": why},
        )

    def mark_done(self, run: str) -> SubagentRun | None:
        """`subagent_ended` was told: nothing more is to be done."""
        return self._change(
            "UPDATE runs SET state = 'done' WHERE id = :id AND state IN ('announced', 'killed') RETURNING *",
            {"id": run},
        )

    def kill(self, run: str, reason: str) -> list[SubagentRun]:
        """Ends a run and everything that it started; whatever comes from them later changes nothing."""
        return self._all(
            "UPDATE runs SET state = 'killed', outcome = 'killed', reason = :reason, ended = coalesce(ended, :now) "
            f"WHERE state IN ({listed(LIVING)}) AND {IS_OPEN} AND (chain = (SELECT chain FROM runs WHERE id = :id) "
            "OR parent_agent IN (WITH RECURSIVE tree(agent) AS (SELECT agent_id FROM runs WHERE state IN "
            f"({listed(LIVING)}) AND chain = (SELECT chain FROM runs WHERE id = :id) UNION "
            "SELECT runs.agent_id FROM runs JOIN tree ON runs.parent_agent = tree.agent) SELECT agent FROM tree)) RETURNING *",
            {"id": run, "reason": reason, "now": time.time()},
        )

    def kill_all(self, parent: str, parent_agent: str, reason: str) -> list[SubagentRun]:
        """The same for everything that a session has started, or a child of it."""
        return self._all(
            "UPDATE runs SET state = 'killed', outcome = 'killed', reason = :reason, ended = coalesce(ended, :now) "
            f"WHERE parent = :parent AND state IN ({listed(LIVING)}) AND {IS_OPEN} AND (:agent = '' OR parent_agent IN ("
            "WITH RECURSIVE tree(agent) AS (SELECT :agent UNION "
            "SELECT runs.agent_id FROM runs JOIN tree ON runs.parent_agent = tree.agent) SELECT agent FROM tree)) RETURNING *",
            {"parent": parent, "agent": parent_agent, "reason": reason, "now": time.time()},
        )

    def discard_results(self, parent: str, parent_agent: str) -> None:
        """What has been found for a conversation that is forgotten reaches no other one."""
        self._rows(
            "UPDATE runs SET taken = :now WHERE parent = :parent AND (:agent = '' OR parent_agent = :agent) "
            "AND state IN ('final', 'announced', 'done') AND taken IS NULL RETURNING id",
            {"parent": parent, "agent": parent_agent, "now": time.time()},
        )

    def reassign_to_root(self, agent: str) -> None:
        """A child takes no more turns: what waits for it is for the main agent."""
        self._rows(
            "UPDATE runs SET parent_agent = '' WHERE parent_agent = :agent AND announced IS NOT NULL "
            "AND taken IS NULL RETURNING id",
            {"agent": agent},
        )

    # The parent's inbox

    def inbox(self, parent: str, parent_agent: str = "") -> list[SubagentRun]:
        """What waits for a parent, oldest first."""
        return self._all(
            "SELECT * FROM runs INDEXED BY waited_for WHERE parent = :parent AND parent_agent = :agent AND announcement != '' "
            f"AND {IS_WAITED_FOR} ORDER BY announced, id",
            {"parent": parent, "agent": parent_agent},
        )

    def mark_delivered(self, run: str) -> SubagentRun | None:
        """The parent's conversation has it, on disk."""
        return self._change(
            "UPDATE runs SET taken = :now WHERE id = :id AND announced IS NOT NULL AND taken IS NULL RETURNING *",
            {"id": run, "now": time.time()},
        )

    # Owners that died

    def other_owners(self, owner: str) -> list[str]:
        """Who else has open runs."""
        rows = self._rows(
            f"SELECT DISTINCT owner FROM runs WHERE state IN ({listed(OPEN)}) AND {IS_OPEN} AND owner != :owner",
            {"owner": owner},
        )
        return [row["owner"] for row in rows]

    def adopt(self, dead: str, owner: str, project: str | None) -> list[SubagentRun]:
        """Takes over what a dead owner left, of one project or of all; empty while that owner lives.

        One that let go in order counts as no death.
        """
        with owner_status(self.owners, dead) as status:
            if status is None:
                return []
            adopted = self._all(
                "UPDATE runs SET owner = :owner, recoveries = recoveries + :died, "
                "recovered = CASE WHEN :died THEN :now ELSE recovered END, rapid = CASE WHEN NOT :died THEN rapid "
                "WHEN :now - coalesce(recovered, 0) < :rapid THEN rapid + 1 ELSE 1 END "
                f"WHERE owner = :dead AND state IN ({listed(OPEN)}) AND {IS_OPEN} "
                "AND (:project IS NULL OR CASE WHEN json_valid(launch) THEN json_extract(launch, '$.project') END = :project) RETURNING *",
                {
                    "owner": owner,
                    "dead": dead,
                    "now": time.time(),
                    "project": project,
                    "rapid": RAPID,
                    "died": status == "died",
                },
            )
            if not self._rows(
                f"SELECT 1 FROM runs WHERE owner = :dead AND {IS_OPEN} LIMIT 1", {"dead": dead}
            ):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.owners, dead))
            return adopted

    def release_slots_of_dead(self) -> None:
        """Runs of owners that died take up no room on the machine until somebody goes on with them."""
        for owner in self.other_owners(""):
            with owner_status(self.owners, owner) as status:
                if status is not None:
                    self._rows(
                        f"UPDATE runs SET state = 'waiting' WHERE owner = :owner AND state = 'running' AND {IS_OPEN} "
                        "RETURNING id",
                        {"owner": owner},
                    )

    # Looking

    def get(self, run: str) -> SubagentRun | None:
        found = self._all("SELECT * FROM runs WHERE id = :id", {"id": run})
        return found[0] if found else None

    def last(self, chain: str) -> SubagentRun | None:
        """The run that a chain has come to."""
        found = self._all(
            "SELECT * FROM runs WHERE chain = :chain AND state != 'replaced' ORDER BY created DESC LIMIT 1",
            {"chain": chain},
        )
        return found[0] if found else None

    def chain(self, chain: str) -> list[SubagentRun]:
        return self._all(
            "SELECT * FROM runs WHERE chain = :chain ORDER BY created, steer_count", {"chain": chain}
        )

    def all(self) -> list[SubagentRun]:
        return self._all("SELECT * FROM runs ORDER BY created, id", {})

    def owned(self, owner: str) -> list[SubagentRun]:
        """What somebody has to look after."""
        return self._all(
            f"SELECT * FROM runs WHERE owner = :owner AND state IN ({listed(OPEN)}) AND {IS_OPEN}",
            {"owner": owner},
        )

    def changed_by_others(self, owner: str) -> list[SubagentRun]:
        """What others may have done to an owner's runs."""
        return self._all(
            f"SELECT * FROM runs WHERE owner = :owner AND state IN ('killed', 'steering') AND {IS_OPEN}",
            {"owner": owner},
        )

    def is_empty(self) -> bool:
        """Is there nothing to look after, to take over or to forget?"""
        return not self._rows(
            f"SELECT 1 FROM runs WHERE {IS_OPEN} UNION ALL SELECT 1 FROM runs WHERE state IN ('done', 'replaced') "
            "AND (announcement = '' OR taken IS NOT NULL OR state = 'replaced') LIMIT 1",
            {},
        )

    def delete_finished(self, kept: float = FINISHED_KEPT) -> int:
        """Forgets finished runs after a while, never one whose result is still to be taken."""
        before = time.time() - kept
        rows = self._rows(
            "DELETE FROM runs WHERE state IN ('done', 'replaced') AND ended < :before "
            "AND (announcement = '' OR taken IS NOT NULL OR state = 'replaced') AND NOT EXISTS (SELECT 1 FROM runs AS "
            f"later WHERE later.chain = runs.chain AND later.id != runs.id AND later.state IN ({listed(OPEN)})) RETURNING id",
            {"before": before},
        )
        rows += self._rows(
            "DELETE FROM runs WHERE state = 'given_up' AND ended < :before RETURNING id",
            {"before": before - GIVEN_UP_KEPT},
        )
        return len(rows)

    def version(self) -> int:
        """Changes when another process has written; costs nothing."""
        return int(self._rows("PRAGMA data_version", {})[0][0])

    # Statements

    def _need(self, statement: str, values: Mapping[str, Any]) -> SubagentRun:
        changed = self._change(statement, values)
        if changed is None:
            raise SubagentBusy("this subagent still works; wait for its report")
        return changed

    def _change(self, statement: str, values: Mapping[str, Any]) -> SubagentRun | None:
        rows = self._rows(statement, values)
        return run_of(rows[0]) if rows else None

    def _all(self, statement: str, values: Mapping[str, Any]) -> list[SubagentRun]:
        return [run_of(row) for row in self._rows(statement, values)]

    def _rows(self, statement: str, values: Mapping[str, Any]) -> list[sqlite3.Row]:
        with self._lock:
            try:
                rows = self._db.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise RegistryError(
                    f"the register of runs in {self.path} can not be used: {error}"
                ) from error
            if rows and not statement.startswith(("SELECT", "PRAGMA")):
                self.commits += 1
            return rows
