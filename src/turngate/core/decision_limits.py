"""Limits on the texts of a decision: which are too long for a model, and what replaces them."""

from collections.abc import Mapping
from dataclasses import replace

from turngate.core.decisions import Advise, Block, Decision
from turngate.core.dialect import Dialect
from turngate.core.text import truncate_middle


def oversized_texts(decision: Decision, dialect: Dialect) -> tuple[str, ...]:
    """Return the texts of a decision that are longer than the dialect sends to a model."""
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
        advice = _truncate_advice(decision.advice, dialect, saved_as[decision.advice])
        return replace(decision, advice=advice)
    return decision


def _truncate_advice(advice: str, dialect: Dialect, saved_as: str | None) -> str:
    if dialect.prefix_each:
        return persisted_output(advice, saved_as)
    return truncate_middle(advice, dialect.advice_limit or 0, saved_as)


def persisted_output(text: str, saved_as: str | None) -> str:
    """Return Claude Code's own form for additional context above its limit."""
    size = f"{len(text.encode('utf-8', 'replace')) / 1024:.1f}KB"
    saved = f"Full output saved to: {saved_as}" if saved_as else "Full output could not be saved"
    return (
        f"<persisted-output>\nOutput too large ({size}). {saved}\n\n"
        f"Preview (first 2KB):\n{text[:2000]}\n...\n</persisted-output>"
    )
