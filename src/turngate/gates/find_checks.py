"""Finds a project's own checks from its files: the commands behind the gates tests, lint, types, format and build.

It decides from names and texts alone, so that it holds wherever the project is. What the project's CI runs comes first.
`toolchains.py` has the tables, `project_tasks.py` reads what the files run.
"""

import configparser
import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.gates.agent_commands import find_kinds
from turngate.gates.project_files import WORKFLOWS, ProjectFiles
from turngate.gates.project_tasks import (
    TaskRunner,
    ci_commands,
    pre_commit_commands,
    read_json,
    read_toml,
    table,
    task_runners,
)
from turngate.gates.toolchains import (
    CHANGES_FILES,
    CHECKS,
    CHECKS_FORMAT,
    NODE_LOCK_FILES,
    OTHER_TOOLS,
    PROJECT_CHECKS,
    PROJECTS,
    PYTHON_LOCK_FILES,
    TASK_NAMES,
    TASK_PROGRAMS,
    TASK_WORDS,
    TOOLS,
    UNFIT_STEP,
    UNFIT_WORDS,
    PythonTool,
)


def has_program(project: str, program: str) -> bool:
    """Return whether a program is on this machine: a name in the PATH, or a path from the project's folder."""
    from shutil import which  # noqa: PLC0415  # lazy: a gate needs it not

    found = which(os.path.join(project, program) if "/" in program else program)
    return found is not None and not _is_empty_proxy(found)


def _is_empty_proxy(path: str) -> bool:
    """Whether a program is only rustup's stand-in for one of a toolchain, and no toolchain is installed."""
    rustup = os.path.join(os.path.dirname(path), "rustup")
    with contextlib.suppress(OSError):
        if os.path.basename(path) != "rustup" and os.path.samefile(path, rustup):
            home = os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup")
            toolchains = os.path.join(home, "toolchains")
            return not (os.path.isdir(toolchains) and os.listdir(toolchains))
    return False


@frozen
class CheckCommand:
    check: str
    command: str
    program: str  # what has to be there: a name for the PATH, or a path from the project's folder
    found_in: str  # the file that says so
    kind: str  # of project: "make", "node", "python" …
    steps: tuple[str, ...] = field(default=(), compare=False)  # the simple commands that it runs
    is_in_ci: bool = field(default=False, compare=False)
    is_guess: bool = field(
        default=False, compare=False
    )  # neither CI nor a file of its own shows that it is used
    quicker: str = field(default="", compare=False)  # a command of the project for a part of the tests


@frozen
class _Project:
    """What the finders read."""

    names: frozenset[str]
    texts: Mapping[str, str]
    ci: tuple[str, ...]  # the simple commands of CI
    runners: tuple[TaskRunner, ...]


def find_check_commands(files: ProjectFiles) -> list[CheckCommand]:
    """Return the commands of all checks, for each check the best one first: what CI runs, and then the order of the finders."""
    manager = _package_manager(read_json(files.texts.get("package.json", "")), files.names)
    runners = tuple(task_runners(files.texts, manager))
    project = _Project(files.names, files.texts, tuple(ci_commands(files.texts, runners)), runners)
    found: dict[tuple[str, str], CheckCommand] = {}
    for finder in _FINDERS:
        for command in finder(project):
            found.setdefault((command.check, command.command), command)
    return sorted(found.values(), key=lambda each: (PROJECT_CHECKS.index(each.check), not each.is_in_ci))


WHOLE = frozenset(("make", "just", "task"))  # their tasks stand for all parts of a project


def chosen_commands(commands: Sequence[CheckCommand], check: str) -> list[CheckCommand]:
    """Return what a check runs: one command for each part of a project, or a task for all parts, also for those that CI does not run."""
    all_of_it = [each for each in commands if each.check == check]
    found = [each for each in all_of_it if not each.is_guess] or all_of_it
    whole = [each for each in found if each.kind in WHOLE][:1]
    if whole and found[0] in whole:
        return whole
    parts = list({each.kind: each for each in reversed(found) if each.kind not in WHOLE}.values())[::-1]
    own = [each for each in parts if each.is_in_ci or not whole]
    return own if len(own) == len(parts) else [*own, *whole]


