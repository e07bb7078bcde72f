"""Redact the secrets that a hook's endpoint was sent, wherever its answer is shown or recorded.

The answer is parsed first and redacted afterwards, so a secret that is also a word of the contract cannot change
what the answer means.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, quote_plus

from turngate.core.decisions import Decision
from turngate.core.frozen import frozen
from turngate.core.hook_output import Answer
from turngate.core.reports import Replied, Report

MIN_SECRET_CHARS = 6  # a shorter value occurs in texts by chance
_SCHEMES = ("bearer", "digest", "negotiate")  # words before a secret, not secrets
_HTML_SAFE = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "+<>&'`"})
_DECISION_TEXTS = ("reason", "advice", "error", "notice")
_ANSWER_TEXTS = ("reason", "stop_reason", "notice", "advice", "permission_reason")


@frozen
class Redactor:
    forms: tuple[str, ...]  # the secrets in every encoding, longest first
    pattern: re.Pattern[str]

    def text(self, text: str) -> str:
        return self.pattern.sub("…", text)

    def warning(self, text: str) -> str:
        """Redact also the start of a secret where the warning quotes a truncated value."""
        *quoted, rest = self.text(text).split("…")
        return "…".join([*map(self._without_start_of_secret, quoted), rest])

    def _without_start_of_secret(self, text: str) -> str:
        """Return the text before a truncation mark without the start of a secret at its end."""
        for form in self.forms:
            for size in range(min(len(form), len(text)), MIN_SECRET_CHARS - 1, -1):
                if text.lower().endswith(form[:size].lower()):
                    return text[:-size]
        return text

    def report(self, report: Report) -> Report:
        return Replied(self.text(report.text)) if isinstance(report, Replied) else report

    def decision(self, decision: Decision) -> Decision:
        texts = self._texts(decision, _DECISION_TEXTS)
        return replace(decision, **texts, warnings=tuple(map(self.warning, decision.warnings)))

    def answer(self, answer: Answer) -> Answer:
        """Redact the texts; `updated_input` stays, because a tool needs it as it came."""
        texts = self._texts(answer, _ANSWER_TEXTS)
        return replace(answer, **texts, warnings=tuple(map(self.warning, answer.warnings)))

    def _texts(self, value: object, names: Iterable[str]) -> dict[str, Any]:
        values = ((name, getattr(value, name, None)) for name in names)
        return {name: self.text(text) for name, text in values if isinstance(text, str)}


def make_redactor(secrets: Iterable[str]) -> Redactor | None:
    """Return a redactor of these values, as they are, percent-encoded, and escaped as in JSON."""
    long_enough = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS}
    forms = {form for secret in long_enough if secret.lower() not in _SCHEMES for form in _encodings(secret)}
    if not forms:
        return None
    longest_first = tuple(sorted(forms, key=len, reverse=True))
    return Redactor(longest_first, re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE))


def _encodings(secret: str) -> Iterator[str]:
    escaped = json.dumps(secret)[1:-1]
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret))
    yield from (escaped, escaped.replace("/", "\\/"), escaped.translate(_HTML_SAFE))
