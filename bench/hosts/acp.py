"""`make hosts`, second part: real agents behind `turngate acp`, with an editor in lines and their models on loopback.

It writes docs/reference/acp-results.md, and exits with 1 if anything differs from what is expected.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.acp.line_editor import Editor, started

from bench.hosts import claude, codex
from bench.hosts.claude import CLAUDE
from bench.hosts.codex import CODEX
from bench.hosts.gemini import GEMINI, MODEL
from bench.hosts.models import serve_anthropic, serve_responses
from bench.hosts.npm import CannotInstall, install, installed_version, require_npm
from bench.hosts.opencode import OPENCODE
from bench.hosts.play import turngate
from bench.hosts.program import PROMPT, Json, Program, Script
from bench.hosts.room import INTERRUPTED_S, Room, base_environment, content_of, open_room, processes_of
from bench.hosts.scenarios import (
    ALWAYS_FAILS,
    NEEDS_WORK,
    NEVER_ENDS,
    PASSES,
    REASON,
    SLEEPS_S,
    install_recorder,
    work,
)

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "reference" / "acp-results.md"
EXIT_CANNOT_RUN = 64
CANCEL_LIMIT_S = 0.1


def without_suggestions(body: Json) -> str:
    """Claude Code's SDK also asks for what the user may say next."""
    return "other" if "ONLY the suggestion" in str(body["messages"][-1]) else claude.who(body)


AGENTS: tuple[Program, ...] = (
    replace(
        CLAUDE,
        title="claude-agent-acp",
        package="@agentclientprotocol/claude-agent-acp",
        version="0.99.1",
        command="claude-agent-acp",
        serve=lambda script: serve_anthropic(script, without_suggestions),
        arguments=lambda _prompt: [],
    ),
    replace(
        CODEX,
        title="codex-acp",
        package="@agentclientprotocol/codex-acp",
        version="2.6.0",
        command="codex-acp",
        serve=lambda script: serve_responses(script, lambda body: codex.who({"tools": [], **body})),
        arguments=lambda _prompt: [],
    ),
    replace(GEMINI, title="gemini --acp", arguments=lambda _prompt: ["--acp", "--model", MODEL]),
    replace(OPENCODE, title="opencode acp", arguments=lambda _prompt: ["acp"]),
)


@dataclass(frozen=True, kw_only=True)
class AcpScenario:
    name: str
    shows: str
    gate: str
    script: Callable[[Program], Script]
    expected: Mapping[str, Any]
    is_cancelled: bool = False  # while the gate runs; then another prompt
    own_line: bool = False  # `turngate install` has added the line to the settings of the agent itself
    applies: Callable[[Program], bool] = field(default=lambda _program: True)


SCENARIOS = (
    AcpScenario(
        name="a gate that fails once",
        shows="the agent is sent back once, does the work, and stops",
        gate=NEEDS_WORK,
        script=lambda program: {"main": ["I am done.", work(program), "Now I am done."]},
        expected={
            "requests": 3,
            "sent_back": 1,
            "stop": "end_turn",
            "outcome": "allowed",
            "continuations": 1,
        },
    ),
    AcpScenario(
        name="a gate that always fails, with work in between",
        shows="the turn ends after 3 continuations, and a card says so",
        gate=ALWAYS_FAILS,
        script=lambda program: {"main": ["I am done.", *([work(program), "Still done."] * 20)]},
        expected={
            "requests": 7,
            "sent_back": 3,
            "stop": "end_turn",
            "outcome": "capped",
            "continuations": 3,
            "card": "Turngate: still blocked at the limit of continuations",
        },
    ),
    AcpScenario(
        name="a gate that passes",
        shows="the agent stops, without a further request",
        gate=PASSES,
        script=lambda _program: {"main": ["I am done."]},
        expected={
            "requests": 1,
            "sent_back": 0,
            "stop": "end_turn",
            "outcome": "allowed",
            "continuations": 0,
        },
    ),
    AcpScenario(
        name="cancelled while the gate runs",
        shows=f"the editor has its answer within {CANCEL_LIMIT_S * 1000:.0f} ms, and no process of the gate is left",
        gate=NEVER_ENDS,
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "stop": "cancelled", "in_time": True, "left": []},
        is_cancelled=True,
    ),
    AcpScenario(
        name="a gate that always fails, with the agent's own line",
        shows="the agent is sent back 3 times in all",
        gate=ALWAYS_FAILS,
        script=lambda program: {"main": ["I am done.", *([work(program), "Still done."] * 20)]},
        expected={"requests": 7, "sent_back": 3, "stop": "end_turn"},
        own_line=True,
        applies=lambda program: program.name != "opencode",
    ),
)


def play(program: Program, binary: Path, scenario: AcpScenario) -> dict[str, Any]:
    with open_room() as room, program.serve(scenario.script(program)) as model:
        environment = {**base_environment(room, binary.parent), **program.environment(room, model)}
        program.write_settings(room, model)
        install_recorder(room)
        hook = {"type": "command", "command": scenario.gate, "timeout": 300}
        room.write("project/.turngate/settings.json", {"hooks": {"Stop": [{"hooks": [hook]}]}})
        turngate(["turngate", "hooks", "approve", "--all", "--yes"], room, environment)
        if scenario.own_line:
            turngate([str(room.user_program), "install", program.name, "--user", "--yes"], room, environment)
        words = ["turngate", "acp", "--", str(binary), *program.arguments(PROMPT)]
        with started(words, env=environment, cwd=room.project, reply=permit) as editor:
            seen = drive(editor, room, scenario)
            seen["stderr"] = editor.errors
        bodies = [body for who, body in zip(model.agents, model.requests, strict=True) if who == "main"]
        heard = program.heard(bodies[-1]) if bodies else []
        seen["requests"] = len(bodies)
        seen["sent_back"] = sum(REASON in text for text in heard)
        return seen


