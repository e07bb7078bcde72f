"""Tells plugins."""
