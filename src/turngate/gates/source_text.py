"""Source code of many languages, line by line: what is code, a comment or text in a string; what is generated; which tests are skipped."""

import ast
import posixpath
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from turngate.core.globs import matches_globs

LANGUAGES = {
    "python": ("py", "pyi"),
    "javascript": ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"),
    "markup": ("vue", "svelte", "html"),
    "go": ("go",),
    "rust": ("rs",),
    "java": ("java", "kt", "kts", "scala", "groovy"),
    "c": ("c", "h", "cc", "cpp", "cxx", "hpp", "m", "mm", "cs", "swift", "dart", "php", "zig", "css", "scss"),
    "shell": (
        "sh",
        "bash",
        "bats",
        "rb",
        "rake",
        "pl",
        "pm",
        "t",
        "ex",
        "exs",
        "jl",
        "r",
        "yml",
        "yaml",
        "toml",
        "tf",
    ),
    "sql": ("sql", "lua", "hs", "elm"),
}
_BY_EXTENSION = {extension: language for language, names in LANGUAGES.items() for extension in names}
EXTENSIONS = tuple(_BY_EXTENSION)
TEST_FILES = tuple(
    "test tests __tests__ spec specs testing e2e *.t *.bats test_*.py *_test.{py,go,rb,exs} *.{test,spec}.* *_spec.rb "
    "*{Test,Tests,Spec}.{java,kt,scala,groovy,cs,swift,php} conftest.py".split()
)
# What others wrote, or a program, or what is the input of a test.
FOREIGN_FILES = tuple(
    "vendor _vendor vendored third_party third-party external node_modules bower_components dist *.min.* *.lock "
    "*_pb2*.py *.pb.* *.d.ts *.g.dart *.designer.cs zz_generated* *{_,.}generated.* generated __generated__ "
    "{static,public,assets}/**/{jquery,bootstrap,lodash,moment,d3,popper,htmx,chart,angular,react,vue,leaflet}*.{js,css} "
    "fixtures __fixtures__ testdata test_data test-data __snapshots__ tests/**/{data,inputs,resources,samples}".split()
)
_GENERATED = re.compile(
    r"code generated|@generated|do not edit|(?:(?<!TODO )auto-?|automatically )generated", re.IGNORECASE
)
GENERATED_LINES = 10  # of the start, in which a program says that it has written the file
MAX_SYNTAX_CHARS = 10**6  # of a Python file that is parsed

