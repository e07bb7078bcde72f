"""A subagent that ended although a gate still blocks it is named in the result of the turn that gets its answer."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.sessions import BLOCK_COMMAND, say
from tests.support.subagents import Parent, bash, parent, task, write
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.main import main as turngate
from turngate.core.dialect import CLAUDE
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import CommandHook
from turngate.subagents.limits import SubagentLimits

GATE = CommandHook(BLOCK_COMMAND, id="tests")
HALT = CommandHook(say({"continue": False, "stopReason": "enough"}), id="budget")
WAIT = CommandHook(say({"continue": False, "stopReason": "approve it", "waits": True}), id="approval")
BACK = task(description="lines", run_in_background=True)
UNTIL_GO = bash("until [ -e go ]; do sleep 0.01; done")


def blocked(result: TurnResult) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(each.label, each.reason, each.blocked_by) for each in result.blocked_subagents]


def under(project: Path, hook: CommandHook, *sub: Any, event: str = "SubagentStop", **options: Any) -> Parent:
    main, matcher = options.pop("main", [task(description="lines"), "home"]), options.pop("matcher", None)
    return parent(project, *sub, main=main, rules=[rule(hook, event, matcher=matcher)], **options)


CASES: dict[str, tuple[CommandHook, dict[str, Any], tuple[str, tuple[str, ...]]]] = {
    "capped": (GATE, {"said": {"limit": 1}}, ("capped", ("tests",))),
    "capped at once": (GATE, {"said": {"limit": 0}}, ("capped", ("tests",))),
    "stalled": (GATE, {"said": {"limit": 9}}, ("stalled", ("tests",))),
    "halted": (HALT, {}, ("halted", ("budget",))),
}


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
@pytest.mark.parametrize("case", CASES)
def test_the_result_names_a_subagent_that_ended_while_a_gate_blocks(
    project: Path, case: str, strict: bool, background: bool
) -> None:
    hook, options, (reason, names) = CASES[case]
    main = [task(description="lines", run_in_background=background), "waiting", "home"]
    result = under(project, hook, "counted", main=main, strict=strict, **options).play()
    assert (result.ended_by, result.success, blocked(result)) == (
        "allowed",
        not strict,
        [("lines", reason, names)],
    )


def test_a_subagent_that_a_hook_halted_in_the_middle_of_its_work_is_named(project: Path) -> None:
    options: dict[str, Any] = {"event": "PreToolUse", "matcher": "Bash", "strict": True}
    scene = under(project, HALT, bash("true"), main=[BACK, "waiting", "home"], **options)
    result = scene.play()
    assert (result.success, blocked(result)) == (False, [("lines", "halted", ())])


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
@pytest.mark.parametrize(
    ("event", "sub", "shown", "named"),
    [
        ("SubagentStop", ["counted"], ":\ncounted", [("lines", "checkpoint", ("approval",))]),
        ("PreToolUse", [bash("true")], "", []),
    ],
)
def test_the_turn_waits_with_a_subagent_for_which_a_hook_waits_for_the_user(
    project: Path, event: str, sub: list[Any], shown: str, named: list[Any], background: bool
) -> None:
    main = [task(description="lines", run_in_background=background), "waiting", "home"]
    matcher = "Bash" if event == "PreToolUse" else None
    result = under(project, WAIT, *sub, main=main, event=event, matcher=matcher).play()
    assert (result.ended_by, result.checkpoint, blocked(result)) == (
        "checkpoint",
        f"subagent lines waits at a checkpoint{shown}",
        named,
    )


def test_a_subagent_that_is_not_redirected_after_a_change_is_named(project: Path) -> None:
    said = {"no_revise_after_side_effects": True}
    scene = under(project, GATE, write("a.txt"), "written", said=said, allow=["Write"], strict=True)
    result = scene.play()
    assert (result.success, blocked(result)) == (False, [("lines", "capped", ("tests",))])


def test_a_subagent_that_passes_its_gate_is_not_named(project: Path) -> None:
    result = under(project, CommandHook("true"), "counted", strict=True).play()
    assert (result.success, blocked(result), len(result.subagents)) == (True, [], 1)


def test_a_subagent_of_a_subagent_is_named(project: Path) -> None:
    """Both are blocked by the same gate."""
    sub = [task(description="deeper"), "deep", "child"]
    result = under(project, GATE, *sub, said={"limit": 0}).play()
    assert sorted(blocked(result)) == [
        ("deeper", "capped", ("tests",)),
        ("lines", "capped", ("tests",)),
    ]


def test_the_turn_that_gets_the_answer_of_a_blocked_subagent_names_it(project: Path) -> None:
    """It ended between two turns."""
    options: dict[str, Any] = {"said": {"limit": 0}, "allow": ["Bash"], "children": SubagentLimits(wait=0.2)}
    scene = under(project, GATE, UNTIL_GO, "counted", main=[BACK, "waiting", "thanks", "home"], **options)

    async def turns() -> list[list[tuple[str, str, tuple[str, ...]]]]:
        async with asyncio.timeout(HANG_TIMEOUT_S), scene.session as session:
            first = await session.send("go")
            (project / "go").touch()
            await scene.until("done")
            return [blocked(first), blocked(await session.send("and?"))]

    assert asyncio.run(turns()) == [[], [("lines", "capped", ("tests",))]]


def test_a_resumed_parent_names_a_subagent_that_another_process_finished(project: Path) -> None:
    options: dict[str, Any] = {"said": {"limit": 0}, "allow": ["Bash"], "children": SubagentLimits(wait=0.2)}
    scene = under(project, GATE, UNTIL_GO, "counted", main=[BACK, "waiting"], **options)

    async def leave() -> None:
        async with asyncio.timeout(HANG_TIMEOUT_S), scene.session as session:
            await session.send("go")
            (project / "go").touch()
            await scene.until("done")

    asyncio.run(leave())
    resumed = parent(project, main=["thanks", "home"], session_id=scene.session.id, strict=True)
    result = resumed.play("and?")
    assert (result.success, blocked(result)) == (False, [("lines", "capped", ("tests",))])


def test_a_redirect_that_cannot_be_delivered_leaves_the_subagent_blocked(project: Path) -> None:
    def fail(name: str, _: object) -> None:
        if name == "cleared":
            raise OSError("no space")

    result = under(project, GATE, "counted", on_step=fail, strict=True).play()
    assert (result.success, blocked(result)) == (False, [("lines", "capped", ("tests",))])


# Without a limit of redirects

NO_CAP = {"env": {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"}}
WORK = {"tool": "Glob", "input": {"pattern": "*"}}


@pytest.mark.parametrize(
    ("sub", "outcomes", "redirects", "outcome"),
    [
        (("counted",), ("ok",), 4, "ok"),
        ((WORK, "counted", WORK), ("ok",), 1, "error"),
        ((WORK,), ("ok", "error"), 0, "error"),
    ],
    ids=["answers", "works after a redirect", "hook of a failed run"],
)
def test_a_subagent_that_is_blocked_for_ever_ends_at_the_limit_of_model_requests(
    project: Path, sub: tuple[Any, ...], outcomes: Any, redirects: int, outcome: str
) -> None:
    hook = CommandHook(BLOCK_COMMAND, id="tests", outcomes=outcomes)
    main = [task(description="lines", run_in_background=False), "home"]
    options: dict[str, Any] = {"dialect": CLAUDE, "said": NO_CAP, "max_turns": 5, "strict": True}
    scene = under(project, hook, *sub, main=main, **options)
    result = scene.play()
    [finished] = result.subagents
    assert sum(request.agent == "sub" for request in scene.model.requests) == 5
    assert (finished.redirects, finished.outcome) == (redirects, outcome)
    assert (result.success, blocked(result)) == (False, [("lines", "capped", ("tests",))])


def test_a_prompt_of_the_parent_gives_a_subagent_its_model_requests_anew(project: Path) -> None:
    main = [task(description="lines", run_in_background=False), task(resume="AGENT"), "home"]
    options: dict[str, Any] = {"dialect": CLAUDE, "said": NO_CAP, "max_turns": 5}
    scene = under(project, GATE, "counted", main=main, **options)
    result = scene.play()
    assert sum(request.agent == "sub" for request in scene.model.requests) == 10
    assert [each.redirects for each in result.subagents] == [4, 4]


# The command line


SCRIPT = {"main": [task(description="lines"), "home"], "sub": ["counted"]}


def run(project: Path, *words: str) -> int:
    script = project.parent / "script.json"
    script.write_text(json.dumps(SCRIPT))
    hooks = stop_hooks(BLOCK_COMMAND, event="SubagentStop", id="tests")
    write_settings(project, "turngate", {**hooks, "turngate": {"limit": 1}})
    return turngate(["run", "-p", "go", "--project", str(project), "--model", f"scripted:{script}", *words])


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--strict",), 13)], ids=["", "strict"])
def test_the_end_of_the_turn_names_it_and_strict_exits_with_13(
    project: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], code: int
) -> None:
    assert run(project, *words) == code
    out, err = capfd.readouterr()
    assert (out, err.splitlines()[-1]) == (
        "home\n",
        '! 1 subagent ended although a gate still blocks: lines (capped: "tests")',
    )


def test_the_json_output_names_it(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(project, "--strict", "--output-format", "json") == 13
    result = json.loads(capfd.readouterr().out)
    [subagent] = result["subagents"]
    assert (result["outcome"], subagent["reason"], subagent["blocked_by"]) == (
        "completed",
        "capped",
        ["tests"],
    )
    assert result["blocked_subagents"] == [
        {
            "agent_id": subagent["agent_id"],
            "agent_type": "general-purpose",
            "label": "lines",
            "reason": "capped",
            "blocked_by": ["tests"],
        }
    ]


def test_the_log_names_it(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(project)
    capfd.readouterr()
    assert turngate(["log", "--project", str(project)]) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.partition("  ")[2] == (
        'turn ended (allowed): 1 subagent ended although a gate still blocks: lines (capped: "tests")'
    )
