"""Known check programs: how they end when they find something, and where they write it."""

import re

from turngate.settings.invocation import Texts, skip_wrappers

# They end with an exit code other than 2 when they find something. Not here: make, tsc, phpunit, mix and stylelint,
# which end with 2.
_TOOLS = frozenset(
    [
        "pytest",
        "py.test",
        "mypy",
        "ruff",
        "flake8",
        "pylint",
        "black",
        "isort",
        "pyright",
        "bandit",
        "tox",
        "nox",
        "unittest",
        "pre-commit",
        "eslint",
        "jest",
        "vitest",
        "prettier",
        "biome",
        "oxlint",
        "playwright",
        "cypress",
        "rspec",
        "rubocop",
        "golangci-lint",
        "shellcheck",
        "hadolint",
        "ktlint",
        "swiftlint",
    ]
)
# With one of these subcommands.
_SUBCOMMANDS = {
    "cargo": frozenset(["test", "check", "clippy", "build", "fmt", "nextest"]),
    "go": frozenset(["test", "build"]),
    "dotnet": frozenset(["test", "build", "format"]),
    "mvn": frozenset(["test", "verify", "package"]),
    "gradle": frozenset(["test", "check", "build"]),
    "gradlew": frozenset(["test", "check", "build"]),
    "deno": frozenset(["test", "lint", "check", "fmt"]),
    "swift": frozenset(["test", "build"]),
    "bun": frozenset({"test"}),
}
_PACKAGE_MANAGERS = frozenset(("npm", "pnpm", "yarn", "bun"))
_PACKAGE_SCRIPT = re.compile(
    r"(?!.*(?:type|tsc))(?:.*[:_-])?(?:test|lint|check|format|build|verify|ci|qa)(?:[:_-].*)?",
    re.DOTALL,
)
# They run another program, after these words.
_RUNNERS = {
    "npx": (),
    "bunx": (),
    "uv": ("run",),
    "poetry": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "pipenv": ("run",),
    "rye": ("run",),
    "bundle": ("exec",),
    "pnpm": ("exec",),
    "yarn": ("exec",),
    "npm": ("exec",),
    "python": ("-m",),
    "python3": ("-m",),
}
_WRITES_TO_STDOUT = frozenset(
    ("pytest", "mypy", "ruff", "flake8", "pylint", "eslint", "pyright", "shellcheck")
)
_ENDLESS = re.compile(r"watch|dev|serve|start|.*:watch|watch:.*")


def check_tool(texts: Texts) -> str | None:
    """Return the name of the check program that a command runs; None for any other command."""
    words = _program_words(texts)
    if not words:
        return None
    name, *rest = words
    arguments = [word for word in rest if not word.startswith("-")]
    if name in _TOOLS or (name in _SUBCOMMANDS and arguments and arguments[0] in _SUBCOMMANDS[name]):
        return name
    if name in _PACKAGE_MANAGERS and _is_package_check(name, arguments):
        return name
    if name in _RUNNERS:
        before = _RUNNERS[name]
        return check_tool([*rest[len(before) :]]) if tuple(rest[: len(before)]) == before else None
    return None


def _program_words(texts: Texts) -> list[str]:
    """Return the words from the program on, the program without its folder; nothing if a word is not known."""
    start = skip_wrappers(texts)
    words = list(texts[start:]) if start is not None else []
    while words and (words[0] or "").startswith("-"):  # npx --no-install eslint
        words.pop(0)
    known = [word for word in words if word is not None]
    if not known or len(known) < len(words):
        return []
    return [known[0].rsplit("/", 1)[-1], *known[1:]]


def _is_package_check(name: str, arguments: list[str]) -> bool:
    if arguments[:1] in (["run"], ["run-script"]):
        arguments = arguments[1:]
    elif arguments[:1] not in (["test"], ["t"]) and name == "npm":
        return False
    return bool(arguments) and (arguments[0] == "t" or bool(_PACKAGE_SCRIPT.fullmatch(arguments[0])))


def is_silent_check(texts: Texts) -> bool:
    """Whether the command is a check that prints nothing and ends with 1 when it fails."""
    name, *rest = texts or [None]
    options = [word or "" for word in rest]
    match name:
        case "test" | "[":
            return True
        case "grep" | "egrep" | "fgrep":
            return any(re.fullmatch(r"-[a-pr-zA-Z]*q[a-zA-Z]*|--quiet|--silent", word) for word in options)
        case "git":
            return options[:1] == ["diff"] and "--quiet" in options
        case "cmp":
            return "-s" in options
        case _:
            return False


def writes_to_stdout(tool: str) -> bool:
    return tool in _WRITES_TO_STDOUT


def never_ends(texts: Texts) -> bool:
    """Whether the command is a server or a watcher."""
    words = _program_words(texts)
    if not words:
        return False
    name, *rest = words
    if name == "tail":
        return any(re.fullmatch(r"-\w*[fF]|--follow(?:=.*)?", word) for word in rest)
    if name == "sleep":
        return rest == ["infinity"]
    if name in _PACKAGE_MANAGERS:
        script = rest[1] if rest[:1] == ["run"] and len(rest) > 1 else rest[0] if rest else ""
        return bool(_ENDLESS.fullmatch(script)) or "--watch" in rest
    return check_tool(texts) is not None and any(word in ("--watch", "--watchAll") for word in rest)
