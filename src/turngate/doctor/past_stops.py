"""Asks hooks about stops of the past: gates that need only the transcript, others in a copy of the project where the files were recorded, and judges."""

import asyncio
import os
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, NoReturn

from turngate.aio.threads import run_in_thread
from turngate.core.conversation.messages import ModelRequest, UserMessage
from turngate.core.events.events import StopEvent
from turngate.core.hooks.kinds import AgentHook, CommandHook, GateHook, Hook, label
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.decisions import Block, Decision, Fault, Halt
from turngate.core.verdict.hook_run import HookRun
from turngate.doctor.proof.project_copy import ProjectCopy, Relocation, copy_project, events_in_copy
from turngate.engine import ask_hooks
from turngate.errors import ModelError
from turngate.gates.arguments import GateCall, read_gate_hook
from turngate.gates.conversation import known_records
from turngate.gates.recorded_trees import NoTree, check_out
from turngate.gates.run_commands import ProjectUnreachable
from turngate.history.journals import (
    RecordedStop,
    journal_folders,
    read_journal,
    read_stops,
    stops_with_files,
)
from turngate.history.past_stops import Decisions, PastDecision, PastSession, PastStop, read_past_session
from turngate.hosts.stop import rules_at
from turngate.ports import Model, World
from turngate.shells.local import LocalShell
from turngate.state.files import open_regular_file
from turngate.state.paths import state_folder
from turngate.stop_hooks import open_world

NO_TREE = "it needs the files of that stop, which are not known"
NO_MODEL = "it asks a model"
NOT_READY_MADE = "only ready-made gates can be asked about the past"
WITH_EFFECTS = ("notify", "archive", "log")  # observers, which would act again
MAX_KNOWN_BYTES = 16 * 1024 * 1024  # of a transcript whose records are kept in memory
FOLDER = "/"  # in place of the project: no command runs there
CHARS_PER_TOKEN = 4
JudgeOf = Callable[[str | None], Model]  # `World.judge`


class NoFiles:
    """A shell without a machine: the files of that time are not known."""

    async def run(self, *_: Any, **__: Any) -> NoReturn:
        raise ProjectUnreachable(NO_TREE)

    def slot(self, **_: Any) -> AbstractAsyncContextManager[None]:
        return nullcontext()


def _why_unknown(hook: Hook) -> str:
    """Return why a transcript is not enough to ask this hook, or ""."""
    call = read_gate_hook(hook) if isinstance(hook, GateHook) else None
    if isinstance(hook, CommandHook):
        return NO_TREE
    if not isinstance(call, GateCall) or call.gate.name in WITH_EFFECTS:
        return NO_MODEL if hook.asks == "model" else NOT_READY_MADE
    return NO_MODEL if call.gate.asks_model else NO_TREE if call.gate.is_cached else ""


def is_local(hook: Hook) -> bool:
    """Return whether a hook neither asks a model or a server nor reports to others."""
    return _why_unknown(hook) not in (NO_MODEL, NOT_READY_MADE)


# With the transcript


def judge_transcript(
    path: str,
    host: str,
    hooks: Sequence[Hook],
    project: str | None,
    since: float,
    against: Sequence[Hook] = (),
) -> PastSession:
    """Ask the hooks at each stop of a transcript, if it is of this project; None: of any."""
    past = read_past_session(path, host)
    stops = tuple(stop for stop in past.stops if stop.time is None or stop.time >= since)
    if not stops or (project is not None and not f"{past.folder}/".startswith(f"{project.rstrip('/')}/")):
        return replace(past, stops=())
    known_records.set({} if stops[-1].end <= MAX_KNOWN_BYTES else None)
    return asyncio.run(_judge_stops(replace(past, stops=stops), hooks, against))


async def _judge_stops(past: PastSession, *asked: Sequence[Hook]) -> PastSession:
    """Cut a copy of the transcript at each stop, from the last to the first, and ask the hooks that need nothing else."""
    every, judged = [(hooks, [_why_unknown(hook) for hook in hooks]) for hooks in asked], list[PastStop]()
    unknown = [tuple(map(_cannot_say, hooks, why)) for hooks, why in every]
    rules = [[Rule("Stop", hook) for hook, each in zip(*pair, strict=True) if not each] for pair in every]
    with _copied(past.path) as copy:
        for stop in reversed(past.stops):
            os.truncate(copy, stop.end)
            runs = [await _ask_transcript(past, stop, copy, Settings(rules=tuple(each))) for each in rules]
            decisions, against = map(_with_runs, unknown, runs)
            judged.append(replace(stop, decisions=decisions, against=against))
    return replace(past, stops=tuple(judged[::-1]))


