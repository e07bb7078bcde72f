"""What to know before the line is written, and what remains to be done afterwards."""

import shutil
from collections.abc import Iterator

from turngate.cli.commands.install.places import Place, all_places, has_line, hosts_that_share
from turngate.cli.hook_review.decisions import pending_hooks
from turngate.cli.hook_review.review import review_hooks
from turngate.trust.review import Review

_STOPS = ("Stop", "SubagentStop")


def warnings_before(place: Place) -> Iterator[str]:
    """Yield where the line is already, so that the hook would run twice at a stop, and why it may not run at all."""
    for other in all_places(place.host, place.project):
        if other.level != place.level and has_line(other):
            yield (
                f"{other.shown} has the line already: with both, {place.host.title} runs Turngate twice at a stop; "
                f"`turngate uninstall {place.host.name} --{other.level}` removes that one"
            )
    for host in hosts_that_share(place.host):
        for other in all_places(host, place.project):
            if has_line(other):
                yield _covered(place, other)
    if place.level == "project" and shutil.which("turngate") is None:
        yield (
            "turngate is not on PATH here, and the line of a project finds it there: until it is, stops are not checked"
        )


def _covered(place: Place, other: Place) -> str:
    reader, read = (place, other) if other.host.name in place.host.reads_files_of else (other, place)
    return (
        f"{reader.host.title} reads the hooks of {read.shown} as well: with a line in {reader.shown} too, "
        f"it runs Turngate twice at a stop"
    )


def next_steps(place: Place) -> Iterator[str]:
    """Yield what remains to be done by hand: in the host, and in the project."""
    for step in place.host.steps_by_hand:
        yield f"→ {step}"
    if place.project is None:
        yield "→ in each project: `turngate init` writes gates for its checks"
        return
    review = review_hooks(place.project, dialect="turngate")
    if not _has_stop_hooks(review):
        yield "→ this project has no hooks for a stop yet: `turngate init` writes gates for its checks"
    count = sum(hook.rule.family != "claude" for hook in pending_hooks(review))
    if count:
        what = "1 hook is" if count == 1 else f"{count} hooks are"
        yield f"→ {what} pending, and skipped until a person approves: `turngate hooks approve --all`"


def _has_stop_hooks(review: Review) -> bool:
    """Return whether a hook of .turngate or .mux runs at a stop; the host itself runs those of .claude."""
    return any(hook.rule.event in _STOPS and hook.rule.family != "claude" for hook in review.hooks)
