"""Writes `turngate hook` into the settings of agent programs, and takes it out again."""
