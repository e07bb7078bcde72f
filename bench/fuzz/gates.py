"""`turngate gate` with words, stdin and stored states of any content: it never blocks by accident.

An accidental block holds an agent forever, because it cannot do anything about it.
"""

import json
import os
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from bench.fuzz.commands import MAX_CPU_S, Ended, forget_sessions, project, run_here, run_process
from bench.fuzz.files import write
from bench.fuzz.target import Target
from bench.fuzz.values import damaged, dumps, json_value, some, text
from turngate.gates.library import GATES

# Observers may start programs that an option names.
NAMES = [name for name, gate in GATES.items() if not gate.is_observer]
OPTIONS = sorted({f"--{option.name}" for name in NAMES for option in GATES[name].options})
COMMON = [
    "--strict",
    "--timeout",
    "5",
    "--exit-code",
    "--project",
    ".",
    "no/such",
    "--help",
    "nan",
    "-1",
    "1e999",
    "--odd=1",
]
EVENTS = ["Stop", "SubagentStop", "SessionStart", "SubagentStart", "PostToolUse", "", "stop", None, 1]
FIELDS = [
    *(
        "session_id",
        "transcript_path",
        "cwd",
        "agent_id",
        "agent_type",
        "stop_hook_active",
        "background_tasks",
    ),
    *("last_assistant_message", "session_crons", "permission_mode", "effort", "hook_event_name"),
]


class GateInput(NamedTuple):
    words: list[str]
    stdin: bytes
    state: bytes  # the content of every stored state


PASSING = (["true"], ["true", "x"], ["exit 0"], ["no-such-program"])


def make_call(random: Random) -> GateInput:
    """Return a call whose command, if there is one, passes: then nothing but a gate of its own may block."""
    words = _usual_words(random) if random.random() < 0.6 else _any_words(random)
    return GateInput(words, _stdin(random), damaged(random, dumps(random, _state(random)), 0.3))


def _usual_words(random: Random) -> list[str]:
    """Return words that the gate takes, most often with values that make no sense."""
    gate = GATES[random.choice(["command", *NAMES])]
    words = [gate.name]
    for option in gate.options:
        if option.required or random.random() < 0.3:
            value = {"flag": [], "number": [str(random.choice([0, 1, 2.5, 10**8]))]}.get(
                option.kind, [_word(random)]
            )
            words += [f"--{option.name}", *value]
    words += [flag for flag in ("--strict", "--exit-code") if random.random() < 0.2]
    if gate.operands:
        words[1:1] = [_word(random) for _ in range(random.randint(1, 2))]
    if gate.command == "required" or (gate.command == "optional" and random.random() < 0.7):
        words += ["--", *random.choice(PASSING)]
    return words


def _word(random: Random) -> str:
    return "w" + text(random).replace("\0", "")


def _any_words(random: Random) -> list[str]:
    count = random.randint(0, 4)
    words = [random.choice([*OPTIONS, *COMMON, text(random).replace("\0", "")]) for _ in range(count)]
    if random.random() < 0.7:
        words.insert(0, random.choice(NAMES))
    return [*words, "--", *random.choice([*PASSING, [], [""]])] if random.random() < 0.5 else words


def _stdin(random: Random) -> bytes:
    fields = {
        "session_id": "s",
        "cwd": project(),
        "hook_event_name": some(random, "Stop", 0.4, words=EVENTS),
        "background_tasks": some(random, [], 0.2),
    }
    for _ in range(random.randint(0, 3)):
        fields[random.choice(FIELDS)] = json_value(random)
    return random.choice(
        [b"", damaged(random, dumps(random, fields), 0.2), dumps(random, json_value(random))]
    )


def _state(random: Random) -> object:
    names = [
        "version",
        "fingerprint",
        "result",
        "activity",
        "start",
        "data",
        "outcome",
        "reason",
        "note",
        "baseline",
    ]
    return {
        "version": 1,
        **{random.choice(names): json_value(random, names) for _ in range(random.randint(0, 5))},
    }


def check_call(value: GateInput) -> None:
    _check_with(run_here, value)


def check_process(value: GateInput) -> None:
    """A new process has not loaded `json`, nor anything else that an earlier input needed."""
    _check_with(run_process, value)


def _check_with(run: Callable[[list[str], bytes], Ended], value: GateInput) -> None:
    forget_sessions()
    argv = ["gate", *value.words]
    _assert_no_accident(value, run(argv, value.stdin))
    _replace_states(value.state)
    _assert_no_accident(value, run(argv, value.stdin))


def _replace_states(data: bytes) -> None:
    folder = os.path.join(os.path.dirname(project()), "state", "gates")
    for parent, _, names in os.walk(folder):
        for name in names:
            write(os.path.relpath(os.path.join(parent, name), os.path.dirname(project())), data)


def _assert_no_accident(value: GateInput, ended: Ended) -> None:
    own = value.words[: value.words.index("--")] if "--" in value.words else value.words
    assert ended.code in ((0, 1, 2) if "--exit-code" in own else (0, 1)), (
        f"exit code {ended.code}: {ended.err[:300]}"
    )
    assert "internal error: " not in ended.err, ended.err[:600]
    assert ended.code == 0 or not ended.out.startswith("{"), f"exit code {ended.code} with JSON on stdout"
    name = own[0] if own and own[0] in GATES else "command"
    if name == "command" and "--strict" not in own:
        assert ended.code != 2, f"an accidental block: {ended.err[:300]}"
        assert not ended.out.startswith("{") or "decision" not in json.loads(ended.out), ended.out


TARGETS = (
    Target("gates", make_call, check_call, MAX_CPU_S),
    Target("gate-processes", make_call, check_process, MAX_CPU_S),
)
