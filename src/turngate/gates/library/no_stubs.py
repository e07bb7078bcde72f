"""The gate `no-stubs`: the lines that were added hold no TODO, no `NotImplementedError`, no skipped test, no empty body."""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice

from turngate.core.answers.report_types import Exited
from turngate.core.globs import matches_globs
from turngate.core.text import one_line, wildcard_matches
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.gate import Finding, Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import FilePatch, Line, show_path, unquote_path
from turngate.gates.project_files import read_file
from turngate.gates.session_changes import (
    WHOLE_FILE,
    Patches,
    find_changes,
    find_patches,
    record_files,
)
from turngate.gates.source_text import EXTENSIONS, Source, is_test_file, language_of, read_source

# What others wrote, or a program.
FOREIGN_FILES = tuple("vendor third_party node_modules *.min.* *.lock *_pb2.py *.pb.go *.d.ts".split())
MAX_LINE_CHARS = 1000
MAX_SYNTAX_CHARS = 10**6  # of a Python file that is parsed

# At the start of a comment, or with a colon or a parenthesis: "prints the open TODO items", "XXX-YYY" are no markers.
_MARKER = re.compile(r"^\W*(?P<first>TODO|XXX)\b(?![.-]\w)|\b(?P<named>TODO|XXX)\s?[:(]|\b(?P<any>FIXME)\b")
_NOT_IMPLEMENTED = re.compile(
    r"\bNotImplementedException\b|\braise\s+NotImplementedError\b|\b(?:todo|unimplemented)!\s*[(\[{]|\bthrow\s+NotImplementedError\b"
)
_KOTLIN_TODO = re.compile(r"(?<![\w.])TODO\(")
# In the text of an error.
_RAISES = re.compile(r"\b(?:throw|raise|panic|fatalError|errors\.New|fmt\.Errorf|reject)\b")
_NOT_IMPLEMENTED_TEXT = re.compile(
    r"""["'`][^"'`]*(?:\bnot (?:yet )?implemented|\bunimplemented|\bTODO\b)""", re.IGNORECASE
)
_SKIPPED = {
    "python": r"\bmark\.(?:skip|xfail)\b|\bpytest\.(?:skip|xfail)\s*\(|\bunittest\.(?:skip|expectedFailure)\b|\bskipTest\s*\(",
    "javascript": r"\b(?:it|test|describe|suite)(?:\.\w+)*\.(?:skip|only|todo|fixme)\b|(?:^|\s)x(?:it|test|describe)\s*\(",
    "go": r"\b[tb]\.Skip(?:Now|f)?\(",
    "rust": r"#\[ignore\b",
    "java": r"@(?:Disabled|Ignore)\b",
}
_SKIPPED_TEST = {language: re.compile(pattern) for language, pattern in _SKIPPED.items()}
_HARMLESS_NAME = re.compile(r"no_?op|nop$|ignore|dummy|fake|stub|mock|empty", re.IGNORECASE)

_ANNOTATION = r"(?:\s*:\s*[^{};=]+)?"
_EMPTY_FUNCTION = re.compile(
    r"^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?\s*(\w+)\s*(?:<[^>]*>)?\s*\([^()]*\)"
    + _ANNOTATION
    + r"\s*\{\s*\}?\s*;?\s*$"
    r"|^\s*(?:(?:public|private|protected|static|override|async)\s+)*(\w+)\s*\([^()]*\)"
    + _ANNOTATION
    + r"\s*\{\s*\}?\s*$"
    r"|^\s*(?:export\s+)?(?:const|let|var)\s+(\w+)"
    + _ANNOTATION
    + r"\s*=\s*(?:async\s*)?(?:\([^()]*\)|\w+)"
    + _ANNOTATION
    + r"\s*=>\s*\{\s*\}?\s*;?\s*$"
)
_BASES = re.compile(r"^\s*class\s+\w+[^(\n:]*\(([^)\n]*)\)\s*:")
_FOR_SUBCLASSES = re.compile(r"\b(?:overrid\w+|subclass\w*|hooks?)\b", re.IGNORECASE)  # in a docstring
_KEYWORDS = frozenset({"if", "for", "while", "switch", "catch", "with", "constructor", "function", "return"})


def find_stubs(patches: Iterable[FilePatch]) -> Iterator[Finding]:
    """Yield the stubs in added lines. The patches have all lines of each file; what was only moved does not count."""
    patches = list(patches)
    subclassed = _base_names(patches)
    moved = Counter(line.text.strip() for patch in patches for line in patch.removed())
    for patch in patches:
        lines = [line for line in patch.lines if line.kind != "removed"]
        language = language_of(patch.path)
        if language is None or matches_globs(FOREIGN_FILES, patch.path):
            continue
        for place, word in sorted(_find_in_file(patch.path, lines, language, subclassed)):
            text = lines[place].text.strip()
            if moved[text]:
                moved[text] -= 1
                continue
            yield Finding(patch.path, lines[place].number, f"{word}: {text}")


