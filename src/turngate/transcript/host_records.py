"""The records of other hosts → records as Claude Code and Turngate write them: calls, results, prompts, replies, tokens.

Measured with Codex 0.166, Qwen Code 0.24, Gemini CLI 0.61 and Copilot CLI 1.0.102. What a record does not say is left
out, so that a gate reports less and nothing wrong.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.transcript.format_detection import CALLS, CLAUDE, CODEX, COPILOT, GEMINI, QWEN, both_styles

Record = Mapping[str, Any]


@frozen(kw_only=True)
class TranscriptFormat:
    """What to search for in the lines of a transcript, and how to read a record of it."""

    calls: tuple[bytes, ...]
    results: tuple[bytes, ...]
    prompts: tuple[bytes, ...]
    replies: tuple[bytes, ...]
    usage: tuple[bytes, ...]
    convert: Callable[[Record], Sequence[Record]]

    @property
    def messages(self) -> tuple[bytes, ...]:
        return (*self.calls, *self.results, *self.prompts, *self.replies)


# Claude Code and Turngate: {"type": "user" or "assistant", "message": {"role": …, "content": …}}


def _from_claude(record: Record) -> Sequence[Record]:
    """What the user writes while the agent works is an attachment; so are notifications, in another mode."""
    queued = as_mapping(record.get("attachment"))
    if (queued.get("type"), queued.get("commandMode")) != ("queued_command", "prompt"):
        return [record]
    return [{**_message(record, "user", [_text(queued.get("prompt"))]), "origin": queued.get("origin")}]


# Codex: {"timestamp": …, "type": "response_item" or "event_msg", "payload": {"type": …}}


def _from_codex(record: Record) -> Sequence[Record]:
    payload = as_mapping(record.get("payload"))
    match record.get("type"), payload.get("type"):
        case "event_msg", "user_message":
            return [_message(record, "user", [_text(payload.get("message"))])]
        case "event_msg", "token_count":
            info = as_mapping(payload.get("info"))
            total = as_mapping(info.get("total_token_usage")).get("total_tokens")
            tokens = as_mapping(info.get("last_token_usage")).get("total_tokens")
            return [_reply(record, [], tokens, f"tokens {total}")] if info else []
        case "response_item", "message":
            texts = [_text(as_mapping(part).get("text")) for part in as_list(payload.get("content"))]
            if payload.get("role") == "assistant":
                return [_reply(record, texts)]
            sources = _codex_sources(payload)
            if any(source.get("hook") is True for source in sources):  # a reason of a stop hook
                return [_message(record, "user", texts, origin="host")]
            return (
                [_message(record, "user", texts)]
                if any(source.get("type") == "user" for source in sources)
                else []
            )
        case "response_item", "function_call" | "custom_tool_call" | "local_shell_call":
            return [_reply(record, _codex_calls(payload))]
        case "response_item", "function_call_output" | "custom_tool_call_output":
            return [_message(record, "user", _codex_result(payload))]
        case _:
            return []


def _codex_sources(payload: Record) -> list[Record]:
    """Return who wrote the parts of a user's message. Versions that do not say so write `user_message` besides."""
    metadata = as_mapping(payload.get("internal_chat_message_metadata_passthrough"))
    items = map(as_mapping, as_list(metadata.get("content_item_metadata")))
    return [as_mapping(item.get("provenance")) for item in items] if payload.get("role") == "user" else []


def _codex_calls(payload: Record) -> list[Record]:
    """Return the blocks of a call: one for a command, one for each file of a patch."""
    identity = payload.get("call_id", payload.get("id"))
    text = payload.get("arguments", payload.get("input"))
    args = as_mapping(_parse(text)) or as_mapping(payload.get("action"))
    command = args.get("cmd", args.get("command"))
    if isinstance(command, list):
        command = script_of(command)
    patch = args.get("input", command if isinstance(command, str) else text)
    if isinstance(patch, str) and _PATCH in patch:
        edits = [_call(identity, "Edit", {"file_path": path.strip()}) for path in re.findall(_PATCHED, patch)]
        if edits:
            return edits
    name = str(payload.get("name"))
    if isinstance(command, str):
        return [_call(identity, "Bash", {"command": command})]
    if name == "update_plan":
        steps = [as_mapping(step) for step in as_list(args.get("plan"))]
        todos = [{"content": step.get("step"), "status": step.get("status")} for step in steps]
        return [_call(identity, "TodoWrite", {"todos": todos})]
    return [_call(identity, _QUESTIONS.get(name, name), args)]


def script_of(command: list[Any]) -> str:
    """Return what a list of words runs: SCRIPT for `bash -lc SCRIPT`."""
    is_script = len(command) == 3 and command[1] in ("-c", "-lc")
    return str(command[2]) if is_script else " ".join(map(str, command))


_PATCH = "*** Begin Patch"
_PATCHED = r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+)$"


