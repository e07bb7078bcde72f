"""A stand-in for Claude Code with an agent: speaks the Agent SDK's protocol on stdio, and asks the hooks at each stop.

The replies are in `script.json` beside it, which gets the texts that the agent was asked. A subagent answers first if there
are replies for one.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("script.json")
SCRIPT = json.loads(FILE.read_text())
HOOKS: dict[str, list[str]] = {}
SESSION = FILE.parent.name
OWN_LIMIT = 8  # blocks in a row


def main() -> None:
    for line in sys.stdin:
        frame = json.loads(line)
        if frame["type"] == "control_request":
            for event, groups in (frame["request"].get("hooks") or {}).items():
                HOOKS[event] = [name for group in groups for name in group["hookCallbackIds"]]
            done = {"subtype": "success", "request_id": frame["request_id"], "response": {"commands": []}}
            say({"type": "control_response", "response": done})
        elif frame["type"] == "user":
            answer_prompt(frame["message"]["content"])


def answer_prompt(prompt: str) -> None:
    fire("UserPromptSubmit", prompt=prompt)
    if SCRIPT["child"]:
        agent = {"agent_id": "a-1", "agent_type": "helper", "agent_transcript_path": "/none.jsonl"}
        fire("SubagentStart", **agent)
        work("SubagentStop", "child", "help", **agent)
    answer, requests = work("Stop", "main", prompt)
    result = {"is_error": False, "num_turns": requests, "duration_ms": 1, "duration_api_ms": 1}
    usage = {"input_tokens": 10 * requests, "output_tokens": requests}
    common = {"session_id": SESSION, "total_cost_usd": 0.0, "uuid": "u-2", "usage": usage, "result": answer}
    say({"type": "result", "subtype": "success", **result, **common})


def work(event: str, who: str, prompt: str, **agent: str) -> tuple[str, int]:
    """Answer until the hooks let the agent stop. Return the answer and the number of requests."""
    for number in range(OWN_LIMIT + 1):
        SCRIPT["asked"][who].append(prompt)
        FILE.write_text(json.dumps(SCRIPT))
        replies = SCRIPT[who]
        reply = replies[min(number, len(replies) - 1)]
        if reply["touch"]:
            Path(reply["touch"]).write_text("")
        if reply["remove"]:
            path = Path(reply["remove"])
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        show(reply["text"])
        told = fire(event, last_assistant_message=reply["text"], stop_hook_active=number > 0, **agent)
        if told.get("decision") != "block" or told.get("continue") is False:
            break
        prompt = f"Stop hook feedback:\n{told['reason']}"
    return reply["text"], number + 1


def show(text: str) -> None:
    message: dict[str, Any] = {"id": "m-1", "type": "message", "role": "assistant", "model": "fake"}
    message |= {
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {},
        "content": [{"type": "text", "text": text}],
    }
    say(
        {
            "type": "assistant",
            "message": message,
            "parent_tool_use_id": None,
            "session_id": SESSION,
            "uuid": "u-1",
        }
    )


def fire(event: str, **fields: Any) -> dict[str, Any]:
    told: dict[str, Any] = {}
    common = {
        "session_id": SESSION,
        "transcript_path": "/none.jsonl",
        "cwd": str(Path.cwd()),
        "prompt_id": "p-1",
    }
    for callback in HOOKS.get(event, []):
        hook_input = {**common, "permission_mode": "default", "hook_event_name": event, **fields}
        request = {"subtype": "hook_callback", "callback_id": callback, "input": hook_input}
        say({"type": "control_request", "request_id": f"{event}-{callback}", "request": request})
        response = json.loads(sys.stdin.readline())["response"]
        told |= response.get("response") or {}
    return told


def say(frame: dict[str, Any]) -> None:
    print(json.dumps(frame), flush=True)


main()
