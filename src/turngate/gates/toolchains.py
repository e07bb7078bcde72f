"""The tools that check projects: what they check, how a project shows that it uses them, how they are run, what they print, how they end.

To add a tool: a row of `TOOLS`; for a new kind of project a row of `PROJECTS`; for what it prints of failures a row of `OUTPUT_LINES`, and
for what it prints if there is nothing to check a row of `EMPTY_RUNS`.
"""

from collections.abc import Mapping
from dataclasses import field

from turngate._frozen_dataclass import frozen

CHECKS = ("tests", "lint", "types", "build")


@frozen
class PythonTool:
    """How a project of Python shows that it uses a tool, and how the tool is run."""

    arguments: str
    files: tuple[str, ...]
    sections: tuple[str, ...] = ()  # of setup.cfg and tox.ini
    path_keys: tuple[str, ...] = ()  # of its configuration: they name the files that it checks
    other_keys: tuple[str, ...] = ()  # they name them in another way


@frozen
class Tool:
    """A program that checks. Subcommands are regular expressions; ALWAYS is the program without one."""

    name: str
    checks: Mapping[str, str] = field(default_factory=dict)  # check → its subcommands
    # The subcommands with which it ends with 1, and not with 2, if it finds something.
    ends_with_1: str | None = None
    prints_to_stdout: bool = False  # and nothing of what it finds to stderr
    plants: Mapping[str, str] = field(default_factory=dict)  # subcommands → the failure that it has to find
    use: str | None = None  # how a text shows that it is run, where its name is not enough
    python: PythonTool | None = None


ALWAYS = ""
_TESTS, _LINT, _TYPES, _BUILD = ({check: ALWAYS} for check in CHECKS)
_TEST = "test|nextest|t"
_TEST_AND_BUILD = {"tests": _TEST, "build": "build"}
_COMPILER = {
    "tests": _TEST,
    "build": "build|test|run|check|install|vet|clippy",
    "lint": "clippy|vet",
    "types": "check|build|test|vet|clippy",
}
_JVM = {
    "tests": r"\S*?(?:test|verify|check|build)",
    "build": r"\S*?(?:compile|package|install|verify|build|assemble|test)",
}
_PYTEST_FILES = "pytest.ini .pytest.ini conftest.py tests/conftest.py .venv/bin/pytest venv/bin/pytest"
_PYTEST = PythonTool("-q", tuple(_PYTEST_FILES.split()), ("tool:pytest", "pytest"), ("testpaths",))
_USES_PYTEST = r"(?<![\w.-])py\.?test(?![\w/=-]|\.\w)"
_RUFF = PythonTool("check", ("ruff.toml", ".ruff.toml"), path_keys=("include",))
_FLAKE8 = PythonTool("", (".flake8",), ("flake8",))
_MYPY = PythonTool("", ("mypy.ini", ".mypy.ini"), ("mypy",), ("files",), ("packages", "modules"))
_PYRIGHT = PythonTool("", ("pyrightconfig.json",), path_keys=("include",))
_PYTHON_TEST, _PYTHON_SOURCE = {ALWAYS: "python test"}, {ALWAYS: "python source"}
_NODE_TEST, _NODE_SOURCE = {ALWAYS: "node test"}, {ALWAYS: "node source"}
_RUST = {"test|nextest": "rust test", "check|clippy|build": "rust source"}
_GO = {"test": "go test", "vet|build": "go source"}


def _tools(names: str, checks: Mapping[str, str], ends_with_1: str | None = None) -> tuple[Tool, ...]:
    return tuple(Tool(name, checks, ends_with_1) for name in names.split())


