"""Which changes of tests take something away from them, in all languages."""

import pytest

from tests.support.patches import make_patch
from turngate.gates.weakened_tests import find_weakened

PYTHON = "class TestA(TestCase):\n    def test_a(self):\n        self.assertEqual(a(), 1)\n        mock.assert_called_once_with(2)\n"
JAVASCRIPT = """\
describe("a", () => {
  it("adds", async () => {
    expect(add(1, 2)).toBe(3);
    await expect(load()).rejects.toThrow(
      "gone",
    );
  });
  test('subtracts', () => { assert.equal(sub(3, 1), 2) })
})
"""
GO = """\
func TestAdd(t *testing.T) {
	if got := Add(1, 2); got != 3 {
		t.Errorf("got %d", got)
	}
	require.NoError(t, err)
}
"""
RUST = """\
#[test]
fn adds() {
    assert_eq!(add(1, 2), 3);
    assert!(ok);
}

#[test]
#[should_panic]
fn panics() {
    run();
}
"""
JAVA = """\
class ATest {
    @Test
    void adds() {
        assertEquals(3, add(1, 2));
        verify(mock).called();
        assertThat(x).isTrue();
    }
}
"""
RUBY = """\
class AddTest < Minitest::Test
  def test_adds
    assert_equal 3, add(1, 2)
  end

  it "subtracts" do
    _(sub(3, 1)).must_equal 2
  end
end
"""
BATS = """\
@test "adds" {
  run add 1 2
  [ "$status" -eq 0 ]
}
"""
PERL = """\
subtest 'adds' => sub {
    is( add(1, 2), 3 );
};
"""
PHP = """\
class ATest {
    public function testAdds(): void {
        $this->assertSame(3, add(1, 2));
    }
}
"""
C = """\
static void test_adds(void)
{
    TEST_ASSERT_EQUAL_INT(3, add(1, 2));
}
"""
BESIDE = """\
fn add(a: u32, b: u32) -> u32 {
    assert!(a < 9);
    a + b
}

#[test]
fn adds() {
    assert_eq!(add(1, 2), 3);
}
"""
SOURCES = {
    "a.py": PYTHON,
    "b.py": "def test_a():\n    assert a() == 1\n",
    "a.test.ts": JAVASCRIPT,
    "a_test.go": GO,
    "tests/a.rs": RUST,
    "src/lib.rs": BESIDE,
    "ATest.java": JAVA,
    "test/a_test.rb": RUBY,
    "test/a.bats": BATS,
    "t/a.t": PERL,
    "ATest.php": PHP,
    "tests/a.c": C,
}
REMOVED = "an assertion was removed or weakened: "
OFF = "a test is switched off: "
GONE = "a test was removed: "

