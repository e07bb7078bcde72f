"""Children: agents that an agent starts, from their registration to the announcement of their result."""
