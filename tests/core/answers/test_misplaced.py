"""Output in which a block got lost, and ordinary output that must never be taken for one."""

import json

import pytest

from tests.support.builders import rule
from tests.support.measures import count_calls, cpu_limit
from turngate.core.answers.interpret import interpret
from turngate.core.answers.misplaced import MAX_SEARCHED_CHARS, ONLY_JSON, lost_in_text
from turngate.core.answers.report_types import Exited, Returned
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.verdict.decisions import Allow, Block, Fault

BLOCK = '{"decision": "block", "reason": "two tests fail"}'
PRETTY = json.dumps(json.loads(BLOCK), indent=2)

BEFORE = "there is text before its JSON"
AFTER = "there is text after its JSON"
INVALID = "its output is not valid JSON"
TRUNCATED = "its JSON is truncated"
NOT_JSON = "it is not JSON"


def permission(word: str) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word}})


LOST = {
    "npm prints first": (f"> parser@1.0.0 test\n> jest\n\n{BLOCK}\n", BEFORE),
    "text before on the same line": (f"running ... {BLOCK}\n", BEFORE),
    "text before and after": (f"> jest\n{BLOCK}\nDone in 3 s.\n", BEFORE),
    "pretty print after text": (f"> jest\n{PRETTY}\n", BEFORE),
    "a code fence": (f"```json\n{BLOCK}\n```\n", BEFORE),
    "a color reset": (f"\x1b[0m{BLOCK}\n", BEFORE),
    "a log line in brackets": (f"[INFO] checking\n{BLOCK}\n", BEFORE),
    "a block whose reason holds braces": (
        'x\n{"reason": "fix f(){x}", "decision": "block"}\n',
        BEFORE,
    ),
    "a misspelled word after text": ('x\n{"decision": "blok", "reason": "no"}\n', BEFORE),
    "halt after text": ('x\n{"continue": false}\n', BEFORE),
    "a judge's answer after text": ('x\n{"ok": false, "reason": "no"}\n', BEFORE),
    "a flag after text": ('x\n{"block": true, "reason": "no"}\n', BEFORE),
    "text after": (f"{BLOCK}\nDone in 3 s.\n", AFTER),
    "two objects": (f'{{"systemMessage": "hi"}}\n{BLOCK}\n', AFTER),
    "truncated in the reason": ('{"decision": "block", "reason": "two te', TRUNCATED),
    "truncated in the first key": ('{"deci', TRUNCATED),
    "truncated before the decision": ('{"reason": "two tests fail",', TRUNCATED),
    "quotes that are not escaped": ('{"reason": "test "a" fails", "decision": "block"}', INVALID),
    "quotes that are not escaped, pretty": (
        '{\n  "decision": "block",\n  "reason": "test "a" fails"\n}',
        INVALID,
    ),
    "a dict of Python": (str(json.loads(BLOCK)), INVALID),
    "a shell removed the quotes": ("{decision:block,reason:x}", INVALID),
    "a dict of Python after text": (f"x\n{json.loads(BLOCK)}\n", NOT_JSON),
    "a shell expanded the braces": ("decision:block reason:x", NOT_JSON),
    "a list": (f"[{BLOCK}]", "it is inside a list"),
    "encoded twice": (json.dumps(BLOCK), "its JSON is a string"),
    "a list in a list": (f"[[{BLOCK}]]", "it is inside a list"),
    "defer after text": (f"x\n{permission('defer')}", BEFORE),
    "a denial in upper case after text": (f"x\n{permission('DENY')}", BEFORE),
    "an invalid denial after text": ('x\n{"hookSpecificOutput":{"permissionDecision":"deny",}}', NOT_JSON),
    "a denial of Python after text": (
        "x\n{'hookSpecificOutput': {'permissionDecision': 'deny'}}",
        NOT_JSON,
    ),
    "a denial without quotes after text": ("x\n{hookSpecificOutput:{permissionDecision:deny}}", NOT_JSON),
    "an invalid question": ('{"hookSpecificOutput":{"permissionDecision":"ask",}}', INVALID),
    "an invalid object in lines after text": (
        'x\n{\n  "decision": "block",\n  "reason": "x",\n}',
        NOT_JSON,
    ),
    "an object of Python in lines after text": (
        "x\n{\n  'reason': 'x',\n  'decision': 'block'\n}\nDone",
        NOT_JSON,
    ),
    "an object without quotes in lines after text": (
        "x\n{\n  decision: block,\n  reason: x\n}",
        NOT_JSON,
    ),
    "an invalid denial in lines after text": (
        'x\n{\n  "hookSpecificOutput": {\n    "permissionDecision": "deny",\n  }\n}',
        NOT_JSON,
    ),
    "text on both sides": (f"Running...{BLOCK}\nDone.", BEFORE),
    "a progress bar": (f"50%\r100%\r{BLOCK}\nDone", BEFORE),
    "a progress bar before a block without a reason": ('50%\r{"decision": "block"}\nDone', BEFORE),
    "quotes of a shell": (f"'{BLOCK}'", BEFORE),
    "quotes around a block without a reason": ('\'{"decision": "block"}\'', BEFORE),
    "text on both sides in the line": (f"log: {BLOCK} end", BEFORE),
    "an expectation": (f"expected {BLOCK}", BEFORE),
    "text around a denial": (f"log: {permission('deny')} end", BEFORE),
    "a judge's answer as text after text": ('x\n{"ok": "false", "reason": "no"}', BEFORE),
    "another key and text after": ('{"decision": "block", "extra": 1} x', AFTER),
    "truncated in the decision, after another key": ('{"foo": 1, "decision": "bl', TRUNCATED),
    "UTF-16": (BLOCK.encode("utf-16").decode("utf-8", "replace"), "its output is UTF-16"),
    "UTF-16 without a mark": (BLOCK.encode("utf-16-le").decode("utf-8", "replace"), "its output is UTF-16"),
    "UTF-16, big endian": (BLOCK.encode("utf-16-be").decode("utf-8", "replace"), "its output is UTF-16"),
    "a redaction after text": (
        'x\n{"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "***"}}',
        BEFORE,
    ),
    "only YAML": ("decision: block\nreason: |\n  two tests\n  fail\n", NOT_JSON),
    "a nested denial in lines after text in the line": (
        f"answer: {json.dumps(json.loads(permission('deny')), indent=2)}\nDone",
        BEFORE,
    ),
    "a denial that is a number after text": ('x\n{"hookSpecificOutput": {"permissionDecision": 5}}', BEFORE),
    "a participle after text": ('x\n{"decision": "denied"}', BEFORE),
    "a request after text": ('x\n{"behavior": "deny", "message": "no"}', BEFORE),
    "a block beside a huge number after text": (
        'x\n{"decision": "block", "reason": "r", "n": ' + "1" * 5000 + "}",
        BEFORE,
    ),
    "a block beside deep nesting after text": (
        'x\n{"decision": "block", "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        BEFORE,
    ),
    "a block before many other decisions": (f"x\n{BLOCK}\n" + "The decision is open.\n" * 100, BEFORE),
    "a block after braces in its line": (f"[a] {{b}} {BLOCK} end", BEFORE),
    "a dict of Python before much text": (f"x\n{json.loads(BLOCK)}\n" + "y\n" * 50_000, NOT_JSON),
    "invalid JSON with a block in its middle": (
        '{"a": "' + "x" * 30_000 + '"", "decision": "block", "b": "' + "x" * 30_000 + '"}',
        INVALID,
    ),
    "a denial of Python in upper case": (
        "x\n{'hookSpecificOutput': {'permissionDecision': 'Deny'}}",
        NOT_JSON,
    ),
    "a permission in YAML": ("permissionDecision: deny\n", NOT_JSON),
    "one word": ("DENY\n", NOT_JSON),
    "one word that asks": ("ask\n", NOT_JSON),
    "one word in UTF-16": ("deny".encode("utf-16").decode("utf-8", "replace"), "its output is UTF-16"),
    "an indented block without a reason": ('x\n  {"decision": "block"}\nDone', BEFORE),
    "a judge's answer after invalid JSON": ('{level: info}\n{"ok": false, "reason": "no"}\nDone', INVALID),
    "one word and a reason": ("Block: two tests fail\n", NOT_JSON),
    "denied inside the list": ('[{"hookSpecificOutput": {"permissionDecision": "deny"}}]', "inside a list"),
}

