"""Additions to asyncio: threads, cancellation, foreign code."""
