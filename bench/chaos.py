"""`make chaos`: children that are sent back twice each, while whoever runs them is killed again and again.

Every worker is a real process, ended by SIGKILL: at random moments, or by itself at a named step. The next one goes
on with what it left. At the end each child has been announced once, and none was lost, told twice or sent back more
often than was asked for.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from turngate.agent.session import Session
from turngate.core.hooks import CommandHook
from turngate.core.messages import ModelRequest, Reply, Text, ToolUse, UserMessage
from turngate.core.plugin_events import SubagentEndedEvent, SubagentStoppingContext, SubagentStoppingEvent
from turngate.core.settings import Rule, Settings
from turngate.core.subagent_run import OPEN, SubagentRun
from turngate.plugins.handlers import Plugins, SubagentStopPayload
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.manager import SubagentManager
from turngate.subagents.registry import Registry
from turngate.transcript.reader import read_records

REDIRECTS = 2
BEGINNING = ("registered", "started", "recovered")
COMPLETION = ("worked", "ended", "judging", "judged", "final", "observed", "announced", "told", "done")
RESTART = ("marked", "aborted", "cleared", "settled", "sent", "replaced")
UNSENT = ("unmarked",)  # the new prompt could not be sent
PARENT = ("taking", "taken")  # the parent's conversation has a report; then the register knows it too
STEPS = (*BEGINNING, *COMPLETION, *RESTART, *UNSENT, *PARENT)
PATIENT = SubagentLimits(recoveries=10**6, rapid=10**6)
FEW = 5  # children of a worker that is killed at one step
ENOUGH = 20  # failures of workers after which nobody begins another one
TOO_LONG = 60.0  # seconds for one worker that nobody kills
FAULTS = {"unmarked": "cleared", "buried": "judging"}  # what is only done when this step before it fails
WAITED_FOR = 3  # in the storm every third child is one that its parent waits for
BEGIN = "begin "  # the user asks the parent for these children

Kill = tuple[str, int]  # at which step, and at which of its occurrences
OnStep = Callable[[str, SubagentRun], None]


@dataclass(frozen=True)
class Place:
    """A parent session; several may share a folder, and then each other's children."""

    folder: str
    session: str
    children: int
    command: bool = False  # the gate is a command of the settings instead of a plugin
    foreground: int = 0  # the parent waits for every so manieth child: it is a tool call of a turn
    noted: bool = False  # what plugins are told is written down
    deaf: bool = False  # whoever is to be told besides the parent can not be reached

    @property
    def project(self) -> str:
        return os.path.join(self.folder, "project")

    @property
    def state(self) -> str:
        return os.path.join(self.folder, "state")

    @property
    def labels(self) -> list[str]:
        return [f"{self.session}-{number}" for number in range(self.children)]

    @property
    def waited_for(self) -> list[str]:
        return self.labels[self.foreground - 1 :: self.foreground] if self.foreground else []

    @property
    def log(self) -> str:
        return os.path.join(self.folder, "noted")


@dataclass
class Figures:
    runs: int = 0
    kills: int = 0
    recoveries: int = 0  # of runs, by another process
    announced_once: int = 0
    lost: int = 0
    twice: int = 0
    above_limit: int = 0
    wrong: list[str] = field(default_factory=list)  # everything else that is not as it should be
    seconds: float = 0.0

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        )

    @property
    def holds(self) -> bool:
        return (self.announced_once, self.lost, self.twice, self.above_limit, self.wrong) == (
            self.runs,
            0,
            0,
            0,
            [],
        )

    def __str__(self) -> str:
        said = "; ".join(
            f"{name.replace('_', ' ')} {value:.1f}"
            if name == "seconds"
            else f"{name.replace('_', ' ')} {value}"
            for name, value in asdict(self).items()
            if name != "wrong"
        )
        return f"{said}; otherwise wrong {len(self.wrong)}"


# One worker


