"""The cases of the gate `evidence`.

It reads only the transcript, so that a project without git, names of files and a timeout do not apply; output is that of
commands of the agent.
"""

from typing import Any

from tests.gates.cases.checklist import RUNNING, project_with
from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.transcripts import TranscriptBuilder, talk, with_transcript

DONE = "I fixed it. All 12 tests pass."
ADVICE = (
    "Run the project's tests, or another check of what you have changed, and report what it prints. "
    "If that is not possible, say openly what was not checked."
)


def ends(builder: TranscriptBuilder, answer: str = DONE, **fields: Any) -> Any:
    return with_transcript(builder.says(answer), last_assistant_message=answer, **fields)


def unbacked(what: str) -> dict[str, Any]:
    return blocked(f"{what}\n{ADVICE}")


def edit() -> TranscriptBuilder:
    return talk().edits("/p/src/a.py")


NOTHING = unbacked("You have edited /p/src/a.py, and no command has checked it since.")
FAILED = unbacked("`pytest -q` did not succeed, and has not been run successfully since.")
WORDS = ("evidence",)
CLAIMS = ("evidence", "--claims")
BINARY = bytes(range(256)).decode("utf-8", "replace")


def admitted(words: str) -> dict[str, Any]:
    return {
        "systemMessage": f'gate "evidence": it is not backed by a check, and the agent says so: "{words}"'
    }


