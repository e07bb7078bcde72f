"""`make picture`: what the docs show: `turngate demo` as an animated SVG, screens of other commands, and `turngate serve --demo`.

The page needs Chromium; without it, its pictures stay as they are.
"""

import html
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
ASSETS = ROOT / "docs" / "assets"
TURNGATE = str(Path(sys.executable).with_name("turngate"))
COMMAND = (TURNGATE, "demo")
FIRST, LAST = "The user asks", "Turn completed"  # the lines that are shown, by their beginnings
SGR = re.compile(r"\033\[([\d;]*)m")
CLASSES = {"1": "bold", "2": "dim", "3": "italic", "4": "link"}
CLASSES |= {"31": "bad", "32": "good", "33": "notice", "36": "code", "90": "dim"}
COLORS = {"bad", "good", "notice", "code"}
CHARACTER_PX, LINE_PX, MARGIN_PX = 8.43, 19, 16
STORY_S = 9.0  # the demo is quicker than a person reads
PAUSE_S = 5.0  # the end is shown this long before it begins again
STYLE = """\
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d8dee9; white-space: pre; }
.bold { font-weight: bold; fill: #ffffff; } .bad { fill: #ff6b6b; font-weight: bold; }
.good { fill: #5fd38d; font-weight: bold; } .dim { fill: #8a93a3; } .notice { fill: #e5c07b; }
.code { fill: #56b6c2; } .italic { font-style: italic; } .link { text-decoration: underline; }"""

# What the screens are made from: a project, and what a scripted model answers.
COLUMNS, ROWS = 96, 60
PARSER = '''"""Read lists of numbers."""


def parse(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]
'''
TEST = """\
import unittest

from parser import parse


class Test(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(parse(""), [])

    def test_blank(self):
        self.assertEqual(parse(" "), [])
"""
OLD = "    return [int"
DONE = """\
## Done

`parse` returns **an empty list** if there is nothing to split:

| text | result |
|---|---|
| `""` | `[]` |
| `"1,2"` | `[1, 2]` |
"""
ANSWERS = (
    {"tool": "Read", "input": {"file_path": "parser.py"}},
    {"tool": "Bash", "input": {"command": "cat -n test_parser.py"}},
    {
        "tool": "Edit",
        "input": {
            "file_path": "parser.py",
            "old_string": OLD,
            "new_string": f"    if not text:\n        return []\n{OLD}",
        },
    },
    {"text": DONE},
    {
        "tool": "Edit",
        "input": {
            "file_path": "parser.py",
            "old_string": "if not text:",
            "new_string": "if not text.strip():",
        },
    },
    {"text": "The test was right: *blank* text is empty too. See [the docs](docs/parser.md)."},
)
GATE = {
    "type": "command",
    "id": "tests",
    "command": "python3 -m unittest -q test_parser 2>&1 | grep -E 'Error|FAILED' >&2 && exit 2 || exit 0",
}
SLOW_TEST = """\
import time
import unittest


class Test(unittest.TestCase):
    pass


for name in ("commas", "comments", "dates", "quotes", "tabs"):
    setattr(Test, f"test_{name}", lambda self: time.sleep(2))
"""
SLOW_GATE = {"type": "gate", "id": "tests", "command": "python3 -m unittest -v test_slow"}
# A project for `turngate init`.
PYPROJECT = """\
[tool.pytest.ini_options]
[tool.ruff]
"""


class Screen(NamedTuple):
    """One picture: what is typed, each after a text has appeared, and from where to which the screen is shown."""

    name: str
    steps: tuple[tuple[str, str], ...]
    first: str  # the beginning of the first line
    last: str  # appears when the screen is complete


def of_run(name: str, prompt: str, steps: tuple[tuple[str, str], ...], last: str) -> Screen:
    run = "turngate run --trust --allow Bash --model scripted:../script.json"
    return Screen(name, (("$", run), ("/help shows", prompt), *steps), f"> {prompt}", last)


