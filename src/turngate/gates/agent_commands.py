"""What the agent's own commands were, roughly: which checks they ran, what they changed."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from os.path import basename, splitext

from turngate.core.shell.invocation import WRAPPERS
from turngate.core.shell.parse import MAX_COMMANDS, WrittenCommand, split_list
from turngate.gates.conversation import ToolCall
from turngate.gates.toolchains import CHECKS, TOOLS

MAX_COMMAND_CHARS = 50_000  # of a command line that are read
MAX_WRAPPERS = 10  # before a program: `sudo env A=1 timeout 60 …`


# What stands before the program that is meant.
_WRAPPER = (
    r"(?:[({]\s*|\w+=(?:'[^']*'|\"[^\"]*\"|\S*)\s+|g?timeout\s+(?:-\S+\s+)*\S+\s+|"
    rf"(?:sudo|then|do|{'|'.join(WRAPPERS)})\s+|(?:uv|poetry|pipenv|pdm|hatch|rye)\s+run\s+(?:--?[\w-]+(?:=\S+)?\s+)*|"
    r"(?:npx|bunx|pnpm\s+(?:exec|dlx)|yarn\s+(?:exec|dlx)|bundle\s+exec|xvfb-run)\s+(?:-\S+\s+)*|"
    r"\S*python[\d.]*\s+(?:-[A-Zbu]\S*\s+)*-m\s+)"
)
_SHELL = r"(?s)\S*sh\s+-\w*c\s+(['\"])(.*)\1"


def _program(text: str) -> str:
    """Return a command from its program on, without the program's folder."""
    for _ in range(MAX_WRAPPERS):
        found = re.match(_WRAPPER, text)
        if found is None:
            break
        text = text[found.end() :]
    program, blank, rest = text.partition(" ")
    return f"{basename(program)}{blank}{rest}"


def run_commands(command: str) -> list[WrittenCommand]:
    """Return the commands of a command line from their programs on, also those of `bash -c '…'`."""
    return [*islice(_run_commands(command[:MAX_COMMAND_CHARS], 2), MAX_COMMANDS)]


def _run_commands(command: str, depth: int) -> Iterator[WrittenCommand]:
    for step in split_list(command):
        inner = re.match(_SHELL, _program(step.text))
        if inner and depth:
            *most, last = [*_run_commands(inner[2], depth - 1)] or [step]
            yield from (*most, WrittenCommand(last.text, step.operator))
        else:
            yield WrittenCommand(_program(step.text), step.operator)


# Checks

# A script or a target whose name has one of these words: `npm run test:unit`, `make lint`.
_RUN = r"(?:(?:npm|pnpm|yarn|bun)(?:\s+(?:-\S+|run))*\s+|(?:make|just|task|nox|tox|rake|invoke|mage|composer|mise run)\s+(?:-\S+\s+)*)"


def _target(words: str) -> str:
    return rf"{_RUN}(?:[\w:.-]{{0,80}}[:._-])?(?:{words})(?:[:._-][\w:.-]*)?"


# Texts that run a check, beside the tools.
_OTHERS = {
    "tests": rf"{_target('tests?|check|ci|all|spec|verify|validate')}|[\w.-]{{0,80}}tests?[\w-]{{0,80}}\.(?:sh|py|js|mjs|ts)|run[-_]?tests?",
    "build": rf"build|make(?:\s+-\S+)*\s*$|{_target('build|compile|all|ci|check|dist')}|[\w.-]{{0,80}}build[\w-]{{0,80}}\.sh",
    "lint": _target("lint|check|ci|all|style"),
    "types": _target("types?|typecheck|mypy|tsc|check|ci|all"),
}


def _begins_check(text: str, check: str) -> bool:
    """Return whether a text begins with what runs a check. A pattern of all tools would take milliseconds to compile."""
    forms = [_OTHERS[check]]
    for tool in TOOLS:
        if check in tool.checks and text.startswith(tool.name):
            subcommands = tool.checks[check]
            forms.append(re.escape(tool.name) + (rf"\s+(?:\S+\s+)*?(?:{subcommands})" if subcommands else ""))
    return re.match(rf"(?:{'|'.join(forms)})(?![\w-])", text) is not None


