"""Which commands the gates tests, lint, types, format and build stand for."""

import json

import pytest

from turngate.gates.find_checks import (
    CheckCommand,
    chosen_commands,
    find_check_commands,
    repeats,
    unreadable_files,
)
from turngate.gates.project_files import ProjectFiles

PYPROJECT = """\
[project]
dependencies = ["httpx>=0.27"]
[dependency-groups]
dev = ["pytest>=8", "ruff", "mypy==1.11"]
"""
# Files of a project with their texts, and its commands.
PROJECTS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "empty": ({}, {}),
    "a package without checks": ({"package.json": "{}"}, {}),
    "the test script of npm init": (
        {"package.json": json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})},
        {},
    ),
    "npm": (
        {
            "package.json": json.dumps(
                {"scripts": {"test": "jest", "lint": "eslint .", "typecheck": "tsc", "build": "vite build"}}
            )
        },
        {
            "tests": "npm test",
            "lint": "npm run lint",
            "types": "npm run typecheck",
            "build": "npm run build",
        },
    ),
    "pytest that is quiet by its configuration": (
        {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-ra -q"\n'},
        {"tests": "pytest"},
    ),
    "pytest that is quiet by a list on several lines": (
        {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = [\n    "-ra",\n    "--quiet",\n]\n'},
        {"tests": "pytest"},
    ),
    "pytest that is quiet by its own file": (
        {"pytest.ini": "[pytest]\naddopts =\n    -q\n"},
        {"tests": "pytest"},
    ),
    "pytest that is not quiet": (
        {"pytest.ini": "[pytest]\naddopts = --quick -ra\n", "Makefile": "x:\n\tgrep -q y\n"},
        {"tests": "pytest -q"},
    ),
    "pnpm, by its lock file": (
        {"package.json": '{"scripts": {"test": "vitest run", "lint": "eslint ."}}', "pnpm-lock.yaml": ""},
        {"tests": "pnpm test", "lint": "pnpm run lint"},
    ),
    "yarn, by its name": (
        {"package.json": '{"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}}', "bun.lockb": ""},
        {"tests": "yarn test"},
    ),
    "bun has a test runner of its own": (
        {"package.json": '{"scripts": {"test": "vitest run"}}', "bun.lock": ""},
        {"tests": "bun run test"},
    ),
    "a test script that never ends": (
        {"package.json": '{"scripts": {"test": "jest --watch", "test:ci": "jest --ci"}}'},
        {"tests": "npm run test:ci"},
    ),
    "a test script that ends": (
        {"package.json": '{"scripts": {"test": "ng test --watch=false"}}'},
        {"tests": "npm test"},
    ),
    "a test script that ends only in CI": (
        {"package.json": '{"scripts": {"test": "react-scripts test"}}'},
        {"tests": "CI=true npm test"},
    ),
    "a linter that changes files": (
        {"package.json": '{"scripts": {"lint": "eslint --fix .", "lint:check": "eslint ."}}'},
        {"lint": "npm run lint:check"},
    ),
    "typescript without a script": (
        {"package.json": '{"devDependencies": {"typescript": "^5"}}', "tsconfig.json": "{}"},
        {"types": "npx --no-install tsc --noEmit"},
    ),
    "scripts that are not texts": ({"package.json": '{"scripts": {"test": ["jest"], "lint": 1}}'}, {}),
    "scripts that are not a table": ({"package.json": '{"scripts": "jest"}'}, {}),
    "a package that is not a table": ({"package.json": "[]"}, {}),
    "a broken package": ({"package.json": '{"scripts": {"test": "jest"'}, {}),
    "a package in a deep hole": ({"package.json": "[" * 200_000}, {}),
    "python, by its dependencies": (
        {"pyproject.toml": PYPROJECT},
        {"tests": "pytest -q", "lint": "ruff check --no-fix", "types": "mypy ."},
    ),
    "python, by its tables": (
        {"pyproject.toml": '[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\nfiles = ["src"]\n'},
        {"tests": "pytest -q", "lint": "ruff check --no-fix", "types": "mypy"},
    ),
    "python, by other files": (
        {"setup.cfg": "[flake8]\n[tool:pytest]\n", "mypy.ini": ""},
        {"tests": "pytest -q", "lint": "flake8", "types": "mypy ."},
    ),
    "a plugin of pytest is not pytest": ({"requirements.txt": "pytest-asyncio\nruff-lsp\n"}, {}),
    "python with uv": (
        {"pyproject.toml": PYPROJECT, "uv.lock": ""},
        {"tests": "uv run pytest -q", "lint": "uv run ruff check --no-fix", "types": "uv run mypy ."},
    ),
    "python with its own environment": (
        {"requirements.txt": "pytest==8.0\n", ".venv/bin/pytest": ""},
        {"tests": ".venv/bin/pytest -q"},
    ),
    "python with pytest in its own environment only": (
        {"tests/test_prices.py": "", "venv/bin/pytest": ""},
        {"tests": "venv/bin/pytest -q"},
    ),
    "python without pytest": (
        {"tests/test_prices.py": ""},
        {"tests": "python3 -m unittest discover -s tests"},
    ),
    "django": ({"manage.py": "", "tests/test_prices.py": ""}, {"tests": "python3 manage.py test"}),
    "broken pyproject": (
        {"pyproject.toml": "[tool.pytest.ini_options\n", "conftest.py": ""},
        {"tests": "pytest -q"},
    ),
    "rust": (
        {"Cargo.toml": ""},
        {
            "tests": "cargo test",
            "lint": "cargo clippy --all-targets -- -D warnings",
            "types": "cargo check --all-targets",
            "format": "cargo fmt --all --check",
            "build": "cargo build",
        },
    ),
    "go": (
        {"go.mod": ""},
        {
            "tests": "go test ./...",
            "lint": "go vet ./...",
            "format": 'out=$(gofmt -l .) && ! echo "$out" | grep .',
            "build": "go build ./...",
        },
    ),
    "go with its usual linter": (
        {"go.mod": "", ".golangci.yml": ""},
        {
            "tests": "go test ./...",
            "lint": "golangci-lint run",
            "format": 'out=$(gofmt -l .) && ! echo "$out" | grep .',
            "build": "go build ./...",
        },
    ),
    "make": (
        {"Makefile": ".PHONY: test lint\ntest lint: all\n\t./run $@\nbuild := x\ntypecheck::\n\tmypy\n"},
        {"tests": "make test", "lint": "make lint", "types": "make typecheck"},
    ),
    "make's own order of files": (
        {"Makefile": "test:\n", "GNUmakefile": "check:\n"},
        {"tests": "make check"},
    ),
    "make comes before the tools that it calls": (
        {"Makefile": "test:\n", "pyproject.toml": PYPROJECT},
        {"tests": "make test", "lint": "ruff check --no-fix", "types": "mypy ."},
    ),
    "python without pytest, in a package": (
        {"tests/test_prices.py": "", "tests/__init__.py": ""},
        {"tests": "python3 -m unittest"},
    ),
    "python's own environment also for unittest": (
        {"test_prices.py": "", ".venv/bin/python": ""},
        {"tests": ".venv/bin/python -m unittest"},
    ),
    "django with uv": ({"manage.py": "", "uv.lock": ""}, {"tests": "uv run python manage.py test"}),
    "make with python's own environment": (
        {"Makefile": "test:\n\tpytest\n", ".venv/bin/python": ""},
        {"tests": 'PATH="$PWD/.venv/bin:$PATH" make test'},
    ),
    "mypy never without a target": (
        {"mypy.ini": "[mypy]\nstrict = True\n", "src": ""},
        {"types": "mypy src"},
    ),
    "files of another section are not mypy's": (
        {"setup.cfg": "[bumpversion]\nfiles = a.py\n[mypy]\nstrict = True\n"},
        {"types": "mypy ."},
    ),
    "hatch": (
        {"pyproject.toml": "[tool.pytest.ini_options]\n[tool.hatch.envs.default]\n"},
        {"tests": "hatch run pytest -q"},
    ),
    "pre-commit names the tools, and the commands only look": (
        {
            "setup.py": "",
            ".pre-commit-config.yaml": "repos:\n  - hooks:\n      - id: ruff\n        args: [--fix]\n"
            "      - id: ruff-format\n      - id: mypy\n        files: ^src/\n      - id: trailing-whitespace\n",
            "src": "",
        },
        {"lint": "ruff check --no-fix", "types": "mypy src", "format": "ruff format --check"},
    ),
    "tox names the tools and their arguments": (
        {
            "setup.py": "",
            "h2": "",
            "tox.ini": "[testenv]\ncommands = pytest --cov=h2 {posargs:h2}\n"
            "[testenv:types]\ncommands =\n    mypy h2/\n[testenv:format]\ncommands = black --check --diff h2/\n",
        },
        {"tests": "pytest -q h2", "types": "mypy h2/", "format": "black --check h2/"},
    ),
    "nox": (
        {
            "setup.py": "",
            "noxfile.py": 'import nox\n\n@nox.session\ndef tests(session):\n    session.run("pytest", "-v")\n',
        },
        {"tests": "pytest -q"},
    ),
    "just": (
        {
            "justfile": "set shell := ['sh']\ntest filter='': build\n  cargo test {{filter}}\nbuild:\n  cargo build\n"
            "lint:\n  cargo clippy --fix\nfmt-check:\n  cargo fmt --check\n"
        },
        {"tests": "just test", "format": "just fmt-check", "build": "just build"},
    ),
    "Taskfile": (
        {
            "Taskfile.yml": "version: '3'\n\ntasks:\n  default:\n    cmds:\n      - task: test\n"
            "  test:\n    cmds:\n      - go test ./...\n  lint:\n    cmds:\n      - golangci-lint run --fix\n"
        },
        {"tests": "task test"},
    ),
    "Rakefile": (
        {
            "Rakefile": "require 'rake/testtask'\nRake::TestTask.new(:test) do |t|\nend\ntask default: :test\n",
            "Gemfile": "",
        },
        {"tests": "bundle exec rake test"},
    ),
    "a Rakefile without a Gemfile": (
        {"Rakefile": "task :test do\n  sh 'ruby test/all.rb'\nend\n"},
        {"tests": "rake test"},
    ),
    "tests of Perl": ({"Makefile.PL": "", "t": ""}, {"tests": "prove -lr t"}),
    "tests of bats": ({"test/assert.bats": ""}, {"tests": "bats test"}),
    "a target of make that only compiles the tests": (
        {
            "Makefile": "all: sds-test\n\nsds-test: sds.c sds.h\n\t$(CC) -o sds-test sds.c -DTEST_MAIN\n\t@echo 'Type ./sds-test'\n"
        },
        {},
    ),
    "a target of make that compiles and runs the tests": (
        {"Makefile": "test: tests.c\n\t$(CC) -o $@ tests.c\n\t./$@\n"},
        {"tests": "make test"},
    ),
    "tasks of deno": (
        {"deno.json": '{"tasks": {"test": "deno test -A"}}'},
        {
            "tests": "deno task test",
            "lint": "deno lint",
            "types": "deno check .",
            "format": "deno fmt --check",
        },
    ),
    "scripts of composer": (
        {"composer.json": '{"scripts": {"test": ["@phpunit", "@cs"], "phpunit": "phpunit", "cs": "phpcs"}}'},
        {"tests": "composer run-script phpunit", "lint": "composer run-script cs"},
    ),
    "scripts with a check: or lint: in their names": (
        {
            "package.json": json.dumps(
                {
                    "scripts": {
                        "check": "npm run check:type && npm run check:lint && npm run check:format",
                        "check:format": "prettier --check .",
                        "check:lint": "eslint .",
                        "check:type": "tsc -p tsconfig.json",
                        "fix:lint": "eslint --fix .",
                        "test": "node --test",
                    }
                }
            )
        },
        {
            "tests": "npm test",
            "lint": "npm run check:lint",
            "types": "npm run check:type",
            "format": "npm run check:format",
        },
    ),
    "unit tests instead of browsers": (
        {
            "package.json": json.dumps(
                {
                    "scripts": {
                        "test": "npm run test:eslint && npm run test:mocha && npm run test:karma",
                        "test:eslint": "eslint lib",
                        "test:mocha": "mocha test/unit",
                        "test:karma": "karma start",
                    }
                }
            )
        },
        {"tests": "npm run test:mocha", "lint": "npm run test:eslint"},
    ),
    "unit tests instead of the network": (
        {
            "package.json": json.dumps(
                {
                    "scripts": {
                        "test": "npm run tests-only",
                        "tests-only": "tape test",
                        "posttest": "npm audit",
                    }
                }
            )
        },
        {"tests": "npm run tests-only"},
    ),
    "formatters that write are not checks": (
        {"package.json": '{"scripts": {"format": "prettier --write .", "fmt": "biome format --write"}}'},
        {},
    ),
    "a target of make that repairs": (
        {"Makefile": "lint:\n\tbundle exec rubocop -a\n\truff check --fix\n"},
        {},
    ),
    "names that a shell would run": (
        {"package.json": '{"scripts": {"test;id": "jest", "lint$(id)": "eslint ."}}'},
        {},
    ),
    "pre-commit repairs": ({"Makefile": "lint:\n\tpre-commit run --all-files\n"}, {}),
}


def project_files(texts: dict[str, str]) -> ProjectFiles:
    return ProjectFiles(frozenset(texts), texts)


@pytest.mark.parametrize("name", PROJECTS)
def test_the_files_of_a_project_name_its_checks(name: str) -> None:
    texts, expected = PROJECTS[name]
    commands: dict[str, str] = {}
    for found in find_check_commands(project_files(texts)):
        commands.setdefault(found.check, found.command)
    assert commands == expected


# What CI runs, as the steps of a workflow, with the other files; and the commands.
WITH_CI: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "the tools of an environment, in a script": (
        "      - run: scripts/check\n",
        {
            "pyproject.toml": "[tool.ruff.lint]\n",
            "shop": "",
            "scripts/check": 'PREFIX=""\nif [ -d venv ]; then\n  PREFIX="venv/bin/"\nfi\nFILES="shop"\n'
            "${PREFIX}mypy $FILES\n${PREFIX}ruff check $FILES\n",
        },
        {"lint": "ruff check --no-fix shop", "types": "mypy shop"},
    ),
    "the arguments of the tools": (
        """\
      - run: ruff format --check idna
      - run: |
          ruff check idna tests
          python -m mypy --strict idna
          coverage run -m pytest -v --cov=idna tests
""",
        {"pyproject.toml": "[tool.mypy]\n", "idna": "", "tests": ""},
        {
            "tests": "pytest -q tests",
            "lint": "ruff check --no-fix idna tests",
            "types": "mypy --strict idna",
            "format": "ruff format --check idna",
        },
    ),
    "what only CI knows is left out": (
        "      - run: cargo test --target ${{ matrix.target }}\n      - run: cargo clippy --all -- -Dwarnings\n",
        {"Cargo.toml": ""},
        {"tests": "cargo test", "lint": "cargo clippy --all -- -Dwarnings"},
    ),
    "all packages of a workspace": (
        "      - run: ${{ env.CARGO }} test\n",
        {"Cargo.toml": "[package]\n[workspace]\n"},
        {"tests": "cargo test --workspace"},
    ),
    "another folder is not the project": (
        "      - run: pytest docs\n        working-directory: site\n      - run: |\n          cd other\n          pytest x\n",
        {"pytest.ini": "", "docs": "", "x": ""},
        {"tests": "pytest -q"},
    ),
    "scripts that CI runs": (
        "      - run: scripts/check\n",
        {
            "pyproject.toml": "[tool.mypy]\n",
            "scripts/check": 'export FILES="app tests"\nmypy $FILES\n',
            "app": "",
            "tests": "",
        },
        {"types": "mypy app tests"},
    ),
    "the script that CI runs": (
        "      - run: npm run test:vi\n      - run: npm run lint\n",
        {
            "package.json": '{"scripts": {"test": "npm run lint && npm run test:vi", "test:vi": "vitest run", "lint": "eslint ."}}'
        },
        {"tests": "npm run test:vi", "lint": "npm run lint"},
    ),
    "not the script with a report": (
        "      - run: npm run test-ci\n",
        {"package.json": '{"scripts": {"test": "mocha", "test-ci": "nyc --reporter=lcov npm test"}}'},
        {"tests": "npm test"},
    ),
    "actions": (
        "      - uses: golangci/golangci-lint-action@v6\n",
        {"go.mod": "", ".golangci.yml": "", "Makefile": "lint:\n\tgolint ./...\n"},
        {"tests": "go test ./...", "lint": "golangci-lint run"},
    ),
    "rake without a task": (
        "      - run: bundle exec rake\n",
        {"Rakefile": "task default: :spec\n", "Gemfile": ""},
        {"tests": "bundle exec rake"},
    ),
    "a task of rake with a linter and tests": (
        "      - run: bundle exec rake\n",
        {
            "Rakefile": "RSpec::Core::RakeTask.new do |spec|\nend\nRuboCop::RakeTask.new(:rubocop)\ntask default: %i[rubocop spec more]\n",
            "Gemfile": "",
        },
        {"tests": "bundle exec rake spec", "lint": "bundle exec rake rubocop"},
    ),
    "a task of rake that another file defines": (
        "      - run: bundle exec rake ci\n",
        {"Rakefile": 'task ci: %w[ spec ]\ntask "default" => :spec\n', "Gemfile": "", ".rspec": ""},
        {"tests": "bundle exec rake ci"},
    ),
    "bats, with a variable, and not its version": (
        '      - run: |\n          bats -v\n          BATS_LIB_PATH="$PWD" bats --print-output-on-failure test\n      - run: shellcheck ./src/*\n',
        {"test/assert.bats": ""},
        {
            "tests": 'BATS_LIB_PATH="$PWD" bats --print-output-on-failure test',
            "lint": "shellcheck ./src/*",
        },
    ),
    "cmake, in its folder": (
        "      - run: |\n          mkdir build\n          cd build\n          cmake ..\n          make test\n",
        {"CMakeLists.txt": "", "build/CTestTestfile.cmake": "", "Makefile": "test:\n\t./demo\n"},
        {"tests": "cmake --build build && ctest --test-dir build --output-on-failure"},
    ),
    "a linter that is installed by the target": (
        "      - run: go test ./...\n",
        {"go.mod": "", "Makefile": "lint:\n\tgo install example.org/lint@latest\n\tgolangci-lint run\n"},
        {"tests": "go test ./..."},
    ),
    "a target with what CI sets": (
        "      - run: make test THREADS=${{ matrix.threads }}\n",
        {"Makefile": "test:\n\tcoverage run -m pytest\ntest-examples:\n\tpytest examples\n"},
        {"tests": "make test"},
    ),
    "the arguments of flake8, and not the environment in the folder": (
        "      - run: flake8 --exclude=build --ignore=E501,F401 .\n      - run: pycodestyle shop.py test.py\n",
        {"tox.ini": "[flake8]\n", ".venv/bin/python": "", ".venv/bin/flake8": ""},
        {"lint": ".venv/bin/flake8 --exclude=build --ignore=E501,F401 . --extend-exclude=.venv"},
    ),
    "the arguments and folders of the hooks of pre-commit": (
        "      - uses: pre-commit/action@v3.0.1\n",
        {
            ".pre-commit-config.yaml": """\
repos:
- repo: https://github.com/pre-commit/mirrors-mypy
  hooks:
  -   id: mypy
      args: ["--scripts-are-modules"]
      files: ^(src/|testing/)
- repo: https://github.com/PyCQA/flake8
  hooks:
  - id: flake8
    args: [--max-line-length, "100"]
""",
            "pyproject.toml": "[tool.mypy]\n",
            "src": "",
            "testing": "",
        },
        {"lint": "flake8 --max-line-length 100", "types": "mypy --scripts-are-modules src testing"},
    ),
    "a hook of pre-commit for all files": (
        "      - uses: pre-commit/action@v3.0.1\n",
        {".pre-commit-config.yaml": "  - id: mypy\n", "pyproject.toml": "[tool.mypy]\n", "src": ""},
        {"types": "mypy ."},
    ),
    "without the slow tests": (
        "      - run: pytest -m 'not slow' tests\n",
        {"pytest.ini": "", "tests": ""},
        {"tests": "pytest -q tests -m 'not slow'"},
    ),
    "the input of an action, and no script that only says check": (
        "      - uses: retry@v3\n        with:\n          command: npm run tests-only\n",
        {
            "package.json": """{"scripts": {"pretest": "docs check README.md && eslint .", "test": "npm run tests-only",
            "tests-only": "tape test", "posttest": "npm audit", "lint": "eslint ."}}"""
        },
        {"tests": "npm run tests-only", "lint": "npm run lint"},
    ),
    "environments of tox": (
        "      - run: uv run --group dev tox run -e typing\n",
        {
            "pyproject.toml": '[tool.tox.env.typing]\ncommands = [["mypy"]]\n[tool.mypy]\nfiles = ["src"]\n',
            "uv.lock": "",
        },
        {"types": "uv run mypy"},
    ),
}


