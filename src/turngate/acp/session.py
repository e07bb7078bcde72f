"""A session: its transcript, as `turngate run` writes one, from what the agent tells the editor; and its gates."""

import contextlib
import json
import os
import re
import sys
import uuid
from asyncio import Task
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from turngate.acp import say
from turngate.aio.threads import run_in_thread
from turngate.core.conversation import messages
from turngate.errors import UsageError
from turngate.hosts.host import HostAnswer
from turngate.ports import HookRunContext
from turngate.shells.local import run_process
from turngate.transcript.host_records import as_list, as_mapping, script_of
from turngate.transcript.writer import Transcript

Json = dict[str, Any]
OwnLine = Callable[[str], str]  # why the agent's own hook line holds in a folder, or ""

# `-P`: a module in the current folder, which may be the project's, must not take the place of ours.
HOOK = (sys.executable, "-P", "-m", "turngate", "hook", "--host", "acp")
# The updates that are kept: what they are about. A chunk adds to its content, all others replace what they name.
_KINDS = re.compile("(agent_message|user_message|tool_call|plan)(?:_update|(?:_content)?_chunk)?")
MAX_ITEMS = 100  # a long turn is written in parts, or the loop would stand still at its end
_ENDED = ("completed", "failed")
_CHANGES = ("edit", "delete", "move")
_EXIT_CODES = ("exit_code", "exitCode", "exit")  # where agents are known to report it


class Session:
    """What the agent tells is written when a turn ends, or before; `path` is empty if not all of it could be."""

    start: Task[None]  # its gates are recorded: a prompt waits for it
    is_asked = True  # False: the agent's own hook line holds

    def __init__(self, path: str, identity: str, cwd: str, *, is_new: bool) -> None:
        self.path, self.id, self.cwd = path, identity, cwd
        self.last_text = ""  # of the agent, since its last tool call
        self._items: list[Json] = []  # messages, plans and calls as they are now
        self._has_prompt = False
        self._tokens = 0  # that are not written yet
        self._context = 0  # tokens in use at the last request
        if is_new:  # the file is of an earlier session, or the agent replays its messages
            with contextlib.suppress(OSError):
                os.unlink(path)

    async def record_gates(self, own_line: OwnLine, source: str) -> None:
        """Have `turngate hook` record the gates of the session, unless the agent's own hook line does."""
        if why := await run_in_thread(own_line, self.cwd):
            self.is_asked = False
            say(f"{why}, so the stops of session {self.id} are left to it")
        else:
            await self.ask("SessionStart", source=source)

    async def ask(self, name: str, **fields: Any) -> HostAnswer:
        """Return the answer of `turngate hook`, as for any other host. A cancellation ends it with its gates."""
        place = {"session_id": self.id, "cwd": self.cwd, "transcript_path": self.path}
        event = json.dumps({"hook_event_name": name, **place, **fields}).encode()
        try:
            live = HookRunContext()
            exited = await run_process(HOOK, cwd=os.getcwd(), env=os.environ, stdin=event, live=live)
            print(exited.stderr, end="", file=sys.stderr, flush=True)
            if not exited.code:
                return HostAnswer(**{"decision": "allow", **json.loads(exited.stdout or "{}")})
            why = f"exit code {exited.code}"
        except (OSError, ValueError, TypeError) as error:
            why = str(error)
        notice = f"this stop was not checked, because `turngate hook` failed: {why}"
        return HostAnswer(decision="allow", outcome="not enforced", notices=(notice,))

    # The transcript

    def add(self, update: Json) -> None:
        kind, used = str(update.get("sessionUpdate")), update.get("used")
        if kind == "usage_update" and type(used) is int and used != self._context:
            self._context = used
            self._tokens += used
        found = _KINDS.fullmatch(kind)
        if not found or (found[1] == "user_message" and self._has_prompt):  # the prompt is known
            return
        name = (found[1], update.get("toolCallId", update.get("messageId")))
        item = next((each for each in reversed(self._items) if each["name"] == name), None)
        if item is None or (kind.endswith("message_chunk") and item is not self._items[-1]):
            if len(self._items) >= MAX_ITEMS and not any(map(_is_open, self._items)):
                self._write()
            self._items.append(item := {"name": name, "content": []})
        if kind.endswith("_chunk"):
            item["content"].append(update["content"])
        else:
            item |= {key: each for key, each in update.items() if each not in (None, {}, [])}
            item["content"] = [*as_list(item["content"])]

    def add_prompt(self, text: str, origin: messages.Origin = "user") -> None:
        self._write(messages.UserMessage(text, origin))
        self.last_text, self._has_prompt = "", True

    def end_turn(self, outcome: Mapping[str, Any]) -> None:
        total = as_mapping(outcome.get("usage")).get("totalTokens")
        if not self._context and type(total) is int:  # it does not report each request
            self._tokens = total
        usage, self._tokens = messages.Usage(input_tokens=self._tokens), 0
        self._write(messages.Reply((), usage=usage) if usage.total else None)

    def _write(self, last: messages.Message | None = None) -> None:
        """Write what is kept, and then another message."""
        items, self._items = self._items, []
        for item in items:
            if item["name"][0] != "plan":
                self.last_text = "".join(_texts(item)) if item["name"][0] == "agent_message" else ""
        if not self.path:
            return
        try:
            with contextlib.closing(Transcript(self.path, self.id, self.cwd)) as transcript:
                written = [each for item in items for each in _messages(item)]
                for message in (*written, *([last] if last else [])):
                    transcript.write_message(message)
        except (OSError, UsageError, ValueError, TypeError, RecursionError) as error:
            say(f"the transcript of session {self.id} cannot be written: {error}")
            self.path = ""  # no gate may rely on a part of it


