"""The plugin of OpenCode in Node.js, with a played OpenCode around it; `make hosts` runs it in the real one."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.install.hook_command import entries_for
from turngate.hosts.install.settings_file import plan_install

DRIVER = Path(__file__).with_name("opencode_driver.mjs")
BLOCKS_ONCE = """\
#!/bin/sh
cat >> events; echo >> events
test -e asked || test "$(wc -l < events)" = 1 || {
  touch asked; echo '{"decision":"block","reason":"not yet","systemMessage":"a notice"}'
}
"""
PROMPT = ["prompt", "s", "build", "not yet"]
MARKED = {"TURNGATE_IN_TOOL": "1"}

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="it needs node")


def play(
    folder: Path, program: str, *words: str, **scenario: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what the plugin did, and the events that it has given to `turngate hook`."""
    turngate = script(folder / "turngate", program)
    host = HOSTS["opencode"]
    entries = entries_for(host, "user", str(turngate))
    plugin = folder / "turngate.mjs"
    plugin.write_text(plan_install(None, entries, host, None).after or "")
    command = ["node", str(DRIVER), str(plugin), json.dumps(scenario), *words]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=120)
    *printed, report = ended.stdout.splitlines()
    did = {**json.loads(report), "printed": printed, "stderr": ended.stderr}
    lines = (folder / "events").read_text().splitlines() if (folder / "events").exists() else []
    return did, [json.loads(line) for line in lines if line]


def test_a_blocked_agent_is_prompted_with_the_reason_until_it_may_stop(tmp_path: Path) -> None:
    did, events = play(tmp_path, BLOCKS_ONCE)
    assert did["did"] == [["toast", "a notice"], PROMPT]
    assert (did["env"], did["printed"], did["stderr"]) == (MARKED, [], "")
    common = {"session_id": "s", "cwd": str(tmp_path), "opencode_agent": "build"}
    stopped = {
        **common,
        "hook_event_name": "Stop",
        "prompt_id": "m0",
        "permission_mode": "default",
        "model": "m",
    }
    answer = {"last_assistant_message": "I am done."}
    assert events == [
        {**common, "hook_event_name": "SessionStart", "source": "startup"},
        {**stopped, **answer, "stop_hook_active": False, "tool_calls": 0},
        {**stopped, **answer, "stop_hook_active": True, "tool_calls": 1},
    ]


def test_opencode_run_waits_for_it_and_gets_its_output(tmp_path: Path) -> None:
    did, events = play(tmp_path, BLOCKS_ONCE, "run", "Do the work.")
    assert (did["did"], len(events)) == ([PROMPT], 3)
    assert (did["printed"], did["stderr"]) == (["Now I am done."], "a notice\n")


def test_opencode_run_with_json_gets_json(tmp_path: Path) -> None:
    did, _ = play(tmp_path, BLOCKS_ONCE, "run", "--format", "json", "Do the work.")
    [line] = map(json.loads, did["printed"])
    assert (line["type"], line["part"]["text"]) == ("text", "Now I am done.")


@pytest.mark.parametrize(("words", "answer"), [((), "reject"), (("--auto",), "once")])
def test_a_question_about_a_permission_is_answered_after_opencode_run_has_stopped_to_answer(
    tmp_path: Path, words: tuple[str, ...], answer: str
) -> None:
    did, _ = play(tmp_path, BLOCKS_ONCE, "run", *words, "Do the work.", asks=True)
    assert did["did"] == [[answer, "per_1"], PROMPT]


@pytest.mark.parametrize(
    ("scenario", "events"),
    [
        ({"info": {"error": {"name": "MessageAbortedError"}}}, 1),
        ({"info": {"finish": "tool-calls"}}, 1),
        ({"session": {"parentID": "p"}}, 0),
    ],
    ids=["an interrupt", "a refused tool call", "a subagent"],
)
def test_an_agent_is_not_prompted_after(tmp_path: Path, scenario: dict[str, Any], events: int) -> None:
    did, asked = play(tmp_path, BLOCKS_ONCE.replace(',"systemMessage":"a notice"', ""), **scenario)
    assert (did["did"], len(asked)) == ([], events)


def test_a_message_of_the_user_ends_the_gates_and_the_block_does_not_count(tmp_path: Path) -> None:
    slow = '#!/bin/sh\ncat >> events; echo >> events\ntest "$(wc -l < events)" = 1 || exec sleep 600\n'
    did, events = play(tmp_path, slow, goes_on=True)
    assert (did["did"], len(events)) == ([], 2)


def test_in_an_editor_the_plugin_leaves_the_stop_to_turngate_acp(tmp_path: Path) -> None:
    did, events = play(tmp_path, BLOCKS_ONCE, "acp")
    assert ((did["did"], did["hooks"]), events) == (([], 0), [])


def test_who_quits_the_terminal_does_not_wait_for_a_gate(tmp_path: Path) -> None:
    slow = '#!/bin/sh\ncat >> events; echo >> events\ntest "$(wc -l < events)" = 1 || exec sleep 600\n'
    did, events = play(tmp_path, slow, quits=True)
    [[kind, message]] = did["did"]
    assert (kind, len(events)) == ("toast", 2)
    assert message.startswith("Turngate could not be asked, so this stop was not checked: exit code ")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("#!/bin/sh\necho broken >&2; exit 1\n", "exit code 1: broken"),
        ("#!/bin/sh\necho nonsense\n", "its answer is not JSON: nonsense\n"),
    ],
)
def test_a_failure_of_turngate_is_a_notice(tmp_path: Path, program: str, why: str) -> None:
    did, _ = play(tmp_path, program, "run", "Do the work.")
    failed = f"Turngate could not be asked, so this stop was not checked: {why}\n"
    assert (did["did"], did["stderr"]) == ([], failed)
