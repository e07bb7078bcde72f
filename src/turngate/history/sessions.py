"""What is known of all sessions: a summary of each, made again only when its journal has changed."""

import os
import time
from collections.abc import Iterator

from turngate._frozen_dataclass import frozen
from turngate.core.text import one_line
from turngate.history.journals import JournalFile, journal_folders, journal_stamp, read_journal
from turngate.history.stats import Days, count_days
from turngate.history.stops import RecordedRun, RecordedStop, read_stops
from turngate.state.paths import TRANSCRIPT_FILE
from turngate.transcript.reader import title_and_project

MAX_TITLE_CHARS = 120
MAX_RESULTS = 24  # in a summary
MAX_RECORDS = 500  # in which they are searched
MAX_RUN_S = 86_400  # a hook of a journal that has not changed for so long does not run any more
# Calls of `refresh`; then a session whose hooks ran is read even if its journal is the same.
RUNNING_EVERY = 8
OWN_HOST = "turngate"  # the host of a session of `turngate run`


@frozen
class SessionSummary:
    """One session. `results`: of the newest stops of the main agent, oldest first."""

    id: str
    folder: str
    host: str  # "" if it is not known
    project: str
    title: str
    gates: tuple[str, ...]
    first: float
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
        self._refreshed = 0

    def refresh(self) -> Iterator[str]:
        """Read the sessions that have changed, the newest first, and yield the name of each."""
        found = ((folder, journal_stamp(folder)) for folder in journal_folders(self._state))
        stamps = {folder: stamp for folder, stamp in found if stamp[0] >= self._since}
        for folder in self._stamps.keys() - stamps.keys():
            del self._stamps[folder]
            self.version += self.sessions.pop(os.path.basename(folder), None) is not None
        self._refreshed += 1
        # Of a hook that ran when the journal was read, and is killed, no line tells it.
        looks_at_running = self._refreshed % RUNNING_EVERY == 0
        running = {each.folder for each in self.sessions.values() if looks_at_running and each.running}
        changed = [
            folder
            for folder, stamp in stamps.items()
            if stamp != self._stamps.get(folder) or folder in running
        ]
        self.unread = len(changed)
        for number, folder in enumerate(sorted(changed, key=stamps.__getitem__, reverse=True)):
            name, before = os.path.basename(folder), self._stamps.get(folder)
            self._stamps[folder], self.unread = stamps[folder], len(changed) - number - 1
            if summary := self._summarize(folder, stamps[folder][0]):
                self.sessions[name] = summary
                self.version += before != stamps[folder] or not summary.running
            else:
                self.version += self.sessions.pop(name, None) is not None
            yield name

    def stops(self, session: str) -> list[RecordedStop]:
        """Return the stops of a session, oldest first. Raises KeyError if it is not known."""
        return read_stops(self._read(self.sessions[session].folder, starts=True).records)

    def _read(self, folder: str, *, starts: bool) -> JournalFile:
        """Read what happened in the project in one session."""
        try:
            journal = read_journal(folder, starts=starts)
        except OSError:
            return JournalFile((), 1)
        records = (each for each in journal.records if self._project in (None, each.get("project")))
        return JournalFile(tuple(records), journal.damaged)

    def _summarize(self, folder: str, changed: float) -> SessionSummary | None:
        journal = self._read(folder, starts=time.time() - changed < MAX_RUN_S)
        days, stops = count_days(journal.records), read_stops(journal.records[-MAX_RECORDS:])
        if not stops:
            return None
        main = [stop for stop in stops if not stop.agent]
        running = tuple(run for stop in stops for run in stop.runs if run.outcome == "running")
        path = os.path.join(folder, TRANSCRIPT_FILE)
        answers = (one_line(each.answer, MAX_TITLE_CHARS) for each in main[::-1] if each.answer)
        named = (str(each["host"]) for each in reversed(journal.records) if each.get("host"))
        return SessionSummary(
            os.path.basename(folder),
            folder,
            next(named, OWN_HOST if os.path.exists(path) else ""),
            str(journal.records[-1].get("project") or ""),
            title_and_project(path)[0] or next(answers, ""),
            tuple(dict.fromkeys(gate for day in days.values() for gate in day.gates)),
            journal.records[0]["time"],
            changed if running else stops[-1].time,
            sum(day.numbers["stops"] for day in days.values()),
            len({str(each["agent_id"]) for each in journal.records if each.get("agent_id")}),
            tuple(stop.result for stop in main[-MAX_RESULTS:]),
            running,
            main[-1] if main else None,
            days,
            journal.damaged,
        )

    def newest_first(self) -> list[SessionSummary]:
        return sorted(self.sessions.copy().values(), key=lambda each: (-each.last, each.id))
