import asyncio

from turngate import (
    Plugin,
    Plugins,
    ScriptedModel,
    Session,
    Settings,
    SubagentEndedEvent,
    SubagentStoppingContext,
    SubagentStoppingEvent,
    SubagentStoppingResult,
)


class Report(Plugin):
    def subagent_ended(self, event: SubagentEndedEvent, _: SubagentStoppingContext) -> None:
        print(f"{event.label}: {event.outcome}, redirects: {event.steer_count}")


def numbers(event: SubagentStoppingEvent, _: SubagentStoppingContext) -> SubagentStoppingResult:
    if "passed" in (event.last_assistant_message or ""):
        return SubagentStoppingResult(allow=True)
    return SubagentStoppingResult(allow=False, prompt="Say how many tests passed.")


plugins = Plugins()
plugins.add(Report())
plugins.on("subagent_stopping", numbers)
task = {"tool": "Task", "input": {"description": "tests", "prompt": "Run the tests."}}
model = ScriptedModel({"main": [task, "Green."], "sub": ["Done.", "12 passed."]})


async def main() -> str:
    async with Session(".", model, Settings(), plugins=plugins) as session:
        return (await session.send("Are the tests green?")).result


print(asyncio.run(main()))
