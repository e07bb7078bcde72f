"""The docs are true: their commands and snippets run and print what the pages show, their tables and links are right."""

import asyncio
import html
import itertools
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.paths import ROOT
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.ssh import SshServer
from tests.support.sessions import message_text
from turngate import (
    Block,
    HookCallbackMatcher,
    HookGroup,
    InvalidOptions,
    LocalShell,
    Options,
    PromptHook,
    ScriptedModel,
    StopEvent,
    World,
    ask_hooks,
    load_settings,
)
from turngate.cli.commands.completion import command_nodes
from turngate.cli.main import COMMANDS
from turngate.core.constants import EVENTS, JUDGED_EVENTS, STOP_EVENTS
from turngate.core.dialect import CLAUDE, MUX, TURNGATE
from turngate.core.hooks.kinds import KINDS
from turngate.models.resolve import JudgeModels

DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "turngate"
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "decisions"),
]
FENCE = re.compile(r"^```(\w+)(?: (?:title=\")?([^\s\"]+)\"?)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r" +\d+\.\d\d s ")
TIMES = re.compile(r"^\d\d:\d\d:\d\d  ", re.MULTILINE)
PROGRESS = re.compile(r"^waiting for .*\n", re.MULTILINE)  # on stderr, and only where a hook takes long


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


class Fence(NamedTuple):
    """One fenced code block of a page."""

    language: str
    file: str | None  # the file whose content it is
    body: str


def fences(page: Path) -> list[Fence]:
    return [Fence(*groups) for groups in FENCE.findall(page.read_text())]


def run(command: list[str], folder: Path, *, check: bool = False, stderr: int = subprocess.STDOUT) -> str:
    """Return stdout and stderr as they came. The `turngate` of this environment is the first on PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    of_user = {name: value for name, value in os.environ.items() if name != "TURNGATE_TRUST"}
    # `turngate install` warns of a program in the folder for temporary files, where this one may be.
    completed = subprocess.run(
        command,
        cwd=folder,
        env={**of_user, "PATH": path, "TMPDIR": str(folder)},
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )
    assert completed.returncode == 0 or not check, (completed.stdout, completed.stderr)
    return completed.stdout


def steady(text: str) -> str:
    """Return the text without what depends on the speed of the machine: times, durations and progress lines."""
    return PROGRESS.sub("", TIMES.sub("00:00:00  ", SECONDS.sub(" 0.00 s ", text)))


def session(body: str, folder: Path) -> tuple[str, Path]:
    """Run each `$ ` line and return the console with its real output, and the folder in which it ends."""
    console = ""
    for line in [line for line in body.splitlines() if line.startswith("$ ")]:
        console += f"{line}\n"
        if line.startswith("$ cd "):
            folder = (folder / line.removeprefix("$ cd ")).resolve()
        else:
            console += run(["/bin/sh", "-c", line[2:]], folder)
    return console, folder


def as_shown(printed: str, shown: str) -> str:
    """Return `shown` if it is what was printed: its `…` stands for any text of a line, or alone in a line for any lines.

    Otherwise return what was printed, so that a comparison shows the difference.
    """
    pattern = re.sub(r"^…\n", "(?:.*\\n)*?", re.escape(shown).replace("\\\n", "\n"), flags=re.MULTILINE)
    return shown if re.fullmatch(pattern.replace("…", ".*"), printed) else printed


@pytest.mark.parametrize(
    ("shown", "is_same"),
    [
        ("$ ls\na.py\nb.py\n", True),
        ("$ ls\na.py\n", False),
        ("$ ls\n…\nb.py\n", True),
        ("$ ls\n…\n", True),
        ("$ ls\na.py\n…\nb.py\n", True),
        ("$ ls\na…\nb…\n", True),
        ("$ ls\na…\n", False),
        ("$ ls\n…\na.py\n", False),
    ],
)
def test_an_ellipsis_of_a_page_stands_for_text_that_is_left_out(shown: str, *, is_same: bool) -> None:
    assert (as_shown("$ ls\na.py\nb.py\n", shown) == shown) is is_same


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_is_what_happens(
    page: Path, project: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `cd` holds for the rest of the page. A Python snippet prints the `text` block that follows it, or nothing."""
    folder = project
    if page.name == "frameworks.md":
        missing = [name for name in ("langchain", "agents", "strands") if find_spec(name) is None]
        if missing:
            pytest.skip(f"{', '.join(missing)} not installed: run `make test-all`, which installs them")
    if page.name == "ssh.md":
        server: SshServer = request.getfixturevalue("server")
        (server.home / "src").mkdir()
        (server.home / "src" / "app").symlink_to(project)
    if page.name == "many-machines.md":
        database: PostgresServer = request.getfixturevalue("postgres")
        monkeypatch.setenv("TURNGATE_REGISTRY", database.url("owner"))
    for block, after in itertools.pairwise([*fences(page), Fence("", None, "")]):
        if block.file:
            path = project / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body)
        elif block.language == "console":
            shown = steady(block.body)
            console, folder = session(block.body, folder)
            assert as_shown(steady(console), shown) == shown
        elif block.language == "python":
            (project / "snippet.py").write_text(block.body)
            printed = run([sys.executable, "snippet.py"], project, check=True, stderr=subprocess.PIPE)
            assert printed == (after.body if after.language == "text" else "")


