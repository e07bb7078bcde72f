"""The gate `until`: holds the stop until the agent makes a promise, and a command proves it."""

import re

from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault, Halt
from turngate.gates.conversation import find_prompt, last_answer
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.library.command import check_command
from turngate.gates.markdown_tasks import read_lines

DEFAULT_ITERATIONS = 20
MAX_ANSWER_CHARS = 200_000  # of its end, where a promise is made
_TAG = re.compile(r"<promise>(.{0,1000}?)</promise>", re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
_LINE_START = re.compile(r"\s*(?:#{1,6}|[-*+]|\d{1,9}[.)])\s+")
# Also as Chinese, Japanese and Spanish write it.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_EDGES = " \t*_.!¡。！"  # emphasis, and what begins or ends a sentence
_BEFORE_TAG = re.compile(r"(?:^|[.!?:。！？])[\s*_]*$")
_AFTER_TAG = re.compile(r"[\s*_]*(?:$|[^\w\s,;?？]|[A-Z])")


async def check_until(context: GateContext) -> Decision:
    promise = one_line(context.options["promise"])
    if not promise:
        return Fault("the promise is empty")
    iteration, started = _count_iteration(context)
    is_promised = has_promise(last_answer(context.event), promise)
    if is_promised:
        proof = Allow() if context.command is None else await check_command(context)
        if not isinstance(proof, Block):
            return proof
        problem = f'You wrote "{promise}", but the command that proves it fails: {proof.reason}'
    else:
        problem = f'The promise "{promise}" is not in your last answer.'
    return _end(context, promise, iteration, started) or _continue(context, promise, iteration, problem)


def has_promise(answer: str, promise: str) -> bool:
    """Return whether a sentence of an answer, or a tag `<promise>`, is the promise. Code, quotations and sentences about it do not count."""
    lines = [line.text for line in read_lines(answer[-MAX_ANSWER_CHARS:])]
    if "`" not in promise:
        lines = [_INLINE_CODE.sub("`", line) for line in lines]
    if _has_tag("\n".join(map(_without_mark, lines)), promise):
        return True
    wanted = promise.strip(_EDGES)
    sentences = (part for line in lines for part in _SENTENCE_END.split(_without_mark(line)))
    return any(one_line(sentence).strip(_EDGES) == wanted for sentence in sentences)


def _has_tag(text: str, promise: str) -> bool:
    """Return whether a tag holds the promise, as a sentence of its own and not as a part of one."""
    for tag in _TAG.finditer(text):
        before, after = text[: tag.start()].rpartition("\n")[2], text[tag.end() :].partition("\n")[0]
        if one_line(tag[1]) == promise and _BEFORE_TAG.search(before) and _AFTER_TAG.match(after):
            return True
    return False


def _without_mark(line: str) -> str:
    """Return a line without what makes it a heading or an item of a list."""
    mark = _LINE_START.match(line)
    return line[mark.end() :] if mark else line


def _count_iteration(context: GateContext) -> tuple[int, float]:
    """Return which iteration since the user's last message has ended, and when the first one began."""
    event, data = context.event, context.state.data
    prompt = find_prompt(event)
    here = prompt.offset if prompt else event.prompt_id
    is_new = data.get("prompt") != here if here is not None else not event.stop_hook_active
    iteration, started = data.get("iteration"), data.get("started")
    if is_new or not isinstance(iteration, int) or not isinstance(started, int | float):
        iteration, started = 0, prompt.time if prompt and prompt.time else context.now
    data.update(prompt=here, iteration=iteration + 1, started=started)
    return iteration + 1, started


def _end(context: GateContext, promise: str, iteration: int, started: float) -> Halt | None:
    most, minutes = _max_iterations(context), context.options["max-minutes"]
    if iteration >= most:
        times = "iteration" if most == 1 else "iterations"
        return Halt(f'the promise "{promise}" was not kept in {most} {times}')
    if minutes is not None and context.now - started >= minutes * 60:
        times = "minute" if minutes == 1 else "minutes"
        return Halt(f'the promise "{promise}" was not kept within {minutes:g} {times}')
    return None


def _continue(context: GateContext, promise: str, iteration: int, problem: str) -> Block:
    most, limit = _max_iterations(context), context.event.limit
    wanted = most - 1  # the first iteration is not a continuation
    advice = (
        f"This was iteration {iteration} of {most}. Go on with the task. When it is done, and not before, end your "
        f'answer with "{promise}" as a sentence of its own, without quotation marks.'
    )
    lines = [problem, advice]
    # Before the second iteration, the engine did not know what is wanted.
    if limit is not None and limit < wanted and iteration > 1:
        lines.append(
            f"This turn has at most {limit} continuations, fewer than the {wanted} that this gate asks for."
        )
    return Block("\n".join(lines), continuations=wanted)


def _max_iterations(context: GateContext) -> int:
    return max(1, int(context.options["max-iterations"]))


UNTIL = Gate(
    name="until",
    summary="the agent makes a promise, and a command proves it",
    check=check_until,
    command="optional",
    needs_conversation=True,
    options=(
        GateOption("promise", "text", "the sentence that ends the loop", "TEXT", required=True),
        GateOption(
            "max-iterations",
            "number",
            "end the turn after this many iterations, including the first",
            "N",
            default=DEFAULT_ITERATIONS,
        ),
        GateOption("max-minutes", "number", "end the turn this many minutes after the user's message", "M"),
    ),
)
