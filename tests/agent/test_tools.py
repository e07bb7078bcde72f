"""What each tool gives, what it refuses, and that nothing of it runs on."""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from secrets import randbelow
from typing import Any

import jsonschema
import pytest

from tests.support.remote_files import remote_context, run_where
from tests.support.timeouts import HANG_TIMEOUT_S, TIMEOUT_SCALES, wait_for_slow_machine
from turngate.agent.tools import TOOLS, ToolContext, ToolFailed, bash, check_arguments, files, search_tools
from turngate.agent.tools import search_process as search
from turngate.core.conversation.tools import TOOL_NAMES, ToolOutput
from turngate.core.text import truncate_middle
from turngate.shells import local as process


@pytest.fixture
def place(request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch) -> ToolContext:
    """The project, on this machine unless the test is for both."""
    if getattr(request, "param", "local") == "local":
        return ToolContext(str(project), dict(os.environ))
    wait_for_slow_machine(monkeypatch)
    return remote_context(request.getfixturevalue("ssh_machine"), project)


on_both_machines = pytest.mark.parametrize("place", ["local", "ssh"], indirect=True)


def use(place: ToolContext, name: str, **given: Any) -> str:
    """The tool's answer, or what it says when it fails."""
    return run_where(place, using(place, name, **given))


async def using(place: ToolContext, name: str, **given: Any) -> str:
    tool = TOOLS[name]
    try:
        args = await place.call(check_arguments, tool, given, place)
        return (await tool.run(args, place)).text
    except ToolFailed as failed:
        return f"FAILED: {failed}"


def file(path: Path, text: str | bytes = "", age: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (1_700_000_000 - age,) * 2)
    return path


def read_file(place: ToolContext, path: Path, text: str | bytes) -> Path:
    """A file that the agent has read."""
    file(path, text)
    use(place, "Read", file_path=str(path))
    return path


# What tools there are, and what they take


def test_the_tools_have_the_names_that_scripts_know_and_say_what_they_change() -> None:
    assert tuple(TOOLS) == TOOL_NAMES
    assert [(name, tool.changes, tool.edits, tool.paths) for name, tool in TOOLS.items()] == [
        ("Bash", True, False, ()),
        ("BashOutput", False, False, ()),
        ("KillShell", False, False, ()),
        ("Read", False, False, ("file_path",)),
        ("Write", True, True, ("file_path",)),
        ("Edit", True, True, ("file_path",)),
        ("Glob", False, False, ("path",)),
        ("Grep", False, False, ("path",)),
        ("TodoWrite", False, False, ()),
        ("AskUser", False, False, ()),
        ("Task", False, False, ()),
    ]


@pytest.mark.parametrize("name", TOOLS)
def test_each_input_is_described_by_a_valid_schema(name: str) -> None:
    schema = TOOLS[name].spec.schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) <= set(schema["properties"])


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("Bash", {}, "`command` is missing"),
        ("Bash", {"command": None}, "`command` is missing"),
        ("Bash", {"command": ["ls"]}, "`command` must be a string, not a list"),
        ("Bash", {"command": "ls", "timeout": "5"}, '`timeout` must be an integer, not "5"'),
        ("Bash", {"command": "ls", "timeout": 1.5}, "`timeout` must be an integer, not 1.5"),
        ("Bash", {"command": "ls", "timeout": True}, "`timeout` must be an integer, not true"),
        ("Bash", {"command": "ls", "timeout": 0}, "`timeout` must be at least 1, not 0"),
        ("Bash", {"command": "\ud800"}, "`command` cannot be encoded as UTF-8: it has half a surrogate pair"),
        (
            "Bash",
            {"command": "ls", "sandbox": True},
            'unknown argument "sandbox", expected one of command, timeout, description, run_in_background',
        ),
        ("Read", {"file_path": 5}, "`file_path` must be a string, not 5"),
        ("Read", {"file_path": "a\0b"}, "'a\\x00b' is not a path: it has a NUL character"),
        ("Read", {"file_path": "a", "limit": 0}, "`limit` must be at least 1, not 0"),
        ("Edit", {"file_path": "a", "old_string": "x"}, "`new_string` is missing"),
        (
            "Edit",
            {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": 1},
            "`replace_all` must be true or false, not 1",
        ),
        (
            "Grep",
            {"pattern": "x", "output_mode": "lines"},
            '`output_mode` must be one of files_with_matches, content, count, not "lines"',
        ),
        ("TodoWrite", {"todos": "all"}, '`todos` must be a list, not "all"'),
        ("TodoWrite", {"todos": ["all"]}, '`todos[0]` must be an object, not "all"'),
        ("TodoWrite", {"todos": [{"content": "a"}]}, "`todos[0].status` is missing"),
        (
            "TodoWrite",
            {"todos": [{"content": "a", "status": "pending"}, {"content": "b", "status": "done"}]},
            '`todos[1].status` must be one of pending, in_progress, completed, not "done"',
        ),
        ("AskUser", {"question": "Which?", "options": [1]}, "`options[0]` must be a string, not 1"),
    ],
)
def test_a_wrong_input_is_rejected_with_a_sentence_that_names_the_field(
    name: str, given: dict[str, Any], why: str, place: ToolContext
) -> None:
    with pytest.raises(ToolFailed) as failed:
        check_arguments(TOOLS[name], given, place)
    assert str(failed.value) == why