@contextmanager
def _copied(path: str) -> Iterator[str]:
    """Copy a transcript, to be cut at its stops."""
    with tempfile.TemporaryDirectory(prefix="turngate-") as folder:
        yield shutil.copyfile(path, os.path.join(folder, "transcript.jsonl"))


async def _ask_transcript(
    past: PastSession, stop: PastStop, transcript: str, settings: Settings, judge: JudgeOf | None = None
) -> tuple[HookRun, ...]:
    """Ask about a stop of which only the transcript is known."""
    event = StopEvent(session_id="", transcript_path=transcript, cwd=past.folder)
    world = World(NoFiles(), FOLDER, environ={}, judge=judge, logs=False)
    return (await ask_hooks(replace(event, last_assistant_message=stop.answer), settings, world)).runs


def _cannot_say(hook: Hook, why: str) -> PastDecision:
    return PastDecision(label(hook), "cannot say", why)


def _with_runs(decisions: Decisions, runs: Iterable[HookRun]) -> Decisions:
    """Return the decisions, with those of these runs in place of earlier ones."""
    new = {label(run.rule.hook): _as_past(label(run.rule.hook), run.decision) for run in runs}
    return tuple(new.get(each.gate, each) for each in decisions)


def _as_past(name: str, decision: Decision) -> PastDecision:
    match decision:
        case Block(reason) | Halt(reason):
            return PastDecision(name, "would block", reason or "")
        case Fault(error, kind=kind):
            return PastDecision(name, "would pass" if kind == "waiting" else "cannot say", error)
        case _:
            return PastDecision(name, "would pass")


# With files and models


class CountedModel:
    """Stands for a model: counts the questions to it and their tokens, by its name, and asks nothing."""

    def __init__(self, model: Model, questions: Counter[str], tokens: Counter[str]) -> None:
        self.name, self.context = model.name, model.context
        self._questions, self._tokens = questions, tokens

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> NoReturn:  # noqa: ARG002 # as in `Model`
        texts = [each.text for each in request.messages if isinstance(each, UserMessage)]
        self._questions[self.name] += 1
        self._tokens[self.name] += len("".join([request.system, *texts])) // CHARS_PER_TOKEN
        raise ModelError("auth", "it was not asked")  # and so not asked again

    async def close(self) -> None:
        pass


async def ask_again(
    sessions: Sequence[PastSession],
    asked: Sequence[Sequence[Rule]],
    settings: Settings,
    judge: JudgeOf | None = None,
) -> list[PastSession]:
    """Ask hooks whose decisions are not known, where the files are recorded; with `judge` those that ask models, at every stop."""
    recorded, found = _find_recorded(sessions, state_folder()), []
    copies = dict[str, ReplayCopy | None]()  # of projects; None: it cannot be copied

    async def ask(past: PastSession, n: int, known: Decisions, rules: Sequence[Rule]) -> Decisions:
        gates = {each.gate for each in known if _is_open(each, judges=judge is not None)}
        own = [rule for rule in rules if label(rule.hook) in gates and not isinstance(rule.hook, AgentHook)]
        then, runs = recorded.get((past.path, n)) if own else None, tuple[HookRun, ...]()
        with suppress(OSError, NoTree):
            if then:
                if then.project not in copies:
                    copies[then.project] = None
                    copy = stack.enter_context(copy_project(then.project))
                    copies[then.project] = ReplayCopy(then.project, copy, settings)
                if replay := copies[then.project]:
                    runs, _ = await replay.ask(then, own, judge)
            elif own and judge:
                with _copied(past.path) as copied:
                    os.truncate(copied, past.stops[n].end)
                    chosen = replace(settings, rules=tuple(own))
                    runs = await _ask_transcript(past, past.stops[n], copied, chosen, judge)
        return _with_runs(known, runs)

    with ExitStack() as stack:
        for past in sessions:
            stops = list[PastStop]()
            for n, stop in enumerate(past.stops):
                given = zip((stop.decisions, stop.against), asked, strict=True)
                decisions, against = [await ask(past, n, known, rules) for known, rules in given]
                stops.append(replace(stop, decisions=decisions, against=against))
            found.append(replace(past, stops=tuple(stops)))
    return found


