"""What the agent's own commands were, roughly: which checks they ran, whether these succeeded, what they changed.

A check is found wherever it is in a command, so that what runs it need not be known: `docker compose exec web pytest`, `uv run pytest`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice, pairwise
from os.path import basename, splitext

from turngate._frozen_dataclass import frozen
from turngate.core.shell.parse import MAX_COMMANDS, WrittenCommand, split_list
from turngate.core.text import strip_controls
from turngate.gates.conversation import ToolCall
from turngate.gates.toolchains import BY_NAME, CHECKS

MAX_COMMAND_CHARS = 50_000  # of a command line that are read
MAX_WORDS = 30  # of a command, among which a check is looked for
MAX_LINES = 1000  # of an output, that are searched for a success
MAX_CACHED = 1024  # of what is known of a command: each stop reads the same ones again
Place = tuple[int, int]  # of a call, and of a command in it


@frozen
class CheckRun:
    place: Place
    command: str
    kinds: frozenset[str]
    succeeded: bool
    output: str


@frozen
class Edit:
    place: Place
    path: str


# Commands

_WORD = r"(?s)(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s'\"\\])+"
_QUOTE = r"(?s)^(['\"])(.*)\1$"
_NOT_A_PROGRAM = r"[({!]+$|-|\w+=|(?:then|do|sudo|time|env|nice|exec)$"
_NESTS = ("ssh", "su", "nix", "nix-shell")  # like shells, they run a command line that they are given


@lru_cache(MAX_CACHED)
def run_commands(command: str) -> tuple[WrittenCommand, ...]:
    """Return the commands of a command line, those of `bash -c '…'` and `ssh host '…'` in their place."""
    return tuple(islice(_run_commands(command[:MAX_COMMAND_CHARS], 2), MAX_COMMANDS))


def _run_commands(command: str, depth: int) -> Iterator[WrittenCommand]:
    for step in split_list(command):
        words = _words(step.text)
        inner = next((word for word in words[1:] if re.search(r"\s", word)), "") if depth else ""
        if inner:
            from turngate.core.shell.invocation import SHELLS  # noqa: PLC0415 # lazy: few commands have such a word

            inner = inner if {*map(basename, words)} & {*SHELLS, *_NESTS} else ""
        *most, last = [*_run_commands(inner, depth - 1)] or [step]
        yield from (*most, WrittenCommand(last.text, step.operator))


def _words(text: str) -> list[str]:
    found = (match[0] for match in islice(re.finditer(_WORD, text), MAX_WORDS))
    return [quoted[2] if (quoted := re.match(_QUOTE, word)) else word for word in found]


# Checks

# Programs of which no argument is a check.
_NO_RUNNERS = frozenset(
    "[ alias apt apt-get awk basename brew cat cd chmod code comm cp curl cut diff du echo export find git grep head jq kill less ln ls man "
    "mkdir more mv nano open pip pip3 printf pushd read rg rm rmdir sed set sleep sort source stat tail tee test touch tree true type uniq "
    "unset vi vim wait wc wget which xdg-open".split()
)
_INSTALLS = frozenset("add i info install list remove show uninstall update upgrade view why".split())
# The words in the name of a script or a target: `npm run test:unit`, `scripts/run_tests.sh`, `earthly +lint`.
_NAMES = {
    "tests": "tests?|specs?|doctests?|unittests?|e2e|nextest|check|ci|verify|validate",
    "lint": "lint|style|check|ci",
    "types": "types?|typecheck|diagnostics|check|ci",
    "build": "build|compile|assemble|dist|all|check|ci",
}
_SCRIPT = ("", ".sh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".php", ".pl", ".ps1", ".exs", ".r")
_MAKE = r"g?make(?:\s+(?:-\S+|\d?>\S+))*\s*$"
_SYNTAX = r"(?:(?:ba|z)?sh -n|(?:php|ruby|perl|node) (?:-\w*[lc]|--check)|ansible-playbook .*--syntax-check)(?:\s|$)"
_CI = r"gh\s+(?:run|pr)\s+(?:view|checks|watch|list)\b"
# It only lists, describes or prepares.
_NO_CHECK = (
    r"(?s).*\s(?:--collect-only|--co|--version|--help|-h|--list\S*|--dry-run|--no-run|--markers|--fixtures\S*|--setup-plan|"
    r"--setup-only|--just-print|--recon|--question|--touch)(?:\s|$)|"
    r"(?!(?:ctest|mvnw?)\s)\S+\s.*?-V(?:\s|$)|(?!(?:mvnw?|gradlew?|make|just|task)\s)\S+\s+(?:install|ci)(?:\s|$)|"
    r"make\s(?:.*\s)?-[BeikrRsSw]{0,10}[nqt][BeiknqrRsStw]{0,10}(?:\s|$)|(?:ninja|just|task|rake)\s(?:.*\s)?-n(?:\s|$)|"
    r"(?:nox|tox|just|task)\s(?:.*\s)?-l(?:\s|$)|rake\s(?:.*\s)?-T(?:\s|$)|ctest\s(?:.*\s)?-N(?:\s|$)|command\s+-v\s|"
    r"go\s+test\s(?:.*\s)?-list\b|ruff\s+(?:clean|config|rule|linter|server|version)\b"
)
_SKIPS_TESTS = r"\s(?:-DskipTests\b|-Dmaven\.test\.skip\b|-x\s+test\b)"


@cache
def _named(kind: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|[^a-z])(?:run)?(?:{_NAMES[kind]})(?:[^a-z]|$)", re.IGNORECASE)


@cache
def _subcommands(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|\s)(?:{pattern})(?![\w-])")


@lru_cache(MAX_CACHED)
def find_kinds(text: str) -> frozenset[str]:
    """Return which checks a simple command runs: by the table of tools, or by the name of a script or target."""
    words = _words(text)
    start = next(
        (place for place, word in enumerate(words) if not re.match(_NOT_A_PROGRAM, word)), len(words)
    )
    words = [word.strip("({})") for word in words[start:]]
    plain = " ".join([basename(words[0]), *words[1:]]) if words else ""
    if not words or words[0] in _NO_RUNNERS or re.match(_NO_CHECK, plain):
        return frozenset()
    if re.match(_CI, plain):
        return frozenset(CHECKS)
    found = set(_kinds_of(words)) or ({"build"} if re.match(_MAKE, plain) else set())
    found |= {"lint"} if re.match(_SYNTAX, plain) else set()
    return frozenset(found - {"tests"} if re.search(_SKIPS_TESTS, text) else found)


def _kinds_of(words: Sequence[str]) -> Iterator[str]:
    for place, word in enumerate(words):
        if word in _INSTALLS:
            return
        tool = BY_NAME.get(basename(word))
        if tool is not None:
            rest = " ".join(words[place + 1 :])
            found = [
                kind for kind, each in tool.checks.items() if not each or _subcommands(each).search(rest)
            ]
            yield from found
            if found:
                return
        is_value = place > 0 and words[place - 1].startswith("--") and "=" not in words[place - 1]
        stem, extension = splitext(basename(word))
        if extension.lower() in _SCRIPT and not (word.startswith("-") or is_value or tool is not None):
            yield from (kind for kind in CHECKS if _named(kind).search(stem))


def find_check(command: str) -> str | None:
    """Return the first kind of check that a command line runs, or None if it is not known."""
    found = [find_kinds(step.text) for step in run_commands(command)]
    return next((kind for kind in CHECKS if any(kind in kinds for kinds in found)), None)


# Results

_FAILURE = (
    r"(?m)\b[1-9]\d* (?:failed|failing|failures?|errors?|problems?)\b|\bFAILED\b|^FAIL\b|\bFAIL:(?! +0$)|^E {2,}|\berror(?:\[\w+\]| [A-Z]+\d+)?:|"
    r"\bTraceback \(most|npm ERR!|\bexit(?:ed with)? (?:code|status)[: ]+[1-9]|\bBUILD FAIL|command not found|No such file|"
    r"\bFAILURES!|\b(?:[Ff]ail(?:ures|ed)|[Ee]rrors): +[1-9]|^[ \t]+\d+:\d+[ \t]+error\b|\*\*\* \[|\*\*\* No rule|\tfail\t|\tfailure\t|^X |\"severity\": ?\"?[Ee]rror"
)
# A summary that no other program prints,
_SUMMARY = (
    r"(?i)\b[1-9]\d* (?:successful|succeeded)\b|\b(?:PASS|Ok:) [1-9]|\ball (?:\S+ )?(?:tests|checks) (?:have )?pass(?:ed)?\b|"
    r"\bSuccessfully ran target\b|\b100% tests passed\b"
)
# and what a check prints if all is well.
_WELL = (
    r"(?m)^(?:ok|OK|PASS|PASSED|Passed!)\b|\btest result: ok\b|\[100%\]|\bBUILD SUCCESS|\b[Ss]uccess(?:ful|fully)?\b|\bSUCCESS\b|(?<!\b0 )\b(?i:succeeded)\b|✓|"
    r"\b[Nn]o (?:issues|problems|errors|warnings)\b|(?<!\d)0 (?:errors|issues|problems|warnings)\b|\b[Aa]ll checks passed|"
    r"^All (?:done|matched)\b|\bPassed$|\bpass\b|^\s*Finished\b|\b(?:built|compiled) in\b|\balready formatted\b|\bleft unchanged\b"
)
_EXIT_ZERO = r"(?:^|\n)[^\d\n]*\b0\s*\Z"
# What makes the exit code of a line say something else than that of its commands.
_CONTROL = (
    r"(?:(?:time|then|do)\s+)*(?:!|(?:if|elif|while|until|case|function|alias|exit|return)\b|\w+\s*\(\s*\))"
)
_SHOWS_ALL = r"(?:cat|head|tail|tee)\b"
_OF_OTHERS = r"(?:Task|Agent|BashOutput|TaskOutput|mcp__.*)$"


def read_runs(calls: Sequence[ToolCall], own: Iterable[re.Pattern[str]] = ()) -> list[CheckRun]:
    """Return the runs of checks, also those of subagents and other tools; `own`: commands that the user calls checks."""
    return [run for number, call in enumerate(calls) for run in _runs_of(number, call, tuple(own))]


def _runs_of(number: int, call: ToolCall, own: Sequence[re.Pattern[str]]) -> Iterator[CheckRun]:
    output = strip_controls(call.result or "")
    if call.name == "Bash":
        command = call.text("command")
        steps = run_commands(command)
        found = False
        for place, (text, _) in enumerate(steps):
            is_own = any(pattern.search(text) for pattern in own)
            if kinds := frozenset(CHECKS) if is_own else find_kinds(text):
                found = True
                yield CheckRun((number, place), text, kinds, succeeded(call, steps, place, kinds), output)
        runners = [step for step in steps if _words(step.text)[0] not in _NO_RUNNERS]
        if not found and runners and _is_well(output, command, _SUMMARY) and not call.is_error:
            yield CheckRun((number, len(steps)), command, frozenset(CHECKS), True, output)
    elif re.match(_OF_OTHERS, call.name):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", call.name)
        named = frozenset(kind for kind in CHECKS if _named(kind).search(name))
        is_well = _is_well(output, "", _SUMMARY) or (
            call.result is not None and bool(named) and not _fails(output)
        )
        if named or is_well:
            yield CheckRun(
                (number, 0), call.name, named or frozenset(CHECKS), is_well and not call.is_error, output
            )


def succeeded(call: ToolCall, steps: Sequence[WrittenCommand], place: int, kinds: frozenset[str]) -> bool:
    """Return whether a check at a place of a command line succeeded: by the exit code, or if that is hidden, by the output."""
    if call.result is None or call.is_error or call.input.get("run_in_background") is True:
        return False
    command, output = call.text("command"), strip_controls(call.result)
    if not _hides_exit_code(command, steps, place):
        return not all(_ran_nothing(output, kind) for kind in kinds)
    if _fails(output):
        return False
    # Linters and compilers say little if all is well: then it is enough that their whole output is shown, and has no failure.
    operators, text = {step.operator for step in steps[place:-1]}, steps[place].text
    # The line has succeeded, and so has what stands before `&&`, unless a `;` follows. A `cd` that failed is in the output.
    earlier = {step.operator for step in steps[:place] if not step.text.startswith("cd ")}
    is_shown = (
        "tests" not in kinds
        and operators <= {"|", "|&", ";", "&&"}
        and "||" not in earlier
        and ("&&" not in earlier or ";" not in operators)
        and "--exit-zero" not in text
        and ">" not in text.replace("2>&1", "")
        and all(
            re.match(_SHOWS_ALL, after.text)
            for before, after in pairwise(steps[place:])
            if before.operator.startswith("|")
        )
    )
    return (
        is_shown
        or _is_well(output, command, _WELL)
        or ("$?" in command and re.search(_EXIT_ZERO, output[-100:]) is not None)
    )


def _hides_exit_code(command: str, steps: Sequence[WrittenCommand], place: int) -> bool:
    text = steps[place].text
    if (
        "--exit-zero" in text
        or re.match(_CI, text)
        or any(re.match(_CONTROL, step.text) for step in steps[: place + 1])
    ):
        return True
    hiding = {step.operator for step in steps[place:]} - {"", "&&"}
    if "pipefail" in command:
        hiding -= {"|", "|&"}
    if any(re.match(r"set\s+-\w*e", step.text) for step in steps[:place]):
        hiding -= {";"}
    return bool(hiding) or any(step.operator == "||" for step in steps[:place])


# A line may have many checks with the same output.


@lru_cache(maxsize=2)
def _fails(output: str) -> bool:
    return re.search(_FAILURE, output) is not None


@lru_cache(maxsize=8)
def _ran_nothing(output: str, kind: str) -> bool:
    from turngate.gates.check_output import describe_empty_run  # noqa: PLC0415 # lazy: for what an agent has run

    return describe_empty_run(output, kind) is not None


@lru_cache(maxsize=2)
def _is_well(output: str, command: str, words: str) -> bool:
    """Return whether an output shows a success and no failure, apart from the lines that the command itself holds."""
    from turngate.gates.check_output import counts_tests, describe_empty_run  # noqa: PLC0415 # lazy: as above

    own = "\n".join(line for line in output.splitlines()[-MAX_LINES:] if line.strip() not in command)
    if re.search(_FAILURE, own):
        return False
    return counts_tests(own) or (
        re.search(words, own) is not None and describe_empty_run(own, "tests") is None
    )


# Changes

_NO_SOURCE = (
    r"(?i)(?:^|/)(?:\.[^/.]|(?:build|dist|target|htmlcov|__pycache__|node_modules|docs?)(?:/|$)|(?:LICENSE|NOTICE|CODEOWNERS|AUTHORS|Gemfile|Pipfile|Podfile|go\.(?:mod|sum|work))$)|"
    r"^(?:/dev/|/tmp/|\$)|"
    r"\.(?:md|mdx|markdown|rst|adoc|txt|log|out|patch|diff|json|jsonc|json5|toml|ya?ml|ini|cfg|conf|lock|env|csv|tsv|xml|svg|png|jpe?g|gif|ipynb)$"
)
_QUOTES = r"(?s)'[^']*'|\"(?:\\.|[^\"\\])*\"|\\."
_REDIRECT = r"(?:^|[^<>&\d-])(?:\d)?>{1,2}\s*(?!&)([^\s;&|<>()]+)"
_WRITES = r"(?:sed\s+(?:-\S+\s+)*-\w*i|perl\s+(?:-\S+\s+)*-\w*i|tee\s|patch\s|(?:mv|cp)\s)"
_ARITHMETIC = r"\$\(\([^()]*\)\)"
_CONDITION = r"^(?:(?:!|if|elif|else|while|until)\s+){1,2}"


def read_edits(calls: Sequence[ToolCall], cwd: str) -> list[Edit]:
    """Return the edits of source files: not of documents, settings, hidden, generated and temporary files."""
    edits = []
    for number, call in enumerate(calls):
        if (path := (call.edited_file or "").removeprefix(f"{cwd}/")) and is_source(path):
            edits.append(Edit((number, 0), path))
        if call.name == "Bash" and not call.is_error:
            for place, step in enumerate(run_commands(call.text("command"))):
                if (written := written_path(step.text)) is not None:
                    edits.append(Edit((number, place), written))
    return edits


@lru_cache(MAX_CACHED)
def written_path(text: str) -> str | None:
    """Return the source file that a simple command writes."""
    text = re.sub(_CONDITION, "", text)
    plain = re.sub(_ARITHMETIC, "_", text)
    masked = re.sub(_QUOTES, lambda quoted: quoted[0].replace(">", "_").replace(" ", "_"), plain)
    targets = [found[1] for found in re.finditer(_REDIRECT, masked)]
    if re.match(_WRITES, text):
        targets.append(text.rsplit(maxsplit=1)[-1])
    kept = [target for target in targets if is_source(target.strip("'\""))]
    return kept[-1] if kept else None


def is_source(path: str) -> bool:
    return re.search(_NO_SOURCE, path) is None
