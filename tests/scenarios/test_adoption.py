"""Subagents of killed sessions: who may continue them, under which gates and in which permission mode."""

import asyncio
import contextlib
import functools
import json
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.left_behind import STUCK, asked, listed, scripted, session, task, until
from tests.support.registry import FINAL, died, execute, opened
from tests.support.sessions import SAVE_INPUT, block_first, is_running, saved_inputs
from tests.support.subagents import Gate, Parent, bash, parent, write
from tests.support.subagents import task as subagent_task
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent.agent_config import common_folders
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import CallbackHook, CommandHook, HttpHook
from turngate.core.settings import Rule, Settings
from turngate.plugins.handlers import Plugins
from turngate.subagents.notifications import announcement
from turngate.subagents.recorded_gates import (
    GATE_EVENTS,
    NOT_ABOUT_GATES,
    Gates,
    compared_settings,
    gates_of,
    recorded_gates,
    why_left,
)
from turngate.subagents.registry import Registry, sqlite_store
from turngate.subagents.registry.owners import new_owner_id
from turngate.subagents.registry.sqlite_store import POLL_S

pytestmark = pytest.mark.usefixtures("store")

GATE = stop_hooks(SAVE_INPUT, event="SubagentStop", id="counted")
NAME = "counted (.turngate/settings.json)"


def killed(project: Path, state: Path, *words: str, **more: Any) -> dict[str, Any]:
    """Return a subagent in the background whose session was killed with SIGKILL while it worked."""
    start = task("count files", run_in_background=True, **more)
    with session(project, [start, "all done"], [STUCK], *words) as process:
        asked(state)
        process.send_signal(signal.SIGKILL)
        process.wait()
    until(lambda: all(each["left"] for each in listed()))  # in PostgreSQL, once its lease has lapsed
    [child] = [each for each in listed() if each["open"]]
    return child


def again(project: Path, *words: str, sub: tuple[Any, ...] = ("three files",)) -> tuple[int, str, str]:
    """Run another session of the project to its end; the subagent's model reads the same script."""
    model = scripted(project, ["hello", "thank you"], list(sub))
    return turngate("run", "-p", "go on", "--project", str(project), "--model", model, *words)


def recover(project: Path, *words: str, sub: tuple[Any, ...] = ("three files",)) -> tuple[int, str, str]:
    model = scripted(project, [], list(sub), "second")
    return turngate("runs", "recover", "--project", str(project), "--model", model, *words)


def left_alone(child: dict[str, Any], why: str) -> str:
    chain = child["id"][:8]
    return (
        f"subagent count files ({chain}) of a process that died is left alone: {why}; continue it with "
        f"`turngate runs recover` (--current-gates: under the current gates), or end it with `turngate runs kill {chain}`"
    )


CONTINUED = "continuing 1 subagent of a process that died: count files"
SAME_SESSION = ("--resume", "--session", "s-1")


# Other gates


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--no-hooks",), "no hooks run here"),
        (("--no-hooks", *SAME_SESSION), "no hooks run here"),
        (("--dialect", "claude"), "it runs in the dialect turngate, not in claude"),
        (("--settings", '{"disableAllHooks": true}'), f"not all of its gates are asked here: {NAME}"),
        (
            ("--settings", '{"turngate": {"mode": {"SubagentStop": "observe"}}}'),
            f"not all of its gates are asked here: {NAME}",
        ),
    ],
    ids=["no hooks", "the same session without hooks", "dialect", "switched off", "observed"],
)
def test_a_session_that_does_not_ask_its_gates_leaves_a_subagent_and_says_so(
    project: Path, state: Path, words: tuple[str, ...], why: str
) -> None:
    write_settings(project, "turngate", GATE)
    child = killed(project, state)
    sentence = left_alone(child, why)
    assert again(project, *words) == (0, "hello\n", f"! {sentence}\n")
    assert [(each["id"], each["state"], each["left"]) for each in listed()] == [
        (child["id"], "running", True)
    ]
    assert not (project / "seen").exists()
    assert sentence in turngate("log", "--session", "s-1")[1]
    code, out, err = again(project, *SAME_SESSION)
    assert (code, out, err) == (0, "thank you\n", f"! {CONTINUED}\n")
    assert [each["last_assistant_message"] for each in saved_inputs(project)] == ["three files"]


