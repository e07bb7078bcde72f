"""One module or package per command with `run(options) -> int`, and the modules that they load."""
