"""What defines a check of a project: the command that was found, and all that it leads to by mention.

A text counts if one that counts mentions its name, its path, or the tool that it configures: `make check` leads to the target `check`, a recipe
with `ruff` to each ruff.toml and `[tool.ruff]`, `sh scripts/test.sh` to that script. No text is understood or run, so that too much counts
rather than too little. Values are compared, and not how they are written.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from posixpath import basename, dirname, join, normpath

from turngate.core.text import one_line
from turngate.core.verdict.decisions import Block
from turngate.gates import toolchains
from turngate.gates.find_checks import MAKEFILES, ProjectFiles
from turngate.gates.gate import GateContext
from turngate.gates.project_files import list_files, read_texts
from turngate.gates.stored_state import digest

MAX_ROUNDS = 8  # from a text to the files that it mentions
MAX_NAMES = 1000
MAX_FILES = 100
MAX_FILE_BYTES = 128 * 1024
MAX_PART_CHARS = 8 * 1024  # a longer part is stored as its beginning and a hash
MAX_VALUE_CHARS = 160
MAX_DIFF_LINES = 12
COMMAND = "the command"
EVERY_TARGET = "%"  # as a word: make is run without a target
IGNORED = 'git check-ignore -- "$@"'
TRACKED_AND_IGNORED = f"git ls-files --cached --ignored --exclude-standard | head -n {MAX_NAMES}"

_CONFIGURATION = f"(?i){toolchains.CONFIGURATION_FILE}"
# What is in these folders configures nothing outside of them; lock files say what is installed.
_SAMPLES = (
    r"(?:^|/)(?:(?:__)?fixtures?(?:__)?|test_?data|templates?|examples?|\.github|\.?venv)/|-lock\.[^/]*$"
)
_BARE_MAKE = r"(?m)\bg?make(?:[ \t]+-\S{1,99}){0,9}[ \t]*(?:$|[;&|)])"
# Scripts and configuration count where they are mentioned, code where it is loaded or in a folder of tools, tests and documents never.
_MENTIONED = (
    r".*/[^/.]+|.*\.(?:sh|bash|mk|toml|ini|cfg|jsonc?|json5|ya?ml)|(?:.*/)?(?:scripts?|tools|bin|ci)/[^/]+"
)
_LOADING = frozenset("source . include -include from require import extends --config -c -r -f".split())
_INTERPRETERS = frozenset(
    "sh bash node python python3 tsx ts-node bun deno ruby perl php uv poetry pdm".split()
)
_FOLDERS = r"(?:\bcd|[ \t]-C|--prefix|--cwd|--dir(?:ectory)?)[ \t=]+([\w@.+/-]+)"
_NEVER = r".*\.(?:md|rst|txt|lock)|(?:.*/)?\.env[^/]*|(?:(?:.*/)?(?:test_|tests?/).*|.*[._-](?:test|spec))\.(?:py|[cm]?[jt]sx?)"


async def find_definition(
    context: GateContext, commands: Sequence[str], files: ProjectFiles
) -> dict[str, str]:
    """Return the parts that define a check, by how a message names them; none without a command."""
    if not commands:
        return {}
    names = {*files.names, *await list_files(context.commands, toolchains.CONFIGURATION_FILE, MAX_NAMES)}
    start = {COMMAND: "\n".join(sorted(map(_kind, commands)))}
    for each in toolchains.VARIABLES:
        start |= {f"the variable {each}": context.environ[each]} if context.environ.get(each) else {}
    parts, texts, asked, words = start, dict[str, str](), set[str](), frozenset[str]()
    for _ in range(MAX_ROUNDS):
        words = _words("\n".join((*commands, *parts.values())))
        found, paths = dict(start), _paths("", "\n".join(commands))
        for name, text in texts.items():
            own = _parts(name, text, words)
            paths += _paths(dirname(name), "\n".join(own.values()))
            found |= own
        wanted = {*paths, *(name for name in names if _is_configuration(name, words))} - asked
        if found == parts and not wanted:
            break
        parts, asked = found, asked | wanted
        nearest = sorted(wanted, key=lambda name: (name.count("/"), name))[:MAX_NAMES]
        read = await read_texts(context.commands, nearest, MAX_FILE_BYTES)
        others = [name for name in read if not re.search(_CONFIGURATION, name)]
        written = (await context.commands.run_script(IGNORED, *others)).stdout.split("\n") if others else []
        kept = [
            (name, text) for name, text in read.items() if name not in written
        ]  # not what a check has written
        texts |= dict(kept[: MAX_FILES - len(texts)])
    if words & toolchains.OBEY_GITIGNORE:
        ignored = (await context.commands.run_script(TRACKED_AND_IGNORED)).stdout.rstrip()
        parts = {**parts, "what .gitignore names of the files in git": ignored}
    # An empty file of a tool can take the place of another one.
    return {label: _shorten(value) for label, value in parts.items() if value or label in texts}


def _kind(command: str) -> str:
    """Return a command without what depends on how its tool is installed: `uv run pytest -q` is pytest."""
    found = re.match(
        r"(?:\w+=\S* |(?:uv|poetry|pdm|pipenv) run |python3? -m )*(?:\S*/)?(\S+)((?s:.*))", command
    )
    program, rest = (found[1], found[2]) if found else (command, "")
    if program in toolchains.PACKAGE_MANAGERS:
        return f"npm{rest.replace(' run ', ' ')}"
    tool = toolchains.BY_NAME.get(program)
    return program if tool and (tool.python or program == "unittest") else program + rest


def _words(text: str) -> frozenset[str]:
    """Return the words of a text, with the parts of each: `npm run test:unit` has `test:unit`, `test` and `unit`."""
    whole = {word.removeprefix("./").rstrip("/") for word in re.findall(r"[\w@%.:*/+-]+", text)}
    words = whole.union(re.findall(r"[\w-]+", text), re.findall(r"\w+", text))
    words |= {EVERY_TARGET} if re.search(_BARE_MAKE, text) else set()
    return frozenset(words.union(tool for word, tool in toolchains.SYNONYMS.items() if word in words))


def _paths(folder: str, text: str) -> list[str]:
    """Return the names of files that a text could mention, from its own folder, those that it enters, and the project's."""
    folders = {
        folder,
        "",
        *re.findall(_FOLDERS, text),
        *(join(folder, each) for each in re.findall(_FOLDERS, text)),
    }
    found: list[str] = []
    for line in text.split("\n"):
        for word, is_loaded in _mentions(line):
            if len(word) < MAX_VALUE_CHARS and (is_loaded or re.fullmatch(_MENTIONED, word)):
                endings = ("", ".json", ".js") if is_loaded else ("",)
                found += [normpath(join(each, word + ending)) for each in folders for ending in endings]
    return [name for name in found if not name.startswith(("..", "/")) and not re.fullmatch(_NEVER, name)]


