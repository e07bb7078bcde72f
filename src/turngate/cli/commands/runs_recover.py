"""`turngate runs recover`: goes on with the subagents that a process left which died."""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence

from turngate.agent.session import Session
from turngate.aio.cancellation import finish_despite_cancel
from turngate.aio.threads import run_in_thread
from turngate.cli.commands.run import find_model
from turngate.cli.commands.runs import register
from turngate.cli.commands.runs_summary import Chain, chains
from turngate.cli.project import project_folder
from turngate.cli.signals import run_until_signal
from turngate.core.constants import IN_HOOK
from turngate.core.session_events import Notice, SessionEvent, SubagentFinished, SubagentRedirected
from turngate.core.text import printable, truncate
from turngate.errors import UsageError
from turngate.plugins.entry_points import load_plugins
from turngate.ports import Model
from turngate.settings.load import load_settings
from turngate.subagents.supervisor import Supervisor

FAILED = 20
SOON = 1.0  # seconds after which it is said who is still at work,
AGAIN = 30.0  # and how often that is said where no line can be written over
LOOK = 0.1  # seconds between two looks at what is still open,
LOOKS = 20  # and how many there are when nobody looks after it


def recover(options: argparse.Namespace) -> int:
    project = project_folder(options.project)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, every exit code would be lost
    left = _left()
    ours = [chain for chain in left if chain.project == project]
    elsewhere = [chain for chain in left if chain.project != project]
    caught = None
    if ours and IN_HOOK in os.environ:
        raise UsageError("this was started from a hook, where no gate is asked: recover them outside of it")
    if ours:
        telling = _Telling(ours)
        caught = run_until_signal(_work(_host(options, project, ours, telling), telling))
        telling.wipe()
        still = _tell_end(ours)
    else:
        print(f"nothing was left by a process that died in {project}")
        still = 0
    for other, count in Counter(chain.project for chain in elsewhere).items():
        print(f"{_count(count, 'subagent')} of another project: turngate runs recover --project {other}")
    if caught is not None:
        return 128 + caught
    return FAILED if still else 0


def _left() -> list[Chain]:
    with register() as registry:
        return [chain for chain in chains(registry) if chain.left] if registry else []


def _host(options: argparse.Namespace, project: str, ours: Sequence[Chain], telling: "_Telling") -> Session:
    """A session that nobody talks to: it has the settings, the model and the plugins that children need."""
    dialect = str(ours[0].last.launch.get("dialect") or "turngate")
    settings = load_settings(project, dialect=dialect)
    names = [options.model] if options.model else [str(chain.last.launch.get("model", "")) for chain in ours]
    models = [_model(name, settings.model) for name in dict.fromkeys(names)]  # before anything is taken over
    return Session(
        project,
        models[0],
        settings,
        on_event=telling.hear,
        plugins=load_plugins(settings.plugins),
        models=None if options.model else lambda name: find_model(name, settings.model),
    )


def _model(name: str, configured: str | None) -> Model:
    try:
        return find_model(name, configured)
    except UsageError as error:
        raise UsageError(f"{error}; --model gives another one") from None


# The work


async def _work(host: Session, telling: "_Telling") -> None:
    progress = asyncio.create_task(telling.go_on())
    try:
        await _until_nothing_is_open(await host.family.supervisor(), host.project)
    finally:
        progress.cancel()
        await finish_despite_cancel(_close(host))


async def _until_nothing_is_open(supervisor: Supervisor, project: str) -> None:
    """What can not be looked after stays open: it is looked at a few times more, and then left."""
    for _ in range(LOOKS):
        await supervisor.recover()
        await supervisor.wait_until_idle()
        known = await run_in_thread(chains, supervisor.registry)
        if not any(
            chain.open
            and chain.project == project
            and (chain.left or chain.last.owner == supervisor.owner.id)
            for chain in known
        ):
            return
        await asyncio.sleep(LOOK)


async def _close(host: Session) -> None:
    """It was never opened, so nobody is told of its end."""
    await host.family.close()
    await host.world.close(host.settings.dialect.background_grace)
    await host.model.close()
    await run_in_thread(host.journal.close)


# What is said


class _Telling:
    """On stderr: what happens, and who is still at work when it takes longer than a moment."""

    def __init__(self, ours: Sequence[Chain]) -> None:
        self._began = time.monotonic()
        self._waits = {chain.last.agent_id: chain.what for chain in ours}
        self._over = sys.stderr.isatty()  # a line can be written over
        self._shown = False

    def hear(self, event: SessionEvent) -> None:
        match event:
            case Notice(text):
                self._say(f"! {printable(text)}")
            case SubagentRedirected(_, name, why, count, limit):
                most = "any" if limit is None else limit
                self._say(f"{printable(name)} is sent back ({count} of {most}): {printable(why)}")
            case SubagentFinished(agent):
                self._waits.pop(agent, None)
            case _:
                pass

    async def go_on(self) -> None:
        await asyncio.sleep(SOON)
        while True:
            if self._waits:
                self._show()
            await asyncio.sleep(SOON if self._over else AGAIN)

    def _show(self) -> None:
        names = ", ".join(self._waits.values())
        who = truncate(names, 50)
        seconds = int(time.monotonic() - self._began)
        line = f"{len(self._waits)} at work: {who} · {seconds} s · Ctrl-C leaves it for later"
        if self._over:
            self.wipe()
            print(line, end="", file=sys.stderr, flush=True)
            self._shown = True
        else:
            print(line, file=sys.stderr, flush=True)

    def _say(self, text: str) -> None:
        self.wipe()
        print(text, file=sys.stderr, flush=True)

    def wipe(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._shown = False


def _tell_end(ours: Sequence[Chain]) -> int:
    """How many are still open; what has been forgotten meanwhile was finished."""
    with register() as registry:
        known = {chain.id: chain for chain in chains(registry)} if registry else {}
    now = [known.get(chain.id) for chain in ours]
    for before, chain in zip(ours, now, strict=True):
        state = "finished" if chain is None else chain.state
        print(f"{state:<15} {before.id[:8]}  {before.what}")
    unread = Counter(chain.last.parent for chain in now if chain and chain.unread)
    for session, count in unread.items():
        they = "waits" if count == 1 else "wait"
        print(
            f"{_count(count, 'report')} {they} for the session that asked: turngate run --resume --session {session}"
        )
    return sum(chain is not None and chain.open for chain in now)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
