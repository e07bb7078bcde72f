"""The gates, one module each."""
