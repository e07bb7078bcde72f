"""Subagents: agents that an agent starts, from their registration to the delivery of their result."""
