"""Reads the text of a shell: its commands, the values of their words, and the programs that they run."""
