"""The gate `no-stubs`: what was added holds no TODO, `NotImplementedError`, skipped test, empty body, or words of a stub."""

import ast
import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from types import EllipsisType

from turngate.core.globs import matches_globs
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Decision
from turngate.gates.added_lines import (
    FILTERS,
    MAX_LINE_CHARS,
    Mark,
    answer,
    counts,
    new_marks,
    source_patches,
)
from turngate.gates.gate import Finding, Gate, GateContext
from turngate.gates.git.output import FilePatch, Line
from turngate.gates.session_changes import new_repositories, record_files
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

# At the start of a comment, or with a colon or a parenthesis: "prints the open TODO items", "XXX-YYY" are not markers.
_MARKER = re.compile(
    r"^\W*(?P<first>TODO|XXX|HACK)\b(?![.-]\w)|\b(?P<named>TODO|XXX|HACK|(?:todo|fixme|hack)(?=\s?:))\s?[:：(]|\b(?P<any>FIXME)\b"
)
_DOCSTRING_MARKER = re.compile(r"\W*(?:TODO|FIXME):")
_THING = r"(?:code|logic|implementation|methods?|functions?|version|body|file|class|routes?|handlers?|imports?|component)"
_FALSE = r"(?:mock(?:ed)?|fake|dummy|stub(?:bed)?|hard-?cod\w*|simulated?)"
# What models write where the work should be.
_WORDS = re.compile(
    r"\bin (?:a |an |the )?(?:real|actual|full|complete|proper)(?:[- ]world)? (?:implementation|app|application|system|project|scenario|version)\b"
    r"|\bin (?:a )?(?:real|production)\b[^.]{0,40}\b(?:would|you'd|we'd)\b"
    r"|\ba (?:real|full|proper|production)(?:[- ]\w+)? (?:implementation|version) (?:would|should|could)\b(?! be\b)"
    r"|^\W*(?:a |just a |simple )?placeholder\W*$|\bplaceholder (?:implementation|logic|code|for now|until|values?|data|function|method|response|result)\b"
    rf"|\bfor now\b(?!\().*\b(?:{_FALSE}|simpl\w+|placeholder|(?:just |always )?return\w*|no-op|do(?:es)? nothing)\b"
    rf"|\b(?:{_FALSE}|simpl\w+|placeholder|return\w*|no-op|nothing)\b.*\bfor now\b(?!\()"
    rf"|\b{_FALSE} (?:data|response|results?|values?)\b.*\b(?:until|later|once|when|replace|should|would)|\b{_FALSE} implementation\b|\breturn(?:s|ing)? (?:a |some |the )?{_FALSE}\b"
    rf"|^\W*(?:stub|{_FALSE} (?:data|values?|response))\W*$|\bwhere the (?:actual|real) [\w ]{{1,40}} (?:would|should|will) (?:go|be|happen)\b"
    r"|\bsimulat(?:e|es|ing) (?:sending|an? |the |some )?(?:an? )?(?:e-?mails?|api|network|async|server|http|database|request|response|processing|delay|call)\b"
    r"|\bsimplified (?:version|implementation|approach|logic|check|parsing|parser|handling|calculation)\b|\bsimplified for\b"
    rf"|\brest of (?:the |your )?(?:\w+ ){{1,2}}(?:remains?|stays?|unchanged|here|goes here|omitted|is the same)\b|(?:\.\.\.|…) ?(?:existing|rest|remaining|other|same as)\b|^\W*(?:\.\.\.|…) ?(?:\w+ ){{1,3}}(?:rest|remaining|others?)\b|\b(?:existing|remaining|previous|other) {_THING} ?(?:\.\.\.|here|remains?|stays?|unchanged|goes)"
    rf"|\b(?:your|actual|real) (?:\w+ )?{_THING} (?:goes |would go |will go )?here\b|\b(?:code|logic|implementation|body) (?:goes|would go|will go|comes) here\W*$|^\W*implement (?:me|this|it)\b|\bomitted for (?:brevity|clarity|simplicity|now)\b|\b(?:add|insert|put|write) (?:your |the |actual )?{_THING} here\b"
    r"|\b(?:add|insert|put|write|fill in|place) (?:\w+ ){0,3}(?:code|logic|implementation|body) here\b"
    r"|\b(?:to be|will be|needs? to be) implemented\b(?! (?:by|in)\b)|\bimplement(?:ed)? (?:this |it |that |me )?(?:later|soon|properly|in the future)\b|\btemporary (?:stub|hack|implementation)\b"
    r"|\b(?:logic|implementation|code|handling|integration|support) (?:will|to|should|can) be (?:added|filled in|completed|wired up) (?:later|soon|in (?:a|the) (?:later|future|next))\b"
    r"|\bnot (?:wired|hooked) up yet\b|\bnot integrated yet\b|\bleft as an exercise\b|\bneeds? an? (?:actual|real|proper) (?:implementation|logic)\b"
    r"|\bwould (?:normally|typically|usually|actually|eventually|ideally) (?:call|fetch|query|come from|be (?:fetched|loaded|sent)|make an?)\b"
    rf"|\b(?:{_FALSE}|pretend\w*)\b[^.]{{0,60}}\buntil\b[^.]{{0,40}}\b(?:is|are|exists?|lands?|ready|available|done|works?)\b"
    r"|^\W*(?:not|un)(?: yet| fully)? ?implemented\b(?! (?:by|in|on|for)\b)|\bnot implemented yet\b|\bnot yet implemented\b(?! (?:by|in|on)\b)|\bcoming soon\b"
    r"|nicht implementiert|platzhalter|sp(?:ä|ae)ter implementier|non (?:ancora )?implementat|da implementare|pas (?:encore )?implémenté|à implémenter"
    r"|(?:sin|por|pendiente de) implementar|no implementad|não implementad|a implementar|не реализован|заглушк|реализовать позже"
    r"|未実装|後で実装|仮実装|未实现|待实现|暂未|稍后实现|占位|미구현|나중에 구현|임시 구현",
    re.IGNORECASE,
)
_NOT_IMPLEMENTED = re.compile(
    r"\bNotImplementedException\b|\b(?:raise|throw)\s+(?:NotImplemented|Unimplemented)Error\b|\b(?:todo|unimplemented)!\s*[(\[{]"
)
_KOTLIN_TODO = re.compile(r"(?<![\w.])TODO\(")
# In the text of an error, or what a user reads.
_RAISES = re.compile(
    r"\b(?:throw|raise|panic|fatalError|preconditionFailure|assertionFailure|die|croak|bail|errors\.New|fmt\.Errorf|reject)\b"
)
_NOT_IMPLEMENTED_TEXT = re.compile(
    r"""["'`][^"'`]*(?:\bnot (?:yet )?implemented|\bunimplemented|\bTODO\b)""", re.IGNORECASE
)
_SAYS = re.compile(
    r"\b(?:alert|print\w*|echo|puts|log|warn|info|error|toast\w*|notify|message|flash|return|Text)\b|>"
)
_SHOWN_TEXT = re.compile(
    r"\bnot (?:yet )?implemented yet\b|\bnot yet implemented\b|\bcoming soon\b", re.IGNORECASE
)
_HTTP = re.compile(r"\b501\b|HTTP|NOT_IMPLEMENTED")
_NOT_SUPPORTED = re.compile(
    r"support|requir|only|cannot|unavailable|not available|unknown|invalid|platform|windows|macos|linux|posix|\bos\.name|\bversion"
    r"|hasattr|read-only",
    re.IGNORECASE,
)
_YET = re.compile(r"\byet\b|implement|TODO", re.IGNORECASE)
_HARMLESS_NAME = re.compile(
    r"no_?op|\bnop|nop\b|null|silent|quiet|ignore|dummy|fake|stub|mock|empty|disabled|(?-i:\bBase|Base\b)|abstract|interface|mixin",
    re.IGNORECASE,
)
_ALWAYS_TRUE = re.compile(
    r"\bexpect\((true|false|1|\"\")\)\.to(?:Be|Equal|StrictEqual)\(\1\)|\bassert(?:True)?!?\s*\(\s*(?i:true)\s*\)|\bassert\.ok\(true\)"
)
_EMPTY_TEST = re.compile(
    r'(?:^|[\s;{(])(?:it|test|specify)\s*\(\s*""\s*,\s*(?:async\s*)?(?:function\s*)?\(\w*\)\s*(?:=>\s*)?\{\s*\}'
)

