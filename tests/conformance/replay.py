"""Plays one turn of a recorded case through our engine: a scripted model, real settings and real hook processes."""

import asyncio
import hashlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from tests.make import script, write_settings
from turngate.core.dialect import CLAUDE
from turngate.core.events import StopEvent, Subagent
from turngate.core.guard import EndedBy, GoHome, GoOn, new_guard
from turngate.core.hooks import CallbackHook
from turngate.core.settings import Rule, Settings
from turngate.engine import ask_hooks
from turngate.journal import Journal
from turngate.ports import World
from turngate.settings.files import load_settings
from turngate.shells.local import LocalShell

Case = Mapping[str, Any]


@dataclass(frozen=True)
class Stage:
    """The folders that a case is played in."""

    root: Path
    project: Path
    home: Path
    state: Path

    @property
    def notes(self) -> Path:
        """Where hook scripts leave what they want to be known by: `{rec}` in a case."""
        return self.root / "rec"

    @property
    def log(self) -> Path:
        """One line for each run of a hook script: the file with its input."""
        return self.root / "log"


@dataclass(frozen=True)
class Turn:
    requests: int
    continuations: tuple[str, ...]
    ended_by: EndedBy


class App:
    """The program at the other end of callback hooks: its answers go out in order, whichever hook asks."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = answers
        self.asked = 0

    async def answer(self, _: StopEvent) -> Any:
        self.asked += 1
        answer = _nth(self.answers, self.asked)
        return await asyncio.Event().wait() if answer == "silent" else answer


def replay(case: Case, stage: Stage, agent: str = "main") -> dict[str, Any]:
    """What the agent's turn looks like here, in the form of `recorded`."""
    _furnish(case, stage)
    app = App(case.get("answers", ()))
    started = time.monotonic()
    turn = asyncio.run(_play(case, stage, app, agent))
    seconds = time.monotonic() - started
    inputs = _inputs(stage)
    return {
        "requests": turn.requests,
        "hook_runs": len(inputs) + app.asked,
        "stop_hook_active": _active(inputs, case),
        "continuations": [_comparable(text, stage) for text in turn.continuations],
        "ended_by": turn.ended_by if agent == "main" else None,
        "first_stdin": _as_recorded(_told(inputs[0]), case, stage) if inputs else [],
        "left": sorted(os.listdir(stage.notes)),
        "in_time": _in_time(seconds, case),
    }


def recorded(case: Case, agent: str = "main") -> dict[str, Any]:
    """What the agent's turn looked like in the real program."""
    expect = case["expect"]
    requests = expect["model_requests"]
    continuations = [
        _SAVED.sub(r"\1<FILE>", message["text"])
        for continuation in expect["continuations"]
        for message in continuation["messages"]
    ]
    return {
        "requests": requests.get(agent, requests.get("all")),
        "hook_runs": expect["hook_runs"],
        "stop_hook_active": expect["stop_hook_active"],
        "continuations": continuations,
        "ended_by": _recorded_end(expect["results"][0]) if agent == "main" else None,
        "first_stdin": list(_recorded_input(case).items()),
        "left": LEFT.get(case["name"], []),
        "in_time": True,
        **PART_OF_THE_HOOK.get(case["name"], {}),
    }


def _recorded_end(result: Mapping[str, Any]) -> EndedBy:
    """The program has no word for its cap, but it then loses the answer (measured)."""
    if result["terminal_reason"] == "stop_hook_prevented":
        return "halted"
    assert result["terminal_reason"] == "completed"
    return "allowed" if result["result"] else "capped"


def _recorded_input(case: Case) -> dict[str, Any]:
    """What the first hook script read; nothing, when it did not read."""
    told: dict[str, Any] = case["expect"].get("first_stdin", {})
    return {} if "_raw" in told else told


# The stage


