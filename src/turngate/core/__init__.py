"""What can be decided without the world: frozen values and pure functions."""