COMMAND = re.compile(
    r"`(turngate [^`\n]+)`|^ {4}(?:\$ )?(turngate .+)$|^  (turngate .+)$|[\"'](turngate [^\"'\n]+)[\"']",
    re.MULTILINE,
)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=name_of)
def test_commands_and_options_that_a_page_names_exist(page: Path) -> None:
    """In sentences, tables, settings, conversations and examples of `--help`, which are not run."""
    nodes = {node.words: node for node in command_nodes()}
    wrong = []
    for match in COMMAND.finditer(page.read_text()):
        _, *words = re.split(r" -- | --$|   +|[|;>&]| #", match[match.lastindex or 0])[0].split()
        at: tuple[str, ...] = ()
        for word in words:
            at = (*at, word) if (*at, word) in nodes else at
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        is_name = not at and words and words[0][0] not in "-…" and not words[0].isupper()
        if is_name or (at != ("gate",) and not nodes[at].options.keys() >= {*options}):
            wrong.append(match[0])
    assert wrong == []


def test_settings_that_a_page_shows_can_be_read(project: Path) -> None:
    """Those without the name of a file; the others are run."""
    wrong, number = [], 0
    for page in PAGES:
        for block in fences(page):
            if block.language == "json" and not block.file and '"hooks"' in block.body:
                number += 1
                (project / ".turngate").mkdir(exist_ok=True)
                (project / ".turngate" / "settings.json").write_text(block.body)
                settings = load_settings(str(project), home=str(project), trust=True)
                wrong += [(name_of(page), problem) for problem in settings.problems]
    assert (wrong, number > 40) == ([], True)


DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
PROSE = [*PAGES, *DECISIONS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


# Links of a page to files out of docs/, which the site does not have.
HERE = "https://github.com/turngate/turngate/(?:blob|tree)/main/"


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(rf"\]\((?:(?!https?:)|(?={HERE}))([^)#]*)#?([^)]*)\)", page.read_text())
    files = [(re.sub(HERE, f"{ROOT}/", path), anchor) for path, anchor in links]
    targets = [(page.parent / path if path else page, anchor) for path, anchor in files]
    assert [str(target) for target, _ in targets if not target.exists()] == []
    assert [anchor for target, anchor in targets if anchor and anchor not in anchors(target)] == []


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS], ids=name_of)
def test_what_belongs_to_an_item_of_a_list_is_indented_by_four_blanks(page: Path) -> None:
    """GitHub takes less, and the site does not: a list in a list, and a second paragraph of an item."""
    text = FENCE.sub("", page.read_text())
    assert re.findall(r"^ {1,3}(?:[-*]|\d+\.) .*|(?<=\n\n) {1,3}\S.*", text, re.MULTILINE) == []


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    names = set(
        re.findall(r"`([\w.-]+(?:/[\w.-]+)*/[\w-]+\.(?:py|pyi|toml|sh|txt|jsonl))`", page.read_text())
    )
    roots = (ROOT, ROOT / "src", PACKAGE)
    assert [name for name in sorted(names) if not any((root / name).exists() for root in roots)] == []


