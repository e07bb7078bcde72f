"""The table of document 000: what a stop hook prints, and what its executor makes of it."""

from dataclasses import dataclass

from turngate.stop_hooks import StopHooksResult

BLOCK = '{"decision": "block", "reason": "Task incomplete. Please run tests before stopping."}'
BROKEN = (
    "its decision was not read, because its output is not valid JSON "
    "(line 1, column 22: Expecting ',' delimiter)"
)
BOTH = "it sent `continue: false` with a block: the turn ends and the block's reason is not used"


@dataclass(frozen=True)
class ExecutorCase:
    body: str
    expected: StopHooksResult  # `HOOK` in a warning stands for the hook's name
    timeout: float | None = None


EXECUTOR_CASES = {
    "S0-83": [
        ExecutorCase("exit 0", StopHooksResult(should_stop=True)),
        ExecutorCase("echo all is well", StopHooksResult(should_stop=True)),
        ExecutorCase("echo '{}'", StopHooksResult(should_stop=True)),
        ExecutorCase("""echo '{"reason": "no decision"}'""", StopHooksResult(should_stop=True)),
    ],
    "S0-84": [
        ExecutorCase(
            f"echo '{BLOCK}'", StopHooksResult(False, "Task incomplete. Please run tests before stopping.")
        ),
        ExecutorCase(
            """echo '{"decision": "block"}'""",
            StopHooksResult(
                should_stop=True,
                warnings=[
                    'hook "HOOK" failed and was NOT enforced: it blocked without a reason, so it does not block'
                ],
            ),
        ),
    ],
    "S0-85": [
        ExecutorCase(
            """echo '{"continue": false, "stopReason": "enough"}'""",
            StopHooksResult(should_stop=True, stop_reason="enough"),
        ),
        ExecutorCase(
            """echo '{"continue": false, "decision": "block", "reason": "go on"}'""",
            StopHooksResult(should_stop=True, warnings=[f'hook "HOOK": {BOTH}']),
        ),
    ],
    "S0-86": [
        ExecutorCase("echo fix it >&2; exit 2", StopHooksResult(False, "fix it")),
        ExecutorCase(
            """echo '{"continue": false}'; echo fix it >&2; exit 2""", StopHooksResult(False, "fix it")
        ),
        ExecutorCase(
            "exit 2",
            StopHooksResult(
                should_stop=True,
                warnings=[
                    'hook "HOOK" failed and was NOT enforced: it exited with 2 but gave no reason on stderr, so it does not block',
                ],
            ),
        ),
    ],
    "S0-87": [
        ExecutorCase(
            "echo no such tool >&2; exit 1",
            StopHooksResult(
                should_stop=True,
                warnings=['hook "HOOK" failed and was NOT enforced: exit code 1: no such tool'],
            ),
        ),
    ],
    "S0-88": [
        ExecutorCase(
            "exec sleep 3600",
            StopHooksResult(
                should_stop=True, warnings=['hook "HOOK" timed out after 0.3 s and was NOT enforced']
            ),
            timeout=0.3,
        ),
    ],
    "S0-89": [
        ExecutorCase("echo 'hello {'", StopHooksResult(should_stop=True)),
        ExecutorCase(
            """echo '{"decision": "block" "reason": "a comma is missing"}'""",
            StopHooksResult(
                should_stop=True, warnings=[f'hook "HOOK" failed and was NOT enforced: {BROKEN}']
            ),
        ),
    ],
}
