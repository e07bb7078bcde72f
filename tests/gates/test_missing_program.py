"""Commands that have checked nothing, because a program, a script or a target is not there."""

import pytest

from turngate.gates.failures import missing_program, read_output

MISSING = [
    (127, "sh: 1: npm: not found"),
    (2, "/bin/sh: 1: npm: not found"),
    (1, "bash: line 1: npm: command not found"),
    (1, "zsh:1: command not found: npm"),
    (1, "./check.sh: line 3: npm: command not found"),
    (1, "./check.sh: 3: npm: not found"),
    (1, "/usr/bin/python3: No module named pytest"),
    (2, "make: *** No rule to make target 'test'.  Stop."),
    (2, "make: *** [Makefile:2: test] Error 127"),
    (1, 'npm ERR! Missing script: "lint"'),
    (1, 'npm error Missing script: "lint"'),
    (
        254,
        "npm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/p/package.json'",
    ),
    (
        254,
        "npm ERR! enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/p/package.json'",
    ),
    (1, "error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly"),
    (1, "error: toolchain 'nightly' is not installed"),
    (101, "error: could not find `Cargo.toml` in `/p` or any parent directory"),
    (1, "go: cannot find main module, but found .git/config in /p"),
    (1, "go: go.mod file not found in current directory or any parent directory; see 'go help modules'"),
    (101, "error: no such command: `clippy`"),
    (2, "error: Failed to spawn: `pytest`"),
    (2, "error: Failed to spawn: pytest"),
    (2, "python3: can't open file '/p/check.py': [Errno 2] No such file or directory"),
    (2, "sh: 0: cannot open check.sh: No such file"),
    (2, "make: *** No targets specified and no makefile found.  Stop."),
    (1, "Command not found: pytest"),
    (126, "sh: 1: ./check: Permission denied"),
    (127, "bundler: command not found: rubocop\nInstall missing gem executables with `bundle install`"),
    (
        1,
        "/usr/lib/bundler/rubygems_integration.rb:319:in `replace_bin_path': can't find executable rubocop for gem rubocop. (Gem::Exception)",
    ),
    (1, "Error: Must specify at least one <test>\nUsage: bats [OPTIONS] <tests>"),
    (
        101,
        "As a reminder, you're using offline mode (--offline) which can sometimes cause surprising resolution failures, …",
    ),
    (
        1,
        "Shall I install Hex? [Yn] ** (Mix) Could not find an SCM for dependency :ex_doc from MIME.Mixfile",
    ),
    (1, "** (Mix) Can't continue due to errors on dependencies"),
    (
        1,
        "/usr/lib/bundler/resolver.rb:271:in `block in verify!': Could not find gem 'test-unit-ruby-core' in locally installed gems. "
        "(Bundler::GemNotFound)\n" + "\tfrom /usr/lib/bundler/resolver.rb:254:in `map!'\n" * 16,
    ),
]


def find_missing(code: int, stdout: str, stderr: str) -> str | None:
    return missing_program(code, read_output(stdout, stderr), stderr)


@pytest.mark.req("X-37")
@pytest.mark.parametrize(("code", "line"), MISSING)
def test_a_message_of_a_tool_that_is_missing_is_recognized(code: int, line: str) -> None:
    said = " ".join(line.partition("\n")[0].split())
    assert find_missing(code, "", f"something before\n{line}\n") == f"exit code {code}: {said}"


@pytest.mark.parametrize(
    "stderr",
    [
        "",
        "ModuleNotFoundError: No module named 'requests'",
        "AssertionError: npm: not found",
        "make: *** No rule to make target 'a.o', needed by 'app'.  Stop.",
        "make: *** [Makefile:2: test] Error 1",
        "sh: 1: npm: not found\n" + "the tests begin\n" * 20,
        "FAIL: test_a (shop.Test)\nTraceback\nmypy: error: Missing target module, package, files, or command.",
    ],
)
def test_a_check_that_fails_is_not_taken_for_a_missing_program(stderr: str) -> None:
    assert find_missing(1, "", stderr) is None


@pytest.mark.req("X-37")
@pytest.mark.parametrize("code", [1, 126, 127])
@pytest.mark.parametrize(
    "line", ["FAILED a", "FAILED tests/test_a.py::test_b - assert 0", "  3 failing", "not ok 1 - x"]
)
def test_a_check_that_reports_failures_has_run_whatever_was_not_found(code: int, line: str) -> None:
    assert find_missing(code, f"{line}\n", "sh: 1: foo: not found\n") is None
