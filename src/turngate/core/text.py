"""Texts that are too long for a model: what is left of them, and where the whole lies."""

from collections.abc import Mapping
from dataclasses import replace

from turngate.core.decisions import Advise, Block, Decision
from turngate.core.dialect import Dialect


def oversized_texts(decision: Decision, dialect: Dialect) -> tuple[str, ...]:
    """The texts of a decision that must be kept somewhere, because the agent gets only a part of them."""
    texts = []
    if isinstance(decision, Block) and _too_long(decision.reason, dialect.reason_limit):
        texts.append(decision.reason)
    if (
        isinstance(decision, Block | Advise)
        and decision.advice
        and _too_long(decision.advice, dialect.advice_limit)
    ):
        texts.append(decision.advice)
    return tuple(texts)


def _too_long(text: str, limit: int | None) -> bool:
    return limit is not None and len(text) > limit


def shortened(decision: Decision, dialect: Dialect, kept: Mapping[str, str | None]) -> Decision:
    """The decision with each kept text replaced by its short form; `kept` says where the whole lies."""
    if isinstance(decision, Block) and decision.reason in kept and dialect.reason_limit is not None:
        reason = truncate_middle(decision.reason, dialect.reason_limit, kept[decision.reason])
        decision = replace(decision, reason=reason)
    if isinstance(decision, Block | Advise) and decision.advice and decision.advice in kept:
        cut = preview if dialect.prefix_each else truncate_middle
        return replace(
            decision, advice=cut(decision.advice, dialect.advice_limit or 0, kept[decision.advice])
        )
    return decision


def truncate_middle(text: str, limit: int, whole: str | None) -> str:
    """The head and the tail, never longer than the limit."""
    where = f"the whole text is in {whole}" if whole else "the whole text could not be kept"
    note = f"\n… [about {len(text) - limit:,} characters left out; {where}] …\n"
    room = max(0, limit - len(note))
    return text[: (room + 1) // 2] + note + text[len(text) - room // 2 :]


def preview(text: str, _limit: int, whole: str | None) -> str:
    """Claude Code's own form for additional context above its limit."""
    size = f"{len(text.encode('utf-8', 'replace')) / 1024:.1f}KB"
    saved = f"Full output saved to: {whole}" if whole else "Full output could not be saved"
    return (
        f"<persisted-output>\nOutput too large ({size}). {saved}\n\n"
        f"Preview (first 2KB):\n{text[:2000]}\n...\n</persisted-output>"
    )


MAX_ERROR_CHARS = 1000


def describe_exception(raised: BaseException) -> str:
    """Return the type and the truncated message of an exception."""
    try:
        message = str(raised)[:MAX_ERROR_CHARS]
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - `__str__` is foreign code too
        message = ""
    return f"{type(raised).__name__}: {message}" if message else type(raised).__name__
