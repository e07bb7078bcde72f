"""Ready-made gates: one file each, all of them in `library.GATES`."""
