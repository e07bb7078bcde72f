"""Where this checkout and the tests' data are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SEEDS = DATA / "seeds"
