"""What `turngate check` finds beyond the form of settings."""
