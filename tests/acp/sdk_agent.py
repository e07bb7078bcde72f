"""An agent written with the Python SDK of the protocol: the text of a prompt names what it does, one word a step."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import acp
from acp.schema import (
    AgentCapabilities,
    ForkSessionResponse,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ResumeSessionResponse,
    ToolCallUpdate,
)


class ScriptedAgent:
    def __init__(self) -> None:
        self.client: Any = None
        self.folders: dict[str, Path] = {}
        self.cancelled: dict[str, asyncio.Event] = {}

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=protocol_version, agent_capabilities=AgentCapabilities(load_session=True)
        )

    def _open(self, session: str, cwd: str) -> str:
        self.folders[session], self.cancelled[session] = Path(cwd), asyncio.Event()
        return session

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=self._open(f"sdk-{len(self.folders)}", cwd))

    async def fork_session(self, cwd: str, **_: Any) -> ForkSessionResponse:
        return ForkSessionResponse(session_id=self._open(f"sdk-{len(self.folders)}", cwd))

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        self._open(session_id, cwd)
        await self.client.session_update(session_id, acp.update_user_message_text("an earlier task"))
        return LoadSessionResponse()

    async def resume_session(self, session_id: str, cwd: str, **_: Any) -> ResumeSessionResponse:
        self._open(session_id, cwd)
        return ResumeSessionResponse()

    async def set_session_mode(self, **_: Any) -> None:
        return None

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled[session_id].set()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"method": method, **params}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        await self.client.ext_notification(method, params)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        self.cancelled[session_id].clear()
        text = prompt[0].text
        said = []
        for word in text.split() if text.startswith("do: ") else ["do:", "write"]:
            match word:
                case "do:":
                    pass
                case "permission":
                    said.append(await self._permission(session_id))
                case "fs":
                    await self.client.write_text_file(session_id=session_id, path="/note", content="text")
                    said.append(
                        (await self.client.read_text_file(session_id=session_id, path="/note")).content
                    )
                case "terminal":
                    said.append(await self._terminal(session_id))
                case "extension":
                    said.append(str(await self.client.ext_method("x.dev/ask", {"n": 1})))
                case "write":
                    await self.client.write_text_file(
                        session_id=session_id, path=str(self.folders[session_id] / "done.txt"), content="x"
                    )
                case "wait":
                    await self.client.session_update(session_id, acp.update_agent_message_text("waiting"))
                    await self.cancelled[session_id].wait()
                    return PromptResponse(stop_reason="cancelled")
                case _:
                    return PromptResponse(stop_reason=word)  # type: ignore[arg-type]
        await self.client.session_update(
            session_id, acp.update_agent_message_text(" ".join(["Done.", *said]))
        )
        return PromptResponse(stop_reason="end_turn")

    async def _permission(self, session_id: str) -> str:
        options = [PermissionOption(option_id="yes", name="Yes", kind="allow_once")]
        call = ToolCallUpdate(tool_call_id="1", title="edit", kind="edit")
        answer = await self.client.request_permission(session_id=session_id, tool_call=call, options=options)
        return str(answer.outcome.option_id)

    async def _terminal(self, session_id: str) -> str:
        terminal = await self.client.create_terminal(session_id=session_id, command="echo", args=["hi"])
        ended = await self.client.wait_for_terminal_exit(
            session_id=session_id, terminal_id=terminal.terminal_id
        )
        output = await self.client.terminal_output(session_id=session_id, terminal_id=terminal.terminal_id)
        await self.client.release_terminal(session_id=session_id, terminal_id=terminal.terminal_id)
        return f"{output.output}{ended.exit_code}"


if __name__ == "__main__":
    sys.exit(asyncio.run(acp.run_agent(ScriptedAgent(), use_unstable_protocol=True)))  # type: ignore[arg-type]
