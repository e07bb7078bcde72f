"""Where commands run: implementations of the Shell port."""
