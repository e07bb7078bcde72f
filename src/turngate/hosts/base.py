"""A host: another agent program that runs `turngate hook` when its agent wants to stop."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from turngate.core.frozen import frozen

Level = Literal["user", "project"]

INSTALLED_TIMEOUT_S = 600  # that `turngate install` writes into the settings of a host
OWN_TIMEOUT_S = 580.0  # of `turngate hook`, so that it answers before the host ends it


@frozen(kw_only=True)
class HostAnswer:
    """What a host is told at a stop."""

    decision: Literal["allow", "block", "halt"]
    reason: str = ""  # block: for the agent; halt: for the user
    notices: tuple[str, ...] = ()  # for the user


@frozen(kw_only=True)
class HostOutput:
    """What `turngate hook` prints, and its exit code."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


@frozen(kw_only=True)
class Host:
    """One agent program, as data; `write_answer` is how it reads an answer."""

    name: str  # on the command line: `codex`
    title: str  # in sentences: `Codex`
    version: str | None  # that was run; None: not run, known from its documentation
    events: Mapping[str, str]  # our event: its name in the settings of the host
    files: Mapping[Level, str]  # where hooks are configured; below home (`~/…`), or below the project
    entry: Callable[
        [str], Mapping[str, Any]
    ]  # a command line: the value that is added to the list of an event
    timeout_key: str  # in the entry of a hook
    timeout_unit: Literal["s", "ms"]
    default_timeout_s: float | None  # of a hook without a timeout; None: not documented
    limit: int | None  # the continuations that the host itself allows; None: no limit
    shows_notices: bool  # it shows the user what a hook reports
    ends_turn: bool  # it has an answer that ends the turn, whatever other hooks say
    reads_files_of: tuple[str, ...] = ()  # other hosts whose settings it reads as well
    project_variable: str | None = None  # environment variable with the folder of the project
    tool_call_marks: tuple[str, ...] = ()  # a line of its transcript with one of these is a tool call
    limitations: tuple[str, ...] = ()  # what it cannot do, one sentence each
    steps_by_hand: tuple[str, ...] = ()  # what remains to be done after `turngate install`
    write_answer: Callable[[HostAnswer], HostOutput]


def to_json(value: Mapping[str, Any]) -> str:
    """Return one line of JSON in ASCII: no host can misread its encoding."""
    return json.dumps(value, separators=(",", ":"))
