"""A registry in a test: its runs, on their way to each state, and programs that use it at once."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import RunState, SubagentRun
from turngate.subagents.registry import Registry
from turngate.subagents.registry.statements import Transition

NONE = 10**6  # more room than anybody takes
REDIRECT: dict[str, Any] = {"prompt": "more", "why": "not done", "counts": True, "max_steers": 3}
FINAL: dict[str, Any] = {"result": "r", "reason": "complete", "announcement": "a", "max_steers": 3}

# One run on its way to each state, by the transitions alone

WAYS: dict[RunState, tuple[str, ...]] = {
    "waiting": (),
    "running": ("start",),
    "ended": ("start", "end"),
    "steering": ("start", "end", "redirect"),
    "replaced": ("start", "end", "redirect", "replace"),
    "final": ("start", "end", "finish"),
    "announced": ("start", "end", "finish", "announce"),
    "done": ("start", "end", "finish", "announce", "done"),
    "killed": ("kill",),
    "given_up": ("start", "end", "finish", "give_up"),
}
OUT_OF: dict[str, dict[RunState, RunState]] = {
    "start": {"waiting": "running"},
    "end": {"running": "ended"},
    "redirect": {"ended": "steering"},
    "steer": {"running": "steering", "ended": "steering"},
    "cancel_redirect": {"steering": "ended"},
    "replace": {"steering": "replaced"},
    "finish": {"ended": "final"},
    "lost": {"waiting": "final", "running": "final", "ended": "final", "steering": "final"},
    "announce": {"final": "announced"},
    "attempt": {"final": "final"},
    "give_up": {"final": "given_up"},
    "done": {"announced": "done", "killed": "done"},
    "kill": {"waiting": "killed", "running": "killed", "ended": "killed", "steering": "killed"},
    "kill_all": {"waiting": "killed", "running": "killed", "ended": "killed", "steering": "killed"},
}


@contextlib.contextmanager
def opened(state: Path) -> Iterator[Registry]:
    registry = Registry(str(state))
    try:
        yield registry
    finally:
        registry.close()


def a_run(identity: str = "r", **fields: Any) -> SubagentRun:
    return SubagentRun(
        **{
            "id": identity,
            "chain": identity,
            "agent_id": f"a-{identity}",
            "owner": "me",
            "parent": "s",
            "created": 5.0,
            "max_steers": 3,
            **fields,
        }
    )


def registered(registry: Registry, identity: str = "r", **fields: Any) -> SubagentRun:
    return registry.register(a_run(identity, **fields), may_run=False, max_running=NONE)


def running(registry: Registry, identity: str = "r", **fields: Any) -> SubagentRun:
    return registry.register(a_run(identity, **fields), may_run=True, max_running=NONE)


def for_workers(
    registry: Registry, identity: str, *labels: str, at_once: int = 9, **fields: Any
) -> SubagentRun:
    launch = {"workers": {"labels": labels, "at_once": at_once}, "project": "/p"}
    return registered(registry, identity, **{"owner": "", "launch": launch, **fields})


def change(registry: Registry, name: str, run: str = "r", owner: str = "me") -> object:
    """One transition by its name; falsy: nothing has changed."""
    now = registry.find("run", run)
    assert now is not None
    does: dict[str, Callable[[], object]] = {
        "steer": lambda: registry.steer(now, "more"),
        "replace": lambda: registry.replace(replace(now, owner=owner)),
        "kill": lambda: registry.kill(run, "killed"),
        "kill_all": lambda: registry.kill(("s", ""), "session-reset"),
        "mark_delivered": lambda: registry.mark_delivered(run),
    }
    if name in does:
        return does[name]()
    values: dict[str, dict[str, Any]] = {
        "usage": {"usage": Usage(input_tokens=1), "tool_calls": 1, "tools": ("Bash",)},
        "start": {"depth": now.depth, "max_running": NONE},
        "end": {"outcome": "ok", "reason": "complete", "result": "the answer"},
        "redirect": REDIRECT,
        "cancel_redirect": {"counted": now.next_by_hook, "guard": now.guard.get("before")},
        "finish": FINAL,
        "lost": {"error": "lost", "announcement": "it is lost"},
        "give_up": {"error": "connection refused"},
    }
    return registry.transition(cast(Transition, name), run, owner, **values.get(name, {}))


def brought(registry: Registry, state: RunState, identity: str = "r", **fields: Any) -> SubagentRun:
    registered(registry, identity, **fields)
    for name in WAYS[state]:
        assert change(registry, name, identity, fields.get("owner", "me")), name
    return kept(registry, identity)


def kept(registry: Registry, identity: str = "r") -> SubagentRun:
    found = registry.find("run", identity)
    assert found is not None
    return found


def execute(registry: Registry, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in registry.store.execute(statement, {})]


def died(state: Path, owner: str) -> None:
    """Who dies leaves its lock file behind. In PostgreSQL, an owner without a lease is a dead one."""
    (state / "owners").mkdir(parents=True, exist_ok=True)
    (state / "owners" / owner).touch()


# Programs

ADOPTER = """
import sys
from turngate.subagents.limits import SubagentOptions
from turngate.subagents.registry import Registry
registry = Registry(sys.argv[1])
owner = registry.join()
print("ready", flush=True)
sys.stdin.readline()
print(owner, *(run.id for run in registry.take_over(owner, None)), flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def programs(source: str, state: Path, count: int) -> Iterator[list["subprocess.Popen[str]"]]:
    command = [sys.executable, "-c", source, str(state)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for program in started:
            assert said(program) == "ready"
        yield started
    finally:
        for program in started:
            program.kill()
            program.communicate()


def said(program: "subprocess.Popen[str]") -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


def let_go(program: "subprocess.Popen[str]") -> None:
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()
