"""Reads the commands of a hook one by one: where each runs, which check it is, where its output goes, whether it ends or blocks."""

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from turngate.core.answers.answer_json import read_answer
from turngate.core.answers.interpret import decide
from turngate.core.events.hook_input import clean_environment
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Rule, Settings
from turngate.core.shell.invocation import Texts, skip_wrappers
from turngate.core.shell.parse import CommandList, Expansion, SimpleCommand, Word, expand, read_commands
from turngate.core.shell.script_exit_codes import BLOCK_JSON
from turngate.core.text import one_line, truncate
from turngate.core.verdict.decisions import Block, Fault
from turngate.gates.toolchains import BY_NAME, PACKAGE_MANAGERS, RUNNERS

MAX_COMMAND_CHARS = 10_000  # a longer command is not checked
PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "MUX_PROJECT_DIR", "TURNGATE_PROJECT_DIR")

# Set for each run by Turngate or by the program that starts it.
_SET_BY_THE_RUN = re.compile(r"\b(?:CLAUDE|MUX|TURNGATE)_\w+|\bCLAUDECODE\b")


class Scope(NamedTuple):
    """Where a command runs. `cwd` is None after a `cd` to a folder that is not known."""

    project: str
    home: str
    variables: Mapping[str, str | None]  # None: set, with a value that only a run of the hook knows
    cwd: str | None
    has_moved: bool = False  # the command itself chose its folder

    def expand(self, word: Word) -> Expansion | None:
        return expand(word, self.variables, self.home)

    def resolve(self, path: str) -> str | None:
        """Return the absolute path, or None if it depends on a folder that is not known."""
        if os.path.isabs(path):
            return path
        return os.path.join(self.cwd, path) if self.cwd else None

    def has_program(self, name: str) -> bool:
        return shutil.which(name, path=self.variables.get("PATH")) is not None

    def assign(self, name: str, value: str | None) -> "Scope":
        return self._replace(variables={**self.variables, name: value})

    def change_folder(self, path: str | None) -> "Scope":
        return self._replace(cwd=None if path is None else self.resolve(path), has_moved=True)

    def display(self, path: str, word: Word) -> str:
        """Return a path for a message: as it is written, with the project's folder and `~` instead of variables."""
        for folder, prefix in ((self.project, ""), (self.home, "~/")):
            if word.has_variable and path.startswith(folder.rstrip("/") + "/"):
                return prefix + os.path.relpath(path, folder)
        return word.plain if word.plain and word.plain.startswith("~/") else path


def command_scope(
    hook: CommandHook, settings: Settings, project: str, pass_env: tuple[str, ...] | None
) -> Scope:
    """Return the scope of a hook's command. A plugin's folder is in the `env` of its hooks."""
    variables: dict[str, str | None] = {name: None for name in _SET_BY_THE_RUN.findall(hook.command)}
    inherited = os.environ if pass_env is None else clean_environment(os.environ, pass_env)
    variables |= {**inherited, "PWD": project, **settings.env, **hook.env}
    variables |= {name: project for name in PROJECT_VARIABLES}
    home = variables.get("HOME") or os.path.expanduser("~")
    return Scope(project, home, variables, project)


# Checks

_PACKAGE_SCRIPT = re.compile(
    r"(?!.*(?:type|tsc))(?:.*[:_-])?(?:test|lint|check|format|build|verify|ci|qa)(?:[:_-].*)?", re.DOTALL
)
_ENDLESS = re.compile(r"watch|dev|serve|start|.*:watch|watch:.*")


def check_tool(texts: Texts) -> str | None:
    """Return the check program that a command runs, if it ends with 1 when it finds something: not tsc or make, which end with 2."""
    words = _program_words(texts)
    if not words:
        return None
    name, *rest = words
    arguments = [word for word in rest if not word.startswith("-")]
    tool = BY_NAME.get(name)
    codes = tool.ends_with_1 if tool else None
    if codes == "" or (codes and arguments and re.fullmatch(codes, arguments[0])):
        return name
    if name in PACKAGE_MANAGERS and _is_package_check(name, arguments):
        return name
    before = RUNNERS[name].split() if name in RUNNERS else None
    return check_tool(rest[len(before) :]) if before is not None and rest[: len(before)] == before else None


def _program_words(texts: Texts) -> list[str]:
    """Return the words from the program on, the program without its folder; nothing if a word is not known."""
    start = skip_wrappers(texts)
    words = list(texts[start:]) if start is not None else []
    while words and (words[0] or "").startswith("-"):  # npx --no-install eslint
        words.pop(0)
    known = [word for word in words if word is not None]
    if not known or len(known) < len(words):
        return []
    return [known[0].rsplit("/", 1)[-1], *known[1:]]


