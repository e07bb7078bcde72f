"""Workers that are killed while they run subagents, and the checks of what they leave behind.

Each worker is a real process that dies by SIGKILL. `python -m tests.support.crash --help` lists the experiments.
"""
