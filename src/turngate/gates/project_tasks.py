"""What a project's own files run: the named tasks of its task runners, and the commands of its CI.

All of it is read as text, without a library for YAML: what is not understood is left out.
"""

import configparser
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.gates.agent_commands import run_commands
from turngate.gates.project_files import WORKFLOWS
from turngate.gates.toolchains import CI_ACTIONS, PRE_COMMIT_HOOKS, PYTHON_TASK_TABLES

MAX_STEPS = 200  # simple commands of one task
_RARE_WORKFLOW = (
    r"(?i)release|publish|deploy|nightly|stale|label|codeql|bench|perf|autofix|third|website|(?:^|/)docs?[.-]"
)


@frozen
class TaskRunner:
    """A file with named tasks, and how one of them is run."""

    kind: str  # of project
    program: str
    command: str  # with {} for the name
    file: str
    tasks: Mapping[str, str]  # name → the text that it runs

    def steps(self, name: str) -> tuple[str, ...]:
        """Return the simple commands that a task runs, also those of the tasks that it runs."""
        return tuple(dict.fromkeys(self._steps(name, frozenset())))[:MAX_STEPS]

    def _steps(self, name: str, above: frozenset[str]) -> Iterator[str]:
        if name in above:
            return
        for step in simple_commands(self.tasks[name]):
            others = [other for other in self.mentioned(step) if other != name]
            for other in others:
                yield from self._steps(other, above | {name})
            if not others and not re.fullmatch(_ONLY_MAKE, step):
                yield step

    def parts(self, name: str) -> Iterator[str]:
        """Yield a task, and then those that it runs."""
        seen, waiting = set[str](), [name]
        while waiting:
            each = waiting.pop(0)
            if each not in seen:
                seen.add(each)
                yield each
                waiting += [
                    other for step in simple_commands(self.tasks[each]) for other in self.mentioned(step)
                ]

    def mentioned(self, step: str) -> Iterator[str]:
        """Yield the tasks of this file that a simple command runs."""
        found = re.search(_RUNS_TASK, step)
        if found is None or (found[1] in _MAKE) != (self.kind == "make"):
            return
        for word in re.findall(r"[\w:.*@/-]+", step[found.end() :]):
            yield from (
                [word]
                if word in self.tasks
                else (
                    [name for name in self.tasks if fnmatchcase(name, word)]
                    if "*" in word.strip("*/.")
                    else []
                )
            )


_MAKE = ("make", "gmake", "MAKE")
_ONLY_MAKE = r"make\b[^-]*"  # what a target needs, and no task: files
_RUNS_TASK = (
    r"(?<![\w./-])(npm|pnpm|yarn|bun|nx|turbo|lerna|run-s|run-p|npm-run-all2?|concurrently|composer|deno|g?make|MAKE|just|task|rake|"
    r"tox|nox|poe|pdm|hatch|wireit)(?=[\s)}]|$)"
)
_WRAPPER = (
    r"(?:@|-(?=\w)|\w+=\S*\s+|(?:uv|poetry|pipenv|pdm|hatch|rye)\s+run\s+(?:--?[\w-]+(?:=\S+)?\s+)*|\S*python[\d.]*\s+(?:-[A-Zbu]\S*\s+)*-m\s+|"
    r"(?:npx|bunx|pnpm\s+(?:exec|dlx)|yarn\s+(?:exec|dlx)|bundle\s+exec|xvfb-run)\s+(?:-\S+\s+)*|coverage\s+run\s+(?:-(?!m\b)\S+(?:\s+(?!-)\S+)??\s+)*-m\s+|(?:c8|nyc)\s+(?:-\S+\s+)*|cross-env\s+(?:\w+=\S*\s+)*|"
    r"(?:pipx\s+run|uvx)\s+(?:--?[\w-]+(?:=\S+|\s+(?=\S+\s+tox))?\s+)*|\$\{?\w+\}?/?(?=\w)|\.?venv/bin/|\$\(\w+\)\s+|cargo-(?=clippy|fmt))+"
)


def simple_commands(text: str) -> Iterator[str]:
    """Yield the commands of a text from their programs on: without `uv run`, `python -m`, `coverage run -m` and the like."""
    for line in re.sub(r"\\\n\s*|\s--(?:only-)?(?:group|with|extra)\s+\S+", " ", text).split("\n"):
        for step in run_commands(line.strip().removeprefix("@")):
            bare = re.sub(_WRAPPER, "", step.text, count=1) if re.match(_WRAPPER, step.text) else step.text
            if bare and not bare.startswith("#"):
                yield re.sub(r"\s+", " ", bare).strip()


