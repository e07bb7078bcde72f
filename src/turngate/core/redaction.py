"""Redact secrets in what a hook has answered, wherever it is shown, recorded or sent to a model.

The secrets are those that an endpoint was sent, and those in the environment of a command. The answer is parsed first and
redacted afterward, so a secret that is also a word of the contract cannot change what the answer means.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.answers.answer_json import Answer
from turngate.core.answers.report_types import (
    Detached,
    Exited,
    HookFailed,
    JudgeReplied,
    Replied,
    Report,
    Returned,
    Skipped,
    TimedOut,
    printed,
)
from turngate.core.verdict.decisions import Decision

MIN_SECRET_CHARS = 6  # a shorter value occurs in texts by chance
_SCHEMES = ("bearer", "digest", "negotiate")  # words before a secret, not secrets
_HTML_SAFE = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "+<>&'`"})
_DECISION_TEXTS = ("reason", "advice", "error", "notice")
_ANSWER_TEXTS = tuple(
    "reason stop_reason notice advice not_enforced lost permission_reason first_message".split()
)


@frozen
class Redactor:
    forms: tuple[str, ...]  # the secrets in every encoding, longest first
    ignores_case: bool = True

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        flags = re.IGNORECASE if self.ignores_case else re.NOFLAG
        return re.compile("|".join(map(re.escape, self.forms)), flags)

    def is_needed(self, report: Report, decision: Decision) -> bool:
        """Return False if nothing of this run shows a secret, which costs little to find out."""
        if self.ignores_case:
            return True
        texts = [*printed(report), decision.notice or "", *decision.warnings]
        texts += [getattr(decision, name, None) or "" for name in ("reason", "advice", "error")]
        return any(form in text for text in texts if text for form in self.forms)

    def text(self, text: str) -> str:
        return self._pattern.sub("…", text)

    def truncated(self, text: str) -> str:
        """Redact also a part of a secret where the text, or a value that it quotes, is truncated."""
        first, *others = self.text(text).split("…")
        *before, last = [first, *(self._without_part(part, at_end=False) for part in others)]
        return "…".join([*(self._without_part(part, at_end=True) for part in before), last])

    def _without_part(self, text: str, *, at_end: bool) -> str:
        """Return a text next to a truncation mark without the part of a secret that touches the mark."""
        bare = text.strip(" ")
        folded = bare.lower()
        for form in self.forms:
            for size in range(min(len(form), len(bare)), MIN_SECRET_CHARS - 1, -1):
                if at_end and folded.endswith(form[:size].lower()):
                    return text.replace(bare, bare[:-size])
                if not at_end and folded.startswith(form[-size:].lower()):
                    return text.replace(bare, bare[size:])
        return text

    def report(self, report: Report) -> Report:
        match report:
            case Replied(text):
                return Replied(self.text(text))
            case Exited() | TimedOut():
                return replace(report, stdout=self.text(report.stdout), stderr=self.text(report.stderr))
            case HookFailed(error):
                return HookFailed(self.truncated(error))
            case JudgeReplied() | Returned() | Detached() | Skipped():
                return report

    def decision(self, decision: Decision) -> Decision:
        texts = self._texts(decision, _DECISION_TEXTS)
        if "error" in texts:
            texts["error"] = self.truncated(getattr(decision, "error", ""))
        return replace(decision, **texts, warnings=tuple(map(self.truncated, decision.warnings)))

    def answer(self, answer: Answer) -> Answer:
        """Redact the texts; `updated_input` stays, because a tool needs it as it came."""
        texts = self._texts(answer, _ANSWER_TEXTS)
        output, warnings = self._json(answer.updated_output), tuple(map(self.truncated, answer.warnings))
        return replace(answer, **texts, updated_output=output, warnings=warnings)

    def _json(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case list():
                return [self._json(each) for each in value]
            case dict():
                return {name: self._json(each) for name, each in value.items()}
            case _:
                return value

    def _texts(self, value: object, names: Iterable[str]) -> dict[str, Any]:
        values = ((name, getattr(value, name, None)) for name in names)
        return {name: self.text(text) for name, text in values if isinstance(text, str)}


def join_redactors(first: Redactor | None, second: Redactor | None) -> Redactor | None:
    if first is None or second is None:
        return first or second
    forms = sorted({*first.forms, *second.forms}, key=len, reverse=True)
    return Redactor(tuple(forms), first.ignores_case or second.ignores_case)


def make_redactor(secrets: Iterable[str], *, ignores_case: bool = True) -> Redactor | None:
    """Return a redactor of these values, as they are, percent-encoded, and escaped as in JSON."""
    long_enough = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS}
    forms = {form for secret in long_enough if secret.lower() not in _SCHEMES for form in _encodings(secret)}
    return Redactor(tuple(sorted(forms, key=len, reverse=True)), ignores_case) if forms else None


def _encodings(secret: str) -> Iterator[str]:
    from urllib.parse import quote, quote_plus  # noqa: PLC0415 # lazy: only where there are secrets

    escaped = json.dumps(secret)[1:-1]
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret))
    yield from (escaped, escaped.replace("/", "\\/"), escaped.translate(_HTML_SAFE))


MIN_SECRET_VALUE_CHARS = 8  # a shorter value occurs in texts by chance
MIN_LINE_CHARS = 16  # of a value with several lines, such as a private key

_PART = re.compile(
    "TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY", re.IGNORECASE
)
_WORDS = frozenset({"KEY", "KEYS", "PASS", "PWD", "PAT", "AUTH", "JWT", "PSK", "COOKIE", "BEARER"})
_ANY_WORD = re.compile(f"TOKEN|SECRET|CREDENTIAL|{'|'.join(sorted(_WORDS))}", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# The last word of a variable that is about a secret and does not hold it.
_ABOUT = frozenset(
    "BACKEND COUNT DIR ENDPOINT EXPIRY FILE FOLDER HOST LENGTH LIMIT MODE NAME PATH PORT SOCK SOCKET "
    "TTL TYPE URI URL".split()
)
_URL_PASSWORD = re.compile(r"://[^/?#\s:@]*:([^/?#\s@]+)@")


def is_secret_name(name: str) -> bool:
    """Return whether a variable with this name holds a secret: `GITHUB_TOKEN`, `DB_PASS`, not `PWD` or `KEY_FILE`."""
    if not _ANY_WORD.search(name):  # most names, at little cost
        return False
    words = [word.upper() for word in _WORD.findall(name)]
    if words[-1] in _ABOUT or name in ("PWD", "OLDPWD"):
        return False
    return bool(_PART.search(name)) or not _WORDS.isdisjoint(words)


def secret_values(environ: Mapping[str, str]) -> frozenset[str]:
    return frozenset(secret for name, value in environ.items() for secret in _secrets(name, value))


def _secrets(name: str, value: str) -> Iterator[str]:
    if len(value) < MIN_SECRET_VALUE_CHARS:
        return
    if is_secret_name(name):
        yield value.strip()
        lines = value.splitlines() if len(value.splitlines()) > 1 else []
        yield from (line for line in lines if len(line) >= MIN_LINE_CHARS and "---" not in line)
    elif "://" in value:
        yield from (found for found in _URL_PASSWORD.findall(value) if len(found) >= MIN_SECRET_VALUE_CHARS)