def _find_recorded(sessions: Iterable[PastSession], state: str) -> Mapping[tuple[str, int], RecordedStop]:
    """Return what was recorded after a stop of a transcript and before its next one, by its path and their places."""
    by_path = defaultdict[str, list[RecordedStop]](list)
    for folder in journal_folders(state):
        for stop in stops_with_files(read_stops(read_journal(folder).records)).values():
            if stop.event == "Stop" and stop.tree:
                by_path[os.path.realpath(stop.tree["transcript"])].append(stop)
    found = dict[tuple[str, int], RecordedStop]()
    for session in sessions:
        for recorded in by_path.get(os.path.realpath(session.path), ()):
            times = enumerate(stop.time for stop in session.stops)
            if before := [n for n, time in times if time is not None and time <= recorded.time]:
                found[session.path, before[-1]] = recorded
    return found


def _is_open(decision: PastDecision, *, judges: bool) -> bool:
    """Return whether a hook has not decided, but could with the files or, if `judges`, with a model."""
    wanted = decision.reason == NO_MODEL if judges else decision.reason not in (NO_MODEL, NOT_READY_MADE)
    return wanted and decision.outcome == "cannot say"


class ReplayCopy:
    """A copy of a project, which takes the files of one earlier stop after another."""

    def __init__(self, project: str, copy: ProjectCopy, settings: Settings) -> None:
        """Raises NoTree."""
        if not os.path.isdir(os.path.join(copy.folder, ".git")):
            raise NoTree("the copy of the project has no git repository")
        self._copy, self._settings, self._relocation = copy, settings, Relocation(project, copy)

    async def ask(
        self, stop: RecordedStop, rules: Sequence[Rule], judge: JudgeOf | None = None
    ) -> tuple[tuple[HookRun, ...], tuple[str, ...]]:
        """Return the runs of the hooks, and the links that are left out. Raises NoTree. `stop`: one with recorded files."""
        tree, folder = stop.tree or {}, self._copy.project
        moved = dict[str, tuple[Rule, Rule]]()
        for rule in rules:  # its files must be those that were approved
            files = {self._relocation.text(name): content for name, content in rule.files.items()}
            new = replace(self._relocation.rule(rule), files=files)
            moved[label(new.hook)] = rule, new
        settings = self._relocation.settings(self._settings, (new for _, new in moved.values()))
        path = self._write_transcript(tree["transcript"], tree["bytes"])
        agent = (tree["agent_type"], tree.get("agent_outcome", "ok")) if "agent_type" in tree else None
        answer = self._relocation.text(tree["answer"])
        start, event = events_in_copy(folder, path, stop.event, answer, agent)
        place = World(LocalShell(), folder, environ=self._relocation.environ(os.environ), logs=False)
        state = os.path.join(self._relocation.private, "state")
        async with open_world(place, settings, state=state) as world:
            world.logs, world.judge = False, judge or world.judge
            with suppress(NoTree):  # then the hooks answer without a start, as in the session
                await self._check_out(f"{tree['ref'].rpartition('/')[0]}/0")
                await ask_hooks(start, rules_at(start, settings), world)
            left_out = await self._check_out(tree["ref"])
            verdict = await ask_hooks(event, settings, world)
        return tuple(replace(run, rule=moved[label(run.rule.hook)][0]) for run in verdict.runs), left_out

    async def _check_out(self, ref: str) -> tuple[str, ...]:
        return await run_in_thread(check_out, ref, self._copy.folder, self._copy.original)

    def _write_transcript(self, path: str, size: int) -> str:
        """Write the transcript as it was then, with the folder of the copy in it; return its path, or "" if there is none."""
        try:
            with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
                text = file.read(size).decode("utf-8", "surrogateescape")
        except (OSError, ValueError):
            return ""
        target = os.path.join(self._relocation.private, "transcript.jsonl")
        with open(target, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(self._relocation.text(text))
        return target
