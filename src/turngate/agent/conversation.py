"""The conversation of one agent: messages in memory, the transcript on disk, and the keys that were delivered."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turngate.aio.threads import SerialThread, run_in_thread
from turngate.core.conversation.checkpoints import Waiting, WaitingAgent, Workflow, update_waiting
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.messages import Message, Reply, ToolResult, ToolResults, ToolUse, UserMessage
from turngate.core.events.stream_events import MissedGates
from turngate.errors import UsageError
from turngate.transcript.resume import StoredConversation, read_conversation
from turngate.transcript.writer import Transcript

APPROVAL = "approved:"  # begins the keys of messages that approve the checkpoint of a subagent


class Conversation:
    """What the model sees is written to the transcript before the model sees it.

    `question` is what the agent has asked and the user has not answered, also in an earlier process; `checkpoint` is what
    a workflow or a hook waits for. While one is open, nothing but the user's answer is appended as a prompt, so that
    nothing can be mistaken for the answer. Each message of the user is written with the stages of the `workflow` that
    are left and the subagents that wait, so that the last one, and what follows it, is enough to continue.
    """

    def __init__(
        self,
        path: str,
        session_id: str,
        project: str,
        *,
        subagent: Mapping[str, str] | None = None,
        machine: str = "",
    ) -> None:
        self.path = path
        self.messages: list[Message] = []
        self.question: str | None = None
        self.checkpoint: str | None = None
        # The checkpoint is one of a hook, in front of those of the workflow and of subagents.
        self.hook_waits = False
        self.workflow: Workflow | None = None  # of a command that has a checkpoint ahead
        self.waiting: Waiting = ()  # the subagents that the user has to approve
        self.compact_again_at = 0  # messages; below this length no further automatic compaction is tried
        self.session_id, self._project, self._subagent = session_id, project, subagent
        self._machine = machine
        self.on_result_delivered: Callable[[str], None] = lambda _: None
        self._transcript: Transcript | None = None
        self._sync_thread = SerialThread()
        self._delivered: set[str] = set()
        self._kept_missed: list[MissedGates] = []  # of this turn
        self.tool_results: list[ToolResult] = []  # of the reply whose tools are running

    async def open(self) -> StoredConversation:
        """Read what an earlier process wrote, and return it."""
        if os.path.exists(self.path):  # noqa: ASYNC240 - as fast as starting a thread
            stored = await run_in_thread(read_conversation, self.path)
        else:
            stored = read_conversation(self.path)
        self.messages, self._delivered = list(stored.messages), set(stored.keys)
        self.question, self.workflow, self.waiting = stored.question, stored.workflow, stored.waiting
        self.checkpoint, self.hook_waits = stored.checkpoint, stored.hook_waits
        self.create(parent=stored.last)
        return stored

    def create(self, *, parent: str | None = None) -> None:
        """Open the transcript without reading it; `parent` is the id of its last message."""
        place = self.path, self.session_id, self._project
        self._transcript = Transcript(*place, subagent=self._subagent, parent=parent, machine=self._machine)

    @property
    def is_open(self) -> bool:
        return self._transcript is not None

    @property
    def transcript(self) -> Transcript:
        if self._transcript is None:
            raise UsageError("this session is not open; its first message, or `open`, opens it")
        return self._transcript

    @property
    def waits_for_user(self) -> bool:
        return self.question is not None or self.checkpoint is not None

    @property
    def last_reply(self) -> Reply | None:
        return next((message for message in reversed(self.messages) if isinstance(message, Reply)), None)

    # Messages

    def append(self, message: Message, **meta: Any) -> None:
        if isinstance(message, UserMessage) and message.origin == "user":
            meta |= {"workflow": self.workflow.as_record()} if self.workflow is not None else {}
            meta |= {"waiting": [vars(each) for each in self.waiting]} if self.waiting else {}
        self.transcript.write_message(message, **meta)
        self.messages.append(message)

    def append_prompt(self, text: str, workflow: Workflow | None, waiting: Waiting = (), **meta: Any) -> None:
        """Append a message of the user, which answers what is open. If the disk is full, it stays open."""
        earlier = self.workflow, self.waiting
        # The last stage of a workflow is like any other message: there is no checkpoint ahead.
        self.workflow = workflow if workflow is not None and workflow.checkpoint is not None else None
        self.waiting = waiting
        try:
            self.append(UserMessage(text), **meta)
        except OSError:
            self.workflow, self.waiting = earlier
            raise
        self.question = self.checkpoint = None
        if isinstance(meta.get("key"), str):
            self._delivered.add(meta["key"])

    def approval_key(self) -> str:
        """Return the key of a message with which the user approves the checkpoints of the waiting subagents."""
        approved = (each for each in self.waiting if each.stage is not None)
        return APPROVAL + ",".join(f"{each.agent_id}@{each.stage}" for each in approved)

    def count_approvals(self, agent_id: str) -> int:
        """Return how many checkpoints of a subagent the user has approved. One that is approved twice counts once."""
        keys = (key.removeprefix(APPROVAL) for key in self._delivered if key.startswith(APPROVAL))
        approved = {each for key in keys for each in key.split(",")}
        return sum(each.rpartition("@")[0] == agent_id for each in approved)

    def append_once(self, entry: InboxEntry) -> None:
        """Append a message with a key, unless that key was delivered before."""
        if entry.key not in self._delivered:
            mark = {"stopHookActive": True} if entry.origin == "stop_hook" else {}
            waiting, meta = self._after_result(entry.waiting)
            self.append(UserMessage(entry.text, entry.origin), key=entry.key, **mark, **meta)
            self._delivered.add(entry.key)
            self.waiting = waiting

    def has_delivered(self, key: str) -> bool:
        return key in self._delivered

    def restart(self, *entries: tuple[Message, Mapping[str, Any]]) -> None:
        """Replace all messages by these. If the disk is full, the messages in memory stay as they were."""
        earlier, self.messages = self.messages, []
        try:
            for message, meta in entries:
                self.append(message, **meta)
        except OSError:
            self.messages = earlier
            raise

    def clear(self) -> None:
        self.transcript.write_record({"type": "cleared"})  # the disk first: a full one must not lose messages
        self.messages, self._kept_missed = [], []
        self.question = self.checkpoint = self.workflow = None
        self.waiting = ()

    # Results of tools

    def add_tool_result(
        self,
        result: ToolResult,
        key: str = "",
        *,
        question: str | None = None,
        waiting: WaitingAgent | None = None,
    ) -> None:
        """Write one result at once. One with a key is a subagent's: it is on disk before its run is marked as announced, so that it comes once."""
        after, meta = self._after_result(waiting)
        meta |= {"key": key} if key else {"question": question} if question is not None else {}
        self.transcript.write_message(ToolResults((result,)), **meta)
        self.waiting = after
        self.question = question if question is not None else self.question
        self.tool_results.append(result)
        if key:
            self._delivered.add(key)
            self.transcript.sync()
            self.on_result_delivered(key)

    def _after_result(self, agent: WaitingAgent | None) -> tuple[Waiting, dict[str, Any]]:
        """Return the subagents that wait after the result of one of them, and what its record says about it."""
        waiting = self.waiting if agent is None else update_waiting(self.waiting, [agent])
        return waiting, {} if agent is None or waiting == self.waiting else {"waiting": [vars(agent)]}

    def finish_tool_results(self, uses: Sequence[ToolUse]) -> None:
        """Give the model the results of all tools of a reply as one message, in the order of the calls."""
        results = {result.tool_use_id: result for result in self.tool_results}
        self.messages.append(ToolResults(tuple(results[use.id] for use in uses)))

    def keep_missed(self, missed: MissedGates) -> None:
        """Write what the turn has missed, each once; it counts until the end of the turn is written."""
        if self._transcript is not None and missed not in self._kept_missed:
            self._kept_missed.append(missed)
            with contextlib.suppress(OSError):  # the next message reports a full disk
                self._transcript.write_record(missed.as_record())

    def end_turn(self, ended_by: str, reason: str | None) -> None:
        self._fill_missing_results(f"no result: the turn ended ({ended_by}) before this call finished")
        end: dict[str, Any] = {"type": "turn_end", "ended_by": ended_by, "notice": reason}
        if self.checkpoint is not None:
            end |= {"checkpoint": self.checkpoint, "hook_waits": self.hook_waits}
        self.transcript.write_record(end)
        self._kept_missed = []

    def _fill_missing_results(self, text: str) -> None:
        """Give every open tool call an error result, because providers reject a call without one."""
        last = self.messages[-1] if self.messages else None
        if not isinstance(last, Reply) or not last.tool_uses:
            return
        finished = {result.tool_use_id for result in self.tool_results}
        unfinished = [use.id for use in last.tool_uses if use.id not in finished]
        missing = [ToolResult(identity, text, is_error=True) for identity in unfinished]
        self.tool_results.extend(missing)
        self.finish_tool_results(last.tool_uses)  # memory first: a full disk must leave no gap there
        for result in missing:
            self.transcript.write_message(ToolResults((result,)))

    # The file

    def sync(self) -> None:
        """Wait until everything written so far is on disk."""
        if self._transcript is not None:
            self._transcript.sync()

    async def sync_in_thread(self) -> None:
        await self._sync_thread.call(self.sync)

    def take_notice(self) -> str | None:
        """Return what the user should know about the file since the last call."""
        if self._transcript is None or not self._transcript.restored:
            return None
        self._transcript.restored = 0
        lost = "the transcript was deleted or replaced while the session used it"
        return f"{lost}; it continues in {self.path}"

    def close(self) -> None:
        if self._transcript is not None:
            self._transcript.close()
            self._transcript = None
            self._sync_thread.close()
