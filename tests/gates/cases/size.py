"""The cases of the gate `size`. It runs no command of the user."""

from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.git_projects import files, repository, steps, write_transcript

START = steps(repository({"a.py": "1\n"}), write_transcript)
WORDS = ("size", "--max-lines", "3", "--max-files", "2")
ADVICE = "Split the change, or say in your answer why it has to be this large."

CASES = [
    GateCase("passed", WORDS, steps(files({"a.py": "1\n2\n3\n4\n"})), {}, START),
    GateCase("passed: by default", ("size",), steps(files({"a.py": "1\n" * 900})), {}, START),
    GateCase(
        "failed: too many lines",
        WORDS,
        steps(files({"a.py": "1\n2\n3\n4\n", "b.py": "1\n"})),
        blocked(
            "the change is 4 added lines in 2 files; the limits are 3 lines and 2 files. The largest:\n"
            f"- a.py: 3 lines\n- b.py: 1 lines\n{ADVICE}"
        ),
        START,
    ),
    GateCase(
        "failed: attributes call the file binary",
        WORDS,
        steps(files({"a.py": "1\n" * 5, ".git/info/attributes": "*.py -diff\n"})),
        blocked(
            "the change is 4 added lines in 1 file; the limits are 3 lines and 2 files. The largest:\n"
            f"- a.py: 4 lines\n{ADVICE}"
        ),
        START,
    ),
    GateCase(
        "failed: too many files",
        WORDS,
        steps(files({"b": "1\n", "c": "1\n", "d": "1\n"})),
        blocked(
            "the change is 3 added lines in 3 files; the limits are 3 lines and 2 files. The largest:\n"
            f"- b: 1 lines\n- c: 1 lines\n- d: 1 lines\n{ADVICE}"
        ),
        START,
    ),
    GateCase(
        "passed: what is generated or locked does not count",
        WORDS,
        steps(
            files({"dist/a.js": "1\n" * 9, "x.lock": "1\n" * 9, "g.go": "// Code generated\n" + "1\n" * 9})
        ),
        {},
        START,
    ),
    GateCase(
        "passed: only these files", (*WORDS, "--files", "src"), steps(files({"a.py": "2\n" * 9})), {}, START
    ),
    GateCase(
        "could not run: no git",
        WORDS,
        steps(files({"a.py": "2\n"})),
        could_not_run("size", "the project has no git repository, so the added lines are not known"),
        steps(files({"a.py": "1\n"})),
    ),
]
