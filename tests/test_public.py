"""The names that users import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import turngate

PUBLIC: tuple[str, ...] = vars(turngate)["__all__"]


def test_every_public_name_can_be_imported() -> None:
    assert {name: getattr(turngate, name).__name__ for name in PUBLIC} == {name: name for name in PUBLIC}


def test_the_types_and_the_names_agree() -> None:
    stub = ast.parse((Path(turngate.__file__).parent / "__init__.pyi").read_text())
    named = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert named == set(PUBLIC)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'turngate' has no attribute 'nonsense'"):
        turngate.nonsense  # type: ignore[attr-defined] # noqa: B018


def test_nothing_happens_on_import() -> None:
    code = "import sys; before = set(sys.modules); import turngate; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in ast.literal_eval(done.stdout) if name.startswith("turngate")]
    assert loaded == ["turngate"]
