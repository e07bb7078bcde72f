"""Which paths a list of globs names."""

import time

import pytest

from turngate.core.globs import matches_glob, matches_globs

MATCHES = [
    # glob, what it names, what it does not name
    ("*.py", ["a.py", "src/a.py", "src/x.py/data"], ["a.pyc", "py"]),
    ("src/*.py", ["src/a.py"], ["src/x/a.py", "lib/src/a.py", "a.py"]),
    ("src/**/*.py", ["src/a.py", "src/x/a.py", "src/x/y/a.py"], ["a.py", "lib/src/a.py"]),
    ("**/test_*.py", ["test_a.py", "x/test_a.py", "x/y/test_a.py"], ["x/atest_a.py", "test_a.pyc"]),
    ("tests", ["tests", "tests/a", "x/tests/y/a"], ["tests2", "test"]),
    ("tests/", ["tests/a"], ["tests2/a"]),
    ("/tests", ["tests/a"], ["x/tests/a"]),
    ("./tests/", ["tests/a", "x/tests/a"], []),
    ("./src/a", ["src/a"], ["x/src/a"]),
    ("tests/**", ["tests/a", "tests/x/y"], ["tests2/a"]),
    ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c", "a/b/b/c/d"], ["a/c/b", "a/b"]),
    ("a?.txt", ["ab.txt"], ["a.txt", "a/.txt", "abc.txt"]),
    ("[ab].txt", ["a.txt"], ["c.txt"]),
    ("[!ab].txt", ["c.txt"], ["a.txt"]),
    ("*.{ts,tsx}", ["a.ts", "src/a.tsx"], ["a.tsy"]),
    ("{src,lib}/*.c", ["src/a.c", "lib/a.c"], ["x/a.c"]),
    (".github/**", [".github/workflows/ci.yml"], ["github/a"]),
    ("*", [".hidden", "a/b"], []),
    ("**", [".hidden", "a/b"], []),
    ("two words.txt", ["two words.txt"], ["two"]),
    ("*.txt", ["a\nb.txt", "-a.txt", 'a"b.txt', "a\udcff.txt"], ["a.txt\n"]),
    ("A.txt", ["A.txt"], ["a.txt"]),
    ("a{b.txt", ["a{b.txt"], []),
]


@pytest.mark.parametrize(("glob", "named", "others"), MATCHES, ids=[row[0] for row in MATCHES])
def test_a_glob_names(glob: str, named: list[str], others: list[str]) -> None:
    assert [path for path in [*named, *others] if matches_glob(glob, path)] == named


@pytest.mark.parametrize("glob", ["", "/", "."])
def test_a_glob_for_the_project_itself_names_every_file(glob: str) -> None:
    assert matches_glob(glob, "src/a")


def test_the_last_glob_that_names_a_path_decides() -> None:
    globs = ("tests", "!tests/data", "tests/data/keep.txt")
    paths = ["tests/a.py", "tests/data/b.txt", "tests/data/keep.txt", "src/a.py"]
    assert [path for path in paths if matches_globs(globs, path)] == ["tests/a.py", "tests/data/keep.txt"]


def test_hostile_globs_and_names_take_little_time() -> None:
    started = time.process_time()
    assert not matches_glob("*a" * 50 + "b", "a" * 4000)
    assert not matches_glob("**/a/" * 30 + "b", "a/" * 2000 + "c")
    assert not matches_glob("{a,b}" * 30, "c")
    assert time.process_time() - started < 10
