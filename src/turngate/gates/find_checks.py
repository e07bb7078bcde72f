"""Finds a project's own checks from its files: the commands behind the gates tests, lint, types and build.

It decides from names and texts alone, so that it holds wherever the project is. `toolchains.py` has the tables.
"""

import contextlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.gates.toolchains import (
    CHECKS,
    MAKE_TARGETS,
    NODE_LOCK_FILES,
    PACKAGE_SCRIPTS,
    PROJECTS,
    PYTHON_LOCK_FILES,
    TOOLS,
    PythonTool,
    Tool,
)
from turngate.project.files import LOCAL

# What `ProjectFiles` needs: the names in these folders, and the texts of these files.
LISTED_FOLDERS = (".", "tests", "test", ".venv/bin", "venv/bin")
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")  # GNU make reads the first of them
_SETTINGS = "package.json deno.json composer.json pyproject.toml setup.cfg tox.ini requirements.txt requirements-dev.txt"
READ_FILES = (*MAKEFILES, *_SETTINGS.split(), "Pipfile", "Gemfile")
MAX_FILE_BYTES = 1024 * 1024  # of a file in READ_FILES; a larger one is left out


@frozen
class ProjectFiles:
    """What is known of a project: names relative to its folder, and the texts of READ_FILES that exist."""

    names: frozenset[str]  # "Makefile", "tests/test_prices.py"
    texts: Mapping[str, str]


def read_project_files(project: str) -> ProjectFiles:
    """Read them in a project on this machine."""
    names: set[str] = set()
    for folder in LISTED_FOLDERS:
        with contextlib.suppress(OSError):
            listed = os.listdir(os.path.join(project, folder))
            names.update(os.path.normpath(os.path.join(folder, name)) for name in listed)
    texts = {}
    for name in files_to_read(names):
        with contextlib.suppress(OSError):
            data = LOCAL.read(os.path.join(project, name), MAX_FILE_BYTES + 1)
            if len(data) <= MAX_FILE_BYTES:
                texts[name] = data.decode("utf-8-sig", "replace")
    return ProjectFiles(frozenset(names), texts)


def files_to_read(names: Collection[str]) -> list[str]:
    """Return which of these files say what the checks of a project are."""
    return sorted(name for name in names if name in READ_FILES)


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
    """A command that runs a check of the project."""

    check: str
    command: str
    program: str  # what has to be there: a name for the PATH, or a path from the project's folder
    found_in: str  # the file that says so
    kind: str  # of project: "make", "node", "python" …


def find_check_commands(files: ProjectFiles) -> list[CheckCommand]:
    """Return the commands of all checks, for each check the best one first.

    A target of make comes first, because it is the project's own word for all of its parts. After it there is at most
    one command for each check and kind of project.
    """
    found: dict[tuple[str, str], CheckCommand] = {}
    for kind in _KINDS:
        for command in kind(files):
            found.setdefault((command.check, command.kind), command)
    return sorted(found.values(), key=lambda command: CHECKS.index(command.check))


def chosen_commands(commands: Sequence[CheckCommand], check: str) -> list[CheckCommand]:
    """Return what a check runs: the target of make alone, which is for all parts of a project, or one for each part."""
    found = [each for each in commands if each.check == check]
    return found[:1] if found and found[0].kind == "make" else found


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


# make

_RULE = r"(?m)^([\w.-][^:=#\n\t]*):(?!=)"


def _make(files: ProjectFiles) -> Iterator[CheckCommand]:
    name = next((name for name in MAKEFILES if name in files.texts), None)
    if name is None:
        return
    targets = {target for rule in re.findall(_RULE, files.texts[name]) for target in rule.split()}
    for check, names in MAKE_TARGETS.items():
        if target := next((each for each in names if each in targets), None):
            yield CheckCommand(check, f"make {target}", "make", name, "make")


# Node

_NO_TEST = "no test specified"  # the script that `npm init` writes
_NEVER_ENDS = r"--watch(?:All)?(?!=false)\b|--ui\b|(?<![\w-])(?:nodemon|watch)\b"
_CHANGES_FILES = r"(?<!\S)--(?:fix|write)\b(?!=false)"
_WATCHES_WITHOUT_CI = r"\breact-scripts\s+test\b"


def _node(files: ProjectFiles) -> Iterator[CheckCommand]:
    if "package.json" not in files.texts:
        return
    package = _read_json(files.texts["package.json"])
    scripts = {name: text for name, text in _table(package, "scripts").items() if isinstance(text, str)}
    manager = _package_manager(package, files.names)
    for check, names in PACKAGE_SCRIPTS.items():
        usable = [name for name in names if name in scripts and _is_check(scripts[name], check)]
        for name in usable[:1]:
            run = f"{manager} test" if name == "test" and manager != "bun" else f"{manager} run {name}"
            command = f"CI=true {run}" if re.search(_WATCHES_WITHOUT_CI, scripts[name]) else run
            yield CheckCommand(check, command, manager, "package.json", "node")
    packages = {**_table(package, "dependencies"), **_table(package, "devDependencies")}
    if "tsconfig.json" in files.names and "typescript" in packages:
        yield CheckCommand("types", "npx --no-install tsc --noEmit", "npx", "tsconfig.json", "node")