_ANNOTATION = r"(?:\s*:\s*[^{};=]+)?"
_EMPTY_FUNCTION = re.compile(
    r"^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?\s*(\w+)\s*(?:<[^>]*>)?\s*\([^()]*\)"
    + _ANNOTATION
    + r"\s*\{\s*\}?\s*;?\s*$|^\s*(?:(?:public|private|protected|internal|static|final|override|async|void|function|func|fun|pub|fn)\s+)*(\w+)\s*\([^()]*\)"
    + _ANNOTATION
    + r"\s*\{\s*\}?\s*$|^func\s+(?:\(\w*\s*\*?\w+\)\s*)?(\w+)\([^()]+\)\s*\{\s*\}?\s*$|^\s*(?:export\s+)?(?:const|let|var)\s+(\w+)"
    + _ANNOTATION
    + r"\s*=\s*(?:async\s*)?(?:\([^()]*\)|\w+)"
    + _ANNOTATION
    + r"\s*=>\s*\{\s*\}?\s*;?\s*$"
)
_KEYWORDS = frozenset(
    "if for while switch catch with constructor function return else do try init main".split()
)
_OVERRIDES = re.compile(
    r"\bimpl\b.*\bfor\b|\b(?:interface|trait|protocol|abstract)\b|\bclass\b.*\b(?:extends|implements)\b|\boverride\b"
)
_BASES = re.compile(r"^\s*class\s+\w+[^(\n:]*\(([^)\n]*)\)\s*:")
_FOR_SUBCLASSES = re.compile(r"\b(?:overrid\w+|subclass\w*|hooks?)\b", re.IGNORECASE)  # in a docstring
_FOR_NOTHING = re.compile(r"\b(?:nothing|no-?op|intentional\w*|deliberate\w*)\b", re.IGNORECASE)
_FUNCTION_WORD = re.compile(r"\b(?:void|func|fun|function|fn)\b")
_WITH_FUNCTIONS = (".cs", ".swift", ".php", ".dart")
_PRETENDS = re.compile(r"mock|fake|stub|dummy|stories|seeds?\b|demo|examples?|samples?", re.IGNORECASE)
# Decorators of functions that declare something and need no body.
_DECLARING = frozenset(
    "overload group callback hookspec scenario given when then ai_fn external task_group".split()
)


