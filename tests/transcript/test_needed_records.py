"""Of a long transcript only the records that still count are read; the result is that of reading all."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.core.conversation.messages import UserMessage
from turngate.transcript.reader import read_records
from turngate.transcript.resume import (
    StoredConversation,
    conversation_of,
    read_conversation,
    read_needed_records,
)

Record = dict[str, Any]


def user(text: str, **meta: Any) -> Record:
    return {"type": "user", "uuid": text, **meta, "message": {"role": "user", "content": text}}


def reply(text: str, **meta: Any) -> Record:
    content = [{"type": "text", "text": text}, {"type": "tool_use", "id": text, "name": "Bash", "input": {}}]
    return {"type": "assistant", "uuid": text, **meta, "message": {"role": "assistant", "content": content}}


def result(call: str, **meta: Any) -> Record:
    content = [{"type": "tool_result", "tool_use_id": call, "content": 'said "key" and "summary"'}]
    return {"type": "user", "uuid": f"of {call}", **meta, "message": {"role": "user", "content": content}}


def missed(name: str) -> Record:
    hook = {"event": "Stop", "hook": name, "kind": "command", "outcome": "failed", "said": None}
    return {"type": "missed_gates", "unenforced": [hook], "subagents": []}


SUMMARY = user("what happened", isMeta=True, origin="summary")
CLEARED: Record = {"type": "cleared"}
TURN_END: Record = {"type": "turn_end", "ended_by": "allowed", "notice": None}
CALL: Record = {"type": "tool_call", "tool_name": "bash", "script": "ls"}


def write(path: Path, records: list[Record], *, spaced: bool = False) -> str:
    separators = None if spaced else (",", ":")
    path.write_text("".join(json.dumps(record, separators=separators) + "\n" for record in records))
    return str(path)


def test_what_came_before_a_compaction_and_the_prompt_is_not_read(tmp_path: Path) -> None:
    old = [user("one"), reply("t1"), result("t1"), TURN_END, user("two", key="k"), reply("t2"), TURN_END]
    needed = [user("three"), CALL, reply("t3"), result("t3"), TURN_END, SUMMARY]
    path = write(tmp_path / "chat.jsonl", [*old, *needed])
    # The call is in the reply too.
    assert [*read_needed_records(path)] == [user("two", key="k"), needed[0], *needed[2:]]


def test_after_a_compaction_within_a_turn_its_prompt_is_the_first_that_is_read(tmp_path: Path) -> None:
    needed = [SUMMARY, user("one", continuation=2), reply("t9")]
    path = write(tmp_path / "chat.jsonl", [user("one"), reply("t1"), result("t1"), *needed])
    assert [*read_needed_records(path)] == needed


def test_after_clear_nothing_before_the_last_prompt_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "chat.jsonl", [user("one"), reply("t1"), user("two"), CLEARED])
    assert [*read_needed_records(path)] == [user("two"), CLEARED]


def test_a_conversation_without_a_compaction_is_read_from_its_beginning(tmp_path: Path) -> None:
    records = [user("one"), reply("t1"), result("t1"), TURN_END]
    assert [*read_needed_records(write(tmp_path / "chat.jsonl", records))] == records


KEPT = {
    "a count": ([user("go", continuation=2)], StoredConversation(continuations=2, is_unfinished=True)),
    "a question": (
        [user("go"), result("t", question="why?")],
        StoredConversation(is_unfinished=True, question="why?"),
    ),
    "a key": (
        [result("t", key="k1"), user("go")],
        StoredConversation(is_unfinished=True, keys={"k1"}),
    ),
    "an end": ([user("go"), reply("t"), TURN_END], StoredConversation()),
}


@pytest.mark.parametrize(("before", "state"), KEPT.values(), ids=KEPT)
def test_a_compaction_keeps_the_state_of_the_turn(
    tmp_path: Path, before: list[Record], state: StoredConversation
) -> None:
    old = [user("long ago", continuation=9), reply("t0"), result("t0", question="old?"), TURN_END]
    stored = read_conversation(write(tmp_path / "chat.jsonl", [*old, *before, SUMMARY]))
    messages = (UserMessage("what happened", "summary"),)
    expected = StoredConversation(
        messages, state.continuations, state.is_unfinished, state.question, keys=state.keys
    )
    assert (stored, stored.last) == (expected, "what happened")


def test_gates_that_a_turn_missed_before_its_compaction_stay_missed(tmp_path: Path) -> None:
    records = [
        missed("a"),
        TURN_END,
        user("go"),
        missed("b"),
        SUMMARY,
        user("go", continuation=1),
        reply("t"),
    ]
    stored = read_conversation(write(tmp_path / "chat.jsonl", records))
    assert [hook.hook for hook in stored.missed.unenforced] == ["b"]


def test_a_compaction_is_found_behind_lines_that_are_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    long = [user("x" * 3_000_000, origin="context"), reply("y" * 1_500_000)]
    records = [user("one", key="k"), *long, SUMMARY, user("two"), *long]
    path = write(tmp_path / "chat.jsonl", records)
    assert [*read_needed_records(path)] == [records[0], *records[3:]]
    assert read_conversation(path) == conversation_of(records)


TEXTS = st.sampled_from(["t1", "t2", "go", '"summary"', '"cleared"', '"key"', "user"])
META = st.fixed_dictionaries(
    {},
    optional={
        "key": TEXTS | st.none(),
        "continuation": st.integers(0, 3) | st.none(),
        "question": TEXTS,
        "origin": st.sampled_from(["user", "stop_hook", "context", "summary", "subagent", "odd"]),
        "uuid": TEXTS | st.none(),
        "isMeta": st.booleans(),
    },
)
RECORDS = st.one_of(
    st.builds(lambda text, meta: {**user(text), **meta}, TEXTS, META),
    st.builds(lambda text, meta: {**reply(text), **meta}, TEXTS, META),
    st.builds(lambda text, meta: {**result(text), **meta}, TEXTS, META),
    st.builds(missed, TEXTS),
    st.sampled_from([SUMMARY, CLEARED, TURN_END, CALL]),
    st.fixed_dictionaries({"type": TEXTS, "summary": TEXTS, "message": TEXTS}),
)


@given(records=st.lists(RECORDS, max_size=12), spaced=st.booleans())
def test_the_conversation_is_that_of_all_records(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], spaced: bool
) -> None:
    path = write(tmp_path_factory.mktemp("chat") / "chat.jsonl", records, spaced=spaced)
    needed, whole = read_conversation(path), conversation_of(read_records(path))
    assert (needed, needed.last) == (whole, whole.last)