@dataclass
class Answering:
    """Answers from the conversation alone, so that any process can go on with it."""

    seconds: float = 0.004
    log: str = ""  # a file that is told who is asked what, and when
    name: str = "chaos:answering"
    context: int = 200_000

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        said = [message.text for message in request.messages if isinstance(message, UserMessage)]
        if request.agent == "main":
            return _delegated(request)
        begun = time.time()
        if self.log:
            note(self.log, json.dumps(["begin", os.getpid(), said[0], begun]) + "\n")
        await asyncio.sleep(random.uniform(self.seconds / 2, self.seconds))
        if self.log:
            note(self.log, json.dumps(["end", os.getpid(), said[0], time.time()]) + "\n")
        return Reply((Text(f"answer {len(said)} to {said[0]}"),))

    async def close(self) -> None:
        pass


def _delegated(request: ModelRequest) -> Reply:
    """The parent asks for the children that the user has just named, and waits for them."""
    last = request.messages[-1]
    if not (isinstance(last, UserMessage) and last.text.startswith(BEGIN)):
        return Reply((Text("heard"),))
    labels = last.text.removeprefix(BEGIN).split()
    uses = (ToolUse(f"{time.time_ns()}-{label}", "Task", asked_for(label)) for label in labels)
    return Reply(tuple(uses), "tool_use")


@dataclass(frozen=True)
class Gate:
    """Sends every child back twice; what it has said is kept in files, so it says the same to the next process."""

    folder: str

    async def __call__(self, event: SubagentStoppingEvent, context: SubagentStoppingContext) -> Any:
        folder = os.path.join(self.folder, event.agent_id)
        os.makedirs(folder, exist_ok=True)
        sent = {run: int(number) for number, run in (name.split("-") for name in os.listdir(folder))}
        number = sent.get(event.run_id, len(sent) + 1)
        if number > REDIRECTS:
            return None
        os.close(os.open(os.path.join(folder, f"{number}-{event.run_id}"), os.O_CREAT | os.O_WRONLY, 0o600))
        return {"allow": False, "prompt": redirect(number), "reason": "chaos"}


# The same as a command: how often the child was sent back is on disk, and every hook is told.
COMMAND = (
    f'n=$((TURNGATE_STOP_HOOK_COUNT + 1)); [ $n -gt {REDIRECTS} ] || {{ echo "redirect $n" >&2; exit 2; }}'
)


def redirect(number: int) -> str:
    return f"redirect {number}"


def session_of(
    place: Place, on_step: OnStep, limits: SubagentLimits = PATIENT, model: Answering | None = None
) -> Session:
    plugins, rules = Plugins(), (Rule("SubagentStop", CommandHook(COMMAND)),)
    if not place.command:
        plugins.on("subagent_stopping", Gate(os.path.join(place.folder, "gate")))
    if place.noted:
        _note_down(plugins, place, on_step)
    return Session(
        place.project,
        model or Answering(),
        Settings(rules=rules if place.command else ()),
        session_id=place.session,
        state=place.state,
        plugins=plugins,
        children=limits,
        on_step=on_step,
        announcer=_reach_nobody if place.deaf else None,
    )


def _note_down(plugins: Plugins, place: Place, on_step: OnStep) -> None:
    def stopped(payload: SubagentStopPayload) -> None:
        note(place.log, json.dumps(["subagent_stop", payload.result.label, payload.outcome]) + "\n")
        on_step("stopped", payload.result)

    def ended(event: SubagentEndedEvent, _: SubagentStoppingContext) -> None:
        note(place.log, json.dumps(["subagent_ended", event.label, event.outcome]) + "\n")

    plugins.on("subagent_stop", stopped)
    plugins.on("subagent_ended", ended)


async def _reach_nobody(_: SubagentRun) -> None:
    raise ConnectionError("nobody listens")


