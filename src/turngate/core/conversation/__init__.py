"""The words of the built-in agent."""
