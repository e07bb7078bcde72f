"""Finds programs and scripts of a command hook that are missing, cannot be started, or can never block."""

import contextlib
import difflib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from turngate._frozen_dataclass import frozen
from turngate.check.command_steps import Scope, find_branch, program_name, read_with_branch
from turngate.check.gates import gate_hint, is_gate, lint_block, lint_gate, without_exit
from turngate.core.constants import OBSERVED_EVENTS, STOP_EVENTS
from turngate.core.hooks.kinds import CommandHook, hook_text
from turngate.core.settings import Problem, Rule, Settings, Severity
from turngate.core.shell.invocation import SHELL_BUILTINS, Invocation, language_of, read_invocation
from turngate.core.shell.parse import (
    CommandList,
    Expansion,
    Part,
    SimpleCommand,
    Word,
    read_commands,
    substituted_commands,
)
from turngate.core.shell.script_exit_codes import block_attempt, exit_codes
from turngate.gates.toolchains import PROGRAMS
from turngate.project.files import LOCAL, Files
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.settings.problem_log import rule_problem

_GUARDS = frozenset(("[", "test", "which", "type", "hash"))  # and `command -v`
_ENDS_THE_READING = frozenset((".", "source", "eval", "alias", "exit", "return", "pushd", "popd"))
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[.*\]\+?|\+)?=")  # of a whole variable, or a part of it
_NOT_A_FILE = re.compile(r"[A-Za-z][\w+.-]*:|/dev/|/proc/|-$|.*\\", re.DOTALL)  # https:…, npm:…, C:\…
_MAY_END_WITH_2 = frozenset(("sh", "dash", "uv"))  # dash does, bash as `sh` does not
# Where a script of hooks usually is, from the project's folder.
_SCRIPT_FOLDERS = (
    *(".turngate", ".turngate/hooks", ".claude/hooks", ".claude", ".mux", ".mux/hooks"),
    *("scripts", "hooks", "tools", "bin"),
)
FAILS = "so the hook fails at every run"
FAILS_OR_BLOCKS = "so the hook fails or blocks at every run"
_BLOCKS = "so the hook blocks at every run"
_EMPTY = "so what the hook reads from it is empty at every run"


def lint_commands(
    rule: Rule,
    text: str,
    scope: Scope,
    settings: Settings,
    *,
    in_script: str | None = None,
    fails: str = FAILS,
) -> Iterator[Problem]:
    """Check the commands in order. `in_script`: they are read from this script, so only programs are checked."""
    commands = read_with_branch(text)
    guarded = any(_is_guard(command) for command in commands.commands)
    is_guarded = False  # from here on
    for number, command in enumerate(commands.commands):
        name = program_name(command)
        if not _is_tolerant(commands, number):
            if not is_guarded:
                yield from _lint_substitutions(rule, command, scope, settings, in_script)
            is_guarded |= _is_guard(command)
        if name in _ENDS_THE_READING:
            return
        if not command.words or name in ("export", "readonly", "declare", "local"):
            scope = _assign(scope, command)
        elif name == "cd":
            expansion = scope.expand(command.words[1]) if len(command.words) == 2 else None
            if not guarded and not _is_tolerant(commands, number):
                # Exit code 1 in Bash, 2 in other shells.
                may_block = _BLOCKS if _blocks(commands, number) else FAILS_OR_BLOCKS
                consequence = may_block if is_gate(rule, settings) else FAILS
                yield from _lint_folder(rule, command, expansion, scope, consequence)
            scope = scope.change_folder(expansion.text if expansion else None)
            if not scope.cwd or not os.path.isdir(scope.cwd):
                scope = scope.change_folder(None)
        elif not guarded and command.operator != "||":
            consequence = FAILS
            if is_gate(rule, settings):
                consequence = _consequence(commands, number, text, fails, settings)
            check = _CommandCheck(
                rule,
                scope,
                settings,
                is_tolerant=_is_tolerant(commands, number),
                decides=_decides(commands, number),
                fails=consequence,
                in_script=in_script,
                gated=without_exit(text) if not in_script and _blocks(commands, number) else None,
            )
            yield from check.run(command)
    branch = None if commands.is_complete else find_branch(text)
    for command in read_commands(branch.check).commands if branch and branch.is_last else ():
        if not is_guarded:
            yield from _lint_substitutions(rule, command, scope, settings, in_script)
        is_guarded |= _is_guard(command)


