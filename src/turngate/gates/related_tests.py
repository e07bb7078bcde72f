"""The commands that run only the tests which the session's change concerns, as far as the project's tool can: see `Tool.related`."""

import re
import shlex
from os.path import basename, dirname

from turngate.gates.gate import GateContext
from turngate.gates.project_files import ProjectFiles, list_files, read_project
from turngate.gates.project_tasks import read_json, table
from turngate.gates.run_commands import FilesUnreadable, ProjectCommands
from turngate.gates.session_changes import find_changes
from turngate.gates.toolchains import BY_NAME

MAX_FILES = 100  # a change of more concerns most tests
_NOT_SIMPLE = r"[;&|<>()`#\n]"  # more than one command, or what is not understood
_SCRIPT = r"((?:\w+=\S* )*)(?:(?:npm|pnpm|yarn)(?: run)?|bun run) ([\w:.@/-]+)"
_PROGRAMS = ":".join(f"$PWD/{above}node_modules/.bin" for above in ("", "../", "../../"))
_WITH_PROGRAMS = f'PATH="{_PROGRAMS}:$PATH" '  # those of a workspace, too
_TEST_FILE = r"test_.*|.*_test"
_NO_GO_PACKAGE = r"(?:^|/)(?:testdata|vendor|[._][^/]*)(?:/|$)"  # `./...` leaves them out


async def related_commands(context: GateContext, command: str) -> list[tuple[str, str]]:
    """Return the command lines, each with a name that is the same for other changes; none if the tool cannot, or nothing is related."""
    try:
        paths = [each.path for each in await find_changes(context) if each.kind != "deleted"]
        text = _find_script(command, await read_project(context.commands))
        if len(paths) > MAX_FILES or re.search(_NOT_SIMPLE, text):
            return []
        tools = [tool for word in text.split() if (tool := BY_NAME.get(basename(word))) and tool.related]
        needs_tests = any("{test_files}" in row.replacement for tool in tools[:1] for row in tool.related)
        tests = await _find_python_tests(context.commands, paths) if needs_tests else []
    except FilesUnreadable:
        return []
    safe = [f"./{path}" if path.startswith("-") else path for path in paths]
    values = {
        "command": text,
        "files": shlex.join(safe),
        "files_list": shlex.join([",".join(safe)] if safe else []),
        "packages": shlex.join(_find_go_packages(paths)),
        "test_files": shlex.join([" or ".join(tests)] if tests else []),
    }
    made = []
    for row in tools[0].related if tools else ():
        part = re.search(row.pattern, text)
        if part and all(values[name] for name in re.findall(r"\{(\w+)\}", row.replacement)):
            related = f"{text[: part.start()]}{row.replacement.format(**values)}{text[part.end() :]}"
            made.append((f"{row.replacement} of {command}", related))
    return made


def show_related(text: str) -> str:
    """Return a command line without what finds its program, and without its condition."""
    return re.sub(r"^(?:test|grep) [^&|]*(?:&&|\|\|) ", "", text.replace(_WITH_PROGRAMS, "", 1))


def _find_script(command: str, files: ProjectFiles) -> str:
    """Return the script of package.json that a command runs, unless another one runs before or after it; else the command."""
    found = re.fullmatch(_SCRIPT, command)
    scripts = table(read_json(files.texts.get("package.json", "")), "scripts") if found else {}
    script = scripts.get(found[2]) if found else None
    if found is None or not isinstance(script, str) or {f"pre{found[2]}", f"post{found[2]}"} & {*scripts}:
        return command
    return f"{found[1]}{_WITH_PROGRAMS}{script}"


async def _find_python_tests(commands: ProjectCommands, paths: list[str]) -> list[str]:
    """Return the names of test files that have changed, or are named after a module that has."""
    stems = {basename(path).removesuffix(".py") for path in paths if path.endswith(".py")}
    names = {
        name
        for stem in stems
        for name in ([stem] if re.fullmatch(_TEST_FILE, stem) else [f"test_{stem}", f"{stem}_test"])
        if re.fullmatch(r"[\w-]+", name)
    }
    if not names:
        return []
    pattern = rf"(^|/)({'|'.join(sorted(names))})\.py$"
    return sorted({basename(path) for path in await list_files(commands, pattern, MAX_FILES)})


def _find_go_packages(paths: list[str]) -> list[str]:
    folders = {dirname(path) for path in paths if path.endswith(".go")}
    return sorted(
        f"./{folder}" if folder else "." for folder in folders if not re.search(_NO_GO_PACKAGE, folder)
    )
