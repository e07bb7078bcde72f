"""What the page shows, as JSON: an overview, one session, one gate. Each is bounded, however long the history is."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from turngate.core.text import one_line
from turngate.history.sessions import History, SessionSummary
from turngate.history.stats import OF_STOPS, date_of, merge_days
from turngate.history.stops import RecordedStop

RANGES = (2, 7, 30, 0)  # days, the last of which is today; 0: all
DEFAULT_RANGE = 30
MAX_DATES = 60  # in a plot
PAGE_ROWS = 40
MAX_ATTENTION = 6
MAX_RUNS, MAX_SEARCHED = 300, 150  # of a gate, and sessions in which they are searched
MAX_AGENTS = 50  # of a session, and stops of each
MAX_EXPORTED = 200  # sessions in one file

_OPEN = ("overridden", "not enforced")  # ends of a session that a person should look at
_PLOTTED = ("runs", "blocked", "not_enforced")

Json = dict[str, Any]


class Views:
    """`pending`: the hooks of a project that wait for approval; `subagents`: those of a session that its registry has."""

    def __init__(
        self,
        history: History,
        pending: Callable[[str], Sequence[str]],
        subagents: Callable[[str], Sequence[Json]] = lambda _: (),
        project: str | None = None,  # the only one that is shown; None: all
    ) -> None:
        self.history, self._pending, self._subagents, self._project = history, pending, subagents, project

    def view(self, name: str, query: Mapping[str, str]) -> Json:
        """Return one view. Raises LookupError or ValueError if there is none."""
        days, page = int(query.get("days") or DEFAULT_RANGE), int(query.get("page") or 0)
        if days not in RANGES or not 0 <= page < 1_000_000:
            raise ValueError(query)
        shown = [
            each for each in self.history.newest_first() if query.get("project") in (None, "", each.project)
        ]
        match name:
            case "overview":
                return self._overview(_within(shown, days), days, page)
            case "session":
                return self._session(query["id"], page, float(query.get("at") or 0))
            case "gate":
                return self._gate(_within(shown, days), query["name"], days)
            case _:
                raise LookupError(name)

    def _overview(self, sessions: Sequence[SessionSummary], days: int, page: int) -> Json:
        stats = merge_days([session.days for session in sessions])
        dates, plots = _plots(sessions, days)
        projects = Counter(each.project for each in self.history.newest_first())
        begin, recent = page * PAGE_ROWS, [*dict.fromkeys(each.project for each in sessions)][:MAX_ATTENTION]
        return {
            **{key: stats[key] for key in OF_STOPS},
            "count": stats["sessions"],
            "page": page,
            "gates": [{**gate, "plot": plots[gate["gate"]]} for gate in stats["gates"]],
            "dates": dates,
            "project": self._project,
            "projects": [name for name, _ in projects.most_common(50)],
            "sessions": [_summary(each) for each in sessions[begin : begin + PAGE_ROWS]],
            "pages": -(-len(sessions) // PAGE_ROWS),
            "open": [_summary(each) for each in sessions if each.ended and each.ended.result in _OPEN][
                :MAX_ATTENTION
            ],
            "running": [_summary(each) for each in sessions if each.running][:MAX_ATTENTION],
            "pending": [
                {"project": each, "hooks": hooks} for each in recent if (hooks := self._pending(each))
            ],
            "unread": self.history.unread,
            "damaged": sum(each.damaged for each in sessions),
        }

    def _session(self, name: str, page: int, at: float) -> Json:
        """Return a page of the stops of a session, the newest first page, with all of its subagents; `at`: of this stop."""
        stops = self.history.stops(name)
        if at:
            page = sum(stop.time > at for stop in stops) // PAGE_ROWS
        end = len(stops) - page * PAGE_ROWS
        return {
            **_summary(self.history.sessions[name]),
            "count": len(stops),
            "blocked": sum(stop.result in ("blocked", "overridden") for stop in stops),
            "stops": stops[max(0, end - PAGE_ROWS) : max(0, end)],
            "page": page,
            "pages": -(-len(stops) // PAGE_ROWS),
            "agents": list(_agents(stops, self._subagents(name))),
        }

    def _gate(self, sessions: Sequence[SessionSummary], name: str, days: int) -> Json:
        stats = merge_days([session.days for session in sessions])
        row = {gate["gate"]: gate for gate in stats["gates"]}[name]
        dates, plots = _plots(sessions, days)
        runs = list[Json]()
        having = [each for each in sessions if any(name in day.gates for day in each.days.values())]
        for session in having[:MAX_SEARCHED]:
            for stop in self.history.stops(session.id):
                about = {"session": session.id, "stop": stop.time, "title": session.title}
                found = (run for run in stop.runs if run.gate == name)
                runs += [{**vars(run), **about, "reason": one_line(run.reason, 300)} for run in found]
            if len(runs) >= MAX_RUNS:
                break
        runs = sorted(runs, key=lambda run: -run["begun"])[:MAX_RUNS]
        return {**row, "dates": dates, "plot": plots[name], "recent": runs}

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


def _within(sessions: Sequence[SessionSummary], days: int) -> list[SessionSummary]:
    """Return the sessions with only what happened in the last days."""
    if not days:
        return list(sessions)
    first = date_of(time.time() - (days - 1) * 86_400)
    found = ((each, {date: day for date, day in each.days.items() if date >= first}) for each in sessions)
    return [SessionSummary(**{**vars(each), "days": days}) for each, days in found if days]


def _plots(
    sessions: Sequence[SessionSummary], days: int
) -> tuple[list[str], Mapping[str, list[Sequence[int]]]]:
    """Return dates, and for each gate how often it ran, blocked and was not enforced on each of them."""
    earliest = min((session.first for session in sessions), default=time.time())
    span = min(MAX_DATES, days or int((time.time() - earliest) // 86_400) + 2)
    dates = [date_of(time.time() - back * 86_400) for back in range(span)][::-1]
    places = {date: place for place, date in enumerate(dates)}
    plots = defaultdict[str, list[Sequence[int]]](lambda: [(0, 0, 0)] * len(dates))
    for session in sessions:
        for date, day in session.days.items():
            for gate, count in day.gates.items():
                if (place := places.get(date)) is not None:
                    numbers = zip(plots[gate][place], (count.numbers[key] for key in _PLOTTED), strict=True)
                    plots[gate][place] = [sum(pair) for pair in numbers]
    return dates, plots


def _summary(session: SessionSummary) -> Json:
    shown = {key: value for key, value in vars(session).items() if key not in ("folder", "days", "ended")}
    return {**shown, "ended": session.ended and _outline(session.ended)}


def _agents(stops: Sequence[RecordedStop], rows: Sequence[Json]) -> Iterator[Json]:
    """Yield the newest subagents of a session with their stops; `rows`: those that its registry still has."""
    known, seen = {row["agent"]: row for row in rows}, dict[str, list[RecordedStop]]()
    for stop in stops:
        if stop.agent:
            seen.setdefault(stop.agent, []).append(stop)
    for agent in [*{**seen, **known}][-MAX_AGENTS:]:
        own = seen.get(agent, [])[-MAX_AGENTS:]
        about = {"agent": agent, "label": own[0].agent_type if own else "", "parent": "", "state": ""}
        yield {**about, **known.get(agent, {}), "stops": [_outline(stop) for stop in own]}


def _outline(stop: RecordedStop) -> Json:
    return {"time": stop.time, "result": stop.result, "blocked_by": stop.blocked_by}
