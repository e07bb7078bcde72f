"""A denial of a tool call is never taken for consent, whatever a hook prints around it."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.builders import rule, run
from tests.support.strategies import any_text
from turngate.core.answers.interpret import interpret
from turngate.core.answers.report_types import Exited, Replied, Report, Returned
from turngate.core.constants import PERMISSION_EVENTS
from turngate.core.dialect import DIALECTS, MUX, TURNGATE, Dialect
from turngate.core.verdict.decisions import Fault
from turngate.core.verdict.tool_effects import permission_of
from turngate.core.verdict.verdict import conclude

Form = Callable[[str, Any, Any], dict[str, Any]]


def _specific(event: str, word: Any, reason: Any) -> dict[str, Any]:
    if event == "PreToolUse":
        fields: dict[str, Any] = {"permissionDecision": word, "permissionDecisionReason": reason}
    else:
        fields = {"decision": {"behavior": word, "message": reason}}
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def _top(_: str, word: Any, reason: Any) -> dict[str, Any]:
    return {"decision": word, "reason": reason}


known = st.builds(
    lambda word, change: change(word),
    st.sampled_from(["deny", "block"]),
    st.sampled_from([str, str.upper, str.title, lambda word: f" {word}\n"]),
)
unknown = (
    st.sampled_from(["denied", "blocked", "reject", "dney", "no", "", "approved"])
    | st.integers()
    | st.booleans()
)
reasons = st.sampled_from([None, "", "  ", "no", 5, 'a "quote", a {brace} and a\nline'])
events = st.sampled_from(PERMISSION_EVENTS)
forms: st.SearchStrategy[Form] = st.sampled_from([_specific, _top])
indents = st.sampled_from([None, 2])
# Lines before and after; a line is ordinary text or an attempt to hide the denial from a search.
lines = st.lists(
    any_text | st.sampled_from(["decision", '{"decision": "approve"}', "{", '{"a": {', "[", "}", '"', "{}"]),
    max_size=4,
).map("\n".join)
huge = st.sampled_from(["", ', "n": ' + "1" * 5_000, ', "n": 1e999'])


def judged(report: Report, event: str, dialect: Dialect) -> tuple[str | None, bool]:
    """Return the permission, and whether the hook is reported as not enforced."""
    decision, answer = interpret(report, rule(event=event), dialect)
    ran = run(decision, report=report, event=event, answer=answer)
    permission = permission_of(event, [ran])
    assert permission is not None
    return permission.behavior, bool(conclude((ran,), dialect).unenforced)


@given(event=events, form=forms, word=known, reason=reasons, indent=indents, more=huge)
def test_a_denial_that_is_all_a_hook_prints_denies(
    event: str, form: Form, word: str, reason: Any, indent: int | None, more: str
) -> None:
    stdout = json.dumps(form(event, word, reason), indent=indent)[:-1] + more + "}"
    for dialect in (TURNGATE, MUX):
        assert judged(Exited(0, stdout), event, dialect) == ("deny", False)


@given(
    event=events,
    form=forms,
    word=unknown,
    reason=reasons,
    indent=indents,
    dialect=st.sampled_from(["turngate", "mux"]),
)
def test_an_answer_that_is_not_understood_asks_and_is_reported(
    event: str, form: Form, word: Any, reason: Any, indent: int | None, dialect: str
) -> None:
    answer = form(event, word, reason)
    for report in (
        Exited(0, json.dumps(answer, indent=indent)),
        Replied(json.dumps(answer)),
        Returned(answer),
    ):
        assert judged(report, event, DIALECTS[dialect]) == ("ask", True)


@given(
    event=events,
    form=forms,
    word=known | unknown,
    reason=reasons,
    indent=indents,
    before=lines,
    after=lines,
    code=st.sampled_from([0, 0, 1]),
)
@example("PreToolUse", _specific, "deny", None, 2, "answer", "decision " * 50, 0)
@example("PreToolUse", _specific, 5, None, None, '{"a": {', "", 0)
def test_a_denial_between_other_lines_is_never_consent(
    event: str, form: Form, word: Any, reason: Any, indent: int | None, before: str, after: str, code: int
) -> None:
    denial = json.dumps(form(event, word, reason), indent=indent)
    report = Exited(code, f"{before}\n{denial}\n{after}")
    for dialect in DIALECTS.values():
        behavior, is_reported = judged(report, event, dialect)
        assert behavior == "deny" or is_reported
        if dialect.unreadable_asks:
            assert behavior in ("deny", "ask")


@given(event=events, word=known, code=st.integers(1, 255))
def test_a_denial_counts_or_asks_with_every_exit_code(event: str, word: str, code: int) -> None:
    report = Exited(code, json.dumps(_specific(event, word, "no")))
    assert [judged(report, event, dialect)[0] for dialect in (TURNGATE, MUX)] in (
        ["deny", "ask"],
        ["deny", "deny"],
    )
    assert not isinstance(interpret(report, rule(event=event), TURNGATE).decision, Fault)
