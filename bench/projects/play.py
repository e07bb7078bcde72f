"""Plays sessions of Claude Code in a project: `turngate init`, then events and transcripts as that program gives them."""

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.projects.faults import FAULTS, KINDS, Fault, Sources, broken_functions, plant
from bench.projects.table import Project

GATES = "untouched,no-stubs,clean"  # besides what `init` finds
TIMEOUT_S = 1800
MAX_REASON_CHARS = 6000  # that are kept in the results
KEPT = "CARGO_HOME RUSTUP_HOME GOPATH GOCACHE GOMODCACHE GEM_HOME COMPOSER_HOME CARGO_NET_OFFLINE GOPROXY".split()
HOMES = {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup", "GOPATH": "go", "GOCACHE": ".cache/go-build"}
TURNGATE = str(Path(sys.executable).with_name("turngate"))


@dataclass(frozen=True)
class Played:
    """One session: which gates have blocked its stop, and what the agent reads."""

    name: str
    blocked_by: tuple[str, ...]
    reason: str = ""
    expected: tuple[str, ...] = ()  # any of these gates
    is_shown: bool = False  # the reason names what was planted
    seconds: float = 0.0


@dataclass
class Row:
    """What was seen of a project."""

    project: str
    version: str
    proposed: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)  # files that `init` has changed, besides its own
    innocent: list[Played] = field(default_factory=list)
    faults: list[Played] = field(default_factory=list)
    error: str = ""


class CannotPlay(Exception):
    """The project cannot be installed or tried; the text says why."""


