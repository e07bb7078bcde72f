"""Ask the user whether a tool may be used."""

import asyncio
import time

from turngate.cli.console.format import Permission, format_request, format_tool, parse_permission
from turngate.cli.console.ui import TerminalUI
from turngate.core.conversation.messages import ToolUse


class PermissionDialog:
    """One question at a time; subagents may ask at the same time as the main agent."""

    def __init__(self, ui: TerminalUI) -> None:
        self._ui = ui
        self._lock = asyncio.Lock()
        self._answer: asyncio.Future[Permission] | None = None
        self._question = ""
        self.subject = ""  # the tool call that the question is about
        self.seconds = 0.0  # how long the last answer took

    @property
    def is_open(self) -> bool:
        return self._answer is not None

    async def ask(self, use: ToolUse, project: str) -> Permission:
        async with self._lock:
            return await self._ask(use, project)

    async def _ask(self, use: ToolUse, project: str) -> Permission:
        self._answer = asyncio.get_running_loop().create_future()
        self.subject, details = format_tool(use, project), format_request(use, project)
        if details != self.subject:
            self._ui.print(details, "notice")
        self._question = f"{self.subject} — allow? [y]es, [a]lways for this session, [n]o"
        self._ui.ask(self._question)
        start = time.monotonic()
        try:
            return await self._answer
        finally:
            self._answer = None
            self._ui.ask(None)
            self.seconds = time.monotonic() - start

    def on_message(self, text: str) -> None:
        permission = parse_permission(text)
        if permission is None:
            self._ui.print("answer y, a or n; your text is kept in the history", "notice")
            self._ui.ask(self._question)
        else:
            self._resolve(permission)

    def decline(self) -> None:
        self._resolve("no")

    def _resolve(self, permission: Permission) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_result(permission)
