"""What a fault looks like in each language: how its tests are written, and texts that its tools complain about."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Planted:
    """A text at the end of a source file, and a pattern of what the reason says of it."""

    text: str
    shows: str


@dataclass(frozen=True, kw_only=True)
class Language:
    suffixes: tuple[str, ...]
    test_file: str  # pattern of a path
    comment: str  # with {}
    blank: str  # lines before a comment at the end of a file, as formatters want it
    opening: str  # pattern of the line that opens a test, with the groups `indent` and `name`, and others for the texts below
    end: str  # pattern of the last line of a test; `{indent}` is that of its opening
    is_end_kept: bool = False  # the line that matches `end` belongs to what follows
    failing: str  # a failing test, before the line that `opening` matches
    skipped: tuple[str, str]  # pattern within the opening and its replacement, which skips the test
    assertion: str  # pattern of a line with an assertion
    no_assertion: str = ""  # what takes its place
    stub: Planted
    lint: Planted
    types: Planted
    format: Planted
    syntax: Planted


PYTHON = Language(
    suffixes=(".py",),
    test_file=r"(?:^|/)(?:tests?/.*|test_[^/]*|[^/]*_test|tests)\.py$",
    comment="# {}",
    blank="\n\n",
    opening=r"(?m)(?<=\n\n)^(?P<indent> *)def (?P<name>test\w*)\((?P<self>self)?[^\n]*\)(?: -> None)?:$",
    end=r"(?m)^(?! *$)(?!{indent} )",
    is_end_kept=True,
    failing='{indent}def test_planted({self}):\n{indent}    assert 3 == 4, "planted"\n\n',
    skipped=(
        r"^( *)(def [\s\S]*)",
        r'\1import unittest\n\n\1@unittest.skip("does not work yet")\n\1\2',
    ),
    assertion=r"(?m)^( +)(?:assert [^(\n]* == [^(\n]*|assert \w+\([^()\n]*\) == [^(\n]*|self\.assert\w+\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\))$",
    no_assertion=r"\1pass",
    stub=Planted(
        "\n\ndef planted_stub(value):\n    raise NotImplementedError\n", "planted_stub|NotImplemented"
    ),
    lint=Planted("\nimport os as planted\n", r"F401|E402|imported but unused|planted"),
    types=Planted('\nplanted: int = "text"\n', r"(?i)incompatible|not assignable"),
    format=Planted("\nplanted = [  1,2 ]\n", r"(?i)would (?:be )?reformat|unformatted|planted"),
    syntax=Planted("\ndef planted(:\n    pass\n", r"(?i)syntax"),
)
JAVASCRIPT = Language(
    suffixes=(".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx"),
    test_file=r"(?:^|/)(?:tests?|__tests__|specs?)/|[.-](?:test|spec)\.\w+$|(?:^|/)test\.\w+$",
    comment="// {}",
    blank="\n",
    opening=r"(?m)^(?P<indent>[ \t]*)(?P<call>(?!describe|suite|context|before|after)\w+(?:\.(?:test|it))?)\((?P<name>['\"`][^'\"`\n]*['\"`]), (?:async )?(?:function ?\(|\(|\w+ ?=>)[^\n]*\{$",
    end=r"(?m)^{indent}\}}\);?\n",
    failing="{indent}{call}('planted', () => {{\n{indent}  throw new Error('planted: 3 is not 4');\n{indent}}});\n\n",
    skipped=(r"^(\s*[\w.]+)\(", r"\1.skip("),
    assertion=r"(?m)^[ \t]+(?:(?:await )?(?:assert|expect|t|is)\b[\w.]*\([^\n]*\)(?:\.[\w.]+\([^\n]*\))?;?)\n",
    stub=Planted(
        "\nexport function plantedStub(value) {\n  throw new Error('Not implemented')\n}\n",
        "(?i)not implemented|plantedStub",
    ),
    lint=Planted(
        "\nfunction planted () {\n  debugger\n  return undeclared\n}\n", r"(?i)debugger|undeclared|unused"
    ),
    types=Planted("\nconst planted: number = 'text'\n", r"TS2322|not assignable"),
    format=Planted("\nconst   planted = [  1,2 ]\n", r"(?i)planted|format|code style|spac"),
    syntax=Planted(
        "\nfunction planted( {\n", r"(?i)syntax|unexpected|expected|parse|error TS1|Transform failed"
    ),
)
_NOTHING = Planted("", "")
RUST = Language(
    suffixes=(".rs",),
    test_file=r"(?:^|/)tests/",
    comment="// {}",
    blank="\n",
    opening=r"(?m)^(?P<indent>[ \t]*)#\[test\]\n(?:[ \t]*#\[[^\n]*\n)*[ \t]*fn (?P<name>\w+)\(\) \{$",
    end=r"(?m)^{indent}\}}\n",
    failing='{indent}#[test]\n{indent}fn planted() {{\n{indent}    assert_eq!(3, 4, "planted");\n{indent}}}\n\n',
    skipped=(r"^(\s*)#\[test\]\n", r"\g<0>\1#[ignore]\n"),
    assertion=r"(?m)^[ \t]+assert(?:_eq|_ne)?!\([^\n]*\);\n",
    stub=Planted(
        "\n#[allow(dead_code)]\nfn planted_stub(_value: u32) -> u32 {\n    todo!()\n}\n",
        r"planted_stub|todo!",
    ),
    lint=Planted("\nfn planted(value: u32) -> u32 {\n    return value;\n}\n", "never used|needless"),
    types=Planted('\nconst PLANTED: u32 = "text";\n', "mismatched types"),
    format=Planted("\n#[allow(dead_code)]\nfn  planted( ) { }\n", "Diff in"),
    syntax=Planted("\nfn planted( {\n", "(?i)expected|unclosed|mismatched"),
)
GO = Language(
    suffixes=(".go",),
    test_file=r"_test\.go$",
    comment="// {}",
    blank="\n",
    opening=r"(?m)^(?P<indent>)func (?P<name>Test\w+)\(t \*testing\.T\) \{$",
    end=r"(?m)^\}}\n",
    failing='func TestPlanted(t *testing.T) {{\n\tt.Error("planted: 3 is not 4")\n}}\n\n',
    skipped=(r"\Z", '\n\tt.Skip("does not work yet")'),
    assertion=r"(?m)^(\t+)t\.(?:Error|Fatal)f?\([^\n]*\)$",
    no_assertion=r"\1t.Log()",
    stub=Planted('\nfunc plantedStub() {\n\tpanic("not implemented")\n}\n', "not implemented"),
    lint=Planted("\nfunc planted() int {\n\treturn 1\n\tprintln(2)\n\treturn 3\n}\n", "unreachable code"),
    types=Planted('\nvar planted int = "text"\n', "cannot use"),
    format=Planted("\nvar  planted  = 1\n", r"\.go"),
    syntax=Planted("\nfunc planted( {\n", "syntax error|expected"),
)
C = Language(
    suffixes=(".c", ".h", ".cpp", ".cc"),
    test_file=r"(?:^|/)tests?/|(?:^|/)\w*test\w*\.\w+$",
    comment="/* {} */",
    blank="\n",
    opening=r"(?m)^(?P<indent>)(?:static )?(?:int|void) (?P<name>\w*(?:test|should)\w*)\((?:void)?\)[ \n]\{$",
    end=r"(?m)^\}}\n",
    failing='{indent}int planted(void) {{\n  fprintf(stderr, "planted: 3 is not 4\\n");\n  return 1;\n}}\n\n',
    skipped=(r"\Z", "\n    GTEST_SKIP();"),
    assertion=r"(?m)^[ \t]+\w*(?:assert|ASSERT|check|expect|Test)\w*\([^\n]*\);\n",
    stub=Planted(
        "\nint planted_stub(int value)\n{\n    /* Not implemented yet. */\n    return value;\n}\n",
        "Not implemented",
    ),
    lint=_NOTHING,
    types=Planted('\nint planted = {"text", 1, 2};\nstruct planted_struct planted_value;\n', "error"),
    format=_NOTHING,
    syntax=Planted("\nint planted( {\n", "error: "),
)
RUBY = Language(
    suffixes=(".rb",),
    test_file=r"(?:^|/)(?:test|spec)/",
    comment="# {}",
    blank="\n",
    opening=r"(?m)^(?P<indent>[ \t]+)(?P<call>it |test |def )(?P<quote>['\"]?)(?P<name>test_\w+|(?<=['\"])[^'\"\n]*)(?P=quote)(?P<do> do)?$",
    end=r"(?m)^{indent}end\n",
    failing="{indent}{call}{quote}test_planted{quote}{do}\n{indent}  raise 'planted: 3 is not 4'\n{indent}end\n\n",
    skipped=(r"\Z", "\n      skip 'does not work yet'"),
    assertion=r"(?m)^[ \t]+(?:(?:assert|refute)\w*[ (]|expect\(|[^\n]*\.(?:must|wont)_)[^\n]*(?<! do)(?<![,|{(])\n",
    stub=Planted(
        "\ndef planted_stub(value)\n  raise NotImplementedError\nend\n", "planted_stub|NotImplementedError"
    ),
    lint=Planted("\ndef planted\n  unused = 1\nend\n", "(?i)useless assignment|unused|planted"),
    types=_NOTHING,
    format=_NOTHING,
    syntax=Planted("\ndef planted(\n", "(?i)syntax error"),
)
PHP = Language(
    suffixes=(".php",),
    test_file=r"(?:^|/)tests?/",
    comment="// {}",
    blank="\n",
    opening=r"(?m)(?<=\n\n)^(?P<indent> +)(?:public )?function (?P<name>test\w*)\([^\n]*\)[^\n]*\n +\{$",
    end=r"(?m)^{indent}\}}\n",
    failing="{indent}public function testPlanted(): void\n{indent}{{\n{indent}    $this->assertSame(3, 4, 'planted');\n{indent}}}\n\n",
    skipped=(r"\Z", "\n        $this->markTestSkipped('does not work yet');"),
    assertion=r"(?m)^[ \t]+(?:\$this->|self::)assert\w+\([^\n]*\);\n",
    stub=Planted(
        "\nfunction planted_stub($value)\n{\n    throw new \\LogicException('not implemented');\n}\n",
        "not implemented",
    ),
    lint=_NOTHING,
    types=_NOTHING,
    format=_NOTHING,
    syntax=Planted("\nfunction planted( {\n", "(?i)parse error|syntax"),
)
SHELL = Language(
    suffixes=(".bash", ".bats", ".sh"),
    test_file=r"(?:^|/)tests?/",
    comment="# {}",
    blank="\n",
    opening=r"(?m)^(?P<indent>)@test (?P<quote>['\"])(?P<name>[^\n]*)(?P=quote) \{$",
    end=r"(?m)^\}}\n",
    failing="@test 'planted' {{\n  echo '3 is not 4'\n  false\n}}\n\n",
    skipped=(r"\Z", "\n  skip 'does not work yet'"),
    assertion=r"(?m)^  (?:\[ [^\n]*\]|assert\w* [^\n<]*|assert\w*)\n",
    stub=Planted(
        "\nplanted_stub() {\n  # This is not implemented yet.\n  :\n}\n", "planted_stub|not implemented yet"
    ),
    lint=Planted("\nplanted() {\n  rm -r $1/*\n}\n", r"SC\d+"),
    types=_NOTHING,
    format=_NOTHING,
    syntax=Planted("\nplanted() {\n  if\n", "(?i)syntax error|unexpected"),
)
PERL = Language(
    suffixes=(".pm", ".pl", ".t"),
    test_file=r"(?:^|/)x?t/",
    comment="# {}",
    blank="\n",
    opening=r"(?m)^(?P<indent>)subtest (?P<name>['\"][^\n]*?['\"]) => sub \{$",
    end=r"(?m)^\}};\n",
    failing="subtest 'planted' => sub {{\n    plan tests => 1;\n    is( 3, 4, 'planted' );\n}};\n\n",
    skipped=(r"\Z", "\n    plan skip_all => 'does not work yet';"),
    assertion=r"(?m)^ +(?:is|ok|like|is_deeply|lists_match|ack_\w*match)\([^\n]*\);\n",
    stub=Planted("\nsub planted_stub {\n    die 'not implemented yet';\n}\n", "not implemented"),
    lint=_NOTHING,
    types=_NOTHING,
    format=_NOTHING,
    syntax=Planted("\nsub planted {\n", "(?i)syntax error|missing right curly"),
)
LANGUAGES = {
    "python": PYTHON,
    "javascript": JAVASCRIPT,
    "rust": RUST,
    "go": GO,
    "c": C,
    "ruby": RUBY,
    "php": PHP,
    "shell": SHELL,
    "perl": PERL,
}
