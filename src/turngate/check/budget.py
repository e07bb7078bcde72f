"""Bounds the work of `turngate check`, whatever the commands and scripts of the hooks are."""

MAX_WORK = 500_000  # of one check
MAX_COMMAND_CHARS = 10_000  # a longer command is not checked


class BudgetSpentError(Exception):
    """Raised when the hooks that follow are not checked."""


class LintBudget:
    """The work that is left, in characters that are read; the search for a file or a program counts as some."""

    def __init__(self, work: int = MAX_WORK) -> None:
        self.left = work

    def spend(self, work: int) -> None:
        """Call it before the work. Raises BudgetSpentError."""
        self.left -= work
        if self.left < 0:
            raise BudgetSpentError
