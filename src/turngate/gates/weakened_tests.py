"""What a change takes away from tests: fewer or weaker assertions, tests that are gone, switched off or left out.

Python is compared by its syntax, other languages by patterns.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from turngate.core.globs import matches_globs
from turngate.gates.gate import Finding
from turngate.gates.git.output import FilePatch, Line
from turngate.gates.source_text import (
    CONDITION,
    Source,
    enclosing_blocks,
    find_skips,
    is_test_file,
    language_of,
    last_name,
    parse_python,
    read_source,
)

MAX_STATEMENT_LINES = 40

_HELPER = (
    r"\b(?:assert|check|verify|expect|ensure)(?:_\w+|[A-Z]\w*)?\s*\("  # a function that asserts, by its name
)
_ASSERTIONS = {
    "javascript": r"\bexpect\w*\s*[.(]|\bassert\b|\.should\b|\bt\.(?:is|not|ok|true|false|truthy|falsy|equal|same|deepEqual|throws\w*|regex|fail)\(",
    "go": r"\bt\.(?:Error|Fatal|Fail)\w*\(|\b(?:assert|require)\.\w+\(",
    "rust": r"\b\w*assert\w*!|#\[should_panic",
    "java": r"\bassert\b|\b[aA]ssert\w*[\s.(]|\b(?:verify|fail|check|should\w*)\s*\(",
    "shell": r"\b(?:assert|refute)\w*|\bexpect\b|\.should\b|\.(?:must|wont)_\w+|^\s*(?:is|ok|like|is_deeply|isnt|unlike|cmp_ok)[\s(]|^\s*\[\[? .*\]$",
}
_TESTS = {
    "javascript": r"(?:^|[\s;{(])(?:it|test|specify)(?:\.\w+)*\s*\("
    # of a suite that has a name, as in uvu: `numbers("adds", () => {`
    r"|^(?!(?:describe|suite|context|group|module|before|after|on)\b)\w+\(\"\",\s*(?:async\s*)?(?:\(\)|function\s*\(\))",
    "go": r"^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(",
    "rust": r"#\[(?:\w+::)*test\b",
    "java": r"@(?:\w*Test|Property)\b",
    "c": r"^\s*(?:static\s+)?(?:int|void)\s+\w*[tT]est\w*\s*\(|\bTEST(?:_F|_P|_CASE)?\(|\bfunction\s+test\w*\s*\(|\[(?:Fact|Theory|Test\w*)\]",
    "shell": r"^@test\s|^\s*def\s+test_\w+|^\s*(?:it|test|specify)[\s(]+\"\".*\bdo\b|^\s*subtest\s",
}
_OTHER = r"(?i:\b(?:\w*_)?assert\w*)|\bexpect\w*\s*\(|\.should\b"
_PATTERNS = {
    language: (
        re.compile(f"{_ASSERTIONS.get(language, _OTHER)}|{_HELPER}"),
        re.compile(_TESTS.get(language, r"(?!)")),
    )
    for language in ("javascript", "markup", "go", "rust", "java", "c", "shell", "sql")
}
_FAILS = re.compile(r"(?i)fail|assert|raise|exit|abort|expect|check")  # a function that a handler calls
_PYTHON_ASSERTION = re.compile(r"(?:assert|check|verify|expect|ensure)(?:_?\w+)?|fail|raises|warns")
# How much an assertion, without its blanks, says: nothing, something, or exactly what is expected.
_SAYS_NOTHING = re.compile(
    r"(?:assert(?:True|\.ok)?!?\(?)?(?i:true|1|not ?false)\)?;?|expect\((\w+)\)\.to\w*\(\1\);?|.*(?:\bor ?True|\|\|true)\)?;?"
)
_SAYS_EXACTLY = re.compile(
    r"==|(?i:eq(?:ual)?s?\b|equal|eql|same|almost)|assert_eq|\.to(?:Be|Match\w*|Throw\w*|HaveBeenCalled\w+|HaveLength|HaveReturned\w*)\((?!\))|\bis (?:None|True|False)\b"
    r"|is(?:None|True|False|Empty)\b|toBe(?:Null|Undefined|True|False|NaN)\(|raises|Raises|warns|throws|rejects|should_panic|called_(?:once_)?with"
    r"|\bt\.\w|NoError|verify|check|expect_|ensure|Regex|Contains|match"
)
_SAYS_LITTLE = re.compile(r"[rR]aises\((?:Base)?Exception\)|isinstance|[nN]ot[A-Z_.]|\bis not\b|!=")
_LITERAL = re.compile(r"""\b\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")
_REPLACES = re.compile(
    r"""(?:^|[\s(])(\w+)\s*:?=\s*(?:lambda\b|(?:async\s*)?(?:\([^()]*\)|\w+)\s*=>|function\b|func\(|(?:\w+\.)*(?:(?:Magic|Async)?Mock|fn|stub|fake)\()"""
    r"""|\b(?:setattr|patch(?:\.object)?|spyOn|stub)\(.*?["'](?:[\w.]*\.)?(\w+)["']|^\s+def (\w+)\("""
)
_COMMENT = re.compile(r"\s*(?:#|//|/?\*|--|<!--)")
_WORD = re.compile(r"\w+")
_CALL = re.compile(r"\b(\w+)\s*\(")
_DEFINES = re.compile(
    r"\b(?:def|class|function|func|fn|fun|const|let|var|type|struct|interface|enum)\s+(?:\([^)]*\)\s*)?(\w+)"
)
_NEVER = re.compile(r"\bif\s*\(?\s*(?:false|0)\b")
_REMOVAL = re.compile(r"\b(?:remov|delet|drop|get rid|retire|discard|obsolete)", re.IGNORECASE)
# Files that say which tests run.
RUNNER_FILES = tuple(
    "pyproject.toml setup.cfg tox.ini pytest.ini noxfile.py conftest.py package.json Makefile *.mk justfile Taskfile.yml "
    ".github/workflows .gitlab-ci.yml {jest,vitest,vite,karma,playwright,cypress}.config.* .mocharc.* phpunit.xml* .rspec".split()
)
_DESELECTS = re.compile(
    r"--deselect|--ignore(?:-glob)?[= ]|-k\s*[\\\"']*not\b|\bcollect_ignore|PathIgnorePatterns|--testPathIgnore|\|\|\s*true\b|continue-on-error:\s*true|if:\s*false"
    r"|\bexclude\b.*\b(?:test|spec)|--(?:exclude|skip|test-skip-pattern)[= ]"
)
# In a command, or a step of a workflow, which may have nothing to do with tests.
_SWALLOWS_ALL = re.compile(r"\|\|\s*true\b|continue-on-error:\s*true|if:\s*false|--(?:exclude|skip)[= ]")
_NAMES_CHECK = re.compile(
    r"(?i)(?:\b|_)(?:tests?|specs?|check|lint|(?:py|j|vi)test|jest|mocha|tox|nox|ctest|bats|prove)(?:\b|_)"
)
_RUNS_CHECK = re.compile(
    r"\b(?:pytest|tox|nox|unittest|jest|vitest|mocha|ava|tap|uvu|playwright|rspec|phpunit|pest|ctest|bats|prove)\b"
    r"|\b(?:npm|yarn|pnpm|bun|deno|node|make|cargo|go|just|mix|dotnet|swift)\b.*\b(?:test|check|lint)"
)
_TITLE = re.compile(r"""(?<=[\s(])\s*(["'`]).*?\1""")
_NAME = re.compile(r"\b(?:fn|void|int|fun|def|function)\s+(\w+)")
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


