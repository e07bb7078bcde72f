"""The register of children's runs: SQLite, one statement for each transition, safe for several processes.

A transition is durable when its method returns, and only then its effect may begin. Each one names the states that it
leads out of, so a second try, a late result or another process changes nothing and gets None.
"""

import contextlib
import fcntl
import json
import os
import sqlite3
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Literal

from turngate.core.messages import Usage
from turngate.core.runs import LIVING, OPEN, EndedOutcome, Run
from turngate.errors import TurngateError
from turngate.journal import make_private

FILE = "registry.db"
OWNERS = "owners"
PATIENCE = 10.0  # seconds that a statement waits for another process
CHECKED = 64 * 1024 * 1024  # bytes up to which a file is looked through when it is opened
FROZEN_MOST = 100_000  # characters of a result that are kept for the parent
RAPID = 120.0  # seconds within which one recovery after another is in quick succession
GIVEN_UP_KEPT = 7 * 86400.0  # seconds that a result which reached nobody stays longer
FINISHED_KEPT = 300.0  # seconds that a finished run stays in the register


class RegistryError(TurngateError):
    """The register of runs can not be read or written."""


class StillAtWork(RegistryError):
    """One child works on one thing at a time."""


# Rows

_JSON = ("usage", "spent", "tools", "earlier_tools", "guard", "launch")
_NAMES = tuple(each.name for each in fields(Run))
_KNOWN = frozenset(_NAMES)
_NO_USAGE = Usage()
_USAGE = frozenset(each.name for each in fields(Usage))
_NUMBERS = ("started", "ended", "announced", "taken", "recovered", "max_steers")
_DEFAULTS = {each.name: each.default if each.default is not MISSING else None for each in fields(Run)}


def _fitting(name: str) -> type | tuple[type, ...]:
    """What a column may hold; anything else is as if it were not there."""
    if name in _NUMBERS:
        return (int, float)
    default = _DEFAULTS[name]
    return (int, float) if isinstance(default, bool | int | float) else str


_FITTING = {name: _fitting(name) for name in _NAMES}


def _column(name: str) -> str:
    match _DEFAULTS[name]:
        case bool() | int() as number:
            return f"{name} INTEGER NOT NULL DEFAULT {int(number)}"
        case float():
            return f"{name} REAL NOT NULL DEFAULT 0"
        case str() as text:
            return f"{name} TEXT NOT NULL DEFAULT '{text}'"
        case _:
            return name  # no type: what is put in comes out


# An index of some rows is used only where a statement repeats these very words.
_IS_OPEN = "state NOT IN ('done', 'replaced', 'given_up')"
_IS_WAITED_FOR = "announced IS NOT NULL AND taken IS NULL"

TABLE = f"CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, {', '.join(_column(n) for n in _NAMES if n != 'id')}) WITHOUT ROWID"
INDEXES = f"""
CREATE INDEX IF NOT EXISTS open_runs ON runs (state, owner) WHERE {_IS_OPEN};
CREATE INDEX IF NOT EXISTS waited_for ON runs (parent, parent_agent) WHERE {_IS_WAITED_FOR};
CREATE INDEX IF NOT EXISTS finished_runs ON runs (ended) WHERE state IN ('done', 'replaced');
CREATE INDEX IF NOT EXISTS children ON runs (parent, parent_agent);
CREATE INDEX IF NOT EXISTS by_agent ON runs (agent_id);
CREATE INDEX IF NOT EXISTS chains ON runs (chain);
CREATE INDEX IF NOT EXISTS agents ON runs (parent_agent) WHERE parent_agent != '';
CREATE TRIGGER IF NOT EXISTS replacement AFTER INSERT ON runs WHEN NEW.replaces != '' BEGIN
  UPDATE runs SET state = 'replaced', ended = coalesce(ended, NEW.created) WHERE id = NEW.replaces;
END;
"""


def _row(run: Run) -> dict[str, Any]:
    packed = {name: _packed(getattr(run, name)) for name in _JSON}
    return {**vars(run), **packed}


def _packed(value: Any) -> str | None:
    """What is empty, or counts nothing, takes no room and no time."""
    if isinstance(value, Usage):
        value = vars(value) if value != _NO_USAGE else None
    return json.dumps(value) if value else None


