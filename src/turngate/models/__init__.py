"""Models: live ones, scripted ones, and the choice of a judge."""
