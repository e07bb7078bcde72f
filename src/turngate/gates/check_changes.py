"""What defines a check of a project: the command that was found, and all that it runs or loads.

A text counts if one that counts runs it, loads it, or names the tool that it configures: `make check` leads to the target `check`, a recipe
with `ruff` to each ruff.toml and `[tool.ruff]`, `sh scripts/test.sh` to that script. Values are compared, and not how they are written.
A change of these parts blocks once. No text is understood: each word that names a file leads to it. If only the word says so, and not the
name of the file or the word before it, and of files that a check may depend on by their names alone, only a hash is kept, and a change is a
note for the user.
"""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from posixpath import basename, dirname, join, normpath, splitext

from turngate.core.text import one_line
from turngate.core.verdict.decisions import Block
from turngate.gates import toolchains
from turngate.gates.gate import GateContext
from turngate.gates.local_tree_state import repository_top
from turngate.gates.project_files import MAKEFILES, ProjectFiles, list_matching, read_texts
from turngate.gates.stored_state import digest
from turngate.project.safe_paths import real_path

PYTHON_TOOLS = frozenset(["unittest", *(name for name, tool in toolchains.BY_NAME.items() if tool.python)])
_CHECKERS = frozenset(toolchains.BY_NAME) - {"node", "bun", "deno", "npm", "docker"}  # these run code
MAX_ROUNDS = 8  # from a text to the files that it runs or loads
MAX_NAMES = 1000
MAX_WORDS = 200  # of one command
MAX_FILES = 100
MAX_HASHED_FILES = 300
MAX_FILE_BYTES = 1024 * 1024
MAX_PART_CHARS = 8 * 1024  # a longer part is stored as its beginning and a hash
MAX_VALUE_CHARS = 160
MAX_DIFF_LINES = 12
MAX_NOTED_FILES = 5
COMMAND = "the command"
HASH_OF = "the hash of "  # a file that a check may depend on
ARGUMENTS = f"{HASH_OF}its arguments"  # not a hash, so that a note can show them
EVERY_TARGET = "%"  # as a word: make is run without a target
TRACKED_AND_IGNORED = f"git ls-files --cached --ignored --exclude-standard | head -n {MAX_NAMES}"

_CONFIGURATION = f"(?i){toolchains.CONFIGURATION_FILE}"
# Such as $(CURDIR)/, and files that are written.
_LEFT_OUT = re.compile(
    r"\$+(?:\w+|\(\w+\)|\{\w+\})/|>+\s*[^\s;&|]+|--?[\w-]*(?i:out(?:put)?(?:-?(?:file|dir))?|xml|report|log)(?:=|\s+)[^\s;&|-][^\s;&|]*"
)
_LOOK = (
    r"\s*(?:!\s*)?(?:\[|(?:test|e?grep|ls|stat|diff|cmp)\b)"  # at a file, which may be what the work is about
)
_BARE_MAKE = r"(?m)(?:\bg?make|\$[({]MAKE[)}])(?:[ \t]+(?:-[CfIoW][ \t]*[^\s;&|]{1,99}|-[jl][ \t]*[\d.]{1,9}|-\S{1,99}|\w+=[^\s;&|]{0,99}|\d?>+[ \t]*[^\s;&|]{1,99})){0,9}[ \t]*(?:$|[;&|)])"
# A file that the text of a check names is a part of it if its name says that it checks, or the word before it that it is loaded.
_CHECKS = re.compile(
    r"(?i)(?:^|/)(?:scripts?|tools?|ci|hooks?|dev)/|\.mk$|"
    r"(?:^|[/._-])(?:tests?|run(?:ner|tests)?|(?:check|lint|verif|validat)\w*|chk|ci|qa)(?=[._-]|$)"
)
_LOADING = frozenset(
    "include includes import from require extend extends inherit_from config config-file rcfile".split()
)
_SHORT_OPTIONS = frozenset(("-c", "-r", "-f"))  # of tools
_IMPORTS = frozenset(("import", "from", "require"))  # without a path, it may be the work that is imported
_SOURCES = frozenset((".", "source"))  # at the beginning of a command
_ENDINGS = ("", ".json", ".js", ".ts", ".py")
# Documents, tests, sources, and what is built of them.
_CODE = r"(?:pyi?|[cm]?[jt]sx?|go|rs|rb|php|java|kt|swift|c|cc|cpp|h|hpp|pl|t|exs?|vue|svelte)"
_NEVER = (
    r".*\.(?:md|rst|lock|bats)|(?:.*/)?test_[^/]*\.sh|"
    rf"(?:(?:.*/)?(?:test_.*|tests?)|.*[._-](?:test|spec)|(?:.*/)?(?:src|lib|dist|build|out|data|tests?)/.*)\.(?:{_CODE}|json)"
)
_DATA = r"\.(?:xml|json|html?|csv|tsv|log|txt|out|tap|info)$"  # a part only if it is loaded
_SOURCE = rf"\.(?:{_CODE}|(?:ba)?sh)$"
_COMPILED = r"\.(?:[ch]|cc|cpp|cxx|hh|hpp|hxx|o|obj|[sS])$"  # in a rule of make, what is compiled
_TASK = r"`|the (?:variable|script) "  # the label of a part that has a name in a Makefile or in package.json
_OF_TASKS = rf"{_TASK}|the key |what \S+ sets for it"
_RUNS_TASK = (
    r"\b(?:npm|pnpm|yarn|bun|g?make|just|composer)\b\W{1,9}(?:-\S{1,99}\W{1,9}){0,9}(?:run\W{1,9})?([\w:.-]+)"
)
_LIST = r"(?i)the variable `(?!\w*(?:skip|excl|ignor|disab))\w*(?:test|src|source|obj|file|module|bin|prog|case)s?`"
_COMMENT_OR_STRING = (
    r"""("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|`(?:\\.|[^`\\])*`?)|//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)"""
)


