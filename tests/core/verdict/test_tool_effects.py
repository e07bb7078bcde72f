"""What hooks of the other events say together: context, refusals, permissions."""

import json
from typing import Any

import pytest

from tests.support.builders import rule, run
from turngate.core.answers.interpret import interpret
from turngate.core.answers.report_types import (
    Exited,
    HookFailed,
    JudgeReplied,
    Replied,
    Report,
    Returned,
    TimedOut,
)
from turngate.core.constants import PERMISSION_EVENTS
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.verdict.decisions import Allow, Block, Fault
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.tool_effects import (
    Permission,
    added_context,
    block_reasons,
    permission_before_tool,
    permission_for_user,
    permission_of,
)


def ran(event: str, report: Report, dialect: Dialect = TURNGATE, **fields: Any) -> HookRun:
    """A run as the engine makes it of what a hook did."""
    decision, answer = interpret(report, rule("check", event), dialect)
    return run(decision, report=report, event=event, answer=answer, **fields)


def printed(event: str, answer: Any, code: int = 0, **fields: Any) -> HookRun:
    return ran(event, Exited(code, json.dumps(answer)), **fields)


def before_tool(word: Any = None, reason: str | None = None, **fields: Any) -> HookRun:
    said = {"permissionDecision": word, "permissionDecisionReason": reason}
    shown = {key: value for key, value in said.items() if value is not None}
    mode = fields.pop("mode", "gate")
    output = {"hookEventName": "PreToolUse", **shown, **fields}
    return printed("PreToolUse", {"hookSpecificOutput": output}, mode=mode)


def for_user(mode: str = "gate", **decision: Any) -> HookRun:
    output = {"hookEventName": "PermissionRequest", "decision": decision}
    return printed("PermissionRequest", {"hookSpecificOutput": output}, mode=mode)


# Context


