"""Which parts of a project define a check, and how a change of them is described."""

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import turngate
from tests.support.gates import answer_with_shell, claude_input, record_with_shell
from tests.support.git_projects import git, make_repository, write
from turngate.core.events.events import StopEvent
from turngate.gates.check_changes import ARGUMENTS, HASH_OF, describe_changes, find_definition
from turngate.gates.library.project_checks import TESTS
from turngate.gates.project_files import read_project_files
from turngate.gates.run_gate import make_context
from turngate.shells.local import LocalShell

Files = Mapping[str, str]  # by name

PACKAGE = {
    "scripts": {"test": "npm run unit && jest .", "unit": "vitest run", "pretest": "tsc", "dev": "vite"},
    "jest": {"testMatch": ["**/*.test.js"]},
}
MAKEFILE = "all:\n\techo all\n\ntest: unit ## runs tests\n\tpytest -q\n\nunit:\n\ttrue\n\nother:\n\tfalse\n"
PYPROJECT = '[project]\nname = "shop"\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n\n[tool.ruff]\nline-length = 99\n'
CONFTEST = (
    "import pytest\n\ncollect_ignore = ['test_slow.py']\n\n@pytest.fixture\ndef shop():\n    return 1\n"
)


def all_parts(project: Path, *commands: str, **environ: str) -> dict[str, str]:
    async def find() -> dict[str, str]:
        event = StopEvent(session_id="s", transcript_path="", cwd=str(project))
        context = make_context(TESTS, event, LocalShell(), str(project), options={}, environ=environ)
        return await find_definition(context, commands, read_project_files(str(project)))

    return asyncio.run(find())


def definition(project: Path, *commands: str, **environ: str) -> dict[str, str]:
    """Return the parts of which a change blocks."""
    parts = all_parts(project, *commands, **environ)
    return {label: text for label, text in parts.items() if not label.startswith(HASH_OF)}


def hashed_files(project: Path, command: str) -> dict[str, str]:
    """Return the hashes of the files on which a check may depend."""
    parts = all_parts(project, command)
    return {label.removeprefix(HASH_OF): text for label, text in parts.items() if label.startswith(HASH_OF)}


def test_the_scripts_that_a_command_runs_define_it(project: Path) -> None:
    write(project, {"package.json": json.dumps(PACKAGE)})
    assert definition(project, "npm test") == {
        "the command": "npm test",
        "the script `pretest` of package.json": "tsc",
        "the script `test` of package.json": "npm run unit && jest .",
        "the script `unit` of package.json": "vitest run",
        "the key `jest` of package.json": '{\n "testMatch": [\n  "**/*.test.js"\n ]\n}',
    }


def test_the_recipes_that_a_command_runs_define_it(project: Path) -> None:
    write(project, {"Makefile": MAKEFILE})
    assert definition(project, "make test") == {
        "the command": "make test",
        "`test` of Makefile": "unit\npytest -q",
        "`unit` of Makefile": "true",
    }


def test_make_without_a_target_is_defined_by_all_of_them(project: Path) -> None:
    write(project, {"Makefile": MAKEFILE})
    targets = ["`all` of Makefile", "`other` of Makefile", "`test` of Makefile", "`unit` of Makefile"]
    assert sorted(definition(project, "make -s")) == [*targets, "the command"]


def test_the_configuration_of_the_tools_of_a_check_defines_it(project: Path) -> None:
    files = {
        "pyproject.toml": PYPROJECT,
        "setup.cfg": "[tool:pytest]\naddopts = -x\n[mypy-shop.*]\nignore_errors = True\n",
        "conftest.py": CONFTEST,
        "mypy.ini": "[mypy]\nstrict = True\n",
    }
    write(project, files)
    assert definition(project, "uv run pytest -q") == {
        "the command": "pytest",
        "[tool.pytest] of pyproject.toml": '{\n "ini_options": {\n  "testpaths": [\n   "tests"\n  ]\n }\n}',
        "[tool:pytest] of setup.cfg": '{\n "addopts": "-x"\n}',
        "what conftest.py does for all tests": "collect_ignore = ['test_slow.py']",
    }
    assert definition(project, ".venv/bin/mypy .") == {
        "the command": "mypy",
        "[mypy-shop.*] of setup.cfg": '{\n "ignore_errors": "True"\n}',
        "mypy.ini": '{\n "mypy": {\n  "strict": "True"\n }\n}',
    }


