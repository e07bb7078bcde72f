"""What a hook said, and what is wrong with it."""
