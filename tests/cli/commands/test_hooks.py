"""`turngate hooks` as a person uses it: real processes, a real terminal where it asks."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.terminal import Terminal
from turngate.cli.review.entries import NO_HOOKS
from turngate.hosts.all_hosts import AGENT_MARKERS

TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
SECONDS = re.compile(r"\d+\.\d\d s")

SETTINGS = """\
{
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {"type": "command", "id": "tests", "command": "sh hooks/tests.sh", "timeout": 5},
          {"type": "command", "command": "true"}
        ]
      }
    ]
  }
}
"""


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints name the project only where they are read elsewhere."""
    monkeypatch.chdir(project)


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)


@pytest.fixture
def hooks(project: Path) -> Callable[..., tuple[int, str, str]]:
    """Run `turngate hooks` in the project, and hide the times in what it prints."""

    def run(*words: str) -> tuple[int, str, str]:
        code, out, err = turngate("hooks", *words, "--project", str(project))
        return code, SECONDS.sub("0.00 s", TIME.sub("DATE", out)), err

    return run


Hooks = Callable[..., tuple[int, str, str]]


@pytest.fixture
def two_hooks(project: Path) -> Path:
    write_settings(project, "turngate", SETTINGS)
    return script(project / "hooks" / "tests.sh", "echo one\n")


LISTED = """\
Stop
  tests: PENDING, so it does not run: it is not approved
    command: sh hooks/tests.sh
    .turngate/settings.json:6, dialect turngate, timeout 5 s
    never run
    → `turngate hooks diff tests` shows it, `turngate hooks approve tests` lets it run
  Stop:2: PENDING, so it does not run: it is not approved
    command: true
    .turngate/settings.json:7, dialect turngate, timeout 60 s
    never run
    → `turngate hooks diff Stop:2` shows it, `turngate hooks approve Stop:2` lets it run
2 hooks, 2 pending: `turngate hooks diff` shows what a person has to approve
"""
EMPTY = f"{NO_HOOKS}\n"
NEW = """\
tests: PENDING, so it does not run: it is not approved
--- /dev/null
+++ definition, now
@@ -0,0 +1,7 @@
+{
+  "event": "Stop",
+  "type": "command",
+  "timeout": 5.0,
+  "id": "tests",
+  "command": "sh hooks/tests.sh"
+}
--- /dev/null
+++ hooks/tests.sh, now
@@ -0,0 +1 @@
+echo one
"""
CHANGED = """\
tests: PENDING, so it does not run: hooks/tests.sh was changed after it was approved
--- hooks/tests.sh, approved
+++ hooks/tests.sh, now
@@ -1 +1,2 @@
 echo one
+echo two
"""


# List


@pytest.mark.req("S3-16", "X-35")
@pytest.mark.usefixtures("two_hooks")
def test_new_hooks_are_listed_with_their_lines_and_what_to_do(hooks: Hooks) -> None:
    assert hooks() == (0, LISTED, "")


@pytest.mark.req("X-35")
@pytest.mark.usefixtures("two_hooks")
def test_after_approval_the_list_has_the_last_run_and_the_mean_time(hooks: Hooks, project: Path) -> None:
    hooks("approve", "--all", "--yes")
    for _ in range(2):
        turngate("fire", "Stop", "--project", str(project))
    assert hooks("list") == (
        0,
        """\
Stop
  tests: approved
    command: sh hooks/tests.sh
    .turngate/settings.json:6, dialect turngate, timeout 5 s
    last run DATE: passed (0.00 s); mean 0.00 s of 2 runs
  Stop:2: approved
    command: true
    .turngate/settings.json:7, dialect turngate, timeout 60 s
    last run DATE: passed (0.00 s); mean 0.00 s of 2 runs
2 hooks, none pending
""",
        "",
    )


def test_a_project_without_hooks_gets_a_helpful_sentence(hooks: Hooks) -> None:
    assert hooks() == (0, EMPTY, "")


