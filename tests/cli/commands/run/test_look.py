"""How `turngate run` looks in a terminal: Markdown, differences, output of tools and hooks, and the status line."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.terminal import CTRL_D, Terminal, Tmux, wait_until

ANSWER = """\
## Fixed

The parser returns **an empty list**, see [the issue](https://example.com/12).

```python
if not text:
    return []
```

- `parser.py`
- [x] tests

| file | lines |
|---|--:|
| 解析.py | 2 |
| test_parser.py | 10 |

Done."""

WIDE_TABLE = """\
file           │ lines
───────────────┼──────
解析.py        │     2
test_parser.py │    10"""


def script(folder: Path, *answers: Any) -> Path:
    file = folder / "script.json"
    file.write_text(json.dumps({"main": answers, "context": 10**9}))
    return file


@pytest.fixture
def window(project: Path, tmp_path: Path) -> Iterator[Callable[..., Tmux]]:
    """Start `turngate run` in a window with these answers of the model."""
    with ExitStack() as stack:

        def start(*answers: Any, columns: int = 100, words: str = "") -> Tmux:
            run = f"{sys.executable} -m turngate run --model scripted:{script(tmp_path, *answers)} {words}"
            tmux = stack.enter_context(Tmux(f"{run}; exec sleep 3600", project, columns=columns))
            tmux.expect("/help shows")
            return tmux

        yield start


def lines(tmux: Tmux, first: str, last: str) -> list[str]:
    """Return the lines of the screen between these two."""
    shown = [line.rstrip() for line in tmux.screen.splitlines()]
    begin = next(number for number, line in enumerate(shown) if first in line)
    end = next(number for number, line in enumerate(shown) if last in line and number > begin)
    return shown[begin:end]


def test_an_answer_is_rendered(window: Callable[..., Tmux]) -> None:
    tmux = window(ANSWER)
    tmux.say("fix it")
    tmux.expect("Done.")
    tmux.expect("1 model request")
    assert lines(tmux, "Fixed", "Done.") == [
        "Fixed",
        "",
        "The parser returns an empty list, see the issue (https://example.com/12).",
        "",
        "if not text:",
        "    return []",
        "",
        "• parser.py",
        "• ☑ tests",
        "",
        *WIDE_TABLE.splitlines(),
        "",
    ]
    styled = tmux("capture-pane", "-e", "-p", "-t", "talk")
    assert re.search(r"\x1b\[[0-9;]*1m(\x1b\[[0-9;]*m)*an empty list\x1b\[0m", styled)
    assert re.search(r"\x1b\[36m(\x1b\[[0-9;]*m)*if not text:", styled)


def test_a_narrow_window_and_another_size(window: Callable[..., Tmux]) -> None:
    wide = (
        "| file | what has changed in it |\n|---|---|\n| 解析.py | two lines, one of them long |\n\nEnd {n}."
    )
    tmux = window(wide, wide, "word " * 100 + "End {n}.", columns=30)
    tmux.say("one")
    tmux.expect("1 model request")
    assert lines(tmux, "file: ", "End 1.") == [
        "file: 解析.py",
        "what has changed in it: two li",
        "nes, one of them long",
        "",
    ]
    tmux("resize-window", "-t", "talk", "-x", "80", "-y", "20")
    tmux.say("two")
    wait_until(lambda: tmux.screen.count("1 model request") == 2, lambda: tmux.screen)
    assert lines(tmux, "file    │", "End 2.") == [
        "file    │ what has changed in it",
        "────────┼────────────────────────────",
        "解析.py │ two lines, one of them long",
        "",
    ]
    tmux("resize-window", "-t", "talk", "-x", "20", "-y", "10")
    tmux.say("three")
    tmux.expect("End 3.")
    tmux("send-keys", "-t", "talk", "C-d")
    tmux.expect("--session")


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_color_the_answer_stays_as_it_is(project: Path, tmp_path: Path, env: dict[str, str]) -> None:
    file = script(tmp_path, ANSWER)
    with Terminal("run", "--model", f"scripted:{file}", cwd=project, env=env) as terminal:
        terminal.expect("/help shows the commands and keys")
        terminal.say("fix it")
        for line in filter(None, ANSWER.splitlines()):
            terminal.expect(line)


def test_one_turn_is_rendered_at_a_terminal_only(project: Path, tmp_path: Path) -> None:
    words = ("run", "-p", "fix it", "--model", f"scripted:{script(tmp_path, ANSWER)}")
    assert turngate(*words, "--project", str(project))[:2] == (0, ANSWER + "\n")
    with Terminal(*words, cwd=project) as terminal:
        for line in WIDE_TABLE.splitlines():
            terminal.expect(line)
        assert terminal.end() == 0
        assert b"\x1b[36mif not text:\x1b[0m" in terminal.raw


def test_no_text_of_the_model_commands_the_terminal(project: Path, tmp_path: Path) -> None:
    bad = "**a\x1b]0;title\x07b** `c\x1b[2Jd` \x9b31m\n| \x1b[8mx |\n|---|\n| y\x08 |\n"
    edit = {"tool": "Write", "input": {"file_path": "a.txt", "content": "\x1b[2Jnew\x1b]0;t\x07\n"}}
    file = script(tmp_path, {**edit, "text": bad}, bad + "End.")
    with Terminal("run", "--model", f"scripted:{file}", cwd=project) as terminal:
        terminal.expect("/help shows the commands and keys")
        terminal.say("go")
        terminal.expect("1 + new")
        terminal.expect("allow?")
        terminal.say("yes")
        terminal.expect("End.")
        sequences = (b"\x1b]", b"\x1b[2J", b"\x1b[8m", "\x9b".encode(), b"y\x08")
        assert [sequence for sequence in sequences if sequence in terminal.raw] == []


def test_changes_and_output_are_shown_once_and_output_shows_all(
    window: Callable[..., Tmux], project: Path
) -> None:
    (project / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 10)))
    edit = {"file_path": "a.txt", "old_string": "line 5", "new_string": "line five"}
    tmux = window(
        {"tool": "Read", "input": {"file_path": "a.txt"}},
        {"tool": "Edit", "input": edit},
        {"tool": "Bash", "input": {"command": "seq 101 120"}},
        {"tool": "Edit", "input": {**edit, "old_string": "line 1", "new_string": "line one"}},
        "Done.",
        words="--allow Bash",
    )
    tmux.say("edit it")
    tmux.expect("Edit: a.txt — allow?")
    assert lines(tmux, "  3   line 3", "allow?") == [
        "  3   line 3",
        "  4   line 4",
        "  5 - line 5",
        "  5 + line five",
        "  6   line 6",
        "  7   line 7",
    ]
    tmux.say("always")
    tmux.expect("Done.")
    tmux.expect("5 model requests")
    assert lines(tmux, "[n]o a", "Done.")[1:] == [
        "  Edit: a.txt",
        "  Bash: seq 101 120",
        "    101",
        "    102",
        "    103",
        "    104",
        "    … 16 more lines; /output shows all",
        "  Edit: a.txt",
        "  1 - line 1",
        "  1 + line one",
        "  2   line 2",
        "  3   line 3",
    ]
    tmux.say("/output")
    tmux.expect("> /output")
    wait_until(lambda: tmux.screen.count("1 + line one") == 2, lambda: tmux.screen)


def test_output_shows_all_lines_of_the_last_tool(window: Callable[..., Tmux]) -> None:
    tmux = window({"tool": "Bash", "input": {"command": "seq 101 120"}}, "Done.", words="--allow Bash")
    tmux.say("/output")
    tmux.expect("no tool has printed anything yet")
    tmux.say("run it")
    tmux.expect("… 16 more lines; /output shows all")
    tmux.expect("Done.")
    tmux.say("/output")
    tmux.expect("    120")


GATE = {"type": "gate", "id": "tests"}


def test_while_gates_run_their_last_lines_are_shown(
    window: Callable[..., Tmux], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "swordfish-99")
    wait = "until [ -e go ]; do sleep 0.1; done"
    settings = stop_hooks(f"echo first; echo token swordfish-99; {wait}", id="lint")
    settings["hooks"]["Stop"][0]["hooks"].append(
        {**GATE, "command": f"printf 'collected 12 items\\n10%%\\r20%%'; {wait}; exit 0"}
    )
    write_settings(project, "turngate", settings)
    write = {"tool": "Write", "input": {"file_path": "a.py", "content": "a = 1\n"}}
    tmux = window(write, "Done.", words="--trust --allow Write")
    tmux.say("do it")
    tmux.expect('waiting for hooks "lint", "tests"')
    wait_until(
        lambda: bool(re.search(r'  "lint" \d+ s: token …\n  "tests" \d+ s: 20%\n', tmux.screen)),
        lambda: tmux.screen,
    )
    (project / "go").touch()
    tmux.expect('hook "tests": passed')
    tmux.expect("tokens · 2 gates: 2 passed")


def test_one_turn_names_the_last_line_of_a_hook(project: Path, tmp_path: Path) -> None:
    write_settings(
        project, "turngate", stop_hooks("echo compiling; until [ -e go ]; do sleep 0.1; done", id="build")
    )
    words = ("run", "--trust", "-p", "do it", "--model", f"scripted:{script(tmp_path, 'Done.')}")
    with Terminal(*words, cwd=project) as terminal:
        terminal.expect('waiting for hook "build"')
        terminal.expect("s · compiling")
        (project / "go").touch()
        terminal.expect("Done.")
        assert terminal.end() == 0


def test_the_status_line_counts_the_results_of_the_last_stop(
    window: Callable[..., Tmux], project: Path
) -> None:
    write_settings(project, "turngate", stop_hooks("[ -e fixed ] || { echo no >&2; exit 2; }", id="tests"))
    tmux = window("Done.", "Done again.", {"tool": "Bash", "input": {"command": "touch fixed"}}, "Fixed.")
    tmux.expect("script.json · 1 gate\n")
    tmux.say("do it")
    tmux.expect("Bash: touch fixed — allow?")
    tmux.expect("script.json · 1 gate: 1 blocked\n")
    tmux.say("yes")
    tmux.expect("Fixed.")
    wait_until(
        lambda: bool(re.search(r"script\.json · \d+ tokens · 1 gate: 1 passed\n", tmux.screen)),
        lambda: tmux.screen,
    )


LONG = {
    "lines": "\n".join(["word **bold** `code` " * 40] * 1200),
    "one line": "word " * 200_000,
    "a table": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 90_000,
    "code": "```\n" + "x" * 1_000_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_an_answer_of_a_megabyte_does_not_stop_the_conversation(
    text: str, project: Path, tmp_path: Path
) -> None:
    file = script(tmp_path, text + "\n```\nThe end.", "Next.")
    with Terminal("run", "--model", f"scripted:{file}", cwd=project) as terminal:
        terminal.expect("/help shows the commands and keys")
        terminal.say("go")
        terminal.expect("The end.")
        terminal.say("and now?")
        terminal.expect("Next.")
        terminal.type(CTRL_D)
        assert terminal.end() == 0


OF_A_SCREEN = {"turngate.cli.console.markdown", "turngate.cli.console.tool_text", "prompt_toolkit"}


@pytest.mark.parametrize(
    "words",
    [("--help",), ("fire", "Stop"), ("hook",), ("run", "-p", "hi", "--model", "scripted:script.json")],
    ids=" ".join,
)
def test_what_prints_into_a_pipe_does_not_load_what_a_screen_needs(
    words: tuple[str, ...], project: Path
) -> None:
    (project / "script.json").write_text('{"main": ["Done."]}')
    event = json.dumps({"hook_event_name": "Stop", "session_id": "s", "cwd": str(project)})
    command = (sys.executable, "-X", "importtime", "-m", "turngate", *words)
    done = subprocess.run(command, cwd=project, input=event, capture_output=True, text=True, check=False)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert ("turngate.cli.main" in loaded, loaded & OF_A_SCREEN) == (True, set())