def test_a_session_whose_gate_is_not_approved_leaves_a_subagent(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "turngate", GATE)
    child = killed(project, state)
    monkeypatch.delenv("TURNGATE_TRUST")
    code, out, err = again(project)
    sentence = left_alone(child, f"not all of its gates are asked here: {NAME}")
    assert (code, out, sentence in err) == (0, "hello\n", True)
    assert [each["state"] for each in listed()] == ["running"]


def test_a_session_with_options_of_its_own_leaves_a_subagent_and_says_it_once(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", GATE)
    child = killed(project, state)
    scene = parent(project, "three files", main=["hello", "and again"])
    scene.play("go", "go on")
    sentence = left_alone(child, f"not all of its gates are asked here: {NAME}")
    assert (scene.notices, [each["state"] for each in listed()]) == ([sentence], ["running"])


def of_dead_process(state: Path, project: Path, gates: Gates, owner: str = "dead") -> None:
    """Write a run of a process that died, or of another owner."""
    registry = Registry(str(state))
    launch = {"project": str(project), "kind": "general-purpose", "gates": gates.as_json()}
    run = SubagentRun(id="r", chain="r", agent_id="a", owner=owner, parent="s", prompt="go", launch=launch)
    registry.register(run, may_run=True, max_running=9)
    died(state, "dead")
    registry.close()


def test_a_session_that_is_open_reports_a_subagent_that_it_leaves_once(project: Path, state: Path) -> None:
    scene = parent(project, "done", main=["hi"])
    wanted = Gates(dialect="turngate", names=("counted (Python)",), fingerprints=("0123",))

    async def idle() -> None:
        async with scene.session, asyncio.timeout(HANG_TIMEOUT_S):
            await scene.session.send("hello")
            of_dead_process(state, project, wanted)
            while not scene.notices:
                await asyncio.sleep(0.01)
            manager = scene.session._agent.subagents
            assert await (await scene.supervisor()).recover() == []
            # Nothing here that this session could do.
            registry = Registry(str(state))
            project_there = manager.host.world.location
            assert registry.dead_owners("-", project_there) != []
            assert registry.dead_owners("-", project_there, manager.left) == []
            registry.kill("r", "killed")
            registry.close()
            await scene.until("done")

    asyncio.run(idle())
    [sentence, continued] = scene.notices
    assert sentence.startswith(
        "subagent a (r) of a process that died is left alone: not all of its gates are asked"
    )
    assert continued == "continuing 1 subagent of a process that died: a"


@pytest.mark.sqlite
def test_a_row_that_cannot_be_read_is_reported_once_and_continued_when_it_is_repaired(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.subagents.supervisor.REGISTRY_ERROR_PAUSE_S", 0.0)
    scene = parent(project, "done", main=["hi"])

    def change(created: str) -> None:
        with contextlib.closing(sqlite3.connect(state / "registry.db", isolation_level=None)) as db:
            db.execute("UPDATE runs SET owner = 'dead', created = ?", (created,))

    async def idle() -> None:
        async with scene.session, asyncio.timeout(HANG_TIMEOUT_S):
            await scene.session.send("hello")
            of_dead_process(state, project, Gates(dialect="turngate"), owner=new_owner_id())
            change("yesterday")
            while not scene.notices:
                await asyncio.sleep(0.01)
            for _ in range(3):  # each takes as long as a poll of the watch
                await asyncio.sleep(POLL_S)
            change("5")
            await scene.until("done")

    asyncio.run(idle())
    path, why = state / "registry.db", "created is 'yesterday', not a number"
    assert scene.notices == [
        f"subagents of other processes cannot be watched: the registry {path} is damaged: {why}",
        "continuing 1 subagent of a process that died: a",
    ]


def test_what_a_closed_session_leaves_is_continued_in_the_same_process(project: Path) -> None:
    first = parent(project, STUCK)
    second = parent(project, "three files", main=["hello"])

    async def both() -> None:
        async with asyncio.timeout(HANG_TIMEOUT_S):
            async with first.session:
                await first.session.open()
                await first.session._agent.task_tool.start({"prompt": "go", "run_in_background": True})
            async with second.session:
                await second.session.send("go")
                await second.until("done")

    asyncio.run(both())
    [run] = {run.id: run for name, run in second.steps if name == "done"}.values()
    assert (run.result, run.recoveries) == ("three files", 0)


def test_a_session_that_loses_a_subagent_cancels_its_work_and_gets_the_result_as_a_message(
    project: Path, state: Path
) -> None:
    scene = parent(
        project,
        bash("echo $$ > pid; exec sleep 3600"),
        main=[subagent_task(), "waiting", "home"],
        allow=["Bash"],
    )
    pid = project / "pid"

    async def lose(scene: Parent) -> None:
        run = await scene.until("registered")
        while not (pid.exists() and pid.read_text()):
            await asyncio.sleep(0.01)
        with opened(state) as other:
            owner = other.join()
            execute(other, f"UPDATE $runs SET owner = '{owner}' RETURNING id")
            while len(scene.model.requests) < 3:  # the tool call has ended
                assert await asyncio.to_thread(other.beat, owner)
                await asyncio.sleep(0.01)
            assert not is_running(pid.read_text().strip())
            ended = other.transition("end", run.id, owner, outcome="ok", reason="complete", result="7")
            assert ended is not None
            other.transition("finish", run.id, owner, **{**FINAL, "announcement": announcement(ended)})
            other.transition("announce", run.id, owner)
            while len(scene.model.requests) < 4:
                assert await asyncio.to_thread(other.beat, owner)
                await asyncio.sleep(0.01)
            other.transition("done", run.id, owner)

    result = scene.during(lose)
    lost = "tool: subagent general-purpose is continued by another process; its result arrives as a message"
    assert (result.result, [text for text in scene.heard("main") if text.startswith("tool: ")]) == (
        "home",
        [lost],
    )
    assert scene.heard("main")[-1].endswith("\n\n7")
    assert scene.names == ["registered"]


@pytest.mark.sqlite
def test_a_turn_waits_for_a_subagent_that_is_lost_before_the_next_look_at_the_registry(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "POLL_S", 2.0)
    scene = parent(
        project,
        bash("touch begun; until [ -e lost ]; do sleep 0.01; done"),
        "written too late",
        main=[subagent_task(), "waiting", "home"],
        allow=["Bash"],
    )

    async def lose(scene: Parent) -> None:
        run = await scene.until("registered")
        while not (project / "begun").exists():
            await asyncio.sleep(0.01)
        with opened(state) as other:
            owner = other.join()
            execute(other, f"UPDATE $runs SET owner = '{owner}' RETURNING id")
            (project / "lost").touch()
            while not any("is continued by another process" in text for text in scene.heard("main")):
                await asyncio.sleep(0.01)
            ended = other.transition("end", run.id, owner, outcome="ok", reason="complete", result="7")
            assert ended is not None
            other.transition("finish", run.id, owner, **{**FINAL, "announcement": announcement(ended)})
            other.transition("announce", run.id, owner)
            while not any("[Subagent result]" in text for text in scene.heard("main")):
                await asyncio.sleep(0.01)
            other.transition("done", run.id, owner)

    assert scene.during(lose).result == "home"


@pytest.mark.sqlite
def test_a_subagent_of_a_live_session_is_left_to_it_although_the_lock_file_is_deleted(
    project: Path, state: Path
) -> None:
    start = task("count files", run_in_background=True)
    with session(project, [start, "all done"], [STUCK]) as process:
        [child] = asked(state)
        for lock in (state / "owners").iterdir():
            lock.unlink()
        assert again(project) == (0, "hello\n", "")
        assert recover(project) == (0, f"no subagent was left behind in {project}\n", "")
        assert [(each["id"], each["left"], each["state"]) for each in listed()] == [
            (child["id"], False, "running")
        ]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert recover(project)[0] == 0
    assert [each["result"] for each in listed()] == ["three files"]


def test_the_list_and_the_details_say_which_gates_a_subagent_needs(project: Path, state: Path) -> None:
    write_settings(project, "turngate", GATE)
    child = killed(project, state)
    status = f"its process died; `turngate runs recover` continues it where its gates are asked: {NAME}"
    assert status in [line.strip().replace("…", "") for line in turngate("runs")[1].splitlines()] or (
        status[:80] in turngate("runs")[1]
    )
    shown = turngate("runs", "show", child["id"])[1].splitlines()
    assert (f"  gates         {NAME}" in shown, shown[-1]) == (True, f"{status[0].upper()}{status[1:]}.")
    assert child["gates"] == {"dialect": "turngate", "hooks": True, "names": [NAME]}


def test_more_gates_than_its_own_are_no_obstacle(project: Path, state: Path) -> None:
    killed(project, state, "--no-hooks")
    write_settings(project, "turngate", GATE)
    code, out, err = again(project, *SAME_SESSION)
    assert (code, out, err) == (0, "thank you\n", f"! {CONTINUED}\n")
    assert [each["last_assistant_message"] for each in saved_inputs(project)] == ["three files"]


def test_a_result_that_was_on_its_way_needs_no_gate(project: Path, state: Path) -> None:
    write_settings(project, "turngate", GATE)
    child = killed(project, state)
    turngate("runs", "kill", child["id"])
    assert again(project, "--no-hooks")[:2] == (0, "hello\n")
    assert [each["state"] for each in listed()] == ["done"]


# Settings that have changed


def test_after_a_change_of_its_gates_a_subagent_is_left_until_a_person_decides(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", GATE)
    child = killed(project, state)
    write_settings(project, "turngate", stop_hooks(block_first(1), event="SubagentStop", id="counted"))
    sentence = left_alone(child, f"not all of its gates are asked here: {NAME}")
    title = f"{child['id'][:8]}  count files (general-purpose)\n"
    assert recover(project) == (20, f"left behind     {title}", f"! {sentence}\n")
    assert recover(project, "--current-gates", sub=("three", "three files")) == (
        0,
        f"done            {title}1 report waits for the parent session: turngate run --resume --session s-1\n",
        "subagent count files redirected (1 of 3): run the tests\n",
    )
    assert [each["result"] for each in listed()] == ["three files"]


def test_a_person_can_end_a_subagent_that_no_session_may_continue(project: Path, state: Path) -> None:
    write_settings(project, "turngate", GATE)
    child = killed(project, state)
    write_settings(project, "turngate", "{}")
    code, out, _ = turngate("runs", "kill", child["id"])
    assert (code, out.splitlines()[0]) == (0, f"killed  {child['id'][:8]}  count files (general-purpose)")
    assert recover(project)[0] == 0
    assert [(each["state"], each["outcome"]) for each in listed()] == [("done", "killed")]


def test_the_settings_of_the_command_line_are_gates_too(project: Path, state: Path) -> None:
    given = ("--settings", json.dumps(GATE))
    child = killed(project, state, *given)
    sentence = left_alone(child, "not all of its gates are asked here: counted (--settings)")
    assert (recover(project)[0], recover(project)[2]) == (20, f"! {sentence}\n")
    assert recover(project, *given)[0] == 0
    assert [each["last_assistant_message"] for each in saved_inputs(project)] == ["three files"]


def test_subagents_of_several_dialects_are_recovered_each_in_its_own(project: Path, state: Path) -> None:
    write_settings(project, "turngate", GATE)
    write_settings(project, "claude", stop_hooks("cat >> claude-seen", event="SubagentStop"))
    killed(project, state, "--dialect", "claude")
    start = task("count lines", run_in_background=True)
    model = scripted(project, [start, "all done"], [STUCK], "another")
    with session(project, [], [], "--model", model, "--session", "s-2", "--no-hooks") as process:
        asked(state, 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    until(lambda: all(each["left"] for each in listed()))
    assert [each["gates"]["dialect"] for each in listed()] == ["claude", "turngate"]
    code, _, err = recover(project)
    assert (code, err, [each["state"] for each in listed()]) == (0, "", ["done", "done"])
    assert (
        len((project / "claude-seen").read_text().splitlines()) == 2
    )  # its files are those of both dialects
    assert len(saved_inputs(project)) == 1


# Settings that decide how gates are asked


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"env": {"SKIP": "1"}}, "env"),
        ({"allowedHttpHookUrls": []}, "allowedHttpHookUrls"),
        ({"httpHookAllowedEnvVars": []}, "httpHookAllowedEnvVars"),
        ({"turngate": {"payload": "strict"}}, "payload"),
        ({"turngate": {"stopBudget": 0.001}}, "stopBudget"),
        ({"turngate": {"childSeconds": 0.5}}, "childSeconds"),
        ({"turngate": {"hardLimit": 0}}, "hardLimit"),
        ({"turngate": {"order": "first_block"}}, "order"),
        ({"turngate": {"judge": "openai:weak"}}, "judge"),
        ({"turngate": {"noReviseAfterSideEffects": True}}, "noReviseAfterSideEffects"),
        ({"turngate": {"allowedUrls": []}}, "allowedUrls"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_session_that_asks_the_same_gates_under_other_settings_leaves_a_subagent(
    tmp_path: Path, given: dict[str, Any], name: str
) -> None:
    write_settings(tmp_path, "turngate", GATE)
    wanted = gates(tmp_path, files=True)
    run = SubagentRun(
        id="r", chain="r", agent_id="a", agent_type="tester", launch={"gates": wanted.as_json()}
    )
    assert why_left(run, host(tmp_path, files=True)) == ""
    write_settings(tmp_path, "turngate", {**GATE, **given})
    assert (
        why_left(run, host(tmp_path, files=True)) == f"its gates are asked under other settings here: {name}"
    )


def test_a_session_that_changes_what_a_gate_sees_leaves_a_subagent_and_says_so(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", GATE)
    child = killed(project, state)
    words = ("--settings", '{"env": {"SKIP": "1"}, "turngate": {"stopBudget": 0.001}}')
    sentence = left_alone(child, "its gates are asked under other settings here: env, stopBudget")
    assert again(project, *words, "--strict") == (0, "hello\n", f"! {sentence}\n")
    assert again(project, *SAME_SESSION) == (0, "thank you\n", f"! {CONTINUED}\n")
    assert [each["last_assistant_message"] for each in saved_inputs(project)] == ["three files"]


def test_every_setting_is_compared_unless_it_is_known_not_to_matter() -> None:
    changed: dict[str, Any] = {
        each.name: object() for each in fields(Settings) if each.name not in NOT_ABOUT_GATES
    }
    assert set(compared_settings(Settings(**changed))) == set(changed)
    assert {each.name for each in fields(Settings)} >= NOT_ABOUT_GATES


def test_settings_that_gates_do_not_see_are_no_obstacle(tmp_path: Path) -> None:
    write_settings(tmp_path, "turngate", GATE)
    stored = gates(tmp_path, files=True).as_json()
    more = {
        "limit": 1,
        "childrenAtOnce": 1,
        "announceChildren": False,
        "model": "openai:m",
        "retentionDays": 1,
    }
    write_settings(tmp_path, "turngate", {**GATE, "turngate": more})
    run = SubagentRun(id="r", chain="r", agent_id="a", agent_type="tester", launch={"gates": stored})
    assert why_left(run, host(tmp_path, files=True)) == ""


def test_a_subagent_without_gates_continues_under_any_settings(tmp_path: Path) -> None:
    stored = gates(tmp_path).as_json()
    run = SubagentRun(id="r", chain="r", agent_id="a", agent_type="tester", launch={"gates": stored})
    assert why_left(run, host(tmp_path, said={"payload": "strict"})) == ""


def test_a_row_of_an_earlier_version_has_no_settings_to_compare(tmp_path: Path) -> None:
    stored = gates(tmp_path, STOP("make test"), said={"payload": "strict"}).as_json()
    del stored["settings"]
    run = SubagentRun(id="r", chain="r", agent_id="a", agent_type="tester", launch={"gates": stored})
    assert why_left(run, host(tmp_path, STOP("make test"))) == ""


# What a gate is


def host(tmp_path: Path, *rules: Rule, plugins: Plugins | None = None, **options: Any) -> Any:
    scene: Parent = parent(tmp_path, rules=rules, plugins=plugins, **options)
    return scene.session._agent.subagents.host


def gates(tmp_path: Path, *rules: Rule, agent_type: str = "tester", **options: Any) -> Gates:
    return gates_of(host(tmp_path, *rules, **options), agent_type)


STOP = functools.partial(rule, event="SubagentStop")


def check(_: object) -> None: ...


class Check:
    def __call__(self, _: object) -> None: ...


def test_hooks_that_cannot_hold_a_subagent_back_are_not_gates(tmp_path: Path) -> None:
    rules = (
        STOP("make test"),
        rule("make lint", event="PreToolUse"),
        rule("ask", event="PermissionRequest"),
        rule("make test", event="Stop"),
        rule("log", event="PostToolUse"),
        STOP(CommandHook("watch", mode="observe")),
        STOP(CommandHook("late", detached=True)),
        STOP(CommandHook("off", enabled=False)),
        STOP("another type", agent_type="coder"),
        STOP("this type", agent_type="tester"),
    )
    names = ("make test (Python)", "make lint (Python)", "ask (Python)", "this type (Python)")
    assert gates(tmp_path, *rules).names == names
    assert gates(tmp_path, *rules, hooks=False) == Gates(dialect="turngate", hooks=False, settings={})
    assert GATE_EVENTS == ("SubagentStop", "PreToolUse", "PermissionRequest")


@pytest.mark.parametrize(
    ("weaker", "kept"),
    [
        (CommandHook("make test", mode="observe"), ()),
        (CommandHook("make test", detached=True), ()),
        (CommandHook("make test", enabled=False), ()),
        (CommandHook("make test", enabled=False, id="other"), ("make test (Python)",)),
        (CommandHook("make lint", mode="observe"), ("make test (Python)",)),
    ],
    ids=["observe", "async", "disabled", "another id", "another command"],
)
def test_a_gate_that_a_later_definition_replaces_is_not_asked(
    tmp_path: Path, weaker: CommandHook, kept: tuple[str, ...]
) -> None:
    rules = STOP("make test", source="project"), STOP(weaker, matcher="test.*", source="command line")
    assert gates(tmp_path, *rules).names == kept


@pytest.mark.parametrize(
    "other",
    [
        STOP("make tests"),
        STOP("make test", matcher="tester"),
        STOP(CommandHook("make test", timeout=1)),
        STOP(CommandHook("make test", outcomes=("error",))),
        STOP(CommandHook("make test", env={"X": "1"})),
        STOP(CommandHook("make test", on_failure="block")),
        rule("make test", event="PreToolUse"),
    ],
)
def test_a_gate_that_behaves_differently_is_another_gate(tmp_path: Path, other: Rule) -> None:
    [mine] = gates(tmp_path, STOP("make test")).fingerprints
    assert gates(tmp_path, other).fingerprints != (mine,)


def test_the_place_and_the_message_of_a_gate_do_not_matter(tmp_path: Path) -> None:
    moved = STOP(
        CommandHook("make test", status_message="testing"), file="x.json", source="user", index="[3]"
    )
    assert gates(tmp_path, moved).fingerprints == gates(tmp_path, STOP("make test")).fingerprints


@pytest.mark.parametrize(
    ("function", "same", "other"),
    [
        (check, functools.partial(check), Check()),
        (Check(), Check(), check),
    ],
)
def test_a_callback_is_known_by_its_qualified_name(
    tmp_path: Path, function: Callable[..., Any], same: Callable[..., Any], other: Callable[..., Any]
) -> None:
    prints = [gates(tmp_path, STOP(CallbackHook(each))).fingerprints for each in (function, same, other)]
    assert (prints[0] == prints[1], prints[0] == prints[2]) == (True, False)


def test_a_handler_of_a_plugin_that_can_redirect_is_a_gate(tmp_path: Path) -> None:
    plugins = Plugins()
    plugins.on("subagent_stopping", Gate(None))
    plugins.on("subagent_stop", check)
    found = gates(tmp_path, plugins=plugins, hooks=False)
    assert (found.names, len(found.fingerprints)) == (("tests.support.subagents.Gate (plugin)",), 1)


def test_a_secret_in_a_header_is_not_in_the_row(tmp_path: Path) -> None:
    hook = HttpHook("https://user:secret@example.com/", headers={"Authorization": "secret"})
    assert "secret" not in json.dumps(gates(tmp_path, STOP(hook)).as_json())


def test_a_row_keeps_the_names_of_a_few_gates_and_the_fingerprints_of_all(tmp_path: Path) -> None:
    many = [STOP(f"check {n}") for n in range(7)]
    found = gates(tmp_path, *many)
    run = SubagentRun(id="r", chain="r", agent_id="a", agent_type="tester", launch={"gates": found.as_json()})
    assert (len(found.names), len(found.fingerprints), recorded_gates(run)) == (5, 7, found)
    assert why_left(run, host(tmp_path, *many)) == ""
    assert why_left(run, host(tmp_path, *many[1:])) == (
        "not all of its gates are asked here: check 0 (Python), check 1 (Python), check 2 (Python), "
        "check 3 (Python), check 4 (Python), …"
    )


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        ({}, "no hooks run here"),
        ({"dialect": "claude"}, "it runs in the dialect claude, not in turngate"),
        ({"gates": "nonsense"}, "no hooks run here"),
        ({"gates": {"hooks": False, "fingerprints": 5}}, ""),
    ],
)
def test_a_row_of_an_earlier_version_counts_as_one_whose_hooks_run(
    tmp_path: Path, launch: dict[str, Any], why: str
) -> None:
    run = SubagentRun(id="r", chain="r", agent_id="a", launch=launch)
    assert why_left(run, host(tmp_path, hooks=False)) == why


# Permission modes


@pytest.mark.parametrize(
    ("mode", "written", "notice"),
    [
        ("plan", False, f"{CONTINUED} (permission mode: plan)"),
        ("default", False, f"{CONTINUED} (permission mode: default)"),
        ("acceptEdits", True, f"{CONTINUED} (permission mode: acceptEdits)"),
        ("bypassPermissions", True, CONTINUED),
    ],
)
def test_the_stricter_permission_mode_counts_for_a_subagent_that_is_continued(
    project: Path, state: Path, mode: str, written: bool, notice: str
) -> None:
    killed(project, state, "--permission-mode", "bypassPermissions")
    words = ("--permission-mode", mode, *SAME_SESSION)
    code, out, err = again(project, *words, sub=(write("made"), "done"))
    assert (code, out, err.splitlines()[0]) == (0, "thank you\n", f"! {notice}")
    assert (project / "made").exists() is written


def test_a_session_of_the_strict_mode_is_not_loosened_by_the_one_that_resumes_it(
    project: Path, state: Path
) -> None:
    killed(project, state, "--permission-mode", "plan")
    again(project, "--permission-mode", "bypassPermissions", *SAME_SESSION, sub=(write("made"), "done"))
    assert not (project / "made").exists()


def test_hooks_get_the_permission_mode_that_counts(project: Path, state: Path) -> None:
    write_settings(project, "claude", GATE)
    killed(project, state, "--dialect", "claude", "--permission-mode", "bypassPermissions")
    again(project, "--dialect", "claude", "--permission-mode", "plan", *SAME_SESSION)
    assert saved_inputs(project, "permission_mode") == ["plan"]


def test_a_recovery_keeps_the_permission_mode_of_each_subagent(project: Path, state: Path) -> None:
    killed(project, state, "--permission-mode", "acceptEdits")
    assert recover(project, sub=(write("made"), "done"))[0] == 0
    assert (project / "made").exists()


# Tools, allowed tools and folders


AGENT_FILE = "---\nname: reader\ntools: Read\n---\nYou only read.\n"


@pytest.mark.parametrize("now", [None, AGENT_FILE.replace("Read", "Read, Write")], ids=["missing", "wider"])
def test_a_subagent_that_is_continued_has_no_more_tools_than_at_its_start(
    project: Path, state: Path, now: str | None
) -> None:
    file = project / ".turngate/agents/reader.md"
    file.parent.mkdir(parents=True)
    file.write_text(AGENT_FILE)
    killed(project, state, "--permission-mode", "bypassPermissions", subagent_type="reader")
    if now is None:
        file.unlink()
    else:
        file.write_text(now)
    code, _, err = recover(project, sub=(write("made"), "done"))
    lost = "subagent count files continues without the instructions of its agent type reader, which is not known here"
    assert (code, err) == (0, f"! {lost}\n" if now is None else "")
    [transcript] = state.glob("sessions/s-1/subagents/*.jsonl")
    assert "unknown tool 'Write', expected one of Read" in transcript.read_text()
    assert not (project / "made").exists()


@pytest.mark.parametrize(
    ("at_start", "now", "written"),
    [
        (("--allow", "Write"), ("--allow", "Write"), True),
        (("--allow", "Write"), (), False),
        ((), ("--allow", "Write"), False),
    ],
    ids=["both", "only at the start", "only now"],
)
@pytest.mark.parametrize("session_words", [SAME_SESSION, ("--session", "s-2")], ids=["resumed", "another"])
def test_a_subagent_that_is_continued_uses_without_asking_what_both_sessions_allow(
    project: Path,
    state: Path,
    at_start: tuple[str, ...],
    now: tuple[str, ...],
    written: bool,
    session_words: tuple[str, ...],
) -> None:
    killed(project, state, *at_start)
    wait = f"until grep -q tool_result {state}/sessions/s-1/subagents/*.jsonl; do sleep 0.1; done"
    model = scripted(project, [bash(wait), "hello", "thank you"], [write("made"), "done"])
    words = ("--model", model, "--allow", "Bash", *now, *session_words)
    assert turngate("run", "-p", "go on", "--project", str(project), *words)[0] == 0
    assert (project / "made").exists() is written


def test_a_recovery_keeps_what_each_subagent_may_use_and_where(project: Path, state: Path) -> None:
    (more := project.parent / "more").mkdir()
    killed(project, state, "--allow", "Write", "--add-dir", str(more))
    assert recover(project, sub=(write(str(more / "made")), "done"))[0] == 0
    assert (more / "made").exists()


@pytest.mark.parametrize(
    ("at_start", "now", "both"),
    [
        (["/a"], ["/a"], ["/a"]),
        (["/a", "/b"], ["/b"], ["/b"]),
        (["/a/b"], ["/a"], ["/a/b"]),
        (["/a"], ["/a/b", "/c"], ["/a/b"]),
        (["/a"], ["/ab"], []),
        (["/a"], ["/"], ["/a"]),
        (["/a"], [], []),
    ],
)
def test_a_subagent_that_is_continued_reaches_the_folders_that_both_sessions_allow(
    at_start: list[str], now: list[str], both: list[str]
) -> None:
    assert common_folders(at_start, now) == both


# Reports


def test_the_session_that_started_a_subagent_decides_whether_its_report_is_announced(
    project: Path, state: Path
) -> None:
    killed(project, state)
    assert recover(project, "--settings", '{"turngate": {"announceChildren": false}}')[0] == 0
    again(project, *SAME_SESSION)
    chat = (state / "sessions/s-1/chat.jsonl").read_text()
    assert chat.count("[Subagent result]") == 1


# Gates that are not enforced


def adopt(project: Path, first: Parent, second: Parent) -> TurnResult:
    """Start a subagent in the first session, close it, and let the second one finish the subagent during its turn."""

    async def both() -> TurnResult:
        async with asyncio.timeout(HANG_TIMEOUT_S):
            async with first.session:
                await first.session.open()
                start = {"prompt": "go", "description": "kid", "run_in_background": True}
                await first.session._agent.task_tool.start(start)
            async with second.session:
                turn = asyncio.create_task(second.session.send("go"))
                while not any(name == "done" and run.label == "kid" for name, run in second.steps):
                    await asyncio.sleep(0.01)
                (project / "finished").touch()
                return await turn

    return asyncio.run(both())


WAIT = bash("until [ -e finished ]; do sleep 0.05; done")


def counted(result: TurnResult) -> tuple[bool, list[tuple[str, str]]]:
    return result.success, [(each.event, each.hook) for each in result.unenforced]


def test_a_gate_of_a_subagent_that_is_not_enforced_counts_for_the_session_that_started_it(
    project: Path,
) -> None:
    rules = [STOP("exit 1")]
    first = parent(project, STUCK, rules=rules)
    second = parent(project, "three files", main=[WAIT, "hello"], rules=rules, strict=True, allow=["Bash"])
    result = adopt(project, first, second)
    assert (counted(result), result.subagents) == ((True, []), ())
    resumed = parent(project, main=["thanks", "bye"], rules=rules, strict=True, session_id=first.session.id)
    assert counted(resumed.play()) == (False, [("SubagentStop", "exit 1")])
    assert 'hook "exit 1" of subagent kid was NOT enforced: exit code 1' in resumed.notices[0]


def test_the_gates_of_its_own_subagents_are_carried_with_its_report(project: Path) -> None:
    rules = [STOP("exit 1", matcher="Explore"), rule("exit 3", event="PreToolUse", matcher="Glob")]
    first = parent(project, STUCK, rules=rules)
    glob = {"tool": "Glob", "input": {"pattern": "*"}}
    sub = [subagent_task(subagent_type="Explore"), glob, "found", "three files"]
    second = parent(project, *sub, main=[WAIT, "hello"], rules=rules, strict=True, allow=["Bash"])
    assert counted(adopt(project, first, second)) == (True, [])
    resumed = parent(project, main=["thanks", "bye"], rules=rules, strict=True, session_id=first.session.id)
    assert counted(resumed.play()) == (False, [("PreToolUse", "exit 3"), ("SubagentStop", "exit 1")])


def test_in_its_own_session_a_gate_of_a_subagent_counts_once(project: Path) -> None:
    rules = [STOP("exit 1", matcher="Explore")]
    sub = [subagent_task(subagent_type="Explore"), "found", "three files"]
    scene = parent(project, *sub, main=[subagent_task(), "home"], rules=rules, strict=True)
    assert counted(scene.play()) == (False, [("SubagentStop", "exit 1")])


@pytest.mark.parametrize("stored", [None, 5, "x", [5, None], {"hook": "x"}])
def test_a_damaged_list_of_gates_in_a_row_counts_as_empty(stored: Any) -> None:
    assert SubagentRun(id="r", chain="r", agent_id="a", guard={"unenforced": stored}).unenforced == ()


def test_a_redirect_keeps_which_gates_were_not_enforced(project: Path) -> None:
    fails_once = "test -e once && exit 0; touch once; exit 1"
    rules = [STOP(fails_once), STOP(block_first(1))]
    scene = parent(project, "one", "two", rules=rules, strict=True)
    result = scene.play()
    assert ([each.redirects for each in result.subagents], counted(result)) == (
        [1],
        (False, [("SubagentStop", fails_once)]),
    )
