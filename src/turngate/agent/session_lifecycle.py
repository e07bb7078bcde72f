"""How a session begins and ends: it is taken, read, started, forgotten, closed."""

import asyncio
import os
from typing import Literal, Self

from turngate.agent.loop_context import TurnHalted
from turngate.agent.session_base import SessionBase
from turngate.agent.system_prompt import read_exports
from turngate.aio.cancellation import finish_despite_cancel
from turngate.aio.foreign import run_isolated
from turngate.aio.threads import run_in_thread
from turngate.core import events
from turngate.core.effects import added_context
from turngate.core.inbox import Inbox
from turngate.core.verdict import Stop
from turngate.errors import UsageError
from turngate.transcript.resume import StoredConversation, read_conversation
from turngate.transcript.writer import Transcript

Source = Literal["startup", "resume", "clear", "compact"]
GOODBYE = 5.0  # seconds for a model to close its connections


class SessionLifecycle(SessionBase):
    """An agent from its first moment to its last; its turns are `Session`'s."""

    async def open(self, source: Source | None = None) -> None:
        """Takes the session for this process, reads where it was left, and fires SessionStart."""
        async with self._opening:
            if self.written is None:
                await self._open(source)

    async def _open(self, source: Source | None) -> None:
        if self.role is None:  # a child's run has one owner by the register
            self.lock.take()
        try:
            past = await self._read_past()
            self.messages, self.keys = list(past.messages), set(past.keys)
            self._kept_continuations = past.continuations if self.role is None else 0
            self.written = Transcript(
                self.transcript_path, self.id, self.project, subagent=self.identity, parent=past.last
            )
            if self.role is None:
                if self.world.in_hook and self.hooks:
                    self.notice("this session was started from a hook, so it asks no hooks")
                for problem in (*self.settings.not_loaded, *self.family.problems):
                    self.notice(str(problem))
            await self.family.open(fresh=not past.messages)
            await self.begin(source or ("resume" if past.messages else "startup"))
        except BaseException:
            if self._task is None or self.written is None:  # inside a turn it stays open, and its end is told
                self._let_go()
            raise

    async def _read_past(self) -> StoredConversation:
        """A conversation can be long, but most begin with nothing."""
        if os.path.exists(self.transcript_path):  # noqa: ASYNC240 - as quick as a thread is started
            return await run_in_thread(read_conversation, self.transcript_path)
        return read_conversation(self.transcript_path)

    async def begin(self, source: Source) -> None:
        verdict = await self.fire(events.SessionStart(**self.common(), source=source, model=self.model.name))
        said = added_context(verdict.runs, plain=True)
        earlier = self.context if source == "compact" else []  # what was said at the start still holds
        self.context = [*earlier, said] if said and said not in earlier else list(earlier)
        exports = read_exports(os.path.join(self.folder, "env"), self.workplace.environ)
        self.workplace.environ.update(exports)
        if isinstance(verdict, Stop) and verdict.halted:
            self._halted = TurnHalted(verdict.stop_reason)
            if source == "compact" and self.in_turn:
                self._obey_the_start()

    def _obey_the_start(self) -> None:
        """A SessionStart hook said `continue: false`: the turn that began the session, or the next one, ends at once."""
        halted, self._halted = self._halted, None
        if halted is not None:
            raise halted

    def interrupt(self) -> None:
        """Ends the turn, whatever it is doing; nothing of it runs afterwards."""
        for task in (self._task, self._telling):
            if task is not None and not task.done():
                self.inbox.drop_continuations()
                task.cancel()

    async def reset(self) -> None:
        """Forgets the conversation; the next message starts a new one."""
        if self.running is not None:
            raise UsageError("this session is in the middle of a turn; `interrupt` ends it")
        await self.open()
        await self.family.end("session-reset")
        await self.family.forget()
        await self.fire(events.SessionEnd(**self.common(), reason="clear"))
        self.transcript.write_record({"type": "cleared"})  # first on disk: a full one forgets nothing
        self.messages, self.inbox, self._kept_continuations = [], Inbox(), 0
        await self.begin("clear")

    async def close(self, reason: Literal["clear", "prompt_input_exit", "other"] = "other") -> None:
        """Fires SessionEnd and lets go of the session; hooks in the background get their last seconds."""
        while self._over is not None and not self._over.done():
            self.interrupt()
            await asyncio.wait({self._over})
        if self.role is not None:
            self._let_go()
            if self.own_model:
                await self._close_model()
            return
        if self.written is None:
            await finish_despite_cancel(self._close_all())
            return
        try:
            if reason == "prompt_input_exit":
                await self.family.end("the user has left")
            await self.fire(events.SessionEnd(**self.common(), reason=reason))
        finally:
            try:
                ended = await self.world.close(self.settings.dialect.background_grace)
                if ended:
                    self.notice(f"background hooks killed because they were still running: {ended}")
            finally:
                await finish_despite_cancel(self._close_all())

    async def _close_all(self) -> None:
        await self.family.close()
        self._let_go()
        await self._close_model()
        await run_in_thread(self.journal.close)

    async def _close_model(self) -> None:
        try:
            async with asyncio.timeout(GOODBYE):
                if self.role is None:
                    await run_isolated(self.judges.close())
                await run_isolated(self.model.close())
        except Exception as error:  # noqa: BLE001 - foreign code, and the conversation is over
            self.notice(f"the model's connection could not be closed: {type(error).__name__}: {error}")

    def _let_go(self) -> None:
        if self.written is not None:
            self.written.close()
            self.written = None
        self.lock.release()

    async def __aenter__(self) -> Self:
        """The session is opened by its first message, so that the start can be interrupted as everything else."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await finish_despite_cancel(self.close())