def test_an_input_is_kept_in_its_order_without_what_is_null(place: ToolContext) -> None:
    given = {"pattern": "x", "path": None, "-i": True, "head_limit": 5.0}
    assert list(check_arguments(TOOLS["Grep"], given, place).items()) == [
        ("pattern", "x"),
        ("-i", True),
        ("head_limit", 5),
    ]
    assert given == {"pattern": "x", "path": None, "-i": True, "head_limit": 5.0}


# Where paths lead


@pytest.mark.parametrize(
    ("path", "full"),
    [
        ("a.py", "/a.py"),
        ("./src//a.py", "/src/a.py"),
        ("src/../a.py", "/a.py"),
        ("new/deep/a.py", "/new/deep/a.py"),
        ("..a/b", "/..a/b"),
        ("{project}/a.py", "/a.py"),
        ("/{project}/a.py", "/a.py"),
        (".", ""),
        ("", ""),
    ],
)
def test_a_path_in_the_project_becomes_absolute(path: str, full: str, place: ToolContext) -> None:
    given = {"file_path": path.replace("{project}", place.project)}
    assert check_arguments(TOOLS["Read"], given, place) == {"file_path": place.project + full}


@pytest.mark.parametrize("name", ["Read", "Write", "Edit"])
@pytest.mark.parametrize(
    ("path", "full"),
    [
        ("/etc/passwd", "/etc/passwd"),
        ("//etc/passwd", "/etc/passwd"),
        ("../secret", "{outside}/secret"),
        ("src/../../secret", "{outside}/secret"),
        ("../project-2/a.py", "{outside}/project-2/a.py"),
        ("folder-link/secret", "{outside}/project/folder-link/secret"),
        ("folder-link/new/file", "{outside}/project/folder-link/new/file"),
        ("file-link", "{outside}/project/file-link"),
        ("dangling-link", "{outside}/project/dangling-link"),
        ("two-links", "{outside}/project/two-links"),
        ("~/x", "{home}/x"),
    ],
)
@on_both_machines
def test_a_path_that_leads_out_of_the_project_is_rejected(
    name: str, path: str, full: str, place: ToolContext, tmp_path: Path, home: Path
) -> None:
    file(tmp_path / "secret", "secret")
    links(Path(place.project), tmp_path)
    texts = {"content": "x"} if name == "Write" else {"old_string": "secret", "new_string": "x"}
    said = use(place, name, file_path=path, **({} if name == "Read" else texts))
    where = full.format(outside=tmp_path, home=home if place.world is None else place.environ["HOME"])
    assert said == f"FAILED: {where} is not allowed: it is outside of the project {place.project}"
    assert (tmp_path / "secret").read_text() == "secret"


def links(project: Path, outside: Path) -> None:
    (project / "folder-link").symlink_to(outside)
    (project / "file-link").symlink_to(outside / "secret")
    (project / "dangling-link").symlink_to(outside / "not-there")
    (project / "two-links").symlink_to("folder-link/secret")


@pytest.mark.parametrize("name", ["Glob", "Grep"])
@pytest.mark.parametrize("path", ["..", "/", "folder-link"])
@on_both_machines
def test_a_search_that_leads_out_of_the_project_is_rejected(
    name: str, path: str, place: ToolContext, tmp_path: Path
) -> None:
    links(Path(place.project), tmp_path)
    said = use(place, name, pattern="x", path=path)
    full = os.path.normpath(os.path.join(place.project, path))
    assert said == f"FAILED: {full} is not allowed: it is outside of the project {place.project}"


def test_a_link_that_turned_out_of_the_project_since_it_was_checked_is_rejected(
    place: ToolContext, project: Path, tmp_path: Path
) -> None:
    file(project / "a", "inside")
    file(tmp_path / "secret", "secret")
    given = check_arguments(TOOLS["Read"], {"file_path": "a"}, place)
    (project / "a").unlink()
    (project / "a").symlink_to(tmp_path / "secret")
    with pytest.raises(ToolFailed, match="is not allowed"):
        asyncio.run(awaited(TOOLS["Read"].run(given, place)))


