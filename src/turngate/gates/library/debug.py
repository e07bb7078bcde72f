"""The gate `debug`: the added lines contain no breakpoint, and no print in code that does not print."""

import re

from turngate.core.globs import matches_globs
from turngate.gates.added_lines import line_gate
from turngate.gates.source_text import Source, is_test_file, language_of

_BREAKPOINT = re.compile(
    r"(?<![.\w])breakpoint\(\)|\b(?:pdb|ipdb|pudb)\.(?:set_trace|post_mortem)\(|^\s*(?:import|from) i?pdb\b|^\s*debugger\s*;?\s*$"
    r"|\bbinding\.(?:pry|irb)\b|\bbyebug\b|\bdbg!\(|\b(?:var_dump|dd)\(|\bDebugger\.Break\("
)
_PRINT = {
    "python": r"^\s*(?:print|pprint(?:\.pprint)?|ic)\((?!.*\bfile=)",
    "javascript": r"\bconsole\.(?:log|debug|dir|table|trace)\(",
    "markup": r"\bconsole\.(?:log|debug|dir|table|trace)\(",
    "go": r"\bfmt\.Print(?:ln|f)?\(|\bspew\.Dump\(",
    "rust": r"\bprintln!\(",
    "java": r"\bSystem\.(?:out|err)\.print|\.printStackTrace\(\)|^\s*println\(",
    "c": r"\bNSLog\(|\bConsole\.Write(?:Line)?\(|\bprint_r\(|\bdebugPrint\(",
}
_PRINTS = {language: re.compile(pattern) for language, pattern in _PRINT.items()}
# Their output is what they are for.
PRINTING_FILES = tuple(
    "scripts script bin tools tool cli cmd examples example docs bench benchmarks demo notebooks __main__.py build.rs {main,Main,Program}.* *cli*.* "
    "manage.py setup.py noxfile.py tasks.py commands *.config.* gulpfile.* *.{sh,rb,pl}".split()
)
_PROGRAM = re.compile(
    r"^#!|\b(?:argparse|optparse|click|typer|fire|docopt|commander|yargs|cobra|clap)\b|__name__\s*=="
)


def find_debug(path: str, source: Source, place: int) -> str | None:
    if _BREAKPOINT.search(source.code[place]):
        return "breakpoint"
    pattern = _PRINTS.get(language_of(path) or "")
    if not pattern or not pattern.search(source.code[place]):
        return None
    is_meant = (
        is_test_file(path) or matches_globs(PRINTING_FILES, path) or any(map(_PROGRAM.search, source.text))
    )
    return None if is_meant or _PROGRAM.search(source.comments[0]) else "print"


DEBUG = line_gate(
    "debug",
    "the added lines contain no breakpoint or debug print",
    "contain debugging code",
    "Remove them, or write to the log that the project uses.",
    find_debug,
)
