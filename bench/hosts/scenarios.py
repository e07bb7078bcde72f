"""What is shown on each program: the gate, what the model says, and what is expected."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.hosts.program import PROMPT, SUBAGENT_PROMPT, TASK, Program, Reply, ReplyTo, Script
from bench.hosts.room import Room, base_environment, run
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.install.hook_command import NOT_CHECKED

REASON = "work.txt is missing"
SLEEPS_S = "4321"  # a word by which the processes of a gate are known
NEEDS_WORK = f"turngate gate -- sh -c 'test -e work.txt || {{ echo {REASON}; exit 1; }}'"
ALWAYS_FAILS = f"turngate gate -- sh -c 'echo {REASON}; exit 1'"
CHECKS = "sh check.sh"
CHECK_FILES = {"check.sh": "test ! -e fail\n"}
PASSES = "turngate gate -- true"
PROGRAM_MISSING = "turngate gate -- no-such-program"
BLOCKS_ONCE = (
    f'test -e ../asked || {{ touch ../asked; printf \'{{"decision":"block","reason":"{REASON}"}}\'; }}'
)
HALTS = """printf '{"continue":false,"stopReason":"the budget is used up"}'"""
TAKES_90_S = f"turngate gate -- sh -c 'test -e work.txt || {{ sleep 90; echo {REASON}; exit 1; }}'"  # in `GATE_TIMEOUT_S`
GATE_TIMEOUT_S = 300
NEVER_ENDS = f"touch ../gate-started; sleep {SLEEPS_S}"
# A project whose tests fail, and what the agent adds to it
TESTS = {"type": "gate", "gate": "tests", "command": "node --test"}
OLD_FAILURE, NEW_FAILURE = "broken long ago", "broken just now"
OLD_TEST = {"old.test.js": f'require("node:test")("old", () => {{ throw new Error("{OLD_FAILURE}") }})\n'}
ADD_FAILURE = f"sed 's/{OLD_FAILURE}/{NEW_FAILURE}/' old.test.js > new.test.js"
REPAIR = "sed 's/throw.*)/ })/' old.test.js > new.test.js"
# The work of examples/feature-workflow
PLAN_FILE = "docs/plans/text/PLAN.md"
WRITE_PLAN = f"mkdir -p docs/plans/text; printf '## Phase 1: Plan\\n- [x] Write the plan\\n## Phase 2: Work\\n- [ ] slugs\\n' > {PLAN_FILE}"
WRITE_SLUG = "printf 'def slug(text):\\n    return text{}\\n' > slug.py"
WRITE_TEST = (
    "printf 'import unittest\\nfrom slug import slug\\n\\nclass SlugTest(unittest.TestCase):\\n    def test_slug(self):\\n"
    '        self.assertEqual(slug("A"), "a")\\n\' > tests/test_slug.py'
)
CHECK_OFF = f"sed 's/\\[ \\]/[x]/' {PLAN_FILE} > plan; mv plan {PLAN_FILE}"
TYPE_FIELDS = {"claude": "subagent_type", "codex": "agent_type"}  # of the tool that starts a subagent
KEEPS_INPUT = "cat > ../hook-$(date +%s%N)"

# What the agent does to its gate
KEEP = "cp .turngate/settings.json check.sh ../"
PUT_BACK = "cp ../settings.json .turngate/; cp ../check.sh ."
EMPTY_SETTINGS = f"{KEEP}; echo '{{}}' > .turngate/settings.json"
OVERWRITE_SCRIPT = f"{KEEP}; echo 'exit 0' > check.sh"
# Gives Turngate, which is not recorded then, what the program has given it: its SessionStart, and the latest stop.
AGAIN = "find ../../../records -type f ! -name '*.*' | sort | {} -1 | xargs cat | ../.local/bin/turngate hook 2>> ../refused"
START_AGAIN, STOP_AGAIN = AGAIN.format("head"), AGAIN.format("tail")

BYPASS_TRUST = "--dangerously-bypass-hook-trust"  # of Codex, never outside of an empty home

RECORDER = """\
#!/bin/sh
# Records the input and the answer of each `turngate hook`.
test "$1" = hook || exec {turngate} "$@"
record=$(mktemp {records}/$(date +%s%N)-XXXXXX)
cat > "$record"
{turngate} "$@" < "$record" > "$record.out" 2> "$record.err"
code=$?
cat "$record.out"
cat "$record.err" >&2
exit $code
"""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """`expected` may have the keys of what `play.look` sees; others are not compared."""

    name: str
    shows: str  # what has to happen
    gates: Mapping[str, str | Mapping[str, str]]  # event: command line of the gate, or the hook
    example: str | None = (
        None  # the project is that of a folder of examples, and `gates` only names the events
    )
    files: Mapping[str, str] = field(default_factory=dict)  # of the project, that are approved with the gates
    prompts: Sequence[str] = (PROMPT,)  # of one session: the program is started for each of them
    reason: str = REASON  # that the agent is sent back with
    not_in_reason: str | None = None
    script: Callable[[Program], Script]
    expected: Mapping[str, Any]
    notice: str | None = None  # that the user has to see
    prepare: Callable[[Room], None] = lambda _room: None  # after everything else is in place
    applies: Callable[[Program], bool] = lambda _program: True
    level: Literal["user", "project"] = "project"  # where Turngate is installed
    approved: bool = True  # a person has approved the gates
    arguments: Callable[[Sequence[str]], Sequence[str]] = lambda words: words  # of the program
    doctor: str | None = None  # what `turngate doctor --host` has to report
    in_terminal: bool = False  # instead of headless, until the notice is displayed
    folder: str = "project"  # where the program starts, below home
    environment: Mapping[str, str] = field(default_factory=dict)  # of the program, besides its own
    interrupted: bool = False  # by Ctrl-C, while the gate runs


def work(program: Program) -> Reply:
    return do(program, TASK)


def do(program: Program, command: str) -> Reply:
    return {"tools": [program.shell(command)]}


def call(tool: str, **given: str) -> Reply:
    return {"tools": [{"name": tool, "input": given}]}


def start_subagent(program: Program, kind: str) -> Sequence[Reply | ReplyTo]:
    """Return the replies that start a subagent of a type of the project."""
    first, *rest = program.subagent
    assert isinstance(first, dict)
    [call] = first["tools"]
    return [{"tools": [{**call, "input": {**call["input"], TYPE_FIELDS[program.name]: kind}}]}, *rest]


def install_recorder(room: Room) -> None:
    room.user_program.parent.mkdir(parents=True)
    room.user_program.symlink_to(Path(sys.executable).parent / "turngate")
    file = room.bin / "turngate"
    file.write_text(RECORDER.format(turngate=room.user_program, records=room.records))
    file.chmod(0o755)


def remove_turngate(room: Room) -> None:
    """Leave the line in the settings, and nothing that it could start."""
    (room.bin / "turngate").unlink()
    room.user_program.unlink()


def add_own_hook(room: Room) -> None:
    """Add a stop hook of Claude Code itself, which appends a line to a file."""
    file = room.project / ".claude" / "settings.json"
    settings = json.loads(file.read_text())
    own = {"type": "command", "command": f"echo run >> {room.own_hook_runs}"}
    settings["hooks"]["Stop"].append({"hooks": [own]})
    file.write_text(json.dumps(settings))


def add_worktree(room: Room) -> None:
    """Commit everything, and check it out a second time beside the project."""
    who = ["-c", "user.name=user", "-c", "user.email=user@example.org"]
    for words in (["add", "-A"], [*who, "commit", "-qm", "start"], ["worktree", "add", "-q", "../worktree"]):
        run(["git", *words], room, base_environment(room))


def make_subfolder(room: Room) -> None:
    (room.project / "packages" / "a").mkdir(parents=True)


# A task, and a teammate, of Claude Code
OPEN_TASK = [call("TaskCreate", subject="the work", description="do it")]
COMPLETE_TASK = call("TaskUpdate", taskId="1", status="completed")
TEAMMATE = call(
    "Agent", description="count", prompt=SUBAGENT_PROMPT, subagent_type="general-purpose", name="bob"
)

SCENARIOS = (
    Scenario(
        name="a gate that fails once",
        shows="the agent is sent back once with the reason of the gate, does the work, and stops",
        gates={"Stop": NEEDS_WORK},
        script=lambda program: {"main": ["I am done.", work(program), "Now I am done."]},
        expected={"requests": 3, "stops": 2, "sent_back": 1, "code": 0},
    ),
    Scenario(
        name="a gate that always fails, with work in between",
        shows="the turn ends after 3 continuations, the limit of Turngate, and the user gets a notice",
        gates={"Stop": ALWAYS_FAILS},
        script=lambda program: {"main": ["I am done.", *([work(program), "Still done."] * 20)]},
        expected={"requests": 7, "stops": 4, "sent_back": 3, "code": 0},
        notice="Still blocked by",
    ),
    Scenario(
        name="a gate that always fails, nothing done in between",
        shows="the turn ends when the same reason comes again, and the user gets a notice",
        gates={"Stop": ALWAYS_FAILS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 2, "stops": 2, "sent_back": 1, "code": 0},
        notice="Still blocked by",
    ),
    Scenario(
        name="a gate that passes",
        shows="the agent stops, without another request to the model",
        gates={"Stop": PASSES},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "stops": 1, "sent_back": 0, "code": 0},
    ),
    Scenario(
        name="the program of a gate is missing",
        shows="the agent stops, and the user gets a notice that the gate was not enforced",
        gates={"Stop": PROGRAM_MISSING},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "stops": 1, "sent_back": 0, "code": 0},
        notice="NOT enforced",
    ),
    Scenario(
        name="Turngate is missing",
        shows="the agent stops, and the program reports that the hook could not be started, where it reports such errors",
        gates={"Stop": ALWAYS_FAILS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "stops": 0, "sent_back": 0, "code": 0},
        notice="turngate: ",  # the shell: `turngate: not found`
        prepare=remove_turngate,
        applies=lambda program: not HOSTS[program.name].failed_hook_blocks,
    ),
    Scenario(
        name="Turngate is missing, in a program that takes this for a block",
        shows="the agent stops, and the line tells the user to install Turngate",
        gates={"Stop": ALWAYS_FAILS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "stops": 0, "sent_back": 0, "code": 0},
        notice=f"message: {NOT_CHECKED}",  # it also prints the line with this text
        prepare=remove_turngate,
        applies=lambda program: HOSTS[program.name].failed_hook_blocks,
    ),
    Scenario(
        name="a gate that fails once, Turngate installed for the user",
        shows="as above, with `turngate install HOST --user`",
        gates={"Stop": NEEDS_WORK},
        script=lambda program: {"main": ["I am done.", work(program), "Now I am done."]},
        expected={"requests": 3, "sent_back": 1, "code": 0},
        level="user",
    ),
    Scenario(
        name="Turngate was installed for the user and is missing",
        shows="the agent stops",
        gates={"Stop": ALWAYS_FAILS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "sent_back": 0, "code": 0},
        level="user",
        prepare=remove_turngate,
    ),
    Scenario(
        name="a subagent that is blocked once",
        shows="the subagent is sent back once, and its second answer goes to the agent",
        gates={"SubagentStop": BLOCKS_ONCE},
        script=lambda program: {
            "main": [*program.subagent, "I am done."],
            "sub": ["Three files.", "Four files."],
        },
        expected={"requests": 2, "subagent": 2, "stops": 2, "sent_back": 1, "code": 0},
        applies=lambda program: bool(program.subagent) and "SubagentStop" in HOSTS[program.name].events,
    ),
    Scenario(
        name="a subagent that is always blocked, with work in between",
        shows="the subagent ends after 3 continuations, and its last answer goes to the agent",
        gates={"SubagentStop": ALWAYS_FAILS},
        script=lambda program: {
            "main": [*program.subagent, "I am done."],
            "sub": ["I am done.", *([work(program), "Still done."] * 20)],
        },
        expected={"requests": 2, "subagent": 7, "stops": 4, "sent_back": 3, "code": 0},
        applies=lambda program: bool(program.subagent) and "SubagentStop" in HOSTS[program.name].events,
    ),
    Scenario(
        name="a gate that is not approved",
        shows="the agent stops, and the user gets a notice that the gate waits for approval",
        gates={"Stop": ALWAYS_FAILS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "stops": 1, "sent_back": 0, "code": 0},
        notice="turngate hooks approve",
        approved=False,
    ),
    Scenario(
        name="a hook that halts",
        shows="the agent stops",
        gates={"Stop": HALTS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "stops": 1, "sent_back": 0, "code": 0},
        notice="the budget is used up",
    ),
    Scenario(
        name="what the program reports reaches the hooks",
        shows="no field of the input is lost or changed",
        gates={"Stop": KEEPS_INPUT, "SubagentStop": KEEPS_INPUT},
        script=lambda program: {"main": [*program.subagent, "I am done."], "sub": ["Three files."]},
        expected={"lost_fields": [], "code": 0},
    ),
    Scenario(
        name="another hook of .claude beside Turngate",
        shows="it runs once at each stop: Turngate does not run it again",
        gates={"Stop": NEEDS_WORK},
        script=lambda program: {"main": ["I am done.", work(program), "Now I am done."]},
        expected={"requests": 3, "stops": 2, "sent_back": 1, "own_hook": 2, "code": 0},
        prepare=add_own_hook,
        applies=lambda program: program.name == "claude",
    ),
    Scenario(
        name="a hook that Codex does not trust",
        shows="Codex skips it without a message, so the agent stops; `turngate doctor --host codex` reports it",
        gates={"Stop": ALWAYS_FAILS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "stops": 0, "sent_back": 0, "doctor": "reports it", "code": 0},
        arguments=lambda words: [word for word in words if word != BYPASS_TRUST],
        doctor="it is not trusted in Codex, which skips it without a message",
        applies=lambda program: program.name == "codex",
    ),
    Scenario(
        name="a gate that always fails, in a terminal",
        shows="the user reads the notice in the terminal",
        gates={"Stop": ALWAYS_FAILS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"stops": 2, "notice": "terminal"},
        notice="Still blocked by",
        in_terminal=True,
        applies=lambda program: program.terminal is not None,
    ),
    Scenario(
        name="a hook that halts, in a terminal",
        shows="the user reads the reason in the terminal",
        gates={"Stop": HALTS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"stops": 1, "notice": "terminal"},
        notice="the budget is used up",
        in_terminal=True,
        applies=lambda program: program.terminal is not None,
    ),
    Scenario(
        name="the agent empties the settings",
        shows="the agent is sent back once because the gate is no longer configured; it restores the settings, and stops",
        gates={"Stop": CHECKS},
        files=CHECK_FILES,
        script=lambda program: {
            "main": [do(program, EMPTY_SETTINGS), "I am done.", do(program, PUT_BACK), "Now I am done."]
        },
        expected={"requests": 4, "stops": 2, "sent_back": 1, "code": 0},
        reason="it was approved, but is no longer configured",
    ),
    Scenario(
        name="the agent overwrites the script of the gate",
        shows="the agent is sent back once because the script was changed; it restores the script, and stops",
        gates={"Stop": CHECKS},
        files=CHECK_FILES,
        script=lambda program: {
            "main": [do(program, OVERWRITE_SCRIPT), "I am done.", do(program, PUT_BACK), "Now I am done."]
        },
        expected={"requests": 4, "stops": 2, "sent_back": 1, "code": 0},
        reason="check.sh was changed after it was approved",
    ),
    Scenario(
        name="the agent empties the settings and plays the start of a session",
        shows="`turngate hook` refuses the command of the agent, so it is sent back as above",
        gates={"Stop": CHECKS},
        files=CHECK_FILES,
        script=lambda program: {
            "main": [
                do(program, f"{EMPTY_SETTINGS}; {START_AGAIN}"),
                "I am done.",
                do(program, PUT_BACK),
                "Now I am done.",
            ]
        },
        expected={"requests": 4, "stops": 2, "sent_back": 1, "refused": 1, "code": 0},
        reason="it was approved, but is no longer configured",
        applies=lambda program: HOSTS[program.name].agent_variable is not None,
    ),
    Scenario(
        name="the agent uses up its continuations",
        shows="`turngate hook` refuses the command of the agent, so 3 continuations are left",
        gates={"Stop": ALWAYS_FAILS},
        script=lambda program: {
            "main": ["I am done.", *([do(program, "; ".join([TASK, *[STOP_AGAIN] * 4])), "Still done."] * 20)]
        },
        expected={"requests": 7, "stops": 4, "sent_back": 3, "refused": 12, "code": 0},
        notice="Still blocked by",
        applies=lambda program: HOSTS[program.name].agent_variable is not None,
    ),
    Scenario(
        name="a session in a subfolder, Turngate installed for the user",
        shows="the gate of the project above is asked",
        gates={"Stop": NEEDS_WORK.replace("work.txt", "packages/a/work.txt", 1)},
        script=lambda program: {"main": ["I am done.", work(program), "Now I am done."]},
        expected={"requests": 3, "sent_back": 1, "code": 0},
        level="user",
        prepare=make_subfolder,
        folder="project/packages/a",
    ),
    Scenario(
        name="a session in a new worktree of git, Turngate installed for the user",
        shows="what was approved in the repository is approved there, and the gate is asked",
        gates={"Stop": NEEDS_WORK},
        script=lambda program: {"main": ["I am done.", work(program), "Now I am done."]},
        expected={"requests": 3, "sent_back": 1, "code": 0},
        level="user",
        prepare=add_worktree,
        folder="worktree",
    ),
    Scenario(
        name="a greeting in a project whose tests fail",
        shows="the agent stops, without another request to the model",
        gates={"Stop": TESTS},
        files=OLD_TEST,
        prompts=("hi",),
        script=lambda _program: {"main": ["Hi!"]},
        expected={"requests": 1, "stops": 1, "sent_back": 0, "code": 0},
    ),
    Scenario(
        name="a greeting in a project whose tests fail, then a new failure in the same session",
        shows="the first stop is as above; then the agent is sent back once, with the new failure alone, repairs it, and stops",
        gates={"Stop": TESTS},
        files=OLD_TEST,
        prompts=("hi", PROMPT),
        script=lambda program: {
            "main": ["Hi!", do(program, ADD_FAILURE), "I am done.", do(program, REPAIR), "Now I am done."]
        },
        expected={"requests": 5, "stops": 3, "sent_back": 1, "not_in_reason": True, "code": 0},
        reason=NEW_FAILURE,
        not_in_reason=OLD_FAILURE,
        applies=lambda program: program.resume is not None,
    ),
    Scenario(
        name="a task that a gate keeps open once",
        shows="the task stays open, the agent gets the reason, does the work, and completes the task",
        gates={"TaskCompleted": NEEDS_WORK},
        script=lambda program: {
            "main": [*OPEN_TASK, COMPLETE_TASK, work(program), COMPLETE_TASK, "I am done."],
        },
        expected={"requests": 5, "stops": 2, "sent_back": 1, "code": 0},
        applies=lambda program: program.name == "claude",
    ),
    Scenario(
        name="a task that a gate always keeps open, with work in between",
        shows="the task is completed after 3 blocks; the stop of the agent has no gate",
        gates={"TaskCompleted": ALWAYS_FAILS},
        script=lambda program: {
            "main": [*OPEN_TASK, *([COMPLETE_TASK, work(program)] * 5), "I am done."],
        },
        expected={"requests": 12, "stops": 4, "sent_back": 3, "code": 0},
        applies=lambda program: program.name == "claude",
    ),
    Scenario(
        name="a teammate that is blocked once, in a terminal",
        shows="the teammate is sent back once before it is idle, and then the lead continues",
        gates={"TeammateIdle": BLOCKS_ONCE},
        script=lambda _program: {
            "main": [TEAMMATE, "Waiting for the team.", "The team has ended."],
            "sub": ["Three files.", "Four files."],
        },
        expected={"subagent": 2, "stops": 2, "sent_back": 1, "notice": "terminal"},
        notice="The team has ended.",
        environment={"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"},
        in_terminal=True,
        applies=lambda program: program.name == "claude",
    ),
    Scenario(
        name="the feature workflow",
        shows="the planner is sent back once, because there is no plan; the first stop waits for the user; after the answer the agent is sent back for the open "
        "task, and then with the failed test",
        gates={"Stop": "", "SubagentStop": ""},
        example="feature-workflow",
        prompts=(f"Plan slugs in {PLAN_FILE}.", "yes"),
        script=lambda program: {
            "main": [
                *start_subagent(program, "feature-plan"),
                "The plan has one task.",
                "All is done.",
                do(program, f"{WRITE_SLUG.format('')}; {WRITE_TEST}; {CHECK_OFF}"),
                "All is done.",
                do(program, WRITE_SLUG.format(".lower()")),
                "Now I am done.",
            ],
            "sub": ["The plan is ready.", do(program, WRITE_PLAN), "The plan is written."],
        },
        expected={"requests": 7, "subagent": 3, "stops": 6, "sent_back": 1, "code": 0},
        reason="'A' != 'a'",
        notice="Phase 1: Plan is complete",
        applies=lambda program: program.name in TYPE_FIELDS,
    ),
    Scenario(
        name="a gate that takes 90 seconds",
        shows="the program waits for it, and the agent is sent back once",
        gates={"Stop": TAKES_90_S},
        script=lambda program: {"main": ["I am done.", work(program), "Now I am done."]},
        expected={"requests": 3, "stops": 2, "sent_back": 1, "code": 0},
        applies=lambda program: not HOSTS[program.name].longest_hook_s,
    ),
    Scenario(
        name="a gate that takes 90 seconds, in a program that waits for 60",
        shows="Turngate answers in time: the agent stops, and the user gets a notice that the gate was not enforced",
        gates={"Stop": TAKES_90_S},
        script=lambda _program: {"main": ["I am done."]},
        expected={"requests": 1, "stops": 1, "sent_back": 0, "code": 0},
        notice="NOT enforced",
        applies=lambda program: bool(HOSTS[program.name].longest_hook_s),
    ),
    Scenario(
        name="Ctrl-C while a gate runs, Turngate installed for the user",
        shows="5 seconds later, no process of the gate is left",
        gates={"Stop": NEVER_ENDS},
        script=lambda _program: {"main": ["I am done."]},
        expected={"left": []},
        level="user",  # the program waits for Turngate itself, not for what records its input
        interrupted=True,
    ),
)
