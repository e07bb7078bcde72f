"""What hooks and judges answer, and how often they may continue a turn."""

import json
from random import Random
from typing import Any, NamedTuple

from bench.fuzz.target import Target
from bench.fuzz.values import damaged, dumps, json_value, some, text
from turngate.core.answers.answer_json import ANSWER_KEYS, Answer, InvalidAnswer
from turngate.core.answers.interpret import interpret
from turngate.core.answers.judge import parse_judgment
from turngate.core.answers.report_types import Exited, JudgeReplied, Replied, Report
from turngate.core.constants import EVENTS, OBSERVED_EVENTS, STOP_EVENTS
from turngate.core.dialect import DIALECTS, TURNGATE, Dialect
from turngate.core.hooks.kinds import CommandHook, PromptHook
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.decisions import Advise, Allow, Block, Fault, Halt
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.json_output import verdict_json
from turngate.core.verdict.loop_guard import EndTurn, new_guard
from turngate.core.verdict.tool_effects import context_of, permission_of
from turngate.core.verdict.verdict import Continue, Stop, Verdict, conclude

NAMES = [*sorted(ANSWER_KEYS), "behavior", "message", "interrupt", "async"]
WORDS = ["block", "deny", "approve", "allow", "ask", "defer", "BLOCK", "Deny", *EVENTS, "go on", "", " \n"]


class HookAnswer(NamedTuple):
    report: Report
    event: str
    dialect: str
    denies: bool  # it holds a denial that a reader recognizes


def judged(report: Report, event: str, dialect: Dialect) -> tuple[HookRun, Verdict]:
    hook = PromptHook("check") if isinstance(report, JudgeReplied) else CommandHook("check")
    rule = Rule(event, hook)
    decision, answer = interpret(report, rule, dialect)
    run = HookRun(rule, report, decision, timeout=60.0, answer=answer)
    return run, conclude((run,), dialect)


def assert_sound(value: HookAnswer) -> HookRun:
    """It has something to say if the agent goes on, and it can be written as JSON."""
    report, event, dialect = value.report, value.event, DIALECTS[value.dialect]
    run, verdict = judged(report, event, dialect)
    if isinstance(verdict, Continue):
        prefix = dialect.subagent_prefix if event == "SubagentStop" else dialect.prefix
        assert verdict.prompt.removeprefix(prefix).strip(), "it continues with nothing to say"
    shown = verdict_json(verdict, event, Settings(dialect=dialect), ["a warning"])
    json.dumps(shown, allow_nan=False)
    context_of(event, (run,)).encode()
    return run


def utf8(random: Random, most: int = 12) -> str:
    """Return what a program prints: it has no lone surrogates."""
    return text(random, most).encode("utf-8", "replace").decode()


# Hook output


def make_output(random: Random) -> HookAnswer:
    event, dialect = random.choice([*EVENTS]), random.choice([*DIALECTS])
    denies = random.random() < 0.4 and dialect != "claude" and event not in OBSERVED_EVENTS
    stdout = _denial(random, event) if denies else _any_output(random, event)
    if random.random() < 0.15:
        return HookAnswer(Replied(stdout), event, dialect, denies)
    code = 0 if denies else random.choice([0, 0, 0, 1, 2, 2, 127, 255])
    stderr = random.choice(["", "\n", "fix it\n", utf8(random)])
    held, truncated = random.random() < 0.1, random.random() < 0.1 and not denies
    return HookAnswer(Exited(code, stdout, stderr, held=held, truncated=truncated), event, dialect, denies)


def _any_output(random: Random, event: str) -> str:
    specific = {
        "hookEventName": some(random, event, names=NAMES, words=WORDS),
        random.choice(NAMES): json_value(random, NAMES, WORDS, 1),
        random.choice(NAMES): json_value(random, NAMES, WORDS, 2),
    }
    answer = {random.choice(NAMES): json_value(random, NAMES, WORDS, 1) for _ in range(random.randint(0, 4))}
    answer["hookSpecificOutput"] = some(random, specific, names=NAMES, words=WORDS)
    return damaged(random, dumps(random, answer)).decode("utf-8", "replace")


def _denial(random: Random, event: str) -> str:
    """Return a denial as hooks write it: alone or between lines of other output, in any case, also misspelled."""
    reason = random.choice(["two tests fail", "no", text(random)])
    answer: Any = {"decision": random.choice(["block", "Block", "DENY", " deny", "blok"]), "reason": reason}
    if event == "PreToolUse" and random.random() < 0.7:
        word = random.choice(["deny", "Deny", "DENY", "block", "denied", 5, "ask", "nope"])
        answer = {"permissionDecision": word, "permissionDecisionReason": reason}
        answer = {"hookSpecificOutput": {"hookEventName": event, **answer}}
    elif event == "PermissionRequest" and random.random() < 0.7:
        decision = {"behavior": random.choice(["deny", "Deny", "block", "denied"]), "message": reason}
        answer = {"hookSpecificOutput": {"hookEventName": event, "decision": decision}}
    elif random.random() < 0.2:
        answer = {"continue": False, "stopReason": reason}
    lines = ["3 passed, 2 failed", "> npm test", "", "[INFO] done", "warning: {x}", "9" * 5000]
    before, after = (random.choices(lines, k=random.choice([0, 0, 1, 2])) for _ in range(2))
    return "\n".join([*before, dumps(random, answer).decode(), *after])


