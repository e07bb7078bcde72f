"""Permission rules: which calls of a tool the `if` of a hook matches."""

import posixpath
from typing import Any

import pytest

from tests.support.builders import rule, settings, stop_event
from turngate.core.answers.report_types import HookFailed, Skipped
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.events import (
    PermissionRequest,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
    UserPromptSubmit,
)
from turngate.core.hooks.kinds import CommandHook
from turngate.core.hooks.selection import plan
from turngate.core.permissions.rule import PermissionRule, read_rule, rule_matches
from turngate.core.settings import Settings


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("Bash", PermissionRule("Bash")),
        ("Bash()", PermissionRule("Bash")),
        ("Bash(*)", PermissionRule("Bash")),
        (" Bash(git commit *) ", PermissionRule("Bash", "git commit *")),
        ("Bash(echo (a))", PermissionRule("Bash", "echo (a)")),
        ("mcp__memory__*", PermissionRule("mcp__memory__*")),
        ("Edit(app/(shop)/**)", PermissionRule("Edit", "app/(shop)/**")),
        ("Bash(git", None),
        ("Bash(git push *)|Bash(rm *)", None),
        ("Bash(git push *) || Bash(rm *)", None),
        ("Bash(git push *), Bash(rm *)", None),
        ("Bash(git push *) Bash(rm *)", None),
        ("Bash(git push *),", None),
        ("Write|Edit(src/**)", None),
        ("git *", None),
        ("", None),
        ("Bash(" + "x" * 3000 + ")", None),
    ],
)
def test_a_rule_is_a_tool_and_what_its_input_must_match(text: str, parsed: PermissionRule | None) -> None:
    assert read_rule(text) == parsed


def bash(text: str, command: str) -> bool:
    return matched(text, "Bash", command=command)


def matched(text: str, tool: str, **tool_input: Any) -> bool:
    parsed = read_rule(text)
    assert parsed is not None
    return rule_matches(parsed, tool, tool_input, "/p")


@pytest.mark.parametrize(
    ("text", "command", "matches"),
    [
        ("Bash(git commit *)", "git commit -m x", True),
        ("Bash(git commit *)", "git commit", True),
        ("Bash(git commit *)", "git commits", False),
        ("Bash(git commit *)", "git push", False),
        ("Bash(git commit:*)", "git commit -m x", True),
        ("Bash(git commit:*)", "git commit", True),
        ("Bash(git push)", "git push", True),
        ("Bash(git push)", "git push -f", False),
        ("Bash(* --force)", "git push --force", True),
        ("Bash(git * main)", "git push origin main", True),
        ("Bash(git * main)", "git push origin dev", False),
        # Each command of a list or a pipeline counts.
        ("Bash(git *)", "npm test && git push", True),
        ("Bash(git *)", "npm test; git push", True),
        ("Bash(git *)", "npm test | tee log || git push", True),
        ("Bash(git *)", "npm test\ngit push", True),
        ("Bash(git *)", "(cd x && git push)", True),
        ("Bash(git *)", "echo 'a && git push'", False),
        ("Bash(git *)", 'echo "a; git push"', False),
        ("Bash(git *)", "npm test && ls", False),
        # What only leads to another program is not the command.
        ("Bash(git *)", "A=1 B=2 git push", True),
        ("Bash(git *)", "timeout 5 git push", True),
        ("Bash(git *)", "nice -n 5 nohup git push", True),
        ("Bash(git *)", "timeouts git push", False),
        # What is not parsed here matches: one run of the hook too many is the safer mistake.
        ("Bash(git *)", "echo $(date)", True),
        ("Bash(git *)", "echo `date`", True),
        ("Bash(git *)", "cat <<EOF\nx\nEOF", True),
        ("Bash(git *)", "diff <(ls) x", True),
        ("Bash(git *)", "echo 'unfinished", True),
        ("Bash(git *)", "echo '$(date)'", True),
    ],
)
def test_a_command_matches_if_one_of_its_parts_does(text: str, command: str, matches: bool) -> None:
    assert bash(text, command) is matches


