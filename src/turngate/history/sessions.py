"""What is known of all sessions: the stops of each, and a summary, made again only when its journal has changed."""

import os
import time
from collections.abc import Iterator

from turngate._frozen_dataclass import frozen
from turngate.core.text import one_line
from turngate.history.journals import (
    JournalFile,
    RecordedRun,
    RecordedStop,
    journal_folders,
    journal_stamp,
    read_journal,
    read_stops,
)
from turngate.history.stats import Days, count_days
from turngate.state.paths import TRANSCRIPT_FILE, session_folder
from turngate.transcript.reader import title_and_project

MAX_TITLE_CHARS = 120
MAX_RESULTS = 24  # in a summary
MAX_RUN_S = 86_400  # a hook of a journal that has not changed for so long does not run any more
OWN_HOST = "turngate"  # the host of a session of `turngate run`


@frozen
class SessionSummary:
    """One session. `results`: of the newest stops of the main agent, oldest first."""

    id: str
    host: str  # "" if it is not known
    project: str
    title: str
    gates: tuple[str, ...]
    last: float
    stops: int
    subagents: int
    results: tuple[str, ...]
    running: tuple[RecordedRun, ...]
    ended: RecordedStop | None  # the newest stop of the main agent
    days: Days
    damaged: int

    @property
    def open_stop(self) -> RecordedStop | None:
        """The end of the session, if a gate still blocks and no person has accepted that."""
        return self.ended if self.ended and self.ended.result == "overridden" else None


class History:
    """The sessions of a state folder that have changed after `since`, or only what happened in one project."""

    def __init__(self, state: str, project: str | None = None, since: float = 0) -> None:
        self._state, self._project, self._since = state, project, since
        self._stamps = dict[str, tuple[float, int]]()
        self.sessions = dict[str, SessionSummary]()
        self.version = 0  # of the sessions
        self.unread = 0  # sessions that have changed and are not read yet

    def refresh(self) -> Iterator[str]:
        """Read the sessions that have changed, the newest first, and yield the name of each."""
        found = ((os.path.basename(folder), journal_stamp(folder)) for folder in journal_folders(self._state))
        stamps = {name: stamp for name, stamp in found if stamp[0] >= self._since}
        for name in self._stamps.keys() - stamps.keys():
            del self._stamps[name]
            self.version += self.sessions.pop(name, None) is not None
        changed = {name for name, stamp in stamps.items() if stamp != self._stamps.get(name)}
        # Of a hook that ran when the journal was read, and is killed, no line tells it.
        running = {each.id for each in self.sessions.values() if each.running}
        self.unread = len(changed)
        for name in sorted(changed or running, key=stamps.__getitem__, reverse=True):
            self._stamps[name], self.unread = stamps[name], max(0, self.unread - 1)
            summary = self._summarize(name, stamps[name][0])
            self.version += name in changed or summary != self.sessions.get(name)
            if summary:
                self.sessions[name] = summary
            else:
                self.sessions.pop(name, None)
            yield name

    def stops(self, session: str) -> list[RecordedStop]:
        """Return the stops of a session, oldest first. Raises KeyError if it is not known."""
        return read_stops(self._read(self.sessions[session].id, starts=True).records)

    def _read(self, name: str, *, starts: bool) -> JournalFile:
        try:
            return read_journal(session_folder(self._state, name), starts=starts, project=self._project)
        except OSError:
            return JournalFile((), 1)

    def _summarize(self, name: str, changed: float) -> SessionSummary | None:
        journal = self._read(name, starts=time.time() - changed < MAX_RUN_S)
        if not (stops := read_stops(journal.records)):
            return None
        main, days = [stop for stop in stops if not stop.agent], count_days(stops)
        running = tuple(run for stop in stops for run in stop.runs if run.outcome == "running")
        path = os.path.join(session_folder(self._state, name), TRANSCRIPT_FILE)
        answers = (one_line(each.answer, MAX_TITLE_CHARS) for each in main[::-1] if each.answer)
        hosts = (each.host for each in reversed(stops) if each.host)
        return SessionSummary(
            id=name,
            host=next(hosts, OWN_HOST if os.path.exists(path) else ""),
            project=stops[-1].project,
            title=title_and_project(path)[0] or next(answers, ""),
            gates=tuple(dict.fromkeys(gate for day in days.values() for gate in day if gate)),
            last=changed if running else stops[-1].time,
            stops=len(stops),
            subagents=len({stop.agent for stop in stops if stop.agent}),
            results=tuple(stop.result for stop in main[-MAX_RESULTS:]),
            running=running,
            ended=main[-1] if main else None,
            days=days,
            damaged=journal.damaged,
        )

    def newest_first(self) -> list[SessionSummary]:
        return sorted(self.sessions.copy().values(), key=lambda each: (-each.last, each.id))
