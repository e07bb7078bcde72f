"""What asyncio lacks: threads, cancellation, foreign code."""
