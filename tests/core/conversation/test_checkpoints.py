"""Where the text of a command or an agent type has checkpoints."""

import time

import pytest

from turngate.core.conversation.checkpoints import (
    CheckpointError,
    Stage,
    Workflow,
    parse_answer,
    split_stages,
    workflow_of,
)

PLAN = """\
Write a plan.

<checkpoint>
STOP. Present the plan:
- its chunks
</checkpoint>

Implement it.
"""


@pytest.mark.req("S3-62", "S3-63")
@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("Write a plan.", [Stage("Write a plan.")]),
        ("", [Stage("")]),
        (
            PLAN,
            [
                Stage(
                    "Write a plan.\n\nSTOP. Present the plan:\n- its chunks",
                    "STOP. Present the plan:\n- its chunks",
                ),
                Stage("Implement it."),
            ],
        ),
        ("a\nSTOP\nb", [Stage("a\n\nSTOP", "STOP"), Stage("b")]),
        ("a\r\nSTOP\r\nb", [Stage("a\n\nSTOP", "STOP"), Stage("b")]),
        (
            "a\n**STOP** and wait for the user.\nb",
            [Stage("a\n\nSTOP and wait for the user.", "STOP and wait for the user."), Stage("b")],
        ),
        ("a\n3. **STOP.** Wait.\nb", [Stage("a\n\nSTOP. Wait.", "STOP. Wait."), Stage("b")]),
        ("## STOP: ask\nb", [Stage("STOP: ask", "STOP: ask"), Stage("b")]),
        ("a\n  - STOP\nb", [Stage("a\n\nSTOP", "STOP"), Stage("b")]),
        ("a <checkpoint>Good?</checkpoint> b", [Stage("a\n\nGood?", "Good?"), Stage("b")]),
        ('a\n<Checkpoint name="x">Good?</CHECKPOINT>', [Stage("a\n\nGood?", "Good?"), Stage("")]),
        ("a\n<checkpoint></checkpoint>\nb", [Stage("a\n\nContinue?", "Continue?"), Stage("b")]),
        ("a\n    <checkpoint>x</checkpoint>\nb", [Stage("a\n\nx", "x"), Stage("b")]),
        (
            "a\nSTOP\nb\nSTOP\nc",
            [Stage("a\n\nSTOP", "STOP"), Stage("b\n\nSTOP", "STOP"), Stage("c")],
        ),
    ],
)
def test_a_text_is_split_at_its_checkpoints(text: str, stages: list[Stage]) -> None:
    assert list(split_stages(text.replace("\r\n", "\n"))) == stages


@pytest.mark.parametrize(
    "text",
    [
        "```\n<checkpoint>\nSTOP\n</checkpoint>\n```",
        "~~~md\nSTOP\n```\nSTOP\n~~~",
        "````\n```\nSTOP\n```\n````",
        "- ```\n  STOP\n  ```",
        "Use `<checkpoint>` and `</checkpoint>`.",
        "Do not stop.\nStop here.\nNON-STOP\nSTOP_HOOK is a variable.\nSTOP-gates\n| STOP |",
        "the word STOP in a line",
        "a <checkpoints> b",
        "```\nan example that has no end",
    ],
)
def test_what_is_not_a_checkpoint(text: str) -> None:
    assert split_stages(text) == (Stage(text),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a\n<checkpoint>\nb", "the <checkpoint> in line 2 has no </checkpoint>"),
        ("a\n</checkpoint>\nb", "line 2 has a </checkpoint> without its <checkpoint>"),
        (
            "<checkpoint>\n<checkpoint>\n</checkpoint></checkpoint>",
            "line 2 has a <checkpoint> inside of a <checkpoint>",
        ),
        ("a\n```\nSTOP", "the code block in line 2 has no end and contains a checkpoint"),
        ("STOP\n" * 51, "it has more than 50 checkpoints"),
    ],
)
def test_a_checkpoint_that_is_not_clear_is_an_error(text: str, why: str) -> None:
    with pytest.raises(CheckpointError) as raised:
        split_stages(text)
    assert str(raised.value) == why


@pytest.mark.parametrize(
    "text", ["`" * 100_000, "*" * 100_000, "> " * 50_000, "<checkpoint " * 9_000, "1. " * 33_000]
)
def test_a_hostile_text_takes_no_time(text: str) -> None:
    started = time.process_time()
    assert split_stages(text) == (Stage(text.strip()),)
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("yes", "yes"),
        (" Yes! ", "yes"),
        ("Y", "yes"),
        ("go  on", "yes"),
        ("no.", "no"),
        ("N", "no"),
        ("stop", "no"),
        ("yes, but rename it", None),
        ("not yet", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_only_a_clear_answer_is_one(text: str, answer: str | None) -> None:
    assert parse_answer(text) == answer


def test_a_workflow_is_read_back_from_its_record() -> None:
    workflow = Workflow("/plan", split_stages(PLAN))
    assert workflow_of(workflow.as_record()) == workflow
    assert workflow.after_approval() == Workflow("/plan", (Stage("Implement it."),))


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"name": "/plan", "stages": []},
        {"name": "/plan", "stages": [{"text": "a", "checkpoint": "x"}]},
        {"name": "/plan", "stages": [{"text": "a", "checkpoint": None}, {"text": "b", "checkpoint": None}]},
        {"name": "/plan", "stages": [{"text": "a", "checkpoint": "x"}, "b"]},
    ],
)
def test_another_record_is_not_a_workflow(record: object) -> None:
    assert workflow_of(record) is None