def repeats(command: CheckCommand, others: Sequence[CheckCommand]) -> bool:
    """Whether the commands of other checks run everything that a command does."""
    steps = [step for each in others for step in each.steps]
    is_tool = command.steps[:1] != () and command.command.endswith(command.steps[0])
    return bool(command.steps) and all(
        any(
            step == other or ((is_tool or step.startswith("biome")) and _includes(other, step, command.check))
            for other in steps
        )
        for step in command.steps
    )


def _includes(step: str, tool: str, check: str) -> bool:
    """Whether a run of a tool is also this check by it: `cargo test` compiles as `cargo check` does."""
    if step.split(maxsplit=1)[0] != tool.split(maxsplit=1)[0]:
        return False
    is_compiler = step.startswith(("cargo", "go "))
    return check in _checks_of(step) or (is_compiler and check in CHECKS and check in find_kinds(step))


def unreadable_files(files: ProjectFiles) -> dict[str, str]:
    """Return why files that name checks cannot be read: {"package.json": "it is not JSON (line 3)"}."""
    problems: dict[str, str] = {}
    for name in ("package.json", "composer.json"):
        try:
            json.loads(files.texts.get(name, "{}"))
        except (ValueError, RecursionError) as error:
            problems[name] = f"it is not JSON (line {getattr(error, 'lineno', 1)})"
    import tomllib  # noqa: PLC0415 # lazy: only for a project without a known check

    try:
        tomllib.loads(files.texts.get("pyproject.toml", ""))
    except (ValueError, RecursionError) as error:
        problems["pyproject.toml"] = f"it is not TOML ({error})"
    return problems


# What a simple command checks

_NEVER_ENDS = r"--watch(?:All)?(?!=false)\b|--ui\b|(?<![\w-])(?:nodemon|watch)\b"
# They build, or look at packages and dependencies.
_ONLY_BUILDS = (
    r"(?:cargo|go) build\b|build\b|(?:twine|pip|poetry|uv lock|check-manifest|check-wheel-contents)\b"
)
_COMPILES = r"(?=.*\.(?:c|cc|cpp|cxx|o)\b)(?:.*\s)?-?o \S"
_ASKS = r"\S+ --?(?:version|help)|bats -[vh]"
_CHECKS_NOTHING = rf"{_COMPILES}|(?:echo|rm|mkdir|touch)\b"
_NO_TEST = "no test specified"  # the script that `npm init` writes


def _checks_of(step: str) -> set[str]:
    if re.match(CHECKS_FORMAT, step):
        return {"format"}
    if (
        re.match(CHANGES_FILES, step)
        or re.match(_ONLY_BUILDS, step)
        or re.match(_COMPILES, step)
        or re.fullmatch(_ASKS, step)
        or step.split(maxsplit=1)[0] in TASK_PROGRAMS
    ):
        return set()
    if step.startswith("biome c"):
        return {"lint", "format"}
    if hook := re.match(r"(?:pre-commit|prek) run ([\w-]+)", step):
        return {_by_words(hook[1]) or "lint"}
    found = {check for check, pattern in OTHER_TOOLS.items() if re.match(pattern, step)}
    kinds = find_kinds(step)
    if not found and kinds != set(CHECKS):  # all of them: by a word such as `check`, which says too little
        found = {check for check in CHECKS[:3] if check in kinds}
    # A compiler that tests or lints also checks types; that is not why it is run.
    return {min(found, key=CHECKS.index)} if found and step.startswith(("cargo", "go ")) else found


# Tasks: of make, package.json and the like


_SLOW_RUNNERS = ("tox", "nox")  # they build environments, so they come after the tools themselves


def _tasks(project: _Project, *, is_slow: bool) -> Iterator[CheckCommand]:
    for runner in project.runners:
        if (runner.program in _SLOW_RUNNERS) is is_slow:
            yield from _tasks_of(runner, project)


