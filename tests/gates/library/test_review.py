"""The gate `review`: a script plays the model that reads what the session has changed."""

from pathlib import Path

from tests.gates.cases.judge import NO, YES
from tests.gates.library.test_judge import script
from tests.support.gates import answer_of_process, blocked, claude_input
from tests.support.git_projects import git, make_repository, write
from tests.support.patches import make_patch
from tests.support.transcripts import talk
from turngate.gates.library.review import show_patches

KEEP = "If the user asked for this, end your answer with `turngate: keep review: why`."
BLOCKED = (0, blocked(f"run the tests\n{KEEP}"), "")


def begin(project: Path, *answers: str, rounds: int = 3) -> tuple[str, ...]:
    """Return the words of the gate in a new session."""
    make_repository(project, {"a.py": "1\n"})
    talk().user("Go on.").says("Done.").write(project.parent / "transcript.jsonl")
    words = ("review", "--model", script(project, *answers), "--rounds", str(rounds))
    assert answer_of_process(words, claude_input(project, hook_event_name="SessionStart")) == (0, {}, "")
    return words


def test_a_session_without_changes_is_not_reviewed(project: Path) -> None:
    assert answer_of_process(begin(project, NO), claude_input(project)) == (0, {}, "")


def test_a_change_is_blocked_in_as_many_rounds_as_are_wanted(project: Path) -> None:
    words = begin(project, NO, rounds=2)
    answers = []
    for text in ("2\n", "3\n", "4\n"):
        write(project, {"a.py": text})
        answers.append(answer_of_process(words, claude_input(project)))
    over = 'gate "review": after 2 rounds the review still asks for: run the tests'
    assert [code for code, _, _ in answers] == [0, 0, 0]
    assert answers[0] == BLOCKED
    assert answers[1][1]["decision"] == "block"
    assert answers[2] == (0, {"systemMessage": over}, "")


def test_a_change_that_has_passed_is_not_reviewed_again(project: Path) -> None:
    words = begin(project, YES)
    write(project, {"a.py": "2\n"})
    assert answer_of_process(words, claude_input(project))[1] == {"systemMessage": 'gate "review": they ran'}
    script(project, NO)
    assert answer_of_process(words, claude_input(project)) == (0, {}, "")
    git(project, "commit", "--quiet", "--all", "--message=same")
    assert answer_of_process(words, claude_input(project)) == (0, {}, "")


def test_the_model_reads_numbered_lines_without_generated_files() -> None:
    patches = [make_patch("a.py", "1\n2", "1\n3"), make_patch("dist/b.js", "1", "2")]
    assert list(show_patches(patches)) == ["--- a.py", "    1  1", "    2 -2", "    2 +3"]
