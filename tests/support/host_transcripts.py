"""Builds transcripts in the shapes that the agent programs write, as recorded in `tests/data/transcripts` and `tests/hosts/recorded`."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FOLDER = "/srv/app"
Record = dict[str, Any]


class HostTranscript:
    """Collects the records of one conversation. Each method adds what the program writes when that happens."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._begin()

    def prompt(self, text: str) -> None:
        raise NotImplementedError

    def says(self, text: str) -> None:
        raise NotImplementedError

    def calls(self, tool: str, args: Record, output: str, code: int = 0) -> None:
        """Add a call of a tool, `edit`, `shell` or `plan`, with its result."""
        raise NotImplementedError

    def feedback(self, reason: str) -> None:
        """Add what a stop hook said."""
        raise NotImplementedError

    def edits(self, path: str) -> None:
        self.calls("edit", {"path": f"{FOLDER}/{path}"}, "The file has been updated.")

    def runs(self, command: str, output: str, code: int = 0) -> None:
        self.calls("shell", {"command": command}, output, code)

    def plans(self, *states: str) -> None:
        self.calls(
            "plan", {"steps": [(f"step {n}", state) for n, state in enumerate(states)]}, "Plan updated"
        )

    def write(self, path: Path) -> str:
        path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in self.records))
        return str(path)

    def _begin(self) -> None:
        """Add what stands before the first prompt."""

    def _add(self, **record: Any) -> None:
        self.records.append(record)

    def _time(self) -> str:
        moment = datetime(2026, 11, 10, 10, tzinfo=UTC) + timedelta(seconds=len(self.records))
        return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def _id(self) -> str:
        return f"id-{len(self.records)}"


class Claude(HostTranscript):
    def prompt(self, text: str, **more: Any) -> None:
        self._message("user", text, promptSource="sdk", **more)

    def says(self, text: str) -> None:
        self._reply({"type": "text", "text": text})

    def calls(self, tool: str, args: Record, output: str, code: int = 0) -> None:
        names = {"edit": "Edit", "shell": "Bash", "plan": "TodoWrite"}
        if tool == "edit":
            args = {"file_path": args["path"], "old_string": "a", "new_string": "b"}
        elif tool == "plan":
            steps = [{"content": step, "status": state, "activeForm": step} for step, state in args["steps"]]
            args = {"todos": steps}
        identity = f"toolu_{len(self.records)}"
        self._reply({"type": "tool_use", "id": identity, "name": names[tool], "input": args})
        text = f"Exit code {code}\n{output}" if code else output
        block = {"tool_use_id": identity, "type": "tool_result", "content": text, "is_error": code != 0}
        self._message("user", [block], toolUseResult={"stdout": output, "stderr": "", "interrupted": False})

    def feedback(self, reason: str) -> None:
        self._message("user", f"Stop hook feedback:\n{reason}", isMeta=True)
        self._add(
            parentUuid=None, isSidechain=False, type="system", subtype="stop_hook_summary", hookCount=1,
            hookInfos=[{"command": "turngate hook"}], hookErrors=[reason], preventedContinuation=False,
            stopReason="", hasOutput=True, level="suggestion", timestamp=self._time(), cwd=FOLDER,
        )  # fmt: skip

    def _reply(self, block: Record) -> None:
        usage = {
            "input_tokens": 10,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 5,
        }
        message = {
            "id": f"msg_{len(self.records)}",
            "type": "message",
            "role": "assistant",
            "model": "claude",
        }
        self._add(**self._common("assistant"), message={**message, "content": [block], "usage": usage})

    def _message(self, kind: str, content: Any, **more: Any) -> None:
        self._add(**self._common(kind), message={"role": kind, "content": content}, **more)

    def _common(self, kind: str) -> Record:
        return {
            "parentUuid": None, "isSidechain": False, "type": kind, "uuid": self._id(), "timestamp": self._time(),
            "userType": "external", "cwd": FOLDER, "sessionId": "s", "version": "2.1.0", "gitBranch": "main",
        }  # fmt: skip


class Own(Claude):
    def feedback(self, reason: str) -> None:
        self._message("user", reason, isMeta=True, origin="stop_hook", continuation=1, stopHookActive=True)

    def says(self, text: str) -> None:
        super().says(text)
        self._add(type="turn_end", ended_by="allowed", notice=None)


