"""What callers and machines get wrong. What a hook gets wrong is a value: `core.decisions.Fault`.

TurngateError        one sentence: what is wrong, where, what to do
└── UsageError       the command line or the event is wrong
"""


class TurngateError(Exception):
    """Something outside of the hooks is wrong; its text is for people."""


class UsageError(TurngateError):
    """Turngate was called in a way that it does not understand."""
