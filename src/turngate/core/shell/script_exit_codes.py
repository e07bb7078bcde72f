"""The exit codes that a script or a command names, and whether it blocks."""

import ast
import functools
import re
from collections.abc import Iterator

BLOCK_JSON = re.compile(r"[\"']?decision[\"']?\s*:\s*[\"']?block")
PRINTED_BLOCK = re.compile(r"(?:echo|printf)\s[^\n]{0,500}?" + BLOCK_JSON.pattern)
_BLOCKS_OTHERWISE = re.compile(r"decision|\bcontinue\b[\"']?\s*:|hookSpecificOutput|stopReason|\"ok\"")
_SHELL_EXIT = re.compile(
    r"(?:^|[;&|{(]|\bthen\b|\belse\b|\bdo\b)[ \t]*exit[ \t]+(\S+?)[ \t]*(?=[;&|)}#\n]|$)", re.MULTILINE
)
_SHELL_UNKNOWN = re.compile(
    r"(?:^|[;&|{(]|\bthen\b|\belse\b)[ \t]*(?:exec|source|\.|eval|trap)[ \t]|\breturn[ \t]+(?:2|[\"$])"
    r"|sys\.exit|process\.exit|SystemExit",
    re.MULTILINE,
)
_NODE_EXIT = re.compile(r"process\.exit(?:Code\s*=\s*|\(\s*)([^);\n]*)")
# A program that the script needs is missing: not its decision.
_SHELL_NEEDS = re.compile(
    r"^[ \t]*(?:command -v|which|type|hash)\b[^\n|]*\|\|[ \t]*exit[ \t]+\d+[ \t]*$", re.MULTILINE
)
_COMMENT_LINES = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


def exit_codes(text: str, language: str | None) -> frozenset[int] | None:
    """Return the exit codes that a script names; None if it may end in another way, or decide with JSON."""
    if _BLOCKS_OTHERWISE.search(text):
        return None
    match language:
        case "shell":
            text = _SHELL_NEEDS.sub("", _COMMENT_LINES.sub("", text))
            return None if _SHELL_UNKNOWN.search(text) else _numbers(_SHELL_EXIT.findall(text))
        case "python":
            try:
                return _codes_of_tree(ast.parse(text))
            except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply
                return None
        case "node":
            return _numbers(code.strip() or "0" for code in _NODE_EXIT.findall(text))
        case _:
            return None


@functools.lru_cache(maxsize=4)  # asked for each command of a script
def block_attempt(text: str, language: str | None = "shell") -> str | None:
    """Return how a command or a script blocks, in words; None if it does not, as far as that can be seen."""
    match language:
        case "shell":
            bare = _QUOTED.sub(
                lambda found: "''" if found[1] or found[2] else found[0], _COMMENT_LINES.sub("", text)
            )
            exits = "2" in _SHELL_EXIT.findall(bare)
        case "python":
            exits = bool(_PYTHON_EXIT_2.search(_COMMENT_LINES.sub("", text)))
        case "node":
            exits = any(re.match(r"2\b", code) for code in _NODE_EXIT.findall(text))
        case _:
            exits = False
    if exits:
        return "exits with 2"
    return "prints a block" if language == "shell" and PRINTED_BLOCK.search(text) else None


# On one line; one that is not closed there is found too, so that each character is read once.
_QUOTED = re.compile(r"'[^'\n]*('?)|\"(?:[^\"\\\n]|\\.?)*(\"?)")
_PYTHON_EXIT_2 = re.compile(r"(?:exit|SystemExit)\(2\b")


def _numbers(words: Iterator[str] | list[str]) -> frozenset[int] | None:
    words = list(words)
    return frozenset(map(int, words)) if all(re.fullmatch(r"\d{1,3}", word) for word in words) else None


def _codes_of_tree(tree: ast.AST) -> frozenset[int] | None:
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    called: set[str] = set()
    values: list[ast.expr | None] = []
    exits = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_exit(node.func))
    for value in (node.args[0] if node.args else None for node in exits):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in functions:
            called.add(value.func.id)
        else:
            values.append(value)
    nodes = (node for name in called for node in ast.walk(functions[name]))
    values += [node.value for node in nodes if isinstance(node, ast.Return)]
    codes = {_constant_code(value) for value in values}
    return frozenset(code for code in codes if code is not None) if None not in codes else None


def _is_exit(function: ast.expr) -> bool:
    is_name = isinstance(function, ast.Name | ast.Attribute)
    return is_name and ast.unparse(function) in ("exit", "sys.exit", "os._exit", "SystemExit")


def _constant_code(value: ast.expr | None) -> int | None:
    """Return the exit code of a constant: sys.exit("text") exits with 1."""
    if value is None:
        return 0
    if not isinstance(value, ast.Constant):
        return None
    if isinstance(value.value, int):
        return int(value.value) if value.value <= 255 else None
    return 0 if value.value is None else 1
