"""What is configured: kinds of hooks, and which of them an event selects."""
