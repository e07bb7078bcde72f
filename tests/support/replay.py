"""Plays a recorded case with real settings and real hook processes: through our engine, a session or the command."""

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

from tests.support import warm_cli as warm
from tests.support.builders import script, write_settings
from tests.support.machines import Machine, ThisMachine, world_on
from tests.support.servers.anthropic import AnthropicServer
from tests.support.servers.http import Endpoint
from tests.support.servers.model import Json
from turngate.agent.model_loop import REFUSED
from turngate.agent.session import Session
from turngate.core.answers.judge import ACTION_INSTRUCTIONS, INSTRUCTIONS
from turngate.core.dialect import CLAUDE
from turngate.core.events.events import StopEvent, Subagent
from turngate.core.events.stream_events import OUTCOMES, TurnResult
from turngate.core.hooks.kinds import CallbackHook
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.loop_guard import ContinueTurn, EndedBy, EndTurn, new_guard
from turngate.engine import ask_hooks
from turngate.models.resolve import open_model
from turngate.ports import Model, World
from turngate.state.journal import Journal
from turngate.trust.load import load_settings

Case = Mapping[str, Any]

MODEL = "anthropic:claude-sonnet-5-5"
PROMPT = "say hi"


@dataclass(frozen=True)
class Stage:
    """The folders that a case is played in."""

    root: Path
    project: Path
    home: Path
    state: Path
    endpoint: Endpoint | None = None  # where http hooks are sent to: `{http}` in a case

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


def replay(case: Case, stage: Stage, agent: str = "main", machine: Machine | None = None) -> dict[str, Any]:
    """What the agent's turn looks like on a machine, in the form of `recorded`."""
    machine = machine or ThisMachine()
    _furnish(case, stage)
    app = App(case.get("answers", ()))
    started = time.monotonic()
    turn = machine.run(_play(case, stage, app, agent, machine))
    seconds = time.monotonic() - started
    return {
        "requests": turn.requests,
        "continuations": [_comparable(text, stage) for text in turn.continuations],
        "ended_by": turn.ended_by if agent == "main" else None,
        "in_time": _in_time(seconds, case),
        **_traces(case, stage, app),
    }


def replay_session(case: Case, stage: Stage, server: AnthropicServer, model: str = MODEL) -> dict[str, Any]:
    """What one turn of a whole session looks like, in the form of `recorded_session`.

    The model is asked through its real client, and what it was told is what reached the server.
    """
    _furnish(case, stage)
    app = App(case.get("answers", ()))
    result, seconds = asyncio.run(_converse(case, stage, app, open_model(model)))
    traces = _traces(case, stage, app)
    return {
        "requests": server.agents.count("main"),
        "asked_by_hooks": server.agents.count("hook"),
        "continuations": _heard_by_model(server, stage),
        "children": _children(server),
        "ended_by": result.ended_by,
        "answer": _comparable_answer(result.ended_by, _placed(result.result, stage)),
        "in_time": _in_time(seconds, case),
        **traces,
        "first_stdin": _told_here(traces["first_stdin"], case),
    }


def replay_command(case: Case, stage: Stage, server: AnthropicServer) -> dict[str, Any]:
    """What `turngate run -p` does and prints, in the form of `recorded_command`."""
    _furnish(case, stage)
    command = ["run", "-p", PROMPT, "--dialect", "claude", "--model", MODEL]
    options = [*_options(case), "--trust", "--output-format", "json"]
    done = warm.run([*command, *options], cwd=stage.project)
    assert done.stdout, done.stderr
    printed = json.loads(done.stdout)
    traces = _traces(case, stage, App(()))
    return {
        "exit_code": done.returncode,
        "stderr": _unreported(done.stderr),
        **{key: printed[key] for key in ("outcome", "ended_by", "continuations", "model_requests")},
        "answer": _comparable_answer(printed["ended_by"], _placed(printed["result"], stage)),
        "requests": server.agents.count("main"),
        "heard": _heard_by_model(server, stage),
        "children": _children(server),
        "hook_runs": traces["hook_runs"],
        "stop_hook_active": traces["stop_hook_active"],
    }


