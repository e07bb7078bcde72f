"""What goes wrong with a request. A message contains neither a header nor a body."""


class HttpError(Exception):
    """There is no complete response."""


class HttpSetupError(HttpError):
    """The request cannot succeed with these settings of this machine, so it is not worth a second try."""


class HttpTimeout(HttpError):
    """The server was silent for too long."""