@pytest.mark.usefixtures("two_hooks")
def test_the_list_as_json_has_everything(project: Path) -> None:
    code, out, err = turngate("hooks", "--json", "--project", str(project))
    first: dict[str, Any] = {
        "key": "tests",
        "event": "Stop",
        "matcher": None,
        "agent_type": None,
        "type": "command",
        "text": "sh hooks/tests.sh",
        "source": "project",
        "file": ".turngate/settings.json",
        "line": 6,
        "dialect": "turngate",
        "timeout": 5,
        "mode": "gate",
        "enabled": True,
        "trust": "new",
        "pending": "it is not approved",
        "approved": None,
        "not_covered": [],
        "last_run": None,
        "last_result": None,
        "mean_seconds": None,
        "runs": 0,
    }
    second = first | {"key": "Stop:2", "text": "true", "line": 7, "timeout": 60.0}
    expected = {"project": str(project), "dialect": "turngate", "hooks": [first, second]}
    expected |= {"vanished": [], "problems": [], "goals": []}
    assert (code, json.loads(out), err) == (0, expected, "")


@pytest.mark.usefixtures("two_hooks")
def test_a_hook_that_was_approved_and_is_gone_is_named(hooks: Hooks, project: Path) -> None:
    hooks("approve", "--all", "--yes")
    write_settings(project, "turngate", {})
    gone = "GONE; it was approved on DATE and is not in the settings that are read here"
    assert hooks() == (
        0,
        (
            f"tests: {gone}\n"
            "  → if that is right, `turngate hooks reject tests` forgets it\n"
            f"Stop:2: {gone}\n"
            "  → if that is right, `turngate hooks reject Stop:2` forgets it\n"
            f"{EMPTY}"
        ),
        "",
    )
    assert hooks("reject", "tests", "Stop:2") == (0, "forgotten  tests\nforgotten  Stop:2\n", "")
    assert hooks() == (0, EMPTY, "")


@pytest.mark.usefixtures("two_hooks")
def test_the_hooks_of_a_file_that_cannot_be_read_are_not_gone(hooks: Hooks, project: Path) -> None:
    hooks("approve", "--all", "--yes")
    path = project / ".turngate/settings.json"
    before = path.read_text()
    path.write_text("{")
    problem = ".turngate/settings.json: not JSON at line 1, column 2: expecting property name enclosed in double quotes"
    assert hooks() == (0, f"! {problem}; none of its hooks run\n", "")
    assert hooks("approve", "--all", "--yes") == (0, "nothing is pending\n", "")
    path.write_text(before)
    assert hooks("diff") == (0, "nothing is pending\n", "")


def test_a_hook_that_was_approved_in_two_versions_is_gone_once(hooks: Hooks, project: Path) -> None:
    for command in ("true", "make test"):
        write_settings(project, "turngate", stop_hooks(command, id="tests"))
        hooks("approve", "--all", "--yes")
    write_settings(project, "turngate", {})
    listed = hooks()[1].count("GONE")
    assert (listed, hooks("reject", "tests"), hooks()[1]) == (1, (0, "forgotten  tests\n", ""), EMPTY)


@pytest.mark.usefixtures("two_hooks")
def test_a_file_of_approvals_that_does_not_count_is_named(hooks: Hooks, state: Path) -> None:
    hooks("approve", "--all", "--yes")
    [file] = (state / "trust" / "projects").glob("*.json")
    file.chmod(0o644)
    why = "is open to other users, so no approval counts"
    assert hooks() == (0, f"{LISTED}! {file}: {why}; chmod 600 {file} if you trust its content\n", "")


def test_options_that_change_what_a_hook_does_are_listed(hooks: Hooks, project: Path) -> None:
    entry = {"type": "command", "command": "true", "mode": "observe", "enabled": False}
    write_settings(project, "claude", {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]}})
    assert hooks("--dialect", "claude")[1].splitlines()[3] == (
        "    .claude/settings.json:1, dialect claude, timeout 600 s, matcher Bash, observes only, switched off"
    )


