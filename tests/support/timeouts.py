"""The only time limit that tests set on things that must happen.

A test waits for an event, not for a time. The limit ends a test that hangs; no machine is so slow that it matters.
"""

import pytest

HANG_TIMEOUT_S = 300.0
POLL_INTERVAL_S = 0.01
NEVER_S = 10 * HANG_TIMEOUT_S  # how long a thing takes that must be ended
# A time limit that must not come before processes have started is tried at these multiples, until one is long enough.
TIMEOUT_SCALES = (1, 8, 64, 512)
# Limits of Turngate for a connection that is dead. A test machine may only be slow, so tests set them to HANG_TIMEOUT_S.
LIMITS_OF_DEAD_CONNECTIONS = (
    ("turngate.shells.ssh.files", "EXISTENCE_TIMEOUT_S"),
    ("turngate.shells.ssh.files", "READ_TIMEOUT_S"),
    ("turngate.shells.ssh.files", "SEARCH_TIMEOUT_S"),
    ("turngate.shells.ssh.files", "WRITE_TIMEOUT_S"),
    ("turngate.shells.ssh.shell", "SFTP_TIMEOUT_S"),
    ("turngate.shells.ssh.shell", "CONNECT_TIMEOUT_S"),
    ("turngate.shells.ssh.shell", "SILENCE_S"),
    ("turngate.shells.ssh.cleanup_shell", "SILENCE_S"),
)


def wait_for_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in LIMITS_OF_DEAD_CONNECTIONS:
        monkeypatch.setattr(f"{module}.{name}", HANG_TIMEOUT_S)