def check_output(value: HookAnswer) -> None:
    run = assert_sound(value)
    if not value.denies:
        return
    permission = permission_of(value.event, (run,))
    asked = permission is not None and permission.behavior in ("deny", "ask", "defer")
    assert asked or isinstance(run.decision, Block | Halt | Fault), f"a lost denial: {run.decision}"


# Judges


class Judgment(NamedTuple):
    text: str
    event: str
    dialect: str
    says_no: bool


def make_judgment(random: Random) -> Judgment:
    event, dialect = (
        random.choice(["Stop", "SubagentStop", "PreToolUse"]),
        random.choice([*DIALECTS]),
    )
    says_no = random.random() < 0.5
    reason = random.choice(["not yet", text(random)])
    if says_no:
        extra = {} if random.random() < 0.6 else {"note": json_value(random, ["x"], WORDS, 2)}
        answer = dumps(random, {"ok": False, "reason": reason, **extra}).decode()
        return Judgment(_wrapped(random, answer), event, dialect, says_no)
    value = {random.choice(NAMES): json_value(random, NAMES, WORDS, 2) for _ in range(random.randint(0, 4))}
    words = random.choice(["Approve.", "BLOCK: no", "**Allow** me", "ok", text(random)])
    data = damaged(random, dumps(random, some(random, value))).decode("utf-8", "replace")
    many = random.choice([data, words, words + data, data * random.choice([2, 50]), "{" * 100_000])
    return Judgment(many, event, dialect, says_no)


def _wrapped(random: Random, answer: str) -> str:
    fence = f"```json\n{answer}\n```"
    return random.choice(
        [answer, fence, f"I looked.\n{answer}", f"{answer}\nThat is all.", f"Allowed?\n{fence}\nNo."]
    )


def check_judgment(value: Judgment) -> None:
    answer = parse_judgment(value.text, value.event, DIALECTS[value.dialect])
    assert isinstance(answer, Answer | InvalidAnswer)
    if value.says_no:
        assert not (isinstance(answer, Answer) and answer.decision == "allow"), "a no became a yes"
    assert_sound(HookAnswer(JudgeReplied(value.text), value.event, value.dialect, denies=False))


# Turns


def make_turn(random: Random) -> tuple[Settings, list[Any]]:
    settings = Settings(
        dialect=TURNGATE, limit=random.randint(0, 6), hard_limit=random.choice([None, 0, 1, 5, 20])
    )
    steps = [
        random.choice(
            ["tool", "redirect", random.randint(-1, 30), Block("a"), Block(text(random) or "b"), Advise("c")]
        )
        for _ in range(random.randint(0, 60))
    ]
    return settings, steps


def check_turn(value: tuple[Settings, list[Any]]) -> None:
    """However hooks, plugins and tool calls alternate: never more continuations than the limit."""
    settings, steps = value
    guard = new_guard(settings, {})
    hard = TURNGATE.hard_limit if settings.hard_limit is None else settings.hard_limit
    for step in steps:
        if step == "tool":
            guard = guard.after_tool_call()
        elif step == "redirect":
            guard = guard.redirected() if guard.below_limit else guard
        elif isinstance(step, int):
            guard = guard.extended(step)
        else:
            run = HookRun(Rule("Stop", CommandHook("check")), Exited(0), step, timeout=60.0)
            after = guard.after(conclude((run,), TURNGATE))
            if isinstance(after, EndTurn):
                assert after.ended_by in ("capped", "stalled", "allowed")
                assert not (isinstance(step, Block) and after.ended_by == "allowed"), "a block was lost"
                break
            guard = after.guard
        assert guard.continuations <= (hard or 0), f"{guard.continuations} continuations"
    end = guard.after(Stop())
    assert isinstance(end, EndTurn)
    assert end.ended_by == "allowed"


def make_allowed(random: Random) -> HookAnswer:
    """Ordinary output of check programs."""
    lines = [
        "3 passed",
        '[INFO] {"level": "info"}',
        "ok",
        "",
        "{}",
        "100 %",
        "decision: see below",
        utf8(random, 40),
    ]
    stdout = "\n".join(random.choices(lines, k=random.randint(0, 6)))
    return HookAnswer(Exited(0, stdout), random.choice(STOP_EVENTS), "turngate", denies=False)


def check_allowed(value: HookAnswer) -> None:
    """Ordinary output never blocks."""
    assert isinstance(assert_sound(value).decision, Allow | Fault)


TARGETS = (
    Target("hook-output", make_output, check_output),
    Target("plain-output", make_allowed, check_allowed),
    Target("judge-answers", make_judgment, check_judgment),
    Target("turns", make_turn, check_turn),
)
