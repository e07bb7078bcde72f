"""The subagents in the registry as `turngate runs` presents them: chains of runs, the last of which holds the state."""

import contextlib
import itertools
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from turngate._frozen_dataclass import frozen
from turngate.cli.console.progress import print_above_progress
from turngate.core.conversation.subagent_run import LIVING_STATES, OPEN_STATES, SubagentRun
from turngate.core.events.stream_events import BLOCKED_REASONS
from turngate.core.text import printable
from turngate.errors import RegistryError, UsageError
from turngate.project.files import LOCAL
from turngate.settings.load import load_layers
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.paths import OTHER_STATE_FOLDER, state_folder
from turngate.subagents.registry import Registry, registry_exists

MIN_ID_CHARS = 8
MAX_ID_CHARS = 32  # of an id that Turngate makes

_STATE_LABELS = {
    "waiting": "waiting",
    "running": "running",
    "ended": "checking stop",
    "steering": "restarting",
    "replaced": "redirected",
    "final": "reporting",
    "announced": "reported",
    "killed": "killed",
    "given_up": "given up",
}
_OUTCOME_LABELS = {"ok": "done", "error": "failed", "timeout": "timed out", "killed": "killed"}


@frozen
class SubagentSummary:
    """All runs of one subagent for one task, oldest first."""

    runs: tuple[SubagentRun, ...]
    left: bool = False  # it is not finished, and its process has died
    # The process and the machine that run it, or `workers` if it waits for one; "": not known here.
    where: str = ""

    @property
    def id(self) -> str:
        return self.last.chain

    @property
    def last(self) -> SubagentRun:
        return next((run for run in reversed(self.runs) if run.state != "replaced"), self.runs[-1])

    @property
    def title(self) -> str:
        agent_type = self.last.agent_type or "no agent type"
        return printable(f"{self.last.label} ({agent_type})" if self.last.label else agent_type)

    @property
    def is_open(self) -> bool:
        return self.last.state in OPEN_STATES

    @property
    def state(self) -> str:
        return "left behind" if self.left and self.last.state in LIVING_STATES else state_label(self.last)

    @property
    def created(self) -> float:
        return min(run.created for run in self.runs)

    def seconds(self, now: float) -> float:
        ended = None if self.last.state in LIVING_STATES else self.last.ended
        return max(0.0, (now if ended is None else ended) - self.created)

    @property
    def project(self) -> str:
        return str(self.last.launch.get("project", ""))

    @property
    def recovery(self) -> str:
        """The command that recovers it if it was left behind."""
        if self.project.startswith("ssh://"):
            return f"turngate run --resume --ssh {shlex.quote(self.project)}"
        return f"turngate runs recover --project {self.project}"

    @property
    def has_unread_report(self) -> bool:
        """Return whether its report waits for its parent's session to be resumed."""
        return bool(self.last.announcement) and self.last.announced is not None and self.last.taken is None

    def matches(self, prefix: str) -> bool:
        """Return whether its id, its agent's id or a run's id starts with `prefix`."""
        ids = (self.id, self.last.agent_id, *(run.id for run in self.runs))
        return any(each.startswith(prefix) for each in ids)


def state_label(run: SubagentRun) -> str:
    if run.state == "done":
        if run.reason in BLOCKED_REASONS:
            return run.reason
        return _OUTCOME_LABELS.get(run.outcome or "error", str(run.outcome))
    return _STATE_LABELS.get(run.state, run.state)


def summarize(registry: Registry) -> list[SubagentSummary]:
    """Return every subagent in the registry, the newest last."""
    runs = sorted(registry.read("all"), key=lambda run: (run.chain, run.created, run.steer_count))
    living = registry.living({run.owner for run in runs})
    chains = [
        SubagentSummary(tuple(group)) for _, group in itertools.groupby(runs, key=lambda run: run.chain)
    ]
    summaries = [_place(chain, living) for chain in chains]
    return sorted(summaries, key=lambda summary: (summary.created, summary.id))


def _place(chain: SubagentSummary, living: Mapping[str, str]) -> SubagentSummary:
    if not chain.is_open or (place := living.get(chain.last.owner)):
        return replace(chain, where=place if chain.is_open and place else "")
    if chain.last.is_for_workers:
        return replace(chain, where="workers")  # it waits for one
    return replace(chain, left=chain.last.owner not in living)


def unique_prefix_length(summaries: Sequence[SubagentSummary]) -> int:
    """Return how many characters of their ids tell the subagents apart."""
    ids = [summary.id for summary in summaries]
    longest = min(max(map(len, ids), default=MIN_ID_CHARS), MAX_ID_CHARS)
    lengths = range(MIN_ID_CHARS, longest, 4)
    unique = (length for length in lengths if len({each[:length] for each in ids}) == len(ids))
    return next(unique, lengths.stop)


NO_SUBAGENTS = "there are no subagents; a session starts one with the Task tool"


def registry_setting() -> str | None:
    """Return the URL of the registry in the user's settings; no project can set it."""
    return load_layers(os.devnull, dialect="turngate", files=LOCAL).merge().registry


@contextlib.contextmanager
def open_registry() -> Iterator[Registry | None]:
    """Yield this user's registry, or None if there is no file; reading never creates one."""
    try:
        setting = registry_setting()
        if not registry_exists(state_folder(), setting):
            yield None
            return
        with os_errors_as_usage_errors(state_folder()):
            registry = Registry(state_folder(), print_above_progress, setting)
        with contextlib.closing(registry):
            if registry.store.notice:
                print(f"! {registry.store.notice}", file=sys.stderr)
            yield registry
    except RegistryError as error:
        has_advice = OTHER_STATE_FOLDER in str(error) or "postgres" in str(error)
        raise UsageError(str(error) if has_advice else f"{error}; repair it, {OTHER_STATE_FOLDER}") from None


def all_subagents() -> list[SubagentSummary]:
    with open_registry() as registry:
        return summarize(registry) if registry else []


@contextlib.contextmanager
def existing_registry() -> Iterator[Registry]:
    """Yield this user's registry; without a file there are no subagents, which is an error here."""
    with open_registry() as registry:
        if registry is None:
            raise UsageError(NO_SUBAGENTS)
        yield registry
