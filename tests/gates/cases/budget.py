"""The cases of the gate `budget`.

It reads only the transcript, so that a project without git, names of files, the output of commands and a timeout do not
apply. It never blocks, so it cannot be strict, and it does not leave a waiting agent alone.
"""

from typing import Any

from tests.gates.cases.checklist import RUNNING
from tests.support.gates import GateCase, could_not_run
from tests.support.transcripts import IN_THE_FUTURE, LONG_AGO, TranscriptBuilder, talk, with_transcript


def used_up(text: str) -> dict[str, Any]:
    return {"continue": False, "stopReason": f"the budget {text}"}


def usage(output: int) -> dict[str, int]:
    return {"input_tokens": 100, "cache_read_input_tokens": 800, "output_tokens": output}


TALK = (
    TranscriptBuilder()
    .user("First.", timestamp=LONG_AGO)
    .says("a", id="m1", usage=usage(1))
    .says("b", id="m1", usage=usage(100))  # the same message
    .user("Then.", timestamp=IN_THE_FUTURE)
    .feedback("go on")
    .says("c", id="m2", usage=usage(100))
)
OVER = "of this session is used up: 2,000 of 1,500 tokens"

CASES = (
    GateCase("tokens are left", ("budget", "--tokens", "2001"), with_transcript(TALK), {}),
    GateCase("tokens are used up", ("budget", "--tokens", "1500"), with_transcript(TALK), used_up(OVER)),
    GateCase(
        "exactly all tokens",
        ("budget", "--tokens", "2000"),
        with_transcript(TALK),
        used_up("of this session is used up: 2,000 of 2,000 tokens"),
    ),
    GateCase(
        "tokens since the user's last message",
        ("budget", "--tokens", "1000", "--per-prompt"),
        with_transcript(TALK),
        used_up("of this prompt is used up: 1,000 of 1,000 tokens"),
    ),
    GateCase(
        "enough for this prompt", ("budget", "--tokens", "1500", "--per-prompt"), with_transcript(TALK), {}
    ),
    GateCase(
        "turns are used up",
        ("budget", "--turns", "2"),
        with_transcript(TALK),
        used_up("of this session is used up: 2 of 2 turns"),
    ),
    GateCase(
        "turns of this prompt are left", ("budget", "--turns", "2", "--per-prompt"), with_transcript(TALK), {}
    ),
    GateCase(
        "the time of the session is over",
        ("budget", "--minutes", "90"),
        with_transcript(TALK),
        used_up("of this session is used up: 90 minutes have passed"),
    ),
    GateCase(
        "one minute",
        ("budget", "--minutes", "1"),
        with_transcript(TALK),
        used_up("of this session is used up: 1 minute has passed"),
    ),
    GateCase(
        "time is left for this prompt",
        ("budget", "--minutes", "90", "--per-prompt", "--turns", "9"),
        with_transcript(TALK),
        {},
    ),
    GateCase(
        "an agent that a hook already continues ends too",
        ("budget", "--tokens", "1500"),
        with_transcript(TALK, stop_hook_active=True),
        used_up(OVER),
    ),
    GateCase(
        "a waiting agent ends too",
        ("budget", "--tokens", "1500"),
        with_transcript(TALK, background_tasks=RUNNING),
        used_up(OVER),
    ),
    GateCase(
        "no limit is given",
        ("budget",),
        with_transcript(TALK),
        could_not_run("budget", "it has no limit: give --tokens, --minutes or --turns"),
    ),
    GateCase(
        "there is no transcript",
        ("budget", "--tokens", "1"),
        lambda _: None,
        could_not_run("budget", "the transcript cannot be read: No such file or directory"),
    ),
    GateCase(
        "without times",
        ("budget", "--minutes", "1"),
        with_transcript(TranscriptBuilder().user("x", timestamp=["2020"]).user("y", timestamp="soon")),
        could_not_run("budget", "the transcript does not say when it began"),
    ),
    GateCase(
        "wrong types and broken lines",
        ("budget", "--tokens", "16"),
        with_transcript(
            talk()
            .says("a", usage=[1, 2])
            .says(
                "b",
                id=["x"],
                usage={"input_tokens": "9", "output_tokens": 1e300, "cache_read_input_tokens": True},
            )
            .says("c")
            .raw(b'{"message":{"role":"assistant","usage":{"input_tokens":99')
        ),
        {},
    ),
)
