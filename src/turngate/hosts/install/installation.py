"""What `turngate install` and `turngate uninstall` would change in the settings of a host. Decides, and writes nothing."""

import json
from collections.abc import Mapping
from typing import Any

from turngate._frozen import frozen
from turngate.hosts.install.json_text import BLANKS
from turngate.hosts.install.record import InstallRecord, digest
from turngate.hosts.install.settings_text import add_lines, hook_lines, remove_lines


@frozen
class Change:
    """A text before and after; None stands for no file."""

    before: str | None
    after: str | None
    record: InstallRecord | None = None  # to undo it

    @property
    def is_needed(self) -> bool:
        return self.before != self.after


def plan_install(
    text: str | None,
    entries: Mapping[str, Mapping[str, Any]],
    others: Mapping[str, Any],
    record: InstallRecord | None,
) -> Change:
    """Return the settings with the lines of Turngate. Raises UnsuitableSettings."""
    added = add_lines(text or "", entries, others)
    if text is None or not hook_lines(text):
        return Change(text, added.text, InstallRecord(text, (digest(added.text),), added.created))
    if record is None:  # the lines came with the repository: what was there before them is not known
        return Change(text, added.text)
    digests = (digest(text), digest(added.text)) if record.restores(text) else ()
    created = record.created | added.created
    return Change(text, added.text, InstallRecord(record.before, digests, created, record.folders))


def plan_uninstall(text: str | None, others: Mapping[str, Any], record: InstallRecord | None) -> Change:
    """Return the settings without the lines of Turngate. Raises UnsuitableSettings."""
    if text is None or not hook_lines(text):
        return Change(text, text)
    if record and record.restores(text):
        return Change(text, record.before)
    rest = remove_lines(text, record.created if record else None)
    had_no_file = record.before is None if record else _is_new_file(text, rest, others)
    return Change(text, None if had_no_file and not _has_content(rest, others) else rest)


def _is_new_file(text: str, rest: str, others: Mapping[str, Any]) -> bool:
    """Return whether a text is what `add_lines` makes where there is no file."""
    return (
        not _has_content(rest, others)
        and text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    )


def _has_content(text: str, others: Mapping[str, Any]) -> bool:
    if not text.strip(BLANKS):
        return False
    try:
        return bool(json.loads(text) not in ({}, dict(others)))
    except ValueError:  # it has comments
        return True