@pytest.mark.parametrize(
    "command",
    [
        # Blanks, quotes, assignments and redirections do not change which command it is.
        "git  commit -m x",
        "git\tcommit -m x",
        "git \\\n  commit -m x",
        'git "commit" -m x',
        "g\\it 'commit'",
        "A='b c' git commit",
        'A="b c" B[1]=2 git commit',
        "A+=1 git commit",
        ">/dev/null git commit",
        "2>&1 git commit",
        "git commit>x",
        "git commit 2>&1 | tail",
        "ls # don't\ngit commit # don't",
        "/usr/bin/git commit",
        "git -C x commit",
        "git -c a=b -C x commit -m x",
        "! git commit",
        "{ git commit; }",
        "f() { git commit; }; f",
        # Programs that run a command.
        "timeout -s KILL 5 git commit x",
        "/usr/bin/timeout 5 git commit x",
        "time -p nice -n 5 git commit",
        "timeout 5 sh -c 'git commit'",
        "env git commit",
        "/usr/bin/env -S 'git commit'",
        "command git commit",
        "exec git commit",
        "sudo -u me git commit",
        "echo commit | xargs git",
        "sh -c 'git commit'",
        "echo git commit | bash",
        "eval git commit",
        "find . -exec git commit ;",
        # What is not parsed, or known only when the command runs.
        "if true; then git commit; fi",
        "for a in b; do git commit; done",
        "while git commit; do ls; done",
        "case a in a) git commit;; esac",
        "function f { git commit; }; f",
        "[[ a = b ]] || ls",
        "$X commit",
        "${X} commit",
        '"$X" commit',
        "git $X",
        "/usr/bin/g?t commit",
        "{git,commit}",
        "$'git' commit",
        "echo \"it's $(git commit) it's\"",
        "ls;" * 50_000,
        "timeout " * 1000 + "git commit",
        "git" + " -c a=b" * 1000 + " commit",
    ],
)
def test_a_command_that_cannot_be_told_apart_matches(command: str) -> None:
    assert bash("Bash(git commit *)", command) is True


@pytest.mark.parametrize(
    "command",
    [
        "A\\\nB=1 git push x",
        "A\\\n=1 git push",
        "a[0]\\\n=1 git push",
        "2\\\n>/dev/null git push x",
        'echo "$\\\n(git push x)"',
        'echo "a\\\\$\\\n(git push x)b"',
        # Not a continued line: in a comment, and in single quotes.
        "# \\\nA\\\n=1 git push x",
        "ls # it's\\\nA\\\n=1 git push x",
        "echo '\\\n'; A\\\n=1 git push x",
    ],
)
def test_a_continued_line_does_not_hide_a_command(command: str) -> None:
    assert bash("Bash(git push *)", command) is True


@pytest.mark.parametrize(
    "command",
    [
        "x='a[$(git push x)]'; a[x]=1",
        "x='$(git push x)'; : ${x@P}",
        'echo "${x#\'"\'}"; git push x; echo "\'"',
        "PS4='$(git push x)'; set -x; :",
        "test -v 'a[$(git push x)]'",
        "printf -v 'a[$(git push x)]' x",
        "let 'a[$(git push x)]'",
        "declare -n r='a[$(git push x)]'; echo $r",
        "compgen -C 'git push x'",
        ". ./f",
        "source f",
        "time -p . ./f",
        "e$x 'git push x'",
        "/usr/bin/en? git push x",
        "echo a &>x git push x",
    ],
)
def test_a_command_that_evaluates_text_matches(command: str) -> None:
    assert bash("Bash(git push *)", command) is True


@pytest.mark.parametrize(
    "command",
    [
        "test -f x && git status",
        '[ "$A" = "$B" ] || [ $? -eq 0 ] && [ -n "$A" ]',
        "make &> log; make &>> log",
        'export A=1 PATH="$HOME/bin:$PATH"; export A',
        "local x; readonly y=2; declare -x z; unset x y",
        "read -r a b; printf '%s\\n' \"$a\"; printf -v out %s x",
        'echo ${X} ${X:-a} "${X:+$Y}" ${X#*/} ${X%.*} ${X/a/b} ${#X} ${X[0]} ${X[@]} ${X:1:2} $RANDOM',
        "python3 -c 'print((1, 2))'",
        'python3 -c "print((1, 2))"',
        "pip install foo[bar]==1.0",
        "ls [ab].py a[0-9].txt",
        "docker run \\\n  -v a:b \\\n  image # it's\nls",
        "hash -r; wait; wait $!; jobs; kill %1",
        "time grep -r x .",
        "cd .. && ls .",
        "a[0]=1 make",
        "echo 'a \\\n git push x'",
    ],
)
def test_an_ordinary_command_that_evaluates_nothing_does_not_match(command: str) -> None:
    assert bash("Bash(git push *)", command) is False


