"""`turngate demo`: one blocked stop, offline, in a temporary folder.

An agent says that it is done, a hook blocks, the agent fixes its work, and the hook passes.
"""

import argparse
import json
import os
import shlex
import signal
import sys
import tempfile
from pathlib import Path
from textwrap import indent

from turngate.cli.arguments import EXIT_INTERNAL, Parser
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_PROBLEMS
from turngate.cli.project import with_program
from turngate.core.events.stream_events import (
    Continuation,
    HookFinished,
    HookStarted,
    SessionEvent,
    StreamEnd,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnResult,
)

TEST = """\
import unittest

from prices import total


class Total(unittest.TestCase):
    def test_a_discount_is_taken_off(self) -> None:
        self.assertEqual(total([100, 50], discount=10), 140)


unittest.main(verbosity=0)
"""

ADDED, SUBTRACTED = "sum(prices) + discount", "max(sum(prices) - discount, 0)"
WRONG = f"def total(prices, discount=0):\n    return {ADDED}\n"

COMMAND = f"{shlex.quote(sys.executable)} test_prices.py >&2 || exit 2"
SETTINGS = {"hooks": {"Stop": [{"hooks": [{"type": "command", "id": "tests", "command": COMMAND}]}]}}
PROMPT = "Write prices.py with total(prices, discount)."
NEXT = (
    "Next, in your own project: `turngate init` writes gates for its checks, and `turngate install claude` "
    "(or codex, gemini …) lets your agent program ask them."
)


def script(project: str) -> dict[str, object]:
    """Return the script of the model; the tool calls in it are executed."""
    path = os.path.join(project, "prices.py")
    # Another size: Python would run the bytecode of a file that is replaced by one of the same size in the same second.
    edit = {"file_path": path, "old_string": ADDED, "new_string": SUBTRACTED}
    steps: list[dict[str, object]] = [
        {
            "text": "I will write the function.",
            "tool": "Write",
            "input": {"file_path": path, "content": WRONG},
        },
        {"text": "Done: prices.py has total(prices, discount)."},
        {"text": "The test is right: a discount is taken off, not added.", "tool": "Edit", "input": edit},
        {"text": "Done: the discount is subtracted now, and the test passes."},
    ]
    return {"main": [{**step, "word_delay": 0.04} for step in steps]}


def declare(parser: Parser) -> None:
    parser.description = """\
An agent says that it is done, a hook blocks, the agent fixes its work, and the hook passes.
The model is scripted; the tools and the hook are real. Everything happens in a temporary folder."""
    parser.epilog = f"""\
Examples:
  turngate demo   takes about two seconds, needs no model

Exit codes:
  0   the demo ended as it should
  1   it did not end as it should
  {EXIT_INTERNAL}"""


def run(_: argparse.Namespace) -> int:
    from turngate.cli.console.signals import run_until_signal  # noqa: PLC0415 # lazy: --help does not need asyncio

    result = run_until_signal(_run_demo())
    return 128 + result if isinstance(result, signal.Signals) else result


async def _run_demo() -> int:
    """Run the demo; a signal that cancels it removes the folder, too."""
    with tempfile.TemporaryDirectory(prefix="turngate-demo-") as scratch:
        project = os.path.join(scratch, "shop")
        _write_project(project)
        _print_heading(f"A project in {project} has a failing test and a Stop hook that runs it:")
        print(indent(json.dumps(SETTINGS["hooks"], indent=2), "    "))
        _print_heading(f"The user asks: {PROMPT}")
        result = await _run_turn(project, os.path.join(scratch, "state"))
        is_fixed = _is_fixed(project)
    _print_heading(
        f"Turn {result.outcome}: {result.model_requests} model requests, {result.tool_calls} tool calls, "
        f"{result.continuations} continuation, {result.duration_ms / 1000:.1f} s."
    )
    _print_heading("The model was scripted; the tools, the test and the hook were real.")
    print(with_program(NEXT, anywhere=True))
    is_as_planned = result.outcome == "completed" and result.continuations == 1 and is_fixed
    return 0 if is_as_planned else EXIT_PROBLEMS


def _is_fixed(project: str) -> bool:
    return SUBTRACTED in Path(project, "prices.py").read_text(encoding="utf-8")


def _write_project(project: str) -> None:
    os.makedirs(os.path.join(project, ".turngate"))
    for name, text in (("test_prices.py", TEST), (".turngate/settings.json", json.dumps(SETTINGS, indent=2))):
        Path(project, name).write_text(text, encoding="utf-8")


async def _run_turn(project: str, state: str) -> TurnResult:
    # lazy: --help does not need the agent
    from turngate.agent.session import Session  # noqa: PLC0415
    from turngate.models.scripted import ScriptedModel  # noqa: PLC0415
    from turngate.trust.load import load_settings  # noqa: PLC0415

    model = ScriptedModel(script(project), "scripted:demo")
    settings = load_settings(project, home=state, trust=True)  # without the hooks in the user's home folder
    async with Session(
        project, model, settings, state=state, permission_mode="acceptEdits", on_event=_print_event
    ) as session:
        return await session.send(PROMPT)


def _print_event(event: SessionEvent) -> None:
    from turngate.cli.console.conversation_text import outcome_label  # noqa: PLC0415 # lazy: as above

    match event:
        case TextDelta(text):
            print(text, end="", flush=True)
        case ToolStarted(use):
            file = os.path.basename(str(use.input.get("file_path", "")))
            print(f"\n  tool {use.name} {file}", end="", flush=True)
        case ToolFinished(result=result):
            print(f" failed: {result.content}" if result.is_error else " ok")
        case StreamEnd():
            print()
        case HookStarted("Stop", hook):
            print(f'  the agent wants to stop; Stop hook "{hook}" … ', end="", flush=True)
        case HookFinished("Stop", _, outcome, seconds):
            label = outcome_label(outcome)
            print(paint(label, "good" if label == "passed" else "bad"), f"({seconds:.1f} s)")
        case Continuation(prompt):
            print("  Sent to the agent:", indent(prompt, "    "), sep="\n")
        case _:
            pass


def _print_heading(text: str) -> None:
    print(f"\n{paint(text, 'bold')}")
