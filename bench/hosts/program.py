"""A program that is run by `make hosts`, as data; one file per program."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.hosts.room import Room

Json = dict[str, Any]
Reply = str | Json  # a text, or {"text", "tools": [{"name", "input"}]}
ReplyTo = Callable[[Json], Reply]  # the body of a request
Script = Mapping[str, Sequence[Reply | ReplyTo]]  # "main" and "sub": given in order, the last one is repeated

PROMPT = "Do the work."
SUBAGENT_PROMPT = "SUBAGENT-PROMPT: count the files."  # requests with it are those of the subagent
TASK = "printf 'done\\n' >> work.txt"  # what the agent does with its shell tool


class Model(Protocol):
    """The server that plays the model: tests/support/servers has one for each API."""

    url: str
    requests: list[Json]  # the bodies, in the order in which they came
    agents: list[str]  # whose request each one was: main, sub or other


@dataclass(frozen=True, kw_only=True)
class Program:
    name: str  # of the host, as in `turngate install NAME`
    title: str
    package: str  # on npm
    version: str  # that is installed
    command: str  # in node_modules/.bin
    node: int | None = None  # the oldest Node.js that runs it, if newer than that of the others
    serve: Callable[[Script], AbstractContextManager[Model]]
    write_settings: Callable[[Room, Model], None]  # everything but hooks, before each run
    write_other_hooks: Callable[[Room, str], None] = lambda _room, _command: None  # that are only recorded
    environment: Callable[[Room, Model], Mapping[str, str]]
    arguments: Callable[[str], Sequence[str]]  # prompt: the words after the command
    resume: Callable[[str], Sequence[str]] | None = None  # the same, in the session before
    terminal: Callable[[str], Sequence[str]] | None = None  # the same in a terminal; None: not run there
    shell: Callable[[str], Json]  # a command: the model's call of the shell tool, {"name", "input"}
    subagent: Sequence[Reply | ReplyTo]  # the model starts a subagent with SUBAGENT_PROMPT; (): it has none
    heard: Callable[[Json], list[str]]  # a request: the texts that its user messages hold
    stop_event: str = "Stop"  # in the hook's input
    notice: str = "nowhere"  # where the headless output shows what a hook reports: stdout, stderr, nowhere
    tries: Sequence[str] = ()  # what it tries to reach beyond loopback, in vain, and no setting prevents
    expected: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # scenario: what differs here
    transcript: Callable[[Room], str | None] = lambda _room: None  # the lines of JSON of the conversation
    keeps: Callable[[Json], bool] = lambda _line: True  # a line of it that is recorded

    @property
    def folder(self) -> str:
        """Return the name of its folder below that of all programs."""
        return self.package.rpartition("/")[2]