def _mentions(line: str) -> Iterator[tuple[str, bool]]:
    """Yield each word, without a folder that is only known when it runs, and whether it is the name of what is loaded.

    Between an interpreter and its script there may be options: `python3 -W error check.py`, `uv run check.py`.
    """
    before, runs = "", False
    for word in re.findall(r"[\w@.+/-]+", line):
        yield word.lstrip("/"), runs or before in _LOADING
        is_option = word.startswith("-") and word not in ("-m", "-c")
        is_value = before.startswith("-") and "." not in word
        runs = word in _INTERPRETERS or (runs and (is_option or is_value or word == "run"))
        before = word


def _is_configuration(name: str, words: frozenset[str]) -> bool:
    """Return whether a file configures a tool that these words name, or several tools."""
    base, found = basename(name), re.search(_CONFIGURATION, name)
    if found is None or re.search(_SAMPLES, name):
        return False
    is_near = dirname(name) in words | {""}
    if base in MAKEFILES:
        return is_near and "make" in words
    if base in toolchains.SCRIPT_TABLES:
        is_run = is_near or words & toolchains.IN_ALL_FOLDERS
        return bool(is_run and words & toolchains.RUN_SCRIPTS)
    tool = "pytest" if base == "conftest.py" else found[3]
    return tool is None or base == "tox.ini" or tool.lower() in words


def _parts(name: str, text: str, words: frozenset[str]) -> dict[str, str]:
    """Return the parts of a file that count: those without a name, and those whose name is mentioned."""
    base, parts = basename(name), dict[str, str]()
    read = _READERS.get(base) or (_read_make if base.endswith(".mk") else _read_whole)
    for label, names, value in read(name, text):
        if names is None or not words.isdisjoint(names):
            shown = value if isinstance(value, str) else _as_text(value)
            parts[label] = f"{parts[label]}\n{shown}" if label in parts else shown
    return parts


# Each yields the parts of a file: how a message names it, its names or None, and its value.
_Part = tuple[str, Collection[str] | None, object]


