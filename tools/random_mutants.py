"""Makes one random mistake for each of some random requirements, and prints which of them the requirement's tests notice.

A requirement is chosen with the seed, its tests are run while each executed line is recorded, and a condition, a
comparison, a returned value or a constant in one of these lines is changed. Lines that the tests of many chosen
requirements execute are chosen less often. A mutant that survives has to be read by a person: it can be a gap in the
tests, make no difference, or not concern what the requirement says.

    python -m tools.random_mutants --seed 1
"""

import argparse
import ast
import random
import sys
import sysconfig
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.mutants import ROOT, Tree, make_copy, run_tests, write_source

TIMEOUT_S = 900
Lines = frozenset[tuple[str, int]]  # the file, relative to the root, and the line

# Run at the start of each Python process of a copy. Threads and forked processes are traced too.
TRACER = """
import os, sys, threading
SOURCE, TRACE = {source!r}, {trace!r}
seen = set()

def line(frame, event, _):
    place = frame.f_code.co_filename, frame.f_lineno
    if place not in seen:
        seen.add(place)
        try:
            with open(TRACE, "a") as file:
                file.write("%s:%d\\n" % place)
        except OSError:
            pass
    return line

def call(frame, event, _):
    return line if frame.f_code.co_filename.startswith(SOURCE) else None

if os.path.exists(TRACE):
    threading.settrace(call)
    sys.settrace(call)
"""


@dataclass(frozen=True)
class Mutation:
    file: str
    line: int
    old: str
    new: str
    text: str  # of the whole mutated file

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.old!r} → {self.new!r}"


# The operators

SWAPPED = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


def replacements(node: ast.AST, text: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield expressions of a statement or an expression with what replaces them."""

    def source(part: ast.AST) -> str:
        return ast.get_source_segment(text, part) or ""

    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({source(test)}))"
        case ast.Return(value=ast.expr() as value) if not is_none(value):
            yield value, "None"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            yield node, f"({word.join(f'({source(value)})' for value in values)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"bool({source(operand)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield node, f"{source(left)} {SWAPPED[type(op)]} {source(right)}"
        case ast.Constant(value=bool() as value):
            yield node, str(not value)
        case ast.Constant(value=int() as value):
            yield node, str(value + 1)
        case ast.Constant(value=str() as value):
            yield node, repr(f"{value}_")
        case _:
            pass


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def mutable(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a function whose change can be seen: no docstring, annotation, pattern or part of an f-string."""
    for name, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            is_text = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            if name in ("annotation", "returns", "decorator_list", "pattern") or is_text:
                continue
            if isinstance(part, ast.AST):
                yield part
                if not isinstance(part, ast.JoinedStr):
                    yield from mutable(part)


def mutations(root: Path, lines: Lines) -> Iterator[Mutation]:
    """Yield every mutation of an executed line that is inside of a function."""
    for file in sorted({file for file, _ in lines}):
        text = (root / file).read_text("utf-8")
        executed = {line for name, line in lines if name == file}
        for function in outer_functions(ast.parse(text)):
            for node in mutable(function):
                for old, new in replacements(node, text):
                    if old.lineno in executed:
                        yield mutate(file, text, old, new)


def outer_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            yield from outer_functions(node)


def mutate(file: str, text: str, old: ast.expr, new: str) -> Mutation:
    lines = text.encode().splitlines(keepends=True)  # the columns of a node are bytes
    assert old.end_lineno is not None
    start = sum(map(len, lines[: old.lineno - 1])) + old.col_offset
    end = sum(map(len, lines[: old.end_lineno - 1])) + (old.end_col_offset or 0)
    data = text.encode()
    mutated = (data[:start] + new.encode() + data[end:]).decode()
    return Mutation(file, old.lineno, data[start:end].decode(), new, mutated)


# Runs


class Copy:
    """A copy of the tree, in which one requirement after another is traced or tried."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree = make_copy(ROOT, folder), Tree(ROOT)
        self.trace = folder / "trace"
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder / ".venv")}))
        tracer = TRACER.format(source=str(folder / "src"), trace=str(self.trace))
        (packages / "tracer.py").write_text(tracer, "utf-8")
        (packages / "tracer.pth").write_text("import tracer\n", "utf-8")

    def passes(self, req: str, *words: str) -> bool:
        return run_tests(self.folder, [*self.tree.words_of(req), *words], TIMEOUT_S).code == 0

    def executed(self, req: str) -> Lines:
        """Return the lines of the source that the tests of a requirement execute; none if the tests fail."""
        self.trace.write_text("")
        passed = self.passes(req, "-m", "not slow")
        places = [line.rpartition(":") for line in self.trace.read_text("utf-8").splitlines()]
        self.trace.unlink()
        if not passed and not self.passes(req):  # a test can fail only because it is traced
            return frozenset()
        return frozenset((str(Path(file).relative_to(self.folder)), int(line)) for file, _, line in places)

    def verdict(self, req: str, mutation: Mutation) -> str:
        path = self.folder / mutation.file
        original = path.read_text("utf-8")
        write_source(path, mutation.text)
        try:
            return "SURVIVED" if self.passes(req) else "killed"
        finally:
            write_source(path, original)


def choose(
    found: Iterable[Mutation], number: int, spread: Counter[tuple[str, int]], rng: random.Random
) -> list[Mutation]:
    """Choose some at random. The fewer of the requirements execute a line, the likelier it is chosen."""
    keys = {each: rng.random() ** (spread[each.file, each.line] ** 2) for each in found}
    return sorted(keys, key=keys.__getitem__, reverse=True)[:number]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40, help="requirements (default: 40)")
    parser.add_argument("--each", type=int, default=1, help="mutants of each requirement (default: 1)")
    parser.add_argument("--only", default="", help="these requirements instead of random ones: S0-56,C-10")
    parser.add_argument("--workers", type=int, default=2, help="runs at the same time (default: 2)")
    options = parser.parse_args(words)
    rng = random.Random(options.seed)
    known = sorted(tomllib.loads((ROOT / "tests" / "requirements.toml").read_text("utf-8")))
    reqs = options.only.replace(",", " ").split() or sorted(rng.sample(known, options.count))
    verdicts = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        mine = threading.local()

        def make() -> None:
            mine.copy = Copy(Path(scratch, str(threading.get_ident())))

        with ThreadPoolExecutor(options.workers, initializer=make) as pool:
            lines = list(pool.map(lambda req: mine.copy.executed(req), reqs))  # noqa: PLW0108 - in its thread
            spread = Counter(place for places in lines for place in places)
            chosen = [
                (req, mutation)
                for req, places in zip(reqs, lines, strict=True)
                for mutation in choose(mutations(ROOT, places), options.each, spread, rng)
            ]
            results = pool.map(lambda each: mine.copy.verdict(*each), chosen)
            for (req, mutation), verdict in zip(chosen, results, strict=False):
                verdicts[verdict] += 1
                print(f"{verdict:<8}  {req:<6} {mutation}", flush=True)
    failing = [req for req, places in zip(reqs, lines, strict=True) if not places]
    print(f"seed {options.seed}: {dict(verdicts)}; tests that fail without a mutation: {failing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