def _tasks_of(runner: TaskRunner, project: _Project) -> Iterator[CheckCommand]:
    in_ci = [name for step in project.ci for name in runner.mentioned(step)]
    if runner.file == "Rakefile" and "default" in runner.tasks and "rake" in project.ci:
        in_ci.append("default")
    from_ci = [each for name in in_ci for each in runner.parts(name)]
    usual = {name for names in TASK_NAMES.values() for name in names}
    named = [part for name in runner.tasks if name in usual for part in runner.parts(name)]
    for check in TASK_NAMES:
        others = sorted(name for name in runner.tasks if _by_words(name) == check)
        tasks = [_Task(name, check, runner) for name in dict.fromkeys((*from_ci, *named, *others))]
        fit = [(task.rank(in_ci), task) for task in tasks if task.is_fit]
        if fit:
            _, best = min(fit, key=lambda ranked: ranked[0])
            is_in_ci = best.name in from_ci and runner.program not in _SLOW_RUNNERS
            quick = (task for _, task in fit if task is not best and _QUICK & set(_words(task.name)))
            quicker = next((runner.command.format(task.name) for task in quick), "")
            found = _task_command(best, project, is_in_ci=is_in_ci)
            yield replace(found, quicker=quicker if check == "tests" else "")


_QUICK = frozenset(("unit", "fast", "quick", "short"))  # words in the name of a task
_REPORTS = r"\b(?:cov|coverage|c8|nyc|lcov|junit\w*|report)\b"


class _Task:
    """A named task as a candidate for one check."""

    def __init__(self, name: str, check: str, runner: TaskRunner) -> None:
        self.name, self.check, self.runner = name, check, runner
        self.steps = runner.steps(name)
        self.text = "\n".join(self.steps)
        self.known = _known(name, runner)
        self.reports = bool(re.search(_REPORTS, f"{name}\n{runner.tasks[name]}"))

    def rank(self, in_ci: Collection[str]) -> tuple[bool | int, ...]:
        """Return its place among the tasks of a check, the best first; `in_ci`: those that CI names."""
        usual = TASK_NAMES[self.check]
        is_usual, is_in_ci = self.name in usual, self.name in in_ci
        place = usual.index(self.name) if is_usual else len(usual)
        if self.check != "tests":
            return _by_words(self.name) != self.check, place, not is_in_ci, len(self.known) > 1, self.reports
        tiers = (is_usual and is_in_ci, is_in_ci and not self.reports, is_usual, True)
        return self.is_divided, tiers.index(True), place

    @property
    def is_divided(self) -> bool:
        """Whether it runs other checks too, and another task for this check alone."""
        return len(self.known) > 1 and any(
            (_known(part, self.runner) or {_by_words(part) or ""}) == {self.check}
            for part in self.runner.parts(self.name)
            if part != self.name
        )

    @property
    def is_fit(self) -> bool:
        """Whether it is this check, ends by itself, only looks, and needs neither a browser nor a network."""
        if not re.fullmatch(r"[\w:.@/+-]+", self.name):  # it is a part of a shell command
            return False
        if not self._is_check or UNFIT_WORDS & set(_words(self.name)) or re.search(_NEVER_ENDS, self.text):
            return False
        changes = any(
            re.match(CHANGES_FILES, step) and not re.match(CHECKS_FORMAT, step) for step in self.steps
        )
        return self.check == "build" or not (
            changes or re.search(UNFIT_STEP, self.text) or _NO_TEST in self.text
        )

    @property
    def _is_check(self) -> bool:
        """By what it runs; if that is not known, by its name, except for what could as well change files."""
        if self.check == "build":
            return self.name in TASK_NAMES["build"]
        is_known = self.steps and all(map(_checks_of, self.steps))
        if (
            self.check in self.known
            or is_known
            or self.check == "format"
            or self.runner.program in _SLOW_RUNNERS
        ):
            return self.check in self.known
        by_name = (
            "tests"
            if self.name == "check" and self.runner.kind == "make"
            else _by_words(self.name) or self.name
        )
        only_compiles = any(re.match(_COMPILES, step) for step in self.steps) and all(
            re.match(_CHECKS_NOTHING, step) for step in self.steps
        )
        return self.check == by_name and not only_compiles


def _known(name: str, runner: TaskRunner) -> set[str]:
    """Return the checks that a task runs, by the tools; of parts with other programs by their names."""
    checks = {check for step in runner.steps(name) for check in _checks_of(step)}
    for part in runner.parts(name):
        steps = runner.steps(part)
        if part != name and (word := _by_words(part)) and not any(map(_checks_of, steps)):
            checks.add(word)
    return checks