def test_the_architecture_page_lists_every_package() -> None:
    page = (
        (DOCS / "explanation" / "architecture.md")
        .read_text()
        .partition("## Packages\n")[2]
        .partition("\n## ")[0]
    )
    packages = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(packages)


@pytest.mark.parametrize(
    ("name", "begin", "end", "header", "at_least"),
    [
        ("explanation/security.md", "## Promises and their tests", None, "promise", 30),
        ("explanation/holding.md", "## Settings", "## Who sends an event", "move", 60),
    ],
)
def test_every_row_of_a_page_of_promises_names_tests_that_exist(
    name: str, begin: str, end: str | None, header: str, at_least: int
) -> None:
    page = (DOCS / name).read_text()
    promises = page.partition(begin)[2].partition(end or "\0")[0]
    rows = [line for line in promises.splitlines() if re.match(rf"\| (?!{header} )[^-]", line)]
    assert [row for row in rows if not NAMED_TEST.search(row)] == []
    missing = [
        f"{file}::{test}"
        for file, test in NAMED_TEST.findall(page)
        if not re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE)
    ]
    assert (len(rows) >= at_least, missing) == (True, [])


def test_the_demo_tells_the_whole_story() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "turngate", "demo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    picture = (DOCS / "assets" / "demo.svg").read_text()
    drawn = [html.unescape(re.sub("<[^>]+>", "", text)) for text in re.findall("<text .*?</text>", picture)]
    # Durations vary, and so do the tracebacks of Python versions, which are indented.
    shown, printed = (
        [re.sub(r"\d\.\d s", "", line) for line in lines if not line.startswith("    ")]
        for lines in (drawn, done.stdout.splitlines())
    )
    assert "\n".join(shown) in "\n".join(printed), "run `make picture`"
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
        "You promise something for later. Do it now, or say why you cannot.",
        "'Done, with tests.': allowed",
    ]


