"""Reads the command of a shell into the forms in which a permission rule may name what it runs."""

import re
from collections.abc import Iterator, Sequence

MAX_COMMAND_CHARS = 100_000  # a longer command is not parsed
MAX_WORDS = 30  # of a command whose words are left out one after the other

UNKNOWN = "\0"  # in a form: what only the shell knows, such as the value of a variable

_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t\r]+)
    |(?P<continuation>\\\n)
    |(?P<unparsed>`|\$[('"]|[<>]\(|<<)
    |(?P<redirect>&>>?|\d*(?:<>|>>|>\||[<>]&?))
    |(?P<separator>[;|&\n()])
    |(?P<single>'[^']*')
    |(?P<double>"[^"\\]*(?:\\.[^"\\]*)*")
    |(?P<escape>\\.)
    |(?P<bare>\$|[^ \t\r\n'"\\;&|<>()`$]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE_QUOTES = re.compile(r"\\([$`\"\\])|\\\n|(`|\$\()|\$")
_EXPANDED = re.compile(r"[$*?\[{~]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_LEADING = frozenset(["!", "{", "}"])
_KEYWORDS = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "select",
        "function",
        "coproc",
        "[[",
    ]
)
_PREFIXES = frozenset(
    ["time", "nice", "nohup", "stdbuf", "timeout"]
)  # programs that run their last arguments
# Programs that may take the command that they run from an option, a string or a file.
_WRAPPERS = frozenset(
    [
        "env",
        "command",
        "builtin",
        "exec",
        "eval",
        "sudo",
        "doas",
        "su",
        "xargs",
        "parallel",
        "watch",
        "ssh",
        "setsid",
        "flock",
        "chroot",
        "ionice",
        "taskset",
        "chrt",
        "strace",
        "script",
        "unshare",
        "nsenter",
        "runuser",
        "systemd-run",
        "busybox",
        "trap",
        "alias",
    ]
)
_SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "fish"])


def command_forms(text: str) -> list[str] | None:
    """Return each command of a list or pipeline in all its forms; None if it holds what is not parsed here."""
    reader = _Reader(text)
    if len(text) > MAX_COMMAND_CHARS or not reader.read():
        return None
    forms: list[str] = []
    for written, words in reader.commands:
        if any(_is_wrapper(words[n:]) for n in range(len(words) if _name(words) in _PREFIXES else 1)):
            return None
        forms += [written, *_forms(words)]
    return forms


def _name(words: Sequence[str]) -> str:
    return words[0].rpartition("/")[2]


def _is_wrapper(words: Sequence[str]) -> bool:
    """Return whether the command runs another that is not known."""
    name = _name(words)
    if name in _SHELLS:  # with a script it is a command like any other
        return len(words) == 1 or words[1].startswith(("-", UNKNOWN))
    runs_found = name == "find" and any(word.startswith(("-exec", "-ok")) for word in words)
    return name in _WRAPPERS or words[0] in _KEYWORDS or runs_found


def _forms(words: Sequence[str]) -> Iterator[str]:
    """Yield the command without quotes and redirections, and without a path, a prefix, or options before a word."""
    name = _name(words)
    is_prefix = name in _PREFIXES
    for start in range(min(len(words), MAX_WORDS) if is_prefix else 1):
        yield from _forms_without_options(words[start:])
    if is_prefix and len(words) > MAX_WORDS:
        yield UNKNOWN


def _forms_without_options(words: Sequence[str]) -> Iterator[str]:
    name = _name(words)
    yield " ".join(words)
    yield " ".join([name, *words[1:]])
    if len(words) > 1 and words[1].startswith("-"):  # `git -C x commit`
        for start in range(2, min(len(words), MAX_WORDS)):
            yield " ".join([name, *words[start:]])
        if len(words) > MAX_WORDS:
            yield f"{name} {UNKNOWN}"


class _Reader:
    """Splits a text into commands: each as it is written, and its words without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.commands: list[tuple[str, list[str]]] = []
        self._words: list[str] = []
        self._parts: list[str] = []  # of a word
        self._position = self._word_start = self._command_start = 0
        self._is_target = False  # the next word is the file of a redirection

    def read(self) -> bool:
        """Return whether the whole text was understood."""
        while self._position < len(self.text):
            token = _TOKEN.match(self.text, self._position)
            if token is None or not self._add(token.lastgroup or "", token[0]):
                return False
        self._end_command()
        return True

    def _add(self, kind: str, token: str) -> bool:
        if kind == "bare" and token.startswith("#") and not self._parts:
            end = self.text.find("\n", self._position)
            token = self.text[self._position : end if end >= 0 else None]
        elif kind == "separator":
            self._end_command()
        elif kind in ("blank", "redirect"):
            self._end_word()
            self._is_target = self._is_target or kind == "redirect"
        elif kind != "continuation":
            part = self._read_part(kind, token)
            if part is None:
                return False
            self._parts.append(part)
        self._position += len(token)
        return True

    def _read_part(self, kind: str, token: str) -> str | None:
        """Return a part of a word without quotes; None for a command inside of it."""
        if not self._parts:
            self._word_start = self._position
        if kind == "double":
            if any(found[2] for found in _IN_DOUBLE_QUOTES.finditer(token)):
                return None
            return _IN_DOUBLE_QUOTES.sub(_replace_in_double_quotes, token[1:-1])
        if kind in ("single", "escape"):
            return token[1:-1] if kind == "single" else token[1:]
        if kind != "bare":
            return None
        return token if token in ("[", "{") else _EXPANDED.sub(UNKNOWN, token)

    def _end_word(self) -> None:
        if not self._parts:
            return
        written = self.text[self._word_start : self._position]
        leads = not self._words and (written in _LEADING or _ASSIGNMENT.match(written))
        if not self._is_target and not leads:
            self._command_start = self._command_start if self._words else self._word_start
            self._words.append("".join(self._parts))
        self._parts, self._is_target = [], False

    def _end_command(self) -> None:
        self._end_word()
        if self._words:
            written = self.text[self._command_start : self._position].strip()
            self.commands.append((written, self._words))
        self._words, self._is_target = [], False


def _replace_in_double_quotes(found: re.Match[str]) -> str:
    return found[1] or ("" if found[0] == "\\\n" else UNKNOWN)