def context(text: Any, event: str = "SessionStart") -> HookRun:
    return printed(event, {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


CONTEXTS: list[tuple[str, list[HookRun], str]] = [
    ("nobody", [], ""),
    ("plain", [ran("SessionStart", Exited(0, " hello \n"))], "hello"),
    ("json", [context("hello")], "hello"),
    ("both, in order", [ran("SessionStart", Exited(0, "one\n")), context("two")], "one\n\ntwo"),
    ("blank", [ran("SessionStart", Exited(0, "  \n")), context(" ")], ""),
    ("json without context", [printed("SessionStart", {"systemMessage": "hi"})], ""),
    ("no text", [context(5)], ""),
    ("an empty object", [printed("SessionStart", {})], ""),
    ("a failure", [ran("SessionStart", Exited(1, "hello"))], ""),
    ("a time-out", [ran("SessionStart", TimedOut(1.0, "hello", ""))], ""),
    ("a crash", [ran("SessionStart", HookFailed("gone"))], ""),
    ("an observer", [ran("SessionStart", Exited(0, "hello"), mode="observe")], ""),
    ("an observer's json", [printed("SessionStart", {"systemMessage": "hi"}, mode="observe")], ""),
    ("a broken answer", [printed("SessionStart", {"decision": "block"})], ""),
    (
        "text before a block that is lost",
        [ran("UserPromptSubmit", Exited(0, 'one\n{"decision": "block", "reason": "no"}'))],
        'one\n{"decision": "block", "reason": "no"}',
    ),
    ("a block that is truncated", [ran("UserPromptSubmit", Exited(0, '{"decision": "bl'))], ""),
    (
        "a callback",
        [ran("SessionStart", Returned({"hookSpecificOutput": {"additionalContext": "hello"}}))],
        "hello",
    ),
]


@pytest.mark.req("S3-06")
@pytest.mark.parametrize(
    ("runs", "said"), [case[1:] for case in CONTEXTS], ids=[case[0] for case in CONTEXTS]
)
def test_what_hooks_add_is_joined_in_order(runs: list[HookRun], said: str) -> None:
    assert added_context(runs, plain=True) == said


def test_plain_words_are_context_only_where_the_event_takes_them() -> None:
    runs = [ran("PostToolUse", Exited(0, "formatted 3 files")), context("two", "PostToolUse")]
    assert added_context(runs, plain=False) == "two"


# Refusals


def test_blocks_are_joined_and_those_of_observers_do_not_count() -> None:
    runs = [
        run(Block("one")),
        run(Allow("fine")),
        run(Block("two"), mode="observe"),
        run(Fault("broken")),
        run(Block("three")),
    ]
    assert block_reasons(runs) == "one\n\nthree"
    assert block_reasons(runs[1:4]) is None


# PreToolUse


DENIED = Permission(behavior="deny", reason="no")

NO_INPUT = Permission(behavior="ask", reason='`updatedInput` is "ls", expected an object', user_only=True)
LETS = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
ASKS = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}


def unknown(word: str) -> str:
    return f'`permissionDecision` is "{word}", expected "allow", "deny", "ask" or "defer"'


BEFORE: list[tuple[str, list[HookRun], Permission]] = [
    ("nobody", [], Permission()),
    ("nothing said", [before_tool()], Permission()),
    ("allow", [before_tool("allow", "fine")], Permission(behavior="allow", reason="fine")),
    ("ask", [before_tool("ask", "sure?")], Permission(behavior="ask", reason="sure?")),
    ("deny", [before_tool("deny", "no")], DENIED),
    ("deny without a reason", [before_tool("deny")], Permission(behavior="deny", reason="denied by a hook")),
    ("block", [printed("PreToolUse", {"decision": "block", "reason": "no"})], DENIED),
    ("exit 2", [ran("PreToolUse", Exited(2, "", "no\n"))], DENIED),
    ("deny beats allow", [before_tool("allow"), before_tool("deny", "no")], DENIED),
    ("deny beats ask", [before_tool("deny", "no"), before_tool("ask")], DENIED),
    (
        "ask beats allow",
        [before_tool("allow", "a"), before_tool("ask", "b")],
        Permission(behavior="ask", reason="a\n\nb"),
    ),
    ("a failure says nothing", [ran("PreToolUse", Exited(1, "", "oops"))], Permission()),
    ("exit 1 voids what was printed", [printed("PreToolUse", LETS, code=1)], Permission()),
    (
        "an unknown word asks the user",
        [before_tool("denyy", "no")],
        Permission(
            behavior="ask",
            user_only=True,
            reason='`permissionDecision` is "denyy", expected "allow", "deny", "ask" or "defer"; did you mean "deny"?',
        ),
    ),
    (
        "an unknown word beats a permission",
        [before_tool("allow", "fine"), before_tool("denied", "no")],
        Permission(behavior="ask", reason=f"{unknown('denied')}\n\nfine", user_only=True),
    ),
    ("a denial beats an unknown word", [before_tool("denied"), before_tool("deny", "no")], DENIED),
    ("an observer's unknown word", [before_tool("denied", mode="observe")], Permission()),
    (
        "a question that exits with 1",
        [printed("PreToolUse", ASKS, code=1)],
        Permission(behavior="ask", reason="exit code 1, nothing on stderr", user_only=True),
    ),
    (
        "a denial before a timeout",
        [ran("PreToolUse", TimedOut(1.0, f"x\n{json.dumps(ASKS)}"))],
        Permission(behavior="ask", reason="timed out after 1 s", user_only=True),
    ),
    ("a timeout", [ran("PreToolUse", TimedOut(1.0, "x"))], Permission()),
    (
        "input",
        [before_tool("allow", updatedInput={"command": "ls"})],
        Permission(behavior="allow", updated_input={"command": "ls"}),
    ),
    (
        "the last input counts",
        [before_tool(updatedInput={"a": 1}), before_tool(updatedInput={"a": 2})],
        Permission(updated_input={"a": 2}),
    ),
    ("no object is no input", [before_tool(updatedInput="ls")], NO_INPUT),
    ("no object is no permission", [before_tool("allow", updatedInput="ls")], NO_INPUT),
    (
        "context",
        [before_tool(additionalContext="slow"), before_tool(additionalContext="today")],
        Permission(context="slow\n\ntoday"),
    ),
]


@pytest.mark.req("S3-08")
@pytest.mark.parametrize(("runs", "said"), [case[1:] for case in BEFORE], ids=[case[0] for case in BEFORE])
def test_hooks_before_a_tool_speak_with_one_voice(runs: list[HookRun], said: Permission) -> None:
    assert permission_before_tool(runs) == said


OBSERVERS = [
    before_tool("allow", mode="observe"),
    before_tool("ask", mode="observe"),
    before_tool("deny", "no", mode="observe"),
    before_tool(updatedInput={"command": "ls"}, mode="observe"),
]


@pytest.mark.req("S3-08")
@pytest.mark.parametrize("watching", OBSERVERS, ids=["allow", "ask", "deny", "input"])
def test_a_hook_that_only_observes_permits_blocks_and_changes_nothing(watching: HookRun) -> None:
    assert permission_before_tool([watching]).behavior is None
    assert permission_before_tool([watching]).updated_input is None


def test_an_answer_for_another_event_permits_nothing() -> None:
    """`hookEventName` is wrong, and a warning says that the answer is ignored."""
    output = {"hookEventName": "PostToolUse", "permissionDecision": "allow"}
    wrong = printed("PreToolUse", {"hookSpecificOutput": output})
    assert wrong.decision.warnings
    assert permission_before_tool([wrong]) == Permission()


def test_a_denial_for_another_event_is_not_enforced() -> None:
    output = {"hookEventName": "PostToolUse", "permissionDecision": "deny"}
    wrong = printed("PreToolUse", {"hookSpecificOutput": output})
    assert isinstance(wrong.decision, Fault)
    assert wrong.decision.error == '`hookEventName` is "PostToolUse", expected "PreToolUse"'


def test_in_claude_an_answer_counts_whatever_the_exit_code() -> None:
    output = {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "sure?"}
    asking = printed("PreToolUse", {"hookSpecificOutput": output}, code=1, dialect=CLAUDE)
    assert permission_before_tool([asking]).behavior == "ask"


# PermissionRequest


ALLOWS = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}
DENIES = {
    "hookSpecificOutput": {
        "hookEventName": "PermissionRequest",
        "decision": {"behavior": "deny", "message": "no"},
    }
}
EXIT_2 = Permission(
    behavior="ask", reason="exit code 2 alone changes nothing at a PermissionRequest: answer with JSON"
)

