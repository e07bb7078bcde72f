"""One turn of the built-in agent."""