_DOUBLE, _SINGLE = r'"(?:\\.|[^"\\\n])*+"?', r"'(?:\\.|[^'\\\n])*+'?"
_CHARACTER = r"'(?:\\[^\n]+?|[^'\\\n])'"  # also where ' begins something else, such as a lifetime
_TRIPLE = r'"""(?s:\\.|.)*?(?:"""|\Z)|' + r"'''(?s:\\.|.)*?(?:'''|\Z)"
_BACKTICKS = r"`(?s:\\.|[^`\\])*+`?"
_RAW = r"`[^`]*+`?"
_HASH, _SLASHES, _BLOCK = r"#[^\n]*", r"(?<!:)//[^\n]*", r"/\*(?s:.)*?(?:\*/|\Z)"
_TOKENS = {
    language: re.compile(f"(?P<comment>{'|'.join(comments)})|(?P<string>{'|'.join(strings)})")
    for language, comments, strings in (
        ("python", (_HASH,), (_TRIPLE, _DOUBLE, _SINGLE)),
        ("javascript", (_SLASHES, _BLOCK), (_DOUBLE, _SINGLE, _BACKTICKS)),
        ("markup", (_SLASHES, _BLOCK, r"<!--(?s:.)*?(?:-->|\Z)"), (_DOUBLE, _SINGLE, _BACKTICKS)),
        ("go", (_SLASHES, _BLOCK), (_DOUBLE, _CHARACTER, _RAW)),
        ("rust", (_SLASHES, _BLOCK), (_DOUBLE, _CHARACTER)),
        ("java", (_SLASHES, _BLOCK), (r'"""(?s:\\.|.)*?(?:"""|\Z)', _DOUBLE, _CHARACTER)),
        ("c", (_SLASHES, _BLOCK), (_DOUBLE, _SINGLE)),
        ("shell", (r"(?<![^\s;])#[^\n]*",), (_DOUBLE, _SINGLE)),
        ("sql", (r"--[^\n]*", _BLOCK), (_DOUBLE, _SINGLE)),
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


def is_foreign(path: str, lines: Sequence[str]) -> bool:
    """Return whether a file was not written for this project: vendored, generated, or the input of a test."""
    return matches_globs(FOREIGN_FILES, path) or any(map(_GENERATED.search, lines[:GENERATED_LINES]))


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


def parse_python(content: str) -> ast.Module | None:
    """Return the syntax tree, or None: any file may be here, also one that no parser can read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content if len(content) <= MAX_SYNTAX_CHARS else "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def last_name(node: ast.AST) -> str:
    """Return the name in `typing.Protocol[T]` or `abc.abstractmethod`."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


# Blocks and conditions

MAX_HEADER_CHARS = 200
MAX_DEPTH = 12
CONDITION = re.compile(r"\b(?:if|else|unless|switch|case|catch|rescue|when|while|match)\b|\?")


def enclosing_blocks(code: Sequence[str]) -> list[str]:
    """Return for each line what stands before the braces that are open there, the outermost first."""
    stack: list[str] = []
    header, indent, found = "", 0, []
    for line in code:
        found.append(" | ".join(stack[-MAX_DEPTH:]))
        if word := re.match(r"\s*(?=\w)", line):
            # Without semicolons, a statement ends before a line that is no deeper.
            if word.end() <= indent and header.count("(") == header.count(")"):
                header = ""
            indent = indent if header.strip() else word.end()
        for part in re.findall(r"[{};]|[^{};]+", line):
            if part == "{":
                stack.append(header.strip()[-MAX_HEADER_CHARS:])
            elif part == "}" and stack:
                stack.pop()
            header = "" if part in "{};" else f"{header[-MAX_HEADER_CHARS:]} {part}"
    return found


# Skipped tests

_TEST_CALL = r"\b(?:it|test|describe|suite|specify|context)(?:\.\w+)*"
_SKIP = {
    "javascript": _TEST_CALL + r"\.(?:skip|only|todo|fixme|fails|failing)\b(?!\w)(?:\.\w+)*\s*[(`]"
    r"|(?:^|[\s;{(])[xf](?:it|test|describe|context)\s*\(|\bthis\.skip\s*\("
    # A test of a suite that has a name, as uvu has them: `numbers.skip("adds", () => {`.
    r"|^\s*\w+\.(?:skip|only)\s*\((?=\s*\"\"\s*,\s*(?:async\b|function\b|\(|\w+\s*=>))",
    "go": r"\b[tb]\.Skip(?:Now|f)?\(",
    "rust": r"#\[ignore\b|#\[cfg\(any\(\)\)\]",
    "java": r"@(?:Disabled|Ignore)\b|enabled\s*=\s*false",
    "c": r"\[(?:\w+,\s*)?Ignore\b|\bSkip\s*=\s*\"\"|\bXCTSkip\(|\bmarkTest(?:Skipped|Incomplete)\(|\bGTEST_SKIP\b",
    "shell": r"(?:^|\s)x(?:it|describe|context|specify)\s|^\s*(?:skip|pending)(?:\s*$|[\s(]+\"\")|\bplan\(?\s*skip_all\b|@tag\s+:skip",
}
_SKIPS = {language: re.compile(pattern) for language, pattern in _SKIP.items()}
# The first argument is a condition and not a title: `test.skip(browserName === "webkit", "…")`.
_CONDITIONAL_SKIP = re.compile(r'(?!\s*(?:""|`|\)|$))(?!\s*[\w.]+\s*,\s*(?:async\b|\(|function\b|\w+\s*=>))')
_CONDITIONAL_MARKS = ("skipif", "skipIf", "skipUnless", "xfail")


def find_skips(path: str, source: Source, language: str, tree: ast.Module | None) -> set[int]:
    """Return the places where tests are skipped without a condition."""
    if language == "python":
        return {line - 1 for line in _python_skips(tree)} if tree else set()
    pattern = _SKIPS.get(language)
    if not pattern or (language in ("shell", "c") and not is_test_file(path)):
        return set()
    found = {place: match for place, code in enumerate(source.code) if (match := pattern.search(code))}
    blocks = enclosing_blocks(source.code) if found else []
    return {place for place, match in found.items() if not _is_conditional(match, blocks[place], language)}


def _is_conditional(match: re.Match[str], block: str, language: str) -> bool:
    line = match.string if language == "shell" else match.string[: match.start()]
    if CONDITION.search(f"{block} {line}"):
        return True
    may_have_condition = (
        match[0].endswith("(") and not match[0].startswith("this") and language == "javascript"
    )
    return may_have_condition and bool(_CONDITIONAL_SKIP.match(match.string, match.end()))


def _python_skips(tree: ast.Module) -> Iterator[int]:
    guarded: set[ast.AST] = set()
    for node in unconditional(tree):
        match node:
            case ast.Call(func=function, args=[condition, *_]) if last_name(function) in _CONDITIONAL_MARKS:
                guarded.add(function)  # a node is before those that it holds
                value = condition.value if isinstance(condition, ast.Constant) else None
                if isinstance(value, str) and ast.unparse(function).endswith(("mark.skipif", "mark.xfail")):
                    value = True if value in ("True", "1") else None  # a condition in a string
                if value is not None and bool(value) is (last_name(function) != "skipUnless"):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(attr="skipTest") | ast.Name(id="SkipTest")):
                yield node.lineno
            case ast.Attribute(attr="skip" | "xfail" | "expectedFailure" | "SkipTest", value=owner):
                if last_name(owner) in ("mark", "pytest", "unittest") and node not in guarded:
                    yield node.lineno
            case ast.FunctionDef(decorator_list=marks) | ast.ClassDef(decorator_list=marks):
                plain = (each for each in marks if not isinstance(each, ast.Attribute))
                yield from (each.lineno for each in plain if last_name(each) == "expectedFailure")
            case ast.Assign(targets=[ast.Name(id="collect_ignore" | "collect_ignore_glob")]):
                yield node.lineno
            case ast.Assign(targets=[ast.Name(id="__test__")], value=ast.Constant(value=False)):
                yield node.lineno
            case _:
                pass


def unconditional(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes that no condition guards; what follows on an `if` that returns is guarded too."""
    rest: list[ast.AST] = [tree]
    while rest:
        node = rest.pop()
        yield node
        for value in (getattr(node, name) for name in _UNGUARDED.get(type(node), node._fields)):
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST):
                    rest.append(child)
                if isinstance(child, ast.If) and any(isinstance(each, ast.Return) for each in child.body):
                    break


_UNGUARDED: dict[type[ast.AST], tuple[str, ...]] = {
    ast.If: ("test",),
    ast.IfExp: ("test",),
    ast.While: ("test",),
    ast.Match: ("subject",),
    ast.Try: ("body", "finalbody"),
}
