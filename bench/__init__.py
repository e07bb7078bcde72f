"""Ratios against a floor that is measured in the same run; not part of the tests."""