async def find_definition(
    context: GateContext, commands: Sequence[str], files: ProjectFiles
) -> dict[str, str]:
    """Return the parts that define a check, by how a message names them, and hashes of files; none without a command."""
    if not commands:
        return {}
    pattern = f"{toolchains.MAY_DEFINE}|{toolchains.CONFIGURATION_IN_ROOT}"
    found_by_git = await list_matching(context.commands, pattern, MAX_NAMES, context.state_folder)
    above = _folders_above(context)
    of_git, ignored = (_near(each, commands) for each in found_by_git)
    names = {*_near(files.names, commands), *of_git, *ignored, *_names_in(context.project, above)}
    kinds = sorted(map(_kind, commands))
    start = {COMMAND: "\n".join(kind for kind, _ in kinds)}
    for each in toolchains.VARIABLES:
        start |= {f"the variable {each}": context.environ[each]} if context.environ.get(each) else {}
    parts, texts, asked = start, dict[str, str](), set[str]()
    words, named, made = frozenset[str](), dict[str, bool](), set[str]()
    for _ in range(MAX_ROUNDS):
        words, tasks = _words("\n".join((*commands, *parts.values()))), _task_words(commands, parts)
        found, named = dict(start), dict(_named_files("", "\n".join(commands)))
        for name, text in texts.items():
            if name in made:
                continue
            own = _parts(name, text, words, tasks)
            is_code = re.search(_SOURCE, name) is not None and not re.search(_CONFIGURATION, name)
            named |= _named_files(dirname(name), "\n".join(own.values()), is_code=is_code)
            found |= own
        made = {name for name, recipe in _recipes(found).items() if {name, "$@"} & {*recipe.split()}}
        made = {name for name in made if not re.search(_SOURCE, name)}  # a recipe writes them
        named = {name: named[name] for name in named if name.count("../") <= len(above) and name not in made}
        wanted = {name for name, is_part in named.items() if is_part and name not in ignored}
        wanted |= {name for name in names if _is_configuration(name, words, names)}
        wanted -= asked
        if found == parts and not wanted:
            break
        parts, asked = found, asked | wanted
        texts |= await _read_nearest(context, wanted, MAX_FILES - len(texts))
    if words & toolchains.OBEY_GITIGNORE:
        hidden = (await context.commands.run_script(TRACKED_AND_IGNORED)).stdout.rstrip()
        parts = {**parts, "what .gitignore names of the files in git": hidden}
    may_define = {*of_git, *(name for name in names if re.search(f"(?i){toolchains.MAY_DEFINE}", name))}
    may_define = {name for name in may_define if not re.search(toolchains.NO_CONFIGURATION, name)}
    # `python -m pytest` would run these instead of the tool.
    may_define |= {f"{tool}{end}" for tool in words & PYTHON_TOOLS for end in (".py", "/__main__.py")}
    # A check may write what git ignores.
    may_define |= {
        *texts,
        *(name for name, is_part in named.items() if is_part or name not in ignored),
    } - made
    # make has nothing to do for a target that is there, unless its recipe makes it.
    recipes = _recipes(parts)
    targets = {name: "" for name in files.names & {*recipes} if not {name, "$@"} & {*recipes[name].split()}}
    targets |= await _read_nearest(context, may_define, MAX_HASHED_FILES)
    hashes = {f"{HASH_OF}{name}": digest(_without_installed(name, text)) for name, text in targets.items()}
    hashes[ARGUMENTS] = "\n".join(map("".join, kinds))
    # An empty file of a tool can take the place of another one.
    kept = {label: value for label, value in parts.items() if value or label in texts}
    long = {
        label: f"{text[:MAX_PART_CHARS]}\n… {digest(text)}"
        for label, text in kept.items()
        if text[MAX_PART_CHARS:]
    }
    return kept | long | hashes


