"""Approves the gates that a person has just read and confirmed, and nothing else."""

import json
import os
from collections.abc import Iterator

from turngate.cli.commands.init.files import SETTINGS
from turngate.cli.hook_review.decisions import approve_shown
from turngate.cli.hook_review.entries import PENDING, shown_key, what_to_do
from turngate.cli.hook_review.review import review_hooks
from turngate.core.dialect import TURNGATE
from turngate.filesystem.content import is_list_of_names
from turngate.filesystem.real_path import is_inside, real_path
from turngate.settings.parse import parse_layer
from turngate.trust.review import Review, ReviewedHook


def approve_written(project: str, text: str) -> Iterator[str]:
    """Approve the hooks of the settings that were written, and yield a line about each. Raises UsageError."""
    layer = parse_layer(json.loads(text), file=SETTINGS, level="project", family="turngate", dialect=TURNGATE)
    shown = [rule.hook for rule in layer.rules]
    hooks = [hook for hook in _review(project).hooks if hook.rule.file == SETTINGS]
    pending = [hook for hook in hooks if hook.status in PENDING and hook.rule.hook in shown]
    files = {hook.key: _unseen_file(hook, project) for hook in pending}
    approve_shown([hook for hook in pending if not files[hook.key]], lambda: _review(project))
    for key, file in files.items():
        if file:
            yield f"pending   {shown_key(key)}: it runs {file} of this project; {what_to_do(key)}"
        else:
            yield f"approved  {shown_key(key)}"


def _review(project: str) -> Review:
    return review_hooks(project, dialect="turngate")


def _unseen_file(hook: ReviewedHook, project: str) -> str | None:
    """Return a file of the project that the hook runs: an approval covers its content, which was not shown."""
    root = real_path(project)
    for path, recorded in hook.fingerprint.files.items():
        if recorded and not is_list_of_names(recorded) and is_inside(path, root):
            return shown_key(os.path.relpath(path, root))
    return None
