"""The gate `touched`: where some files have changed, others have to change with them, such as a changelog with the code."""

import re
from collections.abc import Sequence

from turngate.core.globs import matches_globs
from turngate.core.verdict.decisions import Allow, Block, Decision
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import show_path
from turngate.gates.session_changes import WHOLE_FILE, changed_paths, find_changes, find_patches, record_files
from turngate.gates.source_text import is_test_file, language_of, read_source

MAX_NAMES = 5
MAX_COMPARED = 200  # files of which the code is compared
_VERSION = re.compile(r"(?:^|/)_*version_*(?:\.\w+)?$", re.IGNORECASE)


async def check_touched(context: GateContext) -> Decision:
    """A file that both lists name is one of those that have to change. A file that was deleted was not kept up to date."""
    sources, documents = context.options["if"], context.options["then"]
    changes = [change for change in await find_changes(context) if change.kind != "filtered"]
    if any(
        matches_globs(documents, change.path) and change.kind != "deleted" and not change.is_same_content
        for change in changes
    ):
        return Allow()
    causes = [path for path in changed_paths(changes, sources) if not matches_globs(documents, path)]
    causes = [path for path in causes if _matters(path, sources)]
    same = await _without_effect(context, causes) if causes else set()
    causes = [path for path in causes if path not in same]
    if not causes:
        return Allow()
    wanted = " ".join(map(show_path, documents))
    return Block(
        f"these files have changed, but none that {wanted} names:\n"
        f"{list_findings([show_path(path) for path in causes], MAX_NAMES)}\n"
        f"Update {wanted} to match."
    )


def _matters(path: str, sources: Sequence[str]) -> bool:
    """Return whether a file is neither a test nor one that holds a version; a glob that names tests means them."""
    is_test = is_test_file(path) and not any("test" in glob or "spec" in glob for glob in sources)
    return not is_test and _VERSION.search(path) is None


async def _without_effect(context: GateContext, paths: Sequence[str]) -> set[str]:
    """Return the files of which only comments or blanks have changed."""
    literal = [f":(literal){path}" for path in paths[:MAX_COMPARED] if language_of(path)]
    patches = (
        await find_patches(context, *literal, context_lines=WHOLE_FILE, is_source=True) if literal else None
    )
    found = {}
    for patch in patches.files if patches else ():
        language = language_of(patch.path)
        if language is not None and patch.path in paths:
            texts = (
                "\n".join(line.text for line in patch.lines if line.kind != kind)
                for kind in ("added", "removed")
            )
            before, after = (_code(text, language) for text in texts)
            found[patch.path] = before == after != []
    return {path for path, is_same in found.items() if is_same}


def _code(text: str, language: str) -> list[str]:
    """Return the lines with code, without comments; in Python, blanks at the beginning of a line count."""
    lines = (line.rstrip() for line in read_source(text, language).text)
    return [line if language == "python" else " ".join(line.split()) for line in lines if line.strip()]


TOUCHED = Gate(
    name="touched",
    summary="the changelog or the docs have changed with the code",
    check=check_touched,
    options=(
        GateOption("if", "texts", "if one of these files has changed", "GLOB", required=True),
        GateOption("then", "texts", "one of these has to change too", "GLOB", required=True),
    ),
    record=record_files,
)
