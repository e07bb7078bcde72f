import asyncio

from turngate import GateHook, LocalShell, Options, StopEvent, World, ask_hooks

options = Options(
    {
        "Stop": [
            GateHook(command="echo 'FAILED test_total'; exit 1"),  # any failing exit code blocks
            GateHook(command="no-such-program"),  # could not run: not enforced
        ]
    }
)
event = StopEvent(session_id="s-1", transcript_path="", cwd=".")
verdict = asyncio.run(ask_hooks(event, options.settings(), World(LocalShell(), ".", logs=False)))
for output in verdict.hook_outputs:
    print(output.outcome, "|", output.said)
