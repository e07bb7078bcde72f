"""The gate `review`: a model has read what this session has changed and agrees, or has said often enough what is wrong."""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator

from turngate.core.hooks.kinds import PromptHook
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.git.output import FilePatch
from turngate.gates.session_changes import record_files, require_patches
from turngate.gates.source_text import is_foreign

MAX_DIFF_CHARS = 60_000
MAX_NOTE_CHARS = 500
QUESTION = (
    "You review the change of a colleague before it is finished. Name only defects that a user or a maintainer would have to correct: "
    "wrong results, lost errors, missing cases, unsafe code, tests that check nothing. Taste does not count. "
    "The check is met if there is no such defect; otherwise list each with its file and line."
)


async def check_review(context: GateContext) -> Decision:
    patches = await require_patches(context, "the changed lines are", context_lines=3)
    text = "\n".join(show_patches(patches.files))
    if not text:
        return Allow()
    known = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    data = context.state.data
    if data.get("passed") == known:
        return Allow()
    rounds = int(str(data.get("rounds", 0)))
    if rounds >= context.options["rounds"]:
        return Allow(f"after {rounds} rounds the review still asks for: {data.get('reason')}")
    if context.ask_judge is None:
        return Fault("there is no model to ask")
    try:
        async with asyncio.timeout(context.commands.timeout):
            decision = await context.ask_judge(_question(context, text))
    except TimeoutError:
        return Fault(f"the judge did not answer within {context.commands.timeout:.3g} s")
    if isinstance(decision, Allow):
        data["passed"] = known
    elif isinstance(decision, Block):
        data.update(rounds=rounds + 1, reason=one_line(decision.reason, MAX_NOTE_CHARS))
    return decision


def show_patches(patches: Iterable[FilePatch]) -> Iterator[str]:
    marks = {"added": "+", "removed": "-", "kept": " "}
    for patch in patches:
        if not is_foreign(patch.path, [line.text for line in patch.lines[:10]]):
            yield f"--- {patch.path}"
            yield from (f"{line.number:>5} {marks[line.kind]}{line.text}" for line in patch.lines)


def _question(context: GateContext, text: str) -> PromptHook:
    """Return what the judge is asked. In the change, the name of the hook's input is only text."""
    diff = text.replace("$ARGUMENTS", "$ ARGUMENTS")
    if len(diff) > MAX_DIFF_CHARS:
        diff = f"{diff[:MAX_DIFF_CHARS]}\n[the rest of the change is left out]"
    question = context.options["prompt"] or QUESTION
    return PromptHook(f"{question}\n\nThe change:\n{diff}", model=context.options["model"], transcript="last")


REVIEW = Gate(
    name="review",
    summary="a model has reviewed the change",
    check=check_review,
    options=(
        GateOption("prompt", "text", "what to look for, instead of defects", "TEXT"),
        GateOption("rounds", "number", "how many times it may block in a session", "N", default=3),
        GateOption("files", "texts", "review only these files; `!GLOB` is an exception", "GLOB"),
        GateOption("model", "text", "instead of `turngate.judge` in the settings", "PROVIDER:NAME"),
    ),
    record=record_files,
    needs_conversation=True,
    asks_model=True,
)