def drive(editor: Editor, room: Room, scenario: AcpScenario) -> dict[str, Any]:
    capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    editor.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
    opened = editor.request("session/new", {"cwd": str(room.project), "mcpServers": []})
    if "result" not in opened:
        return {"stop": str(opened)}
    session = opened["result"]["sessionId"]
    prompt = editor.start_prompt(session, PROMPT)
    seen: dict[str, Any] = {}
    if scenario.is_cancelled:
        while not (room.home / "gate-started").exists() and not editor.is_at_end:
            time.sleep(0.05)
        start = time.monotonic()
        editor.send({"method": "session/cancel", "params": {"sessionId": session}})
        answer = editor.answer_to(prompt)
        seen["ms"] = round((editor.times[editor.messages.index(answer)] - start) * 1000)
        seen["in_time"] = seen["ms"] <= CANCEL_LIMIT_S * 1000
        time.sleep(INTERRUPTED_S)
        lines = (content_of(each / "cmdline").decode().replace("\0", " ") for each in processes_of(room))
        seen["left"] = [words for words in lines if {"hook", SLEEPS_S} & {*words.split()}]
    answer = editor.answer_to(prompt)
    result = answer.get("result", {"stopReason": str(answer)})
    verdict = (result.get("_meta") or {}).get("turngate", {})
    cards = editor.cards()
    return {**seen, **verdict, "stop": result["stopReason"], "card": cards[-1][1] if cards else None}


def permit(request: Json) -> Json | None:
    if request["method"] != "session/request_permission":
        return None
    options = request["params"]["options"]
    allowed = [option["optionId"] for option in options if option["kind"].startswith("allow")]
    return {"outcome": {"outcome": "selected", "optionId": allowed[0]}}


HEAD = """\
# Results of `turngate acp`

Written by `make hosts`. The agents are installed from npm and run behind `turngate acp` with an empty home folder; a script plays the editor,
and a local one their model. *Requests* are those of the agent to its model.

"""


def page(
    versions: Mapping[str, str], seen: Mapping[str, Sequence[tuple[AcpScenario, Mapping[str, Any]]]]
) -> str:
    rows = [f"| {scenario.name} | {scenario.shows} |\n" for scenario in SCENARIOS]
    parts = [HEAD, "| scenario | what has to happen |\n|---|---|\n", *rows]
    for title, results in seen.items():
        day = time.strftime("%Y-%m-%d", time.gmtime())
        parts.append(
            f"\n## {title} {versions[title]} ({day})\n\n| scenario | result | seen |\n|---|---|---|\n"
        )
        parts += [
            f"| {each.name} | {result(each, found)} | {described(found)} |\n" for each, found in results
        ]
    return "".join(parts)


def result(scenario: AcpScenario, seen: Mapping[str, Any]) -> str:
    return "pass" if {key: seen.get(key) for key in scenario.expected} == scenario.expected else "FAIL"


def described(seen: Mapping[str, Any]) -> str:
    words = {
        "requests": "{} requests",
        "sent_back": "sent back {} times",
        "stop": "stop reason `{}`",
        "outcome": "outcome `{}`",
        "ms": "answered after {} ms",
        "left": "processes that are left: {}",
    }
    texts = [text.format(seen[key]) for key, text in words.items() if key in seen]
    if "itself in" in seen["stderr"]:
        texts.append("left to the agent's own line")
    shown = ", ".join(texts).replace("[]", "none")
    return re.sub(r"\b1 (request|time)s\b", r"1 \1", shown)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hosts.acp", description=__doc__)
    parser.add_argument(
        "--only", metavar="TITLE", default="", help="only agents with this text in their title"
    )
    parser.add_argument(
        "--scenario", metavar="TEXT", default="", help="only scenarios with this text in their name"
    )
    options = parser.parse_args()
    try:
        require_npm()
        folder = ROOT / ".hosts"
        agents = [each for each in AGENTS if options.only in each.title]
        binaries = {each.title: install(each, folder) for each in agents}
    except CannotInstall as error:
        print(f"make hosts: {error}", file=sys.stderr)
        return EXIT_CANNOT_RUN
    seen: dict[str, list[tuple[AcpScenario, Mapping[str, Any]]]] = {}
    for agent in agents:
        for scenario in SCENARIOS:
            if scenario.applies(agent) and options.scenario in scenario.name:
                found = play(agent, binaries[agent.title], scenario)
                seen.setdefault(agent.title, []).append((scenario, found))
                verdict = result(scenario, found)
                print(f"{verdict}  {agent.title}: {scenario.name} ({described(found)})", flush=True)
                if verdict == "FAIL":
                    print(f"expected {scenario.expected}; seen {found}", flush=True)
    if not options.only and not options.scenario:
        versions = {each.title: installed_version(each, folder) or "" for each in agents}
        RESULTS.write_text(page(versions, seen))
        print(f"wrote {RESULTS.relative_to(ROOT)}")
    return 1 if any(result(*each) == "FAIL" for results in seen.values() for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
