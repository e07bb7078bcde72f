"""Applies each row of tests/mutants/*.toml to a copy of the tree and checks that the row's tests fail there.

A row names a file, a text that occurs in it exactly once (`old`), its replacement (`new`), and what must fail: `tests`
(each of these node ids) or `req` (at least one test with this marker). The working tree is never changed. Each copy has
its own virtual environment, so that the processes that tests start import the mutated source as well.
"""

import argparse
import contextlib
import functools
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_TIMEOUT_S = 600  # of the tests of one row
NOT_COPIED = (".git", ".venv", "dist", "__pycache__", ".*_cache", ".hypothesis")
LINE = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED) (tests/\S+?::\S.*?)(?: - .*)?$", re.MULTILINE)

Verdict = Literal["killed", "SURVIVED", "ERROR"]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One row of a table."""

    name: str  # the table and the name of the row, e.g. `core/matcher-list`
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    req: str = ""
    timeout: float = DEFAULT_TIMEOUT_S
    timeout_kills: bool = False  # for a mutation that makes its test wait forever


@dataclass(frozen=True)
class Result:
    mutant: Mutant
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True)
class Outcome:
    """One run of pytest."""

    code: int | None  # None: it timed out
    failed: frozenset[str]
    output: str


# The tables


def read_tables(root: Path) -> list[Mutant]:
    """Return the rows of all tables. A row with a key that is unknown or missing is a TypeError."""
    files = sorted((root / "tests" / "mutants").glob("*.toml"))
    return [_row(file, row) for file in files for row in tomllib.loads(file.read_text("utf-8"))["mutant"]]


def _row(file: Path, row: Mapping[str, Any]) -> Mutant:
    return Mutant(
        **{**row, "name": f"{file.stem}/{row.get('name', '')}", "tests": tuple(row.get("tests", ()))}
    )


def select(mutants: Iterable[Mutant], only: str) -> list[Mutant]:
    """Return the rows whose name contains one of these words; all of them if there is no word."""
    words = only.replace(",", " ").split()
    return [mutant for mutant in mutants if not words or any(word in mutant.name for word in words)]


def stale(root: Path, mutant: Mutant) -> str | None:
    """Return why a row no longer fits the tree, or None."""
    file = root / mutant.file
    if not file.is_file():
        return f"{mutant.file} does not exist"
    times = file.read_text("utf-8").count(mutant.old)
    if times != 1:
        return f"its `old` text occurs {times} times in {mutant.file}, expected once"
    if mutant.old == mutant.new:
        return "its `new` text is the `old` one"
    if bool(mutant.tests) == bool(mutant.req):
        return "it needs either `tests` or `req`"
    if mutant.req and not files_with_req(root, mutant.req):
        return f"no test has the marker {mutant.req}"
    missing = [test for test in mutant.tests if not _exists(root, test)]
    return f"there is no test {missing[0]}" if missing else None


def _exists(root: Path, test: str) -> bool:
    file, _, name = test.partition("::")
    function = name.split("[")[0].rpartition("::")[2]
    path = root / file
    return (
        path.is_file() and re.search(rf"\bdef {re.escape(function)}\(", path.read_text("utf-8")) is not None
    )


def files_with_req(root: Path, req: str) -> list[str]:
    tests = sorted((root / "tests").rglob("test_*.py"))
    return [str(file.relative_to(root)) for file in tests if f'"{req}"' in file.read_text("utf-8")]


# Copies of the tree


def make_copy(root: Path, folder: Path) -> Path:
    """Copy the tree to a folder, with a virtual environment that imports from there."""
    shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    environment = folder / ".venv"
    venv.create(environment, symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(environment)})
    # A `.pth` file is not read from a folder that another one names, so the editable install is not seen.
    installed = sysconfig.get_path("purelib")
    Path(packages, "copy.pth").write_text(f"{folder / 'src'}\n{installed}\n", "utf-8")
    _copy_scripts(Path(sysconfig.get_path("scripts")), environment / "bin")
    return folder


def _copy_scripts(source: Path, target: Path) -> None:
    for script in source.iterdir():
        if script.is_file() and not (target / script.name).exists():
            data = script.read_bytes()
            own = data.replace(bytes(source / "python"), bytes(target / "python"))
            (target / script.name).write_bytes(own) if own != data else (target / script.name).symlink_to(
                script
            )
            (target / script.name).chmod(0o755)


def replace_text(path: Path, old: str, new: str) -> None:
    """Edit a file. Its bytecode is removed, since it may look current: same size, same second."""
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


# Runs


def run_tests(folder: Path, words: Iterable[str], timeout: float) -> Outcome:
    command = [
        str(folder / ".venv/bin/python"),
        "-m",
        "pytest",
        "-q",
        "-rA",
        "-p",
        "no:cacheprovider",
        *words,
    ]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=folder, env=_environ(folder), stdout=output, stderr=output, start_new_session=True
        )
        try:
            code: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _kill_group(process)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    failed = frozenset(test for state, test in LINE.findall(text) if state in ("FAILED", "ERROR"))
    return Outcome(code, failed, text)


def _environ(folder: Path) -> dict[str, str]:
    """Return the environment of a run. Two runs of pytest that share a folder remove each other's files."""
    temporary = folder.with_name(f"{folder.name}-tmp")
    temporary.mkdir(exist_ok=True)
    left_out = ("PYTHONPATH", "PYTHONHOME", "PYTEST_ADDOPTS", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if key not in left_out and "XDIST" not in key}
    path = f"{folder / '.venv/bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**kept, "PATH": path, "PYTEST_DEBUG_TEMPROOT": str(temporary)}


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of a run behind: neither a pytest that hangs nor what its tests started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def words_of(root: Path, mutant: Mutant) -> list[str]:
    if mutant.req:
        return ["-x", "--req", mutant.req, *files_with_req(root, mutant.req)]
    return [*(["-x"] if len(mutant.tests) == 1 else []), *mutant.tests]