PARSER_FILES = {"parser.py": PARSER, "test_parser.py": TEST}
SCREENS: tuple[tuple[dict[str, str], tuple[Any, ...], Any, tuple[Screen, ...]], ...] = (
    (
        PARSER_FILES,
        ANSWERS,
        GATE,
        (
            of_run(
                "run",
                "Fix the parser for an empty text.",
                (("allow? [y]es", "always"),),
                "6 model requests",
            ),
        ),
    ),
    (
        {"test_slow.py": SLOW_TEST},
        ({"tool": "Bash", "input": {"command": "date > built.txt"}}, {"text": "The parser is built."}),
        SLOW_GATE,
        (of_run("waiting", "Build the parser.", (), "test_dates"),),
    ),
    (
        {
            **PARSER_FILES,
            "pyproject.toml": PYPROJECT,
            "parser.py": PARSER.replace(OLD, f"    if not text.strip():\n        return []\n{OLD}"),
        },
        (),
        None,
        (
            Screen(
                "init",
                (("$", "turngate init"), ("whether it can run?", "y")),
                "$ turngate init",
                "run on this machine?",
            ),
            Screen(
                "status",
                (
                    ("run on this machine?", "y"),
                    (
                        "approved  lint",
                        "turngate install claude --yes > log; turngate fire Stop > log; echo fired",
                    ),
                    (
                        "\nfired",
                        "sed -i 's/.strip()//' parser.py; turngate fire Stop > log; clear; echo ready",
                    ),
                    ("ready", "clear; turngate status"),
                ),
                "Project",
                "Next:",
            ),
        ),
    ),
)


def record() -> list[tuple[float, str]]:
    """Return the lines that the command prints, each with the seconds from the start to its last character."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND[0], COMMAND, {**os.environ, "TERM": "xterm-256color", "NO_COLOR": ""})
    started, lines, rest = time.monotonic(), [], b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # how Linux reports the end of a terminal
            break
        if not data:
            break
        *whole, rest = (rest + data).split(b"\n")
        lines += [(time.monotonic() - started, line.decode().rstrip("\r")) for line in whole]
    _, status = os.waitpid(pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        sys.exit(f"{' '.join(COMMAND)} ended with {code}")
    return lines


def select(lines: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return the lines of the story, with times from its first one."""
    texts = [SGR.sub("", text) for _, text in lines]
    begin = next(number for number, text in enumerate(texts) if text.startswith(FIRST))
    end = next(number for number, text in enumerate(texts) if text.startswith(LAST))
    zero = lines[begin][0]
    scale = STORY_S / (lines[end][0] - zero)
    return [(scale * (seconds - zero), text) for seconds, text in lines[begin : end + 1]]


def draw(lines: list[tuple[float, str]]) -> str:
    """Return the SVG: each line becomes visible at its time, and all begin again after a pause. Without times, it is still."""
    is_still = not lines[-1][0]
    total = lines[-1][0] + PAUSE_S
    width = max(len(SGR.sub("", text)) for _, text in lines) * CHARACTER_PX + 2 * MARGIN_PX
    height = len(lines) * LINE_PX + 2 * MARGIN_PX
    frames, texts, classes = [], [], set[str]()
    for number, (seconds, text) in enumerate(lines):
        y = MARGIN_PX + (number + 0.75) * LINE_PX
        if is_still:
            texts.append(f'<text x="{MARGIN_PX}" y="{y:.1f}">{spans(text, classes)}</text>')
            continue
        percent = 100 * seconds / total
        shown = f"0%, {percent:.2f}% {{ opacity: 0; }} {percent + 0.01:.2f}%, 100% {{ opacity: 1; }}"
        frames.append(f"@keyframes l{number} {{ {shown} }}" if number else "@keyframes l0 {}")
        animation = f"animation: l{number} {total:.1f}s infinite"
        texts.append(f'<text x="{MARGIN_PX}" y="{y:.1f}" style="{animation}">{spans(text, classes)}</text>')
    size = f'width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}"'
    background = '<rect width="100%" height="100%" rx="8" fill="#1e222a"/>'
    style = "\n".join(["<style>", STYLE, *frames, "</style>"])
    root = f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" {size}>'
    return "\n".join([root, style, background, *texts, "</svg>\n"])


def spans(text: str, classes: set[str]) -> str:
    """Return a line of a terminal as text of an SVG, with a class for each color; the classes stay for the next line."""
    parts = []
    for number, part in enumerate(SGR.split(text)):
        if number % 2:
            for code in part.split(";"):
                name = CLASSES.get(code)
                classes -= (
                    classes if code in ("", "0") else COLORS if code == "39" or name in COLORS else set()
                )
                classes |= {name} if name else set()
        elif part:
            escaped = html.escape(part, quote=False)
            class_names = " ".join(sorted(classes))
            parts.append(f'<tspan class="{class_names}">{escaped}</tspan>' if classes else escaped)
    return "".join(parts)


