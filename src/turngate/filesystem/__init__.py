"""Paths and files that other processes may replace by links at any time."""
