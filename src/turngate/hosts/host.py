"""A host: another agent program that runs `turngate hook` when its agent wants to stop."""

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

from turngate._frozen_dataclass import frozen

Level = Literal["user", "project"]

INSTALLED_TIMEOUT_S = 600  # that `turngate install` writes into the settings of a host
# The events at which `turngate hook` has something to do, for hosts that name them as Claude Code does.
SAME_NAMES = {name: name for name in ("Stop", "SubagentStop", "SessionStart", "SubagentStart")}
OWN_TIMEOUT_S = 580.0  # of `turngate hook`, so that it answers before the host ends it


@frozen(kw_only=True)
class HostAnswer:
    """What a host is told at a stop."""

    decision: Literal["allow", "block", "halt"]
    reason: str = ""  # block: for the agent; halt: for the user
    notices: tuple[str, ...] = ()  # for the user
    outcome: str = ""  # why a turn ends: as in `EndTurn.ended_by`, or "not enforced"


@frozen(kw_only=True)
class HostOutput:
    """What `turngate hook` prints, and its exit code. A text that is not empty is printed with a newline after it."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


@frozen(kw_only=True)
class FolderTrust:
    """The record of a host about the folders whose hooks it runs."""

    file: str  # below home; in the user's folder of the host
    lists: tuple[str, ...] = ()  # its keys with trusted folders; without one, it maps folders to levels
    file_variable: str = ""  # environment variable with another path of it
    variable: str = ""  # environment variable that says "true" or "false" for any folder
    is_asked: bool | None = True  # unless the user's `security.folderTrust.enabled` is set; None: always
    needed_for_user: bool = False  # for the hooks of the user too


@frozen(kw_only=True)
class FileFormat:
    """A settings file that is not an object with `hooks`, as Claude Code has it. Each function raises ValueError."""

    read: Callable[[str], Mapping[str, Any]]  # text → {"hooks": {event: [entry]}}
    add: Callable[
        [str, Mapping[str, Mapping[str, Any]]], str
    ]  # text, and an entry for each event → with them
    remove: Callable[[str], str]  # text → without the entries of Turngate


@frozen(kw_only=True)
class Host:
    """One agent program, as data; `write_answer` is how it reads an answer."""

    name: str  # on the command line: `codex`
    title: str  # in sentences: `Codex`
    version: str | None = None  # that was run; None: not run, known from its documentation
    # Our event: its name in the settings of the host.
    events: Mapping[str, str] = field(default_factory=lambda: SAME_NAMES)
    # Where hooks are configured: below home (`~/…`), or below the project; without "project", only for the user.
    files: Mapping[Level, str]
    file_format: FileFormat | None = None  # of `files`; None: JSON with `hooks`
    default_timeout_s: float | None = None  # of a hook without a timeout; None: not documented
    limit: int | None = None  # the continuations that the host itself allows; None: no limit
    not_shown: str = ""  # where it does not show notices to the user, and why; a part of a sentence
    # A command line: the value that is added to the list of an event.
    entry: Callable[[str], Mapping[str, Any]] = lambda command: to_command_group(command, INSTALLED_TIMEOUT_S)
    longest_hook_s: float | None = None  # after which it gives up on a hook, whatever its settings say
    adds_heading: bool = True  # before the reason, so that the agent knows who speaks
    timeout_key: str = "timeout"  # in the entry of a hook
    timeout_unit: Literal["s", "ms"] = "s"
    ms_from: float | None = None  # a timeout of this and more is milliseconds also where the unit is seconds
    new_file: Mapping[str, Any] = field(default_factory=dict)  # what a file needs besides `hooks`
    # An environment variable, and the user's folder that it replaces.
    folder_variable: tuple[str, str] | None = None
    # An exit code such as 127 blocks: a hook that cannot run never lets the agent stop.
    failed_hook_blocks: bool = False
    reads_files_of: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)  # of other hosts, by level
    reads_them_if: str = ""  # a condition of that, as a part of a sentence
    further_files: tuple[tuple[Level, str], ...] = ()  # that it reads besides `files`, with wildcards
    further_events: Mapping[str, str] = field(default_factory=dict)  # other names of its events: ours
    programs: tuple[str, ...] = ()  # the commands that start it; without one, its name
    # Programs and npm packages with which it is an agent of an editor, and runs its hooks.
    acp_programs: tuple[str, ...] = ()
    agent_variable: str | None = (
        None  # environment variable of the commands that its agent runs; None: not known
    )
    # Hooks at a stop, of any program
    stop_types: tuple[str, ...] = ("command",)  # types of hooks that it runs
    has_async: bool = False  # a hook with `async` cannot block
    reads_exit_codes: bool = False  # and the output, as Claude Code does
    ignores_exit_2: bool = False  # takes it for a warning
    on_continue_false: str = ""  # what it does instead of ending the turn
    rejects_specific_output: bool = False  # an answer with `hookSpecificOutput`, also its block
    # Its settings files
    switches: Mapping[str, bool] = field(default_factory=dict)  # key: the value that switches all hooks off
    list_of_disabled: str = ""  # a key with the list of commands that are switched off
    only_keys: tuple[str, ...] = ()  # a file with another key, or a hook without a type, is rejected
    rejected_types: tuple[str, ...] = ()  # of a stop hook, with which a file is rejected
    has_plain_json: bool = False  # it rejects comments and trailing commas
    checks_types: bool = False  # a key of another type than in Claude Code is rejected with its file
    folder_trust: FolderTrust | None = None
    subagents_in_transcript: bool = False  # the transcript of the main agent has their tool calls too
    limitations: tuple[str, ...] = ()  # what else it cannot do or does otherwise, one sentence each
    # What remains to be done after `turngate install`.
    steps_by_hand: Mapping[Level, str] = field(default_factory=dict)
    # A file: in a folder with it, the host does not read the hooks of `files`.
    ignored_beside: str | None = None
    how_to_be_read: str = ""  # what to do about such a file
    documentation: str = ""  # the page of its vendor about hooks
    write_answer: Callable[[HostAnswer], HostOutput]

    @property
    def installed_timeout_s(self) -> float:
        """What `turngate install` writes as the timeout of the line."""
        return min(INSTALLED_TIMEOUT_S, self.longest_hook_s or INSTALLED_TIMEOUT_S)

    @property
    def own_timeout_s(self) -> float:
        """The seconds for all hooks of `turngate hook`, so that it answers before the host ends it."""
        return min(OWN_TIMEOUT_S, (self.longest_hook_s or INSTALLED_TIMEOUT_S) - 5)


EXIT_BLOCK = 2
HEADING = "Turngate, which checks this project, does not let you stop yet:"


def to_json(value: Mapping[str, Any]) -> str:
    """Return one line of JSON in ASCII: no host can misread its encoding."""
    return json.dumps(value, separators=(",", ":"))


def to_command_group(command: str, timeout: float, **further: Any) -> Mapping[str, Any]:
    """Return the entry of an event in settings that have the shape of those of Claude Code."""
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout, **further}]}


def write_json(value: Mapping[str, Any]) -> HostOutput:
    """Return an object on stdout, or nothing at all for an empty one."""
    return HostOutput(stdout=to_json(value) if value else "")


def write_claude_answer(answer: HostAnswer) -> HostOutput:
    """Return the answer in the form of Claude Code, which most other hosts read too."""
    notices = {"systemMessage": "\n".join(answer.notices)} if answer.notices else {}
    match answer.decision:
        case "block":
            return write_json({"decision": "block", "reason": answer.reason, **notices})
        case "halt":
            return write_json({"continue": False, "stopReason": answer.reason, **notices})
        case "allow":
            return write_json(notices)


def write_exit_code(answer: HostAnswer) -> HostOutput:
    """Return the answer for a host that reads only the exit code, and the reason on stderr."""
    answer = with_halt_as_notice(answer)
    if answer.decision == "block":
        return HostOutput(stderr=answer.reason, code=EXIT_BLOCK)
    return HostOutput(stderr="\n".join(answer.notices))


def write_portable_answer(answer: HostAnswer) -> HostOutput:
    """Write what blocks on most hosts and is misread by none: no key that one of them rejects or reads otherwise."""
    answer = with_halt_as_notice(answer)
    block = to_json({"decision": "block", "reason": answer.reason}) if answer.decision == "block" else ""
    return HostOutput(stdout=block, stderr="\n".join(answer.notices))


def with_halt_as_notice(answer: HostAnswer) -> HostAnswer:
    """Return the answer for a host that cannot end a turn: the stop is allowed, and the user gets the reason."""
    if answer.decision != "halt":
        return answer
    return HostAnswer(decision="allow", notices=(f"halted by a hook: {answer.reason}", *answer.notices))