def _near(names: Iterable[str], commands: Sequence[str]) -> list[str]:
    """Return the files in the folders in which the commands run (`cd web && npm test`), and above and below them."""
    matches = [re.match(r"cd ([\w./-]+) && ", command) for command in commands]
    folders = [f"{normpath(match[1])}/" for match in matches if match]
    if len(folders) < len(commands) or any(each.startswith(("/", ".")) for each in folders):
        return [*names]
    return [
        name
        for name in names
        if any(name.startswith(each) or each.startswith(join(dirname(name), "")) for each in folders)
    ]


async def _read_nearest(context: GateContext, names: Iterable[str], limit: int) -> dict[str, str]:
    nearest = sorted(names, key=lambda name: (name.count("/"), name))[:MAX_NAMES]
    return dict(list((await read_texts(context.commands, nearest, MAX_FILE_BYTES)).items())[:limit])


def _folders_above(context: GateContext) -> list[str]:
    """Return the folders above the project, up to the top of its repository, by names such as `../`."""
    top = repository_top(context.project) if context.commands.is_local else None
    inside = os.path.relpath(real_path(context.project), real_path(top)) if top else "."
    return [] if inside == "." else ["../" * (place + 1) for place in range(inside.count("/") + 1)]


def _names_in(project: str, folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        with suppress(OSError):
            names = os.listdir(join(project, folder))
            yield from (folder + name for name in names if re.search(_CONFIGURATION, name))


def _without_installed(name: str, text: str) -> str:
    """Return the text of a file without what only says which packages are installed."""
    if name.endswith(".toml"):
        return re.sub(toolchains.INSTALLED_TOML, "", text)
    if name.endswith(".json") and _parse(name, text):
        return re.sub(toolchains.INSTALLED_JSON, "", text)
    return text


def _kind(command: str) -> tuple[str, str]:
    """Return a command without what depends on how its tool is installed, and its arguments if they are not part of it."""
    found = re.match(
        r"(?:\w+=\S* |(?:uv|poetry|pdm|pipenv) run |npx (?:-\S+ )*|python3? -m )*(?:\S*/)?(\S+)((?s:.*))",
        command,
    )
    program, rest = (found[1], found[2]) if found else (command, "")
    variables = "".join(
        f" {each}" for each in re.findall(r"\w+=\S*", command[: found.start(1)] if found else "")
    )
    if program in toolchains.PACKAGE_MANAGERS:
        return f"npm{rest.replace(' run ', ' ')}", variables
    is_tool = program in {*_CHECKERS, "unittest"} and not re.search(r"[;&|]", rest)
    return (program, rest + variables) if is_tool else (program + rest, variables)


def program_of(command: str) -> str:
    """Return the program that a command runs, however it is installed."""
    return _kind(command)[0].partition(" ")[0]


def _words(text: str) -> frozenset[str]:
    """Return the words of a text, with the parts of each: `npm run test:unit` has `test:unit`, `test` and `unit`."""
    whole = {word.removeprefix("./").rstrip("/") for word in re.findall(r"[\w@%.:*/+-]+", text)}
    words = whole.union(re.findall(r"[\w-]+", text), re.findall(r"\w+", text))
    words |= {EVERY_TARGET} if re.search(_BARE_MAKE, text) else set()
    return frozenset(words.union(tool for word, tool in toolchains.SYNONYMS.items() if word in words))


@lru_cache(MAX_FILES)  # each round asks again
def _named_files(folder: str, text: str, *, is_code: bool = False) -> Mapping[str, bool]:
    """Return the names that the words of a text may be, in its own folder, the project's or one that it changes to, and whether each is a part of the check.

    Sources are left out in a command of a tool that checks them, and in code, which may import them.
    """
    found, before = dict[str, bool](), ""
    folders = {folder, "", *re.findall(r"\bcd +([\w./-]+)", text)}
    for command in re.split(r"[\n;&|]", _LEFT_OUT.sub("", text)):
        words = [
            word.lstrip("@+") for word in re.findall(r"[\w@.+/-]+", command.lstrip(" \t@+-"))[:MAX_WORDS]
        ]
        checks_sources = is_code or not _CHECKERS.isdisjoint(words)
        is_tool = not toolchains.BY_NAME.keys().isdisjoint(map(basename, words)) or "make" in words
        is_look = re.match(_LOOK, command)
        is_item = re.fullmatch(r'\s*"[^"]*",?', command)  # of a list in JSON, whose key is on a line before
        before = before if is_item else ""
        for place, word in enumerate(words):
            is_sourced = place == 1 and before in _SOURCES
            is_option = before in _SHORT_OPTIONS and is_tool
            is_loaded = before.lstrip("-") in _LOADING and (before not in _IMPORTS or "/" in word)
            is_loaded = not is_code and (is_sourced or is_option or is_loaded)
            is_module = before == "-m"
            before = before if is_item else word
            is_named = bool(_CHECKS.search(word)) or basename(word) in toolchains.BY_NAME
            is_kept = not is_look and ("/" in word or "." in word)
            is_kept = is_kept and not (checks_sources and re.search(_SOURCE, word))
            if is_named or is_loaded or is_kept or is_module:
                path = word.replace(".", "/") if is_module else word
                may_lack = is_module or is_loaded or word[0] == "." or ("/" in word and not splitext(word)[1])
                endings = _ENDINGS if may_lack else ("",)
                for name in (normpath(join(each, path + end)) for each in folders for end in endings):
                    is_check = (is_named or _CHECKS.search(name)) and not re.search(_DATA, name)
                    found[name] = found.get(name, False) or is_loaded or bool(is_check)
    return {
        name: is_part
        for name, is_part in found.items()
        if len(name) < MAX_VALUE_CHARS and not name.startswith("/") and not re.fullmatch(_NEVER, name)
    }


def _is_configuration(name: str, words: frozenset[str], names: Collection[str]) -> bool:
    """Return whether a file configures a tool that these words name, or several tools. Of Makefiles, make reads the first."""
    base, found = basename(name), re.search(_CONFIGURATION, name)
    if found is None or re.search(toolchains.NO_CONFIGURATION, name) or base == "pnpm-workspace.yaml":
        return False
    is_near = dirname(name) in words | {""}
    if base in MAKEFILES:
        first = next(each for each in MAKEFILES if join(dirname(name), each) in names)
        return is_near and "make" in words and base == first
    if base in toolchains.SCRIPT_TABLES:
        is_run = is_near or words & toolchains.IN_ALL_FOLDERS
        return bool(is_run and words & toolchains.RUN_SCRIPTS)
    tool = "pytest" if base == "conftest.py" else found[3]
    return tool is None or base == "tox.ini" or tool.lower() in words


def _task_words(commands: Sequence[str], parts: Mapping[str, str]) -> frozenset[str]:
    """Return the words that may name a script or target: those of commands and recipes; of other texts, what follows a program that runs such a task."""
    own = [text for label, text in parts.items() if re.match(_OF_TASKS, label)]
    others = "\n".join(text for label, text in parts.items() if not re.match(_OF_TASKS, label))
    return _words(
        "\n".join((*commands, *own, *re.findall(_RUNS_TASK, others), *re.findall(_BARE_MAKE, others)))
    )


def _recipes(parts: Mapping[str, str]) -> dict[str, str]:
    """Return the recipes of make by their targets."""
    return {label.split("`")[1]: text for label, text in parts.items() if label.startswith("`")}


def _parts(name: str, text: str, words: frozenset[str], tasks: frozenset[str]) -> dict[str, str]:
    """Return the parts of a file that count: those without a name, and those whose name is mentioned."""
    parts = dict[str, str]()
    for label, names, value in _all_parts(name, text):
        mentioned = tasks if re.match(_TASK, label) else words
        if names is None or not mentioned.isdisjoint(names):
            shown = value if isinstance(value, str) else _as_text(value)
            parts[label] = f"{parts[label]}\n{shown}" if label in parts else shown
    return parts


# Each yields the parts of a file: how a message names it, its names or None, and its value.
_Part = tuple[str, Collection[str] | None, object]


@lru_cache(MAX_FILES)
def _all_parts(name: str, text: str) -> tuple[_Part, ...]:
    base = basename(name)
    read = _READERS.get(base) or (_read_make if base.endswith(".mk") else _read_whole)
    return tuple(read(name, text))


def _read_make(file: str, text: str) -> Iterator[_Part]:
    """Yield each line with those that are indented below it, for each name before `:` or `=`. Lists of files are what is checked."""
    blocks, is_defined = [[""]], False
    for line in text.replace("\\\n", " ").split("\n"):
        is_defined = is_defined and not line.startswith("endef")
        if line.strip() and not re.match(r"#|\s*(?:ifn?(?:def|eq)|else|endif|endef)\b", line):
            blocks += [] if line[0] in "\t " or is_defined else [[]]
            blocks[-1].append(re.sub(r"\s#.*", "", line).strip() if line[0] != "\t" else line.strip())
            is_defined = is_defined or line.startswith("define ")
    for head, *below in blocks:
        left, sign, right = (*re.split(r"([:=])", head, maxsplit=1), "", "")[:3]
        if defined := re.match(r"define\s+(\S+)", head):
            left, sign = defined[1], "="
        names = [name for name in left.rstrip(" ?+!").split() if name != ".PHONY"]
        names = [name for name in names if not re.search(_COMPILED, name)]
        value = re.sub(
            r"[ \t]*[^\s;&|]+",
            lambda word: "" if re.search(_COMPILED, word[0]) else word[0],
            "\n".join(filter(None, (right.lstrip(":= "), *below))),
        )
        is_variable = sign == "=" or right.startswith((":=", "="))
        if not sign or toolchains.MAKE_SETTINGS.intersection(names) or re.search(r"%(?!\S*\.\w)", left):
            yield f"what {file} sets for it", None, "\n".join((head, *below)).strip()
        elif not (is_variable and value and all(splitext(word)[1] for word in value.split())):
            for name in names:
                yield f"{'the variable ' * is_variable}`{name}` of {file}", (name, EVERY_TARGET), value


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


def _read_conftest(file: str, text: str) -> Iterator[_Part]:
    if not re.search(toolchains.LEAVES_TESTS_OUT, text):
        return
    import ast  # noqa: PLC0415 # lazy: few files need it

    statements = [text]
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        statements = [*map(ast.unparse, ast.parse(text).body)]
    for each in statements:
        # A fixture that tests name, a helper; but not a hook, nor an object with hooks.
        is_called = re.match(r"(?:@.*\n)*(?:async )?(?:def|class) ", each) and not re.search(
            r"\bdef pytest_(?!report_header\b)|autouse", each
        )
        if re.search(toolchains.LEAVES_TESTS_OUT, each) and not is_called:
            yield f"what {file} does for all tests", None, each


def _read_whole(file: str, text: str) -> Iterator[_Part]:
    """Yield the values of a file, or its lines without comments and credentials; of a virtual environment, only scripts of a shell."""
    if "\0" not in text and (not re.match(r"\.?venv/", file) or re.match(r"#!.*sh\n(?!'{3}exec')", text)):
        left_out = re.compile(r"\s*(?:#(?!!)|//|$)|\S*_(?:auth\w*|password)\s*=", re.IGNORECASE)
        if re.search(r"\.(?:json\w?|[cm]?[jt]s)$", file):
            text = re.sub(_COMMENT_OR_STRING, r"\1", text)
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
    with suppress(RecursionError):
        kept = json.loads(
            json.dumps(value, default=str),
            object_hook=lambda table: {
                key: table[key] for key in table if key not in toolchains.NEUTRAL_KEYS
            },
        )
        return json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False)
    return "nested too deeply"


