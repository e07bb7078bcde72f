"""Whether a check in one of the agent's command lines succeeded.

Its exit code is that of the whole line, unless something follows that does not depend on it (`pytest | tail`, `pytest; true`).
Then the output must show a success. What may not have run, or counts the other way round, backs nothing.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from turngate.core.shell.parse import WrittenCommand
from turngate.gates.agent_commands import CI
from turngate.gates.conversation import ToolCall
from turngate.gates.empty_runs import counts_tests, describe_empty_run
from turngate.gates.toolchains import CHECKS

MAX_LINES = 1000  # of an output, that are searched for a success

_FAILURE = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?|problems?)\b|\bFAILED\b|^FAIL\b|\bFAIL:|^E {2,}|\berror(?:\[\w+\])?:|"
    r"\bTraceback \(most|npm ERR!|\bexit(?:ed with)? (?:code|status)[: ]+[1-9]|\bBUILD FAIL|command not found|No such file|"
    r"\berror TS\d|^[ \t]+\d+:\d+[ \t]+error\b|\*\*\* \[|\*\*\* No rule",
    re.MULTILINE,
)
_CI_FAILURE = re.compile(r"\b(?:fail(?:ure|ed|ing)?|cancelled|timed_out)\b|^X ", re.MULTILINE)
# What is well, unless nothing was checked.
_WELL = re.compile(
    r"^(?:ok|OK|PASS|PASSED|Passed!)\b|\btest result: ok\b|\[100%\]|\bBUILD SUCCESS|\b[Ss]uccess(?:ful|fully)?\b|✓|"
    r"\b[Nn]o (?:issues|problems|errors|warnings)\b|(?<!\d)0 (?:errors|issues|problems|warnings)\b|\b[Aa]ll checks passed|"
    r"^All (?:done|matched)\b|\bPassed$|\bpass\b|^\s?Finished\b|\b(?:built|compiled) in\b|\balready formatted\b|\bleft unchanged\b",
    re.MULTILINE,
)
_EXIT_ZERO = re.compile(r"(?:^|\n)[^\d\n]*\b0\s*\Z")

_SKIPS_TESTS = re.compile(r"\s(?:-DskipTests\b|-Dmaven\.test\.skip\b|-x\s+test\b)")
_HIDES_EXIT_CODE = re.compile(r"\s--exit-zero\b")
_DEFINES = re.compile(r"(?:function\s|alias\s|[\w.-]+\s*\(\s*\))")
_STOPS_AT_ERRORS = re.compile(r"set\s+-\w*e")
_GROUP_MAY_NOT_RUN = re.compile(r"(?:\|\||!)\s*(?:[({]|\S*sh\s+-\w*c)")
_SHOWS_ALL = re.compile(r"(?:cat|head|tail|tee)\b")
_OPENS, _CLOSES = ("if", "while", "until", "case", "for", "select"), ("fi", "done", "esac")
_LOOPS = ("for", "select")  # over words, that are usually there


def succeeded(call: ToolCall, steps: Sequence[WrittenCommand], place: int, kind: str) -> bool:
    """Return whether the check of a kind at a place of a command line succeeded."""
    if call.result is None or call.is_error or call.input.get("run_in_background") is True:
        return False
    if _may_not_run(steps, place) or (kind == "tests" and _SKIPS_TESTS.search(steps[place].text)):
        return False
    command = call.text("command")
    if not _hides_exit_code(command, steps, place):
        return kind not in CHECKS or not _ran_nothing(call.result, kind)
    if _fails(call.result) or (re.match(CI, steps[place].text) and _CI_FAILURE.search(call.result)):
        return False
    return (
        _is_well(call.result, command, kind)
        or _prints_exit_code(steps, place, call.result)
        or (kind != "tests" and _is_silent(steps, place))
    )


def _may_not_run(steps: Sequence[WrittenCommand], place: int) -> bool:
    """Return whether a command is a condition or depends on one, runs in the background or is another of the same name."""
    first = _pipeline_start(steps, place)
    before = steps[first - 1].operator if first else ""
    after = next((step.operator for step in steps[place:] if step.operator not in ("&&", "||", "|")), "")
    return (
        before == "||"
        or after == "&"
        or steps[first].text.startswith("!")
        or any(word not in _LOOPS for word in _open_blocks(steps[:place]))
        or any(_DEFINES.match(step.text) for step in steps)
        or any(_ends_line(steps, each) for each in range(place))
    )


def _pipeline_start(steps: Sequence[WrittenCommand], place: int) -> int:
    while place and steps[place - 1].operator.startswith("|") and steps[place - 1].operator != "||":
        place -= 1
    return place


def _open_blocks(steps: Sequence[WrittenCommand]) -> list[str]:
    blocks: list[str] = []
    for step in steps:
        word = _first_word(step)
        if word in _OPENS:
            blocks.append(word)
        elif word in _CLOSES and blocks:
            blocks.pop()
    return blocks


def _first_word(step: WrittenCommand) -> str:
    return step.text.split(maxsplit=1)[0].rstrip(")}") if step.text else ""


def _ends_line(steps: Sequence[WrittenCommand], place: int) -> bool:
    """Return whether a step is an `exit` that does not depend on another."""
    before = steps[place - 1].operator if place else ""
    return _first_word(steps[place]) in ("exit", "return") and before in ("", ";")


def _hides_exit_code(command: str, steps: Sequence[WrittenCommand], place: int) -> bool:
    text = steps[place].text
    if _HIDES_EXIT_CODE.search(text) or re.match(CI, text) or _GROUP_MAY_NOT_RUN.search(command):
        return True
    later = {step.operator for step in steps[place:]} - {"", "&&"}
    if "pipefail" in command:
        later -= {"|", "|&"}
    if any(_STOPS_AT_ERRORS.match(step.text) for step in steps[:place]):
        later.discard(";")
    return bool(later)


def _prints_exit_code(steps: Sequence[WrittenCommand], place: int, output: str) -> bool:
    """Return whether `echo $?` follows, and its last line ends with 0."""
    following = steps[place + 1].text if place + 1 < len(steps) else ""
    return following.startswith("echo") and "$?" in following and _EXIT_ZERO.search(output[-100:]) is not None


def _is_silent(steps: Sequence[WrittenCommand], place: int) -> bool:
    """Return whether a command ran and all of its output is there: linters often print nothing if all is well."""
    if ">" in steps[place].text.replace("2>&1", "") or _HIDES_EXIT_CODE.search(steps[place].text):
        return False
    operators = {step.operator for step in steps[place:]} - {"", "&&"}
    piped = _piped(steps, place)
    return operators <= {"|", "|&"} and all(_SHOWS_ALL.match(step.text) for step in piped)


def _piped(steps: Sequence[WrittenCommand], place: int) -> Iterator[WrittenCommand]:
    while place + 1 < len(steps) and steps[place].operator in ("|", "|&"):
        place += 1
        yield steps[place]


# A line may have many checks with the same output.


@lru_cache(maxsize=2)
def _fails(output: str) -> bool:
    return _FAILURE.search(output) is not None


@lru_cache(maxsize=2)
def _ran_nothing(output: str, kind: str) -> bool:
    return describe_empty_run(output, kind) is not None


@lru_cache(maxsize=2)
def _is_well(output: str, command: str, kind: str) -> bool:
    """Return whether an output shows a success, apart from the words that the command itself holds."""
    own = "\n".join(line for line in output.splitlines()[-MAX_LINES:] if line.strip() not in command)
    return counts_tests(own) or (_WELL.search(own) is not None and not _ran_nothing(own, kind))
