"""Paths of this checkout and of the test data."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SEEDS = DATA / "seeds"
