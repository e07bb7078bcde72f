"""The cases of the gate `ran`. The command is the agent's: the gate runs none."""

from pathlib import Path

from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.git_projects import Step, files, repository, steps
from tests.support.transcripts import TranscriptBuilder, talk

WORDS = ("ran", "--if", "api/**", "--then", "make openapi")
START = steps(repository({"api/a.py": "1\n", "b.py": "1\n"}))
CHANGED = files({"api/a.py": "2\n"})


def talks(conversation: TranscriptBuilder) -> Step:
    def step(project: Path) -> None:
        conversation.write(project.parent / "transcript.jsonl")

    return step


def failed(since: str) -> dict[str, str]:
    return blocked(f"these files have changed, and `make openapi` {since}:\n- api/a.py\nRun `make openapi`.")


EDIT = "api/a.py"
CASES = [
    GateCase(
        "passed: other files", WORDS, steps(files({"b.py": "2\n"}), talks(talk().says("Done."))), {}, START
    ),
    GateCase(
        "failed: it has not run",
        WORDS,
        steps(CHANGED, talks(talk().edits(EDIT).runs("make openapi-docs").runs("echo makeopenapi"))),
        failed("has not run in this session"),
        START,
    ),
    GateCase(
        "passed: it has run since",
        WORDS,
        steps(CHANGED, talks(talk().edits(EDIT).runs("cd . && make  openapi | tail -3").edits("b.py"))),
        {},
        START,
    ),
    GateCase(
        "failed: edited again",
        WORDS,
        steps(CHANGED, talks(talk().runs("make openapi").edits(EDIT))),
        failed("has not succeeded since they were edited"),
        START,
    ),
    GateCase(
        "failed: edited again by a command",
        WORDS,
        steps(CHANGED, talks(talk().runs("make openapi").runs("sed -i s/1/2/ api/a.py"))),
        failed("has not succeeded since they were edited"),
        START,
    ),
    GateCase(
        "failed: it failed",
        WORDS,
        steps(CHANGED, talks(talk().edits(EDIT).runs("make openapi", "no rule", 2))),
        failed("has not run in this session"),
        START,
    ),
    GateCase(
        "could not run: no conversation",
        WORDS,
        steps(CHANGED),
        could_not_run("ran", "the transcript cannot be read: No such file or directory"),
        START,
    ),
]