@pytest.mark.parametrize("name", WITH_CI)
def test_what_ci_runs_comes_first(name: str) -> None:
    steps, texts, expected = WITH_CI[name]
    workflow = f"on: push\njobs:\n  test:\n    steps:\n{steps}"
    files = project_files({**texts, ".github/workflows/ci.yml": workflow})
    found = [each for each in find_check_commands(files) if not each.is_guess and each.check != "build"]
    assert {
        check: chosen_commands(found, check)[0].command
        for check in dict.fromkeys(each.check for each in found)
    } == expected


@pytest.mark.parametrize(
    ("texts", "command", "quicker"),
    [
        (
            {
                "package.json": '{"scripts": {"test": "jest", "test:unit": "jest unit", "test:e2e": "playwright"}}'
            },
            "npm test",
            "npm run test:unit",
        ),
        (
            {"pytest.ini": "", "Makefile": "quick:\n\tpytest -m 'not slow'\n"},
            "pytest -q",
            "pytest -q -m 'not slow'",
        ),
        ({"pytest.ini": "", "tests": ""}, "pytest -q", ""),
    ],
    ids=["a script", "an option", "none"],
)
def test_a_quicker_command_is_a_part_of_the_tests_that_the_project_names(
    texts: dict[str, str], command: str, quicker: str
) -> None:
    workflow = "steps:\n  - run: npm test\n  - run: pytest\n"
    found = find_check_commands(project_files({**texts, ".github/workflows/ci.yml": workflow}))
    tests = [(each.command, each.quicker) for each in found if each.check == "tests"]
    assert tests[0] == (command, quicker)


