"""The explanation of a hook run: each field that a hook gave, and what would have happened."""

import json
from typing import Any

import pytest

from tests.support.builders import rule
from turngate.cli.commands.hooks.trial import effect_of, explain
from turngate.core.answers.interpret import interpret
from turngate.core.answers.report_types import (
    Exited,
    HookFailed,
    JudgeReplied,
    Replied,
    Report,
    Skipped,
    TimedOut,
)
from turngate.core.constants import EVENTS, OBSERVED_EVENTS
from turngate.core.dialect import CLAUDE, TURNGATE, Dialect
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.hook_run import HookRun

pytestmark = pytest.mark.req("S3-51")


def ran(report: Report, event: str = "Stop", *, dialect: Dialect = TURNGATE, **fields: Any) -> HookRun:
    of = rule(CommandHook("x", **fields), event)
    decision, answer = interpret(report, of, dialect)
    return HookRun(of, report, decision, answer=answer)


def notes(run: HookRun, dialect: Dialect = TURNGATE) -> list[str]:
    return [
        f"{note.field} {note.value} {'ignored: ' * note.is_ignored}{note.meaning}".replace("  ", " ")
        for note in explain(run, dialect)
    ]


def effect(run: HookRun, dialect: Dialect = TURNGATE) -> tuple[str, str]:
    found = effect_of(run, dialect)
    return found.text, found.detail


def answer(**fields: Any) -> Exited:
    return Exited(0, json.dumps(fields))


def specific(event: str, **fields: Any) -> Exited:
    return answer(hookSpecificOutput={"hookEventName": event, **fields})


