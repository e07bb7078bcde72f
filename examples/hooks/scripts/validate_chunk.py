#!/usr/bin/env python3
"""SubagentStop: lint and the tests of the chunk that this subagent has implemented.

The chunk is the one that the prompt of the subagent names, or its answer; the plan's table says what belongs to it:

    | Chunk | Files | Tests |
    |---|---|---|
    | chunk-1 | slug.py | tests/test_slug.py |

The plan gives file names only; which programs run is decided here. What is complete is kept for each session and chunk, so
that chunks that are implemented at the same time do not overwrite each other.
"""

import re
from typing import Any

from hook_support import (
    Chunk,
    approve,
    block,
    check_chunk,
    chunks,
    last_answer,
    project_of,
    read_input,
    read_plans,
    state_folder,
    texts,
    write,
)


def chunk_of(data: dict[str, Any], known: list[Chunk]) -> Chunk | None:
    """Return the chunk that the prompt names, or else the answer."""
    for text in (*list(texts(data, "user"))[:1], last_answer(data)):
        for chunk in known:
            if re.search(rf"(?<![\w.-]){re.escape(chunk.name)}(?![\w-])", text):
                return chunk
    return None


data = read_input()
project = project_of(data)
chunk = chunk_of(data, [chunk for plan in read_plans(project).values() for chunk in chunks(plan)])
if chunk is None:
    approve()  # a subagent with another task
done = state_folder(data) / f"chunk-{chunk.name}"
done.unlink(missing_ok=True)
if problem := check_chunk(chunk, project):
    block(problem)
write(done, str(data.get("agent_id") or ""))
approve()
