"""`turngate run` without `-p`: a conversation at the terminal."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module

from turngate.agent.session import Session
from turngate.cli.main import EXIT_IO_ERROR
from turngate.cli.streams import stdout_error
from turngate.cli.terminal.chat import Conversation
from turngate.cli.terminal.plain_ui import Plain
from turngate.cli.terminal.ui import TerminalUI
from turngate.errors import UsageError
from turngate.state.paths import state_folder


def talk(start: Callable[..., Session], first: str | None, form: str) -> int:
    if form != "text":
        raise UsageError(f"--output-format {form} needs -p; a conversation is for people")
    code = asyncio.run(_talk(start, first))
    lost = stdout_error()
    if lost is None:
        return code
    print(f"turngate: answers could not be written to stdout ({lost})", file=sys.stderr)
    return code or EXIT_IO_ERROR


async def _talk(start: Callable[..., Session], first: str | None) -> int:
    face = _face(state_folder())
    conversation = Conversation(face, start)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, conversation.ctrl_c)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        loop.add_signal_handler(number, conversation.leave, 128 + number)
    listening = asyncio.create_task(face.listen(conversation))
    listening.add_done_callback(conversation.deaf)
    try:
        code = await conversation.run(first)
    finally:
        listening.cancel()
        await asyncio.wait({listening})
    if not listening.cancelled():
        listening.result()  # raises what the terminal raised
    return code


def _face(state: str) -> TerminalUI:
    """A screen where there is one, else plain lines."""
    if not (os.isatty(0) and os.isatty(1)) or os.environ.get("TERM", "dumb") == "dumb":
        return Plain()
    try:
        module = import_module("turngate.cli.terminal.screen_ui")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("prompt_toolkit", "wcwidth"):
            raise
        face = Plain()
        face.say(
            "! prompt_toolkit is not installed: no history, no Escape key, one line at a time; "
            "pip install 'turngate[agent]' brings it"
        )
        return face
    screen: TerminalUI = module.Screen(os.path.join(state, "history"))
    return screen