FOR_USER: list[tuple[str, list[HookRun], Permission]] = [
    ("nobody", [], Permission()),
    ("allow", [for_user(behavior="allow")], Permission(behavior="allow")),
    (
        "allow with an input",
        [for_user(behavior="allow", updatedInput={"a": 1})],
        Permission(behavior="allow", updated_input={"a": 1}),
    ),
    ("deny", [for_user(behavior="deny", message="no")], DENIED),
    (
        "deny without a word",
        [for_user(behavior="deny")],
        Permission(behavior="deny", reason="denied by a hook"),
    ),
    (
        "deny and stop",
        [for_user(behavior="deny", message="no", interrupt=True)],
        Permission(behavior="deny", reason="no", interrupt=True),
    ),
    ("only true interrupts", [for_user(behavior="deny", message="no", interrupt="yes")], DENIED),
    ("deny beats allow", [for_user(behavior="allow"), for_user(behavior="deny", message="no")], DENIED),
    ("exit 2 asks the user", [ran("PermissionRequest", Exited(2, "", "no"))], EXIT_2),
    ("exit 2 voids a permission", [printed("PermissionRequest", ALLOWS, code=2)], EXIT_2),
    ("exit 2 keeps a denial", [printed("PermissionRequest", DENIES, code=2)], DENIED),
    ("so does exit 1", [printed("PermissionRequest", ALLOWS, code=1)], Permission()),
    (
        "an unknown word",
        [for_user(behavior="perhaps")],
        Permission(behavior="ask", reason='`behavior` is "perhaps", expected "allow" or "deny"'),
    ),
    (
        "an unknown word beats a permission",
        [for_user(behavior="allow"), for_user(behavior=5)],
        Permission(behavior="ask", reason='`behavior` is 5, expected "allow" or "deny"'),
    ),
    (
        "a denial beats an unknown word",
        [for_user(behavior=5), for_user(behavior="deny", message="no")],
        DENIED,
    ),
    ("a block", [printed("PermissionRequest", {"decision": "block", "reason": "no"})], DENIED),
    (
        "no object",
        [printed("PermissionRequest", {"hookSpecificOutput": {"decision": "allow"}})],
        Permission(
            behavior="ask", reason='`decision` of `hookSpecificOutput` is "allow", expected an object'
        ),
    ),
    ("an observer", [for_user(mode="observe", behavior="allow")], Permission()),
]


@pytest.mark.req("S3-10")
@pytest.mark.parametrize(
    ("runs", "said"), [case[1:] for case in FOR_USER], ids=[case[0] for case in FOR_USER]
)
def test_hooks_that_answer_for_the_user_speak_with_one_voice(runs: list[HookRun], said: Permission) -> None:
    assert permission_for_user(runs) == said


def test_one_of_several_denials_may_end_the_turn() -> None:
    runs = [
        for_user(behavior="deny", message="one"),
        for_user(behavior="deny", message="two", interrupt=True),
    ]
    assert permission_for_user(runs).interrupt


def test_who_does_not_allow_changes_no_input() -> None:
    runs = (
        for_user(behavior="allow", updatedInput={"command": "safe"}),
        for_user(behavior="ask", updatedInput={"command": "evil"}),
        for_user(updatedInput={"command": "evil"}),
    )
    assert permission_for_user(runs[:1]).updated_input == {"command": "safe"}
    assert permission_for_user(runs).updated_input is None


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        ({"behavior": "dney"}, '`behavior` is "dney", expected "allow" or "deny"; did you mean "deny"?'),
        ("deny", '`decision` of `hookSpecificOutput` is "deny", expected an object'),
    ],
)
def test_an_answer_for_the_user_that_cannot_be_read_is_a_failure(decision: object, why: str) -> None:
    output = {"hookEventName": "PermissionRequest", "decision": decision}
    unreadable = printed("PermissionRequest", {"hookSpecificOutput": output})
    assert unreadable.decision == Fault(why, asks_user=True)