def _unreported(stderr: str) -> str:
    """Leave out what we report and the program only writes to a log: hooks that were not enforced, and hints."""
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if "NOT enforced" not in line and not line.startswith("  → "))


def recorded(case: Case, agent: str = "main") -> dict[str, Any]:
    """What the agent's turn looked like in the real program."""
    expect = case["expect"]
    requests = expect["model_requests"]
    continuations = [
        _SAVED.sub(r"\1<FILE>", message["text"])
        for continuation in expect["continuations"]
        for message in continuation["messages"]
        if not _is_about_a_tool(message["text"])
    ]
    return {
        "requests": requests.get(agent, requests.get("all")),
        "hook_runs": expect["hook_runs"],
        "stop_hook_active": expect["stop_hook_active"],
        "continuations": continuations,
        "ended_by": _recorded_end(expect) if agent == "main" else None,
        "first_stdin": list(_recorded_input(case).items()),
        "left": LEFT.get(case["name"], []),
        "in_time": True,
        **PART_OF_THE_HOOK.get(case["name"], {}),
    }


def recorded_session(case: Case) -> dict[str, Any]:
    """The same with the last answer, which we keep where the program loses it."""
    told = _told_here(list(_recorded_input(case).items()), case)
    children = _recorded_children(case)
    ours = AFTER_AN_ERROR.get(case["name"], {})
    asked = case["expect"]["model_requests"].get("hook", 0)
    turn = {**recorded(case), "asked_by_hooks": asked, "first_stdin": told, "children": children, **ours}
    return {**turn, "answer": _comparable_answer(turn["ended_by"], _last_answer(case, turn["requests"]))}


def recorded_command(case: Case) -> dict[str, Any]:
    """What the command should do and print, if it goes as it went in the real program; the exit codes are ours."""
    turn = recorded_session(case)
    outcome = OUTCOMES[turn["ended_by"]]
    return {
        "exit_code": {"completed": 0, "capped": 10, "halted": 11, "error": 20}[outcome],
        "stderr": "",
        "outcome": outcome,
        "ended_by": turn["ended_by"],
        "continuations": sum(each["agent"] != "sub" for each in case["expect"]["continuations"]),
        "model_requests": turn["requests"],
        "answer": turn["answer"],
        "requests": turn["requests"],
        "heard": turn["continuations"],
        "children": turn["children"],
        "hook_runs": turn["hook_runs"],
        "stop_hook_active": turn["stop_hook_active"],
    }


def model_script(case: Case, stage: Stage) -> dict[str, Any] | None:
    """The replies of the case's model, with the project's path in them."""
    script = json.dumps(case.get("model_script")).replace("{proj}", str(stage.project))
    replies: dict[str, Any] | None = json.loads(script)
    return replies


def as_child(case: Case) -> Case:
    """The same case one floor lower: what the main agent did and heard is a child's, under SubagentStop hooks."""
    expect = case["expect"]
    lower = json.loads(json.dumps(dict(case)).replace('\\"Stop\\"', '\\"SubagentStop\\"'))
    told = _recorded_input(case)
    path = "/<SESSION>/subagents/agent-a0123456789abcdef.jsonl"
    child = {"agent_id": "a0123456789abcdef", "agent_type": "general-purpose"}
    known = {**told, **child, "hook_event_name": "SubagentStop", "agent_transcript_path": path}
    order = [*CHILD_ORDER, *(key for key in known if key not in CHILD_ORDER)]
    texts = [[message["text"] for message in each["messages"]] for each in expect["continuations"]]
    return {
        **lower,
        "settings": {"project": {"hooks": {"SubagentStop": case["settings"]["project"]["hooks"]["Stop"]}}},
        "model_script": {"main": [DELEGATION, "parent answer {n}"], "sub": _replies(case, "main")},
        "args": ["--allowedTools", "Task", "Agent", "Bash"],
        "expect": {
            **expect,
            "model_requests": {"main": 2, "sub": expect["model_requests"]["main"]},
            "continuations": [
                {"agent": "sub", "messages": [{"role": "user", "text": _lower(text)} for text in each]}
                for each in texts
            ],
            "results": [{"result": "parent answer 2", "terminal_reason": "completed"}],
            **({"first_stdin": {key: known[key] for key in order if key in known}} if told else {}),
        },
    }


