"""`make hosts`: Turngate as the stop hook of real agent programs.

It installs the programs from npm into a folder, plays their models on loopback, runs each one headless with an empty
home, and compares what was seen with what is expected. It exits with 1 if anything differs, and with 64 if it cannot run.
"""

import argparse
import sys
from pathlib import Path

from bench.hosts.npm import CannotInstall, find, install, installed_version, require_npm
from bench.hosts.play import Row, play
from bench.hosts.program import Program
from bench.hosts.programs import PROGRAMS
from bench.hosts.recording import record
from bench.hosts.results import line, page
from bench.hosts.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "reference" / "hosts-results.md"
EXIT_CANNOT_RUN = 64  # never 2: agent programs take that for a block
RECORDED = ROOT / "tests" / "hosts" / "recorded"


def main() -> int:
    options = parse_arguments()
    programs = [
        program for program in PROGRAMS if not options.only or program.name in options.only.split(",")
    ]
    if not programs:
        print(f"--only {options.only}: expected some of {', '.join(program.name for program in PROGRAMS)}")
        return EXIT_CANNOT_RUN
    try:
        require_npm()
        find_or_install = find if options.dir else install
        folder = options.dir or ROOT / ".hosts"
        binaries = {program.name: find_or_install(program, folder) for program in programs}
    except CannotInstall as error:
        print(f"make hosts: {error}", file=sys.stderr)
        return EXIT_CANNOT_RUN
    if options.record:
        for program in programs:
            for file in record(program, binaries[program.name], RECORDED):
                print(f"{program.title}: wrote {file.relative_to(ROOT)}", flush=True)
        return 0
    rows = [
        row for program in programs for row in play_all(program, binaries[program.name], options.scenario)
    ]
    if not options.scenario:
        versions = {program.name: installed_version(program, folder) or "" for program in programs}
        before = RESULTS.read_text() if RESULTS.exists() else ""
        RESULTS.write_text(page(before, PROGRAMS, versions, rows))
        print(f"wrote {RESULTS.relative_to(ROOT)}")
    failed = [row for row in rows if not row.passed]
    print(f"{len(rows) - len(failed)} of {len(rows)} scenarios passed")
    return 1 if failed else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.hosts", description=__doc__)
    parser.add_argument("--only", metavar="NAMES", help="only these programs, with commas: claude,codex")
    parser.add_argument("--scenario", metavar="TEXT", help="only scenarios whose names contain this text")
    parser.add_argument(
        "--dir",
        type=Path,
        help="use the programs of this folder as they are, each in a npm project with the name of its package, "
        "such as DIR/claude-code (default: install them into .hosts)",
    )
    parser.add_argument(
        "--record", action="store_true", help="record hook inputs and transcripts for the tests"
    )
    return parser.parse_args()


def play_all(program: Program, binary: Path, text: str | None) -> list[Row]:
    rows = []
    for scenario in SCENARIOS:
        if scenario.applies(program) and (text or "") in scenario.name:
            print(f"      {program.name}: {scenario.name} …", flush=True)
            rows.append(play(program, binary, scenario))
            print(line(rows[-1]), flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