def _words(name: str) -> list[str]:
    return re.split(r"[:._-]", name.lower())


def _by_words(name: str) -> str | None:
    return next((check for check, words in TASK_WORDS.items() if words & set(_words(name))), None)


_WATCHES_WITHOUT_CI = r"\breact-scripts\s+test\b"


def _task_command(task: _Task, project: _Project, *, is_in_ci: bool) -> CheckCommand:
    runner = task.runner
    command = runner.command.format(task.name)
    if runner.file == "package.json":
        command = re.sub(r"^(npm|pnpm|yarn) run test$", r"\1 test", command)
        command = f"CI=true {command}" if re.search(_WATCHES_WITHOUT_CI, task.text) else command
    elif runner.file == "Rakefile":
        command = command.removesuffix(" default")
    elif folder := _environment(project):
        command = f'PATH="$PWD/{folder}/bin:$PATH" {command}' if runner.kind in WHOLE else command
    return CheckCommand(task.check, command, runner.program, runner.file, runner.kind, task.steps, is_in_ci)


def _environment(project: _Project) -> str | None:
    """Return the folder of a virtual environment of Python."""
    return next((each for each in ("venv", ".venv") if f"{each}/bin/python" in project.names), None)


def _package_manager(package: Mapping[str, Any], names: frozenset[str]) -> str:
    named = str(package.get("packageManager", "")).partition("@")[0]
    if named in NODE_LOCK_FILES.values():
        return named
    return next((manager for lock, manager in NODE_LOCK_FILES.items() if lock in names), "npm")


def _typescript(project: _Project) -> Iterator[CheckCommand]:
    package = read_json(project.texts.get("package.json", ""))
    packages = {**table(package, "dependencies"), **table(package, "devDependencies")}
    if "tsconfig.json" in project.names and "typescript" in packages:
        is_in_ci = any(step.startswith("tsc ") for step in project.ci)
        command, steps = "npx --no-install tsc --noEmit", ("tsc --noEmit",)
        is_guess = bool(project.ci) and not is_in_ci
        yield CheckCommand("types", command, "npx", "tsconfig.json", "node", steps, is_in_ci, is_guess)


_NODE_FORMATTERS = {"prettier": ("prettier", "prettier --check"), "biome": ("@biomejs/biome", "biome format")}
_WRITES = r"\s(?:--write|--list-different|--check|-[wlc])(?=\s|$)"


def _node_formatters(project: _Project) -> Iterator[CheckCommand]:
    """Yield the check of a formatter that CI runs; else, as a guess, the check of what a script formats, or of all files."""
    package = read_json(project.texts.get("package.json", ""))
    packages = {**table(package, "dependencies"), **table(package, "devDependencies")}
    scripts = [
        step
        for runner in project.runners
        if runner.kind == "node"
        for name in runner.tasks
        for step in runner.steps(name)
    ]
    for name, (dependency, check) in _NODE_FORMATTERS.items():
        in_ci = [step for step in project.ci if step.startswith(name) and re.match(CHECKS_FORMAT, step)]
        start = rf"{check.partition(' -')[0]}\s(?!.*[$`<>\\])"
        use = next((step for step in (*in_ci, *scripts) if re.match(start, step)), f"{check} .")
        if dependency in packages:
            places = re.sub(_WRITES, "", use.removeprefix(check.partition(" -")[0]))
            step = f"{check} {places.strip() or '.'}"
            is_in_ci = use in in_ci
            found_in = "CI" if is_in_ci else "package.json"
            command = f"npx --no-install {step}"
            yield CheckCommand("format", command, "npx", found_in, "node", (step,), is_in_ci, not is_in_ci)


# Python

_SECTION = r"(?m)^\[{}\]"
_TEST_FILE = r"(?s)(?:tests?/)?(?:test_.*|.*_test)\.py"
_FIXES = r" --(?:fix|unsafe-fixes|exit-non-zero-on-\w+)\b"
_FORMATTERS = {"ruff": "ruff format --check", "black": "black --check ."}