# Task runners


def task_runners(texts: Mapping[str, str], manager: str) -> Iterator[TaskRunner]:
    """Yield those of a project; `manager`: the program for package.json."""
    for file, read, kind, usual, command in _RUNNERS:
        if file in texts and (tasks := read(texts[file])):
            program = "rake" if usual == "bundle" and "Gemfile" not in texts else usual.format(manager)
            call = command.removeprefix("bundle exec ") if program == "rake" else command
            yield TaskRunner(kind, program, call.format(manager, "{}"), file, tasks)
    pyproject = read_toml(texts.get("pyproject.toml", ""))
    for path, program, command in PYTHON_TASK_TABLES:
        tasks = {name: _task_text(value) for name, value in table(pyproject, *path.split(".")).items()}
        if tasks:
            yield TaskRunner("python", program, command, "pyproject.toml", tasks)


_RULE = r"^([\w.-][^:=#\n\t]*)::?(?!=)(.*)$"


def _read_make(text: str) -> dict[str, str]:
    """What a target needs is run before it."""
    tasks: dict[str, str] = {}
    names: list[str] = []
    for line in re.sub(r"\\\n[ \t]*", " ", text).split("\n"):
        if line.startswith("\t"):
            tasks |= {name: f"{tasks[name]}\n{line.strip().lstrip('@-+')}" for name in names}
        elif rule := re.match(_RULE, line):
            names = rule[1].split()
            needs = rule[2].partition("#")[0].partition(";")[0].strip()
            tasks |= {
                name: f"{tasks.get(name, '')}\nmake {needs if needs and '=' not in needs else ''}"
                for name in names
            }
        elif line.strip() and not line.startswith("#"):
            names = []
    return {name: text for name, text in tasks.items() if not name.startswith(".")}


_RECIPE = r"^@?([\w-]+)(?:[ \t]+[^:\n]*)?:(?!=)(.*)$"


def _read_just(text: str) -> dict[str, str]:
    tasks: dict[str, str] = {}
    name = None
    for line in text.split("\n"):
        if found := re.match(_RECIPE, line):
            name, needs = found[1], found[2].strip()
            tasks[name] = f"just {needs}" if needs else ""
        elif name and line[:1] in (" ", "\t"):
            tasks[name] += f"\n{line.strip().lstrip('@-')}"
        elif line.strip():
            name = None
    return tasks


def _read_taskfile(text: str) -> dict[str, str]:
    _, _, body = text.partition("\ntasks:\n")
    indent = (re.match(r"\n*([ \t]+)", body) or ["", "  "])[1]
    blocks = re.split(rf"(?m)^{indent}([\w:.-]+):[ \t]*(?:#.*)?$", body)
    return {
        name: "\n".join(
            re.sub(r"^task: ", "task ", found[1].strip(" \"'"))
            for found in re.finditer(r"(?m)^\s*(?:- (?:cmd: )?|cmds?: |deps: )(?![|>])(.+)$", block)
        )
        for name, block in zip(blocks[1::2], blocks[2::2], strict=False)
    }


def _read_scripts(text: str, key: str = "scripts") -> dict[str, str]:
    found = {name: _task_text(value) for name, value in table(read_json(text), key).items()}
    return {name: text for name, text in found.items() if text}


def _read_package(text: str) -> dict[str, str]:
    """Each script with those that npm runs before and after it. What starts a browser by its configuration says so."""
    package = read_json(text)
    found = {name: value for name, value in table(package, "scripts").items() if isinstance(value, str)}
    if any(name.startswith("@vitest/browser") for name in table(package, "devDependencies")):
        found = {
            name: re.sub(r"\bvitest\b(?!:)", "vitest --browser=playwright", value)
            for name, value in found.items()
        }
    around = {name: (f"pre{name}", None, f"post{name}") for name in found}
    return {
        name: "\n".join(
            found[name] if each is None else f"npm run {each}"
            for each in parts
            if each is None or each in found
        )
        for name, parts in around.items()
    }