async def work(
    place: Place, on_step: OnStep, limits: SubagentLimits = PATIENT, model: Answering | None = None
) -> None:
    """Starts the children that are not there yet, and works until none of them is open."""
    async with asyncio.timeout(TOO_LONG), session_of(place, on_step, limits, model) as session:
        await session.open()
        registry = (await session.family.supervisor()).registry
        there = {run.label for run in runs_of(registry, place)}
        for label in place.labels:
            if label not in there and label not in place.waited_for:
                await start(session, label)
        if missing := [label for label in place.waited_for if label not in there]:
            session.max_turns = 10**6
            await session.send(BEGIN + " ".join(missing))
        waited = {run.chain for run in runs_of(registry, place)}
        while waited:
            await asyncio.sleep(0.02)
            waited = {chain for chain in waited if (now := registry.last(chain)) and now.state in OPEN}


async def start(session: Session, label: str) -> None:
    await session.family.start({**asked_for(label), "run_in_background": True})


def asked_for(label: str) -> dict[str, Any]:
    return {"description": label, "prompt": f"task {label}"}


async def hear(place: Place, on_step: OnStep) -> None:
    """The parent is there again, and takes a turn."""
    async with asyncio.timeout(TOO_LONG), session_of(place, on_step) as session:
        session.max_turns = 10**6
        await session.send("go on")


def runs_of(registry: Registry, place: Place) -> list[SubagentRun]:
    statement = "SELECT * FROM runs WHERE parent = :parent ORDER BY created, id"
    return registry._all(statement, {"parent": place.session})  # noqa: SLF001


# Processes


def forked(
    task: Callable[..., Coroutine[Any, Any, None]], place: Place, kill: Kill | None = None, *more: Any
) -> int:
    """A process of its own that does this and ends; nobody's threads are copied."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        random.seed()
        asyncio.run(task(place, logging(place, kill), *more))
        code = 0
    except BaseException as error:
        print(f"a worker failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """Minus the signal, or the exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def logging(place: Place, kill: Kill | None = None) -> OnStep:
    """Writes recoveries down, and dies at a step: what a chain does again and again is counted for each chain."""
    counts: Counter[tuple[str, str]] = Counter()
    log = os.path.join(place.folder, "recovered")

    def step(name: str, run: SubagentRun) -> None:
        if name == "recovered":
            note(log, f"{run.id}\n")
        if kill and name == kill[0]:
            chain = run.chain if name in RESTART or name in COMPLETION[:4] else ""
            counts[name, chain] += 1
            if counts[name, chain] == kill[1]:
                note(os.path.join(place.folder, "died"), f"{time.time()}\n")
                die()
        if kill and name == FAULTS.get(kill[0]):
            raise OSError("chaos")

    if kill and kill[0] in PARENT:
        _die_while_taking(kill)
    elif kill and kill[0] == "killed":
        _die_after_a_kill()
    elif kill and kill[0] == "kept":
        _die_before_the_register_knows()
    return step


def _die_while_taking(kill: Kill) -> None:
    take, count = Registry.mark_delivered, Counter[str]()

    def dying(self: Registry, run: str) -> SubagentRun | None:
        count["taking"] += 1
        if count["taking"] == kill[1] and kill[0] == "taking":
            die()
        taken = take(self, run)
        if count["taking"] == kill[1]:
            die()
        return taken

    Registry.mark_delivered = dying  # type: ignore[method-assign]


def _die_after_a_kill() -> None:
    """The register knows that a run is killed, and nobody else does."""
    kill = Registry.kill

    def dying(self: Registry, run: str, reason: str) -> list[SubagentRun]:
        kill(self, run, reason)
        die()
        raise AssertionError("it is dead")

    Registry.kill = dying  # type: ignore[method-assign]


def _die_before_the_register_knows() -> None:
    """The parent's conversation has the result of a tool, on disk."""

    def dying(self: SubagentManager, key: str) -> None:
        die()

    SubagentManager.handed = dying  # type: ignore[method-assign]


def note(path: str, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, line.encode())
    os.close(fd)


# At every named step


