"""`turngate demo`: the whole story, offline, in a throw-away folder: an agent says "done", is refused, repairs, is allowed."""

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile

from turngate.agent.session import Session
from turngate.cli.signals import run_until_signal
from turngate.core.session_events import (
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
from turngate.models.scripted import ScriptedModel
from turngate.settings.load import load_settings

TEST = """\
import unittest

from prices import total


class Total(unittest.TestCase):
    def test_a_discount_is_taken_off(self) -> None:
        self.assertEqual(total([100, 50], discount=10), 140)


unittest.main(verbosity=0)
"""

WRONG = "def total(prices, discount=0):\n    return sum(prices) + discount\n"

SETTINGS = {
    "hooks": {
        "Stop": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "id": "tests",
                        "command": f"{shlex.quote(sys.executable)} test_prices.py >&2 || exit 2",
                    }
                ]
            }
        ]
    }
}

PROMPT = "Write prices.py with total(prices, discount)."


def script(project: str) -> dict[str, object]:
    """What the model says; the tools that it asks for are real, and so is the hook."""
    path = os.path.join(project, "prices.py")
    edit = {"file_path": path, "old_string": "+ discount", "new_string": "- discount"}
    slowly = {"word_delay": 0.04}
    return {
        "main": [
            {
                "text": "I write the function.",
                "tool": "Write",
                "input": {"file_path": path, "content": WRONG},
                **slowly,
            },
            {"text": "Done: prices.py has total(prices, discount).", **slowly},
            {
                "text": "The test is right: a discount is taken off, not added.",
                "tool": "Edit",
                "input": edit,
                **slowly,
            },
            {"text": "Done: the discount is subtracted now, and the test passes.", **slowly},
        ]
    }


def run(_: argparse.Namespace) -> int:
    ended = run_until_signal(_story())
    return 128 + ended if isinstance(ended, signal.Signals) else ended


async def _story() -> int:
    """A signal ends it wherever it is, and the folder goes with it."""
    with tempfile.TemporaryDirectory(prefix="turngate-demo-") as scratch:
        project = os.path.join(scratch, "shop")
        _prepare(project)
        _say(f"A project in {project} has a failing test and a Stop hook that runs it:")
        _indented(json.dumps(SETTINGS["hooks"], indent=2))
        _say(f"The user asks: {PROMPT}")
        result = await _turn(project, os.path.join(scratch, "state"))
        passed = "- discount" in _read(os.path.join(project, "prices.py"))
    _say(
        f"The turn is {result.outcome}: {result.model_requests} model requests, {result.tool_calls} tool calls, "
        f"{result.continuations} continuation, {result.duration_ms / 1000:.1f} s."
    )
    _say("The model was played from a script; the tools, the test and the hook were real.")
    print(
        "Read next: README.md, docs/hooks.md; put a hook into your own project and try "
        f"`{_ourselves()} fire Stop` there."
    )
    return 0 if result.outcome == "completed" and result.continuations == 1 and passed else 1


def _ourselves() -> str:
    """How this command is called from any folder."""
    return "turngate" if shutil.which("turngate") else os.path.abspath(sys.argv[0])


def _prepare(project: str) -> None:
    os.makedirs(os.path.join(project, ".turngate"))
    for name, text in (("test_prices.py", TEST), (".turngate/settings.json", json.dumps(SETTINGS, indent=2))):
        with open(os.path.join(project, name), "w", encoding="utf-8") as file:
            file.write(text)


async def _turn(project: str, state: str) -> TurnResult:
    model = ScriptedModel(script(project), "scripted:demo")
    own = load_settings(project, home=state)  # nobody's hooks but the demo's
    async with Session(
        project, model, own, state=state, permission_mode="acceptEdits", on_event=_show
    ) as session:
        return await session.send(PROMPT)


def _show(event: SessionEvent) -> None:
    match event:
        case TextDelta(text):
            print(text, end="", flush=True)
        case ToolStarted(use):
            print(
                f"\n  tool {use.name} {os.path.basename(str(use.input.get('file_path', '')))}",
                end="",
                flush=True,
            )
        case ToolFinished(result=result):
            print(" failed: " + result.content if result.is_error else " ok")
        case StreamEnd():
            print()
        case HookStarted("Stop", hook):
            print(f"  the agent would stop; asking the hook {hook!r} …", end="", flush=True)
        case HookFinished("Stop", _, outcome, seconds):
            print(f" {'it refuses' if outcome == 'block' else 'no objection'} ({seconds:.1f} s)")
        case Continuation(prompt):
            print("  the hook asks to go on; the agent is told:")
            _indented(prompt)
        case _:
            pass


def _say(text: str) -> None:
    bold = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold[0]}{text}{bold[1]}")


def _indented(text: str) -> None:
    for line in text.splitlines():
        print(f"    {line}")


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
