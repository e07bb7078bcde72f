"""The input of a hook of any host → the names and types that Turngate uses; and whose input it is.

Imports nothing heavy: every stop needs it.
"""

import os

from turngate.core.constants import IN_ACP, IN_HOOK, IN_TOOL, TEAM_EVENTS, TEAM_FIELDS

# The name of an event in a host: ours.
EVENT_NAMES = {
    "Stop": "Stop",
    "agentStop": "Stop",
    "AfterAgent": "Stop",
    "stop": "Stop",
    "SubagentStop": "SubagentStop",
    "subagentStop": "SubagentStop",
    "TaskCompleted": "TaskCompleted",
    "TeammateIdle": "TeammateIdle",
    "SessionStart": "SessionStart",
    "sessionStart": "SessionStart",
    "SubagentStart": "SubagentStart",
    "subagentStart": "SubagentStart",
}

# Our field: its names in the hosts.
_TEXTS = {
    "hook_event_name": ("hook_event_name", "hookEventName", "event"),
    "session_id": ("session_id", "sessionId", "conversation_id"),
    "transcript_path": ("transcript_path", "transcriptPath"),
    "cwd": ("cwd", "working_dir"),
    "permission_mode": ("permission_mode", "permissionMode"),
    # Not `generation_id` of Cursor: each continuation has another one.
    "prompt_id": ("prompt_id", "turn_id"),
    "last_assistant_message": (
        "last_assistant_message",
        "prompt_response",
        "response",
        "summary",
        "assistant_text",
    ),
    "agent_id": ("agent_id", "agentId", "subagent_id"),
    "agent_type": ("agent_type", "subagent_type", "agentType", "agent_name", "agentName"),
    "agent_transcript_path": ("agent_transcript_path", "agentTranscriptPath"),
    **{name: (name,) for name in ("source", "model", *TEAM_FIELDS)},
}
_LISTS = {"background_tasks": ("background_tasks",), "session_crons": ("session_crons", "crons")}

_NO_TEXT = "[no response text]"  # Gemini CLI and Qwen Code: the answer of the agent has no text
_NOT_FINISHED = ("aborted", "error")  # Cursor: it ignores what a hook answers at such a stop

# A host, and the fields by which its input is recognized; `-` is a field that is not there. The first row that fits.
_MARKS = (
    ("opencode", "opencode_agent"),
    ("cursor", "conversation_id"),
    ("cursor", "cursor_version"),
    ("droid", "sessionId", "hookEventName", "-timestamp"),
    ("gemini", "prompt_response"),
    ("vscode", "sessionId", "hookEventName", "timestamp"),
    ("kiro", "assistant_text"),
    ("kiro", "hook_continuation_count"),
    ("claude", "session_crons"),
    ("claude", "effort"),
    ("copilot", "timestamp", "stop_reason"),
    ("copilot", "timestamp", "agent_name"),
    ("copilot", "timestamp", "initial_prompt"),
    ("copilot", "timestamp", "sessionId", "-hookEventName"),
    ("qwen", "timestamp", "permission_mode"),
    ("qwen", "timestamp", "stop_hook_active", "last_assistant_message"),  # version 0.15
    ("codex", "turn_id", "model"),
    ("codex", "permission_mode", "model", "source"),
    ("claude", "prompt_id"),
)

# Of each host: a folder in the path of its transcripts, for input without a field of its own, such as that of SessionStart; a
# variable of its hooks; the variable with the folder of the project; and one of the commands that its agent runs, with the id
# of the session. Gemini CLI has none with the id. Qwen Code also sets those of Gemini CLI, and both set those of Claude Code:
# the first row that fits.
TRACES: dict[str, tuple[str, str | None, str | None, str | None]] = {
    "opencode": ("/opencode/", None, None, None),
    "kimi": ("/.kimi-code/", None, None, None),
    "kiro": ("/.kiro/", None, None, None),
    "vscode": ("/GitHub.copilot-chat/", None, None, None),
    "cursor": ("/.cursor/", "CURSOR_VERSION", "CURSOR_PROJECT_DIR", None),
    "droid": ("/.factory/", "FACTORY_PROJECT_DIR", "FACTORY_PROJECT_DIR", None),
    "qwen": ("/.qwen/", "QWEN_PROJECT_DIR", "QWEN_PROJECT_DIR", "QWEN_CODE_SESSION_ID"),
    "gemini": ("/.gemini/", "GEMINI_PROJECT_DIR", "GEMINI_PROJECT_DIR", "GEMINI_CLI"),
    "copilot": ("/.copilot/", "COPILOT_CLI", None, "COPILOT_AGENT_SESSION_ID"),
    "claude": ("/.claude/projects/", "CLAUDE_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID"),
    "codex": ("/.codex/", None, None, "CODEX_SESSION_ID"),
}
PROJECT_VARIABLES = {host: variable for host, (_, _, variable, _) in TRACES.items() if variable}


