"""The conversation on disk: write, read, resume, summarize."""