def _is_check(script: str, check: str) -> bool:
    """Whether a script ends by itself and, as a linter, only looks."""
    if _NO_TEST in script or re.search(_NEVER_ENDS, script):
        return False
    return check != "lint" or not re.search(_CHANGES_FILES, script)


def _package_manager(package: Mapping[str, Any], names: frozenset[str]) -> str:
    named = str(package.get("packageManager", "")).partition("@")[0]
    if named in NODE_LOCK_FILES.values():
        return named
    return next((manager for lock, manager in NODE_LOCK_FILES.items() if lock in names), "npm")


# Python

_SECTION = r"(?m)^\[{}\]"
_TEST_FILE = r"(?s)(?:tests?/)?(?:test_.*|.*_test)\.py"


def _python(files: ProjectFiles) -> Iterator[CheckCommand]:
    configured = _table(_read_toml(files.texts.get("pyproject.toml", "")), "tool")
    for tool in TOOLS:
        if tool.python and (sign := _sign_of(tool.name, tool.python, configured, files)):
            arguments = _mypy_folder(configured, files) if tool.name == "mypy" else tool.python.arguments
            yield _python_command(tool, arguments, sign, files.names)
    if "manage.py" in files.names:
        yield CheckCommand("tests", "python3 manage.py test", "python3", "manage.py", "python")
    elif test := next((name for name in sorted(files.names) if re.fullmatch(_TEST_FILE, name)), None):
        folder, _, _ = test.rpartition("/")
        start = f" discover -s {folder}" if folder else ""
        yield CheckCommand("tests", f"python3 -m unittest{start}", "python3", test, "python")


def _sign_of(name: str, tool: PythonTool, configured: Mapping[str, Any], files: ProjectFiles) -> str | None:
    """Return the file that shows that the project uses a tool of Python."""
    if own := next((each for each in tool.files if each in files.names), None):
        return own
    if name in configured:
        return "pyproject.toml"
    for file in ("setup.cfg", "tox.ini"):
        text = files.texts.get(file, "")
        if any(re.search(_SECTION.format(re.escape(each)), text) for each in tool.sections):
            return file
    return _depends_on(name, files)


def _depends_on(tool: str, files: ProjectFiles) -> str | None:
    """Return the file that names a tool as a dependency: at the start of a line or of a string."""
    named = re.compile(rf"(?:^[ \t]*|[\"']){tool}(?=[ \t]*(?:[\[<>=!~;@,\"']|$))", re.MULTILINE)
    names = ("pyproject.toml", "requirements-dev.txt", "requirements.txt", "Pipfile", "setup.cfg", "tox.ini")
    return next((name for name in names if named.search(files.texts.get(name, ""))), None)


def _mypy_folder(configured: Mapping[str, Any], files: ProjectFiles) -> str:
    """Without configured files mypy needs to be told where to look."""
    names_files = {"files", "packages", "modules"} & {*_table(configured, "mypy")}
    in_setup_cfg = re.search(r"(?m)^(?:files|packages|modules)\s*=", files.texts.get("setup.cfg", ""))
    return "" if names_files or in_setup_cfg or {"mypy.ini", ".mypy.ini"} & files.names else "."


def _python_command(tool: Tool, arguments: str, sign: str, names: frozenset[str]) -> CheckCommand:
    """Return the command with what starts the project's own copy of the tool."""
    name, [check] = tool.name, tool.checks
    local = next((path for path in (f".venv/bin/{name}", f"venv/bin/{name}") if path in names), None)
    runner = next((runner for lock, runner in PYTHON_LOCK_FILES.items() if lock in names), None)
    program = local or runner or name
    start = f"{runner} run {name}" if runner and not local else program
    return CheckCommand(check, f"{start} {arguments}".rstrip(), program, sign, "python")


def _others(files: ProjectFiles) -> Iterator[CheckCommand]:
    for sign, kind, program, commands in PROJECTS:
        if sign in files.names:
            for check, command in commands.items():
                yield CheckCommand(check, command.format(program), program, sign, kind)


_KINDS: tuple[Callable[[ProjectFiles], Iterator[CheckCommand]], ...] = (_make, _node, _python, _others)


# Texts that may be broken: then they say nothing; `unreadable_files` names them.


def _read_json(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _read_toml(text: str) -> Mapping[str, Any]:
    import tomllib  # noqa: PLC0415 # lazy: only for a project of Python

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = value.get(key)
    return table if isinstance(table, dict) else {}