def _base_names(patches: Iterable[FilePatch]) -> frozenset[str]:
    """Return the names in the bases of all Python classes, of `class B(x.A[T]):` also `A`."""
    lines = (line.text for patch in patches if language_of(patch.path) == "python" for line in patch.lines)
    found = (match for line in lines if "class" in line and (match := _BASES.match(line[:MAX_LINE_CHARS])))
    return frozenset(name for match in found for name in re.findall(r"\w+", match[1]))


def _find_in_file(
    path: str, lines: Sequence[Line], language: str, subclassed: Container[str]
) -> Iterator[tuple[int, str]]:
    """Yield the place of each stub, and what it is."""
    content = "\n".join(line.text for line in lines)
    source = read_source(content, language)
    added = {place for place, line in enumerate(lines) if line.kind == "added"}
    found: dict[int, str] = {}
    exempt: set[int] = set()
    if language == "python":
        exempt, empty = _read_python(path, content, source, subclassed)
        found |= {place: "empty body" for place, body in empty.items() if body & added}
    elif language == "javascript" and not is_test_file(path):
        found |= {place: "empty body" for place in added if _is_empty_function(source, place)}
    for place in added:
        if word := _describe_line(path, source, place, language, is_exempt=place in exempt):
            found.setdefault(place, word)
    yield from found.items()


def _describe_line(path: str, source: Source, place: int, language: str, *, is_exempt: bool) -> str | None:
    """Return what kind of stub a line is. A fake in a test need not implement everything."""
    code, text = source.code[place], source.text[place]
    if marker := _MARKER.search(source.comments[place]):
        return str(marker[marker.lastgroup or 0])
    if language in _SKIPPED_TEST and _SKIPPED_TEST[language].search(code):
        return "skipped test"
    if is_exempt or is_test_file(path):
        return None
    is_stub = (
        _NOT_IMPLEMENTED.search(code)
        or (_RAISES.search(code) and _NOT_IMPLEMENTED_TEXT.search(text))
        or (path.endswith((".kt", ".kts")) and _KOTLIN_TODO.search(code))
    )
    return "not implemented" if is_stub else None


def _is_empty_function(source: Source, place: int) -> bool:
    """Return whether a function of JavaScript begins here that does nothing, without a comment that says why."""
    match = _EMPTY_FUNCTION.match(one_line(source.code[place][:MAX_LINE_CHARS]))
    name = next(filter(None, match.groups()), "") if match else ""
    if not match or name in _KEYWORDS or _HARMLESS_NAME.search(name):
        return False
    end = place
    if not source.code[place].rstrip(" ;").endswith("}"):
        end = next((each for each in range(place + 1, len(source.code)) if source.code[each].strip()), place)
        if source.code[end].strip() not in ("}", "};"):
            return False
    return not any(source.comments[place : end + 1])


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _read_python(
    path: str, content: str, source: Source, subclassed: Container[str]
) -> tuple[set[int], dict[int, set[int]]]:
    """Return the places in abstract functions, and of each empty function the place of `def` and those of its body."""
    exempt: set[int] = set()
    empty: dict[int, set[int]] = {}
    for function, parent in _functions(_parse(content)):
        first, last = function.lineno - 1, (function.end_lineno or function.lineno) - 1
        is_abstract = _is_abstract(function, parent) or _is_inherited(function, parent, subclassed)
        if is_abstract or path.endswith(".pyi"):
            exempt |= set(range(first, last + 1))
        elif (
            _is_empty(function)
            and not _overrides(function, parent)
            and not _is_meant_empty(path, function, source.comments[first : last + 1])
        ):
            empty[first] = set(range(function.body[0].lineno - 1, last + 1))
    return exempt, empty