# What changes a check: files before, the command, files after, the first change.
WEAKENED: dict[str, tuple[Files, str, Files, str]] = {
    "the configuration of another tool that the target runs": (
        {"Makefile": "check:\n\truff check .\n\tpytest\n", "pyproject.toml": "[tool.ruff]\n"},
        "make check",
        {"pyproject.toml": "[tool.ruff]\nexclude = ['src']\n"},
        '[tool.ruff] of pyproject.toml was changed:\n-{}\n+{\n+ "exclude": [\n+  "src"\n+ ]\n+}',
    ),
    "a script behind the script": (
        {"package.json": '{"scripts": {"test": "sh scripts/test.sh"}}', "scripts/test.sh": "exit 1\n"},
        "npm test",
        {"scripts/test.sh": "exit 0\n"},
        "scripts/test.sh was `exit 1`, now `exit 0`",
    ),
    "code that the script runs": (
        {"package.json": '{"scripts": {"test": "node run.js"}}', "run.js": "check()\n"},
        "npm test",
        {"run.js": "\n"},
        "run.js was `check()`, now ``",
    ),
    "a file that make includes": (
        {"Makefile": "test: unit\ninclude rules.mk\n", "rules.mk": "unit:\n\t@exit 1\n"},
        "make test",
        {"rules.mk": "unit:\n\t@true\n"},
        "`unit` of rules.mk was `@exit 1`, now `@true`",
    ),
    "the Makefile of a folder": (
        {"Makefile": "test:\n\t$(MAKE) -C sub test\n", "sub/Makefile": "test:\n\t@exit 1\n"},
        "make test",
        {"sub/Makefile": "test:\n\t@true\n"},
        "`test` of sub/Makefile was `@exit 1`, now `@true`",
    ),
    "a variable of a variable": (
        {"Makefile": "FLAGS = $(MORE)\nMORE ?= 1\ntest:\n\texit $(FLAGS)\n"},
        "make test",
        {"Makefile": "FLAGS = $(MORE)\nMORE ?= 0\ntest:\n\texit $(FLAGS)\n"},
        "the variable `MORE` of Makefile was `1`, now `0`",
    ),
    "a variable of several lines": (
        {"Makefile": "define RUN\nexit 1\nendef\ntest:\n\t$(call RUN)\n"},
        "make test",
        {"Makefile": "define RUN\ntrue\nendef\ntest:\n\t$(call RUN)\n"},
        "the variable `RUN` of Makefile was `exit 1`, now `true`",
    ),
    "a test that a list of make skips": (
        {"Makefile": "SKIP_TESTS = a\ntest:\n\t./run $(SKIP_TESTS)\n"},
        "make test",
        {"Makefile": "SKIP_TESTS = a b\ntest:\n\t./run $(SKIP_TESTS)\n"},
        "the variable `SKIP_TESTS` of Makefile was `a`, now `a b`",
    ),
    "a conftest.py that sets options of pytest": (
        {},
        "pytest",
        {"conftest.py": "def pytest_configure(config):\n    config.option.keyword = 'not slow'\n"},
        "what conftest.py does for all tests is new: `def pytest_configure(config): config.option.keyword = 'not slow'`",
    ),
    "how make runs all recipes": (
        {"Makefile": "test:\n\texit 1\n"},
        "make test",
        {"Makefile": "SHELL = /bin/true\ntest:\n\texit 1\n"},
        "what Makefile sets for it is new: `SHELL = /bin/true`",
    ),
    "a second rule for several targets": (
        {"Makefile": "test:\n\texit 1\n"},
        "make test",
        {"Makefile": "test:\n\texit 1\n\ntest .PHONY unit:\n\ttrue\n"},
        "`test` of Makefile was changed:\n+true",
    ),
    "a variable of several targets": (
        {"Makefile": "PY = pytest\ntest:\n\t$(PY) -q\n"},
        "make test",
        {"Makefile": "PY = pytest\ntest:\n\t$(PY) -q\ntest unit: PY = true\n"},
        "`test` of Makefile was changed:\n+PY = true",
    ),
    "a file that make reads instead": (
        {"Makefile": "test:\n\texit 1\n"},
        "make test",
        {"GNUmakefile": "test:\n\ttrue\n"},
        "`test` of Makefile was removed: `exit 1`",
    ),
    "code that a silent recipe runs": (
        {"Makefile": "test:\n\t@-python3 run_checks.py\n", "run_checks.py": "exit(1)\n"},
        "make test",
        {"run_checks.py": "print(1)\n"},
        "run_checks.py was `exit(1)`, now `print(1)`",
    ),
    "code that a configuration imports": (
        {"vitest.config.ts": 'import shared from "./config/shared"\n', "config/shared.ts": "export {}\n"},
        "npx vitest run",
        {"config/shared.ts": "export default {exclude: ['src']}\n"},
        "config/shared.ts was `export {}`, now `export default {exclude: ['src']}`",
    ),
    "a script that is run with options": (
        {"package.json": '{"scripts": {"test": "npm --silent run --if-present unit", "unit": "exit 1"}}'},
        "npm test",
        {"package.json": '{"scripts": {"test": "npm --silent run --if-present unit", "unit": "true"}}'},
        "the script `unit` of package.json was `exit 1`, now `true`",
    ),
    "a script that code runs": (
        {
            "package.json": '{"scripts": {"test": "node run.js", "unit": "exit 1"}}',
            "run.js": "spawnSync('npm', ['run', 'unit'])\n",
        },
        "npm test",
        {"package.json": '{"scripts": {"test": "node run.js", "unit": "true"}}'},
        "the script `unit` of package.json was `exit 1`, now `true`",
    ),
    "scripts that are run by a pattern": (
        {"package.json": '{"scripts": {"lint": "run-s lint:*", "lint:js": "eslint ."}}'},
        "npm run lint",
        {"package.json": '{"scripts": {"lint": "run-s lint:*", "lint:js": "true"}}'},
        "the script `lint:js` of package.json was `eslint .`, now `true`",
    ),
    "a script of a workspace": (
        {
            "package.json": '{"scripts": {"test": "npm test --workspaces"}}',
            "packages/a/package.json": '{"scripts": {"test": "exit 1"}}',
        },
        "npm test",
        {"packages/a/package.json": '{"scripts": {"test": "true"}}'},
        "the script `test` of packages/a/package.json was `exit 1`, now `true`",
    ),
    "how npm runs scripts": (
        {"package.json": '{"scripts": {"test": "exit 1"}}'},
        "npm test",
        {".npmrc": "//registry/:_authToken=secret\nscript-shell=/bin/true\n"},
        ".npmrc is new: `script-shell=/bin/true`",
    ),
    "the file of another runner": (
        {"tox.ini": "[testenv]\ncommands = exit 1\n"},
        "tox",
        {"tox.ini": "[testenv]\ncommands = true\n"},
        '[testenv] of tox.ini was changed:\n- "commands": "exit 1"\n+ "commands": "true"',
    ),
    "a configuration that another one extends": (
        {"tsconfig.json": '{"extends": "./config/base"}', "config/base.json": '{"strict": true}'},
        "npx tsc --noEmit",
        {"config/base.json": '{"strict": false}'},
        'config/base.json was changed:\n- "strict": true\n+ "strict": false',
    ),
    "a configuration beside that of the tool": (
        {"package.json": '{"scripts": {"test": "vitest run"}}', "vite.config.ts": "export default {}\n"},
        "npm test",
        {"vite.config.ts": "export default {test: {exclude: ['**']}}\n"},
        "vite.config.ts was `export default {}`, now `export default {test: {exclude: ['**']}}`",
    ),
    "a script behind a variable and an option": (
        {"Makefile": "PYTHON = python3\ntest:\n\t$(PYTHON) -u dev/all.py\n", "dev/all.py": "exit(1)\n"},
        "make test",
        {"dev/all.py": "print(1)\n"},
        "dev/all.py was `exit(1)`, now `print(1)`",
    ),
    "a script in a folder that the command changes to": (
        {"Makefile": "test:\n\tcd dev && CI=1 exec ./check\n", "dev/check": "exit 1\n"},
        "make test",
        {"dev/check": "true\n"},
        "dev/check was `exit 1`, now `true`",
    ),
    "a module that is run": (
        {"Makefile": "test:\n\tpython3 -m qa.runner\n", "qa/runner.py": "exit(1)\n"},
        "make test",
        {"qa/runner.py": "print(1)\n"},
        "qa/runner.py was `exit(1)`, now `print(1)`",
    ),
    "one of several configurations that another one extends": (
        {"tsconfig.json": '{"extends": ["./cfg/a.json", "./cfg/b.json"]}', "cfg/b.json": '{"strict": true}'},
        "npx tsc --noEmit",
        {"cfg/b.json": '{"strict": false}'},
        'cfg/b.json was changed:\n- "strict": true\n+ "strict": false',
    ),
    "a configuration that an option names": (
        {
            "Makefile": "types:\n\tmypy --config-file cfg/strict.cfg .\n",
            "cfg/strict.cfg": "[mypy]\nstrict = True\n",
        },
        "make types",
        {"cfg/strict.cfg": "[mypy]\nstrict = False\n"},
        'cfg/strict.cfg was changed:\n-  "strict": "True"\n+  "strict": "False"',
    ),
    "a module that an option loads": (
        {
            "package.json": '{"scripts": {"test": "node --import ./setup.mjs --test"}}',
            "setup.mjs": "init()\n",
        },
        "npm test",
        {"setup.mjs": "process.exit(0)\n"},
        "setup.mjs was `init()`, now `process.exit(0)`",
    ),
    "what a linter ignores": (
        {},
        "prettier --check .",
        {".prettierignore": "**\n"},
        ".prettierignore is new: `**`",
    ),
    "a configuration in a folder": (
        {},
        "ruff check",
        {"shop/ruff.toml": "exclude = ['*']\n"},
        'shop/ruff.toml is new: `{ "exclude": [ "*" ] }`',
    ),
    "a configuration above the folder of the command": (
        {"libs/alpha/a.py": ""},
        "cd libs/alpha && ruff check .",
        {"libs/ruff.toml": "exclude = ['*']\n"},
        'libs/ruff.toml is new: `{ "exclude": [ "*" ] }`',
    ),
    "a first configuration": (
        {},
        "pytest -q",
        {"tests/.pytest.toml": "[pytest]\ntestpaths = ['tests/ok']\n"},
        'tests/.pytest.toml is new: `{ "pytest": { "testpaths": [ "tests/ok" ] } }`',
    ),
    "a conftest.py that ends the run": (
        {},
        "pytest",
        {"tests/unit/conftest.py": "raise SystemExit(0)\n"},
        "what tests/unit/conftest.py does for all tests is new: `raise SystemExit(0)`",
    ),
    "what a hook of pytest does": (
        {"conftest.py": "def pytest_collection_modifyitems(items):\n    print(items)\n"},
        "pytest",
        {"conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n"},
        "what conftest.py does for all tests was changed:\n-    print(items)\n+    items.clear()",
    ),
    "a fixture that skips all tests": (
        {},
        "pytest",
        {"conftest.py": "@pytest.fixture(autouse=True)\ndef _skip():\n    pytest.skip('later')\n"},
        "what conftest.py does for all tests is new: `@pytest.fixture(autouse=True) def _skip(): pytest.skip('later')`",
    ),
    "a script of a silent recipe": (
        {"Makefile": "test:\n\t@./check\n", "check": "exit 1\n"},
        "make test",
        {"check": "true\n"},
        "check was `exit 1`, now `true`",
    ),
    "variables that a Makefile includes": (
        {"Makefile": "include .env.ci\nlint:\n\t$(RUFF) check\n", ".env.ci": "RUFF = ruff\n"},
        "make lint",
        {".env.ci": "RUFF = true ruff\n"},
        ".env.ci was `RUFF = ruff`, now `RUFF = true ruff`",
    ),
    "a script whose ending is left out": (
        {"package.json": '{"scripts": {"lint": "node tasks/lint"}}', "tasks/lint.js": "check()\n"},
        "npm run lint",
        {"tasks/lint.js": "\n"},
        "tasks/lint.js was `check()`, now ``",
    ),
    "a blank in a script": (
        {"package.json": '{"scripts": {"test": "NODE_ENV=test mocha"}}'},
        "npm test",
        {"package.json": '{"scripts": {"test": "NODE_ENV=testmocha"}}'},
        "the script `test` of package.json was `NODE_ENV=test mocha`, now `NODE_ENV=testmocha`",
    ),
    "the first target of make, which options do not name": (
        {"Makefile": "all:\n\t$(MAKE) -C ci > log\n", "ci/Makefile": "unit:\n\texit 1\n"},
        "make -j 4 V=1",
        {"ci/Makefile": "unit:\n\ttrue\n"},
        "`unit` of ci/Makefile was `exit 1`, now `true`",
    ),
    "a list of make with a command": (
        {"Makefile": "TESTS = a b\ntest:\n\t./run $(TESTS)\n"},
        "make test",
        {"Makefile": "TESTS = a b || true\ntest:\n\t./run $(TESTS)\n"},
        "the variable `TESTS` of Makefile was `a b`, now `a b || true`",
    ),
    "configuration that a tool looks for in .github": (
        {},
        "actionlint",
        {".github/actionlint.yaml": "paths: {}\n"},
        ".github/actionlint.yaml is new: `paths: {}`",
    ),
    "a program that no installer writes": (
        {},
        ".venv/bin/pytest -q",
        {".venv/bin/pytest": "#!/bin/sh\nexit 0\n"},
        ".venv/bin/pytest is new: `#!/bin/sh exit 0`",
    ),
}


