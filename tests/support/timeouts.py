"""The only time limit that tests set on things that must happen.

A test waits for an event, not for a time. The limit ends a test that hangs; no machine is so slow that it matters.
"""

HANG_TIMEOUT_S = 300.0
POLL_INTERVAL_S = 0.01