DELEGATION = {
    "tool": "Agent",
    "input": {
        "prompt": "SUBAGENT-PROMPT: do the small job",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    },
}

CHILD_ORDER = (
    "session_id",
    "transcript_path",
    "cwd",
    "prompt_id",
    "permission_mode",
    "agent_id",
    "agent_type",
    "effort",
    "hook_event_name",
    "stop_hook_active",
    "agent_transcript_path",
)


def _lower(text: str) -> str:
    """facts of the program: "the note and the context use the event name", and the heading does not."""
    return text.replace("\nStop hook additional context:", "\nSubagentStop hook additional context:")


def _is_about_a_tool(text: str) -> bool:
    """A tool's result and what PostToolUse hooks say about it: not what sends an agent on, and in other words here."""
    return text.startswith(("[tool_result] ", "PostToolUse:"))


def _recorded_end(expect: Mapping[str, Any]) -> EndedBy:
    """The program has no word for its cap, but it then loses the answer that it asked for (measured)."""
    result = expect["results"][0]
    match result.get("terminal_reason"):
        case "stop_hook_prevented" | "hook_stopped" | None:  # None: a hook blocked the prompt
            return "halted"
        case "max_turns":
            return "max_turns"
        case "api_error":
            return "error"
        case "completed":
            return "capped" if expect["continuations"] and not result["result"] else "allowed"
        case other:
            raise AssertionError(other)


def _last_answer(case: Case, requests: int) -> str:
    """The program's result, or what the model said last where the program gives none or counts other requests."""
    said: str | None = case["expect"]["results"][0]["result"]
    if case["name"] in PART_OF_THE_HOOK:
        said = None
    return said or "".join(_texts(_nth(_replies(case, "main"), requests), requests))


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
    if stage.endpoint:
        names["{http}"] = stage.endpoint.url
    for name, body in case.get("hook_scripts", {}).items():
        _write_script(name, PACE.get(case["name"], "") + _filled(body, names), stage)
    for name, text in case.get("files", {}).items():
        (stage.project / name).write_text(_filled(text, names))
    for level, content in case.get("settings", {}).items():
        text = content if isinstance(content, str) else json.dumps(content)
        if case["name"] in LONGER_TIMEOUTS:
            text = text.replace('"timeout": 1}', f'"timeout": {LONGER_TIMEOUTS[case["name"]]}}}')
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
    lines = [
        "#!/bin/bash",
        f"N=1; IN='{stage.root}/{name}.in.'; set -C",  # a file is made by one run only, also by two at once
        'until { : > "$IN$N"; } 2>/dev/null; do N=$((N + 1)); done',
        "set +C; IN=$IN$N; export N IN",
        f"""echo "$IN" >> '{stage.log}'""",
        "" if "#noread" in body else 'cat > "$IN"',
        "trap '' TERM" if "#ignoreterm" in body else "",
        body,
    ]
    script(_script_path(name, stage), "\n".join(lines) + "\n")


# The play


async def _play(case: Case, stage: Stage, app: App, agent: str, machine: Machine) -> Turn:
    journal = Journal(str(stage.state))
    world = world_on(machine, stage.project, journal)
    try:
        turn = await _turn(case, stage, app, agent, world)
        await _background_starts(world, stage)
        return turn
    finally:
        await world.close(0)
        journal.close()


async def _converse(case: Case, stage: Stage, app: App, model: Model) -> tuple[TurnResult, float]:
    """One turn of a session, and how many seconds it took."""
    limit, allowed = _limits(case)
    session = Session(
        str(stage.project),
        model,
        _settings(case, stage, app),
        dialect="claude",
        session_id="<SESSION>",
        state=str(stage.state),
        max_turns=limit,
        allow=allowed,
        retries=(0.01, 0.01),
    )
    try:
        async with session:
            started = time.monotonic()
            result = await session.send(PROMPT)
            seconds = time.monotonic() - started
            await _background_starts(session._agent.resources.world, stage)
        return result, seconds
    finally:
        await model.close()