@pytest.mark.req("C-02")
@pytest.mark.parametrize(("dialect", "seconds"), [("turngate", 60), ("mux", 10), ("claude", 600)])
def test_the_timeout_in_force_is_that_of_the_dialect(
    hooks: Hooks, project: Path, dialect: str, seconds: int
) -> None:
    write_settings(project, dialect, stop_hooks("true"))
    assert hooks("--dialect", dialect)[1].splitlines()[3] == (
        f"    .{dialect}/settings.json:1, dialect {dialect}, timeout {seconds} s"
    )


# Show and diff


@pytest.mark.req("S3-16")
def test_a_new_hook_is_shown_whole_and_a_changed_script_as_a_diff(hooks: Hooks, two_hooks: Path) -> None:
    new = hooks("diff", "tests")
    hooks("approve", "--all", "--yes")
    nothing = hooks("diff")
    two_hooks.write_text("echo one\necho two\n")
    assert [new, nothing, hooks("diff")] == [(0, NEW, ""), (0, "nothing is pending\n", ""), (0, CHANGED, "")]


@pytest.mark.req("S3-16")
@pytest.mark.usefixtures("two_hooks")
def test_a_changed_definition_is_shown_as_a_diff_of_its_fields(hooks: Hooks, project: Path) -> None:
    hooks("approve", "--all", "--yes")
    write_settings(project, "turngate", SETTINGS.replace('"timeout": 5', '"timeout": 500'))
    assert hooks("diff") == (
        0,
        """\
tests: PENDING, so it does not run: its definition was changed after it was approved
--- definition, approved DATE
+++ definition, now
@@ -1,7 +1,7 @@
 {
   "event": "Stop",
   "type": "command",
-  "timeout": 5.0,
+  "timeout": 500.0,
   "id": "tests",
   "command": "sh hooks/tests.sh"
 }
""",
        "",
    )


NATIVE = b"\x7fELF\x02\x01\x01\0\xff"


def test_a_file_that_is_gone_and_a_program_are_compared_as_a_whole(
    hooks: Hooks, project: Path, two_hooks: Path
) -> None:
    write_settings(project, "turngate", stop_hooks("sh hooks/tests.sh", "./tool"))
    (project / "tool").write_bytes(NATIVE)
    hooks("approve", "--all", "--yes")
    two_hooks.unlink()
    (project / "tool").write_bytes(NATIVE * 200)
    out = hooks("diff")[1]
    assert (
        out
        == """\
Stop:1: PENDING, so it does not run: hooks/tests.sh was removed after it was approved
--- hooks/tests.sh, approved
+++ /dev/null
@@ -1 +0,0 @@
-echo one
Stop:2: PENDING, so it does not run: tool was changed after it was approved
--- tool, approved
+++ tool, now
-9 bytes, a program whose code cannot be shown
+1,800 bytes, a program whose code cannot be shown
not covered: what tool runs of the project's root folder
"""
    )


@pytest.mark.req("S3-16")
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"#!/bin/sh\n# \0\ntouch x\n", ["+#!/bin/sh", "+# <U+0000>", "+touch x"]),
        (b"\xff\ntouch x\n", [r"+\xff", "+touch x"]),
        (b"# more\n" * 200_000 + b"touch x\n", ["+# more", "+# more", "+touch x"]),
    ],
    ids=["a null character", "not UTF-8", "1.3 MiB"],
)
def test_a_script_is_shown_as_a_text_whatever_it_holds(
    hooks: Hooks, two_hooks: Path, data: bytes, shown: list[str]
) -> None:
    two_hooks.write_bytes(data)
    code, out, _ = hooks("approve", "tests", "--yes")
    assert (code, out.splitlines()[-len(shown) - 1 :]) == (0, [*shown, "approved  tests"])


@pytest.mark.usefixtures("two_hooks")
def test_a_script_that_no_person_can_read_is_not_approved(hooks: Hooks, two_hooks: Path) -> None:
    two_hooks.write_bytes(b"# more\n" * 1_200_000)
    why = "hooks/tests.sh has 8,400,000 bytes, too much for a person to read, so tests cannot be reviewed"
    code, _, err = hooks("approve", "tests", "--yes")
    assert (code, err) == (64, f"turngate: {why}; let it run a smaller script\n")


