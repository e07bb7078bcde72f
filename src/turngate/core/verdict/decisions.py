"""What one hook decided, with a notice for the user, warnings for the hook's author, and texts that fit a model."""

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any, Literal, get_args

from turngate._frozen_dataclass import frozen
from turngate.core.dialect import Dialect
from turngate.core.text import describe, replace_surrogates, truncate_middle

FaultKind = Literal["failed", "timeout", "skipped", "waiting"]
EXPECTED_CONTINUATIONS = "a whole number, 1 or more"
# The end of the reason of a gate that blocks again for the same reason.
UNCHANGED_RESULT = (
    "This is the same result as at the last stop: nothing that this gate checks has changed since."
)


def is_continuations(value: Any) -> bool:
    """Return whether a value says how many continuations a gate needs."""
    return type(value) is int and value >= 1


@frozen(kw_only=True)
class _Notes:
    """The fields of every decision, and the checks that show a mistake where the decision is made."""

    notice: str | None = None  # for the user, never for the model
    warnings: tuple[str, ...] = ()
    quiet: bool = False  # `suppressOutput`: do not write its stdout to the transcript

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type is bool and not isinstance(value, bool):
                raise TypeError(self._describe(each.name, "True or False"))
            if each.type is str or (each.type == str | None and value is not None):
                if not isinstance(value, str):
                    raise TypeError(self._describe(each.name, "a string"))
                if not value.isascii():
                    object.__setattr__(self, each.name, replace_surrogates(value))
        texts: object = self.warnings
        if texts != ():
            if not isinstance(texts, tuple | list) or not all(isinstance(text, str) for text in texts):
                raise TypeError(f"{type(self).__name__}.warnings must be a tuple of strings")
            object.__setattr__(self, "warnings", tuple(map(replace_surrogates, texts)))

    def _describe(self, name: str, expected: str) -> str:
        return f"{type(self).__name__}.{name} must be {expected}, not {type(getattr(self, name)).__name__}"


@frozen
class Allow(_Notes):
    """The hook does not block. It cannot cancel another hook's block."""

    reason: str | None = None


@frozen
class Block(_Notes):
    """The agent has to continue; the reason is its next prompt. A reason of None counts as an empty one."""

    reason: str
    advice: str | None = None
    # How many continuations of the turn this gate needs; they are granted up to the hard limit.
    continuations: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        reason: str | None = self.reason
        if reason is None:
            object.__setattr__(self, "reason", "")
        super().__post_init__()
        if self.continuations is not None and not is_continuations(self.continuations):
            given = describe(self.continuations)
            raise ValueError(f"Block.continuations must be {EXPECTED_CONTINUATIONS}, not {given}")


@frozen
class Advise(_Notes):
    """The hook does not block, but has advice for the agent."""

    advice: str


@frozen
class Halt(_Notes):
    """The turn ends now, whatever the other hooks decide; the reason is for the user.

    With `waits`, the turn ends because the agent waits for the user's approval.
    """

    reason: str | None = None
    waits: bool = field(default=False, kw_only=True)


@frozen
class Fault(_Notes):
    """The hook failed, timed out, was skipped against its author's intent, or waits. It gave no decision.

    It is `waiting` while the agent itself waits, such as for a subagent; then `may_block` is False.
    """

    error: str
    kind: FaultKind = "failed"
    # False for a block without a reason, which does not block even if the hook is `blocking` (C-11).
    may_block: bool = True
    # The hook answered about a tool call, and its answer cannot be understood: the user decides.
    asks_user: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in get_args(FaultKind):
            kinds = ", ".join(get_args(FaultKind))
            raise ValueError(f"Fault.kind must be one of {kinds}, not {describe(self.kind)}")


Decision = Allow | Block | Advise | Halt | Fault


def oversized_texts(decision: Decision, dialect: Dialect) -> tuple[str, ...]:
    if not isinstance(decision, Block | Advise):
        return ()
    texts = []
    if isinstance(decision, Block) and _is_oversized(decision.reason, dialect.reason_limit):
        texts.append(decision.reason)
    if decision.advice and _is_oversized(decision.advice, dialect.advice_limit):
        texts.append(decision.advice)
    return tuple(texts)


def _is_oversized(text: str, limit: int | None) -> bool:
    return limit is not None and len(text) > limit


def truncate_decision(decision: Decision, dialect: Dialect, saved_as: Mapping[str, str | None]) -> Decision:
    """Truncate each text that is a key of `saved_as`; its value is the path of the whole text, if saved."""
    if isinstance(decision, Block) and decision.reason in saved_as and dialect.reason_limit is not None:
        reason = truncate_middle(decision.reason, dialect.reason_limit, saved_as[decision.reason])
        decision = replace(decision, reason=reason)
    if isinstance(decision, Block | Advise) and decision.advice and decision.advice in saved_as:
        advice, path = decision.advice, saved_as[decision.advice]
        if dialect.prefix_each:
            return replace(decision, advice=persisted_output(advice, path))
        return replace(decision, advice=truncate_middle(advice, dialect.advice_limit or 0, path))
    return decision


def persisted_output(text: str, saved_as: str | None) -> str:
    """Return Claude Code's own form for additional context above its limit."""
    size = f"{len(text.encode('utf-8', 'replace')) / 1024:.1f}KB"
    saved = f"Full output saved to: {saved_as}" if saved_as else "Full output could not be saved"
    return (
        f"<persisted-output>\nOutput too large ({size}). {saved}\n\n"
        f"Preview (first 2KB):\n{text[:2000]}\n...\n</persisted-output>"
    )