def _run(row: sqlite3.Row) -> Run:
    """Fields that an older or newer version did not write have their defaults; what is no value is none."""
    known: dict[str, Any] = {
        name: value
        for name, value in zip(row.keys(), row, strict=True)
        if name in _KNOWN and isinstance(value, _FITTING[name])
    }
    for name in _JSON:
        if name in known:
            known[name] = _unpacked(name, known[name])
    for name in ("background", "by_hook", "next_by_hook"):
        known[name] = bool(known.get(name))
    return Run(**{"chain": known["id"], "agent_id": "", **known})


def _unpacked(name: str, text: object) -> Any:
    try:
        said = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        said = None
    if name in ("tools", "earlier_tools"):
        return tuple(map(str, said)) if isinstance(said, list) else ()
    kept = said if isinstance(said, dict) else {}
    if name in ("guard", "launch"):
        return kept
    return Usage(**{k: v for k, v in kept.items() if k in _USAGE and type(v) is int})


def _in(states: Sequence[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)


# Who waits for a child of its own must not keep that child from running: only runs as deep, or deeper, take its room.
_ROOM = (
    "(SELECT count(*) FROM runs WHERE state IN ('running', 'ended', 'steering') "
    f"AND {_IS_OPEN} AND depth >= :depth) < :most"
)


def new_id() -> str:
    return uuid.uuid4().hex


# Owners


@dataclass
class Owner:
    """Whoever runs children holds a lock as long as it lives; the system lets go of it when it dies, however it dies."""

    folder: str
    id: str = field(default_factory=new_id)
    _fd: int = -1

    def take(self) -> None:
        path = os.path.join(self.folder, self.id)
        try:
            make_private(self.folder)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            raise RegistryError(f"the owner's lock {path} can not be taken: {error}") from error
        with contextlib.suppress(OSError):  # for people; a full disk takes no more than that
            os.write(self._fd, str(os.getpid()).encode())

    def release(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self.folder, self.id))
            os.close(self._fd)
            self._fd = -1


@contextlib.contextmanager
def _gone(folder: str, owner: str) -> Iterator[Literal["died", "left"] | None]:
    """How an owner went; None: it is there. Who let go in order took its lock file along.

    While somebody has the answer that an owner died, nobody else gets it.
    """
    try:
        fd = os.open(os.path.join(folder, owner), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield "left"
        return
    except OSError:
        yield None
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield None
    else:
        yield "died"
    finally:
        os.close(fd)


def owners_of(state: str, project: str) -> list[str]:
    """Who has open runs of a project; only looks, and a register that can not be read has none."""
    try:
        path = urllib.parse.quote(os.path.join(state, FILE))
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1.0)) as db:
            rows = db.execute(
                f"SELECT DISTINCT owner FROM runs WHERE {_IS_OPEN} AND CASE WHEN json_valid(launch) "
                "THEN json_extract(launch, '$.project') END = ?",
                (project,),
            )
            return [str(owner) for (owner,) in rows]
    except sqlite3.Error:
        return []


def is_gone(state: str, owner: str) -> bool:
    with _gone(os.path.join(state, OWNERS), owner) as how:
        return how is not None


# The register


