"""Plays one scenario on one program, and compares what was seen with what is expected."""

import json
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.hosts.program import Json, Model, Program
from bench.hosts.room import TIME_LIMIT_S, Ended, Room, base_environment, open_room, run
from bench.hosts.scenarios import GATE_TIMEOUT_S, SLEEPS_S, Scenario, install_recorder
from bench.hosts.terminal import squeezed, watch
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.input_fields import EVENT_NAMES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OUTPUT_SHOWN = 2000  # characters of each stream, of a run that failed


@dataclass(frozen=True)
class Row:
    program: str
    scenario: str
    expected: Mapping[str, Any]
    seen: Mapping[str, Any]
    output: str = ""

    @property
    def passed(self) -> bool:
        return self.compared == self.expected

    @property
    def compared(self) -> dict[str, Any]:
        """Return what was seen of what is expected."""
        return {key: self.seen.get(key) for key in self.expected}


def play(program: Program, binary: Path, scenario: Scenario) -> Row:
    with open_room() as room, program.serve(scenario.script(program)) as model:
        environment = {
            **base_environment(room, binary.parent),
            **program.environment(room, model),
            **scenario.environment,
        }
        program.write_settings(room, model)
        install_recorder(room)
        write_gates(room, scenario, environment)
        install_line(program, scenario, room, environment)
        scenario.prepare(room)
        ended = start(program, binary, scenario, room, environment)
        seen = look(program, scenario, room, model, ended)
        if scenario.doctor:
            said = run(["turngate", "doctor", "--host", program.name], room, environment).stdout
            seen["doctor"] = "reports it" if scenario.doctor in said else "does not report it"
    expected = {**scenario.expected, **program.expected.get(scenario.name, {})}
    if "outside" in seen:
        expected["outside"] = []
    if scenario.notice:
        expected.setdefault("notice", program.notice)
    streams = {"stdout": ended.stdout, "stderr": ended.stderr, "terminal": ended.displayed}
    output = "\n".join(f"{name}: {text[-OUTPUT_SHOWN:]}" for name, text in streams.items() if text)
    return Row(program.name, scenario.name, expected, seen, output)


def install_line(program: Program, scenario: Scenario, room: Room, environment: Mapping[str, str]) -> None:
    """Install Turngate at the level of the scenario. A line for the user has the path of Turngate, and not of what records."""
    host = HOSTS[program.name]
    level = scenario.level if scenario.level in host.files else "user"
    installer = str(room.user_program) if level == "user" else "turngate"
    turngate([installer, "install", program.name, f"--{level}", "--yes"], room, environment)
    if level != scenario.level:
        file = room.home / host.files["user"].removeprefix("~/")
        file.write_text(file.read_text().replace(str(room.user_program), "turngate"))


def start(
    program: Program, binary: Path, scenario: Scenario, room: Room, environment: Mapping[str, str]
) -> Ended:
    if scenario.in_terminal and program.terminal and scenario.notice:
        words = [str(binary), *program.terminal(scenario.prompts[0])]
        return Ended(None, "", "", watch(words, room, environment, scenario.notice, TIME_LIMIT_S))
    interrupt_at = room.home / "gate-started" if scenario.interrupted else None

    def run_program(words: Sequence[str]) -> Ended:
        folder = room.home / scenario.folder
        return run([str(binary), *words], room, environment, folder=folder, interrupt_at=interrupt_at)

    ended = run_program(scenario.arguments(program.arguments(scenario.prompts[0])))
    for prompt in scenario.prompts[1:]:
        if program.resume and ended.code == 0:
            before = ended
            ended = run_program(program.resume(prompt))
            ended = replace(ended, stdout=before.stdout + ended.stdout, stderr=before.stderr + ended.stderr)
    return ended


def write_gates(room: Room, scenario: Scenario, environment: Mapping[str, str]) -> None:
    if scenario.example:
        runpy.run_path(str(EXAMPLES / scenario.example / "install.py"))["install"](room.project)
    else:
        write_settings(room, scenario)
    if scenario.approved:
        turngate(["turngate", "hooks", "approve", "--all", "--yes"], room, environment)


