"""Failures that were there at the session's start do not block; files that a check changes itself."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import turngate
from tests.support.gates import answer_of_process, answer_with_shell, blocked, claude_input, record_with_shell
from tests.support.git_projects import commit, git, make_repository, write
from tests.support.sessions import lines
from turngate.gates.local_tree_state import RACY_NS
from turngate.gates.run_gate import KEEP_FAILURES, STILL

CAN_MOUNT = not subprocess.run(
    ["sh", "-c", 'unshare --mount $(test "$(id -u)" = 0 || echo --map-root-user) mount -t tmpfs none /tmp'],
    capture_output=True,
    check=False,
).returncode
pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="no mount namespaces here")

COMMAND = "cat output; test ! -s output"
COMMAND_WITH_BYTECODE = "env -u PYTHONDONTWRITEBYTECODE python3 run.py"
KEEP = KEEP_FAILURES.format("command")
OLD_ONLY = {"systemMessage": 'gate "command": it fails only as it did at the session\'s start'}


def failing(*names: str) -> str:
    return "".join(f"FAILED tests/test_a.py::{name} - assert 1 == 2\n" for name in names)


class Session:
    """A session in a repository, whose start the gate records."""

    def __init__(self, project: Path, *words: str, name: str = "s") -> None:
        self._project, self._words, self._name = project, words, name
        assert self._ask("SessionStart") == {}

    def stop(self) -> dict[str, Any]:
        return self._ask("Stop")

    def _ask(self, event: str) -> dict[str, Any]:
        fields = claude_input(self._project, session_id=self._name, hook_event_name=event)
        code, answer, err = answer_of_process(self._words, fields)
        assert (code, err) == (0, "")
        return answer


def begin(project: Path, output: str, **files: str) -> Session:
    make_repository(project, {"output": output, **files})
    return Session(project, "--", COMMAND)


def unknown(shown: str, why: str, command: str = COMMAND) -> dict[str, Any]:
    text = f"All failures count, because what failed at the session's start is not known: {why}."
    return blocked(f"`{command}`: exit code 1\n{shown}\n{text}\n{KEEP}")


def reason_of(shown: str, left_out: int) -> dict[str, Any]:
    one = "1 failure that was there at the session's start is left out."
    many = f"{left_out} failures that were there at the session's start are left out."
    return blocked(f"`{COMMAND}`: exit code 1\n{shown}\n\n{one if left_out == 1 else many}")


def test_old_failures_do_not_block_and_a_new_one_is_shown_alone(project: Path) -> None:
    session = begin(project, failing("test_old", "test_older"))
    write(project, {"other": ""})
    assert session.stop() == OLD_ONLY
    write(project, {"output": failing("test_old", "test_new", "test_older")})
    assert session.stop() == reason_of("tests/test_a.py::test_new\nassert 1 == 2", 2)


def test_old_failures_do_not_block_although_the_check_leaves_a_file_that_git_does_not_ignore(
    project: Path,
) -> None:
    make_repository(project, {"output": failing("test_old"), "other": ""})
    time.sleep(RACY_NS / 1e9)  # then the names of the files are known without git
    session = Session(project, "--", f"echo report > report.xml; {COMMAND}")
    write(project, {"other": "edited"})
    assert session.stop() == OLD_ONLY


def test_tests_that_fail_as_at_the_start_count_as_run(project: Path) -> None:
    at_start = f"{failing('test_old')}1 failed, 3 passed in 0.1s\n"
    make_repository(project, {"output": at_start, "other": ""})
    session = Session(project, "tests", "--", COMMAND)
    write(project, {"output": f"{failing('test_old', 'test_new')}2 failed, 2 passed in 0.1s\n"})
    assert session.stop()["decision"] == "block"
    write(project, {"output": at_start, "other": "edited"})
    assert session.stop() == {"systemMessage": OLD_ONLY["systemMessage"].replace("command", "tests")}


@pytest.mark.parametrize("place", ["dist/new_test", "built.d/new_test"])
def test_what_the_session_has_built_in_an_ignored_folder_is_no_failure_of_the_start(
    project: Path, place: str
) -> None:
    """As `tsc && node --test dist`: the check builds the new test before it fails."""
    folder = place.partition("/")[0]
    builds = f"mkdir -p {folder}; cp src/* {folder}; ! grep -h FAILED {folder}/*"
    make_repository(project, {"src/a": "1", ".gitignore": f"{folder}\n"})
    session = Session(project, "--", builds)
    write(project, {"src/new_test": failing("test_new")})
    first, second = session.stop(), session.stop()
    assert (first["decision"], second["decision"]) == ("block", "block")
    assert "test_new" in first["reason"]


def test_a_failure_of_a_file_that_is_gone_is_that_of_one_new_file(project: Path) -> None:
    session = begin(project, "FAILED old.py::test_a - x\n", **{"old.py": "", "other": ""})
    (project / "old.py").unlink()
    write(project, {"output": "FAILED new.py::test_a - x\n", "new.py": ""})
    assert session.stop() == OLD_ONLY
    write(project, {"output": "FAILED more.py::test_a - x\nFAILED new.py::test_a - x\n", "more.py": ""})
    assert session.stop() == reason_of("new.py::test_a\nx", 1)


@pytest.mark.parametrize("name", ["uv.lock", "web/package-lock.json", "Cargo.lock", "requirements-dev.txt"])
def test_with_other_packages_than_at_the_start_it_is_not_known_what_failed_then(
    project: Path, name: str
) -> None:
    session = begin(project, failing("test_old"), **{name: "lib 1\n"})
    write(project, {name: "lib 2\n"})
    why = f"the installed packages may have changed since then, because {name} has."
    assert why in session.stop()["reason"]


def test_a_lock_file_that_was_not_there_at_the_start_is_one_that_a_tool_has_made(project: Path) -> None:
    session = begin(project, failing("test_old"))
    write(project, {"Cargo.lock": "1\n"})
    assert session.stop() == OLD_ONLY


def test_a_file_whose_name_is_like_that_of_a_lock_file_is_none(project: Path) -> None:
    session = begin(project, failing("test_old"), **{"src/clock.py": "", "src/flock.c": "1\n"})
    write(project, {"src/clock.py": "1\n", "src/flock.c": "2\n"})
    assert session.stop() == OLD_ONLY


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("src/a.py:1:1: F401 unused\n", "its output shows no test"),
        (
            f"{failing('test_old')}!!! stopping after 1 failures !!!\n1 failed in 0.1s\n",
            "it ended at the first failure",
        ),
        (
            f"{failing('test_old')}1 failed in 0.1s\nmake: *** [Makefile:2: unit] Error 1\n",
            "it ended at the first failure",
        ),
        (
            "test tests::old ... FAILED\nerror: test failed, to rerun pass `--lib`\n",
            "it ended at the first failure",
        ),
    ],
    ids=["lint && tests", "pytest -x", "make", "cargo"],
)
def test_the_user_reads_that_an_old_failure_kept_tests_from_running(
    project: Path, output: str, why: str
) -> None:
    make_repository(project, {"output": output, "other": ""})
    session = Session(project, "tests", "--", COMMAND)
    write(project, {"other": "edited"})
    told = OLD_ONLY["systemMessage"].replace("command", "tests")
    assert session.stop() == {"systemMessage": f"{told}; {why}, so the rest was not checked"}


def test_a_new_error_without_a_name_blocks_once_and_then_the_user_reads_it(project: Path) -> None:
    session = begin(project, f"{failing('test_old')}Error: 3 warnings in 0.5s\n")
    write(project, {"output": f"{failing('test_old')}Error: 4 warnings in 0.7s\n"})
    assert session.stop() == OLD_ONLY
    coverage = "ERROR: Coverage failure: total of 71 is less than fail-under=90"
    write(project, {"output": f"{failing('test_old')}Error: 4 warnings in 0.7s\n{coverage}\n"})
    assert session.stop() == blocked(
        f"`{COMMAND}`: exit code 1\nIts output has an error without a name that it did not have at the session's start:\n{coverage}\n\n"
        "1 failure that was there at the session's start is left out.\n\nIf this is not a failure of the check, stop again: the user then reads it."
    )
    told = f'{OLD_ONLY["systemMessage"]}; new in its output: "{coverage}"'
    assert session.stop() == {"systemMessage": told}
    for number in range(2):  # one that differs from run to run
        write(project, {"output": f"{failing('test_old')}Error: port {number}abc is in use\n"})
        assert "systemMessage" in session.stop()


def test_failures_without_a_name_hide_no_other_error(project: Path) -> None:
    session = begin(project, "1 failed, 1 passed in 0.1s\n")
    write(project, {"output": "1 failed, 1 passed in 0.1s\nERROR: a coverage failure\n"})
    assert "ERROR: a coverage failure" in session.stop()["reason"]


def test_the_heading_of_a_file_with_a_named_failure_is_no_error_of_its_own(project: Path) -> None:
    vitest = " ❯ {0} (2 tests | 1 failed) 9ms\n\n FAIL  {0} > old\nAssertionError: expected 3 to be 4\n\n Tests  1 failed (2)\n"
    session = begin(project, vitest.format("a.test.js"), **{"a.test.js": ""})
    (project / "a.test.js").rename(project / "b.test.js")
    write(project, {"output": vitest.format("b.test.js")})
    assert session.stop() == OLD_ONLY


def test_a_program_that_was_there_at_the_start_and_is_not_found_any_more_blocks(project: Path) -> None:
    make_repository(project, {"lib.sh": "greet() { true; }\n", "run.sh": ". ./lib.sh\ngreet\n"})
    session = Session(project, "--", "sh ./run.sh")
    write(project, {"lib.sh": "welcome() { true; }\n"})
    assert session.stop() == blocked(
        "`sh ./run.sh`: exit code 127: ./run.sh: 2: greet: not found\n\nOn the files of the session's start it can run."
    )


def test_a_program_that_is_not_there_at_the_start_either_could_not_run(project: Path) -> None:
    make_repository(project, {"other": ""})
    session = Session(project, "--", "no-such-program")
    write(project, {"other": "1"})
    assert "decision" not in session.stop()


def test_more_failures_than_are_read_are_reported(project: Path) -> None:
    output = "".join(f"a.py:{line}:1: F401 unused {line}\n" for line in range(2100))
    session = begin(project, output)
    write(project, {"output": f"{output}z.py:1:1: F821 undefined\n"})
    assert session.stop() == {
        "systemMessage": f"{OLD_ONLY['systemMessage']}; more than 2,000 failures, so the rest was not checked"
    }


@pytest.mark.parametrize("change", ["rewritten", "edited", "removed", "made by the check"])
@pytest.mark.parametrize("name", ["dist/results", ".env.local"])
def test_after_a_change_of_what_git_ignores_it_is_not_known_what_failed_before_unless_the_check_makes_it(
    project: Path, name: str, change: str
) -> None:
    """As a build of `dist` by hand, of which the tests test what is there."""
    ignored = name.removesuffix("results")
    makes = "mkdir -p dist; cat output | tee dist/made .env.local; " if change == "made by the check" else ""
    command = f"{makes}cat output; false"
    make_repository(project, {"output": failing("test_old"), ".gitignore": f"{ignored}\n", "other": ""})
    write(project, {name: failing("test_old")})
    session = Session(project, "--", command)
    time.sleep(1.1)  # the start is known to the second
    if change == "edited":
        with (project / name).open("a") as file:
            file.write("\n")
    else:
        (project / name).unlink()
    if change == "rewritten":
        write(project, {name: failing("test_old")})
    write(project, {"other": "edited"})
    if change == "made by the check":
        assert session.stop() == OLD_ONLY
        return
    why = f"the check needs {ignored}, which git ignores and which has changed since then"
    assert f"what failed at the session's start is not known: {why}.\n{KEEP}" in session.stop()["reason"]


def test_once_the_check_has_passed_in_the_session_each_failure_is_new(project: Path) -> None:
    session = begin(project, failing("test_old"))
    write(project, {"output": ""})
    assert session.stop() == {}
    write(project, {"output": failing("test_old"), "other": ""})
    assert session.stop() == blocked(f"`{COMMAND}`: exit code 1\n{failing('test_old').strip()}")


@pytest.mark.parametrize("program", ["docker compose exec web", "./gradlew", "dmypy run"])
def test_what_runs_in_another_process_does_not_see_the_files_of_the_start(
    project: Path, program: str
) -> None:
    make_repository(project, {"output": failing("test_old"), "other": ""})
    command = f"{COMMAND} # {program}"
    session = Session(project, "--", command)
    write(project, {"other": "edited"})
    name = program.partition(" ")[0].removeprefix("./")
    why = f"{name} may run it where the files are those of now"
    assert session.stop() == unknown(failing("test_old"), why, command)


def test_a_file_system_that_is_mounted_below_the_project_is_not_left_out(project: Path) -> None:
    make_repository(project, {"output": failing("test_old"), "other": "", "data/keep": ""})
    session = Session(project, "--", COMMAND)
    write(project, {"other": "edited"})
    mounts = 'mount -t tmpfs none "$1" && shift && exec "$@"'
    maps = [] if os.getuid() == 0 else ["--map-root-user"]
    words = [sys.executable, "-m", "turngate", "gate", "--", COMMAND]
    done = subprocess.run(
        ["unshare", "--mount", *maps, "sh", "-c", mounts, "sh", str(project / "data"), *words],
        input=json.dumps(claude_input(project, session_id="s", hook_event_name="Stop")),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == unknown(failing("test_old"), "the files of the start cannot be mounted")
    assert session.stop() == {**OLD_ONLY}


def test_no_program_of_the_project_takes_part_in_the_check_of_the_start(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = ("git", "unshare", "mount", "cp", "rm", "xargs", "id", "env", "grep", "find")
    make_repository(project, {"output": failing("test_old"), "other": "", ".gitignore": ".venv\n"})
    write(project, {f".venv/bin/{each}": "#!/bin/sh\necho $0 >> ../ran\nexit 0\n" for each in programs})
    for each in programs:
        (project / ".venv/bin" / each).chmod(0o755)
    monkeypatch.setenv("PATH", f"{project}/.venv/bin{os.pathsep}{os.environ['PATH']}")
    session = Session(project, "--", f"{COMMAND} || {{ grep x output; false; }}")
    write(project, {"other": "edited"})
    assert session.stop() == OLD_ONLY
    assert {*lines(project / "../ran")} == {f"{project}/.venv/bin/grep"}  # the command itself, twice


def test_a_link_to_packages_elsewhere_hides_no_failure_of_the_start(project: Path) -> None:
    """As in a worktree whose `node_modules` is that of the main checkout, while the rule is `node_modules/`."""
    make_repository(project, {"output": failing("test_old"), "other": "", ".gitignore": "node_modules/\n"})
    (project.parent / "packages").mkdir()
    (project / "node_modules").symlink_to("../packages")
    session = Session(project, "--", COMMAND)
    assert session.stop() == {}
    write(project, {"other": "edited"})
    assert session.stop() == OLD_ONLY


def test_with_any_other_link_that_leads_out_all_failures_count(project: Path) -> None:
    make_repository(project, {"output": failing("test_old"), "other": ""})
    (project / "data").symlink_to("..")
    session = Session(project, "--", COMMAND)
    assert session.stop() == unknown(failing("test_old"), "its files could not all be read")


def test_the_project_is_as_it_was_after_the_check_of_the_start(project: Path) -> None:
    make_repository(project, {"output": failing("test_old"), "a b/c\nd.py": "1", "link": "", "run": "x"})
    (project / "link").unlink()
    (project / "link").symlink_to("output")
    (project / "dirty.py").write_text("at the start\n")
    seen = "ls -R . | sort > ../seen; cat link dirty.py 'a b/c\nd.py' >> ../seen; cat output > written; cat output; exit 1"
    session = Session(project, "--", seen)
    write(
        project,
        {
            "new/file.py": "x",
            "dirty.py": "now\n",
            "output": failing("test_old", "test_new"),
            "a b/c\nd.py": "2",
        },
    )
    (project / "link").unlink()
    before = git(project, "status", "--porcelain")
    assert session.stop()["decision"] == "block"
    at_start = (project.parent / "seen").read_text()
    assert at_start.endswith(f"{failing('test_old')}at the start\n1")
    assert ("file.py" in at_start, (project / "written").read_text()) == (
        False,
        failing("test_old", "test_new"),
    )
    assert git(project, "status", "--porcelain").replace("?? written\n", "") == before


def test_an_installed_package_leads_to_the_files_of_the_start(project: Path) -> None:
    """As with `pip install -e`: the path of the project is in the environment of the command."""
    program = f"import sys; sys.path.insert(0, {str(project / 'src')!r}); import shop; shop.test()"
    make_repository(project, {"src/shop.py": "def test(): pass\n"})
    session = Session(project, "--", sys.executable, "-B", "-c", program)
    write(project, {"src/shop.py": "def test(): raise SystemExit('FAILED a.py::new')\n"})
    assert "FAILED a.py::new" in session.stop()["reason"]


def test_the_last_result_of_an_earlier_session_is_the_start_of_the_next_one(project: Path) -> None:
    make_repository(project, {"output": failing("test_old")})
    words = ("--", f"echo run >> ../runs; {COMMAND}")
    fields = claude_input(project, session_id="earlier")
    assert answer_of_process(words, fields)[1]["decision"] == "block"
    commit(project)  # the content is the same
    session = Session(project, *words)
    write(project, {"other": ""})
    assert (session.stop(), lines(project / "../runs")) == (OLD_ONLY, ["run", "run"])


def test_the_start_is_checked_once(project: Path) -> None:
    make_repository(project, {"output": failing("test_old")})
    session = Session(project, "--", f"echo run >> ../runs; {COMMAND}")
    for number in range(3):
        write(project, {"other": str(number)})
        assert session.stop() == OLD_ONLY
    assert lines(project / "../runs") == ["run"] * 4


def test_the_same_message_again_in_a_file_is_a_new_failure(project: Path) -> None:
    error = "shop.py:{}: error: Incompatible types in assignment  [assignment]\n"
    session = begin(project, error.format(3))
    write(project, {"output": error.format(5) + error.format(9)})
    assert session.stop() == reason_of(error.format(9).strip(), 1)


def test_old_failures_of_a_renamed_file_do_not_block_and_new_ones_do(project: Path) -> None:
    error = "{}:3: error: Incompatible types in assignment  [assignment]\n"
    session = begin(project, error.format("old.py"), **{"old.py": ""})
    (project / "old.py").rename(project / "new.py")
    write(project, {"output": error.format("new.py")})
    assert session.stop() == OLD_ONLY
    write(project, {"old.py": ""})  # it is a copy, so what fails in it is new
    assert session.stop() == blocked(f"`{COMMAND}`: exit code 1\n{error.format('new.py').strip()}")


def test_the_start_does_not_run_with_the_bytecode_of_a_file_that_was_changed_within_a_second(
    project: Path,
) -> None:
    failure = "FAILED test_a.py::test_new - assert 2 == 1"
    code = f"import shop\nif shop.VALUE != 1:\n    print('{failure}')\n    raise SystemExit(1)\n"
    files = {"shop.py": "VALUE = 1\n", "run.py": code, ".gitignore": "__pycache__\n"}
    make_repository(project, files)
    session = Session(project, "--", COMMAND_WITH_BYTECODE)
    write(project, {"shop.py": "VALUE = 2\n"})
    assert session.stop() == blocked(f"`{COMMAND_WITH_BYTECODE}`: exit code 1\n{failure}")


UNCOLLECTED = (
    "___ ERROR collecting test_a.py ___\nE   ImportError: x\n=== short test summary info ===\nERROR test_a.py\n"
    "!!!! Interrupted: 1 error during collection !!!!\n"
)


def test_files_that_were_not_collected_before_either_do_not_block_and_the_user_is_told(project: Path) -> None:
    session = begin(project, UNCOLLECTED)
    write(project, {"other": ""})
    note = f"{OLD_ONLY['systemMessage']}; 1 file could not be collected, so the rest was not checked"
    assert session.stop() == {"systemMessage": note}


def test_failures_after_files_are_collected_again_cannot_be_compared(project: Path) -> None:
    session = begin(project, UNCOLLECTED)
    write(project, {"output": failing("test_b")})
    assert session.stop() == unknown(failing("test_b"), "1 file could not be collected")


@pytest.mark.parametrize(
    ("before", "now", "blocks"),
    [
        ("3 of 90 checks failed in 11 s\n", "3 of 90 checks failed in 2.5 s\n", False),
        ("3 of 90 checks failed\n", "57 of 90 checks failed\n", True),
        ("cc a.c\nFAILED a.sh\n1 passed, 1 failed\n", "FAILED a.sh\n2 passed, 1 failed\n", False),
        ("FAILED a.sh\nFAILED b.sh\n", "FAILED b.sh\n", False),
        ("FAILED a.sh\n", "FAILED a.sh\nFAILED b.sh\n", True),
        ("shop.sh: has no header\n", "cart.sh: has no header\n", True),
        ("3 of 4\n", "2 of 4\n", True),
    ],
)
def test_an_output_without_names_is_compared_by_its_lines_about_errors_or_else_as_a_whole(
    project: Path, before: str, now: str, blocks: bool
) -> None:
    session = begin(project, before)
    write(project, {"output": now, "other": ""})
    why = "its output differs, and has no names of failures to compare"
    assert session.stop() == (unknown(now, why) if blocks else OLD_ONLY)


def test_a_project_on_another_machine_is_compared_there(project: Path) -> None:
    words = ("--", COMMAND)
    make_repository(project, {"output": failing("test_old")})
    record_with_shell(words, claude_input(project), project)
    write(project, {"output": failing("test_old", "test_new")})
    assert answer_with_shell(words, claude_input(project), project) == reason_of(
        "tests/test_a.py::test_new\nassert 1 == 2", 1
    )


def test_without_mount_namespaces_all_failures_count_and_the_reason_says_so(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"programs/unshare": "#!/bin/sh\necho 'unshare: Operation not permitted' >&2\nexit 1\n"})
    (tmp_path / "programs/unshare").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"), prepend=":")
    session = begin(project, failing("test_old"))
    write(project, {"other": ""})
    text = "All failures count, because what failed at the session's start is not known: the files of the start cannot be mounted."
    keep = "If all of this failed before, end your answer with `turngate: keep command: failed before`."
    assert session.stop() == blocked(f"`{COMMAND}`: exit code 1\n{failing('test_old')}\n{text}\n{keep}")


def test_settings_can_let_all_failures_count(project: Path) -> None:
    make_repository(project, {"output": failing("test_old")})
    gate = {"type": "gate", "command": COMMAND, "options": {"allFailures": True}}
    write(project, {".turngate/settings.json": json.dumps({"hooks": {"Stop": [{"hooks": [gate]}]}})})
    assert hook(project, "SessionStart") is None
    write(project, {"other": ""})
    assert hook(project, "Stop")["decision"] == "block"


def hook(project: Path, event: str) -> Any:
    assert turngate("hooks", "approve", "--all", "--yes", "--project", str(project))[0] == 0
    fields = {"hook_event_name": event, "session_id": "s", "turn_id": "1", "model": "m", "cwd": str(project)}
    code, out, _ = turngate("hook", stdin=json.dumps(fields))
    assert code == 0
    return json.loads(out) if out.strip() else None


@pytest.mark.parametrize(
    ("change", "notice"),
    [
        ("echo x >> a.py", "the check itself changed a.py"),
        ("touch b.py", None),
        ("touch report.xml", None),
        ("touch a.py", None),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_the_user_reads_which_files_the_check_itself_has_changed(
    project: Path, change: str, notice: str | None, code: int
) -> None:
    make_repository(project, {"a.py": "1\n"})
    command = f"{change}; exit {code}"
    answer = answer_of_process(("--", command), claude_input(project))[1]
    expected: Mapping[str, Any] = blocked(f"`{command}`: exit code 1") if code else {}
    assert answer == {**({"systemMessage": f'gate "command": {notice}'} if notice else {}), **expected}


def test_a_check_that_did_not_end_on_the_files_of_the_start_is_not_run_there_again(project: Path) -> None:
    make_repository(project, {"a.py": ""})
    command = "test -e fixed || { echo run >> ../runs; sleep 600; }; echo 'FAILED a.py::test'; exit 1"
    session = Session(project, "--timeout", "5", "--", command)
    reason = f"`{command}`: exit code 1\nFAILED a.py::test\n\nAll failures count, because what failed at the session's start is not known: it did not end within its time limit.\n{KEEP}"
    for content in ("1", "2"):
        write(project, {"fixed": content})
        assert session.stop() == blocked(reason if content == "1" else f"{reason}\n\n{STILL}")
    assert lines(project / "../runs") == ["run"]


# Commands that ask git: HEAD, the index and the refs are those of the start too


ASKING: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "the message of a commit": ("git log -1 --format=%s | grep -q '^feat:'", (("commit", "-qam", "wip"),)),
    "what is not committed": ('test -z "$(git status --porcelain)"', ()),
    "what differs from HEAD": ("git diff-index --quiet HEAD", ()),
    "what is staged": (
        "! git diff --cached --name-only | sed s/^/staged:1:1:E1/ | grep .",
        (("add", "-A"),),
    ),
    "a tag": ('test -z "$(git tag)"', (("tag", "v1"),)),
    "the branch": ("git symbolic-ref HEAD | grep -q main$", (("checkout", "-qb", "work"),)),
    "a script that asks": ("sh check.sh", (("commit", "-qam", "wip"),)),
}


@pytest.mark.parametrize("name", ASKING)
def test_what_a_command_finds_in_git_was_not_there_at_the_start(project: Path, name: str) -> None:
    command, moves = ASKING[name]
    make_repository(project, {"a.txt": "x", "check.sh": ASKING["the message of a commit"][0]})
    git(project, "commit", "-q", "--allow-empty", "-m", "feat: start")
    session = Session(project, "--", command)
    write(project, {"a.txt": "y"})
    for words in moves:
        git(project, *words)
    assert session.stop()["decision"] == "block"
    assert session.stop()["decision"] == "block"


@pytest.mark.parametrize("command", ["git tag | grep v2", COMMAND])
def test_what_failed_at_the_start_does_not_block_after_commits(project: Path, command: str) -> None:
    make_repository(project, {"output": failing("test_old")})
    write(project, {"staged": ""})
    git(project, "add", "staged")
    session = Session(project, "--", command)
    write(project, {"output": failing("test_old"), "other": ""})
    commit(project)
    git(project, "checkout", "-qb", "work")
    before = (git(project, "status", "--porcelain"), git(project, "for-each-ref"))
    assert session.stop() == OLD_ONLY
    assert (git(project, "status", "--porcelain"), git(project, "for-each-ref")) == before


@pytest.mark.parametrize("command", ["git tag | grep v2", COMMAND])
def test_in_a_linked_checkout_git_is_not_as_it_was(project: Path, tmp_path: Path, command: str) -> None:
    make_repository(project, {"output": failing("test_old")})
    git(project, "worktree", "add", "-q", str(tmp_path / "other"))
    session = Session(tmp_path / "other", "--", command)
    write(tmp_path / "other", {"other": ""})
    commit(tmp_path / "other")
    answer = session.stop()
    assert (
        answer == OLD_ONLY
        or "it may ask git, whose state at the session's start is not known" in answer["reason"]
    )
    assert (answer == OLD_ONLY) == (command == COMMAND)


@pytest.mark.parametrize("is_committed", [False, True])
def test_after_a_change_in_a_repository_inside_what_failed_before_is_not_known(
    project: Path, is_committed: bool
) -> None:
    make_repository(project, {"a.py": ""})
    (project / "lib").mkdir()
    make_repository(project / "lib", {"output": ""})
    session = Session(project, "--", "cd lib; " + COMMAND)
    write(project / "lib", {"output": failing("test_new")})
    if is_committed:
        commit(project / "lib")
    assert (
        "All failures count, because what failed at the session's start is not known"
        in session.stop()["reason"]
    )
