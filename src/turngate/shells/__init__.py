"""Runs commands: here, and one day on other machines."""
