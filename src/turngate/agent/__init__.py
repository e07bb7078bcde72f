"""The built-in coding agent: the session, its loop and its tools."""
