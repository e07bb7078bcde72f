"""Agent types: two that are built in, and those of Markdown files, with the hooks in their front matter."""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from itertools import accumulate, islice, takewhile

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.checkpoints import CheckpointError, Stage, split_stages
from turngate.core.conversation.tools import READ_ONLY, TOOL_ALIASES, TOOL_NAMES, tool_names
from turngate.core.dialect import ALL_DIALECTS, Dialect
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import truncate
from turngate.project.files import LOCAL, Files
from turngate.project.safe_paths import is_sensitive, real_path
from turngate.settings.front_matter import (
    NotUnderstood,
    as_names,
    as_text,
    count_lines_before,
    is_unclosed,
    nested_lines,
    parse_nested,
    split_front_matter,
)
from turngate.settings.parse import HooksParser
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes, settings_snapshot
from turngate.settings.plugin_folders import display_name
from turngate.settings.problem_log import ProblemLog

MAX_FILE_CHARS = 100_000
MAX_FILE_BYTES = 4 * MAX_FILE_CHARS  # UTF-8 has at most four bytes per character
MAX_FILES = 500  # of all agent types; the others are not read
MAX_TOTAL_BYTES = 4 * 1024 * 1024  # of these files
MAX_SHOWN_TOOLS = 5  # of those that a file names and that are not known
MAX_TOOL_CHARS = 100  # of the name of one
PLACES = ("here", "workers", "git")  # where subagents run; the last: on workers with a clone
MAX_NOTICES = 5  # of one kind about files
KNOWN_TOOLS = (*TOOL_NAMES, *TOOL_ALIASES)


@frozen
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
    # If it has checkpoints: the instructions up to each of them. `instructions` are those up to the first one.
    stages: tuple[Stage, ...] = field(default=(), compare=False, repr=False)
    checkpoint: str | None = field(default=None, compare=False)  # at which these instructions end
    is_unclosed: bool = field(default=False, compare=False)  # the front matter has no end, so it is not read
    # `hooks` of the front matter; `parse_hooks` reads them.
    hook_lines: tuple[str, ...] | None = field(default=None, compare=False, repr=False)
    runs: str = field(default="", compare=False)  # where: `here` or `workers`; "": as the session says
    labels: tuple[str, ...] = field(default=(), compare=False)  # that a worker needs

    def at_stage(self, approvals: int) -> "AgentType":
        """Return the agent type with the instructions that so many approved checkpoints open."""
        if not self.stages:
            return self
        begun = self.stages[: approvals + 1]
        last = replace(begun[-1], text="\n\n".join(stage.text for stage in begun).strip())
        return replace(self, instructions=last.prompt(is_first=True), checkpoint=last.checkpoint)


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
    project: str, plugin_dirs: Sequence[str] = (), home: str | None = None, *, files: Files
) -> tuple[dict[str, AgentType], list[str]]:
    """Return the agent types by name, and the problems of their files. Files closer to the project win."""
    agent_types = {agent_type.name: agent_type for agent_type in BUILT_IN}
    problems: list[str] = []
    files = settings_snapshot(files, project)
    places, unread = agent_files(project, plugin_dirs, home if home is not None else files.home, files)
    if unread:
        problems.append(f"{unread[0]} {describe_unread(len(unread))}")
    for level, family, path in places:
        agent_type, problem = read_agent_file(path, files)
        if problem:
            problems.append(problem)
        if agent_type:
            agent_types[agent_type.name] = replace(agent_type, level=level, family=family)
    return agent_types, problems


def first_notices(notices: Sequence[str]) -> list[str]:
    """Return the first notices about files of agent types, and one that counts the others."""
    left_out = len(notices) - MAX_NOTICES
    if left_out <= 0:
        return list(notices)
    others = "notice about agent types is" if left_out == 1 else "notices about agent types are"
    hint = "`turngate check` names files that are not loaded"
    return [*notices[:MAX_NOTICES], f"{left_out} more {others} not shown; {hint}"]


Place = tuple[str, str, str]  # level, family and path of a file


def agent_files(
    project: str, plugin_dirs: Sequence[str], home: str, files: Files
) -> tuple[list[Place], list[str]]:
    """Return the files that are read, weakest first, and the paths of the others."""
    places: list[Place] = []
    for folder in plugin_dirs:
        agents = os.path.join(project, files.expand_home(folder), "agents")
        places += [("plugin", "claude", path) for path in _files_of(agents, files)]
    for level, root in (("user", home), ("project", project)):
        for family in ("claude", "turngate"):
            agents = os.path.join(root, f".{family}", "agents")
            places += [(level, family, path) for path in _files_of(agents, files)]
    paths = [path for *_, path in places]
    count = count_readable(paths, files)
    return places[:count], paths[count:]


def count_readable(paths: Iterable[str], files: Files) -> int:
    """Return how many of these files may be read, from the first one on."""
    sizes = accumulate(_size(path, files) for path in islice(paths, MAX_FILES))
    return sum(1 for _ in takewhile(lambda total: total <= MAX_TOTAL_BYTES, sizes))


