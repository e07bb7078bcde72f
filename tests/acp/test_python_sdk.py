"""`turngate acp` between an editor and an agent that are written with the Python SDK of the protocol."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)

from tests.support.builders import stop_hooks, write_settings

AGENT = str(Path(__file__).with_name("sdk_agent.py"))
BLOCKS = "echo not yet >&2; exit 2"
NEEDS_WORK = "test -e done.txt || { echo not yet >&2; exit 2; }"


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_TRUST", "1")


class ScriptedClient:
    """An editor that allows everything and keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.titles: list[str] = []
        self.files: dict[str, str] = {}
        self.notifications: list[tuple[str, Any]] = []
        self.waiting = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.texts.append(update.content.text)
            self.waiting.set()
        elif update.session_update in ("tool_call", "tool_call_update"):
            self.titles.append(update.title)

    async def request_permission(self, **_: Any) -> RequestPermissionResponse:
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="yes"))

    async def write_text_file(self, path: str, content: str, **_: Any) -> None:
        self.files[path] = content
        if path.endswith("done.txt"):
            Path(path).write_text(content)  # noqa: ASYNC240

    async def read_text_file(self, path: str, **_: Any) -> ReadTextFileResponse:
        return ReadTextFileResponse(content=self.files[path])

    async def create_terminal(self, **_: Any) -> CreateTerminalResponse:
        return CreateTerminalResponse(terminal_id="t")

    async def wait_for_terminal_exit(self, **_: Any) -> WaitForTerminalExitResponse:
        return WaitForTerminalExitResponse(exit_code=0)

    async def terminal_output(self, **_: Any) -> TerminalOutputResponse:
        return TerminalOutputResponse(output="hi", truncated=False)

    async def release_terminal(self, **_: Any) -> None:
        return None

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"asked": method, **params}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.notifications.append((method, params))


def run(work: Callable[[Any, ScriptedClient], Awaitable[None]]) -> ScriptedClient:
    """Connect an editor to the agent behind the proxy, and let it work."""

    async def connect() -> ScriptedClient:
        client = ScriptedClient()
        words = ("-m", "turngate", "acp", "--", sys.executable, AGENT)
        async with acp.spawn_agent_process(
            client,  # type: ignore[arg-type]
            sys.executable,
            *words,
            env=dict(os.environ),
            use_unstable_protocol=True,
        ) as (connection, _):
            await connection.initialize(protocol_version=1, client_capabilities=ClientCapabilities())
            await work(connection, client)
        return client

    return asyncio.run(connect())


async def ask(connection: Any, session: str, text: str) -> Any:
    return await connection.prompt(session_id=session, prompt=[acp.text_block(text)])


def test_permissions_files_terminals_and_extensions_pass_through(project: Path) -> None:
    async def work(connection: Any, client: ScriptedClient) -> None:
        session = (await connection.new_session(cwd=str(project), mcp_servers=[])).session_id
        answer = await ask(connection, session, "do: permission fs terminal extension")
        assert (answer.stop_reason, answer.field_meta) == ("end_turn", None)
        assert await connection.ext_method("x.dev/hello", {"a": 1}) == {"method": "x.dev/hello", "a": 1}
        await connection.ext_notification("x.dev/note", {"b": 2})
        with pytest.raises(RequestError, match="Method not found"):
            await connection._conn.send_request("unknown/method", {})

    client = run(work)
    assert client.texts == ["Done. yes text hi0 {'asked': 'x.dev/ask', 'n': 1}"]
    assert client.notifications == [("x.dev/note", {"b": 2})]


def test_a_block_sends_the_agent_back_in_the_same_prompt(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NEEDS_WORK))

    async def work(connection: Any, client: ScriptedClient) -> None:
        session = (await connection.new_session(cwd=str(project), mcp_servers=[])).session_id
        answer = await ask(connection, session, "do: permission")
        assert answer.stop_reason == "end_turn"
        assert answer.field_meta["turngate"]["continuations"] == 1

    client = run(work)
    assert client.texts == ["Done. yes", "Done."]
    assert [title for title in client.titles if "may the agent" not in title] == [
        "Turngate: blocked (1)",
        "Turngate: passed",
    ]


@pytest.mark.parametrize("method", ["load_session", "resume_session", "fork_session"])
def test_sessions_of_every_origin_are_asked(method: str, project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))

    async def work(connection: Any, client: ScriptedClient) -> None:
        await connection.new_session(cwd="/", mcp_servers=[])
        opened = await getattr(connection, method)(cwd=str(project), session_id="sdk-0", mcp_servers=[])
        answer = await ask(connection, getattr(opened, "session_id", "sdk-0"), "do: permission")
        assert answer.field_meta["turngate"]["outcome"] == "stalled"

    run(work)


def test_a_refusal_is_passed_on_without_a_question(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))

    async def work(connection: Any, client: ScriptedClient) -> None:
        session = (await connection.new_session(cwd=str(project), mcp_servers=[])).session_id
        answer = await ask(connection, session, "do: refusal")
        assert (answer.stop_reason, answer.field_meta) == ("refusal", None)

    run(work)


@pytest.mark.parametrize("phase", ["agent", "gate"])
def test_a_cancellation_ends_the_turn_in_every_phase(phase: str, project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("touch started; sleep 86397"))

    async def work(connection: Any, client: ScriptedClient) -> None:
        session = (await connection.new_session(cwd=str(project), mcp_servers=[])).session_id
        prompt = asyncio.create_task(ask(connection, session, "do: wait" if phase == "agent" else "do:"))
        if phase == "agent":
            await client.waiting.wait()
        while phase == "gate" and not os.path.exists(project / "started"):  # noqa: ASYNC240
            await asyncio.sleep(0.01)
        await connection.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"

    run(work)


def test_two_sessions_of_one_connection_have_their_own_gates(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))

    async def work(connection: Any, client: ScriptedClient) -> None:
        opened = [await connection.new_session(cwd=str(at), mcp_servers=[]) for at in (project, tmp_path)]
        answers = await asyncio.gather(*(ask(connection, each.session_id, "do:") for each in opened))
        assert [answer.field_meta is None for answer in answers] == [False, True]

    run(work)
