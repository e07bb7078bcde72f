"""Plugins: Python handlers that observe sessions and may redirect subagents."""