def _python(project: _Project) -> Iterator[CheckCommand]:
    configured = table(read_toml(project.texts.get("pyproject.toml", "")), "tool")
    texts = [
        text
        for runner in project.runners
        if runner.kind in ("python", *WHOLE)
        for text in map(runner.steps, runner.tasks)
    ]
    recipes = [step for steps in texts for step in steps] + pre_commit_commands(project.texts)
    used = [re.sub(_FIXES, "", step) for step in (*project.ci, *recipes)]  # ours only look
    in_ci = used[: len(project.ci)]
    is_python = bool({"pyproject.toml", "setup.py", "setup.cfg"} & project.names)
    for tool in TOOLS:
        if tool.python is None:
            continue
        [check] = tool.checks
        uses = [
            step for step in used if re.match(rf"{tool.name}(?:\s|$)", step) and check in _checks_of(step)
        ]
        sign = _sign_of(tool.name, tool.python, configured, project) or (uses and is_python and "CI")
        if sign:
            arguments = _arguments(tool.name, tool.python, uses, configured, project)
            found = _python_command(check, tool.name, arguments, sign, project)
            is_in_ci = any(step in in_ci for step in uses)
            is_guess = bool(project.ci) and not uses and check != "tests"
            part = next((part[0] for step in uses if (part := re.search(_LEAVES_OUT, step))), "")
            quicker = f"{found.command}{part}" if part and not re.search(_LEAVES_OUT, found.command) else ""
            yield replace(found, is_in_ci=is_in_ci, is_guess=is_guess, quicker=quicker)
    for name, default in _FORMATTERS.items():
        formats = re.compile(rf"{default.partition(' -')[0]}(?:\s|$)")
        uses = [step for step in in_ci if formats.match(step)]
        uses += [step for step in recipes if formats.match(step) and re.match(CHECKS_FORMAT, step)]
        edits = [step for step in recipes if formats.match(step)]
        is_configured = "format" in table(configured, name) or (name == "black" and name in configured)
        if uses or is_configured or edits:
            arguments = _clean((uses or edits)[0]) if uses or edits else default.partition(" ")[2]
            sign = "CI" if uses else "pyproject.toml" if is_configured else "a task"
            found = _python_command("format", name, arguments, sign, project)
            is_guess = not uses and not is_configured
            yield replace(found, is_in_ci=any(step in in_ci for step in uses), is_guess=is_guess)
    yield from _unittest(project)


def _unittest(project: _Project) -> Iterator[CheckCommand]:
    uses = [step for step in project.ci if re.match(r"unittest\b", step)]
    if "manage.py" in project.names:
        yield _python_command("tests", "python", "manage.py test", "manage.py", project)
    elif test := next((name for name in sorted(project.names) if re.fullmatch(_TEST_FILE, name)), None):
        folder, _, _ = test.rpartition("/")
        is_package = f"{folder}/__init__.py" in project.names or not folder
        start = _clean(uses[0]) if uses else "" if is_package else f"discover -s {folder}"
        found = _python_command("tests", "python", f"-m unittest {start}".strip(), test, project)
        yield replace(found, is_in_ci=bool(uses))


def _sign_of(name: str, tool: PythonTool, configured: Mapping[str, Any], project: _Project) -> str | None:
    if own := next((each for each in tool.files if each in project.names), None):
        return own
    if name in configured:
        return "pyproject.toml"
    for file in ("setup.cfg", "tox.ini"):
        text = project.texts.get(file, "")
        if any(re.search(_SECTION.format(re.escape(each)), text) for each in tool.sections):
            return file
    # A dependency, at the start of a line or of a string.
    named = re.compile(rf"(?:^[ \t]*|[\"']){name}(?=[ \t]*(?:[\[<>=!~;@,\"']|$))", re.MULTILINE)
    names = ("pyproject.toml", "requirements-dev.txt", "requirements.txt", "Pipfile", "setup.cfg", "tox.ini")
    return next((file for file in names if named.search(project.texts.get(file, ""))), None)


