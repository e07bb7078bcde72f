"""Collects the problems of one settings file, or of options."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from turngate.core.settings import Layer, Problem, Rule, Severity
from turngate.core.text import describe_json, truncate
from turngate.settings.key_table import closest_name

MAX_PROBLEMS = 200  # reported per file
MAX_WORD_CHARS = 300  # of a word in a message about a command
MAX_MESSAGE_CHARS = 2_000
_LIKELY_MILLISECONDS = 1000  # a timeout from here on is probably not meant in seconds
_LONG_TIMEOUT_S = 7200  # up to here, whole tens of minutes are taken for seconds; above it, whole hours
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_LONG_WORD = re.compile(rf"\S{{{MAX_WORD_CHARS},}}")


class ProblemLog:
    """The problems of one file, or of options (then `file` is empty), in the order in which they were found.

    Only the first are kept; the others are counted, with the severity of the worst.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0
        self.event = self.index = ""  # what the next problems are about, and the id of the hook
        self.hook: str | None = None
        self._first: list[Problem] = []
        self._severity_of_others: Severity = "note"

    @property
    def is_full(self) -> bool:
        """Whether further problems are only counted, so that a hint for them is not needed."""
        return self.count >= MAX_PROBLEMS

    @property
    def problems(self) -> tuple[Problem, ...]:
        others = self.count - len(self._first)
        if not others:
            return tuple(self._first)
        message = f"and {others:,} more"
        return (*self._first, Problem(file=self.file, message=message, severity=self._severity_of_others))

    def set_position(self, event: str = "", index: str = "") -> None:
        self.event, self.index = event, index

    def add(
        self, message: str, field: str | None = None, hint: str | None = None, *, severity: Severity = "error"
    ) -> None:
        self.count += 1
        if self.count > MAX_PROBLEMS:
            self._severity_of_others = min(self._severity_of_others, severity, key=_SEVERITIES.index)
            return
        place = {"event": self.event or None, "index": self.index or None, "field": field, "hook": self.hook}
        self._first.append(Problem(file=self.file, message=message, severity=severity, hint=hint, **place))

    def add_unknown_key(self, name: str, names: Iterable[str], field: str, hint: str | None = None) -> None:
        """Note a key of another program; warn where the name is close to a known one."""
        hint = hint or (None if self.is_full else did_you_mean(closest_name(name, names)))
        severity: Severity = "warning" if hint else "note"
        self.add("is not a key that Turngate knows: ignored", field, hint, severity=severity)

    def add_milliseconds(self, seconds: Any, field: str) -> None:
        """Warn of seconds, or seconds in an object, that look like milliseconds."""
        if isinstance(seconds, dict):
            for name, each in seconds.items():
                self.add_milliseconds(each, f"{field}.{name}")
        elif _looks_like_milliseconds(seconds):
            hint = f"write {seconds / 1000:g} for {seconds:g} milliseconds"
            self.add(f"is {seconds:g}, which is read as seconds", field, hint, severity="warning")


def _looks_like_milliseconds(seconds: float) -> bool:
    """1800 and 3600 are minutes and hours in seconds; 5000 and 30000 are thousands, as in milliseconds."""
    if seconds < _LIKELY_MILLISECONDS:
        return False
    if seconds <= _LONG_TIMEOUT_S:
        return seconds % 600 != 0
    return seconds % 3600 != 0 or seconds % 1000 == 0


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


def add_duplicate_keys(layer: Layer, duplicates: Iterable[str]) -> Layer:
    """Return the layer of a file with a problem for each key that occurs twice."""
    log = ProblemLog(layer.file)
    for key in duplicates:
        message = f"the key {describe_json(key)} occurs twice in one object: only the last one is used"
        log.add(message, hint="merge the two values")
    return replace(layer, problems=(*layer.problems, *log.problems))
