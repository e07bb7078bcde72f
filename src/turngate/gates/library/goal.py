"""The gate of a session's goal: it holds the stop until a command, or a judge, says that the goal is met, or the user drops it."""

import re
from itertools import takewhile

from turngate.aio.threads import run_in_thread
from turngate.core.events.events import StopEvent
from turngate.core.text import one_line, printable
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.check_changes import block_once, find_definition, note_changes
from turngate.gates.conversation import read_prompts
from turngate.gates.gate import Gate, GateContext
from turngate.gates.library.command import check_command, show_command
from turngate.gates.library.judge import check_judge
from turngate.gates.project_files import read_project
from turngate.gates.session_goal import NOT_MET, change_goal, read_goals

MAX_PART_CHARS, MAX_WISH_CHARS = 200, 80
QUESTION = """\
The user has set a goal for this session, and the agent wants to stop. Is the goal met? Judge by what the conversation
shows was done, and not by what the agent says or plans. If the goal is not met, say what is missing. The goal:

"""
# A sentence of the user, or a part of one up to a comma. "Don't forget the goal" and "clear the goal line" are none.
_PART_END = r"[.!,;:]\s|\n"
_POLITE = r"(?:(?:ok(?:ay)?|please|actually|now|just|so|well|then|let[’']?s|you (?:can|may|should)|I want you to)\W+)*"
_DROPS = r"(?:forget|drop|cancel|clear|abandon|ignore|skip|stop|end|remove|give up|never mind)(?: about| on)?"
_STAND_DOWN = re.compile(
    rf"\W*{_POLITE}{_DROPS}(?: (?:the|this|that|your|my|our|current))* goal(?: (?:for now|now|please|then|and|but)\b.*|[^\w?]*)"
    r"|\W*(?:bash-input>)?\W*turngate goal clear\b.*",
    re.IGNORECASE,
)


async def check_goal(context: GateContext) -> Decision:
    text = context.options["goal"]
    if not text:
        return Fault("the file of the goal cannot be read; set it again with `turngate goal`")
    if given_up := await _given_up(context):
        return given_up
    question = QUESTION + text.replace("$ARGUMENTS", "$ ARGUMENTS")  # which a prompt hook would replace
    asked = {"prompt": question, "prompt-file": None, "transcript": "digest", "model": None}
    context.options = {**context.options, **asked}
    definition = await define_proof(context)
    goals = read_goals(context.state_folder or "", context.options["since"])
    if context.command and goals:
        context.state.data.setdefault("definition", goals[0].definition)
        if block := block_once(context, show_command(context.command), definition):
            return block
    result = await (check_command(context) if context.command else check_judge(context))
    if given_up := await _given_up(context):
        return given_up
    if not isinstance(result, Block):
        return Allow(note_changes(context, definition)) if isinstance(result, Allow) else result
    by = f"`{show_command(context.command)}`: " if context.command else ""
    return Block(f"{NOT_MET}{text}\n{by}{result.reason}")


async def define_proof(context: GateContext) -> dict[str, str]:
    """Return what defines the command that proves the goal, whatever the variables are: a person sets it elsewhere."""
    if context.command is None:
        return {}
    context.environ = {}
    return await find_definition(context, [context.command.command], await read_project(context.commands))


async def _given_up(context: GateContext) -> Allow | None:
    """Return that a person has cleared or paused the goal, or that the user drops it in the conversation."""
    state, since = context.state_folder or "", context.options["since"]
    if not any(goal.status == "active" for goal in read_goals(state, since)):
        return Allow("the goal was cleared or paused while it was checked")
    wish = await run_in_thread(find_stand_down, context.event, since)
    if wish is None or not change_goal(state, since, None):
        return None
    return Allow(f'the goal is cleared, because you wrote "{wish}": {context.options["goal"]}')


def find_stand_down(event: StopEvent, since: float) -> str | None:
    """Return the words with which the user has dropped the goal since it was set."""
    for prompt in takewhile(lambda prompt: (prompt.time or 0.0) > since, read_prompts(event)):
        # The host wraps in tags what it adds, such as the output of a command of the user.
        is_wrapped = prompt.text.startswith("<") and not prompt.text.startswith("<bash-input>")
        for part in re.split(_PART_END, prompt.text) if not is_wrapped else ():
            if _STAND_DOWN.fullmatch(part.strip()[:MAX_PART_CHARS]):
                return one_line(printable(part), MAX_WISH_CHARS)
    return None


GOAL = Gate(
    name="goal",
    summary="the goal of the session is met",
    check=check_goal,
    command="optional",
    is_hard=True,
    asks_model=True,
)
