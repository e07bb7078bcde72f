import asyncio

from turngate import (
    Advise,
    Allow,
    Block,
    CallbackHook,
    Continue,
    Fault,
    Halt,
    LocalShell,
    Options,
    StopEvent,
    World,
    ask_hooks,
)

ANSWERS = {
    "passes": Allow("all tests pass"),
    "advises": Advise("Mention the open questions."),
    "blocks": Block("Two tests fail."),
    "halts": Halt("The budget is used up."),
    "fails": Fault("the database is not reachable"),  # as after an exception; it is logged too, on stderr
}


async def decide(name: str) -> str:
    settings = Options({"Stop": [CallbackHook(lambda _: ANSWERS[name], name=name)]}).settings()
    verdict = await ask_hooks(StopEvent(session_id="s-1"), settings, World(LocalShell(), "."))
    what = "continues" if isinstance(verdict, Continue) else "ends"
    return f"the hook {name}: {verdict.hook_outputs[0].outcome}, so the turn {what}"


for answer in ANSWERS:
    print(asyncio.run(decide(answer)))
