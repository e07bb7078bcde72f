"""Turngate decides whether an AI agent may stop.

This module holds only the public names. Each is loaded on first use, so that the import is cheap; their types are in
`__init__.pyi`.
"""

_MODULES = {
    "AgentHook": "core.hooks.kinds",
    "CallbackHook": "core.hooks.kinds",
    "CommandHook": "core.hooks.kinds",
    "GateHook": "core.hooks.kinds",
    "HttpHook": "core.hooks.kinds",
    "GateCallback": "gate_callbacks",
    "gate_callback": "gate_callbacks",
    "PromptHook": "core.hooks.kinds",
    "CallbackHookConfig": "core.hooks.kinds",
    "CommandHookConfig": "core.hooks.kinds",
    "PromptHookConfig": "core.hooks.kinds",
    "HookCallbackMatcher": "options",
    "HookGroup": "options",
    "Options": "options",
    "InvalidOptions": "options",
    "StopEvent": "core.events.events",
    "StopHookInput": "core.events.events",
    "Subagent": "core.events.events",
    "SubagentStopHookInput": "core.events.events",
    "Advise": "core.verdict.decisions",
    "Allow": "core.verdict.decisions",
    "Block": "core.verdict.decisions",
    "Fault": "core.verdict.decisions",
    "Halt": "core.verdict.decisions",
    "Problem": "core.settings",
    "Rule": "core.settings",
    "Settings": "core.settings",
    "Continue": "core.verdict.verdict",
    "HookOutput": "core.verdict.hook_run",
    "HookRun": "core.verdict.hook_run",
    "Stop": "core.verdict.verdict",
    "ContinueTurn": "core.verdict.loop_guard",
    "EndTurn": "core.verdict.loop_guard",
    "GoHome": "core.verdict.loop_guard",  # deprecated alias of EndTurn, removed in 0.2
    "GoOn": "core.verdict.loop_guard",  # deprecated alias of ContinueTurn, removed in 0.2
    "LoopGuard": "core.verdict.loop_guard",
    "new_guard": "core.verdict.loop_guard",
    "Session": "agent.session",
    "UsageError": "errors",
    "TurnResult": "core.events.session_events",
    "Plugin": "plugins.handlers",
    "Plugins": "plugins.handlers",
    "SubagentEndedEvent": "core.events.plugin_events",
    "SubagentStoppingContext": "core.events.plugin_events",
    "SubagentStoppingEvent": "core.events.plugin_events",
    "SubagentStoppingResult": "core.events.plugin_events",
    "ScriptedModel": "models.scripted",
    "read_last_assistant_message": "transcript.reader",
    "World": "ports",
    "Workspace": "ports",
    "LocalShell": "shells.local",
    "Journal": "state.journal",
    "load_settings": "trust.load",
    "StopHooksResult": "stop_hooks",
    "ask_hooks": "engine",
    "run_stop_hooks": "stop_hooks",
    "UnsafePath": "project.paths",
    "is_sensitive": "project.paths",
    "safe_path": "project.paths",
}

__all__ = tuple(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'turngate' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 # lazy: `turngate fire` without hooks does not need it

    return getattr(import_module(f"turngate.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
