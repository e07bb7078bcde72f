"""`make fuzz`: every target holds for a few inputs, and a violated invariant is reported."""

import pytest
from bench.fuzz.__main__ import TARGETS, fuzz, report
from bench.fuzz.target import Result, Target, run_input

INPUTS = 5
QUICK = [pytest.param(target, id=target.name) for target in TARGETS if target.name != "processes"]


@pytest.mark.parametrize("target", QUICK)
def test_every_target_holds_for_a_few_inputs(target: Target) -> None:
    result = Result()
    for seed in range(INPUTS):
        run_input(target, seed, result)
    assert (result.inputs, list(map(str, result.failures))) == (INPUTS, [])


def positive(number: int) -> None:
    if number > 0:
        raise ValueError("it is positive")


NUMBERS = Target("numbers", lambda random: random.randint(1, 1), positive)


def test_a_failure_is_printed_with_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    results = fuzz([NUMBERS], seed=7, seconds=600, inputs=1)
    assert report([NUMBERS], results) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "numbers: ValueError: it is positive",
        "  input: 1",
        "  again: python -m bench.fuzz --only numbers --seed 7 --inputs 1",
    ]


def test_an_input_that_takes_too_long_is_a_failure() -> None:
    result = Result()
    run_input(Target("slow", lambda _: 10**6, lambda count: sum(range(count)), max_cpu_s=0.0), 1, result)
    [failure] = result.failures
    assert failure.why.endswith("s of CPU time, the limit is 0 s")
