"""The claims in an agent's answer."""

import pytest

from tests.gates.cases.claims import CLAIMS
from tests.support.measures import count_calls, cpu_limit
from turngate.gates import claims
from turngate.gates.library.until import MAX_ANSWER_CHARS, has_promise
from turngate.gates.markdown_tasks import read_plan
from turngate.gates.toolchains import CHECKS


@pytest.mark.parametrize("answer", CLAIMS)
def test_what_is_a_claim(answer: str) -> None:
    found = {claim.kind for claim in claims.find_claims(answer)}
    assert found & set(CHECKS) == set(CLAIMS[answer])


def test_a_claim_is_quoted_as_it_was_made() -> None:
    found = [*claims.find_claims("I fixed it.\n\n- **All 12 tests pass**.\n")]
    assert found == [claims.Claim("tests", "All 12 tests pass", is_whole=True)]


def test_claims_about_git_and_files() -> None:
    answer = "I wrote the report to `out/report.csv`. It is committed, but not pushed."
    assert [*claims.find_claims(answer)] == [
        claims.Claim("committed", "It is committed"),
        claims.Claim("written", "wrote the report to `out/report.csv`", path="out/report.csv"),
    ]


def test_only_the_end_of_a_long_answer_is_searched() -> None:
    answer = "The build succeeds.\n" + "a " * (claims.MAX_ANSWER_CHARS // 2) + "\nAll tests pass."
    assert [claim.kind for claim in claims.find_claims(answer)] == ["tests"]
    assert [claim.kind for claim in claims.find_claims(answer[:1000])] == ["build"]


# Answers, and whether they ask the user for something that the agent needs.
QUESTIONS = {
    "Should the API be REST or GraphQL?": True,
    "I looked at both.\n\nWhich one do you want?\n1. REST\n2. GraphQL": True,
    "Soll ich die alte Tabelle löschen?": True,
    "要删除旧表吗？": True,
    "I moved the parser. Where should its tests be?": True,
    "**Which port should it use?**": True,
    # It says that the work is done, or offers more
    "Done. Should the docs be updated, too?": False,
    "All tests pass. Which branch is it for?": False,
    "Task 1 is complete. Shall I continue?": False,
    "I moved the parser. Shall I also move its tests?": False,
    "Is there anything else?": False,
    "Would you like me to open a pull request?": False,
    # It does not ask
    "I moved the parser.": False,
    "Why does it fail? Because the port is taken." + " It was not released." * 30: False,
    "```\nwhat?\n```": False,
    "": False,
}


@pytest.mark.parametrize("answer", QUESTIONS)
def test_whether_an_answer_asks_the_user(answer: str) -> None:
    assert claims.asks_user(answer) is QUESTIONS[answer]


# Answers, and what they admit.
ADMISSIONS = {
    "Changed it. I could not run the tests.": "I could not run the tests.",
    "I haven't tested it": "I haven't tested it",
    "This is untested.": "This is untested.",
    "- **Not verified:** the import": "Not verified: the import",
    "Two tests still fail.": "Two tests still fail.",
    "The test fails as expected.": "The test fails as expected.",
    "The writer is not implemented.": "The writer is not implemented.",
    "Ich habe die Tests nicht ausgeführt.": "Ich habe die Tests nicht ausgeführt.",
    "没有运行测试。": "没有运行测试。",
    "tsc reports 1 pre-existing error in src/old.ts.": "tsc reports 1 pre-existing error in src/old.ts.",
    "Done. `mypy` still has errors that were there before.": "mypy still has errors that were there before.",
    "The type check is red because of old.ts.": "The type check is red because of old.ts.",
    "One tsc error is unrelated to this change.": "One tsc error is unrelated to this change.",
    "The form now shows an error message.": None,
    "mypy reports no errors.": None,
    "All tests pass.": None,
    "12 passed, 0 failed, no errors.": None,
    "The test that was failing passes now.": None,
    "I did not change the API, and I ran the tests.": None,
    "All tests pass, including the one that failed before.": None,
}


@pytest.mark.parametrize("answer", ADMISSIONS)
def test_what_an_answer_admits(answer: str) -> None:
    assert claims.find_admission(answer) == ADMISSIONS[answer]


hostile = pytest.mark.parametrize(
    "text",
    [
        "`",
        "“",
        " ",
        "tests ",
        "tests-",
        "; ",
        "'a ",
        "1",
        "# ",
        "> ",
        "[ ",
        "passed ",
        "plan: ",
        "\n- ",
        "goal:\n",
        "test passes the ",
    ],
)


@hostile
def test_the_work_on_a_hostile_answer_is_bounded(text: str) -> None:
    def search(chars: int) -> None:
        answer = "x " + text * (chars // len(text))
        for _ in claims.find_claims(answer):
            pass
        claims.asks_user(answer)
        claims.find_admission(answer)
        has_promise(answer, "DONE")

    with cpu_limit(30):
        some = count_calls(lambda: search(MAX_ANSWER_CHARS))
        assert count_calls(lambda: search(2 * MAX_ANSWER_CHARS)) < 1.1 * some


@hostile
def test_the_work_on_a_hostile_plan_is_at_most_proportional_to_its_length(text: str) -> None:
    def read(times: int) -> None:
        read_plan(f"# a {text * times}\n- [ ] {text * times}")

    with cpu_limit(30):
        some = count_calls(lambda: read(5_000))
        assert count_calls(lambda: read(10_000)) < 2.1 * some