def _is_package_check(name: str, arguments: list[str]) -> bool:
    if arguments[:1] in (["run"], ["run-script"]):
        arguments = arguments[1:]
    elif arguments[:1] not in (["test"], ["t"]) and name == "npm":
        return False
    return bool(arguments) and (arguments[0] == "t" or bool(_PACKAGE_SCRIPT.fullmatch(arguments[0])))


def is_silent_check(texts: Texts) -> bool:
    """Whether the command is a check that prints nothing and ends with 1 when it fails."""
    name, *rest = texts or [None]
    options = [word or "" for word in rest]
    match name:
        case "test" | "[":
            return True
        case "grep" | "egrep" | "fgrep":
            return any(re.fullmatch(r"-[a-pr-zA-Z]*q[a-zA-Z]*|--quiet|--silent", word) for word in options)
        case "git":
            return options[:1] == ["diff"] and "--quiet" in options
        case "cmp":
            return "-s" in options
        case _:
            return False


def never_ends(texts: Texts) -> bool:
    """Whether the command is a server or a watcher."""
    words = _program_words(texts)
    if not words:
        return False
    name, *rest = words
    if name == "tail":
        return any(re.fullmatch(r"-\w*[fF]|--follow(?:=.*)?", word) for word in rest)
    if name == "sleep":
        return rest == ["infinity"]
    if name in PACKAGE_MANAGERS:
        script = rest[1] if rest[:1] == ["run"] and len(rest) > 1 else rest[0] if rest else ""
        return bool(_ENDLESS.fullmatch(script)) or "--watch" in rest
    return check_tool(texts) is not None and any(word in ("--watch", "--watchAll") for word in rest)


# Conditions

MAX_BRANCH_POSITION = 20_000  # a branch beyond it is not looked for

_IF_KEYWORD = re.compile(r"(?:^|[;\n])[^\S\n]*(if|then|fi)\b")
_NEGATION = re.compile(r"\s*!\s")
_GROUP_START = re.compile(r"(\|\||&&)\s*\{\s")
_GROUP_END = re.compile(r"[;\n][^\S\n]*\}")


class Branch(NamedTuple):
    """A check, and what it decides about."""

    before: str  # the commands in front of the check
    check: str
    body: str
    on_failure: bool  # the body runs if the check fails
    is_last: bool  # nothing follows, or `exit 0`


def find_branch(text: str) -> Branch | None:
    """Return the first condition of a text."""
    found = filter(None, (_find_if(text), _find_group(text)))
    return min(found, key=lambda branch: len(branch.before), default=None)


def _find_if(text: str) -> Branch | None:
    """`BEFORE; if CHECK; then BODY; fi`."""
    keywords = list(islice(_IF_KEYWORD.finditer(text, 0, MAX_BRANCH_POSITION), 3))
    if [match[1] for match in keywords] != ["if", "then", "fi"]:
        return None
    start, then, end = keywords
    check, body = text[start.end() : then.start()], text[then.end() : end.start()]
    negation = _NEGATION.match(check)
    check = check[negation.end() :] if negation else check
    return Branch(text[: start.start()], check, body, negation is not None, _ends(text[end.end() :]))


def _find_group(text: str) -> Branch | None:
    """`BEFORE; CHECK || { BODY; }`, also with `&&`."""
    start = _GROUP_START.search(text, 0, MAX_BRANCH_POSITION)
    end = _GROUP_END.search(text, start.end(), MAX_BRANCH_POSITION) if start else None
    if start is None or end is None:
        return None
    before = text[: start.start()]
    check = max(before.rfind(";"), before.rfind("\n")) + 1
    body = text[start.end() : end.start() + 1]
    return Branch(before[:check], before[check:], body, start[1] == "||", _ends(text[end.end() :]))


def _ends(rest: str) -> bool:
    return rest.replace(";", " ").split() in ([], ["exit", "0"])


def read_with_branch(text: str) -> CommandList:
    """Return the commands up to the first that is not simple; if that is a branch, its check and its exit."""
    commands = read_commands(text)
    branch = None if commands.is_complete else find_branch(text)
    if branch is None or not branch.on_failure:
        return commands
    before, check, body = map(read_commands, branch[:3])
    checks = (*before.commands, *check.commands)
    is_read = before.is_complete and check.is_complete and body.is_complete
    if not is_read or not checks or not body.commands or program_name(body.commands[-1]) != "exit":
        return commands
    # The body gives the reason, so it does not matter where the output of the check goes.
    added = (*checks[:-1], checks[-1]._replace(redirects=()), body.commands[-1]._replace(operator="||"))
    return CommandList(added, "", is_complete=False)


