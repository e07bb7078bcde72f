"""Finds the program in the words of a command, and the script that an interpreter is given."""

import re
from collections.abc import Sequence
from itertools import dropwhile
from typing import NamedTuple

SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh"])
SHELL_BUILTINS = frozenset(
    ": . [ alias bg break builtin caller cd command compgen continue declare dirs disown echo enable eval exec exit "
    "export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read "
    "readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask "
    "unalias unset wait".split()
)
# Programs that run the rest of their words, and their options that take the next word.
WRAPPERS = {
    "env": frozenset(["-u", "--unset"]),
    "timeout": frozenset(["-k", "-s", "--kill-after", "--signal"]),
    "gtimeout": frozenset(["-k", "-s", "--kill-after", "--signal"]),
    "nice": frozenset(["-n"]),
    "nohup": frozenset[str](),
    "exec": frozenset(["-a"]),
    "command": frozenset[str](),
    "time": frozenset[str](),
    "stdbuf": frozenset(["-i", "-o", "-e"]),
}
_SYSTEM_FOLDER = re.compile(r"^(?:/usr)?/bin/")
_CHANGES_MEANING = frozenset(["-S", "--split-string", "-C", "--chdir", "-v", "-V"])
# Programs that run another one, which they take from a place that is not read.
RUNNERS = frozenset(
    "env sudo doas xargs parallel watch setsid flock ionice taskset chrt strace script busybox".split()
)
Texts = Sequence[str | None]  # the words of a command; None: not known before it runs


class Invocation(NamedTuple):
    program: int  # its position among the words
    script: int | None = None  # the position of the script that the program interprets
    shell_command: str | None = None  # of `sh -c`
    language: str | None = None  # of the script: shell, python, node …


class _Interpreter(NamedTuple):
    language: str
    without_script: str  # a pattern of an option after which there is no script
    with_value: frozenset[str] = frozenset()  # options that take the next word


_SHELL = _Interpreter(
    "shell", r"-[a-rt-z]*s[a-z]*|--version", frozenset({"-o", "+o", "-O", "--rcfile", "--init-file"})
)
_PYTHON = _Interpreter("python", r"-[A-Za-z]*[mc]|-|-V|--version|-h|--help", frozenset({"-W", "-X"}))
_NODE = _Interpreter(
    "node",
    r"-e|--eval|-p|--print|-pe|-|-v|--version|--test|-i",
    frozenset({"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"}),
)
_OTHER = _Interpreter("other", r"-(?:(?![er])\w)*[er].*|-|-v|--version", frozenset({"-I", "-M", "-d"}))
_INTERPRETERS = {
    **dict.fromkeys(SHELLS, _SHELL),
    **dict.fromkeys(("node", "nodejs", "tsx", "ts-node"), _NODE),
    **dict.fromkeys(("ruby", "perl", "php", "Rscript", "lua"), _OTHER),
}
_PYTHON_NAME = re.compile(r"python(?:\d(?:\.\d+)?)?|pypy3?")
# Programs that run a script of Node or TypeScript, and the words that may stand in front of it.
_SCRIPT_RUNNERS = {
    "npx": frozenset(("tsx", "ts-node")),
    "bunx": frozenset(("tsx", "ts-node")),
    "bun": frozenset(("run",)),
    "deno": frozenset(("run",)),
}
_UV_VALUES = frozenset({"--with", "--python", "-p", "--extra", "--group", "--env-file", "--package"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


def read_invocation(texts: Texts) -> Invocation | None:
    """Return which word is the program, and which the script; None if that is not known."""
    program = skip_wrappers(texts)
    if program is None:
        return None
    name = basename(texts[program] or "")
    if name == "uv":
        return _read_uv(texts, program)
    if name in _SCRIPT_RUNNERS:
        return _read_script_runner(texts, program, _SCRIPT_RUNNERS[name])
    interpreter = _interpreter(name)
    return _read_interpreter(texts, program, interpreter) if interpreter else Invocation(program)


def language_of(program: str) -> str | None:
    """Return the language of the scripts that a program reads: shell, python, node or other; None: it reads none."""
    interpreter = _interpreter(basename(program))
    return interpreter.language if interpreter else None


def basename(path: str) -> str:
    return path.rpartition("/")[2]


def _interpreter(name: str) -> _Interpreter | None:
    return _PYTHON if _PYTHON_NAME.fullmatch(name) else _INTERPRETERS.get(name)


def skip_wrappers(texts: Texts) -> int | None:
    """Return the position of the program behind `env`, `timeout` and the like."""
    position = 0
    while position < len(texts):
        word = texts[position]
        if word is None:
            return None
        name = _SYSTEM_FOLDER.sub("", word)
        if name not in WRAPPERS:
            return position
        position += 1
        while position < len(texts) and (texts[position] or "").startswith("-"):
            if texts[position] in _CHANGES_MEANING:
                return None
            position += 2 if texts[position] in WRAPPERS[name] else 1
        position += name in ("timeout", "gtimeout")  # the duration
        while name == "env" and position < len(texts) and _ASSIGNMENT.fullmatch(texts[position] or ""):
            position += 1
    return None


def _read_interpreter(texts: Texts, program: int, interpreter: _Interpreter) -> Invocation:
    position = program + 1
    is_shell = interpreter is _SHELL
    while position < len(texts) and (option := texts[position]) is not None and option[:1] in ("-", "+"):
        if is_shell and re.fullmatch(r"-[abd-z]*c[a-z]*", option):
            rest = dropwhile(lambda text: re.fullmatch(r"--|-[a-z]+", text or ""), texts[position + 1 :])
            return Invocation(program, shell_command=next(rest, None))
        if re.fullmatch(interpreter.without_script, option):
            return Invocation(program)
        position += 2 if option in interpreter.with_value else 1
    if position >= len(texts) or texts[position] is None:
        return Invocation(program)
    return Invocation(program, script=position, language=interpreter.language)


def _read_script_runner(texts: Texts, program: int, before: frozenset[str]) -> Invocation:
    """`npx tsx x.ts`, `bun x.ts`, `deno run -A x.ts`; what has no such extension is not a file."""
    for position in range(program + 1, len(texts)):
        word = texts[position]
        if word is None:
            break
        if re.fullmatch(r".+\.[cm]?[jt]sx?", word):
            return Invocation(program, script=position, language="node")
        if not word.startswith("-") and word not in before:
            break
    return Invocation(program)


def _read_uv(texts: Texts, program: int) -> Invocation:
    """`uv run x.py`, `uv run --script x`, `uv run python x.py`; a program of the project's environment is not known."""
    rest = list(texts[program + 1 :])
    if rest[:1] != ["run"]:
        return Invocation(program)
    position, is_script = program + 2, False
    while position < len(texts) and (option := texts[position]) is not None and option.startswith("-"):
        if option in ("-m", "--module", "--directory", "--project", "-"):
            return Invocation(program)
        is_script |= option in ("--script", "-s")
        position += 2 if option in _UV_VALUES else 1
    word = texts[position] if position < len(texts) else None
    if word is None:
        return Invocation(program)
    if is_script or word.endswith(".py") or "/" in word:
        return Invocation(program, script=position, language="python")
    if not _PYTHON_NAME.fullmatch(word):
        return Invocation(program)
    return _read_interpreter(texts, position, _PYTHON)._replace(program=program)
