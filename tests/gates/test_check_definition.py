"""Which parts of a project define a check, and how a change of them is described."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import turngate
from turngate.gates.check_definition import check_definition, describe_changes
from turngate.gates.find_checks import ProjectFiles

PACKAGE = {
    "scripts": {"test": "npm run unit && eslint .", "unit": "vitest run", "pretest": "tsc", "dev": "vite"},
    "jest": {"testMatch": ["**/*.test.js"]},
}
MAKEFILE = "all:\n\techo all\n\ntest: unit ## runs tests\n\tpytest -q\n\nunit:\n\ttrue\n\nother:\n\tfalse\n"
PYPROJECT = '[project]\nname = "shop"\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n\n[tool.ruff]\nline-length = 99\n'
CONFTEST = (
    "import pytest\n\ncollect_ignore = ['test_slow.py']\n\n@pytest.fixture\ndef shop():\n    return 1\n"
)


def files(**texts: str) -> ProjectFiles:
    named = {name.replace("__", "/").replace("_", "."): text for name, text in texts.items()}
    return ProjectFiles(frozenset(named), named)


def test_the_scripts_that_a_command_runs_define_it() -> None:
    assert check_definition("tests", ["npm test"], files(package_json=json.dumps(PACKAGE))) == {
        "the script `pretest` of package.json": "tsc",
        "the script `test` of package.json": "npm run unit && eslint .",
        "the script `unit` of package.json": "vitest run",
        "`jest` of package.json": '{\n "testMatch": [\n  "**/*.test.js"\n ]\n}',
    }


def test_the_recipes_that_a_command_runs_define_it() -> None:
    assert check_definition("tests", ["make test"], files(Makefile=MAKEFILE)) == {
        "the target `test` of Makefile": "unit ## runs tests\n\tpytest -q",
        "the target `unit` of Makefile": "true",
    }


def test_the_configuration_of_the_tools_of_a_check_defines_it() -> None:
    project = files(
        pyproject_toml=PYPROJECT,
        setup_cfg="[tool:pytest]\naddopts = -x\n[mypy-shop.*]\nignore_errors = True\n",
        conftest_py=CONFTEST,
        mypy_ini="[mypy]\nstrict = True\n",
    )
    assert check_definition("tests", ["pytest -q"], project) == {
        "[tool.pytest] of pyproject.toml": '{\n "ini_options": {\n  "testpaths": [\n   "tests"\n  ]\n }\n}',
        "[tool:pytest] of setup.cfg": '{\n "addopts": "-x"\n}',
        "what conftest.py leaves out": "collect_ignore = ['test_slow.py']",
    }
    assert check_definition("types", ["mypy"], project) == {
        "[mypy-shop.*] of setup.cfg": '{\n "ignore_errors": "True"\n}',
        "mypy.ini": "[mypy]\nstrict = True\n",
    }


def test_lines_of_make_that_change_how_the_recipe_runs_define_it_too() -> None:
    makefile = (
        "SHELL = /bin/true\nPYTEST = pytest\nVERSION = 1\ninclude more.mk\n.IGNORE:\n"
        "test: PYTEST = true\nlint test:\n\t$(PYTEST) -q\ntest:\n\t@true\n"
    )
    assert check_definition("tests", ["make test"], files(Makefile=makefile)) == {
        "the target `test` of Makefile": "PYTEST = true\n$(PYTEST) -q\n@true",
        "what Makefile sets for it": "SHELL = /bin/true\nPYTEST = pytest\ninclude more.mk\n.IGNORE:\ntest: PYTEST = true",
    }


def test_broken_files_define_nothing() -> None:
    project = files(package_json="{", pyproject_toml="[", setup_cfg="]x", Makefile="\x00:::")
    assert check_definition("tests", ["make test && npm test"], project) == {}


def test_a_change_is_described_by_both_values_or_by_the_lines_that_differ() -> None:
    before = {"a": "vitest run", "b": "1\n2\n3", "gone": "x", "same": "y"}
    now = {"a": "true", "b": "1\n2b\n3", "same": "y", "new": "z"}
    assert describe_changes(before, now) == [
        "a was `vitest run`, now `true`",
        "b was changed:\n-2\n+2b",
        "gone was removed: `x`",
        "new is new: `z`",
    ]


# As a gate


def stop(project: Path, *gate: str, **fields: Any) -> dict[str, Any]:
    event = {"session_id": "s", "hook_event_name": "Stop", "cwd": str(project), "stop_hook_active": False}
    code, out, _ = turngate("gate", *(gate or ("tests",)), stdin=json.dumps({**event, **fields}))
    assert code == 0
    return dict(json.loads(out)) if out.strip() else {}


@pytest.fixture
def shop(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project)
    (project / "Makefile").write_text("test:\n\techo 1 passed; exit 0\n")
    return project


CHANGED = """\
The check `tests` itself was changed in this session:
- the target `test` of Makefile was `echo 1 passed; exit 0`, now `echo 2 passed`
If the user has not asked for this, undo it. Otherwise stop again: the check then runs as it is now, and the user is told of the change."""


@pytest.mark.parametrize("first", ["Stop", "SessionStart"])
def test_a_check_that_was_changed_blocks_once_and_then_the_user_is_told(shop: Path, first: str) -> None:
    assert stop(shop, hook_event_name=first) == {}
    (shop / "Makefile").write_text("test:\n\techo 2 passed\n")
    assert stop(shop) == {"decision": "block", "reason": CHANGED}
    told = {
        "systemMessage": 'gate "tests": the target `test` of Makefile was `echo 1 passed; exit 0`, now `echo 2 passed`'
    }
    assert [stop(shop), stop(shop)] == [told, told]
    (shop / "Makefile").write_text("test:\n\techo 3 passed\n")
    assert stop(shop)["decision"] == "block"
    (shop / "Makefile").write_text("test:\n\techo 1 passed; exit 0\n")
    assert stop(shop) == {}


def test_a_check_that_was_removed_blocks_once_and_then_could_not_run(shop: Path) -> None:
    assert stop(shop) == {}
    (shop / "Makefile").unlink()
    assert "the target `test` of Makefile was removed: `echo 1 passed; exit 0`" in stop(shop)["reason"]
    assert "could not run" in stop(shop)["systemMessage"]


def test_an_edit_beside_the_definition_changes_nothing(shop: Path) -> None:
    assert stop(shop) == {}
    (shop / "Makefile").write_text("test:\n\techo 1 passed; exit 0\n\nclean:\n\trm -rf build\n")
    (shop / "test_shop.py").write_text("def test_one(): pass\n")
    assert stop(shop) == {}


def test_the_gate_command_notices_a_changed_recipe_too(shop: Path) -> None:
    assert stop(shop, "--", "make test") == {}
    (shop / "Makefile").write_text("test:\n\ttrue\n")
    assert "the target `test` of Makefile was" in stop(shop, "--", "make test")["reason"]


def test_work_that_changes_only_how_a_check_is_started_does_not_block(
    project: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(project)
    (project / "test_a.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
    )
    assert stop(project) == {}
    (project / "tests").mkdir()
    (project / "test_a.py").rename(project / "tests" / "test_a.py")
    assert stop(project) == {}


def test_an_exit_code_of_0_does_not_hide_that_tests_have_failed(shop: Path) -> None:
    (shop / "Makefile").write_text("test:\n\t@echo '1 failed, 2 passed in 0.1s'\n")
    assert stop(shop)["reason"].startswith("`make test`: exit code 0, although tests have failed")