def _furnish(case: Case, stage: Stage) -> None:
    stage.notes.mkdir()
    stage.log.touch()
    names = {f"{{{name}}}": str(_script_path(name, stage)) for name in case.get("hook_scripts", {})}
    names["{rec}"] = str(stage.notes)
    for name, body in case.get("hook_scripts", {}).items():
        _write_script(name, _filled(body, names), stage)
    for name, text in case.get("files", {}).items():
        (stage.project / name).write_text(_filled(text, names))
    for level, content in case.get("settings", {}).items():
        text = content if isinstance(content, str) else json.dumps(content)
        folder = stage.home if level == "user" else stage.project
        file = "settings.local.json" if level == "local" else "settings.json"
        write_settings(folder, "claude", _filled(text, names), file)


def _script_path(name: str, stage: Stage) -> Path:
    return stage.root / f"h_{name}.sh"


def _filled(text: str, names: Mapping[str, str]) -> str:
    for placeholder, value in names.items():
        text = text.replace(placeholder, value)
    return text


def _write_script(name: str, body: str, stage: Stage) -> None:
    """A hook script that counts its runs in `$N`, keeps its input in `$IN` and logs itself before all else."""
    count = stage.root / f"{name}.count"
    count.write_text("0\n")
    lines = [
        "#!/bin/bash",
        f"read -r N < '{count}'; N=$((N + 1)); echo $N > '{count}'",
        f"IN='{stage.root}/{name}.in.'$N; export N IN",
        f"""echo "$IN" >> '{stage.log}'""",
        "" if "#noread" in body else 'cat > "$IN"',
        "trap '' TERM" if "#ignoreterm" in body else "",
        body,
    ]
    script(_script_path(name, stage), "\n".join(lines) + "\n")


# The play


async def _play(case: Case, stage: Stage, app: App, agent: str) -> Turn:
    journal = Journal(str(stage.state))
    world = World(LocalShell(), str(stage.project), journal)
    try:
        turn = await _turn(case, stage, app, agent, world)
        while world.background and not stage.log.read_text():  # a hook in the background has yet to start
            await asyncio.sleep(0.01)
        return turn
    finally:
        await world.close(0)
        journal.close()


async def _turn(case: Case, stage: Stage, app: App, agent: str, world: World) -> Turn:
    """The loop of an agent, as small as it can be."""
    replies = case.get("model_script", {}).get(agent, ["answer {n}"])
    guard = new_guard(_settings(case, stage, app), os.environ, child=agent == "sub")
    requests, continuations = 0, list[str]()
    while True:
        requests += 1
        reply = _nth(replies, requests)
        if isinstance(reply, dict) and reply.keys() & {"tool", "tools"}:
            guard = guard.after_tool_call()
            continue
        event = StopEvent(
            session_id="<SESSION>",
            transcript_path=f"{stage.home}/.claude/projects/<PROJ>/<SESSION>.jsonl",
            cwd=str(stage.project),
            prompt_id=_recorded_input(case).get("prompt_id", "<UUID1>"),  # numbered as they came up
            effort="medium",
            stop_hook_active=guard.active,
            continuation_count=guard.continuations,
            last_assistant_message=_texts(reply, requests),
            subagent=_child(case, stage) if agent == "sub" else None,
        )
        step = guard.after(await ask_hooks(event, _settings(case, stage, app), world))
        match step:
            case GoHome(ended_by):
                return Turn(requests, tuple(continuations), ended_by)
            case GoOn(prompt, guard):
                continuations.append(prompt)
            case _:
                assert_never(step)


def _settings(case: Case, stage: Stage, app: App) -> Settings:
    if "initialize_hooks" not in case:
        return load_settings(str(stage.project), dialect="claude")
    rules = (
        Rule(event, CallbackHook(app.answer, name=name, timeout=group.get("timeout")), group["matcher"])
        for event, groups in case["initialize_hooks"].items()
        for group in groups
        for name in group["hookCallbackIds"]
    )
    return Settings(rules=tuple(rules), dialect=CLAUDE)


def _nth(values: Sequence[Any], number: int) -> Any:
    """Counting from 1; the last one is repeated."""
    return values[min(number, len(values)) - 1]


def _texts(reply: Any, number: int) -> tuple[str, ...]:
    texts = [reply] if isinstance(reply, str) else reply.get("texts") or [reply["text"]]
    return tuple(text.replace("{n}", str(number)) for text in texts)


