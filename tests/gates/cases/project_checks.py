"""The gates `tests`, `lint`, `types`, `format` and `build`. A command that is found runs as that of the gate `command`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.git_projects import commit, make_repository, steps, write

LOOKED_FOR_TESTS = (
    "this project has none that is known; looked for a target `test` in a Makefile, a script `test` in package.json, "
    "pytest, unittest, cargo, go and others"
)
LOOKED_FOR_FORMAT = (
    "this project has none that is known; looked for a target `format-check` in a Makefile, a script `format:check` in package.json, "
    "ruff format, black, prettier, biome, cargo fmt, gofmt and others"
)
NAME_IT = "name it: turngate gate tests -- COMMAND"


def project_with(files: Mapping[str, str | bytes]) -> Callable[[Path], None]:
    return lambda project: write(project, files)


def make(target: str, recipe: str) -> dict[str, str]:
    return {"Makefile": f"{target}:\n\t@{recipe}\n"}


FAILING_TEST = (
    "import unittest\nclass Test(unittest.TestCase):\n    def test_price(self): self.assertEqual(1, 2)\n"
)
PASSING_TEST = FAILING_TEST.replace("1, 2", "1, 1")
RUNNING = {"id": "a1", "type": "subagent", "status": "running"}

RED = make("test", "exit 1")
RAN = blocked("`make test`: exit code 2\nmake: *** [Makefile:2: test] Error 1")


def red(files: Mapping[str, str]) -> Callable[[Path], None]:
    return lambda project: make_repository(project, {**RED, "src/a.py": "", **files})


CASES = (
    GateCase("nothing has changed", ("tests",), project_with({}), {}, start=red({})),
    GateCase("only a commit is new", ("tests",), commit, {}, start=red({})),
    GateCase(
        "an ignored file has changed",
        ("tests",),
        project_with({"a.log": "x"}),
        {},
        start=red({".gitignore": "*.log\n"}),
    ),
    GateCase("it always runs", ("tests", "--all-failures", "--always"), project_with({}), RAN, start=red({})),
    GateCase(
        "only documents have changed",
        ("tests",),
        project_with({"README.fr.md": "x", "docs/a/b.rst": "x", "lib/LICENSE": "", "lib/LICENSE-MIT": ""}),
        {},
        start=red({}),
    ),
    *(
        GateCase(
            f"code with the name of a document: {name}",
            ("tests", "--all-failures"),
            project_with({name: "x"}),
            RAN,
            start=red({}),
        )
        for name in (
            "license.go",
            "app/models/notice.rb",
            "src/changes.rs",
            "src/Authors.java",
            "lib/readme.sh",
        )
    ),
    GateCase(
        "a build may be one of documents",
        ("build", "--all-failures"),
        project_with({"docs/index.md": "x"}),
        blocked("`make build`: exit code 2\nmake: *** [Makefile:2: build] Error 1"),
        start=lambda project: make_repository(project, make("build", "exit 1")),
    ),
    GateCase(
        "a text in the root may be data of the tests",
        ("tests", "--all-failures"),
        project_with({"expected.txt": "x"}),
        RAN,
        start=red({}),
    ),
    GateCase(
        "documents have changed, and it always runs",
        ("tests", "--all-failures", "--always"),
        project_with({"README.md": "x"}),
        RAN,
        start=red({}),
    ),
    GateCase(
        "a document and a source have changed",
        (
            "tests",
            "--all-failures",
        ),
        project_with({"README.md": "x", "src/a.py": "x"}),
        RAN,
        start=red({}),
    ),
    GateCase(
        "a source was changed and committed",
        (
            "tests",
            "--all-failures",
        ),
        steps(project_with({"src/a.py": "x"}), commit),
        RAN,
        start=red({}),
    ),
    GateCase(
        "a source was changed and changed back",
        ("tests",),
        steps(project_with({"src/a.py": "x"}), project_with({"src/a.py": ""})),
        {},
        start=red({}),
    ),
    GateCase(
        "a source was deleted",
        (
            "tests",
            "--all-failures",
        ),
        lambda project: (project / "src/a.py").unlink(),
        RAN,
        start=red({}),
    ),
    GateCase(
        "a source was changed before the session",
        ("tests",),
        project_with({}),
        {},
        start=steps(red({}), project_with({"src/a.py": "x"})),
    ),
    GateCase(
        "a text below the sources has changed",
        (
            "tests",
            "--all-failures",
        ),
        project_with({"src/prompt.md": "x"}),
        RAN,
        start=red({}),
    ),
    GateCase(
        "a text of the tests has changed",
        (
            "tests",
            "--all-failures",
        ),
        project_with({"tests/data/page.txt": "x"}),
        RAN,
        start=red({}),
    ),
    GateCase(
        "the list of dependencies has changed",
        (
            "tests",
            "--all-failures",
        ),
        project_with({"requirements-dev.txt": "x"}),
        RAN,
        start=red({}),
    ),
    GateCase(
        "a document that the check names has changed",
        (
            "lint",
            "--all-failures",
        ),
        project_with({"README.md": "x"}),
        blocked("`make lint`: exit code 2\nmake: *** [Makefile:2: lint] Error 1"),
        start=lambda project: make_repository(project, make("lint", "test ! -e README.md")),
    ),
    GateCase(
        "a document has changed, and the check reads documents",
        (
            "lint",
            "--all-failures",
        ),
        project_with({"CHANGES.md": "x"}),
        blocked("`make lint`: exit code 2\nmake: *** [Makefile:2: lint] Error 1"),
        start=lambda project: make_repository(project, make("lint", "false prettier --check .")),
    ),
    GateCase("tests pass", ("tests",), project_with({"test_shop.py": PASSING_TEST}), {}),
    GateCase(
        "the target of make comes first",
        ("tests",),
        project_with({**make("test", "true"), "test_a.py": FAILING_TEST}),
        {},
    ),
    GateCase(
        "the target of make fails",
        ("lint",),
        project_with(make("lint", "echo 'a.py:1:1: F401 unused'; exit 1")),
        blocked("`make lint`: exit code 2\na.py:1:1: F401 unused\nmake: *** [Makefile:2: lint] Error 1"),
    ),
    GateCase(
        "the program of a target is missing",
        ("types",),
        project_with(make("types", "no-such-checker")),
        could_not_run("types", "`make types`: exit code 2: make: *** [Makefile:2: types] Error 127"),
    ),
    GateCase(
        "files that are not formatted",
        ("format",),
        project_with(
            make("format-check", "prettier() { echo '[warn] src/a.ts'; exit 1; }; prettier --check .")
        ),
        blocked(
            "`make format-check`: exit code 2\n[warn] src/a.ts\nmake: *** [Makefile:2: format-check] Error 1"
        ),
    ),
    GateCase(
        "a formatter may read documents",
        ("format",),
        project_with({"README.md": "x"}),
        blocked(
            "`make format-check`: exit code 2\n[warn] README.md\nmake: *** [Makefile:2: format-check] Error 1"
        ),
        start=lambda project: make_repository(
            project,
            make(
                "format-check",
                "dprint() { test ! -e README.md || { echo '[warn] README.md'; exit 1; }; }; dprint check",
            ),
        ),
    ),
    GateCase(
        "a formatter that has found no file",
        ("format",),
        project_with(
            make("format-check", "ruff() { echo 'No Python files are present'; }; ruff format --check")
        ),
        could_not_run(
            "format", '`make format-check`: it checked nothing: its output says "No Python files are present"'
        ),
    ),
    GateCase(
        "a task that formats is not a check",
        ("format", "--strict"),
        project_with(make("format", "touch ran; prettier --write .")),
        blocked(f'gate "format" could not run: {LOOKED_FOR_FORMAT}; {NAME_IT.replace("tests", "format")}'),
    ),
    GateCase("build passes", ("build",), project_with(make("build", "true")), {}),
    GateCase(
        "an empty project",
        ("tests",),
        project_with({}),
        could_not_run("tests", f"{LOOKED_FOR_TESTS}; {NAME_IT}"),
    ),
    GateCase(
        "strict in an empty project",
        ("tests", "--strict"),
        project_with({}),
        blocked(f'gate "tests" could not run: {LOOKED_FOR_TESTS}; {NAME_IT}'),
    ),
    GateCase(
        "a file that cannot be read",
        ("tests",),
        project_with({"package.json": "{"}),
        could_not_run(
            "tests", f"{LOOKED_FOR_TESTS}; package.json cannot be read: it is not JSON (line 1); {NAME_IT}"
        ),
    ),
    GateCase(
        "the command is given", ("tests", "--", "exit 3"), project_with({}), blocked("`exit 3`: exit code 3")
    ),
    GateCase(
        "a name with a newline, and binary files",
        ("tests",),
        project_with({**make("test", "true"), "tests/a\nb": b"\0\xff", "package.json": b"\0\xff"}),
        {},
    ),
    GateCase(
        "nothing changed",
        ("tests", "--if-changed", "src/**"),
        lambda project: make_repository(project, make("test", "exit 1")),
        {"systemMessage": 'gate "tests": nothing to check: no file that matches src/** has changed'},
    ),
    GateCase(
        "nothing changed, without git",
        ("tests", "--if-changed", "src/**"),
        project_with({"b.py": "x"}),
        {"systemMessage": 'gate "tests": nothing to check: no file that matches src/** has changed'},
        start=project_with({**make("test", "exit 1"), "src/a.py": ""}),
    ),
    GateCase(
        "a file has changed, without git",
        ("tests", "--all-failures", "--if-changed", "src/**"),
        project_with({"src/a b\nc.py": "x"}),
        blocked("`make test`: exit code 2\nmake: *** [Makefile:2: test] Error 1"),
        start=project_with({**make("test", "exit 1"), "src/a.py": ""}),
    ),
    GateCase(
        "10 MB of output",
        ("lint",),
        project_with(make("lint", "head -c 10000000 /dev/zero | tr '\\0' x; echo; exit 1")),
        blocked("`make lint`: exit code 2\n" + "x" * 399 + "…\nmake: *** [Makefile:2: lint] Error 1"),
    ),
    GateCase(
        "binary output",
        ("lint",),
        project_with(make("lint", "printf 'a\\000\\377\\033[31mb\\n'; exit 1")),
        blocked("`make lint`: exit code 2\na\ufffdb\nmake: *** [Makefile:2: lint] Error 1"),
    ),
    GateCase(
        "its own timeout",
        ("tests", "--timeout", "2"),
        project_with(make("test", "sleep 600")),
        could_not_run("tests", "`make test`: it did not end within 2 s"),
    ),
    GateCase(
        "waiting",
        ("tests",),
        steps(project_with(make("test", "exit 1")), background_tasks=[RUNNING]),
        {"systemMessage": 'gate "tests" waits: a subagent works in the background; it was NOT enforced'},
    ),
)
