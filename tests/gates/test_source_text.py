"""What is code, what is a comment, what is text in a string."""

import time

import pytest

from turngate.gates.source_text import Source, is_test_file, language_of, read_source

SOURCES = [
    (
        "python",
        'a = "# no" # yes\nb = """x\n# no\n"""\nc = \'it\'',
        Source(
            ['a = "# no" ', 'b = """x', "# no", '"""', "c = 'it'"],
            ['a = "" ', 'b = ""', "", "", 'c = ""'],
            ["# yes", "", "", "", ""],
        ),
    ),
    (
        "javascript",
        "a = `x // no\n` // yes\n/* one\ntwo */ b",
        Source(
            ["a = `x // no", "` ", "", " b"], ['a = ""', " ", "", " b"], ["", "// yes", "/* one", "two */"]
        ),
    ),
    ("rust", "fn f<'a>() {} // c", Source(["fn f<'a>() {} "], ["fn f<'a>() {} "], ["// c"])),
    ("go", "c := '\"' // c", Source(["c := '\"' "], ['c := "" '], ["// c"])),
    ("go", "a := `\\` // c\nb := 1", Source(["a := `\\` ", "b := 1"], ['a := "" ', "b := 1"], ["// c", ""])),
    ("java", "/* never closed\nx", Source(["", ""], ["", ""], ["/* never closed", "x"])),
    ("shell", "echo $# a#b # c", Source(["echo $# a#b "], ["echo $# a#b "], ["# c"])),
    ("c", "", Source([""], [""], [""])),
]


@pytest.mark.parametrize(("language", "content", "source"), SOURCES, ids=[row[0] for row in SOURCES])
def test_lines_are_taken_apart(language: str, content: str, source: Source) -> None:
    assert read_source(content, language) == source


def test_files_are_known_by_their_names() -> None:
    assert [language_of(path) for path in ("a.py", "x/b.TSX", "c.md", "Makefile", "d.rs")] == [
        "python",
        "javascript",
        None,
        None,
        "rust",
    ]
    tests = [
        "tests/a.py",
        "test_a.py",
        "a.test.ts",
        "x/__tests__/b.js",
        "a_test.go",
        "ATest.java",
        "conftest.py",
    ]
    others = ["src/a.py", "attest.py", "latest.ts", "contest/b.js", "testament.go"]
    assert [path for path in [*tests, *others] if is_test_file(path)] == tests


@pytest.mark.parametrize("piece", ['"', "'", "`", "/*", '"""', "\\", "#", "//", "'\\"])
def test_hostile_content_takes_little_time(piece: str) -> None:
    started = time.process_time()
    for language in ("python", "javascript", "rust", "java", "shell"):
        read_source(piece * 100_000, language)
    assert time.process_time() - started < 60
