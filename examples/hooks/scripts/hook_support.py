"""What the hooks of this folder share: input, answers, state, plans. Copy all of them; they need only Python.

An error of a hook itself, such as input that is not JSON, ends with exit code 1: that never blocks an agent, and the
host reports it. So do not use argparse here, which exits with 2.
"""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from safe_paths import UnsafePath, is_sensitive, real_path, safe_path

MAX_REASON_LINES = 30
EVERY_STOP = "--every-stop"  # block again after a block, and rely on the limit of the host
_continued: list[bool] = []  # not empty: the agent was already continued, so `block` approves (document 003)


# Input and answers


def read_input() -> dict[str, Any]:
    """Return the input of the hook."""
    try:
        data = json.load(sys.stdin)
    except ValueError as error:
        fail(f"the input is not JSON: {error}")
    if not isinstance(data, dict) or "hook_event_name" not in data:
        fail("the input is not that of a hook")
    if data.get("stop_hook_active") and EVERY_STOP not in sys.argv:
        _continued.append(True)
    return data


def arguments() -> list[str]:
    return [word for word in sys.argv[1:] if word != EVERY_STOP]


def approve() -> NoReturn:
    print('{"decision": "approve"}')
    raise SystemExit(0)


def block(reason: str) -> NoReturn:
    """Block, unless the agent was already continued (`stop_hook_active`): then the user is told instead."""
    if _continued:
        print(json.dumps({"decision": "approve", "systemMessage": f"not blocked a second time: {reason}"}))
    else:
        print(json.dumps({"decision": "block", "reason": reason}))
    raise SystemExit(0)


def fail(why: str) -> NoReturn:
    print(f"{os.path.basename(sys.argv[0])}: {why}", file=sys.stderr)
    raise SystemExit(1)


# What the agent did


def project_of(data: dict[str, Any]) -> Path:
    """Return the project's folder without links."""
    folder = Path(os.environ.get("CLAUDE_PROJECT_DIR") or str(data.get("cwd") or "."))
    if not folder.is_dir():
        fail(f"{folder} is not a folder")
    return folder.resolve()


def texts(data: dict[str, Any], role: str) -> Iterator[str]:
    """Yield the texts of the agent or of its user, from the transcript of this agent: a subagent has its own."""
    path = data.get("agent_transcript_path") or data.get("transcript_path") or ""
    try:
        lines = Path(str(path)).read_text("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        try:
            message = json.loads(line).get("message")
        except (ValueError, AttributeError):
            continue
        if isinstance(message, dict) and message.get("role") == role:
            content = message.get("content")
            blocks = [{"text": content}] if isinstance(content, str) else content
            found = [each.get("text") for each in blocks or () if isinstance(each, dict)]
            if text := "\n".join(each for each in found if isinstance(each, str)):
                yield text


def last_answer(data: dict[str, Any]) -> str:
    answer = data.get("last_assistant_message")
    return answer if isinstance(answer, str) else next(iter([*texts(data, "assistant")][::-1]), "")


def inside(project: Path, name: str) -> Path:
    """Return the path of a name that a model wrote, without links.

    A name that leads out of the project, or to a file that usually holds secrets, is a ValueError. What a hook reads or
    compiles can be sent to a model, so each file passes here first.
    """
    relative = os.path.relpath(real_path(name), project) if os.path.isabs(name) else name
    try:
        path = safe_path(project, relative)
    except UnsafePath:
        path = ""
    if not path or name.startswith("-"):
        raise ValueError(f"{name!r} is not a path in the project")
    if is_sensitive(relative) or is_sensitive(os.path.relpath(path, project)):
        raise ValueError(f"{name!r} usually holds secrets, and hooks do not open such files")
    return Path(path)


# State


def state_folder(data: dict[str, Any]) -> Path:
    """Return the folder for the state of this session in this project: never shared with another session."""
    base = (
        os.environ.get("HOOK_STATE")
        or os.environ.get("XDG_STATE_HOME")
        or os.path.expanduser("~/.local/state")
    )
    # An id may contain anything, so it is hashed.
    names = (str(project_of(data)), str(data.get("session_id")))
    folder = Path(base, "example-hooks", *(hashlib.sha256(each.encode()).hexdigest()[:16] for each in names))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep hooks of subagents that stop at the same time apart."""
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def write(file: Path, text: str) -> None:
    """Replace a file as a whole."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(text, "utf-8")
    new.replace(file)


# Plans


class Chunk(NamedTuple):
    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]


