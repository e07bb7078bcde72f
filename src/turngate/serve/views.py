"""What the page shows, as JSON: an overview, one session, one gate. Each is bounded, however long the history is."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from turngate._frozen_dataclass import frozen
from turngate.core.text import one_line
from turngate.history.sessions import History, SessionSummary
from turngate.history.stats import date_of, merge_days

RANGES = (2, 7, 30, 0)  # days, the last of which is today; 0: all
DEFAULT_RANGE = 30
DAY_S = 86_400
MAX_DATES = 60  # in a plot
PAGE_ROWS = 40
MAX_ATTENTION = 6
MAX_RUNS, MAX_SEARCHED = 300, 150  # of a gate, and sessions in which they are searched
MAX_EXPORTED = 200  # sessions in one file

_OPEN = ("overridden", "not enforced")  # ends of a session that a person should look at

Json = dict[str, Any]


@frozen
class Views:
    """`pending`: the hooks of a project that wait for approval; `subagents`: those of a session that its registry has."""

    history: History
    pending: Callable[[str], Sequence[str]]
    subagents: Callable[[str], Sequence[Json]] = lambda _: ()
    project: str | None = None  # the only one that is shown; None: all

    def view(self, name: str, query: Mapping[str, str]) -> Json:
        """Return one view. Raises LookupError or ValueError if there is none."""
        days, page = int(query.get("days") or DEFAULT_RANGE), int(query.get("page") or 0)
        if days not in RANGES or not 0 <= page < 1_000_000:
            raise ValueError(query)
        if name == "session":
            return self._session(query["id"], page, float(query.get("at") or 0))
        first = date_of(time.time() - (days - 1) * DAY_S) if days else ""
        sessions = []
        for each in self.history.newest_first():
            within = {date: day for date, day in each.days.items() if date >= first}
            if within and query.get("project") in (None, "", each.project):
                sessions.append(replace(each, days=within))
        stats = merge_days([each.days for each in sessions], sum(each.damaged for each in sessions))
        dates = [date_of(time.time() - back * DAY_S) for back in range(days or MAX_DATES)][::-1]
        shown = {"dates": [date for date in dates if days or date >= (stats["first"] or dates[-1])]}
        if name == "gate":
            gates = {row["gate"]: row for row in stats["gates"]}
            return {**gates[query["name"]], **shown, "recent": self._runs(query["name"], sessions)}
        if name != "overview":
            raise LookupError(name)
        return {**stats, **shown, **self._overview(sessions, page)}

    def _overview(self, sessions: Sequence[SessionSummary], page: int) -> Json:
        projects = Counter(each.project for each in self.history.newest_first())
        recent = [*dict.fromkeys(each.project for each in sessions)][:MAX_ATTENTION]
        opened = [each for each in sessions if each.ended and each.ended.result in _OPEN]
        return {
            "page": page,
            "project": self.project,
            "count": len(sessions),
            "projects": [name for name, _ in projects.most_common(50)],
            "sessions": [_summary(each) for each in sessions[page * PAGE_ROWS :][:PAGE_ROWS]],
            "pages": -(-len(sessions) // PAGE_ROWS),
            "open": [_summary(each) for each in opened[:MAX_ATTENTION]],
            "running": [_summary(each) for each in sessions if each.running][:MAX_ATTENTION],
            "pending": [
                {"project": each, "hooks": found} for each in recent if (found := self.pending(each))
            ],
            "unread": self.history.unread,
        }

    def _session(self, name: str, page: int, at: float) -> Json:
        """Return a page of the stops of a session, the newest first page; `at`: of this stop."""
        stops = self.history.stops(name)
        if at:
            page = sum(stop.time > at for stop in stops) // PAGE_ROWS
        end = max(0, len(stops) - page * PAGE_ROWS)
        return {
            **_summary(self.history.sessions[name]),
            "count": len(stops),
            "blocked": sum(stop.result in ("blocked", "overridden") for stop in stops),
            "stops": stops[max(0, end - PAGE_ROWS) : end],
            "page": page,
            "pages": -(-len(stops) // PAGE_ROWS),
            "subagents_known": self.subagents(name),
        }

    def _runs(self, gate: str, sessions: Sequence[SessionSummary]) -> list[Json]:
        runs = list[Json]()
        for session in [each for each in sessions if gate in each.gates][:MAX_SEARCHED]:
            if len(runs) < MAX_RUNS:
                runs += [
                    {**vars(run), "session": session.id, "stop": stop.time, "title": session.title}
                    for stop in self.history.stops(session.id)
                    for run in stop.runs
                    if run.gate == gate
                ]
        newest = sorted(runs, key=lambda run: -run["begun"])[:MAX_RUNS]
        return [{**run, "reason": one_line(run["reason"], 300)} for run in newest]

    def export(self) -> Iterator[tuple[str, Json]]:
        """Yield what a file without a server needs, each view by the name under which the page asks for it."""
        queries = [("session", {"id": each.id}) for each in self.history.newest_first()[:MAX_EXPORTED]]
        for days in map(str, RANGES):
            of_all = {"days": days, "project": ""}
            gates = self.view("overview", of_all)["gates"]
            queries += [("overview", of_all), *(("gate", {"name": each["gate"], **of_all}) for each in gates)]
        for name, query in queries:
            for page in range(MAX_EXPORTED // PAGE_ROWS):
                made = self.view(name, {**query, "page": str(page)})
                yield f"{name}?{urlencode({**query, 'page': page})}", made
                if page + 1 >= made.get("pages", 1):
                    break


def page_json(value: object) -> str:
    """Return JSON that may stand in a script element."""
    return json.dumps(value, default=vars, separators=(",", ":")).replace("<", "\\u003c")


def _summary(session: SessionSummary) -> Json:
    return {**vars(session), "days": None}
