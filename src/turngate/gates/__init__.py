"""Ready-made gates: one file each, all of them in `all_gates.GATES`."""
