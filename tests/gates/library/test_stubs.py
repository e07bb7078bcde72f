"""Which lines are stubs, and which only look like one."""

import pytest

from turngate.gates.git.output import FilePatch, Line
from turngate.gates.library.no_stubs import find_stubs


def found(path: str, source: str, *, is_new: str = "") -> list[str]:
    """Return the findings in a file whose lines are all new, or only those that contain a text."""
    lines = source.split("\n")
    patch = FilePatch(
        path,
        tuple(
            Line(number, line, "added" if is_new in line else "kept")
            for number, line in enumerate(lines, start=1)
        ),
    )
    return [str(finding).removeprefix(f"{path}:") for finding in find_stubs([patch])]


STUBS = [
    # file, source, what is found
    ("a.py", "x = 1  # TODO: the rest", ["1: TODO: x = 1 # TODO: the rest"]),
    ("a.py", "# FIXME", ["1: FIXME: # FIXME"]),
    ("a.py", "# XXX(me): no", ["1: XXX: # XXX(me): no"]),
    ("a.py", "x = 1  # quotes: TODO(me)", ["1: TODO: x = 1 # quotes: TODO(me)"]),
    ("a.py", "x = 1  # later: a FIXME", ["1: FIXME: x = 1 # later: a FIXME"]),
    ("a.py", "class A(object):\n    def f(self): pass", ["2: empty body: def f(self): pass"]),
    (
        "a.py",
        "class A(Base):\n    def f(self):\n        raise NotImplementedError",
        ["3: not implemented: raise NotImplementedError"],
    ),
    ("a.py", "def f():\n    'Run the hook.'", ["1: empty body: def f():"]),
    ("a.py", "def f():\n    raise NotImplementedError", ["2: not implemented: raise NotImplementedError"]),
    (
        "a.py",
        "def f():\n    raise NotImplementedError('x')",
        ["2: not implemented: raise NotImplementedError('x')"],
    ),
    ("a.py", "def f():\n    pass", ["1: empty body: def f():"]),
    ("a.py", "async def f(\n    a,\n):\n    ...", ["1: empty body: async def f("]),
    ("a.py", 'def f():\n    """Do it."""', ["1: empty body: def f():"]),
    ("a.py", 'def f():\n    """Do it."""\n    pass', ["1: empty body: def f():"]),
    ("a.py", "class A:\n    def f(self): pass", ["2: empty body: def f(self): pass"]),
    (
        "a.py",
        "def f():\n    raise ValueError('not yet implemented')",
        ["2: not implemented: raise ValueError('not yet implemented')"],
    ),
    ("a.py", "def f(:\n    raise NotImplementedError", ["2: not implemented: raise NotImplementedError"]),
    (
        "tests/test_a.py",
        "@pytest.mark.skip\ndef test_a():\n    assert a",
        ["1: skipped test: @pytest.mark.skip"],
    ),
    ("tests/test_a.py", "def test_a():\n    pytest.skip('x')", ["2: skipped test: pytest.skip('x')"]),
    ("tests/test_a.py", "def test_a():\n    pass", ["1: empty body: def test_a():"]),
    (
        "tests/test_a.py",
        "class A(TestCase):\n    def test_a(self):\n        pass",
        ["2: empty body: def test_a(self):"],
    ),
    (
        "test/a.js",
        "sums.skip('adds', () => {\n  same(1, 1);\n});",
        ["1: skipped test: sums.skip('adds', () => {"],
    ),
    (
        "test/a.js",
        "var a = b\n  ? c\n  : d\n\ndescribe('a', function () {\n  it.skip('adds', () => {\n    add()\n  })\n})",
        ["6: skipped test: it.skip('adds', () => {"],
    ),
    ("test/a.js", "if (a &&\n    b(c)) {\n  it.skip('adds', () => {\n    add()\n  })\n}", []),
    ("test/a.js", "if (a)\n{\n  it.skip('adds', () => {\n    add()\n  })\n}", []),
    ("src/a.js", "pages.skip('first', 2);\nrows.skip(2, (row) => row);", []),
    ("a.ts", "// TODO", ["1: TODO: // TODO"]),
    ("a.ts", "/*\n * FIXME later\n */", ["2: FIXME: * FIXME later"]),
    ("a.ts", "function f() {}", ["1: empty body: function f() {}"]),
    (
        "a.ts",
        "export async function f(a: X): Promise<void> {\n}",
        ["1: empty body: export async function f(a: X): Promise<void> {"],
    ),
    ("a.ts", "class A {\n  save(x: number): void {}\n}", ["2: empty body: save(x: number): void {}"]),
    ("a.ts", "class A {\n  private async save() {\n\n  }\n}", ["2: empty body: private async save() {"]),
    ("a.js", "export const save = async (x) => {};", ["1: empty body: export const save = async (x) => {};"]),
    (
        "a.js",
        'throw new Error("Not implemented");',
        ['1: not implemented: throw new Error("Not implemented");'],
    ),
    (
        "a.js",
        "throw Error(`save is not yet implemented`)",
        ["1: not implemented: throw Error(`save is not yet implemented`)"],
    ),
    ("a.test.ts", 'it.skip("x", () => { y() })', ['1: skipped test: it.skip("x", () => { y() })']),
    ("a.test.ts", 'it.todo("x")', ['1: skipped test: it.todo("x")']),
    ("a.go", 'panic("not implemented")', ['1: not implemented: panic("not implemented")']),
    ("a.go", 'panic("TODO")', ['1: not implemented: panic("TODO")']),
    (
        "a.go",
        'return errors.New("not implemented")',
        ['1: not implemented: return errors.New("not implemented")'],
    ),
    ("a_test.go", "t.Skip()", ["1: skipped test: t.Skip()"]),
    ("a.rs", "fn f() { todo!() }", ["1: not implemented: fn f() { todo!() }"]),
    ("a.rs", 'unimplemented!("x")', ['1: not implemented: unimplemented!("x")']),
    ("a.rs", "#[ignore]", ["1: skipped test: #[ignore]"]),
    ("A.kt", 'TODO("later")', ['1: not implemented: TODO("later")']),
    (
        "A.java",
        'throw new UnsupportedOperationException("Not implemented");',
        ['1: not implemented: throw new UnsupportedOperationException("Not implemented");'],
    ),
    (
        "A.cs",
        "throw new NotImplementedException();",
        ["1: not implemented: throw new NotImplementedException();"],
    ),
    ("ATest.java", "@Disabled", ["1: skipped test: @Disabled"]),
    ("a.rb", "raise NotImplementedError", ["1: not implemented: raise NotImplementedError"]),
    ("a.sh", "# TODO", ["1: TODO: # TODO"]),
    ("a.swift", 'fatalError("not implemented")', ['1: not implemented: fatalError("not implemented")']),
]