async def _background_starts(world: World, stage: Stage) -> None:
    """A hook in the background is ended with the session; it has yet to start."""
    while world.background and not stage.log.read_text():
        await asyncio.sleep(0.01)


def _limits(case: Case) -> tuple[int | None, list[str]]:
    """How often the model may be asked, and which tools need no permission."""
    match case.get("args", ()):
        case ["--max-turns", number]:
            return int(number), []
        case ["--allowedTools", *tools]:
            return None, tools
        case ["--permission-mode", "default"]:
            return None, []
        case none:
            assert not none
            return None, []


def _options(case: Case) -> list[str]:
    """The same for our command."""
    limit, allowed = _limits(case)
    options = [] if limit is None else ["--max-turns", str(limit)]
    return options + [word for tool in allowed for word in ("--allow", tool)]


async def _turn(case: Case, stage: Stage, app: App, agent: str, world: World) -> Turn:
    """The loop of an agent, as small as it can be."""
    replies = _replies(case, agent)
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
            case EndTurn(ended_by):
                return Turn(requests, tuple(continuations), ended_by)
            case ContinueTurn(prompt, guard):
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


def _replies(case: Case, agent: str) -> Sequence[Any]:
    replies: Sequence[Any] = case.get("model_script", {}).get(agent, ["answer {n}"])
    return replies


def _nth(values: Sequence[Any], number: int) -> Any:
    """Counting from 1; the last one is repeated."""
    return values[min(number, len(values)) - 1]


def _texts(reply: Any, number: int) -> tuple[str, ...]:
    texts = [reply] if isinstance(reply, str) else reply.get("texts") or [reply.get("text", "")]
    return tuple(text.replace("{n}", str(number)) for text in texts)


def _child(case: Case, stage: Stage) -> Subagent:
    name = _recorded_input(case).get("agent_id", "a1")
    path = f"{stage.home}/.claude/projects/<PROJ>/<SESSION>/subagents/agent-{name}.jsonl"
    return Subagent(id=name, type="general-purpose", transcript_path=path)


# What is compared


def _traces(case: Case, stage: Stage, app: App) -> dict[str, Any]:
    """What the hooks have seen, and what they left."""
    inputs = _inputs(stage)
    return {
        "hook_runs": len(inputs) + app.asked + (len(stage.endpoint.paths) if stage.endpoint else 0),
        "stop_hook_active": _active(inputs, case),
        "first_stdin": _as_recorded(_told(inputs[0]), case, stage) if inputs else [],
        "left": sorted(os.listdir(stage.notes)),
    }


def who_asks(body: Json) -> str:
    """The recorded tasks of children and of agent hooks are marked, and a judge has instructions of its own."""
    first = json.dumps(body["messages"][0])
    instructions = body.get("system", [{}])[0].get("text")
    if "AGENT-HOOK-TEXT" in first or instructions in (INSTRUCTIONS, ACTION_INSTRUCTIONS):
        return "hook"
    return "sub" if "SUBAGENT-PROMPT" in first else "main"


def _heard_by_model(server: AnthropicServer, stage: Stage) -> list[str]:
    """Of each request the words after the last answer: what sent an agent on, except a child's report, and what the
    dialect says after a refusal, which is in other words here."""
    asked = zip(server.requests, server.agents, strict=True)
    said = (text for body, agent in asked if agent != "hook" for text in _said_since(body))
    return [_comparable(text, stage) for text in said if not text.startswith((REPORT, REFUSED))]


REPORT = "[Subagent result] "


def _children(server: AnthropicServer) -> dict[str, Any]:
    """What children asked of the model, and what reached their parent, as a tool's result or as a message."""
    if "sub" not in server.agents:
        return {"requests": 0, "handed": [], "reported": []}
    last = [body for body, agent in zip(server.requests, server.agents, strict=True) if agent == "main"][-1]
    blocks = [block for message in last["messages"] for block in message["content"]]
    answers = [_tool_text(block) for block in blocks if block["type"] == "tool_result"]
    reports = [block["text"] for block in blocks if block.get("text", "").startswith(REPORT)]
    return {
        "requests": server.agents.count("sub"),
        "handed": sorted(text for text in answers if not text.endswith(STARTED)),
        "reported": [text.rpartition("\n\n")[2] for text in reports],
    }


