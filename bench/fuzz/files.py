"""Files that others wrote: settings, transcripts, environment files and agent types."""

import atexit
import math
import os
import subprocess
import tempfile
from functools import cache
from random import Random
from typing import Any, NamedTuple

from bench.fuzz.target import Target
from bench.fuzz.values import damaged, dumps, json_value, some, text
from turngate.agent.env_file import MAX_BYTES, UnusableEnvFile, read_exports
from turngate.check.lint import lint
from turngate.core.constants import EVENTS, FAMILIES
from turngate.core.conversation.messages import Reply, ToolResults
from turngate.core.dialect import DIALECTS
from turngate.core.events.events import StopEvent, Subagent
from turngate.core.hooks.selection import plan
from turngate.project.files import LOCAL
from turngate.settings.agent_types import parse_hooks, read_agent_file
from turngate.transcript.digest import MAX_DIGEST_BYTES, conversation, digest, last_answer
from turngate.transcript.reader import read_last_assistant_message
from turngate.transcript.resume import read_conversation
from turngate.trust.load import load_settings

KEYS = [
    "matcher",
    "type",
    "command",
    "prompt",
    "url",
    "timeout",
    "id",
    "if",
    "async",
    "mode",
    "args",
    "env",
    "blocking",
]
MAX_PROBLEMS = 1_000  # of one small file
MAX_PROBLEM_CHARS = 5_000