def _child(case: Case, stage: Stage) -> Subagent:
    name = _recorded_input(case).get("agent_id", "a1")
    path = f"{stage.home}/.claude/projects/<PROJ>/<SESSION>/subagents/agent-{name}.jsonl"
    return Subagent(id=name, type="general-purpose", transcript_path=path)


# What is compared


def _inputs(stage: Stage) -> list[str]:
    """What each run of a hook script read, in the order in which they started."""
    files = [Path(line) for line in stage.log.read_text().splitlines()]
    return [file.read_text() if file.exists() else "" for file in files]


def _active(inputs: Sequence[str], case: Case) -> list[bool | None]:
    """`stop_hook_active` as each run read it; None, if it did not read."""
    if case["name"] in ENDED_AT_ONCE:
        return [None for _ in inputs]
    return [_told(text).get("stop_hook_active") for text in inputs]


def _told(text: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(text or "{}")
    return told


def _as_recorded(told: Mapping[str, Any], case: Case, stage: Stage) -> list[tuple[str, Any]]:
    """Our keys that the program has as well, in our order."""
    known = _recorded_input(case)
    return [
        (key, _placed(value, stage) if isinstance(value, str) else value)
        for key, value in told.items()
        if key in known
    ]


def _placed(text: str, stage: Stage) -> str:
    """With the recorder's names for our folders."""
    folders = {str(stage.project): "<PROJ>", str(stage.home): "<HOME>", str(stage.root): "<ROOT>"}
    return _filled(text, folders)


def _comparable(text: str, stage: Stage) -> str:
    return folded(_SAVED.sub(r"\1<FILE>", _placed(text, stage)))


_SAVED = re.compile(r"(Full output saved to: )\S+")  # a name that the program makes up


def folded(text: str) -> str:
    """A long text as the recorder wrote it."""
    if len(text) <= 4_000:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[:400]}…[{len(text)} chars, sha256 {digest}]…{text[-200:]}"


def _in_time(seconds: float, case: Case) -> bool | float:
    """True, or how long it took."""
    least, most = SECONDS.get(case["name"], (0.0, 60.0))
    return least <= seconds < most or seconds


# What the record does not say in so many words

# The program ended these before they had read their input; ours may get further, and nobody listens to it.
ENDED_AT_ONCE = frozenset({"async_true", "async_fast", "async_exit2"})

# What scripts leave in `{rec}`. `asyncdone` and `survived` are not among it: they were ended in time.
LEFT = {"project_dir_quoted": ["x"], "x_timeout_setsid_child": ["gc"]}

# At least so long, and shorter than it would take if hooks ran one after another, a time limit did not hold,
# the wrong one of two limits held, or somebody waited for a child that holds the pipes.
SECONDS = {
    "three_parallel": (1.0, 2.9),
    "slow_ok": (2.0, 60.0),
    "x_dup_timeout_first": (3.0, 60.0),
    "timeout_plus_block": (2.0, 10.0),
    "timeout_1": (1.0, 20.0),
    "timeout_half": (0.5, 20.0),
    "ignore_sigterm": (1.0, 12.0),
    "x_timeout_setsid_child": (1.0, 20.0),
    "cb_timeout": (1.0, 20.0),
    "sub_timeout": (1.0, 20.0),
    "bg_child_pipes": (0.0, 8.0),
    "bg_child_pipes_block": (0.0, 8.0),
    "bg_child_detached": (0.0, 8.0),
    "x_bg_pipes_approve": (0.0, 8.0),
}

# 5 MB made the program compact its conversation: two requests of its own, whose instruction it joined to the
# hook's text. Here is the hook's part; the record gives its length with its own path and a newline between.
PART_OF_THE_HOOK: dict[str, dict[str, Any]] = {
    "huge_stderr_exit2": {
        "requests": 2,
        "continuations": [folded("Stop hook feedback:\n[<ROOT>/h_h.sh]: " + "y" * 5_000_000)],
    }
}
