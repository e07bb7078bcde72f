"""Commands on another machine, over SSH."""