def record_screens(
    files: dict[str, str], answers: tuple[Any, ...], gate: Any, screens: tuple[Screen, ...]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the lines of each picture that is made in one project, in one window."""
    if shutil.which("tmux") is None:
        sys.exit("tmux is not installed, and the pictures of screens need it")
    with tempfile.TemporaryDirectory(prefix="turngate-") as folder:
        tmux = ("tmux", "-S", f"{folder}/socket", "-f", "/dev/null")
        project = Path(folder, "parser")
        project.mkdir()
        for name, text in files.items():
            (project / name).write_text(text)
        if gate:
            (project / ".turngate").mkdir()
            settings = {"hooks": {"Stop": [{"hooks": [gate]}]}}
            (project / ".turngate" / "settings.json").write_text(json.dumps(settings))
        Path(folder, "script.json").write_text(json.dumps({"main": answers}))
        environ = {
            "HOME": folder,
            "TURNGATE_STATE": f"{folder}/state",
            "PATH": f"{Path(TURNGATE).parent}{os.pathsep}{os.environ['PATH']}",
            "PS1": "$ ",
        }
        shell = " ".join(
            ["exec", "env", *(f"{key}={shlex.quote(value)}" for key, value in environ.items()), "sh"]
        )
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        subprocess.run([*tmux, "new-session", "-d", "-s", "run", *size, "-c", project, shell], check=True)
        try:
            for each in screens:
                yield each.name, record_screen(tmux, each)
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)


def record_screen(tmux: tuple[str, ...], wanted: Screen) -> list[str]:
    for text, typed in wanted.steps:
        wait_for_screen(tmux, text)
        time.sleep(1)  # a key at once would not be taken for an answer
        keys = (typed,) if typed == "y" else (typed, "Enter")  # one key answers
        subprocess.run([*tmux, "send-keys", "-t", "run", *keys], check=True)
    wait_for_screen(tmux, wanted.last)
    time.sleep(1)
    lines = screen(tmux, "-e").rstrip().splitlines()
    begin = next(number for number, line in enumerate(lines) if SGR.sub("", line).startswith(wanted.first))
    return [line.rstrip() for line in lines[begin:]]


def wait_for_screen(tmux: tuple[str, ...], wanted: str) -> None:
    deadline = time.monotonic() + 60
    while wanted not in screen(tmux):
        if time.monotonic() > deadline:
            sys.exit(f"{wanted!r} was not shown:\n{screen(tmux)}")
        time.sleep(0.1)


def screen(tmux: tuple[str, ...], *options: str) -> str:
    command = [*tmux, "capture-pane", "-p", *options, "-t", "run"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# What `turngate serve --demo` is shown with: name, color scheme, height, and a script that goes to the view.
BLOCKED_SUBAGENT = "each.innerText.includes('subagent') && each.querySelector('[aria-label=blocked]')"
GO_TO_SESSION = f"location.hash = [...document.querySelectorAll('.rows a')].find(each => {BLOCKED_SUBAGENT}).getAttribute('href')"
OPEN_BLOCKED = """\
document.querySelectorAll('details').forEach(each => { each.open = false; });
[...document.querySelectorAll('details')].findLast(each => each.querySelector('summary > [aria-label=blocked]')).open = true"""
SCROLL = "document.querySelector('details[open]').scrollIntoView()"
PAGES = (
    ("serve-overview", "light", 860, ()),
    ("serve-subagents", "light", 545, (GO_TO_SESSION,)),
    ("serve-stop", "light", 560, (GO_TO_SESSION, OPEN_BLOCKED, SCROLL)),
    ("serve-gate", "dark", 800, ("location.hash = '#/gate/tests'",)),
)
PAGE_WIDTH = 960


def take_pictures_of_page() -> None:
    sys.path.insert(0, str(ROOT))
    from tests.support.browser import MISSING, PROGRAM, Browser  # noqa: PLC0415 # only here

    if PROGRAM is None:
        print(f"! {MISSING}")
        return
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        file = Path(folder, "demo.html")
        subprocess.run(
            [TURNGATE, "serve", "--demo", "--html", str(file)], stdout=subprocess.DEVNULL, check=True
        )
        for name, scheme, height, scripts in PAGES:
            browser.resize(PAGE_WIDTH, height)
            browser.set_scheme(scheme)
            browser.open(file.as_uri())
            for script in scripts:
                browser.evaluate(script)
                browser.wait_for("document.querySelector('.legend, .flow')")
                time.sleep(0.5)  # until it is drawn
            browser.save_picture(ASSETS / f"{name}.png")
            print(f"written   docs/assets/{name}.png")


def write(name: str, picture: str) -> None:
    (ASSETS / name).write_text(picture, encoding="utf-8")
    print(f"written   docs/assets/{name}")


if __name__ == "__main__":
    ASSETS.mkdir(exist_ok=True)
    take_pictures_of_page()
    write("demo.svg", draw(select(record())))
    for each in SCREENS:
        for name, lines in record_screens(*each):
            write(f"{name}.svg", draw([(0.0, line) for line in lines]))