@pytest.mark.parametrize("name", WEAKENED)
def test_it_is_a_change_of_the_check(name: str, project: Path) -> None:
    before, command, after, change = WEAKENED[name]
    write(project, before)
    recorded = definition(project, command)
    write(project, after)
    assert describe_changes(recorded, definition(project, command)) == [change]


# Ordinary work: files before, the command, files after.
ORDINARY: dict[str, tuple[Files, str, Files]] = {
    "a dependency, and a script that is not run": (
        {"package.json": '{"scripts": {"test": "jest"}}'},
        "npm test",
        {"package.json": '{"scripts": {"test": "jest", "dev": "vite"}, "dependencies": {"a": "1"}}'},
    ),
    "another target and variable of make": (
        {"Makefile": "test:\n\ttrue\n"},
        "make test",
        {
            "Makefile": "# Targets\nIMAGE = x\n.PHONY: test push\ntest:\n\ttrue\n\npush:\n\tdocker push $(IMAGE)\n"
        },
    ),
    "a formatter": (
        {
            "tsconfig.json": '{"strict":true}',
            "conftest.py": "def pytest_configure( config ):\n    import os\n",
        },
        "npx tsc && pytest",
        {
            "tsconfig.json": '{\n  "strict": true\n}\n',
            "conftest.py": '# Hooks\ndef pytest_configure(config):\n    """Start."""\n    import os\n',
        },
    ),
    "a fixture, an option and a marker": (
        {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-x'\n"},
        "pytest",
        {
            "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-x'\nmarkers = ['slow: takes long']\n",
            "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef db():\n    return 1\n\n"
            "def pytest_addoption(parser):\n    parser.addoption('--slow')\n\n"
            "def pytest_configure(config):\n    config.addinivalue_line('markers', 'net: needs a network')\n",
        },
    ),
    "tests, sources and documents that are named": (
        {
            "package.json": '{"scripts": {"build": "esbuild src/a.js && cp README.md dist", "test": "node tests/a.js"}}',
            **dict.fromkeys(("src/a.js", "README.md", "tests/a.js"), "1\n"),
        },
        "npm test && npm run build",
        dict.fromkeys(("src/a.js", "README.md", "tests/a.js"), "2\n"),
    ),
    "the program that the tests run, and what is built": (
        {
            "Makefile": "test: calc\n\t./calc 1 && node cli.js && sh bin/backup.sh && bats tests/all.bats\n",
            "cli.js": "1\n",
            "bin/backup.sh": "1\n",
            "tests/all.bats": "1\n",
            "run": "\0one",
        },
        "make test && ./run",
        {
            "calc": "\0binary",
            "cli.js": "2\n",
            "bin/backup.sh": "2\n",
            "tests/all.bats": "2\n",
            "run": "\0two",
        },
    ),
    "files that are only checked": (
        {
            "Makefile": "test:\n\tnode test.js && python3 tests.py && sh -n install.sh && grep -q a api/openapi.yaml\n"
            "\tnode src/main.js --self-test && python3 -m json.tool data/seed.json\n",
        },
        "make test",
        dict.fromkeys(
            ("test.js", "tests.py", "install.sh", "api/openapi.yaml", "src/main.js", "data/seed.json"), "2\n"
        ),
    ),
    "what a command imports, reads, copies and removes": (
        dict.fromkeys(("dates.py", "config.json", "report.json", "a.py"), "1\n"),
        "python3 -c 'import dates' && jq -e . config.json; rm -f report.json; cp -r a.py b.py",
        dict.fromkeys(("dates.py", "config.json", "report.json", "a.py", "b.py"), "2\n"),
    ),
    "what tools write beside their configuration": (
        {"tsconfig.json": "{}"},
        "npx tsc && coverage run -m pytest --junitxml=pytest.xml",
        dict.fromkeys((".coverage", "tsconfig.tsbuildinfo", "pytest.xml"), "2\n"),
    ),
    "a source file in a Makefile": (
        {"Makefile": "SRCS = a.c\nOBJS = $(SRCS:.c=.o)\ntest: prog\n\t./prog\nprog: $(OBJS)\n\tcc $(OBJS)\n"},
        "make test",
        {
            "Makefile": "SRCS = a.c b.c\nOBJS = $(SRCS:.c=.o)\ntest: prog\n\t./prog\nprog: $(OBJS)\n\tcc $(OBJS)\n"
        },
    ),
    "a formatter of code": (
        {
            "tsconfig.json": '{\n  // target\n  "lib": [\n    "es6"\n  ]\n}\n',
            "eslint.config.js": "export default [ {rules: {'a': 1}} ]\n",
        },
        "npx tsc && npx eslint .",
        {
            "tsconfig.json": '{\n  // target\n  "lib": ["es6"]\n}\n',
            "eslint.config.js": "export default [{ rules: { a: 1 }, }];\n",
        },
    ),
    "a dependency of a workspace": (
        {"npm-shrinkwrap.json": "{}", "pnpm-workspace.yaml": "catalog:\n  react: 18\n"},
        "pnpm test",
        {"npm-shrinkwrap.json": '{"a": 1}', "pnpm-workspace.yaml": "catalog:\n  react: 19\n"},
    ),
    "configuration of sample projects": (
        {},
        "ruff check",
        {"tests/fixtures/a/ruff.toml": "exclude = ['*']\n"},
    ),
    "the configuration of a tool that the check does not run": (
        {},
        "pytest",
        {"ruff.toml": "line-length = 80\n"},
    ),
    "sources in rules and recipes of make, and what no target of the check uses": (
        {
            "Makefile": "test: calc\n\t./calc test\ncalc: main.o util.o\n\tgcc -o calc main.o util.o\nmain.o: main.c util.h\n"
        },
        "make test",
        {
            "Makefile": "test: calc\n\t./calc test\ncalc: main.o util.o parse.o\n\tgcc -o calc main.o util.o parse.o\n"
            "main.o: main.c util.h parse.h\nparse.o: parse.c\n\tgcc -c parse.c\n"
            "%.pdf: %.md\n\tpandoc $<\ndefine HELP\n  make test: runs it\nendef\nifdef DEBUG\nCFLAGS = -g\nendif\n"
        },
    ),
    "configuration in a folder beside that of the command": (
        {"alpha/ruff.toml": "line-length = 90\n"},
        "cd alpha && ruff check .",
        {"beta/ruff.toml": "line-length = 80\n", "al/ruff.toml": "line-length = 80\n"},
    ),
    "a test more in a list of make": (
        {"Makefile": "TESTS = test_a test_b\ntest: $(TESTS)\n\tfor t in $(TESTS); do ./$$t; done\n"},
        "make test",
        {"Makefile": "TESTS = test_a test_b test_c\ntest: $(TESTS)\n\tfor t in $(TESTS); do ./$$t; done\n"},
    ),
    "a script whose name is a word in configuration or code": (
        {
            "package.json": '{"scripts": {"test": "node scripts/check.js", "build": "vite build", "start": "vite"}}',
            "scripts/check.js": "const start = 1; check('build')\n",
            "vite.config.js": "export default {build: {outDir: 'dist'}}\n",
        },
        "npm test && vitest run",
        {"package.json": '{"scripts": {"test": "node scripts/check.js", "build": "true", "start": "true"}}'},
    ),
    "a program that a recipe writes": (
        {
            "Makefile": "test: run_tests\n\t./run_tests\nrun_tests: lib.sh\n\tcat lib.sh > $@\n",
            "run_tests": "1\n",
        },
        "make test",
        {"run_tests": "2\n"},
    ),
    "comments in configuration": (
        {
            "jest.config.js": "module.exports = {a: 'https://x'}\n",
            "tsconfig.json": '{"strict": true, "include": ["a/*"]}',
        },
        "jest && tsc",
        {
            "jest.config.js": "/** @type {import('jest').Config} */\nmodule.exports = {a: 'https://x'} // more\n",
            "tsconfig.json": '{"include": ["a/*"], /* why */\n  // and\n  "strict": true,}',
        },
    ),
    "functions and fixtures that tests of pytest call": (
        {"conftest.py": CONFTEST},
        "pytest",
        {
            "conftest.py": f"{CONFTEST}\nclass Runner:\n    def exit(self): self.exit()\n"
            "def run(main):\n    try:\n        main()\n    except SystemExit:\n        pass\n"
            "@fixture\ndef numbers():\n    return pytest.importorskip('numpy')\n"
            "def pytest_report_header():\n    return 'exit()'\n"
        },
    ),
    "reports that the check writes, and data of tests": (
        {"Makefile": "test: cli\n\t./shop < test_data/in.csv | diff - test_data/out.csv\n"},
        "make test && pytest --junitxml=test-results.xml && jest --json --outputFile test-results.json",
        dict.fromkeys(("test-results.xml", "test-results.json", "test_data/in.csv"), "1\n"),
    ),
    "an installed program": (
        {},
        ".venv/bin/pytest",
        {".venv/bin/pytest": "#!/srv/.venv/bin/python\nfrom pytest import console_main\n"},
    ),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_it_does_not_change_the_check(name: str, project: Path) -> None:
    before, command, after = ORDINARY[name]
    write(project, before)
    recorded = definition(project, command)
    write(project, after)
    assert describe_changes(recorded, definition(project, command)) == []


# What a check may depend on: files before, the command, files after, the files of which the user reads.
RARE = (
    ".mvn/extensions.xml",
    ".rspec-local",
    ".yarn/plugins/x.cjs",
    "gradle/test.gradle",
    "test/test_helper.exs",
)
NOTED: dict[str, tuple[Files, str, Files, list[str]]] = {
    "what make includes by a pattern, or where git ignores it": (
        {"Makefile": "include mk/*.mk\n-include .env local.mk\nexport\n", ".gitignore": "local.mk\n.env\n"},
        "make test",
        {"mk/test.mk": "test:\n\ttrue\n", "local.mk": "PYTEST = true\n", ".env": "PYTEST_ADDOPTS = --co\n"},
        [".env", "local.mk", "mk/test.mk"],
    ),
    "the Makefile of a folder, and a folder that is named as a target": (
        {"Makefile": "test: unit\n\tfor d in */; do $(MAKE) -C $$d test; done\nunit:\n\tpytest\n"},
        "make test",
        {"pkg/Makefile": "test:\n\ttrue\n", "unit/a": ""},
        ["pkg/Makefile", "unit"],
    ),
    "a script in a folder that a variable names": (
        {"Makefile": "S = scripts\ntest:\n\tsh $(S)/run\n"},
        "make test",
        {"scripts/run": "true\n"},
        ["scripts/run"],
    ),
    "the configuration of tools that are not known": (
        {},
        "npm test",
        dict.fromkeys(("dprint.json", "project.json", "mise.toml", "a/x.config.mjs", ".xrc"), "{}\n"),
        [".xrc", "a/x.config.mjs", "dprint.json", "mise.toml", "project.json"],
    ),
    "a module that takes the place of a tool": (
        {"Makefile": "test:\n\tpython3 -m pytest\n\tpython3 -m unittest\n"},
        "make test",
        dict.fromkeys(("pytest.py", "unittest/__main__.py", "other.py", "src/pytest.py"), "1\n"),
        ["pytest.py", "unittest/__main__.py"],
    ),
    "files of runners": (
        {},
        "ctest",
        dict.fromkeys(("CMakeLists.txt", "docker-compose.yml", "tasks.py"), "1\n"),
        ["CMakeLists.txt", "docker-compose.yml", "tasks.py"],
    ),
    "scripts of any package": (
        {
            "packages/ui/package.json": '{"scripts": {"test": "exit 1"}}',
            "pyproject.toml": "[tool.pdm.scripts]\n",
        },
        "npm test",
        {
            "packages/ui/package.json": '{"scripts": {"test": "true"}}',
            "pyproject.toml": "[tool.pdm.scripts]\ntest = 'true'\n",
        },
        ["packages/ui/package.json", "pyproject.toml"],
    ),
    "lists of what is checked, and what a recipe writes and includes": (
        {
            "Makefile": "lint:\n\teslint $$(cat list.txt) && mypy @types.lst\ninclude .depend\n",
            ".gitignore": ".depend\n",
        },
        "make lint",
        dict.fromkeys(("list.txt", "types.lst", ".depend", "rust-toolchain"), "1\n"),
        [".depend", "list.txt", "rust-toolchain", "types.lst"],
    ),
    "files of less common tools": (
        {name: "1\n" for name in RARE},
        "make test",
        {name: "2\n" for name in RARE},
        sorted(RARE),
    ),
    "not a dependency": (
        {"package.json": "{}", "pyproject.toml": "[tool.ruff]\n"},
        "npm test",
        {
            "package.json": '{"devDependencies": {"a": "1"}}\n',
            "pyproject.toml": "[project]\ndependencies = ['a']\n[tool.ruff]\n",
        },
        [],
    ),
    "neither sources, tests and documents nor samples": (
        {},
        "pytest",
        dict.fromkeys(("src/a.py", "tests/test_a.py", "README.md", "tests/fixtures/Makefile"), "1\n"),
        [],
    ),
}


@pytest.mark.parametrize("name", NOTED)
def test_the_user_reads_of_a_change_of_what_a_check_may_depend_on(name: str, project: Path) -> None:
    before, command, after, files = NOTED[name]
    make_repository(project, before)
    recorded = hashed_files(project, command)
    write(project, after)
    now = hashed_files(project, command)
    assert sorted(each for each in {**recorded, **now} if recorded.get(each) != now.get(each)) == files


def test_configuration_that_the_agent_lets_git_ignore_is_a_change_too(project: Path) -> None:
    make_repository(project, {"tests/unit/test_a.py": "def test_a(): assert 0\n"})
    recorded = definition(project, "pytest")
    with (project / ".git/info/exclude").open("a") as exclude:
        exclude.write("conftest.py\n")
    write(project, {"tests/unit/conftest.py": "collect_ignore = ['test_a.py']\n"})
    change = "what tests/unit/conftest.py does for all tests is new: `collect_ignore = ['test_a.py']`"
    assert describe_changes(recorded, definition(project, "pytest")) == [change]


def test_files_in_git_that_the_agent_lets_git_ignore_are_hidden_from_some_linters(project: Path) -> None:
    make_repository(project, {"shop/a.py": "import os\n", ".gitignore": "dist\n"})
    recorded = definition(project, "ruff check")
    write(project, {".gitignore": "dist\nbuild\n"})
    assert definition(project, "ruff check") == recorded
    write(project, {".gitignore": "shop\n"})
    change = "what .gitignore names of the files in git is new: `shop/a.py`"
    assert describe_changes(recorded, definition(project, "ruff check")) == [change]


def test_what_a_check_writes_does_not_define_it(project: Path) -> None:
    makefile = "test:\n\tjest --outputFile=report.json && node dist/cli.js\n"
    make_repository(project, {"Makefile": makefile, ".gitignore": "dist\nreport.json\n"})
    recorded = all_parts(project, "make test")
    write(project, {"report.json": "{}", "dist/cli.js": "1\n"})
    assert all_parts(project, "make test") == recorded


def test_the_user_reads_of_each_file_that_the_text_of_a_check_names(project: Path) -> None:
    files = {
        "Makefile": "test:\n\tnode cli.js > out.txt && python3 run.py && test -e done.log && ruff check app.py\n",
        **dict.fromkeys(("cli.js", "done.log", "app.py", "out.txt"), "1\n"),
        "run.py": "if 1:\n    check()\n",
    }
    write(project, files)
    before = hashed_files(project, "make test")
    write(
        project,
        {
            "run.py": "if 1:\n  check()\n",
            **dict.fromkeys(("cli.js", "done.log", "app.py", "out.txt"), "2\n"),
        },
    )
    now = hashed_files(project, "make test")
    assert [name for name in now if now[name] != before.get(name)] == ["cli.js", "run.py"]


def test_what_defines_a_check_above_the_project_counts_up_to_the_top_of_the_repository(
    tmp_path: Path,
) -> None:
    files = {
        "pyproject.toml": "",
        "repo/ruff.toml": "line-length = 80\n",
        "repo/rules.mk": "test:\n\tpytest\n",
    }
    write(tmp_path, {**files, "repo/app/Makefile": "include ../rules.mk\nlint:\n\truff check .\n"})
    git(tmp_path / "repo", "init", "--quiet")
    parts = definition(tmp_path / "repo" / "app", "make lint test")
    assert (parts["../ruff.toml"], parts["`test` of ../rules.mk"]) == ('{\n "line-length": 80\n}', "pytest")
    assert not [label for label in parts if "../../" in label]


def test_variables_that_tools_obey_define_a_check_too(project: Path) -> None:
    variables = {"MAKEFLAGS": "-n", "MAKEFILES": "x.mk", "GOFLAGS": "-run=^$"}
    assert definition(project, "make test", **variables, OTHER="1") == {
        "the command": "make test",
        **{f"the variable {name}": value for name, value in variables.items()},
    }


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("cargo test --all-features", "cargo"),
        ("./mvnw -B verify", "mvnw"),
        ("npx --no-install tsc --noEmit", "tsc"),
        ("cargo test || true", "cargo test || true"),
        ("node build.js", "node build.js"),
    ],
)
def test_the_arguments_of_a_checking_tool_are_no_part_of_its_check(
    command: str, program: str, project: Path
) -> None:
    assert definition(project, command) == {"the command": program}