@pytest.mark.req("S3-16")
@pytest.mark.usefixtures("two_hooks")
def test_files_that_no_word_names_are_listed_at_first_and_shown_when_they_change(
    hooks: Hooks, project: Path
) -> None:
    script(project / "hooks" / "lib.sh", "echo lib\n")
    script(project / "hooks" / "sub" / "x.py", "pass\n")
    listed = "  hooks/lib.sh  9 bytes\n  hooks/sub/x.py  5 bytes\n"
    first = f"{NEW}2 more files are covered; `turngate hooks diff --full` prints the text:\n{listed}"
    shown = "--- /dev/null\n+++ hooks/lib.sh, now\n@@ -0,0 +1 @@\n+echo lib\n"
    assert hooks("diff", "tests") == (0, first, "")
    assert shown in hooks("diff", "tests", "--full")[1]
    hooks("approve", "--all", "--yes")
    script(project / "hooks" / "lib.sh", "echo evil\n")
    assert hooks("diff", "tests")[1].splitlines()[1:] == [
        "--- hooks/lib.sh, approved",
        "+++ hooks/lib.sh, now",
        "@@ -1 +1 @@",
        "-echo lib",
        "+echo evil",
    ]


def test_what_several_hooks_cover_is_shown_once(hooks: Hooks, project: Path) -> None:
    script(project / "hooks" / "one.sh", "echo 1\n")
    script(project / "hooks" / "two.sh", "echo 2\n")
    write_settings(project, "turngate", stop_hooks("sh hooks/one.sh", "sh hooks/two.sh", "make"))
    names = [line for line in hooks("diff")[1].splitlines() if line.startswith(("+++ ", "  hooks"))]
    assert names == [
        "+++ definition, now",
        "+++ hooks/one.sh, now",
        "  hooks/two.sh  7 bytes",
        "+++ definition, now",
        "+++ hooks/two.sh, now",
        "+++ definition, now",
    ]


@pytest.mark.req("S3-16")
def test_hidden_characters_of_a_script_are_made_visible(hooks: Hooks, two_hooks: Path) -> None:
    two_hooks.write_text("\u0441url \u202ex\u200b\r\n\x1b[8mexit 0")
    assert hooks("diff", "tests")[1].splitlines()[-4:] == [
        "@@ -0,0 +1,2 @@",
        "+<U+0441>url <U+202E>x<U+200B><U+000D>",
        "+<U+001B>[8mexit 0",
        "\\ No newline at end of file",
    ]


@pytest.mark.usefixtures("two_hooks")
def test_show_prints_the_definition_the_scripts_and_the_last_runs(hooks: Hooks, project: Path) -> None:
    hooks("approve", "--all", "--yes")
    turngate("fire", "Stop", "--project", str(project))
    assert hooks("show", "tests") == (
        0,
        """\
Stop
  tests: approved
    command: sh hooks/tests.sh
    .turngate/settings.json:6, dialect turngate, timeout 5 s
    last run DATE: passed (0.00 s); mean 0.00 s of 1 run
    approved on DATE
Definition
  {
    "event": "Stop",
    "type": "command",
    "timeout": 5.0,
    "id": "tests",
    "command": "sh hooks/tests.sh"
  }
Scripts
  hooks/tests.sh: as approved
Last runs
  DATE: passed (0.00 s)
""",
        "",
    )


def test_show_names_the_options_of_a_hook_as_its_settings_do(hooks: Hooks, project: Path) -> None:
    options = {"async": True, "asyncRewake": True, "if": "Bash(ls *)", "passEnv": ["A"], "onFailure": "block"}
    write_settings(project, "turngate", stop_hooks("make", event="PreToolUse", **options))
    shown = json.loads(hooks("show", "PreToolUse:1", "--json")[1])
    assert json.loads(shown["definition"]) == {
        "event": "PreToolUse",
        "type": "command",
        "command": "make",
        **options,
    }


