"""An editor without a person: one prompt to an agent behind the proxy, as `turngate run -p` runs the built-in agent."""

import asyncio
import json
from collections.abc import Collection

from turngate.acp import say
from turngate.acp.proxy import parse
from turngate.acp.session import Json


class HeadlessEditor:
    """The proxy reads from `reader`, and writes here."""

    def __init__(self, cwd: str, prompt: str, allowed: Collection[str]) -> None:
        """`allowed`: the kinds of tools that are permitted."""
        self.reader = asyncio.StreamReader()
        self.answer = ""  # the last text of the agent
        self.response: Json = {}  # to the prompt, or to a request before it that has failed
        self._is_ended = False  # the next text is another one
        self._cwd, self._prompt, self._allowed = cwd, prompt, allowed
        self._request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    def write(self, lines: bytes) -> None:
        for message in map(parse, lines.splitlines()):
            match message:
                case {"method": "session/update", "params": {"update": update}}:
                    self._update(update)
                case {"method": method, "id": identity}:
                    self._send({"id": identity, **self._reply(method, message.get("params", {}))})
                case {"id": "initialize", "result": _}:
                    self._request("session/new", {"cwd": self._cwd, "mcpServers": []})
                case {"id": "session/new", "result": {"sessionId": session}}:
                    prompt = [{"type": "text", "text": self._prompt}]
                    self._request("session/prompt", {"sessionId": session, "prompt": prompt})
                case {"id": _}:
                    self.response = message
                    self.reader.feed_eof()
                case _:
                    pass

    async def drain(self) -> None:
        """There is nothing to wait for."""

    def _request(self, method: str, params: Json) -> None:
        self._send({"id": method, "method": method, "params": params})

    def _send(self, message: Json) -> None:
        if not self.response:
            self.reader.feed_data(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _update(self, update: Json) -> None:
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            before = "" if self._is_ended else self.answer
            self.answer, self._is_ended = before + str(update["content"].get("text", "")), False
        elif kind in ("tool_call", "tool_call_update"):
            self._is_ended = True
            if str(update.get("toolCallId")).startswith("turngate:") and update["status"] != "in_progress":
                texts = (each["content"]["text"] for each in update["content"])
                say(": ".join((update["title"].removeprefix("Turngate: "), *texts)))

    def _reply(self, method: str, params: Json) -> Json:
        """Permit a tool once if its kind is allowed; a request for anything else is an error."""
        if method != "session/request_permission":
            return {"error": {"code": -32601, "message": f"{method} is not supported here"}}
        call = params.get("toolCall", {})
        kind = call.get("kind") or "other"
        wanted = "allow_once" if {kind, "all"} & {*self._allowed} else "reject_once"
        if wanted == "reject_once":
            say(f"not permitted: {call.get('title', 'a tool')}; `--allow {kind}` permits it")
        options = [each["optionId"] for each in params["options"] if each.get("kind") == wanted]
        chosen = {"outcome": "selected", "optionId": options[0]} if options else {"outcome": "cancelled"}
        return {"result": {"outcome": chosen}}