def describe_unread(count: int) -> str:
    """Return a message that follows the path of the first of these files."""
    others = f", nor are {count - 1:,} more" if count > 1 else ""
    return f"is not read{others}: at most {MAX_FILES} files with {MAX_TOTAL_BYTES // 1024**2} MiB are"


def _size(path: str, files: Files) -> int:
    """Return how much of a file is read: nothing of one that is too large."""
    try:
        size = files.stat(path).st_size
    except (OSError, ValueError):
        return 0
    return size if size <= MAX_FILE_BYTES else 0


def _files_of(folder: str, files: Files) -> Iterator[str]:
    for pattern in (("*", "AGENT.md"), ("*.md",)):
        yield from sorted(files.match(os.path.join(glob.escape(folder), *pattern)))


def read_agent_file(path: str, files: Files) -> tuple[AgentType | None, str | None]:
    """Return the agent type of a file, and what is wrong with the file."""
    text, problem = read_text(path, files)
    if text is None:
        return None, f"{problem}; this agent type is not loaded"
    return _parse(path, text)


def read_text(path: str, files: Files) -> tuple[str | None, str | None]:
    """Return the content of a file that is sent to a model, or why it cannot be read."""
    text: str | None
    if files.islink(path) and is_sensitive(os.path.relpath(files.realpath(path), os.path.dirname(path))):
        return None, f"{path} is a link to a file that usually holds secrets"
    try:
        text = read_bytes(path, MAX_FILE_BYTES, files).decode("utf-8", "replace")
    except (NotARegularFile, FileNotFoundError):
        return None, f"{path} is not a regular file"
    except OSError as error:
        return None, f"{path} cannot be read: {error.strerror}"
    except FileTooLarge:
        text = None
    if text is None or len(text) > MAX_FILE_CHARS:
        return None, f"{path} is longer than {MAX_FILE_CHARS} characters"
    return text, None


def _parse(path: str, text: str) -> tuple[AgentType | None, str | None]:
    fields, body = split_front_matter(text)
    tools, disallowed = as_names(fields.get("tools")), _disallowed(fields.get("disallowedTools"))
    try:
        stages = split_stages(body, lines_before=count_lines_before(text, body))
    except CheckpointError as error:
        return None, f"{path} has an unclear checkpoint: {error}; this agent type is not loaded"
    model = as_text(fields.get("model"))
    # Short names of other programs, such as "sonnet", are not models here.
    own_model = model if ":" in model else None
    stem = os.path.splitext(os.path.basename(path))[0]
    stem = os.path.basename(os.path.dirname(path)) if stem == "AGENT" else stem
    agent_type = AgentType(
        as_text(fields.get("name")) or stem,
        as_text(fields.get("description")),
        body.strip(),
        tools,
        own_model,
        path,
        disallowed_tools=disallowed,
        is_unclosed=is_unclosed(text),
        hook_lines=None if (lines := nested_lines(text, "hooks")) is None else tuple(lines),
        stages=stages if len(stages) > 1 else (),
        runs=runs if (runs := as_text(fields.get("runs"))) in PLACES else "",
        labels=tuple(as_names(fields.get("labels")) or ()),
    ).at_stage(0)
    if not fields:
        return agent_type, f"{path} has no front matter; the agent type is named after the file"
    unknown = [name for name in dict.fromkeys(tools or ()) if name not in KNOWN_TOOLS]
    without_effect = [
        name
        for name in dict.fromkeys(disallowed)
        if not any(is_disallowed(each, [name]) for each in KNOWN_TOOLS)
    ]
    return agent_type, _problem(path, model, unknown, without_effect, runs)


def _disallowed(value: str | list[str] | None) -> tuple[str, ...]:
    """Claude Code: "Tools to deny, removed from inherited or specified list". `Bash(git *)` removes Bash as a whole."""
    names = ("*",) if value in ("*", ["*"]) else as_names(value) or ()
    return tuple(name for each in names if (name := each.partition("(")[0].strip()))


def is_disallowed(tool: str, disallowed: Iterable[str]) -> bool:
    """Return whether one of these names or patterns is a name of the tool; upper case does not matter."""
    names = [name.casefold() for name in tool_names(tool)]
    return any(fnmatchcase(name, pattern.casefold()) for pattern in disallowed for name in names)


def _problem(
    path: str, model: str, unknown: Sequence[str], without_effect: Sequence[str], runs: str
) -> str | None:
    if runs not in ("", *PLACES):
        return f"{path} has `runs: {truncate(runs, MAX_TOOL_CHARS)}`, expected {' or '.join(PLACES)}; this has no effect"
    if without_effect:
        return f"{path} disallows unknown tools: {_list_names(without_effect)}; this has no effect"
    if unknown:
        return f"{path} names unknown tools: {_list_names(unknown)}; this agent type works without them"
    if model and model != "inherit" and ":" not in model:
        return f"{path} names the model {model!r}, expected PROVIDER:NAME; the parent's model is used"
    return None


def _list_names(names: Sequence[str]) -> str:
    shown = ", ".join(truncate(name, MAX_TOOL_CHARS) for name in names[:MAX_SHOWN_TOOLS])
    return f"{shown} and {len(names) - MAX_SHOWN_TOOLS:,} more" if len(names) > MAX_SHOWN_TOOLS else shown