def normalize(fields: dict[str, object]) -> dict[str, object]:
    """Return the fields that Turngate knows, under its names; one that is missing or has a wrong type is left out.

    `hook_event_name` is empty for an event that is let through without asking a hook.
    """
    known: dict[str, object] = {}
    for name, names in _TEXTS.items():
        texts = (each for each in map(fields.get, names) if isinstance(each, str) and each != _NO_TEXT)
        if text := next(filter(None, texts), None):
            known[name] = text
    for name, names in _LISTS.items():
        lists = (each for each in map(fields.get, names) if isinstance(each, list))
        if items := next(filter(None, lists), None):
            known[name] = [item for item in items if isinstance(item, dict)]
    effort = fields.get("effort")
    if isinstance(effort, dict) and isinstance(effort.get("level"), str):
        known["effort"] = effort
    if type(fields.get("tool_calls")) is int:  # OpenCode, which has no transcript
        known["tool_calls"] = fields["tool_calls"]
    roots = fields.get("workspace_roots")  # Cursor: instead of one working directory
    if "cwd" not in known and isinstance(roots, list) and roots and isinstance(roots[0], str):
        known["cwd"] = roots[0]
    for name in ("transcript_path", "agent_transcript_path"):
        path = known.get(name)
        if isinstance(path, str) and path.startswith("~/"):  # so in the documentation of droid
            known[name] = os.path.expanduser(path)
    if own := _own_transcript(known):
        known["agent_transcript_path"] = own
    known["hook_event_name"] = _event_name(fields, known)
    loops = fields.get("loop_count")  # Cursor counts instead: it is 0 at the first stop
    is_active = fields.get("stop_hook_active") is True or fields.get("stopHookActive") is True
    known["stop_hook_active"] = is_active or (isinstance(loops, int) and loops > 0)
    return known


def _own_transcript(known: dict[str, object]) -> str | None:
    """Return the transcript of a subagent whose host does not name it, or names that of the main agent instead.

    Qwen Code does so unless the subagent runs in the background, and Claude Code for a teammate.
    """
    main, agent = str(known.get("transcript_path", "")), str(known.get("agent_id", ""))
    named = known.get("agent_transcript_path")
    folder, name = os.path.split(main)
    session = name.removesuffix(".jsonl")
    if named is None and known.get("hook_event_name") in TEAM_EVENTS:
        own = os.path.join(folder, session, "subagents", f"agent-{agent}.jsonl")
    elif named == main and os.path.basename(folder) == "chats":
        own = os.path.join(os.path.dirname(folder), "subagents", session, f"agent-{agent}.jsonl")
    else:
        return None
    return own if agent and "/" not in agent and os.path.isfile(own) else None


def _event_name(fields: dict[str, object], known: dict[str, object]) -> str:
    event = EVENT_NAMES.get(str(known.get("hook_event_name") or _unnamed_event(fields)), "")
    host = _by_fields(fields) if event in ("Stop", "SubagentStop") else None
    if host == "copilot" and event == "Stop" and "agent_id" in known:
        return ""  # a subagent stops, and SubagentStop asks the hooks
    if host == "cursor" and fields.get("status") in _NOT_FINISHED:
        return ""
    return event


def _unnamed_event(fields: dict[str, object]) -> str:
    """Copilot CLI does not name the event to a hook with a name in camel case, nor SubagentStart to any."""
    if "stopReason" in fields:
        return "subagentStop" if "agentName" in fields else "agentStop"
    if "sessionId" in fields and "agentName" in fields:
        return "subagentStart"
    return "sessionStart" if "sessionId" in fields and "source" in fields else ""


def recognize(fields: dict[str, object], environ: dict[str, str] | None = None) -> str | None:
    """Return the name of the host that gives its hooks this input, or None for one that is not known.

    The input decides. A program that runs inside another one inherits its variables, so they come last.
    """
    if host := _by_fields(fields):
        return host
    path, get = fields.get("transcript_path"), os.environ.get if environ is None else environ.get
    path = path.replace("\\", "/") if isinstance(path, str) else ""
    by_transcript = (host for host, (folder, _, _, _) in TRACES.items() if folder in path)
    by_variable = (host for host, (_, variable, _, _) in TRACES.items() if variable and get(variable))
    return next(by_transcript, None) or next(by_variable, None)


def variable_of_command(
    host: str | None, session: object, environ: dict[str, str] | None = None
) -> str | None:
    """Return the variable which shows that a command of the session's own agent gives this event, and not the host.

    A host that such a command has started gives events of another session, and has the variable of its hooks.
    """
    environ = dict(os.environ) if environ is None else environ
    of_host = TRACES[host][1] if host in TRACES else None
    if IN_HOOK in environ:  # a hook of a session of Turngate that such a command has started
        return None
    if environ.get(IN_ACP, host) != host:
        return IN_ACP
    if IN_TOOL in environ and of_host not in environ:
        return IN_TOOL
    for name, (_, _, of_hooks, variable) in TRACES.items():
        value = environ.get(variable or "")
        if value and of_hooks not in environ and (value == session or name == host == "gemini"):
            return variable
    return None


def _by_fields(fields: dict[str, object]) -> str | None:
    if fields.get("hook_event_name") == "AfterAgent":
        return "gemini"
    if fields.get("client_type") == "kimi_code_cli":
        return "kimi"
    for host, *marks in _MARKS:
        if all(mark[1:] not in fields if mark[0] == "-" else fields.get(mark) is not None for mark in marks):
            return host
    return None
