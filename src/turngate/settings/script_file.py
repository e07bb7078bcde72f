"""Reads the script of a hook: its language, why it cannot be started, and the exit codes that it ends with."""

import ast
import contextlib
import functools
import os
import re
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from turngate.core.settings import Severity
from turngate.core.shell.invocation import language_of
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes

MAX_SCRIPT_BYTES = 128 * 1024  # a larger script is not read
_HEAD_BYTES = 4096  # in which a binary has a null character

_RUNNERS = {"uv": "python", "bun": "node", "deno": "node"}
_EXTENSIONS = {
    ".sh": "shell",
    ".bash": "shell",
    ".py": "python",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".ts": "node",
    ".rb": "other",
    ".pl": "other",
    ".php": "other",
}
_INTERPRETER_HINTS = {"python": "#!/usr/bin/env python3", "node": "#!/usr/bin/env node"}
_NEAR_SHEBANG = re.compile(r"(?:\s+#!|#\s+!|#/|!#|#\s*/(?:usr/)?bin/)\s*\S*/\w+")


class Script(NamedTuple):
    path: str
    text: str
    shebang: str | None  # the first line without `#!`

    @property
    def interpreter(self) -> tuple[str, str]:
        """The program of the `#!` line and the rest of the line: the kernel splits it once."""
        words = (self.shebang or "").strip(" \t").split(None, 1)
        return (words[0], words[1] if len(words) > 1 else "") if words else ("", "")

    @property
    def language(self) -> str | None:
        """By the `#!` line, else by the extension."""
        program, rest = self.interpreter
        if self.shebang is None:
            return _EXTENSIONS.get(os.path.splitext(self.path)[1])
        name = os.path.basename(
            env_program(rest) or "" if os.path.basename(program) == "env" else program
        ).strip()
        return language_of(name) or _RUNNERS.get(name)


def read_script(path: str) -> Script | None:
    """Return a script, or None for a binary, a large or an unreadable file."""
    try:
        data = read_bytes(path, MAX_SCRIPT_BYTES)
    except (OSError, NotARegularFile, FileTooLarge):
        return None
    if b"\0" in data:
        return None
    text = data.decode("utf-8", "replace")
    first = text.split("\n", 1)[0]
    return Script(path, text, first[2:] if first.startswith("#!") else None)


def is_large_text(path: str) -> bool:
    """Return whether `read_script` does not read the file because of its size alone."""
    try:
        read_bytes(path, MAX_SCRIPT_BYTES)
    except FileTooLarge:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            return b"\0" not in file.read(_HEAD_BYTES)
    except (OSError, NotARegularFile):
        pass
    return False


def env_program(arguments: str) -> str | None:
    """Return the program that `#!/usr/bin/env ARGUMENTS` starts; None if there is none."""
    if not re.match(r"-\w*S|--split-string", arguments):
        return arguments.strip() or None
    try:
        words = shlex.split(re.sub(r"^(?:-\w*S|--split-string=?)\s*", "", arguments))
    except ValueError:
        return None
    return next((word for word in words if not word.startswith("-") and "=" not in word), None)


class Defect(NamedTuple):
    message: str  # continues a sentence that begins with the script's name
    hint: str | None = None
    severity: Severity = "error"


FAILS_OR_BLOCKS = "so the hook fails or blocks at every run"


def line_ending_defect(script: Script, name: str, fails: str = FAILS_OR_BLOCKS) -> Defect | None:
    """A shell takes the carriage return for a part of the command, and the kernel for a part of the interpreter."""
    if "\r\n" not in script.text:
        return None
    hint = f"sed -i 's/\\r$//' {quote_path(name)}"
    return Defect(f"has Windows line endings (CRLF), {fails}", hint)


def start_defect(script: Script, name: str, has_program: Callable[[str], bool]) -> Defect | None:
    """Return why the script cannot be started as a program."""
    if script.shebang is None:
        return _missing_shebang(script)
    if script.shebang.endswith("\r"):
        return line_ending_defect(script, name, _FAILS)
    program, rest = script.interpreter
    if os.path.basename(program) == "env":
        return _env_defect(rest, has_program)
    if program and not os.path.isabs(program):
        hint = f"write #!/usr/bin/env {program}" if "/" not in program else None
        return Defect(f"begins with #!{program}, which is not an absolute path, {_FAILS}", hint)
    if program and not os.path.exists(program):
        return Defect(
            f"begins with #!{program}, which does not exist, {_FAILS}", _suggest(program, has_program)
        )
    return None


_FAILS = "so the hook fails at every run"


