import asyncio

from turngate import GateCallback, GateHook, LocalShell, Options, StopEvent, World, ask_hooks, gate_callback

event = StopEvent(session_id="s-1", transcript_path="", cwd=".")
options = Options(
    {
        "Stop": [
            GateHook(command="echo 'FAILED test_total'; exit 1"),  # any failing exit code blocks
            GateHook(command="no-such-program"),  # could not run: not enforced
        ]
    }
)
verdict = asyncio.run(ask_hooks(event, options.settings(), World(LocalShell(), ".", logs=False)))
for output in verdict.hook_outputs:
    print(output.outcome, "|", output.said)

# The same gate as a function: for CallbackHook, plugins, and HookMatcher of Claude's Agent SDK.
tests: GateCallback = gate_callback(command="echo '1 failed'; exit 1", timeout=300)
print(asyncio.run(tests(event)))
print(asyncio.run(tests({"hook_event_name": "Stop", "session_id": "s-2", "cwd": "."}, None, {})))
