import re
import subprocess
import sys

from turngate._lazy_pattern import lazy_pattern


def test_a_lazy_pattern_has_the_methods_of_a_pattern() -> None:
    lazy, pattern = lazy_pattern("(a)|b", re.IGNORECASE), re.compile("(a)|b", re.IGNORECASE)
    for each in (lazy, pattern):
        found = each.search("xA")
        assert (found and found.span(), each.findall("aB"), each.sub("-", "ab"), each.pattern) == (
            (1, 2),
            ["a", ""],
            "--",
            "(a)|b",
        )


def test_a_lazy_pattern_is_compiled_once_and_not_before_its_first_use() -> None:
    program = """
import re
from turngate._lazy_pattern import lazy_pattern
compiled, compile_ = [], re.compile
re.compile = lambda *given: compiled.append(given) or compile_(*given)
pattern = lazy_pattern("a", re.ASCII)
print(len(compiled))
print([bool(pattern.match(text)) for text in "ab"], len(compiled))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n[True, False] 1\n"