def find_stubs(patches: Iterable[FilePatch]) -> Iterator[Finding]:
    """Yield the stubs that were added. The patches have all lines of each file; what was moved or reworded does not count."""
    patches = list(patches)
    subclassed = _base_names(patches)
    return new_marks(patches, lambda path, lines, changed: _find_in_file(path, lines, changed, subclassed))


def _base_names(patches: Iterable[FilePatch]) -> frozenset[str]:
    """Return the names in the bases of all Python classes, of `class B(x.A[T]):` also `A`."""
    lines = (line.text for patch in patches if language_of(patch.path) == "python" for line in patch.lines)
    found = (match for line in lines if "class" in line and (match := _BASES.match(line[:MAX_LINE_CHARS])))
    return frozenset(name for match in found for name in re.findall(r"\w+", match[1]))


def _find_in_file(
    path: str, lines: Sequence[Line], changed: Collection[int], subclassed: Container[str]
) -> dict[int, Mark]:
    language = language_of(path) or ""
    content = "\n".join(line.text for line in lines)
    source = read_source(content, language)
    tree = parse_python(content) if language == "python" else None
    found: dict[int, Mark] = {}
    for place, extent, kind in _python_stubs(path, tree, source, subclassed) if tree else ():
        found.setdefault(place, Mark(extent, kind))
    for place in find_skips(path, source, language, tree):
        found[place] = Mark({place}, "skipped test")
    blocks = [""] * len(lines) if language == "python" else enclosing_blocks(source.code)
    for place in changed:
        comment = source.comments[place]
        if word := _describe_comment(path, comment):
            found[place] = Mark({place}, word, comment.strip())
        elif place not in found and (
            word := _describe_code(path, source, place, blocks[place], is_parsed=bool(tree))
        ):
            found[place] = Mark({place, place + 1}, word)
    return found


