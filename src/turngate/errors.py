"""What callers and machines get wrong. What a hook gets wrong is a value: `core.decisions.Fault`.

TurngateError        one sentence: what is wrong, where, what to do
├── UsageError       the command line, the event or a script is wrong
│   ├── SessionBusy  another process writes this session
│   └── InvalidOptions  what Python code configured; it stands in options.py
├── ModelError       the model's provider did not answer
└── RegistryError    the register of children's runs can not be read or written
    └── StillAtWork  one child works on one thing at a time
"""


class TurngateError(Exception):
    """Something outside of the hooks is wrong; its text is for people."""


class UsageError(TurngateError):
    """Turngate was called in a way that it does not understand."""


class SessionBusy(UsageError):
    """One process at a time writes a session."""


class RegistryError(TurngateError):
    """The register of children's runs can not be read or written."""


class SubagentBusy(RegistryError):
    """One child works on one thing at a time."""


class ModelError(TurngateError):
    """The provider did not answer: overloaded, network, auth, quota, refusal, context (too long) or invalid."""

    def __init__(self, kind: str, said: str, *, retry_after: float | None = None) -> None:
        super().__init__(said)
        self.kind = kind
        self.retry_after = retry_after  # seconds that the provider asks us to wait

    @classmethod
    def named(cls, name: str, said: str) -> "ModelError":
        """From what providers call it, or an HTTP status."""
        return cls(_KINDS.get(name, "invalid"), said)

    @property
    def passing(self) -> bool:
        """Will it pass by itself? Then the request is made again, after a while."""
        return self.kind in ("overloaded", "network")


_KINDS: dict[str, str] = {
    "overloaded": "overloaded",
    "overloaded_error": "overloaded",
    "rate_limit": "overloaded",
    "rate_limit_error": "overloaded",
    "429": "overloaded",
    "500": "overloaded",
    "502": "overloaded",
    "503": "overloaded",
    "504": "overloaded",
    "529": "overloaded",
    "api_error": "overloaded",
    "network": "network",
    "timeout": "network",
    "auth": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "401": "auth",
    "403": "auth",
    "quota": "quota",
    "billing_error": "quota",
    "402": "quota",
    "refusal": "refusal",
    "context": "context",
    "413": "context",
}
