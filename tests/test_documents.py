"""docs/reference/documents.md has every name of the five documents, and what it names here exists."""

import asyncio
import functools
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import is_dataclass
from typing import Any, get_args

import pytest

import turngate
from tests.support.paths import ROOT
from turngate import CommandHook, LocalShell, Rule, Settings, StopEvent, World, ask_hooks
from turngate.cli.main import COMMANDS
from turngate.core.answers.judge import ARGUMENTS
from turngate.core.answers.report_types import Exited
from turngate.core.constants import EVENTS, FAMILIES, SCRIPT_FAMILIES, SCRIPTS
from turngate.core.text import CamelCaseAccess, snake_case
from turngate.plugins.handlers import PluginHook

PAGE = (ROOT / "docs" / "reference" / "documents.md").read_text()
NAMES: dict[str, str] = tomllib.loads((ROOT / "tests" / "data" / "document_names.toml").read_text())
SPAN = re.compile(r"`([^`]+)`")


def rows(document: str) -> list[list[str]]:
    section = PAGE.partition(f"## Document {document}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize("document", NAMES)
def test_a_reader_of_a_document_finds_each_of_its_names_once(document: str) -> None:
    listed = [name for theirs, *_ in rows(document) for name in SPAN.findall(theirs)]
    assert sorted(listed) == sorted(NAMES[document].split())


@pytest.mark.parametrize("document", NAMES)
def test_every_name_has_a_counterpart_that_exists_or_a_reason_why_there_is_none(document: str) -> None:
    without = [
        theirs for theirs, ours, why in rows(document) if not SPAN.findall(ours) and not (ours and why)
    ]
    named = {name for _, ours, _ in rows(document) for name in SPAN.findall(ours)}
    assert (without, [name for name in sorted(named) if not exists(name)]) == ([], [])


@pytest.mark.parametrize(
    "name",
    [
        *("turngate nonsense", "turngate runs nonsense", "turngate run --nonsense", "$NONSENSE", "/nonsense"),
        *('"nonsense"', "docs/nonsense.md", ".mux/nonsense", "Nonsense", "Session.nonsense"),
        *("Session(nonsense)", "core.nonsense", "core.conversation.messages.Usage.nonsenseTokens"),
    ],
)
def test_a_name_that_is_misspelled_does_not_exist(name: str) -> None:
    assert not exists(name)


def exists(name: str) -> bool:
    """Whether there is such a command, variable, slash command, key, file, event, handler, or name in Python."""
    match name[0]:
        case "t" if name.startswith("turngate "):
            return is_command(name.split()[1:])
        case "$":
            return name == ARGUMENTS or name[1:] in variables()
        case "/":
            chat = ROOT / "src" / "turngate" / "cli" / "commands" / "run" / "chat.py"
            return f'case "{name}"' in chat.read_text()
        case '"':
            return name.strip('"') in keys()
        case _ if "/" in name:
            return (ROOT / name).exists() or name in settings_files()
        case _:
            return name in EVENTS or name in get_args(PluginHook) or is_python_name(name)


def is_command(words: list[str]) -> bool:
    if words[0] not in COMMANDS:
        return False
    known = subprocess.run(
        [sys.executable, "-m", "turngate", words[0], "--help"], capture_output=True, text=True, check=True
    ).stdout
    return all(re.search(rf"(?<![\w-]){word}(?![\w-])", known) for word in words[1:])


@functools.cache
def variables() -> set[str]:
    """Return the variables of a hook that was run."""
    hook, world = CommandHook("env"), World(LocalShell(), project=str(ROOT))
    settings = Settings(rules=(Rule("Stop", hook),))
    verdict = asyncio.run(ask_hooks(StopEvent(session_id="s", transcript_path="t"), settings, world))
    report = verdict.runs[0].report
    assert isinstance(report, Exited)
    return {line.partition("=")[0] for line in report.stdout.splitlines()}


@functools.cache
def keys() -> set[str]:
    """Return the keys of settings, of hook input and of hook output."""
    found: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            found.update(value.get("properties", ()))
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(each)

    for file in (ROOT / "schemas").glob("*.json"):
        collect(json.loads(file.read_text()))
    return found


def settings_files() -> set[str]:
    names = ("{}/settings.json", "~/{}/settings.json", "{}/settings.local.json")
    files = {name.format(f".{family}") for name in names for family in FAMILIES["turngate"]}
    return files | {f".{family}/{script}" for family in SCRIPT_FAMILIES for script in SCRIPTS.values()}


def is_python_name(name: str) -> bool:
    """Whether `Session.send`, `Session.send(prompt)` or `core.conversation.inbox.Inbox` exists in `turngate`."""
    path, _, parameter = name.removesuffix(")").partition("(")
    value: Any = turngate
    for part in path.split("."):
        if not has_member(value, part):
            return False
        value = getattr(value, part, None)
    return not parameter or parameter in inspect.signature(value).parameters


def has_member(value: Any, name: str) -> bool:
    if inspect.ismodule(value) and not hasattr(value, name):
        try:
            importlib.import_module(f"{value.__name__}.{name}")
        except ImportError:
            return False
    if is_dataclass(value) and name in value.__dataclass_fields__:
        return True
    if isinstance(value, type) and issubclass(value, CamelCaseAccess) and snake_case(name) != name:
        return has_member(value, snake_case(name))
    return hasattr(value, name) or name in getattr(value, "__annotations__", ())