def _is_open(item: Json) -> bool:
    return item["name"][0] == "tool_call" and item.get("status") not in _ENDED


def _messages(item: Json) -> Iterator[messages.Message]:
    kind, identity = item["name"]
    match kind:
        case "user_message":
            yield messages.UserMessage("".join(_texts(item)))
        case "agent_message":
            yield messages.Reply((messages.Text("".join(_texts(item))),))
        case "plan":
            entries = as_mapping(item.get("plan", item)).get("entries")
            todos = [*map(as_mapping, as_list(entries))]
            yield messages.Reply((messages.ToolUse(uuid.uuid4().hex, "TodoWrite", {"todos": todos}),))
        case _:
            uses = (messages.ToolUse(str(identity), *use) for use in _tool_uses(item))
            yield messages.Reply(tuple(uses))
            if not _is_open(item):
                output = as_mapping(item.get("rawOutput"))
                text = "\n".join(_texts(item)) or str(output.get("output", item.get("rawOutput", "")))
                codes = {**as_mapping(output.get("metadata")), **output}
                code = next((codes[key] for key in _EXIT_CODES if key in codes), None)
                is_error = item["status"] == "failed" or code not in (None, 0)
                yield messages.ToolResults((messages.ToolResult(str(identity), text, is_error),))


def _texts(item: Json) -> Iterator[str]:
    """Yield the texts of a message, or of the content of a tool call, which is one level deeper."""
    for part in map(as_mapping, item["content"]):
        if text := as_mapping(part.get("content", part)).get("text"):
            yield str(text)


def _tool_uses(call: Json) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a call as one of the built-in agent: a command, an edit of each file, or a tool with its title."""
    kind, given, title = call.get("kind"), as_mapping(call.get("rawInput")), str(call.get("title", ""))
    if kind == "execute":
        command = given.get("command", given.get("cmd", title.strip("`")))
        yield "Bash", {"command": script_of(command) if isinstance(command, list) else command}
        return
    parts = [as_mapping(each) for key in ("content", "locations") for each in as_list(call.get(key))]
    diffs = (part.get("path") for part in parts if part.get("type") == "diff" or kind in _CHANGES)
    paths = dict.fromkeys(path for path in diffs if isinstance(path, str))
    yield from (("Edit", {"file_path": path}) for path in paths)
    if not paths:
        yield title or str(kind), given
