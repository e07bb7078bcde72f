"""One file for each Python library that runs agents of its own."""