TOOLS: tuple[Tool, ...] = (
    # Python: the usual choice of each check first
    Tool(
        "pytest", _TESTS, ALWAYS, prints_to_stdout=True, plants=_PYTHON_TEST, use=_USES_PYTEST, python=_PYTEST
    ),
    *_tools("py.test", _TESTS, ALWAYS),
    Tool("unittest", _TESTS, ALWAYS, plants=_PYTHON_TEST, use=r"-m\s+unittest\b"),
    Tool("manage.py", {"tests": "test"}, plants={"test": "python test"}),
    Tool("ruff", _LINT, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE, python=_RUFF),
    Tool("flake8", _LINT, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE, python=_FLAKE8),
    Tool("pylint", _LINT, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE),
    Tool("pyflakes", plants=_PYTHON_SOURCE),
    Tool("compileall", plants=_PYTHON_SOURCE),
    Tool("mypy", _TYPES, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE, python=_MYPY),
    Tool("pyright", _TYPES, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE, python=_PYRIGHT),
    *_tools("tox nox", _TESTS, ALWAYS),
    *_tools("nose2", _TESTS),
    *_tools("black pre-commit", _LINT, ALWAYS),
    *_tools("prek", _LINT),
    *_tools("isort bandit", {}, ALWAYS),
    *_tools("dmypy basedpyright pyre ty", _TYPES),
    *_tools("poetry uv", {"build": "build"}),
    *_tools("hatch", _TEST_AND_BUILD),
    # JavaScript and TypeScript
    Tool("jest", _TESTS, ALWAYS, plants=_NODE_TEST),
    Tool("vitest", _TESTS, ALWAYS, plants=_NODE_TEST),
    Tool("mocha", _TESTS, plants=_NODE_TEST),
    Tool("ava", _TESTS, plants=_NODE_TEST),
    Tool("node", plants={"--test": "node test"}),
    Tool("eslint", _LINT, ALWAYS, prints_to_stdout=True, plants=_NODE_SOURCE),
    Tool("biome", _LINT, ALWAYS, plants=_NODE_SOURCE),
    Tool("oxlint", _LINT, ALWAYS, plants=_NODE_SOURCE),
    Tool("tsc", {**_TYPES, **_BUILD}, plants=_NODE_SOURCE),
    *_tools("vue-tsc", {**_TYPES, **_BUILD}),
    *_tools("svelte-check flow", _TYPES),
    *_tools("webpack rollup esbuild", _BUILD),
    *_tools("prettier", _LINT, ALWAYS),
    *_tools("stylelint standard markdownlint markdownlint-cli2", _LINT),
    *_tools("playwright", {"tests": _TEST}, ALWAYS),
    *_tools("cypress", {"tests": "run"}, ALWAYS),
    *_tools("npm pnpm yarn", _TEST_AND_BUILD),
    *_tools("bun", _TEST_AND_BUILD, "test"),
    *_tools("deno", {"tests": _TEST}, "test|lint|check|fmt"),
    *_tools("vite next nuxt astro ng", {"build": "build"}),
    # Rust and Go
    Tool("cargo", _COMPILER, "test|check|clippy|build|fmt|nextest", plants=_RUST),
    Tool("go", _COMPILER, "test|build", plants=_GO),
    Tool("golangci-lint", _LINT, ALWAYS, plants={ALWAYS: "go source"}),
    # Others
    *_tools("mvn mvnw", _JVM, "test|verify|package"),
    *_tools("gradle gradlew", _JVM, "test|check|build"),
    *_tools("dotnet", {"tests": _TEST, "build": "build|test"}, "test|build|format"),
    *_tools("swift", _TEST_AND_BUILD, "test|build"),
    *_tools("flutter bazel zig stack cabal", _TEST_AND_BUILD),
    *_tools("dart mix sbt lein forge crystal julia", {"tests": _TEST}),
    *_tools("rspec", _TESTS, ALWAYS),
    *_tools("phpunit pest ctest bats", _TESTS),
    *_tools("rubocop hadolint ktlint swiftlint", _LINT, ALWAYS),
    Tool("shellcheck", _LINT, ALWAYS, prints_to_stdout=True),
    *_tools("detekt credo", _LINT),
    *_tools("phpstan psalm sorbet srb", _TYPES),
    *_tools("docker podman", {"build": r"(?:compose\s+)?build"}),
    *_tools("rustc cmake ninja gcc g++ clang clang++ javac xcodebuild", _BUILD),
)
BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}

