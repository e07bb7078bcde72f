"""A command for the shell of another machine: every POSIX shell reads exactly what was meant."""

import os
import re
import secrets
import shutil
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.timeouts import NEVER_S
from turngate.shells.ssh.remote_command import (
    BOOTSTRAP,
    as_line,
    cleanup_line,
    command_line,
    quote,
    unsettable,
)

SHELLS = [[path] for name in ("dash", "bash", "ksh") if (path := shutil.which(name))]
SHELLS += [words for words in (["zsh", "--emulate", "sh"], ["busybox", "sh"]) if shutil.which(words[0])]
LOGIN_SHELLS = [path for name in ("sh", "bash", "zsh", "fish", "tcsh") if (path := shutil.which(name))]

# Also texts that were not UTF-8, as a path or a variable may be; never NUL, which no argument can hold.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.binary().map(
    lambda data: os.fsdecode(data.replace(b"\0", b""))
)
HOSTILE = [
    "",
    "'",
    "''",
    "\n",
    "\n\n'",
    "\\",
    "\\n",
    "$HOME",
    "`id`",
    "$(id)",
    "!",
    "-n",
    "~",
    "*",
    "a\\\nb",
    "\r\n",
    "\x7f",
]
NO_PID = 2**30  # Linux has fewer
NAMES = st.text(string.ascii_letters + "_", min_size=1, max_size=5).map(lambda name: f"T_{name}")


def sh(shell: list[str], line: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> bytes:
    """Return what a line prints that a shell reads as it does on another machine."""
    command = BOOTSTRAP.removeprefix("exec /bin/sh -c '").removesuffix("'")
    ended = subprocess.run(
        [*shell, "-c", command],
        input=os.fsencode(f"{line}\n") + stdin,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **(env or {})},
        check=False,
    )
    return ended.stdout


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@given(st.lists(TEXTS | st.sampled_from(HOSTILE), max_size=20))
def test_every_text_is_one_word_with_exactly_this_text(shell: list[str], texts: list[str]) -> None:
    line = as_line(" ".join(["printf", quote("%s\\0"), quote(""), *map(quote, texts)]))
    assert sh(shell, line) == b"\0" + b"".join(os.fsencode(text) + b"\0" for text in texts)


@given(TEXTS | st.sampled_from(HOSTILE))
def test_a_word_never_leaves_its_line(text: str) -> None:
    assert "\n" not in as_line(quote(text))


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@given(
    st.dictionaries(NAMES, TEXTS, max_size=5),
    st.dictionaries(NAMES, st.text(string.ascii_letters, max_size=3), max_size=5),
)
def test_a_command_has_exactly_the_environment_that_was_meant(
    shell: list[str], env: dict[str, str], base: dict[str, str]
) -> None:
    complete = {"PATH": os.environ["PATH"], **env}
    line = command_line(["env", "-0"], cwd="/", env=complete, base=base, token="T")
    printed = sh(shell, line, env=base).partition(b"\n")[2].split(b"\0")[:-1]
    seen = dict(entry.split(b"=", 1) for entry in printed)
    ours = {name: value for name, value in seen.items() if name.startswith(b"T_")}
    assert ours == {os.fsencode(name): os.fsencode(value) for name, value in env.items()}


