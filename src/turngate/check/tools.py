"""Which check program a command runs, whether it is silent, and whether it ends."""

import re

from turngate.core.shell.invocation import Texts, skip_wrappers
from turngate.gates.toolchains import BY_NAME, PACKAGE_MANAGERS, RUNNERS

_PACKAGE_SCRIPT = re.compile(
    r"(?!.*(?:type|tsc))(?:.*[:_-])?(?:test|lint|check|format|build|verify|ci|qa)(?:[:_-].*)?",
    re.DOTALL,
)
_ENDLESS = re.compile(r"watch|dev|serve|start|.*:watch|watch:.*")


def check_tool(texts: Texts) -> str | None:
    """Return the check program that a command runs, if it ends with 1 when it finds something: not tsc or make, which end with 2."""
    words = _program_words(texts)
    if not words:
        return None
    name, *rest = words
    arguments = [word for word in rest if not word.startswith("-")]
    tool = BY_NAME.get(name)
    codes = tool.ends_with_1 if tool else None
    if codes == "" or (codes and arguments and re.fullmatch(codes, arguments[0])):
        return name
    if name in PACKAGE_MANAGERS and _is_package_check(name, arguments):
        return name
    before = RUNNERS[name].split() if name in RUNNERS else None
    return check_tool(rest[len(before) :]) if before is not None and rest[: len(before)] == before else None


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
    return tool in BY_NAME and BY_NAME[tool].prints_to_stdout


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
    if name in PACKAGE_MANAGERS:
        script = rest[1] if rest[:1] == ["run"] and len(rest) > 1 else rest[0] if rest else ""
        return bool(_ENDLESS.fullmatch(script)) or "--watch" in rest
    return check_tool(texts) is not None and any(word in ("--watch", "--watchAll") for word in rest)
