"""Slash commands: prompts in Markdown files, which the user runs by their name, such as `/plan add login`.

They are prompts and not code. As a command of a project may come from anyone, nothing in it is run: no `` !`…` ``.
"""

import difflib
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.checkpoints import CheckpointError, Stage, Workflow, split_stages
from turngate.core.settings import Problem
from turngate.core.text import one_line, quote_name, truncate
from turngate.errors import UsageError
from turngate.project.files import Files
from turngate.project.safe_paths import is_inside
from turngate.settings.agent_types import count_readable, read_text, unread_problems
from turngate.settings.front_matter import as_text, count_lines_before, is_unclosed, split_front_matter
from turngate.settings.parse import UnreadableFile, read_json
from turngate.settings.paths import settings_snapshot
from turngate.settings.plugin_folders import MANIFEST, display_name

BUILT_IN = ("help", "goal", "hooks", "accept", "more", "compact", "clear", "output", "exit", "quit")
MAX_FOLDER_DEPTH = 3
MAX_SHOWN_CHARS = 100  # of what is not run

_NAME = re.compile(r"\w[\w.-]*")
_CALL = re.compile(r"/(?P<name>\w[\w.:-]*)(?:\s+(?P<arguments>.*))?", re.DOTALL)
_PLACEHOLDER = re.compile(r"\$(?:ARGUMENTS\b|[1-9](?!\d))")
_SHELL = re.compile(r"!`[^`\n]+`")


@frozen
class SlashCommand:
    """A command, or why its file is not one (`problem`)."""

    name: str  # without the slash
    text: str
    file: str
    level: str  # user, project or plugin
    description: str = ""
    argument_hint: str = ""
    folder: str = ""  # below `commands`, or the name of the plugin: `/frontend:component` names it too
    stages: tuple[Stage, ...] = ()
    problem: str | None = None

    @property
    def qualified_name(self) -> str:
        return f"{self.folder}:{self.name}" if self.folder else self.name

    @property
    def not_run(self) -> str | None:
        """What the author of the file expects to be run."""
        found = _SHELL.search(self.text)
        return truncate(found[0], MAX_SHOWN_CHARS) if found else None


@frozen
class SlashCommands:
    """The commands by name; those closer to the project win."""

    by_name: Mapping[str, SlashCommand]
    problems: tuple[Problem, ...] = ()

    def __iter__(self) -> Iterator[SlashCommand]:
        """Yield each command that can be run, sorted by name."""
        found = (self.by_name[name] for name in sorted(self.by_name) if name == self.by_name[name].name)
        return (command for command in found if command.problem is None)

    def find(self, name: str) -> SlashCommand:
        """Return the command of this name. Raises UsageError."""
        command = self.by_name.get(name)
        if name in BUILT_IN:
            raise UsageError(f"/{name} is a command of a conversation: `turngate run` without -p")
        if command is None:
            raise UsageError(self.describe_unknown(name))
        if command.problem is not None:
            raise UsageError(f"/{name} cannot be run: {command.file}: {command.problem}")
        return command

    def describe_unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, [*self.by_name, *BUILT_IN], n=1)
        meant = f", did you mean /{near[0]}?" if near else ";"
        others = "/help lists the commands, and a space in front sends the text as a message"
        return f"there is no command /{one_line(name, MAX_SHOWN_CHARS)}{meant} {others}"


def parse_call(text: str) -> tuple[str, str] | None:
    """Return the name and the arguments of `/plan add login`, or None for a message such as `/etc/hosts is wrong`."""
    match = _CALL.fullmatch(text.rstrip())
    return (match["name"], match["arguments"] or "") if match else None


def expand(command: SlashCommand, arguments: str) -> Workflow:
    """Return what the agent is asked to do, stage by stage, with the arguments in the place of `$ARGUMENTS` and `$1`."""
    try:
        words = shlex.split(arguments)
    except ValueError:  # a quote without its end
        words = arguments.split()
    values = {"$ARGUMENTS": arguments, **{f"${number}": word for number, word in enumerate(words[:9], 1)}}

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: values.get(found[0], ""), text)

    first, *others = (
        Stage(fill(stage.text), None if stage.checkpoint is None else fill(stage.checkpoint))
        for stage in command.stages
    )
    if arguments.strip() and not _PLACEHOLDER.search(command.text):
        # Claude Code: "If your skill doesn't include $ARGUMENTS, arguments are appended as ARGUMENTS: <your input>".
        first = replace(first, text=f"{first.text}\n\nARGUMENTS: {arguments}")
    return Workflow(f"/{command.name}", (first, *others))


