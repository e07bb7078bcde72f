"""A gate: what it is called, which options it has, what it is given, and how it lists what it has found."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.events.events import StopEvent
from turngate.core.hooks.kinds import CommandHook, PromptHook
from turngate.core.redaction import Redactor
from turngate.core.text import printable, truncate
from turngate.core.verdict.decisions import Decision
from turngate.gates.run_commands import ProjectCommands
from turngate.gates.stored_state import GateState

# In the state of a gate: the names of the failures of its last run, if it is not known what failed at the session's start.
WITHOUT_BASELINE = "without baseline"

# flag: true or false; text, number, texts: one text, one number, several texts.
OptionKind = Literal["flag", "text", "number", "texts"]


@frozen
class GateOption:
    """One option: `--max-iterations N` on the command line, `maxIterations` in JSON, `max_iterations` in Python."""

    name: str  # as on the command line, without the dashes
    kind: OptionKind
    help: str
    metavar: str = ""
    required: bool = False
    default: Any = None  # None: False, None or an empty tuple, by its kind
    is_definition: bool = False  # it names a file that says what the gate checks: an approval covers the file


@frozen(kw_only=True)
class Gate:
    """One ready-made gate. `check` answers for a stop; what all gates have in common is in `run_gate.py`.

    The reason of an `Allow` is a note for the user, a `Fault` means that the gate could not run, a `Halt` that a limit is
    reached or, with `waits`, that the user is asked.
    """

    name: str
    summary: str  # one line: "the git tree is committed"
    check: Callable[["GateContext"], Awaitable[Decision]]
    options: tuple[GateOption, ...] = ()
    operands: GateOption | None = None  # the words that follow the options: `GLOB…`
    command: Literal["never", "optional", "required"] = "never"  # the words after `--`
    is_cached: bool = False  # its result depends only on the content of the project
    is_hard: bool = False  # as one that is cached: an agent that asks the user is blocked once
    is_observer: bool = False  # it never blocks
    needs_conversation: bool = False  # it cannot be run without an agent
    asks_model: bool = False  # it needs `GateContext.ask_judge`
    # Returns what is stored at the session's start: the state before the agent changed anything. With `record_files`
    # it cannot be run without that, or a commit to compare with.
    record: Callable[["GateContext"], Awaitable[Mapping[str, Any]]] | None = None


def _url_problem(url: str, name: str) -> str | None:
    """Without settings the rule for hooks of a project holds: nothing is sent unencrypted to another machine."""
    from turngate.core.hooks.http_policy import url_problem  # noqa: PLC0415 # lazy: few gates send anything

    return url_problem(url, "project", (), name=name)


@frozen
class GateInputs:
    """What the definition of a gate names, beside the project's files: a pass is only for what it was then."""

    state: str | None = ""  # None: one of the files was changed just now
    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(kw_only=True)
class GateContext:
    project: str
    name: str = ""  # of the gate
    event: StopEvent
    commands: ProjectCommands  # the only way to the project
    state: GateState  # of this session, agent and gate
    state_folder: str | None = None  # of Turngate; None: nothing is kept
    options: Mapping[str, Any] = field(default_factory=dict)  # by `GateOption.name`, with all defaults
    command: CommandHook | None = None
    redactor: Redactor | None = None  # of the secrets in the environment of commands
    inputs: GateInputs = field(default_factory=GateInputs)
    now: float = 0.0  # seconds since the epoch
    base: str | None = None  # the commit to compare with; None: the session's start; "": there is no session
    # The variables that the gate itself may read: of the machine of the project, which settings of another machine know.
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    # Asks a judge: the one of the hook, or of the settings. None: there is no model.
    ask_judge: Callable[[PromptHook], Awaitable[Decision]] | None = None
    tree: str | None = (
        None  # the state of the files and of git before the gate is asked, if it is known; see `tree_before`
    )
    # Instead of `tree`: what `first_look` has returned, and when. The state is found after the check.
    unseen: tuple[str, int] | None = None
    commands_by_look: int = -1  # how many commands had run when it was found
    is_of_tree: bool = False  # True: the answer follows from `tree` and the session's start alone
    is_shared: bool = True  # False: it passes only because of the session's start
    asks_git: bool = False  # the command may ask git: what it finds is not only for the content of the files
    runs_elsewhere: str = ""  # the program that runs the command where the files of the start cannot be
    keeps_result: bool = True  # False: the next stop checks again, also if nothing has changed
    # Returns why nothing may be sent to a URL; the second argument is its name in the message.
    url_problem: Callable[[str, str], str | None] = _url_problem

    @property
    def start_state(self) -> str | None:
        """The state of the files and of git at the session's start, if the gate compares with it."""
        start = (self.state.start or {}).get("state")
        return start if isinstance(start, str) and not self.options.get("always") else None


MAX_FINDINGS = 10
MAX_FINDING_CHARS = 200


@frozen
class Finding:
    """Something at a place in a file."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        from turngate.gates.git.output import show_path  # noqa: PLC0415 # lazy: only a gate that blocks has findings

        return f"{show_path(self.path)}:{self.line}: {printable(self.text)}"


def list_findings(findings: Sequence[str], limit: int = MAX_FINDINGS) -> str:
    shown = [f"- {truncate(finding, MAX_FINDING_CHARS)}" for finding in findings[:limit]]
    left_out = len(findings) - limit
    return "\n".join([*shown, f"and {left_out} more"] if left_out > 0 else shown)
