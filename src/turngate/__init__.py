"""Turngate decides whether an AI agent may stop.

This module holds only the public names. Each is loaded on first use, so that the import is cheap; their types are in
`__init__.pyi`.
"""

_NAMES = {
    "core.hooks.kinds": (
        "AgentHook CallbackHook CommandHook GateHook HttpHook PromptHook CallbackHookConfig "
        "CommandHookConfig HookCallback HookConfig PromptHookConfig"
    ),
    "gate_callbacks": "GateCallback gate_callback",
    "options.hook_forms": "HookCallbackMatcher HookGroup",
    "options.options": "Options InvalidOptions",
    "core.events.events": "BaseHookInput HookEvent StopEvent StopHookInput Subagent SubagentStopHookInput",
    "core.verdict.decisions": "Advise Allow Block Fault Halt",
    "core.settings": "Problem Rule Settings",
    "core.verdict.verdict": "Continue Stop",
    "core.verdict.hook_run": "HookOutput HookRun",
    # GoHome and GoOn are deprecated aliases of EndTurn and ContinueTurn, removed in 0.3.
    "core.verdict.loop_guard": "ContinueTurn EndTurn GoHome GoOn LoopGuard new_guard",
    "agent.session": "Session",
    "errors": "UsageError",
    "core.events.stream_events": "TurnResult",
    "plugins.handlers": "Plugin Plugins",
    "core.events.plugin_events": (
        "SubagentEndedEvent SubagentStoppingContext SubagentStoppingEvent SubagentStoppingResult"
    ),
    "models.scripted": "ScriptedModel",
    "transcript.reader": "read_last_assistant_message",
    "ports": "World Workspace",
    "shells.local": "LocalShell",
    "state.journal": "Journal",
    "trust.load": "load_settings",
    "stop_hooks": "StopHooksResult run_stop_hooks",
    "engine": "ask_hooks",
    "project.safe_paths": "UnsafePath is_sensitive safe_path",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = tuple(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'turngate' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 # lazy: `turngate fire` without hooks does not need it

    return getattr(import_module(f"turngate.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