class Room:
    """A working copy of a project with its dependencies, and an empty home."""

    def __init__(self, project: Project, sources: Path, folder: Path) -> None:
        self.project, self.folder = project, folder / project.name
        self.home = folder / f"{project.name}.home"
        self.files = folder / project.name
        self._sources = sources / project.source.replace("/", "+")

    def prepare(self) -> None:
        """Copy and install the project once; later only put its files back."""
        mark = self.folder.with_name(f"{self.project.name}.installed")
        key = f"{self.project.commit}\n{self.project.install}\n"
        if not mark.exists() or mark.read_text() != key:
            mark.unlink(missing_ok=True)
            _sh(f"rm -rf '{self.files}' && mkdir -p '{self.files}'", self.files.parent)
            bare = next((each for each in (self._sources / "repo", self._sources) if each.exists()), None)
            if bare is None:
                raise CannotPlay(f"--sources has no {self._sources.name}")
            # `git archive` would leave out what a package does not have, such as tests.
            copy = f"git -c safe.directory='*' clone -q --no-checkout '{bare}' . && git checkout -q {self.project.commit} && rm -rf .git"
            _sh(f"{copy} && git init -q . && git add -A -f . && {_commit('start')}", self.files)
            _sh("git tag start && printf '%s\n' .venv node_modules >> .git/info/exclude", self.files)
            if self.project.install:
                _sh(self.project.install.replace("{sources}", str(self._sources.parent)), self.files)
            _sh("git add -A . && git reset -q --hard start", self.files)
            mark.write_text(key)
        _sh(
            f"git reset -q --hard start && git clean -fdq && rm -rf '{self.home}' && mkdir '{self.home}'",
            self.files,
        )

    @property
    def env(self) -> dict[str, str]:
        """Return the variables of a user without tools of Turngate's own environment."""
        own = os.path.dirname(sys.executable)
        path = ":".join(each for each in os.environ["PATH"].split(":") if each != own)
        home = os.path.expanduser("~")
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        homes = {name: f"{home}/{at}" for name, at in HOMES.items() if os.path.isdir(f"{home}/{at}")}
        return {**homes, **kept, "PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8"}

    def turngate(self, *words: str, event: Mapping[str, Any] | None = None) -> str:
        """Run a command, and return what it prints; with an event as Claude Code runs it."""
        of_host = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(self.files)} if event else {}
        done = subprocess.run(
            [TURNGATE, *words],
            cwd=self.files,
            env={**self.env, **of_host},
            input=json.dumps(event or {}),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise CannotPlay(f"turngate {' '.join(words)}: exit code {done.returncode}: {done.stderr[-500:]}")
        return done.stdout + ("" if event else done.stderr)

    def sources(self) -> Sources:
        names = _sh("git ls-files -z", self.files).split("\0")
        named = {each.get("file") for each in self.project.faults.values()}
        texts = {}
        for name in names:
            path = self.files / name
            is_read = name in named or name.endswith(self.project.syntax.suffixes)
            if is_read and path.is_file() and not path.is_symlink():
                texts[name] = path.read_text(errors="surrogateescape")
        return Sources(texts, self.project.syntax)

    def commit(self) -> None:
        _sh("git add -A . && " + _commit("work"), self.files)

    def put_back(self) -> None:
        _sh("git reset -q --hard gated && git clean -fdq", self.files)

    def is_red(self, command: str) -> bool:
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.files,
            env=self.env,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return done.returncode != 0


def play(project: Project, sources: Path, folder: Path) -> Row:
    """Return what was seen of a project."""
    row, room = Row(project.name, project.version or project.commit[:8]), Room(project, sources, folder)

    def say(what: str) -> None:
        print(f"      {project.name}: {what} …", flush=True)

    try:
        say("install")
        room.prepare()
        say("init")
        _init(room, row)
        innocent: dict[str, tuple[Callable[[], None], str, str]] = {
            "greeting": (lambda: None, "hi", "Hello! What can I do for you?"),
            "documentation": (
                lambda: _edit_readme(room),
                "Add a sentence to the README.",
                "I have added it.",
            ),
            "question": (
                lambda: _add_comment(room),
                "Add the option.",
                "Should it be a flag, or take a value?",
            ),
        }
        for name, (work, prompt, answer) in innocent.items():
            say(name)
            row.innocent.append(_session(room, name, work, prompt, answer))
        _play_faults(room, row, say)
    except (CannotPlay, subprocess.TimeoutExpired) as error:
        row.error = str(error)
    return row


def _init(room: Room, row: Row) -> None:
    printed = room.turngate("init", "--yes", "--with", GATES)
    row.proposed = dict(re.findall(r"(?m)^(\S+) +runs `(.+)` \(", printed))
    row.left_out = re.findall(r"(?m)^(\S+ +left out: .+|\S+ +is left out: .+|.* is not there.*)$", printed)
    changed = _sh("git diff --name-only", room.files).split()
    row.edited = [name for name in changed if name not in (".gitignore", ".turngate/settings.json")]
    room.turngate("hooks", "approve", "--all", "--yes")
    # What the trial has built is left as it is: untracked.
    _sh("git add -A .turngate .gitignore && " + _commit("gates"), room.files)
    _sh("git tag -f gated", room.files)


def _play_faults(room: Room, row: Row, say: Callable[[str], None]) -> None:
    sources = room.sources()
    source = room.project.main or (sources.code or [""])[0]
    settings = json.loads((room.files / ".turngate/settings.json").read_text())
    there = {_check(hook["id"]) for group in settings["hooks"]["Stop"] for hook in group["hooks"]}
    tests = next((each for name, each in row.proposed.items() if _check(name) == "tests"), None)
    for kind, gates in KINDS.items():
        if len(row.faults) == FAULTS or not there & set(gates):
            continue
        say(kind)
        if kind == "broken function" and kind not in room.project.faults:
            seen = _play_broken(room, sources, tests)
            if seen:
                played, file = seen
                row.faults.append(played)
                source = room.project.main or file
        elif fault := plant(kind, sources, source, room.project.faults):
            row.faults.append(_play_fault(room, fault))


def _play_broken(room: Room, sources: Sources, tests: str | None) -> tuple[Played, str] | None:
    """Break functions until a test sees it; one that the gate allows counts only if the tests do fail."""
    red = None
    for fault in broken_functions(sources):
        played, file = _play_fault(room, fault), next(iter(fault.edits))
        if any(_check(gate) == "tests" for gate in played.blocked_by):
            return played, file
        if tests:
            red = room.is_red(tests) if red is None else red
            _write(room, fault)
            is_missed = not red and room.is_red(tests)
            room.put_back()
            if is_missed:
                return played, file
    return None


def _play_fault(room: Room, fault: Fault) -> Played:
    def work() -> None:
        _write(room, fault)
        if fault.is_committed:
            room.commit()

    seen = _session(
        room, fault.kind, work, "Please do the next task.", "I have done it.", sorted(fault.edits)
    )
    is_shown = all(re.search(pattern, seen.reason) for pattern in fault.shows)
    return Played(seen.name, seen.blocked_by, seen.reason, fault.gates, is_shown, seen.seconds)


def _write(room: Room, fault: Fault) -> None:
    for name, text in fault.edits.items():
        path = room.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, errors="surrogateescape")