def test_a_project_that_is_not_configured_yet_has_tests_only_if_nothing_else_has() -> None:
    """The second part of a project that is built must not make the gate fail."""
    for texts, expected in (
        ({"CMakeLists.txt": ""}, "cmake --build build && ctest --test-dir build --output-on-failure"),
        ({"configure.ac": "", "Makefile.am": ""}, "make check"),
        ({"CMakeLists.txt": "", "pytest.ini": ""}, "pytest -q"),
        ({"meson.build": ""}, "meson test -C build --print-errorlogs"),
        ({"meson.build": "", "build/build.ninja": ""}, "meson test -C build --print-errorlogs"),
        ({"configure.ac": "", "Makefile.am": "", "Makefile": "check:\n\t./run\n"}, "make check"),
    ):
        found = chosen_commands(find_check_commands(project_files(texts)), "tests")
        assert [each.command for each in found] == [expected]


def test_tests_in_a_browser_by_the_configuration_of_vitest_are_left_out() -> None:
    package = '{"scripts": {"test": "vitest"}, "devDependencies": {"@vitest/browser-playwright": "4"}}'
    assert find_check_commands(project_files({"package.json": package})) == []


def test_what_looks_at_packages_and_dependencies_is_no_check() -> None:
    tox = "[testenv:packaging]\ncommands =\n    python -m build\n    twine check dist/*\n    pip check\n"
    assert find_check_commands(project_files({"tox.ini": tox})) == []


