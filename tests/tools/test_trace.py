"""A draw of requirements can be repeated."""

from collections import Counter

from tests.trace import Requirement, draw


def test_a_draw_has_only_requirements_with_a_test_and_depends_on_its_seed_alone() -> None:
    requirements = [Requirement(f"S0-{number}", "", 1, 1) for number in range(10, 30)]
    tests = {each.id: Counter(test=1) for each in requirements[:10]}
    drawn = draw(requirements, tests, 5, seed=1)
    assert (len({each.id for each in drawn} & tests.keys()), len(drawn)) == (5, 5)
    assert drawn == draw(requirements[::-1], tests, 5, seed=1)
    assert drawn != draw(requirements, tests, 5, seed=2)
    assert len(draw(requirements, tests, 50, seed=1)) == 10
