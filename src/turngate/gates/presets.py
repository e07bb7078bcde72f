"""Finds a project's own checks from its files: the commands behind the presets tests, lint, types and build.

It decides from names and texts alone, so that it holds wherever the project is. To add a tool: a line in a function
below or, for a new kind of project, a function and a line in `_KINDS`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from turngate._frozen import frozen

PRESETS = ("tests", "lint", "types", "build")
# What `ProjectFiles` needs: the names in these folders, and the texts of these files.
LISTED_FOLDERS = (".", "tests", "test", ".venv/bin", "venv/bin")
READ_FILES = (
    "GNUmakefile",
    "makefile",
    "Makefile",
    "package.json",
    "deno.json",
    "composer.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "Pipfile",
    "Gemfile",
)
MAX_FILE_BYTES = 1024 * 1024  # of a file in READ_FILES; a larger one is left out


@frozen
class ProjectFiles:
    """What is known of a project: names relative to its folder, and the texts of READ_FILES that exist."""

    names: frozenset[str]  # "Makefile", "tests/test_prices.py"
    texts: Mapping[str, str]


@frozen
class PresetCommand:
    """A command that runs a check of the project."""

    preset: str
    command: str
    program: str  # what has to be there: a name for the PATH, or a path from the project's folder
    found_in: str  # the file that says so
    kind: str  # of project: "make", "node", "python" …


def preset_commands(files: ProjectFiles) -> list[PresetCommand]:
    """Return the commands of all presets, for each preset the best one first.

    A target of make comes first, because it is the project's own word for all of its parts. After it there is at most
    one command for each preset and kind of project.
    """
    found: dict[tuple[str, str], PresetCommand] = {}
    for kind in _KINDS:
        for command in kind(files):
            found.setdefault((command.preset, command.kind), command)
    return sorted(found.values(), key=lambda command: PRESETS.index(command.preset))


def chosen_commands(commands: Sequence[PresetCommand], preset: str) -> list[PresetCommand]:
    """Return what a preset runs: the target of make alone, which is for all parts of a project, or one for each part."""
    found = [each for each in commands if each.preset == preset]
    return found[:1] if found and found[0].kind == "make" else found


def unreadable_files(files: ProjectFiles) -> dict[str, str]:
    """Return why files that name checks cannot be read: {"package.json": "it is not JSON (line 3)"}."""
    problems: dict[str, str] = {}
    for name in ("package.json", "composer.json"):
        try:
            json.loads(files.texts.get(name, "{}"))
        except (ValueError, RecursionError) as error:
            problems[name] = f"it is not JSON (line {getattr(error, 'lineno', 1)})"
    try:
        _parse_toml(files.texts.get("pyproject.toml", ""))
    except (ValueError, RecursionError) as error:
        problems["pyproject.toml"] = f"it is not TOML ({error})"
    return problems


# make

_TARGETS = {
    "tests": ("test", "tests", "check"),
    "lint": ("lint",),
    "types": ("types", "typecheck", "type-check", "mypy"),
    "build": ("build",),
}
_RULE = re.compile(r"^([\w.-][^:=#\n\t]*):(?!=)", re.MULTILINE)


def _make(files: ProjectFiles) -> Iterator[PresetCommand]:
    """GNU make reads the first of the three."""
    name = next((name for name in READ_FILES[:3] if name in files.texts), None)
    if name is None:
        return
    targets = {target for rule in _RULE.findall(files.texts[name]) for target in rule.split()}
    for preset, names in _TARGETS.items():
        if target := next((each for each in names if each in targets), None):
            yield PresetCommand(preset, f"make {target}", "make", name, "make")


# Node

_SCRIPTS = {
    "tests": ("test", "tests", "test:ci", "test:run", "test:unit"),
    "lint": ("lint", "lint:check", "lint:ci", "eslint"),
    "types": ("typecheck", "type-check", "types", "types:check", "check-types", "check:types", "tsc"),
    "build": ("build",),
}
_NO_TEST = "no test specified"  # the script that `npm init` writes
_NEVER_ENDS = re.compile(r"--watch(?:All)?(?!=false)\b|--ui\b|(?<![\w-])(?:nodemon|watch)\b")
_CHANGES_FILES = re.compile(r"(?<!\S)--(?:fix|write)\b(?!=false)")
_WATCHES_WITHOUT_CI = re.compile(r"\breact-scripts\s+test\b")
_LOCK_FILES = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
}


def _node(files: ProjectFiles) -> Iterator[PresetCommand]:
    if "package.json" not in files.texts:
        return
    package = _read_json(files.texts["package.json"])
    scripts = {name: text for name, text in _table(package, "scripts").items() if isinstance(text, str)}
    manager = _package_manager(package, files.names)
    for preset, names in _SCRIPTS.items():
        usable = [name for name in names if name in scripts and _is_check(scripts[name], preset)]
        for name in usable[:1]:
            run = f"{manager} test" if name == "test" and manager != "bun" else f"{manager} run {name}"
            command = f"CI=true {run}" if _WATCHES_WITHOUT_CI.search(scripts[name]) else run
            yield PresetCommand(preset, command, manager, "package.json", "node")
    packages = {**_table(package, "dependencies"), **_table(package, "devDependencies")}
    if "tsconfig.json" in files.names and "typescript" in packages:
        yield PresetCommand("types", "npx --no-install tsc --noEmit", "npx", "tsconfig.json", "node")


def _is_check(script: str, preset: str) -> bool:
    """Whether a script ends by itself and, as a linter, only looks."""
    if _NO_TEST in script or _NEVER_ENDS.search(script):
        return False
    return preset != "lint" or not _CHANGES_FILES.search(script)


def _package_manager(package: Mapping[str, Any], names: frozenset[str]) -> str:
    named = str(package.get("packageManager", "")).partition("@")[0]
    if named in _LOCK_FILES.values():
        return named
    return next((manager for lock, manager in _LOCK_FILES.items() if lock in names), "npm")


# Python

_PYTHON_RUNNERS = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "pdm.lock": "pdm",
    "Pipfile.lock": "pipenv",
}
_SECTION = r"(?m)^\[{}\]"
_TEST_FILE = re.compile(r"(?:tests?/)?(?:test_.*|.*_test)\.py", re.DOTALL)


def _python(files: ProjectFiles) -> Iterator[PresetCommand]:
    for tool, preset, arguments, sign in _python_tools(files):
        yield _python_command(tool, preset, arguments, sign, files.names)
    if "manage.py" in files.names:
        yield PresetCommand("tests", "python3 manage.py test", "python3", "manage.py", "python")
    elif test := next((name for name in sorted(files.names) if _TEST_FILE.fullmatch(name)), None):
        folder, _, _ = test.rpartition("/")
        start = f" discover -s {folder}" if folder else ""
        yield PresetCommand("tests", f"python3 -m unittest{start}", "python3", test, "python")


def _python_tools(files: ProjectFiles) -> Iterator[tuple[str, str, str, str]]:
    """Yield (tool, preset, arguments, file that shows its use), the usual choice of each preset first."""
    tools = _table(_read_toml(files.texts.get("pyproject.toml", "")), "tool")
    for tool, preset, arguments, own_files, sections in (
        (
            "pytest",
            "tests",
            "-q",
            (
                "pytest.ini",
                ".pytest.ini",
                "conftest.py",
                "tests/conftest.py",
                ".venv/bin/pytest",
                "venv/bin/pytest",
            ),
            ("tool:pytest", "pytest"),
        ),
        ("ruff", "lint", "check", ("ruff.toml", ".ruff.toml"), ()),
        ("flake8", "lint", "", (".flake8",), ("flake8",)),
        ("mypy", "types", _mypy_arguments(tools, files), ("mypy.ini", ".mypy.ini"), ("mypy",)),
        ("pyright", "types", "", ("pyrightconfig.json",), ()),
    ):
        if sign := _sign_of(tool, tools, own_files, sections, files):
            yield tool, preset, arguments, sign


def _sign_of(
    tool: str,
    tools: Mapping[str, Any],
    own_files: tuple[str, ...],
    sections: tuple[str, ...],
    files: ProjectFiles,
) -> str | None:
    """Return the file that shows that the project uses a tool of Python."""
    if own := next((name for name in own_files if name in files.names), None):
        return own
    if tool in tools:
        return "pyproject.toml"
    for name in ("setup.cfg", "tox.ini"):
        if any(re.search(_SECTION.format(re.escape(each)), files.texts.get(name, "")) for each in sections):
            return name
    return _depends_on(tool, files)


def _depends_on(tool: str, files: ProjectFiles) -> str | None:
    """Return the file that names a tool as a dependency: at the start of a line or of a string."""
    named = re.compile(rf"(?:^[ \t]*|[\"']){tool}(?=[ \t]*(?:[\[<>=!~;@,\"']|$))", re.MULTILINE)
    names = ("pyproject.toml", "requirements-dev.txt", "requirements.txt", "Pipfile", "setup.cfg", "tox.ini")
    return next((name for name in names if named.search(files.texts.get(name, ""))), None)


def _mypy_arguments(tools: Mapping[str, Any], files: ProjectFiles) -> str:
    """Without configured files mypy needs to be told where to look."""
    names_files = {"files", "packages", "modules"} & {*_table(tools, "mypy")}
    in_setup_cfg = re.search(r"(?m)^(?:files|packages|modules)\s*=", files.texts.get("setup.cfg", ""))
    return "" if names_files or in_setup_cfg or {"mypy.ini", ".mypy.ini"} & files.names else "."


def _python_command(
    tool: str, preset: str, arguments: str, sign: str, names: frozenset[str]
) -> PresetCommand:
    """Return the command with what starts the project's own copy of the tool."""
    local = next((path for path in (f".venv/bin/{tool}", f"venv/bin/{tool}") if path in names), None)
    runner = next((runner for lock, runner in _PYTHON_RUNNERS.items() if lock in names), None)
    program = local or runner or tool
    start = f"{runner} run {tool}" if runner and not local else program
    return PresetCommand(preset, f"{start} {arguments}".rstrip(), program, sign, "python")


