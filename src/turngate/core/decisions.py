"""What one hook decided. Each decision may carry a word for the user and warnings for whoever wrote the hook."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class _Remarks:
    notice: str | None = None  # for the user, never for the model
    warnings: tuple[str, ...] = ()
    quiet: bool = False  # `suppressOutput`: keep its stdout off the transcript and the screen


@dataclass(frozen=True)
class Allow(_Remarks):
    """No objection. It can not cancel another hook's block."""

    reason: str | None = None


@dataclass(frozen=True)
class Block(_Remarks):
    """Go on working, and this is why."""

    reason: str
    advice: str | None = None


@dataclass(frozen=True)
class Advise(_Remarks):
    """No refusal, but a word for the agent."""

    advice: str


@dataclass(frozen=True)
class Halt(_Remarks):
    """The turn ends now, whatever the others say; the reason is for the user."""

    reason: str | None = None


@dataclass(frozen=True)
class Fault(_Remarks):
    """The hook is broken: it neither allowed nor refused."""

    error: str
    kind: Literal["failed", "timeout", "skipped"] = "failed"
    may_block: bool = (
        True  # False: it tried to refuse, without a reason; `blocking` makes no refusal of that (C-11)
    )


Decision = Allow | Block | Advise | Halt | Fault
