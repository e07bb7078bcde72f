"""The claims in an agent's answer."""

import pytest

from tests.gates.cases.claims import CLAIMS
from tests.support.measures import count_calls, cpu_limit
from turngate.gates import claims
from turngate.gates.library.until import MAX_ANSWER_CHARS, has_promise
from turngate.gates.markdown_tasks import read_plan


@pytest.mark.parametrize("answer", CLAIMS)
def test_what_is_a_claim(answer: str) -> None:
    assert [claim.kind for claim in claims.find_claims(answer, claims.CLAIMS)] == CLAIMS[answer]


def test_a_claim_is_quoted_as_it_was_made() -> None:
    found = claims.find_claims("I fixed it.\n\n- **All 12 tests pass**.\n", claims.CLAIMS)
    assert found == [claims.Claim("tests", "All 12 tests pass")]


def test_only_the_end_of_a_long_answer_is_searched() -> None:
    answer = "The build succeeds.\n" + "a " * (claims.MAX_ANSWER_CHARS // 2) + "\nAll tests pass."
    assert claims.find_claims(answer, claims.CLAIMS) == [claims.Claim("tests", "All tests pass")]
    assert [claim.kind for claim in claims.find_claims(answer[:1000], claims.CLAIMS)] == ["build"]


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
        claims.find_claims(answer, claims.CLAIMS)
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
