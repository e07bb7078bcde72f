import warnings

from turngate import (
    AgentHook,
    Block,
    CallbackHook,
    CallbackHookConfig,
    CommandHook,
    CommandHookConfig,
    HookCallback,
    HookCallbackMatcher,
    HookConfig,
    HookEvent,
    HookGroup,
    HttpHook,
    InvalidOptions,
    Options,
    PromptHook,
    PromptHookConfig,
    StopEvent,
)


def no_promises(event: StopEvent) -> Block | None:
    return Block("Do it now.") if "later" in event.last_text else None


options = Options(
    {
        "Stop": [
            CommandHook("make test", timeout=120),
            PromptHook("Did the tests run after the last change?"),
            AgentHook("Does the code follow CONTRIBUTING.md?"),
            HttpHook("https://gate.example/stop"),
            CallbackHook(no_promises, blocking=True),  # its failure blocks too
        ],
        "SubagentStop": [HookGroup("Explore|Plan", [CommandHook("./check-plan")])],
    },
    limit=5,
)
print([rule.hook.kind for rule in options.settings().rules])

try:
    Options({"Stpo": [CommandHook("make test")]})
except InvalidOptions as error:
    print(error.problems[0].hint)

# Names of earlier SDKs.
callback: HookCallback = no_promises
hooks: dict[HookEvent, list[HookConfig]] = {"Stop": [CallbackHook(callback), CommandHook("make lint")]}
print(len(Options(hooks).settings().rules))
warnings.simplefilter("ignore", DeprecationWarning)
matcher = HookCallbackMatcher(hooks=[no_promises], timeout=10)
print(len(Options({"Stop": [matcher]}).settings().rules))
assert (CommandHookConfig, PromptHookConfig, CallbackHookConfig) == (CommandHook, PromptHook, CallbackHook)
