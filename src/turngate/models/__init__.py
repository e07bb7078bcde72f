"""Asks models."""