def program_name(command: SimpleCommand) -> str | None:
    return command.words[0].plain if command.words else None


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "033": "\033"}
_CONVERSION = re.compile(r"\\(n|t|r|\\|\"|033)|%([%s])|([\\%])")


def printed_text(texts: Sequence[str | None]) -> str | None:
    """Return the output of an `echo` or a `printf`, or None if it depends on the shell or on a run."""
    words = [text for text in texts if text is not None]
    if len(words) < len(texts):
        return None
    name, *arguments = words
    if name == "printf":
        return _format(arguments[0], arguments[1:]) if arguments else None
    if arguments[:1] == ["-n"]:
        arguments = arguments[1:]
    text = " ".join(arguments)
    return None if "\\" in text or text.startswith("-") else text


def _format(pattern: str, values: list[str]) -> str | None:
    pieces: list[str] = []
    end = 0
    for found in _CONVERSION.finditer(pattern):
        escape, conversion, unknown = found.groups()
        if unknown or (conversion == "s" and not values):
            return None
        pieces += [pattern[end : found.start()], _ESCAPES[escape] if escape else "%"]
        if conversion == "s":
            pieces[-1] = values.pop(0)
        end = found.end()
    return None if values else "".join([*pieces, pattern[end:]])


class Step(NamedTuple):
    """One command with its words expanded; a word that is not known is None."""

    operator: str
    texts: Sequence[str | None]
    command: SimpleCommand

    @property
    def name(self) -> str | None:
        return self.texts[0] if self.texts else ""

    @property
    def tool(self) -> str | None:
        return check_tool(self.texts)

    @property
    def is_silent(self) -> bool:
        return is_silent_check(self.texts)

    @property
    def exit_code(self) -> str | None:
        return (self.texts[1] if len(self.texts) > 1 else "") if self.name == "exit" else None

    @property
    def outputs(self) -> tuple[str, str]:
        """Where stdout and stderr go: "stdout", "stderr" or "file"."""
        out, err = "stdout", "stderr"
        for operator, word in self.command.redirects:
            target = word.plain
            if operator in (">&", "1>&") and target == "2":
                out = err
            elif operator == "2>&" and target == "1":
                err = out
            elif operator in (">", ">>", "1>", "1>>"):
                out = "file"
            elif operator in ("2>", "2>>"):
                err = "file"
        return out, err

    @property
    def gives_reason(self) -> bool:
        """Whether something of a failing check reaches stderr."""
        if self.is_silent:
            return False
        out, err = self.outputs
        tool = BY_NAME.get(self.tool or "")
        return out == "stderr" or (err == "stderr" and not (tool and tool.prints_to_stdout))

    @property
    def prints(self) -> bool:
        return self.name in ("echo", "printf")

    @property
    def prints_block(self) -> bool:
        return self.prints and any(BLOCK_JSON.search(text or "") for text in self.texts)

    def blocks(self, rule: Rule, settings: Settings) -> bool | None:
        """Whether what the command prints is a block that has an effect; None: it is not a block, or not known before a run."""
        if self.outputs[0] != "stdout":
            return False
        is_known = not any(word.has_variable for word in self.command.words)
        text = printed_text(self.texts) if is_known else None
        if text is None:
            return None
        decision = decide(read_answer(text, rule.event, settings.dialect), rule.event, settings.dialect)
        return True if isinstance(decision, Block) else False if isinstance(decision, Fault) else None


def read_steps(commands: CommandList, scope: Scope) -> list[Step]:
    return [
        Step(command.operator, [_text(word, scope) for word in command.words], command)
        for command in commands.commands
    ]


def _text(word: Word, scope: Scope) -> str | None:
    if word.plain in ("[", "]"):  # the program, not the beginning of a glob
        return word.plain
    expansion = scope.expand(word)
    return expansion.text if expansion else None


def show_quoted(step: Step) -> str:
    """Show a command as it was written, as far as that is known."""
    words = (shlex.quote(text) if text is not None else "…" for text in step.texts)
    return truncate(one_line(" ".join(words)), 60)


def show_words(texts: Sequence[str | None]) -> str:
    return truncate(one_line(" ".join(text or "…" for text in texts)), 60)