NOT_STUBS = [
    ("a.py", "TODO = 1\nprint('TODO')\nprint(todo)  # the todo list, see mastodon TODOs"),
    (
        "a.py",
        "# Reads TODO.md and prints the open TODO items.\n# TODO.md is read\n# Format: XXX-YYY\n# XXX-YYY",
    ),
    ("a.py", "class A(ast.NodeVisitor):\n    def visit_Name(self, node):\n        pass"),
    ("a.py", "class A:\n    def __init__(self):\n        pass"),
    ("a.py", "class A:\n    def begin(self):\n        'Called at the start; override it.'"),
    (
        "a.py",
        "class A:\n    'Subclasses implement `run`.'\n    def run(self):\n        raise NotImplementedError",
    ),
    (
        "a.py",
        "class A:\n    def run(self):\n        raise NotImplementedError\nclass B(x.A[T], C):\n    def run(self): go()",
    ),
    ("a.py", '"""Lists every TODO of a project."""'),
    ("a.py", "try:\n    f()\nexcept OSError:\n    pass"),
    ("a.py", "class Error(Exception):\n    pass"),
    ("a.py", "class Error(Exception):\n    '''An error.'''"),
    ("a.py", "class A(Protocol):\n    def f(self) -> int: ...\n    async def g(self): ..."),
    ("a.py", "class A(typing.Protocol[T]):\n    def f(self) -> int:\n        '''Return it.'''"),
    ("a.py", "class A(ABC):\n    @abstractmethod\n    def f(self):\n        raise NotImplementedError"),
    ("a.py", "class A(metaclass=abc.ABCMeta):\n    def f(self):\n        raise NotImplementedError"),
    ("a.py", "class A:\n    @abc.abstractmethod\n    def f(self): pass"),
    (
        "a.py",
        "@overload\ndef f(x: int) -> int: ...\n@typing.overload\ndef f(x: str) -> str: ...\ndef f(x): return x",
    ),
    ("a.pyi", "def f() -> int: ...\nclass A:\n    def g(self) -> int: ..."),
    ("a.py", "def f():\n    pass  # nothing to close"),
    ("a.py", "def f():\n    # the base class does it\n    pass"),
    ("a.py", "def noop(*args):\n    pass\ndef _ignore(): ..."),
    ("a.py", "def f():\n    return NotImplemented\ntry:\n    f()\nexcept NotImplementedError:\n    g()"),
    ("a.py", "if x:\n    pass\nfor y in x:\n    ...\nwith a:\n    pass\nx[...] = 1"),
    ("a.py", "def f():\n    while g():\n        pass"),
    (
        "tests/test_a.py",
        "class Fake:\n    def close(self):\n        pass\n    def read(self):\n        raise NotImplementedError",
    ),
    (
        "tests/test_a.py",
        "SOURCE = '''\n# TODO\ndef f(): pass\n'''\nassert found('raise NotImplementedError')",
    ),
    ("tests/test_a.py", "@pytest.mark.skipif(WINDOWS, reason='no fork')\ndef test_a():\n    assert a"),
    ("a.ts", "const x = 'TODO'; list.todo(); // a Todo"),
    ("a.ts", "promise.catch(() => {});\nconst noop = () => {};\nuse(function () {});"),
    ("a.ts", "class A {\n  constructor(private x: X) {}\n}"),
    (
        "a.ts",
        "interface A {\n  f(): void;\n}\nabstract class B {\n  abstract f(): void;\n}\ndeclare function g(): void;",
    ),
    ("a.ts", "try { f() } catch (e) {}\nif (x) {}\nfor (const y of z) {}\nwhile (next()) {}"),
    ("a.ts", "const options = {};\nfunction f(options = {}) {\n  return 1\n}\nfoo({}, () => {})"),
    ("a.ts", "class A {\n  close() {\n    // nothing to close\n  }\n}"),
    ("a.ts", 'throw new Error("PUT is not supported")'),
    ("a.test.ts", "class Fake {\n  close() {}\n}\nfunction f() {}"),
    ("a.go", "func (a *A) isNode() {}\nvar x interface{}"),
    ("a.rs", "impl A for B { fn f(&self) {} }\nlet x = unreachable!();"),
    ("A.java", 'throw new UnsupportedOperationException("read-only");'),
    ("README.md", "TODO\n- [ ] FIXME"),
    ("package-lock.json", '{"TODO": "FIXME"}'),
    ("Cargo.lock", "# TODO"),
    ("a.min.js", "/* TODO */ function f(){}"),
    ("vendor/a.go", "// TODO"),
    ("node_modules/x/a.js", "// TODO"),
]