def describe_types(agent_types: Mapping[str, AgentType]) -> str:
    return "\n".join(
        f"- {each.name}: {each.description or 'no description'}" for each in agent_types.values()
    )


def agent_type_rules(
    agent_types: Iterable[AgentType], dialect: Dialect
) -> tuple[tuple[Rule, ...], tuple[Problem, ...], list[str]]:
    """Return the rules of all agent types, the problems of hooks that could not be loaded, and notices.

    As in Claude Code, a plugin's never run: they are left out on purpose, and a notice says so.
    """
    rules: list[Rule] = []
    not_loaded: list[Problem] = []
    notices: list[str] = []
    for agent_type in agent_types:
        if agent_type.hook_lines is None or agent_type.family not in dialect.families:
            continue
        if agent_type.level == "plugin":
            notices.append(f"{agent_type.file} has hooks, which are not run: a plugin's agent type has none")
        else:
            found, problems = parse_hooks(agent_type, dialect)
            for rule in found:
                # Claude Code: "agent frontmatter `Stop` hook runs as `SubagentStop`"; a matcher has no effect on Stop.
                is_stop = rule.event == "Stop"
                of_subagent = replace(rule, event="SubagentStop", matcher=None) if is_stop else rule
                rules.append(replace(of_subagent, agent_type=agent_type.name))
            not_loaded += Settings(problems=problems).not_loaded
    return tuple(rules), tuple(not_loaded), notices


def hooks_of_agents(project: str, dialect: str, files: Files) -> tuple[Rule, ...]:
    """Return the hooks of agent files; those of a plugin have none."""
    agent_types, _ = load_agent_types(project, files=files)
    return agent_type_rules(agent_types.values(), ALL_DIALECTS[dialect])[0]


def parse_hooks(agent_type: AgentType, dialect: Dialect) -> tuple[list[Rule], tuple[Problem, ...]]:
    """Return the hooks as they are written, and all problems."""
    log = ProblemLog(agent_type.file)
    parser = HooksParser(log, agent_type.level, agent_type.family, dialect)
    try:
        parser.parse(parse_nested(agent_type.hook_lines or ("",)))
    except NotUnderstood as error:
        log.add(f"{error}; none of its hooks run", "hooks")
    return parser.rules, log.problems


def check_agent_files(settings: Settings, project: str) -> tuple[tuple[Rule, ...], tuple[Problem, ...]]:
    """Return the hooks in front matters, each with the event that is written there, and all problems."""
    home = os.path.expanduser("~")
    rules: list[Rule] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    places, unread = agent_files(project, settings.plugin_dirs, home, LOCAL)
    for level, family, path in places:
        real = real_path(path)
        if family in settings.dialect.families and real not in seen:
            seen.add(real)
            found, wrong = _check_file(level, family, path, settings, display_name(path, project, home))
            rules += found
            problems += wrong
    problems += unread_problems(unread, project, home)
    if "claude" in settings.dialect.families:
        problems += _skill_problems(project, settings, home)
    return tuple(rules), tuple(problems)


def _check_file(
    level: str, family: str, path: str, settings: Settings, name: str
) -> tuple[list[Rule], list[Problem]]:
    agent_type, problem = read_agent_file(path, LOCAL)
    if agent_type is None:
        message = (problem or "").removeprefix(f"{path} ")
        return [], [Problem(file=name, message=message, severity="warning")]
    if agent_type.is_unclosed:
        message = "its front matter has no second line of ---, so none of it is read"
        return [], [Problem(file=name, message=message)]
    if agent_type.hook_lines is None:
        return [], []
    if level == "plugin":
        return [], [_note(name, "are not run: an agent type of a plugin has none")]
    rules, wrong = parse_hooks(replace(agent_type, file=name, level=level, family=family), settings.dialect)
    return [replace(rule, agent_type=agent_type.name) for rule in rules], list(wrong)


def _skill_problems(project: str, settings: Settings, home: str) -> Iterator[Problem]:
    roots = [os.path.join(base, ".claude") for base in dict.fromkeys((home, project))]
    folders = [os.path.join(glob.escape(root), "skills", "*") for root in (*settings.plugin_dirs, *roots)]
    paths = [path for folder in folders for path in sorted(glob.glob(os.path.join(folder, "SKILL.md")))]
    count = count_readable(paths, LOCAL)
    for path in paths[:count]:
        text, _ = read_text(path, LOCAL)
        if text is not None and nested_lines(text, "hooks") is not None:
            message = "are not run: Turngate does not run hooks of skills"
            yield _note(display_name(path, project, home), message)
    yield from unread_problems(paths[count:], project, home)


def unread_problems(unread: Sequence[str], project: str, home: str) -> Iterator[Problem]:
    if unread:
        file = display_name(unread[0], project, home)
        yield Problem(file=file, message=describe_unread(len(unread)), severity="note")


def _note(file: str, message: str) -> Problem:
    return Problem(file=file, field="hooks", message=message, severity="note")