def _task_text(value: Any) -> str:
    if isinstance(value, dict):
        value = (
            value.get("cmd") or value.get("command") or value.get("commands") or value.get("composite") or ""
        )
    if isinstance(value, list):
        lines = (" ".join(map(str, each)) if isinstance(each, list) else str(each) for each in value)
        value = "\n".join(re.sub(r"^@(?!php )", "composer ", line).removeprefix("@php ") for line in lines)
    return value.removeprefix("@php ") if isinstance(value, str) else ""


_RAKE_TASK = r"(?m)^\s*(?:multi)?task[ (]+:?['\"]?(\w+(?::\w+)*)['\"]?(?:\s*(?::(?=\s)|=>)([^#\n]*))?"
_RAKE_NEEDS = r":(\w+(?::\w+)*)|['\"](\w+(?::\w+)*)['\"]|%[iw][\[({]([^\])}\n]*)"
_RAKE_CLASS = r"(\w+)(?:::\w+)*::\w*Task\.(?:new|create)(?:\((?::|['\"]):?['\"]?(\w+(?::\w+)*)|(?=\s|$|\())"
_RAKE_CLASSES = {"RSpec": ("spec", "rspec"), "RuboCop": ("rubocop", "rubocop"), "RDoc": ("rdoc", "")}


def _read_rake(text: str) -> dict[str, str]:
    """What a task needs is run before it, and may be defined elsewhere."""
    tasks: dict[str, str] = {}
    for found in re.finditer(_RAKE_CLASS, text):
        usual, runs = _RAKE_CLASSES.get(found[1], ("test", ""))
        tasks[found[2] or usual] = runs
    for found in re.finditer(_RAKE_TASK, text):
        needs = " ".join(" ".join(filter(None, each)) for each in re.findall(_RAKE_NEEDS, found[2] or ""))
        tasks[found[1]] = (
            f"{tasks.get(found[1], '')}\nrake {needs}".strip() if needs else tasks.get(found[1], "")
        )
        tasks = {**dict.fromkeys(needs.split(), ""), **tasks}
    return tasks


def _read_tox(text: str) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    tasks = {}
    for section in parser.sections():
        if section == "testenv" or section.startswith("testenv:"):
            lines = parser[section].get("commands", "").split("\n")
            name = section.partition(":")[2] or "py"
            tasks[name] = "\n".join(
                _without_placeholders(re.sub(r"^[\w{},.!-]+: +", "", line)) for line in lines
            )
    return tasks


def _without_placeholders(line: str) -> str:
    line = re.sub(r"\{posargs:([^{}]*)\}", r"\1", line)
    return re.sub(r"\{[^{}]*\}/?", "", line).strip().removeprefix("- ")


_SESSION = r"(?m)^def (\w+)\(session"
_SESSION_RUN = r"session\.run\(([^)]*)\)"


def _read_nox(text: str) -> dict[str, str]:
    blocks = re.split(_SESSION, text)
    return {
        name: "\n".join(
            " ".join(re.findall(r"[\"']([^\"']*)[\"']", run)) for run in re.findall(_SESSION_RUN, block)
        )
        for name, block in zip(blocks[1::2], blocks[2::2], strict=False)
    }


# The file, how it is read, the kind of project, the program, and the command of a task; {0} is the package manager.
_Row = tuple[str, Callable[[str], Mapping[str, str]], str, str, str]
_RUNNERS: tuple[_Row, ...] = (
    *(
        (file, _read_make, "make", "make", "make {1}")
        for file in ("GNUmakefile", "makefile", "Makefile")  # GNU make reads the first of them
    ),
    *((file, _read_just, "just", "just", "just {1}") for file in ("justfile", "Justfile", ".justfile")),
    *((file, _read_taskfile, "task", "task", "task {1}") for file in ("Taskfile.yml", "Taskfile.yaml")),
    ("package.json", _read_package, "node", "{}", "{0} run {1}"),
    *(
        (file, partial(_read_scripts, key="tasks"), "deno", "deno", "deno task {1}")
        for file in ("deno.json", "deno.jsonc")
    ),
    ("composer.json", _read_scripts, "php", "composer", "composer run-script {1}"),
    ("Rakefile", _read_rake, "ruby", "bundle", "bundle exec rake {1}"),
    ("tox.ini", _read_tox, "python", "tox", "tox -e {1}"),
    ("noxfile.py", _read_nox, "python", "nox", "nox -s {1}"),
)