NO_ANSWER = "(the subagent gave no answer)"
STARTED = "its result arrives as a message."


def _tool_text(block: Json) -> str:
    content = block["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _recorded_children(case: Case) -> dict[str, Any]:
    """The parent gets the last answer of each child, and only it."""
    requests = case["expect"]["model_requests"].get("sub", 0)
    tools = [tool for reply in _replies(case, "main") if isinstance(reply, dict) for tool in _tools(reply)]
    waits = [tool.get("run_in_background") is False for tool in tools if "SUBAGENT" in tool.get("prompt", "")]
    last = range(requests - len(waits) + 1, requests + 1) if requests else ()
    answers = ["\n".join(_texts(_nth(_replies(case, "sub"), number), number)) or NO_ANSWER for number in last]
    handed = all(waits)
    return {
        "requests": requests,
        "handed": answers if handed else [],
        "reported": [] if handed else answers,
    }


def _tools(reply: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The inputs of the tools that a reply calls."""
    calls = [*reply.get("tools", ()), *([reply] if "tool" in reply else [])]
    return [call.get("input", {}) for call in calls]


def _said_since(body: Json) -> list[str]:
    """The user's messages after the last answer, if there is one; a tool's results are no words."""
    messages = body["messages"]
    answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    since = messages[answers[-1] + 1 :] if answers else []
    texts = ([block["text"] for block in each["content"] if block["type"] == "text"] for each in since)
    return ["\n\n".join(blocks) for blocks in texts if blocks]


def _comparable_answer(ended_by: EndedBy, answer: str) -> str | None:
    """After an error the program gives the error's text in its place."""
    return None if ended_by == "error" else folded(answer)


def _inputs(stage: Stage) -> list[str]:
    """What each run of a hook script read, in the order in which they started.

    SubagentStart comes first: a subagent in the background starts beside its parent's next request, and on a busy
    machine the hooks of the parent may overtake its hook.
    """
    files = [Path(line) for line in stage.log.read_text().splitlines()]
    inputs = [file.read_text() if file.exists() else "" for file in files]
    return sorted(inputs, key=lambda text: '"SubagentStart"' not in text)


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
    return [(key, _all_placed(value, stage)) for key, value in told.items() if key in known]


def _placed(text: str, stage: Stage) -> str:
    """With the recorder's names for our folders."""
    folders = {str(stage.project): "<PROJ>", str(stage.home): "<HOME>", str(stage.root): "<ROOT>"}
    return _filled(text, folders)


def _all_placed(value: Any, stage: Stage) -> Any:
    if isinstance(value, dict):
        return {key: _all_placed(each, stage) for key, each in value.items()}
    return _placed(value, stage) if isinstance(value, str) else value


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
    """Return True, or the time if a limit came too early."""
    return seconds >= MIN_SECONDS.get(case["name"], 0.0) or seconds


# What the record does not say in so many words

# The program ended these before they had read their input; ours may get further, which has no effect.
ENDED_AT_ONCE = frozenset({"async_true", "async_fast", "async_exit2"})

# What scripts leave in `{rec}`. `asyncdone` and `survived` are not among it: they were ended in time.
LEFT = {"project_dir_quoted": ["x"], "x_timeout_setsid_child": ["gc"]}

# Each script of a case waits until all three have started: hooks that run one after another fail after a while.
_MEET = """here=${0%/*}; : > "$here/met.$$"; n=0
until [ "$(ls "$here" | grep -c '^met')" -ge 3 ]; do n=$((n+1)); [ $n -lt 400 ] || exit 9; sleep 0.05; done
"""

# Whichever of two hooks ends first is told first; there the model was quicker than the command.
PACE = {"prompt_and_command": "sleep 1; ", "three_parallel": _MEET}

# A process must have set its trap for SIGTERM before the limit; a busy machine needs more than the recorded second.
LONGER_TIMEOUTS = {"x_timeout_setsid_child": 3}

# The time limits of these cases must not come too early. That they come at all is shown by the outcome: an upper
# bound would fail on a slow machine.
MIN_SECONDS = {
    "three_parallel": 1.0,
    "slow_ok": 2.0,
    "x_dup_timeout_first": 3.0,
    "timeout_plus_block": 2.0,
    "timeout_1": 1.0,
    "timeout_half": 0.5,
    "ignore_sigterm": 1.0,
    "x_timeout_setsid_child": 3.0,
    "cb_timeout": 1.0,
    "prompt_timeout": 1.0,
    "agent_timeout": 1.0,
    "sub_timeout": 1.0,
}

# 5 MB made the program compact its conversation: two requests of its own, whose instruction it joined to the
# hook's text. Here is the hook's part; the record gives its length with its own path and a newline between.
PART_OF_THE_HOOK: dict[str, dict[str, Any]] = {
    "huge_stderr_exit2": {
        "requests": 2,
        "continuations": [folded("Stop hook feedback:\n[<ROOT>/h_h.sh]: " + "y" * 5_000_000)],
    }
}

# What the program tells its hooks and a session does not: its transcript lies elsewhere, and it has no rules that a
# permission could add to.
NOT_TOLD = frozenset({"transcript_path", "permission_suggestions"})

# Different each time.
UNIQUE = {"tool_use_id": "<TOOL_USE>", "duration_ms": "<MS>"}
UUID = re.compile(r"<UUID\d>|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# Of two children that start at once either may ask the model first.
EITHER_FIRST = frozenset({"sub_two_parallel"})


def _told_here(told: list[tuple[str, Any]], case: Case) -> list[tuple[str, Any]]:
    """What can be compared of an input; a child has a name of its own each time, and its transcript is called so."""
    known = dict(told)
    child = known.get("agent_id", "")
    own = {**UNIQUE, **({"agent_id": "<AGENT>"} if re.fullmatch(r"a[0-9a-f]{16}", child) else {})}
    if UUID.fullmatch(known.get("prompt_id", "")):
        own["prompt_id"] = "<UUID>"
    path = known.get("agent_transcript_path", "").replace("/agent-", "/")
    if path.endswith(f"/subagents/{child}.jsonl"):
        own["agent_transcript_path"] = "subagents/<AGENT>.jsonl"
    if case["name"] in EITHER_FIRST:
        own["agent_type"] = {"general-purpose": "either", "Explore": "either"}[known["agent_type"]]
        own["last_assistant_message"] = known["last_assistant_message"].rstrip("12")
    return [(key, own.get(key, value)) for key, value in told if key not in NOT_TOLD]


# After an error of the provider's the numbers of requests need not agree: the program asks six times. Here a
# terminal error ends the turn at once, and StopFailure hooks are told about it in our words.
_TOLD_OF_ERROR = [
    ("hook_event_name", "StopFailure"),
    ("error", "invalid"),
    ("last_assistant_message", "anthropic answered 400: scripted 400"),
]
AFTER_AN_ERROR: dict[str, dict[str, Any]] = {
    "api_error_400": {
        "requests": 1,
        "first_stdin": [
            ("session_id", "<SESSION>"),
            ("cwd", "<PROJ>"),
            ("prompt_id", "<UUID>"),
            ("effort", {"level": "medium"}),
            *_TOLD_OF_ERROR,
        ],
    },
    "sub_api_error_400": {
        "children": {
            "requests": 1,
            "handed": [
                "The subagent failed (error): the model failed (invalid): anthropic answered 400: scripted 400"
            ],
            "reported": [],
        },
        "first_stdin": [
            ("session_id", "<SESSION>"),
            ("cwd", "<PROJ>"),
            ("prompt_id", "<UUID>"),
            ("agent_id", "<AGENT>"),
            ("agent_type", "general-purpose"),
            *_TOLD_OF_ERROR,
        ],
    },
}
