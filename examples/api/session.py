import asyncio

from turngate import Block, CallbackHook, Options, ScriptedModel, Session, StopEvent, TurnResult, UsageError


def gate(event: StopEvent) -> Block | None:
    return None if "12 passed" in event.last_text else Block("Say how many tests passed.")


async def main() -> TurnResult:
    model = ScriptedModel({"main": ["Done.", "Done: 12 passed."]})  # or "anthropic:NAME"
    settings = Options({"Stop": [CallbackHook(gate)]}).settings()
    async with Session(".", model, settings, limit=3) as session:
        return await session.send("Run the tests.")


result = asyncio.run(main())
print(result.outcome, result.result, result.continuations)

try:
    Session("/no/such/folder", ScriptedModel({"main": []}))
except UsageError as error:
    print(error)