def describe_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a sentence, or a difference, for each part that was changed. A further command, or a target of a new name, takes nothing away."""
    names = [name for name in {**before, **now} if _essence(name, before) != _essence(name, now)]
    if {*before.get(COMMAND, "").split("\n")} <= {*now.get(COMMAND, "").split("\n")}:
        names = [
            name for name in names if name in before or not re.match(r"`|the script `(?!pre|post)", name)
        ]
        names = [name for name in names if name != COMMAND and not _has_grown(name, before, now)]
    elif COMMAND in names:  # parts that are missing are those of the other command
        names = [name for name in names if name in now or name == COMMAND]
    return [_describe_part(name, before.get(name), now.get(name)) for name in names]


def _has_grown(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether a variable of make that lists tests or sources has more of them, and all that it had."""
    words, old = now.get(name, "").split(), before.get(name, "").split()
    return (
        bool(re.match(_LIST, name))
        and {*old} <= {*words}
        and all(re.fullmatch(r"\w[\w./*+-]*", each) for each in {*words} - {*old})
    )


def _essence(name: str, parts: Mapping[str, str]) -> str | None:
    """Return what is compared of a part: no hash of a file, and of code not what a formatter changes."""
    if name not in parts or name.startswith(HASH_OF):
        return None
    is_code = "`" not in name and re.search(r"\.(?:json\w?|[cm]?[jt]s)$", name)
    return re.sub(r"[\s'\";]+|,(?=\s*[\])}])", "", parts[name]) if is_code else parts[name]


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
    seen = digest(repr(sorted(item for item in definition.items() if not item[0].startswith(HASH_OF))))
    changes = describe_changes(before or definition, definition)
    if not changes or data.get("told") == seen:
        return None
    data["told"], context.keeps_result = seen, False
    once = (
        "If the user has not asked for this, undo it. Otherwise stop again: the check then runs as it is now, "
        "and the user is told of the change."
    )
    head = f"The check `{check}` itself was changed in this session:"
    return Block("\n".join([head, *(f"- {each}" for each in changes), once]))


def note_changes(context: GateContext, definition: Mapping[str, str]) -> str | None:
    """Return for the user what the session has changed of a check, and of the files on which it may depend."""
    before = definition_at_start(context) or definition
    notes = describe_changes(before, definition)
    if (
        ARGUMENTS in before
        and before[ARGUMENTS] != definition.get(ARGUMENTS)
        and COMMAND not in "".join(notes)
    ):
        notes.append(_describe_part(COMMAND, before[ARGUMENTS], definition.get(ARGUMENTS)))
    changed = [
        name
        for name in {**before, **definition}
        if name != ARGUMENTS and before.get(name) != definition.get(name)
    ]
    files = sorted(one_line(name.removeprefix(HASH_OF)) for name in changed if name.startswith(HASH_OF))
    if files := [name for name in files if name not in "; ".join(notes)]:
        more = f" and {len(files) - MAX_NOTED_FILES} more" if len(files) > MAX_NOTED_FILES else ""
        shown = ", ".join(files[:MAX_NOTED_FILES])
        notes.append(f"the session changed {shown}{more}, on which this check may depend")
    return "; ".join(notes) or None
