"""`make picture`: record a real `turngate demo` in a terminal, and write it as an animated SVG."""

import html
import os
import pty
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "assets" / "demo.svg"
COMMAND = (str(Path(sys.executable).with_name("turngate")), "demo")
FIRST, LAST = "The user asks", "Turn completed"  # the lines that are shown, by their beginnings
SGR = re.compile(r"\033\[([\d;]*)m")
CLASSES = {"1": "bold", "31": "bad", "32": "good", "2": "dim", "33": "notice"}
CHARACTER_PX, LINE_PX, MARGIN_PX = 8.43, 19, 16
SLOWDOWN = 3  # the demo is quicker than a person reads
PAUSE_S = 5.0  # the end is shown this long before it begins again
STYLE = """\
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d8dee9; white-space: pre; }
.bold { font-weight: bold; fill: #ffffff; } .bad { fill: #ff6b6b; font-weight: bold; }
.good { fill: #5fd38d; font-weight: bold; } .dim { fill: #8a93a3; } .notice { fill: #e5c07b; }"""


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
    """Return the SVG: each line becomes visible at its time, and all begin again after a pause."""
    total = lines[-1][0] + PAUSE_S
    width = max(len(SGR.sub("", text)) for _, text in lines) * CHARACTER_PX + 2 * MARGIN_PX
    height = len(lines) * LINE_PX + 2 * MARGIN_PX
    frames, texts = [], []
    for number, (seconds, text) in enumerate(lines):
        percent = 100 * seconds / total
        shown = f"0%, {percent:.2f}% {{ opacity: 0; }} {percent + 0.01:.2f}%, 100% {{ opacity: 1; }}"
        frames.append(f"@keyframes l{number} {{ {shown} }}" if number else "@keyframes l0 {}")
        y = MARGIN_PX + (number + 0.75) * LINE_PX
        animation = f"animation: l{number} {total:.1f}s infinite"
        texts.append(f'<text x="{MARGIN_PX}" y="{y:.1f}" style="{animation}">{spans(text)}</text>')
    size = f'width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}"'
    background = '<rect width="100%" height="100%" rx="8" fill="#1e222a"/>'
    style = "\n".join(["<style>", STYLE, *frames, "</style>"])
    root = f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" {size}>'
    return "\n".join([root, style, background, *texts, "</svg>\n"])


def spans(text: str) -> str:
    """Return a line of a terminal as text of an SVG, with a class for each color."""
    parts, class_name = [], ""
    for number, part in enumerate(SGR.split(text)):
        if number % 2:
            class_name = CLASSES.get(part.split(";")[-1], "")
        elif part:
            escaped = html.escape(part, quote=False)
            parts.append(f'<tspan class="{class_name}">{escaped}</tspan>' if class_name else escaped)
    return "".join(parts)


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(draw(select(record())), encoding="utf-8")
    print(f"written   {TARGET.relative_to(ROOT)}")
