"""What the hooks have done: reads the journals of all sessions. Nothing here is needed at a stop."""