ORDINARY = {
    "a sentence with braces": "All 12 tests passed {ok}",
    "an open brace": "hello {",
    "jest": "PASS src/app.test.ts\n  ✓ adds (2 ms)\n\nTests:       12 passed, 12 total\nTime:        1.2 s\n",
    "coverage": "File      | % Stmts |\n----------|---------|\nAll files |   98.5  |\n",
    "a log in JSON": '{"level":"info","msg":"started"}\n{"level":"info","msg":"done","ok":true}\n',
    "one record of a log": '{"level": "info", "msg": "done"}',
    "a log with decisions": '{"ts":1,"ip":"1.2.3.4","decision":"block"}\n{"ts":2,"decision":"allow"}\n',
    "a sampling decision": 'x\n{"trace":"1","decision":"sampled"}\n',
    "a list of numbers": "[1, 2, 3]",
    "a list of records": '[{"level": "info", "decision": "keep"}]',
    "a string": '"done"',
    "the tests of a hook": 'tests/test_x.py::test_it[{"decision":"block"}] PASSED [100%]\n1 passed in 0.1s\n',
    "a diff of a test": '  Object {\n-   "decision": "block",\n+   "decision": "approve",\n  }\n',
    "a snapshot": 'Snapshot:\n    {\n      "decision": "block",\n      "id": 5\n    }\nwritten\n',
    "a file that was printed": '{\n  "name": "parser",\n  "version": "1.0.0",',
    "an approval after text": 'x\n{"decision": "approve"}\n',
    "an approval before text": '{"decision": "approve"}\nx\n',
    "an approval that is truncated text": "The decision: ship it.",
    "a test report": '{"name": "adds", "ok": false, "ms": 2}\n{"name": "subs", "ok": true, "ms": 1}\n',
    "a policy in YAML": "name: egress\ndecision: deny\nreason: default\n",
    "a policy in YAML that begins with its decision": "decision: deny\nports: [22]\n",
    "a health check": 'GET /health -> {"ok": false}',
    "the tests of a hook, with a reason": f"tests/test_x.py::test_it[{BLOCK}] PASSED [100%]\n1 passed\n",
    "a record about a hook": f'{{"level": "info", "answer": {BLOCK}, "ms": 2}}\nDone\n',
    "a record about a hook after text": f'x\n{{"level": "info", "answer": {BLOCK}, "ms": 2}}\nDone\n',
    "a record about a hook that is not JSON": f"x {{level: info, answer: {BLOCK}, ms: 2}} end\nDone\n",
    "a fixture": f'cases:\n{{\n  "name": "it",\n  "expect": {BLOCK},\n  "ms": 2\n}}\nDone\n',
    "a fixture that is not JSON": f'const c = {{\n  "expect": {BLOCK},\n}};\nDone\n',
    "a policy in YAML after a template": "# policy\n{{ header }}\n\nports: [22]\n  - 1\ndecision: deny\n",
    "a list of cases": f'[\n  {{"name": "it",\n   "expect": {BLOCK}}}\n]\n',
    "a log that begins with decisions": '{"decision":"block","ip":"1.2.3.4"}\n{"decision":"allow"}\n',
    "a function": 'function f()\n{\n  return { decision: "block" };\n}\n',
    "a file that was printed, with a decision": '{\n  "name": "parser",\n  "decision": "appr',
    "an approval in UTF-16": '{"decision": "approve"}'.encode("utf-16").decode("utf-8", "replace"),
    "permission after text": f"x\n{permission('allow')}",
    "a sentence that begins with a word": "Block devices: sda, sdb",
    "a word in a list": "allow\ndeny\n",
    "a reply with a message": 'x\n{"ok": true, "message": "denied"}\n',
    "many braces that are not JSON": 'x {"a {"b ' * 2_000,
    "a log of a firewall": 'x\n{"ip": "1.2.3.4", "blocked": true}\n{"blocked": true}\n{"allowed": false, "reason": "x", "n": 1}\n',
    "prose": "We made a decision: block the release until Friday? No.",
}


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(("stdout", "why"), LOST.values(), ids=LOST)
def test_a_decision_that_cannot_be_read_is_a_failure(stdout: str, why: str, dialect: Dialect) -> None:
    decision = interpret(Exited(0, stdout), rule(), dialect).decision
    assert isinstance(decision, Fault)
    looks_like_json = stdout.strip().startswith("{") and stdout.strip().endswith("}")
    if dialect is CLAUDE and looks_like_json:  # Claude Code: an error of its own
        assert decision.error.startswith("its output looks like a JSON object but is not valid JSON")
    else:
        assert decision.error.startswith(f"its decision was not read, because {why}") or why in decision.error


