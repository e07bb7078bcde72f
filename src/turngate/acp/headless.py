"""An editor without a person: one prompt to an agent behind the proxy, as `turngate run -p` runs the built-in agent."""

import asyncio
import json
from collections.abc import Callable, Collection
from typing import Any

from turngate.acp.proxy import PROTOCOL_VERSION, say

Json = dict[str, Any]
METHOD_NOT_FOUND = -32601  # of JSON-RPC


class HeadlessEditor:
    """`allowed`: the kinds of tools that need no permission; `reader` is what it sends to the proxy."""

    def __init__(self, cwd: str, prompt: str, allowed: Collection[str]) -> None:
        self.reader = asyncio.StreamReader()
        self._prompt, self._allowed = prompt, allowed
        self._texts: list[str] = []
        self._is_ended = False  # the next text is another one
        self.result: Json = {}  # of the prompt
        self.error: str | None = None
        files = {"readTextFile": False, "writeTextFile": False}
        self._steps: list[Callable[[Json], tuple[str, Json]]] = [
            lambda _: (
                "initialize",
                {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": {"fs": files}},
            ),
            lambda _: ("session/new", {"cwd": cwd, "mcpServers": []}),
            lambda result: ("session/prompt", {"sessionId": result["sessionId"], "prompt": [_text(prompt)]}),
        ]
        self._next({})

    @property
    def answer(self) -> str:
        """The last text of the agent."""
        return "".join(self._texts)

    # As a writer of the proxy

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = json.loads(line)
            if "method" not in message:
                self._next(message)
            elif message["method"] == "session/update":
                self._update(message["params"]["update"])
            elif "id" in message:
                self._send({"id": message["id"], **self._reply(message)})

    async def drain(self) -> None:
        """There is nothing to wait for."""

    def _next(self, message: Json) -> None:
        """Take the answer to the last request, and send the next one."""
        if "error" in message:
            error = message["error"]
            self.error = str(error.get("message") if isinstance(error, dict) else error)
        self.result = message.get("result") or {}
        if self._steps and self.error is None:
            method, params = self._steps.pop(0)(self.result)
            self._send({"id": method, "method": method, "params": params})
        else:
            self.reader.feed_eof()

    def _send(self, message: Json) -> None:
        self.reader.feed_data(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _update(self, update: Json) -> None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._texts = [] if self._is_ended else self._texts
                self._is_ended = False
                self._texts.append(str(update.get("content", {}).get("text", "")))
            case "tool_call" | "tool_call_update" if str(update.get("toolCallId")).startswith("turngate:"):
                texts = [each["content"]["text"] for each in update.get("content", ())]
                say(": ".join([update["title"].removeprefix("Turngate: "), *texts]))
                self._is_ended = True
            case "tool_call":
                self._is_ended = True
            case _:
                pass

    def _reply(self, request: Json) -> Json:
        """Allow a tool once if its kind is allowed; an agent that asks for anything else gets an error."""
        if request["method"] != "session/request_permission":
            return {
                "error": {"code": METHOD_NOT_FOUND, "message": f"{request['method']} is not supported here"}
            }
        params = request["params"]
        kind = params.get("toolCall", {}).get("kind", "other")
        wanted = "allow_once" if kind in self._allowed or "all" in self._allowed else "reject_once"
        if wanted == "reject_once":
            say(
                f"not permitted: {params.get('toolCall', {}).get('title', 'a tool')}; `--allow {kind}` permits it"
            )
        found = (option["optionId"] for option in params["options"] if option.get("kind") == wanted)
        option = next(found, None)
        chosen = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
        return {"result": {"outcome": chosen}}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}
