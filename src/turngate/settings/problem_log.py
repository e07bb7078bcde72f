"""Collects the problems of one settings file, or of options."""

from collections.abc import Iterable

from turngate.core.settings import Problem, Severity
from turngate.settings.keys import closest_name


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


def did_you_mean(name: str | None) -> str | None:
    return f'did you mean "{name}"?' if name else None
