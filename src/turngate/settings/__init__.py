"""Reads settings: which files there are, what they say, and what is wrong with them."""