def test_show_as_json_adds_the_definition_the_scripts_and_the_last_runs(
    project: Path, hooks: Hooks, two_hooks: Path
) -> None:
    hooks("approve", "--all", "--yes")
    two_hooks.write_text("exit 2")
    _, out, _ = turngate("hooks", "show", "tests", "--json", "--project", str(project))
    shown = json.loads(out)
    assert (json.loads(shown["definition"])["id"], shown["scripts"], shown["last_runs"]) == (
        "tests",
        {"hooks/tests.sh": "changed since it was approved"},
        [],
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "test"], 'there is no hook "test"; did you mean tests?'),
        (["diff", "x\x1b[2J"], 'there is no hook "x<U+001B>[2J"; `turngate hooks` lists them'),
        (
            ["approve", "--yes"],
            "which hooks? give their KEYs, or --all for all that are pending; `turngate hooks` lists them",
        ),
        (
            ["approve", "tests"],
            "there is no terminal to ask at; read what is printed above, then add --yes to approve it",
        ),
        (
            ["reject", "given", "--settings", json.dumps(stop_hooks("true", id="given"))],
            "given needs no approval, so it cannot be rejected; remove it from --settings",
        ),
    ],
)
@pytest.mark.usefixtures("two_hooks")
def test_wrong_usage_is_64_and_says_what_to_do(hooks: Hooks, words: list[str], message: str) -> None:
    code, _, err = hooks(*words)
    assert (code, err) == (64, f"turngate: {message}\n")


# Approve and reject


@pytest.mark.req("S3-16")
@pytest.mark.usefixtures("two_hooks")
def test_approve_shows_what_it_approves(hooks: Hooks) -> None:
    assert hooks("approve", "tests", "--yes") == (0, f"{NEW}approved  tests\n", "")
    assert hooks("approve", "tests", "--yes") == (0, "tests: already approved\n", "")


@pytest.mark.req("S3-16")
def test_an_approved_hook_runs_a_changed_one_does_not_and_after_approval_it_does(
    hooks: Hooks, project: Path, two_hooks: Path
) -> None:
    def fire() -> tuple[int, list[str]]:
        code, out, _ = turngate("fire", "Stop", "--strict", "--json", "--project", str(project))
        return code, [run["outcome"] for run in json.loads(out)["runs"]]

    before = fire()
    hooks("approve", "--all", "--yes")
    approved = fire()
    two_hooks.write_text("echo no >&2; exit 2\n")
    changed = fire()
    hooks("approve", "tests", "--yes")
    assert [before, approved, changed, fire()] == [
        (13, ["skipped", "skipped"]),
        (0, ["allow", "allow"]),
        (13, ["allow", "skipped"]),
        (10, ["block", "allow"]),
    ]


@pytest.mark.req("S3-16")
@pytest.mark.usefixtures("two_hooks")
def test_a_rejected_hook_neither_runs_nor_counts_as_missing(hooks: Hooks, project: Path) -> None:
    hooks("approve", "--all", "--yes")
    rejected = hooks("reject", "tests")
    code, out, _ = turngate("fire", "Stop", "--strict", "--json", "--project", str(project))
    assert (rejected, code, [run["outcome"] for run in json.loads(out)["runs"]]) == (
        (0, "rejected  tests\n", ""),
        0,
        ["allow", "skipped"],
    )
    assert hooks()[1].splitlines()[1] == "  tests: rejected, so it does not run"


