"""Patches with all lines of a file, as git would give them to a gate."""

import difflib
from collections.abc import Mapping

from turngate.gates.git.output import FilePatch, Line


def make_patch(path: str, old: str | None, new: str | None) -> FilePatch:
    """Return the patch between two contents of a file; None: there is no such file."""
    lines: list[Line] = []
    number = 1
    before, after = ([] if text is None else text.split("\n") for text in (old, new))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, to, until in matcher.get_opcodes():
        if tag != "equal":
            lines += [Line(number, text, "removed") for text in before[start:end]]
        for text in after[to:until]:
            lines.append(Line(number, text, "kept" if tag == "equal" else "added"))
            number += 1
    return FilePatch(path, tuple(lines))


def make_patches(before: Mapping[str, str], after: Mapping[str, str | None]) -> list[FilePatch]:
    """Return the patches of all files that `after` changes; None removes a file."""
    return [make_patch(path, before.get(path), text) for path, text in after.items()]