def write_settings(room: Room, scenario: Scenario) -> None:
    for name, text in scenario.files.items():
        (room.project / name).write_text(text)
    hooks = {
        event: [
            {
                "hooks": [
                    {
                        **({"type": "command", "command": gate} if isinstance(gate, str) else gate),
                        "timeout": GATE_TIMEOUT_S,
                    }
                ]
            }
        ]
        for event, gate in scenario.gates.items()
    }
    room.write("project/.turngate/settings.json", {"hooks": hooks})


def turngate(words: Sequence[str], room: Room, environment: Mapping[str, str]) -> None:
    done = run(words, room, environment)
    if done.code:
        raise RuntimeError(f"exit code {done.code} of {' '.join(words)}: {done.stdout}{done.stderr}")


def look(program: Program, scenario: Scenario, room: Room, model: Model, ended: Ended) -> dict[str, Any]:
    """Return what was seen: in requests, in the inputs of hooks and in the output."""
    agent = "main" if {"Stop", "TaskCompleted"} & {*scenario.gates} else "sub"
    bodies = [body for who, body in zip(model.agents, model.requests, strict=True) if who == agent]
    asked = stops(program, scenario, room)
    heard = program.heard(bodies[-1]) if bodies else []
    seen: dict[str, Any] = {
        "code": ended.code,
        "requests": model.agents.count("main"),
        "subagent": model.agents.count("sub"),
        "stops": len(asked),
        "sent_back": sum(is_sent_back(text, scenario) for text in heard),
    }
    if scenario.not_in_reason:
        seen["not_in_reason"] = not any(scenario.not_in_reason in text for text in heard)
    if ended.left is not None:
        seen["left"] = [words for words in ended.left if {"hook", SLEEPS_S} & {*words.split()}]
    if kept := [json.loads(file.read_text()) for file in sorted(room.home.glob("hook-*"))]:
        seen["lost_fields"] = lost_fields(asked, kept)
    if outside := sorted({*room.tried} - {*program.tries}):
        seen["outside"] = outside
    if (refused := room.home / "refused").exists():
        seen["refused"] = sum("a command of the agent" in line for line in refused.read_text().splitlines())
    if room.own_hook_runs.exists():
        seen["own_hook"] = len(room.own_hook_runs.read_text().splitlines())
    if scenario.notice:
        seen["notice"] = place_of(scenario.notice, ended)
    return seen


def stops(program: Program, scenario: Scenario, room: Room) -> list[Json]:
    """Return the inputs of Turngate at the events that have gates."""
    names = [program.stop_event if event == "Stop" else event for event in scenario.gates]
    return [event for event in recorded(room) if event.get("hook_event_name") in names and is_asked(event)]


def is_asked(event: Json) -> bool:
    """Return whether the hooks are asked: not at the `Stop` of a subagent of Copilot CLI, only at its SubagentStop."""
    return not (event["hook_event_name"] == "Stop" and event.get("agent_id"))


def is_sent_back(text: str, scenario: Scenario) -> bool:
    """Return whether a message has the reason of the gate, without the heading of an agent of Turngate."""
    return scenario.reason in text and "requested continuation" not in text


def lost_fields(asked: Sequence[Json], kept: Sequence[Json]) -> list[str]:
    """Return the fields of the program that its hooks did not get as they were."""
    pairs = zip(map(corrected, asked), kept, strict=True)
    return sorted({key for given, got in pairs for key, value in given.items() if got.get(key) != value})


def corrected(event: Json) -> Json:
    """Return the input without what hooks get in another form.

    Gemini CLI has its own name of the event. Qwen Code may name the transcript of the main agent as that of a subagent.
    """
    fields = {**event, "hook_event_name": EVENT_NAMES[event["hook_event_name"]]}
    if fields.get("agent_transcript_path") == fields.get("transcript_path"):
        fields.pop("agent_transcript_path", None)
    return fields


def place_of(notice: str, ended: Ended) -> str:
    places = {"stdout": ended.stdout, "stderr": ended.stderr, "terminal": ended.displayed}
    found = (name for name, text in places.items() if notice in text or squeezed(notice) in text)
    return next(found, "nowhere")


def recorded(room: Room) -> list[Json]:
    """Return the inputs of hooks, in the order in which they came."""
    return [json.loads(file.read_text()) for file in record_files(room)]


def record_files(room: Room) -> list[Path]:
    return sorted(file for file in room.records.iterdir() if not file.suffix)
