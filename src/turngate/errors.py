"""Errors of callers and of the machine. An error of a hook is a value: `core.verdict.decisions.Fault`.

TurngateError           one sentence: what is wrong, where, what to do
├── UsageError          the command line, the event or a script is wrong
│   ├── SessionBusy     another process writes this session
│   └── InvalidOptions  the options from Python are wrong; defined in `options`
├── ModelError          the model's provider did not answer
└── RegistryError       the registry cannot be read or written
"""


class TurngateError(Exception):
    """An error outside of the hooks, with a message for the user."""


class UsageError(TurngateError):
    """Turngate was called or configured incorrectly."""


class SessionBusy(UsageError):
    """Another process writes this session."""


class RegistryError(TurngateError):
    """The registry cannot be read or written."""


class ModelError(TurngateError):
    """The provider did not answer; `kind` is one of KINDS."""

    KINDS = ("overloaded", "network", "auth", "quota", "refusal", "context", "invalid")  # context: too long

    def __init__(self, kind: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after  # seconds, as the provider requests

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later; then it is repeated after a pause."""
        return self.kind in ("overloaded", "network")
