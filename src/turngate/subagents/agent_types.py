"""The kinds of children: two that are built in, and those that people describe in a file with a front matter."""

import glob
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

MOST = 100_000  # characters of one file
READ_ONLY = ("Read", "Glob", "Grep")


@dataclass(frozen=True)
class AgentType:
    """What a child is told before its task, and which tools it has; None: those of its parent."""

    name: str
    description: str = ""
    instructions: str = ""
    tools: tuple[str, ...] | None = None
    model: str | None = None
    file: str = ""


BUILT_IN = (
    AgentType(
        "general-purpose",
        "Works on any task with all tools, and reports what it found or did.",
        "You work on one task for another agent. Do all of it, check it, and end with a report that stands on its own: "
        "your last answer is everything that the other agent gets.",
    ),
    AgentType(
        "Explore",
        "Looks around in the project and answers a question about it; changes nothing.",
        "You answer a question about this project for another agent. You can only look. End with an answer that stands "
        "on its own, and name the files that it rests on: it is everything that the other agent gets.",
        READ_ONLY,
    ),
)


def load_agent_types(
    project: str, plugin_dirs: Sequence[str] = (), home: str | None = None, *, known_tools: Collection[str]
) -> tuple[dict[str, AgentType], list[str]]:
    """Every kind by its name, and what is wrong with the files; what is nearer to the project wins."""
    found = {kind.name: kind for kind in BUILT_IN}
    problems: list[str] = []
    for path in _files(project, plugin_dirs, home if home is not None else os.path.expanduser("~")):
        kind, problem = _read(path, known_tools)
        if problem:
            problems.append(problem)
        if kind:
            found[kind.name] = kind
    return found, problems


def _files(project: str, plugin_dirs: Sequence[str], home: str) -> Iterator[str]:
    for folder in plugin_dirs:
        root = glob.escape(os.path.join(project, os.path.expanduser(folder)))
        yield from sorted(glob.glob(os.path.join(root, "agents", "*", "AGENT.md")))
    for root in (home, project):
        for family in (".claude", ".turngate"):
            folder = glob.escape(os.path.join(root, family, "agents"))
            yield from sorted(glob.glob(os.path.join(folder, "*.md")))


def _read(path: str, known_tools: Collection[str]) -> tuple[AgentType | None, str | None]:
    if not os.path.isfile(path):  # a pipe or a device would hold us
        return None, f"{path} is no regular file; this agent is left out"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(MOST + 1)
    except OSError as error:
        return None, f"{path} can not be read: {error.strerror}; this agent is left out"
    if len(text) > MOST:
        return None, f"{path} is longer than {MOST} characters; this agent is left out"
    head, body = _parts(text)
    name = _text(head.get("name")) or _named_by(path)
    tools = _list(head.get("tools"))
    model = _text(head.get("model"))  # a short name, as other programs have them, means nothing here
    kind = AgentType(
        name,
        _text(head.get("description")),
        body.strip(),
        tools,
        model if ":" in model else None,
        path,
    )
    unknown = [name for name in tools or () if name not in known_tools]
    return kind, _problem(path, head, model, unknown)


def _problem(path: str, head: Mapping[str, object], model: str, unknown: Sequence[str]) -> str | None:
    """The first thing that is not as its author meant it."""
    if not head:
        return f"{path} has no front matter; its name is taken from the file"
    if unknown:
        return f"{path} names tools that there are not: {', '.join(unknown)}; this agent works without them"
    if model and model != "inherit" and ":" not in model:
        return f"{path} names the model {model!r}, which is not PROVIDER:NAME; its parent's model is used"
    return None


def _named_by(path: str) -> str:
    stem = os.path.splitext(os.path.basename(path))[0]
    return os.path.basename(os.path.dirname(path)) if stem == "AGENT" else stem


def _parts(text: str) -> tuple[dict[str, str | list[str]], str]:
    """The front matter between two lines of `---`, and what follows it."""
    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return {}, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        return {}, text
    return _fields(lines[1:end]), "\n".join(lines[end + 1 :])


def _fields(lines: Sequence[str]) -> dict[str, str | list[str]]:
    """The little of YAML that people write there: `key: value`, folded lines, and lists with dashes or brackets."""
    found: dict[str, str | list[str]] = {}
    key = ""
    for line in lines:
        if line.strip() == "" or line.lstrip().startswith("#"):
            continue
        if line[0] not in " \t-" and ":" in line:
            key, _, value = line.partition(":")
            key = key.strip()
            found[key] = "" if value.strip() in (">", "|", ">-", "|-") else _unquoted(value)
        elif key and line.lstrip().startswith("- "):
            earlier = found[key]
            item = _unquoted(line.lstrip()[2:])
            found[key] = [*earlier, item] if isinstance(earlier, list) else [item]
        elif key and isinstance(found[key], str):
            found[key] = f"{found[key]} {line.strip()}".strip()
    return found


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _text(value: str | list[str] | None) -> str:
    return value.strip() if isinstance(value, str) else ""


def _list(value: str | list[str] | None) -> tuple[str, ...] | None:
    """None: nothing is said, or everything."""
    if value is None or value in ("", "*", ["*"]):
        return None
    items = value if isinstance(value, list) else value.strip("[]").split(",")
    return tuple(name for item in items if (name := _unquoted(item)))


def describe_types(kinds: Mapping[str, AgentType]) -> str:
    """The kinds as the model is told about them."""
    return "\n".join(f"- {kind.name}: {kind.description or 'no description'}" for kind in kinds.values())
