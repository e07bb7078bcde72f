"""Recognizes from the output of a failed command that a program, a script or a target is not there. Pure.

Such a command has checked nothing, and an agent that is blocked because of it cannot change that. To add a tool: a line
in `_MESSAGES`, with the message of that tool and nothing that a failing test might print.
"""

import re

from turngate.core.text import one_line
from turngate.gates.failure_output import has_failing_lines

CANNOT_EXECUTE, NOT_FOUND = 126, 127
MAX_WHY_CHARS = 300
LAST_LINES = 12  # of stderr: the message of a tool that does not start is at the end

_MESSAGES = re.compile(
    r"""
      (?:\S*/)?(?:ba|da|z|k|a)?sh:\s(?:line\s)?(?:\d+:\s)?\S+:\s(?:command\s)?not\ found  # sh, bash, dash
    | (?:\S*/)?zsh:(?:\d+:)?\scommand\ not\ found:\s\S+
    | \S+:\s(?:line\s)?\d+:\s\S+:\s(?:command\s)?not\ found     # in a script
    | (?:\S*/)?python[\d.]*:\sNo\ module\ named\s\S+            # python -m TOOL
    | g?make(?:\[\d+\])?:\s\*\*\*\sNo\ rule\ to\ make\ target\s\S+\.\s+Stop\.
    | g?make(?:\[\d+\])?:\s\*\*\*\s.*\sError\s12[67]
    | npm\s(?:ERR!|error)\sMissing\ script:.*
    | npm\s(?:ERR!|error)\s(?:enoent\ )?Could\ not\ read\ package\.json:.*
    | npm\s(?:ERR!|error)\scould\ not\ determine\ executable\ to\ run.*
    | npx\ canceled\ due\ to\ missing\ packages.*
    | \s*ERR_PNPM_NO_SCRIPT.*
    | error\ Command\ ".*"\ not\ found\.?                       # yarn
    | error:\ Script\ not\ found\ ".*"                          # bun
    | error:\ no\ such\ (?:sub)?command:?\s`.*                  # cargo
    | error:\ rustup\ could\ not\ choose\ a\ version\ of\ \S+\ to\ run.*
    | error:\ toolchain\ '.*'\ is\ not\ installed.*           # rustup
    | error:\ could\ not\ find\ `Cargo\.toml`\ in\ .*
    | go:\ (?:cannot\ find\ main\ module|go\.mod\ file\ not\ found).*
    | error:\ Failed\ to\ spawn:\s`.*                           # uv
    | Command\ not\ found:\s\S+                                 # poetry
    """,
    re.VERBOSE,
)


def missing_program(code: int, stdout: str, stderr: str) -> str | None:
    """Return what is not there, or None if the command has failed in another way: also if it reports failures."""
    if has_failing_lines(stdout, stderr):
        return None
    lines = [line.strip() for line in stderr[-20_000:].splitlines() if line.strip()]
    said = next((line for line in lines[-LAST_LINES:] if _MESSAGES.fullmatch(line)), None)
    if said is not None:
        return f"exit code {code}: {one_line(said, MAX_WHY_CHARS)}"
    if code in (CANNOT_EXECUTE, NOT_FOUND):
        last = one_line(lines[-1], MAX_WHY_CHARS) if lines else "a program was not found"
        return f"exit code {code}: {last}"
    return None