SENT = "[Stop hook requested continuation]\n"
OK = "exit code 0 success: the answer is on stdout"
STOP_CASES: dict[str, tuple[Report, list[str], tuple[str, str]]] = {
    "passes": (Exited(0), [OK], ("the agent may stop", "")),
    "exit 2": (
        Exited(2, "", "fix it\n"),
        ["exit code 2 blocks", "stderr fix it the reason of the block"],
        ("the agent is sent back with this text:", f"{SENT}fix it"),
    ),
    "exit 2 with JSON": (
        Exited(2, '{"decision": "approve"}', "fix it\n"),
        [
            "exit code 2 blocks",
            'stdout {"decision": "approve"} ignored: the exit code is 2, and with 2 the reason is read from stderr',
            "stderr fix it the reason of the block",
        ],
        ("the agent is sent back with this text:", f"{SENT}fix it"),
    ),
    "exit 2 without a reason": (
        Exited(2),
        ["exit code 2 does not block: it exited with 2 but gave no reason on stderr, so it does not block"],
        ("NOT enforced: the agent may stop", ""),
    ),
    "exit 1": (
        Exited(1, "", "oops"),
        [
            "exit code 1 failed: a failure does not block, only 2 does",
            "stderr oops shown to the user as the error",
        ],
        ("NOT enforced: the agent may stop", ""),
    ),
    "killed": (
        Exited(137, signal=9),
        ["exit code 137 killed by signal 9: a failure does not block, only 2 does"],
        ("NOT enforced: the agent may stop", ""),
    ),
    "block": (
        answer(decision="block", reason="go on", systemMessage="look", suppressOutput=True, extra=[1]),
        [
            OK,
            "stdout a JSON object with decision, reason, systemMessage, suppressOutput, extra read as the answer",
            "extra [1] ignored: without it, the result is the same",
        ],
        ("the agent is sent back with this text:", f"{SENT}go on"),
    ),
    "approve": (
        answer(decision="approve", reason="fine", stopReason="x", additionalContext="y"),
        [
            OK,
            "stdout a JSON object with decision, reason, stopReason, additionalContext read as the answer",
            'decision "approve" ignored: without it, the result is the same',
            'stopReason "x" ignored: without it, the result is the same',
            'additionalContext "y" ignored: without it, the result is the same',
            "warning `additionalContext` belongs in `hookSpecificOutput`: ignored at the top level",
        ],
        ("the agent may stop", ""),
    ),
    "unknown word": (
        answer(decision="reject", reason="no"),
        [
            OK,
            "stdout a JSON object with decision, reason read as the answer",
            'reason "no" ignored: without it, the result is the same',
            'result no decision: `decision` is "reject", expected "block" or "approve"',
        ],
        ("NOT enforced: the agent may stop", ""),
    ),
    "halt": (
        answer(**{"continue": False, "stopReason": "enough", "decision": "block", "reason": "r"}),
        [
            OK,
            "stdout a JSON object with continue, stopReason, decision, reason read as the answer",
            'decision "block" ignored: without it, the result is the same',
            'reason "r" ignored: without it, the result is the same',
            "warning it sent `continue: false` with a block: the turn ends and the block's reason is not used",
        ],
        ("the turn ends now, and the user sees:", "enough"),
    ),
    "advice": (
        specific("Stop", additionalContext="see docs", updatedInput={}),
        [
            OK,
            "stdout a JSON object with hookSpecificOutput read as the answer",
            "hookSpecificOutput.updatedInput {} ignored: without it, the result is the same",
        ],
        ("the agent continues once, with this advice:", f"{SENT}see docs"),
    ),
    "a denial": (
        specific("Stop", permissionDecision="deny"),
        [
            OK,
            "stdout a JSON object with hookSpecificOutput read as the answer",
            'result no decision: `permissionDecision` has no effect at Stop: write "decision": "block" at the top level',
        ],
        ("NOT enforced: the agent may stop", ""),
    ),
    "another event": (
        specific("PreToolUse", additionalContext="see docs"),
        [
            OK,
            "stdout a JSON object with hookSpecificOutput read as the answer",
            'hookSpecificOutput.additionalContext "see docs" ignored: without it, the result is the same',
            'warning `hookEventName` is "PreToolUse", expected "Stop": ignored',
        ],
        ("the agent may stop", ""),
    ),
    "text": (
        Exited(0, "all good\n", "noise\n"),
        [
            OK,
            "stdout all good ignored: it is plain text, and an answer is a JSON object",
            "stderr noise ignored: the exit code is 0",
        ],
        ("the agent may stop", ""),
    ),
    "without its script": (
        Exited(2, "", "sh: 0: cannot open gone.sh: No such file\n"),
        [
            (
                "exit code 2 does not block: its script appears to be missing, so it does not block: "
                "exit code 2: sh: 0: cannot open gone.sh: No such file"
            ),
            "stderr sh: 0: cannot open gone.sh: No such file shown to the user as the error",
        ],
        ("NOT enforced: the agent may stop", ""),
    ),
    "timed out": (
        TimedOut(60, "working"),
        ["time 60 s the timeout: it was ended, and gave no decision", "stdout working ignored: it timed out"],
        ("NOT enforced: the agent may stop", ""),
    ),
    "not run": (
        Skipped("it is not approved"),
        ["run it did not run: it is not approved"],
        ("NOT enforced: the agent may stop", ""),
    ),
    "not run on purpose": (
        Skipped("it is switched off", on_purpose=True),
        ["run it did not run: it is switched off"],
        ("the hook does not take part in this Stop", ""),
    ),
    "not startable": (
        HookFailed("no such program"),
        ["run it could not be run: no such program"],
        ("NOT enforced: the agent may stop", ""),
    ),
    "an endpoint": (
        Replied('{"decision": "block", "reason": "go on"}'),
        [
            "reply a JSON object with decision, reason read as the answer",
        ],
        ("the agent is sent back with this text:", f"{SENT}go on"),
    ),
    "a judge": (
        JudgeReplied('{"ok": false, "reason": "go on"}'),
        ['reply {"ok": false, "reason": "go on"} the judge blocks'],
        ("the agent is sent back with this text:", f"{SENT}go on"),
    ),
}


@pytest.mark.parametrize(("report", "expected", "then"), STOP_CASES.values(), ids=STOP_CASES)
def test_what_a_hook_gave_at_a_stop(report: Report, expected: list[str], then: tuple[str, str]) -> None:
    run = ran(report)
    assert (notes(run), effect(run)) == (expected, then)