# Programs that run another one, after this word, which may be missing.
RUNNERS = {
    **dict.fromkeys(("npx", "bunx"), ""),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "pipenv", "rye"), "run"),
    **dict.fromkeys(("bundle", "pnpm", "yarn", "npm"), "exec"),
    **dict.fromkeys(("python", "python3"), "-m"),
}
PYTHON_LOCK_FILES = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
NODE_LOCK_FILES = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
}
PACKAGE_MANAGERS = frozenset(NODE_LOCK_FILES.values())
_OTHER_PROGRAMS = "bash curl git grep java jq just make mise perl php pip rake ruby sh turngate uvx"
PROGRAMS = sorted({*BY_NAME, *RUNNERS, *_OTHER_PROGRAMS.split()})  # names that a person may have meant

# The targets of make and the scripts of package.json that are a check, the most usual name first.
MAKE_TARGETS = {
    "tests": ("test", "tests", "check"),
    "lint": ("lint",),
    "types": ("types", "typecheck", "type-check", "mypy"),
    "build": ("build",),
}
PACKAGE_SCRIPTS = {
    "tests": ("test", "tests", "test:ci", "test:run", "test:unit"),
    "lint": ("lint", "lint:check", "lint:ci", "eslint"),
    "types": ("typecheck", "type-check", "types", "types:check", "check-types", "check:types", "tsc"),
    "build": ("build",),
}

_MAVEN = {"tests": "{} -B test", "build": "{} -q package -DskipTests"}
_CARGO = {"tests": "{} test", "types": "{} check --all-targets", "build": "{} build"}
_GRADLE = {"tests": "{} test", "build": "{} assemble"}
# Kinds of project: the file that shows it, the kind, the program, and the command of each check.
PROJECTS: tuple[tuple[str, str, str, Mapping[str, str]], ...] = (
    ("Cargo.toml", "rust", "cargo", _CARGO),
    ("Cargo.toml", "rust", "cargo-clippy", {"lint": "cargo clippy --all-targets -- -D warnings"}),
    ("go.mod", "go", "go", {"tests": "{} test ./...", "build": "{} build ./..."}),
    (".golangci.yml", "go", "golangci-lint", {"lint": "{} run"}),
    (".golangci.yaml", "go", "golangci-lint", {"lint": "{} run"}),
    ("go.mod", "go", "go", {"lint": "{} vet ./..."}),
    ("deno.json", "deno", "deno", {"tests": "{} test", "lint": "{} lint", "types": "{} check ."}),
    (".rspec", "ruby", "bundle", {"tests": "{} exec rspec"}),
    (".rubocop.yml", "ruby", "bundle", {"lint": "{} exec rubocop"}),
    ("phpunit.xml", "php", "vendor/bin/phpunit", {"tests": "{}"}),
    ("phpunit.xml.dist", "php", "vendor/bin/phpunit", {"tests": "{}"}),
    ("mvnw", "java", "./mvnw", _MAVEN),
    ("pom.xml", "java", "mvn", _MAVEN),
    ("gradlew", "java", "./gradlew", _GRADLE),
    ("build.gradle", "java", "gradle", _GRADLE),
    ("build.gradle.kts", "java", "gradle", _GRADLE),
    ("mix.exs", "elixir", "mix", {"tests": "{} test", "build": "{} compile"}),
    ("Package.swift", "swift", "swift", {"tests": "{} test", "build": "{} build"}),
)


