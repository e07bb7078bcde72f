"""Review the hooks of a project with a person: find them, and approve or reject exactly what was shown."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal, TypeVar

from turngate.cli.review.entries import PENDING, shown_key
from turngate.cli.workspace import settings_options
from turngate.core.settings import Settings
from turngate.core.text import quote_name
from turngate.errors import UsageError
from turngate.hosts.all_hosts import AGENT_MARKERS
from turngate.ports import World
from turngate.settings.agent_types import hooks_of_agents
from turngate.trust.load import load_reviewed, review_agent_hooks
from turngate.trust.review import Review, ReviewedHook

_T = TypeVar("_T")


def load_all_hooks(options: argparse.Namespace, world: World) -> Settings:
    """Return the reviewed settings with the hooks of agent files, for the options of a command."""
    project, dialect, files = world.project, options.dialect, world.files
    trust = getattr(options, "trust", False)
    settings = load_reviewed(project, trust=trust, **settings_options(options, world))
    in_agents = hooks_of_agents(project, dialect, files)
    return settings.with_rules(*review_agent_hooks(in_agents, project, dialect, trust=trust, files=files))


def check_person(environ: Mapping[str, str], does: str = "approves and rejects hooks") -> None:
    """Raise UsageError in a process that a hook or an agent's tool has started."""
    if marker := next((name for name in AGENT_MARKERS if name in environ), None):
        raise UsageError(
            f"a person {does}, in a terminal of their own, and this was started by a hook or an agent ({marker} is set)"
        )


def find_hooks(review: Review, keys: Iterable[str]) -> list[ReviewedHook]:
    """Return the hooks with these keys, each once. Raises UsageError."""
    by_key = {hook.key: hook for hook in review.hooks}
    return find_keys(by_key, keys, "hook")


def find_keys(by_key: Mapping[str, _T], keys: Iterable[str], what: Literal["hook", "gate"]) -> list[_T]:
    """Return the values of these keys, each once. Raises UsageError."""
    wanted = dict.fromkeys(keys)
    for key in wanted:
        if key not in by_key:
            close = get_close_matches(key, by_key, 1)
            hint = f"did you mean {shown_key(close[0])}?" if close else f"`turngate {what}s` lists them"
            raise UsageError(f"there is no {what} {quote_name(shown_key(key))}; {hint}")
    return [by_key[key] for key in wanted]


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
    a, b = one.fingerprint, other.fingerprint
    has_same_files = dict(a.files) == dict(b.files) and dict(a.variables) == dict(b.variables)
    return a.definition == b.definition and has_same_files


def check_can_reject(hooks: Iterable[ReviewedHook]) -> None:
    for hook in hooks:
        if hook.status == "exempt":
            where = hook.rule.file or "the program that sets it"
            raise UsageError(
                f"{shown_key(hook.key)} needs no approval, so it cannot be rejected; remove it from {where}"
            )
