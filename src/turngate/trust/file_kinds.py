"""What the names of files and folders say: which are hooks, which are code that agents change, which are data."""

import os
import re
import sys
from collections.abc import Container

HOOK_FOLDERS = (".turngate/", ".mux/", ".claude/hooks/")  # of a project; its hooks are approved with them
# In the first two: the definition covers the settings; agent types, slash commands and skills are not hooks.
NOT_HOOKS = frozenset(["settings.json", "settings.local.json", "agents", "commands", "skills"])
NOT_READ = frozenset(["__pycache__", ".git"])  # hooks run with a folder for bytecode of their own
# What was installed counts by its names alone: it is large, and tools write it.
INSTALLED = frozenset(["node_modules", ".venv", "venv", "vendor"])
BUILT = frozenset(["build", "dist", "out", "target"])

_OF_HOOKS = frozenset(["hooks", ".husky", ".githooks"])
_OF_SETTINGS = frozenset([".turngate", ".mux", ".claude"])
_OF_SCRIPTS = frozenset(["scripts", "script", "bin", "tools", "ci", ".github"])
_OF_CODE = frozenset(
    "src lib app apps packages pkg internal cmd test tests spec specs __tests__ e2e docs".split()
)
MARKS_OF_CODE = tuple(
    "package.json pyproject.toml setup.py go.mod Cargo.toml __init__.py Makefile src".split()
)

# Loaded without the suffix.
OF_PYTHON = frozenset([".py", ".pyc", ".so"])
OF_NODE = frozenset(".js .mjs .cjs .jsx .ts .mts .cts .tsx .node .json".split())
MODULES = OF_PYTHON | OF_NODE - {".json"}
CODE = MODULES | frozenset(".sh .bash .zsh .fish .rb .pl .pm .php .lua .awk .sed .jq .mk .wasm".split())
COMPILED = frozenset(".go .rs .c .cc .cpp .h .hpp .java .kt .swift .cs .dart .zig".split())
_LANGUAGES = MODULES | frozenset([".rb", ".php", ".pl", ".lua"])
_CHECK = r"check|verif|valid|lint|test|gate|guard|hook|stop|audit|polic|review|quality|ensure|assert"
_NO_CHECK = r"(?:la|con|at|pro|fas|grea)tests?|gateway|\w*(?:ggre|vi|dele|iti|opa|sti)gate|checkout|checkbox|stopwatch|hooked"
# What hooks write beside themselves, and what only people read.
WRITTEN = frozenset(".log .jsonl .ndjson .out .err .pid .lock .tmp .db .sqlite .sqlite3".split())
_WRITTEN_FILE = (
    r"\.?[^.]*(?:state|cache|histor|count|session|last|hash|status|result|stamp|seen|marker|flag)[^.]*(?:\.(?:json|txt))?"
    r"|(?:[^.]*[_-])?(?:logs?|reports?|outputs?|metrics?)(?:[_-][^.]*)?\.(?:json|txt|csv|xml|html)"
    r"|\.(?!env|.*rc$)[^.]*|(?:readme|license|changelog)(?:\.\w+)?"
)
# Never a script, whatever the name says.
_DATA = WRITTEN | frozenset(
    ".md .markdown .rst .txt .json .yaml .yml .toml .ini .cfg .conf .csv .tsv .xml .html".split()
)
_BACKUP = r".*(?:~|\.(?:orig|rej|bak|swp))"  # of an editor or a merge
_TEST = r"(?:tests?|spec)|test_.+|.+[._-](?:test|spec)"  # the name of a test, without its suffix
_WRITTEN_FOLDER = r"\.?(?:logs?|state|cache|tmp|temp|archive|sessions|reports|outputs?)|\.\w+_cache"
_RECORDS = frozenset([".json", ".jsonl", ".md", ".txt"])  # of which hooks write many


def has_suffix(name: str, suffixes: Container[str]) -> bool:
    _, dot, suffix = name.rpartition(".")
    return dot + suffix.lower() in suffixes if dot else False


def is_written(name: str) -> bool:
    """Return whether a file in a folder of hooks is what they write, or what only people read, if it cannot be run."""
    *folders, file = name.lower().split("/")
    if has_suffix(file, CODE) or file in ("package.json", "makefile"):
        return False
    is_named = has_suffix(file, WRITTEN) or re.fullmatch(_WRITTEN_FILE, file)
    return bool(is_named) or any(re.fullmatch(_WRITTEN_FOLDER, each) for each in folders)


def is_backup(name: str) -> bool:
    return re.fullmatch(_BACKUP, name.lower()) is not None


def is_test(name: str) -> bool:
    """Return whether a file is a test by its name; a shell script only in a folder of tests, and not `test.sh`."""
    stem = os.path.splitext(os.path.basename(name).lower())[0]
    is_code = has_suffix(name, _LANGUAGES) or (stem != "test" and is_of_code(os.path.dirname(name)))
    return is_code and re.fullmatch(_TEST, stem) is not None


def is_record(name: str) -> bool:
    """Return whether a file is one of the documents in a folder to which hooks write, such as `archive`."""
    *folders, file = name.lower().split("/")
    return has_suffix(file, _RECORDS) and any(re.fullmatch(_WRITTEN_FOLDER, each) for each in folders)


def is_of_hooks(folder: str) -> bool:
    """Return whether all files of a folder of the project belong to hooks; `.claude` itself has much else."""
    first, *parts = folder.split("/")
    if first in _OF_SETTINGS:
        return bool(parts) or first != ".claude"
    return not _OF_HOOKS.isdisjoint([first, *parts]) and _OF_CODE.isdisjoint([first, *parts])


def is_check(name: str) -> bool:
    """Return whether a file among the code of a project is a check, by its name, and not what agents change.

    One with the name of a module of Python would be run instead of that.
    """
    first, file = name.split("/", maxsplit=1)[0], os.path.basename(name).lower()
    is_named = names_check(file) or os.path.splitext(first)[0] in sys.stdlib_module_names
    return is_named or not has_suffix(name, _LANGUAGES)


def names_check(file: str) -> bool:
    """Return whether the name of a file has a word of a check, such as `verify` or `lint`."""
    return re.search(_CHECK, re.sub(_NO_CHECK, "", file)) is not None


def may_be_check(name: str) -> bool:
    """Return whether the name of a file, or of its folder, says that it can be a script or a check, and not only data."""
    file = os.path.basename(name).lower()
    is_script = has_suffix(file, CODE) or name.startswith(HOOK_FOLDERS)
    is_named = names_check(file) and not has_suffix(file, _DATA)
    return is_script or is_named or (is_of_scripts(os.path.dirname(name)) and not has_suffix(file, _DATA))


def is_of_scripts(folder: str) -> bool:
    return not _OF_SCRIPTS.isdisjoint(folder.split("/"))


def is_of_code(folder: str) -> bool:
    """Return whether a folder has the code of a project, which agents change all the time, or what is made of it."""
    return not (_OF_CODE | BUILT | INSTALLED).isdisjoint(folder.split("/"))
