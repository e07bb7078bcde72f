"""Gate hooks: what a gate in the settings does to a stop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, settings, stop_event, subagent_stop, world
from tests.support.gates import ELSEWHERE, OtherShell
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.events import Event, SessionStart, SubagentStart
from turngate.core.hooks.kinds import GateHook
from turngate.core.settings import Settings
from turngate.core.verdict.decisions import UNCHANGED_RESULT, Allow, Block, Decision, Fault, Halt
from turngate.core.verdict.hook_run import HookRun
from turngate.engine import ask_hooks
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.models.scripted import ScriptedModel
from turngate.ports import World
from turngate.shells.local import LocalShell

RESULTS: dict[str, Decision] = {
    "passes": Allow(),
    "notes": Allow("nothing to check"),
    "fails": Block("2 tests fail"),
    "asks": Block("not done", continuations=20),
    "missing": Fault("there is no npm"),
    "spent": Halt("the budget is spent"),
    "waits": Halt("approve the plan", waits=True),
}


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Callable[[Gate], None]:
    """Return a function that makes a gate known by its name while the test runs."""
    gates: dict[str, Gate] = {}
    monkeypatch.setattr("turngate.gates.arguments.GATES", gates)
    return lambda gate: gates.update({gate.name: gate})


def with_result(name: str, result: Decision, **fields: Any) -> Gate:
    async def check(_: GateContext) -> Decision:
        return result

    return Gate(name=name, summary=name, check=check, **fields)


def run_of(hook: GateHook, project: Path, event: Event | None = None, **fields: Any) -> HookRun:
    """Return the run of one gate, with real processes."""
    return run_in(world(project), hook, event or stop_event(cwd=str(project)), **fields)


def run_in(where: World, hook: GateHook, event: Event, **fields: Any) -> HookRun:
    configured: Settings = settings(hook, event=event.name, **fields)
    [run] = asyncio.run(ask_hooks(event, configured, where)).runs
    return run


NO_SESSION = stop_event(session_id="fire")
DECISIONS: dict[str, tuple[Decision, Decision]] = {
    "passes": (Allow(), Allow()),
    "notes": (Allow(notice='gate "notes": nothing to check'),) * 2,
    "fails": (Block("2 tests fail"),) * 2,
    "asks": (Block("not done", continuations=20),) * 2,
    "missing": (Fault("there is no npm"), Block('gate "missing" could not run: there is no npm')),
    "spent": (Halt("the budget is spent"),) * 2,
    "waits": (Halt("approve the plan", waits=True),) * 2,
}


@pytest.mark.parametrize("name", DECISIONS)
def test_each_result_of_a_gate_is_a_decision(project: Path, name: str, add: Callable[[Gate], None]) -> None:
    add(with_result(name, RESULTS[name]))
    runs = [run_of(GateHook(name, strict=strict), project, NO_SESSION) for strict in (False, True)]
    assert (runs[0].decision, runs[1].decision) == DECISIONS[name]


def test_a_command_that_fails_blocks_with_its_output(project: Path) -> None:
    run = run_of(GateHook(command="echo 'FAILED test_price'; exit 1"), project)
    assert run.decision == Block("`echo 'FAILED test_price'; exit 1`: exit code 1\nFAILED test_price")


@pytest.mark.req("X-37")
@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=["turngate", "mux", "claude"])
def test_a_missing_program_is_not_a_block(project: Path, dialect: Dialect) -> None:
    run = run_of(GateHook(command="no-such-program --all"), project, dialect=dialect)
    assert run.decision == Fault("exit code 127: /bin/sh: 1: no-such-program: not found")


def test_a_program_can_be_given_without_a_shell(project: Path) -> None:
    run = run_of(GateHook(command="sh", args=("-c", 'echo "$1"; exit 3', "x", "a  b")), project)
    shown = "sh -c 'echo \"$1\"; exit 3' x 'a b'"
    assert run.decision == Block(f"`{shown}`: exit code 3\na  b")


def test_a_failure_of_the_gate_blocks_if_the_hook_is_blocking(project: Path) -> None:
    hook = GateHook(command="no-such-program", blocking=True)
    verdict = asyncio.run(ask_hooks(stop_event(cwd=str(project)), settings(hook), world(project)))
    assert verdict.unenforced == ()


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=["turngate", "mux", "claude"])
def test_a_gate_may_take_ten_minutes(dialect: Dialect) -> None:
    assert settings(dialect=dialect).timeout_of(rule(GateHook("tests"))) == 600.0


@pytest.mark.parametrize(("timeout", "limit"), [(10_000, 9_995), (2_000_000, 1_999_995)])
def test_a_gate_ends_by_itself_before_the_timeout_of_its_hook(
    project: Path, add: Callable[[Gate], None], timeout: float, limit: float
) -> None:
    limits: list[float | None] = []

    async def check(context: GateContext) -> Decision:
        limits.append(context.commands.timeout)
        return Allow()

    add(Gate(name="shows", summary="", check=check))
    run_of(GateHook("shows", timeout=timeout), project)
    [own] = limits
    assert own is not None
    assert limit - HANG_TIMEOUT_S < own <= limit


def test_the_margin_of_a_short_timeout_is_a_fraction_of_it(
    project: Path, add: Callable[[Gate], None]
) -> None:
    async def check(context: GateContext) -> Decision:
        return Allow() if (context.commands.timeout or 0) > 5 else Block("no time is left")

    add(Gate(name="shows", summary="", check=check))
    assert run_of(GateHook("shows", timeout=20), project).decision == Allow()


def test_a_gate_that_runs_out_of_time_is_not_enforced(project: Path) -> None:
    run = run_of(GateHook(command="sleep 3600", timeout=1), project)
    assert isinstance(run.decision, Fault)
    assert run.decision.error.endswith(" 1 s")  # as it is configured, whichever limit was first


# What it is given


def test_a_gate_has_the_environment_of_a_command_hook(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN_X", "not-passed")
    shown = 'echo "${SECRET_TOKEN_X:-none} $A $B $TURNGATE_EVENT $TURNGATE_IN_HOOK"; exit 1'
    hook = GateHook(command=shown, env={"A": "1"}, pass_env=())
    run = run_of(hook, project, env={"B": "2"})
    assert run.decision == Block(f"`{shown}`: exit code 1\nnone 1 2 Stop 1")


def test_the_settings_can_ask_for_a_clean_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_VARIABLE", "1")
    hook = GateHook(command='test -z "$OTHER_VARIABLE"')
    clean, passed = (run_of(hook, project, NO_SESSION, pass_env=names) for names in ((), ("OTHER_VARIABLE",)))
    assert (type(clean.decision), type(passed.decision)) == (Allow, Block)


def test_a_secret_is_not_sent_to_the_agent(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "sesame-open-1234")
    run = run_of(GateHook(command="echo using $API_TOKEN; exit 1"), project)
    assert run.decision == Block("`echo using $API_TOKEN; exit 1`: exit code 1\nusing …")


def test_options_reach_the_gate_with_their_defaults(project: Path, add: Callable[[Gate], None]) -> None:
    async def show(context: GateContext) -> Decision:
        return Block(repr(dict(context.options)))

    options = (
        GateOption(name="max-iterations", kind="number", help="how often", default=5),
        GateOption(name="if-changed", kind="texts", help="only if these changed"),
        GateOption(name="dry-run", kind="flag", help="only say what it would do"),
        GateOption(name="promise", kind="text", help="the text"),
    )
    add(Gate(name="shows", summary="", check=show, options=options))
    hook = GateHook("shows", options={"ifChanged": "src/**", "promise": "DONE"})
    assert run_of(hook, project).decision == Block(
        "{'max-iterations': 5, 'if-changed': ('src/**',), 'dry-run': False, 'promise': 'DONE'}"
    )


def test_a_gate_that_is_not_known_is_not_enforced(project: Path) -> None:
    assert run_of(GateHook("comand", "make"), project).decision == Fault(
        '`gate` is "comand", which is not a gate; did you mean "command"?'
    )


@pytest.mark.req("X-37")
def test_a_gate_reaches_the_project_only_through_the_shell(project: Path) -> None:
    (project / "result").write_text("FAILED test_price\n")
    where = World(OtherShell(project), ELSEWHERE)
    run = run_in(where, GateHook(command="cat result; exit 1"), stop_event(cwd=ELSEWHERE))
    assert run.decision == Block("`cat result; exit 1`: exit code 1\nFAILED test_price")


class OneSlot(OtherShell):
    """A shell that notes who holds its slot."""

    def __init__(self, project: Path) -> None:
        super().__init__(project)
        self.log: list[str] = []

    @asynccontextmanager
    async def slot(self, *, background: bool = False) -> AsyncIterator[None]:
        self.log.append("background" if background else "taken")
        yield
        self.log.append("free")


@pytest.mark.parametrize("detached", [False, True], ids=["", "background"])
def test_a_gate_holds_one_slot_of_the_shell(project: Path, detached: bool) -> None:
    shell = OneSlot(project)

    async def stop() -> None:
        where = World(shell, ELSEWHERE)
        await ask_hooks(NO_SESSION, settings(GateHook(command="true", detached=detached)), where)
        await where.close(grace=HANG_TIMEOUT_S)

    asyncio.run(stop())
    assert shell.log == ["background" if detached else "taken", "free"]


# What it remembers


@pytest.mark.req("X-07")
def test_sessions_and_agents_of_one_project_do_not_share_what_a_gate_remembers(project: Path) -> None:
    hook = GateHook(command="echo no; exit 1")
    events = [
        stop_event(cwd=str(project)),
        stop_event(cwd=str(project)),
        stop_event(cwd=str(project), session_id="s-2"),
        replace(subagent_stop(), cwd=str(project)),
    ]
    reasons = [run_of(hook, project, event).decision for event in events]
    first = Block("`echo no; exit 1`: exit code 1\nno")
    assert reasons == [first, Block(f"{first.reason}\n\n{UNCHANGED_RESULT}"), first, first]


def test_stops_without_a_session_remember_nothing(project: Path) -> None:
    hook, event = GateHook(command="echo no; exit 1"), stop_event(cwd=str(project), session_id="fire")
    assert [run_of(hook, project, event).decision for _ in range(2)] == [
        Block("`echo no; exit 1`: exit code 1\nno")
    ] * 2


def test_a_file_that_was_changed_in_the_session_is_not_run(project: Path) -> None:
    configured = replace(rule(GateHook(command="true")), files={str(project / "gone.sh"): "sha256:0"})
    verdict = asyncio.run(
        ask_hooks(stop_event(cwd=str(project)), replace(settings(), rules=(configured,)), world(project))
    )
    [run] = verdict.runs
    assert isinstance(run.decision, Fault)
    assert run.decision.kind == "skipped"


# What it records at the start


def recording(name: str = "records") -> Gate:
    """Return a gate that blocks with what it has recorded."""

    async def record(context: GateContext) -> dict[str, Any]:
        report = await context.commands.run_script("cat state")
        return {"was": report.stdout.strip()}

    async def check(context: GateContext) -> Decision:
        return Block(f"recorded: {context.state.start}")

    return Gate(name=name, summary=name, check=check, record=record)


def start_event(project: Path, **fields: Any) -> SessionStart:
    return SessionStart(
        **{"session_id": "s-1", "transcript_path": "/t", "cwd": str(project), "source": "startup", **fields}
    )


def test_a_gate_of_a_stop_records_what_is_there_at_the_start(
    project: Path, add: Callable[[Gate], None]
) -> None:
    add(recording())
    configured, where = settings(GateHook("records"), GateHook(command="true")), world(project)
    reasons = []
    for state, session in (("one", "s-1"), ("two", "s-1"), ("three", "s-2")):
        (project / "state").write_text(state)
        started = asyncio.run(ask_hooks(start_event(project, session_id=session), configured, where))
        stopped = asyncio.run(ask_hooks(stop_event(cwd=str(project), session_id=session), configured, where))
        assert [(run.rule.event, run.decision) for run in started.runs] == [("SessionStart", Allow())]
        reasons.append(stopped.runs[0].decision)
    assert [str(getattr(each, "reason", "")).partition("\n")[0] for each in reasons] == [
        "recorded: {'was': 'one'}",
        "recorded: {'was': 'one'}",  # the start of the session counts, not that of a process that resumes it
        "recorded: {'was': 'three'}",
    ]


def test_a_gate_of_a_subagent_records_at_its_start(project: Path, add: Callable[[Gate], None]) -> None:
    add(recording())
    (project / "state").write_text("one")
    rules = (rule(GateHook("records"), "SubagentStop", matcher="coder"),)
    configured, where = replace(settings(), rules=rules), world(project)
    common = {"session_id": "s-1", "transcript_path": "/t", "cwd": str(project)}
    runs = []
    for kind in ("coder", "tester"):
        event = SubagentStart(**common, agent_id="a-1", agent_type=kind)
        runs.append(asyncio.run(ask_hooks(event, configured, where)).runs)
    stopped = asyncio.run(ask_hooks(replace(subagent_stop("coder"), cwd=str(project)), configured, where))
    assert [len(each) for each in runs] == [1, 0]
    assert stopped.runs[0].decision == Block("recorded: {'was': 'one'}")


OFF: dict[str, dict[str, Any]] = {
    "switched off": {"enabled": False},
    "in the background": {"detached": True},
}


@pytest.mark.parametrize("fields", OFF.values(), ids=OFF)
def test_a_gate_that_will_not_decide_records_nothing(
    project: Path, add: Callable[[Gate], None], fields: dict[str, Any]
) -> None:
    add(recording())
    configured = settings(GateHook("records", **fields))
    assert asyncio.run(ask_hooks(start_event(project), configured, world(project))).runs == ()


def test_a_gate_that_is_not_approved_records_nothing(project: Path, add: Callable[[Gate], None]) -> None:
    add(recording())
    pending = replace(rule(GateHook("records")), pending="it is not approved")
    configured = replace(settings(), rules=(pending,))
    assert asyncio.run(ask_hooks(start_event(project), configured, world(project))).runs == ()


def test_a_start_is_never_blocked(project: Path, add: Callable[[Gate], None]) -> None:
    async def record(_: GateContext) -> dict[str, Any]:
        raise OSError("no space left")

    add(with_result("records", Block("no"), record=record))
    [run] = asyncio.run(ask_hooks(start_event(project), settings(GateHook("records")), world(project))).runs
    assert run.decision == Allow(warnings=("the state at the start is not recorded: OSError: no space left",))


def test_a_project_does_not_choose_the_judge_of_a_gate_that_is_trusted_more(project: Path) -> None:
    asked: list[str | None] = []

    def judge(model: str | None) -> ScriptedModel:
        asked.append(model)
        return ScriptedModel({"judge": ['{"ok": true}']})

    of_user = replace(rule(GateHook("judge", options={"prompt": "Is it done?"})), source="user")
    configured = replace(
        settings(judge="openai:weak"), rules=(of_user,), guarded={1: {"judge": "openai:strong"}}
    )
    where = World(LocalShell(), str(project), judge=judge)
    [run] = asyncio.run(ask_hooks(NO_SESSION, configured, where)).runs
    assert (type(run.decision), asked) == (Allow, ["openai:strong"])