def _codex_result(payload: Record) -> list[Record]:
    """Return the result of a call; none while its process runs. A command without an exit code was not run."""
    output = payload.get("output")
    if isinstance(output, list):
        output = "\n".join(str(as_mapping(part).get("text", "")) for part in output)
    if not isinstance(output, str):
        output = str(as_mapping(output).get("content", ""))
    head, has_head, body = output.partition("Output:\n")
    if re.search(_CODEX_RUNS, head):
        return []
    inner = as_mapping(_parse(output))  # of older versions, and of other tools
    code: object = int(found[1]) if (found := re.search(_CODEX_CODE, head)) else None
    if inner or output.startswith("Plan updated"):
        code = as_mapping(inner.get("metadata")).get("exit_code", 0)
    text = inner["output"] if isinstance(inner.get("output"), str) else body if has_head else output
    return [_result(payload.get("call_id"), text, is_error=code != 0)]


_CODEX_RUNS = r"(?m)^Process running with session ID"
_CODEX_CODE = r"(?m)^(?:Process exited with code|Exit code:) (-?\d{1,9})\b"


# Qwen Code: {"type": "user", "assistant", "tool_result" or "system", "message": {"role": …, "parts": […]}}


def _from_qwen(record: Record) -> Sequence[Record]:
    parts = [as_mapping(part) for part in as_list(as_mapping(record.get("message")).get("parts"))]
    texts = [_text(part.get("text")) for part in parts if part.get("thought") is not True and "text" in part]
    match record.get("type"):
        case "user":
            by_user = record.get("provenance", "real_user") == "real_user"
            by_host = not by_user or "externalInputKind" in record or "subtype" in record
            return [_message(record, "user", texts, origin="host" if by_host else "user")]
        case "assistant":
            calls = [_part_call(as_mapping(part["functionCall"])) for part in parts if "functionCall" in part]
            tokens = as_mapping(record.get("usageMetadata")).get("totalTokenCount")
            return [_reply(record, [*texts, *calls], tokens, record.get("uuid"))]
        case "tool_result":
            display = as_mapping(as_mapping(record.get("toolCallResult")).get("resultDisplay"))
            found = [as_mapping(part["functionResponse"]) for part in parts if "functionResponse" in part]
            return [_message(record, "user", [_part_result(each, display.get("exitCode")) for each in found])]
        case _:
            return []


# Gemini CLI: {"id": …, "type": "user" or "gemini", "content": …, "toolCalls": [{…, "result": […]}], "tokens": {…}}


def _from_gemini(record: Record) -> Sequence[Record]:
    """A reason of a stop hook is written like a prompt of the user, so no message is known to be the user's."""
    content = record.get("content")
    parts = [{"text": content}] if isinstance(content, str) else map(as_mapping, as_list(content))
    texts = [_text(part.get("text")) for part in parts]
    if record.get("type") == "user":
        return [_message(record, "user", texts, origin="unknown")]
    if record.get("type") != "gemini":
        return []
    calls = [as_mapping(call) for call in as_list(record.get("toolCalls"))]
    tokens = as_mapping(record.get("tokens")).get("total")
    reply = _reply(record, [*texts, *map(_part_call, calls)], tokens, record.get("id"))
    results = [
        _part_result(
            {**as_mapping(as_mapping(part).get("functionResponse")), "id": call.get("id")},
            0 if call.get("status") == "success" else 1,
        )
        for call in calls
        for part in as_list(call.get("result"))[:1]
    ]
    return [reply, _message(record, "user", results)] if results else [reply]


def _part_call(call: Record) -> Record:
    """Return the block of a call in the form of the Gemini API."""
    name, args = str(call.get("name")), dict(as_mapping(call.get("args")))
    if args.get("is_background") is True:
        args["run_in_background"] = True
    return _call(call.get("id"), TOOL_NAMES.get(name, name), args)


def _part_result(response: Record, code: object) -> Record:
    """Return the block of a result. What a tool for commands reports is at the end, after the output."""
    answer = as_mapping(response.get("response"))
    text = answer.get("output", answer.get("error"))
    text = text if isinstance(text, str) else json.dumps(answer)
    reported = re.findall(_EXIT_CODE, text)
    is_error = "output" not in answer or code not in (None, 0) or (bool(reported) and reported[-1] != "0")
    output = re.search(_SHELL_OUTPUT, text)  # without what the tool adds before and after it
    return _result(response.get("id"), output[1] if output else text, is_error=is_error)


_EXIT_CODE = r"(?m)^Exit Code: (-?\d{1,9}|\(none\))$"
_SHELL_OUTPUT = r"(?sm)^Output: (.*?)(?=\n(?:Error: |Exit Code: |Signal: |Background PIDs: |Process Group PGID: |</untrusted_context>)|\Z)"


# Copilot CLI: {"type": "tool.execution_start", "data": {…}, "agentId": of a subagent}


