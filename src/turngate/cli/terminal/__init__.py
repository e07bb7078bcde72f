"""How a conversation looks and listens at a terminal."""