CASES = (
    GateCase("an edit that a command has checked", WORDS, ends(edit().runs("pytest -q")), {}),
    GateCase("an edit that nothing has checked", WORDS, ends(edit()), NOTHING),
    GateCase(
        "an answer that claims nothing but that it is done", WORDS, ends(edit(), "I fixed it."), NOTHING
    ),
    GateCase("an answer in another language", WORDS, ends(edit(), "修正しました。"), NOTHING),
    GateCase("nothing was edited", WORDS, ends(talk()), {}),
    GateCase(
        "a claim whose check has run nothing, without an edit",
        WORDS,
        ends(talk().runs("make test", "make: 'test' is up to date."), "All tests pass."),
        unbacked("You say \"All tests pass\", but `make test` checked nothing: make: 'test' is up to date."),
    ),
    GateCase(
        "a claim whose check has run nothing, although it has compiled the edit",
        WORDS,
        ends(edit().runs("go test ./...", "?   \tx/a\t[no test files]"), "All tests pass."),
        unbacked('You say "All tests pass", but `go test ./...` checked nothing: [no test files]'),
    ),
    GateCase("only a document was edited", WORDS, ends(talk().edits("/p/README.md")), {}),
    GateCase("only settings were edited", WORDS, ends(talk().edits("/p/.claude/settings.json")), {}),
    GateCase(
        "an agent that a hook already continues is blocked too",
        WORDS,
        ends(edit(), stop_hook_active=True),
        NOTHING,
    ),
    GateCase(
        "the hook's own words in the transcript are not evidence",
        WORDS,
        ends(edit().feedback("Run and verify tests pass before stopping: 12 passed")),
        NOTHING,
    ),
    GateCase(
        "a check whose program is not there has not failed",
        WORDS,
        ends(edit().runs("mypy .", "/bin/bash: line 1: mypy: command not found", code=127).runs("pytest -q")),
        {},
    ),
    GateCase(
        "a check whose program is not there has checked nothing",
        WORDS,
        ends(edit().runs("pytest -q", "/bin/bash: line 1: pytest: command not found", code=127)),
        unbacked("`pytest -q` did not run: its program was not found."),
    ),
    GateCase("the command failed", WORDS, ends(edit().runs("pytest -q", "1 failed", code=1)), FAILED),
    GateCase(
        "another check has succeeded since",
        WORDS,
        ends(edit().runs("pytest -q", "1 failed", code=1).runs("ruff check .")),
        FAILED,
    ),
    GateCase(
        "the same check has succeeded since",
        WORDS,
        ends(edit().runs("pytest -q", "1 failed", code=1).runs("uv run pytest")),
        {},
    ),
    GateCase(
        "a pipe hides the exit code, not the output",
        WORDS,
        ends(edit().runs("pytest -q | tail -3", "FAILED tests/test_a.py\n1 failed")),
        FAILED,
    ),
    GateCase("a pipe", WORDS, ends(edit().runs("pytest -q | tail -3", "12 passed in 0.1s")), {}),
    GateCase(
        "the file was edited afterwards",
        WORDS,
        ends(talk().runs("pytest -q").edits("/p/src/a.py")),
        unbacked("`pytest -q` was run before the last edit, of /p/src/a.py."),
    ),
    GateCase(
        "a command has edited a file afterwards",
        WORDS,
        ends(talk().runs("pytest -q").runs("sed -i s/a/b/ src/a.py")),
        unbacked("`pytest -q` was run before the last edit, of src/a.py."),
    ),
    GateCase(
        "an edit that failed changes nothing",
        WORDS,
        ends(talk().calls("Edit", {"file_path": "/p/a.py"}, "no match", is_error=True)),
        {},
    ),
    GateCase(
        "documents and hidden files were edited afterwards",
        WORDS,
        ends(edit().runs("pytest -q").edits("/p/CHANGELOG.md").edits("/p/.gitignore")),
        {},
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
        ends(edit().calls("Bash", {"command": "pytest -q"}, None)),
        FAILED,
    ),
    GateCase(
        "a command that is not known and counts tests",
        WORDS,
        ends(edit().runs("./dev quick", "12 passed")),
        {},
    ),
    GateCase(
        "what a command reads is not its result", WORDS, ends(edit().runs("cat log", "12 passed")), NOTHING
    ),
    GateCase(
        "a subagent has run them",
        WORDS,
        ends(edit().calls("Task", {"prompt": "test"}, "All 12 tests passed.")),
        {},
    ),
    GateCase("a tool has run them", WORDS, ends(edit().calls("mcp__ide__getDiagnostics", {}, "[]")), {}),
    GateCase(
        "the agent says that it has not checked it",
        WORDS,
        ends(edit(), "I fixed it. I could not run the tests."),
        admitted("I could not run the tests."),
    ),
    GateCase(
        "the agent says that a test fails",
        WORDS,
        ends(edit().runs("pytest -q", "1 failed", code=1), "I fixed it, but test_b still fails."),
        admitted("I fixed it, but test_b still fails."),
    ),
    GateCase(
        "the agent asks the user",
        WORDS,
        ends(edit(), "Should an empty line end the record?"),
        {"systemMessage": 'gate "evidence" waits: the agent asks the user; it was NOT enforced'},
    ),
    GateCase(
        "a later question of the user",
        WORDS,
        ends(edit().says("…").user("Why?"), "Because of the cache."),
        {},
    ),
    GateCase(
        "a later answer that says it is done",
        WORDS,
        ends(edit().says("…").user("And?"), "It is done."),
        NOTHING,
    ),
    GateCase(
        "a check of one's own",
        ("evidence", "--check", "^terraform plan"),
        ends(edit().runs("terraform plan")),
        {},
    ),
    GateCase(
        "a check that is not a pattern blocks a strict gate",
        ("evidence", "--strict", "--check", "("),
        ends(edit()),
        blocked(
            'gate "evidence" could not run: an option `check` is not a regular expression: '
            "missing ), unterminated subpattern at position 0"
        ),
    ),
    GateCase(
        "two claims, one of them backed",
        CLAIMS,
        ends(edit().runs("pytest -q"), "The tests pass. The build is green."),
        unbacked('You say "The build is green", but the build did not run since the last edit.'),
    ),
    GateCase(
        "a claim about all tests, of which some were run",
        CLAIMS,
        ends(edit().runs("pytest -k week")),
        unbacked('You say "All 12 tests pass", but `pytest -k week` runs only a part of them.'),
    ),
    GateCase(
        "a file that was not written",
        CLAIMS,
        ends(edit().runs("pytest -q"), "I wrote `report.csv`."),
        unbacked('You say "wrote `report.csv`", but there is no such file.'),
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
        ends(edit(), background_tasks=RUNNING),
        {"systemMessage": 'gate "evidence" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase(
        "10 MB of output of another command",
        WORDS,
        ends(edit().runs("pytest -q").runs("ls", "line\n" * 2_000_000)),
        {},
    ),
    GateCase(
        "10 MB of output of the command are not read, and no evidence",
        WORDS,
        ends(edit().runs("pytest -q", "line\n" * 2_000_000 + "12 passed")),
        FAILED,
    ),
    GateCase("binary output of the command", WORDS, ends(edit().runs("pytest -q", BINARY + "12 passed")), {}),
    GateCase(
        "binary output of a command that failed",
        WORDS,
        ends(edit().runs("pytest -q", BINARY, code=1)),
        FAILED,
    ),
    GateCase(
        "wrong types and broken lines",
        WORDS,
        ends(
            edit()
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
