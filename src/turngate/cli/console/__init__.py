"""Streams, signals, progress and questions."""