CI = r"gh\s+(?:run|pr)\s+(?:view|checks|watch|list)\b"
# It only lists, describes or prepares.
_NO_CHECK = (
    r"(?s).*\s(?:--collect-only|--co|--version|--help|-h|--list\S*|--dry-run|--no-run|--markers|--fixtures\S*|--setup-plan|"
    r"--setup-only|--just-print|--recon|--question|--touch)(?:\s|$)|"
    r"(?!(?:ctest|mvnw?)\s)\S+\s.*?-V(?:\s|$)|(?!(?:mvnw?|gradlew?|make|just|task)\s)\S+\s+install(?:\s|$)|"
    r"make\s(?:.*\s)?-[BeikrRsSw]{0,10}[nqt][BeiknqrRsStw]{0,10}(?:\s|$)|(?:ninja|just|task|rake)\s(?:.*\s)?-n(?:\s|$)|"
    r"(?:nox|tox|just|task)\s(?:.*\s)?-l(?:\s|$)|rake\s(?:.*\s)?-T(?:\s|$)|ctest\s(?:.*\s)?-N(?:\s|$)|"
    r"go\s+test\s(?:.*\s)?-list\b|ruff\s+(?:clean|config|rule|linter|server|version)\b"
)


def runs_check(text: str, kind: str, own: Mapping[str, re.Pattern[str]] | None = None) -> bool:
    """Return whether a simple command is a check of this kind; `own`: those of further kinds."""
    if own and kind in own:
        return own[kind].search(text) is not None
    return bool(_begins_check(text, kind) or re.match(CI, text)) and not re.match(_NO_CHECK, text)


def find_check(command: str) -> str | None:
    """Return the first kind of check that a command line runs, or None if it is not known."""
    steps = run_commands(command)
    return next((kind for kind in CHECKS if any(runs_check(step.text, kind) for step in steps)), None)


# Changes

# Usually, no check reads them.
_DOCUMENT = r"(?i)\.(?:md|markdown|rst|adoc|txt|log|out|patch|diff)"
_GENERATED = r"build|dist|target|htmlcov|__pycache__|node_modules|\.(?:coverage|pytest_cache|mypy_cache)"
_TEMPORARY = ("/dev/", "/tmp/", "$")  # noqa: S108 - it is only recognized
_QUOTES = r"(?s)'[^']*'|\"(?:\\.|[^\"\\])*\"|\\."
_REDIRECT = r"(?:^|[^<>&\d-])(?:\d)?>{1,2}\s*(?!&)([^\s;&|<>()]+)"
_WRITES = (
    r"(?:sed\s+(?:-\S+\s+)*-\w*i|perl\s+(?:-\S+\s+)*-\w*i|tee\s|patch\b|git\s+(?:-\S+\s+\S+\s+)?(?:checkout(?!\s+-[bB]\b)|restore(?!\s+--staged\b)|"
    r"reset\s+(?:-\S+\s+)*?--(?:hard|merge|keep)|stash(?!\s+(?:list|show|drop|clear)\b)|apply(?!\s+(?:-\S+\s+)*?--(?:check|stat)\b)|"
    r"merge|rebase|pull|revert|cherry-pick|am|switch(?!\s+-c\b))(?![\w-])|(?:mv|cp|rm|ln|ed|rsync|truncate|install)\s)"
)
_ARITHMETIC = r"\$\(\([^()]*\)\)"
_CONDITION = r"^(?:(?:!|if|elif|else|while|until)\s+){1,2}"


def edited_path(call: ToolCall) -> str | None:
    """Return a file that an editing tool changed, except a document."""
    path = call.edited_file
    return None if path is None or is_document(path) else path


def written_path(text: str) -> str | None:
    """Return what a simple command changes, except documents and temporary files."""
    text = re.sub(_CONDITION, "", text)
    plain = re.sub(_ARITHMETIC, "_", text)
    masked = re.sub(_QUOTES, lambda quoted: quoted[0].replace(">", "_").replace(" ", "_"), plain)
    targets = [found[1] for found in re.finditer(_REDIRECT, masked)]
    if re.match(_WRITES, text):
        targets.append(text.rsplit(maxsplit=1)[-1])
    kept = [target for target in targets if not _is_irrelevant(target)]
    return kept[-1] if kept else None


def _is_irrelevant(path: str) -> bool:
    is_generated = re.fullmatch(_GENERATED, basename(path.rstrip("/")))
    return is_document(path) or path.startswith(_TEMPORARY) or is_generated is not None


def is_document(path: str) -> bool:
    return re.fullmatch(_DOCUMENT, splitext(path.strip("'\""))[1]) is not None