def test_the_variables_of_a_command_count_as_its_arguments(project: Path) -> None:
    parts = all_parts(project, "RUSTFLAGS=-Dwarnings cargo check --all")
    assert (parts["the command"], parts[ARGUMENTS]) == ("cargo", "cargo check --all RUSTFLAGS=-Dwarnings")


def test_a_command_that_takes_the_place_of_another_one_is_a_change() -> None:
    before = {"the command": "pytest", "pytest.ini": "1"}
    assert describe_changes(before, {"the command": "make test", "`test` of Makefile": "true"}) == [
        "the command was `pytest`, now `make test`",
        "`test` of Makefile is new: `true`",
    ]
    assert describe_changes(before, {**before, "the command": "npm test\npytest"}) == []


def test_broken_files_define_nothing(project: Path) -> None:
    write(project, {"package.json": "{", "pyproject.toml": "[", "setup.cfg": "]x", "Makefile": "\x00:::"})
    assert definition(project, "make test && npm test && pytest") == {
        "the command": "make test && npm test && pytest"
    }


@pytest.mark.parametrize(
    "text", [" ", "a ", "=", "-make ", "make -", "test:", "/", "a/", "#", "$(a", '"""', "\t\n"]
)
def test_a_file_of_one_mebibyte_is_read_in_time(text: str, project: Path) -> None:
    hostile = f"x{text * (1024 * 1024 // len(text))}y\n"
    write(
        project,
        dict.fromkeys(("Makefile", "conftest.py", "pyproject.toml", ".pytest.ini", "run.sh"), hostile),
    )
    begun = time.process_time()
    definition(project, "make test; pytest; sh run.sh")
    assert time.process_time() - begun < 20  # a quadratic pattern would need minutes


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
- `test` of Makefile was `echo 1 passed; exit 0`, now `echo 2 passed`
If the user has not asked for this, undo it. Otherwise stop again: the check then runs as it is now, and the user is told of the change."""


@pytest.mark.parametrize("first", ["Stop", "SessionStart"])
def test_a_check_that_was_changed_blocks_once_and_then_the_user_is_told(shop: Path, first: str) -> None:
    assert stop(shop, hook_event_name=first) == {}
    (shop / "Makefile").write_text("test:\n\techo 2 passed\n")
    assert stop(shop) == {"decision": "block", "reason": CHANGED}
    told = {
        "systemMessage": 'gate "tests": `test` of Makefile was `echo 1 passed; exit 0`, now `echo 2 passed`'
    }
    assert [stop(shop), stop(shop)] == [told, told]
    (shop / "Makefile").write_text("test:\n\techo 3 passed\n")
    assert stop(shop)["decision"] == "block"
    (shop / "Makefile").write_text("test:\n\techo 1 passed; exit 0\n")
    undone = "nothing to check: the check failed at the last stop, and since then all changes of the session were undone"
    assert stop(shop) == ({"systemMessage": f'gate "tests": {undone}'} if first == "SessionStart" else {})


def test_a_check_that_was_removed_blocks_once_and_then_could_not_run(shop: Path) -> None:
    assert stop(shop) == {}
    (shop / "Makefile").unlink()
    assert "- the command was removed: `make test`\n" in stop(shop)["reason"]
    assert "could not run" in stop(shop)["systemMessage"]


def test_a_project_on_another_machine_is_read_as_one_on_this(project: Path) -> None:
    make_repository(project, {"Makefile": "test:\n\tsh ci/test.sh\n", "ci/test.sh": "echo 1 passed\n"})
    event = claude_input(project)
    record_with_shell(("tests",), event, project)
    write(project, {"ci/test.sh": "true\n", "README.md": "1\n"})
    assert (
        "- ci/test.sh was `echo 1 passed`, now `true`\n"
        in answer_with_shell(("tests",), event, project)["reason"]
    )


def test_an_edit_beside_the_definition_does_not_block_and_the_user_reads_which_file_was_changed(
    shop: Path,
) -> None:
    assert stop(shop) == {}
    (shop / "test_shop.py").write_text("def test_one(): pass\n")
    assert stop(shop) == {}
    (shop / "Makefile").write_text("test:\n\techo 1 passed; exit 0\n\nclean:\n\trm -rf build\n")
    note = 'gate "tests": the session changed Makefile, on which this check may depend'
    assert stop(shop) == {"systemMessage": note}
    write(shop, {f"ci/{number}.sh": "true\n" for number in range(6)})
    shown = "Makefile, ci/0.sh, ci/1.sh, ci/2.sh, ci/3.sh and 2 more"
    note = f'gate "tests": the session changed {shown}, on which this check may depend'
    assert stop(shop) == {"systemMessage": note}


def test_the_first_check_of_a_project_is_no_change(project: Path) -> None:
    assert stop(project, hook_event_name="SessionStart") == {}
    (project / "Makefile").write_text("test:\n\techo 1 passed\n")
    assert stop(project) == {}
    (project / "Makefile").write_text("test:\n\techo 2 passed\n")
    assert "`test` of Makefile was" in stop(project)["reason"]


@pytest.mark.parametrize("first", ["Stop", "SessionStart"])
def test_the_gate_command_notices_a_changed_recipe_too(shop: Path, first: str) -> None:
    assert stop(shop, "--", "make test", hook_event_name=first) == {}
    (shop / "Makefile").write_text("test:\n\ttrue\n")
    assert "`test` of Makefile was" in stop(shop, "--", "make test")["reason"]


def test_work_that_changes_only_the_arguments_of_a_command_does_not_block_and_the_user_is_told(
    project: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(project)
    (project / "test_a.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
    )
    assert stop(project) == {}
    (project / "tests").mkdir()
    (project / "test_a.py").rename(project / "tests" / "test_a.py")
    told = 'gate "tests": the command was `unittest`, now `unittest discover -s tests`'
    assert stop(project) == {"systemMessage": told}


def test_an_exit_code_of_0_does_not_hide_that_tests_have_failed(shop: Path) -> None:
    (shop / "Makefile").write_text("test:\n\t@echo '1 failed, 2 passed in 0.1s'\n")
    assert stop(shop)["reason"].startswith("`make test`: exit code 0, although tests have failed")