def _lint_substitutions(
    rule: Rule, command: SimpleCommand, scope: Scope, settings: Settings, in_script: str | None
) -> Iterator[Problem]:
    """Check the programs in `$(…)` and backticks, up to a command after which they may be missing."""
    for text in substituted_commands(command) if command.operator != "||" else ():
        commands = read_commands(text)
        for number, inner in enumerate(commands.commands):
            if program_name(inner) in (*_ENDS_THE_READING, "cd") or _is_guard(inner):
                break
            hides_error = any(operator.startswith("2>") for operator, _ in inner.redirects)
            if inner.operator != "||" and not _is_tolerant(commands, number) and not hides_error:
                check = _CommandCheck(rule, scope, settings, decides=False, fails=_EMPTY, in_script=in_script)
                yield from check.run(inner)


def lint_arguments(
    rule: Rule, hook: CommandHook, scope: Scope, settings: Settings, *, fails: str = FAILS
) -> Iterator[Problem]:
    """Check a hook with `args`: no shell is involved, and only `${…}` of the project and the plugin is replaced."""
    texts = (hook.command, *(hook.args or ()))
    words = tuple(Word((Part(text, "double" if text.startswith("${") else "single"),)) for text in texts)
    if hook.command.startswith("~"):
        message = f"{hook.command} does not exist: with `args` no shell is involved, which would expand ~"
        yield rule_problem(rule, "command", message, "write the whole path, or leave `args` out")
        return
    check = _CommandCheck(rule, scope, settings, has_shell=False, fails=fails)
    yield from check.run(SimpleCommand("", words))


def _is_guard(command: SimpleCommand) -> bool:
    """Whether the command asks if something is there: what follows it may be missing."""
    names = [word.plain for word in command.words[:2]]
    return bool(names) and (names[0] in _GUARDS or names in (["command", "-v"], ["command", "-V"]))


def _is_tolerant(commands: CommandList, number: int) -> bool:
    """Whether a failure of this command is handled: `|| true`, but not `|| exit 2`."""
    for command in commands.commands[number + 1 :]:
        if command.operator == "||":
            words = [word.plain for word in command.words]
            return not (words[:1] == ["exit"] and words[1:] not in ([], ["0"]))
        if command.operator not in ("&&", "|"):
            return False
    return not commands.is_complete and commands.end in ("&&", "||", "|")


def _decides(commands: CommandList, number: int) -> bool:
    """Whether the exit code of this command, if it fails, is that of the hook."""
    later = commands.commands[number + 1 :]
    return commands.is_complete and commands.end != "&" and all(command.operator == "&&" for command in later)


def _blocks(commands: CommandList, number: int) -> bool:
    """Whether the hook blocks if this command cannot be started: `COMMAND || exit 2`, with the shell's message."""
    if any(operator.startswith("2>") for operator, _ in commands.commands[number].redirects):
        return False
    for command in commands.commands[number + 1 :]:
        if command.operator == "||":
            return _is_exit_2(command)
        if command.operator != "&&":
            return False
    return False


def _consequence(commands: CommandList, number: int, text: str, fails: str, settings: Settings) -> str:
    """Return what happens if this command cannot be started; `fails`: what happens if the whole text fails."""
    if _blocks(commands, number):
        return _BLOCKS
    if _decides(commands, number):
        return fails
    later = commands.commands[number + 1 :]
    is_silent = settings.dialect.default_stderr is None and later and _is_exit_2(later[0])
    return FAILS_OR_BLOCKS if block_attempt(text) and not is_silent else FAILS


def _is_exit_2(command: SimpleCommand) -> bool:
    return command.operator == "||" and [word.plain for word in command.words] == ["exit", "2"]


def _assign(scope: Scope, command: SimpleCommand) -> Scope:
    for word in (*command.assignments, *command.words):
        first = word.parts[0]
        match = _ASSIGNMENT.match(first.text) if first.quoting == "bare" else None
        if match:
            rest = first._replace(text=first.text[match.end() :])
            parts = (rest, *word.parts[1:]) if rest.text else word.parts[1:] or (Part("", "single"),)
            expansion = scope.expand(Word(parts)) if match[2] is None else None
            scope = scope.assign(match[1], expansion.text if expansion else None)
    return scope


