"""Ready-made gates: checks that most projects want."""