# A file that configures a tool is named after it: pytest.ini, .eslintrc.json, jest.config.ts, .prettierignore, tsconfig.build.json, justfile.
_OTHER_TOOLS = """babel clippy coverage golangci grunt gulp jasmine just karma lerna nextest nx nyc rake rustfmt sqlfluff tap task ts
tslint turbo xo yamllint"""
_NO_FILES = {"manage.py", "py.test", "cargo", "docker", "podman", "gcc", "g++", "clang", "clang++"}
_NAMES = "|".join(sorted({*BY_NAME, *_OTHER_TOOLS.split()} - _NO_FILES))
# For grep -iE, too. Group 3 is the tool; without one, several tools read the file.
CONFIGURATION_FILE = (
    rf"(^|/)(\.?({_NAMES})([.-]?(conf|config|workspace|rc|ignore|file)(\.[a-z0-9_.-]+)?|"
    r"([.-][a-z0-9_-]+)?\.(ini|toml|cfg|jsonc?|json5|ya?ml|xml|xml\.dist|neon))?|"
    r"conftest\.py|pyproject\.toml|setup\.cfg|(package|composer)\.json|(gnu)?makefile)$"
)
# Words that stand for a tool, or for what its configuration is named after.
SYNONYMS = dict(
    pair.split("=")
    for pair in "tsc=ts tsx=ts typescript=ts svelte=ts pnpm=npm yarn=npm npx=npm bun=npm bunx=npm py.test=pytest vitest=vite prek=pre-commit "
    "react-scripts=jest cov=coverage gmake=make MAKE=make tox=testenv fmt=rustfmt".split()
)
SCRIPT_TABLES = {"package.json": "scripts", "composer.json": "scripts", "deno.json": "tasks"}
RUN_SCRIPTS = frozenset("npm node turbo nx lerna run-s run-p npm-run-all concurrently composer deno".split())
IN_ALL_FOLDERS = frozenset("workspace workspaces recursive foreach filter turbo nx lerna -r -w -ws".split())
# Top-level keys of package.json; the first group is the tool.
PACKAGE_KEY = r"(jest|mocha|ava|vitest|eslint|prettier|stylelint|nyc|c8|tap|xo|standard|wireit|nx)\w*"
# Keys of any configuration that change neither what is checked nor how.
NEUTRAL_KEYS = frozenset("markers deps dependencies sources index imports name version description".split())
OBEY_GITIGNORE = frozenset(("ruff", "black", "prettier", "biome"))  # also for files that git tracks
VARIABLES = (
    "MAKEFLAGS GNUMAKEFLAGS PYTEST_ADDOPTS PYTEST_PLUGINS NODE_OPTIONS npm_config_script_shell".split()
)
# What changes how make runs all recipes.
MAKE_SETTINGS = frozenset(
    "export SHELL .SHELLFLAGS MAKEFLAGS GNUMAKEFLAGS PATH VPATH .IGNORE .ONESHELL .DEFAULT".split()
)


@frozen(kw_only=True)
class CountLine:
    """How a tool says how many tests have passed, and how many it has skipped; the first group is the number."""

    tools: str
    passed: str
    skipped: str


TEST_COUNTS = (
    CountLine(
        tools="pytest",
        passed=r"^(?:=+ )?(?:\d+ [a-z]+, )*(\d+) passed\b.* in [\d.]+",
        skipped=r"\b(\d+) (?:skipped|deselected)\b(?=.* in \d)",
    ),
    CountLine(tools="unittest", passed=r"^Ran (\d+) tests?", skipped=r"\bskipped=(\d+)"),
    CountLine(tools="jest", passed=r"^Tests: .*?\b(\d+) passed", skipped=r"^Tests: .*?\b(\d+) skipped"),
    CountLine(
        tools="vitest", passed=r"^[ \t]*Tests  .*?\b(\d+) passed", skipped=r"^[ \t]*Tests  .*?\b(\d+) skipped"
    ),
    CountLine(tools="mocha", passed=r"^[ \t]*(\d+) passing\b", skipped=r"^[ \t]*(\d+) pending\b"),
    CountLine(tools="node, TAP", passed=r"^[#ℹ] pass (\d+)", skipped=r"^[#ℹ] (?:skipped|todo) (\d+)"),
    CountLine(
        tools="cargo", passed=r"^test result: \w+\. (\d+) passed", skipped=r"^test result: .* (\d+) ignored"
    ),
    CountLine(tools="rspec", passed=r"^(\d+) examples?,", skipped=r"^\d+ examples?,.* (\d+) pending"),
    CountLine(tools="phpunit", passed=r"^(?:OK \(|Tests: )(\d+)", skipped=r"^Tests: .*Skipped: (\d+)"),
)
# A line with the name of a test that was skipped.
SKIPPED_TEST = r"^SKIPPED \[\d+\] (.+)$|^[ \t]*--- SKIP: (\S+)|^test (\S+) \.\.\. ignored|^ok \d+ - (.+?) # SKIP|^[ \t]*﹣ (.+?) \("