@pytest.mark.parametrize(
    "command",
    [
        "ls -l",
        "npm test && ls",
        "npm test 2>&1 | tee log",
        "A='b c' npm test",
        "timeout 5 npm test",
        "git push",
        "git -C x push",
        "git log commit",
        "echo git commit",
        "echo $HOME",
        "rm -f *.pyc",
        "ls # git commit",
        "ls > git",
        "[ -f x ] && bash build.sh",
        "find . -name '*.py'",
        "rm -f" + " x" * 100,
    ],
)
def test_an_ordinary_other_command_does_not_match(command: str) -> None:
    assert bash("Bash(git commit *)", command) is False


@pytest.mark.parametrize("command", ['X="a b" touch RAN', "if true; then touch RAN; fi", "env touch RAN"])
def test_a_rule_for_a_program_matches_where_the_program_runs(command: str) -> None:
    assert bash("Bash(touch *)", command) is True


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ('Bash(git commit -m "x" *)', 'git commit -m "x" a'),
        ('Bash(git commit -m "x")', 'git commit -m "x" # a comment'),
        ("Bash(* 2>&1)", "make 2>&1"),
        ("Bash(echo $HOME)", "echo $HOME"),
        ("Bash(./run.sh *)", "./run.sh a"),
    ],
)
def test_a_rule_matches_a_command_as_it_is_written(text: str, command: str) -> None:
    assert bash(text, command) is True


@pytest.mark.parametrize(
    ("text", "tool", "path", "matches"),
    [
        ("Edit(src/**)", "Edit", "/p/src/a/b.py", True),
        ("Edit(src/**)", "Edit", "src/a.py", True),
        ("Edit(src/**)", "Edit", "/p/tests/src/a.py", False),
        ("Edit(src/**)", "Write", "/p/src/a.py", True),
        ("Write(src/**)", "Edit", "/p/src/a.py", False),
        ("Edit(/src/**)", "Edit", "/p/src/a.py", True),
        ("Edit(./src/**)", "Edit", "/p/src/a.py", True),
        ("Edit(src/**/*.py)", "Edit", "/p/src/a.py", True),
        ("Edit(src/**/*.py)", "Edit", "/p/src/a/b.py", True),
        ("Edit(*.ts)", "Edit", "/p/src/a.ts", True),
        ("Edit(*.ts)", "Edit", "/p/src/a.py", False),
        ("Edit(.env)", "Edit", "/p/conf/.env", True),
        ("Read(//etc/**)", "Read", "/etc/passwd", True),
        ("Read(//etc/**)", "Read", "/p/etc/passwd", False),
        ("Read(~/.ssh/**)", "Read", "/home/me/.ssh/id", True),
        ("*(src/**)", "Write", "/p/src/a.py", True),
    ],
)
def test_a_path_matches_below_the_project(text: str, tool: str, path: str, matches: bool) -> None:
    assert matched(text, tool, file_path=path) is matches


@pytest.mark.parametrize(
    ("text", "path", "matches"),
    [
        ("Edit(src/)", "src/a/b.ts", True),
        ("Edit(src/)", "srcs/b.ts", False),
        ("Edit(src)", "src/a.ts", True),
        ("Edit(p)", "src/a.ts", False),  # the project's own folder does not count
        ("Edit(conf/keys)", "conf/keys/a", True),
        ("Edit(secrets)", "a/secrets/b/c", True),
        ("Edit(secrets)", "/other/secrets/c", True),
        ("Edit(.)", "a.ts", True),
        ("Edit(src/a?.ts)", "src/ab.ts", True),
        ("Edit(src/a?.ts)", "src/abc.ts", False),
        ("Edit(src/**/a?.ts)", "src/x/y/ab.ts", True),
        ("Edit([ab].ts)", "src/a.ts", True),
        ("Edit([!ab].ts)", "src/a.ts", False),
        ("Edit(src/[^ab].ts)", "src/c.ts", True),
        ("Edit(app/[id]/**)", "app/[id]/page.tsx", True),
        ("Edit(*.{ts,tsx})", "src/a.tsx", True),
        ("Edit(*.{ts,tsx})", "src/a.py", False),
        ("Edit(src/{a,b{c,d}}/**)", "src/bd/x", True),
        ("Edit(src/{a,b}/**)", "src/c/x", False),
        ("Edit(" + "{a,b}" * 30 + ")", "x", True),
        ("Edit(src//**)", "src/a.ts", True),
        ("Edit(./src/./a.ts)", "src/a.ts", True),
        ("Edit(../p/src/**)", "src/a.ts", True),
        ("Edit(**/**/x/**)", "x/a.ts", True),
        ("Edit(" + "*a?" * 500 + ")", "a" * 4000, True),
        ("Edit(" + "*a?" * 500 + "b)", "a" * 4000, False),
    ],
)
def test_a_path_is_read_as_in_a_gitignore(text: str, path: str, matches: bool) -> None:
    assert {matched(text, "Edit", file_path=each) for each in (path, posixpath.join("/p", path))} == {matches}


