"""Agent types: two that are built in, and those that Markdown files with a front matter describe."""

import glob
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from turngate.core.tools import tool_names
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.subagents.front_matter import (
    as_names,
    as_text,
    is_unclosed,
    nested_lines,
    split_front_matter,
)

MAX_FILE_CHARS = 100_000
MAX_FILE_BYTES = 4 * MAX_FILE_CHARS  # UTF-8 has at most four bytes per character
READ_ONLY = ("Read", "Glob", "Grep")


@dataclass(frozen=True)
class AgentType:
    """A subagent's instructions, tools and model; None means those of its parent."""

    name: str
    description: str = ""
    instructions: str = ""
    tools: tuple[str, ...] | None = None
    model: str | None = None
    file: str = ""
    disallowed_tools: tuple[str, ...] = ()  # names or patterns; removed from the tools
    level: str = field(default="", compare=False)  # user, project or plugin
    family: str = field(default="", compare=False)  # of the folder: claude or turngate
    is_unclosed: bool = field(default=False, compare=False)  # the front matter has no end, so it is not read
    # `hooks` of the front matter; `agent_hooks.py` reads them.
    hook_lines: tuple[str, ...] | None = field(default=None, compare=False, repr=False)


BUILT_IN = (
    AgentType(
        "general-purpose",
        "Works on any task with all tools, and reports what it found or did.",
        "You work on one task for another agent. Complete it, check your work, and end with a self-contained report: "
        "your last answer is all that the other agent receives.",
    ),
    AgentType(
        "Explore",
        "Explores the project and answers a question about it; changes nothing.",
        "You answer a question about this project for another agent. Your tools only read. End with a self-contained "
        "answer that names the files it is based on: it is all that the other agent receives.",
        READ_ONLY,
    ),
)


def load_agent_types(
    project: str, plugin_dirs: Sequence[str] = (), home: str | None = None, *, known_tools: Collection[str]
) -> tuple[dict[str, AgentType], list[str]]:
    """Return the agent types by name, and the problems of their files. Files closer to the project win."""
    agent_types = {agent_type.name: agent_type for agent_type in BUILT_IN}
    problems: list[str] = []
    places = agent_files(project, plugin_dirs, home if home is not None else os.path.expanduser("~"))
    for level, family, path in places:
        agent_type, problem = read_agent_file(path, known_tools)
        if problem:
            problems.append(problem)
        if agent_type:
            agent_types[agent_type.name] = replace(agent_type, level=level, family=family)
    return agent_types, problems


def agent_files(project: str, plugin_dirs: Sequence[str], home: str) -> Iterator[tuple[str, str, str]]:
    """Return level, family and path of each file, weakest first."""
    for folder in plugin_dirs:
        root = glob.escape(os.path.join(project, os.path.expanduser(folder)))
        for path in sorted(glob.glob(os.path.join(root, "agents", "*", "AGENT.md"))):
            yield "plugin", "claude", path
    for level, root in (("user", home), ("project", project)):
        for family in ("claude", "turngate"):
            folder = glob.escape(os.path.join(root, f".{family}", "agents"))
            for path in sorted(glob.glob(os.path.join(folder, "*.md"))):
                yield level, family, path


def read_agent_file(path: str, known_tools: Collection[str]) -> tuple[AgentType | None, str | None]:
    """Return the agent type of a file, and what is wrong with the file."""
    text, problem = read_text(path)
    if text is None:
        return None, f"{problem}; this agent type is not loaded"
    return _parse(path, text, known_tools)


def read_text(path: str) -> tuple[str | None, str | None]:
    """Return the content of a file, or why it cannot be read."""
    try:
        text = read_bytes(path, MAX_FILE_BYTES).decode("utf-8", "replace")
    except (NotARegularFile, FileNotFoundError):
        return None, f"{path} is not a regular file"
    except OSError as error:
        return None, f"{path} cannot be read: {error.strerror}"
    except FileTooLarge:
        return None, _too_long(path)
    return (text, None) if len(text) <= MAX_FILE_CHARS else (None, _too_long(path))


def _too_long(path: str) -> str:
    return f"{path} is longer than {MAX_FILE_CHARS} characters"


def _parse(path: str, text: str, known_tools: Collection[str]) -> tuple[AgentType, str | None]:
    fields, body = split_front_matter(text)
    tools = as_names(fields.get("tools"))
    model = as_text(fields.get("model"))
    agent_type = AgentType(
        as_text(fields.get("name")) or _name_from(path),
        as_text(fields.get("description")),
        body.strip(),
        tools,
        model
        if ":" in model
        else None,  # short names of other programs, such as "sonnet", are not models here
        path,
        disallowed_tools=(disallowed := _disallowed(fields.get("disallowedTools"))),
        is_unclosed=is_unclosed(text),
        hook_lines=None if (lines := nested_lines(text, "hooks")) is None else tuple(lines),
    )
    if not fields:
        return agent_type, f"{path} has no front matter; the agent type is named after the file"
    unknown = [name for name in tools or () if name not in known_tools]
    without_effect = [
        name for name in disallowed if not any(is_disallowed(each, [name]) for each in known_tools)
    ]
    return agent_type, _problem(path, model, unknown, without_effect)


def _disallowed(value: str | list[str] | None) -> tuple[str, ...]:
    """Claude Code: "Tools to deny, removed from inherited or specified list". `Bash(git *)` removes Bash as a whole."""
    names = ("*",) if value in ("*", ["*"]) else as_names(value) or ()
    return tuple(name for each in names if (name := each.partition("(")[0].strip()))


def is_disallowed(tool: str, disallowed: Iterable[str]) -> bool:
    """Return whether one of these names or patterns is a name of the tool; upper case does not matter."""
    return any(
        fnmatchcase(name.casefold(), pattern.casefold())
        for pattern in disallowed
        for name in tool_names(tool)
    )


def _problem(path: str, model: str, unknown: Sequence[str], without_effect: Sequence[str]) -> str | None:
    if without_effect:
        return f"{path} disallows unknown tools: {', '.join(without_effect)}; this has no effect"
    if unknown:
        return f"{path} names unknown tools: {', '.join(unknown)}; this agent type works without them"
    if model and model != "inherit" and ":" not in model:
        return f"{path} names the model {model!r}, expected PROVIDER:NAME; the parent's model is used"
    return None


def _name_from(path: str) -> str:
    stem = os.path.splitext(os.path.basename(path))[0]
    return os.path.basename(os.path.dirname(path)) if stem == "AGENT" else stem


def describe_types(agent_types: Mapping[str, AgentType]) -> str:
    """Return the list of agent types for the model."""
    return "\n".join(
        f"- {each.name}: {each.description or 'no description'}" for each in agent_types.values()
    )
