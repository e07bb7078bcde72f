"""Makes a random mistake for each of 40 random requirements, and prints which of them the requirement's own tests notice.

The tests of a requirement are run while the executed lines are recorded. In one of these lines a condition, a comparison,
a returned value or a constant is changed, and the tests are run again. A mutant that survives has to be read by a person:
it shows a gap in the tests, or it makes no difference, or it does not concern what the requirement says.
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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from tools.mutants import DEFAULT_TIMEOUT_S, ROOT, Tree, make_copy, run_tests, write_source

Line = tuple[str, int]  # the file, relative to the root, and the number

# Loaded at the start of each Python process of a copy, so that the processes that tests start are traced too.
TRACER = """
import os, sys, threading
seen = set()

def on_line(frame, event, _):
    place = frame.f_code.co_filename, frame.f_lineno
    if place not in seen:
        seen.add(place)
        try:
            with open({trace!r}, "a") as file:
                file.write("%s:%d\\n" % place)
        except OSError:  # no disk, or no descriptor: a test takes them away
            pass
    return on_line

def on_call(frame, event, _):
    return on_line if frame.f_code.co_filename.startswith({source!r}) else None

if os.path.exists({trace!r}):
    threading.settrace(on_call)
    sys.settrace(on_call)
"""


# Mutations


class Mutation(NamedTuple):
    file: str
    line: int
    first: int  # byte, of the part that is replaced
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.old!r} → {self.new!r}"

    def apply(self, text: str) -> str:
        data, old = text.encode(), self.old.encode()
        return (data[: self.first] + self.new.encode() + data[self.first + len(old) :]).decode()


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


def replacement(node: ast.AST, source: Callable[[ast.expr], str]) -> tuple[ast.expr, str] | None:
    """Return an expression, the node or a part of it, and what replaces it."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            return test, f"(not ({source(test)}))"
        case ast.Return(value=ast.expr() as value) if source(value) != "None":
            return value, "None"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            return node, f"({word.join(f'({source(value)})' for value in values)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return node, f"bool({source(operand)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return node, f"{source(left)} {SWAPPED[type(op)]} {source(right)}"
        case ast.Constant(value=bool() as value):
            return node, str(not value)
        case ast.Constant(value=int() as value):
            return node, str(value + 1)
        case ast.Constant(value=str() as value):
            return node, repr(f"{value}_")
        case _:
            return None


def parts(node: ast.AST, *, inside: bool = False) -> Iterator[ast.AST]:
    """Yield what is inside of functions, except docstrings, annotations, decorators, patterns and f-strings."""
    for name, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            is_text = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            is_skipped = name in ("annotation", "returns", "decorator_list", "pattern") or is_text
            if not isinstance(part, ast.AST) or is_skipped or isinstance(part, ast.JoinedStr):
                continue
            if inside:
                yield part
            yield from parts(part, inside=inside or isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))


class Source:
    """The text of a node; `ast.get_source_segment` splits the whole file for each one."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._lines = [0, *accumulate(len(line) for line in data.splitlines(keepends=True))]

    def start(self, node: ast.expr) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def __call__(self, node: ast.expr) -> str:
        end = self._lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return self.data[self.start(node) : end].decode()


def mutations(root: Path, executed: Iterable[Line]) -> Iterator[Mutation]:
    """Yield every mutation of these lines."""
    lines = set(executed)
    for file in sorted({file for file, _ in lines}):
        source = Source((root / file).read_bytes())
        for node in parts(ast.parse(source.data)):
            found = replacement(node, source)
            if found and (file, found[0].lineno) in lines:
                old, new = found
                yield Mutation(file, old.lineno, source.start(old), source(old), new)


def choose(
    found: Iterable[Mutation], number: int, spread: Counter[Line], rng: random.Random
) -> list[Mutation]:
    """Choose some at random. The fewer of the requirements execute a line, the likelier it is chosen."""
    keys = {each: rng.random() ** (spread[each.file, each.line] ** 2) for each in found}
    return sorted(keys, key=keys.__getitem__, reverse=True)[:number]


# Runs


class Copy:
    """A copy of the tree, in which the tests of one requirement after another are run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree = make_copy(ROOT, folder), Tree(ROOT)
        self.trace = folder / "trace"
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder / ".venv")}))
        tracer = TRACER.format(source=str(folder / "src"), trace=str(self.trace))
        (packages / "tracer.py").write_text(tracer, "utf-8")
        (packages / "tracer.pth").write_text("import tracer\n", "utf-8")

    def passes(self, req: str, *words: str) -> bool:
        return run_tests(self.folder, [*self.tree.words_of(req), *words], DEFAULT_TIMEOUT_S).code == 0

    def executed(self, req: str) -> set[Line]:
        """Return the lines of the source that the tests execute; none if the tests fail."""
        self.trace.touch()
        passed = self.passes(req, "-m", "not slow")
        places = [line.rpartition(":") for line in self.trace.read_text("utf-8").splitlines()]
        self.trace.unlink()
        if not passed and not self.passes(req):  # a test can fail only because it is traced
            return set()
        return {(str(Path(file).relative_to(self.folder)), int(line)) for file, _, line in places}

    def verdict(self, req: str, mutation: Mutation) -> str:
        path = self.folder / mutation.file
        original = path.read_text("utf-8")
        write_source(path, mutation.apply(original))
        try:
            return "SURVIVED" if self.passes(req) else "killed"
        finally:
            write_source(path, original)


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
    mine, total = threading.local(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:

        def begin() -> None:
            mine.copy = Copy(Path(scratch, str(threading.get_ident())))

        with ThreadPoolExecutor(options.workers, initializer=begin) as pool:
            lines = dict(zip(reqs, pool.map(lambda req: mine.copy.executed(req), reqs), strict=True))  # noqa: PLW0108
            spread = Counter(line for each in lines.values() for line in each)
            chosen = [
                (req, each)
                for req in reqs
                for each in choose(mutations(ROOT, lines[req]), options.each, spread, rng)
            ]
            verdicts = pool.map(lambda each: mine.copy.verdict(*each), chosen)
            for (req, mutation), verdict in zip(chosen, verdicts, strict=True):
                total[verdict] += 1
                print(f"{verdict:<8}  {req:<5}  {mutation}", flush=True)
    failing = [req for req in reqs if not lines[req]]
    print(f"seed {options.seed}: {total['killed']} killed, {total['SURVIVED']} survived")
    print(f"tests fail without a mutation: {', '.join(failing)}" if failing else "", end="")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
