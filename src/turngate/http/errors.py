"""What goes wrong with a request. A message contains neither a header nor a body."""


class HttpError(Exception):
    """There is no complete response."""


class HttpTimeout(HttpError):
    """The server was silent for too long."""
