"""What to know before the line is written, and what remains to be done afterwards."""

import os
import shutil
from collections.abc import Iterator

from turngate.cli.commands.install.places import Place
from turngate.cli.review import pending_hooks, review_hooks
from turngate.doctor.hosts.diagnosis import why_rejected
from turngate.doctor.hosts.files import HostFile, hooks_in, read_host_files, reads_file_of
from turngate.filesystem.real_path import real_path
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host
from turngate.hosts.install.hook_command import how_to_find
from turngate.trust.review import Review

_STOPS = ("Stop", "SubagentStop")


def warnings_before(place: Place) -> Iterator[str]:
    """Yield where the line is already, so that a host would run it twice at a stop, and why it may not run at all."""
    for host in HOSTS.values():
        if reads_file_of(host, place.host, place.level):
            yield from (_runs_twice(host, file, place) for file in _other_files(host, place))
    for file in read_host_files(place.host, place.project or os.getcwd(), os.environ):
        if real_path(file.path) == real_path(place.path) and (why := why_rejected(file, place.host)):
            yield f"{place.host.title} rejects {place.shown} as it is, and runs no hook in it: {why}"
    if place.level == "project" and shutil.which("turngate") is None:
        yield (
            "turngate is not on PATH here, and the line of a project finds it there, so stops would not be checked; "
            + how_to_find(place.host)
        )


def _other_files(host: Host, place: Place) -> Iterator[HostFile]:
    """Yield the other files with the line that a host reads; those that it shares are named for their own host."""
    for file in read_host_files(host, place.project or os.getcwd(), os.environ):
        is_other = real_path(file.path) != real_path(place.path)
        if is_other and host in (place.host, file.owner) and any(hook.is_turngate for hook in hooks_in(file)):
            yield file


def _runs_twice(host: Host, file: HostFile, place: Place) -> str:
    is_installed = host is file.owner and file.name == host.files[file.level]
    remedy = f"; `turngate uninstall {host.name} --{file.level}` removes that one" if is_installed else ""
    return (
        f"{host.title} has the line in {file.name} already: with one in {place.shown} too, "
        f"it runs Turngate twice at a stop{remedy}"
    )


def next_steps(place: Place) -> Iterator[str]:
    """Yield what remains to be done by hand: in the host, and in the project."""
    if step := place.host.steps_by_hand.get(place.level):
        yield f"→ {step}"
    if place.project:
        yield from _project_steps(place.project)
    else:
        yield "→ in each project: `turngate init` writes gates for its checks"
    yield f"→ `turngate doctor --host {place.host.name}` says whether the line will run, and block"


def _project_steps(project: str) -> Iterator[str]:
    review = review_hooks(project, dialect="turngate")
    if not _has_stop_hooks(review):
        yield "→ this project has no hooks for a stop yet: `turngate init` writes gates for its checks"
    count = sum(hook.rule.family != "claude" for hook in pending_hooks(review))
    if count:
        what = "1 hook is" if count == 1 else f"{count} hooks are"
        yield f"→ {what} pending, and skipped until a person approves: `turngate hooks approve --all`"


def _has_stop_hooks(review: Review) -> bool:
    """Return whether a hook of .turngate or .mux runs at a stop; the host itself runs those of .claude."""
    return any(hook.rule.event in _STOPS and hook.rule.family != "claude" for hook in review.hooks)
