"""A small HTTP/1.1 client for the APIs of models."""
