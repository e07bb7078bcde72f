"""`/hooks`: a menu in which a person reads, approves and rejects hooks."""

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable

from turngate.agent.session import Session
from turngate.aio.threads import run_in_thread
from turngate.check.lint import lint
from turngate.cli.console.ui import Activity, Menu, MenuKey, TerminalUI, call_if_slow
from turngate.cli.review import approve_shown, check_can_reject, check_person, is_same
from turngate.cli.review.details import HookChanges, format_details
from turngate.cli.review.entries import (
    NO_HOOKS,
    HookEntry,
    Line,
    format_entries,
    format_text,
    format_trust,
    format_vanished,
    read_entries,
    shown_key,
    trust_style,
    vanished_hooks,
)
from turngate.core.hooks.selection import switched_off_by
from turngate.core.text import quote_name
from turngate.core.verdict.hints import with_location
from turngate.errors import UsageError
from turngate.ports import World, on_machine
from turngate.project.files import MachineUnreachable
from turngate.state.paths import state_folder
from turngate.trust.review import Review, ReviewedHook

KEYS = "Up, Down: select · Enter: show · y: approve · n: reject · q: leave"
WORDS = "NUMBER: show · y NUMBER: approve · n NUMBER: reject · q: leave"
ACCEPTED = "this conversation was started with --trust, so its hooks run as they were at its start, even if they are pending"
_LINE = re.compile(r"(?:([yn])\s*)?(\d+)", re.IGNORECASE)

_WORD_KEYS: dict[str, MenuKey] = {"": "enter", "y": "y", "n": "n"}


