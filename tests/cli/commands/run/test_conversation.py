"""`turngate run` as a person sees it: the real command in a real pseudo-terminal."""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, UP, Terminal, Tmux, wait_for
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.commands.run.screen_ui import SETTLE_S
from turngate.extra_install import install_command

REFUSE_ONCE = "[ -e refused ] || { touch refused; echo 'run the tests' >&2; exit 2; }"


def sleeper() -> tuple[str, Callable[[], bool]]:
    """Return a command that sleeps for an hour, and a function that says whether it is running."""
    token = f"36{secrets.randbelow(10**12):012d}"

    def runs() -> bool:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if token.encode() in path.read_bytes():
                    return True
        return False

    return f"touch started; sleep {token}", runs


@pytest.fixture
def talk(project: Path, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Start `turngate run` with these answers of the model and wait for its prompt."""
    with contextlib.ExitStack() as windows:

        def start(*answers: Any, words: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Terminal:
            file = script(tmp_path, *answers)
            command = ("run", "--model", f"scripted:{file}", *words)
            terminal = windows.enter_context(Terminal(*command, cwd=project, env=env))
            terminal.expect("/help shows the commands and keys")
            return terminal

        yield start


def script(folder: Path, *answers: Any) -> Path:
    file = folder / "script.json"
    file.write_text(json.dumps({"main": answers}))
    return file


def bash(command: str) -> dict[str, Any]:
    return {"text": "I run it.", "tool": "Bash", "input": {"command": command}}


def hook(project: Path, command: str, event: str = "Stop", **fields: Any) -> None:
    write_settings(project, "turngate", stop_hooks(command, event=event, **fields))


# A conversation


def test_a_question_is_answered_and_the_user_leaves(talk: Callable[..., Terminal], project: Path) -> None:
    hook(project, "cat > end.json", event="SessionEnd")
    terminal = talk("It is {n}.", "It is {n}.")
    terminal.say("how many?")
    terminal.expect("It is 1.")
    terminal.say("and now?")
    terminal.expect("It is 2.")
    terminal.type(CTRL_D)
    terminal.expect("to continue this conversation: turngate run --session")
    assert terminal.end() == 0
    assert json.loads((project / "end.json").read_text())["reason"] == "prompt_input_exit"


def test_the_menu_of_hooks_waits_until_the_session_is_open(project: Path, tmp_path: Path) -> None:
    """Its keys would otherwise be text of the next message."""
    hook(project, "until [ -e opened ]; do sleep 0.1; done", event="SessionStart")
    file = tmp_path / "script.json"
    file.write_text('{"main": ["Done."]}')
    with Terminal("run", "--trust", "--model", f"scripted:{file}", cwd=project) as terminal:
        terminal.expect("waiting for hook")
        terminal.say("/hooks")
        terminal.say("/help")
        terminal.expect("show this help")
        (project / "opened").touch()
        terminal.expect("/help shows the commands and keys")
        terminal.expect("q: leave")
        terminal.type("q")
        terminal.say("hi")
        terminal.expect("> hi")
        terminal.expect("Done.")


@pytest.mark.parametrize("keys", ["/exit\r", "/quit\r", CTRL_C])
def test_there_are_other_ways_out_and_none_of_them_is_an_interrupt(
    talk: Callable[..., Terminal], keys: str
) -> None:
    terminal = talk("hello")
    terminal.type(keys)
    assert (terminal.end(), "interrupted" in terminal.text) == (0, False)


def test_the_first_message_can_stand_on_the_command_line(talk: Callable[..., Terminal]) -> None:
    terminal = talk("Good morning.", words=("hello",))
    terminal.expect("> hello")
    terminal.expect("Good morning.")


@pytest.mark.req("S0-67")
def test_a_hook_that_blocks_is_shown_as_a_continuation_and_not_as_an_error(
    talk: Callable[..., Terminal], project: Path
) -> None:
    hook(project, REFUSE_ONCE, id="tests")
    terminal = talk("I am done.", "Now I am really done.")
    terminal.say("do it")
    terminal.expect("I am done.")
    terminal.expect('hook "tests": blocked')
    terminal.expect("hook blocked the stop (continuation 1 of 3): run the tests")
    terminal.expect("Now I am really done.")
    terminal.expect('hook "tests": passed')
    terminal.expect("2 model requests, 1 continuation")
    assert not re.search("error|fail", terminal.text, re.IGNORECASE)


@pytest.mark.req("S0-67")
def test_the_answer_is_shown_before_the_hooks_are_asked(talk: Callable[..., Terminal], project: Path) -> None:
    hook(project, "while [ ! -e seen ]; do sleep 0.05; done", id="patience")
    terminal = talk("Here it is.")
    terminal.say("do it")
    terminal.expect("Here it is.")
    terminal.expect('waiting for hook "patience" (at most 60 s) · ')
    (project / "seen").touch()
    terminal.expect('hook "patience": passed')


def test_in_plain_lines_a_hook_that_takes_long_is_named_once(
    talk: Callable[..., Terminal], project: Path
) -> None:
    hook(project, "while [ ! -e seen ]; do sleep 0.05; done", id="patience")
    terminal = talk("Here it is.", env={"TERM": "dumb"})
    terminal.say("do it")
    terminal.expect('waiting for hook "patience" (at most 60 s) …')
    (project / "seen").touch()
    terminal.expect('hook "patience": passed')
    assert terminal.text.count("waiting for hook") == 1


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_hook_in_the_background_wakes_the_agent(
    talk: Callable[..., Terminal], project: Path, term: str
) -> None:
    command = "until [ -e seen ]; do sleep 0.05; done; mkdir once || exit 0; echo two tests fail >&2; exit 2"
    fields: dict[str, Any] = {"async": True, "asyncRewake": True}
    hook(project, command, id="tests", **fields)
    terminal = talk("Done {n}.", "Done {n}.", env={"TERM": term})
    terminal.say("do it")
    terminal.expect("Done 1.")
    terminal.expect("1 model request")
    (project / "seen").touch()
    terminal.expect('hook "tests" in the background wakes the agent')
    terminal.expect("Done 2.")


def test_a_hook_that_is_not_enforced_is_reported_prominently(
    talk: Callable[..., Terminal], project: Path
) -> None:
    hook(project, "echo boom >&2; exit 1", id="gate")
    terminal = talk("Done.")
    terminal.say("do it")
    terminal.expect('! hook "gate" failed and was NOT enforced: exit code 1: boom')
    assert b'\x1b[1;31m! hook "gate" failed' in terminal.raw


def test_the_commands(talk: Callable[..., Terminal], project: Path) -> None:
    settings = {"hooks": {**stop_hooks("true", id="quick")["hooks"], "Foo": []}}
    write_settings(project, "turngate", settings)
    terminal = talk("First.", "a summary", "Second.")
    for said, shown in [
        ("/help", "/compact [INSTRUCTIONS]"),
        ("/hooks", "! .turngate/settings.json: Foo: is not a known event"),
        ("", "this conversation was started with --trust, so its hooks run as they were at its start"),
        ("", "> quick  Stop  PENDING, so it does not run: it is not approved  command: true"),
        ("/compact", "there is nothing to summarize yet"),
        ("/nonsense", "there is no command /nonsense"),
        ("hello", "First."),
        ("/compact keep names", "conversation summarized in 9 characters"),
        ("again", "Second."),
        ("/clear", "conversation cleared"),
    ]:
        if said:
            terminal.say(said)
        terminal.expect(shown)
        if shown.startswith("> quick"):
            terminal.type("q")  # leaves the menu


def test_permission_is_asked_for_what_changes_things(talk: Callable[..., Terminal], project: Path) -> None:
    terminal = talk(
        bash("touch one"), "A.", bash("touch two"), "B.", bash("touch three"), bash("touch four"), "C."
    )
    question = "allow? [y]es, [a]lways for this session, [n]o"
    terminal.say("one")
    terminal.expect(f"Bash: touch one — {question}")
    terminal.say("n")
    terminal.expect("the user did not permit Bash")
    terminal.expect("A.")
    terminal.say("two")
    terminal.expect(f"Bash: touch two — {question}")
    terminal.say("perhaps")
    terminal.expect("answer y, a or n")
    terminal.say("yes")
    terminal.expect("B.")
    terminal.say("three and four")
    terminal.expect(f"Bash: touch three — {question}")
    terminal.say("a")
    terminal.expect("C.")
    made = [name for name in ("one", "two", "three", "four") if (project / name).exists()]
    assert (made, terminal.text.count("touch four — allow?")) == (["two", "three", "four"], 0)


@pytest.mark.parametrize(("key", "made"), [("y", True), ("a", True), ("N", False)])
def test_one_key_answers_a_permission_question(
    talk: Callable[..., Terminal], project: Path, key: str, made: bool
) -> None:
    terminal = talk(bash("touch one"), "Fine: {n}.", "Next: {n}.")
    terminal.say("one")
    terminal.expect("[n]o")
    settle()
    terminal.type(key)
    terminal.expect("Fine: 2.")
    terminal.say("two")
    terminal.expect("Next: 3.")
    terminal.type(CTRL_D)
    assert (terminal.end(), (project / "one").exists()) == (0, made)


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_an_answer_may_be_typed_as_a_word_with_enter(
    talk: Callable[..., Terminal], project: Path, term: str
) -> None:
    terminal = talk(bash("touch one"), "Fine: {n}.", "Next: {n}.", env={"TERM": term})
    terminal.say("one")
    terminal.expect("[n]o")
    settle()
    terminal.say("yes")
    terminal.expect("Fine: 2.")
    terminal.say("two")
    terminal.expect("Next: 3.")
    terminal.type(CTRL_D)
    assert (terminal.end(), (project / "one").exists()) == (0, True)


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_at_a_permission_question_restores_the_terminal(
    talk: Callable[..., Terminal], project: Path, term: str, number: signal.Signals, code: int
) -> None:
    terminal = talk(bash("touch one"), env={"TERM": term})
    terminal.say("one")
    terminal.expect("[n]o")
    terminal.process.send_signal(number)
    assert (terminal.end(), (project / "one").exists()) == (code, False)


@pytest.mark.parametrize(
    ("key", "shown"), [(CTRL_C, "interrupted; not run: Bash: touch one"), (CTRL_D, "did not permit")]
)
def test_keys_that_leave_work_at_a_question_in_plain_lines(
    talk: Callable[..., Terminal], project: Path, key: str, shown: str
) -> None:
    terminal = talk(bash("touch one"), "Fine.", env={"TERM": "dumb"})
    terminal.say("one")
    terminal.expect("[n]o")
    terminal.type(key)
    terminal.expect(shown)
    terminal.type(key)
    assert (terminal.end(), (project / "one").exists()) == (0, False)


CTRL_C_AFTER_MAIN = """
import os, signal, sys
from turngate.cli.main import main
code = main()
os.kill(os.getpid(), signal.SIGINT)
sys.exit(code)
"""


def test_ctrl_c_while_the_program_ends_does_not_change_its_exit_code(project: Path, tmp_path: Path) -> None:
    model = f"scripted:{script(tmp_path, 'Fine.')}"
    command = [sys.executable, "-c", CTRL_C_AFTER_MAIN, "run", "--model", model]
    ended = subprocess.run(
        command,
        cwd=project,
        input="one\n",
        capture_output=True,
        text=True,
        timeout=HANG_TIMEOUT_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "Fine.\n")


def settle() -> None:
    """Wait until a new question takes single keys: those before it may belong to something else."""
    time.sleep(2 * SETTLE_S)


def test_a_question_never_takes_what_is_being_typed_for_its_answer(
    talk: Callable[..., Terminal], project: Path
) -> None:
    hook(project, "touch asked; while [ ! -e typed ]; do sleep 0.05; done", event="PreToolUse")
    terminal = talk(bash("touch one"), "First.", "Second: {n}.")
    terminal.say("one")
    wait_for(project / "asked")
    terminal.type("yes and")
    terminal.expect("yes and")
    (project / "typed").touch()
    terminal.expect("allow?")
    settle()
    terminal.type("a")  # may be meant for the message: with a draft, Enter ends an answer
    terminal.expect("? a")
    terminal.type("\x7f")
    terminal.say("n")
    terminal.expect("the user did not permit Bash")
    terminal.say(" more")
    terminal.expect("> yes and more")
    terminal.expect("Second: 3.")


def test_the_agents_own_question_is_answered_by_the_next_line(talk: Callable[..., Terminal]) -> None:
    terminal = talk({"tool": "AskUser", "input": {"question": "Red or blue?"}}, "Red it is.")
    terminal.say("paint it")
    terminal.expect("the agent asks: Red or blue?")
    terminal.say("red")
    terminal.expect("Red it is.")


def test_a_question_is_shown_again_when_its_conversation_is_continued(talk: Callable[..., Terminal]) -> None:
    terminal = talk({"tool": "AskUser", "input": {"question": "Red or blue?"}}, words=("--session", "s"))
    terminal.say("paint it")
    terminal.expect("the agent asks: Red or blue?")
    terminal.type(CTRL_D)
    assert terminal.end() == 0
    terminal = talk("Red it is.", words=("--session", "s"))
    terminal.expect("the agent asks: Red or blue?")
    terminal.say("red")
    terminal.expect("Red it is.")


def test_what_ends_or_was_typed_before_the_answer_to_a_question_waits_for_it(
    talk: Callable[..., Terminal], project: Path
) -> None:
    command = "until [ -e go ]; do sleep 0.01; done"
    start = {"tool": "Bash", "input": {"command": command, "run_in_background": True}}
    ask = {"tool": "AskUser", "input": {"question": "Red or blue?"}, "delay": 1}
    words = ("--permission-mode", "bypassPermissions")
    terminal = talk(start, ask, "Red it is.", "Then it is dry.", "It has ended.", words=words)
    terminal.say("paint it")
    terminal.expect("Bash: until")
    terminal.say("and dry it")
    terminal.expect("the agent asks: Red or blue?")
    terminal.expect("1 message is still queued, to be answered after your answer")
    (project / "go").touch()
    terminal.expect("background command bash_1: completed")
    terminal.say("red")
    terminal.expect("Red it is.")
    terminal.expect("Then it is dry.")
    terminal.expect("It has ended.")


def test_messages_of_several_lines_and_the_history(
    talk: Callable[..., Terminal], project: Path, state: Path
) -> None:
    hook(project, "cat > prompt.json", event="UserPromptSubmit")

    def prompt() -> str:
        return str(json.loads((project / "prompt.json").read_text())["prompt"])

    terminal = talk("One.", "Two.", "Three.")
    terminal.type("a\\\rb\x1b\rc\r")
    terminal.expect("One.")
    assert prompt() == "a\nb\nc"
    terminal.type("\x1b[200~d\re\x1b[201~\r")  # pasted
    terminal.expect("Two.")
    assert prompt() == "d\ne"
    terminal.type(UP * 2 + UP * 2 + ENTER)  # through the two lines of the last message to the one before
    terminal.expect("Three.")
    assert prompt() == "a\nb\nc"
    history = state / "history"
    said = [json.loads(line) for line in history.read_text().splitlines()]
    assert (said[:2], stat.S_IMODE(history.stat().st_mode)) == (["a\nb\nc", "d\ne"], 0o600)


def test_a_history_that_is_a_named_pipe_does_not_block_the_conversation(
    talk: Callable[..., Terminal], state: Path
) -> None:
    state.mkdir(mode=0o700)
    os.mkfifo(state / "history")
    terminal = talk("One.")
    terminal.say("one")
    terminal.expect("One.")
    terminal.type(CTRL_D)
    assert terminal.end() == 0


def test_each_turn_ends_with_its_tokens(talk: Callable[..., Terminal]) -> None:
    terminal = talk("One.")
    terminal.say("one")
    terminal.expect("One.")
    terminal.expect("1 model request, ")
    assert re.search(r"1 model request, [\d,]+ tokens in, \d+ out, \d+\.\d s", terminal.text)


# While the agent works


@pytest.mark.req("S0-70")
def test_what_is_typed_while_the_agent_works_is_answered_afterwards(
    talk: Callable[..., Terminal], project: Path
) -> None:
    hook(project, "echo asked >> log")
    terminal = talk(
        bash("touch started; while [ ! -e typed ]; do sleep 0.05; done"),
        "First.",
        "Second.",
        words=("--allow", "Bash"),
    )
    terminal.say("one")
    wait_for(project / "started")
    terminal.say("two")
    terminal.expect("1 queued")
    (project / "typed").touch()
    terminal.expect("First.")
    terminal.expect("Second.")
    terminal.expect(": passed")
    assert (project / "log").read_text() == "asked\n"  # it was not about to stop before


@pytest.mark.req("X-34")
def test_a_message_that_comes_while_the_last_hook_runs_is_answered_once(
    talk: Callable[..., Terminal], project: Path
) -> None:
    hook(project, "touch started; while [ ! -e typed ]; do sleep 0.05; done")
    terminal = talk("Answer {n}.", "Answer {n}.", "Answer {n}.")
    terminal.say("one")
    wait_for(project / "started")
    terminal.say("two")
    terminal.expect("1 queued")
    (project / "typed").touch()
    terminal.expect("Answer 2.")
    terminal.expect(": passed")
    terminal.type(CTRL_D)
    assert (terminal.end(), "Answer 3." in terminal.text) == (0, False)


# Interrupts


def interrupt(terminal: Terminal, key: str) -> None:
    terminal.type(key)
    terminal.expect("interrupted")


@pytest.mark.req("S0-21", "S0-99", "S0-102")
def test_the_model_is_interrupted_while_it_answers(talk: Callable[..., Terminal], project: Path) -> None:
    hook(project, "echo asked >> log")
    slow = {"text": "Once upon a\ntime there was", "word_delay": 3600}
    terminal = talk(slow, slow, {"text": "never", "delay": 3600}, "Fine.")
    for key in (ESCAPE, CTRL_C):
        terminal.say("tell me")
        terminal.expect("Once upon a")
        interrupt(terminal, key)
    terminal.say("tell me")
    terminal.expect("waiting for the model")
    interrupt(terminal, ESCAPE)
    assert not (project / "log").exists()
    terminal.say("something else")
    terminal.expect("Fine.")
    terminal.expect(": passed")


@pytest.mark.req("S0-21", "S0-102")
def test_a_tool_is_interrupted(talk: Callable[..., Terminal], project: Path) -> None:
    hook(project, "echo asked >> log")
    command, runs = sleeper()
    terminal = talk(bash(command), bash(command), "Fine.", words=("--allow", "Bash"))
    for key in (ESCAPE, CTRL_C):
        terminal.say("run it")
        wait_for(project / "started")
        terminal.expect("Bash: touch started; sleep")
        interrupt(terminal, key)
        assert not runs()
        (project / "started").unlink()
    assert not (project / "log").exists()
    terminal.say("something else")
    terminal.expect("Fine.")


@pytest.mark.req("S0-102")
def test_a_hook_is_interrupted(talk: Callable[..., Terminal], project: Path) -> None:
    command, runs = sleeper()
    hook(project, command, id="slow")
    terminal = talk("Done {n}.", "Done {n}.", "Never {n}.")
    for key in (ESCAPE, CTRL_C):
        terminal.say("do it")
        wait_for(project / "started")
        terminal.expect('waiting for hook "slow" (at most 60 s) · ')
        interrupt(terminal, key)
        terminal.expect('while running: hook "slow"')
        assert not runs()
        (project / "started").unlink()
    terminal.say("/exit")
    assert (terminal.end(), "Never" in terminal.text) == (0, False)


@pytest.mark.req("S0-102", "C-33")
def test_a_continuation_is_interrupted_and_nothing_continues(
    talk: Callable[..., Terminal], project: Path
) -> None:
    hook(project, "echo asked >> log; echo 'go on' >&2; exit 2")
    terminal = talk(
        "Done.", {"text": "never", "delay": 3600}, "Done.", {"text": "never", "delay": 3600}, "Fine."
    )
    for count, key in enumerate((ESCAPE, CTRL_C), 1):
        terminal.say("do it")
        terminal.expect("hook blocked the stop (continuation 1 of 3): go on")
        interrupt(terminal, key)
        assert (project / "log").read_text() == "asked\n" * count
    terminal.say("something else")
    terminal.expect("Fine.")


@pytest.mark.parametrize("key", [ESCAPE, CTRL_C])
def test_a_tool_whose_permission_question_is_interrupted_did_not_run(
    talk: Callable[..., Terminal], project: Path, key: str
) -> None:
    terminal = talk(bash("touch one"), "Fine.", words=("--session", "s-1"))
    terminal.say("one")
    terminal.expect("allow?")
    terminal.type(key)
    terminal.expect("interrupted; not run: Bash: touch one")
    terminal.say("something else")
    terminal.expect("Fine.")
    assert ("while running" in terminal.text, (project / "one").exists()) == (False, False)
    assert "tool call" not in terminal.text
    _, out, _ = turngate("sessions", "show", "s-1")
    assert "  failed: not run: the user interrupted the question for permission\n" in out


@pytest.mark.req("C-33")
def test_what_waited_before_an_interrupt_is_answered_with_the_next_message(
    talk: Callable[..., Terminal],
) -> None:
    terminal = talk({"text": "never", "delay": 3600}, "To two.", "To three.")
    terminal.say("one")
    terminal.expect("waiting for the model")
    terminal.say("two")
    terminal.expect("1 queued")
    interrupt(terminal, ESCAPE)
    terminal.expect("1 message is still queued")
    terminal.say("three")
    terminal.expect("To two.")
    terminal.expect("To three.")


def test_ctrl_c_twice_leaves_in_the_middle_of_a_turn(talk: Callable[..., Terminal], project: Path) -> None:
    command, runs = sleeper()
    terminal = talk(bash(command), words=("--allow", "Bash"))
    terminal.say("run it")
    wait_for(project / "started")
    terminal.type(CTRL_C * 2)
    assert (terminal.end(), runs()) == (0, False)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_everything_and_restores_the_terminal(
    talk: Callable[..., Terminal], project: Path, number: signal.Signals, code: int
) -> None:
    command, runs = sleeper()
    hook(project, command)
    terminal = talk("Done.")
    terminal.say("do it")
    wait_for(project / "started")
    terminal.process.send_signal(number)
    assert (terminal.end(), runs()) == (code, False)


def test_an_interrupt_from_outside_is_one_too(talk: Callable[..., Terminal], project: Path) -> None:
    command, runs = sleeper()
    hook(project, command)
    terminal = talk("Done.")
    terminal.say("do it")
    wait_for(project / "started")
    terminal.process.send_signal(signal.SIGINT)
    terminal.expect("interrupted")
    assert not runs()


def test_when_the_window_is_closed_nothing_is_left(talk: Callable[..., Terminal], project: Path) -> None:
    command, runs = sleeper()
    hook(project, command)
    terminal = talk("Done.")
    terminal.say("do it")
    wait_for(project / "started")
    terminal.close()
    terminal.process.wait(HANG_TIMEOUT_S)
    assert not runs()


def test_our_own_fault_restores_the_terminal(
    talk: Callable[..., Terminal], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug = "from turngate.cli.commands.run.chat import Chat\nChat._run_turn = 5\n"
    (tmp_path / "sitecustomize.py").write_text(bug)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    terminal = talk("Done.")
    terminal.say("hello")
    assert terminal.end() == 70
    terminal.expect("turngate: internal error: TypeError")


def test_a_session_that_another_process_holds(
    talk: Callable[..., Terminal], project: Path, tmp_path: Path
) -> None:
    holder = talk("hello", words=("--session", "mine"))
    model = f"scripted:{tmp_path / 'script.json'}"
    with Terminal("run", "--model", model, "--session", "mine", cwd=project) as second:
        second.expect(f"turngate: session mine is in use by process {holder.process.pid}")
        assert second.end() == 64


# Without a screen


def converse(project: Path, file: Path, lines: str, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "turngate", "run", "--model", f"scripted:{file}", *words],
        cwd=project,
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    return done.returncode, done.stdout, done.stderr


def test_lines_from_a_pipe_are_answered_one_after_another(project: Path, tmp_path: Path) -> None:
    file = script(tmp_path, "One: {n}.", "Two: {n}.", "a summary", "Three: {n}.")
    lines = "first\n\nsecond \\\nwith two lines\n/compact\nlast without an end"
    assert converse(project, file, lines) == (
        0,
        "One: 1.\nTwo: 2.\nThree: 4.\n",
        "conversation summarized in 9 characters\n",
    )


def test_a_pipe_can_answer_questions_and_its_end_says_no(project: Path, tmp_path: Path) -> None:
    file = script(tmp_path, bash("touch one"), "A.", bash("touch two"), "B.")
    code, out, err = converse(project, file, "one\ny\ntwo\n")
    made = [name for name in ("one", "two") if (project / name).exists()]
    assert (code, out, made) == (0, "I run it.\nA.\nI run it.\nB.\n", ["one"])
    assert "the user did not permit Bash" in err


def test_another_form_of_output_needs_p(project: Path, tmp_path: Path) -> None:
    code, out, err = converse(project, script(tmp_path, "A."), "", "--output-format", "json")
    said = "turngate: --output-format json needs -p; a conversation prints only text\n"
    assert (code, out, err) == (64, "", said)


def test_without_prompt_toolkit_there_are_plain_lines_and_a_hint(project: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "prompt_toolkit.py"
    missing.parent.mkdir()
    missing.write_text("raise ModuleNotFoundError('no', name='prompt_toolkit')")
    command, runs = sleeper()
    file = script(tmp_path, bash(command), "Fine.")
    words = ("run", "--model", f"scripted:{file}", "--allow", "Bash")
    with Terminal(*words, cwd=project, env={"PYTHONPATH": str(missing.parent)}) as terminal:
        terminal.expect(f"to install it: {install_command('agent')}")
        terminal.expect("> ")
        terminal.type("run it\n")
        wait_for(project / "started")
        terminal.type(CTRL_C)
        terminal.expect("interrupted")
        assert not runs()
        terminal.type("something else\n")
        terminal.expect("Fine.")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert (terminal.end(), b"\x1b" in terminal.raw) == (0, False)


# In tmux


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_the_whole_story_in_tmux(project: Path, tmp_path: Path) -> None:
    command, runs = sleeper()
    hook(project, f"sleep 0.5; {REFUSE_ONCE}", id="tests")
    answers = ("All done.", bash("touch made"), "Tested.", "a summary", bash(command))
    file = script(tmp_path, *answers)
    run = f"{sys.executable} -m turngate run --model scripted:{file}; echo it ended with $?; stty -a; exec sleep 3600"
    with Tmux(run, project, columns=100) as tmux:
        tmux.expect("/help shows the commands and keys")
        tmux.say("do it")
        tmux.expect("All done.")
        tmux.expect("hook blocked the stop (continuation 1 of 3): run the tests")
        tmux.expect("Bash: touch made — allow? [y]es, [a]lways for this session, [n]o")
        tmux.say("y")
        tmux.expect("Tested.")
        tmux.expect('hook "tests": passed')
        tmux.say("/compact")
        tmux.expect("conversation summarized in 9 characters")
        tmux.say("now run it")
        tmux.expect(f"Bash: {command} — allow?")
        tmux.say("y")
        wait_for(project / "started")
        tmux.expect("Esc interrupts")
        tmux("send-keys", "-t", "talk", "Escape")
        tmux.expect("interrupted while running: Bash: touch started")
        assert ((project / "made").exists(), runs()) == (True, False)
        tmux("send-keys", "-t", "talk", "C-d")
        tmux.expect("it ended with 0")
        tmux.expect(" echo ")
        assert " icanon " in tmux.screen


# Commands of files and checkpoints


def command_file(project: Path, name: str, text: str) -> None:
    path = project / ".turngate" / "commands" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.req("S3-61", "S3-62")
@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_command_of_a_file_waits_at_its_checkpoint(
    talk: Callable[..., Terminal], project: Path, term: str
) -> None:
    hook(project, "true", id="tests")
    command_file(
        project, "plan", "---\ndescription: Plan it.\nargument-hint: <what>\n---\nDraft $1.\nSTOP\nWrite it."
    )
    command_file(project, "broken", "<checkpoint>")
    terminal = talk("The draft.", "A shorter one.", "It is written.", env={"TERM": term})
    broken = ".turngate/commands/broken.md: the <checkpoint> in line 1 has no </checkpoint>"
    answers = "yes continues, no ends it; anything else is a message to the agent"
    for said, shown in [
        ("/help", "/plan <what>             Plan it. (project)"),
        ("", f"! {broken}"),
        ("/paln", "there is no command /paln, did you mean /plan?"),
        ("/broken", f"! /broken cannot be run: {broken}"),
        ("/plan login", "The draft."),
        ("", "/plan waits at a checkpoint: STOP"),
        ("", answers),
        ("shorter", "A shorter one."),
        ("", answers),
    ]:
        if said:
            terminal.say(said)
        terminal.expect(shown)
    assert 'hook "tests"' not in terminal.text
    terminal.say("yes")
    terminal.expect("It is written.")
    terminal.expect('hook "tests": passed')


@pytest.mark.req("S3-62")
def test_a_checkpoint_is_shown_again_when_the_conversation_continues_and_no_ends_it(
    talk: Callable[..., Terminal], project: Path
) -> None:
    command_file(project, "plan", "Draft it.\nSTOP\nWrite it.")
    terminal = talk("The draft.", words=("--session", "s"))
    terminal.say("/plan")
    terminal.expect("/plan waits at a checkpoint: STOP")
    terminal.type(CTRL_D)
    assert terminal.end() == 0
    terminal = talk("Fine.", words=("--session", "s"))
    terminal.expect("/plan waits at a checkpoint: STOP")
    terminal.say("no")
    terminal.expect("/plan is over: you answered no at the checkpoint")


def test_lines_of_a_pipe_answer_at_a_checkpoint(project: Path, tmp_path: Path) -> None:
    command_file(project, "plan", "Draft it.\nSTOP\nWrite it.")
    words = (
        "run",
        "--project",
        str(project),
        "--model",
        f"scripted:{script(tmp_path, 'one', 'two', 'three')}",
    )
    code, out, err = turngate(*words, stdin="/plan\nyes\nthanks\n")
    assert (code, out, err.count("waits at a checkpoint")) == (0, "one\ntwo\nthree\n", 1)
