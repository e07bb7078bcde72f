"""What holds whatever comes in: settings, hooks' output, callbacks' values, turns of any shape."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.builders import rule, run, settings, stop_event, subagent_stop
from tests.support.strategies import any_text, json_values, settings_values
from turngate.check.lint import lint
from turngate.core.answers.answer_json import ANSWER_KEYS
from turngate.core.answers.interpret import interpret
from turngate.core.answers.misplaced import lost_in_object
from turngate.core.answers.report_types import Exited, Report, Returned
from turngate.core.constants import FAMILIES, LEVELS
from turngate.core.dialect import CLAUDE, DIALECTS, MUX, TURNGATE, Dialect
from turngate.core.hooks.kinds import CallbackHook
from turngate.core.hooks.selection import plan
from turngate.core.settings import Layer, Settings, merge
from turngate.core.text import truncate_middle
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.json_output import verdict_json
from turngate.core.verdict.loop_guard import ContinueTurn, EndTurn, LoopGuard, new_guard
from turngate.core.verdict.verdict import Continue, Stop, Verdict, conclude
from turngate.ports import OUTPUT_TAIL_BYTES, BoundedOutput
from turngate.settings import key_table as keys
from turngate.settings.parse import parse_layer
from turngate.trust.load import load_settings

dialects = st.sampled_from([*DIALECTS.values()])

# Settings


@given(value=settings_values(), dialect=dialects, level=st.sampled_from(LEVELS))
def test_any_json_value_becomes_a_layer(value: Any, dialect: Dialect, level: str) -> None:
    layer = parse_layer(value, file="f", level=level, family=dialect.families[0], dialect=dialect)
    assert all(each.hook.timeout is None or 0 < each.hook.timeout < math.inf for each in layer.rules)
    assert all(str(problem).encode() for problem in layer.problems)


@given(values=st.lists(settings_values(), max_size=4), dialect=dialects, data=st.data())
def test_any_layers_become_settings_that_can_be_planned_and_looked_at(
    values: list[Any], dialect: Dialect, data: st.DataObject
) -> None:
    layers = [data.draw(layer_of(value, dialect)) for value in values]
    merged = merge(layers, keys.MERGE_RULES, dialect)
    for event in (stop_event(), subagent_stop()):
        planned = plan(merged, event)
        assert len(planned.ask) + len(planned.skip) <= sum(len(layer.rules) for layer in layers)
    assert all(0 < merged.timeout_of(each) < math.inf for each in merged.rules)
    assert all(str(problem).encode() for problem in (*merged.problems, *lint(merged, "/no/such/project")))
    assert merged.hard_limit is None or merged.hard_limit >= 0


def layer_of(value: Any, dialect: Dialect) -> st.SearchStrategy[Layer]:
    places = st.tuples(st.sampled_from(LEVELS), st.sampled_from(dialect.families))
    return places.map(
        lambda place: parse_layer(value, file="f", level=place[0], family=place[1], dialect=dialect)
    )


@given(value=settings_values() | st.binary(max_size=40), dialect=st.sampled_from([*DIALECTS]))
def test_any_file_can_be_loaded(tmp_path_factory: pytest.TempPathFactory, value: Any, dialect: str) -> None:
    project = tmp_path_factory.mktemp("project")
    path = project / f".{FAMILIES[dialect][-1]}" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    found = load_settings(str(project), dialect=dialect, home=str(project / "home"))
    assert found.dialect is DIALECTS[dialect]


# What a command says

ANSWER = [*sorted(ANSWER_KEYS), "behavior", "message", "async"]
SAID = [
    "block",
    "deny",
    "approve",
    "allow",
    "BLOCK",
    "Stop",
    "SubagentStop",
    "PreToolUse",
    "go on",
    "",
    " \n",
    "\ud800",
]

junk = json_values(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(SAID) | any_text, ANSWER, 6
)
specific = st.fixed_dictionaries(
    {},
    optional={
        "hookEventName": st.sampled_from(["Stop", "SubagentStop", "PreToolUse"]) | junk,
        "additionalContext": st.sampled_from(SAID) | junk,
        "permissionDecision": st.sampled_from(["deny", "allow", "ask"]) | junk,
        "decision": st.sampled_from([{"behavior": "deny", "message": "no"}, {"behavior": "deny"}]) | junk,
    },
)
answers = st.fixed_dictionaries(
    {},
    optional={
        "decision": st.sampled_from(SAID) | junk,
        "reason": st.sampled_from(SAID) | junk,
        "continue": st.booleans() | junk,
        "stopReason": st.sampled_from(SAID) | junk,
        "systemMessage": st.sampled_from(SAID) | junk,
        "suppressOutput": st.booleans() | junk,
        "hookSpecificOutput": specific | junk,
        "async": st.booleans(),
        "colour": junk,
    },
)
around = st.sampled_from([b"", b"\n", b" ", b"\xef\xbb\xbf", b"text\n", b"}", b"\xff", b"{"])
as_json = answers.map(lambda value: json.dumps(value).encode())
printed = st.one_of(
    st.binary(max_size=30),
    as_json,
    as_json,
    answers.map(lambda value: json.dumps(value, indent=2).encode()),
    st.just(b'{"decision": "block", "reason": "go on", "digits": ' + b"1" * 5_000 + b"}"),
    st.builds(lambda a, value, b: a + json.dumps(value).encode() + b, around, answers | junk, around),
)
codes = st.sampled_from([0, 0, 0, 2, 2, 1]) | st.integers(0, 255)
reports = st.builds(
    lambda code, out, err, held, truncated: Exited(
        code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), held=held, truncated=truncated
    ),
    codes,
    printed,
    st.binary(max_size=20) | st.sampled_from([b"", b"\n", b"fix it\n"]),
    st.sampled_from([False, False, True]),
    st.sampled_from([False, False, False, True]),
)
events = st.sampled_from(["Stop", "SubagentStop"])


def judged(report: Report, event: str, dialect: Dialect) -> tuple[HookRun, Verdict]:
    asked = rule("check", event)
    one = HookRun(asked, report, interpret(report, asked, dialect).decision, timeout=60.0)
    return one, conclude((one,), dialect)


@given(report=reports, event=events, dialect=dialects)
def test_whatever_a_command_prints_there_is_a_verdict_that_can_be_written_down(
    report: Exited, event: str, dialect: Dialect
) -> None:
    _, verdict = judged(report, event, dialect)
    assert_sound(verdict, event, dialect)


def assert_sound(verdict: Verdict, event: str, dialect: Dialect) -> None:
    """It has something to say, if the agent goes on, and it can be written as JSON in UTF-8."""
    if isinstance(verdict, Continue):
        prefix = dialect.subagent_prefix if event == "SubagentStop" else dialect.prefix
        assert verdict.prompt.removeprefix(prefix).strip()
    shown = verdict_json(verdict, event, settings(dialect=dialect), ["a warning"])
    assert json.loads(json.dumps(shown, ensure_ascii=False, allow_nan=False).encode()) == shown


DENIED = (
    '{"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "deny"}}'  # a tool event's word
)


@given(report=reports, event=events, dialect=st.sampled_from([TURNGATE, MUX]))
@example(report=Exited(0, DENIED), event="Stop", dialect=TURNGATE)
def test_a_command_continues_the_turn_when_the_contract_says_so_and_never_else(
    report: Exited, event: str, dialect: Dialect
) -> None:
    _, verdict = judged(report, event, dialect)
    expected = contract_says_go_on(report, event, dialect)
    assert isinstance(verdict, Continue) == expected


def contract_says_go_on(report: Exited, event: str, dialect: Dialect) -> bool:
    """The contract once more, in few words, for a single hook."""
    if report.code == 2 and not blank(report.stderr):
        return True
    if report.truncated or (report.code != 0 and dialect is MUX):
        return False
    try:
        said = json.loads(report.stdout.strip("\ufeff \t\r\n"), parse_int=float)
    except (ValueError, RecursionError):
        return False
    if not isinstance(said, dict) or said.get("continue") is False:
        return False
    word = said.get("decision")
    if isinstance(word, str) and word.strip().lower() in ("block", "deny"):
        return not blank(said.get("reason"))
    if report.code != 0 or dialect is MUX:
        return False
    context = said.get("hookSpecificOutput")
    if not isinstance(context, dict) or context.get("hookEventName", event) != event:
        return False
    return not blank(context.get("additionalContext")) and readable(said, context)


def readable(said: dict[str, Any], context: dict[str, Any]) -> bool:
    """Nothing beside the advice is a decision that got lost."""
    word = said.get("decision")
    allows = isinstance(word, str) and word.strip().lower() in ("approve", "allow")
    if (word is not None and not allows) or not isinstance(said.get("continue"), bool | None):
        return False
    return allows or lost_in_object(said, context.get("hookEventName", "Stop")) is None


def blank(value: Any) -> bool:
    return not isinstance(value, str) or not value.strip()


@given(report=reports, event=events, dialect=dialects)
def test_a_hook_that_only_observes_never_continues_the_turn_and_never_ends_the_turn(
    report: Exited, event: str, dialect: Dialect
) -> None:
    asked = rule("check", event)
    watching = HookRun(asked, report, interpret(report, asked, dialect).decision, mode="observe")
    assert conclude((watching,), dialect) == Stop((watching,))


@given(found=st.lists(reports, min_size=2, max_size=4), event=events, dialect=dialects)
def test_several_hooks_together_say_no_more_and_no_less_than_each_by_itself(
    found: list[Exited], event: str, dialect: Dialect
) -> None:
    alone = [judged(report, event, dialect) for report in found]
    together = conclude(tuple(one for one, _ in alone), dialect)
    assert_sound(together, event, dialect)
    halted = any(isinstance(verdict, Stop) and verdict.halted for _, verdict in alone)
    refused = any(isinstance(verdict, Continue) for _, verdict in alone)
    assert isinstance(together, Continue) == (refused and not halted)


# What a callback returns

foreign = json_values(
    st.none() | st.booleans() | st.floats() | st.sampled_from(SAID) | any_text | st.binary(max_size=4),
    ANSWER,
    8,
)
returned = st.one_of(
    answers,
    st.dictionaries(st.sampled_from(ANSWER) | st.integers() | st.none(), foreign, max_size=6),
    foreign,
    st.builds(object),
)


@given(value=returned, event=events, dialect=dialects)
def test_whatever_a_callback_returns_there_is_a_verdict_that_can_be_written_down(
    value: Any, event: str, dialect: Dialect
) -> None:
    asked = rule(CallbackHook(print), event)
    one = HookRun(asked, Returned(value), interpret(Returned(value), asked, dialect).decision)
    assert_sound(conclude((one,), dialect), event, dialect)


words = any_text | st.sampled_from(SAID)
decisions: st.SearchStrategy[Decision] = st.one_of(
    st.builds(Block, words, st.none() | words, notice=st.none() | words),
    st.builds(Advise, words),
    st.builds(Halt, st.none() | words),
    st.builds(Allow, st.none() | words),
    st.builds(Fault, words),
)


@given(decision=decisions, event=events, dialect=dialects)
@example(decision=Advise("  "), event="Stop", dialect=TURNGATE)
@example(decision=Block("\ud800"), event="Stop", dialect=TURNGATE)
def test_whatever_a_callback_decides_there_is_a_verdict_that_can_be_written_down(
    decision: Decision, event: str, dialect: Dialect
) -> None:
    _, verdict = judged(Returned(decision), event, dialect)
    assert_sound(verdict, event, dialect)


@pytest.mark.parametrize("value", [5, b"go on", ["go on"]], ids=repr)
@pytest.mark.parametrize("kind", [Block, Advise])
def test_a_decision_whose_text_is_not_a_string_cannot_be_made(kind: Any, value: Any) -> None:
    with pytest.raises(TypeError, match="must be a string, not"):
        kind(value)


# A turn

CHECKS = ["lint", "tests"]
refusals: st.SearchStrategy[Verdict] = st.builds(
    lambda hook, reason: Continue((run(Block(reason), hook),), reason),
    st.sampled_from(CHECKS),
    st.sampled_from(["fix it", "still broken"]),
)
advice: st.SearchStrategy[Verdict] = st.builds(
    lambda hook: Continue((run(Advise("look"), hook),), "look", advice_only=True), st.sampled_from(CHECKS)
)
stops: st.SearchStrategy[Verdict] = st.sampled_from([Stop(), Stop(halted=True)])
TOOL = "a tool call"
steps: st.SearchStrategy[list[Verdict | str]] = st.lists(
    st.one_of(refusals, refusals, refusals, advice, stops, st.just(TOOL)), max_size=40
)
limits = st.none() | st.integers(0, 30)


def turn(guard: LoopGuard, steps: list[Verdict | str]) -> tuple[list[LoopGuard], EndTurn | None]:
    """The guard after each continuation, and how the turn ended, if it did."""
    guards: list[LoopGuard] = []
    for step in steps:
        if isinstance(step, str):
            guard = guard.after_tool_call()
            continue
        match guard.after(step):
            case ContinueTurn(_, guard):
                guards.append(guard)
            case EndTurn() as end:
                return guards, end
    return guards, None


@pytest.mark.req("C-18")
@given(steps=steps, limit=limits, hard=limits, dialect=st.sampled_from([TURNGATE, MUX]))
def test_a_turn_is_never_continued_more_often_than_its_limits_allow(
    steps: list[Verdict | str], limit: int | None, hard: int | None, dialect: Dialect
) -> None:
    configured = Settings(dialect=dialect, limit=limit, hard_limit=hard)
    guards, _ = turn(new_guard(configured, {}), steps)
    allowed = min(3 if limit is None else limit, 10 if hard is None else hard)
    assert [guard.continuations for guard in guards] == list(range(1, len(guards) + 1))
    assert len(guards) <= allowed
    assert all(guard.active for guard in guards)


@pytest.mark.req("C-18")
@given(steps=steps, wanted=st.lists(st.integers(-5, 100), max_size=3), hard=st.integers(0, 30))
def test_a_hook_that_asks_for_more_never_gets_above_the_hard_limit(
    steps: list[Verdict | str], wanted: list[int], hard: int
) -> None:
    guard = new_guard(Settings(hard_limit=hard), {})
    for limit in wanted:
        extended = guard.extended(limit)
        assert extended.limit is not None
        assert guard.limit is not None
        assert guard.limit <= extended.limit <= max(hard, guard.limit)
        guard = extended
    guards, _ = turn(guard, steps)
    assert len(guards) <= hard


@pytest.mark.req("C-18")
@given(
    refused=st.lists(refusals, min_size=31, max_size=31),
    between=st.lists(st.booleans(), min_size=31, max_size=31),
    limit=limits,
    hard=limits,
    wanted=st.integers(0, 100),
    dialect=st.sampled_from([TURNGATE, MUX]),
)
def test_a_turn_that_is_always_blocked_ends_one_block_after_the_hard_limit_at_the_latest(
    refused: list[Verdict],
    between: list[bool],
    limit: int | None,
    hard: int | None,
    wanted: int,
    dialect: Dialect,
) -> None:
    guard = new_guard(Settings(dialect=dialect, limit=limit, hard_limit=hard), {}).extended(wanted)
    most = (10 if hard is None else hard) + 1
    steps: list[Verdict | str] = []
    for verdict, tool in zip(refused[:most], between, strict=False):
        steps += [verdict, TOOL] if tool else [verdict]
    guards, end = turn(guard, steps)
    assert end is not None
    assert end.ended_by in ("capped", "stalled")
    assert len(guards) < most


@given(steps=steps)
def test_claude_code_grants_eight_continuations_in_a_row_and_a_tool_call_begins_a_new_row(
    steps: list[Verdict | str],
) -> None:
    guard, row = new_guard(Settings(dialect=CLAUDE), {}), 0
    for step in steps:
        if isinstance(step, str):
            guard, row = guard.after_tool_call(), 0
            continue
        after = guard.after(step)
        if isinstance(after, EndTurn):
            assert isinstance(step, Stop) or row == 8
            return
        guard, row = after.guard, row + 1
        assert row <= 8


@given(steps=steps, dialect=dialects)
def test_a_stop_ends_every_turn_and_says_how(steps: list[Verdict | str], dialect: Dialect) -> None:
    _, end = turn(new_guard(Settings(dialect=dialect), {}), [*steps, Stop()])
    assert end is not None
    assert end.ended_by in ("allowed", "halted", "capped", "stalled")
    assert (end.notice is not None) == (end.ended_by in ("capped", "stalled"))


# Long texts

chunks = st.lists(
    st.builds(lambda data, times: data * times, st.binary(max_size=40), st.integers(0, 4_000)), max_size=6
)


@pytest.mark.req("X-12")
@given(chunks=chunks, limit=st.integers(0, 5_000))
def test_output_keeps_its_head_and_its_tail_in_whatever_pieces_it_comes(
    chunks: list[bytes], limit: int
) -> None:
    output, data = BoundedOutput(limit), b"".join(chunks)
    for chunk in chunks:
        output.feed(chunk)
    left_out = max(0, len(data) - limit - OUTPUT_TAIL_BYTES)
    text = data.decode("utf-8", "replace")
    if left_out:
        head, tail = (part.decode("utf-8", "replace") for part in (data[:limit], data[-OUTPUT_TAIL_BYTES:]))
        text = f"{head}\n… [{left_out:,} bytes left out] …\n{tail}"
    assert (output.size, output.truncated, output.text()) == (len(data), left_out > 0, text)


@given(
    limit=st.integers(300, 2_000),
    more=st.integers(1, 100_000),
    letters=st.text(min_size=1, max_size=9),
    whole=st.none() | st.text(min_size=1, max_size=150),
)
def test_a_text_that_was_cut_in_the_middle_is_never_longer_than_allowed(
    limit: int, more: int, letters: str, whole: str | None
) -> None:
    size = limit + more
    text = (letters * (size // len(letters) + 1))[:size]
    cut = truncate_middle(text, limit, whole)
    assert len(cut) <= limit
    assert (cut[:20], cut[-20:]) == (text[:20], text[-20:])
    assert ("the whole text could not be kept" if whole is None else f"the whole text is in {whole}]") in cut