CASES = [
    # file, old text, new text, what is found; another expected value is another expectation, and not a weaker one
    ("a.py", "a(), 1", "a(), 2", []),
    (
        "a.py",
        "mock.assert_called_once_with(2)",
        "mock.assert_called()",
        [f"4: {REMOVED}mock.assert_called_once_with(2)"],
    ),
    (
        "b.py",
        "    assert a() == 1",
        "    try:\n        assert a() == 1\n    except AssertionError as error:\n        print(error)",
        [f"2: {REMOVED}assert a() == 1"],
    ),
    (
        "b.py",
        "    assert a() == 1",
        "    try:\n        assert a() == 1\n    except AssertionError as error:\n        pytest.fail(str(error))",
        [],
    ),
    ("b.py", "def test_a", "@pytest.mark.skipif('os.name == \"nt\"')\ndef test_a", []),
    (
        "b.py",
        "def test_a",
        "@pytest.mark.skipif('True')\ndef test_a",
        [f"1: {OFF}@pytest.mark.skipif('True')"],
    ),
    ("b.py", "assert a() == 1", 'assert (a() == 1, "one")', [f"2: {REMOVED}assert a() == 1"]),
    (
        "b.py",
        "def test_a():\n    assert",
        "if False:\n  def test_a():\n    assert",
        [f"1: {GONE}def test_a():"],
    ),
    (
        "b.py",
        "assert a() == 1\n",
        "assert a() == 1\n\ndef test_a():\n    pass\n",
        [f"2: {REMOVED}assert a() == 1"],
    ),
    ("a.py", "    def test_a", "    @unittest.skip('x')\n    def test_a", [f"2: {OFF}@unittest.skip('x')"]),
    (
        "a.py",
        "    def test_a",
        "    @pytest.mark.skipif(True)\n    def test_a",
        [f"2: {OFF}@pytest.mark.skipif(True)"],
    ),
    ("a.py", "        self", "        self.skipTest('x')\n        self", [f"3: {OFF}self.skipTest('x')"]),
    (
        "a.py",
        "        self",
        "        if False:\n            self",
        [f"3: {REMOVED}self.assertEqual(a(), 1)"],
    ),
    ("a.py", "a(), 1)", "a(),\n            1,\n        )", []),
    ("a.py", "        self", "        # pytest.skip() would be wrong\n        self", []),
    ("a.py", "        self", "        say('pytest.skip()')\n        self", []),
    ("a.py", "mock.assert_called_once_with(2)", "mock.assert_called_once_with(2)\n        assert b()", []),
    ("a.test.ts", "toBe(3)", "toBeDefined()", [f"3: {REMOVED}expect(add(1, 2)).toBe(3);"]),
    ("a.test.ts", '"gone"', '"lost"', []),
    ("a.test.ts", 'it("adds"', 'it.skip("adds"', [f'2: {OFF}it.skip("adds", async () => {{']),
    ("a.test.ts", 'it("adds"', 'it.only("adds"', [f'2: {OFF}it.only("adds", async () => {{']),
    (
        "a.test.ts",
        'it("adds"',
        'sums.skip("adds"',
        [f'2: {GONE}it("adds", async () => {{', f'2: {OFF}sums.skip("adds", async () => {{'],
    ),
    (
        "a.test.ts",
        'it("adds"',
        'xit("adds"',
        [f'2: {GONE}it("adds", async () => {{', f'2: {OFF}xit("adds", async () => {{'],
    ),
    ("a.test.ts", 'describe("a"', 'describe.skip("a"', [f'1: {OFF}describe.skip("a", () => {{']),
    ("a.test.ts", "    expect", "    // expect", [f"3: {REMOVED}expect(add(1, 2)).toBe(3);"]),
    ("a.test.ts", "    expect(add", "    /*\n    */ expect(add", []),
    ("a.test.ts", '\n      "gone",\n    ', "'gone'", []),
    ("a.test.ts", "sub(3, 1), 2", "sub(3, 1), 9", []),
    ("a_test.go", "got != 3", "got != 4", []),
    ("a_test.go", "\trequire", "\tt.Skip()\n\trequire", [f"5: {OFF}t.Skip()"]),
    (
        "a.test.ts",
        "  test('subtracts', () => { assert.equal(sub(3, 1), 2) })\n",
        "",
        [f"8: {GONE}test('subtracts', () => {{ assert.equal(sub(3, 1), 2) }})"],
    ),
    ("a_test.go", "func TestAdd", "func testAdd", [f"1: {GONE}func TestAdd(t *testing.T) {{"]),
    ("a_test.go", "\trequire.NoError(t, err)\n", "", [f"5: {REMOVED}require.NoError(t, err)"]),
    ("a_test.go", "\trequire", "\trequire.True(t, ok)\n\trequire", []),
    ("tests/a.rs", "), 3)", "), 4)", []),
    ("tests/a.rs", "#[test]\nfn adds", "#[test]\n#[ignore]\nfn adds", [f"2: {OFF}#[ignore]"]),
    ("tests/a.rs", "#[should_panic]\n", "", [f"8: {REMOVED}#[should_panic]"]),
    ("tests/a.rs", "#[test]\nfn adds", "fn adds", [f"1: {GONE}#[test] adds"]),
    ("tests/a.rs", "assert!(ok);", "assert!(ok);\n    assert!(sure);", []),
    ("src/lib.rs", "    assert!(a < 9);\n", "", []),
    ("src/lib.rs", "    assert_eq!(add(1, 2), 3);\n", "", [f"8: {REMOVED}assert_eq!(add(1, 2), 3);"]),
    (
        "test/a_test.rb",
        "  def test_adds\n    assert_equal 3, add(1, 2)\n  end\n",
        "",
        [f"2: {GONE}def test_adds"],
    ),
    ("test/a_test.rb", "    _(sub(3, 1)).must_equal 2\n", "", [f"7: {REMOVED}_(sub(3, 1)).must_equal 2"]),
    ("test/a_test.rb", "    assert_eq", "    skip\n    assert_eq", [f"3: {OFF}skip"]),
    ("test/a.bats", '  [ "$status" -eq 0 ]\n', "", [f'3: {REMOVED}[ "$status" -eq 0 ]']),
    ("test/a.bats", "  run", "  skip 'later'\n  run", [f"2: {OFF}skip 'later'"]),
    ("t/a.t", "    is(", "    plan skip_all => 'later';\n    is(", [f"2: {OFF}plan skip_all => 'later';"]),
    ("t/a.t", "    is( add(1, 2), 3 );\n", "", [f"2: {REMOVED}is( add(1, 2), 3 );"]),
    (
        "ATest.php",
        "        $this->assertSame(3, add(1, 2));\n",
        "",
        [f"3: {REMOVED}$this->assertSame(3, add(1, 2));"],
    ),
    (
        "tests/a.c",
        "    TEST_ASSERT_EQUAL_INT(3, add(1, 2));\n",
        "",
        [f"3: {REMOVED}TEST_ASSERT_EQUAL_INT(3, add(1, 2));"],
    ),
    ("ATest.java", "(3, add", "(4, add", []),
    ("ATest.java", "    @Test", "    @Disabled\n    @Test", [f"2: {OFF}@Disabled"]),
    ("ATest.java", "    @Test\n", "", [f"2: {GONE}@Test adds"]),
    ("ATest.java", ".isTrue()", ".isNotNull()", [f"6: {REMOVED}assertThat(x).isTrue();"]),
    ("ATest.java", "isTrue();", "isTrue();\n        assertThat(y).isTrue();", []),
]