class Registry:
    """`Registry(state)`; every method may be called from any thread."""

    def __init__(self, state: str) -> None:
        self.state = os.path.abspath(state)
        self.path = os.path.join(self.state, FILE)
        self.owners = os.path.join(self.state, OWNERS)
        self.fault: str | None = None  # for people: what was wrong with the file
        self.commits = 0
        self._lock = threading.Lock()
        self._db = self._opened()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    # A run's way

    def register(self, run: Run, *, may_run: bool, most: int) -> Run:
        """The run is known before it starts; it runs at once if it may and the machine has room."""
        row = {**_row(run), "may_run": may_run, "most": most}
        values = ", ".join(f":{name}" for name in _NAMES if name not in ("state", "started"))
        room = f"(:may_run AND {_ROOM})"
        names = ", ".join(name for name in _NAMES if name not in ("state", "started"))
        return self._need(
            f"INSERT INTO runs ({names}, state, started) SELECT {values}, "
            f"CASE WHEN {room} THEN 'running' ELSE 'waiting' END, CASE WHEN {room} THEN :created END "
            f"WHERE NOT EXISTS (SELECT 1 FROM runs WHERE agent_id = :agent_id AND state IN ({_in(LIVING)})) RETURNING *",
            row,
        )

    def start(self, run: Run, owner: str, *, most: int) -> Run | None:
        return self._change(
            "UPDATE runs SET state = 'running', started = :now WHERE id = :id AND owner = :owner AND state = 'waiting' "
            f"AND {_ROOM} RETURNING *",
            {"id": run.id, "depth": run.depth, "owner": owner, "now": time.time(), "most": most},
        )

    def end(
        self, run: str, owner: str, outcome: EndedOutcome, *, reason: str, error: str = "", answer: str = "",
        usage: Usage | None = None, tool_calls: int = 0, tools: Sequence[str] = (),
    ) -> Run | None:  # fmt: skip
        """None: it is killed, steered or ended already, and this end comes too late."""
        return self._change(
            "UPDATE runs SET state = 'ended', ended = :now, outcome = :outcome, reason = :reason, error = :error, "
            "result = :answer, usage = :usage, tool_calls = tool_calls + :tool_calls, tools = :tools "
            "WHERE id = :id AND owner = :owner AND state = 'running' RETURNING *",
            {
                "id": run, "owner": owner, "now": time.time(), "outcome": outcome, "reason": reason, "error": error,
                "answer": frozen(answer), "usage": _packed(usage), "tool_calls": tool_calls,
                "tools": _packed(list(tools)),
            },
        )  # fmt: skip

    def used(self, run: str, usage: Usage, tool_calls: int, tools: Sequence[str]) -> Run | None:
        """What a run had used when it was ended from outside."""
        return self._change(
            "UPDATE runs SET usage = :usage, tool_calls = tool_calls + :calls, tools = :tools WHERE id = :id RETURNING *",
            {"id": run, "usage": _packed(usage), "calls": tool_calls, "tools": _packed(list(tools))},
        )

    def mark(
        self, run: str, prompt: str, *, why: str, counts: bool, max_steers: int | None,
        guard: Mapping[str, Any] | None = None, states: Sequence[str] = ("ended",),
    ) -> Run | None:  # fmt: skip
        """The run is to be followed by another one; the count is kept before anything is sent."""
        return self._change(
            "UPDATE runs SET state = 'steering', next_id = :next, next_prompt = :prompt, next_by_hook = :counts, "
            "steer_why = :why, steer_count = steer_count + :counts, max_steers = :most, guard = coalesce(:guard, guard) "
            f"WHERE id = :id AND state IN ({_in(states)}) RETURNING *",
            {
                "id": run, "next": new_id(), "prompt": prompt, "why": why, "counts": int(counts),
                "most": max_steers, "guard": None if guard is None else json.dumps(guard),
            },
        )  # fmt: skip

    def unmark(self, run: str, *, counted: bool, error: str = "") -> Run | None:
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

    def replace(self, marked: Run) -> Run | None:
        """The run that follows takes the place of a marked one; the trigger sets the old one's state."""
        now = time.time()
        successor = replace(
            marked, id=marked.next_id, state="running", prompt=marked.next_prompt, by_hook=marked.next_by_hook, replaces=marked.id,
            created=now, started=now, ended=None, outcome=None, reason="", error="", result="", next_id="", next_prompt="",
            usage=Usage(), spent=marked.spent + marked.usage, tools=(), earlier_tools=tuple(dict.fromkeys((*marked.earlier_tools, *marked.tools))), next_by_hook=False, attempts=0, recoveries=0, rapid=0, recovered=None,
        )  # fmt: skip
        row = {**_row(successor), "old": marked.id}
        names = ", ".join(_NAMES)
        values = ", ".join(f":{name}" for name in _NAMES)
        return self._change(
            f"INSERT INTO runs ({names}) SELECT {values} WHERE EXISTS "
            "(SELECT 1 FROM runs WHERE id = :old AND state = 'steering') RETURNING *",
            row,
        )

    def finish(
        self, run: str, *, result: str, reason: str, announcement: str, max_steers: int | None
    ) -> Run | None:
        """It may stop: what the parent gets is fixed."""
        return self._change(
            "UPDATE runs SET state = 'final', result = :result, reason = :reason, announcement = :announcement, "
            "max_steers = :most WHERE id = :id AND state = 'ended' RETURNING *",
            {
                "id": run, "result": frozen(result), "reason": reason,
                "announcement": frozen(announcement), "most": max_steers,
            },
        )  # fmt: skip

    def bury(self, run: str, owner: str, *, error: str, announcement: str) -> Run | None:
        """It can not be brought back: its parent gets a word instead of its result."""
        return self._change(
            "UPDATE runs SET state = 'final', outcome = 'error', reason = 'lost', error = :error, result = '', "
            "announcement = :announcement, ended = coalesce(ended, :now) "
            f"WHERE id = :id AND owner = :owner AND state IN ({_in(LIVING)}) RETURNING *",
            {"id": run, "owner": owner, "error": error, "announcement": announcement, "now": time.time()},
        )

    def announce(self, run: str, *, taken: bool = False, to_root: bool = False) -> Run | None:
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

    def tried(self, run: str) -> int:
        """One more try to hand it over has failed; how many there were."""
        changed = self._change(
            "UPDATE runs SET attempts = attempts + 1 WHERE id = :id AND state = 'final' RETURNING *",
            {"id": run},
        )
        return changed.attempts if changed else 0

    def give_up(self, run: str, why: str) -> Run | None:
        return self._change(
            "UPDATE runs SET state = 'given_up', error = :why WHERE id = :id AND state = 'final' RETURNING *",
            {"id": run, "why": why},
        )

    def told(self, run: str) -> Run | None:
        """`subagent_ended` was told: nothing more is to be done."""
        return self._change(
            "UPDATE runs SET state = 'done' WHERE id = :id AND state IN ('announced', 'killed') RETURNING *",
            {"id": run},
        )

    def kill(self, run: str, reason: str) -> list[Run]:
        """Ends a run and everything that it started; whatever comes from them later changes nothing."""
        return self._all(
            "UPDATE runs SET state = 'killed', outcome = 'killed', reason = :reason, ended = coalesce(ended, :now) "
            f"WHERE state IN ({_in(LIVING)}) AND {_IS_OPEN} AND (chain = (SELECT chain FROM runs WHERE id = :id) "
            "OR parent_agent IN (WITH RECURSIVE tree(agent) AS (SELECT agent_id FROM runs WHERE state IN "
            f"({_in(LIVING)}) AND chain = (SELECT chain FROM runs WHERE id = :id) UNION "
            "SELECT runs.agent_id FROM runs JOIN tree ON runs.parent_agent = tree.agent) SELECT agent FROM tree)) RETURNING *",
            {"id": run, "reason": reason, "now": time.time()},
        )

    def kill_all(self, parent: str, parent_agent: str, reason: str) -> list[Run]:
        """The same for everything that a session has started, or a child of it."""
        return self._all(
            "UPDATE runs SET state = 'killed', outcome = 'killed', reason = :reason, ended = coalesce(ended, :now) "
            f"WHERE parent = :parent AND state IN ({_in(LIVING)}) AND {_IS_OPEN} AND (:agent = '' OR parent_agent IN ("
            "WITH RECURSIVE tree(agent) AS (SELECT :agent UNION "
            "SELECT runs.agent_id FROM runs JOIN tree ON runs.parent_agent = tree.agent) SELECT agent FROM tree)) RETURNING *",
            {"parent": parent, "agent": parent_agent, "reason": reason, "now": time.time()},
        )

    def silence(self, parent: str, parent_agent: str) -> None:
        """What has been found for a conversation that is forgotten reaches no other one."""
        self._rows(
            "UPDATE runs SET taken = :now WHERE parent = :parent AND (:agent = '' OR parent_agent = :agent) "
            "AND state IN ('final', 'announced', 'done') AND taken IS NULL RETURNING id",
            {"parent": parent, "agent": parent_agent, "now": time.time()},
        )

    def orphaned(self, agent: str) -> None:
        """A child takes no more turns: what waits for it is for the main agent."""
        self._rows(
            "UPDATE runs SET parent_agent = '' WHERE parent_agent = :agent AND announced IS NOT NULL "
            "AND taken IS NULL RETURNING id",
            {"agent": agent},
        )

    # The parent's inbox

    def inbox(self, parent: str, parent_agent: str = "") -> list[Run]:
        """What waits for a parent, oldest first."""
        return self._all(
            "SELECT * FROM runs INDEXED BY waited_for WHERE parent = :parent AND parent_agent = :agent AND announcement != '' "
            f"AND {_IS_WAITED_FOR} ORDER BY announced, id",
            {"parent": parent, "agent": parent_agent},
        )

    def take(self, run: str) -> Run | None:
        """The parent's conversation has it, on disk."""
        return self._change(
            "UPDATE runs SET taken = :now WHERE id = :id AND announced IS NOT NULL AND taken IS NULL RETURNING *",
            {"id": run, "now": time.time()},
        )

    # Owners that died

    def orphans(self, owner: str) -> list[str]:
        """Who else has open runs."""
        rows = self._rows(
            f"SELECT DISTINCT owner FROM runs WHERE state IN ({_in(OPEN)}) AND {_IS_OPEN} AND owner != :owner",
            {"owner": owner},
        )
        return [row["owner"] for row in rows]

    def adopt(self, dead: str, owner: str, project: str | None) -> list[Run]:
        """Takes over what a dead owner left, of one project or of all; empty while that owner lives.

        One that let go in order counts as no death.
        """
        with _gone(self.owners, dead) as how:
            if how is None:
                return []
            adopted = self._all(
                "UPDATE runs SET owner = :owner, recoveries = recoveries + :died, "
                "recovered = CASE WHEN :died THEN :now ELSE recovered END, rapid = CASE WHEN NOT :died THEN rapid "
                "WHEN :now - coalesce(recovered, 0) < :rapid THEN rapid + 1 ELSE 1 END "
                f"WHERE owner = :dead AND state IN ({_in(OPEN)}) AND {_IS_OPEN} "
                "AND (:project IS NULL OR CASE WHEN json_valid(launch) THEN json_extract(launch, '$.project') END = :project) RETURNING *",
                {
                    "owner": owner,
                    "dead": dead,
                    "now": time.time(),
                    "project": project,
                    "rapid": RAPID,
                    "died": how == "died",
                },
            )
            if not self._rows(
                f"SELECT 1 FROM runs WHERE owner = :dead AND {_IS_OPEN} LIMIT 1", {"dead": dead}
            ):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.owners, dead))
            return adopted

    def free_dead(self) -> None:
        """Runs of owners that died take up no room on the machine until somebody goes on with them."""
        for owner in self.orphans(""):
            with _gone(self.owners, owner) as how:
                if how is not None:
                    self._rows(
                        f"UPDATE runs SET state = 'waiting' WHERE owner = :owner AND state = 'running' AND {_IS_OPEN} "
                        "RETURNING id",
                        {"owner": owner},
                    )

    # Looking

    def get(self, run: str) -> Run | None:
        found = self._all("SELECT * FROM runs WHERE id = :id", {"id": run})
        return found[0] if found else None

    def last(self, chain: str) -> Run | None:
        """The run that a chain has come to."""
        found = self._all(
            "SELECT * FROM runs WHERE chain = :chain AND state != 'replaced' ORDER BY created DESC LIMIT 1",
            {"chain": chain},
        )
        return found[0] if found else None

    def chain(self, chain: str) -> list[Run]:
        return self._all(
            "SELECT * FROM runs WHERE chain = :chain ORDER BY created, steer_count", {"chain": chain}
        )

    def all(self) -> list[Run]:
        return self._all("SELECT * FROM runs ORDER BY created, id", {})

    def owned(self, owner: str) -> list[Run]:
        """What somebody has to look after."""
        return self._all(
            f"SELECT * FROM runs WHERE owner = :owner AND state IN ({_in(OPEN)}) AND {_IS_OPEN}",
            {"owner": owner},
        )

    def disturbed(self, owner: str) -> list[Run]:
        """What others may have done to an owner's runs."""
        return self._all(
            f"SELECT * FROM runs WHERE owner = :owner AND state IN ('killed', 'steering') AND {_IS_OPEN}",
            {"owner": owner},
        )

    def is_empty(self) -> bool:
        """Is there nothing to look after, to take over or to forget?"""
        return not self._rows(
            f"SELECT 1 FROM runs WHERE {_IS_OPEN} UNION ALL SELECT 1 FROM runs WHERE state IN ('done', 'replaced') "
            "AND (announcement = '' OR taken IS NOT NULL OR state = 'replaced') LIMIT 1",
            {},
        )

    def sweep(self, kept: float = FINISHED_KEPT) -> int:
        """Forgets finished runs after a while, never one whose result is still to be taken."""
        before = time.time() - kept
        rows = self._rows(
            "DELETE FROM runs WHERE state IN ('done', 'replaced') AND ended < :before "
            "AND (announcement = '' OR taken IS NOT NULL OR state = 'replaced') AND NOT EXISTS (SELECT 1 FROM runs AS "
            f"later WHERE later.chain = runs.chain AND later.id != runs.id AND later.state IN ({_in(OPEN)})) RETURNING id",
            {"before": before},
        )
        rows += self._rows(
            "DELETE FROM runs WHERE state = 'given_up' AND ended < :before RETURNING id",
            {"before": before - GIVEN_UP_KEPT},
        )
        return len(rows)

    @property
    def version(self) -> int:
        """Changes when another process has written; costs nothing."""
        return int(self._rows("PRAGMA data_version", {})[0][0])

    # Statements

    def _need(self, statement: str, values: Mapping[str, Any]) -> Run:
        changed = self._change(statement, values)
        if changed is None:
            raise StillAtWork("this subagent still works; wait for its report")
        return changed

    def _change(self, statement: str, values: Mapping[str, Any]) -> Run | None:
        rows = self._rows(statement, values)
        return _run(rows[0]) if rows else None

    def _all(self, statement: str, values: Mapping[str, Any]) -> list[Run]:
        return [_run(row) for row in self._rows(statement, values)]

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

    def _opened(self) -> sqlite3.Connection:
        """A damaged file is set aside, never deleted, and said; one process at a time does that."""
        try:
            with _alone(self.path + ".lock"):
                try:
                    return self._connected()
                except sqlite3.OperationalError:
                    raise  # the place is wrong, not the file
                except sqlite3.DatabaseError as error:
                    self._set_aside(str(error))
                return self._connected()
        except (sqlite3.Error, OSError) as error:
            raise RegistryError(f"the register of runs in {self.path} can not be opened: {error}") from error

    def _connected(self) -> sqlite3.Connection:
        # Private, and so are its side files. A file that is there is never opened by hand: to close it would drop the
        # locks that another connection of this process has on it.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            _look_through(db, self.path)
            db.execute(TABLE)
            self._add_columns(db)
            db.executescript(INDEXES)
        except BaseException:
            db.close()
            raise
        return db

    def _add_columns(self, db: sqlite3.Connection) -> None:
        """A file of an older version lacks some."""
        there = {row["name"] for row in db.execute("PRAGMA table_info(runs)")}
        for name in _NAMES:
            if name not in there:
                db.execute(f"ALTER TABLE runs ADD COLUMN {_column(name)}")

    def _set_aside(self, why: str) -> None:
        aside = f"{self.path}.damaged-{time.time_ns()}"
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.path + end, aside + end)
        self.fault = f"the register of runs in {self.path} was damaged ({why}); it was set aside as {aside}"


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    make_private(os.path.dirname(path))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _look_through(db: sqlite3.Connection, path: str) -> None:
    if os.path.getsize(path) < CHECKED:
        said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if said != "ok":
            raise sqlite3.DatabaseError(said)


def frozen(text: str) -> str:
    """A result as it is kept: its beginning and a word about the rest."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= FROZEN_MOST:
        return text
    return f"{text[:FROZEN_MOST]}\n[… {len(text) - FROZEN_MOST} more characters; the child's transcript has all of it]"
