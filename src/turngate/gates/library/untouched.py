"""The gate `untouched`: protected files, such as tests, are as they were at the session's start."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from turngate.core.globs import matches_globs
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.gate import MAX_FINDINGS, Finding, Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import Change, FilePatch, Line, show_path
from turngate.gates.session_changes import (
    WHOLE_FILE,
    Patches,
    describe_filtered,
    find_changes,
    find_patches,
    record_files,
)
from turngate.gates.source_text import language_of, read_source

MAX_STATEMENT_LINES = 40

_ANY_ASSERTION = r"\bassert\w*|\bexpect\w*\s*\(|\.should\b"
ASSERTIONS = {
    "python": r"\bassert\b|\bassert\w*\s*\(|\b(?:raises|warns|fail)\s*\(",
    "javascript": r"\bexpect\w*\s*[.(]|\bassert\b|\bassert\w*\s*\(|\.should\b"
    r"|\bt\.(?:is|not|ok|true|false|truthy|falsy|equal|same|deepEqual|throws\w*|regex|fail)\(",
    "go": r"\bt\.(?:Error|Fatal|Fail)\w*\(|\b(?:assert|require)\.\w+\(",
    "rust": r"\b\w*assert\w*!|#\[should_panic",
    "java": r"\bassert\b|\b[aA]ssert\w*[\s.(]|\b(?:verify|fail|check|should\w*)\s*\(",
}
TESTS = {
    "python": r"^\s*(?:async\s+)?def (test\w*)",
    "javascript": r"(?:^|[\s;{(])(?:it|test|specify)(?:\.\w+)*\s*\(",
    "go": r"^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(",
    "rust": r"#\[(?:\w+::)*test\b",
    "java": r"@(?:\w*Test|Property)\b",
}
_NEVER = r"\bif\s*\(?\s*(?:False|false|0)\s*\)?\s*[:{]"
SKIPS = {
    "python": r"\bmark\.(?:skip|xfail)|\bpytest\.(?:skip|xfail|importorskip)\s*\(|\bunittest\.(?:skip|expectedFailure)"
    r"|^\s*@(?:skip|expectedFailure)|\bskipTest\s*\(|\bSkipTest\b|\b__test__\s*=\s*False|\bcollect_ignore"
    r"|\bexcept\s+\(?AssertionError|\bsuppress\(AssertionError",
    "javascript": r"\b(?:it|test|describe|suite|specify|context)(?:\.\w+)*\.(?:skip|only|todo|fails|failing|fixme)\b"
    r"|(?:^|[\s;{(])(?:x|f)(?:it|test|describe)\s*\(|\bthis\.skip\s*\(",
    "go": r"\b[tb]\.Skip\w*\(",
    "rust": r"#\[ignore\b|#\[cfg\(any\(\)\)\]",
    "java": r"@(?:Disabled|Ignore)\b|\bassum(?:e[A-Z]\w*|ptions?\.\w+)\s*\(|enabled\s*=\s*false",
}
_PATTERNS = {
    language: (
        re.compile(ASSERTIONS.get(language, _ANY_ASSERTION)),
        re.compile(TESTS.get(language, r"(?!)")),
        re.compile(f"{SKIPS.get(language, _NEVER)}|{_NEVER}"),
    )
    for language in ("python", "javascript", "go", "rust", "java", "c", "shell")
}
_TITLE = re.compile(r"""(?<=\()\s*(["'`]).*?\1""")
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


class Statement(NamedTuple):
    """One thing that a test says, without regard to blanks and line breaks."""

    kind: str  # "assertion", "test" or "skip"
    text: str
    shown: str
    number: int  # of its line
    is_kept: bool  # its first line was not changed


def find_weakened(patches: Iterable[FilePatch]) -> Iterator[Finding]:
    """Yield what the patches take away from the tests. They have all lines of each file, changed or not.

    What was moved, also from one file to another, is not taken away. A test may be renamed.
    """
    files = [(patch.path, _statements(patch, "removed"), _statements(patch, "added")) for patch in patches]
    before = Counter((each.kind, each.text) for _, old, _ in files for each in old)
    after = Counter((each.kind, each.text) for _, _, new in files for each in new)
    missing, more = before - after, after - before
    renamed = sum(count for (kind, _), count in more.items() if kind == "test")
    for path, old, new in files:
        own_before, own_after = (Counter((each.kind, each.text) for each in part) for part in (old, new))
        for each in old:
            key = each.kind, each.text
            if each.kind == "skip" or not missing[key] or own_before[key] <= own_after[key]:
                continue
            missing[key] -= 1
            own_before[key] -= 1
            if each.kind == "test" and renamed:
                renamed -= 1
                continue
            word = "a test was removed" if each.kind == "test" else "an assertion was removed or changed"
            yield Finding(path, each.number, f"{word}: {each.shown}")
        for each in new:
            key = each.kind, each.text
            if each.kind == "skip" and more[key]:
                more[key] -= 1
                yield Finding(path, each.number, f"a test is switched off: {each.shown}")


def _statements(patch: FilePatch, side: str) -> list[Statement]:
    """Return the statements of a file before ("removed") or after ("added") the change."""
    lines = [line for line in patch.lines if line.kind in ("kept", side)]
    language = language_of(patch.path)
    statements = _read_statements(lines, language) if language else ()
    # Of equal ones, the changed ones first.
    return sorted(statements, key=lambda statement: statement.is_kept)


def _read_statements(lines: Sequence[Line], language: str) -> Iterator[Statement]:
    source = read_source("\n".join(line.text for line in lines), language)
    assertion, test, skip = _PATTERNS[language]
    for place, line in enumerate(lines):
        code, text, is_kept = source.code[place], source.text[place], line.kind == "kept"
        if match := test.search(code):
            name = _name_of_test(match, source.text[place : place + 3], language)
            yield Statement("test", name, text.strip(), line.number, is_kept)
        if assertion.search(code):
            whole = _whole_statement(source.text, source.code, place, language)
            yield Statement("assertion", whole, text.strip(), line.number, is_kept)
        if skip.search(code):
            yield Statement("skip", normalize(text), text.strip(), line.number, is_kept)


def _name_of_test(match: re.Match[str], lines: Sequence[str], language: str) -> str:
    if match.re.groups:
        return match[1]
    if language == "javascript":
        title = _TITLE.search(lines[0])
        return title[0] if title else normalize(lines[0])
    return normalize(" ".join(lines))  # the name is on a line below


def _whole_statement(text: Sequence[str], code: Sequence[str], place: int, language: str) -> str:
    """Return the statement that begins on a line, with the lines on which its brackets are closed.

    In Go the condition before `t.Errorf` belongs to it.
    """
    first, depth, end = place, 0, place
    for end in range(place, min(place + MAX_STATEMENT_LINES, len(code))):
        depth += sum(_BRACKETS.get(char, 0) for char in code[end])
        if depth <= 0:
            break
    if language == "go" and place and re.match(r"\s*(?:\}\s*else\s+)?if\b", code[place - 1]):
        first -= 1
    return normalize("".join(text[first : end + 1]))


def normalize(text: str) -> str:
    """Return a statement as a formatter cannot change it: without blanks, commas at the end, outer brackets."""
    short = re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", text)).rstrip(";,")
    short = short.replace("'", '"')
    wrapped = re.fullmatch(r"assert\((.*)\)", short)
    return f"assert{wrapped[1]}" if wrapped and _is_balanced(wrapped[1]) else short


def _is_balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += _BRACKETS.get(char, 0)
        if depth < 0:
            return False
    return depth == 0


ADVICE = "Restore what they were, and complete the task without changing them."
MAX_PATHSPECS = 500
NO_LINES = "the project has no git repository, so the lines of changed files are not known"
TOO_LONG = "the changes of the protected files are too long to be compared"


async def check_untouched(context: GateContext) -> Decision:
    named = [change for change in await find_changes(context) if _is_named(context, change)]
    changes = [change for change in named if change.kind != "filtered"]
    if not changes:
        return Fault(describe_filtered(named[0].path)) if named else Allow()
    if context.options["no-weakening"]:
        return await _compare_assertions(context, changes)
    touched = [change for change in changes if change.kind != "added" or context.options["added"]]
    patches = await _read_patches(context, touched[:MAX_FINDINGS]) if touched else None
    lines = {patch.path: patch.lines[0].number for patch in patches.files if patch.lines} if patches else {}
    return _fail([_describe(change, lines) for change in touched])


async def _compare_assertions(context: GateContext, changes: Sequence[Change]) -> Decision:
    """Compare the tests in source files. Other files, and those that were moved away, must be as they were."""
    others = [change for change in changes if _must_stay(context, change)]
    sources = [change for change in changes if language_of(change.path) or language_of(change.old_path or "")]
    patches = await _read_patches(context, sources, context_lines=WHOLE_FILE) if sources else Patches(())
    if patches is None:
        return Fault(NO_LINES)
    deleted = {change.path for change in changes if change.kind == "deleted"}
    weakened = list(find_weakened(patches.files))
    gone = sorted({finding.path for finding in weakened} & deleted)
    findings = [
        *(_describe(change, {}) for change in others),
        *(f"{show_path(path)} was deleted" for path in gone),
        *(str(finding) for finding in weakened if finding.path not in deleted),
    ]
    return Fault(TOO_LONG) if patches.truncated and not findings else _fail(findings)


def _is_named(context: GateContext, change: Change) -> bool:
    globs: Sequence[str] = context.options["globs"]
    return any(path and matches_globs(globs, path) for path in (change.path, change.old_path))


def _must_stay(context: GateContext, change: Change) -> bool:
    globs: Sequence[str] = context.options["globs"]
    match change.kind:
        case "added":
            return bool(context.options["added"])
        case "renamed" if matches_globs(globs, change.old_path or ""):
            return not matches_globs(globs, change.path)
        case "renamed":  # into the protected folder
            return bool(context.options["added"])
        case _:
            return language_of(change.path) is None


async def _read_patches(
    context: GateContext, changes: Sequence[Change], context_lines: int = 0
) -> Patches | None:
    paths = {path for change in changes for path in (change.old_path, change.path) if path}
    pathspecs = (".",) if len(paths) > MAX_PATHSPECS else tuple(f":(literal){path}" for path in paths)
    patches = await find_patches(
        context, *pathspecs, context_lines=context_lines, is_source=context_lines == WHOLE_FILE
    )
    if patches is None:
        return None
    return Patches(tuple(patch for patch in patches.files if patch.path in paths), patches.truncated)


def _describe(change: Change, lines: Mapping[str, int]) -> str:
    path = show_path(change.path)
    match change.kind:
        case "renamed":
            return f"{show_path(change.old_path or '')} was renamed to {path}"
        case "modified" if change.old_mode != change.mode:
            return f"{path}: its mode was changed from {change.old_mode} to {change.mode}"
        case "modified":
            return f"{path}{f':{lines[change.path]}' if change.path in lines else ''} was changed"
        case kind:
            return f"{path} was {kind}"


def _fail(findings: Sequence[str]) -> Decision:
    if not findings:
        return Allow()
    return Block(f"protected files have changed:\n{list_findings(findings)}\n{ADVICE}")


UNTOUCHED = Gate(
    name="untouched",
    summary="protected files, such as tests, are as they were",
    check=check_untouched,
    options=(
        GateOption("added", "flag", "new files that the globs name count too"),
        GateOption(
            "no-weakening",
            "flag",
            "tests may change as long as no assertion or test is removed, changed or switched off",
        ),
    ),
    operands=GateOption("globs", "texts", "the protected files", "GLOB…", required=True),
    record=record_files,
    needs_start=True,
)
