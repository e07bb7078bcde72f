"""`turngate run` without `-p`: open a session and a terminal, and hold the conversation."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack

from turngate.cli.commands.run.chat.chat import Chat
from turngate.cli.commands.run.chat.plain_ui import PlainUI
from turngate.cli.commands.run.session import OpenSession
from turngate.cli.console.signals import SIGNALS, run_loop
from turngate.cli.console.streams import report_stdout_error, stdout_error
from turngate.cli.console.ui import TerminalUI
from turngate.cli.main import EXIT_IO_ERROR
from turngate.errors import UsageError
from turngate.state.paths import state_folder


def run_interactive(open_session: OpenSession, first: str | None, output_format: str) -> int:
    if output_format != "text":
        raise UsageError(f"--output-format {output_format} needs -p; a conversation prints only text")
    # The handlers of the chat replace this one before it can be called.
    code = run_loop(_run_chat(open_session, first), lambda _: None)
    if error := stdout_error():
        report_stdout_error(f"turngate: answers could not be written to stdout ({error})")
        return code or EXIT_IO_ERROR
    return code


async def _run_chat(open_session: OpenSession, first: str | None) -> int:
    ui = _open_ui(os.path.join(state_folder(), "history"))
    chat: Chat
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        handlers = {
            "permit": lambda *call: chat.permit(*call),  # noqa: PLW0108 - the chat is made later
            "on_event": lambda event: chat.on_event(event),  # noqa: PLW0108
        }
        opening = asyncio.create_task(stack.enter_async_context(open_session(**handlers)))
        caught: list[int] = []

        def cancel(number: int) -> None:
            caught.append(number)
            opening.cancel()

        for number in SIGNALS:
            loop.add_signal_handler(number, cancel, number)
        await asyncio.wait({opening})
        if caught:
            return 128 + caught[0]
        opened = opening.result()
        chat = Chat(ui, opened.session, opened.review, opened.world)
        loop.add_signal_handler(signal.SIGINT, chat.on_ctrl_c)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            loop.add_signal_handler(number, chat.quit, 128 + number)
        listener = asyncio.create_task(ui.listen(chat))
        listener.add_done_callback(chat.on_listener_exit)
        try:
            code = await chat.run(first)
        finally:
            listener.cancel()
            await asyncio.wait({listener})
        if not listener.cancelled():
            listener.result()  # raises what the terminal raised
        return code


def _open_ui(history_path: str) -> TerminalUI:
    """Return a screen if stdin and stdout are a capable terminal, otherwise plain lines."""
    if not (os.isatty(0) and os.isatty(1)) or os.environ.get("TERM", "dumb") == "dumb":
        return PlainUI()
    try:
        from turngate.cli.commands.run.chat.screen_ui import ScreenUI  # noqa: PLC0415 # lazy: needs prompt_toolkit
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("prompt_toolkit", "wcwidth"):
            raise
        from turngate.extra_install import install_command  # noqa: PLC0415 # lazy: not needed where it is installed

        ui = PlainUI()
        ui.print(
            "! prompt_toolkit is not installed, so there is no history, no Escape key and no status line; "
            f"to install it: {install_command('agent')}"
        )
        return ui
    return ScreenUI(history_path)