@pytest.mark.parametrize(("path", "old", "new", "found"), CASES, ids=[f"{row[0]}: {row[2]}" for row in CASES])
def test_a_change_of_tests_takes_away(path: str, old: str, new: str, found: list[str]) -> None:
    source = SOURCES[path]
    assert old in source
    changed = source.replace(old, new, 1)
    assert [str(each) for each in find_weakened([make_patch(path, source, changed)])] == [
        f"{path}:{each}" for each in found
    ]


WORKFLOW = """\
steps:
  - run: pytest
  - uses: codecov
"""
LEFT_OUT = "tests are left out: "


@pytest.mark.parametrize(
    ("path", "old", "new", "found"),
    [
        ("Makefile", "", "clean:\n\trm -rf build || true\n", []),
        ("Makefile", "", "\ttar --exclude=.git -cf a.tar .\n", []),
        ("Makefile", "", "\tpytest || true\n", [f"1: {LEFT_OUT}pytest || true"]),
        ("Makefile", "", "\tcargo test --exclude=shop\n", [f"1: {LEFT_OUT}cargo test --exclude=shop"]),
        (
            ".github/workflows/ci.yml",
            WORKFLOW,
            WORKFLOW + "    continue-on-error: true\n",
            [],
        ),
        (
            ".github/workflows/ci.yml",
            WORKFLOW,
            WORKFLOW.replace("pytest\n", "pytest\n    continue-on-error: true\n"),
            [f"3: {LEFT_OUT}continue-on-error: true"],
        ),
    ],
)
def test_a_command_or_step_that_may_fail_leaves_tests_out_only_if_it_runs_them(
    path: str, old: str, new: str, found: list[str]
) -> None:
    assert [str(each) for each in find_weakened([make_patch(path, old, new)])] == [
        f"{path}:{each}" for each in found
    ]


def test_one_of_two_equal_assertions_is_missed() -> None:
    source = "def test_a():\n    assert a()\n\ndef test_b():\n    assert a()\n"
    changed = "def test_a():\n    assert a()\n\ndef test_b():\n    pass\n"
    found = [str(each) for each in find_weakened([make_patch("a.py", source, changed)])]
    assert found == ["a.py:5: an assertion was removed or weakened: assert a()"]


@pytest.mark.parametrize(
    ("path", "old", "first"),
    [
        ("a.test.js", "it('ends', done => {\n  app.run(done)\n})\n", "it('ends', done => {"),
        ("a.test.js", "sums('ends', () => {\n  same(1, 1);\n});\n", "sums('ends', () => {"),
        ("test_a.py", "def test_runs():\n    run()\n", "def test_runs():"),
    ],
)
def test_a_test_without_an_assertion_is_missed_too(path: str, old: str, first: str) -> None:
    kept = {
        "a.test.js": "it('b', () => { expect(1).toBe(1) })\n",
        "test_a.py": "def test_b():\n    assert b() == 1\n",
    }
    gone = make_patch(path, old + kept[path], kept[path])
    renamed = make_patch(
        path, old + kept[path], old.replace("ends", "stops").replace("runs", "goes") + kept[path]
    )
    assert [str(each) for each in find_weakened([gone])] == [f"{path}:1: a test was removed: {first}"]
    assert [*find_weakened([renamed])] == []
