"""A conversation at a terminal: input, output and the status line."""
