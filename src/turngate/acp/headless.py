"""An editor without a person: one prompt to an agent behind the proxy, as `turngate run -p` runs the built-in agent."""

import asyncio
import json
from collections.abc import Collection

from turngate.acp import say
from turngate.acp.proxy import parse
from turngate.acp.session_transcript import Json


class HeadlessEditor:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, allowed: Collection[str]
    ) -> None:
        """`allowed`: the kinds of tools that are permitted."""
        self.answer = ""  # the last text of the agent
        self._is_ended = False  # the next text is another one
        self._reader, self._writer, self._allowed = reader, writer, allowed

    async def prompt(self, cwd: str, text: str) -> Json:
        """Return the response to the prompt, or to a request before it that has failed; then leave."""
        response = await self._request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        if "result" in response:
            response = await self._request("session/new", {"cwd": cwd, "mcpServers": []})
        if "result" in response:
            prompt = [{"type": "text", "text": text}]
            params = {"sessionId": response["result"]["sessionId"], "prompt": prompt}
            response = await self._request("session/prompt", params)
        self._writer.close()
        return response

    async def _request(self, method: str, params: Json) -> Json:
        """Return the response to a request; until then, do what the agent requests, and show verdicts."""
        self._send({"id": method, "method": method, "params": params})
        async for line in self._reader:
            message = parse(line)
            if "method" not in message:
                return message
            if message["method"] == "session/update":
                self._update(message["params"]["update"])
            elif "id" in message:
                self._send({"id": message["id"], **self._reply(message["method"], message.get("params", {}))})
        return {}

    def _send(self, message: Json) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

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
        is_allowed = bool({kind, "all"} & {*self._allowed})
        if not is_allowed:
            say(f"not permitted: {call.get('title', 'a tool')}; `--allow {kind}` permits it")
        wanted = "allow_once" if is_allowed else "reject_once"
        options = [each["optionId"] for each in params["options"] if each.get("kind") == wanted]
        chosen = {"outcome": "selected", "optionId": options[0]} if options else {"outcome": "cancelled"}
        return {"result": {"outcome": chosen}}
