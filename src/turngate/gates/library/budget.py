"""The gate `budget`: ends the turn when tokens, minutes or turns are used up. It never blocks."""

from turngate.aio.threads import run_in_thread
from turngate.core.verdict.decisions import Allow, Decision, Fault, Halt
from turngate.gates.conversation import find_prompt, read_usage
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.session_changes import first_time


async def check_budget(context: GateContext) -> Decision:
    tokens, minutes, turns = (context.options[name] for name in ("tokens", "minutes", "turns"))
    if tokens is None and minutes is None and turns is None:
        return Fault("it has no limit: give --tokens, --minutes or --turns")
    event, per_prompt = context.event, context.options["per-prompt"]
    prompt = await run_in_thread(find_prompt, event) if per_prompt else None
    whose = "of this prompt" if per_prompt else "of this session"
    if tokens is not None or turns is not None:
        used = await run_in_thread(read_usage, event, prompt.offset if prompt else 0)
        if tokens is not None and used.tokens >= tokens:
            return Halt(f"the budget {whose} is used up: {used.tokens:,} of {tokens:,} tokens")
        if turns is not None and used.replies >= turns:
            return Halt(f"the budget {whose} is used up: {used.replies:,} of {turns:,} turns")
    if minutes is not None:
        start = prompt.time if prompt else await run_in_thread(first_time, event.stopping_transcript)
        if start is None:
            return Fault("the transcript does not say when it began")
        if context.now - start >= minutes * 60:
            passed = "1 minute has passed" if minutes == 1 else f"{minutes:,} minutes have passed"
            return Halt(f"the budget {whose} is used up: {passed}")
    return Allow()


BUDGET = Gate(
    name="budget",
    summary="(a limit: ends the turn when tokens, minutes or turns are used up)",
    check=check_budget,
    is_observer=True,
    needs_conversation=True,
    options=(
        GateOption("tokens", "number", "limit on tokens in all requests: sent, received and cached", "N"),
        GateOption("minutes", "number", "limit on minutes since the conversation began", "M"),
        GateOption("turns", "number", "limit on the replies of the model", "N"),
        GateOption("per-prompt", "flag", "count from the user's last message"),
    ),
)
