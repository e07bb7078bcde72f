"""Ratios against a floor that is measured in the same run. Not part of the tests."""
