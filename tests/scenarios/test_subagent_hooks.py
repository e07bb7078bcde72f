"""SubagentStop hooks at real children: the rules of Stop, whom a hook is asked about, what it is told and what it is for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.executor_cases import EXECUTOR_CASES, ExecutorCase
from tests.support.machines import Machine
from tests.support.sessions import BLOCK_COMMAND, SAVE_INPUT, block_first, lines, records, saved_inputs, say
from tests.support.subagents import PROMPT, Gate, Parent, bash, parent, parent_on, redirect, task, tasks
from turngate.core.conversation.messages import ModelRequest, Reply, Text, UserMessage
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import Continuation, SubagentFinished
from turngate.core.hooks.kinds import CommandHook, label
from turngate.core.text import quote_name
from turngate.core.verdict.hook_run import outcome
from turngate.models.scripted import ScriptedModel
from turngate.subagents.limits import SubagentLimits
from turngate.trust.load import load_settings

by_dialect = pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
WAITED = task(run_in_background=False)


def handed(scene: Parent) -> str:
    """What the Task tool gave to the parent."""
    return scene.heard("main")[-1]


# The rules of Stop

ONCE = 'if [ "$TURNGATE_STOP_HOOK_ACTIVE" = true ]; then exit 0; fi'


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{requirement}: {case.body}", marks=pytest.mark.req("S3-37"))
        for requirement, cases in EXECUTOR_CASES.items()
        for case in cases
    ],
)
def test_a_subagents_hook_decides_by_document_000s_table_for_stop(project: Path, case: ExecutorCase) -> None:
    hook = CommandHook(f"{ONCE}; {case.body}", timeout=case.timeout)
    scene = parent(project, "answer {n}", rules=[rule(hook, "SubagentStop")], dialect=MUX)
    result = scene.play()
    expected = case.expected
    sent_on = [] if expected.should_stop else ["agent: answer 1", expected.continue_reason]
    assert scene.heard("sub") == [PROMPT, *sent_on]
    assert handed(scene) == f"tool: answer {1 if expected.should_stop else 2}"
    warned = [warning.replace('"HOOK"', quote_name(label(hook))) for warning in expected.warnings]
    ended = [f"subagent general-purpose: {expected.stop_reason}"] if expected.stop_reason else []
    assert scene.notices == [*warned, *ended]
    assert (result.outcome, result.result, scene.of(Continuation)) == ("completed", "home", [])


def test_a_gate_that_was_not_enforced_in_a_subagent_is_in_the_result_of_the_turn(project: Path) -> None:
    hooks = [rule("exit 1", "PreToolUse"), rule("exit 3", "SubagentStop")]
    tool = {"tool": "Bash", "input": {"command": "true"}}
    scene = parent(project, tool, "done", rules=hooks, allow=["Bash"], strict=True)
    result = scene.play()
    lost = [("PreToolUse", "exit 1"), ("PreToolUse", "exit 1"), ("SubagentStop", "exit 3")]
    assert (
        sorted((each.event, each.hook) for each in result.unenforced) == lost
    )  # PreToolUse of Task, of Bash
    assert (result.outcome, result.success) == ("completed", False)


@by_dialect
@pytest.mark.req("S3-37")
def test_continue_false_ends_the_subagent_with_its_answer_and_its_parent_continues(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    halt = """echo '{"continue": false, "stopReason": "enough"}'"""
    hooks = [rule(halt, "SubagentStop"), rule(BLOCK_COMMAND, "SubagentStop")]
    scene = parent_on(machine, project, "answer {n}", main=[WAITED, "home"], rules=hooks, dialect=dialect)
    result = scene.play()
    assert scene.heard("sub") == [PROMPT]
    assert (handed(scene), result.outcome, result.ended_by) == ("tool: answer 1", "completed", "allowed")
    assert [(run.rule.event, outcome(run)) for run in result.hook_runs] == [
        ("SubagentStop", "halt"),
        ("SubagentStop", "block"),
    ]


@by_dialect
@pytest.mark.req("C-06", "S3-25")
def test_a_subagent_that_a_tool_hook_halted_is_not_asked_about_and_not_redirected(
    project: Path, dialect: Dialect
) -> None:
    halt = """grep -q '"agent_id"' && echo '{"continue": false, "stopReason": "enough"}' || true"""
    hooks = [rule(halt, "PreToolUse"), rule(f"touch asked; {BLOCK_COMMAND}", "SubagentStop")]
    gate = Gate(redirect("on"))
    call = {"text": "let me look", **bash("touch ran")}
    scene = parent(
        project, call, "more", main=[WAITED, "home"], rules=hooks, gate=gate, dialect=dialect, allow=["Bash"]
    )
    result = scene.play()
    assert [request.agent for request in scene.model.requests] == ["main", "sub", "main"]
    assert (gate.events, [(project / name).exists() for name in ("asked", "ran")]) == ([], [False, False])
    assert [(each.outcome, each.reason, each.redirects) for each in scene.of(SubagentFinished)] == [
        ("ok", "halted", 0)
    ]
    assert scene.notices == ["subagent general-purpose: enough"]
    assert (handed(scene), result.outcome, result.result) == ("tool: let me look", "completed", "home")


@pytest.mark.req("C-06")
@pytest.mark.parametrize(
    ("event", "answer"),
    [
        ("PostToolUse", {"continue": False, "stopReason": "enough"}),
        (
            "PermissionRequest",
            {
                "hookSpecificOutput": {
                    "hookEventName": "PermissionRequest",
                    "decision": {"behavior": "deny", "message": "enough", "interrupt": True},
                }
            },
        ),
    ],
    ids=["PostToolUse", "PermissionRequest"],
)
def test_a_subagent_that_is_halted_after_or_for_a_tool_is_not_redirected_either(
    project: Path, event: str, answer: dict[str, Any]
) -> None:
    hooks = [rule(say(answer), event, matcher="Bash"), rule(BLOCK_COMMAND, "SubagentStop")]
    allow = ["Bash"] if event == "PostToolUse" else []
    scene = parent(project, bash("true"), "more", rules=hooks, gate=Gate(redirect("on")), allow=allow)
    scene.play()
    assert [request.agent for request in scene.model.requests] == ["main", "sub", "main"]
    assert [(each.reason, each.redirects) for each in scene.of(SubagentFinished)] == [("halted", 0)]
    assert scene.notices == ["subagent general-purpose: enough"]


@pytest.mark.req("C-06")
def test_a_halted_subagent_without_an_answer_says_so_to_its_parent(project: Path) -> None:
    halt = rule("""echo '{"continue": false}'""", "PreToolUse", matcher="Bash")
    scene = parent(project, bash("true"), rules=[halt], gate=Gate(redirect("on")), allow=["Bash"])
    scene.play()
    assert handed(scene) == "tool: (a hook halted the subagent before it gave an answer)"
    assert scene.notices == []


@pytest.mark.req("C-06")
def test_a_subagent_that_is_halted_in_the_background_is_announced_as_halted(project: Path) -> None:
    halt = rule("""echo '{"continue": false}'""", "PreToolUse", matcher="Bash")
    main = [task(run_in_background=True), "waiting", "home"]
    scene = parent(project, bash("true"), main=main, rules=[halt], gate=Gate(redirect("on")), allow=["Bash"])
    scene.play()
    [announced] = [each["message"]["content"] for each in scene.spoken() if each.get("origin") == "subagent"]
    [run] = scene.registered
    assert announced.startswith(
        f'[Subagent result] The subagent "general-purpose" (general-purpose, {run.agent_id}) was halted by a hook. '
    )


# The hooks' words on disk


def hook_outputs(path: str) -> list[dict[str, Any]]:
    return [record for record in records(path) if record["type"] == "hook_output"]


@by_dialect
@pytest.mark.req("S0-38", "S0-48", "S3-19")
def test_what_a_subagents_hook_prints_is_kept_in_the_subagents_transcript(
    project: Path, dialect: Dialect
) -> None:
    hooks = [rule("echo all well {", "SubagentStop"), rule("echo stopped")]
    scene = parent(project, "counted", main=[WAITED, "home"], rules=hooks, dialect=dialect)
    scene.play()
    [run] = scene.registered
    assert hook_outputs(run.transcript) == [
        {"type": "hook_output", "event": "SubagentStop", "hook": "echo all well {", "stdout": "all well {\n"}
    ]
    assert [each["event"] for each in hook_outputs(scene.session.transcript_path)] == ["Stop"]


@pytest.mark.req("S0-48", "S3-26")
def test_a_subagents_hook_that_suppresses_its_output_is_in_the_journal_only(
    project: Path, state: Path
) -> None:
    quiet = say({"suppressOutput": True, "reason": "fine"})
    scene = parent(project, rules=[rule(quiet, "SubagentStop")], dialect=MUX)
    scene.play()
    [run] = scene.registered
    assert hook_outputs(run.transcript) == []
    kept = [
        entry
        for entry in records(f"{state}/sessions/{scene.session.id}/journal.jsonl")
        if entry["kind"] == "hook"
    ]
    assert [json.loads(entry["stdout"]) for entry in kept] == [{"suppressOutput": True, "reason": "fine"}]


@pytest.mark.req("S0-38", "S0-104")
def test_a_transcript_that_cannot_be_opened_loses_the_output_and_nothing_else(project: Path) -> None:
    spoil = 'rm "$TURNGATE_TRANSCRIPT_PATH"; mkdir "$TURNGATE_TRANSCRIPT_PATH"; echo all well'
    scene = parent(project, "counted", rules=[rule(CommandHook(spoil, id="spoil"), "SubagentStop")])
    result = scene.play()
    [notice] = scene.notices
    assert notice.startswith('the output of hook "spoil" could not be written to the transcript: ')
    assert (handed(scene), result.outcome) == ("tool: counted", "completed")


@pytest.mark.req("S0-48")
def test_the_output_of_each_stop_is_between_the_answer_and_the_redirect(project: Path) -> None:
    hook = f"echo out; {block_first(1)}"
    scene = parent(
        project, "one", "two", rules=[rule("echo begun", "SubagentStart"), rule(hook, "SubagentStop")]
    )
    scene.play()
    [run] = scene.registered
    told = [
        each["stdout"] if each["type"] == "hook_output" else each["message"]["content"]
        for each in records(run.transcript)
        if each["type"] == "hook_output" or each["type"] == "user"
    ]
    assert told == ["begun\n", PROMPT, "out\n", "run the tests", "out\n"]
    assert scene.heard("sub") == [PROMPT, "agent: one", "run the tests"]


@pytest.mark.req("S3-37")
def test_the_settings_of_the_project_hold_a_subagent(project: Path, machine: Machine) -> None:
    write_settings(project, "mux", stop_hooks(block_first(2, "count again"), event="SubagentStop"))
    scene = parent_on(machine, project, "answer {n}", files=True)
    scene.play()
    assert scene.heard("sub") == [
        PROMPT,
        "agent: answer 1",
        "count again",
        "agent: answer 2",
        "count again",
    ]
    assert handed(scene) == "tool: answer 3"


@pytest.mark.req("S3-37")
def test_the_stop_hooks_of_the_main_agent_are_never_asked_about_a_subagent(
    project: Path, machine: Machine
) -> None:
    scene = parent_on(machine, project, rules=[rule(SAVE_INPUT), rule(SAVE_INPUT, "SubagentStop")])
    scene.play()
    assert saved_inputs(project, "hook_event_name", "last_assistant_message") == [
        ("SubagentStop", "done"),
        ("Stop", "home"),
    ]


@pytest.mark.req("S3-37", "C-18")
def test_each_subagent_has_a_count_of_its_own_and_the_parents_is_untouched(
    project: Path, machine: Machine
) -> None:
    main = [task("one"), task("two"), "home"]
    hooks = [rule(f"tee -a seen > /dev/null; {BLOCK_COMMAND}", name) for name in ("SubagentStop", "Stop")]
    scene = parent_on(machine, project, main=main, rules=hooks)
    scene.play()
    counted = [("SubagentStop", number) for number in (0, 1, 2, 3)]
    assert saved_inputs(project, "hook_event_name", "continuation_count") == [
        *counted,
        *counted,
        *(("Stop", number) for number in (0, 1, 2, 3)),
    ]


# Who is told what


@by_dialect
@pytest.mark.req("C-21", "S0-25")
def test_which_session_and_transcript_a_hook_gets_depends_on_the_dialect(
    project: Path, dialect: Dialect
) -> None:
    main = [WAITED, "home"]
    scene = parent(project, main=main, rules=[rule(SAVE_INPUT, "SubagentStop")], dialect=dialect)
    scene.play()
    [run] = scene.registered
    theirs, own = scene.session.id, run.agent_id
    chat = scene.session.transcript_path
    session, path = {
        "turngate": (theirs, run.transcript),
        "mux": (own, run.transcript),
        "claude": (theirs, chat),
    }[dialect.name]
    [told] = saved_inputs(project)
    names = (
        "session_id",
        "transcript_path",
        "agent_id",
        "agent_transcript_path",
        "parent_session_id",
        "parent_transcript_path",
    )
    assert {name: told[name] for name in names} == {
        "session_id": session,
        "transcript_path": path,
        "agent_id": own,
        "agent_transcript_path": run.transcript,
        "parent_session_id": theirs,
        "parent_transcript_path": chat,
    }


@pytest.mark.req("C-17")
@pytest.mark.parametrize(
    ("dialect", "child", "main"),
    [
        (TURNGATE, "run the tests", "[Stop hook requested continuation]\nrun the tests"),
        (MUX, "run the tests", "[Stop hook requested continuation]\nrun the tests"),
        (CLAUDE, "Stop hook feedback:\nrun the tests", "Stop hook feedback:\nrun the tests"),
    ],
    ids=["turngate", "mux", "claude"],
)
def test_what_a_subagent_and_its_parent_get_depends_on_the_dialect(
    project: Path, dialect: Dialect, child: str, main: str
) -> None:
    block = """echo '{"decision": "block", "reason": "run the tests"}'"""
    hooks = [rule(f"{ONCE}; {block}", name) for name in ("SubagentStop", "Stop")]
    scene = parent(project, "counted", main=[WAITED, "home"], rules=hooks, dialect=dialect)
    scene.play()
    assert scene.heard("sub") == [PROMPT, "agent: counted", child]
    assert scene.heard("main") == ["go", "agent: Task", "tool: counted", "agent: home", main]


@pytest.mark.req("S3-37", "S0-34", "S0-35")
def test_a_hook_finds_the_subagents_transcript_and_count_in_its_environment(project: Path) -> None:
    shown = "echo $MUX_TRANSCRIPT_PATH $MUX_STOP_HOOK_ACTIVE $MUX_STOP_HOOK_COUNT $TURNGATE_EVENT >> env"
    scene = parent(project, rules=[rule(f"{shown}; {block_first(1)}", "SubagentStop")], dialect=MUX)
    scene.play()
    path = scene.registered[0].transcript
    assert lines(project / "env") == [f"{path} false 0 SubagentStop", f"{path} true 1 SubagentStop"]


@pytest.mark.req("S0-35", "S0-105")
def test_a_hook_can_read_the_subagents_transcript(project: Path, machine: Machine) -> None:
    command = f'grep -c "{PROMPT}" "$MUX_TRANSCRIPT_PATH" > found'
    parent_on(machine, project, rules=[rule(command, "SubagentStop")], dialect=MUX).play()
    assert lines(project / "found") == ["1"]


@pytest.mark.req("X-17")
def test_in_claude_a_stop_names_the_subagents_that_still_work_and_comes_again_when_they_have_ended(
    project: Path,
) -> None:
    """facts of the program: "Stop runs again (stop_hook_active false, new prompt_id)"."""
    main = [task(description="count", subagent_type="Explore"), "waiting", "home"]
    scene = parent(project, {"text": "3", "delay": 0.5}, main=main, rules=[rule(SAVE_INPUT)], dialect=CLAUDE)
    result = scene.play()
    [run] = scene.registered
    works = {
        "id": run.agent_id,
        "type": "subagent",
        "status": "running",
        "description": "count",
        "agent_type": "Explore",
    }
    told = ("last_assistant_message", "stop_hook_active", "background_tasks")
    assert saved_inputs(project, *told) == [("waiting", False, [works]), ("home", False, [])]
    assert len(set(saved_inputs(project, "prompt_id"))) == 2
    assert result.result == "home"


@pytest.mark.req("X-17")
@pytest.mark.parametrize("dialect", [TURNGATE, MUX], ids=["turngate", "mux"])
def test_elsewhere_the_gates_wait_for_subagents_in_the_background(project: Path, dialect: Dialect) -> None:
    main = [task(run_in_background=True), "waiting", "home"]
    scene = parent(project, {"text": "3", "delay": 0.5}, main=main, rules=[rule(SAVE_INPUT)], dialect=dialect)
    scene.play()
    assert saved_inputs(project, "last_assistant_message") == ["home"]


# About whom


@pytest.mark.req("X-15")
@pytest.mark.parametrize(
    ("matcher", "asked"),
    [
        ("Explore", ["Explore"]),
        ("Explore|reviewer", ["Explore", "reviewer"]),
        ("general-.*", ["general-purpose"]),
        ("explore", []),
        ("*", ["Explore", "general-purpose", "reviewer"]),
        (None, ["Explore", "general-purpose", "reviewer"]),
    ],
)
def test_a_matcher_by_agent_type_keeps_a_hook_off_the_others(
    project: Path, matcher: str | None, asked: list[str]
) -> None:
    kinds = project / ".claude" / "agents"
    kinds.mkdir(parents=True)
    (kinds / "reviewer.md").write_text("---\nname: reviewer\ndescription: reads\n---\nRead.\n")
    several = tasks(*({"subagent_type": kind} for kind in ("general-purpose", "Explore", "reviewer")))
    hook = rule(f"tee -a seen > /dev/null; {ONCE}; {BLOCK_COMMAND}", "SubagentStop", matcher=matcher)
    scene = parent(project, main=[several, "home"], rules=[hook])
    scene.play()
    sent_back = {run.agent_type for run in scene.runs() if run.steer_count}
    assert sorted(set(saved_inputs(project, "agent_type"))) == sorted(sent_back) == asked
    assert len(saved_inputs(project)) == 2 * len(asked)


@pytest.mark.req("C-15")
@pytest.mark.parametrize(
    ("sub", "limits", "ended"),
    [
        ("done", SubagentLimits(), "ok"),
        ({"error": "auth"}, SubagentLimits(), "error"),
        ({"text": "late", "delay": 3600}, SubagentLimits(seconds=0.3), "timeout"),
    ],
    ids=["ok", "error", "timeout"],
)
def test_a_hook_is_asked_about_subagents_that_ended_well_unless_it_wants_more(
    project: Path, sub: Any, limits: SubagentLimits, ended: str
) -> None:
    usual = CommandHook("cat >> usual")
    eager = CommandHook("cat >> eager", outcomes=("ok", "error", "timeout"))
    hooks = [rule(hook, "SubagentStop") for hook in (usual, eager)]
    scene = parent(project, sub, rules=hooks, children=limits, retries=())
    scene.play()
    asked = {
        name: [json.loads(line)["outcome"] for line in lines(project / name)] for name in ("usual", "eager")
    }
    assert asked == {"usual": ["ok"] if ended == "ok" else [], "eager": [ended]}
    assert [each.outcome for each in scene.of(SubagentFinished)] == [ended]


@pytest.mark.req("C-15")
def test_outcomes_are_read_from_the_settings_and_a_failed_subagent_can_be_redirected(project: Path) -> None:
    block = """echo '{"decision": "block", "reason": "try again"}'"""
    content = stop_hooks(f"{ONCE}; {block}", event="SubagentStop", outcomes=["error"])
    write_settings(project, "turngate", content)
    scene = parent(project, {"error": "invalid"}, "it works now", files=True, retries=())
    scene.play()
    assert scene.heard("sub") == [PROMPT, "try again"]
    assert handed(scene) == "tool: it works now"


@by_dialect
@pytest.mark.req("C-15")
def test_a_subagent_whose_provider_fails_is_no_stop_but_a_failure_with_its_name(
    project: Path, dialect: Dialect
) -> None:
    hooks = [rule(SAVE_INPUT, name) for name in ("SubagentStop", "StopFailure")]
    main = [WAITED, "home"]
    scene = parent(project, {"error": "auth"}, main=main, rules=hooks, dialect=dialect, retries=())
    result = scene.play()
    [run] = scene.registered
    assert saved_inputs(project, "hook_event_name", "session_id", "agent_id", "agent_type") == [
        ("StopFailure", scene.session.id, run.agent_id, "general-purpose")
    ]
    assert (result.outcome, result.result) == ("completed", "home")


LONG = bash("printf '%5000s' x")


@pytest.mark.req("X-16")
def test_the_helper_that_sums_up_a_subagents_conversation_asks_no_hook(project: Path) -> None:
    hooks = [rule("echo PreCompact >> log", "PreCompact"), rule(SAVE_INPUT, "SubagentStop"), rule(SAVE_INPUT)]
    scene = parent(project, LONG, "the summary", "done", rules=hooks, allow=["Bash"])
    scene.model.context = 1200
    scene.play()
    assert lines(project / "log") == ["PreCompact"]
    assert saved_inputs(project, "hook_event_name", "last_assistant_message") == [
        ("SubagentStop", "done"),
        ("Stop", "home"),
    ]
    assert len(scene.registered) == 1


@pytest.mark.req("X-16")
def test_the_helper_that_sums_up_the_main_conversation_is_no_subagent(project: Path) -> None:
    hooks = [rule("echo PreCompact >> log", "PreCompact"), rule(SAVE_INPUT, "SubagentStop"), rule(SAVE_INPUT)]
    main = [LONG, "the summary", "home"]
    scene = parent(project, main=main, rules=hooks, allow=["Bash"])
    scene.model.context = 1200
    scene.play()
    assert lines(project / "log") == ["PreCompact"]
    assert saved_inputs(project, "hook_event_name", "last_assistant_message") == [("Stop", "home")]
    assert scene.registered == []


# What such hooks are for


class Answering(ScriptedModel):
    """Its subagents reply to their own prompts, in any order."""

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        if request.agent == "main":
            return await super().ask(request, tell)
        self.requests.append(request)
        first = request.messages[0]
        assert isinstance(first, UserMessage)
        times = sum(isinstance(message, UserMessage) for message in request.messages)
        return Reply((Text(f"{first.text}: looked {times} times"),))


def answering(project: Path, *main: Any, **options: Any) -> Parent:
    scene = parent(project, main=main, **options)
    scene.session._agent.model = scene.model = Answering({"main": list(main)})
    return scene


PARTS = ("parser", "lexer", "printer")
THREE = tasks(*({"prompt": part, "description": part, "subagent_type": "Explore"} for part in PARTS))


@pytest.mark.req("S3-38")
def test_a_hook_collects_the_results_of_three_subagents_that_work_at_once(project: Path) -> None:
    collect = "line=$(cat); printf '%s\\n' \"$line\" >> results"
    scene = answering(project, THREE, "home", rules=[rule(collect, "SubagentStop")])
    scene.play()
    found = [json.loads(line) for line in lines(project / "results")]
    results = {part: f"{part}: looked 1 times" for part in PARTS}
    assert {each["agent_id"]: each["last_assistant_message"] for each in found} == {
        run.agent_id: results[run.task] for run in scene.registered
    }
    assert len(found) == 3
    assert handed(scene) == "tool: " + " + ".join(results[part] for part in PARTS)


@pytest.mark.req("S3-38")
def test_a_collection_holds_the_allowed_answers_without_the_blocked_ones(
    project: Path,
) -> None:
    """The gate refuses each child once; the collector is an observer that the next stop of the child corrects."""
    collect = """in=$(cat); id=$(printf %s "$in" | sed 's/.*"agent_id":"\\([^"]*\\)".*/\\1/'); printf '%s\\n' "$in" > "of.$id" """
    hooks = [rule(f"{ONCE}; {BLOCK_COMMAND}", "SubagentStop"), rule(collect, "SubagentStop")]
    scene = answering(project, THREE, "home", rules=hooks)
    scene.play()
    found = [json.loads(path.read_text()) for path in sorted(project.glob("of.*"))]
    assert sorted(each["last_assistant_message"] for each in found) == sorted(
        f"{part}: looked 2 times" for part in PARTS
    )


@pytest.mark.req("S3-38")
def test_a_hook_checks_what_a_subagent_gives_back(project: Path) -> None:
    check = """grep -q '"last_assistant_message":"[^"]*[.]py' || { echo 'name the files' >&2; exit 2; }"""
    scene = parent(project, "there is a parser", "the parser is in a.py", rules=[rule(check, "SubagentStop")])
    scene.play()
    assert scene.heard("sub") == [PROMPT, "agent: there is a parser", "name the files"]
    assert handed(scene) == "tool: the parser is in a.py"


@pytest.mark.req("S3-38")
def test_a_hook_logs_which_subagents_ran_and_what_they_found(project: Path) -> None:
    main = [task("one", subagent_type="Explore"), task("two"), "home"]
    scene = parent(project, "answer {n}", main=main, rules=[rule(SAVE_INPUT, "SubagentStop")])
    scene.play()
    ids = [run.agent_id for run in scene.registered]
    assert saved_inputs(project, "agent_id", "agent_type", "outcome", "last_assistant_message") == [
        (ids[0], "Explore", "ok", "answer 1"),
        (ids[1], "general-purpose", "ok", "answer 2"),
    ]


@pytest.mark.req("S3-38")
def test_what_a_subagent_reported_may_ask_for_another_subagent(project: Path) -> None:
    note = "grep -q 'also look at b' && echo 'start a subagent for b' > more; true"
    more = "[ ! -e more ] || { cat more >&2; rm more; exit 2; }"
    hooks = [rule(note, "SubagentStop"), rule(more)]
    main = [task("a"), "home", task("b"), "all done"]
    scene = parent(project, "also look at b", "b is fine", main=main, rules=hooks)
    result = scene.play()
    assert scene.heard("main") == [
        "go",
        "agent: Task",
        "tool: also look at b",
        "agent: home",
        "[Stop hook requested continuation]\nstart a subagent for b",
        "agent: Task",
        "tool: b is fine",
    ]
    assert (result.result, [run.task for run in scene.registered]) == ("all done", ["a", "b"])


def test_the_settings_that_a_parent_was_given_are_those_of_its_subagents(project: Path) -> None:
    write_settings(project, "mux", stop_hooks("echo file >> log", event="SubagentStop"))
    known = load_settings(str(project), dialect="mux")
    write_settings(project, "mux", stop_hooks("echo changed >> log", event="SubagentStop"))
    parent(project, rules=known.rules, dialect=MUX).play()
    assert lines(project / "log") == ["file"]