def _edit_readme(room: Room) -> None:
    for path in sorted(room.files.glob("[Rr][Ee][Aa][Dd][Mm][Ee]*"))[:1]:
        path.write_text(path.read_text().rstrip("\n") + "\n\nThe examples are short.\n")
        room.commit()


def _add_comment(room: Room) -> None:
    """Begin the work in a source file, and leave it uncommitted."""
    sources = room.sources()
    path = room.files / (room.project.main or sources.code[0])
    text = path.read_text()
    syntax = room.project.syntax
    path.write_text(f"{text.rstrip()}\n{syntax.blank}{syntax.comment.format('Options are read once.')}\n")


def _session(
    room: Room, name: str, work: Callable[[], None], prompt: str, answer: str, edited: Sequence[str] = ()
) -> Played:
    """Play a session from its start to its first stop, and put the files back."""
    session, prompt_id = str(uuid.uuid4()), str(uuid.uuid4())
    transcript = room.home / f"{session}.jsonl"
    common = {"session_id": session, "transcript_path": str(transcript), "cwd": str(room.files)}
    room.turngate("hook", event={**common, "hook_event_name": "SessionStart", "source": "startup"})
    of_prompt = {**common, "prompt_id": prompt_id, "permission_mode": "default"}
    room.turngate("hook", event={**of_prompt, "hook_event_name": "UserPromptSubmit", "prompt": prompt})
    work()
    records = [_record(common, "user", {"role": "user", "content": prompt})]
    for number, file in enumerate(edited):
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "Edit",
            "input": {"file_path": str(room.files / file)},
        }
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": "The file has been updated.",
        }
        records.append(_record(common, "assistant", _assistant(call)))
        records.append(_record(common, "user", {"role": "user", "content": [result]}))
    records.append(_record(common, "assistant", _assistant({"type": "text", "text": answer})))
    transcript.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    stop = {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": answer}
    began = time.monotonic()
    printed = room.turngate("hook", event={**of_prompt, **stop, "background_tasks": [], "session_crons": []})
    seconds = time.monotonic() - began
    room.put_back()
    said = json.loads(printed or "{}")
    if said.get("decision") != "block":
        return Played(name, (), str(said.get("systemMessage", ""))[:MAX_REASON_CHARS], seconds=seconds)
    return Played(name, _blockers(room, session), said["reason"][:MAX_REASON_CHARS], seconds=seconds)


def _assistant(block: Mapping[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {
        "id": f"msg_{uuid.uuid4()}",
        "role": "assistant",
        "model": "claude-test",
        "content": [block],
        "usage": usage,
    }


def _record(common: Mapping[str, str], kind: str, message: Mapping[str, Any]) -> dict[str, Any]:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    own = {"parentUuid": None, "isSidechain": False, "uuid": str(uuid.uuid4()), "timestamp": stamp}
    return {**own, "type": kind, "message": message, "cwd": common["cwd"], "sessionId": common["session_id"]}


def _blockers(room: Room, session: str) -> tuple[str, ...]:
    """Return the gates that the journal names."""
    journal = room.home / ".local/state/turngate/sessions" / session / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return tuple(next(line["blocked_by"] for line in reversed(lines) if line["kind"] == "verdict"))


def _check(gate: str) -> str:
    """Return the check of a gate's id: `tests-node` is one of tests."""
    return gate if gate == "no-stubs" else gate.partition("-")[0]


def _commit(message: str) -> str:
    return f"git -c user.name=a -c user.email=a@example.org commit -q --no-verify --allow-empty -m {message}"


def _sh(command: str, folder: Path) -> str:
    done = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode:
        raise CannotPlay(f"`{command}`: exit code {done.returncode}: {(done.stderr or done.stdout)[-800:]}")
    return done.stdout