def _parse(content: str) -> ast.Module:
    """Return the syntax tree, or that of an empty file. Any file may be here, also one that no parser can read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content if len(content) <= MAX_SYNTAX_CHARS else "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _functions(tree: ast.Module) -> Iterator[tuple[Function, ast.AST]]:
    """Yield all functions, each with what it is defined in."""
    rest: list[ast.AST] = [tree]
    while rest:
        parent = rest.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, Function):
                yield node, parent
            if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
                rest.append(node)


def _is_abstract(function: Function, parent: ast.AST) -> bool:
    names = {_last_name(each) for each in function.decorator_list}
    if isinstance(parent, ast.ClassDef):
        bases = (*parent.bases, *(keyword.value for keyword in parent.keywords))
        names |= {_last_name(base) for base in bases}
    return any(
        name in ("overload", "Protocol", "ABC", "ABCMeta") or name.startswith("abstract") for name in names
    )


def _is_inherited(function: Function, parent: ast.AST, subclassed: Container[str]) -> bool:
    """Return whether a method is there for subclasses: there are some, or a docstring says so."""
    if not isinstance(parent, ast.ClassDef):
        return False
    docstrings = (ast.get_docstring(function) or "", ast.get_docstring(parent) or "")
    return parent.name in subclassed or any(map(_FOR_SUBCLASSES.search, docstrings))


def _overrides(function: Function, parent: ast.AST) -> bool:
    """Return whether an empty method may replace one of a base class, or is a constructor."""
    if not isinstance(parent, ast.ClassDef) or function.name.startswith("test"):
        return False
    return function.name == "__init__" or any(_last_name(base) != "object" for base in parent.bases)


def _last_name(node: ast.expr) -> str:
    """Return the name in `typing.Protocol[T]` or `abc.abstractmethod`."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _is_empty(function: Function) -> bool:
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and _is_text_or_ellipsis(statement.value))
        for statement in function.body
    )


def _is_text_or_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is ... or isinstance(node.value, str))


def _is_meant_empty(path: str, function: Function, comments: Sequence[str]) -> bool:
    if is_test_file(path) and not function.name.startswith("test"):
        return True
    return bool(_HARMLESS_NAME.search(function.name)) or any(comments)


PATHSPECS = tuple(f":(glob,icase)**/*.{extension}" for extension in EXTENSIONS)
MAX_NEW_FILES = 200  # that are read one by one
TOO_LONG = "the changes are too long to be read as a whole; in the part that was read, there are no stubs"
OTHERS = "git ls-files --others --exclude-standard"
NESTED = "not checked, because it is a repository of its own"
MAX_NESTED = 5
ADVICE = "Complete them, or remove them and say in your answer what is missing."


async def check_no_stubs(context: GateContext) -> Decision:
    patches = await find_patches(context, *PATHSPECS, context_lines=WHOLE_FILE, is_source=True)
    if patches is None:
        patches = await _read_new_files(context)
    findings = [finding for finding in find_stubs(patches.files) if _counts(context, finding)]
    if findings:
        listed = list_findings([str(finding) for finding in findings])
        return Block(f"the added lines hold stubs:\n{listed}\n{ADVICE}")
    if patches.truncated:
        return Fault(TOO_LONG)
    nested = await _new_repositories(context)
    return Allow(f"{NESTED}: {', '.join(map(show_path, nested))}" if nested else None)


async def _new_repositories(context: GateContext) -> list[str]:
    """Return the folders that git does not look into, because they are repositories of their own."""
    report = await context.commands.run_script(OTHERS)
    if not isinstance(report, Exited) or report.code != 0:  # also without git
        return []
    known = (context.state.start or {}).get("repositories")
    found = (unquote_path(line) for line in report.stdout.split("\n"))
    new = (name for name in found if name.endswith("/") and not (isinstance(known, list) and name in known))
    return [*islice(new, MAX_NESTED)]


def _counts(context: GateContext, finding: Finding) -> bool:
    allowed: Sequence[str] = context.options["allow"]
    if any(wildcard_matches(f"*{pattern}*", finding.text) for pattern in allowed):
        return False
    return matches_globs(context.options["files"] or ("**",), finding.path)


async def _read_new_files(context: GateContext) -> Patches:
    """Return the new files of a project without git. Which lines of the other files are new is not known."""
    changes = await find_changes(context)
    paths = [change.path for change in changes if change.kind == "added" and language_of(change.path)]
    files = []
    for path in paths[:MAX_NEW_FILES]:
        text = await read_file(context.commands, path) or ""
        lines = enumerate(text.split("\n"), start=1)
        files.append(FilePatch(path, tuple(Line(number, line, "added") for number, line in lines)))
    return Patches(tuple(files), truncated=len(paths) > MAX_NEW_FILES)


NO_STUBS = Gate(
    name="no-stubs",
    summary="the added lines hold no TODO, skipped test or empty body",
    check=check_no_stubs,
    options=(
        GateOption(
            "allow",
            "texts",
            "lines that contain this text do not count; `*` stands for any characters",
            "PATTERN",
        ),
        GateOption("files", "texts", "check only these files; `!GLOB` is an exception", "GLOB"),
    ),
    record=record_files,
    needs_start=True,
)