@pytest.mark.parametrize("dialect", [TURNGATE, MUX], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("stdout", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_output_is_not_a_decision(stdout: str, dialect: Dialect) -> None:
    assert isinstance(interpret(Exited(0, stdout), rule(), dialect).decision, Allow)
    assert isinstance(interpret(Exited(0, "", stdout), rule(), dialect).decision, Allow)


@pytest.mark.parametrize("stdout", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_output_is_nothing_lost_in_claude_either(stdout: str) -> None:
    assert lost_in_text(stdout) is None


MISPLACED = {
    "ok": ({"ok": False, "reason": "no"}, "`ok` is the answer of a prompt hook"),
    "ok as a text": ({"ok": "false", "reason": "r"}, "`ok` is the answer of a prompt hook"),
    "a flag that blocks": ({"block": True, "reason": "x"}, "`block` is unknown: a block is"),
    "a flag without a reason": ({"blocked": True}, "`blocked` is unknown: a block is"),
    "a flag as a text": ({"deny": "true", "message": "x"}, "`deny` is unknown: a block is"),
    "no approval": ({"approve": False, "reason": "x"}, "`approve` is unknown: a block is"),
    "no permission": ({"allow": False, "reason": "x"}, "`allow` is unknown: a block is"),
    "continue inside hookSpecificOutput": (
        {"hookSpecificOutput": {"hookEventName": "Stop", "continue": False}},
        "`continue` is inside `hookSpecificOutput`: move it to the top level",
    ),
    "inside hookSpecificOutput": (
        {"hookSpecificOutput": {"hookEventName": "Stop", "decision": "block", "reason": "x"}},
        "`decision` is inside `hookSpecificOutput`: move it to the top level",
    ),
    "permission at the top": ({"permissionDecision": "deny"}, "`permissionDecision` belongs in"),
    "permission at a stop": (
        {"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "deny"}},
        "`permissionDecision` has no effect at Stop",
    ),
    "capital letter": (
        {"Decision": "block", "reason": "x"},
        "`Decision` is unknown: did you mean `decision`?",
    ),
    "typo": ({"descision": "block", "reason": "x"}, "`descision` is unknown: did you mean `decision`?"),
    "a list of answers": ({"results": [{"decision": "deny"}]}, "`results` is unknown: a block is"),
    "a list of words": ({"decisions": ["deny"]}, "`decisions` is unknown: did you mean `decision`?"),
    "an answer in another object": (
        {"output": {"answer": {"decision": "block", "reason": "x"}}},
        "`output` is unknown: a block is",
    ),
    "a list in a list": ({"runs": [[], [{"ok": False, "reason": "x"}]]}, "`runs` is unknown: a block is"),
    "a list inside hookSpecificOutput": (
        {"hookSpecificOutput": {"hookEventName": "Stop", "answers": [{"decision": "block"}]}},
        "`answers` is unknown: a block is",
    ),
}


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(("answer", "why"), MISPLACED.values(), ids=MISPLACED)
def test_a_decision_in_the_wrong_place_is_a_failure(
    answer: dict[str, object], why: str, dialect: Dialect
) -> None:
    decision = interpret(Exited(0, json.dumps(answer)), rule(), dialect).decision
    assert isinstance(decision, Fault)
    assert decision.error.startswith(why)


MISPLACED_AT = {
    "the case of a key": (
        "PreToolUse",
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissiondecision": "deny"}},
        "`permissiondecision` is unknown: did you mean `permissionDecision`?",
    ),
    "a request at the top": ("PreToolUse", {"behavior": "Deny"}, "`behavior` belongs in `decision`"),
    "the words of another language": (
        "PreToolUse",
        {"hook_specific_output": {"permission_decision": "deny"}},
        "`hook_specific_output` is unknown: did you mean `hookSpecificOutput`?",
    ),
    "a denial under another key": (
        "PreToolUse",
        {"action": "deny"},
        "`action` is unknown: a denial is `permissionDecision` or `decision`",
    ),
    "behavior in upper case": (
        "PermissionRequest",
        {"behavior": "DENY"},
        "`behavior` belongs in `decision`",
    ),
    "behavior at the top": ("PermissionRequest", {"behavior": "deny"}, "`behavior` belongs in `decision`"),
    "behavior without a decision": (
        "PermissionRequest",
        {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "behavior": "deny"}},
        "`behavior` belongs in `decision`",
    ),
    "a redaction at the top": (
        "PostToolUse",
        {"updatedToolOutput": "***"},
        "`updatedToolOutput` belongs in `hookSpecificOutput`",
    ),
    "a list of denials": (
        "PreToolUse",
        {"results": [{"decision": "deny", "n": 1}]},
        "`results` is unknown: a denial is `permissionDecision` or `decision`",
    ),
    "a list of words": ("PermissionRequest", {"votes": ["allow", "Deny"]}, "`votes` is unknown: a denial is"),
    "a flag in another object": (
        "PreToolUse",
        {"result": {"block": True}},
        "`result` is unknown: a denial is",
    ),
    "an input at the top": (
        "PreToolUse",
        {"updatedInput": {"command": "true"}},
        "`updatedInput` belongs in `hookSpecificOutput`",
    ),
    "an input beside a permission": (
        "PreToolUse",
        {
            "updatedInput": {"command": "true"},
            "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"},
        },
        "`updatedInput` belongs in `hookSpecificOutput`",
    ),
    "an input in the words of another language": (
        "PreToolUse",
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updated_input": {"command": "true"}}},
        "`updated_input` is unknown: did you mean `updatedInput`?",
    ),
    "an input in these words at the top": (
        "PreToolUse",
        {"updated_input": {"command": "true"}},
        "`updated_input` is unknown: did you mean `updatedInput`?",
    ),
    "an input beside the decision of a request": (
        "PermissionRequest",
        {
            "hookSpecificOutput": {
                "hookEventName": "PermissionRequest",
                "decision": {"behavior": "allow"},
                "updatedInput": {"command": "true"},
            }
        },
        "`updatedInput` belongs in `decision` of `hookSpecificOutput`",
    ),
}


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(("event", "answer", "why"), MISPLACED_AT.values(), ids=MISPLACED_AT)
def test_a_decision_in_the_wrong_place_of_a_tool_event_is_a_failure(
    event: str, answer: dict[str, object], why: str, dialect: Dialect
) -> None:
    decision = interpret(Exited(0, json.dumps(answer)), rule(event=event), dialect).decision
    if dialect is CLAUDE and "permission" in json.dumps(answer).lower() and isinstance(decision, Allow):
        # It decides as Claude Code does, and reports what is lost.
        assert decision.warnings[0].startswith(why)
        assert decision.warnings[0].endswith("; this part of its answer is NOT enforced")
        return
    assert isinstance(decision, Fault)
    assert decision.error.startswith(why)
    assert decision.asks_user is (dialect is not CLAUDE and event != "PostToolUse")


WRONG_INPUT: dict[str, dict[str, object]] = {
    "PreToolUse": {"permissionDecision": "allow", "updatedInput": "ls"},
    "PermissionRequest": {"decision": {"behavior": "allow", "updatedInput": ["ls"]}},
}


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("event", WRONG_INPUT)
def test_permission_for_an_input_of_a_wrong_type_is_a_failure(event: str, dialect: Dialect) -> None:
    stdout = json.dumps({"hookSpecificOutput": {"hookEventName": event, **WRONG_INPUT[event]}})
    decision = interpret(Exited(0, stdout), rule(event=event), dialect).decision
    assert isinstance(decision, Fault)
    assert "`updatedInput` is " in decision.error


def test_a_question_with_an_input_of_a_wrong_type_is_still_asked() -> None:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "ask", "updatedInput": 5}
    report = Exited(0, json.dumps({"hookSpecificOutput": specific}))
    decision, answer = interpret(report, rule(event="PreToolUse"), TURNGATE)
    assert decision == Allow(warnings=("`updatedInput` is 5, expected an object: ignored",))
    assert answer is not None
    assert answer.permission == "ask"


@pytest.mark.parametrize("dialect", [TURNGATE, MUX], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("value", ["deny", ["deny"], 5, False])
def test_specific_output_of_a_wrong_type_is_a_failure(value: object, dialect: Dialect) -> None:
    stdout = json.dumps({"hookSpecificOutput": value})
    decision = interpret(Exited(0, stdout), rule(event="PreToolUse"), dialect).decision
    assert isinstance(decision, Fault)
    assert decision.error.startswith("`hookSpecificOutput` is ")


TWICE = {
    "decision": '{"decision": "block", "reason": "r", "decision": "approve"}',
    "permissionDecision": '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecision": "allow"}}',
    "hookSpecificOutput": '{"hookSpecificOutput": {"permissionDecision": "deny"}, "hookSpecificOutput": {}}',
}


@pytest.mark.parametrize("key", TWICE)
def test_a_decision_that_is_there_twice_is_a_failure(key: str) -> None:
    decision = interpret(Exited(0, TWICE[key]), rule(event="PreToolUse"), TURNGATE).decision
    assert decision == Fault(f"`{key}` is there twice, with different values", asks_user=True)


def test_in_claude_the_last_of_two_decisions_counts_and_is_reported() -> None:
    decision = interpret(Exited(0, TWICE["decision"]), rule(event="PreToolUse"), CLAUDE).decision
    problem = "`decision` is there twice, with different values; this part of its answer is NOT enforced"
    assert decision == Allow("r", warnings=(problem,))


@pytest.mark.parametrize("word", ["ask", "deny"])
def test_a_huge_number_beside_a_permission_changes_nothing(word: str) -> None:
    stdout = permission(word)[:-1] + ', "n": ' + "1" * 5000 + ', "m": 7}'
    for dialect in (TURNGATE, MUX, CLAUDE):
        decision, answer = interpret(Exited(0, stdout), rule(event="PreToolUse"), dialect)
        assert answer is not None
        assert (answer.permission, type(decision)) == (word, Block if word == "deny" else Allow)


def test_a_huge_number_does_not_change_the_numbers_of_an_input() -> None:
    specific = '"permissionDecision": "allow", "updatedInput": {"limit": 7}, "n": ' + "1" * 5000
    stdout = f'{{"hookSpecificOutput": {{"hookEventName": "PreToolUse", {specific}}}}}'
    _, answer = interpret(Exited(0, stdout), rule(event="PreToolUse"), TURNGATE)
    assert answer is not None
    assert json.dumps(answer.updated_input) == '{"limit": 7}'


def test_a_first_message_of_a_wrong_type_is_reported() -> None:
    specific = {"hookEventName": "SessionStart", "initialUserMessage": 5}
    report = Exited(0, json.dumps({"hookSpecificOutput": specific}))
    decisions = [
        interpret(report, rule(event="SessionStart"), dialect).decision for dialect in (TURNGATE, CLAUDE)
    ]
    assert decisions == [
        Allow(warnings=("`initialUserMessage` is 5, expected a string: ignored",)),
        Fault("its JSON is ignored: `initialUserMessage` must be a string"),
    ]


HARMLESS = [
    {},
    {"ok": True},
    {"reason": "x"},
    {"decisions": ["approve"]},
    {"release": {"decision": "ship"}},
    {"tests": [{"name": "adds", "ok": False, "ms": 2}]},
    {"status": "block"},
    {"status": "fail"},
    {"block": False, "reason": "x"},
    {"approve": True},
    {"block": 4096},
    {"allow": ["Bash"], "deny": []},
    {"result": {"block": True}},
    {"decision": None},
    {"action": "deny"},
    {"hookSpecificOutput": {"hookEventName": "Stop", "decision": "approve"}},
]


@pytest.mark.parametrize("answer", HARMLESS, ids=json.dumps)
def test_an_object_without_a_lost_block_passes(answer: dict[str, object]) -> None:
    assert isinstance(interpret(Exited(0, json.dumps(answer)), rule(), TURNGATE).decision, Allow)


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
@pytest.mark.parametrize(
    "answer",
    [
        {"formatter": "black"},
        {"results": [{"decision": "allow"}, "passed"]},
        {"rules": {"deny": [], "allow": ["Bash"]}},
        {"n": 5, "files": ["a", {"b": None}]},
        {"updatedInput": None},
    ],
    ids=json.dumps,
)
def test_an_object_without_a_lost_denial_passes_before_a_tool(answer: dict[str, object], event: str) -> None:
    assert isinstance(interpret(Exited(0, json.dumps(answer)), rule(event=event), TURNGATE).decision, Allow)


def test_a_denial_at_any_depth_is_found() -> None:
    deep: dict[str, object] = {"action": "deny"}
    for _ in range(50_000):
        deep = {"a": [deep]}
    found = Fault("`a` is unknown: a denial is `permissionDecision` or `decision`", asks_user=True)
    assert interpret(Returned(deep), rule(event="PreToolUse"), TURNGATE).decision == found


def test_an_answer_that_contains_itself_is_searched_to_an_end() -> None:
    endless: dict[str, object] = {}
    endless["a"] = [endless, endless]
    decision = interpret(Returned(endless), rule(event="PreToolUse"), TURNGATE).decision
    assert decision == Fault(
        'it returned the unknown key `a`; to block, return {"decision": "block", "reason": "…"}',
        asks_user=True,
    )


def test_a_long_output_is_searched_at_both_ends_and_before_a_tool_call_asks() -> None:
    text = "x\n" * MAX_SEARCHED_CHARS
    found = [lost_in_text(each) is not None for each in (f"{text}{BLOCK}", f"x\n{BLOCK}\n{text}", text)]
    assert found == [True, True, False]
    assert lost_in_text(f"{text}{BLOCK}\n{text}") is None
    decisions = [
        interpret(Exited(0, text), rule(event=event), TURNGATE).decision for event in ("Stop", "PreToolUse")
    ]
    why = f"its output is not JSON and too long to be searched for a decision: {ONLY_JSON}"
    assert decisions == [Allow(), Fault(why, asks_user=True)]


@pytest.mark.parametrize(
    "piece", ['{"decision":', '{"ok":', "decision: ", ' "decision" {', "{'decision': ", '["decision",']
)
@pytest.mark.parametrize("start", ["", "x"])
def test_the_work_on_a_large_text_of_near_decisions_is_bounded(start: str, piece: str) -> None:
    some, more = (start + piece * (size // len(piece)) for size in (500_000, 1_000_000))
    with cpu_limit(30):
        calls = count_calls(lambda: lost_in_text(some))
        assert count_calls(lambda: lost_in_text(more)) < 1.1 * calls
