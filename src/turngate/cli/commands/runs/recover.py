"""`turngate runs recover`: continue the subagents of processes that died."""

import argparse
import asyncio
import itertools
import os
from collections import Counter
from collections.abc import Sequence

from turngate.agent.agent_session import AgentSession
from turngate.aio.threads import finish_despite_cancel
from turngate.cli.commands.run.session import new_subagent_host
from turngate.cli.commands.runs.summary import SubagentSummary, all_subagents
from turngate.cli.console.conversation_text import counted, format_notice, format_redirect
from turngate.cli.console.progress import ProgressLine
from turngate.cli.console.signals import run_until_signal
from turngate.cli.project import project_folder
from turngate.core.constants import IN_HOOK
from turngate.core.events.stream_events import Notice, SessionEvent, SubagentFinished, SubagentRedirected
from turngate.errors import UsageError
from turngate.subagents.limits import SubagentOptions
from turngate.subagents.recorded_gates import recorded_gates
from turngate.trust.load import load_reviewed

EXIT_UNFINISHED = 20
PROGRESS_INTERVAL_S = 30.0
RETRY_INTERVAL_S = 0.1
MAX_RETRIES = 20


def recover(options: argparse.Namespace) -> int:
    project = project_folder(options.project)
    left = [summary for summary in all_subagents() if summary.left]
    ours = [summary for summary in left if summary.project == project]
    caught, unfinished = None, 0
    if ours and IN_HOOK in os.environ:
        raise UsageError("subagents cannot be recovered inside a hook, where no hooks run for them")
    if ours:
        progress = _Progress(ours)
        groups = {
            dialect: list(group) for dialect, group in itertools.groupby(sorted(ours, key=_dialect), _dialect)
        }
        # All models are opened before any run is adopted, so a missing one changes nothing.
        hosts = [_new_host(options, project, dialect, group, progress) for dialect, group in groups.items()]
        for host, group in zip(hosts, groups.values(), strict=True):
            host.subagents.left.update(summary.id for summary in ours if summary not in group)
        caught = run_until_signal(_recover(hosts, progress))
        unfinished = _print_results(ours)
    else:
        print(f"no subagent was left behind in {project}")
    others = Counter(summary.recovery for summary in left if summary.project != project)
    for command, count in others.items():
        print(f"{counted(count, 'subagent')} of another project: {command}")
    if caught is not None:
        return 128 + caught
    return EXIT_UNFINISHED if unfinished else 0


def _dialect(summary: SubagentSummary) -> str:
    return recorded_gates(summary.last).dialect or "turngate"


def _new_host(
    options: argparse.Namespace,
    project: str,
    dialect: str,
    group: Sequence[SubagentSummary],
    progress: "_Progress",
) -> AgentSession:
    launches = [summary.last.launch for summary in group]
    settings = load_reviewed(
        project,
        dialect=dialect,
        recorded_plugins=[folder for launch in launches for folder in launch.get("plugin_dirs", ())],
        extra=options.settings,
        trust=options.trust,
    )
    return new_subagent_host(
        options,
        project,
        settings,
        [str(launch.get("model", "")) for launch in launches],
        on_event=progress.on_event,
        # Each subagent keeps its own permissions, which are not laxer.
        permission_mode="bypassPermissions",
        allow={tool for launch in launches for tool in launch.get("allow", ())},
        extra_paths=[folder for launch in launches for folder in launch.get("extra_paths", ())],
        children=SubagentOptions(any_gates=options.current_gates),
    )


async def _recover(hosts: Sequence[AgentSession], progress: "_Progress") -> None:
    try:
        async with progress.line.shown():
            for host in hosts:
                context = await host.subagents.connect()
                for _ in range(MAX_RETRIES):  # for two seconds, if a chain stays open, such as by a full disk
                    await host.subagents.recover()
                    await host.subagents.wait_until_idle()
                    if not await context.call(context.registry.read, "owned", context.owner):
                        break
                    await asyncio.sleep(RETRY_INTERVAL_S)
    finally:
        for host in hosts:
            await finish_despite_cancel(host.close_unopened())


# Output


class _Progress:
    """Print redirects and notices on stderr, and which subagents are still running."""

    def __init__(self, ours: Sequence[SubagentSummary]) -> None:
        self._running = {summary.last.agent_id: summary.title for summary in ours}
        self.line = ProgressLine(
            lambda: list(self._running.values()),
            hint=" · Ctrl-C leaves the rest for later",
            repeat_s=PROGRESS_INTERVAL_S,
        )

    def on_event(self, event: SessionEvent) -> None:
        match event:
            case Notice(text, hint):
                self.line.print(format_notice(text, hint)[0])
            case SubagentRedirected(_, name, why, count, limit):
                self.line.print(format_redirect(name, why, count, limit))
            case SubagentFinished(agent_id):
                self._running.pop(agent_id, None)
            case _:
                pass


def _print_results(ours: Sequence[SubagentSummary]) -> int:
    """Print how each subagent ended and return how many are still open; a deleted one was finished."""
    current = {summary.id: summary for summary in all_subagents()}
    results = [current.get(summary.id) for summary in ours]
    for summary, result in zip(ours, results, strict=True):
        print(f"{result.state if result else 'finished':<15} {summary.id[:8]}  {summary.title}")
    unread = Counter(result.last.parent for result in results if result and result.has_unread_report)
    for session, count in unread.items():
        waits = f"{counted(count, 'report')} {'waits' if count == 1 else 'wait'}"
        print(f"{waits} for the parent session: turngate run --resume --session {session}")
    return sum(result is not None and result.is_open for result in results)
