"""The names that users import."""

import ast
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
from tools.api import MEMBERS, NAMES, TYPES, lost_names, public_names

import turngate
from turngate import (
    AgentHook,
    BaseHookInput,
    CallbackHook,
    CommandHook,
    GateHook,
    HookCallback,
    HookConfig,
    HookEvent,
    HttpHook,
    PromptHook,
    ScriptedModel,
    Session,
    StopHookInput,
    SubagentStopHookInput,
)

PUBLIC: tuple[str, ...] = vars(turngate)["__all__"]


# Names for what has another name already.
ALIASES = {
    "CommandHookConfig": "CommandHook",
    "PromptHookConfig": "PromptHook",
    "CallbackHookConfig": "CallbackHook",
    "Workspace": "World",
    "GoHome": "EndTurn",  # deprecated, removed in 0.2
    "GoOn": "ContinueTurn",
}


def test_every_public_name_can_be_imported() -> None:
    named = {name: getattr(turngate, name).__name__ for name in PUBLIC if name not in TYPES}
    assert named == {name: ALIASES.get(name, name) for name in PUBLIC if name not in TYPES}


@pytest.mark.req("S2-03", "S2-09")
def test_the_types_of_the_documents_are_public() -> None:
    kinds = (CommandHook, PromptHook, AgentHook, HttpHook, GateHook, CallbackHook)
    assert get_args(HookConfig) == kinds
    assert HookEvent is str
    assert HookCallback == Callable[..., Any]
    base = ["session_id", "transcript_path", "cwd", "permission_mode"]
    assert [each.name for each in fields(BaseHookInput)] == base
    for input_type in (StopHookInput, SubagentStopHookInput):
        assert issubclass(input_type, BaseHookInput)


@pytest.mark.req("S2-33")
def test_the_public_names_and_how_they_are_called_are_those_that_were_promised() -> None:
    """`make api` writes what is added. What takes something away breaks users, and is removed by hand."""
    assert public_names() == NAMES.read_text().splitlines()


def test_a_session_shows_only_what_users_need(project: Path) -> None:
    session = Session(str(project), ScriptedModel({"main": []}))
    shown = {name for name in dir(session) if not name.startswith("_")}
    assert shown == set(MEMBERS["Session"])


def test_a_name_or_a_parameter_that_is_gone_is_not_accepted_by_the_generator() -> None:
    before = ["One(a, *, b=None)", "Two()", "Three(x)"]
    assert lost_names(before, ["One(a, *, c=None)", "Three(x, y=1)"]) == ["One(b)", "Two"]


@pytest.mark.req("S2-33")
def test_the_names_of_the_first_sdks_are_the_same_classes() -> None:
    differing = [
        name for name, same in ALIASES.items() if getattr(turngate, name) is not getattr(turngate, same)
    ]
    assert not differing


def test_the_types_and_the_names_agree() -> None:
    stub = ast.parse((Path(turngate.__file__).parent / "__init__.pyi").read_text())
    named = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    in_stub, in_module = {each for each in named if each}, {*PUBLIC}
    lacks = f"`__init__.pyi` lacks {in_module - in_stub}, `__init__.py` lacks {in_stub - in_module}"
    assert in_stub == in_module, lacks


def test_no_module_has_the_name_of_a_public_function() -> None:
    """The import of such a module would replace the function."""
    assert not {module.name for module in pkgutil.iter_modules(turngate.__path__)} & set(PUBLIC)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'turngate' has no attribute 'nonsense'"):
        turngate.nonsense  # type: ignore[attr-defined] # noqa: B018


def test_nothing_happens_on_import() -> None:
    code = "import sys; before = set(sys.modules); import turngate; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in ast.literal_eval(done.stdout) if name.startswith("turngate")]
    assert loaded == ["turngate"]
