"""Reads the script of a hook, and finds what is wrong with it: why it cannot be started, and that it can never block."""

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from turngate.check.command_steps import Scope
from turngate.check.gates import is_gate, lint_block, lint_gate
from turngate.core.constants import OBSERVED_EVENTS
from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.shell.invocation import language_of
from turngate.core.shell.parse import read_commands
from turngate.core.shell.script_exit_codes import exit_codes
from turngate.project.files import Files
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.settings.problem_log import rule_problem

MAX_SCRIPT_BYTES = 128 * 1024  # a larger script is not read
_HEAD_BYTES = 4096  # in which a binary has a null character

_RUNNERS = {"uv": "python", "bun": "node", "deno": "node"}
_EXTENSIONS = {
    **dict.fromkeys((".sh", ".bash"), "shell"),
    ".py": "python",
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts"), "node"),
    **dict.fromkeys((".rb", ".pl", ".php"), "other"),
}


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
        program = env_program(rest) or "" if os.path.basename(program) == "env" else program
        name = os.path.basename(program).strip()
        return language_of(name) or _RUNNERS.get(name)


def read_script(path: str, files: Files) -> Script | None:
    """Return a script, or None for a binary, a large or an unreadable file."""
    try:
        data = read_bytes(path, MAX_SCRIPT_BYTES, files)
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


_INTERPRETER_HINTS = {"python": "#!/usr/bin/env python3", "node": "#!/usr/bin/env node"}


def lint_script(
    rule: Rule,
    name: str,
    script: Script,
    scope: Scope,
    settings: Settings,
    *,
    language: str | None,
    decides: bool,
) -> Iterator[Problem]:
    """Check a script. With a language it is passed to an interpreter, else it is run itself.

    `decides`: its exit code is that of the hook.
    """
    defect = start_defect(script, name, scope.has_program) if language is None else None
    language = language or script.language or ("shell" if script.shebang is None else None)
    if defect is None and language == "shell":
        defect = line_ending_defect(script, name)
    if defect is not None:
        message, hint = defect
        yield rule_problem(rule, "command", f"{name} {message}", hint)
    elif decides:
        yield from _lint_decisions(rule, name, script, language, scope, settings)


def _lint_decisions(
    rule: Rule, name: str, script: Script, language: str | None, scope: Scope, settings: Settings
) -> Iterator[Problem]:
    """Find a script that can never block, always blocks, or blocks where no hook can."""
    if not _serves_several_events(script, settings):
        yield from lint_block(rule, script.text, settings, name, language)
    if language == "shell":
        commands = read_commands(script.text)
        if found := list(lint_gate(rule, script.text, commands, scope, settings, script=name)):
            yield from found
            return
    codes = exit_codes(script.text, language) if is_gate(rule, settings) else None
    if codes is None or 2 in codes or not codes - {0}:
        return
    ends = f"{name} ends with exit code {min(codes - {0})} and never with 2"
    message = f"{ends}, and only exit code 2 blocks: it can never block"
    hint = "to block, write the reason to stderr and exit with 2"
    yield rule_problem(rule, "command", message, hint, "warning")


_READS_EVENT = re.compile(r"hook_event_name|\$[1@*]|\$\{[1@*]|\bargv\b|\bargparse\b|\bgetopts\b")


def _serves_several_events(script: Script, settings: Settings) -> bool:
    """Return whether the script also runs at events where it can block, as far as that can be seen."""
    name = os.path.basename(script.path)
    return bool(_READS_EVENT.search(script.text)) or any(
        rule.event not in OBSERVED_EVENTS and name in hook_text(rule.hook) for rule in settings.rules
    )


_Defect = tuple[
    str, str | None
]  # a message, which continues a sentence that begins with the script's name, and a hint


FAILS = "so the hook fails at every run"
FAILS_OR_BLOCKS = "so the hook fails or blocks at every run"


def line_ending_defect(script: Script, name: str, fails: str = FAILS_OR_BLOCKS) -> _Defect | None:
    """A shell takes the carriage return for a part of the command, and the kernel for a part of the interpreter."""
    if "\r\n" not in script.text:
        return None
    hint = f"sed -i 's/\\r$//' {quote_path(name)}"
    return f"has Windows line endings (CRLF), {fails}", hint


def start_defect(script: Script, name: str, has_program: Callable[[str], bool]) -> _Defect | None:
    """Return why the script cannot be started as a program."""
    if script.shebang is None:
        line = _INTERPRETER_HINTS.get(script.language or "")
        message = "has no #! line, so it is read as a shell script, and the hook fails at every run"
        return (message, f"add {line} as its first line") if line else None
    if script.shebang.endswith("\r"):
        return line_ending_defect(script, name, FAILS)
    program, rest = script.interpreter
    if os.path.basename(program) == "env":
        return _env_defect(rest, has_program)
    if program and not os.path.isabs(program):
        hint = f"write #!/usr/bin/env {program}" if "/" not in program else None
        return f"begins with #!{program}, which is not an absolute path, {FAILS}", hint
    if program and not os.path.exists(program):
        name = os.path.basename(program)
        hint = f"write #!/usr/bin/env {name}" if has_program(name) else None
        return f"begins with #!{program}, which does not exist, {FAILS}", hint
    return None


def _env_defect(arguments: str, has_program: Callable[[str], bool]) -> _Defect | None:
    program = env_program(arguments)
    if program is None:
        return f"begins with a #! line that names no program, {FAILS}", None
    if " " in program:
        first = program.split()[0]
        message = f"begins with #!/usr/bin/env {program}, where {program!r} is taken for one program, {FAILS}"
        return message, f"write #!/usr/bin/env -S {program}, or #!/usr/bin/env {first}"
    if not has_program(program):
        missing = f"the program {program} is not in the PATH, {FAILS}"
        return f"begins with #!/usr/bin/env {program}, and {missing}", None
    return None


def quote_path(name: str) -> str:
    """Quote a path for a shell; the shell still expands a leading `~/`."""
    return f"~/{shlex.quote(name[2:])}" if name.startswith("~/") else shlex.quote(name)
