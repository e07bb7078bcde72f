"""The only time limit that tests set on things that must happen.

A test waits for an event, not for a time. The limit ends a test that hangs; no machine is so slow that it matters.
"""

HANG_TIMEOUT_S = 300.0
POLL_INTERVAL_S = 0.01
NEVER_S = 10 * HANG_TIMEOUT_S  # how long a thing takes that must be ended
# A time limit that must not come before processes have started is tried at these multiples, until one is long enough.
TIMEOUT_SCALES = (1, 8, 64, 512)
