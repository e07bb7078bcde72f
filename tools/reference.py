"""`make reference`: write docs/reference/cli.md, exit-codes.md and man/turngate.1 from the parsers of the commands."""

import argparse
import contextlib
import io
import re
import tomllib
from collections import Counter
from pathlib import Path

from turngate.cli.arguments import build_parser
from turngate.cli.commands.completion import subparsers
from turngate.cli.commands.gate import print_help
from turngate.cli.commands.hook import run as run_hook
from turngate.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
PAGE, MAN = ROOT / "docs" / "reference" / "cli.md", ROOT / "man" / "turngate.1"
EXIT_CODES = ROOT / "docs" / "reference" / "exit-codes.md"
HEADING = """\
# Command line

What `turngate COMMAND --help` prints, for every command and action. This page is written by `make reference`.
"""
EXIT_CODES_HEADING = """\
# Exit codes

A script can rely on these. Exit code 2, with which a hook blocks, is only used by `turngate gate` and `turngate hook` with `--exit-code`, and for Kimi Code. This page is written by
`make reference` from the help of each command.

## Every command

Unless a command's own list says otherwise:

"""
_EXIT_CODE = re.compile(r"^  (\d+(?: \+ N)?)  +(.*(?:\n {4,}\S.*)*)$", re.MULTILINE)
MAN_HEADING = r""".TH TURNGATE 1 "DATE" "Turngate VERSION"
.SH NAME
turngate \- decide whether an AI agent may stop
.SH SYNOPSIS
.B turngate
.I COMMAND
[\fIARGUMENT\fR ...]
"""


def help_texts() -> dict[str, str]:
    """Return the help of `turngate` itself, and of each command and action."""
    texts = {"turngate": build_parser([], COMMANDS).format_help()}
    for name in COMMANDS:
        if name in ("gate", "hook"):
            texts[f"turngate {name}"] = _own_help(name)
        else:
            texts |= _parser_help(f"turngate {name}", subparsers(build_parser([name], COMMANDS))[name])
    return {
        name: "\n".join(line.rstrip() for line in text.strip().splitlines()) for name, text in texts.items()
    }


def _own_help(name: str) -> str:
    """Return the help of a command that reads its words itself."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        print_help(["--help"]) if name == "gate" else run_hook(["--help"])
    return printed.getvalue()


def _parser_help(name: str, parser: argparse.ArgumentParser) -> dict[str, str]:
    texts = {name: parser.format_help()}
    for action, child in subparsers(parser).items():
        texts |= _parser_help(f"{name} {action}", child)
    return texts


def page(texts: dict[str, str]) -> str:
    return HEADING + "".join(f"\n## {name}\n\n```text\n{text}\n```\n" for name, text in texts.items())


def exit_codes_page(texts: dict[str, str]) -> str:
    """Return what each command says about its exit codes; what most of them say, only once."""
    codes = {name: _EXIT_CODE.findall(text.partition("Exit codes:\n")[2]) for name, text in texts.items()}
    counts = Counter(row for rows in codes.values() for row in rows)
    common = [row for row, count in counts.items() if count > 5 and int(row[0].split()[0]) > 20]
    own = {name: [row for row in rows if row not in common] for name, rows in codes.items()}
    sections = (f"\n## {name}\n\n{_exit_codes(rows)}" for name, rows in own.items() if rows)
    return (
        EXIT_CODES_HEADING
        + _exit_codes(sorted(common, key=lambda row: int(row[0].split()[0])))
        + "".join(sections)
    )


def _exit_codes(rows: list[tuple[str, str]]) -> str:
    cells = (f"| {code} | {' '.join(meaning.split())} |\n" for code, meaning in rows)
    return "| code | meaning |\n|---|---|\n" + "".join(cells)


def man(texts: dict[str, str]) -> str:
    sections = [f".SH {name.upper()}\n.nf\n{_escape(text)}\n.fi\n" for name, text in texts.items()]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text()
    released = re.search(rf"^## \[{re.escape(version)}\] - (\d.*)$", changes, re.MULTILINE)
    heading = MAN_HEADING.replace("DATE", released[1] if released else "").replace("VERSION", version)
    return heading + "".join(sections)


def _escape(text: str) -> str:
    """Escape what roff would read as its own: backslashes, hyphens, and a control character that begins a line."""
    lines = (line.replace("\\", r"\e").replace("-", r"\-") for line in text.splitlines())
    return "\n".join(rf"\&{line}" if line.startswith((".", "'")) else line for line in lines)


if __name__ == "__main__":
    MAN.parent.mkdir(exist_ok=True)
    texts = help_texts()
    for path, text in ((PAGE, page(texts)), (EXIT_CODES, exit_codes_page(texts)), (MAN, man(texts))):
        path.write_text(text, encoding="utf-8")
        print(f"written   {path.relative_to(ROOT)}")