@pytest.mark.req("S3-16")
@pytest.mark.parametrize("marker", AGENT_MARKERS)
@pytest.mark.parametrize(
    "words", [("approve", "--all", "--yes"), ("reject", "tests")], ids=lambda words: words[0]
)
@pytest.mark.usefixtures("two_hooks")
def test_neither_a_hook_nor_an_agent_decides(
    hooks: Hooks, marker: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(marker, "1")
        decided = hooks(*words)
    assert decided == (
        64,
        "",
        (
            "turngate: a person approves and rejects hooks, in a terminal of their own, and this was started by a hook or "
            f"an agent ({marker} is set)\n"
        ),
    )
    assert hooks() == (0, LISTED, "")


@pytest.mark.req("S3-16")
@pytest.mark.parametrize(
    ("answer", "shown", "end", "code"),
    [
        ("y", "yes", "approved  tests\n", 0),
        ("N", "no", "nothing was approved\n", 1),
        ("\r", "no", "nothing was approved\n", 1),
    ],
)
@pytest.mark.usefixtures("two_hooks")
@pytest.mark.req("U-09")
def test_at_a_terminal_one_key_answers(project: Path, answer: str, shown: str, end: str, code: int) -> None:
    with Terminal("hooks", "approve", "tests", cwd=project, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("let this hook run on this machine? [y]es, [n]o ")
        terminal.type(answer)
        assert terminal.end() == code
        terminal.expect(end)
        assert terminal.text == f"{NEW}let this hook run on this machine? [y]es, [n]o {shown}\n{end}"


WAIT = """
import os, time
import turngate.settings.load as module

def wait(*args, real=module.load_layers, **options):
    while not os.path.exists("released"):
        time.sleep(0.02)
    return real(*args, **options)

module.load_layers = wait
"""


@pytest.mark.req("S3-16")
@pytest.mark.usefixtures("two_hooks")
def test_what_was_typed_before_the_question_is_not_an_answer_to_it(
    project: Path, tmp_path: Path, hooks: Hooks
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WAIT)
    env = {"PYTHONPATH": str(tmp_path)}
    with Terminal("hooks", "approve", "tests", cwd=project, env=env) as terminal:
        terminal.say("y")
        terminal.expect("y")
        (project / "released").touch()
        terminal.expect("let this hook run on this machine? [y]es, [n]o ")
        terminal.say("n")
        assert terminal.end() == 1
    assert hooks() == (0, LISTED, "")


@pytest.mark.req("S3-16")
@pytest.mark.usefixtures("two_hooks")
def test_at_a_terminal_the_diff_has_colors(project: Path) -> None:
    with Terminal("hooks", "diff", "tests", cwd=project) as terminal:
        assert terminal.end() == 0
        terminal.expect("+echo one")
        assert "\x1b[32m+echo one\x1b[0m" in terminal.raw.decode()


@pytest.mark.req("S3-16")
def test_a_file_that_changes_after_it_was_shown_is_not_approved(
    project: Path, two_hooks: Path, hooks: Hooks
) -> None:
    with Terminal("hooks", "approve", "--all", cwd=project) as terminal:
        terminal.expect("let these 2 hooks run on this machine? [y]es, [n]o ")
        two_hooks.write_text("rm -rf /\n")
        terminal.say("y")
        terminal.expect(
            "turngate: tests has changed after it was shown; nothing was approved, review it again: `turngate hooks diff`"
        )
        assert terminal.end() == 64
    assert hooks() == (0, LISTED, "")


def test_the_hooks_of_agent_types_and_of_the_user_are_listed_too(
    hooks: Hooks, project: Path, home: Path
) -> None:
    write_settings(home, "turngate", stop_hooks("true", id="mine"))
    file = project / ".turngate" / "agents" / "reviewer.md"
    file.parent.mkdir(parents=True)
    hook = "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: make check\n"
    file.write_text(f"---\nname: reviewer\ndescription: d\n{hook}---\nReview it.\n")
    _, out, _ = hooks()
    assert (
        out.replace(f"{project}{os.sep}", "")
        == """\
Stop
  mine: approved
    command: true
    ~/.turngate/settings.json:1, dialect turngate, timeout 60 s
    never run
SubagentStop
  SubagentStop:1: PENDING, so it does not run: it is not approved
    command: make check
    .turngate/agents/reviewer.md:8, dialect turngate, timeout 60 s, agent type reviewer
    never run
    not covered: what `make check` runs (Makefile and the project's own files)
    → `turngate hooks diff SubagentStop:1` shows it, `turngate hooks approve SubagentStop:1` lets it run
2 hooks, 1 pending: `turngate hooks diff` shows what a person has to approve
"""
    )
