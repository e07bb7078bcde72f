"""One module per Python library that runs agents of its own."""