def _read_make(file: str, text: str) -> Iterator[_Part]:
    """Yield each line with those that are indented below it. Its names are before `:` or `=`, as of targets and variables."""
    blocks: list[list[str]] = [[""]]
    for line in text.replace("\\\n", " ").split("\n"):
        if line.strip() and not line.startswith("#"):
            blocks += [] if line[0] in "\t " else [[]]
            blocks[-1].append(re.sub(r"\s#.*", "", line).strip() if line[0] != "\t" else line.strip())
    for head, *below in blocks:
        left, sign, right = (*re.split(r"([:=])", head, maxsplit=1), "", "")[:3]
        names = {EVERY_TARGET, *left.rstrip(" ?+!").split()}
        if not sign or names & toolchains.MAKE_SETTINGS or "%" in left:
            yield f"what {file} sets for it", None, "\n".join((head, *below)).strip()
        elif ".PHONY" not in names:
            value = "\n".join(filter(None, (right.lstrip(":= "), *below)))
            is_variable = sign == "=" or right.startswith((":=", "="))
            yield f"{'the variable ' * is_variable}`{left.rstrip(' ?+!')}` of {file}", names, value


def _read_package(file: str, text: str) -> Iterator[_Part]:
    for name, value in _parse(file, text, toolchains.SCRIPT_TABLES[basename(file)]).items():
        names = {name, name.removeprefix("pre"), name.removeprefix("post"), f"{name.rpartition(':')[0]}:*"}
        yield f"the script `{name}` of {file}", names, value
    for key, value in _parse(file, text).items():
        if found := re.fullmatch(toolchains.PACKAGE_KEY, key):
            yield f"the key `{key}` of {file}", found.groups(), value


def _read_sections(file: str, text: str) -> Iterator[_Part]:
    """Yield the sections of setup.cfg and tox.ini, or the tables below `tool` of pyproject.toml."""
    is_toml = file.endswith(".toml")
    for name, value in _parse(file, text, *(["tool"] if is_toml else [])).items():
        tools = re.split(r"[:.-]", name.removeprefix("tool:"))[:1]
        if name not in ("poetry", "uv", "pdm", "rye"):  # they say what is installed
            yield f"[{'tool.' if is_toml else ''}{name}] of {file}", [name] if is_toml else tools, value


# What can leave tests out, or end a run; the fixtures of a conftest.py are the project's own.
_LEAVES_OUT = (
    r"\bcollect_ignore|\bpytest_plugins\b|\bdef pytest_(?!addoption\b)|\bpytest_(?:collect|runtest|ignore|session|configure|cmdline|pyfunc)|"
    r"\bSystemExit\b|\b_?exit\(|\bexitstatus\b|\bimportorskip\b|\ballow_module_level\b"
)
_NEUTRAL_LINE = (
    r'\n +(?:config\.addinivalue_line\(\'markers\', (?:\'[^\']*\'|"[^"]*")\)|"""[^"]*"""|pass)(?=\n|$)'
)


def _read_conftest(file: str, text: str) -> Iterator[_Part]:
    if not re.search(_LEAVES_OUT, text) and "autouse" not in text:
        return
    import ast  # noqa: PLC0415 # lazy: few files need it

    try:
        statements = [re.sub(_NEUTRAL_LINE, "", ast.unparse(node)) for node in ast.parse(text).body]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        statements = [text]
    for each in statements:
        is_empty = each.startswith("def ") and "\n" not in each
        is_fixture, is_automatic = each.startswith("@pytest.fixture"), "autouse" in each
        leaves_out = re.search(_LEAVES_OUT, each) or (is_automatic and re.search("skip|xfail", each))
        if leaves_out and not is_empty and (is_automatic or not is_fixture):
            yield f"what {file} leaves out", None, each


def _read_whole(file: str, text: str) -> Iterator[_Part]:
    """Yield the values of a file, or its lines without comments and credentials.

    Of what is installed in a virtual environment, only scripts of a shell count, which no installer writes.
    """
    if not re.match(r"\.?venv/", file) or re.match(r"#!.*sh\n(?!'{3}exec')", text):
        left_out = re.compile(r"\s*(?:#(?!!)|//|$)|\S*_(?:auth\w*|password)\s*=", re.IGNORECASE)
        lines = [line.strip() for line in text.split("\n") if not left_out.match(line)]
        yield file, None, _parse(file, text) or "\n".join(lines)


