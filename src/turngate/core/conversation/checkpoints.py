"""Checkpoints in the Markdown text of a command or an agent type: where its workflow waits for the user's yes or no.

Document 003: "`<checkpoint>` XML blocks mark mandatory user approval points", "`STOP` keywords in commands require user
input before proceeding". A text is split there into stages. The agent gets one stage at a time, so it cannot pass a
checkpoint: what comes after it is not in its conversation.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

from turngate._frozen_dataclass import frozen

MAX_STAGES = 50
CHECKPOINT_NOTE = (
    "[Checkpoint: when you have done the above, end your answer. The user reads it and decides whether the next part "
    "begins; do not begin it yourself.]"
)
APPROVED = "The user has approved the checkpoint."
FINISHED = "That was the last part. Finish your work and report the result."
REFUSED = "[The user has answered no at the checkpoint. Do not continue with what comes after it.]"
Answer = Literal["yes", "no"]

_FENCE = r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<marks>`{3,}|~{3,})(?P<info>.*)"
_CODE_SPAN = r"(?<!`)(`{1,2})(?!`)[^\n]+?(?<!`)\1(?!`)"
_TAG = r"<(?P<close>/?)checkpoint(?:\s[^<>\n]*)?>"
# The first word of a line, after the marks of lists, headings, quotes and emphasis: `STOP`, `**STOP.** Wait.`
_STOP = r"^[ \t#>*_+-]*(?:\d{1,9}[.)][ \t*_]+)?(?P<stop>STOP)(?![\w-])[^\n]*$"
_MARK = f"(?m)(?i:{_TAG})|{_STOP}"

_YES = ("y", "yes", "ok", "okay", "approve", "approved", "continue", "go on", "go ahead", "proceed")
_NO = ("n", "no", "stop", "reject", "rejected", "cancel", "abort")


class CheckpointError(ValueError):
    """A checkpoint is written so that it is not clear where the workflow has to wait."""


@frozen
class Stage:
    """A part of a workflow, and what the user is asked at its end; None if the workflow ends with it."""

    text: str
    checkpoint: str | None = None

    def prompt(self, *, is_first: bool) -> str:
        """Return the message with which the agent begins the stage."""
        text = self.text if is_first else f"{APPROVED}\n\n{self.text or FINISHED}"
        return text if self.checkpoint is None else f"{text}\n\n{CHECKPOINT_NOTE}"


@frozen
class Workflow:
    """The stages that are left of a command, beginning with the one that the agent works on."""

    name: str  # as the user types it: "/plan"
    stages: tuple[Stage, ...]

    @property
    def checkpoint(self) -> str | None:
        """What the user is asked at the end of the stage that the agent works on."""
        return self.stages[0].checkpoint if self.stages else None

    def after_approval(self) -> "Workflow":
        return replace(self, stages=self.stages[1:])

    def as_record(self) -> dict[str, Any]:
        return {"name": self.name, "stages": [vars(stage) for stage in self.stages]}


def workflow_of(record: Any) -> Workflow | None:
    """Return the workflow that `as_record` described, or None if this is not one with a checkpoint ahead."""
    try:
        workflow = Workflow(record["name"], tuple(Stage(**stage) for stage in record["stages"]))
    except (KeyError, TypeError):
        return None
    return workflow if len(workflow.stages) > 1 and workflow.checkpoint is not None else None


@frozen
class WaitingAgent:
    """A subagent that waits at a checkpoint, or that has waited at one and has finished."""

    agent_id: str
    text: str  # what the user is asked; empty: it has finished
    stage: int | None = None  # of its instructions, from 0; None: a hook waits, and the stage is not finished


Waiting = tuple[WaitingAgent, ...]


def update_waiting(waiting: Waiting, new: Iterable[WaitingAgent]) -> Waiting:
    """Return the subagents that wait, each with the checkpoint that it reached last."""
    latest = {each.agent_id: each for each in (*waiting, *new)}
    return tuple(each for each in latest.values() if each.text)


def waiting_of(records: Any) -> Waiting:
    """Return the subagents whose `vars` these are; none if they are damaged."""
    try:
        return tuple(WaitingAgent(**record) for record in records)
    except TypeError:
        return ()


def parse_answer(text: str) -> Answer | None:
    """Return the user's answer at a checkpoint; any other text, also `yes, but …`, is a message to the agent."""
    word = " ".join(text.casefold().strip().rstrip(".!").split())
    return "yes" if word in _YES else "no" if word in _NO else None


def split_stages(text: str, *, lines_before: int = 0) -> tuple[Stage, ...]:
    """Return the stages of a text: one more than it has checkpoints. Raises CheckpointError.

    The text of a checkpoint belongs to the stage before it, because it says what to present to the user. One in a fenced
    code block or in backticks does not count. `lines_before` are those of the front matter, for messages.
    """
    stages: list[Stage] = []
    start = 0
    for begin, content, end in _find_checkpoints(text, lines_before):
        if len(stages) >= MAX_STAGES:
            raise CheckpointError(f"it has more than {MAX_STAGES} checkpoints")
        before = text[start:begin].rstrip()
        stages.append(Stage("\n\n".join(part for part in (before, content) if part).strip(), content))
        start = end
    return (*stages, Stage(text[start:].strip()))


def _find_checkpoints(text: str, lines_before: int) -> Iterator[tuple[int, str, int]]:
    """Yield where each checkpoint begins, what it says, and where it ends."""

    def line(mark: re.Match[str]) -> int:
        return lines_before + text.count("\n", 0, mark.start()) + 1

    opened: re.Match[str] | None = None
    for mark in re.finditer(_MARK, _without_code(text, lines_before)):
        if mark["stop"]:
            if opened is None:
                # From the word on, without emphasis: `3. **STOP**: wait` → `STOP: wait`.
                line_from_stop = text[text.index("STOP", mark.start()) : mark.end()]
                plain = line_from_stop.replace("*", "").replace("__", "").strip()
                yield mark.start(), plain, mark.end()
        elif not mark["close"]:
            if opened is not None:
                raise CheckpointError(f"line {line(mark)} has a <checkpoint> inside of a <checkpoint>")
            opened = mark
        elif opened is None:
            raise CheckpointError(f"line {line(mark)} has a </checkpoint> without its <checkpoint>")
        else:
            yield opened.start(), text[opened.end() : mark.start()].strip() or "Continue?", mark.end()
            opened = None
    if opened is not None:
        raise CheckpointError(f"the <checkpoint> in line {line(opened)} has no </checkpoint>")


def _without_code(text: str, lines_before: int) -> str:
    """Return the text with blanks in place of its code; all offsets stay the same. Raises CheckpointError."""
    lines: list[str] = []
    fence, opened_at, hidden = "", 0, False
    for number, line in enumerate(text.split("\n"), lines_before + 1):
        found = re.match(_FENCE, line)
        if fence:
            hidden = hidden or re.search(_MARK, line) is not None
            lines.append(" " * len(line))
            if found and found["marks"].startswith(fence) and not found["info"].strip():
                fence, hidden = "", False
        elif found and not (found["marks"][0] == "`" and "`" in found["info"]):
            fence, opened_at = found["marks"], number
            lines.append(" " * len(line))
        else:
            lines.append(re.sub(_CODE_SPAN, lambda span: " " * len(span[0]), line))
    if fence and hidden:
        raise CheckpointError(f"the code block in line {opened_at} has no end and contains a checkpoint")
    return "\n".join(lines)