class Codex(HostTranscript):
    def _begin(self) -> None:
        meta = {
            "id": "s",
            "timestamp": self._time(),
            "cwd": FOLDER,
            "originator": "codex_exec",
            "cli_version": "0.166.0",
            "git": {},
        }
        self._add(timestamp=self._time(), ordinal=0, type="session_meta", payload=meta)

    def prompt(self, text: str) -> None:
        self._event(type="task_started", turn_id=self._id(), model_context_window=258400)
        self._user(text, {"type": "user", "hook": False})
        self._event(type="user_message", message=text, images=[])

    def says(self, text: str) -> None:
        self._item(
            type="message",
            role="assistant",
            content=[{"type": "output_text", "text": text}],
            phase="final_answer",
        )
        self._event(
            type="token_count",
            info={
                "last_token_usage": {"total_tokens": 15},
                "total_token_usage": {"total_tokens": len(self.records)},
            },
        )

    def calls(self, tool: str, args: Record, output: str, code: int = 0) -> None:
        identity, given = f"call_{len(self.records)}", dict[str, Any]()
        if tool == "edit":
            name, given = (
                "apply_patch",
                {"input": f"*** Begin Patch\n*** Update File: {args['path']}\n@@\n-a\n+b\n*** End Patch\n"},
            )
        elif tool == "shell":
            name, given = "exec_command", {"cmd": args["command"]}
        else:
            name, given = (
                "update_plan",
                {"plan": [{"step": step, "status": state} for step, state in args["steps"]]},
            )
        self._item(
            type="function_call", status="completed", name=name, arguments=json.dumps(given), call_id=identity
        )
        head = f"Chunk ID: de9d59\nWall time: 0.0000 seconds\nProcess exited with code {code}\nOriginal token count: 3\nOutput:\n"
        text = output if tool == "plan" else f"{head}{output}"
        self._item(type="function_call_output", call_id=identity, output=text)

    def feedback(self, reason: str) -> None:
        self._user(reason, {"type": "harness", "hook": True})

    def _user(self, text: str, provenance: Record) -> None:
        metadata = {"turn_id": "t", "content_item_metadata": [{"provenance": provenance}]}
        content = [{"type": "input_text", "text": text}]
        self._item(
            type="message", role="user", content=content, internal_chat_message_metadata_passthrough=metadata
        )

    def _item(self, **payload: Any) -> None:
        self._add(timestamp=self._time(), ordinal=len(self.records), type="response_item", payload=payload)

    def _event(self, **payload: Any) -> None:
        self._add(timestamp=self._time(), ordinal=len(self.records), type="event_msg", payload=payload)


_GEMINI_TOOLS = {"edit": "replace", "shell": "run_shell_command", "plan": "write_todos"}


def _gemini_args(tool: str, args: Record) -> Record:
    if tool == "plan":
        return {
            "todos": [
                {"description": step, "content": step, "status": state} for step, state in args["steps"]
            ]
        }
    if tool == "edit":
        return {"file_path": args["path"], "old_string": "a", "new_string": "b"}
    return {**args, "description": "run it"}


class Gemini(HostTranscript):
    def _begin(self) -> None:
        self._add(
            sessionId="s",
            projectHash="2c122c18",
            startTime=self._time(),
            lastUpdated=self._time(),
            kind="main",
        )

    def prompt(self, text: str) -> None:
        self._entry(type="user", content=[{"text": text}])

    def says(self, text: str) -> None:
        self._entry(
            type="gemini",
            content=text,
            thoughts=[],
            tokens={"input": 10, "output": 5, "total": 15},
            model="gemini-2.5-flash",
        )

    def calls(self, tool: str, args: Record, output: str, code: int = 0) -> None:
        identity, name = f"{tool}_{len(self.records)}", _GEMINI_TOOLS[tool]
        text = (
            f"Output: {output}\n{f'Exit Code: {code}' if code else 'Process Group PGID: 928'}"
            if tool == "shell"
            else output
        )
        answer = {"functionResponse": {"id": identity, "name": name, "response": {"output": text}}}
        call = {
            "id": identity,
            "name": name,
            "args": _gemini_args(tool, args),
            "result": [answer],
            "status": "success",
        }
        entry = {
            "type": "gemini",
            "content": "",
            "thoughts": [],
            "tokens": {"total": 15},
            "model": "gemini-2.5-flash",
        }
        self._entry(**entry, toolCalls=[{**call, "timestamp": self._time(), "resultDisplay": output}])
        self._entry(type="user", content=[answer])

    def feedback(self, reason: str) -> None:
        self.prompt(reason)

    def _entry(self, **fields: Any) -> None:
        self._add(id=self._id(), timestamp=self._time(), **fields)
        self.records.append({"$set": {"lastUpdated": self._time()}})


