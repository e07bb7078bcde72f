"""The gate `judge`: holds the stop until a model agrees, as a prompt hook would ask it."""

import asyncio
import hashlib

from turngate.core.hooks.kinds import PromptHook
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.conversation import last_answer
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.git.output import show_path
from turngate.gates.project_files import read_file
from turngate.gates.tree_state import tree_state


async def check_judge(context: GateContext) -> Decision:
    question = await _read_question(context)
    if isinstance(question, Fault):
        return question
    tree = await tree_state(context)
    text = last_answer(context.event).encode("utf-8", "replace")
    answer = hashlib.sha256(text).hexdigest()[:32]
    if tree is not None and (stored := _stored(context, tree, answer)):
        return stored
    if context.ask_judge is None:
        return Fault("there is no model to ask")
    try:
        async with asyncio.timeout(context.commands.timeout):
            result = await context.ask_judge(question)
    except TimeoutError:
        return Fault(f"the judge did not answer within {context.commands.timeout:.3g} s")
    _store(context, tree, answer, result)
    return result


async def _read_question(context: GateContext) -> PromptHook | Fault:
    text, name = context.options["prompt"], context.options["prompt-file"]
    if text is None and name is not None:
        text = await read_file(context.commands, name)
        if text is None:
            return Fault(f"there is no file {show_path(name)} in the project")
    if text is None or not text.strip():
        return Fault("it has no question: give --prompt or --prompt-file")
    seen = context.options["transcript"]
    if seen not in ("none", "last", "digest", "full"):
        return Fault(f"--transcript is {seen!r}; expected none, last, digest or full")
    return PromptHook(text, model=context.options["model"], transcript=seen)


def _stored(context: GateContext, tree: str, answer: str) -> Decision | None:
    """Return the last judgment if it still holds: a yes for an unchanged tree, a no only while the agent has not said anything else either."""
    data = context.state.data
    if data.get("tree") != tree:
        return None
    match data.get("judgment"):
        case {"passed": True, "note": str() | None as note}:
            return Allow(note)
        case {"passed": False, "reason": str(reason)} if data.get("answer") == answer:
            return Block(reason)
        case _:
            return None


def _store(context: GateContext, tree: str | None, answer: str, result: Decision) -> None:
    judgment: dict[str, object] | None = None
    if isinstance(result, Allow):
        judgment = {"passed": True, "note": result.reason}
    elif isinstance(result, Block):
        judgment = {"passed": False, "reason": result.reason}
    context.state.data.update(tree=tree, answer=answer, judgment=judgment)


JUDGE = Gate(
    name="judge",
    summary="a model agrees",
    check=check_judge,
    needs_conversation=True,
    asks_model=True,
    options=(
        GateOption("prompt", "text", "the question, as in a prompt hook", "TEXT"),
        GateOption(
            "prompt-file", "text", "the file in the project with the question", "FILE", is_definition=True
        ),
        GateOption(
            "transcript",
            "text",
            "what the judge sees of the conversation: none, last, digest (default) or full",
            "PART",
            default="digest",
        ),
        GateOption("model", "text", "instead of `turngate.judge` in the settings", "PROVIDER:NAME"),
    ),
)
