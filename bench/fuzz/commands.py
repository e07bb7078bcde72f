"""The command line: arguments, journals, transcripts and settings of any content, in this process and in others."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any, NamedTuple

from bench.fuzz.files import make_settings, make_transcript, scratch_folder, write
from bench.fuzz.target import Target
from bench.fuzz.values import damaged, dumps, json_value, text, unprintable
from turngate.cli.main import main
from turngate.core.constants import EVENTS

EXIT_CODES = frozenset(
    [0, 1, 10, 11, 12, 13, 20, 64]
)  # without those of a signal, lost output and internal errors
MAX_CPU_S = 10.0  # the first run of a command loads its libraries
PROCESS_TIMEOUT_S = 300.0
SESSION = "11111111-2222-3333-4444-555555555555"

WORDS = [
    *(
        "fire",
        "check",
        "schema",
        "sessions",
        "log",
        "runs",
        "run",
        "show",
        "list",
        "prune",
        "steer",
        "kill",
        "recover",
        "tail",
    ),
    *(
        "--project",
        ".",
        "--json",
        "--strict",
        "--dialect",
        "claude",
        "mux",
        "--settings",
        "{}",
        "--input",
        "-",
        "--session",
    ),
    *(
        "--days",
        "0",
        "-1",
        "nan",
        "1e999",
        "9" * 5000,
        "--plugin-dir",
        "--limit",
        "--max-turns",
        "--resume",
        "-p",
        "--help",
    ),
    *(
        "--version",
        "--permission-mode",
        "plan",
        "--allow",
        "Bash",
        "--no-hooks",
        "--output-format",
        "json",
        "stream-json",
    ),
    *(
        "--add-dir",
        "--trust",
        "--all",
        "--",
        "-h",
        "--model",
        "scripted:script.json",
        "scripted:nowhere",
        "a:b",
        SESSION,
        "1",
    ),
    *(
        '{"last_assistant_message": "x"}',
        '{"disableAllHooks": true}',
        '{"hooks": {"Stop": 1}}',
        "/dev/null",
        "no/such",
    ),
]


class Ended(NamedTuple):
    code: object
    out: str
    err: str


@cache
def project() -> str:
    """Return a project with hooks that block, fail and print escape sequences."""
    answer = json.dumps(
        {"decision": "block", "reason": "\x1b[31mred\u202e", "systemMessage": "\x9b31mx\rStop: allowed"}
    )
    hooks = [
        {"type": "command", "id": "\x1b[2Jgate", "command": f"printf %s '{answer}'"},
        {"type": "command", "command": "exit 1"},
    ]
    groups = {event: [{"hooks": hooks}] for event in EVENTS}
    write("cli/.turngate/settings.json", json.dumps({"hooks": groups}).encode())
    write("cli/script.json", b'{"main": ["done", "done", "done", "done", "done"]}')
    return os.path.join(scratch_folder(), "cli")


def environment() -> dict[str, str]:
    """Return an environment without keys of providers, whose files are all in the scratch folder."""
    folder = scratch_folder()
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": os.path.join(folder, "home"), "TURNGATE_STATE": os.path.join(folder, "state")}


def forget_sessions() -> None:
    """Remove what earlier inputs left, so that an input can be repeated alone."""
    shutil.rmtree(environment()["TURNGATE_STATE"], ignore_errors=True)


def run_here(argv: list[str], stdin: bytes = b"") -> Ended:
    """Run a command in this process, with files as its streams."""
    code: object
    with _streams(stdin) as (out, err), _surroundings(project()):
        try:
            code = main(argv)
        except SystemExit as ended:  # --help and --version
            code = ended.code
        for stream in (out, err):
            stream.flush()
            stream.seek(0)
        return Ended(code, out.read(), err.read())


def run_process(argv: list[str], stdin: bytes = b"") -> Ended:
    """Run a command in a new process of Python, which has loaded none of the modules of this one."""
    words = [word.encode("utf-8", "replace").decode() for word in argv]  # what a program can be given
    done = subprocess.run(
        [sys.executable, "-m", "turngate", *words],
        input=stdin,
        cwd=project(),
        env=environment(),
        capture_output=True,
        timeout=PROCESS_TIMEOUT_S,
        check=False,
    )
    out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    return Ended(done.returncode, out, err)


@contextlib.contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[Any, Any]]:
    saved = sys.stdin, sys.stdout, sys.stderr
    paths = [write(name, data) for name, data in (("stdin", stdin), ("stdout", b""), ("stderr", b""))]
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(open(path, mode, encoding="utf-8", newline=""))
            for path, mode in zip(paths, ("r", "w+", "w+"), strict=True)
        ]
        sys.stdin, sys.stdout, sys.stderr = files
        try:
            yield files[1], files[2]
        finally:
            sys.stdin, sys.stdout, sys.stderr = saved


@contextlib.contextmanager
def _surroundings(folder: str) -> Iterator[None]:
    saved, before = dict(os.environ), os.getcwd()
    os.environ.clear()
    os.environ.update(environment())
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(saved)


def assert_documented(ended: Ended, *, printable: bool) -> None:
    assert ended.code in EXIT_CODES, f"exit code {ended.code}: {ended.err[:300]}"
    assert "Traceback" not in ended.err, ended.err[-300:]
    assert ended.code != 64 or ended.err.strip(), "wrong usage without a sentence"
    shown = ended.out + ended.err if printable else ended.err
    assert not unprintable(shown), f"characters that a terminal obeys: {unprintable(shown)}"


# Arguments


class Arguments(NamedTuple):
    argv: list[str]
    stdin: bytes


def make_arguments(random: Random) -> Arguments:
    command = random.choice([*WORDS[:7], *WORDS[:7], text(random).replace("\0", "")])
    words = [
        random.choice([*WORDS, *EVENTS, text(random).replace("\0", "")]) for _ in range(random.randint(0, 5))
    ]
    argv = [command, *words] if command else words
    if command == "fire" and random.random() < 0.5:
        argv = [command, random.choice([*EVENTS]), *words]
    if command == "run" and random.random() < 0.5:
        argv = [command, "-p", "go", "--model", "scripted:script.json", *words]
    return Arguments(argv, damaged(random, dumps(random, json_value(random)), 0.2))


def check_arguments(value: Arguments) -> None:
    forget_sessions()
    ended = run_here(value.argv, value.stdin)
    assert_documented(
        ended, printable="run" not in value.argv[:1] and not {"--json", "show"} & set(value.argv)
    )


def check_process(value: Arguments) -> None:
    forget_sessions()
    assert_documented(run_process(value.argv, value.stdin), printable=False)


# Journals and stored sessions

JOURNAL_NAMES = [
    *(
        "time",
        "kind",
        "event",
        "hook",
        "outcome",
        "seconds",
        "verdict",
        "ended_by",
        "text",
        "project",
        "reason",
    ),
    *(
        "blocked_by",
        "unenforced",
        "evaluation",
        "prompt",
        "permission",
        "cost_usd",
        "input_tokens",
        "type",
        "id",
    ),
]
JOURNAL_WORDS = [
    "hook",
    "verdict",
    "turn_end",
    "notice",
    "Stop",
    "block",
    "failed",
    "continue",
    "\x1b[31mred",
    "x\u202ey",
]


def make_journal(random: Random) -> bytes:
    lines = [_entry(random) for _ in range(random.randint(0, 8))]
    return damaged(random, b"\n".join(lines) + b"\n", 0.2)


def _entry(random: Random) -> bytes:
    entry = {
        "time": random.choice([1e9, 0, -1e20, 1e300, "x", None, True]),
        "session_id": SESSION,
        "kind": random.choice(JOURNAL_WORDS[:4]),
    }
    for _ in range(random.randint(0, 6)):
        entry[random.choice(JOURNAL_NAMES)] = json_value(random, JOURNAL_NAMES, JOURNAL_WORDS, 1)
    return damaged(random, json.dumps(entry).encode(), 0.1)


def check_journal(data: bytes) -> None:
    """One bad line makes `log` neither fail nor hide the others."""
    forget_sessions()
    good = {"time": 1e9, "session_id": SESSION, "kind": "notice", "text": "the last line"}
    write(f"state/sessions/{SESSION}/journal.jsonl", data + b"\n" + json.dumps(good).encode() + b"\n")
    for argv in (["log", "--session", SESSION], ["log", "--session", SESSION, "--json"]):
        ended = run_here(argv)
        assert_documented(ended, printable="--json" not in argv)
        assert ended.code == 0, ended.err
        assert "the last line" in ended.out, "the last line is hidden"


def check_sessions(data: bytes) -> None:
    """`sessions` lists and shows whatever a transcript holds."""
    forget_sessions()
    write(f"state/sessions/{SESSION}/transcript.jsonl", data)
    for argv in (["sessions"], ["sessions", "show", SESSION], ["sessions", "--json"]):
        assert_documented(run_here(argv), printable="--json" not in argv)


# A hostile project


def make_project(random: Random) -> bytes:
    return make_settings(random).data


def check_project(data: bytes) -> None:
    """`check` says what is wrong in printable text, and never runs a hook."""
    write("foreign/.turngate/settings.json", data)
    folder = os.path.join(scratch_folder(), "foreign")
    ended = run_here(["check", "--project", folder])
    assert_documented(ended, printable=True)
    as_json = run_here(["check", "--project", folder, "--json"])
    assert_documented(as_json, printable=False)
    json.loads(as_json.out)
    assert ended.code == as_json.code


TARGETS = (
    Target("arguments", make_arguments, check_arguments, MAX_CPU_S),
    Target("processes", make_arguments, check_process, MAX_CPU_S),
    Target("journals", make_journal, check_journal, MAX_CPU_S),
    Target("sessions", make_transcript, check_sessions, MAX_CPU_S),
    Target("projects", make_project, check_project, MAX_CPU_S),
)