# CI


def ci_commands(texts: Mapping[str, str], runners: Sequence[TaskRunner]) -> list[str]:
    """Return the simple commands of the project's CI, also of scripts, tox, nox and pre-commit if it runs them."""
    workflows = (
        text
        for name, text in sorted(texts.items())
        if name.startswith(WORKFLOWS) and not re.search(_RARE_WORKFLOW, name)
    )
    run = "\n".join(chain.from_iterable(map(_workflow_lines, workflows)))
    scripts = [
        _with_variables(text)
        for name, text in texts.items()
        if name in run and not name.startswith(WORKFLOWS)
    ]
    steps = [*simple_commands("\n".join((run, *scripts)))]
    for runner in runners:
        calls = (
            [step for step in steps if step.split()[0] == runner.program]
            if runner.program in ("tox", "nox")
            else []
        )
        steps += [
            step for call in calls for name in _environments(call, runner) for step in runner.steps(name)
        ]
    if any(re.match(r"(?:pre-commit|prek) run", step) for step in steps):
        steps += pre_commit_commands(texts)
    return list(dict.fromkeys(steps))


def _environments(call: str, runner: TaskRunner) -> list[str]:
    """Return those that a call of tox or nox runs: the ones that it names, or all."""
    factors = re.findall(r"-f (\w+)", call)
    named = [
        *runner.mentioned(call),
        *(name for name in runner.tasks if any(factor in name for factor in factors)),
    ]
    return named or list(runner.tasks)


def _workflow_lines(text: str) -> Iterator[str]:
    """Yield what the steps in the project's own folder run; what only CI knows is `$CI`."""
    for step in re.split(r"(?m)^(?=[ \t]*- )", re.sub(r"\$\{\{.*?\}\}", "$CI", text)):
        if re.search(r"(?m)^\s*(?:- )?working-directory:", step):
            continue
        if uses := re.search(r"uses:\s*([\w./-]+)", step):
            yield from (command for action, command in CI_ACTIONS.items() if uses[1].startswith(action))
        if run := re.search(r"(?m)^(\s*(?:- )?)(?:run|command):[ \t]*(\S.*)?$", step):
            first = (run[2] or "").strip()
            if not first.startswith(("|", ">")):
                yield first.strip("\"'")
                continue
            indent = len(run[1])
            block = [
                line.strip()
                for line in re.split(r"\n", step[run.end() :])
                if not line.strip() or len(line) - len(line.lstrip()) > indent
            ]
            joined = (" " if first.startswith(">") else "\n").join(block)
            if not re.search(r"(?m)^cd (?!\$GITHUB_WORKSPACE)", joined):
                yield _with_variables(joined)


def _with_variables(text: str) -> str:
    """Replace the variables that a script itself sets to a plain text."""
    values = dict(re.findall(r"(?m)^\s*(?:export )?(\w+)=[\"']?([\w./ -]*)[\"']?$", text))
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values.get(found[1], found[0]), text)


def pre_commit_commands(texts: Mapping[str, str]) -> list[str]:
    """Return what the hooks of pre-commit check, as commands that change nothing."""
    blocks = re.split(r"(?m)^\s*- +id: *", texts.get(".pre-commit-config.yaml", ""))[1:]
    commands = []
    for block in blocks:
        if command := PRE_COMMIT_HOOKS.get(re.split(r"\W(?<!-)", block, maxsplit=1)[0]):
            options = re.search(r"(?m)^\s*args: *\[(.*)\]", block)
            words = [word.strip(" '\"") for word in options[1].split(",")] if options else []
            places = re.search(r"(?m)^\s*files: *['\"]?\^?\(?([\w./|-]+?)/?\)?['\"]?$", block)
            if places:
                command = command.removesuffix(" .")
                words += [each.strip("/") for each in places[1].split("|")]
            commands.append(" ".join((command, *words)).strip())
    return commands


# Texts that may be broken: then they say nothing


def read_json(text: str) -> Mapping[str, Any]:
    """Also with lines that are comments."""
    try:
        value = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_toml(text: str) -> Mapping[str, Any]:
    import tomllib  # noqa: PLC0415 # lazy: only for a project of Python

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def table(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        inner = value.get(key)
        value = inner if isinstance(inner, dict) else {}
    return value