class Assertion(NamedTuple):
    text: str  # as a formatter cannot change it
    shown: str
    number: int  # of its line
    strength: int  # 0: always true; 2: says exactly what is expected


class Test(NamedTuple):
    """A test, or another function that asserts."""

    path: str
    name: str
    number: int
    shown: str
    lines: tuple[str, ...]  # without comments
    assertions: tuple[Assertion, ...]
    is_test: bool = True

    def texts(self) -> tuple[str, ...]:
        return tuple(each.text for each in self.assertions)

    def replaces(self) -> set[str]:
        return {name for line in self.lines for found in _REPLACES.findall(line) for name in found if name}

    def calls(self) -> set[str]:
        return {name for line in self.lines[1:] for name in _CALL.findall(line)}

    def names(self) -> set[str]:
        return {name for line in self.lines for name in _WORD.findall(line)}


def find_weakened(
    patches: Sequence[FilePatch], others: Sequence[FilePatch] = (), wishes: Sequence[str] = ()
) -> Iterator[Finding]:
    """Yield what patches, with all lines, take away from protected tests, unless the user wants that or `others` remove what was tested."""
    (before, old_skips), (after, skips) = _read_side(patches, "removed"), _read_side(patches, "added")
    added = _added_literals(patches)
    present = {value for test in after for each in test.assertions for value in _literals(each.text)}
    counts = [Counter(each.text for test in tests for each in test.assertions) for tests in (before, after)]
    moved = counts[1] - counts[0]
    pairs = list(_pair(before, after))
    used = {id(new) for _, new in pairs if new}
    moved |= Counter(text for new in after if new.is_test and id(new) not in used for text in new.texts())
    unwanted = _defined(others, "removed") - _defined(others, "added")
    asked = {word for wish in wishes if _REMOVAL.search(wish) for word in _WORD.findall(wish)}
    for old, new in pairs:
        if new is None and (old.names() & unwanted or asked & {"test", "tests", old.name, *old.calls()}):
            continue
        lost = _lost(old, new, added, present, moved)
        if new is None and old.is_test and (lost or not old.assertions):
            yield Finding(old.path, old.number, f"a test was removed: {old.shown}")
            continue
        for each in lost:
            yield Finding(old.path, each.number, f"an assertion was removed or weakened: {each.shown}")
        if new and (names := (new.replaces() - old.replaces()) & new.calls() & old.calls()):
            yield Finding(new.path, new.number, f"{min(names)} is replaced in its own test: {new.shown}")
    known = Counter(normalize(line.text) for _, line in old_skips)
    for path, line in skips:
        known[normalize(line.text)] -= 1
        if known[normalize(line.text)] < 0:
            yield Finding(path, line.number, f"a test is switched off: {line.text.strip()}")
    unread = (patch for patch in patches if language_of(patch.path) in (None, "shell"))
    runners = (patch for patch in others if matches_globs(RUNNER_FILES, patch.path))
    yield from _find_deselected([*unread, *runners])


