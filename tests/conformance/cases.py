"""The recorded runs of Claude Code: which are replayed, which differ on purpose and which are due later."""

import json
import tomllib
from pathlib import Path
from typing import Any

from tests.support.replay import Case

HERE = Path(__file__).parent
CASES: dict[str, Case] = {
    case["name"]: case for case in map(json.loads, (HERE / "claude.jsonl").read_text().splitlines())
}
LATER: dict[str, dict[str, str]] = tomllib.loads((HERE / "later.toml").read_text())  # by issue
WAITING = [name for cases in LATER.values() for name in cases]

# Where we differ on purpose: the case, and what happens here instead.
DIFFERENT: dict[str, dict[str, Any]] = {
    # Claude Code drops the whole file for a wrong type elsewhere in it, in silence; a gate should not vanish.
    "bad_other_setting": {"hook_runs": 1, "stop_hook_active": [False]},
    "sandbox_bad": {
        "requests": 9,
        "ended_by": "capped",
        "continuations": ["Stop hook feedback:\n[echo no >&2; exit 2]: no\n"] * 8,
    },
}
REPLAYED = [name for name in CASES if name not in WAITING and name not in DIFFERENT]
