"""The cases of the gate `evidence`.

It reads only the transcript, so that a project without git, names of files and a timeout do not apply; output is that of
commands of the agent.
"""

from typing import Any

from tests.gates.cases.checklist import RUNNING, project_with
from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.transcripts import TranscriptBuilder, talk, with_transcript

CLAIM = "All 12 tests pass"


def ends(builder: TranscriptBuilder, answer: str = f"I fixed it. {CLAIM}.", **fields: Any) -> Any:
    return with_transcript(builder.says(answer), last_assistant_message=answer, **fields)


def unbacked(what: str, run: str = "`pytest -q`", claim: str = CLAIM) -> dict[str, Any]:
    return blocked(
        f'You claim "{claim}", but {what}.\nRun {run} now and report what it prints, or correct the claim.'
    )


NOTHING = unbacked("no command in this session has checked that", "the tests")
TOO_EARLY = "`pytest -q` was run before the last edit, of /p/src/a.py"
WORDS = ("evidence",)
BINARY = bytes(range(256)).decode("utf-8", "replace")

CASES = (
    GateCase("a claim that a command backs", WORDS, ends(talk().edits("/p/src/a.py").runs("pytest -q")), {}),
    GateCase("an answer without a claim", WORDS, ends(talk().edits("/p/src/a.py"), "I fixed it."), {}),
    GateCase("a claim that nothing backs", WORDS, ends(talk().edits("/p/src/a.py")), NOTHING),
    GateCase("nothing was edited", WORDS, ends(talk()), NOTHING),
    GateCase(
        "an agent that a hook already continues is blocked too",
        WORDS,
        ends(talk(), stop_hook_active=True),
        NOTHING,
    ),
    GateCase(
        "the hook's own words in the transcript are not evidence",
        WORDS,
        ends(talk().feedback("Run and verify tests pass before stopping").user("pytest -q: 12 passed")),
        NOTHING,
    ),
    GateCase(
        "the command failed",
        WORDS,
        ends(talk().runs("pytest -q", "1 failed", code=1)),
        unbacked("`pytest -q` did not succeed"),
    ),
    GateCase(
        "a pipe hides the exit code, not the output",
        WORDS,
        ends(talk().runs("pytest -q 2>&1 | tail -3", "FAILED tests/test_a.py\n1 failed")),
        unbacked("`pytest -q 2>&1` did not succeed", "`pytest -q 2>&1`"),
    ),
    GateCase("a pipe", WORDS, ends(talk().runs("pytest -q | tail -3", "12 passed in 0.1s")), {}),
    GateCase(
        "the file was edited afterwards",
        WORDS,
        ends(talk().runs("pytest -q").edits("/p/src/a.py")),
        unbacked(TOO_EARLY),
    ),
    GateCase(
        "a command has edited a file afterwards",
        WORDS,
        ends(talk().runs("pytest -q").runs("sed -i s/a/b/ src/a.py")),
        unbacked("`pytest -q` was run before the last edit, of src/a.py"),
    ),
    GateCase(
        "an edit that failed changes nothing",
        WORDS,
        ends(talk().runs("pytest -q").calls("Edit", {"file_path": "/p/a.py"}, "no match", is_error=True)),
        {},
    ),
    GateCase(
        "a document was edited afterwards", WORDS, ends(talk().runs("pytest -q").edits("/p/CHANGELOG.md")), {}
    ),
    GateCase(
        "it is edited and checked in one command",
        WORDS,
        ends(talk().runs("sed -i s/a/b/ src/a.py && pytest -q")),
        {},
    ),
    GateCase(
        "the command has no result yet",
        WORDS,
        ends(talk().calls("Bash", {"command": "pytest -q"}, None)),
        unbacked("`pytest -q` did not succeed"),
    ),
    GateCase(
        "two claims, one of them backed",
        WORDS,
        ends(talk().runs("pytest -q"), "The tests pass. The build is green."),
        unbacked("no command in this session has checked that", "the build", "The build is green"),
    ),
    GateCase("only claims of some kinds", ("evidence", "--claims", "lint"), ends(talk()), {}),
    GateCase(
        "a kind that is not known",
        ("evidence", "--claims", "docs"),
        ends(talk()),
        could_not_run("evidence", "'docs' is not a kind of claim; expected one of tests, build, lint, types"),
    ),
    GateCase(
        "a pattern of one's own",
        ("evidence", "--pattern", "deployed to \\w+ => ^kubectl rollout status"),
        ends(talk().runs("kubectl get pods"), "It is deployed to staging."),
        unbacked(
            "no command in this session has checked that",
            "a command that checks it",
            "It is deployed to staging",
        ),
    ),
    GateCase(
        "a pattern of one's own that a command backs",
        ("evidence", "--pattern", "deployed to \\w+ => ^kubectl rollout status"),
        ends(talk().runs("kubectl rollout status x"), "It is deployed to staging."),
        {},
    ),
    GateCase(
        "a pattern without an arrow",
        ("evidence", "--pattern", "deployed"),
        ends(talk()),
        could_not_run("evidence", "the pattern 'deployed' must have the form CLAIM => COMMAND"),
    ),
    GateCase(
        "a pattern that is not one blocks a strict gate",
        ("evidence", "--strict", "--pattern", "( => x"),
        ends(talk()),
        blocked(
            "gate \"evidence\" could not run: the pattern '( => x' is not a regular expression: "
            "missing ), unterminated subpattern at position 0"
        ),
    ),
    GateCase(
        "there is no transcript",
        WORDS,
        project_with({}, last_assistant_message="All tests pass."),
        could_not_run("evidence", "the transcript cannot be read: No such file or directory"),
    ),
    GateCase(
        "a waiting agent is left alone",
        WORDS,
        ends(talk(), background_tasks=RUNNING),
        {"systemMessage": 'gate "evidence" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase(
        "10 MB of output of another command",
        WORDS,
        ends(talk().runs("pytest -q").runs("make", "line\n" * 2_000_000)),
        {},
    ),
    GateCase(
        "10 MB of output of the command are not read, and no evidence",
        WORDS,
        ends(talk().runs("pytest -q", "line\n" * 2_000_000 + "12 passed")),
        unbacked("`pytest -q` did not succeed"),
    ),
    GateCase(
        "binary output of the command",
        WORDS,
        ends(talk().runs("pytest -q", BINARY + "12 passed")),
        {},
    ),
    GateCase(
        "binary output of a command that failed",
        WORDS,
        ends(talk().runs("pytest -q", BINARY, code=1)),
        unbacked("`pytest -q` did not succeed"),
    ),
    GateCase(
        "wrong types and broken lines",
        WORDS,
        ends(
            talk()
            .calls("Bash", {"command": 7})
            .calls("Bash", ["pytest"])
            .calls("Edit", {"file_path": ["a.py"]})
            .raw(
                b'{"message":{"role":"assistant","content":[{"type":"tool_use","name":"Bash","input":{"command":"py'
            )
        ),
        NOTHING,
    ),
)