def _describe_comment(path: str, comment: str) -> str | None:
    comment = comment[:MAX_LINE_CHARS]
    if marker := _MARKER.search(comment):
        return str(marker[marker.lastgroup or 0]).upper()
    return "words of a stub" if not _is_make_believe(path) and _WORDS.search(comment) else None


def _is_make_believe(path: str) -> bool:
    """Return whether what a file does is meant not to be real."""
    return is_test_file(path) or bool(_PRETENDS.search(path))


def _describe_code(path: str, source: Source, place: int, block: str, *, is_parsed: bool) -> str | None:
    """Return what kind of stub a line is. A fake in a test need not implement everything."""
    code, text = source.code[place][:MAX_LINE_CHARS], source.text[place][:MAX_LINE_CHARS]
    if is_test_file(path):
        before = next((each for each in reversed(source.code[max(0, place - 3) : place]) if each.strip()), "")
        is_first = before.rstrip().endswith("{") or "{" in code
        is_empty = _EMPTY_TEST.search(code) or (not is_parsed and is_first and _ALWAYS_TRUE.search(code))
        return "empty test" if is_empty else None
    if _HTTP.search(text):
        return None
    guards = f"{block} {code}" if CONDITION.search(f"{block} {code}") else ""
    is_stub = (
        (not is_parsed and _NOT_IMPLEMENTED.search(code))
        or (_RAISES.search(code) and _NOT_IMPLEMENTED_TEXT.search(text))
        or (path.endswith((".kt", ".kts")) and _KOTLIN_TODO.search(code))
    )
    if is_stub and not _NOT_SUPPORTED.search(guards):
        return "not implemented"
    if _SHOWN_TEXT.search(text) and _SAYS.search(code):
        return "words of a stub"
    return "empty body" if not is_parsed and _is_empty_function(path, source, place, block) else None


def _is_empty_function(path: str, source: Source, place: int, block: str) -> bool:
    """Return whether a function begins here that does nothing, without a comment that says why."""
    line = one_line(source.code[place][:MAX_LINE_CHARS])
    match = (
        _EMPTY_FUNCTION.match(line) if language_of(path) != "c" or path.endswith(_WITH_FUNCTIONS) else None
    )
    name = next(filter(None, match.groups()), "") if match else ""
    if not match or name in _KEYWORDS or name.startswith("__") or _HARMLESS_NAME.search(f"{block} {line}"):
        return False
    if language_of(path) not in ("javascript", "markup", "go") and not _FUNCTION_WORD.search(line):
        return False  # a constructor
    if _OVERRIDES.search(f"{block} {source.code[place - 1] if place else ''} {line}"):
        return False
    end = place
    if not line.rstrip(" ;").endswith("}"):
        end = next((each for each in range(place + 1, len(source.code)) if source.code[each].strip()), place)
        if source.code[end].strip() not in ("}", "};"):
            return False
    return not any(source.comments[place : end + 1])


# Python

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _python_stubs(
    path: str, tree: ast.Module, source: Source, subclassed: Container[str]
) -> Iterator[tuple[int, set[int], str]]:
    """Yield the place of each stub, the places that belong to it, and what it is."""
    in_test = is_test_file(path)
    values = _values(tree)
    for function, parent in _functions(tree):
        first, last = function.lineno - 1, (function.end_lineno or function.lineno) - 1
        body = set(range(function.body[0].lineno - 1, last + 1))
        is_test = in_test and function.name.startswith("test")
        if path.endswith(".pyi") or _is_declared(function, parent, subclassed):
            continue
        if all(map(_is_idle, function.body)) and not (
            (in_test and not is_test)
            or _overrides(function, parent)
            or any(source.comments[first : last + 1])
            or _is_meant_empty(path, function, values)
        ):
            yield first, body, "empty body"
        elif is_test and all(_is_idle(each) or _is_true(each) for each in function.body):
            yield first, body, "empty test"
        for place, message, guards in () if in_test else _raises(function):
            is_choice = _NOT_SUPPORTED.search(message + guards) and not _YET.search(message)
            if not is_choice and not _HTTP.search(message):
                yield place, {place}, "not implemented"
        for place in _docstring_places(function) if not _is_make_believe(path) else ():
            words = _WORDS.search(source.text[place])
            if (words and "implement" in words[0].lower()) or _DOCSTRING_MARKER.match(source.text[place]):
                yield place, {place}, "words of a stub"