@cache
def scratch_folder() -> str:
    """Return an empty folder of this process, removed at its end."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="turngate-fuzz-"))
    # Not `shutil.rmtree`, which cannot remove folders as deep as a tool may create them.
    atexit.register(subprocess.run, ["rm", "-rf", folder], check=False)
    return folder


def write(name: str, data: bytes) -> str:
    path = os.path.join(scratch_folder(), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


# Settings


class SettingsInput(NamedTuple):
    data: bytes
    dialect: str


def make_settings(random: Random) -> SettingsInput:
    hooks = {
        random.choice([*EVENTS, "Stop", "stop"]): some(random, _groups(random))
        for _ in range(random.randint(0, 2))
    }
    value = {"hooks": some(random, hooks)}
    for _ in range(random.randint(0, 2)):
        key = random.choice(
            ["turngate", "env", "disableAllHooks", "agents", "allowedHttpHookUrls", "$schema", text(random)]
        )
        value[key] = json_value(random)
    return SettingsInput(
        damaged(random, dumps(random, some(random, value, 0.05)), 0.2), random.choice([*DIALECTS])
    )


def _groups(random: Random) -> list[Any]:
    return [some(random, {"hooks": some(random, _hooks(random))}) for _ in range(random.choice([0, 1, 1, 2]))]


def _hooks(random: Random) -> list[Any]:
    kinds = [
        {"type": "command", "command": "make"},
        {"type": "prompt", "prompt": "ok?"},
        {"type": "http", "url": "https://a"},
    ]
    hooks = []
    for _ in range(random.choice([0, 1, 1, 2])):
        hook: dict[str, Any] = dict(random.choice(kinds))
        for _ in range(random.choice([0, 0, 1, 2])):
            hook[random.choice(KEYS)] = json_value(random, depth=1)
        hooks.append(some(random, hook))
    return hooks


def check_settings(value: SettingsInput) -> None:
    """A hook is loaded or reported; where `fire` decides that there is none, there is none."""
    family = FAMILIES[value.dialect][-1]
    for other in ("claude", "mux", "turngate"):
        write(f"project/.{other}/settings.json", value.data if other == family else b"{}")
    project, home = (os.path.join(scratch_folder(), name) for name in ("project", "home"))
    settings = load_settings(project, dialect=value.dialect, home=home)
    event = StopEvent(session_id="s", cwd=project)
    subagent = StopEvent(session_id="s", cwd=project, subagent=Subagent(id="a", type="Explore"))
    plan(settings, event)
    plan(settings, subagent)
    problems = (*settings.problems, *lint(settings, project))
    assert len(problems) <= MAX_PROBLEMS
    assert all(len(str(problem).encode()) <= MAX_PROBLEM_CHARS for problem in problems), "a long message"
    assert all(0 < settings.timeout_of(rule) < math.inf for rule in settings.rules), (
        "a timeout without a bound"
    )


# Transcripts

RECORD_NAMES = [
    "type",
    "message",
    "role",
    "content",
    "id",
    "name",
    "input",
    "tool_use_id",
    "text",
    "uuid",
    "key",
    "origin",
    "usage",
]
RECORD_WORDS = [
    "user",
    "assistant",
    "tool_use",
    "tool_result",
    "text",
    "system",
    "summary",
    "cleared",
    "turn_end",
    "t1",
    "t2",
]


def make_transcript(random: Random) -> bytes:
    lines = [
        damaged(random, dumps(random, _record(random)).replace(b"\n", b" "), 0.1)
        for _ in range(random.randint(0, 12))
    ]
    many = random.choice([1, 1, 1, 1, 100])
    return damaged(random, b"\n".join(lines * many), 0.2)


def _record(random: Random) -> Any:
    identity = random.choice(["t1", "t2", "t3"])
    use = {"type": "tool_use", "id": identity, "name": "Bash", "input": {"command": text(random)}}
    result = {"type": "tool_result", "tool_use_id": identity, "content": text(random), "is_error": True}
    content = [
        some(random, random.choice([use, use, result, {"type": "text", "text": text(random)}]), 0.1)
        for _ in range(3)
    ]
    role = random.choice(["user", "assistant"])
    message = {"role": role, "content": some(random, random.choice([content, text(random)]))}
    record = {
        "type": random.choice([role, *RECORD_WORDS]),
        "message": some(random, message, names=RECORD_NAMES),
    }
    record[random.choice(RECORD_NAMES)] = json_value(random, RECORD_NAMES, RECORD_WORDS, 1)
    return some(random, record, 0.1, names=RECORD_NAMES, words=RECORD_WORDS)


def check_transcript(data: bytes) -> None:
    """Each tool call has one result, right after its reply; what a judge sees is bounded."""
    path = write("transcript.jsonl", data)
    stored = read_conversation(path)
    messages = stored.messages
    for number, message in enumerate(messages):
        if isinstance(message, Reply) and message.tool_uses:
            results = messages[number + 1] if number + 1 < len(messages) else None
            assert isinstance(results, ToolResults), "a tool call without a result"
            ids = [result.tool_use_id for result in results.results]
            assert ids == [use.id for use in message.tool_uses], "results that do not belong to the calls"
        elif isinstance(message, ToolResults):
            before = messages[number - 1] if number else None
            assert isinstance(before, Reply), "results without a call"
    assert stored.continuations >= 0
    assert len(digest(path).encode()) <= MAX_DIGEST_BYTES, "the digest is too long"
    last_answer(path).encode()
    assert len(conversation(path, 5_000).encode()) <= 6_000, "the conversation is too long"
    (read_last_assistant_message(path) or "").encode("utf-8", "replace")


# Environment files


def make_env_file(random: Random) -> bytes:
    names = ["A", "B", "PATH", "1C", text(random)]
    values = ["1", "$A$A$B", "${B}", "'x y'", '"a\\"b"', "$", "`id`", "a\\", "'", text(random)]
    starts = ["export ", "export\t", "", "# "]
    lines = [
        f"{random.choice(starts)}{random.choice(names)}={random.choice(values)}"
        for _ in range(random.randint(0, 30))
    ]
    return damaged(random, "\n".join(lines).encode("utf-8", "replace"))


def check_env_file(data: bytes) -> None:
    path = write("env", data)
    try:
        exports = read_exports(path, {"A": "x" * 100, "PATH": "/bin"})
    except UnusableEnvFile:
        return
    assert sum(map(len, exports.values())) <= 2 * MAX_BYTES + len(data), "it expands without bound"
    for name, value in exports.items():
        assert name.isidentifier(), "not the name of a variable"
        assert "\0" not in value, "no process can be started with a NUL character in its environment"
        os.fsencode(value)


# Agent types


def make_agent_file(random: Random) -> bytes:
    lines = ["---"]
    for _ in range(random.randint(0, 20)):
        indent = " " * random.choice([0, 0, 0, 2, 4, 6])
        word = random.choice(
            ["name", "tools", "model", "hooks", "Stop", "PreToolUse", "- hooks", "- type", "type", "command"]
        )
        value = random.choice(
            ["", "x", "[a, b]", "command", "|", ">-", "{a: 1}", '"', "*", "Read, Bash", text(random)]
        )
        lines.append(
            random.choice([f"{indent}{word}: {value}", f"{indent}- {value}", f"{indent}{value}", ""])
        )
    lines += random.choice([["---"], ["---"], []])
    return damaged(random, "\n".join([*lines, "You review."]).encode("utf-8", "replace"), 0.2)


def check_agent_file(data: bytes) -> None:
    path = write("agents/reviewer.md", data)
    agent_type, problem = read_agent_file(path, LOCAL)
    assert agent_type is not None or problem, "an agent type disappears without a message"
    (problem or "").encode()
    if agent_type is not None:
        for dialect in DIALECTS.values():
            rules, problems = parse_hooks(agent_type, dialect)
            assert all(rule.event in EVENTS for rule in rules)
            assert all(len(str(each).encode()) <= MAX_PROBLEM_CHARS for each in problems)


def check_path(path: str) -> None:
    """An event names its transcript: any path is read, or there is nothing to read."""
    assert os.path.isfile(path) or (digest(path), last_answer(path), conversation(path, 1_000)) == (
        "",
        "",
        "",
    )
    assert os.path.isfile(path) or read_last_assistant_message(path) is None


def make_path(random: Random) -> str:
    parts = [
        "/proc/self/fd",
        "/dev/zero",
        "/dev/null",
        "..",
        "a" * 300,
        "a/" * 2000,
        "/proc/1/exe",
        "/",
        text(random),
    ]
    return "/".join(random.choices(parts, k=random.randint(1, 3)))


TARGETS = (
    Target("settings", make_settings, check_settings),
    Target("transcripts", make_transcript, check_transcript),
    Target("transcript-paths", make_path, check_path),
    Target("environment-files", make_env_file, check_env_file),
    Target("agent-types", make_agent_file, check_agent_file),
)
