"""Applies each row of tests/mutants/*.toml to a copy of the tree and checks that the row's tests fail there.

A row names a function, a text that occurs in it exactly once (`old`), its replacement (`new`), and what must fail: `tests`
(each of these) or `req` (at least one test with this marker). The working tree is never changed. Each copy has its own
virtual environment, so that the processes that tests start import the mutated source as well.
"""

import argparse
import ast
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
    function: str  # `LoopGuard.after`, or where several modules have it `loop_guard:LoopGuard.after`
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


@dataclass(frozen=True)
class Place:
    """A function, class or constant of the source or of an example, or a test."""

    file: str
    lines: tuple[int, int] = (0, 0)  # the first one, and the one after the last


@dataclass(frozen=True)
class Fit:
    """A row in the tree as it is now."""

    mutant: Mutant
    place: Place
    words: tuple[str, ...]  # for pytest
    tests: tuple[str, ...]  # node ids that must all fail; none: one failed test is enough

    def mutate(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        first, end = self.place.lines
        body = "".join(lines[first:end]).replace(self.mutant.old, self.mutant.new)
        return "".join((*lines[:first], body, *lines[end:]))


class Tree:
    """The names in the source and in the tests, each with its places: modules may move, names seldom change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source: dict[str, list[Place]] = {}
        self.tests: dict[str, list[Place]] = {}
        self.texts = {
            self._name(file): file.read_text("utf-8") for file in sorted(root.glob("tests/**/test_*.py"))
        }
        self.support = "".join(file.read_text("utf-8") for file in root.glob("tests/support/**/*.py"))
        for file, text in self.texts.items():
            for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", text, re.MULTILINE):
                self.tests.setdefault(name, []).append(Place(file))
        for path in sorted((*root.glob("src/**/*.py"), *root.glob("examples/**/*.py"))):
            self._add(self._name(path), ast.parse(path.read_bytes()), "")

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _add(
        self,
        file: str,
        parent: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
        above: str,
    ) -> None:
        for node in parent.body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names, first = (
                        [node.name],
                        min([node.lineno, *(each.lineno for each in node.decorator_list)]),
                    )
                    self._add(file, node, f"{above}{node.name}.")
                case ast.Assign() | ast.AnnAssign() if isinstance(parent, ast.Module | ast.ClassDef):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    names, first = [each.id for each in targets if isinstance(each, ast.Name)], node.lineno
                case _:
                    continue
            for name in names:
                place = Place(file, (first - 1, node.end_lineno or first))
                self.source.setdefault(above + name, []).append(place)

    def fit(self, mutant: Mutant) -> Fit | str:
        """Find the function and the tests of a row; return why it does not fit where one is not there."""
        place = find(self.source, mutant.function)
        if isinstance(place, str):
            return place
        body = (self.root / place.file).read_text("utf-8").splitlines(keepends=True)[slice(*place.lines)]
        if (times := "".join(body).count(mutant.old)) != 1:
            return f"its `old` text occurs {times} times in {mutant.function}, expected once"
        if mutant.old == mutant.new:
            return "its `new` text is the `old` one"
        if bool(mutant.tests) == bool(mutant.req):
            return "it needs either `tests` or `req`"
        if mutant.req:
            words = self.words_of(mutant.req)
            return Fit(mutant, place, words, ()) if words else f"no test has the marker {mutant.req}"
        tests = []
        for test in mutant.tests:
            name, bracket, case = test.partition("[")
            found = find(self.tests, name)
            if isinstance(found, str):
                return found
            tests.append(f"{found.file}::{name.rpartition(':')[2]}{bracket}{case}")
        return Fit(mutant, place, (*(["-x"] if len(tests) == 1 else []), *tests), tuple(tests))

    def words_of(self, req: str) -> tuple[str, ...]:
        """Return what pytest needs to run the tests of a requirement up to the first failure; nothing if it has none."""
        files = [file for file, text in self.texts.items() if f'"{req}"' in text]
        if f'"{req}"' in self.support:  # any test may use a table that has the marker
            files = ["tests"]
        return ("-x", "--req", req, *files) if files else ()


def find(places: Mapping[str, list[Place]], name: str) -> Place | str:
    """Return the only place of a name, or what is wrong. Its module can be before a colon; that of an example must be."""
    module, _, own = name.rpartition(":")
    named = places.get(own, [])
    if module:
        found = [each for each in named if f"/{each.file}".endswith(f"/{module}.py")]
    else:
        found = [each for each in named if not each.file.startswith("examples/")]
    if len(found) == 1:
        return found[0]
    where = ", ".join(each.file for each in found)
    return f"{name} is in {where}; put the module before a colon" if found else f"there is no {name}"


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


def write_source(path: Path, text: str) -> None:
    """Write a file. Its bytecode is removed, since it may look current: same size, same second."""
    path.write_text(text, "utf-8")
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


def has_failed(test: str, failed: Iterable[str]) -> bool:
    """Return whether a test, or one case of it, is among the failed ones."""
    return any(each == test or each.startswith(f"{test}[") for each in failed)


def run_mutant(folder: Path, fit: Fit) -> Result:
    """Apply one row in a copy, run its tests, and undo it."""
    path = folder / fit.place.file
    original = path.read_text("utf-8")
    write_source(path, fit.mutate(original))
    try:
        return judge(fit, run_tests(folder, fit.words, fit.mutant.timeout))
    finally:
        write_source(path, original)


def judge(fit: Fit, outcome: Outcome) -> Result:
    mutant = fit.mutant
    if outcome.code is None:
        if mutant.timeout_kills:
            return Result(mutant, "killed", f"no end after {mutant.timeout:g} s")
        return Result(mutant, "ERROR", f"its tests did not end within {mutant.timeout:g} s")
    # Python itself also ends with 1, for example if it cannot start a thread.
    if outcome.code not in (0, 1) or (outcome.code == 1 and not outcome.failed):
        return Result(mutant, "ERROR", f"its tests cannot be run: {_error(outcome.output)}")
    passed = [test for test in fit.tests if not has_failed(test, outcome.failed)]
    if outcome.code == 0 or passed:
        what = ", ".join(passed) or f"all tests of {mutant.req} pass"
        return Result(mutant, "SURVIVED", f"{what}; exit code {outcome.code} of pytest")
    return Result(mutant, "killed")


def _error(text: str) -> str:
    """Return the last error that pytest shows, or else its last line."""
    errors = re.findall(r"^E +(\S.*)$", text, re.MULTILINE)
    return errors[-1] if errors else text.strip().rpartition("\n")[2]


def failing_without(folder: Path, fits: list[Fit], workers: int) -> dict[str, str]:
    """Run the tests of these rows without a mutation; return by name of the row why it cannot be judged."""
    parallel = ["-n", str(workers)] if workers > 1 else []
    problems: dict[str, str] = {}
    tests = sorted({test for fit in fits for test in fit.tests})
    if tests:
        outcome = run_tests(folder, [*parallel, *tests], DEFAULT_TIMEOUT_S * 5)
        for fit in fits:
            failed = [test for test in fit.tests if has_failed(test, outcome.failed)]
            if failed:
                problems[fit.mutant.name] = f"{failed[0]} fails without the mutation"
            elif fit.tests and outcome.code not in (0, 1):
                problems[fit.mutant.name] = f"the tests cannot be run: {_error(outcome.output)}"
    for req in sorted({fit.mutant.req for fit in fits if fit.mutant.req}):
        same = [fit for fit in fits if fit.mutant.req == req]
        outcome = run_tests(folder, [*parallel, *same[0].words], DEFAULT_TIMEOUT_S)
        if outcome.code != 0:
            because = f"the tests of {req} fail without the mutation: {_error(outcome.output)}"
            problems |= {fit.mutant.name: because for fit in same}
    return problems


def fit_all(root: Path, mutants: list[Mutant], report: Callable[[Result], None]) -> list[Fit]:
    """Return the rows that fit the tree, and report the others."""
    tree = Tree(root)
    fits: list[Fit] = []
    for mutant in mutants:
        fit = tree.fit(mutant)
        report(Result(mutant, "ERROR", fit)) if isinstance(fit, str) else fits.append(fit)
    return fits


def run(root: Path, fits: list[Fit], workers: int, report: Callable[[Result], None]) -> None:
    """Judge all rows, `workers` at the same time, and report them in the order of the tables."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(max(1, min(workers, len(fits)))):
            copies.put(make_copy(root, Path(scratch, str(number))))
        first = copies.get()
        problems = failing_without(first, fits, workers)
        copies.put(first)
        for fit in fits:
            if fit.mutant.name in problems:
                report(Result(fit.mutant, "ERROR", problems[fit.mutant.name]))
        with ThreadPoolExecutor(workers) as pool:
            sound = [fit for fit in fits if fit.mutant.name not in problems]
            for result in pool.map(functools.partial(_run_in_one_of, copies), sound):
                report(result)


def _run_in_one_of(copies: "queue.SimpleQueue[Path]", fit: Fit) -> Result:
    folder = copies.get()
    try:
        return run_mutant(folder, fit)
    finally:
        copies.put(folder)


# The command


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name contains one of these words, e.g. core")
    parser.add_argument("--workers", type=int, default=2, help="rows at the same time (default: 2)")
    parser.add_argument("--fit", action="store_true", help="only check that each row fits the source")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    mutants = select(read_tables(options.root), options.only)
    results: list[Result] = []

    def report(result: Result) -> None:
        results.append(result)
        print("  ".join(_line(result)), flush=True)

    fits = fit_all(options.root, mutants, report)
    if options.fit:
        print(f"{len(fits)} of {len(mutants)} mutants fit")
        return 1 if results else 0
    run(options.root, fits, options.workers, report)
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