# Other kinds of project: the file that shows it, the program, and the command of each preset.

_OTHERS: tuple[tuple[str, str, str, Mapping[str, str]], ...] = (
    (
        "Cargo.toml",
        "rust",
        "cargo",
        {"tests": "cargo test", "types": "cargo check --all-targets", "build": "cargo build"},
    ),
    ("Cargo.toml", "rust", "cargo-clippy", {"lint": "cargo clippy --all-targets -- -D warnings"}),
    ("go.mod", "go", "go", {"tests": "go test ./...", "build": "go build ./..."}),
    (".golangci.yml", "go", "golangci-lint", {"lint": "golangci-lint run"}),
    (".golangci.yaml", "go", "golangci-lint", {"lint": "golangci-lint run"}),
    ("go.mod", "go", "go", {"lint": "go vet ./..."}),
    ("deno.json", "deno", "deno", {"tests": "deno test", "lint": "deno lint", "types": "deno check ."}),
    (".rspec", "ruby", "bundle", {"tests": "bundle exec rspec"}),
    (".rubocop.yml", "ruby", "bundle", {"lint": "bundle exec rubocop"}),
    ("phpunit.xml", "php", "vendor/bin/phpunit", {"tests": "vendor/bin/phpunit"}),
    ("phpunit.xml.dist", "php", "vendor/bin/phpunit", {"tests": "vendor/bin/phpunit"}),
    ("mvnw", "java", "./mvnw", {"tests": "./mvnw -q test", "build": "./mvnw -q package -DskipTests"}),
    ("pom.xml", "java", "mvn", {"tests": "mvn -q test", "build": "mvn -q package -DskipTests"}),
    ("gradlew", "java", "./gradlew", {"tests": "./gradlew test", "build": "./gradlew assemble"}),
    ("build.gradle", "java", "gradle", {"tests": "gradle test", "build": "gradle assemble"}),
    ("build.gradle.kts", "java", "gradle", {"tests": "gradle test", "build": "gradle assemble"}),
    ("mix.exs", "elixir", "mix", {"tests": "mix test", "build": "mix compile"}),
    ("Package.swift", "swift", "swift", {"tests": "swift test", "build": "swift build"}),
)


def _others(files: ProjectFiles) -> Iterator[PresetCommand]:
    for sign, kind, program, commands in _OTHERS:
        if sign in files.names:
            for preset, command in commands.items():
                yield PresetCommand(preset, command, program, sign, kind)


_KINDS: tuple[Callable[[ProjectFiles], Iterator[PresetCommand]], ...] = (_make, _node, _python, _others)


# Texts that may be broken: then they say nothing; `unreadable_files` names them.


def _read_json(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _read_toml(text: str) -> Mapping[str, Any]:
    try:
        return _parse_toml(text)
    except (ValueError, RecursionError):
        return {}


def _parse_toml(text: str) -> Mapping[str, Any]:
    import tomllib  # noqa: PLC0415 # lazy: only for a project of Python

    return tomllib.loads(text)


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = value.get(key)
    return table if isinstance(table, dict) else {}
