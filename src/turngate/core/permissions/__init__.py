"""The `if` of a hook: rules about tools, paths and commands."""