@pytest.mark.parametrize(
    ("path", "source", "findings"), STUBS, ids=[f"{row[0]}: {row[1]!r}" for row in STUBS]
)
def test_a_stub_is_found(path: str, source: str, findings: list[str]) -> None:
    assert found(path, source) == findings


@pytest.mark.parametrize(("path", "source"), NOT_STUBS, ids=[f"{row[0]}: {row[1]!r}" for row in NOT_STUBS])
def test_what_only_looks_like_a_stub_is_not_found(path: str, source: str) -> None:
    assert found(path, source) == []


OLD = "def f():\n    pass  \n\n\ndef g():  # new\n    return 1  # TODO\n"


def test_lines_that_are_not_new_do_not_count() -> None:
    assert found("a.py", OLD, is_new="new") == []
    assert found("a.py", OLD, is_new="return") == ["6: TODO: return 1 # TODO"]
    assert found("a.py", OLD, is_new="pass") == ["1: empty body: def f():"]


def test_lines_that_were_moved_do_not_count() -> None:
    moved = FilePatch(
        "b.py", (Line(1, "def f():", "removed"), Line(1, "    pass", "removed"), Line(1, "# TODO", "removed"))
    )
    new = FilePatch(
        "a.py",
        tuple(
            Line(number, text, "added") for number, text in enumerate(("# TODO", "def f():", "    pass"), 1)
        ),
    )
    assert list(find_stubs([new, moved])) == []


def test_a_base_class_whose_subclass_is_in_another_changed_file_may_leave_its_methods_to_it() -> None:
    def new(path: str, *lines: str) -> FilePatch:
        return FilePatch(path, tuple(Line(number, text, "added") for number, text in enumerate(lines, 1)))

    base = new("base.py", "class Shape:", "    def area(self):", "        raise NotImplementedError")
    square = new(
        "square.py", "class Square(base.Shape):", "    def area(self):", "        return self.side**2"
    )
    assert [str(finding) for finding in find_stubs([base])] == [
        "base.py:3: not implemented: raise NotImplementedError"
    ]
    assert list(find_stubs([base, square])) == []


def test_hostile_source_is_no_error() -> None:
    for source in (
        "(" * 100_000,
        "def f():\n" + " " * 99 + "pass",
        "\0",
        "x = '\\d'",
        "not " * 50_000 + "x",
        "f()." * 90_000,
    ):
        assert found("a.py", source)[1:] == []