def _added_literals(patches: Iterable[FilePatch]) -> set[str]:
    """Return the numbers and strings of new lines; a line that was only indented is not new."""
    added: set[str] = set()
    for patch in patches:
        removed = {line.text.strip() for line in patch.removed()}
        lines = (line.text for line in patch.added() if line.text.strip() not in removed)
        new = (text for text in lines if not _COMMENT.match(text))
        added |= {value for text in new for value in _literals(text)}
    return added


def _literals(text: str) -> set[str]:
    return {normalize(value) for value in _LITERAL.findall(text)}


def _lost(
    old: Test, new: Test | None, added: set[str], present: set[str], moved: Counter[str]
) -> list[Assertion]:
    """Return the assertions that nothing makes up for: an equal one, one that says as much, or its values in new lines."""
    mine = Counter(each.text for each in old.assertions)
    theirs = Counter(each.text for each in new.assertions) if new else Counter[str]()
    gained = sorted(each.strength for each in new.assertions if not mine[each.text]) if new else []
    lost = []
    for each in sorted(old.assertions, key=lambda each: -each.strength):
        values = _literals(each.text)
        if theirs[each.text]:
            theirs[each.text] -= 1
        elif gained and gained[-1] >= each.strength:
            gained.pop()
        elif moved[each.text]:
            moved[each.text] -= 1
        elif each.strength and (gained or not values & added or values - added - present):
            lost.append(each)
    return sorted(lost, key=lambda each: each.number)


_SAME: tuple[Callable[[Test], object], ...] = (
    lambda test: (test.path, test.name),
    lambda test: (test.name, test.texts()),
    lambda test: (test.path, test.is_test, test.texts()),
    lambda test: test.name,
    lambda test: (test.path, test.is_test),
)


def _pair(before: Sequence[Test], after: Sequence[Test]) -> Iterator[tuple[Test, Test | None]]:
    """Yield each old test with the new one that is most like it: of its name, with its assertions, or else in its file."""
    pairs: dict[int, Test] = {}
    rest = list(after)
    for same in _SAME:
        groups: dict[object, list[Test]] = {}
        for new in rest:
            groups.setdefault(same(new), []).append(new)
        for place, old in enumerate(before):
            if place not in pairs and groups.get(same(old)):
                pairs[place] = groups[same(old)].pop(0)
        rest = [new for group in groups.values() for new in group]
    return ((old, pairs.get(place)) for place, old in enumerate(before))


def _defined(patches: Iterable[FilePatch], side: str) -> set[str]:
    lines = (line.text for patch in patches for line in patch.lines if line.kind == side)
    return {name for line in lines for name in _DEFINES.findall(line)}