async def awaited(work: Awaitable[object]) -> object:
    return await work


@pytest.mark.parametrize("links", [50, 1200])
@on_both_machines
def test_a_chain_of_more_links_than_the_system_follows_is_rejected(
    place: ToolContext, project: Path, links: int
) -> None:
    for number in range(links):
        (project / f"link-{number}").symlink_to(f"link-{number + 1}")
    file(project / f"link-{links}", "x")
    assert use(place, "Read", file_path="link-0") == (
        f"FAILED: {project}/link-0 cannot be used: Too many levels of symbolic links"
    )


def test_folders_outside_of_the_project_can_be_allowed(project: Path, tmp_path: Path) -> None:
    inner = file(tmp_path / "more" / "a", "inner").parent
    other = file(tmp_path / "more-2" / "a", "other").parent
    place = ToolContext(str(project), {}, extra_paths=(str(inner),))
    assert use(place, "Read", file_path="../more/a") == "     1\tinner"
    assert use(place, "Read", file_path=f"{other}/a") == (
        f"FAILED: {other}/a is not allowed: it is outside of the project {project}"
    )


def test_a_project_that_is_reached_through_a_link_is_still_the_project(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    file(project / "a", "x")
    place = ToolContext(str(tmp_path / "link"), {})
    for path in ("a", f"{project}/a", f"{tmp_path}/link/a"):
        assert use(place, "Read", file_path=path) == "     1\tx"


# Bash


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo hi", "hi"),
        ("echo err >&2; echo out", "out\nerr"),
        ("printf '  indented\\n\\n'", "  indented"),
        (":", "(no output)"),
        ("cat", "(no output)"),
        ("[[ a == a ]] && echo bash", "bash"),
        ("-not-an-option", "FAILED: exit code 127\n"),
        ("echo out; echo err >&2; exit 3", "FAILED: exit code 3\nout\nerr"),
        ("exit 1", "FAILED: exit code 1\n(no output)"),
        ("kill -9 $$", "FAILED: exit code 137\n(no output)"),
        ("printf '\\377'", "\N{REPLACEMENT CHARACTER}"),
        ("echo \0", "FAILED: `command` has a NUL character, which no process can take"),
        (": " + "x" * 200_000, "FAILED: the command could not be started: Argument list too long"),
    ],
)
def test_bash_gives_what_a_command_printed_and_fails_with_its_exit_code(
    command: str, said: str, place: ToolContext
) -> None:
    given = use(place, "Bash", command=command, description="a test")
    assert given == said or (said.endswith("127\n") and given.startswith(said))


def test_bash_runs_in_the_project_with_the_environment_of_the_session(
    place: ToolContext, project: Path
) -> None:
    place.environ["FROM_HOOK"] = "exported"
    assert use(place, "Bash", command='pwd; echo "$PWD $FROM_HOOK"') == f"{project}\n{project} exported"


@pytest.mark.req("S3-16")
def test_a_command_of_bash_can_be_told_from_one_of_a_person(place: ToolContext) -> None:
    assert use(place, "Bash", command="echo $TURNGATE_IN_TOOL") == "1"


def test_bash_works_although_the_environment_has_odd_entries(place: ToolContext) -> None:
    place.environ.update({"": "a", "A=B": "c", "NUL": "\0", "HALF": "\ud800", "LONG": "x" * 200_000})
    assert use(place, "Bash", command='echo "${LONG-none}"') == "none"


