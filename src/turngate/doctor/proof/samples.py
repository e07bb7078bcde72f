"""A short transcript and a sample of each event, for hooks that are run without an agent."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from turngate.core.constants import EVENTS
from turngate.core.conversation.tools import DEFAULT_AGENT_TYPE
from turngate.core.hooks.matcher import read_matcher
from turngate.core.settings import Rule


def conversation(
    answer: str = "Done.", *, ran_tests: bool = True, calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
) -> bytes:
    """Return a short transcript, in the forms in which scripts search for a test run; with these calls of tools."""
    command = "make test && npm test && pytest"
    use = {"type": "tool_use", "id": "t-1", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": "t-1", "content": "all tests passed"}
    records: list[dict[str, Any]] = [_message("user", "Please do the task.")]
    if ran_tests:
        records += [
            _message("assistant", [use]),
            {"type": "tool", "tool_name": "bash", "tool_input": {"script": command}},
            _message("user", [result]),
        ]
    for number, (name, given) in enumerate(calls):
        call = {"type": "tool_use", "id": f"c-{number}", "name": name, "input": dict(given)}
        done = {"type": "tool_result", "tool_use_id": f"c-{number}", "content": "done"}
        records += [_message("assistant", [call]), _message("user", [done])]
    records.append(_message("assistant", [{"type": "text", "text": answer}]))
    return _lines(records)


def spent_conversation(started: float, tokens: int, replies: int) -> bytes:
    """Return a transcript that began at this time and has so many replies of the model, all tokens in the first one."""
    time = datetime.fromtimestamp(started, UTC).isoformat()
    prompt = {**_message("user", "Please do the task."), "timestamp": time}
    records = [prompt]
    for number in range(replies):
        record = _message("assistant", [{"type": "text", "text": "Done."}])
        record["message"] |= {"id": f"m-{number}", "usage": {"output_tokens": 0 if number else tokens}}
        records.append(record)
    return _lines(records)


def _lines(records: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def _message(role: str, content: object) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": content}}


# Events


SESSION_ID = "sample-session"
_TOOLS = tuple("Bash Write Edit Read Grep Glob Task TodoWrite WebFetch mcp__server__tool".split())
_SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "tool_name": _TOOLS,
    "agent_type": (DEFAULT_AGENT_TYPE, "Explore"),
    "source": ("startup", "resume", "clear", "compact"),
    "trigger": ("manual", "auto"),
    "reason": ("other", "clear", "prompt_input_exit"),
}


def sample_subject(event: str, matcher: str | None) -> str:
    """Return what the matcher of a hook is applied to, such as the name of a tool: one that it matches, if possible."""
    known = _SUBJECTS[EVENTS[event] or ""]
    if matcher in (None, "", "*"):
        return known[0]
    parsed = read_matcher(matcher)
    names = (*getattr(parsed, "names", ()), *known)
    return next(filter(parsed.matches, names), known[0])


def sample_fields(rule: Rule, given: Mapping[str, Any], *, project: str, transcript: str) -> dict[str, Any]:
    """Return these fields of an event, and samples for the others: with them, the hook runs if possible."""
    field = EVENTS[rule.event]
    if field is None:
        subject = {}
    elif rule.agent_type and field == "agent_type":
        subject = {field: rule.agent_type}
    else:
        subject = {field: sample_subject(rule.event, rule.matcher)}
    subject |= {name: given[name] for name in subject if name in given}
    return {
        "session_id": SESSION_ID,
        "transcript_path": transcript,
        "cwd": project,
        **subject,
        **_own_fields(rule, "".join(subject.values()), project, transcript),
        **given,
    }


def _own_fields(rule: Rule, subject: str, project: str, transcript: str) -> dict[str, Any]:
    call = {"tool_input": _tool_input(subject, project), "tool_use_id": "toolu_sample"}
    match rule.event:
        case "Stop":
            return {"last_assistant_message": "Done."}
        case "SubagentStop":
            outcome = "ok" if "ok" in rule.hook.outcomes else rule.hook.outcomes[0]
            subagent = {"agent_id": "sample-agent", "agent_transcript_path": transcript, "outcome": outcome}
            return {**subagent, "last_assistant_message": "Done."}
        case "TaskCompleted":
            return {"task_id": "1", "task_subject": "Fix the failing test"}
        case "TeammateIdle":
            return {"teammate_name": "tester"}
        case "SubagentStart":
            return {"agent_id": "sample-agent"}
        case "UserPromptSubmit":
            return {"prompt": "Fix the failing test."}
        case "PreToolUse" | "PermissionRequest":
            return call
        case "PostToolUse":
            response: object = "hello"
            if subject == "Bash":
                response = {"stdout": "hello\n", "stderr": "", "interrupted": False}
            elif subject in ("Write", "Edit"):
                response = {"filePath": f"{project}/example.txt", "success": True}
            return {**call, "tool_response": response, "duration_ms": 12}
        case "PostToolUseFailure":
            return {**call, "error": "it failed", "duration_ms": 12}
        case "PostToolBatch":
            whole = {"tool_name": "Bash", **call, "tool_input": _tool_input("Bash", project)}
            return {"tool_calls": [{**whole, "tool_response": "hello"}]}
        case "StopFailure":
            return {"error": "the model did not answer"}
        case _:
            return {}


def _tool_input(tool: str, project: str) -> dict[str, Any]:
    file = f"{project}/example.txt"
    inputs: Mapping[str, dict[str, Any]] = {
        "Bash": {"command": "echo hello", "description": "Print a greeting"},
        "Write": {"file_path": file, "content": "hello\n"},
        "Edit": {"file_path": file, "old_string": "hello", "new_string": "goodbye"},
        "Read": {"file_path": file},
        "Grep": {"pattern": "hello"},
        "Glob": {"pattern": "*.txt"},
        "Task": {"description": "Count", "prompt": "Count the tests.", "subagent_type": DEFAULT_AGENT_TYPE},
        "WebFetch": {"url": "https://example.com/", "prompt": "Summarize it."},
    }
    return inputs.get(tool, {})
