"""What the answers mean for the turn."""
