"""Approve or reject hooks: only a person does, and only exactly what was shown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches

from turngate.cli.review.entries import PENDING, shown_key
from turngate.core.constants import AGENT_MARKERS
from turngate.core.text import quote_name
from turngate.errors import UsageError
from turngate.trust.review import Review, ReviewedHook


def check_person(environ: Mapping[str, str], does: str = "approves and rejects hooks") -> None:
    """Raise UsageError in a process that a hook or an agent's tool has started."""
    if marker := next((name for name in AGENT_MARKERS if name in environ), None):
        raise UsageError(
            f"a person {does}, in a terminal of their own, and this was started by a hook or an agent ({marker} is set)"
        )


def find_hooks(review: Review, keys: Iterable[str]) -> list[ReviewedHook]:
    """Return the hooks with these keys, each once. Raises UsageError."""
    by_key = {hook.key: hook for hook in review.hooks}
    return [_find(by_key, key) for key in dict.fromkeys(keys)]


def _find(by_key: Mapping[str, ReviewedHook], key: str) -> ReviewedHook:
    if key in by_key:
        return by_key[key]
    close = get_close_matches(key, by_key, 1)
    hint = f"did you mean {shown_key(close[0])}?" if close else "`turngate hooks` lists them"
    raise UsageError(f"there is no hook {quote_name(shown_key(key))}; {hint}")


def pending_hooks(review: Review) -> list[ReviewedHook]:
    return [hook for hook in review.hooks if hook.status in PENDING]


def approve_shown(shown: Sequence[ReviewedHook], review_again: Callable[[], Review]) -> None:
    """Approve hooks as they were shown. Raises UsageError, and approves nothing, if one is different now."""
    review = review_again()
    now = {hook.key: hook for hook in review.hooks}
    for hook in shown:
        if hook.key not in now or not is_same(hook, now[hook.key]):
            key = shown_key(hook.key)
            raise UsageError(
                f"{key} has changed after it was shown; nothing was approved, review it again: `turngate hooks diff`"
            )
    review.approve([now[hook.key] for hook in shown])


def is_same(one: ReviewedHook, other: ReviewedHook) -> bool:
    """Return whether an approval of one hook is an approval of the other."""
    ours, theirs = one.fingerprint, other.fingerprint
    return (ours.definition, dict(ours.files), dict(ours.variables)) == (
        theirs.definition,
        dict(theirs.files),
        dict(theirs.variables),
    )


def check_can_reject(hooks: Iterable[ReviewedHook]) -> None:
    for hook in hooks:
        if hook.status == "exempt":
            where = hook.rule.file or "the program that sets it"
            raise UsageError(
                f"{shown_key(hook.key)} needs no approval, so it cannot be rejected; remove it from {where}"
            )
