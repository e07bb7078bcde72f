"""The tools that check projects: what they check, how a project shows that it uses them, how they are run, what they print, how they end.

To add a tool: a row of `TOOLS`; for a new kind of project a row of `PROJECTS`; for what it prints of failures a row of `FAILURE_READERS`, and
for what it prints if there is nothing to check a row of `EMPTY_RUNS`.
"""

from collections.abc import Mapping
from dataclasses import field

from turngate._frozen_dataclass import frozen

CHECKS = ("tests", "lint", "types", "build")  # that an agent may claim to have passed
PROJECT_CHECKS = ("tests", "lint", "types", "format", "build")  # that are gates; their commands are found


@frozen
class PythonTool:
    """How a project of Python shows that it uses a tool, and how the tool is run."""

    arguments: str
    files: tuple[str, ...]
    sections: tuple[str, ...] = ()  # of setup.cfg and tox.ini
    path_keys: tuple[str, ...] = ()  # of its configuration: they name the files that it checks
    other_keys: tuple[str, ...] = ()  # they name them in another way


@frozen
class Related:
    """How a command of a tool becomes one that runs only the tests that a change concerns."""

    pattern: str  # the part of the command that is replaced; without a match the tool cannot
    # With {command}, {files}, {files_list} (with commas), {packages} of go, {test_files} of Python; an empty one means that nothing is related.
    replacement: str


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
    related: tuple[Related, ...] = ()  # all of them are run


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
    "tests": r"\S*?(?:[Tt]est|verify|[Cc]heck|build)",
    "build": r"\S*?(?:compile|package|install|verify|build|assemble|[Tt]est)",
}
_PYTEST_FILES = "pytest.ini .pytest.ini conftest.py tests/conftest.py .venv/bin/pytest venv/bin/pytest"
_PYTEST = PythonTool("-q", tuple(_PYTEST_FILES.split()), ("tool:pytest", "pytest"), ("testpaths",))
_USES_PYTEST = r"(?<![\w.-])py\.?test(?![\w/=-]|\.\w)"
_RUFF = PythonTool("check --no-fix", ("ruff.toml", ".ruff.toml"), path_keys=("include",))
_FLAKE8 = PythonTool("", (".flake8",), ("flake8",))
_MYPY = PythonTool("", ("mypy.ini", ".mypy.ini"), ("mypy",), ("files",), ("packages", "modules"))
_PYRIGHT = PythonTool("", ("pyrightconfig.json",), path_keys=("include",))
_PYTHON_TEST, _PYTHON_SOURCE = {ALWAYS: "python test"}, {ALWAYS: "python source"}
_NODE_TEST, _NODE_SOURCE = {ALWAYS: "node test"}, {ALWAYS: "node source"}
_RUST = {"test|nextest": "rust test", "check|clippy|build|fmt": "rust source"}
_GO = {"test": "go test", "vet|build": "go source"}
# Where testmon has its data, it knows better which tests a change concerns than their names do. `-k` leaves alone what the configuration leaves out.
_RELATED_PYTEST = (
    Related(".*", "test -e .testmondata && {command} --testmon"),
    Related(r"^(?!.*\s-k).*", "test -e .testmondata || {command} -k {test_files}"),
    Related(".*", "grep -qs : .pytest_cache/v/cache/lastfailed && {command} --lf --lfnf=none"),
)
_RELATED_JEST = (Related("$", " --findRelatedTests {files}"),)
_RELATED_VITEST = (Related(r"\bvitest(?:\s+run)?(?=\s|$)", "vitest related {files} --run"),)
_RELATED_GO = (Related(r"(?<=\s)\./\.\.\.(?=\s|$)", "{packages}"),)
_RELATED_NX = (Related(r"\brun-many\b(?!.*\s(?:-p|--projects|--all)\b)", "affected --files={files_list}"),)


def _tools(names: str, checks: Mapping[str, str], ends_with_1: str | None = None) -> tuple[Tool, ...]:
    return tuple(Tool(name, checks, ends_with_1) for name in names.split())