def has_failed(test: str, failed: Iterable[str]) -> bool:
    """Return whether a test, or one case of it, is among the failed ones."""
    return any(each == test or each.startswith(f"{test}[") for each in failed)


def run_mutant(folder: Path, mutant: Mutant) -> Result:
    """Apply one row in a copy, run its tests, and undo it."""
    path = folder / mutant.file
    original = path.read_text("utf-8")
    replace_text(path, mutant.old, mutant.new)
    try:
        return judge(mutant, run_tests(folder, words_of(folder, mutant), mutant.timeout))
    finally:
        replace_text(path, path.read_text("utf-8"), original)


def judge(mutant: Mutant, outcome: Outcome) -> Result:
    if outcome.code is None:
        if mutant.timeout_kills:
            return Result(mutant, "killed", f"no end after {mutant.timeout:g} s")
        return Result(mutant, "ERROR", f"its tests did not end within {mutant.timeout:g} s")
    # Python itself also ends with 1, for example if it cannot start a thread.
    if outcome.code not in (0, 1) or (outcome.code == 1 and not outcome.failed):
        return Result(mutant, "ERROR", f"its tests cannot be run: {_error(outcome.output)}")
    passed = [test for test in mutant.tests if not has_failed(test, outcome.failed)]
    if outcome.code == 0 or passed:
        what = ", ".join(passed) or f"all tests of {mutant.req} pass"
        return Result(mutant, "SURVIVED", f"{what}; exit code {outcome.code} of pytest")
    return Result(mutant, "killed")


def _error(text: str) -> str:
    """Return the last error that pytest shows, or else its last line."""
    errors = re.findall(r"^E +(\S.*)$", text, re.MULTILINE)
    return errors[-1] if errors else text.strip().rpartition("\n")[2]


def failing_without(folder: Path, mutants: Iterable[Mutant], workers: int) -> dict[str, str]:
    """Run the tests of these rows without a mutation; return by name of the row why it cannot be judged."""
    mutants = list(mutants)
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    reqs = sorted({mutant.req for mutant in mutants if mutant.req})
    parallel = ["-n", str(workers)] if workers > 1 else []
    problems: dict[str, str] = {}
    if tests:
        outcome = run_tests(folder, [*parallel, *tests], DEFAULT_TIMEOUT_S * 5)
        for mutant in mutants:
            failed = [test for test in mutant.tests if has_failed(test, outcome.failed)]
            if failed:
                problems[mutant.name] = f"{failed[0]} fails without the mutation"
            elif mutant.tests and outcome.code not in (0, 1):
                problems[mutant.name] = f"the tests cannot be run: {_error(outcome.output)}"
    for req in reqs:
        outcome = run_tests(
            folder, [*parallel, "--req", req, *files_with_req(folder, req)], DEFAULT_TIMEOUT_S
        )
        if outcome.code != 0:
            because = f"the tests of {req} fail without the mutation: {_error(outcome.output)}"
            problems |= {mutant.name: because for mutant in mutants if mutant.req == req}
    return problems


def run(root: Path, mutants: list[Mutant], workers: int, report: Callable[[Result], None]) -> None:
    """Judge all rows, `workers` at the same time, and report them in the order of the tables."""
    outdated = {mutant.name: why for mutant in mutants if (why := stale(root, mutant))}
    fitting = [mutant for mutant in mutants if mutant.name not in outdated]
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(max(1, min(workers, len(fitting)))):
            copies.put(make_copy(root, Path(scratch, str(number))))
        first = copies.get()
        problems = outdated | failing_without(first, fitting, workers)
        copies.put(first)
        for name, why in problems.items():
            report(Result(next(mutant for mutant in mutants if mutant.name == name), "ERROR", why))
        with ThreadPoolExecutor(workers) as pool:
            sound = [mutant for mutant in mutants if mutant.name not in problems]
            for result in pool.map(functools.partial(_run_in_one_of, copies), sound):
                report(result)


def _run_in_one_of(copies: "queue.SimpleQueue[Path]", mutant: Mutant) -> Result:
    folder = copies.get()
    try:
        return run_mutant(folder, mutant)
    finally:
        copies.put(folder)


# The command


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name contains one of these words, e.g. core")
    parser.add_argument("--workers", type=int, default=2, help="rows at the same time (default: 2)")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    mutants = select(read_tables(options.root), options.only)
    results: list[Result] = []

    def report(result: Result) -> None:
        results.append(result)
        print("  ".join(_line(result)), flush=True)

    run(options.root, mutants, options.workers, report)
    totals = {
        verdict: sum(each.verdict == verdict for each in results)
        for verdict in ("killed", "SURVIVED", "ERROR")
    }
    print(
        f"{len(results)} mutants: {totals['killed']} killed, {totals['SURVIVED']} survived, {totals['ERROR']} errors"
    )
    return 0 if totals["killed"] == len(results) > 0 else 1


def _line(result: Result) -> Iterator[str]:
    yield f"{result.verdict:<8}"
    yield result.mutant.name
    if result.detail:
        yield f"({result.detail})"


if __name__ == "__main__":
    sys.exit(main())