def test_without_bash_it_is_sh(place: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert use(place, "Bash", command='echo "$0 ${BASH_VERSION-none}"') == "/bin/sh none"


def test_a_project_that_is_gone_fails_bash(tmp_path: Path) -> None:
    place = ToolContext(str(tmp_path / "gone"), {})
    assert (
        use(place, "Bash", command="echo hi")
        == "FAILED: the command could not be started: No such file or directory"
    )


def test_long_output_is_cut_in_the_middle(place: ToolContext) -> None:
    whole = "\n".join(map(str, range(1, 20_001)))
    assert use(place, "Bash", command="seq 20000") == truncate_middle(whole, 30_000, None)
    assert use(place, "Bash", command="seq 20000; exit 1") == (
        f"FAILED: exit code 1\n{truncate_middle(whole, 30_000, None)}"
    )


STUBBORN = "trap '' TERM; echo begun; sleep 600.TOKEN & (setsid sleep 600.TOKEN &); while :; do sleep 600.TOKEN; done"


def test_after_its_time_bash_is_ended_with_all_that_it_started(place: ToolContext) -> None:
    for scale in TIMEOUT_SCALES:
        mark = token()
        said = use(place, "Bash", command=STUBBORN.replace("TOKEN", mark), timeout=1000 * scale)
        assert running(mark) == set()
        if said == f"FAILED: killed after {scale} s; it had printed:\nbegun":
            return
    pytest.fail(said)


def test_cancelled_bash_is_ended_with_all_that_it_started(place: ToolContext) -> None:
    mark = token()
    asyncio.run(
        cancelled(
            using(place, "Bash", command=STUBBORN.replace("TOKEN", mark)), lambda: len(running(mark)) >= 3
        )
    )
    assert running(mark) == set()


def test_what_a_command_leaves_running_runs_on_although_its_time_is_over_while_we_read_on(
    place: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    for scale in TIMEOUT_SCALES:
        monkeypatch.setattr(process, "OUTPUT_GRACE_S", 2 * scale)
        mark = token()
        said = use(place, "Bash", command=f"sleep 600.{mark} & echo started", timeout=1500 * scale)
        left = running(mark)
        for pid in left:
            os.kill(pid, 9)
        if (said, len(left)) == (f"started\n{bash._HELD}", 1):
            return
    pytest.fail(said)


def test_no_command_gets_more_than_ten_minutes(place: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bash, "MAX_TIMEOUT_S", 0.2)
    said = use(place, "Bash", command="sleep 60", timeout=10**400)
    assert said == "FAILED: killed after 0.2 s; it had printed:\n(no output)"


def token() -> str:
    """A number that no other process has in its arguments."""
    return str(randbelow(10**12)).zfill(12)


def running(mark: str) -> set[int]:
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in arguments:
            found.add(int(pid))
    return found


async def cancelled(work: Awaitable[str], begun: Callable[[], bool]) -> None:
    task = asyncio.ensure_future(work)
    while not begun():
        assert not task.done(), task.result()
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# Read


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("one\ntwo\n", {}, "     1\tone\n     2\ttwo"),
        ("one\r\n\r\nthree", {}, "     1\tone\n     2\t\n     3\tthree"),
        ("", {}, "(the file is empty)"),
        (b"caf\xe9", {}, "     1\tcaf\N{REPLACEMENT CHARACTER}"),
        ("a\nb\nc\n", {"offset": 2}, "     2\tb\n     3\tc"),
        ("a\nb\nc\n", {"offset": 0, "limit": 3}, "     1\ta\n     2\tb\n     3\tc"),
        (
            "a\nb\nc\n",
            {"offset": 2, "limit": 1},
            "     2\tb\n… [more lines follow: read on with offset 3]",
        ),
        ("a\nb\n", {"offset": 3}, "FAILED: PATH has only 2 lines"),
        ("a\nb\n", {"offset": 10**30, "limit": 10**30}, "FAILED: PATH has only 2 lines"),
        ("x" * 2000, {}, "     1\t" + "x" * 2000),
        ("x" * 2001 + "\nb", {}, "     1\t" + "x" * 2000 + " … [line truncated]\n     2\tb"),
        (
            "\N{GRINNING FACE}" * 9000 + "\nb",
            {},
            "     1\t" + "\N{GRINNING FACE}" * 2000 + " … [line truncated]\n     2\tb",
        ),
        (b"\x7fELF\0\0", {}, "FAILED: PATH is a binary file"),
    ],
)
@on_both_machines
def test_read_gives_numbered_lines(
    text: str | bytes, given: dict[str, int], said: str, place: ToolContext, project: Path
) -> None:
    path = file(project / "a", text)
    assert use(place, "Read", file_path="a", **given) == said.replace("PATH", str(path))


@on_both_machines
def test_read_returns_two_thousand_lines_by_default(place: ToolContext, project: Path) -> None:
    file(project / "a", "x\n" * 3000)
    said = use(place, "Read", file_path="a").split("\n")
    assert (len(said), said[-1]) == (2001, "… [more lines follow: read on with offset 2001]")
    assert len(use(place, "Read", file_path="a", limit=5000).split("\n")) == 3000


@on_both_machines
def test_read_gives_no_more_than_a_model_can_take(place: ToolContext, project: Path) -> None:
    file(project / "a", ("x" * 1993 + "\n") * 100)  # 2,000 characters with the number
    said = use(place, "Read", file_path="a").split("\n")
    assert (len(said), said[-1]) == (51, "… [more lines follow: read on with offset 51]")


@on_both_machines
def test_read_does_not_take_a_huge_file_into_memory(place: ToolContext, project: Path) -> None:
    huge(project / "huge")
    said = use(place, "Read", file_path="huge", limit=1)
    assert said == "     1\tfirst\n… [more lines follow: read on with offset 2]"


