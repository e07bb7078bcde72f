"""Finds, reads, checks and merges settings files."""