WORDS: dict[str, tuple[object, str]] = {
    "upper case": ("DENY", "deny"),
    "a capital letter": ("Deny", "deny"),
    "blanks": (" deny\n", "deny"),
    "the word of another key": ("Block", "deny"),
    "a question": ("ASK", "ask"),
    "a deferral": ("Defer", "defer"),
    "a permission": ("Allow", "allow"),
    "a participle": ("denied", "ask"),
    "a word that resembles a permission": ("approved", "ask"),
    "a number": (5, "ask"),
    "a flag": (False, "ask"),
    "a list": (["deny"], "ask"),
    "nothing": ("", "ask"),
}


@pytest.mark.parametrize(("word", "behavior"), WORDS.values(), ids=WORDS)
def test_known_words_count_in_any_case_and_what_is_not_understood_asks(word: Any, behavior: str) -> None:
    asked = before_tool(word)
    assert permission_before_tool([asked]).behavior == behavior
    is_understood = _known(word)
    assert isinstance(asked.decision, Fault) is not is_understood
    if behavior in ("allow", "deny"):
        assert permission_for_user([for_user(behavior=word)]).behavior == behavior


def _known(word: object) -> bool:
    return isinstance(word, str) and word.strip().lower() in ("allow", "deny", "block", "ask", "defer")


WITHOUT_REASON: dict[str, HookRun] = {
    "deny with a blank reason": before_tool("deny", "  \n"),
    "deny with a number": before_tool("deny", permissionDecisionReason=5),
    "block": printed("PreToolUse", {"decision": "block", "reason": " "}),
    "exit 2": ran("PreToolUse", Exited(2)),
    "a callback": ran("PreToolUse", Returned(Block(""))),
    "a judge": ran("PreToolUse", JudgeReplied('{"ok": false}')),
    "a judge's word": ran("PreToolUse", JudgeReplied("Block.")),
}


@pytest.mark.parametrize("denied", WITHOUT_REASON.values(), ids=WITHOUT_REASON)
def test_a_denial_needs_no_reason(denied: HookRun) -> None:
    assert denied.decision == Block("denied by a hook")
    assert permission_before_tool([denied]).behavior == "deny"


def test_a_denial_of_a_request_needs_no_reason_either() -> None:
    runs = [
        for_user(behavior="deny", message=" "),
        printed("PermissionRequest", {"decision": "block", "reason": " "}),
    ]
    assert [permission_for_user([each]) for each in runs] == [
        Permission(behavior="deny", reason="denied by a hook")
    ] * 2


UNREADABLE: dict[str, Report] = {
    "text before a denial": Exited(0, 'x\n{"hookSpecificOutput": {"permissionDecision": "deny"}}'),
    "a truncated output": Exited(0, "x" * 100, truncated=True),
    "an endpoint that replies with text": Replied("denied"),
    "a judge that does not answer": JudgeReplied("Well, it depends."),
    "a callback that returns a word": Returned("deny"),
    "a callback that returns unknown keys": Returned({"verdict": "deny"}),
}


@pytest.mark.parametrize("event", PERMISSION_EVENTS)
@pytest.mark.parametrize("report", UNREADABLE.values(), ids=UNREADABLE)
def test_an_answer_of_any_hook_that_cannot_be_understood_asks_the_user(report: Report, event: str) -> None:
    for dialect in (TURNGATE, MUX):
        unreadable = ran(event, report, dialect)
        assert isinstance(unreadable.decision, Fault)
        permission = permission_of(event, [unreadable])
        assert permission is not None
        assert permission.behavior == "ask"
    decided_by_program = permission_of(event, [ran(event, report, CLAUDE)])
    assert decided_by_program is not None
    assert decided_by_program.behavior is None


@pytest.mark.parametrize("word", ["dney", 5])
def test_in_claude_a_permission_that_cannot_be_read_voids_the_answer(word: object) -> None:
    output = {"hookEventName": "PreToolUse", "permissionDecision": word, "updatedInput": {"command": "ls"}}
    unreadable = printed("PreToolUse", {"hookSpecificOutput": output}, dialect=CLAUDE)
    assert (type(unreadable.decision), permission_before_tool([unreadable])) == (Fault, Permission())