def rows(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the tables below a heading, without the header row of the first."""
    [section] = re.findall(rf"^##? {heading}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.req("S2-18")
def test_the_limits_of_every_kind_are_recommended_beside_their_true_defaults() -> None:
    table = rows(DOCS / "reference" / "hook-kinds.md", "Timeouts")
    assert {kind: default for kind, default, *_ in table} == {
        f"`{kind}`": f"{seconds:g} s" for kind, seconds in TURNGATE.timeouts.items()
    }, "docs/reference/hook-kinds.md: the table of timeouts differs from the kinds and their default_timeout"
    assert all(recommended and because for _, _, recommended, because in table)


@pytest.mark.req("U-14")
def test_the_limit_of_continuations_is_documented_with_its_true_value() -> None:
    table = {rule: cells for rule, *cells in rows(DOCS / "reference" / "dialects.md", "Dialects")}
    assert [table[f"`{name}`"] for name in ("limit", "hardLimit")] == [
        [str(TURNGATE.limit), str(MUX.limit), f"{CLAUDE.limit}, or `{CLAUDE.limit_variable}`"],
        [str(TURNGATE.hard_limit), str(MUX.hard_limit), "none, unless a file sets it"],
    ]


@pytest.mark.req("S3-36")
def test_each_use_of_a_prompt_hook_has_a_question_that_can_be_asked(project: Path) -> None:
    uses, asked = [], []
    for use, cell in rows(DOCS / "how-to" / "judge.md", r"2\. Ask well"):
        prompt, *view = re.findall(r"`([^`]*)`", cell)
        model = ScriptedModel({"judge": ['{"ok": false, "reason": "not yet"}']})
        hook = PromptHook(prompt, transcript="digest" if view else None)
        world = World(LocalShell(), str(project), judge=JudgeModels(session=model))
        event = StopEvent(session_id="s", last_assistant_message="Done.")
        verdict = asyncio.run(ask_hooks(event, Options({"Stop": [hook]}).settings(), world))
        uses.append((use, [run.decision for run in verdict.runs]))
        asked.append(prompt.removesuffix("$ARGUMENTS") in message_text(model.requests[0].messages[0]))
    assert uses == [
        (use, [Block("not yet")])
        for use in ("is the task done?", "is the answer good enough?", "does it depend on the change?")
    ]
    assert asked == [True, True, True]


def test_the_readme_lists_every_command() -> None:
    listed = [
        name
        for row in rows(ROOT / "README.md", "Commands")
        for name in re.findall(r"`turngate (\w+)", row[0])
    ]
    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.req("S2-25")
def test_every_pattern_is_documented_with_an_example() -> None:
    message_text = [
        re.findall(r"hooks/(\w+)\.py", row[2]) for row in rows(DOCS / "how-to" / "recipes.md", "In Python")
    ]
    there = sorted(path.stem for path in (ROOT / "examples" / "hooks").glob("*.py"))
    assert sorted(name for names in message_text for name in names) == there


@pytest.mark.req("S2-35")
def test_what_python_users_configure_says_what_it_is() -> None:
    surface = (*KINDS.values(), Options, HookGroup, HookCallbackMatcher, InvalidOptions)
    said = [
        each.__doc__ or "" for each in (*surface, Options.settings, Options.from_json, Options.for_claude)
    ]
    assert [words for words in said if " " not in words or "(" in words.split()[0]] == []


@pytest.mark.req("S2-35")
def test_the_guide_from_the_old_form_to_the_new_one_runs(project: Path) -> None:
    snippets = [block for block in fences(DOCS / "how-to" / "migrate.md") if block.language == "python"]
    printed = []
    for snippet in snippets:
        (project / "snippet.py").write_text(snippet.body)
        printed.append(run([sys.executable, "-W", "error", "snippet.py"], project)[:25])
    assert printed == ["", "", "", "", "4 problems in the options"]


NUMBERS = ("nine", "ten", "eleven", "twelve", "thirteen")


def test_the_pages_agree_with_the_code_on_the_number_of_events() -> None:
    """Both pages count the events besides `Stop` and `SubagentStop`."""
    number = NUMBERS[len(EVENTS) - len(STOP_EVENTS) - 9]
    assert f"and [{number} more](docs/reference/events.md)" in (ROOT / "README.md").read_text()
    assert f"an agent fires {number} events" in (DOCS / "reference" / "events.md").read_text()


def test_the_page_names_every_event_of_a_prompt_hook() -> None:
    section = (
        (DOCS / "reference" / "prompt-hooks.md").read_text().split("## Prompt hooks\n")[1].split("```")[0]
    )
    assert set(re.findall(r"`([A-Z][A-Za-z]+)`", section)) | {"Stop"} == set(JUDGED_EVENTS)


def test_the_page_names_every_extra_and_no_page_a_package_that_is_not_published() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [paragraph] = [
        each
        for each in (DOCS / "how-to" / "install.md").read_text().split("\n\n")
        if "an extra, such as" in each
    ]
    assert set(re.findall(r"`([\w-]+)` (?:and|\()", paragraph)) == set(project["optional-dependencies"]) - {
        "dev"
    }
    assert [page.name for page in PAGES if "turngate[" in page.read_text()] == []
