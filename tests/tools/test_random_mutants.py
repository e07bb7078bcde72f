"""Random mutants change what a function does, and nothing else."""

import random
from collections import Counter
from pathlib import Path

from tools.random_mutants import choose, mutations

SOURCE = '''\
"""A module."""

LIMIT = 3


def check(name: str, count: int) -> str | None:
    """Return a text."""
    if count > LIMIT and not name:
        return f"ü {count}" if count == 4 else None
    found = "ä" in name
    match found:
        case True:
            return "yes"
    return None
'''
MUTATIONS = [
    "src/a.py:8: 'count > LIMIT and not name' → '(not (count > LIMIT and not name))'",
    "src/a.py:8: 'count > LIMIT and not name' → '((count > LIMIT) or (not name))'",
    "src/a.py:8: 'count > LIMIT' → 'count >= LIMIT'",
    "src/a.py:8: 'not name' → 'bool(name)'",
    "src/a.py:9: 'f\"ü {count}\" if count == 4 else None' → 'None'",
    "src/a.py:9: 'count == 4' → '(not (count == 4))'",
    "src/a.py:9: 'count == 4' → 'count != 4'",
    "src/a.py:9: '4' → '5'",
    "src/a.py:10: '\"ä\" in name' → '\"ä\" not in name'",
    "src/a.py:10: '\"ä\"' → \"'ä_'\"",
]


def test_each_condition_comparison_result_and_constant_of_an_executed_line_is_changed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(SOURCE)
    found = list(mutations(tmp_path, {("src/a.py", line) for line in range(1, 11)}))
    assert [str(each) for each in found] == MUTATIONS
    changed = [each.apply(SOURCE) for each in found]
    assert changed[6] == SOURCE.replace("count == 4", "count != 4")
    for text in changed:
        compile(text, "a.py", "exec")


def test_a_line_that_few_requirements_execute_is_chosen_rather(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def a():\n    return 1\ndef b():\n    return 1\n")
    spread = Counter({("a.py", 2): 10, ("a.py", 4): 1})
    found = list(mutations(tmp_path, spread))
    chosen = [choose(found, 1, spread, random.Random(seed))[0].line for seed in range(100)]
    assert chosen.count(4) > 90
    assert chosen == [choose(found, 1, spread, random.Random(seed))[0].line for seed in range(100)]