@frozen
class OutputLine:
    """A line with which a tool says what has failed."""

    tools: str
    pattern: str
    is_report: bool = True  # only a check prints it, and not a shell or make
    name: str | None = None  # a pattern of the name of the failure, without what differs from run to run
    is_shown: bool = True  # with the lines around it


OUTPUT_LINES = (
    OutputLine("pytest", r"E\s{2,}\S"),
    OutputLine("pytest", r"(?:FAILED|ERROR)\s\S+", name=r"(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$"),
    OutputLine("pytest", r"_{3,}\s.*\s_{3,}$", is_report=False),
    OutputLine("unittest", r"(?:FAIL|ERROR):\s", name=r"(?:FAIL|ERROR): (.+)$"),
    OutputLine("jest, vitest, mocha, node", r"\s*(?:●|✕|✖|×)\s\S", name=r"\s*(● .* › .*?)$"),
    OutputLine("vitest", r"\s*❯\s\S", is_report=False),
    OutputLine("jest, vitest, go", r"\s*FAIL\s+\S", name=r"\s*FAIL +(.+ > .+?)$"),
    OutputLine("node --test, TAP", r"\s*not ok \d", name=r"\s*not ok \d+ (?:- )?(.*?)(?: #.*)?$"),
    OutputLine("cargo, rustc, gcc", r"error(?:\[\w+\])?:", is_report=False),
    OutputLine("cargo test", r"----\s.*\sstdout\s----$", is_report=False),
    OutputLine("cargo test", r"test\s.*\.\.\.\s+FAILED", name=r"test (.+) \.\.\. FAILED"),
    OutputLine("cargo test", r"thread\s.*\spanicked\sat", is_report=False),
    OutputLine("go test", r"\s*--- FAIL:", name=r"\s*--- FAIL: (\S+)"),
    OutputLine("go", r"panic:", is_report=False),
    OutputLine("tsc", r"\S.*\(\d+,\d+\):\serror\s", is_report=False, name=r"(\S.*)\(\d+,\d+\): (error .*)$"),
    OutputLine(
        "mypy, gcc, tsc --pretty",
        r"\S.*:\d+(?::\d+)?:?\s(?:-\s)?(?:fatal\s)?error\b",
        is_report=False,
        name=r"(\S.*?):\d+(?::\d+)?:? (?:- )?((?:fatal )?error\b.*)$",
    ),
    OutputLine("eslint", r"\s+\d+:\d+\s+error\s", is_report=False),
    OutputLine(
        "ruff, flake8, go vet", r"\S+\.\w+:\d+:\d+:\s\S", is_report=False, name=r"(\S+\.\w+):\d+:\d+: (\S.*)$"
    ),
    OutputLine("ruff", r"[A-Z]{1,4}\d{3,4}\s", is_report=False),
    OutputLine("a shell", r".*:\sNo such file or directory$", is_report=False),
    OutputLine("make", r".*\*\*\*\s.*Error\s\d+", is_report=False),
    OutputLine("Python, Java, JavaScript", r"(?:\w+\.)*\w*(?:Error|Exception)\b", is_report=False),
    OutputLine("Python", r"AssertionError\b", is_shown=False),
    OutputLine("others", r"FAILED:\s", is_shown=False),
    OutputLine("others", r"\s*[1-9]\d* (?:failing|failed|failures?|errors?)\b", is_shown=False),
)


@frozen
class EmptyRun:
    """How a tool says that it has checked nothing, and how it says that it has checked something."""

    tools: str
    nothing: str
    something: str | None = None
    checks: tuple[str, ...] = ("tests",)
    is_alone: bool = False  # it counts only if nothing else was printed: what else ran may print anything


