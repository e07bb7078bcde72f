"""`turngate run` without `-p`: a conversation at the terminal."""

import argparse
import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from importlib import import_module

from turngate.agent.session import Session
from turngate.cli.terminal.conversation import Conversation
from turngate.cli.terminal.face import Face
from turngate.cli.terminal.plain import Plain
from turngate.core.settings import Settings
from turngate.errors import SessionBusy, UsageError
from turngate.journal import state_folder
from turngate.plugins.found import load_plugins
from turngate.ports import Model


def talk(
    options: argparse.Namespace, project: str, settings: Settings, model: Model,
    session_id: str | None, prompt: str | None,
) -> int:  # fmt: skip
    if options.output_format != "text":
        raise UsageError(f"--output-format {options.output_format} needs -p; a conversation is for people")
    start = partial(
        Session, project, model, settings, session_id=session_id, permission_mode=options.permission_mode,
        allow=options.allow, limit=options.limit, max_turns=options.max_turns, hooks=not options.no_hooks,
        plugins=load_plugins(settings.plugins),
    )  # fmt: skip
    try:
        return asyncio.run(_talk(start, prompt))
    except SessionBusy as busy:
        raise UsageError(str(busy)) from None


async def _talk(start: Callable[..., Session], first: str | None) -> int:
    face = _face(state_folder())
    conversation = Conversation(face, start)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, conversation.ctrl_c)
    for number in (signal.SIGTERM, signal.SIGHUP):
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


def _face(state: str) -> Face:
    """A screen where there is one, else plain lines."""
    if not (os.isatty(0) and os.isatty(1)) or os.environ.get("TERM", "dumb") == "dumb":
        return Plain()
    try:
        module = import_module("turngate.cli.terminal.screen")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("prompt_toolkit", "wcwidth"):
            raise
        face = Plain()
        face.say(
            "! prompt_toolkit is not installed: no history, no Escape key, one line at a time; "
            "pip install 'turngate[agent]' brings it"
        )
        return face
    screen: Face = module.Screen(os.path.join(state, "history"))
    return screen