def test_a_read_that_takes_too_long_is_given_up_and_its_thread_ends(
    place: ToolContext, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "TIMEOUT_S", 0.2)
    huge(project / "huge")
    threads = threading.active_count()
    assert (
        use(place, "Read", file_path="huge", offset=3)
        == f"FAILED: {project}/huge: no answer from the disk within 0.2 s"
    )
    deadline = time.monotonic() + HANG_TIMEOUT_S
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= threads


def huge(path: Path) -> None:
    """The second line is 100 GB long, and takes no room."""
    with open(path, "wb") as file:
        file.write(b"first\n" + b"x" * 10_000)
        file.truncate(100 * 1024**3)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("gone", "does not exist"),
        ("gone/deeper", "does not exist"),
        ("folder", "is a folder"),
        (".", "is a folder"),
        ("folder/a/b", "cannot be used: Not a directory"),
        ("pipe", "cannot be used: it is not a regular file"),
        ("loop", "cannot be used: Too many levels of symbolic links"),
        ("x" * 300, "cannot be used: File name too long"),
    ],
)
@on_both_machines
def test_read_says_why_it_cannot(path: str, why: str, place: ToolContext, project: Path) -> None:
    oddities(project)
    full = os.path.normpath(project / path)
    assert use(place, "Read", file_path=path) == f"FAILED: {full} {why}"


def oddities(project: Path) -> None:
    file(project / "folder" / "a", "needle\n")
    os.mkfifo(project / "pipe")
    (project / "loop").symlink_to("loop")


# Write


@on_both_machines
def test_write_creates_a_file_and_the_folders_above_it(place: ToolContext, project: Path) -> None:
    path = project / "new" / "deep" / "a.txt"
    assert use(place, "Write", file_path="new/deep/a.txt", content="häh\n\0") == f"Created {path}"
    assert (path.read_bytes(), os.listdir(path.parent)) == ("häh\n\0".encode(), ["a.txt"])


def test_a_new_file_has_the_mode_that_the_user_wants_for_new_files(place: ToolContext, project: Path) -> None:
    before = os.umask(0o027)
    try:
        use(place, "Write", file_path="a", content="x")
    finally:
        os.umask(before)
    assert (project / "a").stat().st_mode & 0o7777 == 0o640


@on_both_machines
def test_write_replaces_a_file_that_was_read_and_keeps_its_mode(place: ToolContext, project: Path) -> None:
    path = file(project / "run.sh", "old")
    path.chmod(0o751)
    use(place, "Read", file_path="run.sh")
    assert use(place, "Write", file_path="run.sh", content="new") == f"Wrote {path}"
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("new", 0o751)
    assert use(place, "Write", file_path="run.sh", content="newer") == f"Wrote {path}"
    assert (path.read_text(), os.listdir(project)) == ("newer", ["run.sh"])


@on_both_machines
def test_write_through_a_link_changes_the_file_and_keeps_the_link(place: ToolContext, project: Path) -> None:
    path = read_file(place, project / "a", "old")
    (project / "link").symlink_to("a")
    assert use(place, "Write", file_path="link", content="new") == f"Wrote {path}"
    assert (path.read_text(), os.readlink(project / "link")) == ("new", "a")


@pytest.mark.parametrize("name", ["Write", "Edit"])
@on_both_machines
def test_a_file_that_the_agent_does_not_know_as_it_is_stays_so(
    name: str, place: ToolContext, project: Path
) -> None:
    given = {"content": "new"} if name == "Write" else {"old_string": "old", "new_string": "new"}
    path = file(project / "a", "old")
    assert use(place, name, file_path="a", **given) == (
        f"FAILED: {path} exists and was not read yet: read it first"
    )
    use(place, "Read", file_path="a")
    file(path, "old, changed", age=-60)
    assert use(place, name, file_path="a", **given) == (
        f"FAILED: {path} has changed since it was read: read it again"
    )
    assert path.read_text() == "old, changed"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("folder", "is a folder"),
        (".", "is a folder"),
        ("pipe", "is not a regular file"),
        ("loop", "cannot be used: Too many levels of symbolic links"),
        ("folder/a/b", "cannot be used: Not a directory"),
        ("x" * 300, "cannot be used: File name too long"),
    ],
)
@on_both_machines
def test_write_says_why_it_cannot(path: str, why: str, place: ToolContext, project: Path) -> None:
    oddities(project)
    full = os.path.normpath(project / path)
    assert use(place, "Write", file_path=path, content="x") == f"FAILED: {full} {why}"
    assert sorted(os.listdir(project)) == ["folder", "loop", "pipe"]


