"""A stand-in for Claude Code: speaks the Agent SDK's protocol on stdio and logs all frames.

At the first user message it calls every callback of the initialize frame once, with an input such as Claude Code's,
then answers and ends its turn. Its arguments and all frames go to the file `heard` beside it.
"""

import json
import os
import sys
from typing import Any

HEARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "heard")


def main() -> None:
    write({"arguments": sys.argv[1:]})
    ids: list[tuple[str, str]] = []
    for line in sys.stdin:
        frame = json.loads(line)
        write(frame)
        if frame["type"] == "control_request":
            hooks = frame["request"].get("hooks") or {}
            ids = [(e, i) for e, groups in hooks.items() for g in groups for i in g["hookCallbackIds"]]
            done = {"subtype": "success", "request_id": frame["request_id"], "response": {"commands": []}}
            say({"type": "control_response", "response": done})
        elif frame["type"] == "user":
            start()
        if frame["type"] in ("user", "control_response"):
            if ids:
                ask(*ids.pop(0))
            else:
                end()


def write(value: Any) -> None:
    with open(HEARD, "a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")


def say(frame: dict[str, Any]) -> None:
    print(json.dumps(frame), flush=True)


def start() -> None:
    say(
        {
            "type": "system",
            "subtype": "init",
            "session_id": "s-1",
            "cwd": os.getcwd(),
            "tools": [],
            "mcp_servers": [],
            "model": "fake",
            "permissionMode": "default",
            "slash_commands": [],
            "apiKeySource": "none",
            "output_style": "default",
            "agents": [],
            "uuid": "u-0",
            "claude_code_version": "2.1.325",
        }
    )
    message: dict[str, Any] = {
        "id": "m-1",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "stop_reason": None,
        "stop_sequence": None,
        "content": [{"type": "text", "text": "done"}],
        "usage": {},
    }
    say(
        {
            "type": "assistant",
            "message": message,
            "parent_tool_use_id": None,
            "session_id": "s-1",
            "uuid": "u-1",
        }
    )


def ask(event: str, callback: str) -> None:
    hook_input = {
        "session_id": "s-1",
        "transcript_path": "/t/chat.jsonl",
        "cwd": "/p",
        "permission_mode": "default",
        "hook_event_name": event,
        "stop_hook_active": False,
        "last_assistant_message": "done",
    }
    if event == "SubagentStop":
        hook_input |= {"agent_id": "a-1", "agent_type": "coder", "agent_transcript_path": "/t/a-1.jsonl"}
    if event == "PreToolUse":
        hook_input |= {"tool_name": "Bash", "tool_input": {"command": "rm -r ."}, "tool_use_id": "t-1"}
    request = {"subtype": "hook_callback", "callback_id": callback, "input": hook_input, "tool_use_id": "t-1"}
    say({"type": "control_request", "request_id": f"ask-{callback}", "request": request})


def end() -> None:
    say(
        {
            "type": "result",
            "subtype": "success",
            "duration_ms": 1,
            "duration_api_ms": 1,
            "is_error": False,
            "num_turns": 1,
            "session_id": "s-1",
            "total_cost_usd": 0.0,
            "usage": {},
            "result": "done",
            "uuid": "u-2",
        }
    )


main()
