"""What a runner observed of one hook run; `interpret` decides what it means."""

from dataclasses import field
from typing import Any

from turngate._frozen_dataclass import frozen


@frozen
class Exited:
    """A command exited. A signal counts as in a shell: 128 plus its number."""

    code: int
    stdout: str = ""
    stderr: str = ""
    signal: int | None = None
    held: bool = False  # a child process still held the pipes when reading stopped
    truncated: bool = False  # stdout was longer than the limit


@frozen
class Replied:
    """An endpoint answered with a 2xx status."""

    text: str


@frozen
class JudgeReplied:
    """The model of a prompt or agent hook answered."""

    text: str


@frozen
class Returned:
    value: Any = field(repr=False)


@frozen
class Detached:
    """The hook was started in the background; nothing waits for it."""


@frozen
class TimedOut:
    seconds: float
    stdout: str = ""
    stderr: str = ""
    of_budget: bool = False  # the stop budget had less time left than its timeout


@frozen
class HookFailed:
    """The hook could not be run, or it raised."""

    error: str


@frozen
class Skipped:
    why: str
    on_purpose: bool = False  # as configured, so no warning is needed
    is_change: bool = False  # it is not what was approved


Report = Exited | Replied | JudgeReplied | Returned | Detached | TimedOut | HookFailed | Skipped


def printed(report: Report) -> tuple[str, str]:
    """Return what a hook wrote to stdout and to stderr; a reply counts as stdout."""
    match report:
        case Exited() | TimedOut():
            return report.stdout, report.stderr
        case Replied(text) | JudgeReplied(text):
            return text, ""
        case Returned() | Detached() | HookFailed() | Skipped():
            return "", ""