def _missing_shebang(script: Script) -> Defect | None:
    first = script.text.split("\n", 1)[0].rstrip()
    if first.startswith("\ufeff#!"):
        return Defect(
            "has a byte order mark before its #! line, so it is read as a shell script", "save it without BOM"
        )
    if first[:1].isspace() and first.lstrip().startswith("#!"):
        message = f"has a blank before {first.strip()}: #! must be the first two characters of the file"
        return Defect(message, "remove the blank", "warning")
    if _NEAR_SHEBANG.match(first):
        path = first[first.index("/") :]
        return Defect(f"begins with {first.strip()}, which is not a #! line", f"write #!{path}", "warning")
    if script.language in _INTERPRETER_HINTS:
        hint = f"add {_INTERPRETER_HINTS[script.language]} as its first line"
        return Defect(
            "has no #! line, so it is read as a shell script, and the hook fails at every run", hint
        )
    return None


def _env_defect(arguments: str, has_program: Callable[[str], bool]) -> Defect | None:
    program = env_program(arguments)
    if program is None:
        return Defect(f"begins with a #! line that names no program, {_FAILS}")
    if " " in program:
        first = program.split()[0]
        message = (
            f"begins with #!/usr/bin/env {program}, where {program!r} is taken for one program, {_FAILS}"
        )
        return Defect(message, f"write #!/usr/bin/env -S {program}, or #!/usr/bin/env {first}")
    if not has_program(program):
        message = (
            f"begins with #!/usr/bin/env {program}, and the program {program} is not in the PATH, {_FAILS}"
        )
        return Defect(message)
    return None


def _suggest(path: str, has_program: Callable[[str], bool]) -> str | None:
    name = os.path.basename(path)
    return f"write #!/usr/bin/env {name}" if has_program(name) else None


def quote_path(name: str) -> str:
    """Quote a path for a shell; the shell still expands a leading `~/`."""
    return f"~/{shlex.quote(name[2:])}" if name.startswith("~/") else shlex.quote(name)


# Exit codes

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


def exit_codes(script: Script, language: str | None) -> frozenset[int] | None:
    """Return the exit codes that the script names; None if it may end in another way, or decide with JSON."""
    if _BLOCKS_OTHERWISE.search(script.text):
        return None
    match language:
        case "shell":
            return _shell_exit_codes(_SHELL_NEEDS.sub("", _COMMENT_LINES.sub("", script.text)))
        case "python":
            return _python_exit_codes(script.text)
        case "node":
            return _numbers(code.strip() or "0" for code in _NODE_EXIT.findall(script.text))
        case _:
            return None


@functools.lru_cache(maxsize=4)  # asked for each command of a script
def block_attempt(text: str, language: str | None = "shell") -> str | None:
    """Return how a command or a script blocks, in words; None if it does not, as far as that can be seen."""
    match language:
        case "shell":
            exits = "2" in _SHELL_EXIT.findall(_QUOTED.sub(_without_quoted, _COMMENT_LINES.sub("", text)))
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


def _without_quoted(match: re.Match[str]) -> str:
    return "''" if match[1] or match[2] else match[0]


_PYTHON_EXIT_2 = re.compile(r"(?:exit|SystemExit)\(2\b")


def _shell_exit_codes(text: str) -> frozenset[int] | None:
    return None if _SHELL_UNKNOWN.search(text) else _numbers(_SHELL_EXIT.findall(text))


def _numbers(words: Iterator[str] | list[str]) -> frozenset[int] | None:
    words = list(words)
    return frozenset(map(int, words)) if all(re.fullmatch(r"\d{1,3}", word) for word in words) else None


def _python_exit_codes(text: str) -> frozenset[int] | None:
    try:
        return _codes_of_tree(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply
        return None


def _codes_of_tree(tree: ast.AST) -> frozenset[int] | None:
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    called: set[str] = set()
    values: list[ast.expr | None] = []
    for value in _python_exit_values(tree):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in functions:
            called.add(value.func.id)
        else:
            values.append(value)
    values += [value for name in called for value in _returned(functions[name])]
    codes = {_constant_code(value) for value in values}
    return frozenset(code for code in codes if code is not None) if None not in codes else None


def _python_exit_values(tree: ast.AST) -> Iterator[ast.expr | None]:
    """Yield the argument of each exit()."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_exit(node.func):
            yield node.args[0] if node.args else None


def _is_exit(function: ast.expr) -> bool:
    match function:
        case ast.Name("exit" | "SystemExit"):
            return True
        case ast.Attribute(ast.Name("sys"), "exit") | ast.Attribute(ast.Name("os"), "_exit"):
            return True
        case _:
            return False


def _returned(function: ast.FunctionDef) -> list[ast.expr | None]:
    return [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]


def _constant_code(value: ast.expr | None) -> int | None:
    """Return the exit code of a constant: sys.exit("text") exits with 1."""
    if value is None:
        return 0
    if not isinstance(value, ast.Constant):
        return None
    if isinstance(value.value, int):
        return int(value.value) if value.value <= 255 else None
    return 0 if value.value is None else 1
