"""The claims in an agent's answer."""

import pytest

from tests.gates.cases.claims import CLAIMS
from turngate.gates import claims
from turngate.gates.library.until import has_promise
from turngate.gates.markdown_tasks import read_plan


@pytest.mark.parametrize("answer", CLAIMS)
def test_what_is_a_claim(answer: str) -> None:
    assert [claim.kind for claim in claims.find_claims(answer, claims.CLAIMS)] == CLAIMS[answer]


def test_a_claim_is_quoted_as_it_was_made() -> None:
    found = claims.find_claims("I fixed it.\n\n- **All 12 tests pass**.\n", claims.CLAIMS)
    assert found == [claims.Claim("tests", "All 12 tests pass")]


def test_a_long_answer_is_searched_at_its_end_in_bounded_time() -> None:
    answer = "tests " * 500_000 + "\n" + "a " * 20_000 + "\nAll tests pass."
    assert claims.find_claims(answer, claims.CLAIMS) == [claims.Claim("tests", "All tests pass")]


@pytest.mark.parametrize(
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
def test_a_hostile_answer_takes_bounded_time(text: str) -> None:
    claims.find_claims("x " + text * 100_000, claims.CLAIMS)
    has_promise("x " + text * 100_000, "DONE")
    read_plan(f"# a {text * 100_000}\n- [ ] {text * 100_000}")