@on_both_machines
def test_what_is_protected_stays_as_it_is(place: ToolContext, project: Path) -> None:
    path = read_file(place, project / "folder" / "a", "old")
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        pytest.skip("root may write everywhere")
    assert use(place, "Write", file_path="folder/a", content="x") == f"FAILED: {path} is write-protected"
    path.chmod(0o644)
    path.parent.chmod(0o555)
    said = use(place, "Write", file_path="folder/a", content="x")
    path.parent.chmod(0o755)
    assert (said, path.read_text()) == (f"FAILED: {path} cannot be used: Permission denied", "old")


def test_an_interrupted_write_is_whole_when_the_interrupt_is_through(
    place: ToolContext, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, released = os.replace, threading.Event()

    def slow(source: str, target: str, **folders: int) -> None:
        released.wait()
        replace(source, target, **folders)

    def begun() -> bool:
        if not os.listdir(project):
            return False
        asyncio.get_running_loop().call_later(0.1, released.set)  # after the cancellation
        return True

    async def scenario() -> list[str]:
        writing = using(place, "Write", file_path="a", content="whole")
        await cancelled(writing, begun)
        return os.listdir(project)

    monkeypatch.setattr(os, "replace", slow)
    assert (asyncio.run(scenario()), (project / "a").read_text()) == (["a"], "whole")


# Edit


@pytest.mark.parametrize(
    ("text", "old", "new", "everywhere", "after", "said"),
    [
        ("a = 1\n", "1", "2", False, "a = 2\n", "Changed PATH in 1 place"),
        ("a a a", "a", "b", True, "b b b", "Changed PATH in 3 places"),
        ("a b", "a ", "", False, "b", "Changed PATH in 1 place"),
        ("a\nb\nc\n", "a\nb", "x\ny", False, "x\ny\nc\n", "Changed PATH in 1 place"),
        ("a\r\nb\r\n", "a\nb", "x\ny\nz", False, "x\r\ny\r\nz\r\n", "Changed PATH in 1 place"),
        ("a\r\nb\n", "b", "x\ny", False, "a\r\nx\ny\n", "Changed PATH in 1 place"),
        ("one", "one", "one\ntwo", False, "one\ntwo", "Changed PATH in 1 place"),
        (b"caf\xe9 old", "old", "n\xe9w", False, b"caf\xe9 n\xc3\xa9w", "Changed PATH in 1 place"),
        ("a\\1", "\\1", "\\g<0>", False, "a\\g<0>", "Changed PATH in 1 place"),
        ("abc", "d", "e", False, "abc", "FAILED: `old_string` does not occur in PATH"),
        ("abc", "d", "e", True, "abc", "FAILED: `old_string` does not occur in PATH"),
        ("abc", "", "e", False, "abc", "FAILED: `old_string` is empty: use Write for a whole file"),
        ("abc", "b", "b", False, "abc", "FAILED: `old_string` and `new_string` are the same"),
        (
            "a a",
            "a",
            "b",
            False,
            "a a",
            "FAILED: `old_string` occurs 2 times in PATH: give more of the text around it, or set `replace_all`",
        ),
        (
            "a" * 4000,
            "a",
            "b" * 4000,
            True,
            "a" * 4000,
            "FAILED: PATH would be too large to be edited again: use Bash",
        ),
    ],
)
@on_both_machines
def test_edit_replaces_a_text_that_is_there(
    text: str | bytes,
    old: str,
    new: str,
    everywhere: bool,
    after: str | bytes,
    said: str,
    place: ToolContext,
    project: Path,
) -> None:
    path = read_file(place, project / "a", text)
    given = use(place, "Edit", file_path="a", old_string=old, new_string=new, replace_all=everywhere)
    assert given == said.replace("PATH", str(path))
    assert path.read_bytes() == (after if isinstance(after, bytes) else after.encode())


@on_both_machines
def test_one_edit_may_follow_another_without_reading_again(place: ToolContext, project: Path) -> None:
    path = read_file(place, project / "a", "one two")
    path.chmod(0o700)
    use(place, "Edit", file_path="a", old_string="one", new_string="1")
    use(place, "Edit", file_path="a", old_string="two", new_string="2")
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("1 2", 0o700)


CHANGED = "has changed since it was read: read it again"  # there the content is compared too


@on_both_machines
def test_edit_says_why_it_cannot(place: ToolContext, project: Path) -> None:
    oddities(project)
    read_file(place, project / "large", "a" * 10_000_001)
    read_file(place, project / "binary", "ab")
    file(project / "binary", b"a\0")  # of the same size and time
    said = {
        path: use(place, "Edit", file_path=path, old_string="a", new_string="b")
        for path in ("gone", "folder", "pipe", "binary", "large")
    }
    assert said == {
        "gone": f"FAILED: {project}/gone does not exist",
        "folder": f"FAILED: {project}/folder is a folder",
        "pipe": f"FAILED: {project}/pipe is not a regular file",
        "binary": f"FAILED: {project}/binary {'is a binary file' if place.is_local else CHANGED}",
        "large": f"FAILED: {project}/large is too large to be edited: use Bash",
    }


# Glob


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py"]),
        ("./*.py", ["a.py"]),
        ("**/*.py", ["a.py", "src/b.py", "src/deep/c.py", ".hidden/d.py", "node_modules/e.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("src/**", ["src/b.py", "src/deep/c.py", "src/x.ts"]),
        ("**/deep/**/c.*", ["src/deep/c.py"]),
        ("{src,.hidden}/*.{py,ts}", ["src/b.py", ".hidden/d.py", "src/x.ts"]),
        ("src/?.py", ["src/b.py"]),
        ("src/[!b].*", ["src/x.ts"]),
        ("PROJECT/src/*.py", ["src/b.py"]),
        ("**/config", []),
        ("src", []),
        ("**/pipe", []),
        ("*.PY", []),
    ],
)
@on_both_machines
def test_glob_finds_files_the_newest_first(
    pattern: str, found: list[str], place: ToolContext, project: Path
) -> None:
    tree(project)
    os.mkfifo(project / "pipe")
    said = use(place, "Glob", pattern=pattern.replace("PROJECT", str(project)))
    assert said == ("\n".join(f"{project}/{name}" for name in found) or "No files found")


def tree(project: Path) -> None:
    names = (
        "a.py",
        "src/b.py",
        "src/deep/c.py",
        ".hidden/d.py",
        "node_modules/e.py",
        "src/x.ts",
        ".git/config",
    )
    for age, name in enumerate(names):
        file(project / name, f"the needle in {name}\n", age=age)


@on_both_machines
def test_glob_looks_in_a_folder(place: ToolContext, project: Path) -> None:
    tree(project)
    assert use(place, "Glob", pattern="*.py", path="src") == f"{project}/src/b.py"
    assert use(place, "Glob", pattern="*", path="gone") == f"FAILED: {project}/gone does not exist"
    assert use(place, "Glob", pattern="*", path="a.py") == f"FAILED: {project}/a.py is not a folder"


@pytest.mark.parametrize("pattern", ["../*", "src/../../*", "/etc/*"])
@on_both_machines
def test_a_pattern_does_not_lead_out_of_its_folder(pattern: str, place: ToolContext, project: Path) -> None:
    assert use(place, "Glob", pattern=pattern) == (
        f"FAILED: `pattern` must stay below {project}: give another folder as `path`"
    )


@on_both_machines
def test_glob_and_grep_follow_no_link_out_of_the_project(
    place: ToolContext, project: Path, tmp_path: Path
) -> None:
    file(tmp_path / "secret", "needle")
    links(project, tmp_path)
    (project / "loop").symlink_to(".")
    assert use(place, "Glob", pattern="**/secret") == "No files found"
    assert use(place, "Grep", pattern="needle", output_mode="content") == "No matches found"


@on_both_machines
def test_glob_gives_the_hundred_newest(place: ToolContext, project: Path) -> None:
    for number in range(120):
        file(project / f"{number}.txt", age=number)
    said = use(place, "Glob", pattern="*.txt").split("\n")
    assert said == [*(f"{project}/{n}.txt" for n in range(100)), "… [the 100 newest of 120 files]"]


@on_both_machines
def test_a_name_that_is_no_text_is_shown_as_well_as_can_be(place: ToolContext, project: Path) -> None:
    Path(os.fsdecode(os.fsencode(project) + b"/caf\xe9.txt")).write_text("needle")
    assert use(place, "Glob", pattern="*.txt") == f"{project}/caf?.txt"
    assert use(place, "Grep", pattern="needle") == f"{project}/caf?.txt"


# Grep


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ["a.txt", "b.py", "sub/c.py"]),
        ({"output_mode": "count"}, ["a.txt:2", "b.py:1", "sub/c.py:1"]),
        (
            {"output_mode": "content"},
            ["a.txt:1:a needle", "a.txt:3:needles", "b.py:1:needle = 1", "sub/c.py:2:    needle()"],
        ),
        ({"output_mode": "content", "-n": False, "glob": "b.py"}, ["b.py:needle = 1"]),
        ({"glob": "*.py"}, ["b.py", "sub/c.py"]),
        ({"glob": "*.{py,js}"}, ["b.py", "sub/c.py"]),
        ({"glob": "sub/*.py"}, ["sub/c.py"]),
        ({"path": "sub"}, ["sub/c.py"]),
        ({"path": "a.txt"}, ["a.txt"]),
        ({"pattern": "^needle"}, ["a.txt", "b.py"]),
        ({"pattern": r"needle\(\)$"}, ["sub/c.py"]),
        ({"pattern": "NEEDLE"}, []),
        ({"pattern": "NEEDLES", "-i": True}, ["a.txt"]),
        ({"pattern": "haystack"}, []),
    ],
)
@on_both_machines
def test_grep_finds_lines(given: dict[str, Any], found: list[str], place: ToolContext, project: Path) -> None:
    file(project / "a.txt", "a needle\r\nhay\r\nneedles")
    file(project / "b.py", "needle = 1\n")
    file(project / "sub" / "c.py", "def f():\n    needle()\n")
    file(project / "binary", b"needle\0")
    for folder in (".git", "node_modules", ".venv", "sub/node_modules"):
        file(project / folder / "x.py", "needle")
    os.mkfifo(project / "pipe")
    said = use(place, "Grep", **{"pattern": "needle", **given})
    assert said == ("\n".join(f"{project}/{line}" for line in found) or "No matches found")