TOOLS: tuple[Tool, ...] = (
    # Python: the usual choice of each check first
    Tool(
        "pytest",
        _TESTS,
        ALWAYS,
        prints_to_stdout=True,
        plants=_PYTHON_TEST,
        use=_USES_PYTEST,
        python=_PYTEST,
        related=_RELATED_PYTEST,
    ),
    *_tools("py.test", _TESTS, ALWAYS),
    Tool("unittest", _TESTS, ALWAYS, plants=_PYTHON_TEST, use=r"-m\s+unittest\b"),
    Tool("manage.py", {"tests": "test"}, plants={"test": "python test"}),
    Tool("ruff", _LINT, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE, python=_RUFF),
    Tool("flake8", _LINT, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE, python=_FLAKE8),
    Tool("pylint", _LINT, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE),
    *_tools("pycodestyle", _LINT, ALWAYS),
    Tool("pyflakes", plants=_PYTHON_SOURCE),
    Tool("compileall", _LINT, plants=_PYTHON_SOURCE),
    *_tools("py_compile", _LINT),
    Tool("mypy", _TYPES, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE, python=_MYPY),
    Tool("pyright", _TYPES, ALWAYS, prints_to_stdout=True, plants=_PYTHON_SOURCE, python=_PYRIGHT),
    *_tools("tox nox", _TESTS, ALWAYS),
    *_tools("nose2", _TESTS),
    Tool("black", _LINT, ALWAYS, plants=_PYTHON_SOURCE),
    *_tools("pre-commit", _LINT, ALWAYS),
    *_tools("prek", _LINT),
    *_tools("isort bandit", {}, ALWAYS),
    *_tools("dmypy basedpyright pyre ty", _TYPES),
    *_tools("poetry uv", {"build": "build"}),
    *_tools("hatch", _TEST_AND_BUILD),
    # JavaScript and TypeScript
    Tool("jest", _TESTS, ALWAYS, plants=_NODE_TEST, related=_RELATED_JEST),
    Tool("vitest", _TESTS, ALWAYS, plants=_NODE_TEST, related=_RELATED_VITEST),
    Tool("mocha", _TESTS, plants=_NODE_TEST),
    Tool("ava", _TESTS, plants=_NODE_TEST),
    Tool("node", {"tests": "--test"}, plants={"--test": "node test"}),
    Tool("eslint", _LINT, ALWAYS, prints_to_stdout=True, plants=_NODE_SOURCE),
    Tool("biome", _LINT, ALWAYS, plants=_NODE_SOURCE),
    Tool("oxlint", _LINT, ALWAYS, plants=_NODE_SOURCE),
    Tool("tsc", {**_TYPES, **_BUILD}, plants=_NODE_SOURCE),
    *_tools("vue-tsc", {**_TYPES, **_BUILD}),
    *_tools("svelte-check flow", _TYPES),
    *_tools("webpack rollup esbuild", _BUILD),
    Tool("prettier", _LINT, ALWAYS, plants=_NODE_SOURCE),
    Tool("standard", _LINT, plants=_NODE_SOURCE),
    *_tools("stylelint markdownlint markdownlint-cli2", _LINT),
    *_tools("playwright", {"tests": _TEST}, ALWAYS),
    *_tools("cypress", {"tests": "run"}, ALWAYS),
    *_tools("npm pnpm yarn", _TEST_AND_BUILD),
    Tool("nx", related=_RELATED_NX),
    *_tools("bun", _TEST_AND_BUILD, "test"),
    *_tools("deno", {"tests": _TEST}, "test|lint|check|fmt"),
    *_tools("vite next nuxt astro ng", {"build": "build"}),
    # Rust and Go
    Tool("cargo", _COMPILER, "test|check|clippy|build|fmt|nextest", plants=_RUST),
    Tool("go", _COMPILER, "test|build", plants=_GO, related=_RELATED_GO),
    Tool("gofmt", plants={ALWAYS: "go source"}),
    Tool("golangci-lint", _LINT, ALWAYS, plants={ALWAYS: "go source"}),
    # Others
    *_tools("mvn mvnw", _JVM, "test|verify|package"),
    *_tools("gradle gradlew", _JVM, "test|check|build"),
    *_tools("dotnet", {"tests": _TEST, "build": "build|test"}, "test|build|format"),
    *_tools("swift", _TEST_AND_BUILD, "test|build"),
    *_tools("bazel zig stack cabal", _TEST_AND_BUILD),
    *_tools("flutter dart", {**_TEST_AND_BUILD, "lint": "analyze"}),
    *_tools("mix sbt lein forge crystal julia", {"tests": _TEST}),
    *_tools("busted", _TESTS),
    *_tools("rspec", _TESTS, ALWAYS),
    *_tools("phpunit pest ctest bats prove", _TESTS),
    *_tools("rubocop hadolint ktlint swiftlint", _LINT, ALWAYS),
    Tool("shellcheck", _LINT, ALWAYS, prints_to_stdout=True),
    *_tools("detekt credo staticcheck luacheck yamllint actionlint ansible-lint", _LINT),
    *_tools("phpstan psalm sorbet srb", _TYPES),
    *_tools("docker podman", {"build": r"(?:compose\s+)?build"}),
    *_tools("rustc cmake ninja gcc g++ clang clang++ javac", _BUILD),
    *_tools("xcodebuild", {"tests": "test", **_BUILD}),
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

# The names of tasks that are a check, in Makefiles, package.json and others: the most usual one first; else by their words.
TASK_NAMES = {
    "tests": (
        "test:unit",
        "test-unit",
        "unit",
        "test",
        "tests",
        "test:lib",
        "test:ci",
        "test:run",
        "spec",
        "check",
    ),
    "lint": ("lint", "lint:check", "lint:ci", "check:lint", "eslint", "test:eslint", "rubocop", "check"),
    "types": (
        "typecheck",
        "type-check",
        "types",
        "types:check",
        "check-types",
        "check:types",
        "check:type",
        "tsc",
        "mypy",
        "check",
    ),
    "format": (
        "format-check",
        "format:check",
        "check-format",
        "check:format",
        "fmt-check",
        "prettier:check",
        "format",
        "fmt",
        "check",
    ),
    "build": ("build",),
}
TASK_WORDS = {
    "types": frozenset(
        "types type typecheck typechecking typing tsc mypy pyright dtslint tsd phpstan psalm".split()
    ),
    "lint": frozenset("lint eslint style clippy vet rubocop phpcs".split()),
    "format": frozenset("format fmt prettier".split()),
    "tests": frozenset("test tests unit spec phpunit jest vitest mocha".split()),
}
# Words in the name of a task that is not for every stop: it needs a browser, a network or a server, never ends, or changes files.
UNFIT_WORDS = frozenset(
    """watch fix write update e2e browser browsers integration integrations karma playwright cypress selenium puppeteer wdio bench benchmark
    smoke docs doc dev debug serve server ui release publish profile deploy external live firefox chrome examples example property""".split()
)
UNFIT_STEP = r"\b(?:karma|wdio|playwright|cypress|puppeteer|e2e|npm(?:@\S+)? audit|docker|pip install|go (?:get|install)|npm publish)\b"
TASK_PROGRAMS = frozenset(
    "npm pnpm yarn bun nx turbo lerna make just task rake tox nox poe composer".split()
)  # that run tasks
OTHER_TOOLS = {  # in scripts of packages
    "tests": r"node\b.* --test\b|(?:tape|tap|borp|uvu|lab|jasmine|c8|nyc)\b",
    "types": r"(?:tsd|tstyche|dtslint|attw|vue-tsc|stubtest)\b",
    "lint": r"(?:xo|standard|semistandard|neostandard|tslint|golint|phpcs)\b",
}
# Formatters that only look.
CHECKS_FORMAT = (
    r"ruff format .*(?:--check|--diff)|black .*(?:--check|--diff)|prettier .*(?:--check|-c\b|-l\b|--list-different)|cargo fmt .*--check|"
    r"(?:(?:if )?(?:test|\[) .*|\w+=.*)?gofmt .*-[ld]\b|biome format(?! .*--write)|deno fmt .*--check|mix format .*--check-formatted|oxfmt .*--check|"
    r"dotnet format .*--verify-no-changes|(?:\S*/)?php-cs-fixer .*--dry-run|rustfmt .*--check|dprint check|zig fmt .*--check|"
    r"terraform fmt .*-check|shfmt .*-d\b|clang-format .*--dry-run|isort .*--check|stylua .*--check|swift-format lint|"
    r"dart format .*--set-exit-if-changed"
)
# Commands that change files, unless one of the patterns above matches.
CHANGES_FILES = (
    r".*\s--(?:fix|write|fix-only|unsafe-fixes|autocorrect(?:-all)?|update-snapshot\S*)\b(?!=false)|(?:pre-commit|prek) run(?!\s+[a-z])|"
    r"(?:ruff format|black|isort|cargo fmt|biome format|deno fmt|mix format|dart format|zig fmt|terraform fmt|oxfmt|rustfmt|stylua|autopep8|autoflake|pyupgrade)\b|prettier\s+.*-w\b|"
    r"(?:go|cargo) (?:generate|fix)\b|go fmt\b|gofmt .*-w\b|clang-format .*-i\b|shfmt .*-w\b|dprint fmt\b|rubocop .*-[aA]\b|(?:\S*/)?(?:phpcbf|php-cs-fixer)\b|git (?:add|commit|push)\b"
)
# Tables of pyproject.toml with tasks; the program, and the command of one of them.
PYTHON_TASK_TABLES = (
    ("tool.poe.tasks", "poe", "poe {}"),
    ("tool.taskipy.tasks", "task", "task {}"),
    ("tool.pdm.scripts", "pdm", "pdm run {}"),
    ("tool.hatch.envs.default.scripts", "hatch", "hatch run {}"),
    ("tool.hatch.envs.lint.scripts", "hatch", "hatch run lint:{}"),
    ("tool.hatch.envs.types.scripts", "hatch", "hatch run types:{}"),
    ("tool.tox.env", "tox", "tox -e {}"),
)
# What the usual actions of GitHub and hooks of pre-commit run, without changing files.
CI_ACTIONS = {
    "golangci/golangci-lint-action": "golangci-lint run",
    "pre-commit/action": "pre-commit run --all-files",
    "psf/black": "black --check .",
    "astral-sh/ruff-action": "ruff check",
    "chartboost/ruff-action": "ruff check",
}
PRE_COMMIT_HOOKS = {
    **dict.fromkeys(("ruff", "ruff-check"), "ruff check"),
    "ruff-format": "ruff format --check",
    **dict.fromkeys(("black", "black-pre-commit-mirror"), "black --check ."),
    "flake8": "flake8",
    "pylint": "pylint",
    "mypy": "mypy .",
    "pyright": "pyright",
}

_MAVEN = {"tests": "{} -B test", "build": "{} -q package -DskipTests"}
_CARGO = {
    "tests": "{} test",
    "types": "{} check --all-targets",
    "format": "{} fmt --all --check",
    "build": "{} build",
}
_GRADLE = {"tests": "{} check", "build": "{} assemble"}
_DENO = {"tests": "{} test", "lint": "{} lint", "types": "{} check .", "format": "{} fmt --check"}
_DOTNET = {"tests": "{} test", "build": "{} build"}
_PHPUNIT = {"tests": "{}"}
_PROVE = {"tests": "{} -lr t"}
_PHPSTAN = {"types": "{} analyse --no-progress"}
_CTEST = {
    "tests": "{} --build build && ctest --test-dir build --output-on-failure",
    "build": "{} --build build",
}
_MESON = {"tests": "{} test -C build --print-errorlogs", "build": "{} compile -C build"}
# Kinds of project: the files that show it (patterns), the kind, the program, and the command of each check.
PROJECTS: tuple[tuple[str, str, str, Mapping[str, str]], ...] = (
    ("Cargo.toml", "rust", "cargo", _CARGO),
    ("Cargo.toml", "rust", "cargo-clippy", {"lint": "cargo clippy --all-targets -- -D warnings"}),
    ("go.mod", "go", "go", {"tests": "{} test ./...", "build": "{} build ./..."}),
    (".golangci.y*ml", "go", "golangci-lint", {"lint": "{} run"}),
    ("go.mod", "go", "go", {"lint": "{} vet ./..."}),
    ("go.mod", "go", "gofmt", {"format": 'out=$({} -l .) && ! echo "$out" | grep .'}),
    ("deno.json*", "deno", "deno", _DENO),
    (".rspec", "ruby", "bundle", {"tests": "{} exec rspec"}),
    (".rubocop.yml", "ruby", "bundle", {"lint": "{} exec rubocop"}),
    ("phpunit.xml*", "php", "vendor/bin/phpunit", _PHPUNIT),
    ("phpcs.xml*", "php", "vendor/bin/phpcs", {"lint": "{}"}),
    ("phpstan.neon*", "php", "vendor/bin/phpstan", _PHPSTAN),
    (".php-cs-fixer*.php", "php", "vendor/bin/php-cs-fixer", {"format": "{} fix --dry-run --diff"}),
    ("mvnw", "java", "./mvnw", _MAVEN),
    ("pom.xml", "java", "mvn", _MAVEN),
    ("gradlew", "java", "./gradlew", _GRADLE),
    ("build.gradle*", "java", "gradle", _GRADLE),
    ("*.sln*", "dotnet", "dotnet", _DOTNET),
    ("*.csproj", "dotnet", "dotnet", _DOTNET),
    ("mix.exs", "elixir", "mix", {"tests": "{} test", "build": "{} compile"}),
    ("pubspec.yaml", "dart", "dart", {"format": "{} format --output=none --set-exit-if-changed ."}),
    (".formatter.exs", "elixir", "mix", {"format": "{} format --check-formatted"}),
    ("Package.swift Tests", "swift", "swift", {"tests": "{} test"}),
    ("Package.swift Sources", "swift", "swift", {"build": "{} build"}),
    ("build/CTestTestfile.cmake", "c++", "cmake", _CTEST),
    # A program that is a file: before the project is configured, it is not there.
    ("CMakeLists.txt", "c++", "./build/CTestTestfile.cmake", {"tests": _CTEST["tests"].format("cmake")}),
    ("meson.build build/build.ninja", "c++", "meson", _MESON),
    ("meson.build", "c++", "./build/build.ninja", {"tests": _MESON["tests"].format("meson")}),
    ("configure.ac Makefile.am", "c", "./Makefile", {"tests": "make check"}),
    *((f"{sign} t", "perl", "prove", _PROVE) for sign in ("Makefile.PL", "Build.PL", "dist.ini", "cpanfile")),
    *((f"{folder}/*.bats", "shell", "bats", {"tests": f"{{}} {folder}"}) for folder in ("test", "tests")),
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
# What is in these folders configures nothing outside of them; lock files say what is installed; the rest is written by tools.
NO_CONFIGURATION = (
    r"(?:^|/)(?:(?:__)?fixtures?(?:__)?|test_?data|templates?|examples?|\.github/workflows|\.?venv)/|(?:-lock|shrinkwrap)\.[^/]*$|"
    r"(?:^|/)\.?coverage(?:\.json)?$|\.tsbuildinfo$|(?:^|/)(?!ph|pom|ps|testng|extensions)[^/]*\.xml$"
)
# What a check may depend on by its name alone: all of these, scripts, and files of runners.
MAY_DEFINE = (
    rf"{CONFIGURATION_FILE}|(^|/)([^/]*\.(mk|sh|bash|config\.[a-z]+)|\.[a-z_-]+rc(\.[a-z]+)?|\.ignore|rust-toolchain|tasks\.py|dockerfile|cmakelists\.txt|"
    r"pom\.xml|(build|settings)\.(gradle(\.kts)?|sbt|zig|ninja)|gradle\.properties|[^/]*\.(cabal|rake|cmake|gradle|gradle\.kts)|package\.swift|"
    r"project\.clj|build(\.bazel)?|psalm[^/]*\.xml|testng\.xml|\.editorconfig|\.pyre_configuration|mix\.exs|test_helper\.exs|go\.work|\.rspec-local|junit-platform\.properties|[^/]*\.(csproj|props|targets|runsettings))$|"
    r"(^|/)(\.(mvn|cargo)/[^/]+|gradle/[^/]+\.gradle(\.kts)?|\.yarn/plugins/.+)$|^(\./)?((scripts?|tools|bin|ci)/[^/]+|\.env)$|(^|/)\.basedpyright/[^/]+$"
)
CONFIGURATION_IN_ROOT = (
    r"^(\./)?[^/]+\.(toml|ini|cfg|jsonc?|json5|ya?ml)$"  # which a check may write if git ignores them
)
# What can leave tests out, or end a run; the fixtures of a conftest.py are the project's own, unless they skip all tests.
LEAVES_TESTS_OUT = (
    r"\bcollect_ignore|\bpytest_plugins\b|\bdef pytest_(?!addoption\b|configure\b)|\bSystemExit\b|\b_?exit\(|"
    r"\bexitstatus\b|\bconfig\.(?:option|args)\b|\bimportorskip\b|\ballow_module_level\b|\bautouse\b(?s:.{0,300}?)\b(?:skip|xfail)"
)
# What says only which packages are installed, and what separates values in JSON.
INSTALLED_JSON = r'"\w{0,20}[dD]ependencies"\s*:\s*\{[^{}]*\}|"version"\s*:\s*"[^"]*"|[\s,]+'
INSTALLED_TOML = (
    r"(?ms)^\[(?:project\b[^\]\n]*|[\w.-]{0,60}dependenc[\w.-]{0,60})\].*?(?=^\[|\Z)|"
    r'^version\s*=\s*"[^"]*"$|^\s*$'
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
OBEY_GITIGNORE = frozenset(
    "ruff black prettier biome oxlint oxfmt ty pyrefly typos eslint".split()
)  # also for files that git tracks
VARIABLES = (
    "MAKEFLAGS GNUMAKEFLAGS MAKEFILES PYTEST_ADDOPTS PYTEST_PLUGINS NODE_OPTIONS npm_config_script_shell "
    "GOFLAGS RUBYOPT SPEC_OPTS MAVEN_ARGS JAVA_TOOL_OPTIONS".split()
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
    skipped: str = r"(?!)"  # it does not say so
    failed: str | None = None  # that `passed` counts too


TEST_COUNTS = (
    CountLine(
        tools="pytest",
        passed=r"^(?:=+ )?(?:\d+ [a-z]+, )*(\d+) passed\b.* in [\d.]+",
        skipped=r"\b(\d+) (?:skipped|deselected)\b(?=.* in \d)",
    ),
    CountLine(
        tools="unittest",
        passed=r"^Ran (\d+) tests?",
        skipped=r"\bskipped=(\d+)",
        failed=r"\b(?:failures|errors)=(\d+)",
    ),
    CountLine(tools="jest", passed=r"^Tests: .*?\b(\d+) passed", skipped=r"^Tests: .*?\b(\d+) skipped"),
    CountLine(
        tools="vitest", passed=r"^[ \t]*Tests  .*?\b(\d+) passed", skipped=r"^[ \t]*Tests  .*?\b(\d+) skipped"
    ),
    CountLine(tools="automake", passed=r"^# PASS: +(\d+)", skipped=r"^# SKIP: +(\d+)"),
    CountLine(tools="uvu", passed=r"^ {2}Passed: +(\d+)$", skipped=r"^ {2}Skipped: +(\d+)$"),
    CountLine(tools="mocha", passed=r"^[ \t]*(\d+) passing\b", skipped=r"^[ \t]*(\d+) pending\b"),
    CountLine(tools="node, TAP", passed=r"^[#ℹ] pass (\d+)", skipped=r"^[#ℹ] (?:skipped|todo) (\d+)"),
    CountLine(
        tools="cargo", passed=r"^test result: \w+\. (\d+) passed", skipped=r"^test result: .* (\d+) ignored"
    ),
    CountLine(
        tools="rspec",
        passed=r"^(\d+) examples?,",
        skipped=r"^\d+ examples?,.* (\d+) pending",
        failed=r"^\d+ examples?, (\d+) failures?",
    ),
    CountLine(
        tools="minitest, test-unit",
        passed=r"^(\d+) (?:runs|tests), \d+ assertions",
        skipped=r"^\d+ (?:runs|tests), .*? (\d+) (?:skips|omissions)",
        failed=r"\b(\d+) (?:failures|errors)\b",
    ),
    CountLine(
        tools="ExUnit",
        passed=r"^(?:\d+ \w+, )*(\d+) tests?, \d+ failure",
        skipped=r"^.*\d+ tests?, \d+ failures?.* (\d+) skipped",
        failed=r"\b(\d+) failures?\b",
    ),
    CountLine(
        tools="phpunit",
        passed=r"^(?:OK \(|Tests: )(\d+)",
        skipped=r"^Tests: .*Skipped: (\d+)",
        failed=r"\b(?:Failures|Errors): (\d+)",
    ),
    CountLine(
        tools="ctest",
        passed=r"^\d+% tests passed, .*out of (\d+)",
        failed=r"tests passed, (\d+) tests? failed",
    ),
    CountLine(
        tools="maven",
        passed=r"^(?:\[\w+\] )?Tests run: (\d+)(?=.*Skipped: \d+$)",
        skipped=r"^(?:\[\w+\] )?Tests run: .*Skipped: (\d+)$",
        failed=r"\b(?:Failures|Errors): (\d+)(?=.*Skipped: \d+$)",
    ),
    CountLine(
        tools="dotnet", passed=r"\bPassed: +(\d+), Skipped", skipped=r"\bPassed: .*\bSkipped: +(\d+), Total"
    ),
    CountLine(tools="prove", passed=r"^Files=\d+, Tests=(\d+)", skipped=r"^\.\. skipped: (\d+)"),
    CountLine(tools="playwright", passed=r"^ {2}(\d+) passed \(", skipped=r"^ {2}(\d+) skipped$"),
    CountLine(
        tools="deno", passed=r"\| (\d+) passed\b.* \| \d+ failed", skipped=r"\| \d+ failed \| (\d+) ignored"
    ),
    CountLine(
        tools="gtest", passed=r"^\[ {2}PASSED {2}\] (\d+) tests?", skipped=r"^\[ {2}SKIPPED \] (\d+) tests?,"
    ),
    CountLine(tools="ava", passed=r"^ +(\d+) tests? passed$", skipped=r"^ +(\d+) tests? skipped$"),
    CountLine(
        tools="nextest", passed=r"\btests? run: (\d+) passed", skipped=r"\btests? run: .*\b(\d+) skipped"
    ),
)
# A line with the name of a test that was skipped.
SKIPPED_TEST = r"^SKIPPED \[\d+\] (.+)$|^[ \t]*--- SKIP: (\S+)|^test (\S+) \.\.\. ignored|^ok \d+ - (.+?) # SKIP|^[ \t]*﹣ (.+?) \("


@frozen(kw_only=True)
class FailureReader:
    """How a tool prints one failure. Patterns match from the beginning of a line; the groups of `start` are `name`, `path` and `line`."""

    tools: str  # of several rows with the same tools, the first one counts that finds something
    start: str
    end: str = (
        r"\s*$|\S"  # the first line that is no longer part of it; `{indent}` is the group `indent` of `start`
    )
    heading: str | None = None  # a line whose group `path` is about those that follow
    after: str | None = None  # failures come only after this line
    until: str | None = None  # and before this one, from which on they are repeated
    place: str | None = None  # the line of a failure that has `path` and `line`
    needs_place: bool = False  # without one it is not a failure
    is_named_by_place: bool = (
        False  # its file is part of the name, since tests of other files may have the same one
    )
    needs_line: bool = False  # nor is it one without a line below it
    ignore: str | None = None  # a line of what is not a failure, such as a warning
    title_end: str | None = None  # the last character of the name, which may take several lines


_PATH = r"(?P<path>[^\s:()\[\]|][^:(\n]{0,300}?)"
_LINE = r"(?P<line>\d+)"
_AT = rf"\s+(?:at |❯ )(?:.{{0,200}}\()?(?:file://)?{_PATH}:{_LINE}:\d+\)?"
FAILURE_READERS = (
    FailureReader(
        tools="unittest",
        start=r"(?:FAIL|ERROR): (?P<name>\S+ \(.*)",
        end=r"={70}|Ran \d+ tests?",
        needs_line=True,
        place=rf'\s+File "{_PATH}", line {_LINE}',
    ),
    FailureReader(
        tools="jest",
        start=r" {2}● (?!Console$)(?P<name>.+)",
        end=r"(?:PASS|FAIL) |Test Suites: ",
        heading=r"FAIL (?:\S+ )?(?P<path>\S+\.\w+)",
        until=r"Summary of all failing tests",
        place=_AT,
    ),
    FailureReader(tools="uvu", start=r" {3}FAIL  (?P<name>.*\".+\")", end=r"\S| {2}Total: ", place=_AT),
    FailureReader(tools="vitest", start=r" FAIL  (?P<name>.+)", end=r"⎯{4}", place=_AT),
    FailureReader(
        tools="mocha",
        start=r" {2}\d+\) (?P<name>.+)",
        end="npm ",
        after=r"\s+\d+ failing$",
        place=_AT,
        title_end=":",
    ),
    FailureReader(
        tools="node --test, spec",
        start=r"✖ (?P<name>.+?) \([\d.]+ms\)$",
        end="test at ",
        heading=rf"test at {_PATH}:{_LINE}:\d+$",
        after=r"✖ failing tests:",
        place=_AT,
    ),
    FailureReader(
        tools="bats",
        start=r"not ok \d+ (?P<name>.+?)(?: in \d+ms)?$",
        end=r"[^#]",
        place=rf"# \((?:in|from) .*file {_PATH}, line {_LINE}\b",
        needs_place=True,
    ),
    FailureReader(
        tools="tape",
        start=r"not ok \d+ (?!.* # (?:TODO|SKIP))(?P<name>.*)",
        end=r" {2}\.\.\.$|(?:not )?ok \d|# ",
        heading=r"# (?P<path>(?!tests |pass |fail ).+)",
        place=rf"\s+at: .*\({_PATH}:{_LINE}:\d+\)",
        needs_place=True,
    ),
    FailureReader(
        tools="node --test, TAP",
        start=r"(?P<indent>\s*)not ok \d+ (?:- )?(?!.* # (?:TODO|SKIP))(?P<name>.*)",
        end=r"{indent}  \.\.\.$|\s*(?:not )?ok \d|\s*# ",
        place=rf"\s+location: '{_PATH}:{_LINE}:\d+'",
        is_named_by_place=True,
        ignore=r"\s+failureType: 'subtestsFailed'",
    ),
    FailureReader(
        tools="cargo test",
        start=r"---- (?P<name>.+) stdout ----$",
        end=r"failures:$|test result:|stack backtrace:|note: ",
        place=rf"thread .* panicked at {_PATH}:{_LINE}:",
    ),
    FailureReader(tools="cargo test", start=r"test (?P<name>\S.*) \.\.\. FAILED$", end=""),
    FailureReader(
        tools="go test",
        start=r"\s*--- FAIL: (?P<name>\S+) \(",
        end=r"FAIL|ok\s|PASS$|\?\s|=== |\s*--- ",
        place=rf"\s+{_PATH}:{_LINE}(?:: | \+0x)",
    ),
    FailureReader(tools="go", start=r"FAIL\t(?P<name>\S+ \[(?:build|setup) failed\])", end=""),
    FailureReader(
        tools="rspec",
        start=r" {2}\d+\) (?P<name>.+)",
        end=r"\S",
        after="Failures:$",
        place=rf"\s+# {_PATH}:{_LINE}:in",
    ),
    FailureReader(
        tools="rspec files",
        start=r"An error occurred (?P<name>(?:while|in) .+)",
        end="No examples|Finished in",
    ),
    FailureReader(
        tools="minitest",
        start=r"(?P<name>[A-Z#].*?#test_.*?)(?: \[\S.*:\d+\])?:$",
        end=r" {1,3}\d+\) (?:Failure|Error|Skipped):$|\d+ runs, |(?:bin/)?rails test ",
        place=rf"\s+{_PATH}:{_LINE}:in",
    ),
    FailureReader(
        tools="test-unit",
        start=r"(?:Failure|Error): (?P<name>test.*?\([A-Z][\w:]*\)).*",
        end="={20}",
        place=rf"{_PATH}:{_LINE}:in",
    ),
    FailureReader(
        tools="ExUnit",
        start=r" {2}\d+\) (?P<name>(?:test|doctest|property) .+ \([A-Z][\w.]*\))$",
        end=r"\S| {2}\d+\) ",
        place=rf" {{5}}{_PATH}:{_LINE}$",
    ),
    FailureReader(
        tools="meson",
        start=r"\s*\d+/\d+ (?P<name>.+?) +(?:FAIL|ERROR|TIMEOUT)\b.*",
        end=r"\s*\d+/\d+ ",
        until="Summary of Failures:|Ok: +\\d",
    ),
    FailureReader(
        tools="phpunit",
        start=r"\d+\) (?P<name>\S+::.+)",
        end=r"--$|ERRORS!|FAILURES!|Tests: ",
        place=rf"(?P<path>\S.*\.php):{_LINE}$",
    ),
    FailureReader(
        tools="prove",
        start=r"\s*#\s+Failed test '?(?P<name>(?<=').+(?='$)|at \S+ line \d+)",
        end=r"(?!\s*#\s)|\s*#\s+Failed test|\s*# Looks like ",
        place=rf"\s*#\s+at {_PATH} line {_LINE}\.",
    ),
    FailureReader(tools="perl", start=r"(?P<name>.+ at \S+ line \d+, (?:near|at) .*)"),
    FailureReader(
        tools="perl, at run time",
        start=r"(?P<name>(?!#|BEGIN|Compilation).+ at \S+ line \d+\.)$",
        end=r"(?!BEGIN failed|Compilation failed|# Looks like your test exited)",
        place=r"BEGIN failed|Compilation failed|# Looks like your test exited",
        needs_place=True,
    ),
    FailureReader(
        tools="ctest",
        start=r"\s*\d+/\d+ Test +#\d+: (?P<name>.+?) \.*\s*\*\*\*",
        end=r"\s*Start +\d+:|\d+% tests",
    ),
    FailureReader(
        tools="biome",
        start=rf"{_PATH}(?::{_LINE}:\d+)? (?P<name>[a-zA-Z]+(?:/\w+)*) .*━",
        end=r"Checked \d|Skipped \d|\S+ ━|The number of",
        ignore=r" {2}! ",
    ),
    FailureReader(
        tools="rustc, ruff",
        start=r"(?P<name>(?:error(?:\[\w+\])?:|[A-Z]{1,5}\d{3,4}|invalid-syntax:|unformatted:) .*)",
        end=r"\s*$",
        place=rf"\s*--> {_PATH}:{_LINE}:\d+",
        needs_place=True,
    ),
    FailureReader(
        tools="eslint",
        start=rf"\s+{_LINE}:\d+\s+(?:error|✖|×)\s+(?P<name>.+)",
        heading=r"(?P<path>/?\S.*\.\w+)$",
    ),
    FailureReader(
        tools="eslint", start=rf"\s+{_LINE}:\d+\s+warning\s+(?P<name>.+)", heading=r"(?P<path>/?\S.*\.\w+)$"
    ),
    FailureReader(tools="tsc", start=rf"{_PATH}\({_LINE},\d+\): (?P<name>error .*)"),
    FailureReader(
        tools="mypy, pyright, gcc, tsc --pretty",
        start=rf"\s*{_PATH}:{_LINE}(?::\d+)?:? (?:- )?(?P<name>(?:fatal )?error\b.*)",
    ),
    FailureReader(
        tools="flake8, ruff, go vet, rubocop",
        start=rf"(?P<path>[^\s:]+(?:\.\w+|file)):{_LINE}:\d+: (?!note|warning)(?P<name>\S.*)",
    ),
    FailureReader(
        tools="black",
        start=r"(?P<name>[Ww]ould reformat:? .+|error: cannot (?:format|parse):? .+?(?=:\d|$))",
    ),
    FailureReader(
        tools="prettier",
        start=r"\[(?:warn|error)\] (?!Code style|Ignored|Invalid| )(?P<path>[^\s:]+\.\w+)(?::(?P<name> \w*Error: .*)|$)",
    ),
    FailureReader(tools="gofmt -l", start=r"(?P<path>[^\s:]+\.go)$"),
    FailureReader(tools="cargo fmt", start=rf"Diff in {_PATH}:{_LINE}:", end="Diff in "),
)
# What a tool says of all failures together.
SUMMARY = (
    r"=*\s?[1-9]\d* (?:failed|errors?)\b.* in [\d.]+|FAILED \(|Ran \d+ tests? in|(?:Tests|Test Suites|Test Files):? +\d|\s+(?:Tests|Test Files)  \d|\s+\d+ (?:passing|failing|pending)\b|"
    r"[#ℹ] (?:tests|pass|fail) \d|test result: |FAIL$|\d+ examples?, |\d+ (?:runs|tests?), \d+ (?:assertion|failure)|(?:Ok|Fail): +\d|Tests: |\s+(?:Total|Passed|Skipped): +\d|\d+% tests passed|Found \d+ |\d+ errors?, |✖ \d+ problem|\d+ files? would|error: could not compile|!+ "
)
# Lines that show that tests ran and failed: not a usage error, nor a coverage that is too low.
FAILED_TESTS = (
    r"(?m)^=*\s?[1-9]\d* failed\b.* in [\d.]+s|^Test(?: Suite)?s:\s+[1-9]\d* failed|^[ \t]+Test(?:s| Files)  [1-9]\d* failed|"
    r"^[ \t]*--- FAIL: |^[#ℹ] fail [1-9]|^[ \t]*[1-9]\d* failing\b"
)
# What a run has left out because of a failure: without it, more failures may be there.
INCOMPLETE = r"!+ Interrupted: (?P<count>\d+) errors? during collection !+$|ImportError while loading conftest|.*\(errors prevented further checking\)$|error: could not compile |PHP Fatal error: .*|.*[1-9]\d* errors? occurred outside of examples$"
# Usage and configuration: the check has not begun, and no file that it checks is the cause.
_TOOL_NAMES = r"(?:pytest|py\.test|mypy|meson|flake8|pylint|pyright|coverage|isort|bandit|python\S* -m \w+|__main__\.py|manage\.py test)"
NOT_CONFIGURED = (
    rf"{_TOOL_NAMES}: error: (?:unrecognized arguments|Missing target module|the following arguments|argument |option |ambiguous option).*"
    r"|ERROR: file or directory not found: .*|There are no \.py\[i\] files in .*"
    r"|error: (?:unexpected argument|unrecognized subcommand|invalid value) '.*|Error: [Nn]o such (?:option|flag|command).*"
    r"|Unexpected option --\S+|Invalid option '--.*|ESLint couldn't find (?:an? eslint\.config|a configuration file|the plugin|the config).*"
    r"|(?:\[error\] )?No files matching the pattern .*|error TS(?:5\d{3}|6\d{3}|18003): .*|tsc: The TypeScript Compiler - .*"
    r"|● (?:Unrecognized CLI Parameter|Validation Error).*|No tests? (?:files? )?found, exiting with code 1|Error: No test files found.*|CACError: Unknown option .*"
    r"|invalid option: -.*|flag provided but not defined: .*|Unknown option \"-.*|Failed to change working directory to .*|\S*node: bad option: .*"
    r"|g?make: \*\*\* No rule to make target '[^']*'\. +Stop\.|Error: (?:\S*/)?build is not a directory|Error: could not load cache|ERROR: No such build data file as .*|\*\* \(Mix\) Could not invoke task .*"
    r"|Cannot detect source of '--.*|Error: Bad command line option '.*|Error: Must specify at least one <test>"
    r"|npm (?:ERR!|error) (?:npx )?canceled due to missing packages.*|npm (?:ERR!|error) code E404|npm (?:ERR!|error) network .*"
    r"|(?:error: |  )?failed to download .*|.*Could(?: not|n't) resolve host.*|go: .*: dial tcp: .*"
)


@frozen
class EmptyRun:
    """How a tool says that it has checked nothing, and how it says that it has checked something."""

    tools: str
    nothing: str
    something: str | None = None
    checks: tuple[str, ...] = ("tests",)
    is_alone: bool = False  # it counts only if nothing else was printed: what else ran may print anything


# What a tool prints if it has skipped all tests that it has found, where it counts these as tests that ran.
ALL_SKIPPED = (
    r"^Ran (?P<unittest>\d+) tests? in .*\n+OK \(skipped=(?P=unittest)\)$",
    r"\bTests run: (?P<maven>\d+), Failures: 0, Errors: 0, Skipped: (?P=maven)\b|\bTests are skipped\.",
    r"^> Task \S*:test SKIPPED$",
    r"^(?P<rspec>\d+) examples?, 0 failures, (?P=rspec) pending",
    r"^Tests: (?P<phpunit>\d+), Assertions: 0, Skipped: (?P=phpunit)\.",
    r"^(?P<minitest>\d+) runs, 0 assertions, 0 failures, 0 errors, (?P=minitest) skips",
    r"^Skipped! +- Failed: +0, Passed: +0\b.*",
    r"\bExecuted (?P<swift>\d+) tests?, with (?P=swift) tests? skipped.*",
    r"^(?:not )?ok \d+.*# (?:SKIP|TODO)\b.*",
    r"^ +\d+ skipped$|^ +\S+: SKIP \(.*",
    r"^No tasks were executed\b.*",
)
_LOOKS = ("lint", "format")
EMPTY_RUNS = (
    EmptyRun(
        "most",
        r"\bno tests? (?:ran|found|collected|files? found|executed|to run|were found|were executed|specified|configured|yet)\b|^0 (?:tests|specs|examples|runs)(?:,|$)",
        r"\b[1-9]\d* (?:tests? |specs? |examples? )?(?:pass|passed|passing|passes|succeeded|ok|x?fail|x?failed|failing|xpassed)\b"
        r"|^[ \t]*[1-9]\d* (?:tests?|examples?|runs?|assertions?|doctests?|properties), ",
    ),
    EmptyRun("pytest", r"\bcollected 0 items\b|^=*\s?(?:\d+ (?:skipped|deselected|warnings?),? )+in (?=\d)"),
    EmptyRun("unittest, lein", r"\bRan 0 tests\b", r"\bRan [1-9]\d* tests? (?:in|containing) "),
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
    EmptyRun("ExUnit", r"^There are no tests to run|^0 failures$"),
    EmptyRun("meson", r"^No tests defined\.", r"^Ok: +[1-9]"),
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
    EmptyRun("automake", r"^# TOTAL: +0$"),
    EmptyRun("swift, xcodebuild", r"\bExecuted 0 tests\b", r"\bExecuted [1-9]"),
    EmptyRun("dart, flutter", r"\bNo tests ran\b", r"\+[1-9][\d ~-]*: All tests passed"),
    EmptyRun("prove", r"^Result: NOTESTS", r"\bTests=[1-9]"),
    EmptyRun("ruff, black", r"\bNo Python files (?:found|are present)\b", checks=_LOOKS),
    EmptyRun("pre-commit", r"\(no files to check\) *Skipped", r"\.(?:Passed|Failed)$", checks=_LOOKS),
    EmptyRun("pyright", r"\bNo source files found\b", checks=("types",)),
    # A folder with the name of the target, and no .PHONY. What is built may be up to date.
    EmptyRun(
        "make, ninja",
        r"^(?:\S*/)?g?make(?:\[\d+\])?: (?:Nothing to be done for .*|[`'].*' is up to date\.)$|^ninja: no work to do\.$",
        checks=("tests", "types", *_LOOKS),
        is_alone=True,
    ),
)