class Qwen(HostTranscript):
    def prompt(self, text: str) -> None:
        self._entry("user", "real_user", message={"role": "user", "parts": [{"text": text}]})

    def says(self, text: str) -> None:
        self._reply({"text": text})

    def calls(self, tool: str, args: Record, output: str, code: int = 0) -> None:
        identity = f"call_{len(self.records)}"
        name = {**_GEMINI_TOOLS, "edit": "edit", "plan": "todo_write"}[tool]
        self._reply({"functionCall": {"id": identity, "name": name, "args": _gemini_args(tool, args)}})
        shell = f"Command: x\nDirectory: (root)\nOutput: {output}\nError: (none)\nExit Code: {code}\nSignal: (none)\nProcess Group PGID: (none)"
        response = {
            "id": identity,
            "name": name,
            "response": {"output": shell if tool == "shell" else output},
        }
        display = {"type": "shell_result", "version": 1, "exitCode": code} if tool == "shell" else output
        self._entry(
            "tool_result", "tool_result", message={"role": "user", "parts": [{"functionResponse": response}]},
            toolCallResult={"callId": identity, "status": "success", "resultDisplay": display},
        )  # fmt: skip

    def feedback(self, reason: str) -> None:
        self._entry("user", "hook", message={"role": "user", "parts": [{"text": reason}]})

    def _reply(self, part: Record) -> None:
        message, usage = {"role": "model", "parts": [part]}, {"promptTokenCount": 10, "totalTokenCount": 15}
        self._entry("assistant", "assistant_output", model="scripted", message=message, usageMetadata=usage)

    def _entry(self, kind: str, provenance: str, **fields: Any) -> None:
        common = {
            "uuid": self._id(),
            "parentUuid": None,
            "sessionId": "s",
            "timestamp": self._time(),
            "cwd": FOLDER,
            "version": "0.24.4",
        }
        self._add(**common, type=kind, provenance=provenance, **fields)


class Copilot(HostTranscript):
    def _begin(self) -> None:
        context = {"cwd": FOLDER, "gitRoot": FOLDER, "branch": "main"}
        self._event(
            "session.start",
            sessionId="s",
            version=1,
            producer="copilot-agent",
            startTime=self._time(),
            context=context,
        )

    def prompt(self, text: str) -> None:
        self._event(
            "user.message",
            content=text,
            transformedContent=text,
            messageId=self._id(),
            delivery="idle",
            turnId="0",
        )
        self._event("assistant.turn_start", turnId="0")

    def says(self, text: str) -> None:
        self._event(
            "assistant.message",
            messageId=self._id(),
            model="gpt-4.1",
            content=text,
            toolRequests=[],
            turnId="0",
        )

    def calls(self, tool: str, args: Record, output: str, code: int = 0) -> None:
        identity = f"call_{len(self.records)}"
        names = {"edit": "edit", "shell": "bash", "plan": "todo_write"}
        if tool == "plan":
            args = _gemini_args(tool, args)
        request = {"toolCallId": identity, "name": names[tool], "arguments": args, "type": "function"}
        self._event(
            "assistant.message",
            messageId=self._id(),
            model="gpt-4.1",
            content="",
            toolRequests=[request],
            turnId="0",
        )
        self._event(
            "tool.execution_start",
            toolCallId=identity,
            toolName=names[tool],
            arguments=args,
            turnId="0",
            model="gpt-4.1",
        )
        shell = {"shellExecution": {"exitCode": code}} if tool == "shell" else {}
        text = f"{output}\n<shellId: 0 completed with exit code {code}>" if tool == "shell" else output
        self._event(
            "tool.execution_complete",
            toolCallId=identity,
            model="gpt-4.1",
            turnId="0",
            success=True,
            result={"content": text},
            **shell,
        )

    def feedback(self, reason: str) -> None:
        self._event(
            "user.message",
            content=reason,
            transformedContent=reason,
            messageId=self._id(),
            delivery="queued",
            turnId="1",
        )

    def _event(self, kind: str, **data: Any) -> None:
        self._add(type=kind, data=data, id=self._id(), timestamp=self._time(), parentId=None)


HOSTS: dict[str, type[HostTranscript]] = {
    "claude": Claude, "codex": Codex, "gemini": Gemini, "qwen": Qwen, "copilot": Copilot, "turngate": Own,
}  # fmt: skip
