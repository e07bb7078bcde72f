"""`turngate log --blocks`, `--wrong` and `--right`: the blocks of a project, and what a person says of them."""

import argparse
import json
from collections.abc import Iterator

from turngate.cli.commands.log.format import lines_with_words
from turngate.cli.console.conversation_text import format_time
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.project import project_folder, recorded_project
from turngate.core.text import MAX_SHOWN_LINE_CHARS, one_line, quote_name, strip_controls, truncate
from turngate.errors import UsageError
from turngate.history.journals import journal_folders, read_journal
from turngate.history.stats import Block, collect_blocks
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.journal import Journal
from turngate.state.paths import state_folder

MAX_SHOWN_BLOCKS = 50


def mark_block(options: argparse.Namespace) -> int:
    """Record that the block with this id was wrong, or right."""
    given = options.right if options.wrong is None else options.wrong
    found = [block for block in _read_all(None) if given and block.id.startswith(given)]
    if len(found) != 1:
        problem = "is the beginning of several ids" if found else "is no id of a block"
        raise UsageError(f"{given!r} {problem}; `turngate log --blocks` lists them")
    block, word = found[0], "right" if options.wrong is None else "wrong"
    journal = Journal(state_folder(), block.project)
    mark = {"kind": "mark", "block": block.id, "wrong": options.wrong is not None, "why": options.why or ""}
    journal.record(block.session, mark)
    journal.close()
    if journal.fault:
        raise UsageError(journal.fault)
    print(f"marked as {word}: {_describe(block)}")
    return 0


def list_blocks(options: argparse.Namespace) -> int:
    project = recorded_project(options.project) if options.project else project_folder(None)
    blocks = _read_all(project)
    if options.json:
        print(json.dumps([vars(block) for block in blocks], indent=2))
        return 0
    for block in blocks[-MAX_SHOWN_BLOCKS:]:
        print(_describe(block))
    if not blocks:
        print(f"nothing was blocked in {strip_controls(project)}")
    elif len(blocks) > MAX_SHOWN_BLOCKS:
        print(f"… {len(blocks) - MAX_SHOWN_BLOCKS} earlier blocks: turngate log --blocks --json")
    return 0


def _read_all(project: str | None) -> list[Block]:
    """Return the blocks of a project, or of all, oldest first."""
    with show_if_slow("reading the journals"), os_errors_as_usage_errors(state_folder()):
        return sorted(_blocks(project), key=lambda block: block.time)


def _blocks(project: str | None) -> Iterator[Block]:
    for folder in journal_folders(state_folder()):
        yield from (
            block
            for block in collect_blocks(read_journal(folder).records)
            if project in (None, block.project)
        )


def _describe(block: Block) -> str:
    mark = {None: "", True: paint("wrong  ", "notice"), False: paint("right  ", "dim")}[block.wrong]
    lines = lines_with_words(strip_controls(block.reason))
    reason = " … ".join(one_line(line) for line in dict.fromkeys([*lines[:1], *lines[-1:]]))
    gate = quote_name(strip_controls(block.gate))
    return f"{block.id}  {format_time(block.time)}  {mark}{gate}  {truncate(reason, MAX_SHOWN_LINE_CHARS)}"
