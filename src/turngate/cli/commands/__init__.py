"""One file per command; each has `run(options) -> int`."""