DENY = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
EFFECTS: list[tuple[str, Report, tuple[str, str]]] = [
    ("PreToolUse", specific("PreToolUse", **DENY), ("the tool call is denied, and the agent is sent:", "no")),
    ("PreToolUse", Exited(2, "", "no"), ("the tool call is denied, and the agent is sent:", "no")),
    (
        "PreToolUse",
        specific("PreToolUse", permissionDecision="allow"),
        ("the tool call runs without a question", ""),
    ),
    (
        "PreToolUse",
        specific("PreToolUse", permissionDecision="ask"),
        ("the user is asked about the tool call", ""),
    ),
    ("PreToolUse", Exited(0), ("the usual permissions decide about the tool call", "")),
    (
        "PreToolUse",
        specific("PreToolUse", permissionDecision="allow", updatedInput={"a": 1}),
        ("the tool call runs without a question; the tool gets this input:", '{"a": 1}'),
    ),
    (
        "PermissionRequest",
        specific("PermissionRequest", decision={"behavior": "deny", "message": "no"}),
        ("the tool call is denied, and the agent is sent:", "no"),
    ),
    ("PermissionRequest", Exited(0), ("the user is asked about the tool call", "")),
    (
        "PostToolUse",
        answer(decision="block", reason="format it"),
        ("the agent is sent this after the tool's result:", "format it"),
    ),
    (
        "PostToolUse",
        specific("PostToolUse", updatedToolOutput="short"),
        ("the agent gets this instead of the tool's result:", "short"),
    ),
    ("PostToolBatch", Exited(2, "", "no"), ("the turn ends now, and the user sees:", "no")),
    (
        "UserPromptSubmit",
        Exited(2, "", "no"),
        ("the prompt is not sent to the model, and the user sees:", "no"),
    ),
    (
        "UserPromptSubmit",
        Exited(0, "it is Monday"),
        ("the prompt is sent to the model; this is added to the conversation:", "it is Monday"),
    ),
    ("PreCompact", Exited(2, "", "no"), ("the conversation is not compacted, and the user sees:", "no")),
    ("SessionStart", Exited(0, "notes"), ("nothing changes; this is added to the conversation:", "notes")),
    ("SessionEnd", Exited(2, "", "no"), ("NOT enforced: nothing changes", "")),
]


@pytest.mark.parametrize(("event", "report", "then"), EFFECTS)
def test_what_would_have_happened_at_other_events(event: str, report: Report, then: tuple[str, str]) -> None:
    assert effect(ran(report, event)) == then


@pytest.mark.parametrize("event", [event for event in EVENTS if event not in OBSERVED_EVENTS])
def test_a_block_has_a_text_at_every_event_at_which_hooks_block(event: str) -> None:
    text, detail = effect(ran(answer(decision="block", reason="because"), event))
    assert (text[-1], detail.endswith("because")) == (":", True)


def test_a_hook_in_the_background_or_in_the_mode_observe_changes_nothing() -> None:
    blocked = Exited(2, "", "no")
    assert effect(ran(blocked, detached=True)) == (
        "it runs in the background, so its decision is ignored",
        "",
    )
    wakes = ran(blocked, detached=True, rewake=True)
    assert effect(wakes) == (
        "it runs in the background, and its block wakes the agent with:",
        'Stop hook blocking error from command "Stop": no',
    )
    observed = HookRun(wakes.rule, blocked, wakes.decision, mode="observe")
    observed = HookRun(rule(CommandHook("x", mode="observe")), blocked, observed.decision, mode="observe")
    assert effect(observed) == (
        "recorded as a block and not enforced, because its mode is `observe`: the agent may stop",
        "",
    )


def test_a_failure_that_blocks_says_so() -> None:
    run = ran(Exited(1, "", "oops"), blocking=True)
    assert (notes(run)[0], effect(run)[0]) == (
        "exit code 1 failed: a failure of this hook blocks (`blocking` or `onFailure`)",
        "although it gave no decision, its failure blocks: the agent is sent back with this text:",
    )


def test_json_counts_with_any_exit_code_in_the_claude_dialect() -> None:
    run = ran(Exited(1, '{"decision": "block", "reason": "go on"}'), dialect=CLAUDE)
    assert notes(run, CLAUDE) == [
        "exit code 1 failed, but in the claude dialect the JSON on stdout counts",
        "stdout a JSON object with decision, reason read as the answer",
    ]


def test_an_answer_that_the_claude_dialect_does_not_take_is_ignored_as_a_whole() -> None:
    run = ran(answer(decision="block", reason=5), dialect=CLAUDE)
    assert notes(run, CLAUDE)[1] == (
        'stdout {"decision": "block", "reason": 5} ignored: its JSON is ignored: `reason` must be a string'
    )
