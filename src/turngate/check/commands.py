"""Finds programs and scripts of a command hook that are missing or cannot be started."""

import contextlib
import difflib
import os
import re
from collections.abc import Iterator, Sequence

from turngate._frozen_dataclass import frozen
from turngate.check.command_steps import Scope, find_branch, program_name, read_with_branch
from turngate.check.gates import gate_hint, is_gate, lint_gate, without_exit
from turngate.check.scripts import (
    FAILS,
    FAILS_OR_BLOCKS,
    MAX_SCRIPT_BYTES,
    is_large_text,
    lint_script,
    quote_path,
    read_script,
)
from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks.kinds import CommandHook
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
from turngate.core.shell.script_exit_codes import block_attempt
from turngate.gates.toolchains import PROGRAMS
from turngate.project.files import LOCAL
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
            if is_large_text(path):
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
