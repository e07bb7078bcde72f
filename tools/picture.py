"""`make picture`: what the docs show: `turngate demo` as an animated SVG, the last screen of `turngate run`, and `turngate serve --demo`.

The page needs Chromium; without it, its pictures stay as they are.
"""

import html
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
SLOWDOWN = 3  # the demo is quicker than a person reads
PAUSE_S = 5.0  # the end is shown this long before it begins again
STYLE = """\
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d8dee9; white-space: pre; }
.bold { font-weight: bold; fill: #ffffff; } .bad { fill: #ff6b6b; font-weight: bold; }
.good { fill: #5fd38d; font-weight: bold; } .dim { fill: #8a93a3; } .notice { fill: #e5c07b; }
.code { fill: #56b6c2; } .italic { font-style: italic; } .link { text-decoration: underline; }"""

# What `turngate run` is shown with: a project, and what a scripted model answers.
COLUMNS, ROWS = 84, 50
SHOWN = "> Fix"  # the first line
PARSER = '''"""Read lists of numbers."""


def parse(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]
'''
TEST = """\
from parser import parse
import unittest


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
    return [(SLOWDOWN * (seconds - zero), text) for seconds, text in lines[begin : end + 1]]


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


def record_screen() -> list[tuple[float, str]]:
    """Return the lines of the last screen of a conversation; they have no times."""
    if shutil.which("tmux") is None:
        sys.exit("tmux is not installed, and docs/assets/run.svg needs it")
    with tempfile.TemporaryDirectory() as folder:
        tmux = ("tmux", "-S", f"{folder}/socket", "-f", "/dev/null")
        project = Path(folder, "project")
        (project / ".turngate").mkdir(parents=True)
        (project / "parser.py").write_text(PARSER)
        (project / "test_parser.py").write_text(TEST)
        Path(folder, "script.json").write_text(json.dumps({"main": ANSWERS}))
        settings = {"hooks": {"Stop": [{"hooks": [GATE]}]}}
        (project / ".turngate" / "settings.json").write_text(json.dumps(settings))
        state = f"HOME={folder} TURNGATE_STATE={folder}/state"
        run = f"{state} {TURNGATE} run --trust --model scripted:../script.json; exec sleep 600"
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        subprocess.run([*tmux, "new-session", "-d", "-s", "run", *size, "-c", project, run], check=True)
        try:
            for wanted, typed in (
                ("/help shows", "Fix the parser for an empty text."),
                ("allow? [y]es", "always"),
                ("5 model requests", None),
            ):
                wait_for_screen(tmux, wanted)
                if typed:
                    time.sleep(1)  # a key at once would not be taken for an answer
                    subprocess.run([*tmux, "send-keys", "-t", "run", typed, "Enter"], check=True)
            time.sleep(1)
            lines = screen(tmux, "-e").rstrip().splitlines()
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)
    begin = next(number for number, line in enumerate(lines) if SGR.sub("", line).startswith(SHOWN))
    return [(0.0, line.rstrip()) for line in lines[begin:]]


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
        subprocess.run([TURNGATE, "serve", "--demo", "--html", str(file)], check=True)
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
    write("run.svg", draw(record_screen()))
