"""The observer `notify`: says how an agent's stop has ended, with a bell, a command or a webhook. It never holds the stop long."""

import asyncio
import json
import os
from collections.abc import Awaitable, Mapping
from contextlib import closing
from urllib.parse import urlsplit

from turngate.core.answers.report_types import Exited, TimedOut
from turngate.core.events.events import StopOutcome
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Decision
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.http.connection import UNLIMITED, HttpError

LIMIT_S = 5.0  # for each way
MAX_ERROR_CHARS = 200
_BELL = b"\a"
MESSAGES: Mapping[StopOutcome, str] = {
    "done": "has stopped.",
    "blocked": "is not done: a hook has sent it back.",
    "gave-up": "has given up: a hook still blocks.",
}


async def notify(context: GateContext) -> Decision:
    options = context.options
    if context.event.subagent is not None and not options["subagents"]:
        return Allow()
    if unknown := [each for each in options["on"] if each not in MESSAGES]:
        return Allow(f"--on does not know {unknown[0]}: it knows {', '.join(MESSAGES)}")
    if context.event.outcome not in (None, *options["on"]):
        return Allow()
    url = options["webhook"]
    if options["webhook-env"]:
        url = context.environ.get(options["webhook-env"])
    ways: list[Awaitable[str | None]] = []
    if options["bell"]:
        ways.append(_ring())
    if context.command is not None:
        ways.append(_within_limit(_run_command(context, context.command), "the command"))
    if url:
        ways.append(_within_limit(_post(context, url), "the webhook"))
    if not ways:
        if missing := options["webhook-env"]:
            return Allow(f"the variable {missing} is not set")
        return Allow("it does nothing: give --bell, --webhook or a command after --")
    problems = [problem for problem in await asyncio.gather(*ways) if problem]
    return Allow("; ".join(problems) or None)


def message_of(context: GateContext) -> str:
    if context.options["message"]:
        return str(context.options["message"])
    subagent = context.event.subagent
    who = "The agent" if subagent is None else f"The subagent {subagent.type or subagent.id}"
    return f"{who} in {os.path.basename(context.project)} {MESSAGES[context.event.outcome or 'done']}"


async def _within_limit(way: Awaitable[str | None], name: str) -> str | None:
    try:
        async with asyncio.timeout(LIMIT_S):
            return await way
    except TimeoutError:
        return f"{name} did not end within {LIMIT_S:g} s"


async def _ring() -> str | None:
    """Ring the bell of the terminal; stdout is the answer to the host."""
    try:
        terminal = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return "there is no terminal for the bell"
    try:
        os.write(terminal, _BELL)
    except OSError as error:
        return f"the bell cannot be rung: {error.strerror}"
    finally:
        os.close(terminal)
    return None


async def _run_command(context: GateContext, command: CommandHook) -> str | None:
    """Run the command with the message in its environment and, with more fields, as JSON on stdin."""
    message = message_of(context)
    body, env = _body(context, message), {"TURNGATE_MESSAGE": message}
    report = await context.commands.run(command, stdin=body, env=env)
    match report:
        case Exited(code=0):
            return None
        case Exited(code=code):
            cause = one_line(report.stderr, MAX_ERROR_CHARS)
            return f"the command ended with exit code {code}" + (f": {cause}" if cause else "")
        case TimedOut(seconds):
            return f"the command did not end within {seconds:.3g} s"


async def _post(context: GateContext, url: str) -> str | None:
    """Post the message. The path of a webhook is a secret: messages name only its host."""
    name = _host(url)
    if problem := context.url_problem(url, name):
        return f"the webhook was not called: {problem}"
    try:
        from turngate.http.client import HttpClient  # noqa: PLC0415 # lazy: its library may not be installed
        from turngate.http.connection import request_target  # noqa: PLC0415 # lazy: only needed here

        client = HttpClient(url, os.environ, UNLIMITED)
    except ImportError:
        from turngate.extra_install import install_command  # noqa: PLC0415 # lazy: only needed here

        return f"a webhook needs a library that is not installed: {install_command('http')}"
    except ValueError:
        return f"the URL of the webhook at {name} is not valid"
    with closing(client):
        try:
            headers = {"Content-Type": "application/json"}
            body = _body(context, message_of(context))
            async with client.post(request_target(url), headers, body) as response:
                wrong = f"the webhook at {name} replied with HTTP {response.status}"
                return None if 200 <= response.status < 300 else wrong
        except HttpError as error:
            return f"the webhook was not called: {error}"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "an unnamed host"
    except ValueError:
        return "an unnamed host"


def _body(context: GateContext, message: str) -> bytes:
    """Return the message as chat services expect it: `text` (Slack, Mattermost, Teams), `content` (Discord)."""
    event = context.event
    fields = {
        "text": message,
        "content": message,
        "event": event.name,
        "session_id": event.session_id,
        "project": os.path.basename(context.project),
        **({"outcome": event.outcome} if event.outcome else {}),
    }
    return json.dumps(fields).encode()


NOTIFY = Gate(
    name="notify",
    summary="(an observer: tells you that the agent is done, or has given up)",
    check=notify,
    command="optional",
    is_observer=True,
    options=(
        GateOption("bell", "flag", "ring the terminal bell"),
        GateOption("webhook", "text", "post the message to this URL", "URL"),
        GateOption(
            "webhook-env", "text", "the environment variable that holds the URL of the webhook", "NAME"
        ),
        GateOption("message", "text", "instead of the usual message", "TEXT"),
        GateOption(
            "on",
            "texts",
            "done, blocked or gave-up; default: done and gave-up. If Turngate does not know the outcome, every stop is announced",
            "OUTCOME",
            default=("done", "gave-up"),
        ),
        GateOption("subagents", "flag", "also for subagents"),
    ),
)
