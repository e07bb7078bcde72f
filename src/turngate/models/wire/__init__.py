"""The wire formats of models: how a request is written, and how the events of an answer are read."""
