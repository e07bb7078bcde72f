"""Turngate decides whether an AI agent may stop.

This module holds only the public names. Each is loaded on first use, so that the import is cheap; their types are in
`__init__.pyi`.
"""

_MODULES = {
    "AgentHook": "core.hooks",
    "CallbackHook": "core.hooks",
    "CommandHook": "core.hooks",
    "GateHook": "core.hooks",
    "HttpHook": "core.hooks",
    "GateCallback": "single_gate",
    "gate_callback": "single_gate",
    "PromptHook": "core.hooks",
    "CallbackHookConfig": "core.hooks",
    "CommandHookConfig": "core.hooks",
    "PromptHookConfig": "core.hooks",
    "HookCallbackMatcher": "options",
    "HookGroup": "options",
    "Options": "options",
    "InvalidOptions": "options",
    "StopEvent": "core.events",
    "StopHookInput": "core.events",
    "Subagent": "core.events",
    "SubagentStopHookInput": "core.events",
    "Advise": "core.decisions",
    "Allow": "core.decisions",
    "Block": "core.decisions",
    "Fault": "core.decisions",
    "Halt": "core.decisions",
    "Problem": "core.settings",
    "Rule": "core.settings",
    "Settings": "core.settings",
    "Continue": "core.verdict",
    "HookOutput": "core.hook_run",
    "HookRun": "core.hook_run",
    "Stop": "core.verdict",
    "ContinueTurn": "core.loop_guard",
    "EndTurn": "core.loop_guard",
    "GoHome": "core.loop_guard",  # deprecated alias of EndTurn, removed in 0.2
    "GoOn": "core.loop_guard",  # deprecated alias of ContinueTurn, removed in 0.2
    "LoopGuard": "core.loop_guard",
    "new_guard": "core.loop_guard",
    "Session": "agent.session",
    "UsageError": "errors",
    "TurnResult": "core.session_events",
    "Plugin": "plugins.handlers",
    "Plugins": "plugins.handlers",
    "SubagentEndedEvent": "core.plugin_events",
    "SubagentStoppingContext": "core.plugin_events",
    "SubagentStoppingEvent": "core.plugin_events",
    "SubagentStoppingResult": "core.plugin_events",
    "ScriptedModel": "models.scripted",
    "read_last_assistant_message": "transcript.reader",
    "World": "ports",
    "Workspace": "ports",
    "LocalShell": "shells.local",
    "Journal": "state.journal",
    "load_settings": "trust.load",
    "StopHooksResult": "single_stop",
    "ask_hooks": "engine",
    "run_stop_hooks": "single_stop",
    "UnsafePath": "filesystem.safe_path",
    "is_sensitive": "filesystem.safe_path",
    "safe_path": "filesystem.safe_path",
}

__all__ = tuple(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'turngate' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 # lazy: `turngate fire` without hooks does not need it

    return getattr(import_module(f"turngate.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