def _lint_folder(
    rule: Rule, command: SimpleCommand, expansion: Expansion | None, scope: Scope, fails: str
) -> Iterator[Problem]:
    path = scope.resolve(expansion.text) if expansion and not expansion.unset else None
    if expansion and path and not os.path.isdir(path) and not path.endswith("/-"):
        name = scope.display(expansion.text, command.words[1])
        yield rule_problem(rule, "command", f"the folder {name} does not exist, {fails}")


def lint_script_file(rule: Rule, path: str, scope: Scope, settings: Settings) -> Iterator[Problem]:
    """Check a script that is a hook by its name alone."""
    yield from _CommandCheck(rule, scope, settings).lint_script(rule.file or path, path, None)


@frozen
class _CommandCheck:
    """Checks one command: its program, and the script that it is given."""

    rule: Rule
    scope: Scope
    settings: Settings
    is_tolerant: bool = False
    decides: bool = True
    fails: str = FAILS
    has_shell: bool = True
    in_script: str | None = None
    gated: str | None = None  # the CHECK of a hook `CHECK || exit 2`, in which this command is

    def run(self, command: SimpleCommand) -> Iterator[Problem]:
        expansions = [self.scope.expand(word) for word in command.words]
        invocation = read_invocation([e.text if e else None for e in expansions])
        if invocation is None:
            return
        program = expansions[invocation.program]
        has_own_path = any(word.parts[0].text.startswith("PATH=") for word in command.assignments)
        if program is None or not program.text:
            return
        if "/" not in program.text:
            if not has_own_path:
                yield from self._lint_program(program.text)
        elif self.in_script is None:
            yield from self._lint_file(command.words[invocation.program], program, None)
        if self.in_script is None:
            yield from self._lint_interpreted(command, expansions, invocation)

    def _lint_interpreted(
        self, command: SimpleCommand, expansions: Sequence[Expansion | None], invocation: Invocation
    ) -> Iterator[Problem]:
        if invocation.shell_command is not None:
            text = invocation.shell_command
            yield from lint_commands(self.rule, text, self.scope, self.settings, fails=self.fails)
            if self.decides:
                yield from lint_gate(self.rule, text, read_commands(text), self.scope, self.settings)
        elif invocation.script is not None and (script := expansions[invocation.script]) is not None:
            without_script = self._without_script(command, expansions[invocation.program])
            word = command.words[invocation.script]
            yield from self._lint_file(word, script, invocation.language, without_script)

    def _without_script(self, command: SimpleCommand, interpreter: Expansion | None) -> str:
        """Return what happens if the interpreter does not find its script; some end with 2 then: no block at a stop."""
        has_reason = not any(operator.startswith("2>") for operator, _ in command.redirects)
        blocks = self.decides and has_reason and self.rule.event not in STOP_EVENTS
        if not blocks or not is_gate(self.rule, self.settings):
            return self.fails
        name = os.path.basename(interpreter.text if interpreter else "")
        if language_of(name) == "python" or name == "perl":
            return _BLOCKS
        return FAILS_OR_BLOCKS if name in _MAY_END_WITH_2 else self.fails

    def _lint_program(self, name: str) -> Iterator[Problem]:
        is_known = self.scope.variables.get("PATH", "") is not None  # the PATH
        is_builtin = self.has_shell and name in SHELL_BUILTINS
        if self.is_tolerant or is_builtin or not is_known or self.scope.has_program(name):
            return
        where = f"{self.in_script}: " if self.in_script else ""
        if os.path.isdir(self.scope.resolve(name) or ""):
            yield self._problem(f"{where}{name} is a folder, expected a program, {self.fails}")
            return
        hint = _missing_program_hint(name, self.scope)
        if (
            self.gated is not None
            and self.fails == _BLOCKS
            and self.rule.event in STOP_EVENTS
            and hint[-1] != "?"
        ):
            effect = "which never blocks for a missing program"
            hint = f"{hint}; or {gate_hint(self.rule, self.gated, effect)}"
        yield self._problem(f"{where}the program {name} is not in the PATH, {self.fails}", hint)

    def _lint_file(
        self, word: Word, expansion: Expansion, language: str | None, without_script: str | None = None
    ) -> Iterator[Problem]:
        """Check a file that is run itself or, with a language, passed to an interpreter."""
        text = expansion.text
        path = self.scope.resolve(text)
        if path is None or _NOT_A_FILE.match(text):
            return
        name = self.scope.display(text, word)
        if not os.path.exists(path):
            # Node finds `check.js` and `check/index.js` under the name `check`; a shell searches in the PATH too.
            may_have_suffix = language == "node" and not os.path.splitext(text)[1]
            is_in_path = language == "shell" and "/" not in text and self.scope.has_program(text)
            if not may_have_suffix and not is_in_path:
                yield self._report_missing(name, path, expansion, without_script or self.fails)
        elif os.path.isdir(path):
            if language in (None, "shell"):
                yield self._problem(f"{name} is a folder, expected a program, {self.fails}")
        elif language is None and not os.access(path, os.X_OK):
            hint = f"chmod +x {quote_path(self._from_project(name, path))}"
            yield self._problem(f"{name} is not executable, {self.fails}", hint)
        else:
            yield from self._lint_relative(text)
            yield from self.lint_script(self._from_project(name, path), path, language)

    def _from_project(self, name: str, path: str) -> str:
        """Return the path as it is written; after a `cd`, the one from the project's folder."""
        if os.path.isabs(name) or name.startswith("~") or self.scope.cwd == self.scope.project:
            return name
        relative = os.path.relpath(path, self.scope.project)
        return os.path.abspath(path) if relative.startswith("..") else relative

    def lint_script(self, name: str, path: str, language: str | None) -> Iterator[Problem]:
        script = read_script(path, LOCAL)
        if script is None:
            with contextlib.suppress(OSError):
                if os.path.getsize(path) > MAX_SCRIPT_BYTES and b"\0" not in LOCAL.read(path, _HEAD_BYTES):
                    message = f"{name} is larger than {MAX_SCRIPT_BYTES // 1024} KiB, so it is not checked"
                    yield self._problem(message, severity="note")
            return
        rule, scope, settings = self.rule, self.scope, self.settings
        found = [*lint_script(rule, name, script, scope, settings, language=language, decides=self.decides)]
        yield from found
        is_started = all(problem.severity != "error" for problem in found)
        if is_started and (language or script.language) == "shell":
            yield from lint_commands(rule, script.text, scope, settings, in_script=name, fails=self.fails)

    def _lint_relative(self, text: str) -> Iterator[Problem]:
        is_anchored = os.path.isabs(text) or self.scope.has_moved or not self.has_shell
        if is_anchored or self.rule.family != "claude":
            return
        path = text.removeprefix("./")
        message = f"{text} is a relative path: Turngate runs hooks in the project's folder, Claude Code in its current one"
        yield self._problem(message, f'write "$CLAUDE_PROJECT_DIR"/{path}', "note")

    def _report_missing(self, name: str, path: str, expansion: Expansion, fails: str) -> Problem:
        if self.is_tolerant:
            return self._problem(f"{name} does not exist; the `||` after it hides that", None, "note")
        if expansion.unset:
            variable = expansion.unset[0]
            message = f"${variable} is not set, so {name} does not exist and {fails.removeprefix('so ')}"
            return self._problem(message, f'set it: "env": {{"{variable}": "…"}}')
        similar = None
        with contextlib.suppress(OSError, ValueError):
            similar = _closest(os.path.basename(path), sorted(os.listdir(os.path.dirname(path))), 0.7)
        hint = f"did you mean {os.path.join(os.path.dirname(name), similar)}?" if similar else None
        return self._problem(f"{name} does not exist, {fails}", hint)

    def _problem(self, message: str, hint: str | None = None, severity: Severity = "error") -> Problem:
        return rule_problem(self.rule, "command", message, hint, severity)


def _missing_program_hint(name: str, scope: Scope) -> str:
    """Return what to do about a program that is not in the PATH."""
    if os.path.isfile(os.path.join(scope.cwd or scope.project, name)):
        return f"did you mean ./{name}?"
    for folder in _SCRIPT_FOLDERS:
        if os.path.isfile(os.path.join(scope.project, folder, name)):
            return f"did you mean {folder}/{name}?"
    if name in PROGRAMS:
        return f"install {name}"
    similar = _closest(name, PROGRAMS, 0.8)
    hint = f"install {name}, or correct the name"
    return f'{hint}; did you mean "{similar}"?' if similar else hint


def _closest(name: str, names: Sequence[str], similarity: float) -> str | None:
    return next(iter(difflib.get_close_matches(name[:100], names, 1, similarity)), None)


# Scripts


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
