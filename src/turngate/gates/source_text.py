"""Source code of many languages, line by line: what is code, what is a comment, what is only text in a string."""

import posixpath
import re
from functools import lru_cache
from typing import NamedTuple

from turngate.core.globs import matches_globs

LANGUAGES = {
    "python": ("py", "pyi"),
    "javascript": ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte"),
    "go": ("go",),
    "rust": ("rs",),
    "java": ("java", "kt", "kts", "scala", "groovy"),
    "c": ("c", "h", "cc", "cpp", "cxx", "hpp", "m", "mm", "cs", "swift", "dart", "php", "zig"),
    "shell": ("sh", "bash", "rb", "pl", "ex", "exs", "jl", "r"),
}
_BY_EXTENSION = {extension: language for language, names in LANGUAGES.items() for extension in names}
EXTENSIONS = tuple(_BY_EXTENSION)
TEST_FILES = tuple(
    "test tests __tests__ spec specs testing test_*.py *_test.{py,go,rb,exs} *.{test,spec}.* *_spec.rb "
    "*{Test,Tests,Spec}.{java,kt,scala,groovy,cs,swift,php} conftest.py".split()
)

_DOUBLE, _SINGLE = r'"(?:\\.|[^"\\\n])*+"?', r"'(?:\\.|[^'\\\n])*+'?"
_CHARACTER = r"'(?:\\[^\n]+?|[^'\\\n])'"  # also where ' begins something else, such as a lifetime
_TRIPLE = r'"""(?s:\\.|.)*?(?:"""|\Z)|' + r"'''(?s:\\.|.)*?(?:'''|\Z)"
_BACKTICKS = r"`(?s:\\.|[^`\\])*+`?"
_HASH, _SLASHES, _BLOCK = r"#[^\n]*", r"//[^\n]*", r"/\*(?s:.)*?(?:\*/|\Z)"
_TOKENS = {
    language: re.compile(f"(?P<comment>{'|'.join(comments)})|(?P<string>{'|'.join(strings)})")
    for language, comments, strings in (
        ("python", (_HASH,), (_TRIPLE, _DOUBLE, _SINGLE)),
        ("javascript", (_SLASHES, _BLOCK), (_DOUBLE, _SINGLE, _BACKTICKS)),
        ("go", (_SLASHES, _BLOCK), (_DOUBLE, _CHARACTER, _BACKTICKS)),
        ("rust", (_SLASHES, _BLOCK), (_DOUBLE, _CHARACTER)),
        ("java", (_SLASHES, _BLOCK), (r'"""(?s:\\.|.)*?(?:"""|\Z)', _DOUBLE, _CHARACTER)),
        ("c", (_SLASHES, _BLOCK), (_DOUBLE, _CHARACTER)),
        ("shell", (r"(?<![^\s;])#[^\n]*",), (_DOUBLE, _SINGLE)),
    )
}


class Source(NamedTuple):
    """The lines of a file, three times."""

    text: list[str]  # without comments
    code: list[str]  # without comments, and strings are empty
    comments: list[str]  # only comments


def language_of(path: str) -> str | None:
    return _BY_EXTENSION.get(posixpath.splitext(path)[1].removeprefix(".").lower())


@lru_cache(maxsize=16)
def is_test_file(path: str) -> bool:
    return matches_globs(TEST_FILES, path)


def read_source(content: str, language: str) -> Source:
    """Return the lines of a file. What spans lines, such as a block comment, is on each of them."""
    text, code, comments = [], [], []
    place = 0
    for match in _TOKENS[language].finditer(content):
        between, token = content[place : match.start()], match[0]
        place = match.end()
        breaks = "\n" * token.count("\n")
        is_comment = match.lastgroup == "comment"
        text.append(between + (breaks if is_comment else token))
        code.append(between + (breaks if is_comment else f'""{breaks}'))
        comments.append("\n" * between.count("\n") + (token if is_comment else breaks))
    rest = content[place:]
    parts = ("".join(text) + rest, "".join(code) + rest, "".join(comments) + "\n" * rest.count("\n"))
    return Source(*(part.split("\n") for part in parts))