def killed_at(folder: str, kills: Sequence[Kill], *, command: bool = False) -> Figures:
    """One worker after another is killed where it is said; then one finishes, and the parent hears of it."""
    started, place = time.monotonic(), made(Place(folder, "parent", FEW, command))
    figures = Figures()
    limits = SubagentLimits(recoveries=PATIENT.recoveries, rapid=PATIENT.rapid, at_once=2)
    for kill in kills:
        if kill[0] not in PARENT:
            figures.kills += _died(forked(work, place, kill, limits), kill, figures)
    _finished(forked(work, place, None, limits), figures)
    told(place, figures)
    for kill in kills:
        if kill[0] in PARENT:
            figures.kills += _died(forked(hear, place, kill), kill, figures)
    _finished(forked(hear, place), figures)
    heard(place, figures)
    figures.recoveries = recovered(place)
    figures.seconds = time.monotonic() - started
    return figures


def ways_to_die(step: str) -> list[list[Kill]]:
    if step in FAULTS:  # each worker spoils what it touches, so it dies at the first
        return [[(step, 1)], [(step, 1), (step, 1), (step, 1)]]
    before: list[Kill] = (
        [("registered", 4)] if step == "recovered" else []
    )  # so there are several to take over
    return [[*before, (step, 1)], [*before, (step, 2)], [*before, (step, 1), (step, 1), (step, 1)]]


def _died(pid: int, kill: Kill, figures: Figures) -> int:
    code = ended(pid)
    if code != -signal.SIGKILL:
        figures.wrong.append(f"the worker did not come to {kill}: it ended with {code}")
    return code == -signal.SIGKILL


def _finished(pid: int, figures: Figures) -> None:
    code = ended(pid)
    if code != 0:
        figures.wrong.append(f"a worker that nobody killed ended with {code}")


# Two at once


@dataclass(frozen=True)
class Shared:
    """What two processes with one register did, of which the first died."""

    by_both: (
        int  # children that both were at work on at one time, or that the dead one's heir took while it lived
    )
    taken_over: int  # model requests for the dead one's children by its heir
    seconds: float  # from its death until its last child was announced


def shared(folder: str, children: int, figures: Figures) -> Shared:
    """The first is killed in the middle; the other finishes the work of both, and its own is nobody else's."""
    first, second = (made(Place(folder, name, children)) for name in ("first", "second"))
    log = os.path.join(folder, "asked")
    dying = forked(work, first, ("replaced", 2), PATIENT, Answering(0.05, log))
    heir = forked(outlive, second, None, first, Answering(0.05, log))
    figures.kills += _died(dying, ("replaced", 2), figures)
    _finished(heir, figures)
    death = float(Path(folder, "died").read_text())
    for place in (first, second):
        told(place, figures)
        _finished(forked(hear, place), figures)
        heard(place, figures)
    with open(log, encoding="utf-8") as file:
        asked = [json.loads(line) for line in file]
    own = {dying: first, heir: second}
    both = {
        task
        for what, pid, task, when in asked
        if what == "begin"
        and task not in {f"task {label}" for label in own[pid].labels}
        and (pid == dying or when < death)
    }
    tasks = {f"task {label}" for label in first.labels}
    over = sum(what == "begin" and pid == heir and task in tasks for what, pid, task, _ in asked)
    registry = Registry(first.state)
    last = max(run.announced or 0.0 for run in runs_of(registry, first))
    registry.close()
    return Shared(len(both), over, last - death)


async def outlive(place: Place, on_step: OnStep, other: Place, model: Answering) -> None:
    """Works until the other's children have come to their end too."""
    async with asyncio.timeout(TOO_LONG), session_of(place, on_step, model=model) as session:
        await session.open()
        for label in place.labels:
            await start(session, label)
        registry = (await session.family.supervisor()).registry
        while True:
            await asyncio.sleep(0.02)
            runs = [*runs_of(registry, place), *runs_of(registry, other)]
            ends = Counter(run.parent for run in runs if run.state == "done")
            if ends == {place.session: place.children, other.session: other.children}:
                return


# At random moments


