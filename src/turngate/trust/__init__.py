"""Trust: a hook of a project or a user runs only while it is what a person has approved."""