def _from_copilot(record: Record) -> Sequence[Record]:
    data = as_mapping(record.get("data"))
    match record.get("type"):
        case "user.message":
            # A reason of a stop hook is queued, as is what the user writes meanwhile.
            by_user = data.get("delivery") == "idle" and data.get("source", "user") == "user"
            by_parent = record.get("agentId") is not None and data.get("source") != "system"
            origin = "user" if by_user else "parent" if by_parent else "host"
            return [_message(record, "user", [_text(data.get("content"))], origin)]
        case "assistant.message":
            return [_reply(record, [_text(data.get("content"))])]
        case "session.usage_record":
            usage = as_mapping(data.get("usage"))
            tokens = sum(n for key in ("inputTokens", "outputTokens") if type(n := usage.get(key)) is int)
            return [_reply(record, [], tokens, usage.get("apiCallId"))]
        case "tool.execution_start":
            name, args = str(data.get("toolName")), dict(as_mapping(data.get("arguments")))
            for ours, theirs in (("file_path", "path"), ("subagent_type", "agent_type")):
                if theirs in args:
                    args[ours] = args[theirs]
            if args.get("mode") == "async":
                args["run_in_background"] = True
            return [_reply(record, [_call(data.get("toolCallId"), TOOL_NAMES.get(name, name), args)])]
        case "tool.execution_complete":
            code = as_mapping(data.get("shellExecution")).get("exitCode")
            text = str(as_mapping(data.get("result")).get("content", ""))
            is_error = data.get("success") is not True or code not in (None, 0)
            output = re.sub(_COPILOT_END, "", text)
            return [_message(record, "user", [_result(data.get("toolCallId"), output, is_error=is_error)])]
        case _:
            return []


_COPILOT_END = r"\n?<shellId: \S{1,100} completed with exit code -?\d{1,9}>\s*\Z"

_QUESTIONS = {name: "AskUserQuestion" for name in ("request_user_input", "ask_user_question", "ask_user")}
TOOL_NAMES = {
    **_QUESTIONS,
    "run_shell_command": "Bash",
    "bash": "Bash",
    "edit": "Edit",
    "replace": "Edit",
    "write_file": "Write",
    "create": "Write",
    "todo_write": "TodoWrite",
    "write_todos": "TodoWrite",
    "agent": "Task",
    "task": "Task",
}


# Blocks


def _message(
    record: Record, role: str, content: Sequence[Record], origin: str | None = None
) -> dict[str, Any]:
    """Return a message of the agent that wrote the record; `agent` only where a transcript has several."""
    kept = {key: record[key] for key in ("timestamp", "isSidechain") if key in record}
    owner = {"agent": record.get("agentId")} if "data" in record else {}
    owner |= {"isMeta": True} if origin == "host" else {}
    return {**kept, **owner, "type": role, "origin": origin, "message": {"role": role, "content": content}}


def _reply(
    record: Record, content: Sequence[Record], tokens: object = None, identity: object = None
) -> dict[str, Any]:
    reply = _message(record, "assistant", content)
    if tokens is not None:
        reply["message"] |= {"usage": {"input_tokens": tokens}, "id": identity}
    return reply


def _text(value: object) -> Record:
    return {"type": "text", "text": value if isinstance(value, str) else ""}


def _call(identity: object, name: object, args: Record) -> Record:
    return {"type": "tool_use", "id": identity, "name": name, "input": dict(args)}


def _result(identity: object, text: str, *, is_error: bool) -> Record:
    return {"type": "tool_result", "tool_use_id": identity, "content": text, "is_error": is_error}


def as_mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _parse(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


FORMATS: Mapping[str, TranscriptFormat] = {
    CLAUDE: TranscriptFormat(
        calls=CALLS[CLAUDE],
        results=(b'"tool_result"',),
        prompts=(*both_styles([b'"role":"user"']), b'"queued_command"'),
        replies=both_styles([b'"role":"assistant"']),
        usage=(b'"usage"',),
        convert=_from_claude,
    ),
    CODEX: TranscriptFormat(
        calls=CALLS[CODEX],
        results=both_styles([b'"type":"function_call_output"', b'"type":"custom_tool_call_output"']),
        prompts=both_styles([b'"type":"user_message"', b'"role":"user"']),
        replies=both_styles([b'"role":"assistant"']),
        usage=both_styles([b'"type":"token_count"']),
        convert=_from_codex,
    ),
    QWEN: TranscriptFormat(
        calls=CALLS[QWEN],
        results=(b'"functionResponse"',),
        prompts=both_styles([b'"role":"user"']),
        replies=both_styles([b'"role":"model"']),
        usage=(b'"usageMetadata"',),
        convert=_from_qwen,
    ),
    GEMINI: TranscriptFormat(
        calls=CALLS[GEMINI],
        results=(),
        prompts=both_styles([b'"type":"user"']),
        replies=both_styles([b'"type":"gemini"']),
        usage=(b'"tokens"',),
        convert=_from_gemini,
    ),
    COPILOT: TranscriptFormat(
        calls=CALLS[COPILOT],
        results=both_styles([b'"type":"tool.execution_complete"']),
        prompts=both_styles([b'"type":"user.message"']),
        replies=both_styles([b'"type":"assistant.message"']),
        usage=both_styles([b'"type":"session.usage_record"']),
        convert=_from_copilot,
    ),
}
