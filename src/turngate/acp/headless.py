"""An editor without a person: one prompt to an agent behind the proxy, as `turngate run -p` runs the built-in agent."""

import asyncio
import json
from collections.abc import Collection
from typing import Any

from turngate.acp import say
from turngate.acp.proxy import PROTOCOL_VERSION, parse

Json = dict[str, Any]


class HeadlessEditor:
    """A writer for the proxy; `reader` is what it sends. `allowed`: the kinds of tools that are permitted."""

    def __init__(self, cwd: str, prompt: str, allowed: Collection[str]) -> None:
        self.reader = asyncio.StreamReader()
        self.result: Json = {}  # of the last request: of the prompt, if there is no error
        self.error = ""
        self._texts: list[str] = []
        self._is_ended = False  # the next text is another one
        self._allowed = allowed
        self._requests: list[tuple[str, Json]] = [
            ("initialize", {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": {}}),
            ("session/new", {"cwd": cwd, "mcpServers": []}),
            ("session/prompt", {"prompt": [{"type": "text", "text": prompt}]}),
        ]
        self._next({})

    @property
    def answer(self) -> str:
        """The last text of the agent."""
        return "".join(self._texts)

    def write(self, data: bytes) -> None:
        for message in filter(None, parse(data.split(b"\n"))):
            if "method" not in message:
                self._next(message)
            elif message["method"] == "session/update":
                self._update(message["params"]["update"])
            elif "id" in message:
                self._send({"id": message["id"], **self._reply(message["method"], message.get("params", {}))})

    async def drain(self) -> None:
        """There is nothing to wait for."""

    def _next(self, answer: Json) -> None:
        """Take the answer to the last request, and send the next one."""
        self.result = answer.get("result") or {}
        if "error" in answer:
            self.error = str(answer["error"].get("message"))
        if self._requests and not self.error:
            method, params = self._requests.pop(0)
            session = {"sessionId": self.result["sessionId"]} if method == "session/prompt" else {}
            self._send({"id": method, "method": method, "params": {**params, **session}})
        else:
            self.reader.feed_eof()

    def _send(self, message: Json) -> None:
        self.reader.feed_data(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _update(self, update: Json) -> None:
        kind, title = update.get("sessionUpdate"), str(update.get("title", ""))
        if kind == "agent_message_chunk":
            self._texts = [] if self._is_ended else self._texts
            self._is_ended = False
            self._texts.append(str(update["content"].get("text", "")))
        elif kind in ("tool_call", "tool_call_update"):
            self._is_ended = True
            if str(update.get("toolCallId")).startswith("turngate:") and update["status"] != "in_progress":
                texts = (each["content"]["text"] for each in update["content"])
                say(": ".join((title.removeprefix("Turngate: "), *texts)))

    def _reply(self, method: str, params: Json) -> Json:
        """Permit a tool once if its kind is allowed; a request for anything else is an error."""
        if method != "session/request_permission":
            return {"error": {"code": -32601, "message": f"{method} is not supported here"}}
        call = params.get("toolCall", {})
        kind = call.get("kind") or "other"
        is_allowed = bool({kind, "all"} & {*self._allowed})
        if not is_allowed:
            say(f"not permitted: {call.get('title', 'a tool')}; `--allow {kind}` permits it")
        wanted = "allow_once" if is_allowed else "reject_once"
        options = [each["optionId"] for each in params["options"] if each.get("kind") == wanted]
        chosen = {"outcome": "selected", "optionId": options[0]} if options else {"outcome": "cancelled"}
        return {"result": {"outcome": chosen}}
