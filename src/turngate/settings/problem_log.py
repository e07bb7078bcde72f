"""Collects the problems of one settings file, or of options."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from turngate.core.settings import Layer, Problem, Rule, Severity
from turngate.core.text import truncate
from turngate.settings.keys import closest_name

MAX_PROBLEMS = 200  # reported per file
MAX_WORD_CHARS = 300  # of a word in a message about a command
MAX_MESSAGE_CHARS = 2_000
_LONG_WORD = re.compile(rf"\S{{{MAX_WORD_CHARS},}}")


class ProblemLog:
    """The problems of one file, or of options (then `file` is empty), in the order in which they were found."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def add(
        self,
        message: str,
        event: str | None = None,
        index: str | None = None,
        field: str | None = None,
        hint: str | None = None,
        *,
        severity: Severity = "error",
    ) -> None:
        self.problems.append(
            Problem(
                file=self.file,
                message=message,
                severity=severity,
                event=event,
                index=index,
                field=field,
                hint=hint,
            )
        )

    def add_unknown_key(
        self,
        name: str,
        names: Iterable[str],
        *,
        event: str | None = None,
        index: str | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Note a key of another program; warn where the name is close to a known one."""
        hint = hint or did_you_mean(closest_name(name, names))
        message = "is not a key that Turngate knows: ignored"
        severity: Severity = "warning" if hint else "note"
        self.add(message, event, index, field, hint, severity=severity)


def rule_problem(
    rule: Rule, field: str | None, message: str, hint: str | None = None, severity: Severity = "error"
) -> Problem:
    """Return a problem of a hook that was loaded."""
    return Problem(
        file=rule.file or "Python",
        event=rule.event,
        index=rule.index,
        field=field,
        message=_shorten(message),
        hint=_shorten(hint) if hint else hint,
        severity=severity,
        hook=rule.hook.id,
    )


def _shorten(text: str) -> str:
    """Truncate the words of a command or a script that are too long to show."""
    words = _LONG_WORD.sub(lambda word: truncate(word[0], MAX_WORD_CHARS), text)
    return truncate(words, MAX_MESSAGE_CHARS)


def did_you_mean(name: str | None) -> str | None:
    return f'did you mean "{name}"?' if name else None


def add_file_problems(layer: Layer, duplicates: Iterable[str]) -> Layer:
    """Return the layer of a file with a problem for each key that occurs twice, and with a bounded number of them."""
    twice = "occurs twice in one object: only the last one is used"
    added = [
        Problem(file=layer.file, message=f"the key {json.dumps(key)} {twice}", hint="merge the two values")
        for key in duplicates
    ]
    return replace(layer, problems=_limit_problems((*layer.problems, *added)))


def _limit_problems(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the first problems, and one that counts the others with the severity of the worst."""
    rest = problems[MAX_PROBLEMS:]
    if not rest:
        return tuple(problems)
    worst = min((problem.severity for problem in rest), key=("error", "warning", "note").index)
    more = Problem(file=rest[0].file, message=f"and {len(rest):,} more", severity=worst)
    return (*problems[:MAX_PROBLEMS], more)
