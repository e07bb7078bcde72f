"""Every command and snippet that the docs show is run, and prints what they say that it prints."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r" +\d+\.\d\d s ")


class Block(NamedTuple):
    language: str
    file: str | None  # what the block is the content of
    body: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(page.read_text())]


def run(command: list[str], folder: Path) -> str:
    """What it prints, in whatever order it came; what a script of ours would find on PATH is first there."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


def steady(text: str) -> str:
    return SECONDS.sub(" 0.00 s ", text)


def session(body: str, folder: Path) -> str:
    """Runs each `$ ` line and writes the console anew."""
    lines = [line for line in body.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{run(['/bin/sh', '-c', line[2:]], folder)}" for line in lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_is_what_happens(page: Path, project: Path) -> None:
    for block in blocks(page):
        if block.file:
            path = project / block.file
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.body)
        elif block.language == "console":
            assert steady(session(block.body, project)) == steady(block.body)
        elif block.language == "python":
            (project / "snippet.py").write_text(block.body)
            assert "Traceback" not in run([sys.executable, "snippet.py"], project)


def test_the_readme_runs_its_example_and_prints_the_refusal(project: Path) -> None:
    [snippet] = [block.body for block in blocks(ROOT / "README.md") if block.language == "python"]
    (project / "snippet.py").write_text(snippet)
    assert run([sys.executable, "snippet.py"], project) == (
        "[Stop hook requested continuation]\nYou promise something for later. Do it now.\n"
    )


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_demo_tells_the_whole_story() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "turngate", "demo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    story = [line.strip() for line in done.stdout.splitlines()]
    wanted = [
        "Done: prices.py has total(prices, discount).",
        "AssertionError: 160 != 140",
        "Done: the discount is subtracted now, and the test passes.",
    ]
    assert (done.returncode, done.stderr, [line for line in story if line in wanted]) == (0, "", wanted)


def test_the_python_example_runs(project: Path) -> None:
    assert run([sys.executable, str(ROOT / "examples" / "gate.py")], project).splitlines() == [
        "'Done; I will add the tests later.': [Stop hook requested continuation]",
        "You promise something for later. Do it now, or say why you can not.",
        "'Done, with tests.': may stop",
    ]
