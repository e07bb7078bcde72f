"""The cases of the gate `until`. It reads no file of the project but through its command."""

from typing import Any

from tests.gates.cases.checklist import RUNNING, project_with
from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.transcripts import LONG_AGO, TranscriptBuilder, talk, with_transcript

WORDS = ("until", "--promise", "DONE")
NO_PROMISE = 'The promise "DONE" is not in your last answer.'


def goes_on(problem: str = NO_PROMISE, iteration: int = 1, most: int = 20, promise: str = "DONE") -> str:
    return (
        f"{problem}\nThis was iteration {iteration} of {most}. Go on with the task. When it is done, and not before, "
        f'end your answer with "{promise}" as a sentence of its own, without quotation marks.'
    )


def says(text: str, **fields: Any) -> Any:
    return with_transcript(talk().says(text), last_assistant_message=text, **fields)


def proof(reason: str) -> str:
    return goes_on(f'You wrote "DONE", but the command that proves it fails: {reason}')


CASES = (
    GateCase("the promise is made", WORDS, says("Everything works.\n\nDONE"), {}),
    GateCase("the promise is not made", WORDS, says("Everything works."), blocked(goes_on())),
    GateCase(
        "an agent that a hook already continues is blocked too",
        WORDS,
        says("Not yet.", stop_hook_active=True),
        blocked(goes_on()),
    ),
    GateCase("it is proven", (*WORDS, "--", "true"), says("DONE"), {}),
    GateCase(
        "it is not proven",
        (*WORDS, "--", "echo 2 failed; exit 3"),
        says("DONE"),
        blocked(proof("exit code 3\n2 failed")),
    ),
    GateCase(
        "the program of the proof is missing",
        (*WORDS, "--", "no-such-program-here --all"),
        says("DONE"),
        could_not_run("until", "exit code 127: /bin/sh: 1: no-such-program-here: not found"),
    ),
    GateCase(
        "the proof does not end in time",
        (*WORDS, "--timeout", "1", "--", "sleep 60"),
        says("DONE"),
        could_not_run("until", "it did not end within 1 s"),
    ),
    GateCase(
        "a proof that could not run blocks a strict gate",
        (*WORDS, "--strict", "--timeout", "1", "--", "sleep 60"),
        says("DONE"),
        blocked('gate "until" could not run: it did not end within 1 s'),
    ),
    GateCase(
        "10 MB of output of the proof",
        (*WORDS, "--", "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo 'E   assert 1 == 2'; exit 1"),
        says("DONE"),
        blocked(proof("exit code 1\n" + "x" * 399 + "…\nE   assert 1 == 2")),
    ),
    GateCase(
        "binary output of the proof",
        (*WORDS, "--", "printf 'a\\000\\377\\033[31mb\\n'; exit 1"),
        says("DONE"),
        blocked(proof("exit code 1\na\ufffdb")),
    ),
    GateCase(
        "without a promise nothing is proven",
        (*WORDS, "--", "touch ran; false"),
        says("Hm."),
        blocked(goes_on()),
    ),
    GateCase(
        "an empty promise",
        ("until", "--promise", "  "),
        says("DONE"),
        could_not_run("until", "the promise is empty"),
    ),
    GateCase(
        "one iteration",
        (*WORDS, "--max-iterations", "1"),
        says("Not yet."),
        {"continue": False, "stopReason": 'the promise "DONE" was not kept in 1 iteration'},
    ),
    GateCase(
        "the time is over",
        (*WORDS, "--max-minutes", "0.5"),
        with_transcript(TranscriptBuilder().user("Go.", timestamp=LONG_AGO), last_assistant_message="No."),
        {"continue": False, "stopReason": 'the promise "DONE" was not kept within 0.5 minutes'},
    ),
    GateCase(
        "the answer is that of the transcript if the event has none",
        WORDS,
        with_transcript(talk().says("DONE").feedback("say DONE"), last_assistant_message=None),
        {},
    ),
    GateCase(
        "without a transcript",
        WORDS,
        project_with({}, last_assistant_message="No."),
        blocked(goes_on()),
    ),
    GateCase(
        "a waiting agent is left alone",
        WORDS,
        says("No.", background_tasks=RUNNING),
        {"systemMessage": 'gate "until" waits: a subagent works in the background; it was NOT enforced'},
    ),
)

# Answers, and whether they make the promise "ALL DONE".
PROMISES = {
    "ALL DONE": True,
    "Here it is.\n\nALL DONE.": True,
    "**ALL DONE**": True,
    "## ALL DONE!": True,
    "- ALL DONE": True,
    "All tests pass. ALL DONE": True,
    "<promise>ALL DONE</promise>": True,
    "I am finished: <promise>\nALL DONE\n</promise>": True,
    "ALL   DONE": True,
    "All tests pass. **<promise>ALL DONE</promise>** The rest is in the log.": True,
    "- <promise>ALL DONE</promise>.": True,
    "¡ALL DONE!": True,
    "テストは成功。ALL DONE。": True,
    "ALL DONE！": True,
    # What is not a promise
    "": False,
    "Nothing is left.": False,
    "all done": False,
    "I am not ALL DONE yet.": False,
    "NOT ALL DONE": False,
    "I will write ALL DONE when the tests pass.": False,
    'You asked me to end with "ALL DONE" as a sentence of its own.': False,
    '"ALL DONE"': False,
    "“ALL DONE”": False,
    "> ALL DONE": False,
    "`ALL DONE`": False,
    "```\nALL DONE\n```": False,
    "~~~\n<promise>ALL DONE</promise>\n~~~": False,
    "<!-- ALL DONE -->": False,
    "    ALL DONE": False,
    "<promise>ALMOST ALL DONE</promise>": False,
    "I will write <promise>ALL DONE</promise> later": False,
    "<promise>ALL DONE</promise> comes later": False,
    "¿ALL DONE?": False,
    "<promise>ALL DONE</promise>?": False,
    "Am I ALL DONE?": False,
    "ALL DONE?": False,
    "ALL DONE？": False,
}