EMPTY_RUNS = (
    EmptyRun(
        "most",
        r"\bno tests? (?:ran|found|collected|files? found|executed|to run|were found|were executed)\b|^0 (?:tests|specs|examples|runs)(?:,|$)",
        r"\b[1-9]\d* (?:tests? |specs? |examples? )?(?:pass|passed|passing|passes|succeeded|ok|x?fail|x?failed|failing|xpassed)\b"
        r"|^[ \t]*[1-9]\d* (?:tests?|examples?|runs?|assertions?|doctests?|properties), ",
    ),
    EmptyRun("pytest", r"\bcollected 0 items\b|^=*\s?(?:\d+ (?:skipped|deselected|warnings?),? )+in (?=\d)"),
    EmptyRun("unittest, lein", r"\bRan 0 tests\b", r"\bRan [1-9]"),
    EmptyRun(
        "node, TAP",
        r"^[#ℹ] (?:tests|pass) 0$|^1\.\.0\b",
        r"^[#ℹ] (?:pass|fail) [1-9]|^(?:not )?ok [1-9](?!.*# SKIP)",
    ),
    EmptyRun("mocha", r"^[ \t]*0 passing\b"),
    EmptyRun("jest, vitest", r"^[ \t]*Tests:?\s+(?:no tests|\d+ (?:skipped|todo|total))\b"),
    EmptyRun(
        "cargo, deno, nextest", r"^running 0 tests$|\b0 passed[;, |]+0 (?:failed|skipped)\b|\b0 tests run\b"
    ),
    EmptyRun("bun", r"^[ \t]*0 pass$"),
    EmptyRun(
        "go",
        r"\[no test files\]|\[no tests to run\]|\bno packages to test\b",
        r"^ok[ \t]+\S+[ \t]+(?:[\d.]+s|\(cached\))(?!.*no tests)|^[ \t]*--- (?:PASS|FAIL):",
    ),
    EmptyRun("rspec", r"\bNo examples found\b"),
    EmptyRun("ctest", r"^No tests were found", r"\btests failed out of [1-9]"),
    EmptyRun("phpunit", r"^No tests executed", r"\bOK \([1-9]|^Tests: [1-9]"),
    EmptyRun("dotnet", r"^No test (?:is available|matches)\b", r"\bPassed:\s+[1-9]|\bTotal tests: [1-9]"),
    EmptyRun(
        "maven, sbt", r"\bTests run: 0,|\bPassed: Total 0,", r"\bTests run: [1-9]|\bPassed: Total [1-9]"
    ),
    EmptyRun(
        "gradle",
        r"^> Task \S*:(?:\w+T|t)est NO-SOURCE",
        r"^> Task \S*:(?:\w+T|t)est(?: UP-TO-DATE| FROM-CACHE)?$",
    ),
    EmptyRun("swift, xcodebuild", r"\bExecuted 0 tests\b", r"\bExecuted [1-9]"),
    EmptyRun("dart, flutter", r"\bNo tests ran\b", r"\+[1-9][\d ~-]*: All tests passed"),
    EmptyRun("prove", r"^Result: NOTESTS", r"\bTests=[1-9]"),
    EmptyRun("ruff, black", r"\bNo Python files (?:found|are present)\b", checks=("lint",)),
    EmptyRun("pre-commit", r"\(no files to check\) *Skipped", r"\.(?:Passed|Failed)$", checks=("lint",)),
    EmptyRun("pyright", r"\bNo source files found\b", checks=("types",)),
    # A folder with the name of the target, and no .PHONY. What is built may be up to date.
    EmptyRun(
        "make, ninja",
        r"^(?:\S*/)?g?make(?:\[\d+\])?: (?:Nothing to be done for .*|[`'].*' is up to date\.)$|^ninja: no work to do\.$",
        checks=("tests", "lint", "types"),
        is_alone=True,
    ),
)
