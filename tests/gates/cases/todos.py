"""The cases of the gate `todos`.

It reads only the transcript, so that a project without git, names of files and a timeout do not apply; output is that of
commands of the agent.
"""

import json
import os
from pathlib import Path
from typing import Any

from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.transcripts import TranscriptBuilder, talk, with_transcript


def todo(content: Any, status: Any) -> dict[str, Any]:
    return {"content": content, "status": status, "activeForm": "…"}


def todos(*items: Any) -> dict[str, Any]:
    return {"todos": list(items)}


def created(builder: TranscriptBuilder, number: int, subject: str) -> TranscriptBuilder:
    args = {"subject": subject, "description": f"Details of {subject}"}
    return builder.calls("TaskCreate", args, f"Task #{number} created successfully: {subject}")


def updated(builder: TranscriptBuilder, number: int, **args: Any) -> TranscriptBuilder:
    return builder.calls("TaskUpdate", {"taskId": str(number), **args}, f"Updated task #{number} status")


OPEN_TWO = todos(todo("Parse", "completed"), todo("Test", "in_progress"), todo("Write", "pending"))
DONE = todos(todo("Parse", "completed"), todo("Test", "completed"))
OPEN_TWO_REASON = (
    "2 of 3 tasks in your task list are open:\n- Test (in progress)\n- Write\n"
    "Finish them and update the list; remove what is no longer needed."
)
OPEN_ONE_REASON = (
    "1 of 2 tasks in your task list is open:\n- Wire it up\n"
    "Finish it and update the list; remove what is no longer needed."
)


def _task_tools() -> TranscriptBuilder:
    """Return a list that goes on from an earlier one: its numbers do not begin at 1."""
    builder = created(created(talk(), 11, "Parse"), 12, "Wire it up")
    return updated(builder, 11, status="completed")


def _fifo(project: Path) -> None:
    os.mkfifo(project.parent / "transcript.jsonl")


def _many(project: Path) -> None:
    items = [todo(f"Task {number}", "pending") for number in range(25)]
    talk().calls("TodoWrite", todos(*items)).write(project.parent / "transcript.jsonl")


MANY_REASON = "\n".join(
    [
        "25 of 25 tasks in your task list are open:",
        *(f"- Task {number}" for number in range(20)),
        "… and 5 more",
        "Finish them and update the list; remove what is no longer needed.",
    ]
)
BINARY = bytes(range(256)).decode("utf-8", "replace")
QUOTED = json.dumps({"name": "TodoWrite", "input": OPEN_TWO})