_SELECTS = r"\s-(?:k|m)\b|::|--codspeed|--(?:lf|deselect)\b|py\.?test .*--ignore\b|bench|integration|e2e|/\.|--verifytypes|--install-types(?!\s+--non)"
_LEAVES_OUT = r"\s-[mk][ =]?(?:'not [^']+'|\"not [^\"]+\")"  # slow tests and the like, of pytest
_ADDOPTS = r"(?m)^[ \t]*addopts[ \t]*=[ \t]*(\[[^\]]*|.*(?:\n[ \t]+.*)*)"
_QUIET = r"(?<![\w-])-(?:\w*q|-quiet\b)"
_REPORTING = r"(?:--cov|--junit|--color|--durations|--output-format|--show-diff|--statistics|--diff|-v+$|-s$|--tb|--(?:no-)?pretty|--html|--xml)"


def _arguments(
    name: str, tool: PythonTool, uses: list[str], configured: Mapping[str, Any], project: _Project
) -> str:
    """Return what the project itself tells a tool, or what is usual."""
    whole = (step for step in uses if not re.search(_SELECTS, re.sub(_LEAVES_OUT, "", step)))
    plain = sorted(whole, key=lambda step: (re.search(_LEAVES_OUT, step) is not None, " test" in step))
    words = _clean(plain[0]).split() if plain else []
    places = [
        word
        for word in words
        if not word.startswith("-") and word.split("/")[0] in project.names and word[0] != "."
    ]
    if name == "pytest":
        part = re.search(_LEAVES_OUT, plain[0]) if plain else None
        # With another `-q` in its configuration, it prints no number of tests.
        is_quiet = any(
            re.search(_QUIET, each) for text in project.texts.values() for each in re.findall(_ADDOPTS, text)
        )
        return " ".join((*(() if is_quiet else (tool.arguments,)), *places)) + (part[0] if part else "")
    if name == "ruff":
        return " ".join((tool.arguments, *places))
    if name == "flake8" and not places and (folder := _environment(project)):
        words.append(f"--extend-exclude={folder}")  # CI has no environment in the folder
    if name == "mypy" and not places:
        options = [word for word in words if word.startswith("-")]
        usual = "src" if "src" in project.names and "." not in words else "."
        return " ".join(options if _names_files(configured, project) else (*options, usual))
    return " ".join(words)


def _clean(step: str) -> str:
    """Return the arguments of a command without what only reports, and without what only a run knows."""
    try:
        words = shlex.split(step, comments=True)[1:]
    except ValueError:
        words = step.split()[1:]
    kept = [word for word in words if not re.match(_REPORTING, word) and not re.search(r"[${}*]", word)]
    if step.startswith(("ruff format", "black")) and "--check" not in kept:
        kept.append("--check")  # `--diff` alone also only looks
    return shlex.join(kept)


def _names_files(configured: Mapping[str, Any], project: _Project) -> bool:
    """Whether the configuration of mypy says what it checks."""
    keys = {"files", "packages", "modules"}
    if keys & {*table(configured, "mypy")}:
        return True
    for name in ("mypy.ini", ".mypy.ini", "setup.cfg"):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        with contextlib.suppress(configparser.Error):
            parser.read_string(project.texts.get(name, ""))
            if parser.has_section("mypy") and keys & {*parser["mypy"]}:
                return True
    return False


def _python_command(check: str, name: str, arguments: str, sign: str, project: _Project) -> CheckCommand:
    """Return the command with what starts the project's own copy of the tool."""
    names = project.names
    local = next((path for path in (f".venv/bin/{name}", f"venv/bin/{name}") if path in names), None)
    runner = next((runner for lock, runner in PYTHON_LOCK_FILES.items() if lock in names), None)
    if runner is None and table(read_toml(project.texts.get("pyproject.toml", "")), "tool", "hatch", "envs"):
        runner = "hatch"
    program = local or runner or ("python3" if name == "python" else name)
    start = f"{runner} run {name}" if runner and not local else program
    steps = (f"{name} {arguments}".strip().removeprefix("python -m ").removeprefix("python "),)
    return CheckCommand(check, f"{start} {arguments}".rstrip(), program, sign, "python", steps)


# Other languages


