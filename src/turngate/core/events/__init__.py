"""What happens: the events that hooks, plugins and users of a session see."""