@on_both_machines
def test_grep_gives_as_many_lines_as_asked_for(place: ToolContext, project: Path) -> None:
    file(project / "a", "x\n" * 300)

    def lines(**given: Any) -> list[str]:
        return use(place, "Grep", pattern="x", path="a", output_mode="content", **given).split("\n")

    more = "… [more than {} lines: raise `head_limit`, or make the search narrower]"
    assert lines(head_limit=2) == [f"{project}/a:1:x", f"{project}/a:2:x", more.format(2)]
    assert (len(lines()), lines()[-1]) == (251, more.format(250))
    assert len(lines(head_limit=0)) == len(lines(head_limit=10**30)) == 300


@on_both_machines
def test_grep_cuts_long_lines_and_long_answers(place: ToolContext, project: Path) -> None:
    file(project / "a", ("x" * 600 + "\n") * 100)
    line = "x" * 500 + " … [line truncated]"
    whole = "\n".join(f"{project}/a:{n}:{line}" for n in range(1, 101))
    assert use(place, "Grep", pattern="x", output_mode="content") == truncate_middle(whole, 30_000, None)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"pattern": "("},
            "`pattern` is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            {"pattern": "a{" + "9" * 30 + "}"},
            "`pattern` is not a regular expression: the repetition number is too large",
        ),
        ({"pattern": "x", "path": "gone"}, "{project}/gone does not exist"),
    ],
)
@on_both_machines
def test_grep_says_why_it_cannot(given: dict[str, Any], why: str, place: ToolContext, project: Path) -> None:
    assert use(place, "Grep", **given) == "FAILED: " + why.replace("{project}", str(project))


