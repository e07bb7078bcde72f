"""Records what a program gives its hooks, its transcript, and the variables of hooks and of commands of its agent.

What differs from run to run is left out.
"""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.hosts.play import record_files
from bench.hosts.program import PROMPT, TASK, Json, Program, Script
from bench.hosts.room import Room, base_environment, open_room, run
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host

REASON = "work.txt is missing"
# Blocks the first stop of the agent and of each subagent, and prints nothing for all other events.
HOOK = """\
#!{python} -I
import json, os, sys, time
given = sys.stdin.read()
name = "-".join(["{records}/" + str(time.time_ns()), str(os.getpid()), *sys.argv[1:]])
open(name, "w").write(given)
fields = json.loads(given)
event = fields.get("hook_event_name", "").lower()
mark = "{records}/" + event + ".asked"
if event == "stop" and "agent_id" in fields:  # Copilot CLI: of a subagent
    pass
elif event in ("stop", "subagentstop", "afteragent", "agentstop") and not os.path.exists(mark):
    open(mark, "w").close()
    print(json.dumps({{"decision": "block", "reason": "{reason}"}}))
"""
# The last form is that of OpenCode.
ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=(?:ses|msg)_)[0-9A-Za-z]{26}"
)
AGENT = re.compile(r"\ba[0-9a-f]{16}\b")
DATE = re.compile(r"\b20\d\d([-/])\d\d[-/]\d\d")
TIME = re.compile(r"T\d\d([:-])\d\d[:-]\d\d(?:\.\d+)?")
EPOCH = re.compile(r"(?<!\d)1[789]\d{8}(?:\d{3}|\.\d+)?(?!\d)")  # seconds, or milliseconds
SESSION = re.compile(r"T\d\d-\d\d-[0-9a-f]{8}\b")  # the end of a file name of Gemini CLI
HASH = re.compile(r"\b[0-9a-f]{64}\b")
PROCESS = re.compile(r"\bPGID: \d+")
UNNAMED = "camelcase-subagentStart"  # of Copilot CLI, whatever name its hook is configured with
OF_A_SHELL = ("_", "PWD", "OLDPWD", "SHLVL")
LONGEST = 200  # characters of a text in a transcript


def record(program: Program, binary: Path, folder: Path) -> list[Path]:
    """Write tests/hosts/recorded/NAME, and return the files."""
    with open_room() as room, program.serve(script(program)) as model:
        environment = {**base_environment(room, binary.parent), **program.environment(room, model)}
        program.write_settings(room, model)
        hook = room.bin / "hook"
        hook.write_text(HOOK.format(python=sys.executable, records=room.records, reason=REASON))
        hook.chmod(0o755)
        write_hooks(HOSTS[program.name], room, str(hook))
        program.write_other_hooks(room, str(hook))
        ended = run([str(binary), *program.arguments(PROMPT)], room, environment)
        if ended.code:
            print(f"{program.title}: exit code {ended.code}\n{ended.stdout}\n{ended.stderr}")
        texts = named(room)
        texts["variables.json"] = json.dumps(variables(program, binary), indent=2) + "\n"
        if transcript := program.transcript(room):
            texts["transcript.jsonl"] = shortened(transcript, program.keeps)
        return write(room, texts, folder / program.name)


def write_hooks(host: Host, room: Room, command: str) -> None:
    """Write a command line for each event that `turngate install` writes."""
    entries = {event: host.entry(f"sh -c {shlex.quote(command)}") for event in host.events.values()}
    hooks = {event: [entry] for event, entry in entries.items()}
    path = (
        f"project/{host.files['project']}"
        if "project" in host.files
        else host.files["user"].removeprefix("~/")
    )
    file = room.home / path
    before = file.read_text() if file.exists() else ""
    file_format = host.file_format
    room.write(path, file_format.add(before, entries) if file_format else {**host.new_file, "hooks": hooks})


