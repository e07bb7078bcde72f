"""The commands of a hook one by one, as far as their words, their output and their exit codes are known.

Reads what `echo` and `printf` of a hook print, and whether that blocks.
"""

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from turngate.check.command_scope import Scope
from turngate.check.tools import check_tool, is_silent_check, writes_to_stdout
from turngate.core.answers.contract import read_answer
from turngate.core.answers.interpret import decide
from turngate.core.dialect import Dialect
from turngate.core.settings import Rule, Settings
from turngate.core.shell.parse import CommandList, SimpleCommand, Word
from turngate.core.text import one_line, truncate
from turngate.core.verdict.decisions import Block, Fault
from turngate.settings.script_file import BLOCK_JSON

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


def blocks(text: str, event: str, dialect: Dialect) -> bool | None:
    """Return whether this output blocks; False: it is meant as a block and has no effect; None: it is not one."""
    decision = decide(read_answer(text, event, dialect), event, dialect)
    if isinstance(decision, Block):
        return True
    return False if isinstance(decision, Fault) else None


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
        return out == "stderr" or (err == "stderr" and not writes_to_stdout(self.tool or ""))

    @property
    def prints(self) -> bool:
        return self.name in ("echo", "printf")

    @property
    def prints_block(self) -> bool:
        return self.prints and any(BLOCK_JSON.search(text or "") for text in self.texts)

    def blocks(self, rule: Rule, settings: Settings) -> bool | None:
        """Whether the block that the command prints has an effect; None: that is not known before a run."""
        if self.outputs[0] != "stdout":
            return False
        is_known = not any(word.has_variable for word in self.command.words)
        text = printed_text(self.texts) if is_known else None
        return None if text is None else blocks(text, rule.event, settings.dialect)


def read_steps(commands: CommandList, scope: Scope) -> list[Step]:
    return [_read_step(command, scope) for command in commands.commands]


def _read_step(command: SimpleCommand, scope: Scope) -> Step:
    return Step(command.operator, [_text(word, scope) for word in command.words], command)


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