def _find_deselected(patches: Iterable[FilePatch]) -> Iterator[Finding]:
    for patch in patches:
        old = Counter(match[0] for line in patch.removed() for match in _DESELECTS.finditer(line.text))
        now = [line for line in patch.lines if line.kind != "removed"]
        for place, line in enumerate(now):
            found = (
                Counter(match[0] for match in _DESELECTS.finditer(line.text))
                if line.kind == "added"
                else Counter()
            )
            if _SWALLOWS_ALL.search(line.text) and not _NAMES_CHECK.search(_step(now, place)):
                continue
            if found - old:
                yield Finding(patch.path, line.number, f"tests are left out: {line.text.strip()}")
        checks = [line for line in patch.removed() if _RUNS_CHECK.search(line.text)]
        if len(checks) > sum(bool(_RUNS_CHECK.search(line.text)) for line in patch.added()):
            yield Finding(patch.path, checks[0].number, f"a check was removed: {checks[0].text.strip()}")


def _step(lines: Sequence[Line], place: int) -> str:
    """Return the item of a list in YAML to which a line belongs, or only the line."""
    starts = [number for number, line in enumerate(lines) if re.match(r"\s*- ", line.text)]
    first = max((number for number in starts if number <= place), default=place)
    end = min((number for number in starts if number > place), default=len(lines))
    is_item = re.match(r"\s+(?:continue-on-error|if):", lines[place].text)
    return "\n".join(line.text for line in lines[first:end]) if is_item else lines[place].text


# Reading tests


def _read_side(patches: Iterable[FilePatch], side: str) -> tuple[list[Test], list[tuple[str, Line]]]:
    """Return the tests of all files before ("removed") or after ("added") a change, and the lines that skip tests."""
    tests: list[Test] = []
    skips: list[tuple[str, Line]] = []
    for patch in patches:
        lines = [line for line in patch.lines if line.kind in ("kept", side)]
        language = language_of(patch.path)
        if not language or not lines:
            continue
        content = "\n".join(line.text for line in lines)
        source, tree = read_source(content, language), parse_python(content) if language == "python" else None
        if tree:
            tests += _expand(list(_python_tests(patch.path, tree, source, lines)))
        elif language != "python":
            tests += _other_tests(patch.path, source, lines, language)
        skips += [
            (patch.path, lines[place]) for place in sorted(find_skips(patch.path, source, language, tree))
        ]
    return tests, skips


def _python_tests(path: str, tree: ast.Module, source: Source, lines: Sequence[Line]) -> Iterator[Test]:
    for node in _live_functions(tree.body):
        end = node.end_lineno or node.lineno
        first = min(node.lineno, *(each.lineno for each in node.decorator_list), node.lineno)
        found = []
        for each in _live_assertions(node.body):
            tested = each.test if isinstance(each, ast.Assert) else each
            text = ast.unparse(tested)
            shown = source.text[each.lineno - 1].strip()
            # A tuple is always true: `assert (x == 3, "message")`.
            strength = 0 if isinstance(tested, ast.Tuple) and tested.elts else _strength(text)
            found.append(Assertion(text, shown, lines[each.lineno - 1].number, strength))
        yield Test(
            path,
            node.name,
            lines[node.lineno - 1].number,
            source.text[node.lineno - 1].strip(),
            tuple(source.text[first - 1 : end]),
            tuple(found),
            node.name.startswith("test"),
        )


