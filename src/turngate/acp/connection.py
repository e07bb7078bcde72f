"""Starts an agent, connects it to an editor through the proxy, and ends it."""

import asyncio
import contextlib
import os
from collections.abc import Sequence

from turngate.acp.proxy import READ_BYTES, OwnLine, Proxy, Writer
from turngate.core.constants import IN_ACP
from turngate.errors import UsageError
from turngate.shells.process_tree import TERM, VARIABLE, add_marker, kill_tree, new_run_marker, signal_tree

EXIT_GRACE_S = 3.0  # of an agent whose stdin is closed
TERM_GRACE_S = 2.0
POLL_S = 0.05


async def connect(
    command: Sequence[str],
    editor: tuple[asyncio.StreamReader, Writer],
    state: str,
    host: str,
    own_line: OwnLine,
) -> int:
    """Run the agent until it ends, or until the editor has left; return its exit code. Raises UsageError.

    `host`: whose hooks the agent runs, or "".
    """
    marker, pipe = new_run_marker(), asyncio.subprocess.PIPE
    env = {**os.environ, VARIABLE: add_marker(os.environ, marker), IN_ACP: host}
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, env=env, limit=READ_BYTES, pipesize=READ_BYTES
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"the agent {command[0]} cannot be started: {why}") from None
    stdin, stdout = process.stdin, process.stdout
    assert stdin and stdout  # noqa: S101, PT018 # for mypy
    proxy = Proxy(editor[1], stdin, state, own_line)
    to_agent = asyncio.create_task(proxy.pump(editor[0], stdin, proxy.from_editor))
    to_editor = asyncio.create_task(proxy.pump(stdout, editor[1], proxy.from_agent))
    exited = asyncio.create_task(_wait_for_exit(process))
    tasks = {to_agent, to_editor, exited}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        stdin.close()  # if the editor has left, the agent ends now
        # A process that the agent has started may keep its stdout open; and an agent may take a moment to exit.
        await asyncio.wait({to_editor, exited}, timeout=EXIT_GRACE_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        code = process.returncode
        await proxy.close(
            "the agent does not answer" if code is None else f"the agent ended with exit code {code}"
        )
        if code is None:
            members = signal_tree(process.pid, marker, TERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(_wait_for_exit(process), TERM_GRACE_S)
            kill_tree(process.pid, marker, members)
            await _wait_for_exit(process)
    with contextlib.suppress(ConnectionError):
        await editor[1].drain()
    code = process.returncode or 0
    return 128 - code if code < 0 else code


async def _wait_for_exit(process: asyncio.subprocess.Process) -> None:
    """Return when the process has exited; its own `wait` can also wait for the end of its output."""
    while process.returncode is None:
        await asyncio.sleep(POLL_S)