def read_plans(project: Path, refuse: Callable[[str], NoReturn] = block) -> dict[str, str]:
    """Return the plans by their names: those that the command names, otherwise PLAN.md and docs/plans/*/PLAN.md.

    One that hooks do not open is refused. A gate blocks then: a link in the place of a plan must not switch it off.
    """
    found = (
        "PLAN.md",
        *(str(path.relative_to(project)) for path in sorted(project.glob("docs/plans/*/PLAN.md"))),
    )
    names = arguments() or [name for name in found if os.path.lexists(project / name)]
    try:
        return {name: inside(project, name).read_text("utf-8", "replace") for name in names}
    except ValueError as error:
        refuse(f"The plan cannot be used: {error}.")
    except OSError as error:
        fail(f"the plan cannot be read: {error}")


def without_code(text: str) -> str:
    return re.sub(r"^\s*(```|~~~).*?^\s*\1", "", text, flags=re.MULTILINE | re.DOTALL)


def open_tasks(plan: str) -> list[str]:
    """Return the tasks that are not marked as done: `[x]`. Any other mark is open."""
    found = re.findall(
        r"^\s*(?:[-*+]|\d+[.)])\s+\[(.{0,2})\](?!\()\s*(.*)$", without_code(plan), re.MULTILINE
    )
    return [task for mark, task in found if mark not in ("x", "X")]


def chunks(plan: str) -> list[Chunk]:
    """Return the rows of the table `| Chunk | Files | Tests |`."""
    found: list[Chunk] = []
    in_table = False
    for line in without_code(plan).splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|"):
            in_table = False
        elif cells[0].lower() == "chunk":
            in_table = True
        elif in_table and len(cells) >= 3 and re.fullmatch(r"\w[\w.-]*", cells[0]):
            names = [tuple(re.findall(r"[^\s,`]+", cell)) for cell in cells[1:3]]
            found.append(Chunk(cells[0], *names))
    return found


# Commands


def run(command: list[str], project: Path) -> str | None:
    """Return the end of the output of a command that fails, or None. A program that is missing is not a failure."""
    try:
        done = subprocess.run(
            command, cwd=project, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        fail(f"{command[0]} cannot be run: {error.strerror}")
    if re.search(r"^Ran 0 tests", done.stderr, re.MULTILINE):
        return "no tests were run: write them as methods of unittest.TestCase"
    if done.returncode == 0:
        return None
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return "\n".join(lines[-MAX_REASON_LINES:]) or f"exit code {done.returncode}"


def refused_files(chunk: Chunk, project: Path) -> list[str]:
    """Return why files of a chunk cannot be part of a plan."""
    problems = []
    for name in (*chunk.files, *chunk.tests):
        try:
            inside(project, name)
        except ValueError as error:
            problems.append(f"{chunk.name}: {error}")
    return problems


def missing_files(chunk: Chunk, project: Path) -> str | None:
    """Return what is wrong with the files of a chunk."""
    if problems := refused_files(chunk, project):
        return f"{'; '.join(problems)}. Correct the plan."
    missing = [name for name in (*chunk.files, *chunk.tests) if not inside(project, name).is_file()]
    return f"{chunk.name} is not complete, these files are missing: {', '.join(missing)}" if missing else None


def check_chunk(chunk: Chunk, project: Path) -> str | None:
    """Return what is wrong with a chunk."""
    if problem := missing_files(chunk, project):
        return problem
    if output := run([sys.executable, "-m", "py_compile", *chunk.files], project):
        return f"{chunk.name}: lint fails.\n{output}"
    if output := run([sys.executable, "-m", "unittest", "-q", *chunk.tests], project):
        return f"{chunk.name}: its tests fail. Fix {', '.join(chunk.files)}.\n{output}"
    return None