# Files of a project, its steps of CI, the command of the gate `format`, and whether it is only a guess, which `init` does not propose by itself.
FORMATS: dict[str, tuple[dict[str, str], str, tuple[str, bool] | None]] = {
    "no formatter": ({"pyproject.toml": "[tool.ruff]\n", "package.json": "{}"}, "", None),
    "a script that only looks": (
        {
            "package.json": '{"scripts": {"format": "prettier --write .", "format:check": "prettier --check ."}}'
        },
        "",
        ("npm run format:check", False),
    ),
    "what a script formats": (
        {
            "package.json": '{"scripts": {"fmt": "prettier -w \'src/**/*.ts\' docs"}, "devDependencies": {"prettier": "3"}}'
        },
        "",
        ("npx --no-install prettier --check 'src/**/*.ts' docs", True),
    ),
    "prettier without a script": (
        {"package.json": '{"devDependencies": {"prettier": "3"}}'},
        "",
        ("npx --no-install prettier --check .", True),
    ),
    "prettier in CI": (
        {"package.json": '{"devDependencies": {"prettier": "3"}}'},
        "npx prettier . --check",
        ("npx --no-install prettier --check .", False),
    ),
    "biome": (
        {
            "package.json": '{"scripts": {"format": "biome format --write src"}, "devDependencies": {"@biomejs/biome": "2"}}'
        },
        "",
        ("npx --no-install biome format src", True),
    ),
    "ruff as a target of make formats": (
        {"Makefile": "fmt:\n\truff format src tests\n", "pyproject.toml": ""},
        "",
        ("ruff format src tests --check", True),
    ),
    "black in the project's environment": (
        {"pyproject.toml": "[tool.black]\n", "uv.lock": ""},
        "",
        ("uv run black --check .", False),
    ),
    "ruff by a hook of pre-commit": (
        {"pyproject.toml": "", ".pre-commit-config.yaml": "repos:\n  - hooks:\n    - id: ruff-format\n"},
        "pre-commit run --all-files",
        ("ruff format --check", False),
    ),
    "cargo": ({"Cargo.toml": ""}, "cargo fmt --check", ("cargo fmt --check", False)),
    "rustfmt as a target of make": (
        {"Makefile": "format-check:\n\trustfmt --check src/*.rs\nformat:\n\trustfmt src/*.rs\n"},
        "",
        ("make format-check", False),
    ),
    "gofmt in CI": (
        {"go.mod": ""},
        'test -z "$(gofmt -l .)"',
        ('out=$(gofmt -l .) && ! echo "$out" | grep .', False),
    ),
    "gofmt, and CI does not run it": (
        {"go.mod": ""},
        "go test ./...",
        ('out=$(gofmt -l .) && ! echo "$out" | grep .', True),
    ),
    "dart": (
        {"pubspec.yaml": ""},
        "",
        ("dart format --output=none --set-exit-if-changed .", False),
    ),
    "mix": (
        {".formatter.exs": ""},
        "mix format --check-formatted",
        ("mix format --check-formatted", False),
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_gate_format_runs_what_only_looks(name: str) -> None:
    texts, step, expected = FORMATS[name]
    workflow = {".github/workflows/ci.yml": f"jobs:\n  a:\n    steps:\n      - run: {step}\n"} if step else {}
    found = chosen_commands(find_check_commands(project_files({**texts, **workflow})), "format")
    assert [(each.command, each.is_guess) for each in found] == ([expected] if expected else [])


# A command, and whether the tests of the same project run it too.
REPEATED = {
    "a script": ('{"scripts": {"test": "eslint . && jest", "lint": "eslint ."}}', {"lint"}),
    "another scope": (
        '{"scripts": {"test": "tsc -p a && jest", "types": "tsc -p a && tsc -p b"}}',
        set[str](),
    ),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_check_that_the_tests_run_too_is_a_repetition(name: str) -> None:
    package, expected = REPEATED[name]
    tests, *others = [
        each
        for each in find_check_commands(project_files({"package.json": package}))
        if each.check != "build"
    ]
    assert {each.check for each in others if repeats(each, [tests])} == expected


def test_a_compiler_that_tests_also_checks_types() -> None:
    commands = find_check_commands(project_files({"Cargo.toml": ""}))
    assert [each.check for each in commands if repeats(each, commands[:1])] == ["tests", "types", "build"]


def test_a_project_of_two_kinds_has_commands_of_both() -> None:
    files = project_files({"package.json": '{"scripts": {"test": "jest"}}', "pytest.ini": ""})
    assert find_check_commands(files) == [
        CheckCommand("tests", "npm test", "npm", "package.json", "node"),
        CheckCommand("tests", "pytest -q", "pytest", "pytest.ini", "python"),
    ]


def test_the_program_is_what_has_to_be_there() -> None:
    files = project_files({"pytest.ini": "", "venv/bin/pytest": "", "ruff.toml": "", "poetry.lock": ""})
    assert find_check_commands(files) == [
        CheckCommand("tests", "venv/bin/pytest -q", "venv/bin/pytest", "pytest.ini", "python"),
        CheckCommand("lint", "poetry run ruff check --no-fix", "poetry", "ruff.toml", "python"),
    ]


def test_files_that_cannot_be_read_are_named() -> None:
    files = project_files(
        {"package.json": '{\n"scripts": {', "pyproject.toml": "a = [\n", "composer.json": "{}"}
    )
    assert unreadable_files(files) == {
        "package.json": "it is not JSON (line 2)",
        "pyproject.toml": "it is not TOML (Invalid value (at end of document))",
    }