def storm(
    folder: str, runs: int, *, batch: int, tell: Callable[[Figures], None], lanes: int = 2, life: float = 0.6
) -> Figures:
    """Several parents at once share one register and one project, and take over what the others leave."""
    whole, begun, number = Figures(), time.monotonic(), 0
    while whole.runs < runs:
        share = -(-min(batch, runs - whole.runs) // lanes)
        places = [
            made(
                Place(
                    folder,
                    f"p{number}-{lane}",
                    min(share, runs - whole.runs - lane * share),
                    foreground=WAITED_FOR,
                )
            )
            for lane in range(lanes)
        ]
        places = [place for place in places if place.children > 0]
        part = Figures()
        _killed_at_random(places, part, life, lambda now: tell(whole + now))  # noqa: B023 - it is called at once
        for place in places:
            told(place, part)
            part.kills += _cut_short(forked(hear, place), life)
            _finished(forked(hear, place), part)
            heard(place, part)
        whole, number = whole + part, number + 1
        whole.recoveries = recovered(places[0])
        whole.seconds = time.monotonic() - begun
        tell(whole)
    return whole


def _cut_short(pid: int, life: float) -> bool:
    time.sleep(random.uniform(0.03, life))
    os.kill(pid, signal.SIGKILL)  # it is ours until we have asked how it ended
    return ended(pid) == -signal.SIGKILL


def _killed_at_random(
    places: Sequence[Place], figures: Figures, life: float, tell: Callable[[Figures], None]
) -> None:
    living: dict[int, tuple[Place, float]] = {}

    def begin(place: Place) -> None:
        until = time.monotonic() + random.uniform(0.03, life)
        living[forked(work, place)] = (place, until)

    for place in places:
        begin(place)
    while living:
        time.sleep(0.002)
        tell(figures)
        for pid, (place, until) in list(living.items()):
            if time.monotonic() > until:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                del living[pid]
                code = os.waitstatus_to_exitcode(status)
                if code == -signal.SIGKILL:
                    figures.kills += 1
                elif code:
                    figures.wrong.append(f"a worker ended with {code}")
                if code and len(figures.wrong) < ENOUGH:
                    begin(place)


# What came of it


def made(place: Place) -> Place:
    os.makedirs(place.project, exist_ok=True)
    return place


def recovered(place: Place) -> int:
    path = Path(place.folder, "recovered")
    return len(path.read_text().splitlines()) if path.exists() else 0


def told(place: Place, figures: Figures) -> None:
    """Adds what the register, the parent's inbox and the children's transcripts say before the parent has heard."""
    registry = Registry(place.state)
    try:
        chains: dict[str, list[SubagentRun]] = {}
        for run in runs_of(registry, place):
            chains.setdefault(run.label, []).append(run)
        inbox = Counter(run.chain for run in registry.inbox(place.session))
    finally:
        registry.close()
    figures.runs += place.children
    for label in place.labels:
        runs = chains.pop(label, [])
        announced = sum(run.announced is not None for run in runs)
        figures.announced_once += announced == 1
        figures.lost += announced == 0
        figures.twice += announced > 1
        if runs:
            last = runs[-1]
            figures.above_limit += last.steer_count > REDIRECTS
            figures.wrong += _odd(label, runs)
            waits = inbox.pop(last.chain, 0)  # a turn in which the parent waits hears of the others too
            if waits != 1 and not (place.foreground and last.taken is not None and waits == 0):
                figures.wrong.append(f"{label} is not in the inbox")
    figures.wrong += [f"{label} was never asked for" for label in (*chains, *inbox)]


def _odd(label: str, runs: Sequence[SubagentRun]) -> list[str]:
    states = [(run.state, run.outcome, run.steer_count) for run in runs]
    should: list[object] = [("replaced", "ok", number + 1) for number in range(REDIRECTS)]
    should = [*should, ("done", "ok", REDIRECTS)][-len(states) :]  # the first may have been swept already
    wrong = [] if states == should else [f"{label} has the runs {states}"]
    task = f"task {label}"
    prompts = [task, *(redirect(number + 1) for number in range(REDIRECTS))]
    words = [said for n, prompt in enumerate(prompts, 1) for said in (prompt, f"answer {n} to {task}")]
    said = list(read_records(runs[-1].transcript))
    kept = [_words(record) for record in said if "message" in record]
    if len(kept) != len(words) or not all(
        map(str.endswith, kept, words)
    ):  # a hook's words come with a heading
        wrong.append(f"{label} has the conversation {kept}")
    keys = Counter(record["key"] for record in said if "key" in record)
    if len(keys) != len(prompts) or set(keys.values()) != {1} or not {run.id for run in runs} <= set(keys):
        wrong.append(f"{label} has the keys {keys}")
    return wrong


def _words(record: dict[str, Any]) -> str:
    content = record["message"]["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "?") for block in content)


def heard(place: Place, figures: Figures) -> None:
    """The same about the parent's conversation: one message for each child."""
    registry = Registry(place.state)
    try:
        chains = {run.chain for run in runs_of(registry, place)}
        left = registry.inbox(place.session)
    finally:
        registry.close()
    path = os.path.join(place.state, "sessions", place.session, "chat.jsonl")
    keys = Counter(record["key"] for record in read_records(path) if "key" in record)
    if left or keys != Counter(chains):
        twice = [key for key, count in keys.items() if count > 1]
        figures.wrong.append(
            f"the parent {place.session} has heard {sum(keys.values())} of {len(chains)}, "
            f"{len(twice)} of them more than once; {len(left)} wait"
        )


# The command


def main() -> int:
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="turngate-chaos-") as folder:
        if options.share:
            figures = Figures()
            print(json.dumps([asdict(shared(folder, options.runs, figures)), asdict(figures)]))
            return 0 if figures.holds else 1
        if options.at:
            parts = [
                killed_at(os.path.join(folder, str(n)), kills, command=options.command)
                for n, kills in enumerate(ways_to_die(options.at))
            ]
            figures = sum(parts[1:], parts[0])
        else:
            random.seed(options.seed)
            figures = storm(folder, options.runs, batch=options.batch, tell=every_second(options))
    if options.json:
        print(json.dumps(asdict(figures)))
    else:
        print(f"\r{figures}")
        print(*figures.wrong[:20], sep="\n")
    if options.write:
        record(options.write, figures)
    return 0 if figures.holds else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument(
        "--batch", type=int, default=250, help="children between two looks at what came of them"
    )
    parser.add_argument("--seed", type=int, default=None, help="of the random moments")
    parser.add_argument("--at", choices=STEPS, help="kill at this step instead of at random moments")
    parser.add_argument(
        "--command", action="store_true", help="the gate is a command hook instead of a plugin"
    )
    parser.add_argument("--share", action="store_true", help="two processes, of which one is killed once")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", help="a file for the figures")
    return parser.parse_args()


def every_second(options: argparse.Namespace) -> Callable[[Figures], None]:
    begun, last = time.monotonic(), [time.monotonic()]

    def tell(figures: Figures) -> None:
        now = time.monotonic()
        if now - last[0] >= 1 and not options.json:
            last[0] = now
            print(
                f"{now - begun:6.0f} s  {figures.runs:6} of {options.runs} runs  {figures.kills:5} kills  "
                f"lost {figures.lost}  twice {figures.twice}  wrong {len(figures.wrong)}",
                flush=True,
            )

    return tell


def record(path: str, figures: Figures) -> None:
    rows = "\n".join(
        f"| {name.replace('_', ' ')} | {len(value) if isinstance(value, list) else f'{value:g}' if isinstance(value, float) else value} |"
        for name, value in asdict(figures).items()
    )
    when = time.strftime("%Y-%m-%d")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f"# `make chaos` on {when}\n\n{os.cpu_count()} cores, Python {sys.version.split()[0]}; each child is sent back "
            f"{REDIRECTS} times, and its parent waits for every third; two workers at once, each killed again and again.\n\n| | |\n|---|---|\n{rows}\n"
        )


if __name__ == "__main__":
    sys.exit(main())