_READERS = {
    **dict.fromkeys(MAKEFILES, _read_make),
    **dict.fromkeys(toolchains.SCRIPT_TABLES, _read_package),
    **dict.fromkeys(("setup.cfg", "tox.ini", "pyproject.toml"), _read_sections),
    "conftest.py": _read_conftest,
}


def _parse(file: str, text: str, *keys: str) -> Mapping[str, object]:
    """Return the values of a text in JSON, TOML or INI, or the table at these keys; none if there is nothing of the kind."""
    # lazy: as for finding checks
    import configparser  # noqa: PLC0415
    import tomllib  # noqa: PLC0415

    def parse_ini(text: str) -> dict[str, dict[str, str]]:
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
        return {name: dict(parser.items(name)) for name in parser.sections()}

    values: object = {}
    for parse in (parse_ini,) if file.endswith((".cfg", ".ini")) else (json.loads, tomllib.loads, parse_ini):
        with suppress(ValueError, RecursionError, configparser.Error):
            values = parse(text)
            break
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, dict) else {}


def _as_text(value: object) -> str:
    try:
        return json.dumps(_without_neutral(value), indent=1, sort_keys=True, default=str, ensure_ascii=False)
    except RecursionError:
        return "nested too deeply"


def _without_neutral(value: object) -> object:
    if isinstance(value, list):
        return [*map(_without_neutral, value)]
    if not isinstance(value, dict):
        return value
    return {key: _without_neutral(each) for key, each in value.items() if key not in toolchains.NEUTRAL_KEYS}


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_PART_CHARS else f"{text[:MAX_PART_CHARS]}\n… {digest(text)}"


_TARGET_OR_SCRIPT = r"`[^`]*` of |the script `(?!pre|post)"


def describe_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a sentence, or a difference, for each part that was changed. A further command takes nothing away.

    Nor does a target or script of a new name, as long as nothing else has changed so that it is run.
    """
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if {*before.get(COMMAND, "").split("\n")} <= {*now.get(COMMAND, "").split("\n")}:
        names = [name for name in names if name in before or not re.match(_TARGET_OR_SCRIPT, name)]
        names = [name for name in names if name != COMMAND]
    elif COMMAND in names:  # parts that are missing are those of the other command
        names = [name for name in names if name in now or name == COMMAND]
    return [_describe_part(name, before.get(name), now.get(name)) for name in names]


def _describe_part(name: str, before: str | None, now: str | None) -> str:
    if before is None or now is None:
        what = "is new" if before is None else "was removed"
        return f"{name} {what}: `{one_line(now or before or '', MAX_VALUE_CHARS)}`"
    if "\n" not in before + now:
        return f"{name} was `{one_line(before, MAX_VALUE_CHARS)}`, now `{one_line(now, MAX_VALUE_CHARS)}`"
    import difflib  # noqa: PLC0415 # lazy: only for a change

    lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0))[2:]
    changed = [line for line in lines if not line.startswith("@@")]
    more = [f"and {len(changed) - MAX_DIFF_LINES} more lines"] if len(changed) > MAX_DIFF_LINES else []
    return "\n".join([f"{name} was changed:", *changed[:MAX_DIFF_LINES], *more])


CHANGED = "The check `{}` itself was changed in this session:"
ONCE = (
    "If the user has not asked for this, undo it. Otherwise stop again: the check then runs as it is now, "
    "and the user is told of the change."
)


def definition_at_start(context: GateContext) -> dict[str, str] | None:
    """Return what defined the check at the session's start, or else at the first stop at which there was one."""
    for recorded in ((context.state.start or {}).get("definition"), context.state.data.get("definition")):
        if isinstance(recorded, dict) and COMMAND in recorded:
            return {str(name): str(text) for name, text in recorded.items()}
    return None


def block_once(context: GateContext, check: str, definition: Mapping[str, str]) -> Block | None:
    """Return a block with what the session has changed of a check, the first time that a change is seen."""
    data, before = context.state.data, definition_at_start(context)
    if before is None:
        data["definition"] = dict(definition)
    seen = digest(repr(sorted(definition.items())))
    changes = describe_changes(before or definition, definition)
    if not changes or data.get("told") == seen:
        return None
    data["told"], context.keeps_result = seen, False
    return Block("\n".join([CHANGED.format(check), *(f"- {each}" for each in changes), ONCE]))


def note_changes(context: GateContext, definition: Mapping[str, str]) -> str | None:
    """Return for the user what the session has changed of a check."""
    return "; ".join(describe_changes(definition_at_start(context) or definition, definition)) or None