class HooksMenu:
    """One menu at a time. A decision counts in the session from its next event on."""

    def __init__(self, ui: TerminalUI, review: Callable[[], Review], session: Session, world: World) -> None:
        """`review` is called in a thread; `world` is where the project is."""
        self._ui, self._review_again, self._session, self._world = ui, review, session, world
        self._project, self._state = session.project, state_folder()
        # While the menu is open: what was typed, and the row that it names.
        self._keys: asyncio.Queue[tuple[MenuKey, int | None]] | None = None
        self._is_shown = False
        self._is_left = False  # from then on, what is typed belongs to the conversation
        self._review: Review  # what `_read` has read
        self._entries: list[HookEntry] = []
        self._selected = 0
        self._shown: dict[str, ReviewedHook] = {}  # what the user has seen of each hook

    @property
    def is_open(self) -> bool:
        return self._keys is not None and not self._is_left

    @property
    def is_shown(self) -> bool:
        """Whether the menu is open and its rows have been read."""
        return self.is_open and self._is_shown

    def pending_notice(self) -> str | None:
        """Return a line about the hooks of the session that wait for a decision."""
        settings = self._session.settings
        waiting = [
            rule for rule in settings.rules if rule.pending and not rule.rejected and rule.hook.enabled
        ]
        count = sum(not switched_off_by(rule, settings) for rule in waiting)
        if not count or not self._session.hooks_enabled:
            return None
        do = "1 hook is pending and does" if count == 1 else f"{count} hooks are pending and do"
        return f"! {do} not run; review and approve with /hooks"

    async def run(self) -> None:
        """Show the menu until the user leaves it; without a person at a terminal, print a list."""
        if not self._ui.is_interactive:
            await self.print_list()
            return
        self._print_problems()
        self._keys, self._is_shown, self._is_left = asyncio.Queue(), False, False
        self._shown.clear()
        try:
            await self._read()
            self._print_notes()
            while self._entries and not self._is_left:
                self._ui.show_menu(self._menu())
                self._is_shown = True
                key, row = await self._keys.get()
                if key != "q":
                    self._selected = self._selected if row is None else min(row, len(self._entries) - 1)
                    await self._handle(key)
        except (UsageError, MachineUnreachable) as error:  # the settings can no longer be read
            self._ui.print(f"! {error}", "notice")
        finally:
            self.close()
            self._keys = None

    async def print_list(self) -> None:
        """Print all hooks, also while the agent works."""
        try:
            review = await run_in_thread(self._review_again)
            entries = await self._read_entries(review)
        except (UsageError, OSError, MachineUnreachable) as error:
            self._ui.print(f"! {error}", "notice")
            return
        self._print(format_entries(entries, review))
        self._print_problems()

    def _print_problems(self) -> None:
        settings = self._session.settings
        if not self._session.hooks_enabled:
            self._ui.print("no hooks run: this conversation was started with --no-hooks", "alert")
        found = lint(settings, self._project) if not self._world.machine else ()
        for problem in (*settings.problems, *found):
            hint = f" → {problem.hint}" if problem.hint else ""
            self._ui.print(f"! {problem}{hint}", "alert" if problem.severity == "error" else "notice")

    def on_key(self, key: MenuKey, row: int | None = None) -> None:
        if self._keys is None or self._is_left:
            return
        self._keys.put_nowait((key, row))
        if key == "q":
            self._is_left = True
            self._ui.show_menu(None)

    def on_message(self, text: str) -> None:
        """Handle a line, where there are no keys: `2`, `y 2`, `n 2` or `q`."""
        if text.strip().lower() in ("q", "quit"):
            self.close()
            return
        match = _LINE.fullmatch(text.strip())
        if match is None or not 0 < int(match[2]) <= len(self._entries):
            self._ui.print(f"expected: {WORDS}", "notice")
            self._ui.prompt()
            return
        self.on_key(_WORD_KEYS[(match[1] or "").lower()], int(match[2]) - 1)

    def close(self) -> None:
        self.on_key("q")

    # The menu

    async def _read(self) -> None:
        reading = Activity(f"reading the hooks{on_machine(self._world)}", time.monotonic())
        try:
            with call_if_slow(self._ui.set_activity, reading):
                self._review = await run_in_thread(self._review_again)
                self._entries = await self._read_entries(self._review)
        finally:
            self._ui.set_activity(None)
        self._selected = min(self._selected, max(0, len(self._entries) - 1))

    async def _read_entries(self, review: Review) -> list[HookEntry]:
        return await run_in_thread(read_entries, review, self._project, self._state, self._world.files)

    def _print_notes(self) -> None:
        """Print what no row of the menu shows."""
        if not self._entries:
            self._ui.print(NO_HOOKS)
        for approval in vanished_hooks(self._review):
            self._print(format_vanished(approval))
        running = [rule for rule in self._session.settings.rules if not rule.pending]
        pending = [entry.rule for entry in self._entries if entry.is_pending]
        if any(rule == each and rule.files == each.files for rule in running for each in pending):
            self._ui.print(ACCEPTED, "notice")

    def _menu(self) -> Menu:
        width = max(len(shown_key(entry.key)) for entry in self._entries)
        rows = []
        for entry in self._entries:
            about = f"{entry.rule.event}  {format_trust(entry.hook)}  {format_text(entry.rule)}"
            rows.append((f"{shown_key(entry.key):<{width}}  {about}", trust_style(entry.hook)))
        return Menu("Hooks", tuple(rows), self._selected, KEYS, WORDS)

    async def _handle(self, key: MenuKey) -> None:
        entry = self._entries[self._selected]
        try:
            match key:
                case "up" | "down":
                    step = 1 if key == "down" else -1
                    self._selected = (self._selected + step) % len(self._entries)
                case "y":
                    await self._approve(entry.hook)
                case "n":
                    await self._reject(entry.hook)
                case _:
                    await self._show(entry)
        except UsageError as error:
            self._ui.print(f"! {error}", "notice")
            await self._read()

    # One hook

    async def _show(self, entry: HookEntry) -> None:
        """Print what has changed if it is pending, otherwise all that is known of it."""
        if entry.is_pending or entry.hook.status == "rejected":
            changes = await self._world.with_files(
                lambda files: list(HookChanges(self._project, files).format(entry.hook))
            )
            self._print(changes)
            self._shown[entry.key] = entry.hook
            while self._keys and not self._keys.empty():
                self._keys.get_nowait()  # what was typed before it was shown is not an answer to it
        else:
            self._print(format_details(entry, self._review.settings))

    async def _approve(self, hook: ReviewedHook) -> None:
        name = quote_name(shown_key(hook.key))
        if hook.status in ("approved", "exempt"):
            self._ui.print(f"hook {name} runs already", "notice")
            return
        check_person(os.environ)
        seen = self._shown.get(hook.key)
        if seen is None or not is_same(seen, hook):
            await self._show(self._entries[self._selected])
            self._ui.print(f"y again approves hook {name} as it is shown above", "notice")
            return
        await run_in_thread(approve_shown, [hook], self._review_again)
        await self._changed()
        self._ui.print(f"hook {name} is approved and runs from its next event on", "good")

    async def _reject(self, hook: ReviewedHook) -> None:
        check_person(os.environ)
        check_can_reject([hook])
        await run_in_thread(self._review.reject, [hook])
        await self._changed()
        self._ui.print(f"hook {quote_name(shown_key(hook.key))} is rejected and does not run", "notice")

    async def _changed(self) -> None:
        await self._read()
        self._session.refresh_hooks(self._review.settings)

    def _print(self, lines: Iterable[Line]) -> None:
        for text, style in lines:
            self._ui.print(with_location(text, self._world.location), style)
