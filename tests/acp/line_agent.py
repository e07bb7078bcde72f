"""An agent that speaks the Agent Client Protocol in lines, without a library: it does what a script says.

The script is a JSON file: for each prompt of the process a list of steps; the last list is for all further prompts. What
the agent receives is appended to the file `received` beside the script.
"""

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

SCRIPT = Path(sys.argv[1])
RECEIVED = SCRIPT.with_name("received")
answers: dict[Any, "queue.SimpleQueue[Any]"] = {}
cancelled: dict[str, threading.Event] = {}
lock = threading.Lock()
counter = itertools.count()
version = 1  # of the protocol


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def write(data: bytes) -> None:
    with lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def update(session: str, value: dict[str, Any]) -> None:
    send({"method": "session/update", "params": {"sessionId": session, "update": value}})


def text(words: str, **further: Any) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}, **further}


def work(message: dict[str, Any], steps: list[list[Any]]) -> None:
    session = message["params"]["sessionId"]
    if version == 2 and steps[:1] != [["reject"]]:
        send({"id": message["id"], "result": {}})
        update(session, {"sessionUpdate": "state_update", "state": "running"})
    for number, (step, *words) in enumerate(steps):
        match step:
            case "text":
                update(session, text(*words))
            case "update":
                update(session, words[0])
            case "request":
                identity = f"agent {message['id']} {number}"
                answers[identity] = queue.SimpleQueue()
                send({"id": identity, "method": words[0], "params": {"sessionId": session, **words[1]}})
                log({"answer": answers[identity].get()})
            case "write":
                Path(words[0]).write_text(words[1])
            case "many":
                for _ in range(words[0]):
                    update(session, text("word "))
            case "large":
                update(session, text("x" * words[0]))
            case "raw":
                write(words[0].encode("latin-1"))
            case "wait for cancel":
                cancelled[session].wait()
            case "wait for file":
                while not Path(words[0]).exists():
                    time.sleep(0.01)
            case "run":
                done = subprocess.run(words, check=False, capture_output=True, text=True)
                log({"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr})
            case "child":  # keeps stdout open
                subprocess.Popen(["sleep", words[0]], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            case "exit":
                os._exit(words[0])
            case "never":
                return
            case "reject":
                send({"id": message["id"], "error": {"code": -32000, "message": "busy"}})
                return
            case "stop":
                end(message, {"stopReason": words[0], **(words[1] if words[1:] else {})})
                return
            case _:  # an error
                send({"id": message["id"], "error": {"code": words[0], "message": words[1]}})
                return
    end(message, {"stopReason": "end_turn"})


def end(message: dict[str, Any], outcome: dict[str, Any]) -> None:
    if version == 1:
        send({"id": message["id"], "result": outcome})
    else:
        state = {"sessionUpdate": "state_update", "state": "idle"}
        update(message["params"]["sessionId"], {**state, **outcome})


def log(message: dict[str, Any]) -> None:
    with RECEIVED.open("a") as file:
        file.write(json.dumps(message) + "\n")


def receive(message: dict[str, Any], prompts: list[list[list[Any]]]) -> None:
    global version  # noqa: PLW0603 - of the one agent of this process
    method, params, identity = message.get("method"), message.get("params", {}), message.get("id")
    log(message)
    session = params.get("sessionId")
    match method:
        case None:
            if identity in answers:
                answers[identity].put(message.get("result", message.get("error")))
        case "initialize":
            version = params["protocolVersion"]
            send({"id": identity, "result": {"protocolVersion": params["protocolVersion"]}})
        case "session/new" | "session/fork":
            name = f"session-{len(cancelled) + 1}"
            cancelled[name] = threading.Event()
            send({"id": identity, "result": {"sessionId": name}})
        case "session/load" | "session/resume":
            cancelled[session] = threading.Event()
            if method == "session/load":
                update(session, {**text("an earlier task"), "sessionUpdate": "user_message_chunk"})
                update(session, text("an earlier answer"))
            send({"id": identity, "result": {}})
        case "session/prompt" if isinstance(params["prompt"], list):
            cancelled[session].clear()
            steps = prompts[min(next(counter), len(prompts) - 1)]
            threading.Thread(target=work, args=(message, steps), daemon=True).start()
        case "session/cancel":
            cancelled[session].set()
        case _:
            if identity is not None:
                send({"id": identity, "result": {"method": method, "params": params}})


def main() -> None:
    prompts = json.loads(SCRIPT.read_text())
    for line in sys.stdin.buffer:
        try:
            receive(json.loads(line), prompts)
        except Exception:  # noqa: BLE001 - it is hostile
            log({"line": line.decode("latin-1")})


if __name__ == "__main__":
    main()