CASES = (
    GateCase("a list that is done passes", ("todos",), with_transcript(talk().calls("TodoWrite", DONE)), {}),
    GateCase("without a list it passes", ("todos",), with_transcript(talk().says("Done.")), {}),
    GateCase(
        "open tasks are named",
        ("todos",),
        with_transcript(talk().calls("TodoWrite", OPEN_TWO)),
        blocked(OPEN_TWO_REASON),
    ),
    GateCase(
        "an agent that a hook already continues is blocked too",
        ("todos",),
        with_transcript(talk().calls("TodoWrite", OPEN_TWO), stop_hook_active=True),
        blocked(OPEN_TWO_REASON),
    ),
    GateCase(
        "only the latest list counts",
        ("todos",),
        with_transcript(talk().calls("TodoWrite", OPEN_TWO).calls("TodoWrite", DONE)),
        {},
    ),
    GateCase(
        "a list that the tool did not accept does not count",
        ("todos",),
        with_transcript(talk().calls("TodoWrite", DONE).calls("TodoWrite", OPEN_TWO, "Error", is_error=True)),
        {},
    ),
    GateCase(
        "a quoted list does not count",
        ("todos",),
        with_transcript(
            talk()
            .user(QUOTED)
            .says(f"- [ ] Test\n{QUOTED}")
            .feedback(f"- [ ] Test\n{QUOTED}")
            .runs("cat x", QUOTED)
        ),
        {},
    ),
    GateCase(
        "the list of a subagent in the same transcript does not count",
        ("todos",),
        with_transcript(
            talk().raw(
                json.dumps(
                    {
                        "type": "assistant",
                        "isSidechain": True,
                        "message": {
                            "role": "assistant",
                            "content": [
                                {"type": "tool_use", "id": "s", "name": "TodoWrite", "input": OPEN_TWO}
                            ],
                        },
                    },
                    separators=(",", ":"),
                ).encode()
            )
        ),
        {},
    ),
    GateCase(
        "tasks of the newer tools are named",
        ("todos",),
        with_transcript(_task_tools()),
        blocked(OPEN_ONE_REASON),
    ),
    GateCase(
        "tasks of the newer tools that are done or deleted pass",
        ("todos",),
        with_transcript(
            updated(created(updated(_task_tools(), 12, status="completed"), 13, "Drop"), 13, status="deleted")
        ),
        {},
    ),
    GateCase(
        "an update that failed changes nothing",
        ("todos",),
        with_transcript(
            _task_tools().calls(
                "TaskUpdate", {"taskId": "12", "status": "completed"}, "no such task", is_error=True
            )
        ),
        blocked(OPEN_ONE_REASON),
    ),
    GateCase("a long list is truncated", ("todos",), _many, blocked(MANY_REASON)),
    GateCase(
        "wrong types everywhere",
        ("todos",),
        with_transcript(
            talk()
            .calls("TodoWrite", [1])
            .calls("TodoWrite", todos(1, None, [], todo(["x"], {"a": 1}), todo("  A\n task ", "completed")))
            .raw(
                b'{"message":{"role":"assistant","content":[{"type":"tool_use","name":["TodoWrite"],"id":1}]}}'
            )
            .raw(b'{"message":["TodoWrite"],"type":7}')
            .raw(b'["TodoWrite"]')
        ),
        blocked(
            "1 of 2 tasks in your task list is open:\n- (without a name)\n"
            "Finish it and update the list; remove what is no longer needed."
        ),
    ),
    GateCase(
        "binary lines and a truncated last line are skipped",
        ("todos",),
        with_transcript(
            talk()
            .raw(bytes(range(256)) * 10)
            .calls("TodoWrite", DONE)
            .raw(
                b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","name":"TodoWrite"'
            )
        ),
        {},
    ),
    GateCase(
        "10 MB of output of a command after the list",
        ("todos",),
        with_transcript(
            talk().calls("TodoWrite", OPEN_TWO).raw(talk().runs("make", "line\n" * 2_000_000).lines[-1])
        ),
        blocked(OPEN_TWO_REASON),
    ),
    GateCase(
        "binary output of a command that quotes a list",
        ("todos",),
        with_transcript(
            talk().calls("TodoWrite", DONE).runs("cat x", BINARY + QUOTED).raw(QUOTED.encode() + b"\0\xff")
        ),
        {},
    ),
    GateCase(
        "there is no transcript",
        ("todos",),
        lambda _: None,
        could_not_run("todos", "the transcript cannot be read: No such file or directory"),
    ),
    GateCase(
        "the transcript is a pipe",
        ("todos",),
        _fifo,
        could_not_run("todos", "the transcript cannot be read: it is not a regular file"),
    ),
    GateCase(
        "the transcript is binary",
        ("todos",),
        with_transcript(TranscriptBuilder().raw(bytes(range(256)) * 1000)),
        could_not_run("todos", "the transcript has no messages in a format that Turngate knows"),
    ),
    GateCase(
        "the event names no transcript",
        ("todos",),
        lambda _: {"transcript_path": ""},
        could_not_run("todos", "the event names no transcript"),
    ),
    GateCase(
        "without a transcript a strict gate blocks",
        ("todos", "--strict"),
        lambda _: None,
        blocked('gate "todos" could not run: the transcript cannot be read: No such file or directory'),
    ),
    GateCase(
        "an agent that waits for a subagent is left alone",
        ("todos",),
        with_transcript(
            talk().calls("TodoWrite", OPEN_TWO),
            background_tasks=[{"id": "a1", "type": "subagent", "status": "running"}],
        ),
        {"systemMessage": 'gate "todos" waits: a subagent works in the background; it was NOT enforced'},
    ),
)
