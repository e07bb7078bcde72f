"""What a runner saw, before anybody thinks about what it means."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Exited:
    """A command ended. A signal shows as a shell would show it: 128 + its number."""

    code: int
    stdout: str = ""
    stderr: str = ""
    signal: int | None = None
    held: bool = False  # a child still held the pipes when we stopped reading
    cut: bool = False  # it printed more to stdout than we read


@dataclass(frozen=True)
class Replied:
    """An endpoint answered."""

    text: str
    whole: str = field(default="", repr=False)  # as it came, where `text` hides secrets; nobody is shown it


@dataclass(frozen=True)
class JudgeReplied:
    """A model was asked about the stop, and answered."""

    text: str


@dataclass(frozen=True)
class Returned:
    """A callback returned."""

    value: Any = field(repr=False)  # foreign code may say of itself what it likes


@dataclass(frozen=True)
class Detached:
    """It was started in the background; nobody waits for it."""


@dataclass(frozen=True)
class TimedOut:
    seconds: float
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True)
class RunFailed:
    """It could not be run, or it raised."""

    error: str


@dataclass(frozen=True)
class Skipped:
    """It was not run at all."""

    why: str
    on_purpose: bool = False  # as configured: nobody has to be warned


Report = Exited | Replied | JudgeReplied | Returned | Detached | TimedOut | RunFailed | Skipped


def printed(report: Report) -> tuple[str, str]:
    """Return what a hook wrote to stdout and to stderr; a reply counts as stdout."""
    match report:
        case Exited() | TimedOut():
            return report.stdout, report.stderr
        case Replied(text) | JudgeReplied(text):
            return text, ""
        case _:
            return "", ""