def script(program: Program) -> Script:
    begin = [{"tools": [program.shell(TASK)]}, *program.subagent]
    return {"main": [*begin, "I am done.", "Now I am done."], "sub": ["Three files.", "Four files."]}


def variables(program: Program, binary: Path) -> Json:
    """Return the variables that the program adds, of its hooks and of a command of its agent; "session": with its id."""
    added: Json = {}
    with open_room() as room, program.serve(dump_script(program, room)) as model:
        environment = {**base_environment(room, binary.parent), **program.environment(room, model)}
        program.write_settings(room, model)
        write_hooks(HOSTS[program.name], room, f"cat > {room.records}/input; env -0 > {room.records}/hook")
        run([str(binary), *program.arguments(PROMPT)], room, environment)
        session = json.loads((room.records / "input").read_text())["session_id"]
        for process in ("hook", "command"):
            lines = (room.records / process).read_text().strip("\0").split("\0")
            values = dict(line.partition("=")[::2] for line in lines)
            names = sorted(name for name in values if name not in environment and name not in OF_A_SHELL)
            added[process] = {name: "session" if values[name] == session else "other" for name in names}
    return added


def dump_script(program: Program, room: Room) -> Script:
    return {"main": [{"tools": [program.shell(f"env -0 > {room.records}/command")]}, "I am done."]}


def named(room: Room) -> dict[str, str]:
    """Name the inputs after their events: Stop.json, Stop-2.json …"""
    texts: dict[str, str] = {}
    counts: dict[str, int] = {}
    for file in record_files(room):
        event = json.loads(file.read_text())
        name = event_name(event, file)
        counts[name] = counts.get(name, 0) + 1
        suffix = f"-{counts[name]}" if counts[name] > 1 else ""
        texts[f"{name}{suffix}.json"] = json.dumps(event, indent=2, ensure_ascii=False) + "\n"
    return texts


def event_name(event: Json, file: Path) -> str:
    """Return the name in the input, or else the one that the hook was started with."""
    name = event.get("hook_event_name") or "-".join(file.name.split("-")[2:]) or UNNAMED
    is_of_subagent = name.lower().endswith("stop") and "sub" not in name.lower()
    return f"{name}-of-subagent" if is_of_subagent and {"agent_id", "agentId"} & event.keys() else name


def write(room: Room, texts: Mapping[str, str], folder: Path) -> list[Path]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ids: dict[str, str] = {}
    for name, text in texts.items():
        (folder / name).write_text(without_run(room, text, ids))
    return [folder / name for name in texts]


def without_run(room: Room, text: str, ids: dict[str, str]) -> str:
    """Replace the folder of this run, its ids and its times."""
    root = str(room.root)
    for place in (root, re.sub(r"[^A-Za-z0-9]", "-", root)):  # Claude Code names folders so
        text = text.replace(place, "")
    text = ID.sub(lambda found: ids.setdefault(found[0], f"00000000-0000-4000-8000-{len(ids) + 1:012}"), text)
    text = AGENT.sub(lambda found: ids.setdefault(found[0], f"a{len(ids) + 1:016}"), text)
    text = TIME.sub(r"T00\g<1>00\g<1>00", DATE.sub(r"2026\g<1>01\g<1>01", text))
    text = PROCESS.sub("PGID: 1", HASH.sub("0" * 64, SESSION.sub("T00-00-00000000", text)))
    return EPOCH.sub("1767225600", text)


def shortened(transcript: str, keeps: Callable[[Json], bool]) -> str:
    """Return the lines of the conversation, without the long texts that a program gives its model."""
    lines = (json.loads(line) for line in transcript.splitlines())
    kept = (short(line) for line in lines if keeps(line))
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in kept)


def short(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= LONGEST else value[:20] + "…"
        case list():
            return [short(item) for item in value]
        case dict():
            return {key: short(item) for key, item in value.items()}
        case _:
            return value