def _live_functions(body: Sequence[ast.AST]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of a body and below, except below `if False:`, and those that a later one of the same name replaces."""
    names = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    last = {each.name: each for each in body if isinstance(each, names)}
    for each in body:
        if isinstance(each, names) and last[each.name] is not each:
            continue
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each
        is_never = isinstance(each, ast.If) and isinstance(each.test, ast.Constant) and not each.test.value
        for field in ("body", "orelse", "finalbody", "handlers", "cases")[is_never:]:
            yield from _live_functions(getattr(each, field, ()))


def _expand(tests: Sequence[Test]) -> list[Test]:
    """Return the tests; what helpers of the same file assert counts for the tests that call them."""
    helpers = {test.name: test.assertions for test in tests if not test.is_test and test.assertions}
    return [
        test._replace(
            assertions=(
                *test.assertions,
                *(each for name in sorted(test.calls()) for each in helpers.get(name, ())),
            )
        )
        for test in tests
        if test.is_test or test.assertions
    ]


def _live_assertions(body: Sequence[ast.stmt]) -> Iterator[ast.Assert | ast.Call]:
    """Yield the assertions that are reached and whose failure is not swallowed."""
    for statement in body:
        match statement:
            case ast.Assert():
                yield statement
            case ast.Return() | ast.Continue() | ast.Break():
                return
            case ast.If(test=ast.Constant(value=value), orelse=rest) if not value:
                yield from _live_assertions(rest)
            case ast.Try(handlers=handlers, finalbody=rest) if any(map(_swallows, handlers)):
                yield from _live_assertions(rest)
            case ast.With(items=items) if any("suppress(" in ast.unparse(each) for each in items):
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case _:
                for field in ("items", "value", "body", "handlers", "orelse", "finalbody", "cases"):
                    yield from _assertions_below(getattr(statement, field, ()))


def _assertions_below(value: object) -> Iterator[ast.Assert | ast.Call]:
    for each in value if isinstance(value, list) else (value,):
        match each:
            case ast.stmt():
                yield from _live_assertions(value if isinstance(value, list) else [each])
                return
            case ast.ExceptHandler() | ast.match_case():
                yield from _live_assertions(each.body)
            case ast.AST():
                calls = (node for node in ast.walk(each) if isinstance(node, ast.Call))
                yield from (node for node in calls if _PYTHON_ASSERTION.fullmatch(last_name(node)))
            case _:
                pass


def _swallows(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else "Exception"
    is_wide = re.search(r"\b(?:AssertionError|(?:Base)?Exception)\b", caught)
    return bool(is_wide) and not any(
        isinstance(node, ast.Raise | ast.Assert)
        or (isinstance(node, ast.Call) and _FAILS.search(last_name(node)))
        for node in ast.walk(handler)
    )


def _other_tests(path: str, source: Source, lines: Sequence[Line], language: str) -> Iterator[Test]:
    """Yield the tests of a file by patterns: a test reaches to the next one."""
    assertion, test = _PATTERNS[language]
    starts = [place for place, code in enumerate(source.code) if test.search(code)]
    blocks = enclosing_blocks(source.code)
    for first, end in pairwise([-1, *starts, len(lines)]):
        if first < 0 and language == "rust" and not is_test_file(path):
            continue  # the code that the tests beside it are about
        found, is_live = [], True
        for place in range(max(first, 0), end):
            code = source.code[place]
            if re.match(r"\s*return\s*;?\s*$", code) and not CONDITION.search(
                blocks[place].rpartition(" | ")[2]
            ):
                is_live = False
            if is_live and assertion.search(code) and not _NEVER.search(blocks[place]):
                whole = _whole_statement(source.text, source.code, place, language)
                found.append(
                    Assertion(whole, source.text[place].strip(), lines[place].number, _strength(whole))
                )
        name = _name_of_test(test, source, first, language) if first >= 0 else ""
        line = lines[max(first, 0)]
        shown = line.text.strip()
        body = tuple(source.text[max(first, 0) : end])
        shown += f" {name}" if language in ("rust", "java") and name not in shown else ""
        yield Test(path, name, line.number, shown, body, tuple(found), is_test=first >= 0)


def _name_of_test(test: re.Pattern[str], source: Source, place: int, language: str) -> str:
    if test.groups and (match := test.search(source.code[place])):
        return match[1]
    if language in ("javascript", "shell"):
        title = _TITLE.search(source.text[place])
        return title[0] if title else normalize(source.text[place])
    named = _NAME.search(" ".join(source.code[place : place + 5]))
    return named[1] if named else ""


def _whole_statement(text: Sequence[str], code: Sequence[str], place: int, language: str) -> str:
    """Return the statement that begins on a line, up to where its brackets are closed. In Go, the condition before `t.Errorf` belongs to it."""
    first, depth, end = place, 0, place
    for end in range(place, min(place + MAX_STATEMENT_LINES, len(code))):
        depth += sum(_BRACKETS.get(char, 0) for char in code[end])
        if depth <= 0:
            break
    if language == "go" and place and re.match(r"\s*(?:\}\s*else\s+)?if\b", code[place - 1]):
        first -= 1
    return normalize("".join(text[first : end + 1]))


def _strength(text: str) -> int:
    left, operator, right = text.partition("==")
    if _SAYS_NOTHING.fullmatch(text) or (operator and left.strip() == right.strip()):
        return 0
    return 2 if _SAYS_EXACTLY.search(text) and not _SAYS_LITTLE.search(text) else 1


def normalize(text: str) -> str:
    """Return a statement as a formatter cannot change it: without blanks and commas at the end, and with one kind of quotes."""
    short = re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", text)).rstrip(";,")
    return short.replace("'", '"')