def _others(project: _Project) -> Iterator[CheckCommand]:
    for signs, kind, program, commands in PROJECTS:
        found = [
            next((name for name in sorted(project.names) if fnmatchcase(name, each)), None)
            for each in signs.split()
        ]
        if found[0] is None or None in found:
            continue
        for check, usual in commands.items():
            command = usual.format(program)
            if command == "cargo test" and "[workspace]" in project.texts.get("Cargo.toml", ""):
                command += " --workspace"  # without it, only the package of this folder
            step = command.removeprefix("bundle exec ")
            in_ci = _in_ci(step, check, project)
            is_sign = check in ("tests", "build") or (check != "format" and found[0] not in _LANGUAGE_FILES)
            yield CheckCommand(
                check,
                _variables(in_ci, project) + _with_start(command, in_ci) if in_ci else command,
                program,
                found[0],
                kind,
                (in_ci or step,),
                is_in_ci=in_ci is not None or (program == "cmake" and _configures(project)),
                is_guess=(bool(project.ci) and not in_ci and not is_sign)
                or is_unready(program, project.names),
            )


def _variables(step: str, project: _Project) -> str:
    """Return the variables that CI sets before a step, on its line: `RUSTFLAGS=-Dwarnings `."""
    pattern = re.compile(
        rf"((?:\b[A-Z]\w*=(?:[\w./:=-]*|['\"][\w $./:=-]*['\"]) )+){re.escape(step)}$", re.MULTILINE
    )
    found = (pattern.search(text) for name, text in project.texts.items() if name.startswith(WORKFLOWS))
    return next((each[1] for each in found if each), "")


def _configures(project: _Project) -> bool:
    """Whether CI builds with cmake, in a folder beside the sources."""
    return any(
        name.startswith(WORKFLOWS) and re.search(r"(?m)^\s*(?:- )?(?:run: *)?cmake ", text)
        for name, text in project.texts.items()
    )


def _scripts(project: _Project) -> Iterator[CheckCommand]:
    """Yield the linter of shell scripts, as CI runs it."""
    for step in project.ci:
        if step.startswith("shellcheck ") and not re.search(_PARTIAL, step):
            yield CheckCommand("lint", step, "shellcheck", "CI", "shell", (step,), is_in_ci=True)


def is_unready(program: str, names: Collection[str]) -> bool:
    """Whether a file of the project that a command needs has to be made first, as by `./configure`."""
    return program.startswith("./") and os.path.normpath(program) not in names


_LANGUAGE_FILES = frozenset(
    ("Cargo.toml", "go.mod", "deno.json", "deno.jsonc")
)  # they do not show which tools are used
_PARTIAL = (
    r"[$`<>\\]|--(?:target|manifest-path|features|package|lib|bins?|test|doc|config|no-run)\b| -p | -D\w+="
)
_SUBCOMMANDS = frozenset(("cargo", "go", "deno", "mix", "dotnet"))


def _in_ci(step: str, check: str, project: _Project) -> str | None:
    """Return how CI runs the same tool for the same check, on the whole project."""
    words, program = step.split(), _program(step)
    found = [
        each
        for each in project.ci
        if _program(each) == program
        and check in _checks_of(each)
        and (program == "gofmt" or not re.search(_PARTIAL, each))
    ]
    same = [each for each in found if program not in _SUBCOMMANDS or each.split()[1:2] == words[1:2]]
    return min(same, key=len, default=None)


def _program(step: str) -> str:
    """Return what a step runs; gofmt only lists files, so it is a part of another command."""
    return "gofmt" if re.search(r"\bgofmt\b", step) else os.path.basename(step.split(maxsplit=1)[0])


def _with_start(command: str, step: str) -> str:
    """Return a step of CI with what starts the program here; for tests without what only reports."""
    start = command.split(maxsplit=1)[0]
    words = [word for word in step.split()[1:] if not re.match(_REPORTING, word)]
    if start == "cmake" or "gofmt" in step or step.startswith(("mvn", "go ", "golangci", "phpunit")):
        return command
    return " ".join((f"{start} exec {step.split(maxsplit=1)[0]}" if start == "bundle" else start, *words))


_FINDERS: tuple[Callable[[_Project], Iterator[CheckCommand]], ...] = (
    partial(_tasks, is_slow=False),
    _typescript,
    _node_formatters,
    _python,
    partial(_tasks, is_slow=True),
    _others,
    _scripts,
)
