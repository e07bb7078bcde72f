"""What has failed at the session's start: the stored result of a run on the same files, or a run on those files now.

Each run of a check stores what has failed for the content of the files, and of git if the check may ask it, so that the last stop of one session usually is the
start of the next one. Where there is no such result, the check runs once on the files as they were, at the same path: elsewhere, an installed package could lead to
the changed files. The project itself stays as it is.
"""

import json
from collections import Counter
from dataclasses import replace

from turngate._frozen_dataclass import frozen
from turngate.core.answers.report_types import Exited, TimedOut
from turngate.core.hooks.kinds import CommandHook
from turngate.gates.gate import GateContext
from turngate.gates.git.scripts import NO_OVERLAY, NOT_WRITTEN, OVERLAY, RESTORE
from turngate.gates.local_tree_state import content_of, others_of
from turngate.gates.stored_state import read_json, state_path, write_file
from turngate.gates.tree_state import tree_before, tree_state

MAX_TREES = 8  # whose results are kept for a command
RESTORE_FIELDS = 4
# A run that did not end gets another try on the same files only with more time than before by this: the same limit is never quite the same.
MORE_TIME_S, MORE_TIME_SHARE = 1.0, 0.05


@frozen
class Known:
    """What a run has found."""

    names: Counter[str] | None  # of its failures; None: it could not run
    incomplete: str | None = None  # why more failures may have been there
    seconds: float | None = None  # after which it was ended, because its time was up
    problem: str = ""  # what was said of that
    errors: tuple[str, ...] = ()  # the keys of `Output.unnamed_errors`

    def is_too_slow(self, seconds_left: float) -> bool:
        """Return whether its time was up, and would be up again."""
        more = max(MORE_TIME_S, MORE_TIME_SHARE * (self.seconds or 0.0))
        return self.seconds is not None and seconds_left <= self.seconds + more


class Results:
    """The results of one command in one project, by the content of its files. All sessions share them."""

    def __init__(
        self, state_folder: str | None, project: str, command: str, *, asks_git: bool = False
    ) -> None:
        """`asks_git`: by the state of git as well."""
        self._path = state_folder and state_path(
            state_folder, f"project {project}", "", f"results of {command}"
        )
        self._key_of = str if asks_git else content_of

    def find(self, state: object) -> Known | None:
        match self._read().get(self._key_of(state)) if isinstance(state, str) else None:
            case [
                list() | None as names,
                str() | None as incomplete,
                float() | int() | None as seconds,
                str(problem),
                [*errors],
            ]:
                found = None if names is None else Counter(map(str, names))
                return Known(found, incomplete, seconds, problem, tuple(map(str, errors)))
            case _:
                return None

    def has_slow(self) -> bool:
        """Return whether a run was ended because its time was up."""
        return any(isinstance(each, list) and each[2:3] != [None] for each in self._read().values())

    def store(self, state: object, known: Known) -> None:
        if not self._path or not isinstance(state, str):
            return
        names = None if known.names is None else sorted(known.names.elements())
        key = self._key_of(state)
        results = {name: each for name, each in self._read().items() if name != key}
        results[key] = [names, known.incomplete, known.seconds, known.problem, known.errors]
        write_file(self._path, json.dumps(dict(list(results.items())[-MAX_TREES:])))

    def _read(self) -> dict[str, object]:
        results = read_json(self._path) if self._path else None
        return results if isinstance(results, dict) else {}


async def run_at_start(context: GateContext, command: CommandHook, needed: float) -> Exited | TimedOut | str:
    """Run a command on the files of the session's start, or return why it cannot. `needed`: the seconds that it has just taken."""
    start = context.state.start or {}
    tree = start.get("tree") or start.get("head")  # in another checkout, only the commit is known
    of_git, before = start.get("git") or "", start.get("state")
    # The check that has just run may have made files, such as bytecode and reports.
    now = await tree_before(context) or await tree_state(context)
    if not isinstance(tree, str):
        return "the files of the session's start are not recorded in git"
    if context.commands.seconds_left < needed:
        return "there is no time left to run it on the files of the session's start"
    if not (isinstance(before, str) and now and others_of(before) == others_of(now)):
        return "since then, a repository inside of the project, or what git ignores, may have changed"
    is_same = before.partition(":")[:2] == now.partition(":")[:2] and ":" in now  # of git
    if context.asks_git and not (of_git or is_same):
        return "it may ask git, whose state at the session's start is not known"
    if context.runs_elsewhere:
        return f"{context.runs_elsewhere} may run it where the files are those of now"
    from turngate.gates.session_changes import run_comparison  # noqa: PLC0415 # lazy: few runs need the start again

    began = start.get("time")
    moment = str(int(began)) if isinstance(began, float) else ""
    ignored = str(start.get("ignored") or "")
    report = await run_comparison(context, RESTORE, tree, str(of_git), moment, ignored)
    lines = report.stdout.split("\n") if isinstance(report, Exited) and report.code == 0 else []
    if len(lines) <= RESTORE_FIELDS:
        return "the files of the session's start cannot be restored"
    words = ("/bin/sh", "-c", command.command) if command.args is None else (command.command, *command.args)
    *folders, locked = lines[:RESTORE_FIELDS]
    script = ("-c", OVERLAY, "turngate", *folders, context.commands.path, *words)
    done = await context.commands.run(
        replace(command, command="/bin/sh", args=script), env=context.commands.own_path
    )
    if locked and not (isinstance(done, Exited) and done.code == 0):
        return f"the installed packages may have changed since then, because {locked} has"
    if NO_OVERLAY in done.stderr:
        return NO_OVERLAY.removeprefix("turngate: ")
    name = done.stderr.partition(NOT_WRITTEN)[2].partition("\n")[0]
    return f"the check needs {name}, which git ignores and which has changed since then" if name else done