@pytest.mark.parametrize(
    ("text", "tool", "tool_input"),
    [
        ("Edit(secrets/**)", "Write", {"file_path": "secrets/x"}),
        ("Read(.env)", "Read", {"file_path": ".env"}),
        ("Task(coder)", "Agent", {"subagent_type": "coder"}),
        ("WebFetch(domain:a.com)", "WebFetch", {"url": "https://a.com"}),
    ],
)
def test_a_command_in_the_input_of_another_tool_changes_nothing(
    text: str, tool: str, tool_input: dict[str, Any]
) -> None:
    assert matched(text, tool, **tool_input, command="ls") is True


def test_other_tools_match_by_name_a_host_or_an_agent_type() -> None:
    assert matched("WebFetch(domain:example.com)", "WebFetch", url="https://EXAMPLE.com/a")
    assert not matched("WebFetch(domain:example.com)", "WebFetch", url="https://example.org/a")
    assert matched("Task(Explore)", "Agent", subagent_type="Explore")
    assert not matched("Agent(Explore)", "Task", subagent_type="other")
    assert not matched("Agent(Explore)", "Task", prompt="look")
    assert matched("mcp__memory__*", "mcp__memory__write")
    assert not matched("TodoWrite(x)", "TodoWrite", todos=[])


@pytest.mark.parametrize("tool", ["Task", "Agent"])
def test_a_rule_matches_the_agent_type_that_a_call_does_not_name(tool: str) -> None:
    assert matched("Task(general-purpose)", tool, prompt="look")
    assert matched("Task(general-purpose)", tool, prompt="look", subagent_type="")
    assert matched("Task(Explore)", tool, prompt="look", resume="a1")  # it keeps its type, whatever that is


EVENTS = (PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure)


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.name)
def test_a_hook_with_a_condition_is_planned_for_a_call_that_matches(kind: Any, dialect: Dialect) -> None:
    hook = CommandHook("x", condition="Bash(git *)")
    rules = (rule(hook, kind.name, matcher="Bash"),)
    planned = [
        plan(
            Settings(rules=rules, dialect=dialect),
            kind(session_id="s", tool_name="Bash", tool_input={"command": command}),
        )
        for command in ("git push", "ls")
    ]
    why = Skipped("its `if` 'Bash(git *)' does not match this call of Bash", on_purpose=True)
    assert [(each.ask, each.skip) for each in planned] == [(rules, ()), ((), ((rules[0], why),))]


def test_a_hook_whose_condition_is_not_a_rule_failed() -> None:
    hook = CommandHook("x", condition="Bash(git")
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": "git push"})
    [(_, why)] = plan(settings(hook, event="PreToolUse"), event).skip
    assert why == HookFailed("its `if` 'Bash(git' is not a permission rule such as 'Bash(git *)'")


def test_without_a_tool_a_condition_is_ignored_and_in_claude_the_hook_does_not_run() -> None:
    hook = CommandHook("x", condition="Bash(git *)")
    prompt = UserPromptSubmit(session_id="s", prompt="go")
    asked = [
        len(plan(settings(hook, event=event.name, dialect=dialect), event).ask)
        for event in (stop_event(), prompt)
        for dialect in (TURNGATE, CLAUDE)
    ]
    assert asked == [1, 0, 1, 0]


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("matcher", ["Task", "Agent", "Bash|Task", "^Ta", "^Ag"])
@pytest.mark.parametrize("tool", ["Task", "Agent"])
def test_task_and_agent_are_one_tool(kind: Any, matcher: str, tool: str) -> None:
    rules = (rule("x", kind.name, matcher=matcher),)
    event = kind(session_id="s", tool_name=tool, tool_input={})
    assert plan(Settings(rules=rules), event).ask == rules