@pytest.mark.parametrize("name", ["UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "IFS", "_", "PWD"])
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_variable_of_the_shell_itself_does_not_end_it(shell: list[str], name: str) -> None:
    line = command_line(
        ["echo", "a b"], cwd="/", env={"PATH": os.environ["PATH"], name: "1"}, base={}, token="T"
    )
    assert re.fullmatch(rb"T \d+\na b\n", sh(shell, line))


def test_a_name_that_no_shell_can_set_is_left_out_and_reported() -> None:
    env = {"a.b": "1", "same-there": "2", "GOOD": "3"}
    base = {"same-there": "2", "c.d": "4"}
    assert unsettable(env, base) == ("a.b",)
    line = command_line(["true"], cwd="/", env=env, base=base, token="T")
    assert [name for name in ("a.b", "same-there", "c.d", "GOOD") if name in line] == ["GOOD"]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_what_follows_the_line_is_the_stdin_of_the_command(shell: list[str]) -> None:
    told = b"one\ntwo\\\n\xff" * 10_000
    line = command_line(["cat"], cwd="/", env={"PATH": os.environ["PATH"]}, base={}, token="T")
    assert sh(shell, line, told).partition(b"\n")[2] == told


@pytest.mark.parametrize(
    ("argv", "cwd", "printed"),
    [
        (["true"], "missing", b"T folder\n"),
        (["no-such-program"], ".", b"T program\n"),
        (["./missing"], ".", b"T program\n"),
        (["./plain"], ".", b"T executable\n"),
        (["./folder"], ".", b"T executable\n"),
    ],
)
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_line_reports_why_a_program_cannot_start(
    shell: list[str], argv: list[str], cwd: str, printed: bytes, tmp_path: Path
) -> None:
    (tmp_path / "plain").touch()
    (tmp_path / "folder").mkdir()
    line = command_line(argv, cwd=str(tmp_path / cwd), env={"PATH": os.environ["PATH"]}, base={}, token="T")
    assert sh(shell, line) == printed


def test_every_login_shell_reads_the_bootstrap_the_same_way() -> None:
    """In single quotes fish reads a backslash, tcsh a newline and an exclamation mark."""
    assert not set("\\\n!") & set(BOOTSTRAP)
    assert BOOTSTRAP.count("'") == 2


@pytest.mark.parametrize("shell", LOGIN_SHELLS)
def test_a_login_shell_starts_a_command(shell: str) -> None:
    line = command_line(["echo", "it's\nme"], cwd="/", env={"PATH": os.environ["PATH"]}, base={}, token="T")
    ended = subprocess.run(
        [shell, "-c", BOOTSTRAP], input=f"{line}\n".encode(), capture_output=True, check=False
    )
    assert (re.sub(rb"\d+", b"PID", ended.stdout), ended.stderr) == (b"T PID\nit's\nme\n", b"T\n")


# The cleanup shell


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(
    ("lines", "marker", "is_ended"),
    [
        pytest.param("+ {pid} {mark}", "another", True, id="at the end of stdin, by its group"),
        pytest.param("+ 0 {mark}", "{mark}", True, id="at the end of stdin, by its marker"),
        pytest.param("! {pid} {mark}", "another", True, id="when asked, by its group"),
        pytest.param("! 0 {mark}", "{mark}", True, id="when asked, by its marker"),
        pytest.param("+ 0 {mark}\n+ {pid} {mark}\n- 0 {mark}", "{mark}", False, id="not if it has ended"),
        pytest.param("+ 0 {mark}", "another", False, id="not a process of another run"),
    ],
)
def test_the_cleanup_shell_ends_a_run(shell: list[str], lines: str, marker: str, is_ended: bool) -> None:
    mark = secrets.token_hex(8)
    env = {"PATH": os.environ["PATH"], "TURNGATE_RUN": marker.format(mark=mark)}
    running = subprocess.Popen(["sleep", str(NEVER_S)], env=env, start_new_session=True)
    try:
        told = lines.format(pid=running.pid, mark=mark)
        printed = sh(shell, cleanup_line("T"), f"{told}\n".encode())
        has_ended = (running.wait(NEVER_S) if is_ended else running.poll()) is not None
        assert (has_ended, f"T {mark}\n".encode() in printed) == (is_ended, told[0] == "!")
    finally:
        running.kill()
        running.wait()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(
    ("member", "asked", "is_left"),
    [
        pytest.param(["sleep", str(NEVER_S)], "{pid} another", True, id="by its group"),
        pytest.param(["sleep", str(NEVER_S)], f"{NO_PID} {{mark}}", True, id="by its marker"),
        pytest.param(["sleep", str(NEVER_S)], f"{NO_PID} another-run", False, id="not of another run"),
        pytest.param(["true"], "{pid} {mark}", False, id="not one that has ended and was not waited for"),
    ],
)
def test_the_cleanup_shell_finds_what_a_command_left_running(
    shell: list[str], member: list[str], asked: str, is_left: bool
) -> None:
    mark = secrets.token_hex(8)
    env = {"PATH": os.environ["PATH"], "TURNGATE_RUN": mark}
    command = subprocess.Popen(["cat"], stdin=subprocess.PIPE, process_group=0)
    process = subprocess.Popen(member, env=env, process_group=command.pid)
    try:
        command.communicate()
        if member == ["true"]:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        asked = f"= 0 M\nhas_processes {asked.format(pid=command.pid, mark=mark)}\n"
        printed = sh(shell, cleanup_line("T"), asked.encode())
        assert printed.endswith(f"T M {0 if is_left else 1} \n".encode())
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_cleanup_shell_prints_its_environment(shell: list[str]) -> None:
    printed = sh(shell, cleanup_line("T"), env={"A": "one\ntwo"})
    assert (printed[:2], printed[-4:], b"\nA=one\ntwo\nT\n" in printed) == (b"T\n", b"T\nT\n", True)


def test_the_cleanup_shell_is_one_line() -> None:
    assert "\n" not in cleanup_line("T")
