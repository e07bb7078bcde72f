"""Asks the hooks of today about an earlier stop whose files were recorded, in a copy of the project."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

from turngate.aio.threads import run_in_thread
from turngate.core.events.events import SessionStart, StopEvent, Subagent, team_event
from turngate.core.hooks.kinds import label
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.hook_run import HookRun
from turngate.doctor.proof.project_copy import ProjectCopy, Relocation
from turngate.engine import ask_hooks
from turngate.gates.recorded_trees import NoTree, check_out
from turngate.history.journals import Record
from turngate.hosts.stop import rules_at
from turngate.ports import Model, World
from turngate.shells.local import LocalShell
from turngate.state.files import open_regular_file
from turngate.stop_hooks import open_world


class ReplayCopy:
    """A copy of a project, which takes the files of one earlier stop after another."""

    def __init__(self, project: str, copy: ProjectCopy, settings: Settings) -> None:
        """Raises NoTree."""
        if not os.path.isdir(os.path.join(copy.folder, ".git")):
            raise NoTree("the copy of the project has no git repository")
        self._copy, self._settings, self._relocation = copy, settings, Relocation(project, copy)

    async def ask(
        self, stop: Record, rules: Sequence[Rule], judge: Callable[[str | None], Model] | None = None
    ) -> tuple[tuple[HookRun, ...], tuple[str, ...]]:
        """Return the runs of the hooks, and the links that are left out. Raises NoTree. `stop`: the record of its verdict."""
        tree, session, folder = stop["tree"], f"replay-{uuid4()}", self._copy.project
        moved = {label(new.hook): (rule, new) for rule in rules for new in (self._moved(rule),)}
        settings = self._relocation.settings(self._settings, (new for _, new in moved.values()))
        path = self._write_transcript(tree["transcript"], tree["bytes"])
        place = World(LocalShell(), folder, environ=self._relocation.environ(os.environ), logs=False)
        async with open_world(
            place, settings, state=os.path.join(self._relocation.private, "state")
        ) as world:
            world.logs, world.judge = False, judge or world.judge
            with suppress(NoTree):  # then the hooks answer without a start, as in the session
                await self._check_out(f"{tree['ref'].rpartition('/')[0]}/0")
                start = SessionStart(session_id=session, transcript_path=path, cwd=folder)
                await ask_hooks(start, rules_at(start, settings), world)
            left_out = await self._check_out(tree["ref"])
            kind, ended = tree.get("agent_type"), tree.get("agent_outcome", "ok")
            subagent = (
                None if kind is None else Subagent(id=session, type=kind, transcript_path=path, outcome=ended)
            )
            event = StopEvent(session_id=session, transcript_path=path, cwd=folder, subagent=subagent)
            event = replace(event, team_event=team_event(stop["event"]))
            answer = self._relocation.text(tree["answer"])
            verdict = await ask_hooks(replace(event, last_assistant_message=answer), settings, world)
        return tuple(replace(run, rule=moved[label(run.rule.hook)][0]) for run in verdict.runs), left_out

    async def _check_out(self, ref: str) -> tuple[str, ...]:
        return await run_in_thread(check_out, ref, self._copy.folder, self._copy.original)

    def _moved(self, rule: Rule) -> Rule:
        """Return a rule for the copy, whose files must be those that were approved."""
        files = {self._relocation.text(name): content for name, content in rule.files.items()}
        return replace(self._relocation.rule(rule), files=files)

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