# Files


def load_commands(
    project: str, plugin_dirs: Sequence[str] = (), home: str | None = None, *, files: Files
) -> SlashCommands:
    """Read all commands. A file that cannot be used is named in `problems`, and when its command is run."""
    files, home = settings_snapshot(files, project), home if home is not None else files.home
    folders = _folders(project, plugin_dirs, home, files)
    places = [place for folder in folders for place in _files(folder, files)]
    count = count_readable((path for *_, path in places), files)
    problems = [*unread_problems([path for *_, path in places[count:]], project, home)]
    by_name: dict[str, SlashCommand] = {}
    for folder, subfolder, path in places[:count]:
        command = _read_command(folder, subfolder, path, display_name(path, project, home), files)
        if command.problem is not None:
            problems.append(Problem(file=command.file, message=command.problem, severity="warning"))
        if _NAME.fullmatch(command.name) and command.name not in BUILT_IN:
            by_name.update({command.qualified_name: command, command.name: command})
    return SlashCommands(by_name, tuple(problems))


@frozen
class _Folder:
    path: str  # of the folder `commands`
    level: str
    inside: str  # where its files must be: a link in a project must not make a private file a prompt
    plugin: str = ""


def _folders(project: str, plugin_dirs: Sequence[str], home: str, files: Files) -> Iterator[_Folder]:
    """Yield the folders with commands, the weakest first."""
    for folder in plugin_dirs:
        root = os.path.join(project, files.expand_home(folder))
        yield _Folder(os.path.join(root, "commands"), "plugin", root, _plugin_name(root, files))
    for level, root in (("user", home), ("project", project)):
        for family in ("claude", "turngate"):
            inside = "/" if level == "user" else project
            yield _Folder(os.path.join(root, f".{family}", "commands"), level, inside)


def _plugin_name(root: str, files: Files) -> str:
    try:
        manifest = read_json(os.path.join(root, MANIFEST), files).value
    except (UnreadableFile, OSError):
        manifest = None
    name = manifest.get("name") if isinstance(manifest, dict) else None
    is_usable = isinstance(name, str) and _NAME.fullmatch(name)
    return str(name) if is_usable else os.path.basename(os.path.normpath(root))


def _files(folder: _Folder, files: Files) -> Iterator[tuple[_Folder, str, str]]:
    for path, folders, names in files.walk(folder.path):
        below = [] if path == folder.path else os.path.relpath(path, folder.path).split(os.sep)
        folders[:] = sorted(folders) if len(below) < MAX_FOLDER_DEPTH else []
        for name in sorted(names):
            if name.endswith(".md"):
                yield folder, ":".join(below), os.path.join(path, name)


def _read_command(folder: _Folder, subfolder: str, path: str, shown: str, files: Files) -> SlashCommand:
    name = os.path.basename(path).removesuffix(".md")
    command = SlashCommand(name, "", shown, folder.level, folder=subfolder or folder.plugin)
    if problem := _name_problem(name):
        return replace(command, problem=problem)
    if not is_inside(files.realpath(path), files.realpath(folder.inside)):
        return replace(command, problem="it is a link that leads out of the project or plugin")
    text, problem = read_text(path, files)
    if text is None:
        return replace(command, problem=(problem or "").removeprefix(f"{path} "))
    return _parse(command, text.replace("\r\n", "\n"))


def _name_problem(name: str) -> str | None:
    if name in BUILT_IN:
        return f"/{name} is a command of Turngate; rename the file"
    if not _NAME.fullmatch(name):
        allowed = "letters, digits, _, - and ."
        return f"{quote_name(one_line(name, MAX_SHOWN_CHARS))} cannot be typed as a command; use {allowed} in its name"
    return None


def _parse(command: SlashCommand, text: str) -> SlashCommand:
    if "\0" in text:
        return replace(command, problem="it is not a text file")
    if is_unclosed(text):
        return replace(command, problem="its front matter has no second line of ---")
    fields, body = split_front_matter(text)
    if not body.strip():
        return replace(command, problem="it is empty")
    try:
        stages = split_stages(body, lines_before=count_lines_before(text, body))
    except CheckpointError as error:
        return replace(command, problem=str(error))
    # Claude Code: the description "defaults to the first line of the prompt".
    first = next(filter(str.strip, body.splitlines())).strip().lstrip("# ")
    return replace(
        command,
        text=body,
        description=as_text(fields.get("description")) or first,
        argument_hint=as_text(fields.get("argument-hint")),
        stages=stages,
    )
