"""The options of a session in Python: their values, the hooks in them, and their check."""