CATASTROPHE = {"pattern": "(a+)+$", "path": "a"}


def test_a_regular_expression_without_an_end_is_ended_and_the_loop_keeps_running_meanwhile(
    place: ToolContext, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_tools, "TIMEOUT_S", 0.5)
    file(project / "a", "a" * 60 + "b")

    async def scenario() -> tuple[str, int]:
        searching = asyncio.ensure_future(using(place, "Grep", **CATASTROPHE))
        ticks = 0
        while not searching.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return searching.result(), ticks

    said, ticks = asyncio.run(scenario())
    assert said == "FAILED: the search was killed after 0.5 s: make it narrower"
    assert ticks > 2
    assert searches() == set()


def test_a_cancelled_search_is_ended(place: ToolContext, project: Path) -> None:
    file(project / "a", "a" * 60 + "b")
    asyncio.run(cancelled(using(place, "Grep", **CATASTROPHE), lambda: bool(searches())))
    assert searches() == set()


def searches() -> set[int]:
    """Ours: other tests may search at the same time."""
    found = set()
    for pid in running(search.__file__):
        try:
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.add(pid)
    return found


# TodoWrite and AskUser


def test_todos_replace_the_list_and_are_shown(place: ToolContext) -> None:
    todos = [
        {"content": "Read", "status": "completed", "activeForm": "Reading", "id": "1"},
        {"content": "Write", "status": "in_progress", "activeForm": "Writing"},
        {"content": "Test", "status": "pending"},
    ]
    assert use(place, "TodoWrite", todos=todos) == "[x] Read\n[>] Write\n[ ] Test"
    assert place.todos == todos
    assert (use(place, "TodoWrite", todos=[]), place.todos) == ("(the list is empty)", [])


@pytest.mark.parametrize(
    ("given", "options"), [({}, ""), ({"options": ["SQL", "files"]}, "\n- SQL\n- files")]
)
def test_a_question_is_given_to_the_caller_with_its_options(
    given: dict[str, Any], options: str, place: ToolContext
) -> None:
    tool, args = TOOLS["AskUser"], {"question": "Which store?", **given}

    async def ask() -> ToolOutput:
        return await tool.run(check_arguments(tool, args, place), place)

    assert run_where(place, ask()).question == f"Which store?{options}"