def _values(tree: ast.Module) -> set[str]:
    """Return the names that are used otherwise than to call them, such as those of callbacks."""
    calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in calls}


def _docstring_places(function: Function) -> range:
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and ast.get_docstring(function) is not None
    return range(first.lineno - 1, first.end_lineno or first.lineno) if is_docstring else range(0)


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


def _raises(function: Function) -> Iterator[tuple[int, str, str]]:
    """Yield where a function raises NotImplementedError, what the error says, and the conditions for it."""
    rest: list[tuple[ast.AST, str]] = [(each, "") for each in function.body]
    while rest:
        node, guards = rest.pop()
        if isinstance(node, ast.Raise) and node.exc and last_name(node.exc) == "NotImplementedError":
            message = " ".join(map(ast.unparse, node.exc.args)) if isinstance(node.exc, ast.Call) else ""
            yield node.lineno - 1, message, guards
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case) and not isinstance(
            node, Function
        ):
            inner = f"{guards} {ast.unparse(node.test)}" if isinstance(node, ast.If) else guards
            rest += [(each, inner) for each in ast.iter_child_nodes(node)]


def _is_declared(function: Function, parent: ast.AST, subclassed: Container[str]) -> bool:
    """Return whether a function needs no body: it is abstract, for subclasses, or its decorator says so."""
    names = {last_name(each) for each in function.decorator_list}
    docstrings = [ast.get_docstring(function) or ""] if isinstance(parent, ast.ClassDef) else []
    if isinstance(parent, ast.ClassDef):
        names |= {last_name(base) for base in (*parent.bases, *(each.value for each in parent.keywords))}
        if parent.name in subclassed or _HARMLESS_NAME.search(parent.name):
            return True
        docstrings.append(ast.get_docstring(parent) or "")
    return any(map(_FOR_SUBCLASSES.search, docstrings)) or any(
        name in ("Protocol", "ABC", "ABCMeta") or name.startswith("abstract") or name in _DECLARING
        for name in names
    )


def _overrides(function: Function, parent: ast.AST) -> bool:
    """Return whether an empty method may replace one of a base class, or is one that Python calls."""
    if not isinstance(parent, ast.ClassDef) or function.name.startswith("test"):
        return False
    return function.name.startswith("__") or any(last_name(base) != "object" for base in parent.bases)


def _is_meant_empty(path: str, function: Function, values: Container[str]) -> bool:
    docstring = ast.get_docstring(function) or ""
    return bool(
        _HARMLESS_NAME.search(function.name)
        or _FOR_NOTHING.search(docstring)
        or (docstring and function.name in values)
        or matches_globs(("migrations", "alembic"), path)
    )


def _is_idle(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant(value=str() | EllipsisType())):
            return True
        case _:
            return False


def _is_true(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assert(test=ast.Constant(value=value)):
            return value is True
        case ast.Expr(value=ast.Call(args=[ast.Constant(value=value)]) as call):
            return value is True and last_name(call) == "assertTrue"
        case _:
            return False


ADVICE = "Complete them, or remove them and say in your answer what is missing."


async def check_no_stubs(context: GateContext) -> Decision:
    patches = await source_patches(context)
    findings = [finding for finding in find_stubs(patches.files) if counts(context, finding)]
    decision = answer(findings, patches, "the added lines contain stubs", ADVICE)
    note = await new_repositories(context) if isinstance(decision, Allow) else None
    return Allow(note) if note else decision


NO_STUBS = Gate(
    name="no-stubs",
    summary="the added lines contain no TODO, skipped test or empty body",
    check=check_no_stubs,
    options=FILTERS,
    record=record_files,
)
